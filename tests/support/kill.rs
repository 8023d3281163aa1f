//! A repository with a long search in it, and the tool run on it as a user would run it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// The variable by which every process that a test started, however deep, is found again.
const BED: &str = "TEST_BED";

/// Says its trial in a log, leaves a process in a session of its own, and answers as the commit's
/// `state` says.
pub(crate) const REPRO: &str = r#"#!/bin/sh
echo "$FBISECT_TRIAL $FBISECT_COMMIT $FBISECT_SEED" >> "$TEST_BED/log"
setsid sleep 60 </dev/null >/dev/null 2>&1 &
sleep 0.03
read -r state < state
case $state in good) exit 0 ;; skip) exit 125 ;; esac
echo "AssertionError: the loss is NaN" >&2
exit 1
"#;

/// Says that it runs and, once the gate has been opened, answers like [`REPRO`].
pub(crate) const GATED: &str = r#"#!/bin/sh
echo "$FBISECT_TRIAL $FBISECT_COMMIT $FBISECT_SEED" >> "$TEST_BED/log"
while [ ! -e "$TEST_BED/gate" ]; do sleep 0.02; done
read -r state < state
case $state in good) exit 0 ;; skip) exit 125 ;; esac
echo "AssertionError: the loss is NaN" >&2
exit 1
"#;

/// A repository, a home and the repro's log, in a folder that is removed at the end.
pub(crate) struct Bed {
    dir: TempDir,
}

/// What a session's journal says, line by line.
pub(crate) struct Journal(pub(crate) Vec<Value>);

impl Bed {
    /// A line of `length` commits, named `c0` on, of which `states` says what the repro says: by
    /// number, `good` or `bad` or `skip`. Each of `goods` is a commit beside the first few, made to
    /// be a good end: `g0` on.
    pub(crate) fn new(length: u32, goods: u32, state: impl Fn(u32) -> &'static str) -> Self {
        let bed = Self {
            dir: TempDir::new().unwrap(),
        };
        fs::create_dir_all(bed.repo()).unwrap();
        fs::create_dir_all(bed.path("home")).unwrap();
        fs::create_dir_all(bed.path("cache")).unwrap();
        bed.git(&["init", "-q", "-b", "main"]);
        let mut stream = String::new();
        let commit =
            |stream: &mut String, mark: u32, name: &str, from: Option<u32>, state: &str| {
                let when = 1_700_000_000 + mark * 60;
                let reset = if from.is_none() {
                    "reset refs/heads/main\n"
                } else {
                    ""
                };
                let from = from.map_or(String::new(), |from| format!("from :{from}\n"));
                let branch = if name.starts_with('g') {
                    format!("tags/{name}")
                } else {
                    "heads/main".to_owned()
                };
                let who = format!("Someone <someone@example.com> {when} +0000");
                write!(
                    stream,
                    "{reset}commit refs/{branch}\nmark :{mark}\nauthor {who}\ncommitter {who}\n\
                 data {}\n{name}\n{from}M 644 inline state\ndata {}\n{state}\n\
                 M 644 inline step\ndata {}\n{name}\n\n",
                    name.len() + 1,
                    state.len() + 1,
                    name.len() + 1,
                )
                .unwrap();
            };
        for n in 0..length {
            commit(
                &mut stream,
                n + 1,
                &format!("c{n}"),
                n.checked_sub(1).map(|n| n + 1),
                state(n),
            );
            write!(stream, "reset refs/tags/c{n}\nfrom :{}\n\n", n + 1).unwrap();
        }
        for n in 0..goods {
            commit(
                &mut stream,
                length + n + 1,
                &format!("g{n}"),
                Some(1),
                "good",
            );
        }
        let file = bed.path("stream");
        fs::write(&file, stream).unwrap();
        let output = bed
            .command("git")
            .args(["fast-import", "--quiet", "--force"])
            .current_dir(bed.repo())
            .stdin(File::open(&file).unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        bed.git(&["checkout", "-q", "main"]);
        bed.repro(REPRO);
        bed
    }

    /// About forty trials: twenty-five good ends, untestable commits in the way, one culprit.
    pub(crate) fn long() -> Self {
        Self::new(256, 25, |n| match n {
            100..=110 | 150..=156 | 160..=163 => "skip",
            n if n >= 159 => "bad",
            _ => "good",
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    /// Writes the checkout's `repro.sh`.
    pub(crate) fn repro(&self, text: &str) {
        script(&self.repo().join("repro.sh"), text);
    }

    /// A program in the repository that sees nothing of the developer's own settings.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("NO_COLOR", "1")
            .env(BED, self.path(""))
            .current_dir(self.repo())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn tool(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_fbisect"));
        command.args(args);
        command
    }

    /// Runs the tool to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.tool(args).output().unwrap()
    }

    /// Starts the tool, its words in files: a process that outlives a killed one would hold a pipe.
    pub(crate) fn start(&self, args: &[&str]) -> Tool {
        self.start_as(self.tool(args))
    }

    pub(crate) fn start_as(&self, mut command: Command) -> Tool {
        let file = |name: &str| File::create(self.path(name)).unwrap();
        // The beginning of a group, as a shell makes one for each job.
        let command = command
            .process_group(0)
            .stdout(file("out"))
            .stderr(file("err"));
        Tool {
            child: command.spawn().unwrap(),
            err: self.path("err"),
            out: self.path("out"),
        }
    }

    /// The words of `fbisect commits` over the whole history.
    pub(crate) fn words<'a>(&self, options: &[&'a str], repro: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["commits", "--seed", "7", "--bad", "main"];
        let goods = self.git(&["tag", "--list", "g*"]).lines().count();
        for good in &GOODS[..goods] {
            words.extend(["--good", good]);
        }
        if goods == 0 {
            words.extend(["--good", "c0"]);
        }
        words.extend(options);
        words.push("--");
        words.extend(repro);
        words
    }

    /// The trials that began to run, as (number, commit, seed).
    pub(crate) fn ran(&self) -> Vec<(u32, String, String)> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            (
                words.next().unwrap().parse().unwrap(),
                words.next().unwrap(),
                words.next().unwrap(),
            )
        };
        text.lines().map(line).collect()
    }

    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.repo().join(".fbisect/sessions"));
        let folders = folders
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path());
        let mut sessions: Vec<_> = folders
            .filter(|folder| folder.join("events.jsonl").exists())
            .collect();
        sessions.sort();
        sessions
    }

    /// The only session's folder.
    pub(crate) fn session(&self) -> PathBuf {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "sessions: {sessions:?}");
        sessions[0].clone()
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::read(&self.session().join("events.jsonl"))
    }

    /// The only session's answer: what `result.json` says but for counts and times.
    pub(crate) fn answer(&self) -> Value {
        let text = fs::read_to_string(self.session().join("result.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let words = [
            "status",
            "first_bad",
            "suspects",
            "culprit",
            "conflicts",
            "doubts",
        ];
        words
            .iter()
            .map(|word| (*word, document[*word].clone()))
            .collect()
    }

    /// Processes that were started by anything of this bed and have not ended.
    pub(crate) fn processes(&self) -> Vec<String> {
        let wanted = format!("{BED}={}", self.path("").display());
        let mut found = Vec::new();
        for process in procfs::process::all_processes().unwrap().flatten() {
            let environ = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
            let marked = environ
                .split(|b| *b == 0)
                .any(|entry| entry == wanted.as_bytes());
            if marked
                && process
                    .stat()
                    .is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
            {
                let words = process.cmdline().unwrap_or_default().join(" ");
                found.push(format!("{} {words}", process.pid));
            }
        }
        found
    }

    /// No process, no worktree, no folder of one, no entry in the repository.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.processes(), Vec::<String>::new(), "processes are left");
        assert_eq!(
            self.git(&["worktree", "list", "--porcelain"])
                .matches("worktree ")
                .count(),
            1
        );
        assert!(
            !self.repo().join(".git/worktrees").exists(),
            "worktrees are registered"
        );
        let cache = files_below(&self.path("cache/fbisect"));
        assert!(cache.is_empty(), "left in the cache folder: {cache:?}");
    }
}

