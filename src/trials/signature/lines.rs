//! Tells apart the processes that write into one log, and removes what launchers and log
//! collectors put before each line.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::class::regex;

static TIME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)^(?:
            \[?\d{4}[-/]\d\d[-/]\d\d[T\ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?
          | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?
        )(?:\ [|-])?(?:[\ :]|$)",
    )
});

/// `[rank3]: `, `[default0]:`, `(Worker pid=12, ip=..) `, `[1,0]<stderr>:`, `rank 3: `, `3: `.
static WHO: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)^(?:
            \[(?i:rank)[\ :]?\d+\]:?
          | \[default\d+\]:
          | \[\d+,\d+\]<std(?:out|err)>:
          | \((?:[\w.:-]+\ )?pid=\d+(?:,\ ip=[^)]*)?\)
          | (?i:rank)[\ _]?\d+:
          | \d+:
        )(?:\ |$)?",
    )
});

/// Prefixes on one line, at most: a collector's time, a launcher's rank, the program's own time.
const MOST_PREFIXES: usize = 4;

/// One line without its prefixes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its number in the log, from 0: the only notion of time that a log has.
    pub at: usize,
    /// What the program wrote, indentation kept.
    pub text: &'a str,
}

/// The lines of each process, in order of first appearance. Lines without a prefix that names a
/// process are one process.
pub(super) fn processes(text: &str) -> Vec<Vec<Line<'_>>> {
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: Vec<Vec<Line<'_>>> = Vec::new();
    for (at, raw) in text.lines().enumerate() {
        let (who, text) = split_prefix(raw);
        let number = *index.entry(who).or_insert_with(|| {
            found.push(Vec::new());
            found.len() - 1
        });
        found[number].push(Line { at, text });
    }
    found
}

fn split_prefix(raw: &str) -> (String, &str) {
    let mut who = String::new();
    let mut rest = raw.trim_end();
    for _ in 0..MOST_PREFIXES {
        if let Some(time) = TIME.find(rest) {
            rest = &rest[time.end()..];
        } else if let Some(name) = WHO.find(rest).filter(|name| is_name(name.as_str(), rest)) {
            who.push_str(name.as_str().trim_end());
            rest = &rest[name.end()..];
        } else {
            break;
        }
    }
    (who, rest)
}

/// A bare number is a rank only where a space or the line's end follows: `12:34` is not.
fn is_name(name: &str, rest: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit()) || name.ends_with(' ') || name == rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_removed_and_indentation_is_kept() {
        for (raw, who, rest) in [
            ("[rank3]:   File \"a.py\"", "[rank3]:", "  File \"a.py\""),
            ("1: Traceback", "1:", "Traceback"),
            ("1:", "1:", ""),
            ("(pid=123) ValueError: x", "(pid=123)", "ValueError: x"),
            (
                "(Worker pid=9, ip=10.0.0.1) x",
                "(Worker pid=9, ip=10.0.0.1)",
                "x",
            ),
            ("2024-05-01T10:00:00.123Z   File", "", "  File"),
            ("2024-05-01 10:00:00,123 [rank0]: x", "[rank0]:", "x"),
            ("[default2]:KeyError: 'a'", "[default2]:", "KeyError: 'a'"),
            ("[1,2]<stderr>:boom", "[1,2]<stderr>:", "boom"),
            ("12:34 is a time of day", "", "12:34 is a time of day"),
            ("plain", "", "plain"),
        ] {
            assert_eq!(split_prefix(raw), (who.to_owned(), rest), "{raw}");
        }
    }

    #[test]
    fn interleaved_ranks_come_apart() {
        let found = processes("[rank0]: a\n[rank1]: b\n[rank0]: c\nd\n");
        let texts: Vec<Vec<&str>> = found
            .iter()
            .map(|lines| lines.iter().map(|line| line.text).collect())
            .collect();
        assert_eq!(texts, [vec!["a", "c"], vec!["b"], vec!["d"]]);
        assert_eq!(found[0][1].at, 2);
    }
}
