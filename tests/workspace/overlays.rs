//! Pins, links and the patch.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fbisect::model::{Clean, PrepareStep};
use fbisect::trials::workspace::{
    Fault, LinkError, PatchState, PinError, PinSnapshot, Workspace, check_links, check_patch,
};

use crate::repo::{Repo, executable, git_in, read, workspace as slot, write};

#[test]
fn pins_win_over_every_commit_and_are_of_the_day_they_were_taken() {
    let repo = Repo::new();
    repo.write("repro.sh", "old\n");
    repo.write("a", "0");
    let tracked = repo.commit("tracked");
    repo.git(&["rm", "-q", "repro.sh"]);
    let deleted = repo.commit("deleted");
    repo.write("repro.sh/inner/x", "a folder of that name");
    let folder = repo.commit("folder");
    repo.git(&["rm", "-rq", "repro.sh"]);
    symlink(repo.temp.path().join("outside"), repo.root.join("repro.sh")).unwrap();
    symlink(repo.temp.path(), repo.root.join("tests")).unwrap();
    let link = repo.commit("links that lead out");
    fs::remove_file(repo.root.join("repro.sh")).unwrap();
    fs::remove_file(repo.root.join("tests")).unwrap();
    executable(&repo.root.join("repro.sh"), "today\n");
    repo.write("tests/deep/check.py", "check\n");

    let mut rules = repo.rules();
    rules.pins = repo.pin(&["repro.sh", "tests/deep/check.py"]);
    repo.write("repro.sh", "edited in mid-session\n");
    assert_eq!(rules.pins.changed_in(&repo.root), [Path::new("repro.sh")]);
    let pins = rules.pins.clone();
    let mut workspace = slot(rules, &tracked);
    let root = workspace.root().to_path_buf();
    for commit in [&tracked, &deleted, &folder, &link, &folder, &tracked, &link] {
        workspace.move_to(commit).unwrap();
        let pinned = root.join("repro.sh");
        assert_eq!(read(&pinned), "today\n", "{commit}");
        assert!(!pinned.is_symlink());
        assert_eq!(
            fs::metadata(&pinned).unwrap().permissions().mode() & 0o777,
            0o755
        );
        assert_eq!(read(root.join("tests/deep/check.py")), "check\n");
        assert_eq!(read(root.join("a")), "0");
    }
    assert!(!repo.temp.path().join("outside").exists());
    assert!(!repo.temp.path().join("deep").exists());
    // A trial that spoils it does so for itself alone.
    write(&root.join("repro.sh"), "spoilt");
    workspace.move_to(&link).unwrap();
    assert_eq!(read(root.join("repro.sh")), "today\n");
    let opened = PinSnapshot::open(&repo.temp.path().join("pins"), pins.files()).unwrap();
    assert_eq!(opened, pins);
}

#[test]
fn a_pin_keeps_its_time_so_that_make_and_python_see_no_change() {
    let repo = Repo::new();
    repo.write("m.py", "1");
    let one = repo.commit("one");
    repo.write("m.py", "2");
    let two = repo.commit("two");
    let mut rules = repo.rules();
    rules.pins = repo.pin(&["m.py"]);
    let mut workspace = slot(rules, &one);
    let time = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let pinned = workspace.root().join("m.py");
    assert_eq!(time(pinned.clone()), time(repo.root.join("m.py")));
    workspace.move_to(&two).unwrap();
    workspace.move_to(&one).unwrap();
    assert_eq!(read(&pinned), "2");
    assert_eq!(time(pinned), time(repo.root.join("m.py")));
}

#[test]
fn a_pinned_link_is_what_it_leads_to_in_the_tree_and_stays_a_link_out_of_it() {
    let repo = Repo::new();
    repo.write("real.sh", "real\n");
    let one = repo.commit("one");
    let data = fs::canonicalize(repo.temp.path()).unwrap().join("data.bin");
    write(&data, "data");
    symlink("real.sh", repo.root.join("inner")).unwrap();
    symlink(&data, repo.root.join("outer")).unwrap();
    let mut rules = repo.rules();
    rules.pins = repo.pin(&["inner", "outer"]);
    assert!(rules.pins.changed_in(&repo.root).is_empty());
    let workspace = slot(rules, &one);
    assert!(!workspace.root().join("inner").is_symlink());
    assert_eq!(read(workspace.root().join("inner")), "real\n");
    assert_eq!(fs::read_link(workspace.root().join("outer")).unwrap(), data);
}

#[test]
fn what_cannot_be_pinned_is_said() {
    let repo = Repo::new();
    repo.write("dir/x", "");
    let store = repo.temp.path().join("pins");
    let take = |path: &str| PinSnapshot::take(&repo.root, &[PathBuf::from(path)], &store);
    assert!(matches!(take("none"), Err(PinError::Missing { .. })));
    assert!(matches!(take("../x"), Err(PinError::NotInside(_))));
    assert!(matches!(take(".git/config"), Err(PinError::NotInside(_))));
    assert!(take("dir").unwrap_err().to_string().contains("--link"));
}

