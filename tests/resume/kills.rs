//! SIGKILL at any moment.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{Bed, Dice, Journal, Tool, in_full, poll, script};

/// Kills of a search: a sample, or all with `FBISECT_LONG_TESTS=1`.
fn kills(sample: u32, all: u32) -> u32 {
    if in_full() { all } else { sample }
}

/// What the search says when nobody disturbs it.
fn undisturbed(bed: &Bed, words: &[&str]) -> (serde_json::Value, usize, Duration) {
    let began = Instant::now();
    let output = bed.run(words);
    let took = began.elapsed();
    assert!(output.status.success(), "{output:?} {:?}", bed.journal().0);
    bed.assert_nothing_left();
    let trials = bed.journal().finished().len();
    (bed.answer(), trials, took)
}

/// Kills a tool after `delay`, unless it ends before; whether it was killed. Nothing that was in
/// the journal may be missing in the end: it is added to `seen`.
fn kill_after(bed: &Bed, mut tool: Tool, delay: Duration, seen: &mut Journal) -> bool {
    let until = Instant::now() + delay;
    while Instant::now() < until && tool.is_running() {
        std::thread::sleep(Duration::from_micros(500));
    }
    let killed = tool.kill();
    if let [session] = &bed.sessions()[..] {
        *seen = Journal::read(&session.join("events.jsonl"));
    }
    killed
}

