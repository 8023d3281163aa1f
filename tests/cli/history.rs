//! Shapes of history: what is named, and what is tested on the way.

use crate::support::{Bed, EXIT_CODE};

/// The fault comes in on the side branch, at `s2`; `M` merges it.
const MERGED: &str = "
    m0: | code=0
    m1: m0 | n=1
    s1: m0 | s=1
    s2: s1 | code=1
    s3: s2 | s=3
    m2: m1 | n=2
    M: m2 s3 | code=1 s=3
    m3: M | n=3
    m4: m3 | n=4";

#[test]
fn a_line_of_commits() {
    for first in [1, 6, 12] {
        let bed = Bed::broken_from(first, 13);
        assert_eq!(bed.finds(&["c0..c12"], &EXIT_CODE), format!("c{first}"));
    }
}

#[test]
fn an_empty_side_of_the_range_is_head() {
    let bed = Bed::broken_from(3, 6);
    assert_eq!(bed.finds(&["c0.."], &EXIT_CODE), "c3");
    assert_eq!(bed.finds(&["--good", "c0"], &EXIT_CODE), "c3");
    assert_eq!(
        bed.finds(&["--good", "HEAD~5", "--bad", "main~1"], &EXIT_CODE),
        "c3"
    );
}

#[test]
fn a_culprit_inside_a_side_branch() {
    let bed = Bed::new(MERGED);
    let document = bed.document(0, &["m0..m4"], &EXIT_CODE);
    assert_eq!(bed.named(&document), "s2");
    assert_eq!(document["candidates"], 8);
    // Its parent and itself were tested again.
    let tested = bed.tested(&document);
    assert!(
        tested.contains("s1 2/0/0") && tested.contains("s2 0/2/0"),
        "{tested}"
    );
}

#[test]
fn first_parent_names_the_merge() {
    let bed = Bed::new(MERGED);
    let document = bed.document(0, &["m0..m4", "--first-parent"], &EXIT_CODE);
    assert_eq!(bed.named(&document), "M");
    assert_eq!(document["candidates"], 5);
    assert!(!bed.tested(&document).contains('s'));
}

#[test]
fn a_merge_that_is_itself_the_culprit() {
    // Neither side fails; together they do. Both parents are tested again.
    let bed = Bed::new(
        "m0: | code=0
         m1: m0 | a=1
         s1: m0 | b=1
         M: m1 s1 | code=1 b=1
         m2: M | n=2",
    );
    let document = bed.document(0, &["m0..m2"], &EXIT_CODE);
    assert_eq!(bed.named(&document), "M");
    assert_eq!(
        bed.tested(&document),
        "M 0/2/0, m0 1/0/0, m1 2/0/0, m2 0/1/0, s1 2/0/0"
    );
}

#[test]
fn each_good_end_takes_its_ancestors_away() {
    let bed = Bed::new(MERGED);
    let document = bed.document(
        0,
        &["--good", "m2", "--good", "s1", "--bad", "m4"],
        &EXIT_CODE,
    );
    assert_eq!(bed.named(&document), "s2");
    // s2 s3 M m3 m4
    assert_eq!(document["candidates"], 5);
    let tested = bed.tested(&document);
    assert!(tested.contains("m2 1/0/0"), "{tested}");
}

#[test]
fn a_branch_that_forked_before_the_good_end() {
    // m2 is an ancestor of the bad end and newer than the fork, yet the fault is on the branch.
    let bed = Bed::new(MERGED);
    let document = bed.document(0, &["m2..m4"], &EXIT_CODE);
    assert_eq!(bed.named(&document), "s2");
    // s1 s2 s3 M m3 m4
    assert_eq!(document["candidates"], 6);
}

/// The ends have parted at `a1`.
fn parted(base: u8, good: u8) -> Bed {
    Bed::new(&format!(
        "a0: | code=0
         a1: a0 | code={base} n=1
         g1: a1 | code={good}
         g2: g1 | n=3
         b1: a1 | n=4
         b2: b1 | code=1 n=5
         b3: b2 | n=6"
    ))
}

