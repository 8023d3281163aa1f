//! What a report says of one commit.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

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

/// Subjects of several commits, read by one git process.
///
/// # Errors
/// When one of them cannot be read.
pub fn subjects(
    repo: &Repo,
    commits: &[CommitId],
) -> Result<BTreeMap<CommitId, String>, HistoryError> {
    if commits.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut args = vec![
        "rev-list",
        "--no-walk=unsorted",
        "--encoding=UTF-8",
        "--format=%H%x00%s",
        "--end-of-options",
    ];
    args.extend(commits.iter().map(CommitId::as_str));
    args.push("--");
    let answer = repo.git().ask(args)?;
    let text = answer.text()?;
    let named = text.lines().filter_map(|line| {
        let (id, subject) = line.split_once('\0')?;
        Some((CommitId::parse(id)?, subject.to_owned()))
    });
    Ok(named.collect())
}

/// Which of these files, relative to the root, differ between two commits; none where git cannot
/// tell.
pub fn changed_between(
    repo: &Repo,
    old: &CommitId,
    new: &CommitId,
    files: &[PathBuf],
) -> Vec<PathBuf> {
    let mut args: Vec<OsString> = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"]
        .map(OsString::from)
        .to_vec();
    args.extend([old.as_str().into(), new.as_str().into(), "--".into()]);
    args.extend(files.iter().map(|file| literal(file)));
    let names = repo.git().ask(args).and_then(super::git::Answer::bytes);
    names
        .unwrap_or_default()
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| PathBuf::from(OsString::from_vec(name.to_vec())))
        .collect()
}

/// A path that git takes as it is, from the root.
fn literal(path: &Path) -> OsString {
    let mut literal = OsString::from(":(top,literal)");
    literal.push(path.as_os_str());
    literal
}

/// Whether the user's sparse checkout leaves all these files out, so that no worktree shows them.
/// False where there is none or git cannot tell.
pub fn is_hidden_by_sparse_checkout(repo: &Repo, files: &[&PathBuf]) -> bool {
    // The usual case, known without a process: no patterns were ever written.
    if !repo.git_dir().join("info/sparse-checkout").exists() {
        return false;
    }
    let sparse = repo.git().ask(["config", "--bool", "core.sparseCheckout"]);
    if !sparse.is_ok_and(|a| a.text().is_ok_and(|t| t.trim() == "true")) {
        return false;
    }
    // `S` marks an entry that the sparse checkout skips.
    let mut args: Vec<OsString> = ["ls-files", "-t", "-z", "--"].map(OsString::from).to_vec();
    args.extend(files.iter().map(|file| literal(file)));
    let Ok(answer) = repo.git().ask(args) else {
        return false;
    };
    let Ok(text) = answer.text() else {
        return false;
    };
    let entries: Vec<&str> = text.split('\0').filter(|e| !e.is_empty()).collect();
    !entries.is_empty() && entries.iter().all(|e| e.starts_with("S "))
}
