//! Opening a session: all that happens before the first trial.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::reopen::clear_abandoned;
use super::slots;
use super::watched::watch;
use crate::axes::commits::{History, HistoryError, Repo, Resolved};
use crate::error::{Error, Exit, Result};
use crate::journal::{Event, Journal, SessionFiles, State, StoreError};
use crate::model::{Plan, SessionId};
use crate::search::bisect::{Bisect, Ends, Policy};
use crate::trials::run::TrialRules;
use crate::trials::slot::Slot;
use crate::trials::workspace::{
    PinSnapshot, WorkspaceRules, check_links, check_patch, files_named_by,
};

/// A session that can be driven.
#[derive(Debug)]
pub struct Opened {
    /// The repository.
    pub repo: Repo,
    /// The commits between the ends.
    pub history: History,
    /// The search, told nothing yet.
    pub search: Bisect,
    /// The journal, locked.
    pub journal: Journal,
    /// What it says so far.
    pub state: State,
    /// Where its files lie.
    pub files: SessionFiles,
    /// What every trial has in common.
    pub rules: Arc<TrialRules>,
    /// Where trials run; none in a session that is over.
    pub slots: Vec<Option<Slot>>,
    /// Why the visible GPUs are not divided among the slots.
    pub slots_warning: Option<String>,
}

/// What a new session is made of: a plan whose files have not been looked at yet.
#[derive(Debug)]
pub struct Request {
    /// The plan; `command.argv` as typed, `pins.files` those given with `--pin`.
    pub plan: Plan,
    /// The directory that the command's words are relative to.
    pub cwd: PathBuf,
    /// Leave each commit its own version of the files that the command names.
    pub unpinned: bool,
}

/// Opens a new session: reads the history, copies what is pinned, writes the first event.
///
/// # Errors
/// For a range without candidates (exit status 6) and everything else that makes the request
/// impossible. Nothing is left behind then.
pub fn open(repo: Repo, request: Request) -> Result<Opened> {
    let Request {
        mut plan,
        cwd,
        unpinned,
    } = request;
    let history = load(&repo, &plan)?;
    check_links(repo.root(), &plan.pins.links).map_err(|e| Error::usage(e.to_string()))?;
    let named = files_named_by(&plan.command.argv, &cwd, repo.root(), &plan.pins.links)
        .map_err(|e| Error::usage(e.to_string()))?;
    let (slots, slots_warning) = slots::make(plan.jobs)?;
    clear_abandoned(&repo);
    let session = session_id(repo.root());
    let files = SessionFiles::new(repo.root(), session.clone());
    let mut journal = Journal::create(&files).map_err(|e| {
        Error::failed("the session cannot be written down")
            .caused_by(e)
            .hint("fbisect keeps its journal in .fbisect at the top of the checkout, which must be writable")
    })?;
    let opened = (|| {
        if !unpinned {
            for pin in &named.pins {
                if !plan.pins.files.contains(pin) {
                    plan.pins.files.push(pin.clone());
                }
            }
        }
        let pins = PinSnapshot::take(repo.root(), &plan.pins.files, &files.pins())
            .map_err(|e| Error::usage(e.to_string()))?;
        let watched = watch(&files, &plan, &named.argv)?;
        if let Some(patch) = &plan.patch {
            fs::write(files.patch(), patch).map_err(|e| cannot_write(&files.patch(), e))?;
            check_patch(&files.patch()).map_err(|e| not_a_patch(&e.detail))?;
        }
        let event = Event::Opened {
            version: crate::journal::event::VERSION,
            session: session.clone(),
            at: now(),
            fbisect: env!("CARGO_PKG_VERSION").to_owned(),
            plan: Box::new(plan.clone()),
            argv: named.argv.clone(),
            watched,
            candidates: history.candidates(),
        };
        journal.begin(&files, &event).map_err(unusable)?;
        let state = State::open(&event).map_err(|e| Error::failed(e.to_string()))?;
        Ok((state, rules(&repo, &plan, named.argv, pins, &files)))
    })();
    match opened {
        Ok((state, rules)) => Ok(Opened {
            search: search(&history, &plan),
            rules: Arc::new(rules),
            repo,
            history,
            journal,
            state,
            files,
            slots,
            slots_warning,
        }),
        Err(e) => {
            // A session that never began is no session.
            let _ = fs::remove_dir_all(files.folder());
            Err(e)
        }
    }
}

