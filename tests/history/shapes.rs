//! Which commits are candidates, and how they hang together.

use super::bed::{Bed, Request, candidate_ids, first_parent, fixed, flags, line, range, touching};

const LINE: &str = "
    a: | f=1
    b: a | f=2
    c: b | g=1
    d: c | f=3
";

/// A side branch (s, t) forked before the good end g and merged after it.
const SIDE: &str = "
    r:
    s: r | lib/x=1
    g: r | f=1
    t: s | lib/x=2
    h: g | f=2
    m: h t | lib/x=2
    z: m | f=3
";

#[test]
fn a_line() {
    let bed = Bed::new(LINE);
    assert_eq!(
        bed.show(&range("a..d")),
        "a | b*[a] c*[b] d*[c] | bad d good a bases"
    );
    assert_eq!(
        bed.show(&range("b..")),
        "b | c*[b] d*[c] | bad d good b bases"
    );
    assert_eq!(
        bed.show(&flags(&["c"], None)),
        "c | d*[c] | bad d good c bases"
    );
    let history = bed.load(&range("a..d")).unwrap();
    assert_eq!(history.node(&bed.id("a")), Some(0));
    assert_eq!(history.node(&bed.id("d")), Some(3));
    assert_eq!(history.node(&Bed::new("q:").id("q")), None);
    assert_eq!(history.candidates(), 3);
}

#[test]
fn a_branch_that_forked_before_the_good_end() {
    let bed = Bed::new(SIDE);
    assert_eq!(
        bed.show(&range("g..z")),
        "g r | s*[r] t*[s] h*[g] m*[h t] z*[m] | bad z good g bases"
    );
    assert_eq!(
        candidate_ids(&bed.load(&range("g..z")).unwrap()),
        bed.rev_list(&["g..z"])
    );
}

#[test]
fn first_parents_only() {
    let bed = Bed::new(SIDE);
    assert_eq!(
        bed.show(&first_parent("g..z")),
        "g | h*[g] m*[h] z*[m] | bad z good g bases"
    );
    assert_eq!(
        candidate_ids(&bed.load(&first_parent("g..z")).unwrap()),
        bed.rev_list(&["--first-parent", "g..z"])
    );
    // The good end came in as a second parent: the chain ends where it meets what that one reaches.
    assert_eq!(
        bed.show(&first_parent("t..z")),
        "r t | g*[r] h*[g] m*[h] z*[m] | bad z good t bases"
    );
}

#[test]
fn first_parents_down_to_a_root() {
    let bed = Bed::new("x:\n a:\n b: a\n m: b x\n n: m");
    assert_eq!(
        bed.show(&first_parent("x..n")),
        "x | a*[] b*[a] m*[b] n*[m] | bad n good x bases"
    );
    assert_eq!(
        bed.show(&range("x..n")),
        "x | a*[] b*[a] m*[b x] n*[m] | bad n good x bases"
    );
}

#[test]
fn a_good_end_on_another_branch_makes_its_merge_base_a_node() {
    let bed = Bed::new("a:\n b: a\n c: b\n g: b\n z: c");
    assert_eq!(
        bed.show(&range("g..z")),
        "b g | c*[b] z*[c] | bad z good g bases b"
    );
}

#[test]
fn a_criss_cross_has_two_merge_bases() {
    let bed = Bed::new("r:\n a: r\n b: r\n g: a b\n y: b a\n z: y");
    assert_eq!(
        bed.show(&range("g..z")),
        "a b g | y*[b a] z*[y] | bad z good g bases a b"
    );
    assert_eq!(
        bed.show(&first_parent("g..z")),
        "a b g | y*[b] z*[y] | bad z good g bases a b"
    );
}

