//! What can be typed. The doc comments are the help text.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;

use crate::model::{Clean, OnTimeout};

/// Finds the first commit that broke a training run.
///
/// Runs a repro on commits between a good and a bad one, each in a worktree outside your
/// checkout, and names the first commit that flips it from good to bad. Your checkout, index,
/// branches and stash are not touched.
#[derive(Debug, Parser)]
#[command(name = "fbisect", version, max_term_width = 100)]
#[command(after_help = "Try it: `fbisect demo` makes a throw-away repository and finds its bug.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub sub: Sub,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Sub {
    /// Find the first bad commit between a good and a bad one
    ///
    /// Tests both ends, halves the history between them (merges included) with as few trials as
    /// it can, tests the culprit and its parents again in fresh worktrees, and reports.
    Commits(Box<CommitsArgs>),
    /// Go on with a session that was interrupted or killed
    ///
    /// No finished trial runs again. Refuses when a revision or a file that the command names has
    /// changed since the session was opened, and says what changed.
    Resume(ResumeArgs),
    /// Show how far a session is
    Status(StatusArgs),
    /// List a session's trials, or print them for `git bisect replay`
    Log(LogArgs),
    /// Run one trial again: same commit, same seed, output on the terminal
    ///
    /// Ends with the repro's own exit status. The session is not changed.
    Rerun(RerunArgs),
    /// Make a throw-away repository with a planted bug and find it
    ///
    /// A small training loop in plain Python, 150 commits and more, from one of which the loss
    /// goes NaN. Needs git and python3.
    Demo(DemoArgs),
}

const COMMITS_USAGE: &str = "fbisect commits GOOD..BAD [OPTIONS] -- COMMAND...";

const COMMITS_AFTER: &str = "\
COMMAND ends, as for `git bisect run`, with 0: good, 125: untestable, else: bad.
Exits 0: found, 3: bad end passed, 4: good end failed, 5: no culprit, 6: empty.";

const COMMITS_AFTER_LONG: &str = "\
What COMMAND gets:
  It runs without a shell, in a worktree of the commit, in a process group of its own.
  {seed}, {commit}, {trial_dir} and {workspace} in its words are replaced. It sees
  FBISECT_SEED, FBISECT_TRIAL, FBISECT_COMMIT, FBISECT_SLOT, FBISECT_TRIAL_DIR (kept),
  FBISECT_WORKSPACE, and its own TMPDIR, MASTER_PORT and empty compile caches.

What its end means:
  0 good; 125 cannot be tested; 126 and 127 (cannot be executed or found) cannot be
  tested, unless the bad end gives them too; any other status or a signal is bad, if it
  is the same failure as the bad end's: its class (out of memory, NaN, hang, crash,
  import error, ...) and exception type are compared. A failing --build or --setup
  means that the commit cannot be tested.

How fbisect ends:
  0 found   1 fbisect failed   2 usage   3 the bad end did not fail   4 the good end
  failed   5 no culprit is claimed (the reason and the suspects are in the report)
  6 nothing between the ends   130 interrupted (`fbisect resume` goes on)

Defaults for most options can stand in a file fbisect.toml at the top of the checkout.";

/// What `fbisect commits` takes.
#[derive(Debug, Args)]
#[command(override_usage = COMMITS_USAGE, after_help = COMMITS_AFTER, after_long_help = COMMITS_AFTER_LONG)]
pub struct CommitsArgs {
    /// The commits to search: the good (old) end, two dots, the bad (new) end
    ///
    /// An empty side means HEAD. Revisions as git knows them: hashes, branches, tags, HEAD~50.
    #[arg(value_name = "GOOD..BAD", hide_short_help = true)]
    pub range: Option<String>,

