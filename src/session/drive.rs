//! The loop: fill the free slots with what the search asks, wait for a trial to end, judge it,
//! write it down, tell the search.

mod closing;
mod flights;
mod judging;
mod signals;
mod syncing;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use self::signals::Signals;
use self::syncing::unwritable;
use super::judge;
use super::open::Opened;
use crate::error::{Error, Result};
use crate::executors::{self, Stop};
use crate::journal::{Event, StoreError, Sync};
use crate::model::{Conclusion, PrepareStep, TrialId};
use crate::reports::progress::{Outlook, Progress, Stage};
use crate::search::graph::Node;
use crate::search::{Query, Running, Search as _, SlotState, Step};
use crate::trials::run::{Note, Ran};
use crate::trials::slot::Slot;

/// How often moving lines are drawn again and the time budget is looked at.
const TICK: Duration = Duration::from_millis(200);

/// How a drive ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// With a conclusion, which the state holds.
    Concluded,
    /// By Ctrl-C or TERM: can be resumed.
    Interrupted,
}

/// Why no further trial is started.
#[derive(Debug, Clone, PartialEq)]
enum Ending {
    Interrupted,
    Concluded(Conclusion),
    /// `--max-trials`: running trials still count.
    TrialsSpent,
    /// `--max-time`: running trials are stopped.
    TimeSpent,
    Failed,
}

struct Flight {
    query: Query<Node>,
    slot: usize,
    stop: watch::Sender<Stop>,
}

struct Drive<'a> {
    opened: &'a mut Opened,
    progress: Progress,
    slots: Vec<Option<Slot>>,
    flights: BTreeMap<TrialId, Flight>,
    tasks: JoinSet<Ran>,
    /// Syncs of the journal that are under way, each with its number.
    syncs: JoinSet<(u64, std::result::Result<(), StoreError>)>,
    last_sync: u64,
    /// Up to which number they are done.
    on_disk: watch::Sender<u64>,
    notes: mpsc::UnboundedSender<Note>,
    /// What the search said when only the bad end's own failure counted, once that was not enough.
    strict: Option<Conclusion>,
    ending: Option<Ending>,
    failure: Option<Error>,
    since: Instant,
    elapsed_before: f64,
}

/// Drives an opened session to its end.
///
/// # Errors
/// When the journal cannot be written, the good end cannot run the command, or the command's
/// Python would test the user's checkout. What ran is stopped and nothing is left behind then too.
pub async fn drive(opened: &mut Opened) -> Result<Closed> {
    let slots = std::mem::take(&mut opened.slots);
    let warning = opened.slots_warning.take();
    let mut signals = Signals::listen()?;
    let (notes, mut inbox) = mpsc::unbounded_channel();
    let mut drive = Drive {
        progress: Progress::new(opened.history.candidates(), opened.state.plan.fixed),
        slots,
        flights: BTreeMap::new(),
        tasks: JoinSet::new(),
        syncs: JoinSet::new(),
        last_sync: 0,
        on_disk: watch::Sender::new(0),
        notes,
        strict: None,
        ending: None,
        failure: None,
        since: Instant::now(),
        elapsed_before: opened.state.elapsed_seconds,
        opened,
    };
    if let Some(warning) = warning {
        drive.progress.warn(&warning);
    }
    drive.replay();
    // That the session was opened: no repro starts before it is on disk.
    drive.sync_soon();
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    drive.go_on();
    while !drive.flights.is_empty() {
        tokio::select! {
            biased;
            hard = signals.next() => drive.interrupt(hard),
            Some(note) = inbox.recv() => drive.noted(note),
            Some(synced) = drive.syncs.join_next() => drive.synced(synced),
            Some(ran) = drive.tasks.join_next() => {
                // Everything that the trial said before it ended comes first.
                while let Ok(note) = inbox.try_recv() {
                    drive.noted(note);
                }
                drive.landed(ran);
                drive.go_on();
            }
            _ = tick.tick() => drive.tick(),
        }
    }
    drive.close().await
}

