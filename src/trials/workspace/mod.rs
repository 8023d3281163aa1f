//! Workspaces: each slot's own git worktree, outside the user's tree, moved from commit to commit.
//!
//! All of it blocks. It knows commits only by name: not why one is tested, nor what runs there.
//! The user's checkout, index, branches, HEAD, reflogs and configuration are never written; of the
//! repository only `<common>/worktrees/<ours>` is, for as long as a workspace stands.

mod checkout;
mod error;
mod git;
mod gitmodules;
mod links;
mod named;
mod patch;
mod pins;
mod place;
mod submodules;
mod tree;
mod untracked;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkout::clean;
pub use error::{Fault, WorkspaceError};
use git::Git;
pub use links::{LinkError, check_links};
pub use named::{LeftAlone, NamedFiles, WhyLeft, files_named_by};
pub use patch::{PatchState, check_patch};
pub use pins::{MAX_PIN_BYTES, PinError, PinSnapshot};
pub use place::{BASE_VARIABLE, BaseDirError, base_dir, remove_leftovers};

use crate::model::{Clean, CommitId, PrepareStep};

/// What every workspace of a session has in common.
#[derive(Debug, Clone)]
pub struct WorkspaceRules {
    /// The top of the user's checkout.
    pub repository_root: PathBuf,
    /// The repository's common git folder (`git rev-parse --git-common-dir`), absolute.
    pub common_dir: PathBuf,
    /// Where worktrees go: see [`base_dir`].
    pub base_dir: PathBuf,
    /// The session's name: the folder that holds its worktrees.
    pub session: String,
    /// What is removed when a workspace moves.
    pub clean: Clean,
    /// Check out submodules too.
    pub submodules: bool,
    /// Files laid over each checkout.
    pub pins: PinSnapshot,
    /// Paths, relative to the root, linked where a checkout has nothing: see [`check_links`].
    pub links: Vec<PathBuf>,
    /// A patch file laid where it applies: see [`check_patch`].
    pub patch: Option<PathBuf>,
}

/// What a move did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Whether there was anything to check out; false when the workspace stood there already.
    pub changed: bool,
    /// How the patch stands here; `None` without a patch.
    pub patch: Option<PatchState>,
}

/// One worktree. Dropping it removes it, errors unseen; [`Workspace::remove`] tells them.
#[derive(Debug)]
pub struct Workspace {
    rules: Arc<WorkspaceRules>,
    root: PathBuf,
    /// Its folder in `<common>/worktrees`; `None` before git made it and after its removal.
    admin: Option<PathBuf>,
    /// What `.git` must hold: a trial may have damaged it.
    dot_git: Vec<u8>,
    at: Option<Here>,
    linked: links::Laid,
    submodules: submodules::Known,
}

/// Where a workspace stands.
#[derive(Debug)]
struct Here {
    commit: CommitId,
    patch: Option<PatchState>,
    /// HEAD's file as the checkout left it: a trial may have moved it.
    head: Vec<u8>,
}

impl Workspace {
    /// Makes a worktree named `name` (`slot-0`, `confirm-3`) with `at` checked out and made ready
    /// as by [`Workspace::move_to`]. A leftover of the same name is removed first.
    ///
    /// # Errors
    /// As for a move; then nothing is left.
    pub fn create(
        rules: &Arc<WorkspaceRules>,
        name: &str,
        at: &CommitId,
    ) -> Result<Self, WorkspaceError> {
        let step = PrepareStep::Checkout;
        let session = place::session_dir(&rules.common_dir, &rules.base_dir, &rules.session)
            .filter(|_| place::is_plain(name))
            .ok_or_else(|| {
                let name = format!("'{}/{name}' is no name for a folder", rules.session);
                WorkspaceError::machine(step, name)
            })?;
        let made = place::make(&session);
        let session = made.map_err(|e| WorkspaceError::io(step, "make", &session, &e))?;
        let root = session.join(name);
        let mut workspace = Self {
            rules: Arc::clone(rules),
            admin: git::git_dir_of(&root),
            root,
            dot_git: Vec::new(),
            at: None,
            linked: links::Laid::default(),
            submodules: submodules::Known::default(),
        };
        // On an error, dropping it removes what there is.
        if fs::symlink_metadata(&workspace.root).is_ok() {
            workspace.tear_down()?;
        }
        workspace.add(at)?;
        workspace.settle(at)?;
        Ok(workspace)
    }

    /// Its top folder, links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commit that it stands on; `None` after a move that failed.
    pub fn commit(&self) -> Option<&CommitId> {
        self.at.as_ref().map(|here| &here.commit)
    }

