//! Where a process runs, and what this machine offers it.
//!
//! [`local`] starts one command as a real process tree, limits its output and its time, and leaves
//! nothing of it behind. [`devices`] counts GPUs and shares them among slots. Neither knows what a
//! commit, a trial's outcome, a journal or a search is: they are handed a [`ProcessSpec`] and
//! report how it ended.

pub mod devices;
pub mod local;

mod launch;
mod leftovers;
mod output;
mod proc_table;
mod process_tree;
mod program;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::model::ProcessIdentity;
pub use leftovers::end_leftovers;
pub use local::run;
pub use process_tree::prepare_process;
pub(crate) use process_tree::{mark_helpers, signal_helpers};

/// The environment variable that carries [`ProcessSpec::mark`] into every process of a trial.
pub const MARK_VARIABLE: &str = "FBISECT_MARK";

/// A command to run as a process tree of its own.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// The program as typed. With a slash it is relative to `cwd`, without one it is looked up on
    /// the `PATH` that the command itself will see.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs. `PWD` is set to it.
    pub cwd: PathBuf,
    /// Changes to our own environment, in order; `None` removes a variable.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// The file for its standard output.
    pub stdout: PathBuf,
    /// The file for its standard error; may be the same as `stdout`.
    pub stderr: PathBuf,
    /// What becomes of the two files.
    pub output: OutputTo,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// How long its process group has to end after SIGTERM, before SIGKILL.
    pub grace: Duration,
    /// Bytes that each output file may keep. While the command runs, a file may for a moment be
    /// larger by what is written in one tick (200 ms, 20 ms while it grows fast); afterwards it is
    /// larger by 4 KiB at most. On a file system that can punch holes, no byte of the kept part is
    /// ever lost; elsewhere, bytes written in the microseconds of a cut can be.
    pub output_limit: u64,
    /// What tells this tree's processes from all others, in [`MARK_VARIABLE`]: unique among the
    /// commands that run at once, and beginning with the session's name.
    pub mark: String,
}

/// Where a command's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputTo {
    /// To the two files, which are emptied first.
    #[default]
    NewFiles,
    /// To the two files, after what they hold.
    Append,
    /// To our own standard output and error; the files are not touched, no limit applies.
    Ours,
}

/// How a command ended. Matches are written without `_`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    /// By itself, with this exit status (0 to 255).
    Exited {
        /// The exit status.
        code: i32,
    },
    /// By a signal that was not ours.
    Signalled {
        /// Its number.
        signal: i32,
    },
    /// It ran past [`ProcessSpec::timeout`] and was ended.
    TimedOut,
    /// We were told to stop and ended it, or did not start it at all.
    Stopped,
    /// It could not be started, for a reason of its own.
    SpawnFailed {
        /// 127 where a shell would say "not found", 126 where it would say "cannot execute".
        code: i32,
        /// What is wrong, with the path.
        error: String,
    },
    /// The machine failed, not the command: no log file, no process to be had, a process stuck in
    /// the kernel.
    Faulted {
        /// What happened.
        error: String,
    },
}

/// A command that has ended, with everything it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How.
    pub end: ProcessEnd,
    /// From its start until the first process was gone; what it cost to end the others is not in.
    pub wall: Duration,
    /// Processes that outlived the first one and were ended.
    pub swept: usize,
    /// Processes that even SIGKILL did not end within 5 s: they are stuck in the kernel, as on a
    /// dead file system or in a hung GPU driver.
    pub stuck: Vec<u32>,
}

/// What the session wants of a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Stop {
    /// Go on.
    #[default]
    Run,
    /// End: SIGTERM, the grace period, SIGKILL.
    Gently,
    /// End at once: SIGKILL.
    Now,
}
