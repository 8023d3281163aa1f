//! Throw-away repositories from a few lines that say how their commits descend.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) use fbisect::axes::commits::Request;
use fbisect::axes::commits::{self, History, HistoryError, Repo};
use fbisect::model::CommitId;
use fbisect::search::graph::Node;
use tempfile::TempDir;

/// A repository whose commits have names, which are also their tags.
pub(crate) struct Bed {
    pub(crate) dir: TempDir,
    names: HashMap<CommitId, String>,
}

/// Runs git in `dir` with nothing of the user's or the environment's settings.
pub(crate) fn git_in(dir: &Path, args: &[&str], input: &[u8]) -> String {
    let mut git = duct::cmd("git", args)
        .dir(dir)
        .stdin_bytes(input)
        .stdout_capture()
        .stderr_capture()
        .unchecked();
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GIT_")) {
        git = git.env_remove(name);
    }
    for role in ["AUTHOR", "COMMITTER"] {
        git = git
            .env(format!("GIT_{role}_NAME"), "Someone")
            .env(format!("GIT_{role}_EMAIL"), "someone@example.com")
            .env(format!("GIT_{role}_DATE"), "1700000000 +0100");
    }
    let output = git
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .run()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A `git fast-import` stream. Each line is a commit, `NAME: PARENT... | PATH=CONTENT... @SECONDS`;
/// a merge starts from its first parent's files; without a time, commits are a minute apart.
fn stream(script: &str) -> String {
    let mut out = String::new();
    let mut marks: HashMap<&str, i64> = HashMap::new();
    let lines = script.lines().map(str::trim).filter(|l| !l.is_empty());
    for (mark, line) in (1..).zip(lines) {
        let (name, rest) = line.split_once(':').unwrap();
        let (rest, time) = rest
            .split_once('@')
            .map_or((rest, 1_700_000_000 + 60 * mark), |(rest, time)| {
                (rest, time.trim().parse().unwrap())
            });
        let (parents, files) = rest.split_once('|').unwrap_or((rest, ""));
        let parents: Vec<&str> = parents.split_whitespace().collect();
        let first = if parents.is_empty() {
            "reset refs/heads/main\n"
        } else {
            ""
        };
        write!(
            out,
            "{first}commit refs/heads/main\nmark :{mark}\nauthor Someone <s@example.com> {time} +0100\n\
             committer Someone <s@example.com> {time} +0100\ndata {}\n{name}\n",
            name.len()
        )
        .unwrap();
        for (nth, parent) in parents.iter().enumerate() {
            let word = if nth == 0 { "from" } else { "merge" };
            writeln!(out, "{word} :{}", marks[parent]).unwrap();
        }
        for file in files.split_whitespace() {
            let (path, content) = file.split_once('=').unwrap();
            if content.is_empty() {
                writeln!(out, "D {path}").unwrap();
            } else {
                let (mode, content) = content
                    .strip_prefix('+')
                    .map_or(("100644", content), |content| ("100755", content));
                let size = content.len();
                writeln!(out, "M {mode} inline {path}\ndata {size}\n{content}").unwrap();
            }
        }
        writeln!(out, "\nreset refs/tags/{name}\nfrom :{mark}\n").unwrap();
        marks.insert(name, mark);
    }
    out
}

impl Bed {
    pub(crate) fn new(script: &str) -> Self {
        Self::with_init(&[], script)
    }

    /// As `new`, with options for `git init`.
    pub(crate) fn with_init(options: &[&str], script: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let init = [&["init", "-q", "-b", "main"], options].concat();
        git_in(dir.path(), &init, b"");
        Self::import(dir, &stream(script))
    }

    /// A repository from a stream; every tag is a name.
    pub(crate) fn import(dir: TempDir, stream: &str) -> Self {
        git_in(
            dir.path(),
            &["fast-import", "--quiet", "--force"],
            stream.as_bytes(),
        );
        Self::adopt(dir)
    }

