//! Judgements as tables, on states folded from events.

use std::path::PathBuf;

use super::*;
use crate::journal::Event;
use crate::model::{
    AttemptId, Clean, CommandSpec, Ended, OnTimeout, Pins, Plan, SessionId, Signature,
    SignatureClass, TrialSpec,
};
use crate::search::Purpose;

fn commit(digit: char) -> CommitId {
    CommitId::parse(&digit.to_string().repeat(40)).unwrap()
}

fn plan() -> Plan {
    Plan {
        repository: PathBuf::from("/repository"),
        good: vec![("old".into(), commit('a'))],
        bad: ("new".into(), commit('f')),
        first_parent: false,
        paths: Vec::new(),
        fixed: false,
        command: CommandSpec {
            argv: vec!["./repro.sh".into()],
            prefix: PathBuf::new(),
        },
        build: None,
        setup: None,
        patch: None,
        pins: Pins::default(),
        clean: Clean::Untracked,
        submodules: false,
        jobs: 1,
        timeout_seconds: None,
        on_timeout: OnTimeout::Bad,
        max_trials: None,
        max_seconds: None,
        seed: 7,
        deterministic: false,
        any_failure: false,
        workspace_dir: PathBuf::from("/elsewhere"),
        allow_editable: false,
        cold_caches: true,
        grace_seconds: 10.0,
        output_limit: 1024,
    }
}

fn opened(plan: Plan) -> State {
    State::open(&Event::Opened {
        version: crate::journal::event::VERSION,
        session: SessionId("s".into()),
        at: "2026-01-02T03:04:05Z".into(),
        fbisect: "0".into(),
        plan: Box::new(plan),
        argv: Vec::new(),
        watched: Vec::new(),
        candidates: 4,
    })
    .unwrap()
}

fn failure(class: SignatureClass, exception: &str) -> Signature {
    Signature {
        class,
        exception: Some(exception.to_owned()),
        frame: None,
    }
}

fn finish(
    state: &mut State,
    trial: u32,
    (commit, index, purpose): (CommitId, u32, Purpose),
    code: i32,
    signature: impl Into<Option<Signature>>,
) {
    let spec = TrialSpec {
        trial: TrialId(trial),
        commit,
        index,
        purpose,
        seed: 0,
        slot: 0,
        attempt: AttemptId(0),
    };
    let at = String::new();
    let started = Event::TrialStarted {
        spec: spec.clone(),
        at,
    };
    state.apply(&started).unwrap();
    let record = TrialRecord {
        spec,
        ended: Ended::Exited { code },
        signature: signature.into(),
        patched: None,
        swept: 0,
        prepare_seconds: 1.0,
        run_seconds: 2.0,
    };
    let finished = Event::TrialFinished {
        record,
        elapsed_seconds: 3.0,
    };
    state.apply(&finished).unwrap();
}

fn judge(state: &mut State, trial: u32, outcome: Outcome, skip: Option<SkipReason>) {
    let judged = Judged {
        trial: TrialId(trial),
        outcome,
        skip,
    };
    state.apply(&Event::Judged(judged)).unwrap();
}

fn next(state: &State) -> Option<u32> {
    next_to_judge(state).map(|record| record.spec.trial.0)
}

#[test]
fn a_seed_is_a_function_of_session_commit_and_index() {
    let seeds: Vec<u32> = [(7, 'a', 0), (7, 'a', 1), (7, 'b', 0), (8, 'a', 0)]
        .map(|(session, digit, index)| seed(session, &commit(digit), index))
        .to_vec();
    // `printf 7:aaa...:0 | sha256sum` begins with 82a8cab9.
    assert_eq!(seeds[0], 0x82a8_cab9_u32 >> 1);
    let mut distinct = seeds.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), seeds.len());
    assert!(seeds.iter().all(|s| *s < 1 << 31));
}

#[test]
fn a_failure_waits_until_the_bad_end_has_shown_its_own() {
    let mut state = opened(plan());
    let nan = failure(SignatureClass::Nan, "FloatingPointError");
    finish(
        &mut state,
        1,
        (commit('c'), 0, Purpose::Narrow),
        1,
        nan.clone(),
    );
    assert_eq!(next(&state), None);
    finish(&mut state, 2, (commit('b'), 0, Purpose::Narrow), 0, None);
    assert_eq!(next(&state), Some(2), "a pass needs no reference");
    judge(&mut state, 2, Outcome::Good, None);
    finish(
        &mut state,
        3,
        (commit('f'), 0, Purpose::BadEnd),
        1,
        nan.clone(),
    );
    assert_eq!(next(&state), Some(3));
    judge(&mut state, 3, Outcome::Bad, None);
    assert_eq!(state.reference().and_then(|r| r.signature), Some(nan));
    assert_eq!(next(&state), Some(1));
}

