//! Which files of the user's tree a command names, and how its words must read in a workspace.
//!
//! A relative word finds the pinned copy by itself. An absolute one would lead back into the
//! user's tree, and a script that finds its code through its own path would then test today's code
//! at every commit: it is written anew, below `{workspace}`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::git::Git;
use super::pins::{MAX_PIN_BYTES, PinError};
use crate::model::PrepareStep;

/// What stands for the workspace's root in a command's words.
const PLACEHOLDER: &str = "{workspace}";

/// What a command names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// Files to pin, relative to the root, each once, in the order of the words.
    pub pins: Vec<PathBuf>,
    /// The command's words as they must read in a workspace.
    pub argv: Vec<String>,
    /// Files of the tree that are named but not pinned.
    pub left: Vec<LeftAlone>,
}

/// A named file that is not pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlone {
    /// Relative to the root.
    pub path: PathBuf,
    /// Why.
    pub why: WhyLeft,
}

/// Why a named file is not pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyLeft {
    /// It belongs to a virtual environment: used where it is.
    Environment,
    /// It belongs to git or to fbisect: used where it is.
    Administrative,
    /// It is shown in each checkout by `--link`.
    Linked,
    /// A compiled program or library: each commit's build makes its own.
    Compiled,
}

/// Finds the files that `argv` names, from `cwd` in the checkout at `root`; `links` are the paths
/// given to `--link`, relative to `root`.
///
/// Every word counts, also `--x=PATH`, `NAME=PATH`, pytest's `PATH::node`, and the words of a
/// shell's `-c`. A program without a slash never names a file of the tree.
///
/// # Errors
/// For a file larger than [`MAX_PIN_BYTES`].
pub fn files_named_by(
    argv: &[String],
    cwd: &Path,
    root: &Path,
    links: &[PathBuf],
) -> Result<NamedFiles, PinError> {
    let mut reader = Reader {
        cwd: fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_path_buf()),
        root: fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf()),
        links,
        found: NamedFiles::default(),
    };
    for (index, word) in argv.iter().enumerate() {
        let read = if index == 0 && !word.contains('/') {
            word.clone()
        } else if is_shell_text(&argv[..index]) {
            reader.shell_text(word)?
        } else {
            reader.word(word)?
        };
        reader.found.argv.push(read);
    }
    Ok(reader.found)
}

/// Whether the word after these is a shell's command line: `sh -c`, `bash -lc`.
fn is_shell_text(before: &[String]) -> bool {
    let [.., shell, option] = before else {
        return false;
    };
    let name = shell.rsplit('/').next().unwrap_or(shell);
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh")
        && option.starts_with('-')
        && !option.starts_with("--")
        && option.ends_with('c')
}

struct Reader<'a> {
    cwd: PathBuf,
    root: PathBuf,
    links: &'a [PathBuf],
    found: NamedFiles,
}

