//! A throw-away git repository with a planted bug, to show a search on: a small training loop in
//! plain Python whose loss goes NaN from one commit on.
//!
//! Its first files stand in `start/`, its history in `story/`; [`history`] plays the story, this
//! module has `git` write it down. The same story gives the same hashes on every machine. It must
//! not know what is done with the repository later.

mod history;
mod story;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::CommitId;
use history::{Commit, History};
use story::Mark;

/// What [`build`] made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoWorld {
    /// The repository's root; `main` is checked out.
    pub root: PathBuf,
    /// The good end: the tag `v0.1`.
    pub good: String,
    /// The bad end: the branch `main`.
    pub bad: String,
    /// The planted commit. It stands on a side branch that was merged.
    pub culprit: CommitId,
    /// The commits in good..bad whose `build.sh` fails.
    pub unbuildable: Vec<CommitId>,
    /// Commits in good..bad.
    pub commits: usize,
    /// Merges among them.
    pub merges: usize,
}

/// Why there is no demo repository.
#[derive(Debug, Error)]
pub enum DemoError {
    /// Something is there already.
    #[error("{} is not an empty folder: name one that is empty or does not exist yet", dir.display())]
    NotEmpty {
        /// The folder that was asked for.
        dir: PathBuf,
    },
    /// The file system refused.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The `git` program could not be started.
    #[error("cannot start git: install it, or add it to PATH")]
    NoGit(#[source] io::Error),
    /// The `git` program failed.
    #[error("git {command} failed: {detail}")]
    Git {
        /// Its subcommand.
        command: String,
        /// Its last words.
        detail: String,
    },
    /// The story of this very program does not fit itself.
    #[error("the demo's story, {file} line {line}: expected {expected}")]
    Story {
        /// The file under `story/`.
        file: &'static str,
        /// Counted from 1.
        line: usize,
        /// What should stand there.
        expected: String,
    },
}

/// The author of every commit.
const AUTHOR: &str = "Demo <demo@example.com>";
/// 2024-01-08 09:00 UTC, the first commit.
const FIRST_SECOND: u64 = 1_704_704_400;
/// Five hours and some minutes, so that commits spread over days and nights.
const SECONDS_BETWEEN: u64 = 19_020;

/// Makes the repository in `dir`, which must be empty or not exist. Needs the `git` program, and
/// no configuration of the user's.
///
/// # Errors
/// [`DemoError`] when `dir` is in use or cannot be written, or when `git` is missing or fails.
pub fn build(dir: &Path) -> Result<DemoWorld, DemoError> {
    let history = history::play(&story::read()?)?;
    let root = make_room(dir)?;
    let marks = root.join(".git").join("demo-marks");
    git(
        &root,
        &[
            "init",
            "--quiet",
            "--initial-branch=main",
            "--object-format=sha1",
            "--template=",
        ],
        "",
    )?;
    let export = format!("--export-marks={}", marks.display());
    git(
        &root,
        &["fast-import", "--quiet", &export],
        &stream(&history),
    )?;
    git(
        &root,
        &["-c", "core.autocrlf=false", "reset", "--quiet", "--hard"],
        "",
    )?;
    let names = read_marks(&marks)?;
    describe(root, &history, &names)
}

fn make_room(dir: &Path) -> Result<PathBuf, DemoError> {
    let failed = |source| DemoError::Io {
        path: dir.to_owned(),
        source,
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    if std::fs::read_dir(dir).map_err(failed)?.next().is_some() {
        return Err(DemoError::NotEmpty {
            dir: dir.to_owned(),
        });
    }
    dir.canonicalize().map_err(failed)
}

/// The whole history in the language of `git fast-import`. Commit n has mark n + 1.
fn stream(history: &History) -> String {
    let mut out = String::new();
    for (n, commit) in history.commits.iter().enumerate() {
        write_commit(&mut out, history, n, commit);
    }
    let good = history
        .marked(Mark::Good)
        .first()
        .map_or(0, |good| good + 1);
    let _ = write!(out, "reset refs/tags/v0.1\nfrom :{good}\n\n");
    out
}

/// Writing to a `String` cannot fail, so the results are not looked at.
fn write_commit(out: &mut String, history: &History, n: usize, commit: &Commit) {
    let second = FIRST_SECOND + SECONDS_BETWEEN * n as u64;
    let subject = &commit.subject;
    let _ = writeln!(out, "commit refs/heads/main\nmark :{}", n + 1);
    let _ = writeln!(out, "author {AUTHOR} {second} +0000");
    let _ = writeln!(out, "committer {AUTHOR} {second} +0000");
    let _ = writeln!(out, "data {}\n{subject}\n", subject.len() + 1);
    for (i, parent) in commit.parents.iter().enumerate() {
        let word = if i == 0 { "from" } else { "merge" };
        let _ = writeln!(out, "{word} :{}", parent + 1);
    }
    let before = commit.parents.first().map(|p| &history.commits[*p].tree);
    for (path, text) in &commit.tree {
        if before.and_then(|tree| tree.get(path)) == Some(text) {
            continue;
        }
        let script = Path::new(path).extension().is_some_and(|e| e == "sh");
        let mode = if script { "100755" } else { "100644" };
        let _ = writeln!(out, "M {mode} inline {path}\ndata {}\n{text}", text.len());
    }
    out.push('\n');
}

/// Runs `git` with nothing of the user's environment or configuration that could change hashes.
fn git(root: &Path, args: &[&str], input: &str) -> Result<(), DemoError> {
    let environment = std::env::vars_os()
        .filter(|(name, _)| !name.to_string_lossy().starts_with("GIT_"))
        .chain([
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
        ]);
    let output = duct::cmd("git", args)
        .dir(root)
        .full_env(environment)
        .stdin_bytes(input)
        .stdout_null()
        .stderr_capture()
        .unchecked()
        .run()
        .map_err(DemoError::NoGit)?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let command = args
        .iter()
        .find(|arg| !arg.starts_with('-') && !arg.contains('='));
    Err(DemoError::Git {
        command: (*command.unwrap_or(&"")).to_owned(),
        detail: words.lines().last().unwrap_or("no message").to_owned(),
    })
}

/// The hash of each mark, from the file that `git fast-import` wrote; the file is removed.
fn read_marks(path: &Path) -> Result<BTreeMap<usize, CommitId>, DemoError> {
    let failed = |source| DemoError::Io {
        path: path.to_owned(),
        source,
    };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    std::fs::remove_file(path).map_err(failed)?;
    let pair = |line: &str| {
        let (mark, hash) = line.strip_prefix(':')?.split_once(' ')?;
        Some((mark.parse::<usize>().ok()?, CommitId::parse(hash)?))
    };
    Ok(text.lines().filter_map(pair).collect())
}

fn describe(
    root: PathBuf,
    history: &History,
    names: &BTreeMap<usize, CommitId>,
) -> Result<DemoWorld, DemoError> {
    let lacking = |what: &str| DemoError::Git {
        command: "fast-import".to_owned(),
        detail: format!("it did not name {what}"),
    };
    let hashes = |mark: Mark| -> Vec<CommitId> {
        let marked = history.marked(mark);
        marked
            .iter()
            .filter_map(|n| names.get(&(n + 1)).cloned())
            .collect()
    };
    // The good end has no side branches before it, so all that was made later is in good..bad.
    let after = history
        .marked(Mark::Good)
        .first()
        .map_or(0, |good| good + 1);
    let range = &history.commits[after..];
    Ok(DemoWorld {
        root,
        good: "v0.1".to_owned(),
        bad: "main".to_owned(),
        culprit: hashes(Mark::Culprit)
            .pop()
            .ok_or_else(|| lacking("the planted commit"))?,
        unbuildable: hashes(Mark::Unbuildable),
        commits: range.len(),
        merges: range.iter().filter(|c| c.parents.len() > 1).count(),
    })
}
