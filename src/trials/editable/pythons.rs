//! Which Pythons a command will use, as far as its words and its script tell.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Programs that start the command among their words.
const WRAPPERS: [&str; 14] = [
    "env", "timeout", "nice", "nohup", "time", "stdbuf", "setsid", "ionice", "taskset", "numactl",
    "xvfb-run", "sudo", "exec", "command",
];
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];
/// Python programs that scripts start by name.
const LAUNCHERS: [&str; 5] = ["torchrun", "accelerate", "deepspeed", "pytest", "py.test"];
/// Bytes of a script that are read.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// A command as it will run.
pub(super) struct Command<'a> {
    /// Where.
    pub(super) cwd: &'a Path,
    /// Its words.
    pub(super) argv: &'a [String],
    /// What its environment has beyond this process's.
    pub(super) env: &'a [(String, String)],
}

impl Command<'_> {
    /// The Pythons, each once, likeliest first.
    pub(super) fn interpreters(&self) -> Vec<PathBuf> {
        let mut found = Found {
            command: self,
            list: Vec::new(),
        };
        let start = self.program_at();
        let words = self.argv.get(start..).unwrap_or_default();
        let Some(program) = words.first() else {
            return found.list;
        };
        for word in words.iter().filter(|word| is_python(word)) {
            found.add(self.which(word));
        }
        match base(program) {
            "uv" => found.uv(),
            name if SHELLS.contains(&name) => {
                found.by_name();
                found.shell(&words[1..]);
            }
            _ => found.file(self.which(program).as_deref()),
        }
        found.list
    }

    /// A variable of the environment: set in the command's own words, given, or inherited.
    fn variable(&self, name: &str) -> Option<String> {
        let words = self.argv.get(..self.program_at()).unwrap_or_default();
        let typed = words.iter().rev().find_map(|word| {
            let (key, value) = word.split_once('=')?;
            (key == name).then(|| value.to_owned())
        });
        let given = || {
            let pair = self.env.iter().rev().find(|(key, _)| key == name);
            pair.map(|(_, value)| value.clone())
        };
        typed.or_else(given).or_else(|| std::env::var(name).ok())
    }

    /// `PYTHONPATH` as the command will see it.
    pub(super) fn python_path(&self) -> Option<String> {
        self.variable("PYTHONPATH")
    }

    /// The index of the first word that is no wrapper, option, number or assignment.
    fn program_at(&self) -> usize {
        let mut wrapped = false;
        for (index, word) in self.argv.iter().enumerate() {
            if WRAPPERS.contains(&base(word)) {
                wrapped = true;
                continue;
            }
            let detail = word.starts_with('-')
                || word.contains('=')
                || word.starts_with(|c: char| c.is_ascii_digit());
            if !(wrapped && detail) {
                return index;
            }
        }
        self.argv.len()
    }

    /// The file that a program's name leads to, as the system would look for it.
    fn which(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            let path = self.cwd.join(self.expanded(name)?);
            return path.is_file().then_some(path);
        }
        let path = self.variable("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| self.cwd.join(folder).join(name))
            .find(|file| is_program(file))
    }

    /// A path with a leading `~` or `$NAME` replaced; `None` when another variable is in it.
    fn expanded(&self, path: &str) -> Option<String> {
        let (name, rest) = if let Some(rest) = path.strip_prefix('~') {
            ("HOME", rest)
        } else if let Some(rest) = path.strip_prefix("${") {
            rest.split_once('}')?
        } else if let Some(rest) = path.strip_prefix('$') {
            rest.split_at(rest.find('/')?)
        } else {
            ("", path)
        };
        if rest.contains('$') {
            return None;
        }
        if name.is_empty() {
            return Some(rest.to_owned());
        }
        Some(self.variable(name)? + rest)
    }
}

struct Found<'a> {
    command: &'a Command<'a>,
    list: Vec<PathBuf>,
}

