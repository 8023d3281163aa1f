//! What can be asked of a session later: `status`, `log`, `rerun`, `resume`.

use std::fs;
use std::path::PathBuf;

use crate::support::{Bed, DO, EXIT_CODE};

/// As `EXIT_CODE`, each run leaving a line.
const LOGGED: [&str; 3] = ["sh", "-c", "echo run >> $LOG; exit $(cat code)"];

#[test]
fn a_log_of_the_trials() {
    let bed = Bed::line(9, |i| match i {
        4 => "code=125".into(),
        5.. => "code=3".into(),
        _ => "code=0".into(),
    });
    let _ = bed.commits(&["c0..c8"], &EXIT_CODE).exits(5);
    insta::assert_snapshot!(bed.tidy(&bed.run(&["log"]).exits(0).out));
}

#[test]
fn a_finished_session_shows_its_report_again() {
    let bed = Bed::broken_from(5, 9);
    let ran = bed.commits(&["c0..c8"], &EXIT_CODE).exits(0);
    assert_eq!(bed.run(&["status"]).exits(0).out, ran.out);
    assert_eq!(bed.run(&["status", "--follow"]).exits(0).out, ran.out);
    let resumed = bed
        .run(&["resume"])
        .exits(0)
        .says("is over; its report again");
    assert_eq!(resumed.out, ran.out);
    // With the exit status that it ended with.
    let _ = bed.commits(&["c6..c8"], &EXIT_CODE).exits(4);
    let _ = bed.run(&["resume"]).exits(4);
    let document = bed.run(&["resume", "--json"]).exits(4).json();
    assert_eq!(document["status"], "good_end_failed");
}

#[test]
fn a_spent_budget_can_be_raised() {
    let bed = Bed::broken_from(9, 17);
    // Both ends, then c8 (good) and c12 (bad).
    let spent = bed.document(5, &["c0..c16", "--max-trials", "4"], &LOGGED);
    assert_eq!(spent["status"], "budget_spent");
    let session = spent["session"].as_str().unwrap();
    // Without a new budget it is over, and says what to type.
    let _ = bed
        .run(&["resume"])
        .exits(5)
        .says("is over; its report again")
        .prints(&format!("fbisect resume {session} --max-trials N"));
    // No larger than what was spent: over at once, without a trial.
    let document = bed.run(&["resume", "--max-trials", "4", "--json"]).exits(5);
    assert_eq!(document.json()["trials"], 4);
    let document = bed
        .run(&["resume", "--max-trials", "8", "--json"])
        .exits(0)
        .json();
    assert_eq!(bed.named(&document), "c9");
    assert_eq!(document["session"], session);
    // c10, c9, and the culprit and its parent again; those before the limit did not run again.
    assert_eq!(document["trials"], 8);
    assert_eq!(bed.logged().len(), 8);
    // A conclusion is one: no budget opens it again.
    let again = bed.run(&["resume", "--max-trials", "50"]).exits(0);
    let _ = again.says("is over; its report again");
    assert_eq!(bed.logged().len(), 8);
}

#[test]
fn a_spent_time_can_be_raised() {
    let bed = Bed::line(9, |i| match i {
        8 => "do=exit_1".into(),
        4 => "do=sleep_2".into(),
        _ => "do=exit_0".into(),
    });
    let _ = bed.commits(&["c0..c8", "--max-time", "1"], &DO).exits(5);
    let document = bed.run(&["resume", "--max-time", "1h", "--json"]).exits(0);
    assert_eq!(bed.named(&document.json()), "c8");
}

