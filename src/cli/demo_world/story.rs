//! The language in which the demo's history is told, and its reading.
//!
//! ```text
//! commit BRANCH: SUBJECT       a commit; a branch that is new begins where main stands
//! mark good|culprit|unbuildable
//! edit PATH                    a hunk: lines kept (space), removed (-) and added (+); what is
//!                              kept or removed must occur in the file exactly once
//! append PATH / write PATH     lines added (+) at the end; a whole new content
//! tune BRANCH FIELD V1 V2 ...  one commit a value: a field of config.json
//! note BRANCH: TEXT            one commit: a line in NOTES.md
//! merge BRANCH                 main merges the branch, which ends
//! ```
//!
//! Lines that begin with `#` and empty lines say nothing.

use super::DemoError;

/// The story's parts, in order.
const FILES: [(&str, &str); 5] = [
    ("1-release.txt", include_str!("story/1-release.txt")),
    ("2-layers.txt", include_str!("story/2-layers.txt")),
    ("3-softmax.txt", include_str!("story/3-softmax.txt")),
    ("4-later.txt", include_str!("story/4-later.txt")),
    ("5-today.txt", include_str!("story/5-today.txt")),
];

/// What is special about a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The good end.
    Good,
    /// The planted bug.
    Culprit,
    /// `build.sh` fails.
    Unbuildable,
}

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// The whole content.
    Write { text: String },
    /// Added at the end.
    Append { text: String },
    /// Replaces what occurs exactly once.
    Hunk { old: String, new: String },
    /// Gives a field of a JSON file another value.
    Set { field: String, value: String },
}

/// A change and where it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub path: String,
    pub change: Change,
    pub at: Place,
}

/// A line of the story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub file: &'static str,
    pub line: usize,
}

impl Place {
    pub(super) fn expected(self, what: impl Into<String>) -> DemoError {
        DemoError::Story {
            file: self.file,
            line: self.line,
            expected: what.into(),
        }
    }
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Commit {
        branch: String,
        subject: String,
        mark: Option<Mark>,
        edits: Vec<Edit>,
    },
    Merge {
        branch: String,
        at: Place,
    },
}

/// The whole story.
pub(super) fn read() -> Result<Vec<Event>, DemoError> {
    let mut events = Vec::new();
    for (file, text) in FILES {
        for (n, line) in text.lines().enumerate() {
            let at = Place { file, line: n + 1 };
            read_line(line, at, &mut events)?;
        }
    }
    Ok(events)
}

fn read_line(line: &str, at: Place, events: &mut Vec<Event>) -> Result<(), DemoError> {
    match line.chars().next() {
        None | Some('#') => return Ok(()),
        Some(sign @ (' ' | '+' | '-')) => return body(sign, &line[1..], at, events),
        Some(_) => {}
    }
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "commit" | "note" => {
            let (branch, words) = rest
                .split_once(": ")
                .ok_or_else(|| at.expected("`BRANCH: WORDS`"))?;
            events.push(if word == "commit" {
                commit(branch, words, Vec::new())
            } else {
                note(branch, words, at)
            });
        }
        "tune" => {
            let mut words = rest.split(' ');
            let (Some(branch), Some(field)) = (words.next(), words.next()) else {
                return Err(at.expected("`tune BRANCH FIELD VALUES`"));
            };
            events.extend(words.map(|value| tune(branch, field, value, at)));
        }
        "merge" => events.push(Event::Merge {
            branch: rest.to_owned(),
            at,
        }),
        "mark" => *open(events, at)?.0 = Some(mark(rest, at)?),
        "edit" | "append" | "write" => {
            let text = String::new();
            let change = match word {
                "append" => Change::Append { text },
                "write" => Change::Write { text },
                _ => Change::Hunk {
                    old: text.clone(),
                    new: text,
                },
            };
            let path = rest.to_owned();
            open(events, at)?.1.push(Edit { path, change, at });
        }
        _ => return Err(at.expected("commit, mark, edit, append, write, tune, note or merge")),
    }
    Ok(())
}

