//! The report that a person pastes into an issue: plain text, no colour, no control characters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Report;
use super::console::{clean, count, seconds};
use super::json::doubts;
use super::progress::{Outlook, purpose, time_left};
use super::tables::{failure_text, skip_text, tested};
use crate::journal::{State, Trial};
use crate::model::{CommitDetails, CommitId, Conclusion, Doubt, TrialId};
use crate::search::Outcome;

/// Files and suspects that are listed before the rest is counted.
const LISTED: usize = 20;

/// The conclusion in one line.
pub fn headline(state: &State) -> String {
    let plan = &state.plan;
    let new = if plan.fixed { "fixed" } else { "bad" };
    // In the search's words the new end is the bad one; people call it what they typed.
    let end = |commit: &CommitId| if *commit == plan.bad.1 { "new" } else { "old" };
    match &state.conclusion {
        None if state.interrupted => "interrupted before an answer".to_owned(),
        None => "not finished".to_owned(),
        Some(Conclusion::Found { commit, .. }) => format!("{commit} is the first {new} commit"),
        Some(Conclusion::Suspects { commits, .. }) => format!(
            "the first {new} commit is one of {} that cannot be told apart: too few of them can be tested",
            count(commits.len(), "commit")
        ),
        Some(Conclusion::Contradictory {
            suspect: Some(suspect),
            ..
        }) => format!(
            "contradictory: {} was not confirmed as the first {new} commit",
            suspect.short()
        ),
        Some(Conclusion::Contradictory { suspect: None, .. }) => {
            "contradictory: the trials cannot all be right".to_owned()
        }
        Some(Conclusion::BadEndPassed { commit, trials }) => format!(
            "the bad end {} did not fail in {}",
            commit.short(),
            count(*trials as usize, "trial")
        ),
        Some(Conclusion::GoodEndFailed { commit }) => {
            format!("the good end {} fails as the bad end does", commit.short())
        }
        Some(Conclusion::MergeBaseFailed { commit }) => format!(
            "the merge base {} of the two ends behaves like the {} end already",
            commit.short(),
            if plan.fixed { "fixed" } else { "bad" }
        ),
        Some(Conclusion::EndUntestable { commit }) => {
            format!(
                "the {} end {} cannot be tested",
                end(commit),
                commit.short()
            )
        }
        Some(Conclusion::BudgetSpent { commits }) => format!(
            "stopped by its budget: {} left",
            count(commits.len(), "suspect")
        ),
        Some(Conclusion::EmptyRange) => "no commit lies between the ends".to_owned(),
    }
}

/// What a person should do after a conclusion that names nobody.
pub fn advice(state: &State) -> Option<String> {
    let plan = &state.plan;
    let flaky =
        "if the repro is flaky, make it fail more often (a loop inside it, a failing FBISECT_SEED)";
    match state.conclusion.as_ref()? {
        Conclusion::Found { .. } | Conclusion::EmptyRange => None,
        Conclusion::Suspects { .. } => Some(
            "make one of them testable (--apply a patch, --build, --setup), or read their diffs".to_owned(),
        ),
        Conclusion::Contradictory { .. } => Some(format!(
            "look at the evidence below; {flaky}; a fault that came, went and came back looks the same"
        )),
        Conclusion::BadEndPassed { commit, .. } => Some(format!(
            "check the command by hand at {}; {flaky}; the failure may need data or an environment that the worktree lacks (--link, --setup)",
            commit.short()
        )),
        Conclusion::GoodEndFailed { commit } => Some(format!(
            "choose {} good end than {}, or look for what changed outside the repository{}",
            // With --fixed the good end is the new one.
            if plan.fixed { "a newer" } else { "an older" },
            commit.short(),
            if plan.pins.files.is_empty() {
                ""
            } else {
                "; if the files pinned as they are today hold the code under test, give --unpinned"
            }
        )),
        Conclusion::MergeBaseFailed { commit } => Some(if plan.fixed {
            format!("the fix lies below {}: give an older bad end", commit.short())
        } else {
            format!(
                "it was fixed on the way to the good end, so nothing broke it there: \
                 search the fix with `--fixed {}..{}`, or give a good end below the merge base",
                commit.short(),
                plan.good.first().map_or("GOOD", |(name, _)| name)
            )
        }),
        Conclusion::EndUntestable { .. } => Some(
            "make it testable (--build, --setup, --apply, --link), or choose a neighbour as the end".to_owned(),
        ),
        Conclusion::BudgetSpent { .. } => Some(format!(
            "go on with a larger budget: fbisect resume {} --max-trials N (or --max-time)",
            state.session
        )),
    }
}

