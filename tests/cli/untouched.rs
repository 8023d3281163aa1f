//! The user's checkout is the same before, during and after.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Bed, Ran, commits};

/// Writes down what git says of the user's checkout while a trial runs, then the outcome.
const LOOK: &str = "git --no-optional-locks -C \"$CHECKOUT\" status --porcelain=v2 --branch > \"$LOG.$FBISECT_TRIAL\"; exit $(cat code)";

/// Every file below a folder with its content; objects (which may be added) and our own are left
/// out.
fn files(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(".git/objects") || path.ends_with(".fbisect") {
                continue;
            }
            if path.is_symlink() {
                let to = fs::read_link(&path).unwrap();
                found.insert(path, to.into_os_string().into_encoded_bytes());
            } else if path.is_dir() {
                // An empty folder counts too.
                found.insert(path.clone(), Vec::new());
                folders.push(path);
            } else {
                let content = fs::read(&path).unwrap();
                found.insert(path, content);
            }
        }
    }
    found
}

/// Searches from `checkout` and compares everything before, during and after.
#[track_caller]
fn leaves_alone(bed: &Bed, checkout: &Path, options: &[&str]) {
    let status = || {
        let words = [
            "--no-optional-locks",
            "status",
            "--porcelain=v2",
            "--branch",
        ];
        bed.git_in(checkout, &words)
    };
    let tops = [bed.root(), checkout.to_owned()];
    let worktrees = bed.git(&["worktree", "list", "--porcelain"]);
    let stash = bed.git(&["stash", "list"]);
    let (said, before) = (status(), tops.each_ref().map(|top| files(top)));
    let mut command = bed.command(&commits(
        &[options, &["--json"]].concat(),
        &["sh", "-c", LOOK],
    ));
    // Not as a word of the command: a path into the checkout would be turned to the worktree.
    command.current_dir(checkout).env("CHECKOUT", checkout);
    let ran = Ran::from(command.output().unwrap()).exits(0);
    let document = ran.json();
    assert_eq!(bed.named(&document), "c4");
    for n in 1..=document["trials"].as_u64().unwrap() {
        let during = fs::read_to_string(bed.dir().join(format!("log.{n}"))).unwrap();
        assert_eq!(during.trim_end(), said, "during trial {n}");
    }
    for (top, before) in tops.iter().zip(&before) {
        let after = files(top);
        for (path, content) in before {
            assert!(
                after.get(path) == Some(content),
                "{} has changed",
                path.display()
            );
        }
        let new: Vec<&PathBuf> = after.keys().filter(|p| !before.contains_key(*p)).collect();
        assert!(new.is_empty(), "left behind: {new:?}");
    }
    assert_eq!(status(), said);
    assert_eq!(bed.git(&["worktree", "list", "--porcelain"]), worktrees);
    assert_eq!(bed.git(&["stash", "list"]), stash);
    assert_eq!(
        bed.git(&["fsck", "--connectivity-only", "--no-dangling"]),
        ""
    );
    // The worktrees' folder is gone as well.
    let cache = bed.dir().join("home/cache/fbisect");
    let left: Vec<_> = fs::read_dir(&cache)
        .map(|d| d.map(|e| e.unwrap().path()).collect())
        .unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
}

fn bed() -> Bed {
    Bed::line(9, |i| {
        format!(
            "code={} a=a{i} b=b{i} c=c dir/d=d .gitignore=*.log",
            u8::from(i >= 4)
        )
    })
}

/// Staged, unstaged, untracked, ignored and deleted files, a stash, an intent to add.
fn dirty(bed: &Bed, at: &Path) {
    fs::write(at.join("c"), "stashed").unwrap();
    bed.git_in(at, &["stash", "-q"]);
    fs::write(at.join("a"), "staged").unwrap();
    bed.git_in(at, &["add", "a"]);
    fs::write(at.join("a"), "staged, then edited").unwrap();
    fs::write(at.join("b"), "edited").unwrap();
    fs::write(at.join("new"), "untracked").unwrap();
    fs::write(at.join("out.log"), "ignored").unwrap();
    fs::write(at.join("soon"), "intent").unwrap();
    bed.git_in(at, &["add", "-N", "soon"]);
    fs::remove_file(at.join("dir/d")).unwrap();
    bed.git_in(at, &["rm", "-q", "--cached", "c"]);
}

#[test]
fn a_clean_checkout() {
    let bed = bed();
    leaves_alone(&bed, &bed.root(), &["c0..c8"]);
}

#[test]
fn a_dirty_checkout() {
    let bed = bed();
    dirty(&bed, &bed.root());
    leaves_alone(&bed, &bed.root(), &["c0..c8"]);
    leaves_alone(
        &bed,
        &bed.root(),
        &["c0..c8", "--jobs", "3", "--clean", "all"],
    );
}

#[test]
fn with_a_patch_pins_and_a_build() {
    let bed = bed();
    dirty(&bed, &bed.root());
    let patch = bed.git(&["diff", "c8", "HEAD~8", "--", "b"]) + "\n";
    fs::write(bed.dir().join("b.patch"), patch).unwrap();
    bed.write("weights/w", "1");
    let options = [
        "c0..c8",
        "--apply",
        "../b.patch",
        "--pin",
        "new",
        "--link",
        "weights",
        "--build",
        "touch built out.log; rm -rf dir",
    ];
    leaves_alone(&bed, &bed.root(), &options);
}

#[test]
fn a_detached_head_in_the_middle_of_a_bisection() {
    let bed = bed();
    bed.git(&["bisect", "start", "c8", "c0"]);
    assert_eq!(bed.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "HEAD");
    leaves_alone(&bed, &bed.root(), &["c0..c8"]);
}

#[test]
fn a_conflicted_merge() {
    let bed = bed();
    bed.git(&["checkout", "-q", "-b", "other", "c2"]);
    bed.write("a", "theirs");
    bed.git(&["commit", "-q", "-am", "theirs"]);
    bed.git(&["checkout", "-q", "main"]);
    let merge = std::process::Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "merge",
            "-q",
            "other",
        ])
        .current_dir(bed.root())
        .output()
        .unwrap();
    assert!(!merge.status.success());
    leaves_alone(&bed, &bed.root(), &["c0..c8"]);
}

#[test]
fn a_linked_worktree_as_the_users_checkout() {
    let bed = bed();
    let linked = bed.dir().join("linked");
    bed.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "topic",
        linked.to_str().unwrap(),
        "c6",
    ]);
    dirty(&bed, &linked);
    leaves_alone(&bed, &linked, &["c0..c8"]);
}

#[test]
fn hooks_and_configuration_of_the_user_are_not_run() {
    let bed = bed();
    let hook = bed.script(".git/hooks/post-checkout", "#!/bin/sh\necho hook >> $LOG\n");
    bed.script("hooks/post-checkout", "#!/bin/sh\necho hook >> $LOG\n");
    bed.git(&[
        "config",
        "core.hooksPath",
        hook.parent().unwrap().to_str().unwrap(),
    ]);
    bed.git(&["config", "core.autocrlf", "input"]);
    leaves_alone(&bed, &bed.root(), &["c0..c8"]);
    assert!(bed.logged().is_empty());
}
