//! The local executor with real processes: how they end, what they leave, what is left of them.

#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a measurement prints its result")]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, too, fail by panicking"
)]

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fbisect::executors::{
    Finished, MARK_VARIABLE, OutputTo, ProcessEnd, ProcessIdentity, ProcessSpec, Stop,
    end_leftovers, run,
};
use procfs::process::Process;
use tokio::sync::{RwLock, RwLockReadGuard, watch};

/// Tests share this process, and an orphan without any trace belongs to nobody in particular while
/// several commands run. Tests with such orphans, or with strangers, run alone.
static ALONE: RwLock<()> = RwLock::const_new(());

async fn among_others() -> RwLockReadGuard<'static, ()> {
    ALONE.read().await
}

fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}/{number}", std::process::id())
}

fn shell(dir: &Path, script: &str) -> ProcessSpec {
    ProcessSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: dir.to_owned(),
        env: Vec::new(),
        stdout: dir.join("out"),
        stderr: dir.join("err"),
        output: OutputTo::NewFiles,
        timeout: Some(Duration::from_mins(1)),
        grace: Duration::from_secs(5),
        output_limit: 1 << 20,
        mark: unique("test"),
    }
}

async fn finish(spec: &ProcessSpec) -> Finished {
    let (_keep, stop) = watch::channel(Stop::Run);
    run(spec, |_| {}, stop).await
}

fn exited(code: i32) -> ProcessEnd {
    ProcessEnd::Exited { code }
}

fn poll(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn poll_async(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The process numbers in a file, one a line.
fn pids(file: &Path) -> Vec<i32> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// A zombie counts as gone.
fn alive(pid: i32) -> bool {
    let stat = Process::new(pid).and_then(|process| process.stat());
    stat.is_ok_and(|stat| stat.state != 'Z')
}

fn assert_gone(file: &Path, count: usize) {
    let pids = pids(file);
    assert_eq!(pids.len(), count, "processes that told their number");
    for pid in pids {
        assert!(!alive(pid), "process {pid} is alive");
    }
}

/// Shell text: a daemon in a session of its own that adds its number to `file`, ignoring TERM.
fn daemon(file: &str, launcher: &str) -> String {
    let script = format!("trap \"\" TERM; echo $$ >> {file}; while :; do sleep 0.05; done");
    format!(
        "{launcher} /bin/sh -c '{script}' >/dev/null 2>&1 & while [ ! -s {file} ]; do sleep 0.01; done;"
    )
}

fn script(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let file = dir.join(name);
    // By another process: what this one holds open for writing, a fork elsewhere may keep busy.
    duct::cmd("tee", [&file])
        .stdin_bytes(text)
        .stdout_null()
        .run()
        .unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    file
}

// --- how a command ends ---------------------------------------------------------------------

#[tokio::test]
async fn exit_statuses_are_told_as_they_are() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    for code in [0, 1, 125, 126, 127, 200] {
        let spec = shell(
            dir.path(),
            &format!("echo {code}; echo oops >&2; exit {code}"),
        );
        let finished = finish(&spec).await;
        assert_eq!(finished.end, exited(code));
        assert_eq!((finished.swept, finished.stuck.len()), (0, 0));
        assert_eq!(
            fs::read_to_string(&spec.stdout).unwrap(),
            format!("{code}\n")
        );
        assert_eq!(fs::read_to_string(&spec.stderr).unwrap(), "oops\n");
    }
}

#[tokio::test]
async fn signals_are_told_by_their_number() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    for (name, signal) in [("SEGV", 11), ("KILL", 9), ("TERM", 15), ("PIPE", 13)] {
        let finished = finish(&shell(dir.path(), &format!("kill -{name} $$"))).await;
        assert_eq!(finished.end, ProcessEnd::Signalled { signal });
    }
}