/// Reads the history that a plan speaks of.
///
/// # Errors
/// As [`History::load`], with the exit status that each has.
pub fn load(repo: &Repo, plan: &Plan) -> Result<History> {
    let ends = Resolved {
        good: plan.good.clone(),
        bad: plan.bad.clone(),
    };
    History::load(repo, &ends, plan.first_parent, &plan.paths, plan.fixed)
        .map_err(|e| history_error(&e))
}

/// A history error as the program ends with it.
pub fn history_error(e: &HistoryError) -> Error {
    let exit = if e.is_empty_range() {
        Exit::EmptyRange
    } else {
        Exit::Usage
    };
    let hint = e.hint();
    let error = Error::with_exit(exit, e.to_string());
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// The search over a history.
pub(super) fn search(history: &History, plan: &Plan) -> Bisect {
    Bisect::new(
        history.graph.clone(),
        Ends {
            bad: history.bad,
            goods: history.goods.clone(),
            merge_bases: history.merge_bases.clone(),
        },
        Policy {
            deterministic: plan.deterministic,
        },
    )
}

/// What the trials of a plan have in common; the command's words come from [`files_named_by`].
pub fn rules(
    repo: &Repo,
    plan: &Plan,
    argv: Vec<String>,
    pins: PinSnapshot,
    files: &SessionFiles,
) -> TrialRules {
    TrialRules {
        plan: plan.clone(),
        argv,
        workspaces: Arc::new(WorkspaceRules {
            repository_root: repo.root().to_owned(),
            common_dir: repo.common_dir().to_owned(),
            base_dir: plan.workspace_dir.clone(),
            session: files.session().to_string(),
            clean: plan.clean,
            submodules: plan.submodules,
            pins,
            links: plan.pins.links.clone(),
            patch: plan.patch.is_some().then(|| files.patch()),
        }),
        session: files.session().to_string(),
    }
}

/// Now, in UTC, to the second: RFC 3339.
pub(super) fn now() -> String {
    let second = Timestamp::now().as_second();
    Timestamp::from_second(second)
        .unwrap_or_default()
        .to_string()
}

pub(super) fn unusable(e: StoreError) -> Error {
    let hint = match &e {
        StoreError::Locked { session, .. } => {
            format!("`fbisect status --follow {session}` shows what it does")
        }
        StoreError::Version { .. } => {
            "go on with that version of fbisect, or start a new search".to_owned()
        }
        StoreError::Line { .. } | StoreError::Empty { .. } => {
            "the journal is damaged: start a new search, or cut it before that line".to_owned()
        }
        StoreError::Io { .. } => "check the permissions and the room on that disk".to_owned(),
    };
    let locked = matches!(e, StoreError::Locked { .. });
    let error = Error::failed(e.to_string()).hint(hint);
    match std::error::Error::source(&e) {
        Some(_) if !locked => Error::failed("the session's journal cannot be used").caused_by(e),
        _ => error,
    }
}

fn not_a_patch(said: &str) -> Error {
    let said = said.trim_start_matches("error: ");
    // git goes on about an option of its own.
    let said = said.split(" (allow with").next().unwrap_or(said);
    Error::usage(format!("--apply: git cannot read the patch: {said}"))
        .hint("`git diff > fix.patch` writes one of your edits")
}

pub(super) fn cannot_write(path: &Path, e: std::io::Error) -> Error {
    Error::failed(format!("{} cannot be written", path.display())).caused_by(e)
}

/// A name that sorts by time, and that no session of the checkout has.
fn session_id(root: &Path) -> SessionId {
    let now = Timestamp::now();
    let stamp = now.strftime("%Y%m%d-%H%M%S");
    let digest = Sha256::digest(format!(
        "{}:{}:{}",
        now.as_nanosecond(),
        std::process::id(),
        root.display()
    ));
    // The milliseconds come first, so that two sessions of one second sort by time too.
    let millisecond = now.subsec_millisecond();
    SessionId(format!(
        "{stamp}-{millisecond:03}{:02x}{:02x}",
        digest[0], digest[1]
    ))
}
