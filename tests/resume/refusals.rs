//! What a resume refuses, and what it says then.

use std::fs;
use std::process::Output;

use nix::sys::signal::Signal;

use crate::support::{Bed, GATED, Tool, poll, script, text};

fn bed() -> Bed {
    let bed = Bed::new(16, 0, |n| if n >= 9 { "bad" } else { "good" });
    bed.repro(GATED);
    bed
}

fn running(bed: &Bed, repro: &[&str]) -> Tool {
    let tool = bed.start(&bed.words(&["--grace", "100ms"], repro));
    poll("the first trial runs", || !bed.ran().is_empty());
    tool
}

/// A session that was interrupted during its first trial; the gate is open from then on.
fn interrupted(bed: &Bed, repro: &[&str]) {
    let mut tool = running(bed, repro);
    tool.signal(Signal::SIGINT);
    assert_eq!(tool.end(), Some(130), "{}", tool.stderr());
    fs::write(bed.path("gate"), "").unwrap();
}

fn refused(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let said = text(&output.stderr);
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

fn found(bed: &Bed, output: &Output, subject: &str) {
    assert!(output.status.success(), "{output:?}");
    let answer = bed.answer();
    assert_eq!(answer["status"], "found");
    assert_eq!(answer["first_bad"], bed.git(&["rev-parse", subject]));
    bed.assert_nothing_left();
}

#[test]
fn a_session_in_use_is_refused_and_can_be_looked_at() {
    let bed = bed();
    let mut tool = running(&bed, &["./repro.sh"]);
    let pid = tool.pid().to_string();
    refused(
        &bed.run(&["resume"]),
        1,
        &["is in use by process ", &pid, "fbisect status --follow"],
    );
    refused(
        &bed.run(&["resume", "--as-recorded"]),
        1,
        &["is in use by process ", &pid],
    );
    for words in [&["status"][..], &["log"]] {
        let output = bed.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    let shown = text(&bed.run(&["status"]).stdout);
    assert!(
        shown.contains("(running)") && shown.contains("running: trial 1 (bad end)"),
        "{shown}"
    );
    assert!(tool.is_running());
    fs::write(bed.path("gate"), "").unwrap();
    assert_eq!(tool.end(), Some(0), "{}", tool.stderr());
    found(&bed, &bed.run(&["resume"]), "c9");
}

#[test]
fn a_changed_repro_is_refused_with_its_difference() {
    let bed = bed();
    interrupted(&bed, &["./repro.sh"]);
    bed.repro(&GATED.replace("exit 1", "exit 0"));
    let output = bed.run(&["resume"]);
    refused(
        &output,
        2,
        &[
            "repro.sh has changed",
            "    -exit 1",
            "    +exit 0",
            "--as-recorded",
        ],
    );
    assert!(!bed.session().join("result.json").exists());
    // The changed script says good everywhere: this answer is the recorded one's.
    found(&bed, &bed.run(&["resume", "--as-recorded"]), "c9");
    // A session that is over can be shown whatever has changed.
    found(&bed, &bed.run(&["resume"]), "c9");
}

#[test]
fn a_repro_that_is_gone_is_refused_and_run_as_recorded() {
    // Named by its place in the checkout, which leads nowhere once it is gone.
    let bed = bed();
    let full = bed.repo().join("repro.sh").display().to_string();
    interrupted(&bed, &[&full]);
    fs::remove_file(&full).unwrap();
    refused(&bed.run(&["resume"]), 2, &["repro.sh cannot be read"]);
    found(&bed, &bed.run(&["resume", "--as-recorded"]), "c9");
}

#[test]
fn a_changed_repro_that_is_put_back_is_no_change() {
    let bed = bed();
    interrupted(&bed, &["./repro.sh"]);
    bed.repro("#!/bin/sh\n");
    refused(&bed.run(&["resume"]), 2, &["repro.sh has changed"]);
    bed.repro(GATED);
    found(&bed, &bed.run(&["resume"]), "c9");
}

#[test]
fn without_pins_the_checkouts_own_repro_may_change() {
    let bed = bed();
    bed.git(&["add", "repro.sh"]);
    let words = [
        "-c",
        "user.name=n",
        "-c",
        "user.email=e",
        "commit",
        "-q",
        "-m",
        "repro",
    ];
    bed.git(&words);
    let mut words = bed.words(&["--unpinned", "--grace", "100ms"], &["./repro.sh"]);
    // Only the last commit has it: elsewhere it is not found.
    words[4] = "HEAD";
    let mut tool = bed.start(&words);
    poll("the first trial runs", || !bed.ran().is_empty());
    tool.signal(Signal::SIGINT);
    assert_eq!(tool.end(), Some(130), "{}", tool.stderr());
    fs::write(bed.path("gate"), "").unwrap();
    bed.repro("#!/bin/sh\n");
    let output = bed.run(&["resume"]);
    refused(&output, 1, &["the good end cannot run"]);
}

#[test]
fn a_repro_outside_the_repository_is_watched_too() {
    for (typed, absolute) in [("../outside.sh", false), ("outside.sh", true)] {
        let bed = bed();
        let file = bed.path("outside.sh");
        script(&file, GATED);
        let typed = if absolute {
            file.display().to_string()
        } else {
            typed.to_owned()
        };
        interrupted(&bed, &[&typed]);
        script(&file, &GATED.replace("exit 1", "exit 0"));
        let words = ["outside.sh has changed", "    -exit 1", "    +exit 0"];
        refused(&bed.run(&["resume"]), 2, &words);
        // It runs where it lies, so that it cannot be what it was.
        let output = bed.run(&["resume", "--as-recorded"]);
        refused(&output, 2, &["outside.sh has changed", "put it back: cp "]);
        let said = text(&output.stderr);
        let put_back = said
            .lines()
            .find_map(|line| line.split_once("put it back: "))
            .unwrap()
            .1;
        let words = shell_words::split(put_back).unwrap();
        assert!(
            bed.command(&words[0])
                .args(&words[1..])
                .status()
                .unwrap()
                .success()
        );
        found(&bed, &bed.run(&["resume"]), "c9");
    }
}

#[test]
fn a_moved_branch_is_refused_by_its_old_and_new_commit() {
    let bed = bed();
    interrupted(&bed, &["./repro.sh"]);
    let (old, new) = (
        bed.git(&["rev-parse", "main"]),
        bed.git(&["rev-parse", "c12"]),
    );
    bed.git(&["checkout", "-q", "--detach"]);
    bed.git(&["branch", "-q", "--force", "main", "c12"]);
    let moved = format!("main was {}, is {}", &old[..12], &new[..12]);
    refused(&bed.run(&["resume"]), 2, &[&moved, "--as-recorded"]);
    bed.git(&["branch", "-q", "-D", "main"]);
    refused(
        &bed.run(&["resume"]),
        2,
        &[&format!("main was {}, is gone", &old[..12])],
    );
    let output = bed.run(&["resume", "--as-recorded"]);
    found(&bed, &output, "c9");
    let result = fs::read_to_string(bed.session().join("result.json")).unwrap();
    assert!(
        result.contains(&old),
        "the recorded end is the bad one: {result}"
    );
}

#[test]
fn what_a_killed_session_left_is_cleared_before_a_refusal() {
    let bed = bed();
    running(&bed, &["./repro.sh"]).kill();
    assert_ne!(bed.processes(), Vec::<String>::new());
    bed.repro("#!/bin/sh\n");
    refused(&bed.run(&["resume"]), 2, &["repro.sh has changed"]);
    bed.assert_nothing_left();
}

#[test]
fn what_a_killed_session_left_is_cleared_by_a_new_search() {
    let bed = bed();
    running(&bed, &["./repro.sh"]).kill();
    let first = bed.session();
    let mut tool = bed.start(&bed.words(&["--grace", "100ms"], &["./repro.sh"]));
    poll("the new search's first trial runs", || bed.ran().len() == 2);
    let name = first.file_name().unwrap().to_str().unwrap();
    let listed = bed.git(&["worktree", "list"]);
    assert!(!listed.contains(name), "{listed}");
    let old = bed.processes().into_iter().filter(|p| p.contains(name));
    assert_eq!(old.collect::<Vec<_>>(), Vec::<String>::new());
    tool.signal(Signal::SIGINT);
    assert_eq!(tool.end(), Some(130));
    bed.assert_nothing_left();
    fs::write(bed.path("gate"), "").unwrap();
    let output = bed.run(&["resume", name]);
    assert!(
        output.status.success(),
        "the first can be resumed all the same: {output:?}"
    );
    assert!(first.join("result.json").exists());
}

#[test]
fn a_session_that_does_not_exist_is_refused() {
    let bed = bed();
    for words in [&["resume"][..], &["status"], &["log"], &["rerun", "1"]] {
        refused(&bed.run(words), 2, &["no session in "]);
    }
    assert!(
        !bed.repo().join(".fbisect").exists(),
        "asking makes no folder"
    );
    interrupted(&bed, &["./repro.sh"]);
    let name = bed
        .session()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    for words in [["resume", "1999"], ["status", "1999"], ["log", "../.."]] {
        refused(
            &bed.run(&words),
            2,
            &[&format!("no session {}", words[1]), &name],
        );
    }
    found(&bed, &bed.run(&["resume", &name[..10]]), "c9");
}
