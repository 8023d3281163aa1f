//! `fbisect status` and `fbisect log`: readers of a journal, also while a session runs.

use std::time::Duration;

use super::args::{LogArgs, StatusArgs};
use super::commits::{report, subjects};
use crate::axes::commits::Repo;
use crate::error::{Error, Result};
use crate::journal::{self, SessionFiles, State};
use crate::model::SessionId;
use crate::reports::{console, git_log::git_log, text};
use crate::session;

/// How often a followed journal is read again.
const FOLLOW: Duration = Duration::from_millis(300);

/// The session that a word names: the newest without one; a unique beginning is enough.
///
/// # Errors
/// When there is none, or several begin so.
pub fn choose(repo: &Repo, name: Option<&str>) -> Result<SessionId> {
    let sessions = journal::sessions(repo.root())
        .map_err(|e| Error::failed("the sessions cannot be listed").caused_by(e))?;
    let known: Vec<String> = sessions.iter().map(ToString::to_string).collect();
    let Some(newest) = sessions.last() else {
        return Err(
            Error::usage(format!("no session in {}", repo.root().display()))
                .hint("`fbisect commits GOOD..BAD -- COMMAND` starts one"),
        );
    };
    let Some(name) = name else {
        return Ok(newest.clone());
    };
    let mut found: Vec<SessionId> = sessions
        .into_iter()
        .filter(|s| s.0.starts_with(name))
        .collect();
    if let Some(exact) = found.iter().position(|s| s.0 == name) {
        return Ok(found.swap_remove(exact));
    }
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(Error::usage(format!("several sessions begin with {name}"))),
        (None, _) => Err(Error::usage(format!("no session {name}"))
            .hint(format!("there are: {}", known.join(", ")))),
    }
}

fn open(name: Option<&str>) -> Result<(Repo, SessionFiles, State)> {
    let repo = Repo::discover(&super::here()?).map_err(|e| session::history_error(&e))?;
    let files = SessionFiles::new(repo.root(), choose(&repo, name)?);
    let state = read(&files)?;
    Ok((repo, files, state))
}

fn read(files: &SessionFiles) -> Result<State> {
    journal::read(&files.journal())
        .map_err(|e| Error::failed("the session's journal cannot be used").caused_by(e))
}

/// Runs `fbisect status`.
///
/// # Errors
/// When there is no such session or it cannot be read.
pub fn status(args: &StatusArgs) -> Result<u8> {
    let (repo, files, mut state) = open(args.session.as_deref())?;
    let mut shown = 0;
    if args.follow {
        loop {
            let in_use = journal::in_use(&files);
            state = read(&files)?;
            shown = show_trials(&state, shown);
            if state.conclusion.is_some() || !in_use {
                break;
            }
            std::thread::sleep(FOLLOW);
        }
    }
    if state.conclusion.is_some() {
        console::report(&text::report(&report(&repo, &state)));
    } else {
        console::result(&text::status(
            &state,
            journal::in_use(&files),
            left(&repo, &state)?,
        ));
    }
    Ok(0)
}

/// Suspects and trials left, by telling a search what the journal holds.
fn left(repo: &Repo, state: &State) -> Result<crate::reports::progress::Outlook> {
    let history = session::load(repo, &state.plan)?;
    Ok(session::outlook(state, &history))
}

fn show_trials(state: &State, shown: usize) -> usize {
    for trial in state.finished().skip(shown) {
        console::say(&text::trial_line(state, trial));
    }
    state.trials.len()
}

/// Runs `fbisect log`.
///
/// # Errors
/// When there is no such session or it cannot be read.
pub fn log(args: &LogArgs) -> Result<u8> {
    let (repo, _, state) = open(args.session.as_deref())?;
    let subjects = subjects(&repo, &state);
    if args.git {
        console::result(&git_log(&state, &subjects));
    } else {
        console::result(&text::log(&state, &subjects));
    }
    Ok(0)
}