impl Drive<'_> {
    fn elapsed(&self) -> f64 {
        self.elapsed_before + self.since.elapsed().as_secs_f64()
    }

    /// Writes events down and folds them in. An unwritable journal ends the session.
    fn record(&mut self, events: &[Event], sync: Sync) {
        let written = self.opened.journal.append(events, sync).map_err(unwritable);
        let folded = written.and_then(|()| {
            events.iter().try_for_each(|event| {
                (self.opened.state.apply(event))
                    .map_err(|e| Error::failed("the journal contradicts itself").caused_by(e))
            })
        });
        if let Err(error) = folded {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.end(Ending::Failed, Stop::Gently);
    }

    /// Stops starting trials; the first reason counts.
    fn end(&mut self, why: Ending, stop: Stop) {
        if self.ending.is_none() || why == Ending::Failed {
            self.ending = Some(why);
        }
        for (trial, flight) in &self.flights {
            flight.stop.send_if_modified(|now| {
                let harder = stop > *now;
                *now = stop.max(*now);
                harder
            });
            if stop != Stop::Run {
                self.progress.stage(*trial, Stage::Stopping);
            }
        }
    }

    fn interrupt(&mut self, hard: bool) {
        if hard {
            self.progress.line("stopping at once");
            executors::signal_helpers(nix::sys::signal::Signal::SIGKILL);
            self.end(Ending::Interrupted, Stop::Now);
        } else {
            self.progress
                .line("stopping: ending what runs (once more to end it at once)");
            executors::signal_helpers(nix::sys::signal::Signal::SIGTERM);
            self.end(Ending::Interrupted, Stop::Gently);
        }
    }

    fn noted(&mut self, note: Note) {
        match note {
            Note::Step(trial, step) => self.progress.stage(trial, stage(step)),
            Note::Process(trial, process) => {
                if self.flights.contains_key(&trial) {
                    self.record(&[Event::ProcessStarted { trial, process }], Sync::No);
                }
            }
        }
    }

    fn tick(&mut self) {
        let spent = self
            .opened
            .state
            .plan
            .max_seconds
            .is_some_and(|max| self.elapsed() >= max);
        if spent && self.ending.is_none() {
            self.progress.line("--max-time is over: ending what runs");
            self.end(Ending::TimeSpent, Stop::Gently);
        }
        let outlook = self.outlook();
        self.progress.tick(&self.opened.state, outlook);
    }

    fn outlook(&self) -> Outlook {
        let progress = self.opened.search.progress();
        Outlook {
            suspects: progress.suspects,
            trials_left: progress.trials_left,
        }
    }

    /// Asks the search and starts what it says, until the slots are full or it has an answer.
    fn go_on(&mut self) {
        while self.ending.is_none() {
            let running = self.running();
            let slots: Vec<SlotState<Node>> = self
                .slots
                .iter()
                .map(|slot| self.slot_state(slot.as_ref()))
                .collect();
            match self.opened.search.ask(&running, &slots) {
                Step::Done(said) => self.answered(&said),
                Step::Wait => return,
                Step::Try(queries) => {
                    for query in queries {
                        if self.budget_spent() {
                            self.end(Ending::TrialsSpent, Stop::Run);
                            return;
                        }
                        self.start(query);
                    }
                    if self.slots.iter().all(Option::is_none) {
                        return;
                    }
                }
            }
        }
    }

    fn slot_state(&self, slot: Option<&Slot>) -> SlotState<Node> {
        SlotState {
            built: slot
                .and_then(Slot::built)
                .and_then(|c| self.opened.history.node(c)),
            free: slot.is_some(),
        }
    }

    /// Queries that were started and not told: running ones, and finished ones that are held back.
    fn running(&self) -> Vec<Running<Node>> {
        let flying = self.flights.values().map(|flight| Running {
            query: flight.query,
            slot: flight.slot,
        });
        let held = self
            .opened
            .state
            .trials
            .values()
            .filter(|t| t.judged.is_none());
        let held = held.filter_map(|t| {
            judge::query(&self.opened.history, &t.record).map(|query| Running {
                query,
                slot: t.record.spec.slot,
            })
        });
        flying.chain(held).collect()
    }

    fn budget_spent(&self) -> bool {
        let state = &self.opened.state;
        let started = state.trials.len() + self.flights.len();
        let trials = state
            .plan
            .max_trials
            .is_some_and(|max| started >= max as usize);
        let time = state
            .plan
            .max_seconds
            .is_some_and(|max| self.elapsed() >= max);
        trials || time
    }
}

fn stage(step: Option<PrepareStep>) -> Stage {
    match step {
        None => Stage::Run,
        Some(PrepareStep::Setup) => Stage::Setup,
        Some(PrepareStep::Build) => Stage::Build,
        Some(
            PrepareStep::Checkout | PrepareStep::Submodules | PrepareStep::Pin | PrepareStep::Apply,
        ) => Stage::Checkout,
    }
}
