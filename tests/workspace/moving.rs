//! Checkouts, cleaning, and what must stay untouched.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use fbisect::model::{Clean, CommitId, PrepareStep};
use fbisect::trials::workspace::{BaseDirError, Fault, Workspace, base_dir};

use crate::repo::{Repo, executable, git_in, read, workspace as slot, write};

/// Two commits: `a.txt` says 1, then 2 and there is a `new/b.txt`.
fn two_commits() -> (Repo, CommitId, CommitId) {
    let repo = Repo::new();
    repo.write("a.txt", "1\n");
    repo.write(".gitignore", "build/\n__pycache__/\n*.pyc\n");
    let one = repo.commit("one");
    repo.write("a.txt", "2\n");
    repo.write("new/b.txt", "b\n");
    let two = repo.commit("two");
    (repo, one, two)
}

#[test]
fn the_users_checkout_is_the_same_before_during_and_after() {
    let (repo, one, two) = two_commits();
    repo.write("a.txt", "stashed\n");
    repo.git(&["stash", "-q"]);
    repo.write("a.txt", "unstaged\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("untracked.txt", "untracked\n");
    repo.git(&["status"]);
    let mark = repo.temp.path().join("hook-ran");
    for hook in [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    ] {
        let script = format!("#!/bin/sh\necho {hook} >> '{}'\n", mark.display());
        executable(&repo.root.join(".git/hooks").join(hook), &script);
    }
    let before = repo.everything();

    let mut workspace = slot(repo.rules(), &one);
    workspace.move_to(&two).unwrap();
    let mut during = repo.everything();
    during.retain(|path, _| !path.starts_with(".git/worktrees"));
    assert_eq!(during, before);
    workspace.remove().unwrap();

    assert_eq!(repo.everything(), before);
    assert!(!mark.exists(), "a hook ran");
    repo.assert_nothing_left();
}

#[test]
fn a_move_brings_exactly_the_commits_files() {
    let (repo, one, two) = two_commits();
    let mut workspace = slot(repo.rules(), &two);
    let root = workspace.root().to_path_buf();
    assert!(root.starts_with(repo.base()) && root.ends_with("slot-0"));
    write(&root.join("a.txt"), "edited by a trial\n");
    fs::remove_file(root.join("new/b.txt")).unwrap();
    let moved = workspace.move_to(&one).unwrap();
    assert!(moved.changed);
    assert_eq!(read(root.join("a.txt")), "1\n");
    assert!(!root.join("new").exists());
    assert_eq!(git_in(&root, &["rev-parse", "HEAD"]), one.as_str());
    assert_eq!(workspace.commit(), Some(&one));
    workspace.move_to(&two).unwrap();
    assert_eq!(read(root.join("new/b.txt")), "b\n");
    assert_eq!(git_in(&root, &["status", "--porcelain"]), "");
}

#[test]
fn standing_there_already_keeps_what_a_build_left() {
    let (repo, one, two) = two_commits();
    let mut workspace = slot(repo.rules(), &one);
    write(&workspace.root().join("made.o"), "object");
    assert!(!workspace.move_to(&one).unwrap().changed);
    assert!(workspace.root().join("made.o").exists());
    // A trial that checks out something else itself is found out.
    git_in(
        workspace.root(),
        &["checkout", "-q", "--detach", two.as_str()],
    );
    assert!(workspace.move_to(&one).unwrap().changed);
    assert_eq!(read(workspace.root().join("a.txt")), "1\n");
}

#[test]
fn cleaning_removes_what_the_mode_says() {
    for (clean, untracked_stays, ignored_stays) in [
        (Clean::None, true, true),
        (Clean::Untracked, false, true),
        (Clean::All, false, false),
    ] {
        let (repo, one, two) = two_commits();
        let mut rules = repo.rules();
        rules.clean = clean;
        let mut workspace = slot(rules, &one);
        let root = workspace.root().to_path_buf();
        write(&root.join("left/over.txt"), "x");
        write(&root.join("build/out.o"), "x");
        git_in(&root, &["init", "-q", "cloned"]);
        workspace.move_to(&two).unwrap();
        assert_eq!(root.join("left").exists(), untracked_stays, "{clean:?}");
        assert_eq!(root.join("cloned").exists(), untracked_stays, "{clean:?}");
        assert_eq!(
            root.join("build/out.o").exists(),
            ignored_stays,
            "{clean:?}"
        );
    }
}

#[test]
fn ignored_bytecode_cannot_answer_for_another_commit() {
    let (repo, one, two) = two_commits();
    let mut workspace = slot(repo.rules(), &one);
    let root = workspace.root().to_path_buf();
    write(&root.join("__pycache__/m.cpython-311.pyc"), "stale");
    write(
        &root.join("build/lib/__pycache__/m.pyc"),
        "an environment's own",
    );
    workspace.move_to(&two).unwrap();
    assert!(!root.join("__pycache__").exists());
    assert!(root.join("build/lib/__pycache__/m.pyc").exists());
}

#[test]
fn cleaning_never_deletes_through_a_link() {
    let (repo, one, two) = two_commits();
    let precious = repo.temp.path().join("precious");
    write(&precious.join("weights.bin"), "weights");
    let mut rules = repo.rules();
    rules.clean = Clean::All;
    let mut workspace = slot(rules, &one);
    symlink(&precious, workspace.root().join("by-a-trial")).unwrap();
    workspace.move_to(&two).unwrap();
    assert!(!workspace.root().join("by-a-trial").is_symlink());
    assert_eq!(read(precious.join("weights.bin")), "weights");
}

/// `*.bin` passes through a filter that writes upper case, and fails on the word "broken".
fn with_filter() -> Repo {
    let repo = Repo::new();
    repo.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    let smudge = "input=$(cat); case $input in *broken*) echo 'object not found' >&2; exit 1;; esac; \
                  printf '%s' \"$input\" | tr a-z A-Z";
    repo.git(&["config", "filter.up.smudge", smudge]);
    repo.git(&["config", "filter.up.required", "true"]);
    repo.write(".gitattributes", "*.bin filter=up\n");
    repo
}

#[test]
fn filters_run_and_one_that_fails_is_the_commits_fault() {
    let repo = with_filter();
    repo.write("w.bin", "weights");
    let good = repo.commit("good");
    repo.write("w.bin", "broken");
    for n in 0..20 {
        repo.write(&format!("added/{n}.txt"), "x");
        repo.write(&format!("zadded/{n}.txt"), "x");
    }
    let bad = repo.commit("bad");
    let mut rules = repo.rules();
    rules.clean = Clean::None;
    let mut workspace = slot(rules.clone(), &good);
    let root = workspace.root().to_path_buf();
    assert_eq!(read(root.join("w.bin")), "WEIGHTS");

    let error = workspace.move_to(&bad).unwrap_err();
    assert_eq!(
        (error.step, error.fault),
        (PrepareStep::Checkout, Fault::Commit)
    );
    assert!(error.detail.contains("w.bin"), "{error}");
    assert_eq!(workspace.commit(), None);
    workspace.move_to(&good).unwrap();
    assert_eq!(read(root.join("w.bin")), "WEIGHTS");
    assert!(!root.join("added").exists() && !root.join("zadded").exists());
    assert_eq!(git_in(&root, &["status", "--porcelain"]), "");
    workspace.remove().unwrap();

    let error = Workspace::create(&Arc::new(rules), "slot-1", &bad).unwrap_err();
    assert_eq!(error.fault, Fault::Commit, "{error}");
    repo.assert_nothing_left();
}

#[test]
fn a_missing_object_is_the_commits_fault() {
    let (repo, one, two) = two_commits();
    let blob = repo.git(&["rev-parse", "HEAD:new/b.txt"]);
    let (folder, file) = blob.split_at(2);
    let object = repo.root.join(".git/objects").join(folder).join(file);
    fs::remove_file(object).unwrap();
    let mut workspace = slot(repo.rules(), &one);
    let error = workspace.move_to(&two).unwrap_err();
    assert_eq!(error.fault, Fault::Commit, "{error}");
    workspace.move_to(&one).unwrap();
    assert_eq!(read(workspace.root().join("a.txt")), "1\n");
}

#[test]
fn a_folder_that_cannot_be_made_is_the_machines_fault() {
    let (repo, one, _) = two_commits();
    write(&repo.base(), "a file where the folder should be");
    let error = Workspace::create(&Arc::new(repo.rules()), "slot-0", &one).unwrap_err();
    assert_eq!(error.fault, Fault::Machine, "{error}");
    assert!(!repo.root.join(".git/worktrees").exists());
}

#[test]
fn sparse_patterns_carry_over() {
    let (repo, one, two) = two_commits();
    repo.write("big/data.txt", "1");
    repo.write("big/pinned.txt", "pinned");
    let three = repo.commit("three");
    repo.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/big/"]);
    assert!(!repo.root.join("big").exists());
    let mut rules = repo.rules();
    repo.write("big/pinned.txt", "today");
    rules.pins = repo.pin(&["big/pinned.txt"]);
    let before = repo.everything();
    let mut workspace = slot(rules, &three);
    let root = workspace.root().to_path_buf();
    for commit in [&one, &two, &three, &one, &three] {
        workspace.move_to(commit).unwrap();
        assert!(!root.join("big/data.txt").exists());
        assert_eq!(read(root.join("big/pinned.txt")), "today");
        assert_eq!(root.join("new/b.txt").exists(), commit != &one);
    }
    workspace.remove().unwrap();
    assert_eq!(repo.everything(), before);
}

#[test]
fn what_a_trial_broke_in_gits_own_files_is_mended() {
    let (repo, one, two) = two_commits();
    let mut workspace = slot(repo.rules(), &one);
    let root = workspace.root().to_path_buf();
    let admin = repo.root.join(".git/worktrees/slot-0");

    write(&admin.join("index.lock"), "");
    workspace.move_to(&two).unwrap();
    write(
        &admin.join("index"),
        "no index at all, and long enough to be read as one",
    );
    workspace.move_to(&one).unwrap();
    assert_eq!(read(root.join("a.txt")), "1\n");
    fs::remove_file(root.join(".git")).unwrap();
    workspace.move_to(&two).unwrap();
    assert_eq!(read(root.join("a.txt")), "2\n");
    fs::remove_dir_all(&root).unwrap();
    workspace.move_to(&one).unwrap();
    assert_eq!(read(root.join("a.txt")), "1\n");
    workspace.remove().unwrap();
    repo.assert_nothing_left();
}

#[test]
fn a_workspace_of_a_linked_worktree_belongs_to_the_same_repository() {
    let (repo, one, two) = two_commits();
    let linked = repo.temp.path().join("linked");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        linked.to_str().unwrap(),
        one.as_str(),
    ]);
    let mut rules = repo.rules();
    rules.repository_root = linked;
    let before = repo.everything();
    let mut workspace = slot(rules, &one);
    workspace.move_to(&two).unwrap();
    workspace.remove().unwrap();
    assert_eq!(repo.everything(), before);
}

#[test]
fn the_base_folder_must_lie_outside_the_checkout() {
    let (repo, ..) = two_commits();
    let inside = repo.root.join("scratch/fbisect");
    let error = base_dir(Some(&inside), &[&repo.root]).unwrap_err();
    assert!(matches!(error, BaseDirError::InsideTree { .. }));
    assert!(error.to_string().contains("--workspace-dir"), "{error}");
    let link = repo.temp.path().join("link");
    symlink(&repo.root, &link).unwrap();
    assert!(base_dir(Some(&link.join("x")), &[&repo.root]).is_err());
    let outside = repo.base().join("not/there/yet");
    assert_eq!(base_dir(Some(&outside), &[&repo.root]).unwrap(), outside);
}
