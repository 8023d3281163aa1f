//! Ends that do not behave as they should, and requests that make no sense.

use std::fmt::Write as _;
use std::fs;

use crate::support::{Bed, EXIT_CODE, commits};

#[test]
fn a_bad_end_that_passes() {
    let bed = Bed::broken_from(99, 5);
    let ran = bed.commits(&["c0..c4"], &EXIT_CODE).exits(3);
    insta::assert_snapshot!(bed.tidy(&ran.out));
    let document = bed.document(3, &["c0..c4", "--deterministic"], &EXIT_CODE);
    assert_eq!(document["status"], "bad_end_passed");
    // Nothing but the bad end was tried, and that once.
    assert_eq!(bed.tested(&document), "c4 1/0/0");
}

#[test]
fn a_good_end_that_fails() {
    let bed = Bed::broken_from(0, 5);
    let ran = bed.commits(&["c0..c4"], &EXIT_CODE).exits(4);
    insta::assert_snapshot!(bed.tidy(&ran.out));
    let document = bed.document(4, &["c0..c4"], &EXIT_CODE);
    assert_eq!(document["status"], "good_end_failed");
    assert_eq!(bed.tested(&document), "c0 0/1/0, c4 0/1/0");
}

#[test]
fn fixed_where_the_old_end_passes() {
    let bed = Bed::line(5, |_| "code=0".into());
    let ran = bed.commits(&["--fixed", "c0..c4"], &EXIT_CODE).exits(3);
    insta::assert_snapshot!(bed.tidy(&ran.out));
}

#[test]
fn fixed_where_the_new_end_fails() {
    let bed = Bed::line(5, |_| "code=1".into());
    let ran = bed.commits(&["--fixed", "c0..c4"], &EXIT_CODE).exits(4);
    insta::assert_snapshot!(bed.tidy(&ran.out));
}

#[test]
fn ends_that_cannot_be_tested() {
    for (end, code) in [("c0", 0), ("c4", 4)] {
        let bed = Bed::line(5, |i| {
            if i == code {
                "code=125".into()
            } else {
                "code=1".into()
            }
        });
        let document = bed.document(5, &["c0..c4"], &EXIT_CODE);
        assert_eq!(document["status"], "end_untestable");
        assert!(bed.tested(&document).contains(&format!("{end} 0/0/1")));
        let old_or_new = if end == "c0" { "old" } else { "new" };
        let message = bed.tidy(document["message"].as_str().unwrap());
        assert_eq!(
            message,
            format!("the {old_or_new} end [{end}] cannot be tested")
        );
    }
}

#[test]
fn an_empty_range() {
    let bed = Bed::broken_from(2, 5);
    let ran = bed.commits(&["c3..main~1"], &EXIT_CODE).exits(6);
    insta::assert_snapshot!(bed.tidy(&ran.err));
    let ran = bed.commits(&["c3..main~1", "--json"], &EXIT_CODE).exits(6);
    let document = ran.json();
    assert_eq!(document["status"], "empty_range");
    assert_eq!(document["first_bad"], serde_json::Value::Null);
    assert_eq!(document["trials"], 0);
    // A session that never began leaves nothing.
    bed.run(&["status"]).exits(2).says("no session in");
}

#[test]
fn nothing_touches_the_path() {
    let bed = Bed::broken_from(2, 5);
    bed.write("elsewhere", "");
    let ran = bed
        .commits(&["c0..c4", "--path", "elsewhere"], &EXIT_CODE)
        .exits(6);
    insta::assert_snapshot!(bed.tidy(&ran.err));
    let document = bed.document(6, &["c0..c4", "--path", "elsewhere"], &EXIT_CODE);
    assert_eq!(document["status"], "empty_range");
}

/// Each request, with what the program says of it on standard error.
#[track_caller]
fn refused(bed: &Bed, requests: &[&[&str]]) -> String {
    let mut all = String::new();
    for request in requests {
        let ran = bed.run(request).exits(2);
        assert_eq!(ran.out, "", "{request:?}");
        let typed = shell_words::join(*request);
        writeln!(all, "$ fbisect {typed}\n{}", ran.err).unwrap();
    }
    // Nothing was begun.
    assert_eq!(
        fs::read_dir(bed.root().join(".fbisect/sessions")).map_or(0, Iterator::count),
        0
    );
    bed.tidy(&all)
}

