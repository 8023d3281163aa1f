//! Which files a command names, and how its words must read in a workspace.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fbisect::trials::workspace::{NamedFiles, PinError, WhyLeft, files_named_by};

use crate::repo::{Repo, executable, write};

fn named(repo: &Repo, prefix: &str, argv: &[&str]) -> NamedFiles {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    let links = [PathBuf::from("data")];
    files_named_by(&argv, &repo.root.join(prefix), &repo.root, &links).unwrap()
}

fn repo() -> Repo {
    let repo = Repo::new();
    repo.write("train.py", "");
    repo.write("python", "a file with a program's name");
    repo.write("tests/test_a.py", "");
    repo.write("conf/a.yaml", "");
    repo.write("src/pkg/__init__.py", "");
    executable(&repo.root.join("repro.sh"), "#!/bin/sh\n");
    repo.commit("one");
    repo.write("data/x.bin", "");
    repo.write("untracked/y.bin", "");
    repo.write(".venv/pyvenv.cfg", "");
    executable(&repo.root.join(".venv/bin/python"), "");
    repo
}

#[test]
fn every_word_that_names_a_file_pins_it() {
    let repo = repo();
    let argv = [
        "python",
        "train.py",
        "--config=conf/a.yaml",
        "tests/test_a.py::test_x[1]",
        "--n=3",
        "train.py",
        "src",
        "none.py",
        "-x",
    ];
    let found = named(&repo, "", &argv);
    let pins = ["train.py", "conf/a.yaml", "tests/test_a.py"].map(PathBuf::from);
    assert_eq!(found.pins, pins);
    assert_eq!(found.argv, argv);
    assert!(found.left.is_empty());

    let found = named(
        &repo,
        "tests",
        &["../repro.sh", "test_a.py", "-c", "../conf/a.yaml"],
    );
    assert_eq!(
        found.pins,
        ["repro.sh", "tests/test_a.py", "conf/a.yaml"].map(PathBuf::from)
    );
    assert_eq!(found.argv[0], "../repro.sh");
}

#[test]
fn absolute_paths_into_the_tree_lead_to_the_workspace() {
    let repo = repo();
    let at = |path: &str| repo.root.join(path).display().to_string();
    let argv = [
        at("repro.sh"),
        format!("--config={}", at("conf/a.yaml")),
        format!("PYTHONPATH={}", at("src")),
        at("untracked"),
        "/etc/passwd".to_owned(),
        format!("{}::test", at("tests/test_a.py")),
        repo.root.display().to_string(),
    ];
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let found = named(&repo, "", &argv);
    let untracked = at("untracked");
    let expected = [
        "{workspace}/repro.sh",
        "--config={workspace}/conf/a.yaml",
        "PYTHONPATH={workspace}/src",
        // Nothing there is any commit's: a folder of data, used where it is.
        &untracked,
        "/etc/passwd",
        "{workspace}/tests/test_a.py::test",
        "{workspace}",
    ];
    assert_eq!(found.argv, expected);
    assert_eq!(
        found.pins,
        ["repro.sh", "conf/a.yaml", "tests/test_a.py"].map(PathBuf::from)
    );
}

#[test]
fn a_path_typed_through_a_link_to_the_tree_is_known_as_the_trees() {
    let repo = repo();
    let link = repo.temp.path().join("home");
    symlink(&repo.root, &link).unwrap();
    let typed = link.join("train.py").display().to_string();
    let found = named(&repo, "", &["python", &typed]);
    assert_eq!(found.argv[1], "{workspace}/train.py");
}

#[test]
fn environments_git_and_links_are_used_where_they_are() {
    let repo = repo();
    let found = named(
        &repo,
        "",
        &[".venv/bin/python", ".git/config", "data/x.bin", "../tool"],
    );
    let at = |path: &str| repo.root.join(path).display().to_string();
    assert_eq!(
        found.argv,
        [
            &at(".venv/bin/python"),
            &at(".git/config"),
            "data/x.bin",
            "../tool"
        ]
    );
    assert!(found.pins.is_empty());
    let why: Vec<_> = found.left.iter().map(|left| left.why).collect();
    assert_eq!(
        why,
        [
            WhyLeft::Environment,
            WhyLeft::Administrative,
            WhyLeft::Linked
        ]
    );
    // What lies beside the tree lies elsewhere seen from a workspace.
    let tool = repo.root.with_file_name("tool");
    write(&tool, "");
    let found = named(&repo, "", &["sh", "../tool"]);
    assert_eq!(found.argv[1], tool.display().to_string());
}

#[test]
fn a_shells_command_line_is_read_too() {
    let repo = repo();
    let text = format!(
        "cd src && python ../train.py; {} train.py",
        repo.root.join("repro.sh").display()
    );
    let found = named(&repo, "", &["bash", "-ec", &text]);
    assert_eq!(found.pins, ["repro.sh", "train.py"].map(PathBuf::from));
    assert!(
        found.argv[2].ends_with("; {workspace}/repro.sh train.py"),
        "{:?}",
        found.argv
    );
}

#[test]
fn what_a_build_makes_is_each_commits_own() {
    let repo = repo();
    fs::create_dir(repo.root.join("build")).unwrap();
    fs::write(repo.root.join("build/prog"), b"\x7fELF\x02\x01").unwrap();
    let found = named(&repo, "", &["./build/prog"]);
    assert!(found.pins.is_empty());
    assert_eq!(found.left[0].why, WhyLeft::Compiled);
    let absolute = repo.root.join("build/prog").display().to_string();
    let found = named(&repo, "", &[&absolute]);
    assert_eq!(found.argv, ["{workspace}/build/prog"]);
}

#[test]
fn a_file_too_large_to_copy_names_the_option_that_helps() {
    let repo = repo();
    let file = fs::File::create(repo.root.join("weights.bin")).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    let argv = ["python".to_owned(), "weights.bin".to_owned()];
    let error = files_named_by(&argv, &repo.root, Path::new(&repo.root), &[]).unwrap_err();
    assert!(matches!(error, PinError::TooLarge { .. }));
    assert!(error.to_string().contains("--link weights.bin"), "{error}");
}
