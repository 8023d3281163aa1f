//! A failure's identity: what kind of failure the output of a trial shows, with numbers, addresses
//! and paths removed, so that two runs of one bug look alike and two bugs do not.
//!
//! [`signature`] is pure: text in, [`Signature`] out. It knows tracebacks, panics, aborts,
//! compilers, test reports and the chatter of several processes in one log; it must not know
//! where the text came from, what the candidate was or what the search wants. The only effect in
//! this room is [`read_tail_and_head`].
//!
//! # How the cause is chosen
//!
//! Each piece of evidence has a weight ([`evidence::Weight`]): an *error* (an exception, a panic,
//! an abort, a test report), a *hint* (an ordinary line that speaks of a failure), an *aftermath*
//! (what a failure sets off elsewhere: a collective's timeout, a reset connection, a launcher's
//! summary). The heaviest wins. In one process the last error counts, since earlier ones were
//! caught; among several processes the first of these counts, since the others are its victims.
//! What was followed by more training steps was survived and is no cause.

mod class;
mod evidence;
mod lines;
mod native;
mod normal;
mod pick;
mod python;
mod read;

use nix::sys::signal::Signal;

pub use read::read_tail_and_head;

use crate::model::{Ended, Signature, SignatureClass};
use evidence::{Evidence, Weight};

/// The exit status of `timeout` (coreutils) for a command that it stopped.
const TIMEOUT_STATUS: i32 = 124;

/// The failure that a trial's end and output show, or `None` where there is none to identify:
/// a success, a skip that was asked for (125), a candidate that could not be prepared, a fault of
/// the machine, an interrupted session.
///
/// `stdout` and `stderr` are what the repro wrote, or the head and tail of it. Ranks may share
/// them, with or without a prefix on each line.
pub fn signature(ended: &Ended, stdout: &str, stderr: &str) -> Option<Signature> {
    match ended {
        Ended::Exited { code: 0 | 125 }
        | Ended::PrepareFailed { .. }
        | Ended::Faulted { .. }
        | Ended::Interrupted => None,
        Ended::TimedOut { .. } => Some(bare(SignatureClass::Hang, None)),
        Ended::SpawnFailed { error, .. } => Some(Signature {
            class: SignatureClass::Other,
            exception: None,
            frame: normal::message(error),
        }),
        Ended::Signalled { signal } => Some(of_output(Death::Signal(*signal), stdout, stderr)),
        Ended::Exited { code } => Some(of_output(Death::of_status(*code), stdout, stderr)),
    }
}

/// Whether `seen` is the failure that is hunted, `reference` being the bad end's.
///
/// | classes | exception types | same |
/// |---|---|---|
/// | differ | any | no |
/// | both `Other` | both named and equal, or neither named | yes |
/// | both `Other` | differ, or only one is named | no |
/// | equal, not `Other` | equal, or one is not named | yes |
/// | both `Oom` or both `Nccl` | one is a catch-all such as `RuntimeError` | yes |
/// | equal, not `Other` | differ | no |
///
/// Types are compared by their last part: `torch.OutOfMemoryError` is
/// `torch.cuda.OutOfMemoryError`. `Other` says nothing by itself, so there the type is the whole
/// identity: a bad end that gives a bare exit 1 is not reproduced by a `KeyError`, nor by an
/// `ImportError` (which has a class of its own). Frameworks gave out-of-memory and collective
/// failures types of their own only in later releases, so there a catch-all type does not count
/// against the class. The relation is symmetric.
pub fn same_failure(reference: &Signature, seen: &Signature) -> bool {
    if reference.class != seen.class {
        return false;
    }
    let lenient = matches!(reference.class, SignatureClass::Oom | SignatureClass::Nccl);
    match (&reference.exception, &seen.exception) {
        (Some(a), Some(b)) => {
            let (a, b) = (class::last_part(a), class::last_part(b));
            a == b || (lenient && (class::is_catch_all(a) || class::is_catch_all(b)))
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => reference.class != SignatureClass::Other,
    }
}

/// How the process died, as far as the output has to be read differently for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Status,
    Timeout,
    Signal(i32),
}

impl Death {
    fn of_status(code: i32) -> Self {
        match code {
            TIMEOUT_STATUS => Self::Timeout,
            // A shell reports a child's death by signal n as 128 + n. The largest signal is 64.
            129..=192 => Self::Signal(code - 128),
            _ => Self::Status,
        }
    }

    /// A signal that the hardware or kernel raised inside the program. Python code that catches
    /// and logs an exception may well run into one later, so only the last words count for it.
    fn is_fault(self) -> bool {
        match self {
            Self::Signal(n) => matches!(
                Signal::try_from(n),
                Ok(Signal::SIGSEGV | Signal::SIGBUS | Signal::SIGILL | Signal::SIGFPE)
            ),
            Self::Status | Self::Timeout => false,
        }
    }
}

fn of_output(death: Death, stdout: &str, stderr: &str) -> Signature {
    let cause = pick::cause(stdout, stderr);
    match (death, cause) {
        (Death::Signal(_), Some(cause)) if says_more(death, &cause) => cause.into_signature(),
        (Death::Signal(n), _) => bare(SignatureClass::Crash, Some(signal_name(n))),
        (Death::Timeout, Some(cause)) if cause.weight > Weight::Aftermath => cause.into_signature(),
        (Death::Timeout, _) => bare(SignatureClass::Hang, None),
        (Death::Status, Some(cause)) => cause.into_signature(),
        (Death::Status, None) => Signature {
            class: SignatureClass::Other,
            exception: None,
            frame: last_words(stderr).or_else(|| last_words(stdout)),
        },
    }
}

/// Whether the output tells more of a death by signal than the signal does.
fn says_more(death: Death, cause: &Evidence) -> bool {
    match cause.weight {
        Weight::Error => !death.is_fault() || cause.near_end || cause.native,
        Weight::Hint => !death.is_fault(),
        Weight::Aftermath => cause.class == SignatureClass::Nccl,
    }
}

fn bare(class: SignatureClass, exception: Option<String>) -> Signature {
    Signature {
        class,
        exception,
        frame: None,
    }
}

fn signal_name(n: i32) -> String {
    Signal::try_from(n).map_or_else(|_| format!("signal {n}"), |s| s.as_str().to_owned())
}

/// The last line that is not empty, normalised.
fn last_words(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    normal::message(line)
}