fn spawn_code(finished: &Finished) -> i32 {
    match &finished.end {
        ProcessEnd::SpawnFailed { code, .. } => *code,
        other => panic!("expected a spawn failure, got {other:?}"),
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_127_or_126() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    script(dir.path(), "plain", "echo hi\n", 0o644);
    script(dir.path(), "lost", "#!/no/such/interpreter\n", 0o755);
    let cases = [
        ("no-such-program-anywhere", 127),
        ("./none", 127),
        ("./lost", 127),
        ("./plain", 126),
        ("/", 126),
    ];
    for (program, code) in cases {
        let mut spec = shell(dir.path(), "");
        spec.program = program.into();
        spec.args.clear();
        assert_eq!(spawn_code(&finish(&spec).await), code, "{program}");
    }
    let mut spec = shell(dir.path(), "exit 0");
    spec.cwd = dir.path().join("gone");
    assert_eq!(spawn_code(&finish(&spec).await), 127);
}

#[tokio::test]
async fn programs_are_found_as_a_shell_finds_them() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bin")).unwrap();
    script(dir.path(), "bin/tool", "#!/bin/sh\nexit 41\n", 0o755);
    script(dir.path(), "bin/bare", "exit $1\n", 0o755);
    let mut spec = shell(dir.path(), "");
    spec.args = vec!["42".into()];
    spec.program = "bin/tool".into();
    assert_eq!(finish(&spec).await.end, exited(41));
    spec.program = "tool".into();
    spec.env = vec![("PATH".into(), Some("bin:/usr/bin:/bin".into()))];
    assert_eq!(finish(&spec).await.end, exited(41));
    // No line that names an interpreter: a shell runs it itself.
    spec.program = "bare".into();
    assert_eq!(finish(&spec).await.end, exited(42));
    spec.program = "sh".into();
    spec.args = vec!["-c".into(), "exit 43".into()];
    spec.env = vec![("PATH".into(), None)];
    assert_eq!(finish(&spec).await.end, exited(43));
}

#[tokio::test]
async fn an_output_file_that_cannot_be_written_is_a_fault_of_the_machine() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let mut spec = shell(dir.path(), "touch ran");
    spec.stderr = dir.path().join("no/such/folder/err");
    let finished = finish(&spec).await;
    assert!(
        matches!(finished.end, ProcessEnd::Faulted { .. }),
        "{:?}",
        finished.end
    );
    assert!(!dir.path().join("ran").exists());
}

// --- what it is given ------------------------------------------------------------------------

#[tokio::test]
async fn it_has_its_own_group_its_environment_and_no_input() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let mut spec = shell(
        dir.path(),
        "if read line; then exit 9; fi; cut -d' ' -f1,5 /proc/$$/stat; \
         echo \"$ADDED ${HOME-none} $PWD $FBISECT_MARK\"",
    );
    spec.env = vec![
        ("ADDED".into(), Some("a value".into())),
        ("HOME".into(), None),
    ];
    let mut identity = None;
    let (_keep, stop) = watch::channel(Stop::Run);
    let finished = run(&spec, |told| identity = Some(told), stop).await;
    assert_eq!(finished.end, exited(0));
    let identity = identity.unwrap();
    assert!(identity.start_ticks.is_some() && identity.boot_id.is_some());
    let pid = identity.pid;
    let expected = format!(
        "{pid} {pid}\na value none {} {}\n",
        dir.path().display(),
        spec.mark
    );
    assert_eq!(fs::read_to_string(&spec.stdout).unwrap(), expected);
}

#[test]
fn ignored_signals_are_heeded_again() {
    let _alone = ALONE.blocking_write();
    let dir = tempfile::tempdir().unwrap();
    let ignoring = "trap '' HUP INT QUIT TERM; exec \"$0\" \"$@\"";
    let mut helper = Command::new("sh");
    helper
        .args(["-c", ignoring])
        .arg(std::env::current_exe().unwrap());
    helper.args(["--exact", "helper_runs_a_command", "--ignored"]);
    helper.env("HELPER_DIR", dir.path());
    helper.env("HELPER_SCRIPT", "grep -E '^Sig(Ign|Blk)' /proc/self/status");
    assert!(helper.output().unwrap().status.success());
    let masks = fs::read_to_string(dir.path().join("out")).unwrap();
    assert_eq!(masks.lines().count(), 2);
    for line in masks.lines() {
        let mask = u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
        // Signals from 32 on are the C library's own affair.
        assert_eq!(mask & 0x7fff_ffff, 0, "{line}");
    }
}