#[test]
fn several_good_ends() {
    let bed = Bed::new(SIDE);
    let both = flags(&["g", "s", "g"], Some("z"));
    assert_eq!(
        bed.show(&both),
        "g s | t*[s] h*[g] m*[h t] z*[m] | bad z good g s bases"
    );
    let mut more = range("g..z");
    more.good.push("t".into());
    assert_eq!(
        bed.show(&more),
        "g t | h*[g] m*[h t] z*[m] | bad z good g t bases"
    );
    // An old end below another one is an ancestor too, though no parent of the range.
    assert_eq!(
        bed.show(&flags(&["r", "h", "t"], Some("z"))),
        "h r t | m*[h t] z*[m] | bad z good h r t bases"
    );
}

#[test]
fn a_merge_base_below_another_good_end_needs_no_test() {
    let bed = Bed::new("a:\n g: a\n side: a\n z: g");
    assert_eq!(
        bed.show(&flags(&["g", "side"], Some("z"))),
        "g side | z*[g] | bad z good g side bases"
    );
}

#[test]
fn an_octopus() {
    let bed = Bed::new("r:\n a: r\n b: r\n c: r\n d: r\n o: a b c d\n z: o");
    assert_eq!(
        bed.show(&range("a..z")),
        "a r | b*[r] c*[r] d*[r] o*[a b c d] z*[o] | bad z good a bases"
    );
}

#[test]
fn looking_for_a_fix() {
    let bed = Bed::new(LINE);
    let plain = bed.show(&range("a..c"));
    assert_eq!(bed.show(&fixed(range("a..c"))), plain);
    assert_eq!(bed.show(&fixed(flags(&["c"], Some("a")))), plain);
    assert_eq!(
        bed.show(&fixed(flags(&[], Some("c")))),
        bed.show(&range("c..HEAD"))
    );
}

#[test]
fn ties_go_by_time_then_hash_and_parents_always_come_first() {
    let bed = Bed::new(
        "r: @500\n late: r @900\n early: r @100\n m: late early @50\n same: r @100\n z: m same @10",
    );
    let shown = bed.show(&range("r..z"));
    let twins = ["early*[r] same*[r]", "same*[r] early*[r]"];
    assert!(
        twins.iter().any(|twins| shown
            == format!("r | {twins} late*[r] m*[late early] z*[m same] | bad z good r bases")),
        "{shown}"
    );
    let first = bed.load(&range("r..z")).unwrap().commits;
    assert_eq!(first, bed.load(&range("r..z")).unwrap().commits);
}

#[test]
fn a_clock_that_went_wrong_hides_no_ancestor() {
    // An old end reaches c only through x, which is dated long before everything else.
    let script = line(40) + "g2: c39\n c: c39\n x: c @10\n g1: x\n d: c\n z: d\n";
    let bed = Bed::new(&script);
    assert_eq!(bed.candidates(&flags(&["g1", "g2"], Some("z"))), "d z");
}

#[test]
fn paths_choose_candidates_but_keep_ancestry() {
    let bed = Bed::new(LINE);
    assert_eq!(
        bed.show(&touching("a..d", &["f"])),
        "a | b*[a] c[b] d*[c] | bad d good a bases"
    );
    assert_eq!(
        bed.show(&touching("a..d", &["g"])),
        "a | b[a] c*[b] d[c] | bad d good a bases"
    );
    assert_eq!(bed.candidates(&touching("a..d", &["./f", "g"])), "b c d");
    assert_eq!(bed.candidates(&touching("a..d", &["."])), "b c d");
}

/// Merges that take, keep and combine; a root; a mode; a file that becomes a folder; odd names.
const TOUCH: &str = "
    g: | lib/x=1 lib/y=1 top=1
    other: | lib/z=1
    far: | far=1
    p: g | lib/x=2
    q: g | lib/y=2
    takes: p g | top=2
    combines: p q | lib/y=2
    same: combines other | far=3
    roots: same far | far=1
    mode: roots | lib/x=+2
    gone: mode | lib/x= lib/y=
    file: gone | lib=1
    folder: file | lib= lib/x=2
    star: folder | [l]ib/x=1 lib*=2
    end: star | top=3
