//! A throw-away repository, the built program run in it, and what came out.
//!
//! Histories are written as text and made by `git fast-import`, so that hashes are the same in
//! every run. Nothing of the user's or the machine's settings reaches the program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use regex::Regex;
use tempfile::TempDir;

/// The repro of most tests: each commit says in its file `code` how it ends.
pub(crate) const EXIT_CODE: [&str; 3] = ["sh", "-c", "exit $(cat code)"];
/// Each commit says in its file `do` what happens, in shell.
pub(crate) const DO: [&str; 3] = ["sh", "-c", "eval \"$(cat do)\""];

/// A repository `repo`, a `home`, and room for logs, in one temporary folder.
pub(crate) struct Bed {
    dir: TempDir,
    ids: BTreeMap<String, String>,
}

/// What a finished command left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// The one JSON document on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(
            self.out.lines().count(),
            1,
            "one document, one line: {self}"
        );
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self}"))
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.err.contains(words), "stderr lacks {words:?}: {self}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, words: &str) -> Self {
        assert!(self.out.contains(words), "stdout lacks {words:?}: {self}");
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code.map_or("signal".to_owned(), |c| c.to_string());
        write!(
            f,
            "exit {code}\n--- stdout\n{}--- stderr\n{}",
            self.out, self.err
        )
    }
}

/// A `git fast-import` stream. Each line is a commit, `NAME: PARENT... | PATH=CONTENT ...`: its
/// name is also its subject and its tag; a merge starts from its first parent's files; empty
/// content deletes; `_` stands for a space and `+` before the content makes the file executable.
fn stream(script: &str) -> String {
    let mut out = String::new();
    let mut marks: BTreeMap<&str, usize> = BTreeMap::new();
    let lines = script.lines().map(str::trim).filter(|l| !l.is_empty());
    for (mark, line) in (1..).zip(lines) {
        let (name, rest) = line.split_once(':').unwrap();
        let (parents, files) = rest.split_once('|').unwrap_or((rest, ""));
        let time = 1_700_000_000 + 60 * mark;
        if parents.trim().is_empty() {
            out.push_str("reset refs/heads/main\n");
        }
        write!(
            out,
            "commit refs/heads/main\nmark :{mark}\nauthor Ada <a@example.com> {time} +0100\n\
             committer Ada <a@example.com> {time} +0100\ndata {}\n{name}\n",
            name.len()
        )
        .unwrap();
        for (nth, parent) in parents.split_whitespace().enumerate() {
            let word = if nth == 0 { "from" } else { "merge" };
            writeln!(out, "{word} :{}", marks[parent]).unwrap();
        }
        for file in files.split_whitespace() {
            let (path, content) = file.split_once('=').unwrap();
            let content = content.replace('_', " ");
            match content.strip_prefix('+') {
                None if content.is_empty() => writeln!(out, "D {path}").unwrap(),
                None => write_file(&mut out, "100644", path, &content),
                Some(content) => write_file(&mut out, "100755", path, content),
            }
        }
        writeln!(out, "\nreset refs/tags/{name}\nfrom :{mark}\n").unwrap();
        marks.insert(name, mark);
    }
    out
}

fn write_file(out: &mut String, mode: &str, path: &str, content: &str) {
    writeln!(
        out,
        "M {mode} inline {path}\ndata {}\n{content}",
        content.len()
    )
    .unwrap();
}

impl Bed {
    /// A repository with the history that `script` writes (see [`stream`]), `main` checked out.
    pub(crate) fn new(script: &str) -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["home", "repo"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mut bed = Self {
            dir,
            ids: BTreeMap::new(),
        };
        bed.git(&["init", "-q", "-b", "main"]);
        bed.import(script);
        bed
    }

    fn import(&mut self, script: &str) {
        use std::io::Write as _;
        let mut git = self.git_command(&self.root());
        git.args(["fast-import", "--quiet"]).stdin(Stdio::piped());
        let mut child = git.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(stream(script).as_bytes()).unwrap();
        drop(input);
        assert!(child.wait().unwrap().success());
        self.git(&["reset", "-q", "--hard"]);
        self.name_tags();
    }

    /// Learns the commits' names anew from the tags.
    pub(crate) fn name_tags(&mut self) {
        let format = "--format=%(refname:short) %(objectname)";
        let listed = self.git(&["for-each-ref", format, "refs/tags"]);
        let pairs = listed.lines().filter_map(|line| line.split_once(' '));
        self.ids = pairs
            .map(|(name, id)| (name.to_owned(), id.to_owned()))
            .collect();
    }

    /// `count` commits in a line, `c0` first; each has its number in `n`, and `files` says what
    /// else (`PATH=CONTENT ...`).
    pub(crate) fn line(count: usize, files: impl Fn(usize) -> String) -> Self {
        let mut script = String::new();
        for i in 0..count {
            let parent = i.checked_sub(1).map_or(String::new(), |p| format!("c{p}"));
            writeln!(script, "c{i}: {parent} | n={i} {}", files(i)).unwrap();
        }
        Self::new(&script)
    }

    /// A line of which `c{first}` and all later commits fail ([`EXIT_CODE`]).
    pub(crate) fn broken_from(first: usize, count: usize) -> Self {
        Self::line(count, |i| format!("code={}", u8::from(i >= first)))
    }

    pub(crate) fn dir(&self) -> PathBuf {
        // macOS and some CI machines have a link on the way to the temporary folder.
        fs::canonicalize(self.dir.path()).unwrap()
    }