    /// A good commit (may be repeated)
    #[arg(
        long,
        value_name = "REV",
        help_heading = "History",
        allow_hyphen_values = true
    )]
    pub good: Vec<String>,
    /// The bad commit [default: HEAD]
    #[arg(
        long,
        value_name = "REV",
        help_heading = "History",
        allow_hyphen_values = true
    )]
    pub bad: Option<String>,
    /// Follow only first parents: name the guilty merge
    #[arg(long, help_heading = "History")]
    pub first_parent: bool,
    /// Only commits that touch PATH (may be repeated)
    ///
    /// A file or a folder, relative to where you stand.
    #[arg(long, value_name = "PATH", help_heading = "History")]
    pub path: Vec<PathBuf>,
    /// Find the fix: the old end is bad, the new one good
    ///
    /// Write OLD..NEW, or `--bad OLD --good NEW`.
    #[arg(long, help_heading = "History")]
    pub fixed: bool,

    /// Build each checkout (shell); failure: untestable
    ///
    /// Runs once per checkout, not once per trial.
    #[arg(long, value_name = "CMD", help_heading = "Checkouts")]
    pub build: Option<String>,
    /// Install what a commit needs, before the build (shell)
    #[arg(long, value_name = "CMD", help_heading = "Checkouts")]
    pub setup: Option<String>,
    /// Run --setup again only when these files differ
    ///
    /// Without it, --setup runs at every checkout.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Checkouts", hide_short_help = true)]
    pub setup_key: Vec<PathBuf>,
    /// Lay a patch on every commit where it applies and is not there yet
    #[arg(
        long,
        value_name = "PATCH",
        help_heading = "Checkouts",
        hide_short_help = true
    )]
    pub apply: Option<PathBuf>,
    /// Keep FILE as it is today (may be repeated)
    ///
    /// Files that COMMAND names are pinned by themselves.
    #[arg(long, value_name = "FILE", help_heading = "Checkouts")]
    pub pin: Vec<PathBuf>,
    /// Leave each commit its own version of the files that COMMAND names
    #[arg(long, help_heading = "Checkouts", hide_short_help = true)]
    pub unpinned: bool,
    /// Show untracked PATH (data, weights) in each worktree
    ///
    /// As a link, where the worktree has nothing.
    #[arg(long, value_name = "PATH", help_heading = "Checkouts")]
    pub link: Vec<PathBuf>,
    /// What to remove between commits [default: untracked]
    ///
    /// none: nothing. untracked: files that git does not know and does not ignore, so that build
    /// folders stay and builds are incremental. all: ignored ones too.
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        help_heading = "Checkouts",
        hide_short_help = true
    )]
    pub clean: Option<CleanArg>,
    /// Update submodules at each checkout
    #[arg(long, help_heading = "Checkouts", hide_short_help = true)]
    pub submodules: bool,
    /// Where worktrees go [default: the user's cache folder]
    ///
    /// Must lie outside the checkout, on a disk with room for --jobs + 1 worktrees.
    #[arg(
        long,
        value_name = "DIR",
        env = "FBISECT_WORKSPACE_DIR",
        help_heading = "Checkouts",
        hide_short_help = true
    )]
    pub workspace_dir: Option<PathBuf>,
    /// Go on although the command's Python has an editable install of your checkout
    ///
    /// Right when the command itself puts the worktree first, with PYTHONPATH for example.
    #[arg(long, help_heading = "Checkouts", hide_short_help = true)]
    pub allow_editable: bool,

    /// Trials at a time, each on GPUs of its own [default: 1]
    #[arg(short, long, value_name = "N", help_heading = "Trials", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Stop a run after this long (90s, 10m, 1h30m)
    ///
    /// A bare number is seconds.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Trials")]
    pub timeout: Option<Duration>,
    /// What a timeout means: bad (a hang) or skip [default: bad]
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        help_heading = "Trials",
        hide_short_help = true
    )]
    pub on_timeout: Option<OnTimeoutArg>,
    /// Time between TERM and KILL when a run is stopped [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Trials", hide_short_help = true)]
    pub grace: Option<Duration>,
    /// Count failures that differ from the bad end's too
    #[arg(long, help_heading = "Trials")]
    pub any_failure: bool,
    /// Compile caches of a trial: cold (empty ones) or own (yours) [default: cold]
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        help_heading = "Trials",
        hide_short_help = true
    )]
    pub cache: Option<CacheArg>,
    /// MiB that are kept of each trial's stdout and of its stderr [default: 64]
    #[arg(long, value_name = "MIB", help_heading = "Trials", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub output_limit: Option<u32>,
    /// Derive the trials' seeds from this number [default: random, printed]
    #[arg(
        long,
        value_name = "N",
        help_heading = "Trials",
        hide_short_help = true
    )]
    pub seed: Option<u64>,

    /// The repro never flakes: test nothing twice
    ///
    /// ceil(log2 N) + 2 trials, no confirmation.
    #[arg(long, help_heading = "Search")]
    pub deterministic: bool,
    /// Stop without an answer after N trials
    #[arg(long, value_name = "N", help_heading = "Search", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_trials: Option<u32>,
    /// Stop without an answer after this long
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Search", hide_short_help = true)]
    pub max_time: Option<Duration>,
    /// Print one JSON document on standard output
    #[arg(long, help_heading = "Search")]
    pub json: bool,
    /// Do not read fbisect.toml
    #[arg(long, help_heading = "Search", hide_short_help = true)]
    pub no_config: bool,

    /// The repro and its arguments
    #[arg(last = true, value_name = "COMMAND", hide_short_help = true)]
    pub command: Vec<String>,
    /// Whether COMMAND came from `fbisect.toml`, so that its paths are relative to the top.
    #[arg(skip)]
    pub command_from_file: bool,
}