";

#[test]
fn a_commit_touches_a_path_when_it_differs_from_all_its_parents() {
    let bed = Bed::new(TOUCH);
    let of = |paths: &[&str]| bed.candidates(&touching("g..end", paths));
    // `takes` is in no range below `end`; `same` and `roots` differ in lib from one parent only.
    assert_eq!(of(&["lib"]), "combines file folder gone mode other p q");
    // At a file, a merge of two changed files combines nothing.
    assert_eq!(of(&["lib/x"]), "folder gone mode p");
    assert_eq!(of(&["lib/y/"]), "gone q");
    assert_eq!(of(&["lib/z"]), "other");
    assert_eq!(of(&["far"]), "far same");
    // `roots` has lib/x from one parent and far from the other.
    assert_eq!(of(&["lib/x", "far"]), "far folder gone mode p roots same");
    assert_eq!(of(&["lib*"]), "star");
    assert_eq!(of(&["[l]ib/x"]), "star");
    assert_eq!(bed.candidates(&touching("g..takes", &["lib"])), "p");
    assert_eq!(bed.candidates(&touching("g..takes", &["top"])), "takes");
}

#[test]
fn along_first_parents_a_merge_touches_what_it_brings_in() {
    let bed = Bed::new(SIDE);
    let request = |paths: &[&str]| Request {
        first_parent: true,
        ..touching("g..z", paths)
    };
    assert_eq!(bed.candidates(&request(&["lib"])), "m");
    assert_eq!(bed.candidates(&touching("g..z", &["lib"])), "s t");
}

/// Repositories that libgit2 cannot open or answers otherwise must give the very same history.
#[test]
fn what_only_git_can_read_gives_the_same_history() {
    let requests = [
        range("g..end"),
        first_parent("g..end"),
        range("q..end"),
        flags(&["p", "q"], Some("end")),
        touching("g..end", &["lib"]),
        touching("g..end", &["lib/x"]),
        touching("g..end", &["lib/y"]),
        touching("g..end", &["lib/z", "far"]),
        touching("g..end", &["lib*"]),
        touching("g..end", &["[l]ib/x"]),
        touching("g..end", &["."]),
        touching("g..takes", &["lib"]),
        Request {
            first_parent: true,
            ..touching("g..end", &["lib"])
        },
    ];
    let plain = Bed::new(TOUCH);
    assert!(git2::Repository::open(plain.dir.path()).is_ok());
    for options in ["--object-format=sha256", "--ref-format=reftable"] {
        let other = Bed::with_init(&[options], TOUCH);
        assert!(git2::Repository::open(other.dir.path()).is_err());
        for request in &requests {
            assert_eq!(
                other.show(request),
                plain.show(request),
                "{options} {request:?}"
            );
        }
    }
    let reftable = Bed::with_init(&["--ref-format=reftable"], TOUCH);
    assert_eq!(
        reftable.load(&range("g..end")).unwrap().commits,
        plain.load(&range("g..end")).unwrap().commits
    );
}

#[test]
fn replaced_commits_count_as_git_shows_them() {
    let bed = Bed::new("a:\n b: a\n c: b\n d: c\n short: a");
    bed.git(&["replace", "c", "short"]);
    assert_eq!(bed.candidates(&range("a..d")), "c d");
    assert_eq!(
        candidate_ids(&bed.load(&range("a..d")).unwrap()),
        bed.rev_list(&["a..d"])
    );
}

#[test]
fn a_partial_clone_without_trees_can_be_searched_by_path() {
    let full = Bed::new(TOUCH);
    full.git(&["config", "uploadpack.allowFilter", "true"]);
    full.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let partial = full.clone_with(&["--filter=tree:0", "--no-checkout"]);
    let lib = touching("g..end", &["lib"]);
    assert_eq!(partial.show(&lib), full.show(&lib));
}
