//! `fbisect rerun`: one trial again, before the user's eyes.

use std::sync::Arc;

use super::args::RerunArgs;
use super::inspect::choose;
use crate::axes::commits::Repo;
use crate::error::{Error, Result};
use crate::journal::{self, SessionFiles};
use crate::model::{AttemptId, TrialId, TrialSpec};
use crate::reports::console;
use crate::session;
use crate::trials::rerun::{Rerun, rerun};
use crate::trials::workspace::PinSnapshot;

/// Runs the subcommand.
///
/// # Errors
/// When there is no such trial, or its commit cannot be made ready.
pub fn run(args: &RerunArgs) -> Result<u8> {
    let repo = Repo::discover(&super::here()?).map_err(|e| session::history_error(&e))?;
    let files = SessionFiles::new(repo.root(), choose(&repo, args.session.as_deref())?);
    let state = journal::read(&files.journal())
        .map_err(|e| Error::failed("the session's journal cannot be used").caused_by(e))?;
    let trial = TrialId(args.trial);
    let Some(found) = state.trials.get(&trial) else {
        return Err(Error::usage(format!(
            "session {} has no finished trial {trial}",
            state.session
        ))
        .hint("`fbisect log` lists them"));
    };
    let plan = &state.plan;
    let pins = PinSnapshot::open(&files.pins(), &plan.pins.files).map_err(|e| {
        Error::failed("the session's copies of pinned files cannot be read").caused_by(e)
    })?;
    let mut rules = session::rules(&repo, plan, state.argv.clone(), pins, &files);
    // Worktrees and marks of its own: the session itself may be running.
    let name = format!("{}-rerun-{}", state.session, std::process::id());
    rules.session.clone_from(&name);
    let mut workspaces = (*rules.workspaces).clone();
    workspaces.session = name;
    rules.workspaces = Arc::new(workspaces);
    let spec = TrialSpec {
        slot: 0,
        attempt: AttemptId(0),
        ..found.record.spec.clone()
    };
    console::say(&format!(
        "trial {trial} again: commit {}, seed {}",
        spec.commit.short(),
        spec.seed
    ));
    crate::executors::prepare_process();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::failed("the runtime cannot be started").caused_by(e))?;
    let show = |argv: &[String]| console::say(&format!("+ {}", shell_words::join(argv)));
    match runtime.block_on(rerun(Arc::new(rules), spec, show)) {
        Ok(Rerun::Exited(code)) => Ok(u8::try_from(code).unwrap_or(1)),
        Ok(Rerun::Signalled(signal)) => {
            console::say(&format!("ended by signal {signal}"));
            Ok(u8::try_from(128 + signal).unwrap_or(1))
        }
        Ok(Rerun::NotPrepared { why, said }) => {
            for line in said.lines() {
                console::say(&console::clean(line));
            }
            console::say(&format!(
                "the commit cannot be made ready: {}",
                console::clean(&why)
            ));
            Ok(125)
        }
        Err(why) => Err(Error::failed(format!(
            "the trial cannot be run again: {why}"
        ))),
    }
}
