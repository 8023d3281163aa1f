//! `fbisect status` in every state of a session.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::support::{Bed, GATED, Tool, poll, text};

fn bed() -> Bed {
    let bed = Bed::new(16, 0, |n| if n >= 9 { "bad" } else { "good" });
    bed.repro(GATED);
    bed
}

fn running(bed: &Bed) -> Tool {
    let tool = bed.start(&bed.words(&[], &["./repro.sh"]));
    poll("the first trial runs", || !bed.ran().is_empty());
    tool
}

fn status(bed: &Bed) -> String {
    let output = bed.run(&["status"]);
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

#[test]
fn status_tells_running_interrupted_killed_and_finished_apart() {
    let bed = bed();
    let mut tool = running(&bed);
    let name = bed
        .session()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(status(&bed).starts_with(&format!("session {name} (running)\n")));
    tool.signal(Signal::SIGINT);
    assert_eq!(tool.end(), Some(130));
    let shown = status(&bed);
    assert!(shown.starts_with(&format!(
        "session {name} (interrupted; go on with: fbisect resume {name})\n"
    )));
    assert!(
        shown.contains("0 trials finished, 15 candidates between the ends"),
        "{shown}"
    );
    let tool = bed.start(&["resume"]);
    poll("a trial runs again", || bed.ran().len() == 2);
    assert!(status(&bed).contains("(running)"));
    assert!(tool.kill());
    let shown = status(&bed);
    assert!(
        shown.starts_with(&format!(
            "session {name} (not running; go on with: fbisect resume {name})\n"
        )),
        "{shown}"
    );
    fs::write(bed.path("gate"), "").unwrap();
    let output = bed.run(&["resume"]);
    assert!(output.status.success(), "{output:?}");
    // What was said at the end is said again.
    assert_eq!(status(&bed), text(&output.stdout));
    assert_eq!(text(&bed.run(&["resume"]).stdout), text(&output.stdout));
}

#[test]
fn a_follower_sees_the_trials_and_ends_with_the_session() {
    let bed = bed();
    let mut tool = running(&bed);
    let follower = bed
        .tool(&["status", "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(bed.path("gate"), "").unwrap();
    assert_eq!(tool.end(), Some(0), "{}", tool.stderr());
    let output = follower.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout), tool.stdout(), "the report at the end");
    let shown = text(&output.stderr);
    assert_eq!(
        shown.lines().count(),
        bed.journal().finished().len(),
        "{shown}"
    );
}

#[test]
fn a_follower_ends_with_a_killed_or_interrupted_session() {
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let bed = bed();
        let mut tool = running(&bed);
        let follower = bed
            .tool(&["status", "--follow"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        tool.signal(signal);
        tool.end();
        let output = follower.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let shown = text(&output.stdout);
        assert!(shown.contains("go on with: fbisect resume"), "{shown}");
        fs::write(bed.path("gate"), "").unwrap();
        assert!(bed.run(&["resume"]).status.success());
        bed.assert_nothing_left();
    }
}