    /// Moves to a commit: forced checkout (which undoes the patch), cleaning, submodules, patch,
    /// pins, links. Where it stands there already, only pins and links are laid again, and what
    /// earlier trials of the commit left stays.
    ///
    /// # Errors
    /// Says which step failed and whether the commit or the machine is at fault. The workspace can
    /// be moved again.
    pub fn move_to(&mut self, commit: &CommitId) -> Result<Moved, WorkspaceError> {
        if let Some(here) = self.at.as_ref().filter(|here| self.still(here, commit)) {
            let patch = here.patch;
            self.lay_files()?;
            return Ok(Moved {
                changed: false,
                patch,
            });
        }
        self.at = None;
        self.make_ready_for_git()?;
        self.check_out_and_clean(commit)?;
        let patch = self.settle(commit)?;
        Ok(Moved {
            changed: true,
            patch,
        })
    }

    /// Removes the worktree and its entry in the repository, and the folders left empty above.
    ///
    /// # Errors
    /// When a file cannot be removed; [`remove_leftovers`] can try again.
    pub fn remove(mut self) -> Result<(), WorkspaceError> {
        self.tear_down()
    }

    fn tear_down(&mut self) -> Result<(), WorkspaceError> {
        let admin = self.admin.take().or_else(|| git::git_dir_of(&self.root));
        let admin = admin.unwrap_or_default();
        place::remove_worktree(&self.rules.common_dir, &self.root, &admin)
    }

    /// `git worktree add`, which also checks out: one process less than a checkout of its own, and
    /// sparse patterns are carried over by git itself.
    fn add(&mut self, at: &CommitId) -> Result<(), WorkspaceError> {
        let step = PrepareStep::Checkout;
        // Forced: an entry of a killed session may still claim this path.
        let add = || {
            Git::new(&self.rules.repository_root, step)
                .args(["worktree", "add", "--quiet", "--force", "--detach", "--"])
                .arg(&self.root)
                .arg(at.as_str())
                .run()
        };
        let mut added = add();
        for _ in 0..20 {
            match &added {
                // Another slot's removal took a folder away under it that was empty just then.
                Err(error) if self.lost_a_folder(&error.detail) => {
                    let above = self.root.parent().unwrap_or(&self.root);
                    place::make(above).map_err(|e| WorkspaceError::io(step, "make", above, &e))?;
                    added = add();
                }
                Ok(_) | Err(_) => break,
            }
        }
        added?;
        let dot_git = self.root.join(".git");
        self.dot_git =
            fs::read(&dot_git).map_err(|e| WorkspaceError::io(step, "read", &dot_git, &e))?;
        self.admin = git::git_dir_of(&self.root);
        Ok(())
    }

    /// Whether `git worktree add` found one of the two folders above its own gone: whoever removes
    /// the last worktree of a session or a repository, git itself too, removes them when empty.
    /// Git words it by the step it had come to, with the path whole or within the repository.
    fn lost_a_folder(&self, detail: &str) -> bool {
        let gone = ["could not create", "No such file or directory"];
        let root = self.root.to_string_lossy();
        let name = self.root.file_name().unwrap_or_default();
        let entry = format!("worktrees/{}", name.to_string_lossy());
        gone.iter().any(|text| detail.contains(text))
            && (detail.contains(&*root) || detail.contains(&entry))
    }

    /// The steps after a checkout.
    fn settle(&mut self, commit: &CommitId) -> Result<Option<PatchState>, WorkspaceError> {
        if self.rules.submodules {
            let rules = Arc::clone(&self.rules);
            let update = submodules::Update {
                rules: &rules,
                clean: &|dir| clean(dir, rules.clean, &[], PrepareStep::Submodules),
            };
            if update.run(&self.root, &mut self.submodules)? {
                // A folder of today's commit stood mixed with a submodule's that is gone.
                self.check_out(commit)?;
            }
        }
        let patch = match &self.rules.patch {
            Some(file) => Some(patch::lay(&self.root, file)?),
            None => None,
        };
        self.lay_files()?;
        self.at = Some(Here {
            commit: commit.clone(),
            patch,
            head: self.head(),
        });
        Ok(patch)
    }

    fn lay_files(&mut self) -> Result<(), WorkspaceError> {
        let laid = self.rules.pins.lay(&self.root);
        laid.map_err(|(path, e)| WorkspaceError::io(PrepareStep::Pin, "lay", &path, &e))?;
        for path in &self.rules.links {
            self.linked
                .lay(&self.rules.repository_root, &self.root, path)
                .map_err(|e| WorkspaceError::io(PrepareStep::Pin, "link", path, &e))?;
        }
        Ok(())
    }

    fn still(&self, here: &Here, commit: &CommitId) -> bool {
        here.commit == *commit
            && here.head == self.head()
            && fs::read(self.root.join(".git")).is_ok_and(|text| text == self.dot_git)
    }

    fn head(&self) -> Vec<u8> {
        let file = self.admin.as_ref().map(|admin| admin.join("HEAD"));
        file.and_then(|file| fs::read(file).ok())
            .unwrap_or_default()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A second call finds nothing to remove; nobody is left to hear of an error.
        let _ = self.tear_down();
    }
}
