//! Submodules, nested ones, and ones that come and go.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fbisect::model::{Clean, CommitId, PrepareStep};
use fbisect::trials::workspace::Workspace;

use crate::repo::{Repo, git_in, read, workspace as slot, write};

/// Repositories `leaf` and `lib` (which has `leaf` as a submodule), and a user's checkout that has
/// `lib` cloned, with its remotes then moved away: nothing can be fetched any more.
struct Family {
    repo: Repo,
    none: CommitId,
    first: CommitId,
    second: CommitId,
    vendored: CommitId,
}

fn commit_in(dir: &Path, file: &str, content: &str) {
    write(&dir.join(file), content);
    git_in(dir, &["add", "-A"]);
    git_in(dir, &["commit", "-q", "-m", content.trim()]);
}

fn family() -> Family {
    let repo = Repo::new();
    let (leaf, lib) = (repo.temp.path().join("leaf"), repo.temp.path().join("lib"));
    for dir in [&leaf, &lib] {
        fs::create_dir(dir).unwrap();
        git_in(dir, &["init", "-q", "-b", "main"]);
    }
    commit_in(&leaf, "leaf.txt", "leaf 1\n");
    git_in(
        &lib,
        &[
            "submodule",
            "add",
            "-q",
            leaf.to_str().unwrap(),
            "deep/leaf",
        ],
    );
    commit_in(&lib, "lib.txt", "lib 1\n");

    repo.write("a", "0");
    let none = repo.commit("none");
    repo.git(&["submodule", "add", "-q", lib.to_str().unwrap(), "third/lib"]);
    repo.git(&["submodule", "update", "-q", "--init", "--recursive"]);
    let first = repo.commit("first");
    commit_in(&lib, "lib.txt", "lib 2\n");
    git_in(&lib, &["rm", "-q", "deep/leaf"]);
    commit_in(&lib, "deep/leaf/plain.txt", "leaf is plain now\n");
    git_in(
        &repo.root.join("third/lib"),
        &["pull", "-q", "origin", "main"],
    );
    let second = repo.commit("second");
    repo.git(&["rm", "-qf", "third/lib"]);
    repo.write("third/lib/vendored.txt", "vendored\n");
    let vendored = repo.commit("vendored");
    fs::rename(&lib, repo.temp.path().join("lib-moved")).unwrap();
    fs::rename(&leaf, repo.temp.path().join("leaf-moved")).unwrap();
    Family {
        repo,
        none,
        first,
        second,
        vendored,
    }
}

#[test]
fn submodules_follow_each_commit_without_network_or_a_write_to_the_users_files() {
    for clean in [Clean::None, Clean::Untracked, Clean::All] {
        let family = family();
        let repo = &family.repo;
        let before = repo.everything();
        let mut rules = repo.rules();
        rules.submodules = true;
        rules.clean = clean;
        let mut workspace = slot(rules, &family.first);
        let root = workspace.root().to_path_buf();
        let lib = root.join("third/lib");
        let (none, first) = (&family.none, &family.first);
        let (second, vendored) = (&family.second, &family.vendored);
        for commit in [
            first, second, first, none, second, vendored, first, vendored, none, first,
        ] {
            workspace.move_to(commit).unwrap();
            if commit == first {
                assert_eq!(read(lib.join("lib.txt")), "lib 1\n");
                assert_eq!(read(lib.join("deep/leaf/leaf.txt")), "leaf 1\n");
                assert!(!lib.join("deep/leaf/plain.txt").exists());
            } else if commit == second {
                assert_eq!(read(lib.join("lib.txt")), "lib 2\n");
                assert_eq!(read(lib.join("deep/leaf/plain.txt")), "leaf is plain now\n");
                assert!(!lib.join("deep/leaf/.git").exists());
            } else if commit == vendored {
                assert_eq!(read(lib.join("vendored.txt")), "vendored\n");
                assert!(!lib.join(".git").exists() && !lib.join("lib.txt").exists());
            } else {
                assert!(!lib.exists());
            }
            assert_eq!(git_in(&root, &["status", "--porcelain"]), "", "{clean:?}");
        }
        let mut during = repo.everything();
        during.retain(|path, _| !path.starts_with(".git/worktrees"));
        assert_eq!(during, before);
        workspace.remove().unwrap();
        assert_eq!(repo.everything(), before);
        repo.assert_nothing_left();
    }
}

#[test]
fn what_a_trial_left_in_a_submodule_is_cleaned_and_undone() {
    let family = family();
    let mut rules = family.repo.rules();
    rules.submodules = true;
    let mut workspace = slot(rules, &family.first);
    let lib = workspace.root().join("third/lib");
    write(&lib.join("junk.txt"), "junk");
    write(&lib.join("deep/leaf/leaf.txt"), "edited");
    workspace.move_to(&family.none).unwrap();
    workspace.move_to(&family.first).unwrap();
    write(&lib.join("junk.txt"), "junk");
    write(&lib.join("lib.txt"), "edited");
    workspace.move_to(&family.second).unwrap();
    assert!(!lib.join("junk.txt").exists());
    assert_eq!(read(lib.join("lib.txt")), "lib 2\n");
}

#[test]
fn a_commit_that_the_users_clone_lacks_comes_from_its_address() {
    let family = family();
    let repo = &family.repo;
    let lib = repo.temp.path().join("lib");
    fs::rename(repo.temp.path().join("lib-moved"), &lib).unwrap();
    fs::rename(
        repo.temp.path().join("leaf-moved"),
        repo.temp.path().join("leaf"),
    )
    .unwrap();
    commit_in(&lib, "lib.txt", "lib 3\n");
    let newer = git_in(&lib, &["rev-parse", "HEAD"]);
    repo.git(&["checkout", "-q", "-f", family.second.as_str()]);
    let entry = format!("160000,{newer},third/lib");
    repo.git(&["update-index", "--cacheinfo", &entry]);
    repo.git(&["commit", "-q", "-m", "bump"]);
    let bump = repo.id("HEAD");
    let mut rules = repo.rules();
    rules.submodules = true;
    // Git's own guard against folders named by a commit stands, so the fetch is refused there...
    let mut workspace = slot(rules, &family.first);
    let error = workspace.move_to(&bump).unwrap_err();
    assert!(
        error.detail.contains("transport 'file' not allowed"),
        "{error}"
    );
    // ...and done where the submodule's own configuration allows it.
    let place = workspace.root().join("third/lib");
    git_in(&place, &["config", "protocol.file.allow", "always"]);
    workspace.move_to(&bump).unwrap();
    assert_eq!(read(place.join("lib.txt")), "lib 3\n");
    workspace.remove().unwrap();

    let mut rules = repo.rules();
    rules.submodules = true;
    let error = Workspace::create(&Arc::new(rules), "slot-1", &bump).unwrap_err();
    assert_eq!(error.step, PrepareStep::Submodules);
    assert!(
        error.detail.contains("transport 'file' not allowed"),
        "{error}"
    );
    repo.assert_nothing_left();
}

#[test]
fn without_the_option_submodules_stay_empty() {
    let family = family();
    let mut workspace = slot(family.repo.rules(), &family.first);
    let lib = workspace.root().join("third/lib");
    assert_eq!(fs::read_dir(&lib).unwrap().count(), 0);
    workspace.move_to(&family.vendored).unwrap();
    assert_eq!(read(lib.join("vendored.txt")), "vendored\n");
}
