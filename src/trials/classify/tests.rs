use super::*;
use crate::model::SignatureClass as Class;

const RULES: Rules<'static> = Rules {
    program: "./repro.sh",
    any_failure: false,
    on_timeout: OnTimeout::Bad,
    reference: None,
    reference_cannot_execute: None,
    attempts_left: true,
    position: Position::Elsewhere,
};

fn sign(class: Class, exception: Option<&str>) -> Signature {
    Signature {
        class,
        exception: exception.map(str::to_owned),
        frame: None,
    }
}

fn exited(code: i32) -> Ended {
    Ended::Exited { code }
}

fn good() -> Classified {
    evidence(Outcome::Good)
}

fn bad() -> Classified {
    evidence(Outcome::Bad)
}

fn of(ended: &Ended, rules: Rules<'_>) -> Classified {
    classify(ended, None, "", &rules).unwrap()
}

#[test]
fn exit_statuses_mean_what_git_says() {
    assert_eq!(of(&exited(0), RULES), good());
    assert_eq!(of(&exited(125), RULES), skip(SkipReason::Asked));
    for code in (1..=255).filter(|code| !matches!(code, 125..=127)) {
        assert_eq!(of(&exited(code), RULES), bad(), "{code}");
    }
    for code in [126, 127] {
        let reason = SkipReason::CannotExecute { code };
        assert_eq!(of(&exited(code), RULES), skip(reason));
    }
}

#[test]
fn a_death_by_signal_is_bad() {
    for signal in [6, 7, 9, 11, 15, 34] {
        assert_eq!(of(&Ended::Signalled { signal }, RULES), bad());
    }
}

#[test]
fn what_cannot_be_executed_depends_on_the_ends() {
    let spawn = Ended::SpawnFailed {
        code: 127,
        error: "No such file or directory".into(),
    };
    let other = sign(Class::Nan, None);
    // (position, reference, the bad end's status, expected; None: abort)
    let cannot = || skip(SkipReason::CannotExecute { code: 127 });
    for (position, reference, status, expected) in [
        (Position::Elsewhere, None, None, Some(cannot())),
        (Position::Elsewhere, Some(&other), None, Some(cannot())),
        (Position::Elsewhere, None, Some(127), Some(bad())),
        (Position::Elsewhere, None, Some(126), Some(cannot())),
        (Position::BadEnd, None, None, Some(bad())),
        (Position::BadEnd, None, Some(127), Some(bad())),
        (Position::BadEnd, None, Some(126), Some(cannot())),
        (Position::BadEnd, Some(&other), None, Some(cannot())),
        (Position::GoodEnd, None, None, None),
        (Position::GoodEnd, Some(&other), None, None),
        (Position::GoodEnd, None, Some(127), None),
    ] {
        for any_failure in [false, true] {
            let rules = Rules {
                position,
                reference,
                reference_cannot_execute: status,
                any_failure,
                ..RULES
            };
            for ended in [&spawn, &exited(127)] {
                let seen = classify(ended, None, "", &rules).ok();
                assert_eq!(seen, expected, "{position:?} {status:?}");
            }
        }
    }
}

#[test]
fn the_abort_names_program_status_words_and_remedy() {
    let rules = Rules {
        position: Position::GoodEnd,
        ..RULES
    };
    let text = "starting\n./repro.sh: 3: torchrun: not found\n\n";
    let abort = classify(&exited(127), None, text, &rules).unwrap_err();
    assert_eq!(
        abort.to_string(),
        "the good end cannot run `./repro.sh`: it, or a command in it, was not found \
         (exit status 127): ./repro.sh: 3: torchrun: not found"
    );
    assert!(abort.hint().contains("--pin") && abort.hint().contains("PATH"));

    let spawn = Ended::SpawnFailed {
        code: 126,
        error: "Permission denied".into(),
    };
    let abort = classify(&spawn, None, "", &rules).unwrap_err();
    assert!(
        abort
            .to_string()
            .ends_with("(exit status 126): Permission denied")
    );
    assert!(abort.hint().contains("chmod +x"));
}

#[test]
fn timeouts_are_hangs_or_skips() {
    let ended = Ended::TimedOut { limit_seconds: 5.0 };
    assert_eq!(of(&ended, RULES), bad());
    let rules = Rules {
        on_timeout: OnTimeout::Skip,
        ..RULES
    };
    assert_eq!(of(&ended, rules), skip(SkipReason::TimedOut));
    // A hang where a NaN is hunted is another failure, and the other way round.
    let (nan, hang) = (sign(Class::Nan, None), sign(Class::Hang, None));
    let hunting = |reference| Rules {
        reference: Some(reference),
        ..RULES
    };
    assert_eq!(of(&ended, hunting(&nan)), skip(SkipReason::OtherFailure));
    assert_eq!(of(&ended, hunting(&hang)), bad());
}

