//! Runs one command on this machine, as a real process tree, and leaves nothing of it behind.
//!
//! The leader is waited for on a thread of its own, so that its end is seen at once. On Linux it
//! is not reaped before its group and its orphans are gone: until then its number cannot pass to
//! another process, and signalling the group is safe.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duct::Handle;
use nix::sys::signal::Signal;
use tokio::sync::{oneshot, watch};

use super::launch::{Launched, launch};
use super::output::Logs;
use super::process_tree::{Tree, prepare_process};
use super::{Finished, ProcessEnd, ProcessIdentity, ProcessSpec, Stop};

/// How often output and processes are looked at.
const TICK: Duration = Duration::from_millis(200);
/// The same while an output file grows fast.
const FAST_TICK: Duration = Duration::from_millis(20);
/// What is left after the first process has ended gets this long between SIGTERM and SIGKILL.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// A process that has not ended this long after SIGKILL is stuck in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// Looking at processes may take at most this share of one processor's time: 1 in 50.
const LOOK_SHARE: u32 = 50;

/// Runs a command to its end, and ends everything that it started.
///
/// `started` is called once, as soon as the process exists; its identity is what
/// [`end_leftovers`](super::end_leftovers) needs should this program be killed. Changes of `stop`
/// count at any time; it may go from [`Stop::Gently`] to [`Stop::Now`]. If the future is dropped,
/// the command and its tree are killed.
///
/// The sweep of orphans relies on one thing: children that this program starts in other ways stay
/// in its own process group. One that leads a group of its own can be taken for an orphan.
///
/// Must run within a tokio runtime with time enabled.
pub async fn run(
    spec: &ProcessSpec,
    started: impl FnOnce(ProcessIdentity) + Send,
    stop: watch::Receiver<Stop>,
) -> Finished {
    if *stop.borrow() != Stop::Run {
        return never_ran(ProcessEnd::Stopped);
    }
    prepare_process();
    match begin(spec.clone(), stop).await {
        Err(end) => never_ran(end),
        Ok((running, identity)) => {
            started(identity);
            running.see_through(spec).await
        }
    }
}

fn never_ran(end: ProcessEnd) -> Finished {
    Finished {
        end,
        wall: Duration::ZERO,
        swept: 0,
        stuck: Vec::new(),
    }
}

/// Starts the command and the thread that waits for it.
async fn begin(
    spec: ProcessSpec,
    stop: watch::Receiver<Stop>,
) -> Result<(Running, ProcessIdentity), ProcessEnd> {
    let (tell_started, has_started) = oneshot::channel();
    let (tell_exited, exited) = oneshot::channel();
    let wait = move || {
        let launched = launch(&spec).map(|launched| {
            let Launched {
                tree,
                handle,
                identity,
                logs,
                began,
            } = launched;
            let handle = Arc::new(handle);
            ((tree, logs, began), handle, identity)
        });
        let handle = launched.as_ref().ok().map(|(_, handle, _)| handle.clone());
        if tell_started.send(launched).is_ok()
            && let Some(handle) = handle
        {
            wait_for_exit(&handle);
            let _ = tell_exited.send(());
        }
    };
    std::thread::Builder::new()
        .name("fbisect-wait".into())
        .spawn(wait)
        .map_err(|error| fault(format!("cannot start a thread: {error}")))?;
    let ((tree, logs, began), handle, identity) = has_started
        .await
        .map_err(|_| fault("the thread that starts processes died".into()))??;
    let running = Running {
        tree,
        logs,
        handle,
        exited,
        stop,
        level: Stop::Run,
        began,
        wall: None,
        tick: TICK,
        next_look: began + TICK,
    };
    Ok((running, identity))
}

fn fault(error: String) -> ProcessEnd {
    ProcessEnd::Faulted { error }
}

/// Blocks until the leader has ended; does not reap it where that can be avoided.
fn wait_for_exit(handle: &Handle) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::wait::{Id, WaitPidFlag, waitid};
        let leader = handle.pids().first().and_then(|pid| (*pid).try_into().ok());
        let leader = nix::unistd::Pid::from_raw(leader.unwrap_or_default());
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(leader), flags) == Err(nix::errno::Errno::EINTR) {}
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = handle.wait();
    }
}

/// A command that runs, or has ended and left processes behind.
struct Running {
    tree: Tree,
    logs: Logs,
    handle: Arc<Handle>,
    exited: oneshot::Receiver<()>,
    stop: watch::Receiver<Stop>,
    /// The most that we were told so far.
    level: Stop,
    began: Instant,
    /// How long the leader ran; set when it has ended.
    wall: Option<Duration>,
    tick: Duration,
    next_look: Instant,
}

/// Why a pause was over.
enum Wake {
    Exited,
    Stop,
    Time,
}

/// Why the watch over a running command ended.
enum Verdict {
    Exited,
    TimedOut,
    Stopped,
    Faulted(String),
}

