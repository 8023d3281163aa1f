//! What the search makes of outcomes: budgets, seeds, skips, other failures, contradictions.

use crate::support::{Bed, DO, EXIT_CODE, commits};

/// A shell line for a commit's file `do` that prints a Python traceback and fails.
fn raises(exception: &str) -> String {
    let line = format!(
        "printf 'Traceback (most recent call last):\\n  File \"train.py\", line 3, in step\\n\
         {exception}\\n' >&2; exit 1"
    );
    format!("do={}", line.replace(' ', "_"))
}

fn nan() -> String {
    raises("FloatingPointError: loss is nan at step 17")
}

fn import_error() -> String {
    raises("ModuleNotFoundError: No module named flash")
}

#[test]
fn few_trials_for_a_repro_that_never_flakes() {
    for (n, log2, firsts) in [(64, 6, [1, 29, 64]), (1024, 10, [1, 700, 1024])] {
        for first in firsts {
            let bed = Bed::broken_from(first, n + 1);
            let range = format!("c0..c{n}");
            let document = bed.document(0, &[&range, "--deterministic"], &EXIT_CODE);
            assert_eq!(bed.named(&document), format!("c{first}"));
            // A power of two is halved exactly: both ends, then every bit of the answer.
            assert_eq!(document["trials"], log2 + 2);
            let document = bed.document(0, &[&range], &EXIT_CODE);
            assert_eq!(bed.named(&document), format!("c{first}"));
            // The culprit and its parent once more.
            assert_eq!(document["trials"], log2 + 4);
        }
    }
}

#[test]
fn deterministic_says_that_nothing_was_confirmed() {
    let bed = Bed::broken_from(3, 6);
    let ran = bed
        .commits(&["c0..c5", "--deterministic"], &EXIT_CODE)
        .exits(0);
    insta::assert_snapshot!(bed.tidy(&ran.to_string()));
}

#[test]
fn max_trials_ends_the_search_with_what_is_left() {
    let bed = Bed::broken_from(9, 17);
    // Both ends, then c8 (good) and c12 (bad): c9 to c12 are left.
    let document = bed.document(5, &["c0..c16", "--max-trials", "4"], &EXIT_CODE);
    assert_eq!(document["status"], "budget_spent");
    assert_eq!(document["trials"], 4);
    assert_eq!(bed.suspects(&document), "c10 c11 c12 c9");
    let document = bed.document(5, &["c0..c16", "--max-trials", "1"], &EXIT_CODE);
    assert_eq!(document["trials"], 1);
    assert_eq!(document["suspects"].as_array().unwrap().len(), 16);
    // Enough is enough.
    let document = bed.document(0, &["c0..c16", "--max-trials", "8"], &EXIT_CODE);
    assert_eq!(bed.named(&document), "c9");
    let ran = bed
        .commits(&["c0..c16", "--max-trials", "4"], &EXIT_CODE)
        .exits(5);
    insta::assert_snapshot!(bed.tidy(&ran.out));
}

#[test]
fn max_time_stops_what_runs() {
    let bed = Bed::line(9, |i| match i {
        8 => "do=exit_1".into(),
        4 => "do=sleep_3600".into(),
        _ => "do=exit_0".into(),
    });
    let ran = bed
        .commits(&["c0..c8", "--max-time", "3", "--json"], &DO)
        .exits(5);
    let ran = ran.says("--max-time is over");
    let document = ran.json();
    assert_eq!(document["status"], "budget_spent");
    assert_eq!(document["suspects"].as_array().unwrap().len(), 8);
}

