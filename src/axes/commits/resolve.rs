//! From the revisions that were typed to the commits that they name.

use std::path::PathBuf;

use super::error::HistoryError;
use super::repo::Repo;
use crate::model::CommitId;

/// Which commits to search, as typed.
///
/// | | the old end(s) | the new end |
/// |---|---|---|
/// | range | left of `..` | right of `..` |
/// | flags | each `--good` | `--bad` |
/// | flags with `--fixed` | `--bad` | `--good` |
///
/// A range and flags add up. A missing new end, and an empty side of `..`, mean `HEAD`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// `OLD..NEW`. Also with `--fixed` the old end stands first.
    pub range: Option<String>,
    /// Values of `--good`.
    pub good: Vec<String>,
    /// Value of `--bad`.
    pub bad: Option<String>,
    /// Follow only first parents.
    pub first_parent: bool,
    /// Only commits that touch one of these are candidates. Relative to the repository's root.
    pub paths: Vec<PathBuf>,
    /// The old end is bad and the new one good: look for the fix.
    pub fixed: bool,
}

/// The ends, as typed and as commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The old ends. Never empty.
    pub good: Vec<(String, CommitId)>,
    /// The new end.
    pub bad: (String, CommitId),
}

/// The revisions of the old ends and of the new end, as typed.
fn ends(request: &Request) -> Result<(Vec<String>, String), HistoryError> {
    let flag_bad: Vec<String> = request.bad.iter().cloned().collect();
    let (flag_old, flag_new) = if request.fixed {
        (flag_bad, request.good.clone())
    } else {
        (request.good.clone(), flag_bad)
    };
    let (mut old, mut new) = (Vec::new(), Vec::new());
    if let Some(range) = &request.range {
        let (left, right) = split(range)?;
        old.push(left);
        new.push(right);
    }
    old.extend(flag_old);
    new.extend(flag_new);
    if old.is_empty() {
        return Err(HistoryError::NoOldEnd {
            fixed: request.fixed,
        });
    }
    let mut new = new.into_iter();
    let first = new.next().unwrap_or_else(|| "HEAD".into());
    match new.next() {
        None => Ok((old, first)),
        Some(second) => Err(HistoryError::TwoNewEnds {
            fixed: request.fixed,
            first,
            second,
        }),
    }
}

/// The two sides of `OLD..NEW`.
fn split(range: &str) -> Result<(String, String), HistoryError> {
    let head_if_empty = |side: &str| if side.is_empty() { "HEAD" } else { side }.to_owned();
    if range.starts_with('-') {
        return Err(HistoryError::DashRevision {
            rev: range.to_owned(),
        });
    }
    let Some((left, right)) = range.split_once("..") else {
        return Err(HistoryError::NotARange {
            range: range.to_owned(),
        });
    };
    if let Some(right) = right.strip_prefix('.') {
        return Err(HistoryError::ThreeDots {
            range: range.to_owned(),
            two: format!("{left}..{right}"),
        });
    }
    Ok((head_if_empty(left), head_if_empty(right)))
}

/// Finds the commits that a request names.
///
/// # Errors
/// When the request has no old end or two new ones, when its range is malformed, and when a
/// revision names no commit (unknown, ambiguous, a file or folder, hidden by a shallow clone).
pub fn resolve(repo: &Repo, request: &Request) -> Result<Resolved, HistoryError> {
    let (old, new) = ends(request)?;
    if let Some(resolved) = at_once(repo, &old, &new)? {
        return Ok(resolved);
    }
    // One by one, for the error to say which.
    let named = |rev: String| commit(repo, &rev).map(|id| (rev, id));
    let good = old.into_iter().map(named).collect::<Result<_, _>>()?;
    Ok(Resolved {
        good,
        bad: named(new)?,
    })
}

/// The same, asked in one git process; `None` where not every revision plainly names a commit.
fn at_once(repo: &Repo, old: &[String], new: &String) -> Result<Option<Resolved>, HistoryError> {
    let revs = || std::iter::once(new).chain(old);
    if revs().any(|rev| rev.starts_with('-')) {
        return Ok(None);
    }
    let commits = revs().map(|rev| format!("{rev}^{{commit}}"));
    let answer = repo
        .git()
        .ask(std::iter::once("rev-parse".to_owned()).chain(commits))?;
    if !answer.ok {
        return Ok(None);
    }
    // A range prints two lines and a caret, and so makes no list of as many commits.
    let ids: Option<Vec<CommitId>> = answer.text()?.lines().map(CommitId::parse).collect();
    let ids = ids.filter(|ids| ids.len() == revs().count());
    let mut named = revs().cloned().zip(ids.unwrap_or_default());
    let bad = named.next();
    Ok(bad.map(|bad| Resolved {
        good: named.collect(),
        bad,
    }))
}

