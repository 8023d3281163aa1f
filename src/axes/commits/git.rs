//! Asking the `git` program: one place that knows how it is called.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::error::HistoryError;

/// Variables that make git look at another checkout or read paths another way than we write them.
/// `GIT_OBJECT_DIRECTORY` and its alternates stay: they add objects, they name no other history.
const MISLEADING: [&str; 8] = [
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// The `git` program, in one directory.
#[derive(Debug, Clone)]
pub(super) struct Git {
    dir: PathBuf,
    /// The git directory, once it is known.
    repository: Option<PathBuf>,
}

/// What a command left.
#[derive(Debug)]
pub(super) struct Answer {
    command: String,
    /// Its exit status was 0.
    pub(super) ok: bool,
    stdout: Vec<u8>,
    /// Its standard error, trimmed.
    pub(super) stderr: String,
}

impl Git {
    /// `git` as the user would run it in `dir`, environment included.
    pub(super) fn undecided(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            repository: None,
        }
    }

    /// `git` on one repository: `root` is the top of its checkout, `git_dir` absolute.
    pub(super) fn on(root: &Path, git_dir: &Path) -> Self {
        Self {
            dir: root.to_owned(),
            repository: Some(git_dir.to_owned()),
        }
    }

    /// Runs `git` with these arguments and returns what it says, also when it fails.
    pub(super) fn ask<I>(&self, args: I) -> Result<Answer, HistoryError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        self.ask_with_input(args, None)
    }

    /// As [`Git::ask`], with something on standard input.
    pub(super) fn ask_with_input<I>(
        &self,
        args: I,
        input: Option<Vec<u8>>,
    ) -> Result<Answer, HistoryError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let command = args
            .iter()
            .map(|arg| arg.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ");
        let mut expression = duct::cmd("git", args)
            .dir(&self.dir)
            .env("LC_ALL", "C")
            .stdout_capture()
            .stderr_capture()
            .unchecked();
        if let Some(git_dir) = &self.repository {
            expression = expression
                .env("GIT_DIR", git_dir)
                .env("GIT_WORK_TREE", &self.dir);
            for name in MISLEADING {
                expression = expression.env_remove(name);
            }
        }
        expression = match input {
            Some(bytes) => expression.stdin_bytes(bytes),
            None => expression.stdin_null(),
        };
        let output = expression.run().map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                HistoryError::GitMissing(error)
            } else {
                HistoryError::Git {
                    command: command.clone(),
                    message: error.to_string(),
                }
            }
        })?;
        Ok(Answer {
            command,
            ok: output.status.success(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

impl Answer {
    /// What it printed, without the last newline; an error if it failed.
    pub(super) fn bytes(mut self) -> Result<Vec<u8>, HistoryError> {
        if !self.ok {
            return Err(self.failure());
        }
        if self.stdout.last() == Some(&b'\n') {
            self.stdout.pop();
        }
        Ok(self.stdout)
    }

    /// As [`Answer::bytes`], as text.
    pub(super) fn text(self) -> Result<String, HistoryError> {
        self.bytes()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The error for an answer that should have been another.
    pub(super) fn failure(&self) -> HistoryError {
        let last = self.stderr.lines().last().unwrap_or("no message");
        HistoryError::Git {
            command: self.command.clone(),
            message: last.strip_prefix("fatal: ").unwrap_or(last).to_owned(),
        }
    }
}