#[test]
fn links_show_what_a_checkout_lacks_and_nothing_else() {
    let repo = Repo::new();
    repo.write(".gitignore", "data/\nweights.bin\n");
    repo.write("conf/a.yaml", "tracked\n");
    let one = repo.commit("one");
    repo.write("conf/sub/b.yaml", "tracked\n");
    let two = repo.commit("two");
    repo.write("data/train/x", "x");
    repo.write("weights.bin", "w");
    repo.write("deep/er/file", "deep");
    repo.write("conf/a.yaml", "edited\n");
    repo.write("conf/sub/local.yaml", "local\n");
    let before = repo.everything();
    let paths = ["data", "weights.bin", "deep/er/file", "conf"].map(PathBuf::from);
    check_links(&repo.root, &paths).unwrap();
    let mut rules = repo.rules();
    rules.links = paths.to_vec();
    rules.clean = Clean::All;
    let mut workspace = slot(rules, &one);
    let root = workspace.root().to_path_buf();
    for commit in [&one, &one, &two, &one, &two] {
        workspace.move_to(commit).unwrap();
        for linked in ["data", "weights.bin", "deep/er/file"] {
            assert_eq!(
                fs::read_link(root.join(linked)).unwrap(),
                repo.root.join(linked)
            );
        }
        assert_eq!(read(root.join("conf/a.yaml")), "tracked\n");
        assert_eq!(read(root.join("conf/sub/local.yaml")), "local\n");
        // The whole folder is a link where the commit has none.
        assert_eq!(root.join("conf/sub").is_symlink(), commit == &one);
    }
    assert!(!root.join("conf/sub/b.yaml").is_symlink());
    workspace.remove().unwrap();
    assert_eq!(repo.everything(), before);
}

#[test]
fn a_link_to_nothing_is_an_error_before_the_session() {
    let repo = Repo::new();
    let error = check_links(&repo.root, &[PathBuf::from("data")]).unwrap_err();
    assert!(matches!(error, LinkError::Missing { .. }));
    let error = check_links(&repo.root, &[PathBuf::from("/data")]).unwrap_err();
    assert!(matches!(error, LinkError::NotInside(_)));
}

#[test]
fn the_patch_is_laid_where_it_applies_and_undone_on_leaving() {
    let repo = Repo::new();
    let text = |line: &str| format!("1\n2\n3\n{line}\n5\n6\n7\n");
    repo.write("a.txt", &text("bug"));
    repo.write("gone.txt", "to be deleted\n");
    let buggy = repo.commit("buggy");
    repo.write("a.txt", &text("fix"));
    repo.write("made/by/patch.txt", "new\n");
    fs::remove_file(repo.root.join("gone.txt")).unwrap();
    let fixed = repo.commit("fixed");
    repo.write("a.txt", "all\nelse\n");
    let other = repo.commit("other");
    let patch = repo.temp.path().join("fix.patch");
    let diff = repo.git(&["diff", buggy.as_str(), fixed.as_str()]);
    write(&patch, &(diff + "\n"));
    check_patch(&patch).unwrap();

    let mut rules = repo.rules();
    rules.patch = Some(patch.clone());
    rules.clean = Clean::None;
    let mut workspace = slot(rules.clone(), &buggy);
    let root = workspace.root().to_path_buf();
    let patched = |workspace: &mut Workspace, commit| workspace.move_to(commit).unwrap().patch;
    for _ in 0..2 {
        let state = patched(&mut workspace, &buggy);
        assert_eq!(state, Some(PatchState::Applied));
        assert_eq!(read(root.join("a.txt")), text("fix"));
        assert_eq!(read(root.join("made/by/patch.txt")), "new\n");
        assert!(!root.join("gone.txt").exists());
        assert_eq!(
            patched(&mut workspace, &other),
            Some(PatchState::DoesNotApply)
        );
        assert_eq!(read(root.join("a.txt")), "all\nelse\n");
        assert_eq!(git_in(&root, &["status", "--porcelain"]), "");
        assert_eq!(
            patched(&mut workspace, &fixed),
            Some(PatchState::AlreadyThere)
        );
        assert_eq!(git_in(&root, &["status", "--porcelain"]), "");
    }
    drop(workspace);
    rules.patch = None;
    let mut plain = slot(rules, &buggy);
    assert_eq!(plain.move_to(&other).unwrap().patch, None);
    write(&patch, "no patch\n");
    let error = check_patch(&patch).unwrap_err();
    assert_eq!(
        (error.step, error.fault),
        (PrepareStep::Apply, Fault::Commit)
    );
}

#[test]
fn a_patch_that_adds_a_file_leaves_none_at_the_next_commit() {
    let repo = Repo::new();
    repo.write("a", "1\n");
    let one = repo.commit("one");
    repo.write("a", "2\n");
    let two = repo.commit("two");
    let patch = repo.temp.path().join("add.patch");
    repo.write("extra/new.txt", "new\n");
    repo.git(&["add", "-A"]);
    write(&patch, &(repo.git(&["diff", "--cached"]) + "\n"));
    repo.git(&["rm", "-rfq", "extra"]);
    let mut rules = repo.rules();
    rules.patch = Some(patch.clone());
    rules.clean = Clean::None;
    let mut workspace = slot(rules, &one);
    let root = workspace.root().to_path_buf();
    assert!(root.join("extra/new.txt").exists());
    // From here on it does not apply any more: only the undoing is seen.
    write(
        &patch,
        &read(&patch)
            .replace("0000000", "1111111")
            .replace("/dev/null", "a/x"),
    );
    assert_eq!(
        workspace.move_to(&two).unwrap().patch,
        Some(PatchState::DoesNotApply)
    );
    assert!(!root.join("extra").exists());
}
