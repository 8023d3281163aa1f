//! What a person sees: help, colours, narrow terminals.

use std::process::Command;

use crate::support::{Bed, EXIT_CODE, Ran, commits};

fn help(bed: &Bed, words: &[&str]) -> String {
    let ran = bed.run(words).exits(0);
    assert_eq!(ran.err, "");
    assert!(!ran.out.contains('\x1b'));
    ran.out
}

#[test]
fn short_help_fits_a_screen() {
    let bed = Bed::new("c0: | a=1");
    for sub in ["", "commits", "resume", "status", "log", "rerun", "demo"] {
        let words = [sub, "-h"];
        let words = if sub.is_empty() { &words[1..] } else { &words };
        let mut command = bed.command(words);
        let output = command.env("COLUMNS", "80").output().unwrap();
        let text = Ran::from(output).exits(0).out;
        let lines = text.lines().count();
        assert!(lines <= 24, "{sub} -h: {lines} lines\n{text}");
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80, "{sub} -h: {widest} columns\n{text}");
    }
    insta::assert_snapshot!("commits_short_help", help(&bed, &["commits", "-h"]));
}

#[test]
fn long_help_reads_well() {
    let bed = Bed::new("c0: | a=1");
    insta::assert_snapshot!("help", help(&bed, &["--help"]));
    insta::assert_snapshot!("commits_long_help", help(&bed, &["commits", "--help"]));
    for sub in ["resume", "status", "log", "rerun", "demo"] {
        insta::assert_snapshot!(format!("{sub}_help"), help(&bed, &[sub, "--help"]));
    }
}

#[test]
fn without_a_terminal_lines_are_plain() {
    let bed = Bed::broken_from(3, 6);
    let ran = bed.commits(&["c0..c5"], &EXIT_CODE).exits(0);
    assert!(!ran.to_string().contains('\x1b') && !ran.to_string().contains('\r'));
    insta::assert_snapshot!(bed.tidy(&ran.to_string()));
}

/// What a command prints on a terminal of 60 columns, as bytes, standard output and standard
/// error together.
fn on_a_terminal(bed: &Bed, args: &[&str], vars: &[(&str, &str)]) -> (String, Screen) {
    let program = bed.command(args);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let line = shell_words::join(words.map(|w| w.to_str().unwrap()));
    let mut script = Command::new("script");
    script
        .args([
            "-qec",
            &format!("stty cols 60 rows 24; {line}"),
            "/dev/null",
        ])
        .env_clear()
        .envs(program.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/sh")
        .envs(vars.iter().copied())
        .current_dir(bed.root())
        .stdin(std::process::Stdio::null());
    let ran = Ran::from(script.output().unwrap());
    let screen = Screen::show(&ran.out, 60);
    (ran.out, screen)
}

/// As much of a terminal as our output needs: its lines, and what it did not understand.
#[derive(Debug, Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Lines that ran over the right edge.
    wrapped: Vec<String>,
    unknown: Vec<String>,
}

impl Screen {
    fn show(text: &str, width: usize) -> Self {
        let mut screen = Self::default();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\r' => screen.column = 0,
                '\n' => screen.row += 1,
                '\x1b' if rest.next_if_eq(&'[').is_some() => {
                    let mut number = String::new();
                    while let Some(c) = rest.next_if(|c| !c.is_ascii_alphabetic()) {
                        number.push(c);
                    }
                    screen.control(&number, rest.next().unwrap_or('?'));
                }
                c if c.is_control() => screen.unknown.push(format!("{c:?}")),
                c => screen.put(c, width),
            }
        }
        screen
    }

    fn control(&mut self, number: &str, what: char) {
        let n: usize = number.parse().unwrap_or(1);
        match what {
            'A' => self.row = self.row.checked_sub(n).expect("never above the first line"),
            'B' => self.row += n,
            'C' => self.column += n,
            'D' => self.column = self.column.saturating_sub(n),
            'G' => self.column = n - 1,
            'K' if number == "2" => self.line().clear(),
            'K' => {
                let column = self.column;
                self.line().truncate(column);
            }
            'J' => {
                let (row, column) = (self.row, self.column);
                self.line().truncate(column);
                self.lines.truncate(row + 1);
            }
            // Colours; cursor shown or hidden.
            'm' => {}
            'h' | 'l' if number == "?25" => {}
            other => self.unknown.push(format!("CSI {number}{other}")),
        }
    }

    fn line(&mut self) -> &mut Vec<char> {
        if self.lines.len() <= self.row {
            self.lines.resize(self.row + 1, Vec::new());
        }
        &mut self.lines[self.row]
    }

    fn put(&mut self, c: char, width: usize) {
        if self.column == width {
            // Moving lines are filled up with blanks and go on below by themselves.
            let line: String = self.line().iter().collect();
            self.wrapped
                .extend(Some(line).filter(|line| !line.ends_with(' ')));
            self.row += 1;
            self.column = 0;
        }
        let column = self.column;
        let line = self.line();
        if line.len() <= column {
            line.resize(column + 1, ' ');
        }
        line[column] = c;
        self.column += 1;
    }

    fn text(&self) -> String {
        let lines = self
            .lines
            .iter()
            .map(|line| line.iter().collect::<String>());
        lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }
}

