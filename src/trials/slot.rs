//! A slot: where one trial runs at a time, and what stands there.

use std::thread::JoinHandle;

use super::environment::Scratch;
use super::run::TrialRules;
use super::workspace::{Moved, Workspace, WorkspaceError};
use crate::model::CommitId;

/// Where one trial runs at a time: a worktree, devices, scratch folders.
#[derive(Debug)]
pub struct Slot {
    /// Its number, from 0.
    pub index: usize,
    /// The value of `CUDA_VISIBLE_DEVICES` for its trials; `None` leaves the user's.
    pub devices: Option<String>,
    pub(super) workspace: Option<Workspace>,
    /// Left for a new one, which does not stand yet.
    retired: Option<Workspace>,
    /// The removal of those before it.
    removals: Vec<JoinHandle<Result<(), WorkspaceError>>>,
    pub(super) scratch: Option<Scratch>,
    pub(super) built: Option<CommitId>,
    pub(super) setup_key: Option<String>,
    pub(super) editable_checked: bool,
    fresh: u32,
}

impl Slot {
    /// A slot that has no worktree yet: the first trial makes it.
    pub fn new(index: usize, devices: Option<String>) -> Self {
        Self {
            index,
            devices,
            workspace: None,
            retired: None,
            removals: Vec::new(),
            scratch: None,
            built: None,
            setup_key: None,
            editable_checked: false,
            fresh: 0,
        }
    }

    /// The commit that is checked out and built here.
    pub fn built(&self) -> Option<&CommitId> {
        self.built.as_ref()
    }

    /// Removes what the slot made.
    ///
    /// # Errors
    /// The first thing that could not be removed; the rest is.
    pub fn remove(mut self) -> Result<(), WorkspaceError> {
        drop(self.scratch.take());
        self.begin_removal();
        let mut result = Ok(());
        if let Some(workspace) = self.workspace.take() {
            result = workspace.remove();
        }
        for removal in self.removals.drain(..) {
            // A removal that panicked has dropped its workspace, which removes it too.
            result = result.and(removal.join().unwrap_or(Ok(())));
        }
        result
    }

    /// Leaves the workspace for a new one, so that a confirmation starts from nothing.
    pub(super) fn retire(&mut self) {
        self.begin_removal();
        self.retired = self.workspace.take();
        self.built = None;
        self.setup_key = None;
        self.fresh += 1;
    }

    /// Removes the retired workspace while something else goes on: it may hold a large build.
    fn begin_removal(&mut self) {
        if let Some(workspace) = self.retired.take() {
            let removal = std::thread::Builder::new().spawn(move || workspace.remove());
            // Where no thread can be had, the workspace has been dropped, and so removed.
            self.removals.extend(removal.ok());
        }
    }

    /// Moves the workspace to a commit, making one where there is none.
    pub(super) fn stand_at(
        &mut self,
        rules: &TrialRules,
        commit: &CommitId,
    ) -> Result<Moved, WorkspaceError> {
        if self.built.as_ref() != Some(commit) {
            self.built = None;
        }
        if let Some(workspace) = &mut self.workspace {
            return workspace.move_to(commit);
        }
        let name = match self.fresh {
            0 => format!("slot-{}", self.index),
            n => format!("slot-{}-fresh-{n}", self.index),
        };
        let mut workspace = Workspace::create(&rules.workspaces, &name, commit)?;
        let moved = workspace.move_to(commit)?;
        self.workspace = Some(workspace);
        // Not before: a file system makes files more slowly where others are being removed.
        self.begin_removal();
        Ok(Moved {
            changed: true,
            patch: moved.patch,
        })
    }
}