#[test]
fn ends_that_make_no_sense() {
    let bed = Bed::broken_from(2, 5);
    bed.git(&["branch", "feature/loss", "c1"]);
    let all = refused(
        &bed,
        &[
            &commits(&["c4..c0"], &EXIT_CODE),
            &commits(&["--fixed", "c4..c0"], &EXIT_CODE),
            &commits(&["c0..nowhere"], &EXIT_CODE),
            &commits(&["feature/los..c4"], &EXIT_CODE),
            &commits(&["c0...c4"], &EXIT_CODE),
            &commits(&["c0"], &EXIT_CODE),
            &commits(&["--bad", "c4"], &EXIT_CODE),
            &commits(&["--fixed", "--good", "c4"], &EXIT_CODE),
            &commits(&["c0..c4", "--bad", "c3"], &EXIT_CODE),
            &commits(&["c0:n..c4"], &EXIT_CODE),
            &commits(&["--good", "-x"], &EXIT_CODE),
            &commits(&["--good=-x", "--bad", "c4"], &EXIT_CODE),
            &commits(&["-x..c4"], &EXIT_CODE),
        ],
    );
    insta::assert_snapshot!(all);
}

#[test]
fn options_that_make_no_sense() {
    let bed = Bed::broken_from(2, 5);
    bed.write("not-a-patch", "hello\n");
    let all = refused(
        &bed,
        &[
            &["commits", "c0..c4"],
            &["commits", "c0..c4", "--"],
            &["commits", "c0..c4", "./repro.sh"],
            &[
                "commits",
                "--setup",
                "true",
                "--setup-key",
                "n",
                "c0..c4",
                "--",
                "true",
            ],
            &commits(&["c0..c4", "--setup-key", "req"], &EXIT_CODE),
            &commits(&["c0..c4", "--jobs", "0"], &EXIT_CODE),
            &commits(&["c0..c4", "--timeout", "soon"], &EXIT_CODE),
            &commits(&["c0..c4", "--timeout", "0"], &EXIT_CODE),
            &commits(&["c0..c4", "--max-trials", "0"], &EXIT_CODE),
            &commits(&["c0..c4", "--apply", "missing.patch"], &EXIT_CODE),
            &commits(&["c0..c4", "--apply", "not-a-patch"], &EXIT_CODE),
            &commits(&["c0..c4", "--pin", "missing.py"], &EXIT_CODE),
            &commits(&["c0..c4", "--pin", "../home"], &EXIT_CODE),
            &commits(&["c0..c4", "--link", "data"], &EXIT_CODE),
            &commits(&["c0..c4", "--path", "/etc"], &EXIT_CODE),
            &commits(&["c0..c4", "--workspace-dir", "inside"], &EXIT_CODE),
            &["rerun", "1"],
            &["log", "nothing"],
        ],
    );
    insta::assert_snapshot!(all);
}

#[test]
fn places_that_are_no_checkout() {
    let bed = Bed::broken_from(2, 5);
    let words = commits(&["c0..c4"], &EXIT_CODE);
    let mut all = String::new();
    let mut tell = |what: &str, at: &std::path::Path| {
        let ran = bed.run_in(at, &words).exits(2);
        assert_eq!(ran.out, "");
        writeln!(all, "{what}\n{}", ran.err).unwrap();
    };
    tell("no repository", &bed.dir().join("home"));
    tell("in .git", &bed.root().join(".git"));
    let bare = bed.dir().join("bare.git");
    bed.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    tell("bare", &bare);
    let unborn = bed.dir().join("unborn");
    bed.git(&["init", "-q", unborn.to_str().unwrap()]);
    tell("without commits", &unborn);
    insta::assert_snapshot!(bed.tidy(&all));
}

#[test]
fn a_shallow_clone_that_hides_the_good_end() {
    let bed = Bed::broken_from(2, 9);
    let (url, clone) = (
        format!("file://{}", bed.root().display()),
        bed.dir().join("clone"),
    );
    bed.git(&[
        "clone",
        "-q",
        "--no-tags",
        "--depth",
        "3",
        &url,
        clone.to_str().unwrap(),
    ]);
    let range = format!("{}..HEAD", bed.id("c0"));
    let ran = bed.run_in(&clone, &commits(&[&range], &EXIT_CODE)).exits(2);
    insta::assert_snapshot!(bed.tidy(&ran.err));
    // What lies above the cut can be searched.
    let range = format!("{}..HEAD", bed.id("c7"));
    bed.run_in(&clone, &commits(&[&range], &EXIT_CODE)).exits(4);
    // The remedy, typed.
    bed.git_in(&clone, &["fetch", "-q", "--unshallow"]);
    let options = ["--good", bed.id("c0"), "--json"];
    let ran = bed.run_in(&clone, &commits(&options, &EXIT_CODE)).exits(0);
    assert_eq!(bed.named(&ran.json()), "c2");
}
