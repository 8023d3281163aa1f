//! What a report says of one commit.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::error::HistoryError;
use super::repo::Repo;
use crate::model::{CommitDetails, CommitId};

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
        "--format=%P%x00%aI%x00%s",
        "--end-of-options",
        commit.as_str(),
        "--",
    ])?;
    let text = answer.text()?;
    // The first line repeats the commit's name.
    let mut fields = text
        .split_once('\n')
        .map_or("", |(_, rest)| rest)
        .splitn(3, '\0');
    let mut field = || fields.next().unwrap_or_default().to_owned();
    let parents = field();
    let (author_date, subject) = (field(), field());
    Ok(CommitDetails {
        id: commit.clone(),
        author_date,
        subject,
        files: files(repo, commit, parents.split(' ').next().unwrap_or_default())?,
        parents: parents.split(' ').filter_map(CommitId::parse).collect(),
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