/// Resumes to the end and checks everything that a kill must not do.
fn finish(bed: &Bed, words: &[&str], answer: &serde_json::Value, seen: &Journal) {
    if bed.sessions().is_empty() {
        // Killed before there was a session: nothing ran, and there is nothing to resume.
        assert_eq!(bed.run(&["resume"]).status.code(), Some(2));
        assert_eq!(bed.ran(), []);
        assert!(bed.run(words).status.success());
    } else {
        let output = bed.run(&["resume"]);
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(bed.answer(), *answer);
    bed.assert_nothing_left();
    let (before, finished) = (seen.finished(), bed.journal().finished());
    assert!(
        before.is_subset(&finished),
        "finished trials were lost: {before:?}, {finished:?}"
    );
    let ran = bed.ran();
    for (trial, commit, seed) in &finished {
        let again = ran
            .iter()
            .filter(|run| run.1 == *commit && run.2 == *seed && run.0 >= *trial);
        assert_eq!(
            again.count(),
            1,
            "runs of trial {trial}, {commit} {seed}: {ran:?}"
        );
    }
}

/// Forgets the session and what ran.
fn forget(bed: &Bed) {
    fs::remove_dir_all(bed.repo().join(".fbisect")).unwrap();
    let _ = fs::remove_file(bed.path("log"));
}

fn killed_at_random(options: &[&str], times: u32, dice: u64) {
    let bed = Bed::long();
    let words = bed.words(options, &["./repro.sh"]);
    let (answer, trials, duration) = undisturbed(&bed, &words);
    assert!(
        (36..=48).contains(&trials),
        "a search of about forty trials, not {trials}"
    );
    forget(&bed);
    let mut dice = Dice(dice);
    let (mut kills, whole) = (0, u64::try_from(duration.as_micros()).unwrap());
    for n in 0..times {
        // Spread over the whole search, its opening and its closing; one in five early.
        let delay = match n % 5 {
            0 => dice.below(200_000),
            _ => whole * u64::from(n) / u64::from(times) + dice.below(whole / u64::from(times)),
        };
        let mut seen = Journal(Vec::new());
        let mut delay = Duration::from_micros(delay);
        let mut tool = bed.start(&words);
        while kill_after(&bed, tool, delay, &mut seen) {
            kills += 1;
            if bed.sessions().is_empty() || dice.below(2) == 0 {
                break;
            }
            delay = Duration::from_micros(dice.below(whole / 2));
            tool = bed.start(&["resume"]);
        }
        finish(&bed, &words, &answer, &seen);
        forget(&bed);
    }
    assert!(kills > 0, "all {times} ended before they were killed");
}

#[test]
fn a_kill_at_any_moment_loses_nothing() {
    killed_at_random(&[], kills(8, 50), 0x5eed);
}

#[test]
fn a_kill_at_any_moment_of_three_slots_loses_nothing() {
    killed_at_random(
        &["--jobs", "3", "--build", "sleep 0.01"],
        kills(5, 25),
        0xfeed,
    );
}

/// Kills the tool from within: `script` runs `$TEST_BED/at N` where the N-th call kills, once.
fn killed_from_within(options: &[&str], at: u32, prepare: impl Fn(&Bed)) {
    let bed = Bed::new(32, 0, |n| if n >= 21 { "bad" } else { "good" });
    prepare(&bed);
    script(&bed.path("at"), AT);
    let words = bed.words(options, &["./repro.sh"]);
    let (answer, ..) = undisturbed(&bed, &words);
    forget(&bed);
    fs::write(bed.path("deadly"), format!("{at}\n")).unwrap();
    let _ = fs::remove_file(bed.path("calls"));
    let mut tool = bed.start(&words);
    fs::write(bed.path("pid.new"), format!("{}\n", tool.pid())).unwrap();
    fs::rename(bed.path("pid.new"), bed.path("pid")).unwrap();
    assert_eq!(tool.end(), None, "killed: {}", tool.stderr());
    let seen = bed.journal();
    assert_eq!(seen.of("concluded").count(), 0);
    finish(&bed, &words, &answer, &seen);
}

/// Counts its calls; the one that `deadly` names kills the tool and stays for a while, as a
/// compiler or a download does that does not notice.
const AT: &str = r#"#!/bin/sh
[ -e "$TEST_BED/deadly" ] || exit 0
echo >> "$TEST_BED/calls"
read -r at < "$TEST_BED/deadly"
[ "$(wc -l < "$TEST_BED/calls")" -eq "$at" ] || exit 0
while [ ! -s "$TEST_BED/pid" ]; do sleep 0.01; done
read -r pid < "$TEST_BED/pid"
kill -9 "$pid"
exec sleep 3
"#;

#[test]
fn a_kill_during_a_build_is_resumed() {
    killed_from_within(&["--build", "\"$TEST_BED/at\""], 4, |_| {});
}

#[test]
fn a_kill_during_a_run_is_resumed() {
    killed_from_within(&[], 4, |bed| {
        bed.repro(&crate::support::REPRO.replace("sleep 0.03", "\"$TEST_BED/at\""));
    });
}

/// A filter on a file that differs at every commit: it runs in every checkout.
fn filter(bed: &Bed) {
    bed.git(&[
        "config",
        "filter.slow.smudge",
        "\"$TEST_BED/at\" >/dev/null; cat",
    ]);
    fs::write(
        bed.repo().join(".git/info/attributes"),
        "step filter=slow\n",
    )
    .unwrap();
}

#[test]
fn a_kill_while_git_makes_the_first_worktree_is_resumed() {
    killed_from_within(&[], 1, filter);
}

#[test]
fn a_kill_while_git_checks_out_is_resumed() {
    killed_from_within(&[], 4, filter);
}

#[test]
fn a_kill_while_the_worktrees_are_removed_is_resumed() {
    let bed = Bed::new(8, 0, |n| if n >= 5 { "bad" } else { "good" });
    let build = "mkdir -p b && cd b && i=0 && while [ $i -lt 400 ]; do : > $i; i=$((i+1)); done";
    let words = bed.words(&["--build", build, "--deterministic"], &["./repro.sh"]);
    let (answer, ..) = undisturbed(&bed, &words);
    for _ in 0..kills(2, 6) {
        forget(&bed);
        let tool = bed.start(&words);
        let concluded = || match &bed.sessions()[..] {
            [session] => fs::read_to_string(session.join("events.jsonl"))
                .unwrap()
                .contains("\"concluded\""),
            _ => false,
        };
        poll("it concludes", concluded);
        tool.kill();
        finish(&bed, &words, &answer, &bed.journal());
    }
}
