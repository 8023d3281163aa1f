//! `fbisect resume`: goes on with a session.

use super::args::ResumeArgs;
use super::commits::hunt;
use super::inspect::choose;
use crate::axes::commits::Repo;
use crate::error::Result;
use crate::reports::console;
use crate::session::{self, GoingOn};

/// Runs the subcommand.
///
/// # Errors
/// When there is no such session, it is in use, or its world has changed.
pub fn run(args: &ResumeArgs) -> Result<u8> {
    let repo = Repo::discover(&super::here()?).map_err(|e| session::history_error(&e))?;
    let id = choose(&repo, args.session.as_deref())?;
    let going_on = GoingOn {
        as_recorded: args.as_recorded,
        max_trials: args.max_trials,
        max_seconds: args.max_time.map(|t| t.as_secs_f64()),
    };
    let opened = session::reopen(repo, id, &going_on)?;
    let state = &opened.state;
    if state.conclusion.is_some() {
        console::say(&format!(
            "session {} is over; its report again:",
            state.session
        ));
    } else {
        console::say(&format!(
            "session {}: {} finished, going on",
            state.session,
            console::count(state.trials.len(), "trial")
        ));
    }
    hunt(opened, args.json)
}
