//! Making a commit ready in a slot: checkout, setup, build, and the look at its Python.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;

use super::{Note, Running, TrialRules};
use crate::executors::ProcessEnd;
use crate::model::{Clean, Ended, PrepareStep, hex};
use crate::search::Purpose;
use crate::trials::editable;
use crate::trials::environment::Scratch;
use crate::trials::slot::Slot;
use crate::trials::workspace::{Fault, Moved, PatchState, WorkspaceError};

impl Running {
    pub(super) async fn prepare(&mut self) -> Result<(), Ended> {
        self.note(Note::Step(self.spec.trial, Some(PrepareStep::Checkout)));
        if self.spec.purpose == Purpose::Confirm {
            self.slot.retire();
        }
        let moved = self.check_out().await?;
        self.patched = moved.patch.map(PatchState::is_there);
        if moved.changed {
            self.slot.built = None;
            if self.rules.plan.clean == Clean::All {
                // What the setup had installed in the tree has just been removed.
                self.slot.setup_key = None;
            }
        }
        if self.slot.built.as_ref() != Some(&self.spec.commit) {
            self.set_up().await?;
            if let Some(build) = self.rules.plan.build.clone() {
                self.step(PrepareStep::Build, &build).await?;
            }
            self.slot.built = Some(self.spec.commit.clone());
        }
        self.refuse_editable().await
    }

    /// Runs blocking work on the slot, which must come back whatever happens.
    async fn on_slot<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Slot, &TrialRules) -> T + Send + 'static,
    ) -> Result<T, Ended> {
        let index = self.slot.index;
        let mut slot = std::mem::replace(&mut self.slot, Slot::new(index, None));
        let rules = Arc::clone(&self.rules);
        let done = spawn_blocking(move || {
            let result = work(&mut slot, &rules);
            (slot, result)
        })
        .await;
        match done {
            Ok((slot, result)) => {
                self.slot = slot;
                Ok(result)
            }
            Err(e) => Err(Ended::Faulted {
                detail: format!("fbisect's own code failed: {e}"),
            }),
        }
    }

    async fn check_out(&mut self) -> Result<Moved, Ended> {
        let commit = self.spec.commit.clone();
        self.on_slot(move |slot, rules| {
            let moved = slot.stand_at(rules, &commit)?;
            if let (None, Some(workspace)) = (&slot.scratch, &slot.workspace) {
                let scratch = Scratch::beside(workspace.root(), slot.index);
                slot.scratch = Some(scratch.map_err(|(path, e)| WorkspaceError {
                    step: PrepareStep::Checkout,
                    fault: Fault::Machine,
                    detail: format!("{}: {e}", path.display()),
                })?);
            }
            Ok(moved)
        })
        .await?
        .map_err(|e: WorkspaceError| match e.fault {
            Fault::Machine => Ended::Faulted {
                detail: e.to_string(),
            },
            Fault::Commit => Ended::PrepareFailed {
                step: e.step,
                detail: e.detail,
            },
        })
    }

    async fn set_up(&mut self) -> Result<(), Ended> {
        let Some(setup) = self.rules.plan.setup.clone() else {
            return Ok(());
        };
        let root = self.root()?;
        let key = (!setup.key_files.is_empty()).then(|| content_key(&root, &setup.key_files));
        if key.is_some() && key == self.slot.setup_key {
            return Ok(());
        }
        self.slot.setup_key = None;
        self.step(PrepareStep::Setup, &setup.command).await?;
        self.slot.setup_key = key;
        Ok(())
    }

    /// Runs a shell command line that makes the checkout ready; its output goes to one file.
    async fn step(&mut self, step: PrepareStep, command: &str) -> Result<(), Ended> {
        self.note(Note::Step(self.spec.trial, Some(step)));
        let log = self.folder.join(format!("{step}.log"));
        let root = self.root()?;
        let words = ["sh".to_owned(), "-c".to_owned(), command.to_owned()];
        let finished = self.execute(&words, root, &log, &log, None).await?;
        match finished.end {
            ProcessEnd::Exited { code: 0 } => Ok(()),
            ProcessEnd::Exited { code } => Err(failed(step, &format!("exit status {code}"), &log)),
            ProcessEnd::Signalled { signal } => {
                Err(failed(step, &format!("signal {signal}"), &log))
            }
            ProcessEnd::TimedOut => Err(failed(step, "timeout", &log)),
            ProcessEnd::SpawnFailed { error, .. } => Err(failed(step, &error, &log)),
            ProcessEnd::Stopped => Err(Ended::Interrupted),
            ProcessEnd::Faulted { error } => Err(Ended::Faulted { detail: error }),
        }
    }

    /// Once per slot and before its first run: does the command's Python import this checkout?
    async fn refuse_editable(&mut self) -> Result<(), Ended> {
        if self.slot.editable_checked || self.rules.plan.allow_editable {
            return Ok(());
        }
        let cwd = self.cwd()?;
        let argv = self.argv()?;
        let root = self.rules.plan.repository.clone();
        let checked = spawn_blocking(move || editable::check(&cwd, &root, &argv, &[])).await;
        match checked {
            Ok(Ok(())) => {
                self.slot.editable_checked = true;
                Ok(())
            }
            Ok(Err(error)) => {
                self.editable = Some(error);
                Err(Ended::Interrupted)
            }
            Err(e) => Err(Ended::Faulted {
                detail: format!("fbisect's own code failed: {e}"),
            }),
        }
    }
}

fn failed(step: PrepareStep, how: &str, log: &Path) -> Ended {
    Ended::PrepareFailed {
        step,
        detail: format!("{how}, see {}", log.display()),
    }
}

/// SHA-256 over the files' content, in their order; a missing file differs from an empty one.
fn content_key(root: &Path, files: &[PathBuf]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        match fs::read(root.join(file)) {
            Ok(content) => {
                hash.update([1]);
                hash.update((content.len() as u64).to_be_bytes());
                hash.update(content);
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => hash.update([0]),
            Err(_) => hash.update([2]),
        }
    }
    hex(&hash.finalize())
}