    /// A repository that is there.
    pub(crate) fn adopt(dir: TempDir) -> Self {
        let mut bed = Self {
            dir,
            names: HashMap::new(),
        };
        bed.names = bed
            .git(&[
                "for-each-ref",
                "--format=%(objectname) %(refname:short)",
                "refs/tags",
            ])
            .lines()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(id, name)| (CommitId::parse(id).unwrap(), name.to_owned()))
            .collect();
        bed
    }

    /// A clone of this repository with options for `git clone`, without its tags' files.
    pub(crate) fn clone_with(&self, options: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let url = format!("file://{}", self.dir.path().display());
        let args = [&["clone", "-q"], options, &["--", &url, "."]].concat();
        git_in(dir.path(), &args, b"");
        Self {
            dir,
            names: self.names.clone(),
        }
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(self.dir.path(), args, b"")
    }

    pub(crate) fn repo(&self) -> Repo {
        Repo::discover(self.dir.path()).unwrap()
    }

    pub(crate) fn id(&self, name: &str) -> CommitId {
        self.names
            .iter()
            .find(|(_, own)| *own == name)
            .unwrap_or_else(|| panic!("no commit {name}"))
            .0
            .clone()
    }

    fn name(&self, history: &History, node: Node) -> &str {
        &self.names[&history.commits[node as usize]]
    }

    /// The node list, as text: each node in order as `NAME`, `*` if it is a candidate, and its
    /// parents in brackets; then the bad end, the good ends and the merge bases.
    pub(crate) fn shown(&self, history: &History) -> String {
        let names = |nodes: &[Node]| {
            let names: Vec<&str> = nodes.iter().map(|n| self.name(history, *n)).collect();
            names.join(" ")
        };
        let sorted = |nodes: &[Node]| {
            let mut names: Vec<&str> = nodes.iter().map(|n| self.name(history, *n)).collect();
            names.sort_unstable();
            names.join(" ")
        };
        let mut outside = Vec::new();
        let mut range = Vec::new();
        for node in 0..history.commits.len() as Node {
            let star = if history.graph.is_candidate(node) {
                "*"
            } else {
                ""
            };
            let parents = history.graph.parents(node);
            let text = format!("{}{star}[{}]", self.name(history, node), names(parents));
            if parents.is_empty() && star.is_empty() && range.is_empty() {
                // Ordered by hash, which no one can foresee.
                outside.push(text.replace("[]", ""));
            } else {
                range.push(text);
            }
        }
        outside.sort();
        format!(
            "{} | {} | bad {} good {} bases {}",
            outside.join(" "),
            range.join(" "),
            self.name(history, history.bad),
            sorted(&history.goods),
            sorted(&history.merge_bases),
        )
        .trim()
        .to_owned()
    }

    /// Resolves and loads.
    pub(crate) fn load(&self, request: &Request) -> Result<History, HistoryError> {
        let repo = self.repo();
        let ends = commits::resolve(&repo, request)?;
        History::load(
            &repo,
            &ends,
            request.first_parent,
            &request.paths,
            request.fixed,
        )
    }

    /// Loads and shows.
    pub(crate) fn show(&self, request: &Request) -> String {
        self.shown(&self.load(request).unwrap())
    }

    /// The names of the candidates, sorted.
    pub(crate) fn candidates(&self, request: &Request) -> String {
        let history = self.load(request).unwrap();
        let names: BTreeSet<&str> = candidate_ids(&history)
            .iter()
            .map(|id| self.names[id].as_str())
            .collect();
        assert_eq!(names.len(), history.candidates());
        names.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// The error of a request that has one.
    pub(crate) fn error(&self, request: &Request) -> HistoryError {
        self.load(request).map(|h| self.shown(&h)).unwrap_err()
    }

    /// What `git rev-list` prints.
    pub(crate) fn rev_list(&self, args: &[&str]) -> BTreeSet<CommitId> {
        self.git(&[&["rev-list"], args].concat())
            .lines()
            .map(|line| CommitId::parse(line).unwrap())
            .collect()
    }
}

pub(crate) fn candidate_ids(history: &History) -> BTreeSet<CommitId> {
    (0..history.commits.len() as Node)
        .filter(|node| history.graph.is_candidate(*node))
        .map(|node| history.commits[node as usize].clone())
        .collect()
}

/// A script of `count` commits in a line: c0, c1, ...
pub(crate) fn line(count: usize) -> String {
    let later = (1..count).map(|n| format!("c{n}: c{}\n", n - 1));
    std::iter::once("c0:\n".to_owned()).chain(later).collect()
}

pub(crate) fn range(range: &str) -> Request {
    Request {
        range: Some(range.to_owned()),
        ..Request::default()
    }
}

pub(crate) fn first_parent(range_: &str) -> Request {
    Request {
        first_parent: true,
        ..range(range_)
    }
}

pub(crate) fn touching(range_: &str, paths: &[&str]) -> Request {
    Request {
        paths: paths.iter().map(PathBuf::from).collect(),
        ..range(range_)
    }
}

pub(crate) fn flags(good: &[&str], bad: Option<&str>) -> Request {
    Request {
        good: good.iter().map(|&rev| rev.to_owned()).collect(),
        bad: bad.map(str::to_owned),
        ..Request::default()
    }
}

pub(crate) fn fixed(request: Request) -> Request {
    Request {
        fixed: true,
        ..request
    }
}