impl Found<'_> {
    fn add(&mut self, python: Option<PathBuf>) {
        if let Some(python) = python.filter(|python| is_program(python))
            && !self.list.contains(&python)
        {
            self.list.push(python);
        }
    }

    /// What `python` and the active environment are when a script names no other.
    fn by_name(&mut self) {
        if let Some(active) = self.command.variable("VIRTUAL_ENV") {
            self.add(Some(Path::new(&active).join("bin/python")));
        }
        for name in ["python3", "python"] {
            self.add(self.command.which(name));
        }
    }

    /// `uv run` takes the project's environment: `.venv` in this folder or one above.
    fn uv(&mut self) {
        let command = self.command;
        let own = command.variable("UV_PROJECT_ENVIRONMENT");
        let own = own.unwrap_or_else(|| ".venv".to_owned());
        let project = command.cwd.ancestors().map(|folder| folder.join(&own));
        self.add(
            project
                .map(|env| env.join("bin/python"))
                .find(|python| python.is_file()),
        );
        if let Some(active) = command.variable("VIRTUAL_ENV") {
            self.add(Some(Path::new(&active).join("bin/python")));
        }
    }

    /// A shell's words: `-c TEXT`, or a script.
    fn shell(&mut self, words: &[String]) {
        let is_text = words
            .first()
            .is_some_and(|word| word.starts_with('-') && word.ends_with('c'));
        if is_text {
            if let Some(text) = words.get(1) {
                self.script(text);
            }
        } else if let Some(script) = words.iter().find(|word| !word.starts_with('-')) {
            // A shell reads a script from the folder it stands in, also without a slash.
            let file = self.command.cwd.join(script);
            if let Some(text) = text_of(&file) {
                self.script(&text);
            }
        }
    }

    /// A program: its `#!` line says whether it is Python's or a shell's.
    fn file(&mut self, program: Option<&Path>) {
        let Some(text) = program.and_then(text_of) else {
            return;
        };
        let first = text.lines().next().unwrap_or_default();
        let mut words = first
            .strip_prefix("#!")
            .unwrap_or("/bin/sh")
            .split_whitespace();
        let interpreter = words.next().unwrap_or_default();
        let interpreter = match base(interpreter) {
            "env" => words.find(|w| !w.starts_with('-') && !w.contains('=')),
            _ => Some(interpreter),
        };
        let Some(interpreter) = interpreter else {
            return;
        };
        if is_python(interpreter) {
            self.add(self.command.which(interpreter));
        } else if SHELLS.contains(&base(interpreter)) {
            // Pip wraps a path too long for a `#!` line in a shell script: `'''exec' /long/python`.
            if text
                .lines()
                .nth(1)
                .is_none_or(|line| !line.starts_with("'''exec'"))
            {
                self.by_name();
            }
            self.script(&text);
        }
    }

    /// The text of a shell script: paths of Pythons, environments that it activates, launchers.
    fn script(&mut self, text: &str) {
        let separators = |c: char| c.is_whitespace() || ";|&()`".contains(c);
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        for word in lines.flat_map(|line| line.split(separators)) {
            let word = &word.replace(['"', '\''], "");
            let value = word
                .split_once('=')
                .map_or(word.as_str(), |(_, value)| value);
            let environment = value
                .strip_suffix("/bin/activate")
                .or_else(|| word.strip_prefix("VIRTUAL_ENV="));
            if let Some(environment) = environment {
                self.add(self.command.which(&format!("{environment}/bin/python")));
            } else if is_python(value) {
                self.add(self.command.which(value));
            } else if LAUNCHERS.contains(&base(value)) {
                self.file_once(value);
            }
        }
    }

    /// A launcher's own Python; it is a Python program, so this does not go on into scripts.
    fn file_once(&mut self, launcher: &str) {
        let text = self.command.which(launcher).as_deref().and_then(text_of);
        let named = text.as_deref().and_then(|text| {
            let shebang = text.lines().next()?.strip_prefix("#!")?;
            shebang.split_whitespace().find(|word| is_python(word))
        });
        self.add(named.and_then(|python| self.command.which(python)));
    }
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// `python`, `python3`, `python3.11`, `pypy3`, with or without a path.
fn is_python(word: &str) -> bool {
    let name = base(word);
    let version = name
        .strip_prefix("python")
        .or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn text_of(file: &Path) -> Option<String> {
    let meta = fs::metadata(file).ok()?;
    if !meta.is_file() || meta.len() > MAX_SCRIPT_BYTES {
        return None;
    }
    String::from_utf8(fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pythons_are_told_from_what_only_begins_like_one() {
        for yes in ["python", "/v/bin/python3.11", "pypy3", "python3"] {
            assert!(is_python(yes), "{yes}");
        }
        for no in ["python-config", "pythonw.py", "train.py", "ipython"] {
            assert!(!is_python(no), "{no}");
        }
    }

    #[test]
    fn wrappers_are_skipped_and_their_assignments_seen() {
        let argv = words(&[
            "env",
            "-i",
            "PYTHONPATH=/x",
            "timeout",
            "60",
            "torchrun",
            "a=b",
        ]);
        let command = Command {
            cwd: Path::new("/"),
            argv: &argv,
            env: &[],
        };
        assert_eq!(command.program_at(), 5);
        assert_eq!(command.python_path().as_deref(), Some("/x"));
    }
}
