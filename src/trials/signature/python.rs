//! Python's ways of saying that something was raised: tracebacks and their chains, bare exception
//! lines, the reports of pytest and unittest.

use std::sync::LazyLock;

use regex::Regex;

use super::class::{class_of, regex};
use super::evidence::Evidence;
use super::lines::Line;
use super::normal;
use crate::model::SignatureClass;

static FRAME: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"^(\s*)File "(.+?)", line \d+(?:, in (.+))?$"#));
/// An exception's line where a traceback ends.
static RAISED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\s*((?:[A-Za-z_]\w*\.|<locals>\.)*[A-Za-z_]\w*)(?::(?: (.*))?)?$"));
/// An exception's line anywhere: its name must look like one.
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|TimeoutExpired)|(?:[a-z_]\w*\.)+error)(?::(?: (.*))?)?$",
    )
});
static PYTEST_SUMMARY: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:FAILED|ERROR) (\S+\.py(?:::.+?)?)(?: - (.+))?$"));
static PYTEST_RAISED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^E\s+((?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt|Exit)|Failed))(?:: (.*))?$",
    )
});
static NAMED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?:: (.*))?$"));

const TRACEBACK: &str = "Traceback (most recent call last):";
/// Lines of a message beyond its first.
const MESSAGE_LINES: usize = 8;

/// Every exception that a process's lines show, in order.
pub(super) fn raised(lines: &[Line<'_>]) -> Vec<Evidence> {
    let mut found = Vec::new();
    let mut i = 0;
    while i < lines.len() {
        let text = lines[i].text;
        if text.contains(TRACEBACK) {
            let (evidence, next) = traceback(lines, i, found.last());
            found.extend(evidence);
            i = next;
        } else if let Some(caught) = BARE.captures(text) {
            let first = caught.get(2).map_or("", |m| m.as_str());
            let (message, next) = message(lines, i, first);
            found.push(Evidence::exception(
                lines[i].at,
                lines[next - 1].at,
                &caught[1],
                &message,
            ));
            i = next;
        } else {
            i += 1;
        }
    }
    found
}

/// Reads the traceback whose header is line `start`; gives the line after it.
fn traceback(
    lines: &[Line<'_>],
    start: usize,
    before: Option<&Evidence>,
) -> (Option<Evidence>, usize) {
    let mut frames: Vec<(&str, &str)> = Vec::new();
    let mut indent = None;
    let mut i = start + 1;
    while let Some(line) = lines.get(i) {
        if line.text.contains(TRACEBACK) {
            break;
        }
        if let Some(frame) = FRAME.captures(line.text) {
            indent.get_or_insert(frame[1].len());
            let part = |k, default| frame.get(k).map_or(default, |m| m.as_str());
            frames.push((part(2, "?"), part(3, "<module>")));
        } else if let Some(end) = ended(line.text, indent) {
            let (message, next) = message(lines, i, end.1);
            if is_noise(lines, start) {
                return (None, next);
            }
            let mut evidence =
                Evidence::exception(lines[start].at, lines[next - 1].at, end.0, &message);
            evidence.frame = causal(&frames).or(evidence.frame);
            evidence.chained = is_chained(lines, start);
            if lines[start].text.trim_start().starts_with("Original ") {
                inherit(&mut evidence, before);
            }
            return (Some(evidence), next);
        }
        i += 1;
    }
    (None, i)
}

/// The exception's name and first words, if this line ends a traceback with frames at `indent`.
fn ended(text: &str, indent: Option<usize>) -> Option<(&str, &str)> {
    let depth = text.len() - text.trim_start().len();
    let (caught, indent) = (RAISED.captures(text)?, indent?);
    let words = caught.get(2).map_or("", |m| m.as_str());
    (depth < indent).then_some((caught.get(1)?.as_str(), words))
}

/// The words of an exception from line `at` on, and the line after them.
fn message(lines: &[Line<'_>], at: usize, first: &str) -> (String, usize) {
    let mut words = first.to_owned();
    let mut next = at + 1;
    for line in lines.iter().skip(at + 1).take(MESSAGE_LINES) {
        let text = line.text;
        let ends = text.trim().is_empty()
            || text.contains(TRACEBACK)
            || BARE.is_match(text)
            || super::pick::is_progress(text)
            || text.starts_with("Exception ignored in");
        if ends {
            break;
        }
        words.push('\n');
        words.push_str(text);
        next += 1;
    }
    (words, next)
}

/// The innermost frame of the program itself, or the innermost one where libraries are all there is.
fn causal(frames: &[(&str, &str)]) -> Option<String> {
    let own = |file: &str| {
        ![
            "site-packages/",
            "dist-packages/",
            "/lib/python3",
            "<frozen",
        ]
        .iter()
        .any(|mark| file.contains(mark))
    };
    let (file, function) = frames
        .iter()
        .rev()
        .find(|(file, _)| own(file))
        .or(frames.last())?;
    Some(normal::frame(file, function))
}

fn last_before<'a>(lines: &[Line<'a>], at: usize) -> Option<&'a str> {
    let mut before = lines[..at].iter().rev().map(|line| line.text.trim());
    before.find(|text| !text.is_empty())
}

