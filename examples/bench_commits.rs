//! Measures `fbisect commits` side by side with `git bisect run`, and prints ratios.
//!
//! `cargo run --release --example bench_commits` (see docs/benchmarks.md; `-- --quick` for a
//! minute's worth). It makes its own repositories in a temporary folder and asserts no times: only
//! that both tools give the right answer.

// A report on the terminal is what it is for, and a benchmark that cannot run may panic.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program for the terminal"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The word by which this program is started as the repro.
const REPRO: &str = "__repro";
/// What is compared; git comes first, for the others are held against it.
const TOOLS: [&str; 3] = ["git bisect run", "fbisect", "fbisect --deterministic"];
/// The one quantity that is no time.
const TRIALS: &str = "trials";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|word| word == REPRO) {
        return repro(&args[1..]);
    }
    let options = Options::read(args);
    let bench = Bench::set_up(&options);
    println!(
        "{}; {} cores; {}; repositories in {}\n",
        said(Command::new("git").arg("--version")),
        std::thread::available_parallelism().map_or(0, usize::from),
        said(Command::new(&bench.fbisect).arg("--version")),
        bench.folder.display(),
    );
    if options.wants("trial") {
        bench.per_trial(&options);
    }
    if options.wants("first") {
        bench.to_the_first_trial(&options);
    }
    if options.wants("slots") {
        bench.slots(&options);
    }
    ExitCode::SUCCESS
}

/// Seconds on the clock that all processes of the machine share.
fn now() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    Duration::from(time).as_secs_f64()
}

/// `LOG CULPRIT SECONDS STATUS`: fails with STATUS from step CULPRIT on, after SECONDS of sleep,
/// and writes its first and its last moment down.
fn repro(args: &[String]) -> ExitCode {
    let start = now();
    let [log, culprit, seconds, status] = args else {
        panic!("LOG CULPRIT SECONDS STATUS")
    };
    let step: u32 = fs::read_to_string("step").unwrap().trim().parse().unwrap();
    std::thread::sleep(Duration::from_secs_f64(seconds.parse().unwrap()));
    let bad = step >= culprit.parse().unwrap();
    let mut log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(log)
        .unwrap();
    log.write_all(format!("{start:.9} {:.9}\n", now()).as_bytes())
        .unwrap();
    ExitCode::from(if bad { status.parse().unwrap() } else { 0 })
}

struct Options {
    quick: bool,
    rounds: Option<usize>,
    only: Option<String>,
    fbisect: Option<PathBuf>,
    dir: PathBuf,
}

impl Options {
    fn read(args: Vec<String>) -> Self {
        let mut options = Self {
            quick: false,
            rounds: None,
            only: None,
            fbisect: None,
            dir: std::env::temp_dir(),
        };
        let mut args = args.into_iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| usage());
            match flag.as_str() {
                "--quick" => options.quick = true,
                "--rounds" => options.rounds = Some(value().parse().unwrap_or_else(|_| usage())),
                "--only" => options.only = Some(value()),
                "--fbisect" => options.fbisect = Some(value().into()),
                "--dir" => options.dir = value().into(),
                _ => usage(),
            }
        }
        options
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == part)
    }

    fn rounds(&self, quick: usize, full: usize) -> usize {
        self.rounds.unwrap_or(if self.quick { quick } else { full })
    }
}

fn usage() -> ! {
    eprintln!(
        "bench_commits [--quick] [--rounds N] [--only trial|first|slots] [--fbisect PROGRAM] [--dir FOLDER]"
    );
    std::process::exit(2)
}

struct Bench {
    // Removes the folder at the end.
    _home: tempfile::TempDir,
    folder: PathBuf,
    fbisect: PathBuf,
    repro: PathBuf,
}

/// A repository's shape.
struct Shape {
    name: &'static str,
    commits: u32,
    files: u32,
    changes: u32,
    merges: bool,
}

/// One search: what its repros wrote down and what it took as a whole.
struct Search {
    begun: f64,
    wall: f64,
    repros: Vec<(f64, f64)>,
    first_bad: String,
}

impl Search {
    /// From each repro's end to the next one's start.
    fn gaps(&self) -> Vec<f64> {
        self.repros
            .windows(2)
            .map(|pair| pair[1].0 - pair[0].1)
            .collect()
    }

    /// The whole wall time less the repros', for each trial.
    fn overhead(&self) -> f64 {
        let repros: f64 = self.repros.iter().map(|(start, end)| end - start).sum();
        (self.wall - repros) / self.repros.len() as f64
    }