impl Running {
    async fn see_through(mut self, spec: &ProcessSpec) -> Finished {
        let mut verdict = self.watch(spec.timeout).await;
        match verdict {
            Verdict::Exited => {}
            Verdict::TimedOut | Verdict::Stopped => self.end_group(spec.grace).await,
            Verdict::Faulted(_) => self.end_group(Duration::ZERO).await,
        }
        let (swept, stuck) = self.sweep().await;
        let wall = self.wall.unwrap_or_else(|| self.began.elapsed());
        if let Err(error) = self.logs.close() {
            verdict = Verdict::Faulted(format!("cannot shorten an output file: {error}"));
        }
        let status = if self.wall.is_some() {
            let handle = self.handle.clone();
            self.tree.finish(|| leader_status(&handle))
        } else {
            Err(io::Error::other("it does not end, even by SIGKILL"))
        };
        let end = match (verdict, status) {
            (Verdict::Faulted(error), _) => fault(error),
            (_, Err(error)) => fault(format!("process {}: {error}", self.handle.pids()[0])),
            (Verdict::TimedOut, Ok(_)) => ProcessEnd::TimedOut,
            (Verdict::Stopped, Ok(_)) => ProcessEnd::Stopped,
            (Verdict::Exited, Ok(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => ProcessEnd::Exited { code },
                (None, Some(signal)) => ProcessEnd::Signalled { signal },
                (None, None) => fault(format!("unknown exit status: {status}")),
            },
        };
        Finished {
            end,
            wall,
            swept,
            stuck,
        }
    }

    /// Until the leader ends, its time is up, or we are told to stop.
    async fn watch(&mut self, timeout: Option<Duration>) -> Verdict {
        let deadline = timeout.and_then(|timeout| self.began.checked_add(timeout));
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match self.pause(left.unwrap_or(TICK)).await {
                Ok(Wake::Exited) => return Verdict::Exited,
                Ok(Wake::Stop) => return Verdict::Stopped,
                Ok(Wake::Time) if deadline.is_some_and(|end| Instant::now() >= end) => {
                    return Verdict::TimedOut;
                }
                Ok(Wake::Time) => self.look_if_due(),
                Err(error) => {
                    return Verdict::Faulted(format!("cannot shorten an output file: {error}"));
                }
            }
        }
    }

    /// Waits for the leader, an order to stop, or at most `limit`; keeps output within its limit.
    async fn pause(&mut self, limit: Duration) -> io::Result<Wake> {
        let wake = tokio::select! {
            biased;
            _ = &mut self.exited, if self.wall.is_none() => Wake::Exited,
            told = more_than(&mut self.stop, self.level) => {
                self.level = told;
                Wake::Stop
            }
            () = tokio::time::sleep(limit.min(self.tick)) => Wake::Time,
        };
        if matches!(wake, Wake::Exited) {
            self.wall = Some(self.began.elapsed());
        }
        let fast = self.logs.trim()?;
        self.tick = if fast { FAST_TICK } else { TICK };
        Ok(wake)
    }

    /// Remembers the tree, so that a daemon is known for its own after its parents are gone.
    fn look_if_due(&mut self) {
        let before = Instant::now();
        if before >= self.next_look {
            self.tree.look();
            self.next_look = before + TICK.max(before.elapsed() * LOOK_SHARE);
        }
    }

    /// SIGTERM to the group, at most `grace` for all of it to end, SIGKILL.
    async fn end_group(&mut self, grace: Duration) {
        // Who belongs to the tree is plain to see before the first signal takes it apart.
        self.tree.look();
        let deadline = Instant::now() + grace;
        if self.level != Stop::Now && !grace.is_zero() {
            self.tree.signal_group(Signal::SIGTERM);
            let mut delay = Duration::from_millis(1);
            while self.wall.is_none() || self.tree.group_is_alive() {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() || self.level == Stop::Now {
                    break;
                }
                // A full disk does not keep us from ending processes.
                let _ = self.pause(delay.min(left)).await;
                delay = (delay * 2).min(FAST_TICK);
            }
        }
        if self.wall.is_none() || cfg!(target_os = "linux") || self.tree.group_is_alive() {
            self.tree.signal_group(Signal::SIGKILL);
        }
        let deadline = Instant::now() + KILL_PATIENCE;
        while self.wall.is_none() && Instant::now() < deadline {
            let _ = self.pause(TICK).await;
        }
    }

    /// Ends whatever outlived the leader. Returns how many there were, and which did not end.
    async fn sweep(&mut self) -> (usize, Vec<u32>) {
        let began = Instant::now();
        let mut seen = BTreeSet::new();
        let mut delay = Duration::from_millis(1);
        let mut clean = 0;
        while clean < 2 {
            let alive = self.tree.look();
            if alive.is_empty() {
                clean += 1;
                continue;
            }
            clean = 0;
            let force = self.level == Stop::Now || began.elapsed() >= LEFTOVER_GRACE;
            if force {
                self.tree.signal(&alive, Signal::SIGKILL);
            } else {
                let new: Vec<_> = alive
                    .iter()
                    .filter(|m| !seen.contains(*m))
                    .copied()
                    .collect();
                self.tree.signal(&new, Signal::SIGTERM);
            }
            seen.extend(alive.iter().copied());
            if began.elapsed() >= LEFTOVER_GRACE + KILL_PATIENCE {
                let stuck = alive.iter().map(|member| member.pid.unsigned_abs());
                return (seen.len(), stuck.collect());
            }
            let _ = self.pause(delay).await;
            delay = if force {
                delay
            } else {
                (delay * 2).min(FAST_TICK)
            };
        }
        (seen.len(), Vec::new())
    }
}

fn leader_status(handle: &Handle) -> io::Result<ExitStatus> {
    handle.wait().map(|output| output.status)
}

/// Waits for an order that goes beyond `level`; for ever, if nobody can give one any more.
async fn more_than(stop: &mut watch::Receiver<Stop>, level: Stop) -> Stop {
    let told = stop.wait_for(|told| *told > level).await.map(|told| *told);
    match told {
        Ok(told) => told,
        Err(_) => std::future::pending().await,
    }
}
