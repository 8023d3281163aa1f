//! One move of a worktree by git: forced checkout, mending what stands in its way, cleaning.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Fault, WorkspaceError};
use super::git::{Git, Told};
use super::{Workspace, git, tree, untracked};
use crate::model::{Clean, CommitId, PrepareStep};

/// The size of an index up to which a checkout is read faster by one thread: some 20,000 files.
const SMALL_INDEX_BYTES: u64 = 2 << 20;

impl Workspace {
    /// Undoes what a trial, or the end of one by force, can have done to git's own files, and
    /// takes the links away.
    pub(super) fn make_ready_for_git(&mut self) -> Result<(), WorkspaceError> {
        let step = PrepareStep::Checkout;
        let dot_git = self.root.join(".git");
        let intact = fs::symlink_metadata(&dot_git).is_ok_and(|meta| meta.is_file())
            && fs::read(&dot_git).is_ok_and(|text| text == self.dot_git);
        if !intact {
            fs::create_dir_all(&self.root)
                .and_then(|()| tree::remove(&dot_git))
                .and_then(|()| fs::write(&dot_git, &self.dot_git))
                .map_err(|e| WorkspaceError::io(step, "restore", &dot_git, &e))?;
        }
        if let Some(admin) = &self.admin {
            for lock in ["index.lock", "HEAD.lock"] {
                // No process of a trial runs between trials: a lock that stands is a dead one's.
                let _ = fs::remove_file(admin.join(lock));
            }
        }
        let taken = self.linked.take_away();
        taken.map_err(|e| WorkspaceError::io(step, "unlink in", &self.root, &e))
    }

    pub(super) fn check_out_and_clean(&self, commit: &CommitId) -> Result<(), WorkspaceError> {
        let (mode, spared) = (self.rules.clean, self.rules.pins.files());
        // While git works out what to change: where the folder holds nothing but what the old
        // index lists, and git removes those without a complaint, nothing is left to clean.
        let look = || {
            let besides = untracked::Besides {
                files: spared,
                removed: None,
            };
            let admin = self.admin.as_ref().filter(|_| mode != Clean::None);
            admin.is_some_and(|a| untracked::is_absent(&self.root, &a.join("index"), &besides))
        };
        let (checked_out, nothing_else) = std::thread::scope(|scope| {
            let looking = scope.spawn(look);
            (self.check_out(commit), looking.join().unwrap_or(false))
        });
        if checked_out? == Told::Nothing && nothing_else {
            return Ok(());
        }
        clean(&self.root, mode, spared, PrepareStep::Checkout)
    }

    pub(super) fn check_out(&self, commit: &CommitId) -> Result<Told, WorkspaceError> {
        let error = match self.check_out_once(commit) {
            Ok(told) => return Ok(told),
            Err(error) => error,
        };
        let result = if self.repaired(&error)? {
            self.check_out_once(commit)
        } else {
            Err(error)
        };
        if result.is_err() {
            // The files that git did write are in no index yet. With this commit's tree as the
            // index, the next forced checkout knows and removes them. Best effort: where the tree
            // itself is missing, git wrote none.
            let _ = Git::new(&self.root, PrepareStep::Checkout)
                .args(["read-tree", "--reset", commit.as_str()])
                .succeeds();
        }
        result
    }

    fn check_out_once(&self, commit: &CommitId) -> Result<Told, WorkspaceError> {
        let mut git = Git::new(&self.root, PrepareStep::Checkout);
        if self.has_few_local_files() {
            // Threads that look at the files ahead cost more than they gain.
            git = git.set("core.preloadIndex", "false");
        }
        git.args(["checkout", "--quiet", "--force", "--detach"])
            .args([commit.as_str(), "--"])
            .run_told()
    }

    fn has_few_local_files(&self) -> bool {
        let index = self.admin.as_ref().map(|admin| admin.join("index"));
        let small = index
            .and_then(|index| fs::metadata(index).ok())
            .is_some_and(|meta| meta.len() < SMALL_INDEX_BYTES);
        small && tree::is_on_local_disk(&self.root)
    }

    /// Mends what a trial can have broken, going by git's complaint; false when it is not that.
    fn repaired(&self, error: &WorkspaceError) -> Result<bool, WorkspaceError> {
        let says = |words: &str| error.detail.contains(words);
        if says("Permission denied") {
            tree::make_writable(&self.root)
                .map_err(|e| WorkspaceError::io(error.step, "make writable", &self.root, &e))?;
            return Ok(true);
        }
        if let Some(admin) = &self.admin
            && ["index file", "bad signature", "bad index"]
                .iter()
                .any(|words| says(words))
        {
            let index = admin.join("index");
            tree::remove(&index)
                .map_err(|e| WorkspaceError::io(error.step, "remove", &index, &e))?;
            return Ok(true);
        }
        Ok(false)
    }
}

/// Removes from a checkout what the mode says, repositories that a trial cloned into it included
/// (`-ff`). `spared` are files relative to it that need not go: they are laid again anyway.
///
/// Python's bytecode goes also where git ignores it: it is known as fresh by its source's second
/// and size, and two commits checked out within a second can share both.
pub(super) fn clean(
    dir: &Path,
    mode: Clean,
    spared: &[PathBuf],
    step: PrepareStep,
) -> Result<(), WorkspaceError> {
    let (options, removed): (&[&str], _) = match mode {
        Clean::None => return Ok(()),
        Clean::Untracked => (
            &["-ffdq", "-e", "!__pycache__/", "-e", "!*.pyc"],
            Some("__pycache__"),
        ),
        Clean::All => (&["-ffdxq"], None),
    };
    let besides = untracked::Besides {
        files: spared,
        removed,
    };
    if let Some(git_dir) = git::git_dir_of(dir)
        && untracked::is_absent(dir, &git_dir.join("index"), &besides)
    {
        return Ok(());
    }
    let run = || {
        Git::new(dir, step)
            .arg("clean")
            .args(options)
            .run()
            .map(drop)
    };
    match run() {
        Err(error) if error.fault == Fault::Machine => {
            // Folders that a build made read-only.
            tree::make_writable(dir)
                .map_err(|e| WorkspaceError::io(step, "make writable", dir, &e))?;
            run()
        }
        result => result,
    }
}
