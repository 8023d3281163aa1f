//! What is done to a checkout before the repro runs: build, setup, patch, pins, links, cleaning,
//! submodules.

use std::fs;

use crate::support::{Bed, EXIT_CODE, commits};

#[test]
fn a_build_runs_once_a_checkout() {
    // The bad end passes and is tried three times, in one checkout.
    let bed = Bed::broken_from(99, 5);
    let build = ["c0..c4", "--build", "echo build $FBISECT_COMMIT >> $LOG"];
    bed.document(3, &build, &EXIT_CODE);
    assert_eq!(bed.logged(), [format!("build {}", bed.id("c4"))]);
}

#[test]
fn every_checkout_is_built_before_it_is_tested() {
    let bed = Bed::broken_from(5, 9);
    let build = "cp code built; echo build $FBISECT_COMMIT >> $LOG";
    let repro = [
        "sh",
        "-c",
        "echo test $FBISECT_COMMIT >> $LOG; exit $(cat built)",
    ];
    assert_eq!(bed.finds(&["c0..c8", "--build", build], &repro), "c5");
    let logged = bed.logged();
    let pairs: Vec<&[String]> = logged.chunks(2).collect();
    // Also the confirmation's, which stands in a fresh worktree.
    assert_eq!(pairs.len(), 7);
    for pair in pairs {
        assert_eq!(pair[0].replace("build", "test"), pair[1]);
    }
}

#[test]
fn a_build_that_fails_is_a_skip() {
    let bed = Bed::line(9, |i| {
        let broken = if i == 4 { "stop=1" } else { "stop=" };
        let broken = if matches!(i, 4 | 5) { broken } else { "" };
        format!("code={} {broken}", u8::from(i >= 7))
    });
    let build = "! test -e stop || { echo 'a.cu(3): error: expected a semicolon' >&2; exit 2; }";
    let ran = bed
        .commits(&["c0..c8", "--build", build], &EXIT_CODE)
        .exits(0);
    insta::assert_snapshot!(bed.tidy(&ran.to_string()));
    // Its output is kept with the trial.
    let session = bed.root().join(".fbisect/sessions");
    let session = fs::read_dir(session)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let log = fs::read_to_string(session.join("trials/3/build.log")).unwrap();
    assert_eq!(log, "a.cu(3): error: expected a semicolon\n");
}

#[test]
fn a_build_that_fails_at_the_ends() {
    let bed = Bed::broken_from(3, 5);
    let ran = bed
        .commits(&["c0..c4", "--build", "exit 3"], &EXIT_CODE)
        .exits(5);
    insta::assert_snapshot!(bed.tidy(&ran.out));
}

#[test]
fn setup_runs_again_only_when_a_key_file_differs() {
    let bed = Bed::line(17, |i| format!("code={} req=v{}", u8::from(i >= 11), i / 6));
    let setup = "echo setup $(cat req) >> $LOG";
    let repro = ["sh", "-c", "echo test $(cat req) >> $LOG; exit $(cat code)"];
    let options = ["c0..c16", "--deterministic", "--setup", setup];
    let keyed = [&options[..], &["--setup-key", "req"]].concat();
    assert_eq!(bed.finds(&keyed, &repro), "c11");
    // c16, c0, c8, c12, c10, c11: two changes back and forth, then v1 stays at c10 and c11.
    assert_eq!(
        bed.logged(),
        [
            "setup v2", "test v2", "setup v0", "test v0", "setup v1", "test v1", "setup v2",
            "test v2", "setup v1", "test v1", "test v1"
        ]
    );
    fs::remove_file(bed.log()).unwrap();
    assert_eq!(bed.finds(&options, &repro), "c11");
    let setups = bed
        .logged()
        .iter()
        .filter(|line| line.starts_with("setup"))
        .count();
    assert_eq!(setups, 6);
}

#[test]
fn setup_comes_before_the_build_and_its_failure_is_a_skip() {
    let bed = Bed::broken_from(5, 9);
    let setup = format!(
        "echo setup >> $LOG; [ $FBISECT_COMMIT != {} ]",
        bed.id("c4")
    );
    let options = ["c0..c8", "--setup", &setup, "--build", "echo build >> $LOG"];
    let document = bed.document(5, &options, &EXIT_CODE);
    assert_eq!(bed.suspects(&document), "c4 c5");
    assert_eq!(bed.logged()[..3], ["setup", "build", "setup"]);
}

#[test]
fn a_patch_makes_old_commits_testable() {
    // Until c5 the program does not run; c6 mended that. At c9 the patch finds other text.
    let bed = Bed::line(13, |i| {
        let run = match i {
            0..=5 => "no",
            9 => "other",
            _ => "yes",
        };
        format!("code={} run={run}", u8::from(i >= 3))
    });
    let patch = bed.git(&["diff", "c5", "c6", "--", "run"]) + "\n";
    fs::write(bed.dir().join("run.patch"), patch).unwrap();
    let repro = "echo $FBISECT_COMMIT $(cat run) >> $LOG; [ $(cat run) = yes ] || exit 125; exit $(cat code)";
    let repro = ["sh", "-c", repro];
    let without = bed.document(5, &["c0..c12"], &repro);
    assert_eq!(without["status"], "end_untestable");
    let document = bed.document(0, &["c0..c12", "--apply", "../run.patch"], &repro);
    assert_eq!(bed.named(&document), "c3");
    assert!(bed.logged().contains(&format!("{} yes", bed.id("c2"))));
    // At c9 it does not apply: the commit is tested as it is.
    fs::remove_file(bed.log()).unwrap();
    let document = bed.document(5, &["c8..c9", "--apply", "../run.patch"], &repro);
    assert_eq!(document["status"], "end_untestable");
    assert_eq!(bed.logged(), [format!("{} other", bed.id("c9"))]);
    // The user's own file stays as it is.
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
}

