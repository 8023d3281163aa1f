//! Where the repository is found, and what its commits say.

use std::fs;
use std::path::{Path, PathBuf};

use fbisect::axes::commits::{self, HistoryError, Repo};

use super::bed::{Bed, flags, git_in, range};

/// Runs one test of this binary again, in a process with another environment.
fn again(test: &str, set: &[(&str, &Path)]) {
    let mut child = duct::cmd(
        std::env::current_exe().unwrap(),
        [test, "--exact", "--nocapture"],
    )
    .env("FBISECT_TEST_AGAIN", "1")
    .stdout_capture()
    .stderr_to_stdout()
    .unchecked();
    for (name, value) in set {
        child = child.env(name, value);
    }
    let output = child.run().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

fn is_again() -> bool {
    std::env::var_os("FBISECT_TEST_AGAIN").is_some()
}

#[test]
fn the_checkout_around_the_directory_is_found() {
    let bed = Bed::new("a: | sub/f=1");
    bed.git(&["reset", "-q", "--hard"]);
    let root = fs::canonicalize(bed.dir.path()).unwrap();
    let repo = bed.repo();
    assert_eq!(repo.root(), root);
    assert_eq!(repo.common_dir(), root.join(".git"));
    assert_eq!(repo.prefix(), Path::new(""));
    let below = Repo::discover(&root.join("sub")).unwrap();
    assert_eq!(below.root(), root);
    assert_eq!(below.prefix(), Path::new("sub"));
}

#[test]
fn a_linked_worktree_shares_the_git_directory() {
    let bed = Bed::new("a:\n b: a");
    let other = tempfile::tempdir().unwrap();
    let tree = other.path().join("tree");
    bed.git(&["worktree", "add", "-q", tree.to_str().unwrap(), "a"]);
    let repo = Repo::discover(&tree).unwrap();
    assert_eq!(repo.root(), fs::canonicalize(&tree).unwrap());
    assert_eq!(repo.common_dir(), bed.repo().common_dir());
    assert_ne!(repo.git_dir(), repo.common_dir());
    // HEAD is that of the worktree.
    let ends = commits::resolve(&repo, &flags(&["b"], None)).unwrap();
    assert_eq!(ends.bad, ("HEAD".into(), bed.id("a")));
}

#[test]
fn a_repository_named_by_the_environment_is_used() {
    if is_again() {
        let repo = Repo::discover(&std::env::current_dir().unwrap()).unwrap();
        let tree = fs::canonicalize(std::env::var_os("GIT_WORK_TREE").unwrap()).unwrap();
        assert_eq!(repo.root(), tree);
        let ends = commits::resolve(&repo, &range("theirs..main")).unwrap();
        assert_eq!(ends.good[0].0, "theirs");
        return;
    }
    let mine = Bed::new("mine:");
    let bed = Bed::new("theirs:\n next: theirs");
    let test = "places::a_repository_named_by_the_environment_is_used";
    let here = std::env::current_dir().unwrap();
    again(
        test,
        &[
            ("GIT_DIR", &bed.dir.path().join(".git")),
            ("GIT_WORK_TREE", &here),
            // Of another repository, as a hook would have left it.
            ("GIT_INDEX_FILE", &mine.dir.path().join(".git/index")),
            ("GIT_GLOB_PATHSPECS", Path::new("1")),
        ],
    );
}

#[test]
fn a_repository_of_another_user_is_refused_with_the_remedy_of_git() {
    if is_again() {
        let dir = PathBuf::from(std::env::var_os("FBISECT_TEST_DIR").unwrap());
        let error = Repo::discover(&dir).unwrap_err();
        assert!(
            matches!(error, HistoryError::ForeignOwner { .. }),
            "{error}"
        );
        let hint = error.hint().unwrap();
        assert!(
            hint.contains("git config --global --add safe.directory /"),
            "{hint}"
        );
        return;
    }
    let bed = Bed::new("a:");
    let test = "places::a_repository_of_another_user_is_refused_with_the_remedy_of_git";
    again(
        test,
        &[
            ("FBISECT_TEST_DIR", bed.dir.path()),
            ("GIT_TEST_ASSUME_DIFFERENT_OWNER", Path::new("1")),
            ("GIT_CONFIG_GLOBAL", Path::new("/dev/null")),
            ("GIT_CONFIG_SYSTEM", Path::new("/dev/null")),
        ],
    );
}

#[test]
fn a_machine_without_git_is_told_so() {
    if is_again() {
        let error = Repo::discover(Path::new("/")).unwrap_err();
        assert!(matches!(error, HistoryError::GitMissing(_)), "{error}");
        assert!(error.hint().unwrap().contains("install git"));
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    again(
        "places::a_machine_without_git_is_told_so",
        &[("PATH", empty.path())],
    );
}

#[test]
fn no_repository() {
    let dir = tempfile::tempdir().unwrap();
    let error = Repo::discover(dir.path()).unwrap_err();
    assert!(
        matches!(error, HistoryError::NotARepository { .. }),
        "{error}"
    );
    assert!(error.to_string().contains(dir.path().to_str().unwrap()));
    assert!(error.hint().unwrap().contains("checkout"));
}

#[test]
fn a_bare_repository_and_the_inside_of_a_git_directory_are_no_checkout() {
    let bed = Bed::new("a:");
    let bare = bed.clone_with(&["--bare"]);
    let error = Repo::discover(bare.dir.path()).unwrap_err();
    assert!(
        matches!(error, HistoryError::NoCheckout { bare: true, .. }),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("git worktree add"));
    let error = Repo::discover(&bed.dir.path().join(".git")).unwrap_err();
    assert!(
        matches!(error, HistoryError::NoCheckout { bare: false, .. }),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("top of the checkout"));
}

#[test]
fn a_commit_is_described_from_its_first_parent() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let bed = Bed::with_init(
            options,
            "a: | keep=1 old=1 exe=1 t=1
             s: a | side=1
             m: a s | keep=2 old= new/file=1 side=1 exe=+1",
        );
        let repo = bed.repo();
        let root = commits::details(&repo, &bed.id("a")).unwrap();
        assert!(root.parents.is_empty());
        assert_eq!(root.author_date, "2023-11-14T23:14:20+01:00");
        assert_eq!(root.subject, "a");
        assert_eq!(
            root.files,
            ["exe", "keep", "old", "t"].map(|path| ('A', path.into()))
        );
        let merge = commits::details(&repo, &bed.id("m")).unwrap();
        assert_eq!(merge.parents.len(), 2);
        assert_eq!(
            merge.files,
            [
                ('M', "exe"),
                ('M', "keep"),
                ('A', "new/file"),
                ('D', "old"),
                ('A', "side")
            ]
            .map(|(status, path)| (status, path.into()))
        );
    }
}

