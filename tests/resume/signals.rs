//! Ctrl-C, TERM, a lost terminal, closed streams.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::support::{Bed, GATED, Tool, poll, text};

/// Waits at the gate with processes around it: in its group, and in a session of its own.
const TREE: &str = r#"#!/bin/sh
sleep 300 &
setsid sleep 300 &
(exec setsid sh -c 'trap "" TERM; while :; do sleep 0.05; done') &
echo "$FBISECT_TRIAL $FBISECT_COMMIT $FBISECT_SEED" >> "$TEST_BED/log"
while [ ! -e "$TEST_BED/gate" ]; do sleep 0.02; done
read -r state < state
[ "$state" = good ]
"#;

fn bed() -> Bed {
    let bed = Bed::new(16, 0, |n| if n >= 9 { "bad" } else { "good" });
    bed.repro(TREE);
    bed
}

fn running(bed: &Bed, options: &[&str]) -> Tool {
    let tool = bed.start(&bed.words(options, &["./repro.sh"]));
    poll("the first trial runs", || !bed.ran().is_empty());
    tool
}

fn assert_interrupted(bed: &Bed, tool: &mut Tool) {
    assert_eq!(tool.end(), Some(130), "{}", tool.stderr());
    bed.assert_nothing_left();
    let journal = bed.journal();
    assert_eq!(journal.0.last().unwrap()["event"], "interrupted");
    assert_eq!(
        journal.finished().len(),
        0,
        "a stopped run is no evidence: {:?}",
        journal.0
    );
    let name = bed
        .session()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let hint = format!("fbisect resume {name}");
    assert!(tool.stderr().contains(&hint), "{}", tool.stderr());
    fs::write(bed.path("gate"), "").unwrap();
    let output = bed.run(&["resume"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(bed.answer()["first_bad"], bed.git(&["rev-parse", "c9"]));
    bed.assert_nothing_left();
}

#[test]
fn ctrl_c_ends_what_runs_and_says_how_to_go_on() {
    let bed = bed();
    let mut tool = running(&bed, &[]);
    tool.signal(Signal::SIGINT);
    assert_interrupted(&bed, &mut tool);
}

#[test]
fn ctrl_c_for_the_whole_group_is_the_same() {
    let bed = bed();
    let mut tool = running(&bed, &["--jobs", "2"]);
    tool.signal_group(Signal::SIGINT);
    assert_interrupted(&bed, &mut tool);
}

#[test]
fn term_is_the_same() {
    let bed = bed();
    let mut tool = running(&bed, &[]);
    tool.signal(Signal::SIGTERM);
    assert_interrupted(&bed, &mut tool);
}

/// Git meets this in every checkout but the first: the filter waits at the gate.
fn slow_checkout(bed: &Bed) -> Tool {
    bed.repro("#!/bin/sh\nread -r state < state\n[ \"$state\" = good ]\n");
    let filter = "[ -e \"$TEST_BED/first\" ] && { : > \"$TEST_BED/stuck\"; \
                  while [ ! -e \"$TEST_BED/gate\" ]; do sleep 0.02; done; }; : > \"$TEST_BED/first\"; cat";
    bed.git(&["config", "filter.slow.smudge", filter]);
    bed.git(&["config", "filter.slow.required", "true"]);
    fs::write(
        bed.repo().join(".git/info/attributes"),
        "step filter=slow\n",
    )
    .unwrap();
    let tool = bed.start(&bed.words(&[], &["./repro.sh"]));
    poll("a checkout hangs", || bed.path("stuck").exists());
    tool
}

/// The trial whose checkout was broken off is none: no commit is called untestable for it.
fn assert_broken_off(bed: &Bed, tool: &mut Tool) {
    assert_eq!(tool.end(), Some(130), "{}", tool.stderr());
    bed.assert_nothing_left();
    let journal = bed.journal();
    assert_eq!(journal.finished().len(), 1, "{:?}", journal.0);
    assert_eq!(journal.of("trial_dropped").count(), 1);
    assert_eq!(journal.of("trial_dropped").next().unwrap()["fault"], false);
    fs::write(bed.path("gate"), "").unwrap();
    let output = bed.run(&["resume"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(bed.answer()["first_bad"], bed.git(&["rev-parse", "c9"]));
    bed.assert_nothing_left();
}

#[test]
fn ctrl_c_for_the_group_during_a_checkout_blames_no_commit() {
    let bed = bed();
    let mut tool = slow_checkout(&bed);
    tool.signal_group(Signal::SIGINT);
    assert_broken_off(&bed, &mut tool);
}

#[test]
fn term_for_the_tool_alone_ends_a_checkout_that_hangs() {
    let bed = bed();
    let mut tool = slow_checkout(&bed);
    tool.signal(Signal::SIGTERM);
    assert_broken_off(&bed, &mut tool);
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_repro_that_ignores_term() {
    let bed = bed();
    bed.repro(&format!(
        "{}{}",
        "#!/bin/sh\ntrap '' TERM INT\n",
        &GATED["#!/bin/sh\n".len()..]
    ));
    let mut tool = running(&bed, &["--grace", "1h"]);
    tool.signal(Signal::SIGINT);
    poll("it says that it stops", || {
        tool.stderr().contains("once more to end it at once")
    });
    assert!(tool.is_running());
    tool.signal(Signal::SIGINT);
    assert_interrupted(&bed, &mut tool);
}

#[test]
fn a_lost_terminal_does_not_end_the_hunt() {
    let bed = bed();
    bed.repro(GATED);
    let mut command = bed.command("setsid");
    command.arg("--wait").arg(env!("CARGO_BIN_EXE_fbisect"));
    command.args(bed.words(&[], &["./repro.sh"]));
    let mut tool = bed.start_as(command);
    poll("the first trial runs", || !bed.ran().is_empty());
    let pid = fs::read_to_string(bed.session().join("lock"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    for _ in 0..3 {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGHUP).unwrap();
    }
    fs::write(bed.path("gate"), "").unwrap();
    assert_eq!(tool.end(), Some(0), "{}", tool.stderr());
    assert_eq!(bed.answer()["first_bad"], bed.git(&["rev-parse", "c9"]));
    bed.assert_nothing_left();
}

#[test]
fn readers_that_go_away_do_not_end_the_hunt() {
    let bed = bed();
    bed.repro(GATED);
    let mut child = bed
        .tool(&bed.words(&["--jobs", "2"], &["./repro.sh"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // As `2>&1 | head -1` does.
    let mut said = [0; 8];
    child.stderr.take().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(text(&said), "fbisect:");
    drop(child.stdout.take());
    fs::write(bed.path("gate"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(bed.answer()["first_bad"], bed.git(&["rev-parse", "c9"]));
    bed.assert_nothing_left();
}

#[test]
fn closed_streams_do_not_end_the_hunt() {
    let bed = bed();
    bed.repro(GATED);
    fs::write(bed.path("gate"), "").unwrap();
    for closed in ["<&- >&- 2>&-", "</dev/null >/dev/full 2>/dev/full"] {
        let line = format!("exec \"$0\" \"$@\" {closed}");
        let mut command = bed.command("sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_fbisect")]);
        let status = command
            .args(bed.words(&[], &["./repro.sh"]))
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{closed}");
        assert_eq!(bed.answer()["first_bad"], bed.git(&["rev-parse", "c9"]));
        bed.assert_nothing_left();
        fs::remove_dir_all(bed.repo().join(".fbisect")).unwrap();
    }
    assert!(File::open(bed.path("log")).is_ok());
}
