//! What a killed session leaves, and what removing it must not touch.

use std::fs;
use std::sync::Arc;

use fbisect::trials::workspace::{Workspace, remove_leftovers};

use crate::repo::{Repo, SESSION, read, workspace as slot, write};

#[test]
fn a_killed_sessions_worktrees_go_and_a_strangers_stay() {
    let repo = Repo::new();
    repo.write("a", "1");
    let one = repo.commit("one");
    let path = |name: &str| repo.temp.path().join(name);
    for name in ["theirs", "stale"] {
        let path = path(name);
        repo.git(&["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    }
    // A stale one of the user's own, on a disk that is not mounted: never to be pruned.
    fs::remove_dir_all(path("stale")).unwrap();
    let before = repo.everything();

    let rules = Arc::new(repo.rules());
    let mut other = repo.rules();
    other.session = "20260102-030405-0000".to_owned();
    let other = Workspace::create(&Arc::new(other), "slot-0", &one).unwrap();
    let mut roots = Vec::new();
    for name in ["slot-0", "slot-1", "confirm-2"] {
        let workspace = Workspace::create(&rules, name, &one).unwrap();
        roots.push(workspace.root().to_path_buf());
        std::mem::forget(workspace);
    }
    // One died with its folder gone, one before git knew it.
    fs::remove_dir_all(&roots[1]).unwrap();
    let unknown = roots[0].with_file_name("slot-9");
    write(&unknown.join("half"), "x");
    roots.push(unknown);
    roots.sort();

    let removed = remove_leftovers(&rules.common_dir, &rules.base_dir, SESSION).unwrap();
    assert_eq!(removed, roots);
    assert!(roots.iter().all(|root| !root.exists()));
    assert_eq!(read(other.root().join("a")), "1");
    other.remove().unwrap();
    assert_eq!(repo.everything(), before);
    assert!(path("theirs/a").exists());
    let again = remove_leftovers(&rules.common_dir, &rules.base_dir, SESSION).unwrap();
    assert!(again.is_empty());
}

#[test]
fn a_sessions_name_cannot_lead_elsewhere() {
    let repo = Repo::new();
    repo.write("a", "1");
    repo.commit("one");
    write(&repo.base().join("kept"), "x");
    for session in ["..", "", "a/../..", "."] {
        let common = repo.root.join(".git");
        assert!(
            remove_leftovers(&common, &repo.base(), session).is_err(),
            "{session}"
        );
    }
    assert!(repo.base().join("kept").exists());
}

#[test]
fn dropping_removes_and_a_leftover_of_the_name_makes_way() {
    let repo = Repo::new();
    repo.write("a", "1");
    let one = repo.commit("one");
    let first = slot(repo.rules(), &one);
    let root = first.root().to_path_buf();
    std::mem::forget(first);
    write(&root.join("junk"), "x");
    let second = slot(repo.rules(), &one);
    assert_eq!(second.root(), root);
    assert!(!root.join("junk").exists());
    drop(second);
    repo.assert_nothing_left();
}

#[test]
fn workspaces_made_and_removed_at_once_do_not_disturb_each_other() {
    let repo = Repo::new();
    repo.write("a", "1");
    let one = repo.commit("one");
    let rules = Arc::new(repo.rules());
    std::thread::scope(|scope| {
        for slot in 0..4 {
            let (rules, one) = (Arc::clone(&rules), one.clone());
            scope.spawn(move || {
                for _ in 0..25 {
                    let name = format!("slot-{slot}");
                    let workspace = Workspace::create(&rules, &name, &one).unwrap();
                    assert_eq!(read(workspace.root().join("a")), "1");
                    workspace.remove().unwrap();
                }
            });
        }
    });
    repo.assert_nothing_left();
}
