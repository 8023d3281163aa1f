//! Counts by commit, from which every report is built.

use serde::Serialize;

use crate::journal::{State, Trial};
use crate::model::{CommitId, Ended, SignatureClass, SkipReason, TrialId, TrialRecord};
use crate::search::Outcome;

/// What was seen at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tested {
    /// The commit.
    pub commit: CommitId,
    /// Trials that behaved like the good end.
    pub good: u32,
    /// Trials that failed as the bad end does.
    pub bad: u32,
    /// Trials that are no evidence.
    pub skip: u32,
    /// Why, once each.
    pub skip_reasons: Vec<String>,
    /// The trials' numbers.
    pub trials: Vec<TrialId>,
}

/// Counts by commit, in the order in which the commits were first tested.
pub fn tested(state: &State) -> Vec<Tested> {
    let mut rows: Vec<Tested> = Vec::new();
    for trial in state.finished() {
        let Some(judged) = &trial.judged else {
            continue;
        };
        let commit = &trial.record.spec.commit;
        let at = rows
            .iter()
            .position(|r| r.commit == *commit)
            .unwrap_or_else(|| {
                rows.push(Tested {
                    commit: commit.clone(),
                    good: 0,
                    bad: 0,
                    skip: 0,
                    skip_reasons: Vec::new(),
                    trials: Vec::new(),
                });
                rows.len() - 1
            });
        let Some(row) = rows.get_mut(at) else {
            continue;
        };
        row.trials.push(trial.record.spec.trial);
        match judged.outcome {
            Outcome::Good => row.good += 1,
            Outcome::Bad => row.bad += 1,
            Outcome::Skip => {
                row.skip += 1;
                let why = skip_text(trial, judged.skip.as_ref());
                if !row.skip_reasons.contains(&why) {
                    row.skip_reasons.push(why);
                }
            }
        }
    }
    rows
}

/// How a trial failed: by its signature or, where its output says nothing, by how it ended.
pub fn failure_text(record: &TrialRecord) -> String {
    match &record.signature {
        Some(seen) if seen.class != SignatureClass::Other || seen.exception.is_some() => {
            seen.to_string()
        }
        Some(_) | None => exit_text(&record.ended),
    }
}

fn exit_text(ended: &Ended) -> String {
    match ended {
        Ended::Exited { code } | Ended::SpawnFailed { code, .. } => format!("exit {code}"),
        Ended::Signalled { signal } => format!("signal {signal}"),
        Ended::TimedOut { .. } => "timeout".to_owned(),
        Ended::PrepareFailed { step, .. } => format!("{step} failed"),
        Ended::Faulted { .. } => "fault of the machine".to_owned(),
        Ended::Interrupted => "interrupted".to_owned(),
    }
}

/// Why a trial is no evidence; an unlike failure is named.
pub fn skip_text(trial: &Trial, reason: Option<&SkipReason>) -> String {
    match reason {
        Some(SkipReason::OtherFailure) => {
            format!("other failure: {}", failure_text(&trial.record))
        }
        Some(reason @ SkipReason::PrepareFailed { .. }) => match &trial.record.ended {
            // Each commit's log has its own path: the reason is the same.
            Ended::PrepareFailed { detail, .. } => {
                let detail = detail.split(", see ").next().unwrap_or(detail);
                format!("{reason}: {detail}")
            }
            _ => reason.to_string(),
        },
        Some(reason) => reason.to_string(),
        None => "not testable".to_owned(),
    }
}
