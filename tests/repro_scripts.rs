//! The repro scripts that users copy: each is run on small fake training commands.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose tools are missing should fail"
)]

use std::path::Path;
use std::process::Command;

/// A script with the words of its command, in an environment; gives the exit status.
fn run(script: &str, environment: &[(&str, &str)], words: &[&str]) -> i32 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("repro-scripts");
    let mut command = Command::new(folder.join(script));
    command.args(words).env_remove("LIMIT").env_remove("PYTEST");
    command.envs(environment.iter().copied());
    let output = command.output().unwrap();
    output.status.code().unwrap()
}

/// The script on a command line of the shell, as the training command.
fn train(script: &str, environment: &[(&str, &str)], line: &str) -> i32 {
    run(script, environment, &["sh", "-c", line])
}

#[test]
fn a_loss_that_is_not_finite_is_bad() {
    for script in ["loss_nan.sh", "nan.py"] {
        for (line, status) in [
            ("echo step 1 loss 0.5", 0),
            ("echo step 1 loss 0.5; echo step 2 loss nan", 1),
            ("echo 'loss=NaN'; exit 1", 1),
            ("echo 'loss: inf' >&2", 1),
            ("echo loss 0.5; echo ImportError; exit 1", 125),
            ("echo loss 1e-05; kill -SEGV $$", 125),
        ] {
            assert_eq!(train(script, &[], line), status, "{script}: {line}");
        }
        assert_eq!(run(script, &[], &[]), 125, "{script}");
        assert_eq!(run(script, &[], &["./no-such-program"]), 125, "{script}");
    }
    // Information is no loss; a log without any loss means that the pattern is wrong.
    assert_eq!(train("loss_nan.sh", &[], "echo loss information"), 0);
    assert_eq!(train("nan.py", &[], "echo all fine"), 125);
}

#[test]
fn a_run_that_goes_nan_is_ended_at_once() {
    let line = "echo loss nan; exec sleep 600";
    assert_eq!(train("nan.py", &[], line), 1);
}

#[test]
fn running_out_of_memory_is_bad() {
    for (line, status) in [
        ("true", 0),
        ("echo 'CUDA out of memory, trying half'; true", 0),
        (
            "echo 'torch.OutOfMemoryError: CUDA out of memory.' >&2; exit 1",
            1,
        ),
        (
            "echo 'XlaRuntimeError: RESOURCE_EXHAUSTED: x' >&2; exit 1",
            1,
        ),
        ("echo MemoryError >&2; exit 1", 1),
        ("kill -KILL $$", 1),
        ("echo KeyError >&2; exit 1", 125),
    ] {
        assert_eq!(train("oom.sh", &[], line), status, "{line}");
    }
    assert_eq!(run("oom.sh", &[], &[]), 125);
}

#[test]
fn a_run_that_does_not_end_is_bad() {
    let limit = [("LIMIT", "0.2")];
    assert_eq!(train("hang.sh", &limit, "exec sleep 600"), 124);
    let limit = [("LIMIT", "60")];
    assert_eq!(train("hang.sh", &limit, "true"), 0);
    assert_eq!(train("hang.sh", &limit, "exit 3"), 125);
    assert_eq!(run("hang.sh", &limit, &[]), 125);
}

#[test]
fn a_run_that_takes_too_long_is_bad() {
    assert_eq!(train("slow.sh", &[("LIMIT", "60")], "true"), 0);
    assert_eq!(train("slow.sh", &[("LIMIT", "-1")], "true"), 1);
    assert_eq!(train("slow.sh", &[("LIMIT", "60")], "exit 1"), 125);
    assert_eq!(run("slow.sh", &[], &[]), 125);
}

#[test]
fn pytest_statuses_are_told_apart() {
    for (status, expected) in [
        (0, 0),
        (1, 1),
        (2, 125),
        (3, 125),
        (4, 125),
        (5, 125),
        (127, 125),
        (139, 139),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let fake = dir.path().join("pytest.py");
        std::fs::write(&fake, format!("import sys\nsys.exit({status})\n")).unwrap();
        let fake = format!("python3 {}", fake.display());
        let seen = run("pytest.sh", &[("PYTEST", &fake)], &["-x"]);
        assert_eq!(seen, expected, "{status}");
    }
    assert_eq!(
        run("pytest.sh", &[("PYTEST", "./no-such-pytest")], &[]),
        125
    );
}

#[test]
fn the_readme_lists_every_script() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("repro-scripts");
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let listed = name == "README.md" || readme.contains(&format!("| `{name}` |"));
        assert!(listed, "{name}");
    }
}
