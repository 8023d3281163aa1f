//! Plays the story: from events to commits with whole trees, in memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::DemoError;
use super::story::{Change, Edit, Event, Mark};

/// Paths and contents.
pub(super) type Tree = BTreeMap<String, Rc<str>>;

/// A commit. Its parents are positions in [`History::commits`] before its own.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub subject: String,
    pub parents: Vec<usize>,
    pub tree: Tree,
    mark: Option<Mark>,
}

/// All commits, parents first; the last one is main's.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub commits: Vec<Commit>,
}

impl History {
    /// The positions of the commits with this mark.
    pub(super) fn marked(&self, mark: Mark) -> Vec<usize> {
        let all = 0..self.commits.len();
        all.filter(|n| self.commits[*n].mark == Some(mark))
            .collect()
    }
}

/// A side branch: its newest commit, and all that was changed on it.
struct Side {
    tip: usize,
    edits: Vec<Edit>,
}

macro_rules! start {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("start/", $path)))),*]
    };
}

/// The files of the first commit.
const START: [(&str, &str); 14] = start![
    ".gitignore",
    "README.md",
    "build.sh",
    "config.json",
    "repro.sh",
    "tests/test_loss.py",
    "tinynn/__init__.py",
    "tinynn/data.py",
    "tinynn/loss.py",
    "tinynn/mathx.py",
    "tinynn/model.py",
    "tinynn/optim.py",
    "tools/make_tables.py",
    "train.py",
];

/// The history that the events tell.
pub(super) fn play(events: &[Event]) -> Result<History, DemoError> {
    let mut commits = vec![Commit {
        subject: "begin a network that tells the weather".to_owned(),
        parents: Vec::new(),
        tree: START
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Rc::from(*text)))
            .collect(),
        mark: None,
    }];
    let mut main = 0;
    let mut sides: BTreeMap<String, Side> = BTreeMap::new();
    for event in events {
        let here = commits.len();
        match event {
            Event::Commit {
                branch,
                subject,
                mark,
                edits,
            } => {
                let parent = if branch == "main" {
                    std::mem::replace(&mut main, here)
                } else {
                    let fresh = || Side {
                        tip: main,
                        edits: Vec::new(),
                    };
                    let side = sides.entry(branch.clone()).or_insert_with(fresh);
                    side.edits.extend_from_slice(edits);
                    std::mem::replace(&mut side.tip, here)
                };
                commits.push(Commit {
                    subject: subject.clone(),
                    parents: vec![parent],
                    tree: changed(&commits[parent].tree, edits)?,
                    mark: *mark,
                });
            }
            Event::Merge { branch, at } => {
                let side = sides
                    .remove(branch)
                    .ok_or_else(|| at.expected(format!("a branch, not `{branch}`")))?;
                commits.push(Commit {
                    subject: format!("Merge branch '{branch}'"),
                    parents: vec![main, side.tip],
                    tree: changed(&commits[main].tree, &side.edits)?,
                    mark: None,
                });
                main = here;
            }
        }
    }
    Ok(History { commits })
}

/// A tree after some edits. A merge is the same: hunks find their place by what stands there.
fn changed(tree: &Tree, edits: &[Edit]) -> Result<Tree, DemoError> {
    let mut tree = tree.clone();
    for edit in edits {
        let before = tree.get(&edit.path).map_or("", |text| &**text);
        let after = match &edit.change {
            Change::Write { text } => text.clone(),
            Change::Append { text } => format!("{before}{text}"),
            Change::Hunk { old, new } => {
                if before.matches(old.as_str()).count() != 1 {
                    let what = format!("lines that occur exactly once in {}", edit.path);
                    return Err(edit.at.expected(what));
                }
                before.replacen(old.as_str(), new, 1)
            }
            Change::Set { field, value } => set(before, field, value)
                .ok_or_else(|| edit.at.expected(format!("a field of {}", edit.path)))?,
        };
        if after == before {
            return Err(edit.at.expected(format!("a change of {}", edit.path)));
        }
        tree.insert(edit.path.clone(), Rc::from(after));
    }
    Ok(tree)
}

/// A JSON file, one field a line, with another value for one field.
fn set(json: &str, field: &str, value: &str) -> Option<String> {
    let start = format!("  \"{field}\": ");
    let line = json.lines().find(|line| line.starts_with(&start))?;
    let comma = if line.ends_with(',') { "," } else { "" };
    Some(json.replacen(line, &format!("{start}{value}{comma}"), 1))
}

#[cfg(test)]
mod tests {
    use super::super::story;
    use super::*;

    #[test]
    fn the_story_plays_and_is_long_enough() {
        let history = play(&story::read().unwrap()).unwrap();
        let good = history.marked(Mark::Good);
        assert_eq!(good.len(), 1);
        assert_eq!(history.marked(Mark::Culprit).len(), 1);
        let unbuildable = history.marked(Mark::Unbuildable).len();
        assert!((5..=8).contains(&unbuildable), "{unbuildable}");
        let range = &history.commits[good[0] + 1..];
        assert!(range.len() >= 150, "{}", range.len());
        assert!(range.iter().filter(|c| c.parents.len() == 2).count() >= 15);
        // All before the good end is one line, so the range is all that comes after it.
        for (n, commit) in history.commits[1..=good[0]].iter().enumerate() {
            assert_eq!(commit.parents, [n]);
        }
    }

    #[test]
    fn every_commit_changes_something_and_all_branches_are_merged() {
        let history = play(&story::read().unwrap()).unwrap();
        let mut is_parent = vec![false; history.commits.len()];
        for commit in &history.commits[1..] {
            assert_ne!(commit.tree, history.commits[commit.parents[0]].tree);
            for parent in &commit.parents {
                is_parent[*parent] = true;
            }
        }
        let tips = is_parent.iter().filter(|parent| !**parent).count();
        assert_eq!(tips, 1, "a branch is never merged");
        assert!(!is_parent[is_parent.len() - 1]);
    }

    #[test]
    fn the_config_is_json_at_every_commit() {
        for commit in play(&story::read().unwrap()).unwrap().commits {
            let text = &commit.tree["config.json"];
            let read: Result<BTreeMap<String, f64>, _> = serde_json::from_str(text);
            assert!(read.is_ok(), "{}: {text}", commit.subject);
        }
    }

    #[test]
    fn a_field_is_set_with_or_without_a_comma() {
        let json = "{\n  \"a\": 1,\n  \"b\": 2\n}\n";
        assert_eq!(
            set(json, "a", "3").unwrap(),
            "{\n  \"a\": 3,\n  \"b\": 2\n}\n"
        );
        assert_eq!(
            set(json, "b", "3").unwrap(),
            "{\n  \"a\": 1,\n  \"b\": 3\n}\n"
        );
        assert_eq!(set(json, "c", "3"), None);
    }
}
