//! A journal that cannot be written, at the beginning and in the middle.

use std::fs;
use std::process::Output;

use crate::support::{Bed, Journal, text};

fn bed() -> Bed {
    Bed::new(16, 0, |n| if n >= 9 { "bad" } else { "good" })
}

fn failed(output: &Output, words: &[&str]) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

#[test]
fn a_place_that_cannot_hold_a_journal_is_an_error() {
    // A file where a folder must be: also for a superuser, whom no mode keeps from writing.
    for place in [".fbisect", ".fbisect/sessions"] {
        let bed = bed();
        let place = bed.repo().join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "mine\n").unwrap();
        let output = bed.run(&bed.words(&[], &["./repro.sh"]));
        failed(
            &output,
            &[
                "the session cannot be written down",
                "caused by: ",
                ".fbisect",
                "hint: ",
            ],
        );
        assert_eq!(fs::read_to_string(&place).unwrap(), "mine\n");
        assert_eq!(bed.ran(), []);
        bed.assert_nothing_left();
    }
}

/// Runs the tool with a limit, in blocks of 512 bytes, on the size of the files that it may write:
/// what goes beyond it fails like a write to a full disk, after a part of it was written.
fn limited(bed: &Bed, blocks: u64, words: &[&str]) -> Output {
    let mut command = bed.command("sh");
    let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command
        .args(["-c", &line, env!("CARGO_BIN_EXE_fbisect")])
        .args(words);
    command.output().unwrap()
}

#[test]
fn a_disk_that_fills_up_costs_no_finished_trial() {
    for jobs in ["1", "3"] {
        let bed = bed();
        let output = limited(&bed, 8, &bed.words(&["--jobs", jobs], &["./repro.sh"]));
        failed(
            &output,
            &[
                "the session cannot go on",
                "events.jsonl",
                "caused by: ",
                "fbisect resume",
            ],
        );
        bed.assert_nothing_left();
        let file = bed.session().join("events.jsonl");
        let written = fs::read_to_string(&file).unwrap();
        assert!(
            written.ends_with('\n'),
            "a part of a line is left: {written:?}"
        );
        let before = Journal::read(&file).finished();
        let output = bed.run(&["resume"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(bed.answer()["first_bad"], bed.git(&["rev-parse", "c9"]));
        assert!(before.is_subset(&bed.journal().finished()));
        for (trial, commit, seed) in before {
            let runs = bed
                .ran()
                .into_iter()
                .filter(|run| run.1 == commit && run.2 == seed);
            assert_eq!(runs.count(), 1, "trial {trial} ran again");
        }
        bed.assert_nothing_left();
    }
}

#[test]
fn a_session_that_cannot_be_begun_leaves_nothing() {
    let bed = bed();
    let output = limited(&bed, 1, &bed.words(&[], &["./repro.sh"]));
    failed(&output, &["events.jsonl"]);
    assert_eq!(bed.ran(), []);
    let left = fs::read_dir(bed.repo().join(".fbisect/sessions"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
    bed.assert_nothing_left();
}
