//! One trial end to end: get the slot's workspace ready, run the repro, say how it ended.
//!
//! Knows workspaces and processes. It must not know the search, the journal or the terminal: what
//! happens on the way is told in [`Note`]s, and what a trial means is judged elsewhere.

mod on_disk;
mod prepare;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

pub use self::on_disk::OnDisk;
use super::editable::EditableError;
use super::environment;
use super::signature::{read_tail_and_head, signature};
use super::slot::Slot;
use super::workspace::WorkspaceRules;
use crate::executors::{self, Finished, OutputTo, ProcessEnd, ProcessSpec, Stop};
use crate::model::{Ended, Plan, PrepareStep, ProcessIdentity, TrialId, TrialRecord, TrialSpec};

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

    fn root(&self) -> Result<PathBuf, Ended> {
        let workspace = self.slot.workspace.as_ref();
        workspace
            .map(|w| w.root().to_owned())
            .ok_or_else(|| Ended::Faulted {
                detail: "the slot has lost its worktree".to_owned(),
            })
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