#[test]
fn at_sixty_columns_nothing_is_garbled() {
    let bed = Bed::line(9, |i| format!("code={}", u8::from(i >= 4)));
    let cut = regex::Regex::new("[; a-z]*…").unwrap();
    // So slow that the moving lines are drawn.
    let slow = ["sh", "-c", "sleep 0.5; exit $(cat code)"];
    for jobs in ["1", "2"] {
        let words = commits(&["c0..c8", "--jobs", jobs], &slow);
        let (raw, screen) = on_a_terminal(&bed, &words, &[]);
        let text = screen.text();
        assert!(screen.unknown.is_empty(), "{:?}", screen.unknown);
        assert!(screen.wrapped.is_empty(), "too long: {:?}", screen.wrapped);
        // The moving lines were there, and are gone; colours were there.
        let moving = ["#1 bad end    [c8] run", "; 8 suspects of 8"];
        assert!(
            moving.iter().all(|line| bed.tidy(&raw).contains(line)),
            "{raw:?}"
        );
        assert!(
            !moving.iter().any(|line| bed.tidy(&text).contains(line)),
            "{text}"
        );
        assert!(raw.contains("\x1b[31mbad"), "{raw:?}");
        if jobs == "1" {
            // Where a line is cut or wrapped depends on the digits of a time.
            let text = bed.tidy(&text).replace("seed\n1", "seed 1");
            insta::assert_snapshot!(cut.replace_all(&text, "…"));
        }
    }
}

#[test]
fn prose_is_wrapped_between_words_and_commands_stay_whole() {
    let bed = Bed::broken_from(0, 5);
    let (_, screen) = on_a_terminal(&bed, &commits(&["c0..c4"], &EXIT_CODE), &[]);
    assert!(screen.wrapped.is_empty(), "too long: {:?}", screen.wrapped);
    let text = bed.tidy(&screen.text());
    assert!(
        text.contains(
            "\nWhat to do: choose an older good end than [c0], or\nlook for what changed"
        ),
        "{text}"
    );
}

#[test]
fn no_color_is_heeded() {
    let bed = Bed::broken_from(4, 9);
    let words = commits(&["c0..c8"], &EXIT_CODE);
    let (raw, screen) = on_a_terminal(&bed, &words, &[("NO_COLOR", "1")]);
    assert!(screen.unknown.is_empty());
    let coloured = regex::Regex::new("\x1b\\[[0-9;]*[1-9][0-9;]*m").unwrap();
    assert!(!coloured.is_match(&raw), "{raw:?}");
    let (raw, _) = on_a_terminal(&bed, &words, &[("TERM", "dumb")]);
    assert!(!raw.contains('\x1b'), "{raw:?}");
}

#[test]
fn output_of_a_repository_cannot_steer_the_terminal() {
    let bed = Bed::broken_from(4, 9);
    bed.git(&[
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "evil \u{1b}]0;title\u{7}\u{1b}[2J \u{1b}[31msubject",
    ]);
    let ran = bed.commits(&["c0..HEAD"], &EXIT_CODE).exits(0);
    assert!(!ran.to_string().contains('\x1b') && !ran.to_string().contains('\x07'));
    let ran = bed.run(&["log"]).exits(0);
    assert!(!ran.out.contains('\x1b'), "{:?}", ran.out);
}