/// What `fbisect resume` takes.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The session [default: the newest]
    pub session: Option<String>,
    /// Go on with the commits and files that were recorded, although they have changed since
    #[arg(long)]
    pub as_recorded: bool,
    /// A new limit of trials, those that have ended included
    ///
    /// A session that its budget ended goes on with a new one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_trials: Option<u32>,
    /// A new limit of time at work, what has passed included
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_time: Option<Duration>,
    /// Print one JSON document on standard output
    #[arg(long)]
    pub json: bool,
}

/// What `fbisect status` takes.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The session [default: the newest]
    pub session: Option<String>,
    /// Keep showing trials until the session ends
    #[arg(short, long)]
    pub follow: bool,
}

/// What `fbisect log` takes.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// The session [default: the newest]
    pub session: Option<String>,
    /// Print a log that `git bisect replay` takes
    #[arg(long)]
    pub git: bool,
}

/// What `fbisect rerun` takes.
#[derive(Debug, Args)]
pub struct RerunArgs {
    /// The trial's number, as the report and `fbisect log` show it
    pub trial: u32,
    /// The session [default: the newest]
    #[arg(long)]
    pub session: Option<String>,
}

/// Make a throw-away repository with a planted bug and find it
///
/// A small training loop in plain Python, 150 commits and more, from one of which the loss goes
/// NaN. Needs git and python3.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the repository, in DIR if given [default: a temporary folder, removed]
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    pub keep: Option<Option<PathBuf>>,
    /// Trials at a time
    #[arg(short, long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
}

/// See [`Clean`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CleanArg {
    /// Nothing is removed
    None,
    /// Untracked files that git does not ignore
    Untracked,
    /// Ignored files too
    All,
}

impl From<CleanArg> for Clean {
    fn from(arg: CleanArg) -> Self {
        match arg {
            CleanArg::None => Self::None,
            CleanArg::Untracked => Self::Untracked,
            CleanArg::All => Self::All,
        }
    }
}

/// See [`OnTimeout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnTimeoutArg {
    /// A failure: a hang
    Bad,
    /// Not testable
    Skip,
}

impl From<OnTimeoutArg> for OnTimeout {
    fn from(arg: OnTimeoutArg) -> Self {
        match arg {
            OnTimeoutArg::Bad => Self::Bad,
            OnTimeoutArg::Skip => Self::Skip,
        }
    }
}

/// Which compile caches a trial sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheArg {
    /// Empty ones of its own
    Cold,
    /// The user's
    Own,
}

/// Reads `90s`, `10m`, `1h30m`, or a bare number of seconds.
///
/// # Errors
/// In words, when it is none of these or not positive.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = match text.trim().parse::<f64>() {
        Ok(seconds) => SignedDuration::try_from_secs_f64(seconds).map_err(|e| e.to_string()),
        Err(_) => text.parse::<SignedDuration>().map_err(|e| e.to_string()),
    };
    match parsed.map(Duration::try_from) {
        Ok(Ok(duration)) if !duration.is_zero() => Ok(duration),
        Ok(_) => Err("expected a time above zero, such as 90s, 10m or 1h30m".to_owned()),
        Err(_) => Err("expected a time such as 90s, 10m or 1h30m".to_owned()),
    }
}
