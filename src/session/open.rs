//! Opening a session, and taking one up again: all that happens before the first trial.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use similar::TextDiff;

use super::slots;
use crate::axes::commits::{self, History, HistoryError, Repo, Resolved};
use crate::error::{Error, Exit, Result};
use crate::executors;
use crate::journal::{self, Event, Journal, SessionFiles, State, StoreError, Sync, WatchedFile};
use crate::model::{Plan, SessionId, hex};
use crate::search::bisect::{Bisect, Ends, Policy};
use crate::trials::run::{Slot, TrialRules};
use crate::trials::workspace::{
    self, PinSnapshot, WorkspaceRules, check_links, check_patch, files_named_by,
};

/// How long processes that a killed session left get between TERM and KILL.
const LEFTOVER_GRACE: Duration = Duration::from_secs(5);
/// Bytes of the largest file outside the tree that is taken for a script.
const MAX_SCRIPT: u64 = 1 << 20;
/// Lines of a changed file's difference that a refusal shows.
const SHOWN_DIFF: usize = 30;

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

/// Takes a session up again: folds the journal, ends what a killed process left, and refuses when
/// the world that it was opened in has changed and there is more to do.
///
/// # Errors
/// When the session is in use, cannot be read, or (without `as_recorded`) when a revision or a
/// file that the command names has changed.
pub fn reopen(repo: Repo, session: SessionId, as_recorded: bool) -> Result<Opened> {
    let files = SessionFiles::new(repo.root(), session);
    let (mut journal, state) = Journal::resume(&files).map_err(unusable)?;
    let plan = state.plan.clone();
    // First of all: a refusal must not leave them on the user's GPUs.
    end_processes(&state);
    remove_worktrees(&repo, &state)?;
    let is_over = state.conclusion.is_some();
    if !is_over {
        refuse_changes(&repo, &state, &files, as_recorded)?;
    }
    let history = load(&repo, &plan)?;
    let pins = PinSnapshot::open(&files.pins(), &plan.pins.files).map_err(|e| {
        Error::failed("the session's copies of pinned files cannot be read").caused_by(e)
    })?;
    let (slots, slots_warning) = if is_over {
        (Vec::new(), None)
    } else {
        slots::make(plan.jobs)?
    };
    let mut state = state;
    if !is_over {
        let event = Event::Resumed { at: now() };
        journal
            .append(std::slice::from_ref(&event), Sync::No)
            .map_err(unusable)?;
        state
            .apply(&event)
            .map_err(|e| Error::failed(e.to_string()))?;
    }
    Ok(Opened {
        search: search(&history, &plan),
        rules: Arc::new(rules(&repo, &plan, state.argv.clone(), pins, &files)),
        repo,
        history,
        journal,
        state,
        files,
        slots,
        slots_warning,
    })
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

fn unusable(e: StoreError) -> Error {
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

fn cannot_write(path: &Path, e: std::io::Error) -> Error {
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

/// Remembers the files that make the repro what it is: those that are pinned, and scripts outside
/// the tree that the command's words (as [`files_named_by`] wrote them) name. A resume must run the
/// same repro.
fn watch(files: &SessionFiles, plan: &Plan, argv: &[String]) -> Result<Vec<WatchedFile>> {
    let root = plan.repository.as_path();
    let mut found: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for path in plan.pins.files.iter().map(|pin| root.join(pin)) {
        let content = fs::read(&path)
            .map_err(|e| Error::usage(format!("{} cannot be read", path.display())).caused_by(e))?;
        found.push((path, content));
    }
    let outside = argv
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && !path.starts_with(root));
    found.extend(outside.filter_map(|path| Some((path.clone(), script(&path)?))));
    let mut watched: Vec<WatchedFile> = Vec::new();
    for (path, content) in found {
        if watched.iter().any(|w| w.path == path) {
            continue;
        }
        let sha256 = digest(&content);
        let copy = Path::new("named").join(&sha256);
        let target = files.folder().join(&copy);
        fs::create_dir_all(files.folder().join("named"))
            .and_then(|()| fs::write(&target, &content))
            .map_err(|e| cannot_write(&target, e))?;
        watched.push(WatchedFile { path, sha256, copy });
    }
    Ok(watched)
}

/// A file's content, if it is a script: interpreters, programs and data are another matter.
fn script(path: &Path) -> Option<Vec<u8>> {
    let meta = fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_SCRIPT {
        return None;
    }
    fs::read(path).ok().filter(|content| !content.contains(&0))
}

fn digest(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

fn refuse_changes(
    repo: &Repo,
    state: &State,
    files: &SessionFiles,
    as_recorded: bool,
) -> Result<()> {
    let plan = &state.plan;
    let recorded = Resolved {
        good: plan.good.clone(),
        bad: plan.bad.clone(),
    };
    let mut changes = Vec::new();
    // Trials run what lies outside the checkout where it lies: these cannot go on as recorded.
    let mut outside = Vec::new();
    let then = plan.good.iter().chain(std::iter::once(&plan.bad));
    for ((name, commit), (_, today)) in then.zip(commits::revisions_now(repo, &recorded)) {
        match today {
            Some(today) if today == *commit => {}
            Some(today) => changes.push(format!(
                "{name} was {}, is {}",
                commit.short(),
                today.short()
            )),
            None => changes.push(format!("{name} was {}, is gone", commit.short())),
        }
    }
    for file in &state.watched {
        let copy = files.folder().join(&file.copy);
        let change = match fs::read(&file.path) {
            Ok(now) if digest(&now) == file.sha256 => continue,
            Ok(now) => {
                let before = fs::read(&copy).unwrap_or_default();
                format!(
                    "{} has changed:\n{}",
                    file.path.display(),
                    difference(&before, &now)
                )
            }
            Err(e) => format!("{} cannot be read: {e}", file.path.display()),
        };
        if !file.path.starts_with(&plan.repository) {
            outside.push((change.clone(), copy, &file.path));
        }
        changes.push(change);
    }
    if as_recorded && !outside.is_empty() {
        let told: Vec<_> = outside.iter().map(|(change, ..)| change.as_str()).collect();
        let error = Error::usage(format!(
            "since session {} was opened:\n  {}\n  Outside the checkout nothing is pinned, so trials would run it as it is today",
            state.session,
            told.join("\n  ")
        ));
        return Err(outside.iter().fold(error, |error, (_, copy, path)| {
            let words = ["cp", &copy.to_string_lossy(), &path.to_string_lossy()].map(str::to_owned);
            error.hint(format!("put it back: {}", shell_words::join(words)))
        }));
    }
    if changes.is_empty() || as_recorded {
        return Ok(());
    }
    Err(Error::usage(format!(
        "since session {} was opened:\n  {}",
        state.session,
        changes.join("\n  ")
    ))
    .hint("put it back, or start a new search")
    .hint("`fbisect resume --as-recorded` goes on with the commits and pinned files as they were"))
}

fn difference(before: &[u8], now: &[u8]) -> String {
    let (before, now) = (
        String::from_utf8_lossy(before),
        String::from_utf8_lossy(now),
    );
    let diff = TextDiff::from_lines(before.as_ref(), now.as_ref());
    let text = diff.unified_diff().context_radius(1).to_string();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| format!("    {}", crate::reports::console::clean(line)))
        .collect();
    if lines.len() > SHOWN_DIFF {
        lines.truncate(SHOWN_DIFF);
        lines.push("    ...".to_owned());
    }
    lines.join("\n")
}

/// Clears what killed sessions of this checkout left that nobody has resumed: a new search should
/// neither share the GPUs with their trials nor find the disk full of their worktrees. They can be
/// resumed all the same. What cannot be read or cleared is left to their own resume, which says why.
fn clear_abandoned(repo: &Repo) {
    for session in journal::sessions(repo.root()).unwrap_or_default() {
        let files = SessionFiles::new(repo.root(), session);
        // The result is written last, after everything has been removed.
        if files.result().exists() || journal::in_use(&files) {
            continue;
        }
        if let Ok(Some(_held)) = journal::hold(&files)
            && let Ok(state) = journal::read(&files.journal())
        {
            // Asking the process table for each of many old sessions would be slow.
            if !state.running.is_empty() {
                end_processes(&state);
            }
            let _ = remove_worktrees(repo, &state);
        }
    }
}

/// Ends the processes that a killed session left.
fn end_processes(state: &State) {
    let recorded: Vec<_> = state
        .running
        .values()
        .flat_map(|t| t.processes.clone())
        .collect();
    executors::end_leftovers(&format!("{}/", state.session), &recorded, LEFTOVER_GRACE);
}

/// Removes the worktrees that a killed session left, once no process of it runs any more.
fn remove_worktrees(repo: &Repo, state: &State) -> Result<()> {
    workspace::remove_leftovers(
        repo.common_dir(),
        &state.plan.workspace_dir,
        &state.session.0,
    )
    .map(drop)
    .map_err(|e| Error::failed("what the killed session left cannot be removed").caused_by(e))
}

/// Paths as they stand in a plan: relative to the checkout's top, whatever they were typed from.
///
/// # Errors
/// For one that lies outside the checkout.
pub fn inside(root: &Path, cwd: &Path, flag: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let top = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    paths
        .iter()
        .map(|path| {
            let full = lexical(&cwd.join(path));
            // The last name is kept as it is: a link is pinned or linked as a link.
            let real = match (full.parent().map(fs::canonicalize), full.file_name()) {
                (Some(Ok(parent)), Some(name)) => parent.join(name),
                _ => full.clone(),
            };
            let relative = real.strip_prefix(&top).or_else(|_| full.strip_prefix(root));
            relative.map(Path::to_path_buf).map_err(|_| {
                Error::usage(format!(
                    "{flag} {}: not inside the checkout {}",
                    path.display(),
                    root.display()
                ))
            })
        })
        .collect()
}

/// `a/./b/../c` as `a/c`, without asking the file system.
fn lexical(path: &Path) -> PathBuf {
    use std::path::Component;
    path.components().fold(PathBuf::new(), |mut out, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
        out
    })
}