    fn to_the_first(&self) -> f64 {
        self.repros[0].0 - self.begun
    }
}

impl Bench {
    fn set_up(options: &Options) -> Self {
        let home = tempfile::Builder::new()
            .prefix("fbisect-bench-")
            .tempdir_in(&options.dir)
            .unwrap();
        let folder = fs::canonicalize(home.path()).unwrap();
        let own = std::env::current_exe().unwrap();
        // A copy of a plain name, so that a rebuild in the meantime changes nothing.
        let repro = folder.join("repro");
        fs::copy(&own, &repro).unwrap();
        Self {
            fbisect: options.fbisect.clone().unwrap_or_else(|| built(&own)),
            _home: home,
            folder,
            repro,
        }
    }

    /// A command that sees nothing of the user's own settings.
    fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_")
                || name.to_string_lossy().starts_with("FBISECT_")
            {
                command.env_remove(name);
            }
        }
        command
            .current_dir(dir)
            .env("HOME", &self.folder)
            .env("XDG_CACHE_HOME", self.folder.join("cache"))
            .env("XDG_CONFIG_HOME", self.folder.join("config"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null());
        command
    }

    fn git(&self, dir: &Path, args: &[&str]) -> String {
        said(self.command(Path::new("git"), dir).args(args))
    }

    /// Makes a repository; commit 0 is tagged `start`, and the file `step` holds a commit's number.
    fn repository(&self, shape: &Shape) -> PathBuf {
        eprintln!(
            "making a repository of {} commits and {} files",
            shape.commits, shape.files
        );
        let root = self.folder.join(shape.name);
        fs::create_dir(&root).unwrap();
        self.git(&root, &["init", "--quiet", "--initial-branch=main"]);
        let mut import = self.command(Path::new("git"), &root);
        let mut import = import
            .args(["fast-import", "--quiet", "--done"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        write_history(BufWriter::new(import.stdin.take().unwrap()), shape).unwrap();
        assert!(import.wait().unwrap().success());
        self.git(&root, &["reset", "--quiet", "--hard", "main"]);
        // Settle what is still to be written, so that the first measurement is like the others.
        said(&mut Command::new("sync"));
        root
    }

    fn log(&self) -> PathBuf {
        let log = self.folder.join("repro.log");
        let _ = fs::remove_file(&log);
        log
    }

    fn repro(&self, log: &Path, culprit: u32, seconds: f64, status: u8) -> Vec<String> {
        let words = [
            &*self.repro.to_string_lossy(),
            REPRO,
            &*log.to_string_lossy(),
        ]
        .map(str::to_owned);
        let numbers = [culprit.to_string(), seconds.to_string(), status.to_string()];
        words.into_iter().chain(numbers).collect()
    }

    fn git_bisect(&self, root: &Path, culprit: u32, seconds: f64, status: u8) -> Search {
        let log = self.log();
        let quiet = |command: &mut Command| {
            let out = File::create(self.folder.join("git.out")).unwrap();
            let err = File::create(self.folder.join("git.err")).unwrap();
            command.stdout(out).stderr(err).status().unwrap()
        };
        let git = |args: &[&str]| {
            let mut command = self.command(Path::new("git"), root);
            command.args(args);
            command
        };
        let words = self.repro(&log, culprit, seconds, status);
        let begun = now();
        quiet(&mut git(&["bisect", "start", "main", "start"]));
        quiet(git(&["bisect", "run"]).args(words));
        let wall = now() - begun;
        let first_bad = self.git(root, &["rev-parse", "refs/bisect/bad"]);
        self.git(root, &["bisect", "reset"]);
        Search {
            begun,
            wall,
            repros: read(&log),
            first_bad,
        }
    }

    fn fbisect(&self, root: &Path, flags: &[&str], culprit: u32, seconds: f64) -> Search {
        let log = self.log();
        let mut command = self.command(&self.fbisect, root);
        let errors = self.folder.join("fbisect.err");
        command
            .args(["commits", "start..main", "--seed", "1", "--json"])
            .args(flags)
            .arg("--")
            .args(self.repro(&log, culprit, seconds, 1))
            .stderr(File::create(&errors).unwrap());
        let begun = now();
        let output = command.output().unwrap();
        let wall = now() - begun;
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", fs::read_to_string(&errors).unwrap()));
        fs::remove_dir_all(root.join(".fbisect")).unwrap();
        Search {
            begun,
            wall,
            repros: read(&log),
            first_bad: document["first_bad"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// Time per trial beyond the repro.
    fn per_trial(&self, options: &Options) {
        let shape = Shape {
            name: "trial",
            commits: 1024,
            files: 3000,
            changes: 3,
            merges: false,
        };
        let root = self.repository(&shape);
        let culprits: &[u32] = if options.quick {
            &[333]
        } else {
            &[1, 333, 512, 700, 1024]
        };
        for (seconds, words, full) in [
            (1.0, "a repro of one second", 1),
            (0.0, "an instant repro", 3),
        ] {
            let title =
                format!("Time per trial beyond the repro: 1,024 commits, 3,000 files, {words}");
            let mut table = Table::new(&title, &TOOLS);
            for round in 0..options.rounds(1, full) {
                for &culprit in culprits {
                    let answer = self.git(
                        &root,
                        &["rev-parse", &format!("main~{}", shape.commits - culprit)],
                    );
                    // Every other time in the other order: neither profits from going second.
                    let mut turns = TOOLS;
                    if !(round + culprit as usize).is_multiple_of(2) {
                        turns.reverse();
                    }
                    for tool in turns {
                        let search = match tool {
                            "git bisect run" => self.git_bisect(&root, culprit, seconds, 1),
                            "fbisect" => self.fbisect(&root, &[], culprit, seconds),
                            _ => self.fbisect(&root, &["--deterministic"], culprit, seconds),
                        };
                        assert_eq!(search.first_bad, answer, "{tool} gives a wrong answer");
                        let gaps = search.gaps();
                        table.add(tool, "repro to repro, median", median(&gaps));
                        table.add(
                            tool,
                            "repro to repro, mean",
                            gaps.iter().sum::<f64>() / gaps.len() as f64,
                        );
                        table.add(
                            tool,
                            "repro to repro, least",
                            gaps.iter().copied().fold(f64::INFINITY, f64::min),
                        );
                        table.add(tool, "whole, per trial", search.overhead());
                        table.add(tool, "to the first trial", search.to_the_first());
                        table.add(tool, TRIALS, search.repros.len() as f64);
                    }
                }
            }
            table.print();
        }
    }

    /// From the start of the program to the start of the first repro.
    fn to_the_first_trial(&self, options: &Options) {
        let shape = Shape {
            name: "first",
            commits: 50_000,
            files: 300,
            changes: 1,
            merges: true,
        };
        let root = self.repository(&shape);
        for graph in ["without", "with"] {
            if graph == "with" {
                self.git(&root, &["commit-graph", "write", "--reachable"]);
            }
            let mut table = Table::new(
                &format!(
                    "Time to the first trial: 50,000 commits with merges, {graph} a commit-graph file"
                ),
                &TOOLS,
            );
            for _ in 0..options.rounds(3, 9) {
                // A status from 128 on makes git stop at once.
                table.add(
                    TOOLS[0],
                    "to the first trial",
                    self.git_bisect(&root, 0, 0.0, 255).to_the_first(),
                );
                let search = self.fbisect(&root, &["--max-trials", "1"], 0, 0.0);
                table.add("fbisect", "to the first trial", search.to_the_first());
            }
            table.print();
        }
    }

    /// Wall time with one slot and with four.
    fn slots(&self, options: &Options) {
        let shape = Shape {
            name: "slots",
            commits: 1024,
            files: 100,
            changes: 3,
            merges: false,
        };
        let root = self.repository(&shape);
        let mut table = Table::new(
            "Slots: 1,024 commits, a repro of one second",
            &["fbisect --jobs 1", "fbisect --jobs 4"],
        );
        for round in 0..options.rounds(1, 3) {
            let culprit = [700, 130, 333][round % 3];
            let answer = self.git(
                &root,
                &["rev-parse", &format!("main~{}", shape.commits - culprit)],
            );
            for jobs in ["1", "4"] {
                let search = self.fbisect(&root, &["--jobs", jobs], culprit, 1.0);
                assert_eq!(
                    search.first_bad, answer,
                    "fbisect --jobs {jobs} gives a wrong answer"
                );
                let name = if jobs == "1" {
                    "fbisect --jobs 1"
                } else {
                    "fbisect --jobs 4"
                };
                table.add(name, "wall", search.wall);
                table.add(name, TRIALS, search.repros.len() as f64);
            }
        }
        table.print();
    }
}

/// The program that belongs to this one: built now if cargo runs us, else what lies beside.
fn built(own: &Path) -> PathBuf {
    let target = own.parent().and_then(Path::parent).unwrap();
    if let Some(cargo) = std::env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--bin", "fbisect"]);
        if target.file_name().is_some_and(|name| name == "release") {
            build.arg("--release");
        } else {
            eprintln!("warning: this is a debug build; run it with --release");
        }
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(
            build
                .arg("--manifest-path")
                .arg(manifest)
                .status()
                .unwrap()
                .success()
        );
    }
    target.join("fbisect")
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What the repros wrote down, in order of their start.
fn read(log: &Path) -> Vec<(f64, f64)> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let line = |line: &str| {
        let (start, end) = line.split_once(' ')?;
        Some((start.parse().ok()?, end.parse().ok()?))
    };
    let mut repros: Vec<(f64, f64)> = text.lines().map(|text| line(text).unwrap()).collect();
    repros.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(!repros.is_empty(), "no repro has run");
    repros
}

/// A history for `git fast-import`. With merges, every five commits are a small diamond.
fn write_history(mut out: impl Write, shape: &Shape) -> std::io::Result<()> {
    let mut random = 1_u64;
    let mut draw = |below: u32| {
        // Knuth's MMIX generator; its upper bits are good enough to choose files.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u32 % below
    };
    let text = |file: u32, commit: u32| {
        let mut text = String::new();
        for line in 0..20 + file % 60 {
            let value = if line == 7 { commit } else { file };
            let _ = writeln!(text, "value_{line} = {}", value * 31 + line);
        }
        text
    };
    let path = |file: u32| format!("part_{:02}/module_{file:04}.py", file % 100);
    for commit in 0..=shape.commits {
        let files: Vec<u32> = if commit == 0 {
            (0..shape.files).collect()
        } else {
            (0..shape.changes).map(|_| draw(shape.files)).collect()
        };
        let mut contents: BTreeMap<String, String> =
            files.iter().map(|f| (path(*f), text(*f, commit))).collect();
        contents.insert("step".to_owned(), format!("{commit}\n"));
        let time = 1_600_000_000 + u64::from(commit) * 600;
        let message = format!("Step {commit}");
        writeln!(out, "commit refs/heads/main\nmark :{}", commit + 1)?;
        writeln!(
            out,
            "committer Bench <bench@example.com> {time} +0000\ndata {}\n{message}",
            message.len()
        )?;
        // The marks are one more than the numbers. In a diamond 2 and 3 stand on 1, 4 on 3, 5 on 2 and 4.
        match (shape.merges, commit % 5) {
            (_, _) if commit == 0 => {}
            (true, 3) => writeln!(out, "from :{}", commit - 1)?,
            (true, 0) => writeln!(out, "from :{}\nmerge :{commit}", commit - 2)?,
            _ => writeln!(out, "from :{commit}")?,
        }
        for (path, content) in contents {
            writeln!(
                out,
                "M 644 inline {path}\ndata {}\n{content}",
                content.len()
            )?;
        }
    }
    writeln!(out, "reset refs/tags/start\nfrom :1\n\ndone")?;
    out.flush()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// What several tools needed, held against the first of them.
struct Table {
    title: String,
    tools: Vec<&'static str>,
    quantities: Vec<&'static str>,
    values: BTreeMap<(&'static str, &'static str), Vec<f64>>,
}

impl Table {
    fn new(title: &str, tools: &[&'static str]) -> Self {
        Self {
            title: title.to_owned(),
            tools: tools.to_vec(),
            quantities: Vec::new(),
            values: BTreeMap::new(),
        }
    }

    /// Adds a time in seconds, or a number of trials.
    fn add(&mut self, tool: &'static str, quantity: &'static str, value: f64) {
        if !self.quantities.contains(&quantity) {
            self.quantities.push(quantity);
        }
        self.values.entry((tool, quantity)).or_default().push(value);
    }

    fn print(&self) {
        println!("{}", self.title);
        println!(
            "  {:24} {:24} {:>10} {:>10} {:>10} {:>6} {:>4}",
            "", "", "median", "least", "most", "ratio", "runs"
        );
        for quantity in &self.quantities {
            let mut first = None;
            for tool in &self.tools {
                let Some(values) = self.values.get(&(*tool, *quantity)) else {
                    continue;
                };
                let middle = median(values);
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(0.0, f64::max);
                let shown = |value: f64| match *quantity {
                    TRIALS => format!("{value:.0}"),
                    _ => format!("{:.1} ms", value * 1e3),
                };
                let ratio = middle / *first.get_or_insert(middle);
                println!(
                    "  {quantity:24} {tool:24} {:>10} {:>10} {:>10} {ratio:>6.2} {:>4}",
                    shown(middle),
                    shown(least),
                    shown(most),
                    values.len()
                );
            }
        }
        println!();
    }
}