impl Reader<'_> {
    fn shell_text(&mut self, text: &str) -> Result<String, PinError> {
        let mut read = text.to_owned();
        for word in shell_words::split(text).unwrap_or_default() {
            // A bare word there may be a program's name.
            if word.contains(['/', '.']) {
                let new = self.word(&word)?;
                if new != word {
                    read = read.replace(&word, &new);
                }
            }
        }
        Ok(read)
    }

    /// The word as it must read; what it names is noted.
    fn word(&mut self, word: &str) -> Result<String, PinError> {
        for (start, end) in path_spans(word) {
            let typed = &word[start..end];
            if let Some(real) = self.resolve(typed) {
                let new = self.path(typed, &real)?;
                return Ok(format!("{}{new}{}", &word[..start], &word[end..]));
            }
        }
        Ok(word.to_owned())
    }

    /// The existing file or folder that a path leads to. The last part is not followed: a link is
    /// pinned under its own name, and an environment's `python` must not become the system's.
    fn resolve(&self, typed: &str) -> Option<PathBuf> {
        if typed.is_empty() {
            return None;
        }
        let path = self.cwd.join(typed);
        fs::metadata(&path).ok()?;
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Some(fs::canonicalize(parent).ok()?.join(name)),
            _ => fs::canonicalize(&path).ok(),
        }
    }

    fn path(&mut self, typed: &str, real: &Path) -> Result<String, PinError> {
        let absolute = Path::new(typed).is_absolute();
        let in_place = || real.display().to_string();
        let Ok(relative) = real.strip_prefix(&self.root) else {
            // `../tool` leads elsewhere from a workspace.
            return Ok(if absolute {
                typed.to_owned()
            } else {
                in_place()
            });
        };
        let relative = relative.to_path_buf();
        let below = |keep: bool| match keep {
            false => typed.to_owned(),
            true if relative.as_os_str().is_empty() => PLACEHOLDER.to_owned(),
            true => format!("{PLACEHOLDER}/{}", relative.display()),
        };
        if let Some(why) = self.used_in_place(&relative) {
            if real.is_file() {
                self.leave(&relative, why);
            }
            return Ok(in_place());
        }
        if real.is_file() {
            self.note_file(&relative)?;
            return Ok(below(absolute));
        }
        // A folder of data that no commit has stays where it is; one of code must move.
        Ok(below(absolute && self.has_tracked(&relative)))
    }

    fn note_file(&mut self, relative: &Path) -> Result<(), PinError> {
        let path = self.root.join(relative);
        if self.links.iter().any(|link| relative.starts_with(link)) {
            self.leave(relative, WhyLeft::Linked);
        } else if self.is_compiled(&path) {
            self.leave(relative, WhyLeft::Compiled);
        } else if !self.found.pins.iter().any(|pin| pin == relative) {
            let bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
            if bytes > MAX_PIN_BYTES {
                return Err(PinError::TooLarge {
                    path: relative.to_path_buf(),
                    bytes,
                });
            }
            self.found.pins.push(relative.to_path_buf());
        }
        Ok(())
    }

    fn leave(&mut self, path: &Path, why: WhyLeft) {
        let left = LeftAlone {
            path: path.to_path_buf(),
            why,
        };
        if !self.found.left.contains(&left) {
            self.found.left.push(left);
        }
    }

    fn used_in_place(&self, relative: &Path) -> Option<WhyLeft> {
        if relative.starts_with(".git") || relative.starts_with(".fbisect") {
            return Some(WhyLeft::Administrative);
        }
        let mut folders = relative
            .ancestors()
            .filter(|folder| !folder.as_os_str().is_empty())
            .map(|folder| self.root.join(folder));
        folders
            .any(|f| f.join("pyvenv.cfg").is_file() || f.join("conda-meta").is_dir())
            .then_some(WhyLeft::Environment)
    }

    fn has_tracked(&self, relative: &Path) -> bool {
        let listed = Git::new(&self.root, PrepareStep::Pin)
            .args(["--literal-pathspecs", "ls-files", "-z", "--cached", "--"])
            .arg(self.root.join(relative))
            .run();
        // In doubt it is code: a wrong guess then fails for want of the data, it does not mislead.
        listed.map_or(true, |names| !names.is_empty())
    }

    /// ELF and Mach-O programs and libraries of the tree, by their first bytes.
    fn is_compiled(&self, path: &Path) -> bool {
        let Ok(file) = fs::canonicalize(path) else {
            return false;
        };
        let mut magic = [0; 4];
        let read = fs::File::open(&file).and_then(|mut open| open.read_exact(&mut magic));
        read.is_ok()
            && file.starts_with(&self.root)
            && matches!(
                magic,
                [0x7f, b'E', b'L', b'F']
                    | [0xcf | 0xce, 0xfa, 0xed, 0xfe]
                    | [0xca, 0xfe, 0xba, 0xbe]
            )
    }
}

/// Where in a word a path may stand: all of it, up to `::`, after the first `=`, and both.
fn path_spans(word: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut add = |start: usize| {
        spans.push((start, word.len()));
        if let Some(at) = word[start..].find("::") {
            spans.push((start, start + at));
        }
    };
    add(0);
    if let Some(at) = word.find('=') {
        add(at + 1);
    }
    spans
}