/// A doubt in words.
pub fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Unconfirmed { commit } => format!(
            "{} could not be tested in the confirmation; its outcome follows from its neighbours",
            commit.short()
        ),
        Doubt::UntestedMergeBase { commit } => format!(
            "the merge base {} of the ends could not be tested; it is taken to be like the old end",
            commit.short()
        ),
        Doubt::FlakyEnd => "the bad end passed before it failed: the repro is flaky, and single \
                            trials were taken at their word"
            .to_owned(),
        Doubt::OtherSymptom {
            hunted,
            seen,
            otherwise,
        } => format!(
            "it is the first commit that fails at all, but it fails with \"{}\" and the bad end with \"{}\". \
             If these are two faults, the first commit with the bad end's is one of {}{}",
            clean(seen),
            clean(hunted),
            count(otherwise.len(), "commit"),
            match (otherwise.first(), otherwise.last()) {
                (Some(first), Some(last)) => format!(", {} to {}", first.short(), last.short()),
                _ => String::new(),
            }
        ),
        Doubt::NotConfirmed => "not tested again (--deterministic)".to_owned(),
    }
}

/// The whole report.
pub fn report(report: &Report<'_>) -> String {
    let state = report.state;
    let mut out = format!("{}\n", headline(state));
    if let Some(culprit) = &report.culprit {
        commit_block(&mut out, culprit);
    }
    for warning in &report.warnings {
        let _ = write!(out, "\nWarning: {warning}\n");
    }
    for d in doubts(state.conclusion.as_ref()) {
        let _ = write!(out, "\nNote: {}\n", doubt(d));
    }
    remaining(&mut out, report);
    if let Some(Conclusion::Contradictory {
        conflicts,
        unexplained,
        ..
    }) = &state.conclusion
    {
        out.push_str("\nWhat cannot be right together:\n");
        for (old_like, new_like) in conflicts {
            if old_like == new_like {
                let _ = writeln!(out, "  {} did not repeat itself", old_like.short());
            } else {
                let _ = writeln!(
                    out,
                    "  {} behaves like the good end, its ancestor {} like the bad end",
                    old_like.short(),
                    new_like.short()
                );
            }
        }
        for commit in unexplained {
            let _ = writeln!(
                out,
                "  {} fails, and no one commit explains all failures",
                commit.short()
            );
        }
    }
    if let Some(advice) = advice(state) {
        let _ = write!(out, "\nWhat to do: {advice}.\n");
    }
    evidence(&mut out, report);
    commands(&mut out, state);
    out
}

fn commit_block(out: &mut String, culprit: &CommitDetails) {
    let _ = writeln!(out, "\n  commit   {}", culprit.id);
    for parent in &culprit.parents {
        let _ = writeln!(out, "  parent   {parent}");
    }
    let _ = writeln!(out, "  authored {}", clean(&culprit.author_date));
    let _ = writeln!(out, "  subject  {}", clean(&culprit.subject));
    for (i, (status, path)) in culprit.files.iter().take(LISTED).enumerate() {
        let label = if i == 0 { "files" } else { "" };
        let _ = writeln!(
            out,
            "  {label:<8} {status} {}",
            clean(&path.to_string_lossy())
        );
    }
    if let Some(more) = culprit.files.len().checked_sub(LISTED).filter(|n| *n > 0) {
        let _ = writeln!(out, "           and {more} more");
    }
}

fn remaining(out: &mut String, report: &Report<'_>) {
    let Some(Conclusion::Suspects { commits, .. } | Conclusion::BudgetSpent { commits }) =
        &report.state.conclusion
    else {
        return;
    };
    out.push_str("\nSuspects, oldest first:\n");
    for commit in commits.iter().take(LISTED) {
        let subject = report.subjects.get(commit).map(|s| clean(s));
        let _ = writeln!(out, "  {} {}", commit.short(), subject.unwrap_or_default());
    }
    if let Some(more) = commits.len().checked_sub(LISTED).filter(|n| *n > 0) {
        let _ = writeln!(out, "  and {more} more");
    }
}

fn evidence(out: &mut String, report: &Report<'_>) {
    let state = report.state;
    let rows = tested(state);
    let _ = writeln!(
        out,
        "\nEvidence: {} on {} of {}, {}, seed {}",
        count(state.trials.len(), "trial"),
        count(rows.len(), "commit"),
        count(state.candidates, "candidate"),
        seconds(state.elapsed_seconds),
        state.plan.seed
    );
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "  {:<12} {:>4} {:>4} {:>4}  trials / subject",
        "commit", "good", "bad", "skip"
    );
    for row in &rows {
        let numbers: Vec<String> = row.trials.iter().map(ToString::to_string).collect();
        let subject = report.subjects.get(&row.commit).map(|s| clean(s));
        let why = if row.skip_reasons.is_empty() {
            String::new()
        } else {
            format!(" [{}]", clean(&row.skip_reasons.join("; ")))
        };
        let _ = writeln!(
            out,
            "  {:<12} {:>4} {:>4} {:>4}  #{}{why} {}",
            row.commit.short(),
            row.good,
            row.bad,
            row.skip,
            numbers.join(" #"),
            subject.unwrap_or_default(),
        );
    }
    if let Some(reference) = state.reference()
        && let Some(trial) = state.trials.get(&reference.trial)
    {
        let frame = reference.signature.as_ref().and_then(|s| s.frame.as_ref());
        let _ = writeln!(
            out,
            "The failure hunted: {}{} (trial {})",
            clean(&failure_text(&trial.record)),
            frame
                .map(|f| format!(" at {}", clean(f)))
                .unwrap_or_default(),
            reference.trial
        );
    }
}