// --- output ----------------------------------------------------------------------------------

#[tokio::test]
async fn a_flood_keeps_its_beginning_and_its_last_line() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let flood = "echo first line; head -c 50000000 /dev/zero | tr '\\0' x | fold -w 79; \
                 echo Traceback: the end";
    let spec = shell(dir.path(), flood);
    assert_eq!(finish(&spec).await.end, exited(0));
    let mut text = String::new();
    fs::File::open(&spec.stdout)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(text.len() <= (1 << 20) + 4096, "{}", text.len());
    assert!(text.starts_with("first line\n"));
    assert!(text.ends_with("xTraceback: the end\n"));
    assert!(text.contains(" bytes left out here]\n"));
    assert!(!text.contains('\0'));
}

#[tokio::test]
async fn output_can_be_joined_and_appended() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let mut spec = shell(dir.path(), "echo one; echo two >&2; echo three");
    spec.stderr = spec.stdout.clone();
    spec.output = OutputTo::Append;
    finish(&spec).await;
    finish(&spec).await;
    let text = fs::read_to_string(&spec.stdout).unwrap();
    assert_eq!(text, "one\ntwo\nthree\n".repeat(2));
}

// --- time ------------------------------------------------------------------------------------

#[tokio::test]
async fn a_timeout_kills_a_tree_that_ignores_sigterm() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let stubborn = "trap '' TERM; echo $$ >> pids; while :; do sleep 0.05; done";
    let text = format!("sh -c \"{}\" & {stubborn}", stubborn.replace('$', "\\$"));
    let mut spec = shell(dir.path(), &text);
    spec.timeout = Some(Duration::from_millis(400));
    spec.grace = Duration::from_millis(200);
    let finished = finish(&spec).await;
    assert_eq!(finished.end, ProcessEnd::TimedOut);
    assert!(
        finished.wall >= Duration::from_millis(600),
        "{:?}",
        finished.wall
    );
    assert_gone(&dir.path().join("pids"), 2);
}

#[tokio::test]
async fn the_whole_group_has_the_grace_period() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    // The leader ends at once; its child needs a moment to save its work.
    let child = "trap 'sleep 0.3; echo saved > saved; exit' TERM; while :; do sleep 0.02; done";
    let mut spec = shell(dir.path(), &format!("sh -c \"{child}\" & wait"));
    spec.timeout = Some(Duration::from_millis(300));
    assert_eq!(finish(&spec).await.end, ProcessEnd::TimedOut);
    assert!(dir.path().join("saved").exists());
}

#[tokio::test]
async fn an_end_is_seen_long_before_the_timeout() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let finished = finish(&shell(dir.path(), "exit 0")).await;
    assert!(finished.wall < Duration::from_secs(5));
}

// --- being stopped ---------------------------------------------------------------------------

#[tokio::test]
async fn stopping_gently_lets_it_clean_up() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let text = "trap 'echo bye > bye; exit 0' TERM; echo $$ > pids; while :; do sleep 0.02; done";
    let spec = shell(dir.path(), text);
    let (tell, stop) = watch::channel(Stop::Run);
    let stopper = async {
        poll_async("start", || !pids(&dir.path().join("pids")).is_empty()).await;
        tell.send(Stop::Gently).unwrap();
    };
    let (finished, ()) = tokio::join!(run(&spec, |_| {}, stop), stopper);
    assert_eq!(finished.end, ProcessEnd::Stopped);
    assert!(dir.path().join("bye").exists());
}

