//! How a repro ends, and what that means.

use std::fs;

use crate::support::{Bed, DO};

/// Long enough for a commit that does not hang, also on a busy machine.
const LIMITS: [&str; 5] = ["c0..c8", "--timeout", "2", "--grace", "1"];

/// Nine commits of which `c5` is the first to fail, by `bad`; `odd` is what `c3` does.
fn failing_by(bad: &str, odd: &str) -> Bed {
    let (bad, odd) = (bad.replace(' ', "_"), odd.replace(' ', "_"));
    Bed::line(9, |i| match i {
        3 => format!("do={odd}"),
        5.. => format!("do={bad}"),
        _ => "do=exit_0".into(),
    })
}

#[test]
fn every_other_exit_status_is_a_failure() {
    for code in [1, 2, 77, 124, 128, 134, 139, 200, 255] {
        let bed = failing_by(&format!("exit {code}"), "exit 0");
        assert_eq!(bed.finds(&["c0..c8"], &DO), "c5", "{code}");
    }
}

#[test]
fn exit_125_is_a_skip() {
    let bed = failing_by("exit 1", "exit 125");
    let document = bed.document(0, &["c0..c8"], &DO);
    assert_eq!(bed.named(&document), "c5");
    for row in document["tested"].as_array().unwrap() {
        if bed.name_of(row["commit"].as_str().unwrap()) == "c3" {
            assert_eq!(row["skip_reasons"][0], "exit 125");
        }
    }
    let bed = failing_by("exit 125", "exit 0");
    assert_eq!(
        bed.document(5, &["c0..c8"], &DO)["status"],
        "end_untestable"
    );
}

#[test]
fn signals_are_failures() {
    for signal in ["SEGV", "KILL", "ABRT", "TERM", "INT", "HUP"] {
        let bed = failing_by(&format!("kill -{signal} $$"), "exit 0");
        assert_eq!(bed.finds(&["c0..c8"], &DO), "c5", "{signal}");
    }
}

#[test]
fn a_shells_status_for_a_signal_is_that_signal() {
    // Half of the bad commits die by the signal, half report it as a shell does.
    let bed = Bed::line(9, |i| match i {
        5 | 7 => "do=exit_139".into(),
        6 | 8 => "do=kill_-SEGV_$$".into(),
        _ => "do=exit_0".into(),
    });
    assert_eq!(bed.finds(&["c0..c8"], &DO), "c5");
}

#[test]
fn another_signal_is_another_failure() {
    let bed = failing_by("kill -SEGV $$", "kill -ABRT $$");
    let document = bed.document(0, &["c0..c8"], &DO);
    assert_eq!(bed.named(&document), "c5");
}

#[test]
fn a_repro_that_cannot_be_executed_at_the_good_end() {
    let bed = failing_by("exit 1", "exit 0");
    bed.write("plain.sh", "#!/bin/sh\nexit 0\n");
    let mut all = String::new();
    let mut tell = |repro: &[&str]| {
        let ran = bed.commits(&["c0..c8"], repro).exits(1);
        assert_eq!(ran.out, "");
        all.push_str(&ran.err);
        all.push('\n');
    };
    tell(&["./missing.sh"]);
    tell(&["no-such-program", "--steps", "3"]);
    tell(&["./plain.sh"]);
    insta::assert_snapshot!(bed.tidy(&all));
    let ran = bed
        .commits(&["c0..c8"], &["sh", "-c", "frobnicate"])
        .exits(1);
    let ran = ran.says("the good end cannot run `sh`: it, or a command in it, was not found");
    let _ = ran.says("frobnicate: ");
    assert_eq!(bed.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_repro_that_cannot_be_executed_elsewhere_is_a_skip() {
    for code in [126, 127] {
        let bed = failing_by("exit 1", &format!("exit {code}"));
        let document = bed.document(0, &["c0..c8"], &DO);
        assert_eq!(bed.named(&document), "c5");
        // c3 and c4 both skip: the answer is hidden.
        let bed = Bed::line(9, |i| match i {
            3 | 4 => format!("do=exit_{code}"),
            5.. => "do=exit_1".into(),
            _ => "do=exit_0".into(),
        });
        let document = bed.document(5, &["c0..c8"], &DO);
        assert_eq!(bed.suspects(&document), "c3 c4 c5");
    }
}

#[test]
fn a_repro_that_the_bad_end_cannot_execute_either_counts() {
    // A commit removed the program: that is the fault that is looked for.
    let bed = Bed::line(9, |i| match i {
        0..6 => "tool=+#!/bin/sh".into(),
        6 => "tool=".into(),
        _ => String::new(),
    });
    let document = bed.document(0, &["c0..c8"], &["sh", "-c", "eval ./tool"]);
    assert_eq!(bed.named(&document), "c6");
}

#[test]
fn a_timeout_is_a_failure_and_ends_the_whole_group() {
    let bed = failing_by("sleep 76543 & sleep 76543", "exit 0");
    let document = bed.document(0, &LIMITS, &DO);
    assert_eq!(bed.named(&document), "c5");
    assert_eq!(running("76543"), 0);
}

#[test]
fn what_ignores_term_is_killed() {
    let bed = failing_by("trap '' TERM; while :; do sleep 0.76542; done", "exit 0");
    let document = bed.document(0, &LIMITS, &DO);
    assert_eq!(bed.named(&document), "c5");
    assert_eq!(running("0.76542"), 0);
}

#[test]
fn a_timeout_can_be_a_skip() {
    let bed = failing_by("exit 1", "sleep 76541");
    let options = [&LIMITS[..], &["--on-timeout", "skip"]].concat();
    assert_eq!(bed.finds(&options, &DO), "c5");
    let bed = failing_by("sleep 76541", "exit 0");
    let document = bed.document(5, &options, &DO);
    assert_eq!(document["status"], "end_untestable");
}

#[test]
fn a_hang_is_not_the_failure_of_a_bad_end_that_exits() {
    // c4 hangs where the bad end fails at once: no evidence.
    let bed = Bed::line(9, |i| match i {
        4 => "do=sleep_76540".into(),
        5.. => "do=exit_1".into(),
        _ => "do=exit_0".into(),
    });
    let document = bed.document(5, &LIMITS, &DO);
    assert_eq!(bed.suspects(&document), "c4 c5");
}

#[test]
fn a_daemon_in_a_session_of_its_own_does_not_survive() {
    let bed = failing_by("setsid sleep 76539 & exit 1", "exit 0");
    assert_eq!(bed.finds(&["c0..c8"], &DO), "c5");
    assert_eq!(running("76539"), 0);
}

/// Processes with this word in their command line.
fn running(word: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.split(|b| *b == 0).any(|w| w == word.as_bytes()))
        .count()
}
