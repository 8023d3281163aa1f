//! What a person or a program sees: progress, the final report, JSON, a git bisect log.
//!
//! Reporters read the events and the state that the session folds. They must not change either,
//! nor know how a trial runs. Standard output carries results, standard error the conversation;
//! every print of the program happens here or in `cli`.

pub mod console;
pub mod git_log;
pub mod json;
pub mod progress;
pub mod tables;
pub mod text;

use std::collections::BTreeMap;

use crate::journal::State;
use crate::model::{CommitDetails, CommitId};

/// Everything that a final report is made of.
#[derive(Debug)]
pub struct Report<'a> {
    /// The session, concluded.
    pub state: &'a State,
    /// The named commit.
    pub culprit: Option<CommitDetails>,
    /// Subjects of the commits that were tested or are suspected.
    pub subjects: BTreeMap<CommitId, String>,
    /// What speaks against the named commit although it flips the outcome: a change that nothing
    /// can see.
    pub warnings: Vec<String>,
}