#[tokio::test]
async fn stopping_now_does_not_wait_for_the_grace_period() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "{} trap '' TERM; while :; do sleep 0.05; done",
        daemon("pids", "setsid")
    );
    let mut spec = shell(dir.path(), &text);
    spec.grace = Duration::from_mins(10);
    let (tell, stop) = watch::channel(Stop::Run);
    let stopper = async {
        poll_async("start", || !pids(&dir.path().join("pids")).is_empty()).await;
        tell.send(Stop::Gently).unwrap();
        // A second order overrides the first, which waits for a group that ignores it.
        tokio::task::yield_now().await;
        tell.send(Stop::Now).unwrap();
    };
    let (finished, ()) = tokio::join!(run(&spec, |_| {}, stop), stopper);
    assert_eq!(finished.end, ProcessEnd::Stopped);
    assert_gone(&dir.path().join("pids"), 1);
}

#[tokio::test]
async fn told_to_stop_before_it_starts_it_does_not_start() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let spec = shell(dir.path(), "touch ran");
    let (_keep, stop) = watch::channel(Stop::Gently);
    let finished = run(&spec, |_| panic!("started"), stop).await;
    assert_eq!(finished.end, ProcessEnd::Stopped);
    assert!(!dir.path().join("ran").exists());
}

#[tokio::test]
async fn it_runs_on_when_nobody_can_stop_it_any_more() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let (tell, stop) = watch::channel(Stop::Run);
    drop(tell);
    let spec = shell(dir.path(), "sleep 0.3; exit 7");
    assert_eq!(run(&spec, |_| {}, stop).await.end, exited(7));
}

#[tokio::test]
async fn a_dropped_run_takes_its_tree_with_it() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    let text = format!("{} echo $$ >> pids; sleep 1000", daemon("pids", "setsid"));
    let spec = shell(dir.path(), &text);
    tokio::select! {
        _ = finish(&spec) => panic!("it ended by itself"),
        () = poll_async("start", || pids(&file).len() == 2) => {}
    }
    poll_async("death", || pids(&file).iter().all(|pid| !alive(*pid))).await;
}

// --- what outlives the first process -----------------------------------------------------------

#[tokio::test]
async fn a_background_child_in_the_group_is_ended() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let finished = finish(&shell(dir.path(), "sleep 1000 & echo $! > pids; exit 3")).await;
    assert_eq!(finished.end, exited(3));
    assert_eq!(finished.swept, 1);
    assert_gone(&dir.path().join("pids"), 1);
}

#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own_is_ended_and_hangs_nobody() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    // It keeps the output open and ignores SIGTERM.
    let text = daemon("pids", "setsid").replace(">/dev/null 2>&1", "");
    let finished = finish(&shell(dir.path(), &text)).await;
    assert_eq!(finished.end, exited(0));
    assert!(finished.swept >= 1);
    assert_gone(&dir.path().join("pids"), 1);
}

#[tokio::test]
async fn a_daemon_without_environment_is_ended() {
    let _alone = ALONE.write().await;
    let dir = tempfile::tempdir().unwrap();
    let text = daemon("pids", "env -i PATH=/bin:/usr/bin setsid setsid --fork");
    let finished = finish(&shell(dir.path(), &text)).await;
    assert_eq!(finished.end, exited(0));
    assert_gone(&dir.path().join("pids"), 1);
}

#[tokio::test]
async fn a_tree_that_keeps_forking_is_ended() {
    let _shared = among_others().await;
    let dir = tempfile::tempdir().unwrap();
    let fork = "trap \"\" TERM; while :; do setsid sleep 1000 & echo $! >> pids; sleep 0.01; done";
    let text = format!("setsid sh -c '{fork}' & while [ ! -s pids ]; do sleep 0.01; done");
    let finished = finish(&shell(dir.path(), &text)).await;
    assert_eq!((finished.end, finished.stuck), (exited(0), vec![]));
    let file = dir.path().join("pids");
    assert!(pids(&file).iter().all(|pid| !alive(*pid)));
    let count = pids(&file).len();
    assert!(finished.swept >= count, "{} of {count}", finished.swept);
}

/// Which of two commands is started when the other already runs.
#[derive(Debug, Clone, Copy)]
enum Younger {
    First,
    Second,
}