#[test]
fn a_description_survives_odd_names_and_settings() {
    let bed = Bed::new("a:");
    let dir = bed.dir.path();
    git_in(dir, &["config", "log.showSignature", "true"], b"");
    git_in(dir, &["config", "diff.renames", "copies"], b"");
    git_in(dir, &["config", "core.quotePath", "true"], b"");
    fs::write(dir.join("n\u{e4}me\nwith line"), "x").unwrap();
    git_in(dir, &["add", "-A"], b"");
    let message = "two\nlines \u{fc}\n\nand a body\0"; // git ends a message at a NUL
    git_in(
        dir,
        &["commit", "-q", "-F", "-"],
        message.trim_end_matches('\0').as_bytes(),
    );
    let head = commits::resolve(&bed.repo(), &flags(&["a"], None))
        .unwrap()
        .bad
        .1;
    let details = commits::details(&bed.repo(), &head).unwrap();
    assert_eq!(details.subject, "two lines \u{fc}");
    assert_eq!(details.files, [('A', "n\u{e4}me\nwith line".into())]);
}

#[test]
fn moved_revisions_are_seen() {
    let bed = Bed::new("a:\n b: a\n c: b");
    bed.git(&["branch", "gone", "a"]);
    bed.git(&["branch", "moved", "b"]);
    let repo = bed.repo();
    let ends = commits::resolve(&repo, &flags(&["gone", "moved"], Some("c"))).unwrap();
    bed.git(&["branch", "-D", "gone"]);
    bed.git(&["branch", "-f", "moved", "a"]);
    assert_eq!(
        commits::revisions_now(&repo, &ends),
        [
            ("gone".into(), None),
            ("moved".into(), Some(bed.id("a"))),
            ("c".into(), Some(bed.id("c"))),
        ]
    );
}
