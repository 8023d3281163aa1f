//! Removes what differs between two runs of one failure: numbers, addresses, paths, quoted values.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::class::regex;

/// Characters of a message that are kept.
const LONGEST: usize = 160;

static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(^|[\s(\[=:,])(?:'[^']*'|"[^"]*"|`[^`']*[`'])"#));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b0[xX][0-9a-fA-F]+\b"));
static PATH: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:~|\.{1,2})?(?:/[\w.@+=-]+){2,}/?"));
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\d+(?:[.,:]\d+)*(?:[eE][+-]?\d+)?(?:\b|_|$)?"));

/// A message's first line without what changes from run to run; `None` if nothing is left.
pub(super) fn message(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = QUOTED.replace_all(line, "$1'..'");
    let line = ADDRESS.replace_all(&line, "ADDR");
    let line = PATH.replace_all(&line, "PATH");
    let line: Cow<'_, str> = NUMBER.replace_all(&line, "N");
    let short: String = line.chars().take(LONGEST).collect();
    (!short.is_empty()).then_some(short)
}

/// `file.py:function` with the last two parts of the path, no line number.
pub(super) fn frame(file: &str, function: &str) -> String {
    let parts: Vec<&str> = file.split(['/', '\\']).filter(|p| !p.is_empty()).collect();
    let last_two = parts[parts.len().saturating_sub(2)..].join("/");
    format!("{last_two}:{function}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_one_failure_have_one_message() {
        for (a, b) in [
            ("loss is nan at step 17", "loss is nan at step 2"),
            (
                "object at 0x7f00aa of size 12.5 MiB",
                "object at 0x1b of size 3 MiB",
            ),
            (
                "cannot read '/data/a b.bin' (pid 7)",
                "cannot read '/tmp/c.bin' (pid 99)",
            ),
            (
                "no file /scratch/user1/x.pt here",
                "no file /scratch/user22/run/y.pt here",
            ),
            ("took 1e-05 s", "took 2.5e+07 s"),
        ] {
            assert_eq!(message(a), message(b));
        }
    }

    #[test]
    fn different_messages_stay_different_and_apostrophes_are_no_quotes() {
        assert_ne!(message("shape mismatch"), message("dtype mismatch"));
        assert_eq!(
            message("can't open it, don't ask").as_deref(),
            Some("can't open it, don't ask")
        );
        assert_eq!(message("  \n "), None);
    }

    #[test]
    fn a_frame_keeps_two_parts_of_its_path() {
        assert_eq!(
            frame("/home/u/run3/tinynn/loss.py", "nll"),
            "tinynn/loss.py:nll"
        );
        assert_eq!(frame("train.py", "<module>"), "train.py:<module>");
    }
}
