//! Chooses the cause among all that a log says.

use std::sync::LazyLock;

use regex::Regex;

use super::class::{is_launcher, regex, says_nan};
use super::evidence::{Evidence, Weight};
use super::lines::{Line, processes};
use super::{native, python};
use crate::model::SignatureClass;

static PROGRESS: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i)\b(?:step|epoch|iter|iteration|batch)s?\b\W{0,3}\d+|^\s*\d+%\|.*\d+/\d+ \[")
});

/// Lines after a piece of evidence up to which it still counts as a process's last words.
const LAST_WORDS: usize = 15;
/// Steps after which a failure was survived: one may be the failure's own farewell.
const STEPS_SURVIVED: usize = 2;

/// Whether the line says that training moves, with a number that is one.
pub(super) fn is_progress(text: &str) -> bool {
    PROGRESS.is_match(text) && !says_nan(text)
}

/// The evidence of the cause in a trial's two streams, if they speak of a failure at all.
pub(super) fn cause(stdout: &str, stderr: &str) -> Option<Evidence> {
    let (out, err) = (of_stream(stdout), of_stream(stderr));
    match (out, err) {
        // Two files have no common clock. Uncaught errors go to stderr; a test report does not.
        (Some(out), Some(err)) => {
            let out_wins = (out.report && !err.report) || out.weight > err.weight;
            Some(if out_wins { out } else { err })
        }
        (out, err) => out.or(err),
    }
}

fn of_stream(text: &str) -> Option<Evidence> {
    let found: Vec<Vec<Evidence>> = processes(text).iter().map(|p| of_process(p)).collect();
    let several = found.iter().filter(|process| !process.is_empty()).count() > 1
        || found.iter().flatten().any(shows_several_processes);
    let mut causes: Vec<Evidence> = found
        .iter()
        .filter_map(|process| cause_in_process(process, several))
        .collect();
    causes.sort_by_key(|cause| {
        (
            !cause.report,
            std::cmp::Reverse(cause.weight),
            rank(cause),
            cause.at,
        )
    });
    causes.into_iter().next()
}

fn shows_several_processes(evidence: &Evidence) -> bool {
    evidence.class == SignatureClass::Nccl || evidence.exception.as_deref().is_some_and(is_launcher)
}

/// Among the aftermath, a collective's failure says more than a death, and that more than a wrapper.
fn rank(evidence: &Evidence) -> u8 {
    match (evidence.weight, evidence.class) {
        (Weight::Hint | Weight::Error, _) | (Weight::Aftermath, SignatureClass::Nccl) => 0,
        (Weight::Aftermath, SignatureClass::Crash) => 1,
        (Weight::Aftermath, _) => 2,
    }
}

/// All evidence of one process, in order.
fn of_process(lines: &[Line<'_>]) -> Vec<Evidence> {
    let raised = python::raised(lines);
    // In order and apart from each other, so the last one that begins before a line may cover it.
    let covered = |at| {
        let begun = raised.partition_point(|e| e.at <= at);
        begun > 0 && raised[begun - 1].end >= at
    };
    let other = native::native(lines, covered);
    let report = python::pytest(lines).or_else(|| python::unittest(lines, &raised));
    let mut all = unchain(raised);
    all.extend(other);
    all.extend(report);
    all.sort_by_key(|evidence| evidence.at);
    let steps: Vec<usize> = lines
        .iter()
        .filter(|line| is_progress(line.text))
        .map(|line| line.at)
        .collect();
    for evidence in &mut all {
        let seen = |at: &usize| *at <= evidence.end;
        evidence.survived = steps.len() - steps.partition_point(seen) >= STEPS_SURVIVED;
        let written = lines.partition_point(|line| line.at <= evidence.end);
        evidence.near_end = lines.len() - written <= LAST_WORDS;
    }
    all
}

/// One piece of evidence for each chain: its last exception, unless that is only a wrapper.
fn unchain(raised: Vec<Evidence>) -> Vec<Evidence> {
    let mut kept: Vec<Evidence> = Vec::new();
    for evidence in raised {
        match kept.last_mut().filter(|_| evidence.chained) {
            Some(before) if evidence.weight < before.weight => before.end = evidence.end,
            Some(before) => *before = evidence,
            None => kept.push(evidence),
        }
    }
    kept
}

fn cause_in_process(found: &[Evidence], several: bool) -> Option<Evidence> {
    if let Some(report) = found.iter().find(|evidence| evidence.report) {
        return Some(report.clone());
    }
    let errors = |survived: bool| {
        let mut matching = found
            .iter()
            .filter(move |e| e.weight == Weight::Error && e.survived == survived);
        // Ranks without prefixes look like one process: the first is then the cause.
        if several {
            matching.next()
        } else {
            matching.next_back()
        }
    };
    errors(false)
        .or_else(|| hint(found))
        // Other ranks may print some steps more before they notice.
        .or_else(|| errors(true).filter(|_| several))
        .or_else(|| {
            let aftermath = found.iter().filter(|e| e.weight == Weight::Aftermath);
            aftermath.min_by_key(|e| (rank(e), e.at))
        })
        .cloned()
}

/// The first of the last hints that agree on a class: a compiler's first error, not its summary.
fn hint(found: &[Evidence]) -> Option<&Evidence> {
    let hints = || {
        found
            .iter()
            .rev()
            .filter(|e| e.weight == Weight::Hint && !e.survived)
    };
    let class = hints().next()?.class;
    hints().take_while(|hint| hint.class == class).last()
}
