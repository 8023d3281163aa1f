//! Printing that cannot take the session down: a lost terminal or a closed pipe is no error.

use std::error::Error as _;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use console::{Style, Term};
use textwrap::WordSplitter;

use crate::error::Error;

/// Prints a result on standard output.
pub fn result(text: &str) {
    let mut out = io::stdout().lock();
    // Nobody is left to tell when the reader has gone.
    let _ = writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush());
}

/// Prints a line of conversation on standard error.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints an error with its causes and hints.
pub fn error(error: &Error) {
    let mut text = format!("{} {error}", bad().bold().apply_to("error:"));
    let mut cause = error.source();
    while let Some(source) = cause {
        let _ = write!(text, "\n  caused by: {}", clean(&source.to_string()));
        cause = source.source();
    }
    for hint in error.hints() {
        let _ = write!(text, "\n  {} {hint}", dim().apply_to("hint:"));
    }
    say(&text);
}

/// Prints a warning.
pub fn warn(text: &str) {
    say(&warning_line(text));
}

/// A warning as [`warn`] prints it.
pub fn warning_line(text: &str) -> String {
    format!(
        "{} {text}",
        Style::new().for_stderr().yellow().apply_to("warning:")
    )
}

/// How failures look on standard error.
pub fn bad() -> Style {
    Style::new().for_stderr().red()
}

/// How successes look on standard error.
pub fn good() -> Style {
    Style::new().for_stderr().green()
}

/// How what matters less looks on standard error.
pub fn dim() -> Style {
    Style::new().for_stderr().dim()
}

/// Text that came from a repository or a repro, safe to print: control sequences and control
/// characters removed, in one line.
pub fn clean(text: &str) -> String {
    console::strip_ansi_codes(text)
        .chars()
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control())
        .collect()
}

/// Shortens to at most `width` columns, with an ellipsis where something was cut.
pub fn fit(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

/// Seconds as people write them: `0.2s`, `14s`, `3m 05s`, `2h 10m`.
pub fn seconds(seconds: f64) -> String {
    if seconds < 9.95 {
        return format!("{seconds:.1}s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m {:02}s", whole / 60, whole % 60),
        _ => format!("{}h {:02}m", whole / 3600, whole % 3600 / 60),
    }
}

/// `1 commit`, `1,024 commits`.
pub fn count(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// `1,024`.
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Prints conversation in sentences: on a terminal, wrapped between words.
pub fn prose(text: &str) {
    say(&wrap(text, columns(&Term::stderr())));
}

/// Prints a report: whole where it may be read again from a file; on a terminal, sentences are
/// wrapped and rows of tables cut, so that columns stay columns. Command lines stay whole, since
/// they are there to be copied.
pub fn report(text: &str) {
    let Some(width) = columns(&Term::stdout()) else {
        return result(text);
    };
    let fitted: Vec<String> = text
        .lines()
        .map(|line| {
            let command = line.starts_with("  git ") || line.starts_with("  fbisect ");
            match (line.starts_with("  "), command) {
                (true, true) => line.to_owned(),
                (true, false) => fit(line, width),
                (false, _) => wrap(line, Some(width)),
            }
        })
        .collect();
    result(&fitted.join("\n"));
}

fn columns(term: &Term) -> Option<usize> {
    let size = term.is_term().then(|| term.size_checked()).flatten();
    size.map(|(_, width)| usize::from(width).max(20))
}

fn wrap(text: &str, width: Option<usize>) -> String {
    match width {
        // Revisions, session names and flags have hyphens at which they must not be torn.
        Some(width) => textwrap::fill(
            text,
            textwrap::Options::new(width).word_splitter(WordSplitter::NoHyphenation),
        ),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_read_well() {
        let shown: Vec<String> = [0.04, 9.94, 9.96, 59.4, 59.6, 185.0, 7800.0]
            .into_iter()
            .map(seconds)
            .collect();
        assert_eq!(
            shown,
            ["0.0s", "9.9s", "10s", "59s", "1m 00s", "3m 05s", "2h 10m"]
        );
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(1, "commit"), "1 commit");
        assert_eq!(count(999, "commit"), "999 commits");
        assert_eq!(count(1024, "commit"), "1,024 commits");
        assert_eq!(count(1_234_567, "commit"), "1,234,567 commits");
    }

    #[test]
    fn hostile_text_is_harmless() {
        assert_eq!(clean("a\x1b[31mred\x1b[0m\x07\nb\rc"), "ared bc");
    }
}