/// Runs `first` and `second` at once; when the first has ended, calls `between`, then stops the
/// second.
async fn two_at_once(
    first: &ProcessSpec,
    second: &ProcessSpec,
    younger: Younger,
    between: impl FnOnce(),
) {
    let (tell, stop) = watch::channel(Stop::Run);
    let runs = AtomicBool::new(false);
    let other_runs = || poll_async("the other one", || runs.load(Ordering::Relaxed));
    let started = |_: ProcessIdentity| runs.store(true, Ordering::Relaxed);
    let first = async {
        if matches!(younger, Younger::First) {
            other_runs().await;
        }
        let (_keep, stop) = watch::channel(Stop::Run);
        let finished = run(first, started, stop).await;
        assert_eq!(finished.end, exited(0));
        between();
        tell.send(Stop::Now).unwrap();
    };
    let second = async {
        if matches!(younger, Younger::Second) {
            other_runs().await;
        }
        let finished = run(second, started, stop).await;
        assert_eq!(finished.end, ProcessEnd::Stopped);
    };
    tokio::join!(first, second);
}

#[tokio::test]
async fn the_end_of_one_does_not_touch_the_other() {
    let _alone = ALONE.write().await;
    let traceless = "env -i PATH=/bin:/usr/bin setsid setsid --fork";
    let cases = [
        ("setsid", Younger::First),
        (traceless, Younger::First),
        (traceless, Younger::Second),
    ];
    for (launcher, younger) in cases {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let theirs = other.path().join("pids");
        let wait = format!("while [ ! -s {} ]; do sleep 0.01; done;", theirs.display());
        let first = shell(dir.path(), &format!("{wait} {}", daemon("pids", "setsid")));
        let second = shell(
            other.path(),
            &format!("{} sleep 1000", daemon("pids", launcher)),
        );
        two_at_once(&first, &second, younger, || {
            assert_gone(&dir.path().join("pids"), 1);
            let alive = pids(&theirs).iter().all(|pid| alive(*pid));
            assert!(alive, "{launcher}, {younger:?}");
        })
        .await;
        assert_gone(&theirs, 1);
    }
}

#[tokio::test]
async fn a_daemon_that_was_seen_in_its_tree_is_known_among_several() {
    let _alone = ALONE.write().await;
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Seen in the group; then it leaves for a session of its own, and at once its parent ends.
    let daemon = "sleep 0.7; exec setsid sh -c \"echo \\$\\$ >> pids; exec sleep 1000\"";
    let text = format!(
        "env -i PATH=/bin:/usr/bin sh -c '{daemon}' & while [ ! -s pids ]; do sleep 0.01; done"
    );
    let first = shell(dir.path(), &text);
    let second = shell(other.path(), "sleep 1000");
    let file = dir.path().join("pids");
    two_at_once(&first, &second, Younger::First, || assert_gone(&file, 1)).await;
}

// --- after the program itself was killed -------------------------------------------------------

/// The program that is killed: runs `HELPER_SCRIPT` in `HELPER_DIR` under `HELPER_MARK`.
#[test]
#[ignore = "a helper that other tests start as a process of its own"]
fn helper_runs_a_command() {
    let dir = PathBuf::from(std::env::var_os("HELPER_DIR").unwrap());
    let mut spec = shell(&dir, &std::env::var("HELPER_SCRIPT").unwrap());
    spec.mark = std::env::var("HELPER_MARK").unwrap_or(spec.mark);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (_keep, stop) = watch::channel(Stop::Run);
    let record = |identity: ProcessIdentity| {
        let text = serde_json::to_string(&identity).unwrap();
        fs::write(dir.join("identity.new"), text).unwrap();
        fs::rename(dir.join("identity.new"), dir.join("identity")).unwrap();
    };
    runtime.block_on(run(&spec, record, stop));
}

