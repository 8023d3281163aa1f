//! What a trial's end means: good, bad, no evidence, another attempt, or the end of the search.
//!
//! Pure: an observed end and the rules go in, a meaning comes out. It must not know a file, a
//! process or the search. The statuses are those of `git bisect run`, except that a death by
//! signal is a failure like any other (training code segfaults) where git would abort.
//!
//! | end | at the good end | elsewhere |
//! |---|---|---|
//! | exit 0 | good | good |
//! | exit 125 | skip | skip |
//! | exit 126, 127, cannot be started | abort | skip; bad where the bad end gives the same |
//! | any other exit, a signal | failure | failure |
//! | timeout | `on_timeout`: failure or skip | the same |
//! | not prepared | skip | skip |
//! | fault of the machine | retry, then skip | the same |
//! | interrupted | discard | discard |
//!
//! A *failure* whose output shows a fault of the machine is attempted again while attempts are
//! left. Then it is bad if it is the failure that is hunted, and a skip if it is another one.

use thiserror::Error;

use super::signature::same_failure;
use crate::model::{
    Classified, Ended, OnTimeout, PrepareStep, Signature, SignatureClass, SkipReason,
};
use crate::search::Outcome;

/// Where in the history the tested candidate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The end that fails: its failure is the one that is hunted.
    BadEnd,
    /// An end that passes.
    GoodEnd,
    /// Anywhere else.
    Elsewhere,
}

/// What decides, besides the end itself.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The repro's program, for messages.
    pub program: &'a str,
    /// Every failure counts, also one that differs from the bad end's.
    pub any_failure: bool,
    /// What running out of time means.
    pub on_timeout: OnTimeout,
    /// The bad end's failure; `None` until the bad end has failed.
    pub reference: Option<&'a Signature>,
    /// 126 or 127 if that is how the bad end failed.
    pub reference_cannot_execute: Option<i32>,
    /// Whether a fault of the machine may still lead to another attempt.
    pub attempts_left: bool,
    /// Where the candidate stands.
    pub position: Position,
}

/// The good end cannot run the repro at all, so no other commit's result would mean anything.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the good end cannot run `{program}`: {} (exit status {code}){}", meaning(*.code), told(.detail.as_deref()))]
pub struct Abort {
    /// The repro's program.
    pub program: String,
    /// 126 or 127.
    pub code: i32,
    /// The system's or the shell's words, if there are any.
    pub detail: Option<String>,
}

impl Abort {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        if self.code == 126 {
            "make it executable (chmod +x), check its first line (#!), \
             or name the interpreter in the command (sh ./repro.sh)"
        } else {
            "check the path: the command runs in a checkout of the commit, not in your directory; \
             is the file untracked? lay it over every checkout with --pin FILE or --link PATH; \
             is it in PATH there?"
        }
    }
}

fn meaning(code: i32) -> &'static str {
    if code == 126 {
        "it cannot be executed"
    } else {
        "it, or a command in it, was not found"
    }
}

fn told(detail: Option<&str>) -> String {
    detail.map_or_else(String::new, |detail| format!(": {detail}"))
}

/// What a trial's end means under the rules.
///
/// `signature` is what [`super::signature::signature`] made of the output; `text` is the failing
/// output itself, standard output first, standard error after it: its last lines are searched for
/// faults of the machine.
///
/// # Errors
/// [`Abort`] where the good end cannot execute the repro (126 or 127).
pub fn classify(
    ended: &Ended,
    signature: Option<&Signature>,
    text: &str,
    rules: &Rules<'_>,
) -> Result<Classified, Abort> {
    Ok(match ended {
        Ended::Exited { code: 0 } => evidence(Outcome::Good),
        Ended::Exited { code: 125 } => skip(SkipReason::Asked),
        Ended::Exited {
            code: code @ (126 | 127),
        } => cannot_execute(*code, last_line(text), rules)?,
        Ended::SpawnFailed { code, error } => cannot_execute(*code, last_line(error), rules)?,
        Ended::Exited { code: _ } | Ended::Signalled { signal: _ } => {
            failure(signature, text, rules)
        }
        Ended::TimedOut { limit_seconds: _ } => match rules.on_timeout {
            OnTimeout::Bad => failure(Some(signature.unwrap_or(&HANG)), text, rules),
            OnTimeout::Skip => skip(SkipReason::TimedOut),
        },
        Ended::PrepareFailed { step, detail } => not_prepared(*step, detail, text, rules),
        Ended::Faulted { detail } if rules.attempts_left => Classified::Retry {
            why: detail.clone(),
        },
        Ended::Faulted { detail: _ } => skip(SkipReason::MachineFault),
        Ended::Interrupted => Classified::Discard,
    })
}

