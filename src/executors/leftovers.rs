//! Ends what a killed run of the tool left running.
//!
//! Knows recorded identities and marks, no journal. Blocks; meant for the moment before a session
//! is resumed.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::ProcessIdentity;
use super::proc_table::{self, Process};
use super::process_tree::send;

/// How long after SIGKILL a process may take to end before it is given up as stuck.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Ends every process of this user that carries a mark beginning with `mark_prefix`, the recorded
/// leaders that are still the same processes, their groups, and the descendants of all of these.
///
/// SIGTERM, at most `grace`, SIGKILL; returns when none is alive (a zombie is not), or 5 s after
/// SIGKILL. This process and its ancestors are spared. An empty prefix matches nothing, and so
/// does a recorded identity without start time or boot: a number alone names no process. Returns
/// how many processes there were. On systems without `/proc` it finds none.
pub fn end_leftovers(mark_prefix: &str, recorded: &[ProcessIdentity], grace: Duration) -> usize {
    let began = Instant::now();
    let mut seen = BTreeSet::new();
    loop {
        let alive = leftovers(mark_prefix, recorded);
        if alive.is_empty() || began.elapsed() >= grace + KILL_PATIENCE {
            return seen.len();
        }
        let force = began.elapsed() >= grace;
        for process in &alive {
            let new = seen.insert((process.pid, process.start));
            if force {
                send(process.pid, process.start, Signal::SIGKILL);
            } else if new {
                send(process.pid, process.start, Signal::SIGTERM);
            }
        }
        std::thread::sleep(Duration::from_millis(if force { 2 } else { 10 }));
    }
}

fn leftovers(mark_prefix: &str, recorded: &[ProcessIdentity]) -> Vec<Process> {
    let all = proc_table::all_of_user();
    let groups: BTreeSet<i32> = recorded
        .iter()
        .filter_map(proc_table::find)
        .filter(|leader| leader.group == leader.pid)
        .map(|leader| leader.group)
        .collect();
    let spared = lineage(Pid::this().as_raw());
    let is_ours = |process: &Process| {
        groups.contains(&process.group)
            || (!mark_prefix.is_empty()
                && proc_table::mark(process.pid)
                    .is_some_and(|mark| mark.as_bytes().starts_with(mark_prefix.as_bytes())))
    };
    let alive = || all.iter().filter(|p| !p.gone && !spared.contains(&p.pid));
    let mut chosen: BTreeSet<i32> = alive().filter(|p| is_ours(p)).map(|p| p.pid).collect();
    // Descendants that cleared their environment; each round goes one generation down.
    loop {
        let before = chosen.len();
        let more: Vec<i32> = alive()
            .filter(|p| chosen.contains(&p.parent))
            .map(|p| p.pid)
            .collect();
        chosen.extend(more);
        if chosen.len() == before {
            break;
        }
    }
    alive()
        .filter(|p| chosen.contains(&p.pid))
        .copied()
        .collect()
}

/// A process and all its ancestors.
fn lineage(pid: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([pid]);
    let mut next = proc_table::look(pid).map(|process| process.parent);
    while let Some(pid) = next.filter(|pid| *pid > 0 && found.insert(*pid)) {
        next = proc_table::look(pid).map(|process| process.parent);
    }
    found
}
