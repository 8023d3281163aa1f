//! Runs the `git` program so that neither the user's environment nor their hooks disturb it.
//!
//! The program and not a library: it alone runs filter drivers, LFS, sparse patterns and lazy
//! fetches as the user's own checkout does.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::error::{Fault, WorkspaceError};
use crate::model::PrepareStep;

/// How often a command is repeated that met another process's half-made worktree, and the pause
/// between: git writes the missing file within a millisecond.
const RACE_PATIENCE: u32 = 20;
const RACE_PAUSE: Duration = Duration::from_millis(10);

/// Settings of every call: no hooks, no background work, no advice, no descent into submodules.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "advice.detachedHead=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.fsmonitor=false",
    "submodule.recurse=false",
];

/// `GIT_*` variables that say how to reach things, not which repository is meant.
const KEPT: [&str; 17] = [
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "GIT_SSL_",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
    "GIT_CONFIG_PARAMETERS",
    "GIT_LFS_",
    "GIT_EXEC_PATH",
    "GIT_ALLOW_PROTOCOL",
];

/// What a command that succeeded had to say on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing: it did all of it.
    Nothing,
    /// A warning, such as of a file that could not be removed.
    Something,
}

/// One git command being put together.
pub(super) struct Git {
    command: Command,
    step: PrepareStep,
}

impl Git {
    /// A command that will run in `dir`, for `step`.
    pub(super) fn new(dir: &Path, step: PrepareStep) -> Self {
        let mut command = Command::new("git");
        command.current_dir(dir).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if misleads(&name) {
                command.env_remove(name);
            }
        }
        // Without its `.git`, a workspace must not be taken for a part of a project above it.
        if let Some(parent) = dir.parent() {
            command.env("GIT_CEILING_DIRECTORIES", parent);
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env_remove("LANGUAGE");
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        Self { command, step }
    }

    /// Adds a setting for this command alone.
    pub(super) fn set(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        let mut setting = OsString::from(key);
        setting.push("=");
        setting.push(value);
        self.command.arg("-c").arg(setting);
        self
    }

    /// Adds words.
    pub(super) fn args<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.command.args(words);
        self
    }

    /// Adds a word.
    pub(super) fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    /// Reads this repository and no other, whether or not its checkout is there, and without
    /// fetching what a partial clone lacks.
    pub(super) fn only_in(mut self, git_dir: &Path) -> Self {
        self.command
            .env("GIT_DIR", git_dir)
            .env("GIT_WORK_TREE", git_dir)
            .env("GIT_NO_LAZY_FETCH", "1");
        self
    }

    /// Takes an address that a commit names: only the transports that git trusts a submodule with.
    pub(super) fn guarded(mut self) -> Self {
        self.command.env("GIT_PROTOCOL_FROM_USER", "0");
        self
    }

    /// Runs it; what it printed on success.
    pub(super) fn run(self) -> Result<Vec<u8>, WorkspaceError> {
        self.successful().map(|output| output.stdout)
    }

    /// Runs it; whether it warned of anything on success.
    pub(super) fn run_told(self) -> Result<Told, WorkspaceError> {
        let output = self.successful()?;
        Ok(if output.stderr.is_empty() {
            Told::Nothing
        } else {
            Told::Something
        })
    }

    fn successful(mut self) -> Result<Output, WorkspaceError> {
        let step = self.step;
        let output = self.output()?;
        if output.status.success() {
            return Ok(output);
        }
        let mut error = WorkspaceError::git(step, &output.stderr, &output.status.to_string());
        if output.status.code().is_none() {
            // Ended by a signal: Ctrl-C, or the kernel short of memory.
            error.fault = Fault::Machine;
        }
        Err(error)
    }

    /// Runs it; whether it succeeded.
    pub(super) fn succeeds(mut self) -> Result<bool, WorkspaceError> {
        Ok(self.output()?.status.success())
    }

    /// Runs it until no other process's worktree stood in the way.
    fn output(&mut self) -> Result<Output, WorkspaceError> {
        let mut output = self.output_once()?;
        let mut patience = RACE_PATIENCE;
        while met_a_changing_worktree(&output) && patience > 0 {
            patience -= 1;
            std::thread::sleep(RACE_PAUSE);
            output = self.output_once()?;
        }
        Ok(output)
    }

    fn output_once(&mut self) -> Result<Output, WorkspaceError> {
        self.command.output().map_err(|error| {
            WorkspaceError::machine(
                self.step,
                format!("cannot run git: {error}; is it installed and on PATH?"),
            )
        })
    }
}

/// Whether git stumbled over a worktree that another process was just making or removing: it reads
/// all worktrees' entries, and one whose `commondir` has been created and not yet written is fatal,
/// as is one that goes while it is read.
fn met_a_changing_worktree(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stderr);
    let half_made = text.contains("failed to read") && text.contains("commondir");
    let gone = text.contains("Invalid path")
        && text.contains("/worktrees/")
        && text.contains("No such file or directory");
    !output.status.success() && (half_made || gone)
}

fn misleads(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        let kept = |entry: &str| name == entry || (entry.ends_with('_') && name.starts_with(entry));
        name.starts_with("GIT_") && !KEPT.iter().any(|entry| kept(entry))
    })
}

/// The folder that a checkout's `.git` stands for: itself, or what its `gitdir:` line names.
pub(super) fn git_dir_of(checkout: &Path) -> Option<PathBuf> {
    let dot_git = checkout.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = std::fs::read(&dot_git).ok()?;
    let target = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    Some(checkout.join(path_from(target)))
}

/// A path as git prints it with `-z`, or writes it in its own files: plain bytes.
pub(super) fn path_from(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_name_a_repository_are_dropped_and_credentials_kept() {
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_TRACE",
            "GIT_COMMON_DIR",
        ] {
            assert!(misleads(OsStr::new(name)), "{name}");
        }
        for name in [
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_KEY_0",
            "GIT_LFS_SKIP_SMUDGE",
            "PATH",
        ] {
            assert!(!misleads(OsStr::new(name)), "{name}");
        }
    }
}