/// A failure whose output says nothing.
const UNKNOWN: Signature = Signature {
    class: SignatureClass::Other,
    exception: None,
    frame: None,
};

/// A run that had to be stopped.
const HANG: Signature = Signature {
    class: SignatureClass::Hang,
    exception: None,
    frame: None,
};

fn evidence(outcome: Outcome) -> Classified {
    Classified::Outcome {
        outcome,
        skip: None,
    }
}

fn skip(reason: SkipReason) -> Classified {
    Classified::Outcome {
        outcome: Outcome::Skip,
        skip: Some(reason),
    }
}

fn failure(signature: Option<&Signature>, text: &str, rules: &Rules<'_>) -> Classified {
    let seen = signature.unwrap_or(&UNKNOWN);
    let retry = rules.attempts_left && may_be_the_machine(seen.class);
    if let Some(why) = machine_fault(text).filter(|_| retry) {
        return Classified::Retry { why };
    }
    let same = match (rules.reference_cannot_execute, rules.reference) {
        _ if rules.any_failure => true,
        // A repro that runs and fails is not one that cannot run.
        (Some(_), _) => false,
        (None, Some(reference)) => same_failure(reference, seen),
        (None, None) => true,
    };
    if same {
        evidence(Outcome::Bad)
    } else {
        skip(SkipReason::OtherFailure)
    }
}

fn cannot_execute(
    code: i32,
    detail: Option<String>,
    rules: &Rules<'_>,
) -> Result<Classified, Abort> {
    let bad_end_too = rules.reference_cannot_execute == Some(code);
    let first_failure = rules.reference.is_none() && rules.reference_cannot_execute.is_none();
    match rules.position {
        Position::GoodEnd => Err(Abort {
            program: rules.program.to_owned(),
            code,
            detail,
        }),
        Position::BadEnd if bad_end_too || first_failure => Ok(evidence(Outcome::Bad)),
        Position::Elsewhere if bad_end_too => Ok(evidence(Outcome::Bad)),
        Position::BadEnd | Position::Elsewhere => Ok(skip(SkipReason::CannotExecute { code })),
    }
}

fn not_prepared(step: PrepareStep, detail: &str, text: &str, rules: &Rules<'_>) -> Classified {
    match machine_fault(detail).or_else(|| machine_fault(text)) {
        Some(why) if rules.attempts_left => Classified::Retry { why },
        Some(_) | None => skip(SkipReason::PrepareFailed { step }),
    }
}

/// Words by which a program passes on a fault of the machine, and what they mean.
const FAULTS: [(&str, &str); 6] = [
    ("Address already in use", "address already in use"),
    ("EADDRINUSE", "address already in use"),
    ("No space left on device", "no space left on device"),
    ("ENOSPC", "no space left on device"),
    ("Stale file handle", "stale file handle"),
    ("ESTALE", "stale file handle"),
];

/// Lines at the output's end in which a fault counts: one that was met and handled stands earlier.
const LAST_LINES: usize = 60;

fn machine_fault(text: &str) -> Option<String> {
    text.lines().rev().take(LAST_LINES).find_map(|line| {
        let (_, meaning) = FAULTS.iter().find(|(words, _)| line.contains(words))?;
        Some((*meaning).to_owned())
    })
}

/// Whether a failure of this class may come from a taken address or a full disk. A retry of any
/// other failure would give it a second chance to pass, and so make the bad rate look smaller.
fn may_be_the_machine(class: SignatureClass) -> bool {
    match class {
        SignatureClass::Other
        | SignatureClass::Crash
        | SignatureClass::Nccl
        | SignatureClass::Checkpoint
        | SignatureClass::Loader
        | SignatureClass::Build => true,
        SignatureClass::Oom
        | SignatureClass::Nan
        | SignatureClass::Hang
        | SignatureClass::Import
        | SignatureClass::Assertion => false,
    }
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests;
