//! Decisions about finished trials: pure, so that a resume decides them again alike.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::axes::commits::History;
use crate::journal::{State, Trial};
use crate::model::{self, Classified, CommitId, Doubt, Judged, SkipReason, TrialId, TrialRecord};
use crate::reports::progress::Outlook;
use crate::search::bisect::{Bisect, Conclusion};
use crate::search::graph::Node;
use crate::search::{Observation, Outcome, Query, Search as _};
use crate::trials::classify::{Position, Rules};

/// Attempts after the first that a fault of the machine may cost.
pub(super) const FURTHER_ATTEMPTS: u32 = 2;

/// A trial's seed: a function of the session's seed, the commit and the trial's index, so that no
/// two trials share one and a resume gives the same. The first 31 bits of a SHA-256, since every
/// library's seeding takes those.
pub(super) fn seed(session_seed: u64, commit: &CommitId, index: u32) -> u32 {
    let digest = Sha256::digest(format!("{session_seed}:{commit}:{index}"));
    let mut first = [0; 4];
    first.copy_from_slice(digest.get(..4).unwrap_or(&[0; 4]));
    u32::from_be_bytes(first) >> 1
}

/// The query that a trial answers. `None` when its commit is not in the history.
pub(super) fn query(history: &History, record: &TrialRecord) -> Option<Query<Node>> {
    Some(Query {
        point: history.node(&record.spec.commit)?,
        index: record.spec.index,
        purpose: record.spec.purpose,
    })
}

/// Where a trial stands, for the classification.
pub(super) fn position(state: &State, record: &TrialRecord) -> Position {
    if state.is_failing_end(record.spec.purpose) {
        Position::BadEnd
    } else if state.is_passing_end(record.spec.purpose) {
        Position::GoodEnd
    } else {
        Position::Elsewhere
    }
}

/// Whether a trial's meaning depends on how the bad end fails, which is not known yet.
pub(super) fn waits_for_reference(state: &State, record: &TrialRecord) -> bool {
    let depends = match position(state, record) {
        Position::BadEnd => false,
        Position::GoodEnd => record.signature.is_some() && record.cannot_execute().is_none(),
        Position::Elsewhere => record.signature.is_some() || record.cannot_execute().is_some(),
    };
    let any = state.plan.any_failure && record.cannot_execute().is_none();
    depends && !any && state.reference().is_none()
}

/// The rules for one trial. `reference` is [`State::reference`], taken apart by the caller.
pub(super) fn rules<'a>(
    state: &'a State,
    record: &TrialRecord,
    reference: Option<&'a crate::journal::state::Reference>,
) -> Rules<'a> {
    Rules {
        program: state.plan.command.argv.first().map_or("", String::as_str),
        any_failure: state.plan.any_failure,
        on_timeout: state.plan.on_timeout,
        reference: reference.and_then(|r| r.signature.as_ref()),
        reference_cannot_execute: reference.and_then(|r| r.cannot_execute),
        attempts_left: record.spec.attempt.0 < FURTHER_ATTEMPTS,
        position: position(state, record),
    }
}

/// How failures that are not quite the bad end's are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Reading {
    /// No evidence: only the bad end's class and exception count.
    #[default]
    Strict,
    /// Bad, when they are of the bad end's class: the symptom may have changed on the way. Used
    /// once the strict reading can no longer tell the suspects apart, and said in the report.
    ByClass,
}

/// Whether a trial is a failure of the bad end's class with another exception.
pub(super) fn is_kin(state: &State, trial: &Trial) -> bool {
    let other = trial
        .judged
        .as_ref()
        .is_some_and(|j| j.skip == Some(SkipReason::OtherFailure));
    let hunted = state.reference().and_then(|r| r.signature).map(|s| s.class);
    other && hunted.is_some() && hunted == trial.record.signature.as_ref().map(|s| s.class)
}

/// Whether the other reading could tell suspects apart that the strict one cannot.
pub(super) fn has_kin_among(state: &State, commits: &[CommitId]) -> bool {
    let mut trials = state.trials.values();
    trials.any(|t| commits.contains(&t.record.spec.commit) && is_kin(state, t))
}

/// What the search is told of a judged trial: when a fix is looked for, the new end is the good
/// one, so outcomes change places.
pub(super) fn observation(
    state: &State,
    trial: &Trial,
    judged: &Judged,
    order: usize,
    reading: Reading,
) -> Observation {
    let record = &trial.record;
    let outcome = match reading {
        Reading::ByClass if is_kin(state, trial) => Outcome::Bad,
        Reading::Strict | Reading::ByClass => judged.outcome,
    };
    Observation {
        outcome: if state.plan.fixed {
            outcome.inverted()
        } else {
            outcome
        },
        metric: None,
        prepare_seconds: record.prepare_seconds,
        run_seconds: record.run_seconds,
        slot: record.spec.slot,
        order: order as u64,
    }
}

/// Finished trials that can be told now, next first: those whose meaning no longer waits, and
/// whose commit's earlier trials have all been told. Early finishers are held back, so that the
/// order of finishing decides nothing about one commit.
pub(super) fn next_to_judge(state: &State) -> Option<&TrialRecord> {
    let mut told: BTreeMap<&CommitId, u32> = BTreeMap::new();
    for id in &state.told {
        if let Some(trial) = state.trials.get(id) {
            *told.entry(&trial.record.spec.commit).or_default() += 1;
        }
    }
    let waiting = state.trials.values().filter(|t| t.judged.is_none());
    waiting.map(|t| &t.record).find(|record| {
        let before = told.get(&record.spec.commit).copied().unwrap_or(0);
        record.spec.index == before && !waits_for_reference(state, record)
    })
}