#[test]
fn leftovers_of_a_killed_program_are_ended() {
    let _alone = ALONE.blocking_write();
    let dir = tempfile::tempdir().unwrap();
    let session = unique("session");
    let text = format!(
        "{} {} echo $$ >> pids; sleep 1000",
        daemon("pids", "setsid"),
        daemon("cleared", "env -i PATH=/bin:/usr/bin"),
    );
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_runs_a_command", "--ignored"])
        .env("HELPER_DIR", dir.path())
        .env("HELPER_SCRIPT", text)
        .env("HELPER_MARK", format!("{session}/1"))
        .spawn()
        .unwrap();
    let (marked, cleared) = (dir.path().join("pids"), dir.path().join("cleared"));
    poll("the tree", || {
        pids(&marked).len() == 2 && pids(&cleared).len() == 1
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let text = fs::read_to_string(dir.path().join("identity")).unwrap();
    let identity: ProcessIdentity = serde_json::from_str(&text).unwrap();

    assert_eq!(end_leftovers("", &[], Duration::ZERO), 0);
    assert_eq!(end_leftovers("another-session/", &[], Duration::ZERO), 0);
    assert!(pids(&marked).iter().all(|pid| alive(*pid)));
    let ended = end_leftovers(
        &format!("{session}/"),
        &[identity],
        Duration::from_millis(300),
    );
    assert!(ended >= 3, "{ended}");
    assert_gone(&marked, 2);
    assert_gone(&cleared, 1);
}

#[test]
fn a_process_that_only_has_the_same_number_is_left_alone() {
    let _alone = ALONE.blocking_write();
    let mut stranger = Command::new("sleep")
        .arg("1000")
        .process_group(0)
        .spawn()
        .unwrap();
    let stat = Process::new(stranger.id().cast_signed())
        .unwrap()
        .stat()
        .unwrap();
    let right = ProcessIdentity {
        pid: stranger.id(),
        start_ticks: Some(stat.starttime),
        boot_id: procfs::sys::kernel::random::boot_id().ok(),
    };
    let wrong = [
        ProcessIdentity {
            start_ticks: Some(stat.starttime + 1),
            ..right.clone()
        },
        ProcessIdentity {
            start_ticks: None,
            ..right.clone()
        },
        ProcessIdentity {
            boot_id: Some("another boot".into()),
            ..right.clone()
        },
        ProcessIdentity {
            boot_id: None,
            ..right.clone()
        },
    ];
    assert_eq!(end_leftovers("no-such-mark/", &wrong, Duration::ZERO), 0);
    assert!(alive(stat.pid));
    assert_eq!(
        end_leftovers("no-such-mark/", &[right], Duration::from_secs(5)),
        1
    );
    assert!(!alive(stat.pid));
    stranger.wait().unwrap();
}

/// The program that resumes inside a tree which carries the mark that it looks for.
#[test]
#[ignore = "a helper that another test starts as a process of its own"]
fn helper_ends_leftovers() {
    let mark = std::env::var(MARK_VARIABLE).unwrap();
    assert_eq!(end_leftovers(&mark, &[], Duration::ZERO), 0);
}

#[test]
fn the_program_spares_itself_and_its_ancestors() {
    let _alone = ALONE.blocking_write();
    let text = "\"$0\" --exact helper_ends_leftovers --ignored >/dev/null; exit $((40 + $?))";
    let status = Command::new("sh")
        .args(["-c", text])
        .arg(std::env::current_exe().unwrap())
        .env(MARK_VARIABLE, unique("nested"))
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(40));
}

// --- cost ------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: prints milliseconds a run of `true`, beside the standard library's"]
async fn overhead() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = shell(dir.path(), "");
    spec.program = "true".into();
    spec.args.clear();
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let began = Instant::now();
        assert_eq!(finish(&spec).await.end, exited(0));
        ours.push(began.elapsed());
        let began = Instant::now();
        assert!(Command::new("true").status().unwrap().success());
        plain.push(began.elapsed());
    }
    ours.sort();
    plain.sort();
    println!(
        "median: {:?}, plain fork and exec: {:?}",
        ours[100], plain[100]
    );
    println!("worst: {:?}, plain: {:?}", ours[199], plain[199]);
}