/// What the revisions name today, in the order old ends, new end; `None` for one that names
/// nothing any more.
pub fn revisions_now(repo: &Repo, resolved: &Resolved) -> Vec<(String, Option<CommitId>)> {
    resolved
        .good
        .iter()
        .chain([&resolved.bad])
        .map(|(rev, _)| (rev.clone(), commit(repo, rev).ok()))
        .collect()
}

/// The commit that a revision names; tags are followed.
fn commit(repo: &Repo, rev: &str) -> Result<CommitId, HistoryError> {
    if rev.starts_with('-') {
        return Err(HistoryError::DashRevision {
            rev: rev.to_owned(),
        });
    }
    let answer = repo.git().ask(rev_parse(&format!("{rev}^{{commit}}")))?;
    if !answer.ok {
        return Err(unknown(repo, rev, &answer.stderr)?);
    }
    // `^A` is no revision, yet git prints it with its caret; and an empty one would be `^{commit}`.
    match CommitId::parse(&answer.text()?) {
        Some(id) => Ok(id),
        None => Err(unknown(repo, rev, "")?),
    }
}

fn rev_parse(rev: &str) -> [&str; 4] {
    ["rev-parse", "--verify", "--end-of-options", rev]
}

/// Why a revision names no commit, after git said so on `stderr`.
fn unknown(repo: &Repo, rev: &str, stderr: &str) -> Result<HistoryError, HistoryError> {
    let rev = rev.to_owned();
    if stderr.contains("is ambiguous") {
        let fits = ambiguous(stderr);
        return Ok(HistoryError::AmbiguousRevision { rev, fits });
    }
    if let Some(kind) = kind(repo, &rev)? {
        return Ok(HistoryError::NotACommit { rev, kind });
    }
    let names = names(repo)?;
    let head = repo.git().ask(rev_parse("HEAD"))?;
    if !head.ok && (names.is_empty() || rev == "HEAD") {
        return Ok(HistoryError::NoCommits { rev });
    }
    let similar = similar(&rev, &names);
    if similar.is_empty() && repo.is_shallow() {
        return Ok(HistoryError::ShallowHides { rev, known: false });
    }
    Ok(HistoryError::UnknownRevision { rev, similar })
}

/// The commits among the candidates that git lists for an ambiguous hash.
fn ambiguous(stderr: &str) -> Vec<String> {
    stderr
        .lines()
        .filter_map(|line| line.strip_prefix("hint:   "))
        .filter(|line| line.contains(" commit "))
        .map(str::to_owned)
        .collect()
}

/// The kind of object that a revision names, unless it is nothing or a commit.
fn kind(repo: &Repo, rev: &str) -> Result<Option<String>, HistoryError> {
    // With `^{}` a tag is followed; but after `COMMIT:PATH` that would be part of the path.
    for rev in [&format!("{rev}^{{}}"), rev] {
        let answer = repo.git().ask(rev_parse(rev))?;
        if !answer.ok {
            continue;
        }
        let Some(id) = CommitId::parse(&answer.text()?) else {
            continue;
        };
        let kind = repo.git().ask(["cat-file", "-t", id.as_str()])?;
        if kind.ok {
            return Ok(Some(kind.text()?).filter(|kind| kind != "commit"));
        }
    }
    Ok(None)
}

/// The short names of all branches and tags.
fn names(repo: &Repo) -> Result<Vec<String>, HistoryError> {
    let listing = repo.git().ask([
        "for-each-ref",
        "--format=%(refname:short)",
        "--",
        "refs/heads",
        "refs/tags",
        "refs/remotes",
    ])?;
    Ok(listing.text()?.lines().map(str::to_owned).collect())
}

/// The three names that are most like `rev`; a remote's branch of that very name comes first.
fn similar(rev: &str, names: &[String]) -> Vec<String> {
    const WANTED: usize = 3;
    /// The least ratio of equal characters: that of Python's `difflib.get_close_matches`.
    const LIKE: f32 = 0.6;
    let remote = format!("/{rev}");
    let mut found: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| name.ends_with(&remote))
        .collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in similar::get_close_matches(rev, &all, WANTED, LIKE) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found.truncate(WANTED);
    found.into_iter().map(str::to_owned).collect()
}