#[test]
fn only_the_hunted_failure_is_bad_unless_any_is() {
    let nan = sign(Class::Nan, Some("FloatingPointError"));
    let import = sign(Class::Import, Some("ImportError"));
    let bare = sign(Class::Other, None);
    let other = || skip(SkipReason::OtherFailure);
    for (reference, seen, expected) in [
        (&nan, &nan, bad()),
        (&nan, &import, other()),
        (&nan, &bare, other()),
        (&bare, &bare, bad()),
        (&bare, &import, other()),
    ] {
        let rules = Rules {
            reference: Some(reference),
            ..RULES
        };
        assert_eq!(classify(&exited(1), Some(seen), "", &rules), Ok(expected));
        let any = Rules {
            any_failure: true,
            ..rules
        };
        assert_eq!(classify(&exited(1), Some(seen), "", &any), Ok(bad()));
    }
}

#[test]
fn before_there_is_a_reference_any_failure_becomes_it() {
    let nan = sign(Class::Nan, None);
    for position in [Position::BadEnd, Position::GoodEnd, Position::Elsewhere] {
        let rules = Rules { position, ..RULES };
        assert_eq!(classify(&exited(1), Some(&nan), "", &rules), Ok(bad()));
    }
}

#[test]
fn a_failure_is_not_the_bad_end_s_inability_to_run() {
    let rules = Rules {
        reference_cannot_execute: Some(127),
        ..RULES
    };
    assert_eq!(of(&exited(1), rules), skip(SkipReason::OtherFailure));
}

#[test]
fn faults_of_the_machine_are_attempted_again_then_taken_at_their_word() {
    for (text, why) in [
        (
            "RuntimeError: The server socket has failed to listen: Address already in use\n",
            "address already in use",
        ),
        (
            "Error: listen EADDRINUSE: 0.0.0.0:29500\n",
            "address already in use",
        ),
        (
            "OSError: [Errno 28] No space left on device\n",
            "no space left on device",
        ),
        (
            "OSError: [Errno 116] Stale file handle\n",
            "stale file handle",
        ),
    ] {
        let seen = sign(Class::Other, Some("OSError"));
        let retry = Classified::Retry { why: why.into() };
        assert_eq!(
            classify(&exited(1), Some(&seen), text, &RULES),
            Ok(retry.clone())
        );
        let signalled = Ended::Signalled { signal: 6 };
        assert_eq!(classify(&signalled, Some(&seen), text, &RULES), Ok(retry));
        let last = Rules {
            attempts_left: false,
            ..RULES
        };
        assert_eq!(classify(&exited(1), Some(&seen), text, &last), Ok(bad()));
        let nan = sign(Class::Nan, None);
        let hunting = Rules {
            reference: Some(&nan),
            ..last
        };
        let other = skip(SkipReason::OtherFailure);
        assert_eq!(classify(&exited(1), Some(&seen), text, &hunting), Ok(other));
        // A pass is a pass, whatever it met on its way.
        assert_eq!(classify(&exited(0), None, text, &RULES), Ok(good()));
    }
}

#[test]
fn a_fault_that_was_handled_or_does_not_explain_the_failure_is_no_retry() {
    let mut text = "port 6006: Address already in use, trying 6007\n".to_owned();
    let nan = sign(Class::Nan, Some("FloatingPointError"));
    assert_eq!(classify(&exited(1), Some(&nan), &text, &RULES), Ok(bad()));
    text.push_str(&"step done\n".repeat(100));
    assert_eq!(of_text(&text), bad());
}

fn of_text(text: &str) -> Classified {
    classify(&exited(1), None, text, &RULES).unwrap()
}

#[test]
fn faults_and_preparation_are_never_bad() {
    let faulted = Ended::Faulted {
        detail: "worktree could not be written".into(),
    };
    let retry = Classified::Retry {
        why: "worktree could not be written".into(),
    };
    assert_eq!(of(&faulted, RULES), retry);
    let last = Rules {
        attempts_left: false,
        any_failure: true,
        ..RULES
    };
    assert_eq!(of(&faulted, last), skip(SkipReason::MachineFault));

    let step = PrepareStep::Build;
    let failed = |detail: &str| Ended::PrepareFailed {
        step,
        detail: detail.into(),
    };
    let skipped = skip(SkipReason::PrepareFailed { step });
    assert_eq!(of(&failed("exit status 2"), RULES), skipped);
    assert_eq!(of(&failed("exit status 2"), last), skipped);
    let full = failed("ld: final link failed: No space left on device");
    assert!(matches!(of(&full, RULES), Classified::Retry { .. }));
    assert_eq!(of(&full, last), skipped);
}

#[test]
fn an_interrupted_trial_says_nothing() {
    for position in [Position::BadEnd, Position::GoodEnd, Position::Elsewhere] {
        let rules = Rules { position, ..RULES };
        assert_eq!(of(&Ended::Interrupted, rules), Classified::Discard);
    }
}
