//! What runtimes other than Python, the kernel, compilers and ordinary log lines say.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::class::{class_of, class_of_words, is_aftermath, regex, says_oom_killer};
use super::evidence::{Evidence, Weight};
use super::lines::Line;
use crate::model::SignatureClass as Class;

static PANIC: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^thread '.*' (?:\(\d+\) )?panicked at (.*?):?$"));
static TERMINATE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"terminate called after throwing an instance of '(.+?)'"));
static WHAT: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*what\(\):\s*(.*)$"));
static ASSERT: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\S+:\d+:? .*\bAssertion [`'].*['`] failed\.?$|\bCheck failed: "));
static FATAL: LazyLock<Regex> = LazyLock::new(|| regex(r"^Fatal Python error: (.*)$"));
static SIGNAL_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:^|line \d+:\s+\d+ )\s*(Segmentation fault|Bus error|Illegal instruction|Floating point exception|Aborted|Killed)\b(?:\s*\(core dumped\))?",
    )
});
static HEAP: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"double free or corruption|free\(\): invalid|malloc\(\): \w|corrupted size vs\. prev_size|munmap_chunk\(\): invalid|\*\*\* (?:stack smashing|buffer overflow) detected",
    )
});
static SANITIZER: LazyLock<Regex> = LazyLock::new(|| regex(r"ERROR: (\w+Sanitizer): (\S+)"));
/// A launcher that reports its child's death: `Signal 11 (SIGSEGV)`, `exitcode: -9`.
static CHILD_SIGNAL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\bSignal \d+ \((SIG[A-Z]+)\) received|exitcode\s*: -(\d+)"));
static LOGGED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(?:ERROR|CRITICAL|FATAL|[Ee]rror|[Ff]ailed)\b.*?\b((?:\w+\.)*[A-Z]\w*(?:Error|Exception)): (.*)$",
    )
});
static WARNING: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:[Ww]arning|WARNING|\bWARN\b|\bINFO\b|\bDEBUG\b)"));

/// Evidence from every line that no traceback covers. `covered` says which lines (by `at`) one does.
pub(super) fn native(lines: &[Line<'_>], covered: impl Fn(usize) -> bool) -> Vec<Evidence> {
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if !line.text.trim().is_empty() && !covered(line.at) {
            found.extend(dying(lines, i).or_else(|| hint(line)));
        }
    }
    found
}

/// What a runtime or the kernel writes as a process dies.
fn dying(lines: &[Line<'_>], i: usize) -> Option<Evidence> {
    let Line { at, text } = lines[i];
    let next = lines.get(i + 1);
    let error = |class, exception: &str, message: &str| Evidence {
        exception: (!exception.is_empty()).then(|| exception.to_owned()),
        native: true,
        ..Evidence::plain(at, at, Weight::Error, class, message)
    };
    if let Some(caught) = PANIC.captures(text) {
        // Before Rust 1.73 the message stood in quotes on the same line.
        let quoted = caught[1].starts_with('\'');
        let words = next
            .filter(|_| !quoted)
            .map_or(&caught[1], |line| line.text);
        let class = class_of_words(words).filter(|class| *class != Class::Build);
        let asserted = words.contains("assertion");
        let fallback = if asserted {
            Class::Assertion
        } else {
            Class::Crash
        };
        return Some(error(class.unwrap_or(fallback), "panic", words));
    }
    if let Some(caught) = TERMINATE.captures(text) {
        let words = next.and_then(|line| WHAT.captures(line.text));
        let words = words.map_or_else(String::new, |words| words[1].to_owned());
        return Some(terminate(at, &caught, &words));
    }
    if says_oom_killer(text) {
        return Some(error(Class::Oom, "", text));
    }
    if ASSERT.is_match(text) {
        return Some(error(Class::Assertion, "", text));
    }
    if let Some(caught) = FATAL.captures(text) {
        let signal = signal_of_words(&caught[1]);
        return Some(error(
            Class::Crash,
            signal.unwrap_or("Fatal Python error"),
            text,
        ));
    }
    if HEAP.is_match(text) {
        return Some(error(Class::Crash, "SIGABRT", text));
    }
    if let Some(caught) = SANITIZER.captures(text) {
        return Some(error(Class::Crash, &caught[1], text));
    }
    let signal = signal_of_words(&SIGNAL_WORDS.captures(text)?[1])?;
    let mut evidence = error(Class::Crash, signal, text);
    // An abort has a reason that was told before; a kill has one outside of the program.
    if matches!(signal, "SIGABRT" | "SIGKILL") {
        evidence.weight = Weight::Aftermath;
    }
    Some(evidence)
}

fn terminate(at: usize, caught: &Captures<'_>, words: &str) -> Evidence {
    let name = &caught[1];
    let class = match class_of(Some(name), words) {
        Class::Other => Class::Crash,
        class => class,
    };
    let weight = if is_aftermath(class, Some(name), words) {
        Weight::Aftermath
    } else {
        Weight::Error
    };
    Evidence {
        exception: Some(name.to_owned()),
        native: true,
        ..Evidence::plain(
            at,
            at,
            weight,
            class,
            if words.is_empty() { name } else { words },
        )
    }
}

/// An ordinary line that speaks of a failure. Warnings and information are not evidence.
fn hint(line: &Line<'_>) -> Option<Evidence> {
    let Line { at, text } = *line;
    if let Some(signal) = child_signal(text) {
        return Some(Evidence {
            exception: Some(signal),
            ..Evidence::plain(at, at, Weight::Aftermath, Class::Crash, text)
        });
    }
    let nccl_warning = text.contains("NCCL WARN");
    if WARNING.is_match(text) && !nccl_warning {
        return None;
    }
    if let Some(caught) = LOGGED.captures(text) {
        let mut evidence = Evidence::exception(at, at, &caught[1], &caught[2]);
        evidence.weight = evidence.weight.min(Weight::Hint);
        return Some(evidence);
    }
    let class = class_of_words(text)?;
    let weight = if class == Class::Nccl {
        Weight::Aftermath
    } else {
        Weight::Hint
    };
    Some(Evidence::plain(at, at, weight, class, text))
}

/// The signal that a launcher saw its child die of. TERM is the launcher's own doing.
fn child_signal(text: &str) -> Option<String> {
    let caught = CHILD_SIGNAL.captures(text)?;
    let named = caught.get(1).map(|m| m.as_str().to_owned());
    let numbered = || super::signal_name(caught.get(2)?.as_str().parse().ok()?).into();
    let signal: String = named.or_else(numbered)?;
    (signal != "SIGTERM").then_some(signal)
}

fn signal_of_words(words: &str) -> Option<&'static str> {
    [
        ("Segmentation fault", "SIGSEGV"),
        ("Bus error", "SIGBUS"),
        ("Illegal instruction", "SIGILL"),
        ("Floating point exception", "SIGFPE"),
        ("Aborted", "SIGABRT"),
        ("Killed", "SIGKILL"),
    ]
    .into_iter()
    .find_map(|(start, signal)| words.starts_with(start).then_some(signal))
}
