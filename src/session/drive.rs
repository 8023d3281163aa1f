//! The loop: fill the free slots with what the search asks, wait for a trial to end, judge it,
//! write it down, tell the search.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::judge::{self, Reading};
use super::open::Opened;
use super::slots;
use crate::error::{Error, Result};
use crate::executors::{self, Stop};
use crate::journal::{Event, StoreError, Sync};
use crate::model::{Classified, Conclusion, Ended, PrepareStep, TrialId, TrialRecord, TrialSpec};
use crate::reports::progress::{Outlook, Progress, Stage};
use crate::search::bisect;
use crate::search::graph::Node;
use crate::search::{Query, Running, Search as _, SlotState, Step};
use crate::trials::classify::classify;
use crate::trials::run::{Note, OnDisk, Ran, Slot, run};

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

    /// Tells the search what the journal holds, then judges what was finished and not yet told.
    fn replay(&mut self) {
        let Opened {
            state,
            history,
            search,
            ..
        } = &mut *self.opened;
        judge::replay(state, history, search, Reading::Strict);
        self.judge_all(None);
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

    /// The search has an answer. When failures of the bad end's class but with another exception
    /// hide the culprit, it is asked again with those read as bad.
    fn answered(&mut self, said: &bisect::Conclusion) {
        let Opened {
            state,
            history,
            search,
            ..
        } = &mut *self.opened;
        let said = judge::conclusion(state, history, said);
        let said = match (said, self.strict.take()) {
            (Conclusion::Suspects { commits, doubts }, None)
                if judge::has_kin_among(state, &commits) =>
            {
                self.strict = Some(Conclusion::Suspects { commits, doubts });
                *search = super::open::search(history, &state.plan);
                judge::replay(state, history, search, Reading::ByClass);
                return;
            }
            (said, None) => said,
            (said, Some(strict)) => judge::by_class(state, said, strict),
        };
        self.end(Ending::Concluded(said), Stop::Gently);
    }

    fn reading(&self) -> Reading {
        match self.strict {
            None => Reading::Strict,
            Some(_) => Reading::ByClass,
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

    fn start(&mut self, query: Query<Node>) {
        let commit = self.opened.history.commits[query.point as usize].clone();
        let Some(slot) = slots::take(&mut self.slots, &commit) else {
            return;
        };
        let state = &self.opened.state;
        let spec = TrialSpec {
            trial: TrialId(state.last_trial.0 + 1),
            seed: judge::seed(state.plan.seed, &commit, query.index),
            attempt: state.attempt(&commit, query.index),
            commit,
            index: query.index,
            purpose: query.purpose,
            slot: slot.index,
        };
        let trial = spec.trial;
        let folder = self.opened.files.trial(trial);
        if let Err(e) = std::fs::create_dir_all(&folder) {
            let index = slot.index;
            self.slots[index] = Some(slot);
            let why = format!("the trial's folder {} cannot be made", folder.display());
            self.fail(Error::failed(why).caused_by(e));
            return;
        }
        let (stop, stopped) = watch::channel(Stop::Run);
        self.flights.insert(
            trial,
            Flight {
                query,
                slot: slot.index,
                stop,
            },
        );
        self.progress.started(&spec);
        let at = super::open::now();
        self.record(
            &[Event::TrialStarted {
                spec: spec.clone(),
                at,
            }],
            Sync::No,
        );
        let rules = Arc::clone(&self.opened.rules);
        let on_disk = OnDisk {
            wanted: self.last_sync,
            done: self.on_disk.subscribe(),
        };
        let notes = self.notes.clone();
        self.tasks
            .spawn(run(slot, rules, spec, folder, notes, on_disk, stopped));
    }

    /// A trial's task has ended.
    fn landed(&mut self, ran: std::result::Result<Ran, tokio::task::JoinError>) {
        let ran = match ran {
            Ok(ran) => ran,
            Err(e) => {
                // Without its result the slot is lost too: nothing sensible can go on.
                self.flights.clear();
                self.fail(
                    Error::failed("a trial's own code failed; this is a bug in fbisect")
                        .caused_by(e),
                );
                return;
            }
        };
        let Ran {
            slot,
            record,
            text,
            editable,
            stuck,
        } = ran;
        let trial = record.spec.trial;
        self.flights.remove(&trial);
        self.progress.ended(trial);
        for pid in stuck {
            self.progress.warn(&format!(
                "process {pid} of trial {trial} does not end, not even by KILL: it hangs in the system"
            ));
        }
        let index = slot.index;
        self.slots[index] = Some(slot);
        if let Some(editable) = editable {
            self.drop_trial(trial, "the command's Python imports your checkout", false);
            let mut error = Error::usage(editable.to_string());
            for hint in editable.hints {
                error = error.hint(hint);
            }
            self.fail(error);
            return;
        }
        // After an answer or an interruption a stopped run says nothing, but one that came to
        // its own end in time is a finished trial like any other. A preparation that failed is
        // not: Ctrl-C reaches git too.
        let unprepared = matches!(
            record.ended,
            Ended::PrepareFailed { .. } | Ended::Faulted { .. }
        );
        let broken_off = self.ending == Some(Ending::Interrupted) && unprepared;
        if record.ended == Ended::Interrupted || broken_off {
            self.drop_trial(trial, "stopped", false);
            return;
        }
        let state = &self.opened.state;
        let reference = state.reference();
        let rules = judge::rules(state, &record, reference.as_ref());
        let classified = classify(&record.ended, record.signature.as_ref(), &text, &rules);
        if let Ok(Classified::Retry { why }) = classified {
            let line = format!(
                "trial {trial}: fault of the machine ({}): trying again",
                crate::reports::console::clean(&why)
            );
            self.progress.warn(&line);
            self.drop_trial(trial, &why, true);
            return;
        }
        self.keep(&record, &text);
    }

    fn drop_trial(&mut self, trial: TrialId, why: &str, fault: bool) {
        let event = Event::TrialDropped {
            trial,
            why: why.to_owned(),
            fault,
        };
        self.record(&[event], Sync::No);
    }

    /// Writes a finished trial down and judges what can be judged now.
    fn keep(&mut self, record: &TrialRecord, text: &str) {
        let outcome = self
            .opened
            .files
            .trial(record.spec.trial)
            .join("outcome.json");
        let written = serde_json::to_vec_pretty(record)
            .map_err(std::io::Error::from)
            .and_then(|json| std::fs::write(&outcome, json));
        if let Err(e) = written {
            self.progress.warn(&format!("{}: {e}", outcome.display()));
        }
        let finished = Event::TrialFinished {
            record: record.clone(),
            elapsed_seconds: self.elapsed(),
        };
        self.record(&[finished], Sync::No);
        self.judge_all(Some((record.spec.trial, text)));
        self.sync_soon();
    }

    /// Has the journal synced while the next trial is made ready; its repro waits for it.
    fn sync_soon(&mut self) {
        match self.opened.journal.sync_elsewhere() {
            Ok(sync) => {
                self.last_sync += 1;
                let number = self.last_sync;
                self.syncs.spawn_blocking(move || (number, sync()));
            }
            Err(e) => self.fail(unwritable(e)),
        }
    }

    fn synced(
        &mut self,
        synced: std::result::Result<
            (u64, std::result::Result<(), StoreError>),
            tokio::task::JoinError,
        >,
    ) {
        match synced {
            // One that began later covers those before it.
            Ok((number, Ok(()))) => {
                self.on_disk.send_modify(|done| *done = number.max(*done));
            }
            Ok((_, Err(e))) => self.fail(unwritable(e)),
            Err(e) => {
                self.fail(
                    Error::failed("the journal's sync failed; this is a bug in fbisect")
                        .caused_by(e),
                );
            }
        }
    }

    /// Judges and tells every finished trial that need not wait. `landed` is the one whose output is
    /// at hand.
    fn judge_all(&mut self, landed: Option<(TrialId, &str)>) {
        loop {
            let state = &self.opened.state;
            let Some(record) = judge::next_to_judge(state).cloned() else {
                return;
            };
            let reference = state.reference();
            let mut rules = judge::rules(state, &record, reference.as_ref());
            // Whether to attempt it again was decided when it ended.
            rules.attempts_left = false;
            let text = landed.filter(|(trial, _)| *trial == record.spec.trial);
            let text = text.map_or("", |(_, text)| text);
            match classify(&record.ended, record.signature.as_ref(), text, &rules) {
                Ok(classified) => {
                    let Some(judged) = judge::judgement(record.spec.trial, &classified) else {
                        return;
                    };
                    self.record(&[Event::Judged(judged.clone())], Sync::No);
                    self.tell(&judged);
                }
                Err(abort) => {
                    let hint = abort.hint();
                    self.fail(Error::failed(abort.to_string()).hint(hint));
                    return;
                }
            }
            if self.failure.is_some() {
                return;
            }
        }
    }

    fn tell(&mut self, judged: &crate::model::Judged) {
        let reading = self.reading();
        let Opened {
            state,
            history,
            search,
            ..
        } = &mut *self.opened;
        let order = state.told.len().saturating_sub(1);
        if let Some(trial) = state.trials.get(&judged.trial)
            && let Some(query) = judge::query(history, &trial.record)
        {
            search.tell(
                &query,
                &judge::observation(state, trial, judged, order, reading),
            );
        }
        let outlook = self.outlook();
        self.progress.judged(&self.opened.state, judged, outlook);
    }

    /// Everything has landed: says how it ended and leaves nothing behind.
    async fn close(mut self) -> Result<Closed> {
        self.progress.close();
        while let Some(synced) = self.syncs.join_next().await {
            self.synced(synced);
        }
        let elapsed_seconds = self.elapsed();
        let at = super::open::now();
        let ending = self.ending.take().unwrap_or(Ending::TrialsSpent);
        let closed = match ending {
            Ending::Failed => Closed::Interrupted,
            Ending::Interrupted => {
                self.record(
                    &[Event::Interrupted {
                        at,
                        elapsed_seconds,
                    }],
                    Sync::Yes,
                );
                Closed::Interrupted
            }
            Ending::Concluded(conclusion) => self.conclude(conclusion, at, elapsed_seconds),
            Ending::TrialsSpent | Ending::TimeSpent => {
                let suspects = self.opened.search.suspects();
                let commits = suspects
                    .iter()
                    .map(|n| self.opened.history.commits[*n as usize].clone());
                let conclusion = Conclusion::BudgetSpent {
                    commits: commits.collect(),
                };
                self.conclude(conclusion, at, elapsed_seconds)
            }
        };
        let mut removals = JoinSet::new();
        for slot in self.slots.drain(..).flatten() {
            removals.spawn_blocking(move || slot.remove());
        }
        while let Some(removed) = removals.join_next().await {
            if let Ok(Err(e)) = removed {
                crate::reports::console::warn(&format!("a worktree could not be removed: {e}"));
            }
        }
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(closed),
        }
    }

    fn conclude(&mut self, conclusion: Conclusion, at: String, elapsed_seconds: f64) -> Closed {
        let event = Event::Concluded {
            at,
            conclusion,
            elapsed_seconds,
        };
        self.record(&[event], Sync::Yes);
        Closed::Concluded
    }
}

fn unwritable(e: StoreError) -> Error {
    Error::failed("the session cannot go on, because its journal cannot be written")
        .caused_by(e)
        .hint("what was written is safe: make room, then `fbisect resume`")
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

/// Ctrl-C and TERM, counted. A lost terminal (HUP) is heard and ignored: the hunt goes on.
struct Signals {
    int: Signal,
    term: Signal,
    hup: Signal,
    heard: bool,
}

impl Signals {
    fn listen() -> Result<Self> {
        let listen = |kind| {
            signal(kind).map_err(|e| Error::failed("signals cannot be handled").caused_by(e))
        };
        Ok(Self {
            int: listen(SignalKind::interrupt())?,
            term: listen(SignalKind::terminate())?,
            hup: listen(SignalKind::hangup())?,
            heard: false,
        })
    }

    /// Waits for the next one: false for the first, true for any further one.
    async fn next(&mut self) -> bool {
        loop {
            let counts = tokio::select! {
                _ = self.int.recv() => true,
                _ = self.term.recv() => true,
                _ = self.hup.recv() => false,
            };
            if counts {
                return std::mem::replace(&mut self.heard, true);
            }
        }
    }
}
