//! One trial: how it ended, as observed, and what that means.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{CommitId, TrialId};
use crate::search::{Outcome, Purpose};

/// A step of getting a candidate ready to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrepareStep {
    /// Making the worktree or moving it to the commit.
    Checkout,
    /// `git submodule update`.
    Submodules,
    /// Laying pinned files and links over the checkout.
    Pin,
    /// Applying the user's patch.
    Apply,
    /// The `--setup` command.
    Setup,
    /// The `--build` command.
    Build,
}

impl fmt::Display for PrepareStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checkout => "checkout",
            Self::Submodules => "submodule update",
            Self::Pin => "pinning files",
            Self::Apply => "applying the patch",
            Self::Setup => "setup",
            Self::Build => "build",
        })
    }
}

/// How a trial ended, as observed. The full space of ways: matches are written without `_`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Ended {
    /// The repro exited by itself.
    Exited {
        /// Its exit status, 0 to 255.
        code: i32,
    },
    /// A signal that was not ours ended the repro.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// The repro ran past `--timeout` and was stopped.
    TimedOut {
        /// The limit in seconds.
        limit_seconds: f64,
    },
    /// The repro could not be started: 126 (cannot execute) or 127 (not found), as a shell says.
    SpawnFailed {
        /// 126 or 127.
        code: i32,
        /// The operating system's words.
        error: String,
    },
    /// The candidate could not be made ready, for a reason of its own: a build that fails.
    PrepareFailed {
        /// Where it failed.
        step: PrepareStep,
        /// One line: an exit status, or git's last words.
        detail: String,
    },
    /// The machine failed, not the candidate: a full disk, a worktree that could not be written.
    Faulted {
        /// What happened.
        detail: String,
    },
    /// The session was interrupted and the repro stopped with it. No evidence.
    Interrupted,
}

/// A failure's identity, numbers and addresses removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signature {
    /// The kind of failure.
    pub class: SignatureClass,
    /// The exception's type or the signal's name, when the output names one.
    pub exception: Option<String>,
    /// Its first causal frame or message, normalised; shown, not compared.
    pub frame: Option<String>,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.class)?;
        if let Some(exception) = &self.exception {
            write!(f, " ({exception})")?;
        }
        Ok(())
    }
}

/// The kinds of failure that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum SignatureClass {
    Oom,
    Nan,
    Hang,
    Crash,
    Import,
    Build,
    Nccl,
    Assertion,
    Checkpoint,
    Loader,
    Other,
}

impl fmt::Display for SignatureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Oom => "out of memory",
            Self::Nan => "NaN",
            Self::Hang => "hang",
            Self::Crash => "crash",
            Self::Import => "import error",
            Self::Build => "build failure",
            Self::Nccl => "NCCL failure",
            Self::Assertion => "assertion",
            Self::Checkpoint => "checkpoint failure",
            Self::Loader => "data loader failure",
            Self::Other => "failure",
        })
    }
}

/// Why a trial is no evidence about its candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum SkipReason {
    /// The repro itself said so, with exit status 125.
    Asked,
    /// 126 or 127: the command cannot be executed or found at this candidate.
    CannotExecute {
        /// 126 or 127.
        code: i32,
    },
    /// Checkout, setup or build failed.
    PrepareFailed {
        /// Where.
        step: PrepareStep,
    },
    /// It failed, but not as the bad end does.
    OtherFailure,
    /// It ran out of time and `--on-timeout skip` was given.
    TimedOut,
    /// The machine failed again and again.
    MachineFault,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("exit 125"),
            Self::CannotExecute { code: 127 } => f.write_str("command not found (127)"),
            Self::CannotExecute { code } => write!(f, "cannot execute ({code})"),
            Self::PrepareFailed { step } => write!(f, "{step} failed"),
            Self::OtherFailure => f.write_str("other failure"),
            Self::TimedOut => f.write_str("timeout"),
            Self::MachineFault => f.write_str("fault of the machine"),
        }
    }
}

/// What an end means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Classified {
    /// Evidence, or a reason why there is none.
    Outcome {
        /// Good, bad or skip.
        outcome: Outcome,
        /// Set exactly when the outcome is skip.
        skip: Option<SkipReason>,
    },
    /// A fault of the machine: attempt the trial again.
    Retry {
        /// What was seen.
        why: String,
    },
    /// Nothing was learned because the session is ending.
    Discard,
}

/// A trial's retry number, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub u32);

/// What is known of a trial before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// Its number in the session.
    pub trial: TrialId,
    /// The commit to test.
    pub commit: CommitId,
    /// How many trials of this commit were asked before.
    pub index: u32,
    /// Why it is asked.
    pub purpose: Purpose,
    /// The repro's seed, 0 to 2^31 - 1.
    pub seed: u32,
    /// Where it runs.
    pub slot: usize,
    /// Attempts that a fault of the machine cost before this one.
    pub attempt: AttemptId,
}

/// A finished trial as observed. What it means is judged apart ([`Judged`]), because that depends
/// on how the bad end fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// What was run.
    #[serde(flatten)]
    pub spec: TrialSpec,
    /// How it ended.
    pub ended: Ended,
    /// The failure's identity, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// Whether the user's patch was laid on this commit; `None` without a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patched: Option<bool>,
    /// Processes that outlived the repro and were ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swept: usize,
    /// Seconds of checkout, setup and build (next to nothing when the commit was built already).
    pub prepare_seconds: f64,
    /// Seconds of the run.
    pub run_seconds: f64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What a finished trial means for the search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Which trial.
    pub trial: TrialId,
    /// Good, bad or skip.
    pub outcome: Outcome,
    /// Why it is no evidence, exactly when `outcome` is skip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<SkipReason>,
}

impl TrialRecord {
    /// 126 or 127, when the command could not be executed or found.
    pub fn cannot_execute(&self) -> Option<i32> {
        match self.ended {
            Ended::Exited {
                code: code @ (126 | 127),
            }
            | Ended::SpawnFailed { code, .. } => Some(code),
            Ended::Exited { .. }
            | Ended::Signalled { .. }
            | Ended::TimedOut { .. }
            | Ended::PrepareFailed { .. }
            | Ended::Faulted { .. }
            | Ended::Interrupted => None,
        }
    }
}
