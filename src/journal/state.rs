//! The state of a session: a fold over its events, and nothing else.

use std::collections::BTreeMap;

use super::event::{Event, WatchedFile};
use crate::model::{
    AttemptId, CommitId, Conclusion, Judged, Plan, ProcessIdentity, SessionId, Signature, TrialId,
    TrialRecord, TrialSpec,
};
use crate::search::{Outcome, Purpose};

/// A finished trial and what it was judged to mean (`None` while that waits for the bad end).
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// As observed.
    pub record: TrialRecord,
    /// As judged.
    pub judged: Option<Judged>,
}

/// A trial that was started and has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// What it is.
    pub spec: TrialSpec,
    /// Its processes, in the order of starting.
    pub processes: Vec<ProcessIdentity>,
}

/// What the journal says so far.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The session's name.
    pub session: SessionId,
    /// When it was opened.
    pub opened_at: String,
    /// The request.
    pub plan: Plan,
    /// The command's words as they must read in a worktree.
    pub argv: Vec<String>,
    /// The files that the command names.
    pub watched: Vec<WatchedFile>,
    /// Candidates between the ends.
    pub candidates: usize,
    /// Finished trials by number.
    pub trials: BTreeMap<TrialId, Trial>,
    /// The order in which they were told to the search.
    pub told: Vec<TrialId>,
    /// Started trials that have not ended.
    pub running: BTreeMap<TrialId, Started>,
    /// Attempts that faults of the machine cost, by (commit, index).
    pub faults: BTreeMap<(CommitId, u32), u32>,
    /// The highest trial number given out.
    pub last_trial: TrialId,
    /// Seconds at work, over all processes of the session.
    pub elapsed_seconds: f64,
    /// Whether the last thing known is an interruption in good order.
    pub interrupted: bool,
    /// What it says, when it is over.
    pub conclusion: Option<Conclusion>,
}

/// An event that cannot follow what came before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FoldError(pub String);

impl State {
    /// The state after a journal's first event.
    ///
    /// # Errors
    /// When that is not [`Event::Opened`], or of another version.
    pub fn open(first: &Event) -> Result<Self, FoldError> {
        let Event::Opened {
            version,
            session,
            at,
            fbisect,
            plan,
            argv,
            watched,
            candidates,
        } = first
        else {
            return Err(FoldError("the first event is not `opened`".to_owned()));
        };
        if *version != super::event::VERSION {
            return Err(FoldError(format!(
                "journal format {version}, written by fbisect {fbisect}; this one reads format {}",
                super::event::VERSION
            )));
        }
        Ok(Self {
            session: session.clone(),
            opened_at: at.clone(),
            plan: (**plan).clone(),
            argv: argv.clone(),
            watched: watched.clone(),
            candidates: *candidates,
            trials: BTreeMap::new(),
            told: Vec::new(),
            running: BTreeMap::new(),
            faults: BTreeMap::new(),
            last_trial: TrialId(0),
            elapsed_seconds: 0.0,
            interrupted: false,
            conclusion: None,
        })
    }