/// The judgement to write down; `None` for an attempt that does not count.
pub(super) fn judgement(trial: TrialId, classified: &Classified) -> Option<Judged> {
    match classified {
        Classified::Outcome { outcome, skip } => Some(Judged {
            trial,
            outcome: *outcome,
            skip: skip.clone(),
        }),
        Classified::Retry { .. } | Classified::Discard => None,
    }
}

/// The search's conclusion in the user's words.
pub(super) fn conclusion(state: &State, history: &History, said: &Conclusion) -> model::Conclusion {
    let id = |node: &Node| history.commits[*node as usize].clone();
    let ids = |nodes: &[Node]| nodes.iter().map(id).collect::<Vec<_>>();
    let doubts = |unconfirmed: &[Node], merge_bases: &[Node], flaky: bool| {
        let mut doubts: Vec<Doubt> = Vec::new();
        doubts.extend(
            unconfirmed
                .iter()
                .map(|n| Doubt::Unconfirmed { commit: id(n) }),
        );
        doubts.extend(
            merge_bases
                .iter()
                .map(|n| Doubt::UntestedMergeBase { commit: id(n) }),
        );
        doubts.extend(flaky.then_some(Doubt::FlakyEnd));
        doubts.extend(state.plan.deterministic.then_some(Doubt::NotConfirmed));
        doubts
    };
    match said {
        Conclusion::Culprit {
            point,
            unconfirmed,
            untested_merge_bases,
            flaky_ends,
        } => model::Conclusion::Found {
            commit: id(point),
            doubts: doubts(unconfirmed, untested_merge_bases, *flaky_ends),
        },
        Conclusion::Suspects {
            points,
            unconfirmed,
            untested_merge_bases,
            flaky_ends,
        } => model::Conclusion::Suspects {
            commits: ids(points),
            doubts: doubts(unconfirmed, untested_merge_bases, *flaky_ends),
        },
        Conclusion::Contradictory {
            suspect,
            conflicts,
            unexplained,
        } => model::Conclusion::Contradictory {
            suspect: suspect.as_ref().map(id),
            conflicts: conflicts.iter().map(|(a, b)| (id(a), id(b))).collect(),
            unexplained: ids(unexplained),
        },
        // With --fixed the search's bad end is the user's good one, and the other way round.
        Conclusion::BadEndPassed { trials } => {
            let commit = id(&history.bad);
            if state.plan.fixed {
                model::Conclusion::GoodEndFailed { commit }
            } else {
                model::Conclusion::BadEndPassed {
                    commit,
                    trials: *trials,
                }
            }
        }
        Conclusion::GoodEndFailed { point } => {
            let commit = id(point);
            if state.plan.fixed {
                model::Conclusion::BadEndPassed { commit, trials: 1 }
            } else {
                model::Conclusion::GoodEndFailed { commit }
            }
        }
        Conclusion::MergeBaseBad { point } => {
            model::Conclusion::MergeBaseFailed { commit: id(point) }
        }
        Conclusion::EndUntestable { point } => {
            model::Conclusion::EndUntestable { commit: id(point) }
        }
    }
}

/// How far a session is, by telling a fresh search what its journal holds.
pub fn outlook(state: &State, history: &History) -> Outlook {
    let mut search = super::open::search(history, &state.plan);
    replay(state, history, &mut search, Reading::Strict);
    let progress = search.progress();
    Outlook {
        suspects: progress.suspects,
        trials_left: progress.trials_left,
    }
}

/// Tells a search everything that was told before, in the same order.
pub(super) fn replay(state: &State, history: &History, search: &mut Bisect, reading: Reading) {
    for (order, id) in state.told.iter().enumerate() {
        if let Some(trial) = state.trials.get(id)
            && let Some(judged) = &trial.judged
            && let Some(query) = query(history, &trial.record)
        {
            search.tell(&query, &observation(state, trial, judged, order, reading));
        }
    }
}

/// The conclusion of a search that read failures by their class, given what the strict one had
/// said: a culprit with a doubt when it fails otherwise than the bad end; else the strict answer.
pub(super) fn by_class(
    state: &State,
    said: model::Conclusion,
    strict: model::Conclusion,
) -> model::Conclusion {
    let (
        model::Conclusion::Found { commit, mut doubts },
        model::Conclusion::Suspects { commits, .. },
    ) = (said, &strict)
    else {
        return strict;
    };
    let trials = || state.finished().filter(|t| t.record.spec.commit == commit);
    let same = trials().any(|t| t.judged.as_ref().is_some_and(|j| j.outcome == Outcome::Bad));
    let shown =
        |signature: Option<model::Signature>| signature.map(|s| s.to_string()).unwrap_or_default();
    if !same {
        let seen = trials()
            .find(|t| is_kin(state, t))
            .and_then(|t| t.record.signature.clone());
        let hunted = state.reference().and_then(|r| r.signature);
        doubts.insert(
            0,
            Doubt::OtherSymptom {
                hunted: shown(hunted),
                seen: shown(seen),
                otherwise: commits.clone(),
            },
        );
    }
    model::Conclusion::Found { commit, doubts }
}

#[cfg(test)]
mod tests;