#[test]
fn seeds_are_a_function_of_the_session_seed() {
    let bed = Bed::broken_from(5, 9);
    let repro = [
        "sh",
        "-c",
        "echo $FBISECT_TRIAL $FBISECT_SEED $1 >> $LOG; exit $(cat code)",
        "x",
        "{seed}",
    ];
    let seeds = |options: &[&str]| {
        let _ = std::fs::remove_file(bed.log());
        let document =
            bed.run(&[&["commits", "c0..c8", "--json"], options, &["--"], &repro].concat());
        let document = document.exits(0).json();
        (bed.logged(), document["seed"].as_u64().unwrap())
    };
    let (first, session) = seeds(&["--seed", "7"]);
    assert_eq!(session, 7);
    // Each trial has one of its own, in the variable and in the argument.
    let mut own: Vec<&str> = Vec::new();
    for line in &first {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[1], words[2]);
        assert!(words[1].parse::<u32>().unwrap() < 1 << 31);
        assert!(!own.contains(&words[1]), "{first:?}");
        own.push(words[1]);
    }
    assert_eq!(seeds(&["--seed", "7"]).0, first);
    assert_ne!(seeds(&["--seed", "8"]).0, first);
    // Without --seed one is drawn, and the one that is told gives the same again.
    let (drawn, told) = seeds(&[]);
    assert_eq!(seeds(&["--seed", &told.to_string()]).0, drawn);
}

#[test]
fn another_failure_than_the_bad_ends_is_a_skip() {
    // c3 to c5 cannot even import; the loss goes NaN from c7 on.
    let bed = Bed::line(11, |i| match i {
        3..=5 => import_error(),
        7.. => nan(),
        _ => "do=exit_0".into(),
    });
    let ran = bed.commits(&["c0..c10"], &DO).exits(0);
    insta::assert_snapshot!(bed.tidy(&ran.to_string()));
    let document = bed.document(0, &["c0..c10"], &DO);
    assert_eq!(bed.named(&document), "c7");
    // On request every failure counts; then the import error came first.
    let document = bed.document(0, &["c0..c10", "--any-failure"], &DO);
    assert_eq!(bed.named(&document), "c3");
}

#[test]
fn another_failure_at_the_good_end_is_no_failing_good_end() {
    let bed = Bed::line(5, |i| match i {
        0 => import_error(),
        3.. => nan(),
        _ => "do=exit_0".into(),
    });
    let document = bed.document(5, &["c0..c4"], &DO);
    assert_eq!(document["status"], "end_untestable");
    assert_eq!(bed.tested(&document), "c0 0/0/1, c4 0/1/0");
    let document = bed.document(4, &["c0..c4", "--any-failure"], &DO);
    assert_eq!(document["status"], "good_end_failed");
}

#[test]
fn numbers_in_the_message_do_not_make_another_failure() {
    let bed = Bed::line(9, |i| match i {
        4.. => raises(&format!(
            "RuntimeError: shape mismatch at 0x7f{i}0 in step {i}"
        )),
        _ => "do=exit_0".into(),
    });
    assert_eq!(bed.finds(&["c0..c8"], &DO), "c4");
}

#[test]
fn skips_that_hide_the_answer() {
    // c5 to c7 cannot be tested; c8 fails, c4 passes.
    let bed = Bed::line(13, |i| match i {
        5..=7 => "code=125".into(),
        8.. => "code=1".into(),
        _ => "code=0".into(),
    });
    let document = bed.document(5, &["c0..c12"], &EXIT_CODE);
    assert_eq!(document["status"], "suspects");
    assert_eq!(document["first_bad"], serde_json::Value::Null);
    assert_eq!(bed.suspects(&document), "c5 c6 c7 c8");
    let ran = bed.commits(&["c0..c12"], &EXIT_CODE).exits(5);
    insta::assert_snapshot!(bed.tidy(&ran.out));
}

#[test]
fn skips_elsewhere_hide_nothing() {
    let bed = Bed::line(17, |i| match i {
        6..=9 | 15 => "code=125".into(),
        12.. => "code=1".into(),
        _ => "code=0".into(),
    });
    assert_eq!(bed.finds(&["c0..c16"], &EXIT_CODE), "c12");
}

#[test]
fn a_culprit_that_passes_when_it_is_tested_again() {
    let bed = Bed::broken_from(5, 9);
    // The second run on a commit passes.
    let repro = "touch $LOG; grep -q $FBISECT_COMMIT $LOG && exit 0; echo $FBISECT_COMMIT >> $LOG; exit $(cat code)";
    let repro = ["sh", "-c", repro];
    let ran = bed.commits(&["c0..c8"], &repro).exits(5);
    insta::assert_snapshot!(bed.tidy(&ran.out));
    std::fs::remove_file(bed.log()).unwrap();
    let document = bed.document(5, &["c0..c8"], &repro);
    assert_eq!(document["status"], "contradictory");
    assert_eq!(document["first_bad"], serde_json::Value::Null);
    assert_eq!(bed.suspects(&document), "c5");
    let pair = &document["conflicts"][0];
    let pair = [0, 1].map(|i| bed.name_of(pair[i].as_str().unwrap()));
    assert_eq!(pair, ["c5", "c5"]);
}