#[test]
fn the_script_that_the_command_names_is_todays() {
    // Only the last commit has a script that tests anything; before, it always passes.
    let bed = Bed::line(13, |i| {
        let script = if i == 12 {
            "+exit_$(cat_code)"
        } else {
            "+exit_0"
        };
        format!("code={} check={script}", u8::from(i >= 4))
    });
    let ran = bed
        .commits(&["c0..c12", "--json"], &["sh", "./check"])
        .exits(0);
    let ran = ran.says("pinned as they are today: check\n");
    // It may be what is tested.
    let ran = ran.says("check changed between the ends and is pinned");
    let ran = ran.says("give --unpinned");
    assert_eq!(bed.named(&ran.json()), "c4");
    // Unpinned, each commit has its own, and c12 looks like the culprit.
    let ran = bed
        .commits(&["c0..c12", "--unpinned", "--json"], &["sh", "./check"])
        .exits(0);
    assert!(!ran.err.contains("pinned as"));
    assert_eq!(bed.named(&ran.json()), "c12");
}

#[test]
fn an_edit_that_is_not_committed_is_pinned_too() {
    let bed = Bed::broken_from(4, 9);
    bed.script("tools/check.sh", "#!/bin/sh\nexit $(cat code)\n");
    let ran = bed
        .commits(&["c0..c8", "--json"], &["tools/check.sh"])
        .exits(0);
    assert_eq!(bed.named(&ran.json()), "c4");
    // No commit has it: the same at both ends.
    assert!(!ran.err.contains("changed between the ends"));
}

#[test]
fn pin_keeps_a_file_that_the_command_does_not_name() {
    let bed = Bed::line(9, |i| {
        format!(
            "code={} limit={}",
            u8::from(i >= 4),
            if i == 8 { 0 } else { 9 }
        )
    });
    let repro = ["sh", "-c", "[ $(cat code) -le $(cat limit) ]"];
    assert_eq!(bed.finds(&["c0..c8"], &repro), "c8");
    assert_eq!(bed.finds(&["c0..c8", "--pin", "limit"], &repro), "c4");
}

#[test]
fn link_shows_untracked_data() {
    let bed = Bed::broken_from(4, 9);
    bed.write("data/big/x", "here");
    bed.write(".git/info/exclude", "data\n");
    let repro = [
        "sh",
        "-c",
        "[ $(cat data/big/x) = here ] || exit 3; exit $(cat code)",
    ];
    // Without it every commit fails alike.
    bed.document(4, &["c0..c8"], &repro);
    assert_eq!(bed.finds(&["c0..c8", "--link", "data"], &repro), "c4");
    assert_eq!(
        fs::read_to_string(bed.root().join("data/big/x")).unwrap(),
        "here"
    );
    let top = bed.root().join("data");
    let ran = bed.run_in(
        &top,
        &commits(
            &["c0..c8", "--link", "big", "--json"],
            &[
                "sh",
                "-c",
                "[ $(cat big/x) = here ] || exit 3; exit $(cat ../code)",
            ],
        ),
    );
    assert_eq!(bed.named(&ran.exits(0).json()), "c4");
}

#[test]
fn what_is_cleaned_between_commits() {
    let bed = Bed::line(9, |i| format!("code={} .gitignore=*.o", u8::from(i >= 4)));
    let repro = "echo $(ls *.new *.o 2> /dev/null) >> $LOG; touch $FBISECT_TRIAL.new $FBISECT_TRIAL.o; exit $(cat code)";
    for (clean, third) in [
        ("none", "1.new 1.o 2.new 2.o"),
        ("untracked", "1.o 2.o"),
        ("all", ""),
    ] {
        let _ = fs::remove_file(bed.log());
        let options = ["c0..c8", "--deterministic", "--clean", clean];
        assert_eq!(bed.finds(&options, &["sh", "-c", repro]), "c4");
        assert_eq!(bed.logged()[2], third, "{clean}");
    }
}

#[test]
fn submodules_are_updated_when_asked() {
    let mut bed = Bed::new("c0: | n=0");
    let sub = bed.dir().join("sub");
    bed.git(&["init", "-q", "-b", "main", sub.to_str().unwrap()]);
    let commit = |at: &std::path::Path, message: &str| {
        bed.git_in(at, &["add", "-A"]);
        bed.git_in(at, &["commit", "-q", "-m", message]);
    };
    let allow = ["-c", "protocol.file.allow=always"];
    for i in 0..6 {
        fs::write(sub.join("code"), format!("{}\n", u8::from(i >= 3))).unwrap();
        fs::write(sub.join("n"), i.to_string()).unwrap();
        commit(&sub, &format!("sub {i}"));
        if i == 0 {
            let url = sub.to_str().unwrap();
            bed.git(&[&allow[..], &["submodule", "add", "-q", url, "dep"]].concat());
        } else {
            bed.git(&[&allow[..], &["submodule", "update", "-q", "--remote"]].concat());
        }
        commit(&bed.root(), &format!("bump {i}"));
        bed.git(&["tag", &format!("b{i}")]);
    }
    bed.git(&["config", "--global", "protocol.file.allow", "always"]);
    bed.name_tags();
    let repro = ["sh", "-c", "cd dep && exit $(cat code || echo 9)"];
    assert_eq!(bed.finds(&["b0..b5", "--submodules"], &repro), "b3");
    // Without, the folder is empty at every commit.
    bed.document(4, &["b0..b5"], &repro);
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
}
