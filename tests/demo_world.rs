//! The demo's repository is what it says: long enough, the same on each machine, with one bug.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose tools are missing should fail"
)]

use std::path::Path;
use std::process::{Command, Output};

use fbisect::cli::demo_world::{DemoError, DemoWorld, build};

fn run(dir: &Path, program: &str, args: &[&str]) -> Output {
    Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, "git", args);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {words}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn made() -> (tempfile::TempDir, DemoWorld) {
    let dir = tempfile::tempdir().unwrap();
    let world = build(&dir.path().join("demo")).unwrap();
    (dir, world)
}

/// Checks a commit out and builds it.
fn builds(world: &DemoWorld, commit: &str) -> bool {
    git(&world.root, &["checkout", "--quiet", "--detach", commit]);
    run(&world.root, "./build.sh", &[]).status.success()
}

/// Whether the loss goes NaN with each of the seeds on what is checked out and built.
fn fails(world: &DemoWorld, seeds: std::ops::Range<u32>) -> Vec<bool> {
    let one = |seed: u32| {
        let output = run(
            &world.root,
            "python3",
            &["train.py", "--seed", &seed.to_string()],
        );
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => false,
            Some(1) => {
                assert!(
                    words.contains("FloatingPointError: loss is nan at step"),
                    "{words}"
                );
                true
            }
            code => panic!("{code:?}: {words}"),
        }
    };
    seeds.map(one).collect()
}

fn range(world: &DemoWorld, options: &[&str]) -> Vec<String> {
    let span = format!("{}..{}", world.good, world.bad);
    let mut args = vec!["rev-list", &span];
    args.extend(options);
    git(&world.root, &args).lines().map(str::to_owned).collect()
}

#[test]
fn the_history_is_long_branched_and_clean() {
    let (_dir, world) = made();
    let all = range(&world, &[]);
    assert_eq!(all.len(), world.commits);
    assert!(world.commits >= 150, "{}", world.commits);
    assert_eq!(range(&world, &["--merges"]).len(), world.merges);
    assert!(world.merges >= 15, "{}", world.merges);
    assert!((5..=8).contains(&world.unbuildable.len()));
    for commit in &world.unbuildable {
        assert!(all.contains(&commit.to_string()));
    }
    let culprit = world.culprit.to_string();
    assert!(all.contains(&culprit));
    assert!(!range(&world, &["--first-parent"]).contains(&culprit));
    assert_eq!(git(&world.root, &["status", "--porcelain"]), "");
    assert_eq!(
        git(&world.root, &["symbolic-ref", "HEAD"]),
        "refs/heads/main"
    );
    git(&world.root, &["fsck", "--strict"]);
}

#[test]
fn it_is_the_same_each_time_and_needs_an_empty_folder() {
    let (dir, first) = made();
    let second = build(&dir.path().join("again")).unwrap();
    assert_eq!(first.culprit, second.culprit);
    let head = |world: &DemoWorld| git(&world.root, &["rev-parse", "main"]);
    assert_eq!(head(&first), head(&second));

    let refused = build(&first.root).unwrap_err();
    assert!(matches!(refused, DemoError::NotEmpty { .. }), "{refused}");
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = build(&file).unwrap_err();
    assert!(matches!(refused, DemoError::Io { .. }), "{refused}");
}

#[test]
fn the_loss_goes_nan_from_the_culprit_on() {
    let (_dir, world) = made();
    let culprit = world.culprit.to_string();
    for (commit, bad) in [
        (world.good.clone(), false),
        (format!("{culprit}^"), false),
        (culprit.clone(), true),
        (world.bad.clone(), true),
    ] {
        assert!(builds(&world, &commit), "{commit}");
        assert_eq!(fails(&world, 0..5), [bad; 5], "{commit}");
    }
    for commit in &world.unbuildable {
        assert!(!builds(&world, commit.as_str()), "{commit} builds");
    }
}

#[test]
fn plain_git_bisect_finds_the_culprit() {
    let (_dir, world) = made();
    git(&world.root, &["bisect", "start", "main", "v0.1"]);
    let script = "./build.sh >/dev/null 2>&1 || exit 125; exec ./repro.sh";
    let output = run(&world.root, "git", &["bisect", "run", "sh", "-c", script]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = format!("{} is the first bad commit", world.culprit);
    assert!(said.contains(&answer), "{said}");
}

/// Every commit, and 200 seeds at four of them: minutes. `cargo test --test demo_world -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn every_commit_is_what_the_story_says() {
    let (_dir, world) = made();
    let culprit = world.culprit.to_string();
    let ancestry = format!("{culprit}..main");
    let mut bad = vec![culprit.clone()];
    let descendants = git(&world.root, &["rev-list", "--ancestry-path", &ancestry]);
    bad.extend(descendants.lines().map(str::to_owned));
    for commit in range(&world, &[]) {
        let broken = world.unbuildable.iter().any(|c| c.as_str() == commit);
        assert_eq!(builds(&world, &commit), !broken, "{commit}");
        if !broken {
            let expected = bad.contains(&commit);
            assert_eq!(fails(&world, 0..2), [expected; 2], "{commit}");
            let tests = ["-m", "unittest", "discover", "tests"];
            let tested = run(&world.root, "python3", &tests);
            let words = String::from_utf8_lossy(&tested.stderr).into_owned();
            assert!(tested.status.success(), "{commit}: {words}");
        }
    }
    for (commit, expected) in [
        ("v0.1".to_owned(), false),
        (format!("{culprit}^"), false),
        (culprit, true),
        ("main".to_owned(), true),
    ] {
        assert!(builds(&world, &commit));
        assert_eq!(fails(&world, 0..200), [expected; 200], "{commit}");
    }
}
