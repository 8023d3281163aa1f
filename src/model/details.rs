//! What a person wants to know of a commit.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ids::CommitId;

/// A commit as a report shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitDetails {
    /// The commit.
    pub id: CommitId,
    /// The author's date with the author's offset, RFC 3339.
    pub author_date: String,
    /// The first line of the message.
    pub subject: String,
    /// Changed files against the first parent: status letter (A, M, D, R, T) and path.
    pub files: Vec<(char, PathBuf)>,
    /// Its parents, first parent first.
    pub parents: Vec<CommitId>,
}
