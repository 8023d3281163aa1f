//! One trial end to end: get the slot's workspace ready, run the repro, say how it ended.
//!
//! Knows workspaces and processes. It must not know the search, the journal or the terminal: what
//! happens on the way is told in [`Note`]s, and what a trial means is judged elsewhere.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use super::editable::{self, EditableError};
use super::environment::{self, Scratch};
use super::signature::{read_tail_and_head, signature};
use super::workspace::{Fault, Moved, PatchState, Workspace, WorkspaceError, WorkspaceRules};
use crate::executors::{self, Finished, OutputTo, ProcessEnd, ProcessSpec, Stop};
use crate::model::{
    CommitId, Ended, Plan, PrepareStep, ProcessIdentity, TrialId, TrialRecord, TrialSpec, hex,
};
use crate::search::Purpose;

/// Bytes of each output file that are read to tell what kind of failure it was: head and tail.
const READ_LIMIT: u64 = 576 * 1024;

/// What every trial of a session has in common.
#[derive(Debug)]
pub struct TrialRules {
    /// The request.
    pub plan: Plan,
    /// The command's words as they must read in a workspace.
    pub argv: Vec<String>,
    /// How workspaces are made.
    pub workspaces: Arc<WorkspaceRules>,
    /// The beginning of every process's mark: the session's name.
    pub session: String,
}

/// Something that happened on the way.
#[derive(Debug)]
pub enum Note {
    /// The trial moved on to a step (`None`: the run itself).
    Step(TrialId, Option<PrepareStep>),
    /// A process was started.
    Process(TrialId, ProcessIdentity),
}

/// When the session's earlier trials are on disk: before that no repro starts, so that a power cut
/// costs no more than what runs.
#[derive(Debug)]
pub struct OnDisk {
    /// The number of the sync that covers them.
    pub wanted: u64,
    /// Up to which number syncs are done.
    pub done: watch::Receiver<u64>,
}

impl OnDisk {
    /// Comes back when they are; never, if the session is gone before.
    async fn reached(mut self) {
        if self
            .done
            .wait_for(|done| *done >= self.wanted)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    }
}

