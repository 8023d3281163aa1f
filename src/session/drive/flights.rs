//! A trial of the drive: started, landed, written down or dropped.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Drive, Ending, Flight};
use crate::error::Error;
use crate::executors::Stop;
use crate::journal::{Event, Sync};
use crate::model::{Classified, Ended, TrialId, TrialRecord, TrialSpec};
use crate::search::Query;
use crate::search::graph::Node;
use crate::session::open::now;
use crate::session::{judge, slots};
use crate::trials::classify::classify;
use crate::trials::run::{OnDisk, Ran, run};

impl Drive<'_> {
    pub(super) fn start(&mut self, query: Query<Node>) {
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
        let at = now();
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
    pub(super) fn landed(&mut self, ran: std::result::Result<Ran, tokio::task::JoinError>) {
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

    pub(super) fn drop_trial(&mut self, trial: TrialId, why: &str, fault: bool) {
        let event = Event::TrialDropped {
            trial,
            why: why.to_owned(),
            fault,
        };
        self.record(&[event], Sync::No);
    }

    /// Writes a finished trial down and judges what can be judged now.
    pub(super) fn keep(&mut self, record: &TrialRecord, text: &str) {
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
}