#[test]
fn a_parent_that_fails_when_it_is_tested_again() {
    let bed = Bed::broken_from(5, 9);
    // The parent of the culprit passes once and fails then.
    let repro = format!(
        "echo $FBISECT_COMMIT >> $LOG; [ $(grep -c {0} $LOG) -ge 2 ] && [ $FBISECT_COMMIT = {0} ] && exit 1; exit $(cat code)",
        bed.id("c4")
    );
    let document = bed.document(5, &["c0..c8"], &["sh", "-c", &repro]);
    assert_eq!(document["status"], "contradictory");
    assert_eq!(bed.suspects(&document), "c5");
}

#[test]
fn a_bad_end_that_passes_once_is_tried_again_and_said() {
    let bed = Bed::broken_from(5, 9);
    let repro = [
        "sh",
        "-c",
        "[ $FBISECT_TRIAL = 1 ] && exit 0; exit $(cat code)",
    ];
    let document = bed.document(0, &["c0..c8"], &repro);
    assert_eq!(bed.named(&document), "c5");
    assert!(bed.tested(&document).contains("c8 1/1/0"));
    let doubt = document["doubts"][0].as_str().unwrap();
    assert!(
        doubt.starts_with("the bad end passed before it failed"),
        "{doubt}"
    );
}

#[test]
fn a_culprit_whose_change_no_trial_can_see_is_doubted() {
    // Only prose changes at c3: the repro, which looks at the commit's name, cannot be right.
    let bed = Bed::new("c0: | a=1\nc1: c0 | a=2\nc2: c1 | a=3\nc3: c2 | README.md=x\nc4: c3 | a=4");
    let list = ["c3", "c4"].map(|name| bed.id(name)).join("|");
    let repro = format!("case $FBISECT_COMMIT in {list}) exit 1;; esac");
    let document = bed.document(0, &["c0..c4"], &["sh", "-c", &repro]);
    assert_eq!(bed.named(&document), "c3");
    let warning = document["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("it changes only documentation"),
        "{warning}"
    );
}

#[test]
fn a_culprit_without_any_change_is_doubted() {
    let bed = Bed::new("c0: | a=1\nc1: c0 | a=2\nc2: c1\nc3: c2 | a=4");
    let list = ["c2", "c3"].map(|name| bed.id(name)).join("|");
    let repro = format!("case $FBISECT_COMMIT in {list}) exit 1;; esac");
    let ran = bed
        .run(&commits(&["c0..c3"], &["sh", "-c", &repro]))
        .exits(0);
    ran.prints("Warning: it changes no file against its first parent");
}

#[test]
fn slots_share_the_visible_gpus() {
    let bed = Bed::broken_from(5, 9);
    let repro = [
        "sh",
        "-c",
        "echo $FBISECT_SLOT: $CUDA_VISIBLE_DEVICES >> $LOG; exit $(cat code)",
    ];
    let run = |devices: &str, jobs: &str| {
        let options = ["c0..c8", "--json", "--jobs", jobs];
        let mut command = bed.command(&commits(&options, &repro));
        let output = command
            .env("CUDA_VISIBLE_DEVICES", devices)
            .output()
            .unwrap();
        crate::support::Ran::from(output)
    };
    // More slots than GPUs: refused before anything begins.
    let ran = run("3,5", "3").exits(2);
    let _ = ran.says("3 jobs cannot share 2 GPU(s): use --jobs 2");
    bed.run(&["status"]).exits(2);
    assert_eq!(bed.named(&run("3,5", "2").exits(0).json()), "c5");
    let mut seen = bed.logged();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, ["0: 3", "1: 5"]);
    // One slot has them all.
    std::fs::remove_file(bed.log()).unwrap();
    run("3,5", "1").exits(0);
    assert!(bed.logged().iter().all(|line| line == "0: 3,5"));
}