#[test]
fn any_failure_waits_for_nothing_but_a_command_that_cannot_run() {
    let mut state = opened(Plan {
        any_failure: true,
        ..plan()
    });
    let other = failure(SignatureClass::Import, "ImportError");
    finish(
        &mut state,
        1,
        (commit('c'), 0, Purpose::Narrow),
        1,
        other.clone(),
    );
    assert_eq!(next(&state), Some(1));
    judge(&mut state, 1, Outcome::Bad, None);
    finish(&mut state, 2, (commit('d'), 0, Purpose::Narrow), 127, other);
    assert_eq!(next(&state), None);
}

#[test]
fn a_commits_trials_are_judged_in_the_order_of_their_index() {
    let mut state = opened(plan());
    finish(&mut state, 5, (commit('c'), 1, Purpose::Confirm), 0, None);
    assert_eq!(next(&state), None);
    finish(&mut state, 6, (commit('c'), 0, Purpose::Narrow), 0, None);
    assert_eq!(next(&state), Some(6));
    judge(&mut state, 6, Outcome::Good, None);
    assert_eq!(next(&state), Some(5));
}

#[test]
fn looking_for_a_fix_swaps_the_ends() {
    let mut state = opened(Plan {
        fixed: true,
        ..plan()
    });
    let nan = failure(SignatureClass::Nan, "FloatingPointError");
    // The new end should pass; a failure there is compared with the old end's.
    finish(
        &mut state,
        1,
        (commit('f'), 0, Purpose::BadEnd),
        1,
        nan.clone(),
    );
    assert_eq!(
        position(&state, &state.trials[&TrialId(1)].record),
        Position::GoodEnd
    );
    assert_eq!(next(&state), None);
    finish(&mut state, 2, (commit('a'), 0, Purpose::GoodEnd), 1, nan);
    assert_eq!(
        position(&state, &state.trials[&TrialId(2)].record),
        Position::BadEnd
    );
    assert_eq!(next(&state), Some(2));
    judge(&mut state, 2, Outcome::Bad, None);
    let trial = &state.trials[&TrialId(2)];
    let judged = trial.judged.clone().unwrap();
    let seen = observation(&state, trial, &judged, 0, Reading::Strict);
    assert_eq!(
        seen.outcome,
        Outcome::Good,
        "the search is told of old and new"
    );
    assert_eq!(next(&state), Some(1));
}

#[test]
fn another_exception_of_the_same_class_is_kin_and_another_class_is_not() {
    let mut state = opened(plan());
    let other = |exception| failure(SignatureClass::Other, exception);
    finish(
        &mut state,
        1,
        (commit('f'), 0, Purpose::BadEnd),
        1,
        other("KeyError"),
    );
    judge(&mut state, 1, Outcome::Bad, None);
    finish(
        &mut state,
        2,
        (commit('c'), 0, Purpose::Narrow),
        1,
        other("AttributeError"),
    );
    judge(&mut state, 2, Outcome::Skip, Some(SkipReason::OtherFailure));
    let import = failure(SignatureClass::Import, "ImportError");
    finish(&mut state, 3, (commit('d'), 0, Purpose::Narrow), 1, import);
    judge(&mut state, 3, Outcome::Skip, Some(SkipReason::OtherFailure));
    assert!(has_kin_among(&state, &[commit('c')]));
    assert!(!has_kin_among(&state, &[commit('d'), commit('f')]));
    let trial = &state.trials[&TrialId(2)];
    let judged = trial.judged.clone().unwrap();
    let read = |reading| observation(&state, trial, &judged, 0, reading).outcome;
    assert_eq!(read(Reading::Strict), Outcome::Skip);
    assert_eq!(read(Reading::ByClass), Outcome::Bad);

    let strict = model::Conclusion::Suspects {
        commits: vec![commit('c'), commit('d')],
        doubts: Vec::new(),
    };
    let found = model::Conclusion::Found {
        commit: commit('c'),
        doubts: Vec::new(),
    };
    let said = by_class(&state, found, strict.clone());
    let model::Conclusion::Found { doubts, .. } = said else {
        panic!("{said:?}");
    };
    let [
        Doubt::OtherSymptom {
            hunted,
            seen,
            otherwise,
        },
    ] = doubts.as_slice()
    else {
        panic!("{doubts:?}");
    };
    assert_eq!(hunted, "failure (KeyError)");
    assert_eq!(seen, "failure (AttributeError)");
    assert_eq!(otherwise, &[commit('c'), commit('d')]);
    let undecided = model::Conclusion::EmptyRange;
    assert_eq!(by_class(&state, undecided, strict.clone()), strict);
}
