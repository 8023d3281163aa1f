//! One trial once more, with its output where the user looks.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::run::{TrialRules, prepared};
use super::signature::read_tail_and_head;
use super::slot::Slot;
use crate::executors::Stop;
use crate::model::{Ended, TrialSpec};

/// Bytes of a failed setup's or build's output that are shown.
const LOG_SHOWN: u64 = 64 * 1024;

/// How a trial that was run again ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rerun {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Its commit could not be made ready.
    NotPrepared {
        /// What failed.
        why: String,
        /// What the setup or the build wrote.
        said: String,
    },
}

/// Runs a trial's commit and seed again in a fresh worktree, which is removed afterwards. `show`
/// gets the command's words just before it starts. Ctrl-C ends the run.
///
/// # Errors
/// In words, when the machine is at fault.
pub async fn rerun(
    rules: Arc<TrialRules>,
    spec: TrialSpec,
    show: impl FnOnce(&[String]),
) -> Result<Rerun, String> {
    let folder = tempfile::Builder::new()
        .prefix("fbisect-rerun-")
        .tempdir()
        .map_err(|e| format!("no folder for temporary files: {e}"))?;
    let (stop, stopped) = watch::channel(Stop::Run);
    let mut interrupts =
        signal(SignalKind::interrupt()).map_err(|e| format!("signals cannot be handled: {e}"))?;
    let listener = tokio::spawn(async move {
        let mut next = Stop::Gently;
        while interrupts.recv().await.is_some() {
            stop.send_replace(next);
            next = Stop::Now;
        }
    });
    let (notes, _inbox) = mpsc::unbounded_channel();
    let slot = Slot::new(0, None);
    let trial = prepared(slot, rules, spec, folder.path().to_owned(), notes, stopped);
    let (slot, ended) = trial.await.on_the_terminal(show).await;
    listener.abort();
    let removed = tokio::task::spawn_blocking(move || slot.remove()).await;
    if let Ok(Err(e)) = removed {
        return Err(format!("the worktree cannot be removed: {e}"));
    }
    match ended {
        Ended::Exited { code } | Ended::SpawnFailed { code, .. } => Ok(Rerun::Exited(code)),
        Ended::Signalled { signal } => Ok(Rerun::Signalled(signal)),
        Ended::PrepareFailed { step, detail } => {
            let log = folder.path().join(format!("{step}.log"));
            let said = read_tail_and_head(&log, LOG_SHOWN);
            // The log goes with the folder: it is shown, not named.
            let detail = detail.split(", see ").next().unwrap_or(&detail);
            Ok(Rerun::NotPrepared {
                why: format!("{step} failed: {detail}"),
                said,
            })
        }
        // As the shell says of a command that Ctrl-C ended, and `timeout` of one it ended.
        Ended::Interrupted => Ok(Rerun::Exited(130)),
        Ended::TimedOut { .. } => Ok(Rerun::Exited(124)),
        Ended::Faulted { detail } => Err(detail),
    }
}