fn commands(out: &mut String, state: &State) {
    let Some(Conclusion::Found { commit, .. }) = &state.conclusion else {
        return;
    };
    let at = |want: Outcome, commits: &dyn Fn(&CommitId) -> bool| -> Option<TrialId> {
        state
            .finished()
            .filter(|t| commits(&t.record.spec.commit))
            .filter(|t| t.judged.as_ref().is_some_and(|j| j.outcome == want))
            .map(|t| t.record.spec.trial)
            .last()
    };
    // A culprit with another symptom has no trial that was judged bad.
    let any_at = |commits: &dyn Fn(&CommitId) -> bool| {
        at(Outcome::Bad, commits).or_else(|| at(Outcome::Skip, commits))
    };
    let is_culprit = |c: &CommitId| c == commit;
    let anywhere = |_: &CommitId| true;
    let (failing, passing) = if state.plan.fixed {
        (at(Outcome::Bad, &anywhere), at(Outcome::Good, &is_culprit))
    } else {
        (any_at(&is_culprit), at(Outcome::Good, &anywhere))
    };
    out.push_str("\nCommands: the diff, a failing trial again, a passing one\n");
    let _ = writeln!(out, "  git show {}", commit.short());
    for trial in [failing, passing].into_iter().flatten() {
        let _ = writeln!(out, "  fbisect rerun {trial} --session {}", state.session);
    }
}

/// A session that has not concluded, in a few lines.
pub fn status(state: &State, in_use: bool, outlook: Outlook) -> String {
    let activity = match (in_use, state.interrupted) {
        (true, _) => "running".to_owned(),
        (false, true) => format!("interrupted; go on with: fbisect resume {}", state.session),
        (false, false) => format!("not running; go on with: fbisect resume {}", state.session),
    };
    let mut out = format!("session {} ({activity})\n", state.session);
    let _ = writeln!(
        out,
        "  {} finished, {} between the ends, {} at work",
        count(state.trials.len(), "trial"),
        count(state.candidates, "candidate"),
        seconds(state.elapsed_seconds)
    );
    if outlook.suspects > 0 {
        let _ = writeln!(out, "  {} left", count(outlook.suspects, "suspect"));
    }
    if let Some(left) = time_left(state, outlook) {
        let _ = writeln!(out, "  about {} to go", seconds(left));
    }
    if in_use {
        for started in state.running.values() {
            let spec = &started.spec;
            let _ = writeln!(
                out,
                "  running: trial {} ({}) on {} in slot {}",
                spec.trial,
                purpose(spec.purpose, state.plan.fixed),
                spec.commit.short(),
                spec.slot
            );
        }
    }
    out
}

/// One finished trial in a line.
pub fn trial_line(state: &State, trial: &Trial) -> String {
    let record = &trial.record;
    let verdict = match &trial.judged {
        None => "waits for the bad end".to_owned(),
        Some(judged) => match judged.outcome {
            Outcome::Good => "good".to_owned(),
            Outcome::Bad => format!("bad ({})", clean(&failure_text(record))),
            Outcome::Skip => format!("skip ({})", clean(&skip_text(trial, judged.skip.as_ref()))),
        },
    };
    format!(
        "{:>4} {:<10} {} seed {:<10} {:>6} {verdict}",
        format!("#{}", record.spec.trial),
        purpose(record.spec.purpose, state.plan.fixed),
        record.spec.commit.short(),
        record.spec.seed,
        seconds(record.prepare_seconds + record.run_seconds),
    )
}

/// All finished trials, in the order in which the search was told.
pub fn log(state: &State, subjects: &BTreeMap<CommitId, String>) -> String {
    let mut out = format!("session {}: {}\n", state.session, headline(state));
    for trial in state.finished() {
        let subject = subjects.get(&trial.record.spec.commit);
        let subject = subject.map(|s| clean(s)).unwrap_or_default();
        let _ = writeln!(out, "{}  {subject}", trial_line(state, trial));
    }
    out
}