#[test]
fn a_session_can_be_named_by_its_beginning() {
    let bed = Bed::broken_from(5, 9);
    let first = bed.document(0, &["c0..c8"], &EXIT_CODE);
    let second = bed.document(0, &["c2..c6"], &EXIT_CODE);
    let [first, second] = [&first, &second].map(|d| d["session"].as_str().unwrap().to_owned());
    assert!(bed.run(&["log", &first]).exits(0).out.contains(&first));
    assert!(bed.run(&["log"]).exits(0).out.contains(&second));
    let _ = bed
        .run(&["log", "20"])
        .exits(2)
        .says("several sessions begin with 20");
    let _ = bed
        .run(&["log", "19"])
        .exits(2)
        .says("no session 19")
        .says(&second);
}

/// Replays a session's log with git in a clone; what git says last.
#[track_caller]
fn replayed(bed: &Bed) -> String {
    let log = bed.run(&["log", "--git"]).exits(0).out;
    let (file, clone) = (bed.dir().join("bisect.log"), bed.dir().join("clone"));
    fs::write(&file, log).unwrap();
    let _ = fs::remove_dir_all(&clone);
    bed.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let output = std::process::Command::new("git")
        .args(["bisect", "replay", file.to_str().unwrap()])
        .current_dir(&clone)
        .env("HOME", bed.dir())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    bed.tidy(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn git_reaches_the_same_answer_from_the_log() {
    let bed = Bed::broken_from(5, 17);
    let _ = bed.commits(&["c0..c16"], &EXIT_CODE).exits(0);
    insta::assert_snapshot!(bed.tidy(&bed.run(&["log", "--git"]).out));
    let said = replayed(&bed);
    assert!(
        said.contains("[c5 in full] is the first bad commit"),
        "{said}"
    );
}

#[test]
fn git_reaches_the_same_suspects_from_the_log() {
    let bed = Bed::line(9, |i| match i {
        3 | 4 => "code=125".into(),
        5.. => "code=1".into(),
        _ => "code=0".into(),
    });
    let _ = bed.commits(&["c0..c8"], &EXIT_CODE).exits(5);
    let said = replayed(&bed);
    assert!(
        said.contains("There are only 'skip'ped commits left to test."),
        "{said}"
    );
    for name in ["c3", "c4", "c5"] {
        assert!(said.contains(&format!("[{name} in full]")), "{said}");
    }
}

#[test]
fn git_replays_a_search_for_a_fix() {
    let bed = Bed::line(9, |i| format!("code={}", u8::from(i < 6)));
    let _ = bed.commits(&["--fixed", "c0..c8"], &EXIT_CODE).exits(0);
    insta::assert_snapshot!(bed.tidy(&bed.run(&["log", "--git"]).out));
    let said = replayed(&bed);
    assert!(
        said.contains("[c6 in full] is the first fixed commit"),
        "{said}"
    );
}

#[test]
fn git_replays_first_parents_and_paths() {
    let bed = Bed::new(
        "m0: | code=0
         m1: m0 | n=1
         s1: m0 | code=1
         M: m1 s1 | code=1
         m2: M | n=2
         m3: m2 | it's/odd=3
         m4: m3 | n=4",
    );
    let _ = bed
        .commits(&["m0..m4", "--first-parent"], &EXIT_CODE)
        .exits(0);
    let said = replayed(&bed);
    assert!(
        said.contains("[M in full] is the first bad commit"),
        "{said}"
    );
    bed.write("it's/odd", "3");
    let _ = bed
        .commits(&["m0..m4", "--path", "code", "--path", "it's"], &EXIT_CODE)
        .exits(0);
    let said = replayed(&bed);
    assert!(
        said.contains("[s1 in full] is the first bad commit"),
        "{said}"
    );
}

#[test]
fn rerun_passes_status_and_output_through() {
    let bed = Bed::line(6, |i| {
        if i < 3 {
            "do=echo_fine".into()
        } else {
            "do=echo_out;_echo_oops_>&2;_exit_42".into()
        }
    });
    let _ = bed.commits(&["c0..c5"], &DO).exits(0);
    let log = bed.run(&["log"]).out;
    // Trial 1 is the bad end, 2 the good one.
    let failing = bed.run(&["rerun", "1"]).exits(42).says("oops\n");
    assert_eq!(failing.out, "out\n");
    let passing = bed.run(&["rerun", "2"]).exits(0);
    assert_eq!(passing.out, "fine\n");
    insta::assert_snapshot!(bed.tidy(&failing.err));
    // The session stays as it was, and nothing is left.
    assert_eq!(bed.run(&["log"]).out, log);
    assert_eq!(bed.git(&["worktree", "list"]).lines().count(), 1);
    let _ = bed
        .run(&["rerun", "99"])
        .exits(2)
        .says("has no finished trial 99")
        .says("`fbisect log` lists them");
}

#[test]
fn rerun_has_the_trials_seed_commit_and_number() {
    let bed = Bed::broken_from(3, 6);
    let repro = [
        "sh",
        "-c",
        "echo $FBISECT_TRIAL $FBISECT_SEED $FBISECT_COMMIT $1 >> $LOG; exit $(cat code)",
        "x",
        "{seed}",
    ];
    let _ = bed.commits(&["c0..c5"], &repro).exits(0);
    let logged = bed.logged();
    let _ = bed.run(&["rerun", "3"]);
    assert_eq!(bed.logged().last(), logged.get(2));
    assert_eq!(bed.logged().len(), logged.len() + 1);
}

#[test]
fn rerun_of_a_signal_a_timeout_and_a_broken_build() {
    let bed = Bed::line(6, |i| {
        if i < 3 {
            "do=exit_0".into()
        } else {
            "do=kill_-SEGV_$$".into()
        }
    });
    let _ = bed.commits(&["c0..c5"], &DO).exits(0);
    let _ = bed
        .run(&["rerun", "1"])
        .exits(139)
        .says("ended by signal 11");
    let bed = Bed::line(6, |i| {
        if i < 3 {
            "do=exit_0".into()
        } else {
            "do=sleep_75999".into()
        }
    });
    let _ = bed
        .commits(&["c0..c5", "--timeout", "2", "--grace", "1"], &DO)
        .exits(0);
    let _ = bed.run(&["rerun", "1"]).exits(124);
    let bed = Bed::broken_from(3, 6);
    let _ = bed
        .commits(
            &["c0..c5", "--build", "echo no compiler here; exit 1"],
            &EXIT_CODE,
        )
        .exits(5);
    let ran = bed.run(&["rerun", "1"]).exits(125);
    insta::assert_snapshot!(bed.tidy(&ran.to_string()));
}

#[test]
fn rerun_uses_the_pins_of_the_session() {
    let bed = Bed::broken_from(3, 6);
    let script = bed.script("check.sh", "#!/bin/sh\necho first; exit $(cat code)\n");
    let _ = bed.commits(&["c0..c5"], &["./check.sh"]).exits(0);
    fs::write(script, "#!/bin/sh\necho second; exit 9\n").unwrap();
    let ran = bed.run(&["rerun", "1"]).exits(1);
    assert_eq!(ran.out, "first\n");
}

#[test]
fn a_trials_output_is_kept() {
    let bed = Bed::line(6, |i| {
        if i < 3 {
            "do=echo_fine".into()
        } else {
            "do=echo_out;_echo_oops_>&2;_exit_42".into()
        }
    });
    let document = bed.document(0, &["c0..c5"], &DO);
    let session: PathBuf = bed
        .root()
        .join(".fbisect/sessions")
        .join(document["session"].as_str().unwrap());
    let read = |name: &str| fs::read_to_string(session.join("trials").join(name)).unwrap();
    assert_eq!(read("1/stdout.log"), "out\n");
    assert_eq!(read("1/stderr.log"), "oops\n");
    assert_eq!(read("2/stdout.log"), "fine\n");
    // git does not see it.
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
    assert_eq!(
        bed.git(&["status", "--porcelain", "--ignored"]),
        "!! .fbisect/"
    );
}