    /// The user's checkout.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir().join("repo")
    }

    /// A place outside the checkout, for what a repro writes down.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir().join("log")
    }

    /// The lines that repros appended to `$LOG`.
    pub(crate) fn logged(&self) -> Vec<String> {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    pub(crate) fn id(&self, name: &str) -> &str {
        self.ids
            .get(name)
            .unwrap_or_else(|| panic!("no commit {name}"))
    }

    /// A commit's name, by its hash.
    pub(crate) fn name_of(&self, id: &str) -> &str {
        let found = self.ids.iter().find(|(_, own)| *own == id);
        found.map_or("?", |(name, _)| name.as_str())
    }

    /// Writes a file of the user's checkout.
    pub(crate) fn write(&self, path: &str, content: &str) -> PathBuf {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        file
    }

    /// As [`Bed::write`], executable.
    pub(crate) fn script(&self, path: &str, content: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let file = self.write(path, content);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn scrubbed(&self, program: &str, cwd: &Path) -> Command {
        let home = self.dir().join("home");
        let mut command = Command::new(program);
        command.current_dir(cwd).env_clear();
        for name in ["PATH", "LD_LIBRARY_PATH"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("HOME", &home)
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("LC_ALL", "C.UTF-8")
            .env("TMPDIR", self.dir())
            .env("LOG", self.log())
            // No test needs a GPU, and one that this machine has must not limit `--jobs`.
            .env("CUDA_VISIBLE_DEVICES", "")
            .stdin(Stdio::null());
        command
    }

    fn git_command(&self, cwd: &Path) -> Command {
        let mut git = self.scrubbed("git", cwd);
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "Ada")
                .env(format!("GIT_{role}_EMAIL"), "a@example.com")
                .env(format!("GIT_{role}_DATE"), "1700100000 +0100");
        }
        git
    }

    /// Runs git in the checkout; its output, trimmed.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root(), args)
    }

    #[track_caller]
    pub(crate) fn git_in(&self, cwd: &Path, args: &[&str]) -> String {
        let ran = Ran::from(self.git_command(cwd).args(args).output().unwrap());
        assert_eq!(ran.code, Some(0), "git {args:?}: {ran}");
        ran.out.trim_end().to_owned()
    }

    /// The program with arguments, not started yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.scrubbed(env!("CARGO_BIN_EXE_fbisect"), &self.root());
        command.args(args);
        command
    }

    /// Runs the program at the top of the checkout.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Runs the program elsewhere.
    pub(crate) fn run_in(&self, cwd: &Path, args: &[&str]) -> Ran {
        self.command(args).current_dir(cwd).output().unwrap().into()
    }

    /// `fbisect commits OPTIONS --seed 1 -- REPRO`.
    pub(crate) fn commits(&self, options: &[&str], repro: &[&str]) -> Ran {
        self.run(&self::commits(options, repro))
    }

    /// As [`Bed::commits`] with `--json`; the document, after a look at the exit status.
    #[track_caller]
    pub(crate) fn document(
        &self,
        code: i32,
        options: &[&str],
        repro: &[&str],
    ) -> serde_json::Value {
        let options = [options, &["--json"]].concat();
        self.commits(&options, repro).exits(code).json()
    }

    /// Searches, and gives the name of the commit that was found.
    #[track_caller]
    pub(crate) fn finds(&self, options: &[&str], repro: &[&str]) -> String {
        self.named(&self.document(0, options, repro))
    }

    /// The name of the commit that a document calls the first bad one.
    #[track_caller]
    pub(crate) fn named(&self, document: &serde_json::Value) -> String {
        assert_eq!(document["status"], "found", "{document}");
        self.name_of(document["first_bad"].as_str().unwrap())
            .to_owned()
    }

    /// The names of a document's suspects, sorted.
    pub(crate) fn suspects(&self, document: &serde_json::Value) -> String {
        let ids = document["suspects"].as_array().unwrap().iter();
        let mut names: Vec<&str> = ids.map(|id| self.name_of(id.as_str().unwrap())).collect();
        names.sort_unstable();
        names.join(" ")
    }

    /// What was seen at each tested commit: `NAME good/bad/skip`, sorted by name.
    pub(crate) fn tested(&self, document: &serde_json::Value) -> String {
        let rows = document["tested"].as_array().unwrap().iter();
        let mut rows: Vec<String> = rows
            .map(|row| {
                let name = self.name_of(row["commit"].as_str().unwrap());
                format!("{name} {}/{}/{}", row["good"], row["bad"], row["skip"])
            })
            .collect();
        rows.sort_unstable();
        rows.join(", ")
    }

    /// Text that is the same in every run: hashes by their commits' names, and the temporary
    /// folder, session names, process numbers and times replaced.
    pub(crate) fn tidy(&self, text: &str) -> String {
        let mut text = text.replace(&self.dir().display().to_string(), "[dir]");
        for (name, id) in &self.ids {
            text = text.replace(id.as_str(), &format!("[{name} in full]"));
            text = text.replace(&id[..12], &format!("[{name}]"));
        }
        for (pattern, instead) in [
            (r"\b\d{8}-\d{6}-[0-9a-f]{7}\b", "[session]"),
            (r"\brepo-[0-9a-f]{8}\b", "repo-[path]"),
            (r"\b\d+m \d\ds\b|\b\d+\.\ds\b|\b\d+s\b", "[time]"),
            (r" +\[time\]", " [time]"),
            (r"(?m) +$", ""),
        ] {
            text = Regex::new(pattern)
                .unwrap()
                .replace_all(&text, instead)
                .into_owned();
        }
        text
    }
}

/// `commits OPTIONS --seed 1 -- REPRO`.
pub(crate) fn commits<'a>(options: &[&'a str], repro: &[&'a str]) -> Vec<&'a str> {
    [&["commits"], options, &["--seed", "1", "--"], repro].concat()
}
