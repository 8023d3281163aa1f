//! How a session over commits ends: what it says, and why it says no more.

use serde::{Deserialize, Serialize};

use super::ids::CommitId;

/// A conclusion in the user's words: "good" is a run that passes, also when a fix is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Conclusion {
    /// One commit is the first that flips the outcome.
    Found {
        /// The first bad commit (with `--fixed`: the first good one).
        commit: CommitId,
        /// What the reader should know before believing it.
        doubts: Vec<Doubt>,
    },
    /// Only commits that cannot be tested are left: the answer is one of these.
    Suspects {
        /// In history order.
        commits: Vec<CommitId>,
        /// As above.
        doubts: Vec<Doubt>,
    },
    /// Trials contradict each other: no commit is named.
    Contradictory {
        /// The commit that would have been named, when the confirmation failed.
        suspect: Option<CommitId>,
        /// Pairs that cannot both be right: a commit that behaved like the new end, below one
        /// that behaved like the old end.
        conflicts: Vec<(CommitId, CommitId)>,
        /// Without a conflicting pair: commits that behaved like the new end and that no single
        /// candidate explains.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unexplained: Vec<CommitId>,
    },
    /// The end that should fail passed.
    BadEndPassed {
        /// That end.
        commit: CommitId,
        /// How often it was tried.
        trials: u32,
    },
    /// The end that should pass failed as the bad one does.
    GoodEndFailed {
        /// That end.
        commit: CommitId,
    },
    /// The ends' common ancestor already behaves like the new end.
    MergeBaseFailed {
        /// The common ancestor.
        commit: CommitId,
    },
    /// An end cannot be tested.
    EndUntestable {
        /// That end.
        commit: CommitId,
    },
    /// `--max-trials` or `--max-time` was reached.
    BudgetSpent {
        /// The commits that are left, in history order.
        commits: Vec<CommitId>,
    },
    /// No commit lies between the ends (or none touches `--path`).
    EmptyRange,
}

/// Something that limits how far a conclusion can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "doubt")]
pub enum Doubt {
    /// A parent of the culprit, or the culprit, could not be tested again.
    Unconfirmed {
        /// The commit.
        commit: CommitId,
    },
    /// The merge base of the ends could not be tested.
    UntestedMergeBase {
        /// The commit.
        commit: CommitId,
    },
    /// The bad end passed before it failed: the repro is flaky, and single trials were believed.
    FlakyEnd,
    /// The named commit fails with another exception than the bad end, though with one of its
    /// class: the symptom has changed on the way, or there are two faults.
    OtherSymptom {
        /// How the bad end fails.
        hunted: String,
        /// How the named commit fails.
        seen: String,
        /// The commits one of which is the answer if these are two faults, in history order.
        otherwise: Vec<CommitId>,
    },
    /// No confirmation was made, because `--deterministic` was given.
    NotConfirmed,
}