/// Tracebacks of finalizers and exit hooks: printed while dying, never the cause.
fn is_noise(lines: &[Line<'_>], header: usize) -> bool {
    last_before(lines, header).is_some_and(|text| {
        text.starts_with("Exception ignored in") || text.starts_with("Error in atexit")
    })
}

fn is_chained(lines: &[Line<'_>], header: usize) -> bool {
    let original = lines[header].text.trim_start().starts_with("Original ");
    original
        || last_before(lines, header).is_some_and(|text| {
            text.starts_with("During handling of the above exception")
                || text.starts_with("The above exception was the direct cause")
        })
}

/// A worker's exception that its parent raised again: where it says nothing by itself, the class
/// of the parent's words (a data loader's worker) is the better one.
fn inherit(inner: &mut Evidence, outer: Option<&Evidence>) {
    if let Some(outer) = outer.filter(|_| inner.class == SignatureClass::Other) {
        inner.class = outer.class;
    }
}

/// What pytest says of its first failing test, if these lines are a report of pytest.
pub(super) fn pytest(lines: &[Line<'_>]) -> Option<Evidence> {
    let mut summaries = lines
        .iter()
        .filter_map(|line| Some((line.at, PYTEST_SUMMARY.captures(line.text)?)));
    let first = summaries.next();
    let named = |text: &Regex, line: &Line<'_>| -> Option<(String, String)> {
        let caught = text.captures(line.text)?;
        let words = caught.get(2).map_or("", |m| m.as_str());
        Some((caught[1].to_owned(), words.to_owned()))
    };
    let Some((at, first)) = first else {
        let line = lines
            .iter()
            .find(|line| PYTEST_RAISED.is_match(line.text))?;
        let (name, words) = named(&PYTEST_RAISED, line)?;
        return Some(report(line.at, &name, &words, None));
    };
    let end = summaries.next_back().map_or(at, |(at, _)| at);
    let test = first[1].to_owned();
    let reason = first.get(2).map_or("", |m| m.as_str());
    let reason_line = Line { at, text: reason };
    let (name, words) = match named(&NAMED, &reason_line) {
        Some((name, words)) => {
            // The summary cuts words off; the report above has them in full.
            let full = lines
                .iter()
                .filter_map(|line| named(&PYTEST_RAISED, line))
                .find(|(seen, _)| *seen == name);
            full.unwrap_or((name, words))
        }
        None if reason.is_empty() => lines
            .iter()
            .find_map(|line| named(&PYTEST_RAISED, line))
            .unwrap_or_else(|| ("AssertionError".to_owned(), String::new())),
        // pytest leaves the type out of a plain `assert`.
        None => ("AssertionError".to_owned(), reason.to_owned()),
    };
    Some(report(end, &name, &words, Some(test)))
}

fn report(at: usize, name: &str, words: &str, frame: Option<String>) -> Evidence {
    let mut evidence = Evidence::exception(at, at, name, words);
    evidence.class = class_of(Some(name), words);
    evidence.frame = frame.or(evidence.frame);
    evidence.report = true;
    evidence
}

/// unittest prints a traceback for each failing test: the first one is what it reports.
pub(super) fn unittest(lines: &[Line<'_>], raised: &[Evidence]) -> Option<Evidence> {
    let failed = |line: &&Line<'_>| {
        line.text.starts_with("FAILED (failures=") || line.text.starts_with("FAILED (errors=")
    };
    lines.iter().rev().find(failed)?;
    let first = lines.iter().find(|line| {
        let text = line.text;
        (text.starts_with("FAIL: ") || text.starts_with("ERROR: ")) && text.ends_with(')')
    })?;
    let mut evidence = raised.iter().find(|found| found.at > first.at)?.clone();
    evidence.report = true;
    Some(evidence)
}