    /// Folds one further event in. Pure: the same events give the same state.
    ///
    /// # Errors
    /// When the event cannot follow: it names a trial that was not started, or opens again.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.interrupted = false;
        match event {
            Event::Opened { .. } => return Err(FoldError("`opened` twice".to_owned())),
            Event::Resumed {
                max_trials,
                max_seconds,
                ..
            } => {
                self.plan.max_trials = max_trials.or(self.plan.max_trials);
                self.plan.max_seconds = max_seconds.or(self.plan.max_seconds);
                if let Some(Conclusion::BudgetSpent { .. }) = self.conclusion {
                    self.conclusion = None;
                }
                // Whatever ran when the last process died has been ended by now.
                self.running.clear();
            }
            Event::TrialStarted { spec, .. } => {
                self.last_trial = self.last_trial.max(spec.trial);
                self.running.insert(
                    spec.trial,
                    Started {
                        spec: spec.clone(),
                        processes: Vec::new(),
                    },
                );
            }
            Event::ProcessStarted { trial, process } => {
                self.started(*trial)?.processes.push(process.clone());
            }
            Event::TrialFinished {
                record,
                elapsed_seconds,
            } => {
                let trial = record.spec.trial;
                self.started(trial)?;
                self.running.remove(&trial);
                self.elapsed_seconds = *elapsed_seconds;
                self.trials.insert(
                    trial,
                    Trial {
                        record: record.clone(),
                        judged: None,
                    },
                );
            }
            Event::TrialDropped { trial, fault, .. } => {
                let spec = self.started(*trial)?.spec.clone();
                self.running.remove(trial);
                if *fault {
                    *self.faults.entry((spec.commit, spec.index)).or_default() += 1;
                }
            }
            Event::Judged(judged) => {
                let Some(trial) = self.trials.get_mut(&judged.trial) else {
                    return Err(unknown(judged.trial));
                };
                trial.judged = Some(judged.clone());
                self.told.push(judged.trial);
            }
            Event::Interrupted {
                elapsed_seconds, ..
            } => {
                self.elapsed_seconds = *elapsed_seconds;
                self.interrupted = true;
            }
            Event::Concluded {
                conclusion,
                elapsed_seconds,
                ..
            } => {
                self.elapsed_seconds = *elapsed_seconds;
                self.conclusion = Some(conclusion.clone());
            }
        }
        Ok(())
    }

    fn started(&mut self, trial: TrialId) -> Result<&mut Started, FoldError> {
        self.running.get_mut(&trial).ok_or_else(|| unknown(trial))
    }

    /// How the end that should fail fails: the signature of its first failing trial that was
    /// judged. With `--fixed` that end is an old one.
    pub fn reference(&self) -> Option<Reference> {
        self.told
            .iter()
            .filter_map(|id| self.trials.get(id))
            .find(|t| {
                self.is_failing_end(t.record.spec.purpose)
                    && t.judged.as_ref().is_some_and(|j| j.outcome == Outcome::Bad)
            })
            .map(|t| Reference {
                trial: t.record.spec.trial,
                signature: t.record.signature.clone(),
                cannot_execute: t.record.cannot_execute(),
            })
    }

    /// Whether a trial of this purpose is one of the end that should fail.
    pub fn is_failing_end(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::BadEnd => !self.plan.fixed,
            Purpose::GoodEnd => self.plan.fixed,
            Purpose::MergeBase | Purpose::Narrow | Purpose::Confirm => false,
        }
    }

    /// Whether a trial of this purpose is one of the end that should pass.
    pub fn is_passing_end(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::BadEnd => self.plan.fixed,
            Purpose::GoodEnd => !self.plan.fixed,
            Purpose::MergeBase | Purpose::Narrow | Purpose::Confirm => false,
        }
    }

    /// Finished trials, judged ones first in the order of telling, then the rest by number.
    pub fn finished(&self) -> impl Iterator<Item = &Trial> {
        let told = self.told.iter().filter_map(|id| self.trials.get(id));
        told.chain(self.trials.values().filter(|t| t.judged.is_none()))
    }

    /// Attempts that the machine has cost this question so far.
    pub fn attempt(&self, commit: &CommitId, index: u32) -> AttemptId {
        AttemptId(
            self.faults
                .get(&(commit.clone(), index))
                .copied()
                .unwrap_or(0),
        )
    }
}

/// The bad end's failure, against which all others are held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The trial that showed it.
    pub trial: TrialId,
    /// Its identity.
    pub signature: Option<Signature>,
    /// 126 or 127, when the command could not be executed even there.
    pub cannot_execute: Option<i32>,
}

fn unknown(trial: TrialId) -> FoldError {
    FoldError(format!("trial {trial} was never started, or ended twice"))
}
