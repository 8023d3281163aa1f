//! Which processes belong to which running command, and how to signal them.
//!
//! A command leads a process group. What leaves that group (launchers start their workers in new
//! sessions, daemons fork twice) is still found, because this program is a *child subreaper*:
//! every orphan of a command becomes our child. Whose orphan it is, is told by, in this order: what
//! was seen of each tree on the last look, its process group and session, the mark in its
//! environment or in that of its descendants, and at last by time: an orphan without any trace is
//! given to a command only when no other running command is old enough to have started it.
//!
//! For that to be right, children that the program starts in any other way must stay in the
//! program's own process group; those are never touched. Elsewhere than on Linux only the group is
//! known.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp};

use super::ProcessIdentity;
use super::proc_table::{self, Process};

/// Makes this program the parent of everything its commands leave behind. Called by
/// [`run`](super::run) as well, so calling it early is only needed where other children may leave
/// orphans before. It affects the whole program and does nothing on its second call.
pub fn prepare_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_os = "linux")]
        {
            // Without it (a kernel before 3.4) orphans are found by nothing but the group.
            let _ = nix::sys::prctl::set_child_subreaper(true);
        }
        if proc_table::pass_on_ignored().contains(&Signal::SIGCHLD) {
            // SAFETY: no handler is installed, only the default disposition; ignored, SIGCHLD
            // makes the kernel forget exit statuses.
            let _ = unsafe {
                nix::sys::signal::signal(Signal::SIGCHLD, nix::sys::signal::SigHandler::SigDfl)
            };
        }
    });
}

/// Marks every child that is started in another way than by [`run`](super::run) (git, and the
/// filters and downloads that it starts) as one of `session`: should this program be killed, they
/// go on working in a worktree that [`end_leftovers`](super::end_leftovers) must clear.
///
/// Call it before any other thread is started.
pub(crate) fn mark_helpers(session: &str) {
    // SAFETY: the program has a single thread yet, so nobody reads the environment meanwhile.
    unsafe { std::env::set_var(super::MARK_VARIABLE, format!("{session}/helper")) };
}

/// Signals the children that were started in another way than by [`run`](super::run), with their
/// descendants: an order to stop that came to this program alone must reach them too.
pub(crate) fn signal_helpers(signal: Signal) {
    let live = live();
    let own_group = getpgrp().as_raw();
    let mut helpers = Vec::new();
    for pid in proc_table::children(own_pid()) {
        // Between its start and its first instruction a command may still be in our group.
        let is_command = live.values().any(|entry| entry.leader == pid);
        if !is_command && proc_table::look(pid).is_some_and(|p| p.group == own_group) {
            collect(pid, &mut helpers);
        }
    }
    for helper in helpers {
        send(helper.pid, helper.start, signal);
    }
}

/// A process that was alive at the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    pub(super) pid: i32,
    pub(super) start: u64,
    pub(super) group: i32,
}

/// What is known of one running command.
#[derive(Debug)]
struct Live {
    leader: i32,
    start: u64,
    mark: String,
    /// Its processes at the last look: number and start time.
    known: BTreeSet<(i32, u64)>,
    /// Process groups and sessions that are its own.
    families: BTreeSet<i32>,
}

/// Every command that runs now. The lock is also held while a command is started, so that no look
/// falls between a process and its entry, and while a leader's status is taken.
static LIVE: Mutex<BTreeMap<u64, Live>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<u64, Live>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One running command's processes. Dropped without [`Tree::finish`], it kills them.
#[derive(Debug)]
pub(super) struct Tree {
    key: u64,
    leader: i32,
    finished: bool,
}

impl Tree {
    /// Starts a command with `start`, which returns its handle and process number.
    pub(super) fn start<H>(
        mark: &str,
        start: impl FnOnce() -> io::Result<(H, i32)>,
    ) -> io::Result<(Self, H, ProcessIdentity)> {
        let mut live = live();
        let (handle, leader) = start()?;
        let identity = proc_table::identity(leader);
        let key = live.last_key_value().map_or(0, |(key, _)| key + 1);
        live.insert(
            key,
            Live {
                leader,
                start: identity.start_ticks.unwrap_or(0),
                mark: mark.to_owned(),
                known: BTreeSet::new(),
                families: BTreeSet::from([leader]),
            },
        );
        let tree = Self {
            key,
            leader,
            finished: false,
        };
        Ok((tree, handle, identity))
    }

    /// The command's processes that have not ended, and remembers them. Takes notice of orphans
    /// that have ended. What changes its parent at this moment can be missed: only two looks that
    /// find nothing mean that there is nothing.
    pub(super) fn look(&self) -> Vec<Member> {
        let mut live = live();
        let found = survey(&live, self.key);
        let ours = (getpgrp().as_raw(), own_session());
        if let Some(entry) = live.get_mut(&self.key) {
            entry.known = found.iter().map(|p| (p.pid, p.start)).collect();
            let families = found.iter().flat_map(|p| [p.group, p.session]);
            entry.families = families
                .filter(|&family| family != ours.0 && family != ours.1)
                .chain([self.leader])
                .collect();
        }
        drop(live);
        if !cfg!(target_os = "linux") {
            return self.group_only();
        }
        found
            .into_iter()
            .map(
                |Process {
                     pid, start, group, ..
                 }| Member { pid, start, group },
            )
            .collect()
    }

