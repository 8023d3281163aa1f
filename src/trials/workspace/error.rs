//! What can go wrong with a workspace, and whose fault it is.
//!
//! A commit that cannot be checked out is a skip; a full disk is a reason to attempt the trial
//! again. Git says which only in words, so they are read here and nowhere else.

use std::io;
use std::path::Path;

use thiserror::Error;

use crate::model::PrepareStep;

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The machine's: a full disk, no permission, no network, git not installed. Attempt it again.
    Machine,
    /// The commit's own: a missing object, a filter that fails. It is untestable.
    Commit,
}

/// A workspace could not be made, moved or removed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{step} failed: {detail}")]
pub struct WorkspaceError {
    /// Where.
    pub step: PrepareStep,
    /// Whose fault it is.
    pub fault: Fault,
    /// One line: git's last words, or the path and the system's error.
    pub detail: String,
}

impl WorkspaceError {
    /// A fault of the machine.
    pub(super) fn machine(step: PrepareStep, detail: impl Into<String>) -> Self {
        Self {
            step,
            fault: Fault::Machine,
            detail: detail.into(),
        }
    }

    /// A file operation of ours that failed: the machine's fault, since no commit was asked.
    pub(super) fn io(step: PrepareStep, doing: &str, path: &Path, error: &io::Error) -> Self {
        Self::machine(step, format!("cannot {doing} {}: {error}", path.display()))
    }

    /// A git command that failed, judged by what it wrote to standard error.
    pub(super) fn git(step: PrepareStep, stderr: &[u8], ended: &str) -> Self {
        let text = String::from_utf8_lossy(stderr);
        Self {
            step,
            fault: fault_in(&text),
            detail: words(&text, step).unwrap_or_else(|| format!("git ended with {ended}")),
        }
    }
}

/// What git and the filters print (in the C locale) when the machine is at fault.
const MACHINE: [&str; 22] = [
    "No space left on device",
    "Disk quota exceeded",
    "Input/output error",
    "Permission denied",
    "Read-only file system",
    "Stale file handle",
    "Too many open files",
    "Cannot allocate memory",
    "Out of memory",
    "out of memory",
    "Resource temporarily unavailable",
    "Transport endpoint is not connected",
    ".lock': File exists",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "Operation timed out",
    "Network is unreachable",
    "early EOF",
    "dubious ownership",
];

fn fault_in(stderr: &str) -> Fault {
    if MACHINE.iter().any(|phrase| stderr.contains(phrase)) {
        Fault::Machine
    } else {
        Fault::Commit
    }
}

/// The line that says what failed, without control characters, at most 300 of them. It is the last
/// one; but a submodule's first, which the commands around it only pass on.
fn words(stderr: &str, step: PrepareStep) -> Option<String> {
    let told = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    let lines = || {
        stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
    };
    let line = match step {
        PrepareStep::Submodules => lines().find(told),
        _ => lines().rfind(told),
    };
    let line = line.or_else(|| lines().next_back())?;
    Some(line.chars().filter(|c| !c.is_control()).take(300).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fatal_line_is_told_and_hints_are_not() {
        let stderr = "error: external filter 'x' failed 1\nfatal: a.bin: smudge filter x failed\nhint: try\n";
        let error = WorkspaceError::git(PrepareStep::Checkout, stderr.as_bytes(), "exit 128");
        assert_eq!(error.detail, "fatal: a.bin: smudge filter x failed");
        assert_eq!(error.fault, Fault::Commit);
    }

    #[test]
    fn a_full_disk_is_the_machines_fault() {
        let stderr = "fatal: cannot create directory at 'd': No space left on device";
        let error = WorkspaceError::git(PrepareStep::Checkout, stderr.as_bytes(), "exit 128");
        assert_eq!(error.fault, Fault::Machine);
    }

    #[test]
    fn silence_is_told_by_the_exit_status() {
        let error = WorkspaceError::git(PrepareStep::Apply, b"", "exit status 3");
        assert_eq!(
            error.to_string(),
            "applying the patch failed: git ended with exit status 3"
        );
    }
}