fn commit(branch: &str, subject: &str, edits: Vec<Edit>) -> Event {
    Event::Commit {
        branch: branch.to_owned(),
        subject: subject.to_owned(),
        mark: None,
        edits,
    }
}

fn note(branch: &str, words: &str, at: Place) -> Event {
    let edit = Edit {
        path: "NOTES.md".to_owned(),
        change: Change::Append {
            text: format!("- {words}\n"),
        },
        at,
    };
    commit(branch, &format!("notes: {words}"), vec![edit])
}

fn tune(branch: &str, field: &str, value: &str, at: Place) -> Event {
    let edit = Edit {
        path: "config.json".to_owned(),
        change: Change::Set {
            field: field.to_owned(),
            value: value.to_owned(),
        },
        at,
    };
    commit(branch, &format!("config: {field} {value}"), vec![edit])
}

fn mark(word: &str, at: Place) -> Result<Mark, DemoError> {
    match word {
        "good" => Ok(Mark::Good),
        "culprit" => Ok(Mark::Culprit),
        "unbuildable" => Ok(Mark::Unbuildable),
        _ => Err(at.expected("good, culprit or unbuildable")),
    }
}

/// The commit that is being told.
fn open(events: &mut [Event], at: Place) -> Result<(&mut Option<Mark>, &mut Vec<Edit>), DemoError> {
    match events.last_mut() {
        Some(Event::Commit { mark, edits, .. }) => Ok((mark, edits)),
        Some(Event::Merge { .. }) | None => Err(at.expected("a commit before this line")),
    }
}

/// One line of the last edit's text.
fn body(sign: char, text: &str, at: Place, events: &mut [Event]) -> Result<(), DemoError> {
    let edit = open(events, at)?.1.last_mut();
    let change = &mut edit
        .ok_or_else(|| at.expected("an edit before this line"))?
        .change;
    match (change, sign) {
        (Change::Write { text: to } | Change::Append { text: to }, '+') => add(to, text),
        (Change::Hunk { old, .. }, '-') => add(old, text),
        (Change::Hunk { new, .. }, '+') => add(new, text),
        (Change::Hunk { old, new }, ' ') => {
            add(old, text);
            add(new, text);
        }
        (Change::Write { .. } | Change::Append { .. } | Change::Hunk { .. }, _) => {
            return Err(at.expected("a line that begins with +"));
        }
        (Change::Set { .. }, _) => return Err(at.expected("no text after tune")),
    }
    Ok(())
}

fn add(to: &mut String, line: &str) {
    to.push_str(line);
    to.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Event>, DemoError> {
        let mut events = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let at = Place {
                file: "test",
                line: n + 1,
            };
            read_line(line, at, &mut events)?;
        }
        Ok(events)
    }

    #[test]
    fn a_commit_is_read_with_its_hunks() {
        let events = read_text("commit a: b: c\nmark culprit\nedit x\n k\n-o\n+n\n").unwrap();
        let [
            Event::Commit {
                branch,
                subject,
                mark,
                edits,
            },
        ] = events.as_slice()
        else {
            panic!("{events:?}");
        };
        assert_eq!((branch.as_str(), subject.as_str()), ("a", "b: c"));
        assert_eq!(*mark, Some(Mark::Culprit));
        let (old, new) = ("k\no\n".to_owned(), "k\nn\n".to_owned());
        assert_eq!(edits[0].change, Change::Hunk { old, new });
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, line) in [
            ("+x\n", 1),
            ("commit a: b\n+x\n", 2),
            ("commit a: b\nwrite x\n-x\n", 3),
            ("commit a\n", 1),
            ("dance\n", 1),
            ("commit a: b\nmark nice\n", 2),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(
                matches!(error, DemoError::Story { line: l, .. } if l == line),
                "{text}"
            );
        }
    }
}
