//! A session as a log that `git bisect replay` takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::console::clean;
use super::tables::tested;
use crate::journal::State;
use crate::model::{CommitId, Conclusion};

/// The log: the ends, then one line a tested commit, then the answer as a comment.
///
/// git knows one verdict a commit, so a commit with trials of both kinds counts as bad, as a
/// failure proves more than a pass; one without evidence is skipped. With `--fixed` the terms
/// are `broken` and `fixed`, since git's old and new ends keep their meaning.
pub fn git_log(state: &State, subjects: &BTreeMap<CommitId, String>) -> String {
    let plan = &state.plan;
    let (old, new) = if plan.fixed {
        ("broken", "fixed")
    } else {
        ("good", "bad")
    };
    let mut out = String::from("git bisect start");
    if plan.fixed {
        let _ = write!(out, " '--term-old={old}' '--term-new={new}'");
    }
    if plan.first_parent {
        out.push_str(" '--first-parent'");
    }
    if !plan.paths.is_empty() {
        out.push_str(" '--'");
        for path in &plan.paths {
            let _ = write!(out, " {}", single_quoted(&path.to_string_lossy()));
        }
    }
    out.push('\n');
    let mut line = |term: &str, commit: &CommitId| {
        let subject = subjects.get(commit).map(|s| clean(s)).unwrap_or_default();
        let _ = write!(
            out,
            "# {term}: [{commit}] {subject}\ngit bisect {term} {commit}\n"
        );
    };
    line(new, &plan.bad.1);
    for (_, good) in &plan.good {
        line(old, good);
    }
    for row in tested(state) {
        let end = row.commit == plan.bad.1 || plan.good.iter().any(|(_, g)| *g == row.commit);
        if end {
            continue;
        }
        // `bad` means failing, which with --fixed is how the old side behaves.
        let behaves_old = if plan.fixed {
            row.bad > 0
        } else {
            row.bad == 0
        };
        let term = match (row.good + row.bad, behaves_old) {
            (0, _) => "skip",
            (_, true) => old,
            (_, false) => new,
        };
        line(term, &row.commit);
    }
    match &state.conclusion {
        Some(Conclusion::Found { commit, .. }) => {
            let subject = subjects.get(commit).map(|s| clean(s)).unwrap_or_default();
            let _ = writeln!(out, "# first {new} commit: [{commit}] {subject}");
        }
        Some(Conclusion::Suspects { commits, .. }) => {
            let _ = writeln!(out, "# only skipped commits left to test");
            for commit in commits {
                let _ = writeln!(out, "# possible first {new} commit: [{commit}]");
            }
        }
        Some(
            Conclusion::Contradictory { .. }
            | Conclusion::BadEndPassed { .. }
            | Conclusion::GoodEndFailed { .. }
            | Conclusion::MergeBaseFailed { .. }
            | Conclusion::EndUntestable { .. }
            | Conclusion::BudgetSpent { .. }
            | Conclusion::EmptyRange,
        )
        | None => {}
    }
    out
}

/// Quoted as git quotes the words of a bisect log.
fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
