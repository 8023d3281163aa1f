//! The repository in which the user stands.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::error::HistoryError;
use super::git::{Answer, Git};

/// A repository with a checkout. Holds names only; nothing stays open.
#[derive(Debug, Clone)]
pub struct Repo {
    git: Git,
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    prefix: PathBuf,
}

impl Repo {
    /// The repository that `git` would use in `cwd`: the one around it, or the one that
    /// `GIT_DIR` and `GIT_WORK_TREE` name.
    ///
    /// # Errors
    /// When there is none, when git does not trust its owner, when `cwd` is not in a checkout
    /// (a bare repository, the inside of `.git`), or when the `git` program is missing.
    pub fn discover(cwd: &Path) -> Result<Self, HistoryError> {
        let git = Git::undecided(cwd);
        let [git_dir, common, top] = match places(&git)? {
            Some(places) => places,
            None => places_one_by_one(cwd, &git)?,
        };
        let git_dir = absolute(cwd, &git_dir)?;
        let root = absolute(cwd, &top)?;
        let prefix = absolute(cwd, b".")?
            .strip_prefix(&root)
            .map(Path::to_owned)
            .unwrap_or_default();
        Ok(Self {
            git: Git::on(&root, &git_dir),
            common_dir: absolute(cwd, &common)?,
            root,
            git_dir,
            prefix,
        })
    }

    /// The top of the user's checkout, absolute, symbolic links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The git directory of this checkout: in a linked worktree another than
    /// [`Repo::common_dir`].
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git directory that all worktrees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The user's directory relative to the root; empty at the root.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// How to ask the `git` program about this repository.
    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    /// The repository in libgit2's hands, or `None` where its answers would not be git's.
    pub(super) fn libgit2(&self) -> Option<git2::Repository> {
        // Hashing every commit again would only tell a damaged store, which git itself, that reads
        // the same objects at each checkout, trusts too.
        git2::opts::strict_hash_verification(false);
        let repository = git2::Repository::open(&self.git_dir).ok()?;
        // Replaced objects change the history that git shows; libgit2 does not know them.
        let replaced = repository
            .references_glob("refs/replace/*")
            .ok()?
            .next()
            .is_some();
        (!replaced).then_some(repository)
    }

    /// Whether this is a shallow clone: some commits' parents are cut off.
    pub(super) fn is_shallow(&self) -> bool {
        fs::metadata(self.common_dir.join("shallow")).is_ok_and(|file| file.len() > 0)
    }
}

/// The git directory, the common one and the top of the checkout, asked at once; `None` where git
/// has an objection or a path holds a line end.
fn places(git: &Git) -> Result<Option<[Vec<u8>; 3]>, HistoryError> {
    let found = git.ask([
        "rev-parse",
        "--is-inside-work-tree",
        "--absolute-git-dir",
        "--git-common-dir",
        "--show-toplevel",
    ])?;
    if !found.ok {
        return Ok(None);
    }
    let found = found.bytes()?;
    let lines: Vec<&[u8]> = found.split(|byte| *byte == b'\n').collect();
    Ok(match lines[..] {
        [b"true", git_dir, common, top] => Some([git_dir.to_vec(), common.to_vec(), top.to_vec()]),
        _ => None,
    })
}

/// The same, each line end taken as part of a path; or why there is no checkout.
fn places_one_by_one(cwd: &Path, git: &Git) -> Result<[Vec<u8>; 3], HistoryError> {
    let found = git.ask([
        "rev-parse",
        "--is-bare-repository",
        "--is-inside-work-tree",
        "--absolute-git-dir",
    ])?;
    if !found.ok {
        return Err(not_found(cwd, &found));
    }
    let found = found.bytes()?;
    let mut lines = found.splitn(3, |byte| *byte == b'\n');
    let bare = lines.next() == Some(b"true");
    let inside = lines.next() == Some(b"true");
    if !inside {
        return Err(HistoryError::NoCheckout {
            dir: cwd.to_owned(),
            bare,
        });
    }
    Ok([
        lines.next().unwrap_or_default().to_vec(),
        git.ask(["rev-parse", "--git-common-dir"])?.bytes()?,
        git.ask(["rev-parse", "--show-toplevel"])?.bytes()?,
    ])
}

/// A path that git printed, relative to `cwd` or absolute.
fn absolute(cwd: &Path, printed: &[u8]) -> Result<PathBuf, HistoryError> {
    let path = cwd.join(OsString::from_vec(printed.to_vec()));
    fs::canonicalize(&path).map_err(|error| HistoryError::Git {
        command: "rev-parse".into(),
        message: format!("it names {}: {error}", path.display()),
    })
}

/// Why `git rev-parse` finds no repository. Git says it in words only; `LC_ALL=C` fixes them.
fn not_found(cwd: &Path, answer: &Answer) -> HistoryError {
    let dir = cwd.to_owned();
    if answer.stderr.contains("dubious ownership") {
        let remedy = answer
            .stderr
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with("git config"))
            .unwrap_or("git config --global --add safe.directory DIRECTORY")
            .to_owned();
        HistoryError::ForeignOwner { dir, remedy }
    } else if answer.stderr.contains("not a git repository") {
        HistoryError::NotARepository { dir }
    } else {
        answer.failure()
    }
}
