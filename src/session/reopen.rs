//! Taking a session up again, and clearing what a killed one left.

use std::sync::Arc;
use std::time::Duration;

use super::open::{Opened, load, now, rules, search, unusable};
use super::slots;
use super::watched::refuse_changes;
use crate::axes::commits::Repo;
use crate::error::{Error, Result};
use crate::executors;
use crate::journal::{self, Event, Journal, SessionFiles, State, Sync};
use crate::model::{Conclusion, SessionId};
use crate::trials::workspace::{self, PinSnapshot};

/// How long processes that a killed session left get between TERM and KILL.
const LEFTOVER_GRACE: Duration = Duration::from_secs(5);

/// How a session is to go on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GoingOn {
    /// With the commits and files that were recorded, whatever has changed since.
    pub as_recorded: bool,
    /// A new limit of trials, those that have ended included.
    pub max_trials: Option<u32>,
    /// A new limit of seconds at work, those that have passed included.
    pub max_seconds: Option<f64>,
}

impl GoingOn {
    fn has_budget(&self) -> bool {
        self.max_trials.is_some() || self.max_seconds.is_some()
    }
}

/// Takes a session up again: folds the journal, ends what a killed process left, and refuses when
/// the world that it was opened in has changed and there is more to do.
///
/// # Errors
/// When the session is in use, cannot be read, or (without [`GoingOn::as_recorded`]) when a revision or a
/// file that the command names has changed.
pub fn reopen(repo: Repo, session: SessionId, going_on: &GoingOn) -> Result<Opened> {
    let files = SessionFiles::new(repo.root(), session);
    let (mut journal, state) = Journal::resume(&files).map_err(unusable)?;
    let plan = state.plan.clone();
    // First of all: a refusal must not leave them on the user's GPUs.
    end_processes(&state);
    remove_worktrees(&repo, &state)?;
    let spent = matches!(state.conclusion, Some(Conclusion::BudgetSpent { .. }));
    let is_over = state.conclusion.is_some() && !(spent && going_on.has_budget());
    if !is_over {
        refuse_changes(&repo, &state, &files, going_on.as_recorded)?;
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
        let event = Event::Resumed {
            at: now(),
            max_trials: going_on.max_trials,
            max_seconds: going_on.max_seconds,
        };
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

/// Clears what killed sessions of this checkout left that nobody has resumed: a new search should
/// neither share the GPUs with their trials nor find the disk full of their worktrees. They can be
/// resumed all the same. What cannot be read or cleared is left to their own resume, which says why.
pub(super) fn clear_abandoned(repo: &Repo) {
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
