//! The files and revisions that make a session what it is: remembered when it is opened, compared
//! before it goes on.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use similar::TextDiff;

use super::open::cannot_write;
use crate::axes::commits::{self, Repo, Resolved};
use crate::error::{Error, Result};
use crate::journal::{SessionFiles, State, WatchedFile};
use crate::model::{Plan, hex};
use crate::reports::console;

/// Bytes of the largest file outside the tree that is taken for a script.
const MAX_SCRIPT: u64 = 1 << 20;

/// Lines of a changed file's difference that a refusal shows.
const SHOWN_DIFF: usize = 30;

/// Remembers the files that make the repro what it is: those that are pinned, and scripts outside
/// the tree that the command's words (as they read in a workspace) name. A resume must run the
/// same repro.
pub(super) fn watch(
    files: &SessionFiles,
    plan: &Plan,
    argv: &[String],
) -> Result<Vec<WatchedFile>> {
    let root = plan.repository.as_path();
    let mut found: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for path in plan.pins.files.iter().map(|pin| root.join(pin)) {
        let content = fs::read(&path)
            .map_err(|e| Error::usage(format!("{} cannot be read", path.display())).caused_by(e))?;
        found.push((path, content));
    }
    let outside = argv
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && !path.starts_with(root));
    found.extend(outside.filter_map(|path| Some((path.clone(), script(&path)?))));
    let mut watched: Vec<WatchedFile> = Vec::new();
    for (path, content) in found {
        if watched.iter().any(|w| w.path == path) {
            continue;
        }
        let sha256 = digest(&content);
        let copy = Path::new("named").join(&sha256);
        let target = files.folder().join(&copy);
        fs::create_dir_all(files.folder().join("named"))
            .and_then(|()| fs::write(&target, &content))
            .map_err(|e| cannot_write(&target, e))?;
        watched.push(WatchedFile { path, sha256, copy });
    }
    Ok(watched)
}

/// Refuses a session whose revisions or files are no longer what was recorded.
pub(super) fn refuse_changes(
    repo: &Repo,
    state: &State,
    files: &SessionFiles,
    as_recorded: bool,
) -> Result<()> {
    let plan = &state.plan;
    let recorded = Resolved {
        good: plan.good.clone(),
        bad: plan.bad.clone(),
    };
    let mut changes = Vec::new();
    // Trials run what lies outside the checkout where it lies: these cannot go on as recorded.
    let mut outside = Vec::new();
    let then = plan.good.iter().chain(std::iter::once(&plan.bad));
    for ((name, commit), (_, today)) in then.zip(commits::revisions_now(repo, &recorded)) {
        match today {
            Some(today) if today == *commit => {}
            Some(today) => changes.push(format!(
                "{name} was {}, is {}",
                commit.short(),
                today.short()
            )),
            None => changes.push(format!("{name} was {}, is gone", commit.short())),
        }
    }
    for file in &state.watched {
        let copy = files.folder().join(&file.copy);
        let change = match fs::read(&file.path) {
            Ok(now) if digest(&now) == file.sha256 => continue,
            Ok(now) => {
                let before = fs::read(&copy).unwrap_or_default();
                format!(
                    "{} has changed:\n{}",
                    file.path.display(),
                    difference(&before, &now)
                )
            }
            Err(e) => format!("{} cannot be read: {e}", file.path.display()),
        };
        if !file.path.starts_with(&plan.repository) {
            outside.push((change.clone(), copy, &file.path));
        }
        changes.push(change);
    }
    if as_recorded && !outside.is_empty() {
        let told: Vec<_> = outside.iter().map(|(change, ..)| change.as_str()).collect();
        let error = Error::usage(format!(
            "since session {} was opened:\n  {}\n  Outside the checkout nothing is pinned, so trials would run it as it is today",
            state.session,
            told.join("\n  ")
        ));
        return Err(outside.iter().fold(error, |error, (_, copy, path)| {
            let words = ["cp", &copy.to_string_lossy(), &path.to_string_lossy()].map(str::to_owned);
            error.hint(format!("put it back: {}", shell_words::join(words)))
        }));
    }
    if changes.is_empty() || as_recorded {
        return Ok(());
    }
    Err(Error::usage(format!(
        "since session {} was opened:\n  {}",
        state.session,
        changes.join("\n  ")
    ))
    .hint("put it back, or start a new search")
    .hint("`fbisect resume --as-recorded` goes on with the commits and pinned files as they were"))
}

/// A file's content, if it is a script: interpreters, programs and data are another matter.
fn script(path: &Path) -> Option<Vec<u8>> {
    let meta = fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_SCRIPT {
        return None;
    }
    fs::read(path).ok().filter(|content| !content.contains(&0))
}

fn digest(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

fn difference(before: &[u8], now: &[u8]) -> String {
    let (before, now) = (
        String::from_utf8_lossy(before),
        String::from_utf8_lossy(now),
    );
    let diff = TextDiff::from_lines(before.as_ref(), now.as_ref());
    let text = diff.unified_diff().context_radius(1).to_string();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| format!("    {}", console::clean(line)))
        .collect();
    if lines.len() > SHOWN_DIFF {
        lines.truncate(SHOWN_DIFF);
        lines.push("    ...".to_owned());
    }
    lines.join("\n")
}
