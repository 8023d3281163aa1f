//! The system's process table, as far as it can be read: `/proc` on Linux, nothing elsewhere.
//!
//! Knows nothing of trials. Everything here is a glance: a process may be gone a moment later, so
//! absence is an ordinary answer and never an error.

use super::ProcessIdentity;

/// What the table says of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Clock ticks since boot when it was started.
    pub(super) start: u64,
    /// It has ended and only waits for its parent to take notice (a zombie).
    pub(super) gone: bool,
}

/// The identity of a process that is known to exist.
pub(super) fn identity(pid: i32) -> ProcessIdentity {
    ProcessIdentity {
        pid: pid.unsigned_abs(),
        start_ticks: look(pid).map(|process| process.start),
        boot_id: boot_id(),
    }
}

/// The process that was recorded, if it is still that one.
pub(super) fn find(recorded: &ProcessIdentity) -> Option<Process> {
    let same_boot = recorded.boot_id.is_some() && recorded.boot_id == boot_id();
    let process = look(i32::try_from(recorded.pid).ok()?)?;
    (same_boot && recorded.start_ticks == Some(process.start)).then_some(process)
}

#[cfg(target_os = "linux")]
pub(super) use linux::{all_of_user, boot_id, children, look, mark, pass_on_ignored};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{all_of_user, boot_id, children, look, mark, pass_on_ignored};

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{OsStr, OsString};
    use std::path::Path;
    use std::sync::OnceLock;

    use nix::sys::signal::Signal;
    use procfs::process::{Process as Entry, Stat, all_processes};

    use super::Process;
    use crate::executors::MARK_VARIABLE;

    fn described(stat: &Stat) -> Process {
        Process {
            pid: stat.pid,
            parent: stat.ppid,
            group: stat.pgrp,
            session: stat.session,
            start: stat.starttime,
            // A first thread that has ended while others run on looks like a zombie too.
            gone: matches!(stat.state, 'Z' | 'X') && stat.num_threads <= 1,
        }
    }

    /// One process.
    pub(in crate::executors) fn look(pid: i32) -> Option<Process> {
        let stat = Entry::new(pid).and_then(|entry| entry.stat()).ok()?;
        Some(described(&stat))
    }

    /// The children of all threads of a process, zombies included.
    pub(in crate::executors) fn children(pid: i32) -> Vec<i32> {
        static LISTED: OnceLock<bool> = OnceLock::new();
        if !*LISTED.get_or_init(|| Path::new("/proc/thread-self/children").exists()) {
            return every(|stat| (stat.ppid == pid).then_some(stat.pid));
        }
        let Ok(tasks) = Entry::new(pid).and_then(|entry| entry.tasks()) else {
            return Vec::new();
        };
        let lists = tasks.flatten().filter_map(|task| task.children().ok());
        lists
            .flatten()
            .filter_map(|child| child.try_into().ok())
            .collect()
    }

    fn every<T>(choose: impl Fn(&Stat) -> Option<T>) -> Vec<T> {
        let Ok(entries) = all_processes() else {
            return Vec::new();
        };
        let stats = entries.flatten().filter_map(|entry| entry.stat().ok());
        stats.filter_map(|stat| choose(&stat)).collect()
    }

    /// Every process that belongs to our user.
    pub(in crate::executors) fn all_of_user() -> Vec<Process> {
        let Ok(user) = Entry::myself().and_then(|me| me.uid()) else {
            return Vec::new();
        };
        let Ok(entries) = all_processes() else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter(|entry| entry.uid().is_ok_and(|uid| uid == user))
            .filter_map(|entry| entry.stat().ok())
            .map(|stat| described(&stat))
            .collect()
    }

    /// The mark that a process carries in its environment.
    pub(in crate::executors) fn mark(pid: i32) -> Option<OsString> {
        let mut variables = Entry::new(pid).and_then(|entry| entry.environ()).ok()?;
        variables.remove(OsStr::new(MARK_VARIABLE))
    }

    pub(in crate::executors) fn boot_id() -> Option<String> {
        static BOOT: OnceLock<Option<String>> = OnceLock::new();
        BOOT.get_or_init(|| procfs::sys::kernel::random::boot_id().ok())
            .clone()
    }

    /// Signals that we ignore and a child would go on ignoring. SIGPIPE is not among them: the
    /// standard library gives it back to children by itself.
    pub(in crate::executors) fn pass_on_ignored() -> Vec<Signal> {
        let Ok(status) = Entry::myself().and_then(|me| me.status()) else {
            return Vec::new();
        };
        Signal::iterator()
            .filter(|signal| status.sigign & (1 << (*signal as u32 - 1)) != 0)
            .filter(|signal| *signal != Signal::SIGPIPE)
            .collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::ffi::OsString;

    use nix::sys::signal::Signal;

    use super::Process;

    pub(in crate::executors) fn look(_pid: i32) -> Option<Process> {
        None
    }

    pub(in crate::executors) fn children(_pid: i32) -> Vec<i32> {
        Vec::new()
    }

    pub(in crate::executors) fn all_of_user() -> Vec<Process> {
        Vec::new()
    }

    pub(in crate::executors) fn mark(_pid: i32) -> Option<OsString> {
        None
    }

    pub(in crate::executors) fn boot_id() -> Option<String> {
        None
    }

    pub(in crate::executors) fn pass_on_ignored() -> Vec<Signal> {
        use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};
        vec![SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU]
    }
}