    /// Where there is no process table: one entry for the group, while it has processes.
    fn group_only(&self) -> Vec<Member> {
        let alive = killpg(Pid::from_raw(self.leader), None).is_ok();
        let (pid, group) = (self.leader, self.leader);
        let member = Member {
            pid,
            start: 0,
            group,
        };
        alive.then_some(member).into_iter().collect()
    }

    /// Whether a process of the command's own group has not ended.
    pub(super) fn group_is_alive(&self) -> bool {
        // Twice: one that passes to us while its parent ends can escape a single look.
        (0..2).any(|_| self.look().iter().any(|member| member.group == self.leader))
    }

    /// Signals the whole group. Only while the leader has not been reaped: then its number cannot
    /// belong to another group.
    pub(super) fn signal_group(&self, signal: Signal) {
        let group = Pid::from_raw(self.leader);
        let _ = killpg(group, signal);
        if signal == Signal::SIGTERM {
            // A stopped process would not see it before it is continued.
            let _ = killpg(group, Signal::SIGCONT);
        }
    }

    /// Signals processes that were just seen.
    pub(super) fn signal(&self, members: &[Member], signal: Signal) {
        if members.iter().any(|member| member.group == self.leader) {
            self.signal_group(signal);
        }
        for member in members.iter().filter(|m| m.group != self.leader) {
            send(member.pid, member.start, signal);
        }
    }

    /// Forgets the command, after killing what its group may still hold; `reap` takes the
    /// leader's status.
    pub(super) fn finish<T>(mut self, reap: impl FnOnce() -> T) -> T {
        let mut live = live();
        if cfg!(target_os = "linux") {
            self.signal_group(Signal::SIGKILL);
        }
        let status = reap();
        live.remove(&self.key);
        self.finished = true;
        status
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        self.signal_group(Signal::SIGKILL);
        let mut clean = 0;
        for _ in 0..200 {
            let alive = self.look();
            clean = if alive.is_empty() { clean + 1 } else { 0 };
            if clean == 2 {
                break;
            }
            self.signal(&alive, Signal::SIGKILL);
            std::thread::yield_now();
        }
        live().remove(&self.key);
    }
}

/// Signals a process unless its number has passed to another.
pub(super) fn send(pid: i32, start: u64, signal: Signal) {
    if proc_table::look(pid).is_some_and(|process| process.start == start) {
        let _ = kill(Pid::from_raw(pid), signal);
        if signal == Signal::SIGTERM {
            let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
        }
    }
}

fn own_pid() -> i32 {
    Pid::this().as_raw()
}

fn own_session() -> i32 {
    proc_table::look(own_pid()).map_or(0, |me| me.session)
}

/// The processes of the command `key` that have not ended.
fn survey(live: &BTreeMap<u64, Live>, key: u64) -> Vec<Process> {
    let own_group = getpgrp().as_raw();
    let mut found = Vec::new();
    for pid in proc_table::children(own_pid()) {
        if let Some((owner, _)) = live.iter().find(|(_, entry)| entry.leader == pid) {
            if *owner == key {
                collect(pid, &mut found);
            }
            continue;
        }
        match proc_table::look(pid) {
            None => {}
            Some(process) if process.group == own_group => {}
            Some(process) if process.gone => reap(pid),
            Some(process) => {
                let mut tree = Vec::new();
                collect(pid, &mut tree);
                if owner(live, &process, &tree) == Some(key) {
                    found.append(&mut tree);
                }
            }
        }
    }
    found
}

/// Adds a process and its descendants, those that have not ended.
fn collect(pid: i32, found: &mut Vec<Process>) {
    let mut waiting = vec![pid];
    let mut visited = BTreeSet::new();
    while let Some(pid) = waiting.pop() {
        if !visited.insert(pid) {
            continue;
        }
        if let Some(process) = proc_table::look(pid).filter(|process| !process.gone) {
            found.push(process);
            waiting.extend(proc_table::children(pid));
        }
    }
}

/// Whose orphan it is, with its descendants in `tree`.
fn owner(live: &BTreeMap<u64, Live>, orphan: &Process, tree: &[Process]) -> Option<u64> {
    let by = |test: &dyn Fn(&Live) -> bool| {
        let mut owners = live.iter().filter(|(_, entry)| test(entry));
        owners.next().map(|(key, _)| *key)
    };
    by(&|entry| entry.known.contains(&(orphan.pid, orphan.start)))
        .or_else(|| {
            by(&|entry| {
                entry.families.contains(&orphan.group) || entry.families.contains(&orphan.session)
            })
        })
        .or_else(|| {
            tree.iter().find_map(|process| {
                let mark = proc_table::mark(process.pid)?;
                by(&|entry| mark == entry.mark.as_str())
            })
        })
        .or_else(|| {
            // As process 1 of a container we also inherit strangers.
            if own_pid() == 1 {
                return None;
            }
            let mut able = live.iter().filter(|(_, entry)| entry.start <= orphan.start);
            let first = able.next().map(|(key, _)| *key);
            first.filter(|_| able.next().is_none())
        })
}

/// Takes notice of an orphan that has ended. Never of "any child": others wait for theirs.
fn reap(pid: i32) {
    use nix::sys::wait::{WaitPidFlag, waitpid};
    let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
}
