//! The journal's format: one JSON object a line, version 1.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::{
    Conclusion, Judged, Plan, ProcessIdentity, SessionId, TrialId, TrialRecord, TrialSpec,
};

/// The version written into [`Event::Opened`]; a journal of another version is refused.
pub const VERSION: u32 = 1;

/// A file that the command names, as it was when the session was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedFile {
    /// Where it stands on the user's side.
    pub path: PathBuf,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// Its copy, relative to the session's folder.
    pub copy: PathBuf,
}

/// Everything that can happen in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The first line: what was asked.
    Opened {
        /// The format's version, [`VERSION`].
        version: u32,
        /// The session's name.
        session: SessionId,
        /// When (RFC 3339, UTC).
        at: String,
        /// The version of the tool that wrote it.
        fbisect: String,
        /// The request, resolved.
        plan: Box<Plan>,
        /// The command's words as they must read in a worktree.
        argv: Vec<String>,
        /// The files that the command names.
        watched: Vec<WatchedFile>,
        /// Candidates between the ends.
        candidates: usize,
    },
    /// Another process went on with the session.
    Resumed {
        /// When.
        at: String,
        /// A new limit of trials, in all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_trials: Option<u32>,
        /// A new limit of seconds at work, in all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_seconds: Option<f64>,
    },
    /// A trial was given a slot.
    TrialStarted {
        /// What it is.
        #[serde(flatten)]
        spec: TrialSpec,
        /// When.
        at: String,
    },
    /// One of a trial's processes was started (setup, build or the repro).
    ProcessStarted {
        /// The trial.
        trial: TrialId,
        /// The process.
        process: ProcessIdentity,
    },
    /// A trial ended. Its output lies in `trials/<n>/` by now.
    TrialFinished {
        /// What was seen.
        #[serde(flatten)]
        record: TrialRecord,
        /// Seconds that the session has been at work, over all its processes.
        elapsed_seconds: f64,
    },
    /// A trial ended without evidence and without fault of its commit: an attempt that a fault of
    /// the machine cost, or a run that was stopped.
    TrialDropped {
        /// The trial.
        trial: TrialId,
        /// Why.
        why: String,
        /// Whether the machine failed, so that it counts as an attempt.
        fault: bool,
    },
    /// A finished trial was judged and told to the search.
    Judged(Judged),
    /// The session was interrupted in good order.
    Interrupted {
        /// When.
        at: String,
        /// Seconds at work so far.
        elapsed_seconds: f64,
    },
    /// The last line: what the session says.
    Concluded {
        /// When.
        at: String,
        /// What.
        conclusion: Conclusion,
        /// Seconds at work in all.
        elapsed_seconds: f64,
    },
}
