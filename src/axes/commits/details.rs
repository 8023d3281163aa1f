//! What a report says of one commit.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::error::HistoryError;
use super::repo::Repo;
use crate::model::CommitId;

/// A commit's author, subject and files. Text is as the author wrote it: neither it nor the paths
/// are safe to print to a terminal as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitDetails {
    /// Its full hash.
    pub id: CommitId,
    /// The author's name.
    pub author_name: String,
    /// When it was written: RFC 3339, with the author's offset.
    pub author_date: String,
    /// The first paragraph of its message, on one line.
    pub subject: String,
    /// What differs from its first parent (a root commit: all files), by path: `A` added,
    /// `D` deleted, `M` modified, `T` type changed. Renames are a `D` and an `A`.
    pub files: Vec<(char, PathBuf)>,
    /// It has several parents.
    pub is_merge: bool,
}

/// Reads a commit's details.
///
/// # Errors
/// When the commit or its tree cannot be read.
pub fn details(repo: &Repo, commit: &CommitId) -> Result<CommitDetails, HistoryError> {
    // `rev-list`, for `log` and `show` obey the user's configuration.
    let answer = repo.git().ask([
        "rev-list",
        "--max-count=1",
        "--encoding=UTF-8",
        "--format=%P%x00%an%x00%aI%x00%s",
        "--end-of-options",
        commit.as_str(),
        "--",
    ])?;
    let text = answer.text()?;
    // The first line repeats the commit's name.
    let mut fields = text
        .split_once('\n')
        .map_or("", |(_, rest)| rest)
        .splitn(4, '\0');
    let mut field = || fields.next().unwrap_or_default().to_owned();
    let parents = field();
    let (author_name, author_date, subject) = (field(), field(), field());
    Ok(CommitDetails {
        id: commit.clone(),
        author_name,
        author_date,
        subject,
        files: files(repo, commit, parents.split(' ').next().unwrap_or_default())?,
        is_merge: parents.contains(' '),
    })
}

/// The files that differ from the first parent; from nothing, if that is empty.
fn files(
    repo: &Repo,
    commit: &CommitId,
    first_parent: &str,
) -> Result<Vec<(char, PathBuf)>, HistoryError> {
    let mut args = vec![
        "diff-tree",
        "-r",
        "-z",
        "--root",
        "--name-status",
        "--no-commit-id",
        "--no-renames",
        "--ignore-submodules=none",
        "--end-of-options",
    ];
    if !first_parent.is_empty() {
        args.push(first_parent);
    }
    args.push(commit.as_str());
    args.push("--");
    let listing = repo.git().ask(args)?.bytes()?;
    let mut words = listing.split(|byte| *byte == 0);
    let mut files = Vec::new();
    while let (Some([status, ..]), Some(path)) = (words.next(), words.next()) {
        files.push((
            char::from(*status),
            PathBuf::from(OsString::from_vec(path.to_vec())),
        ));
    }
    Ok(files)
}