/// Where one trial runs at a time: a worktree, devices, scratch folders.
#[derive(Debug)]
pub struct Slot {
    /// Its number, from 0.
    pub index: usize,
    /// The value of `CUDA_VISIBLE_DEVICES` for its trials; `None` leaves the user's.
    pub devices: Option<String>,
    workspace: Option<Workspace>,
    /// Left for a new one, which does not stand yet.
    retired: Option<Workspace>,
    /// The removal of those before it.
    removals: Vec<JoinHandle<Result<(), WorkspaceError>>>,
    scratch: Option<Scratch>,
    built: Option<CommitId>,
    setup_key: Option<String>,
    editable_checked: bool,
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
    fn retire(&mut self) {
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
    fn stand_at(&mut self, rules: &TrialRules, commit: &CommitId) -> Result<Moved, WorkspaceError> {
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

/// A trial that has ended, and its slot again.
#[derive(Debug)]
pub struct Ran {
    /// The slot.
    pub slot: Slot,
    /// What was seen.
    pub record: TrialRecord,
    /// The failing output (head and tail): standard output, then standard error. Empty on success.
    pub text: String,
    /// The command's Python would import the user's checkout: the session must not go on.
    pub editable: Option<EditableError>,
    /// Processes that even KILL did not end.
    pub stuck: Vec<u32>,
}

/// Runs a trial.
///
/// `folder` is the trial's own, kept one; it exists.
pub async fn run(
    slot: Slot,
    rules: Arc<TrialRules>,
    spec: TrialSpec,
    folder: PathBuf,
    notes: mpsc::UnboundedSender<Note>,
    on_disk: OnDisk,
    stop: watch::Receiver<Stop>,
) -> Ran {
    let mut trial = Running::new(slot, rules, spec, folder, notes, stop);
    let begun = Instant::now();
    let prepared = match trial.prepare().await {
        Ok(()) => trial.earlier_ones_on_disk(on_disk).await,
        Err(ended) => Err(ended),
    };
    let prepare_seconds = begun.elapsed().as_secs_f64();
    let (ended, run_seconds) = match prepared {
        Ok(()) => trial.run_repro().await,
        Err(ended) => (trial.unless_stopped(ended).await, 0.0),
    };
    trial.finish(ended, prepare_seconds, run_seconds).await
}

/// Makes a trial's commit ready and stops there, for a run on the terminal.
pub(super) async fn prepared(
    slot: Slot,
    rules: Arc<TrialRules>,
    spec: TrialSpec,
    folder: PathBuf,
    notes: mpsc::UnboundedSender<Note>,
    stop: watch::Receiver<Stop>,
) -> Prepared {
    let mut trial = Running::new(slot, rules, spec, folder, notes, stop);
    // The session that ran the trial has checked it.
    trial.slot.editable_checked = true;
    let result = trial.prepare().await;
    Prepared { trial, result }
}

/// A trial whose commit is ready, or could not be made so.
pub(super) struct Prepared {
    trial: Running,
    result: Result<(), Ended>,
}

impl Prepared {
    /// Runs the repro with our own output.
    pub(super) async fn on_the_terminal(mut self, show: impl FnOnce(&[String])) -> (Slot, Ended) {
        if let Err(ended) = self.result {
            return (self.trial.slot, ended);
        }
        if let Ok(argv) = self.trial.argv() {
            show(&argv);
        }
        self.trial.output = OutputTo::Ours;
        let (ended, _) = self.trial.run_repro().await;
        (self.trial.slot, ended)
    }
}

struct Running {
    output: OutputTo,
    slot: Slot,
    rules: Arc<TrialRules>,
    spec: TrialSpec,
    folder: PathBuf,
    notes: mpsc::UnboundedSender<Note>,
    stop: watch::Receiver<Stop>,
    patched: Option<bool>,
    swept: usize,
    stuck: Vec<u32>,
    editable: Option<EditableError>,
}

impl Running {
    fn new(
        slot: Slot,
        rules: Arc<TrialRules>,
        spec: TrialSpec,
        folder: PathBuf,
        notes: mpsc::UnboundedSender<Note>,
        stop: watch::Receiver<Stop>,
    ) -> Self {
        Self {
            output: OutputTo::NewFiles,
            slot,
            rules,
            spec,
            folder,
            notes,
            stop,
            patched: None,
            swept: 0,
            stuck: Vec::new(),
            editable: None,
        }
    }

    fn note(&self, note: Note) {
        // The session that would read it may be on its way out.
        let _ = self.notes.send(note);
    }

    async fn prepare(&mut self) -> Result<(), Ended> {
        self.note(Note::Step(self.spec.trial, Some(PrepareStep::Checkout)));
        if self.spec.purpose == Purpose::Confirm {
            self.slot.retire();
        }
        let moved = self.check_out().await?;
        self.patched = moved.patch.map(PatchState::is_there);
        if moved.changed {
            self.slot.built = None;
            if self.rules.plan.clean == crate::model::Clean::All {
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

    fn root(&self) -> Result<PathBuf, Ended> {
        let workspace = self.slot.workspace.as_ref();
        workspace
            .map(|w| w.root().to_owned())
            .ok_or_else(|| Ended::Faulted {
                detail: "the slot has lost its worktree".to_owned(),
            })
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

    fn cwd(&self) -> Result<PathBuf, Ended> {
        let (root, prefix) = (self.root()?, &self.rules.plan.command.prefix);
        // Joined with nothing, a path gets a slash at its end, and so would the repro's PWD.
        let cwd = if prefix.as_os_str().is_empty() {
            root
        } else {
            root.join(prefix)
        };
        // The folder may not exist at this commit; the command's own error would be misleading.
        match fs::create_dir_all(&cwd) {
            Ok(()) => Ok(cwd),
            Err(e) => Err(Ended::Faulted {
                detail: format!("{}: {e}", cwd.display()),
            }),
        }
    }

    fn argv(&self) -> Result<Vec<String>, Ended> {
        let root = self.root()?;
        let words = self.rules.argv.iter();
        Ok(words
            .map(|word| environment::fill_in(word, &self.spec, &self.folder, &root))
            .collect())
    }

    async fn run_repro(&mut self) -> (Ended, f64) {
        self.note(Note::Step(self.spec.trial, None));
        match self.repro().await {
            Ok(finished) => {
                let limit = self.rules.plan.timeout_seconds.unwrap_or_default();
                (ended(finished.end, limit), finished.wall.as_secs_f64())
            }
            Err(ended) => (ended, 0.0),
        }
    }

    async fn repro(&mut self) -> Result<Finished, Ended> {
        let (argv, cwd) = (self.argv()?, self.cwd()?);
        let timeout = self.rules.plan.timeout_seconds.map(Duration::from_secs_f64);
        let (out, err) = (
            self.folder.join("stdout.log"),
            self.folder.join("stderr.log"),
        );
        self.execute(&argv, cwd, &out, &err, timeout).await
    }

    async fn execute(
        &mut self,
        argv: &[String],
        cwd: PathBuf,
        stdout: &Path,
        stderr: &Path,
        timeout: Option<Duration>,
    ) -> Result<Finished, Ended> {
        let root = self.root()?;
        let env = environment::variables(
            &self.spec,
            &self.slot,
            self.slot.scratch.as_ref(),
            &self.folder,
            &root,
            self.rules.plan.cold_caches,
        )
        .map_err(|e| Ended::Faulted {
            detail: format!("the trial's environment could not be made: {e}"),
        })?;
        let Some((program, words)) = argv.split_first() else {
            return Err(Ended::Faulted {
                detail: "there is no command to run".to_owned(),
            });
        };
        let spec = ProcessSpec {
            program: OsString::from(program),
            args: words.iter().map(OsString::from).collect(),
            cwd,
            env,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            output: self.output,
            timeout,
            grace: Duration::from_secs_f64(self.rules.plan.grace_seconds),
            output_limit: self.rules.plan.output_limit,
            mark: format!(
                "{}/{}/{}",
                self.rules.session, self.spec.trial, self.spec.attempt.0
            ),
        };
        let (notes, trial) = (self.notes.clone(), self.spec.trial);
        let started = move |process| {
            let _ = notes.send(Note::Process(trial, process));
        };
        let finished = executors::run(&spec, started, self.stop.clone()).await;
        self.swept += finished.swept;
        self.stuck.extend(&finished.stuck);
        Ok(finished)
    }

    async fn earlier_ones_on_disk(&mut self, on_disk: OnDisk) -> Result<(), Ended> {
        tokio::select! {
            () = on_disk.reached() => Ok(()),
            // A session that cannot write any more stops us.
            _ = self.stop.wait_for(|stop| *stop != Stop::Run) => Err(Ended::Interrupted),
        }
    }

    /// A git command that Ctrl-C reached before us fails too: that is no fault of the commit.
    async fn unless_stopped(&mut self, ended: Ended) -> Ended {
        if matches!(&ended, Ended::Interrupted) {
            return ended;
        }
        let stopped = self.stop.wait_for(|stop| *stop != Stop::Run);
        match tokio::time::timeout(Duration::from_millis(50), stopped).await {
            Ok(_) => Ended::Interrupted,
            Err(_) => ended,
        }
    }

    async fn finish(self, ended: Ended, prepare_seconds: f64, run_seconds: f64) -> Ran {
        let folder = self.folder.clone();
        let failed = ended.clone();
        let root = self.root().unwrap_or_default();
        let read = spawn_blocking(move || read_output(&failed, &folder, &root)).await;
        let (text, signature) = read.unwrap_or_default();
        Ran {
            record: TrialRecord {
                spec: self.spec,
                ended,
                signature,
                patched: self.patched,
                swept: self.swept,
                prepare_seconds,
                run_seconds,
            },
            slot: self.slot,
            text,
            editable: self.editable,
            stuck: self.stuck,
        }
    }
}

fn read_output(
    ended: &Ended,
    folder: &Path,
    root: &Path,
) -> (String, Option<crate::model::Signature>) {
    // Where a slot's worktree stands says nothing about the failure.
    let place = format!("{}/", root.display());
    let read = |name: &str| {
        let text = read_tail_and_head(&folder.join(name), READ_LIMIT);
        if root.as_os_str().is_empty() {
            text
        } else {
            text.replace(&place, "")
        }
    };
    match ended {
        Ended::Exited { code: 0 | 125 } | Ended::Interrupted | Ended::Faulted { .. } => {
            (String::new(), None)
        }
        Ended::PrepareFailed { step, .. } => (read(&format!("{step}.log")), None),
        Ended::Exited { .. }
        | Ended::Signalled { .. }
        | Ended::TimedOut { .. }
        | Ended::SpawnFailed { .. } => {
            let (out, err) = (read("stdout.log"), read("stderr.log"));
            let signature = signature(ended, &out, &err);
            (format!("{out}\n{err}"), signature)
        }
    }
}

fn ended(end: ProcessEnd, limit_seconds: f64) -> Ended {
    match end {
        ProcessEnd::Exited { code } => Ended::Exited { code },
        ProcessEnd::Signalled { signal } => Ended::Signalled { signal },
        ProcessEnd::TimedOut => Ended::TimedOut { limit_seconds },
        ProcessEnd::Stopped => Ended::Interrupted,
        ProcessEnd::SpawnFailed { code, error } => Ended::SpawnFailed { code, error },
        ProcessEnd::Faulted { error } => Ended::Faulted { detail: error },
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

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_repro_waits_for_the_sync_of_the_trials_before_it() {
        let (sync, done) = watch::channel(0);
        let wait = OnDisk { wanted: 2, done };
        let mut wait = pin!(wait.reached());
        let mut context = Context::from_waker(Waker::noop());
        let mut is_over = || wait.as_mut().poll(&mut context).is_ready();
        assert!(!is_over());
        sync.send_replace(1);
        assert!(!is_over());
        sync.send_replace(3);
        assert!(is_over());
    }

    #[test]
    fn without_a_session_nothing_counts_as_written() {
        let (sync, done) = watch::channel(0);
        let mut wait = pin!(OnDisk { wanted: 1, done }.reached());
        drop(sync);
        let mut context = Context::from_waker(Waker::noop());
        assert!(wait.as_mut().poll(&mut context).is_pending());
    }
}
