//! The JSON document: a public format.

use std::time::{Duration, Instant};

use crate::support::{Bed, EXIT_CODE, Ran, commits};

#[test]
fn a_whole_document() {
    let bed = Bed::broken_from(3, 6);
    let ran = bed.commits(&["c0..c5", "--json"], &EXIT_CODE).exits(0);
    let mut document = ran.json();
    document["seconds"] = 0.into();
    document["tool_version"] = "[version]".into();
    let pretty = serde_json::to_string_pretty(&document).unwrap();
    insta::assert_snapshot!(bed.tidy(&pretty));
    // The conversation is on standard error, and what is kept is what was printed.
    let ran = ran.says("is the first bad commit\n").says("#1 bad end");
    let result = bed
        .root()
        .join(".fbisect/sessions")
        .join(document["session"].as_str().unwrap())
        .join("result.json");
    assert_eq!(std::fs::read_to_string(result).unwrap(), ran.out);
}

#[test]
fn numbers_agree() {
    let bed = Bed::line(17, |i| match i {
        7 | 8 => "code=125".into(),
        11.. => "code=1".into(),
        _ => "code=0".into(),
    });
    let document = bed.document(0, &["c0..c16", "--jobs", "2"], &EXIT_CODE);
    assert_eq!(document["version"], 1);
    assert!(document["confidence"].is_null());
    assert_eq!(document["suspects"], serde_json::json!([]));
    assert_eq!(document["candidates"], 16);
    let rows = document["tested"].as_array().unwrap();
    let mut all: Vec<u64> = Vec::new();
    for row in rows {
        let numbers: Vec<u64> = row["trials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect();
        let counts = ["good", "bad", "skip"].map(|key| row[key].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>() as usize, numbers.len());
        all.extend(numbers);
    }
    assert_eq!(all.len() as u64, document["trials"].as_u64().unwrap());
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len() as u64, document["trials"].as_u64().unwrap());
}

#[test]
fn an_error_prints_no_document() {
    let bed = Bed::broken_from(3, 6);
    let ran = bed.commits(&["nowhere..c5", "--json"], &EXIT_CODE).exits(2);
    assert_eq!(ran.out, "");
    let ran = bed.commits(&["c0..c5", "--json"], &["./missing"]).exits(1);
    assert_eq!(ran.out, "");
}

#[test]
fn interrupted_then_resumed() {
    let bed = Bed::broken_from(3, 6);
    // The third trial waits; the fourth does not.
    let repro = [
        "sh",
        "-c",
        "[ $FBISECT_TRIAL = 3 ] && touch $LOG && sleep 76000; exit $(cat code)",
    ];
    let mut command = bed.command(&commits(&["c0..c5", "--json"], &repro));
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while !bed.log().exists() {
        assert!(Instant::now() < deadline, "the third trial never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = bed.run(&["status"]).exits(0);
    insta::assert_snapshot!("status_while_it_runs", bed.tidy(&status.out));
    // Two tools on one session: the second refuses.
    let second = bed.run(&["resume"]).exits(1);
    assert_eq!(second.out, "");
    insta::assert_snapshot!(
        "resume_while_it_runs",
        bed.tidy(&second.err)
            .replace(&child.id().to_string(), "[pid]")
    );
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(130);
    let document = ran.json();
    assert_eq!(document["status"], "interrupted");
    assert_eq!(document["trials"], 2);
    assert_eq!(bed.git(&["worktree", "list"]).lines().count(), 1);
    insta::assert_snapshot!("interrupted", bed.tidy(&ran.err));
    insta::assert_snapshot!(
        "status_after_it",
        bed.tidy(&bed.run(&["status"]).exits(0).out)
    );
    let resumed = bed.run(&["resume", "--json"]).exits(0).json();
    assert_eq!(bed.named(&resumed), "c3");
    assert_eq!(resumed["session"], document["session"]);
}