#[test]
fn where_the_ends_have_parted_the_merge_base_is_tested() {
    let bed = parted(0, 0);
    let document = bed.document(0, &["g2..b3"], &EXIT_CODE);
    assert_eq!(bed.named(&document), "b2");
    assert_eq!(document["candidates"], 3);
    assert!(bed.tested(&document).contains("a1 1/0/0"));
}

#[test]
fn a_bad_merge_base_means_that_the_good_end_was_fixed() {
    let bed = parted(1, 0);
    let ran = bed.commits(&["g2..b3"], &EXIT_CODE).exits(5);
    insta::assert_snapshot!(bed.tidy(&ran.out));
    let document = bed.document(5, &["g2..b3"], &EXIT_CODE);
    assert_eq!(document["status"], "merge_base_failed");
    assert_eq!(document["first_bad"], serde_json::Value::Null);
    // The advice, typed.
    let fix = bed.document(0, &["--fixed", "a1..g2"], &EXIT_CODE);
    assert_eq!(bed.name_of(fix["first_fixed"].as_str().unwrap()), "g1");
}

#[test]
fn an_untestable_merge_base_is_taken_as_good_and_said() {
    let bed = parted(125, 0);
    // b1 inherits 125 from a1, and b2 fails.
    let document = bed.document(5, &["g2..b3"], &EXIT_CODE);
    assert_eq!(document["status"], "suspects");
    assert_eq!(bed.suspects(&document), "b1 b2");
    let doubt = document["doubts"][0].as_str().unwrap();
    assert!(
        bed.tidy(doubt)
            .starts_with("the merge base [a1] of the ends could not be tested")
    );
}

#[test]
fn path_leaves_only_commits_that_touch_it() {
    let bed = Bed::line(13, |i| {
        let lib = if i % 4 == 0 {
            format!("lib/a={i}")
        } else {
            String::new()
        };
        format!("code={} {lib}", u8::from(i >= 8))
    });
    let document = bed.document(0, &["c0..c12", "--path", "lib"], &EXIT_CODE);
    assert_eq!(bed.named(&document), "c8");
    // c4 c8 c12
    assert_eq!(document["candidates"], 3);
    // From a folder below the top, a path is relative to where it is typed.
    let inside = bed.root().join("lib");
    let options = ["c0..c12", "--path", "a", "--json"];
    let ran = bed.run_in(
        &inside,
        &crate::support::commits(&options, &["sh", "-c", "cd ..; exit $(cat code)"]),
    );
    assert_eq!(bed.named(&ran.exits(0).json()), "c8");
}

#[test]
fn fixed_finds_the_commit_that_mended() {
    let bed = Bed::line(10, |i| format!("code={}", u8::from(i < 7)));
    for ends in [&["c0..c9"][..], &["--bad", "c0", "--good", "c9"][..]] {
        let options = [&["--fixed"], ends].concat();
        let document = bed.document(0, &options, &EXIT_CODE);
        assert_eq!(document["status"], "found");
        assert_eq!(document["first_bad"], serde_json::Value::Null);
        assert_eq!(bed.name_of(document["first_fixed"].as_str().unwrap()), "c7");
        let tested = bed.tested(&document);
        assert!(
            tested.contains("c6 0/2/0") && tested.contains("c7 2/0/0"),
            "{tested}"
        );
    }
    let ran = bed.commits(&["--fixed", "c0..c9"], &EXIT_CODE).exits(0);
    insta::assert_snapshot!(bed.tidy(&ran.out));
}

#[test]
fn fixed_finds_the_mending_merge_of_a_side_branch() {
    let bed = Bed::new(
        "m0: | code=1
         m1: m0 | n=1
         s1: m0 | s=1
         s2: s1 | code=0
         M: m1 s2 | code=0 s=1
         m2: M | n=2",
    );
    let document = bed.document(0, &["--fixed", "m0..m2"], &EXIT_CODE);
    assert_eq!(bed.name_of(document["first_fixed"].as_str().unwrap()), "s2");
}

#[test]
fn several_slots_find_the_same() {
    let bed = Bed::new(MERGED);
    for jobs in ["2", "4"] {
        assert_eq!(bed.finds(&["m0..m4", "--jobs", jobs], &EXIT_CODE), "s2");
    }
    let bed = Bed::broken_from(37, 65);
    assert_eq!(bed.finds(&["c0..c64", "-j4"], &EXIT_CODE), "c37");
}
