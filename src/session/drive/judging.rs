//! What trials mean: judged in order, told to the search, and what its answer comes to.

use super::{Drive, Ending};
use crate::error::Error;
use crate::executors::Stop;
use crate::journal::{Event, Sync};
use crate::model::{Conclusion, Judged, TrialId};
use crate::search::{Search as _, bisect};
use crate::session::judge::{self, Reading};
use crate::session::open::{self, Opened};
use crate::trials::classify::classify;

impl Drive<'_> {
    /// Tells the search what the journal holds, then judges what was finished and not yet told.
    pub(super) fn replay(&mut self) {
        let Opened {
            state,
            history,
            search,
            ..
        } = &mut *self.opened;
        judge::replay(state, history, search, Reading::Strict);
        self.judge_all(None);
    }

    /// The search has an answer. When failures of the bad end's class but with another exception
    /// hide the culprit, it is asked again with those read as bad.
    pub(super) fn answered(&mut self, said: &bisect::Conclusion) {
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
                *search = open::search(history, &state.plan);
                judge::replay(state, history, search, Reading::ByClass);
                return;
            }
            (said, None) => said,
            (said, Some(strict)) => judge::by_class(state, said, strict),
        };
        self.end(Ending::Concluded(said), Stop::Gently);
    }

    pub(super) fn reading(&self) -> Reading {
        match self.strict {
            None => Reading::Strict,
            Some(_) => Reading::ByClass,
        }
    }

    /// Judges and tells every finished trial that need not wait. `landed` is the one whose output is
    /// at hand.
    pub(super) fn judge_all(&mut self, landed: Option<(TrialId, &str)>) {
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

    pub(super) fn tell(&mut self, judged: &Judged) {
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
}
