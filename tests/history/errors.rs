//! Requests that cannot be served: each is told apart, and says what to do.

use fbisect::axes::commits::HistoryError as E;

use super::bed::{Bed, Request, first_parent, fixed, flags, line, range, touching};

const LINE: &str = "first: | f=1\n second: first | f=2\n third: second | g=1";

/// The error's message and hint, after a look at its kind.
macro_rules! refused {
    ($bed:expr, $request:expr, $kind:pat) => {{
        let error = $bed.error(&$request);
        assert!(matches!(error, $kind), "{error:?}");
        (error.to_string(), error.hint().unwrap())
    }};
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn an_unknown_revision_is_named_with_what_is_like_it() {
    let bed = Bed::new(LINE);
    let (message, hint) = refused!(bed, range("secnod..main"), E::UnknownRevision { .. });
    says(&message, &["\"secnod\""]);
    assert_eq!(hint, "did you mean second?");
    let (message, hint) = refused!(bed, range("first..qqqqqqq"), E::UnknownRevision { .. });
    says(&message, &["\"qqqqqqq\""]);
    says(&hint, &["git branch --all"]);
    let zeros = "1".repeat(40);
    refused!(
        bed,
        range(&format!("{zeros}..main")),
        E::UnknownRevision { .. }
    );
    for odd in [
        "^first",
        "first..second",
        "first^@",
        "first^!",
        "",
        "a\tb",
        "main^{commit",
    ] {
        refused!(bed, flags(&[odd], Some("main")), E::UnknownRevision { .. });
    }
}

#[test]
fn a_branch_that_only_the_remote_has_is_proposed() {
    let bed = Bed::new(LINE);
    bed.git(&["update-ref", "refs/remotes/upstream/x", "first"]);
    let (_, hint) = refused!(bed, range("x..main"), E::UnknownRevision { .. });
    assert_eq!(hint, "did you mean upstream/x?");
}

#[test]
fn a_revision_is_never_read_as_an_option() {
    let bed = Bed::new(LINE);
    for request in [
        range("--all..main"),
        range("first..--all"),
        range("--all"),
        flags(&["-n1"], None),
        flags(&["first"], Some("--not")),
    ] {
        let (message, hint) = refused!(bed, request, E::DashRevision { .. });
        says(&message, &["begins with a dash"]);
        says(&hint, &["hash", "options go"]);
    }
}

#[test]
fn files_and_folders_are_not_commits() {
    let bed = Bed::new(LINE);
    let (message, hint) = refused!(bed, range("first^{tree}..main"), E::NotACommit { .. });
    says(&message, &["first^{tree}", "a tree"]);
    says(&hint, &["--path"]);
    let (message, _) = refused!(bed, range("first:f..main"), E::NotACommit { .. });
    says(&message, &["a blob"]);
    let blob = bed.git(&["rev-parse", "first:f"]);
    bed.git(&["tag", "-a", "-m", "x", "for-blob", &blob]);
    let (message, _) = refused!(bed, range("for-blob..main"), E::NotACommit { .. });
    says(&message, &["a blob"]);
    bed.git(&["tag", "-a", "-m", "x", "annotated", "first"]);
    assert_eq!(bed.candidates(&range("annotated..third")), "second third");
}

#[test]
fn a_short_hash_that_fits_two_commits_is_ambiguous() {
    // Four digits are the fewest that git takes; among a thousand commits some share them.
    let bed = Bed::new(&line(1000));
    let mut short: Vec<String> = bed
        .rev_list(&["main"])
        .iter()
        .map(|id| id.as_str()[..4].to_owned())
        .collect();
    short.sort();
    let twin = short.windows(2).find(|two| two[0] == two[1]).unwrap()[0].clone();
    let (message, hint) = refused!(
        bed,
        range(&format!("{twin}..main")),
        E::AmbiguousRevision { .. }
    );
    says(&message, &[&twin, " commit "]);
    says(&hint, &["more digits"]);
}

#[test]
fn a_range_has_two_dots() {
    let bed = Bed::new(LINE);
    let (_, hint) = refused!(bed, range("first...third"), E::ThreeDots { .. });
    says(&hint, &["first..third"]);
    let (_, hint) = refused!(bed, range("first"), E::NotARange { .. });
    says(&hint, &["first..HEAD", "--good"]);
}

#[test]
fn each_side_needs_its_ends() {
    let bed = Bed::new(LINE);
    let (message, hint) = refused!(bed, flags(&[], Some("third")), E::NoOldEnd { .. });
    says(&message, &["no good end"]);
    says(&hint, &["--good REV"]);
    let (_, hint) = refused!(bed, fixed(flags(&["third"], None)), E::NoOldEnd { .. });
    says(&hint, &["--bad REV"]);
    let twice = Request {
        bad: Some("second".into()),
        ..range("first..third")
    };
    let (message, _) = refused!(bed, twice, E::TwoNewEnds { .. });
    says(&message, &["\"third\"", "\"second\"", "bad end"]);
    let fixes = fixed(flags(&["second", "third"], Some("first")));
    let (message, hint) = refused!(bed, fixes, E::TwoNewEnds { .. });
    says(&message, &["good (new) end"]);
    says(&hint, &["--bad"]);
}

#[test]
fn nothing_between_the_ends() {
    let bed = Bed::new(LINE);
    let (message, hint) = refused!(bed, range("third..main"), E::Identical { .. });
    says(
        &message,
        &["\"third\"", "\"main\"", bed.id("third").short()],
    );
    says(&hint, &["older good end"]);
    assert!(bed.error(&range("..")).is_empty_range());
    let two = flags(&["first", "third"], Some("main"));
    assert!(bed.error(&two).is_empty_range());
}

#[test]
fn no_commit_touches_the_path() {
    let bed = Bed::new(LINE);
    let request = touching("second..third", &["f", "no/such"]);
    let (message, hint) = refused!(bed, request, E::NothingTouches { .. });
    assert_eq!(message, "no commit in second..third touches f or no/such");
    says(&hint, &["`git log second..third -- PATH`"]);
    assert!(bed.error(&request).is_empty_range());
    for outside in ["/etc/passwd", "../f", "a/../../f", "nul\0"] {
        let (message, hint) = refused!(
            bed,
            touching("first..third", &[outside]),
            E::PathOutside { .. }
        );
        says(&message, &["does not lie in the repository"]);
        says(&hint, &["below the root"]);
    }
}

#[test]
fn ends_the_wrong_way_round() {
    let bed = Bed::new(LINE);
    let (message, hint) = refused!(bed, range("third..first"), E::Swapped { .. });
    says(&message, &["\"first\" is an ancestor of \"third\""]);
    says(&hint, &["broke it: first..third", "--fixed first..third"]);
    let (_, hint) = refused!(bed, fixed(range("third..first")), E::Swapped { .. });
    says(&hint, &["--fixed first..third", "without --fixed"]);
    assert!(!bed.error(&range("third..first")).is_empty_range());
    let several = flags(&["first", "third"], Some("second"));
    let (message, _) = refused!(bed, several, E::Swapped { .. });
    says(&message, &["\"second\" is an ancestor of \"third\""]);
}

#[test]
fn ends_without_a_common_ancestor() {
    let bed = Bed::new("a:\n b: a\n x:\n y: x");
    let (message, hint) = refused!(bed, range("b..y"), E::NoCommonAncestor { .. });
    says(&message, &["\"b\"", "\"y\""]);
    says(&hint, &["git merge-base"]);
    let one_related = flags(&["x", "b"], Some("y"));
    refused!(bed, one_related, E::NoCommonAncestor { .. });
}

#[test]
fn a_repository_without_commits() {
    let bed = Bed::new("");
    let (message, hint) = refused!(bed, range("v1.."), E::NoCommits { .. });
    says(&message, &["no commits yet"]);
    says(&hint, &["commit something"]);
    let orphan = Bed::new(LINE);
    orphan.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    let (message, _) = refused!(orphan, range("first.."), E::NoCommits { .. });
    says(&message, &["HEAD"]);
    assert_eq!(orphan.candidates(&range("first..second")), "second");
}

#[test]
fn a_shallow_clone_that_hides_the_good_end() {
    let full = Bed::new(
        "base:\n old: base\n good: old\n near: good\n side: base\n merge: near side\n tip: merge",
    );
    // The good end is not there at all.
    let clone = full.clone_with(&["--depth=1", "--no-tags"]);
    let hidden = range(&format!("{}..", full.id("good")));
    let (message, hint) = refused!(clone, hidden, E::ShallowHides { known: false, .. });
    says(&message, &["shallow"]);
    says(&hint, &["git fetch --unshallow", "--deepen"]);
    // It was fetched by itself: nothing leads to it.
    clone.git(&["fetch", "-q", "--depth=1", "origin", "tag", "good"]);
    let (message, hint) = refused!(clone, range("good.."), E::ShallowHides { known: true, .. });
    says(&message, &["\"good\"", "cut off"]);
    says(&hint, &["git fetch --unshallow"]);
    // All is there that leads to it: shallow is enough.
    let deep = full.clone_with(&["--depth=6", "--no-tags"]);
    let good = full.id("good");
    deep.git(&["tag", "good", good.as_str()]);
    assert_eq!(deep.candidates(&range("good..")), "merge near side tip");
    // It is connected, but `base` seems new: what makes it an ancestor of `good` is cut off.
    let cuts = ["--depth=5", "--depth=4"].map(|depth| full.clone_with(&[depth, "--no-tags"]));
    for cut in &cuts {
        cut.git(&["tag", "good", good.as_str()]);
        assert!(cut.rev_list(&["good.."]).contains(&full.id("base")));
        refused!(cut, range("good.."), E::ShallowHides { known: true, .. });
    }
    let cut = &cuts[1];
    // Along first parents that branch does not matter.
    assert_eq!(cut.candidates(&first_parent("good..")), "merge near tip");
    cut.git(&["fetch", "-q", "--unshallow"]);
    assert_eq!(cut.candidates(&range("good..")), "merge near side tip");
}