const GOODS: [&str; 25] = [
    "g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "g9", "g10", "g11", "g12", "g13", "g14",
    "g15", "g16", "g17", "g18", "g19", "g20", "g21", "g22", "g23", "g24",
];

/// Everything in a folder, folders included.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries
        .flat_map(|path| [vec![path.clone()], files_below(&path)].concat())
        .collect()
}

/// Writes an executable file.
pub(crate) fn script(path: &Path, text: &str) {
    let mut file = File::create(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o755))
        .unwrap();
}

/// A tool that runs. Dropped, it is killed: a test that fails leaves nothing behind.
pub(crate) struct Tool {
    child: Child,
    err: PathBuf,
    out: PathBuf,
}

impl Tool {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// As a terminal does it: to the whole foreground group.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill(Pid::from_raw(-self.child.id().cast_signed()), signal).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// SIGKILL; whether it was still running.
    pub(crate) fn kill(mut self) -> bool {
        let killed = self.is_running();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        killed
    }

    /// Waits for its end: the exit status, none after a signal.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let mut status = None;
        poll("the tool ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Journal {
    /// The whole lines of a journal.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        Self(
            whole
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        )
    }

    pub(crate) fn of(&self, event: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |line| line["event"] == event)
    }

    /// The finished trials, as (number, commit, seed).
    pub(crate) fn finished(&self) -> BTreeSet<(u32, String, String)> {
        let trial = |line: &Value| {
            let spec = if line["spec"].is_object() {
                &line["spec"]
            } else {
                line
            };
            (
                u32::try_from(spec["trial"].as_u64().unwrap()).unwrap(),
                spec["commit"].as_str().unwrap().to_owned(),
                spec["seed"].to_string(),
            )
        };
        self.of("trial_finished").map(trial).collect()
    }
}

/// Waits until something is so.
pub(crate) fn poll(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether samples are to be taken in full.
pub(crate) fn in_full() -> bool {
    std::env::var_os("FBISECT_LONG_TESTS").is_some_and(|value| value == "1")
}

/// Numbers from a fixed seed (xorshift).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
