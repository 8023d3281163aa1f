//! The command's words: shells, placeholders, where it runs, and paths that lead into the tree.

use crate::support::{Bed, commits};

#[test]
fn a_shell_line() {
    let bed = Bed::broken_from(4, 9);
    let repro = [
        "bash",
        "-c",
        "set -euo pipefail; code=$(< code); (( code == 0 ))",
    ];
    assert_eq!(bed.finds(&["c0..c8"], &repro), "c4");
}

#[test]
fn words_are_not_read_by_a_shell() {
    let bed = Bed::broken_from(4, 9);
    let repro = [
        "sh",
        "-c",
        "printf '%s\\n' \"$@\" >> $LOG; exit $(cat code)",
        "x",
        "a b",
        "$HOME",
        "*",
        "",
        "{other}",
    ];
    assert_eq!(bed.finds(&["c0..c8", "--deterministic"], &repro), "c4");
    assert_eq!(bed.logged()[..5], ["a b", "$HOME", "*", "", "{other}"]);
}

#[test]
fn placeholders_and_variables_agree() {
    let bed = Bed::broken_from(4, 9);
    let check = "[ \"$1\" = \"--seed=$FBISECT_SEED\" ] && [ \"$2\" = \"$FBISECT_COMMIT\" ] \
        && [ \"$3\" = \"$FBISECT_TRIAL_DIR/out\" ] && [ \"$4\" = \"$FBISECT_WORKSPACE\" ] && [ \"$4\" = \"$PWD\" ] \
        && [ \"$(git rev-parse HEAD)\" = \"$2\" ] && [ -d \"$TMPDIR\" ] && [ -z \"$(ls -A $TMPDIR)\" ] \
        && [ -n \"$MASTER_PORT\" ] && [ \"$FBISECT_SLOT\" = 0 ] || exit 77; echo kept > $3; exit $(cat code)";
    let repro = [
        "sh",
        "-c",
        check,
        "x",
        "--seed={seed}",
        "{commit}",
        "{trial_dir}/out",
        "{workspace}",
    ];
    let document = bed.document(0, &["c0..c8"], &repro);
    assert_eq!(bed.named(&document), "c4");
    // A trial's folder is kept.
    let trials = bed
        .root()
        .join(".fbisect/sessions")
        .join(document["session"].as_str().unwrap())
        .join("trials");
    for n in 1..=document["trials"].as_u64().unwrap() {
        let kept = std::fs::read_to_string(trials.join(n.to_string()).join("out")).unwrap();
        assert_eq!(kept, "kept\n");
    }
}

#[test]
fn from_a_folder_below_the_top() {
    let bed = Bed::line(9, |i| format!("sub/code={}", u8::from(i >= 4)));
    // Untracked, so the worktrees have it by the pin alone.
    bed.script("sub/repro.sh", "#!/bin/sh\npwd >> $LOG; exit $(cat code)\n");
    let below = bed.root().join("sub");
    let ran = bed.run_in(&below, &commits(&["c0..c8", "--json"], &["./repro.sh"]));
    assert_eq!(bed.named(&ran.exits(0).json()), "c4");
    for line in bed.logged() {
        assert!(
            line.ends_with("/sub") && !line.starts_with(bed.root().to_str().unwrap()),
            "{line}"
        );
    }
    // The sessions stand at the top.
    assert!(bed.root().join(".fbisect").is_dir() && !below.join(".fbisect").exists());
}

#[test]
fn a_path_from_the_top_of_the_file_system_leads_into_the_worktree() {
    let bed = Bed::line(9, |i| format!("sub/code={}", u8::from(i >= 4)));
    let repro = bed.script(
        "sub/repro.sh",
        "#!/bin/sh\ncd \"$(dirname \"$0\")\"; pwd >> $LOG; exit $(cat code)\n",
    );
    let repro = repro.to_str().unwrap();
    let python = ["--script", repro].join("=");
    assert_eq!(bed.finds(&["c0..c8"], &[repro]), "c4");
    assert_eq!(bed.finds(&["c0..c8"], &["sh", repro]), "c4");
    assert_eq!(bed.finds(&["c0..c8"], &["sh", "-c", repro]), "c4");
    assert_eq!(
        bed.finds(
            &["c0..c8"],
            &["sh", "-c", "sh ${1#--script=}", "x", &python]
        ),
        "c4"
    );
    for line in bed.logged() {
        assert!(!line.starts_with(bed.root().to_str().unwrap()), "{line}");
    }
}

#[test]
fn a_program_outside_the_tree() {
    let bed = Bed::broken_from(4, 9);
    let outside = bed.script("../tool.sh", "#!/bin/sh\nexit $(cat code)\n");
    assert_eq!(bed.finds(&["c0..c8"], &[outside.to_str().unwrap()]), "c4");
    assert_eq!(bed.finds(&["c0..c8"], &["../tool.sh"]), "c4");
}

#[test]
fn the_users_git_variables_do_not_reach_a_trial() {
    let bed = Bed::broken_from(4, 9);
    // As in a hook, or under `git bisect run`.
    let repro = [
        "sh",
        "-c",
        "[ $(git rev-parse HEAD) = $FBISECT_COMMIT ] || exit 77; exit $(cat code)",
    ];
    let output = bed
        .command(&commits(&["c0..c8", "--json"], &repro))
        .env("GIT_DIR", bed.root().join(".git"))
        .env("GIT_INDEX_FILE", bed.root().join(".git/index"))
        .output()
        .unwrap();
    let ran = crate::support::Ran::from(output).exits(0);
    assert_eq!(bed.named(&ran.json()), "c4");
}
