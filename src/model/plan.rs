//! What a session was asked to do, with everything resolved that can be resolved before it starts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ids::CommitId;

/// The repro: the words after `--`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// Program and arguments as typed, placeholders not yet replaced.
    pub argv: Vec<String>,
    /// The user's directory relative to the repository's root; the repro runs in its counterpart.
    pub prefix: PathBuf,
}

/// A command that installs what a commit needs, run again only when its key files differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupSpec {
    /// A shell command line.
    pub command: String,
    /// Files, relative to the repository's root, whose content decides whether to run it again.
    /// Empty: it runs at every checkout.
    pub key_files: Vec<PathBuf>,
}

/// What is removed from a worktree when it moves to another commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clean {
    /// Nothing: every file that a trial left stays.
    None,
    /// Untracked files that git does not ignore; ignored ones (build folders) stay.
    #[default]
    Untracked,
    /// Untracked and ignored files: every build starts from nothing.
    All,
}

/// What running past `--timeout` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// A failure, of the class "hang".
    #[default]
    Bad,
    /// No evidence.
    Skip,
}

/// Files of today that are laid over every checkout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pins {
    /// Files relative to the repository's root, copied as they were when the session was opened.
    pub files: Vec<PathBuf>,
    /// Paths relative to the repository's root, linked into each checkout where it has none.
    pub links: Vec<PathBuf>,
}

/// A session's request, resolved. Written once, as the first event of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The repository's root: the top of the user's checkout.
    pub repository: PathBuf,
    /// The revisions of the good ends, as typed, with the commits they named.
    pub good: Vec<(String, CommitId)>,
    /// The revision of the bad end, as typed, with the commit it named.
    pub bad: (String, CommitId),
    /// Follow only first parents.
    pub first_parent: bool,
    /// Only commits that touch one of these paths (relative to the root) are candidates.
    pub paths: Vec<PathBuf>,
    /// The old end is the bad one: look for the commit that fixed it.
    pub fixed: bool,
    /// The repro.
    pub command: CommandSpec,
    /// A shell command line that builds a checkout.
    pub build: Option<String>,
    /// What installs a checkout's dependencies.
    pub setup: Option<SetupSpec>,
    /// A patch laid on every commit where it applies and is not there yet: its content.
    pub patch: Option<String>,
    /// Files of today laid over every checkout.
    pub pins: Pins,
    /// What is cleaned between commits.
    pub clean: Clean,
    /// Update submodules at each checkout.
    pub submodules: bool,
    /// Slots.
    pub jobs: usize,
    /// Seconds a run may take.
    pub timeout_seconds: Option<f64>,
    /// What running out of them means.
    pub on_timeout: OnTimeout,
    /// Trials after which the search stops without an answer.
    pub max_trials: Option<u32>,
    /// Seconds after which it does.
    pub max_seconds: Option<f64>,
    /// What every trial's seed is derived from.
    pub seed: u64,
    /// The repro is known never to flake: no confirmation.
    pub deterministic: bool,
    /// Every failure counts, also one that differs from the bad end's.
    pub any_failure: bool,
    /// The folder under which worktrees go.
    pub workspace_dir: PathBuf,
    /// Go on although the command's Python has an editable install of the user's checkout.
    pub allow_editable: bool,
    /// Give each trial empty compile caches of its own.
    pub cold_caches: bool,
    /// Seconds between TERM and KILL when a run is stopped.
    pub grace_seconds: f64,
    /// Bytes that are kept of each output file.
    pub output_limit: u64,
}
