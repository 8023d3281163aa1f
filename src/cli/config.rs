//! `fbisect.toml` at the top of the checkout: defaults for `fbisect commits`.
//!
//! A flag wins over the file. An unknown key or a value of the wrong kind is an error that names
//! the line.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::args::{CacheArg, CleanArg, CommitsArgs, OnTimeoutArg, duration};
use crate::error::{Error, Result};

/// The file's name.
pub const FILE: &str = "fbisect.toml";

/// What the file can hold. Every key is the flag's name with `_` for `-`, except `repro`: the
/// command.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    repro: Option<Words>,
    build: Option<String>,
    setup: Option<String>,
    setup_key: Option<OneOrMany>,
    apply: Option<PathBuf>,
    pin: Option<OneOrMany>,
    unpinned: Option<bool>,
    link: Option<OneOrMany>,
    path: Option<OneOrMany>,
    first_parent: Option<bool>,
    clean: Option<Choice<CleanArg>>,
    submodules: Option<bool>,
    workspace_dir: Option<PathBuf>,
    allow_editable: Option<bool>,
    jobs: Option<Within<1, 1024>>,
    timeout: Option<Time>,
    on_timeout: Option<Choice<OnTimeoutArg>>,
    grace: Option<Time>,
    any_failure: Option<bool>,
    cache: Option<Choice<CacheArg>>,
    output_limit: Option<Within<1, 65536>>,
    seed: Option<u64>,
    deterministic: Option<bool>,
    max_trials: Option<Within<1, { u32::MAX }>>,
    max_time: Option<Time>,
}

/// A command: one string, split as a shell splits words, or an array of words.
#[derive(Debug, PartialEq, Eq)]
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(line) => shell_words::split(&line)
                .map(Self)
                .map_err(D::Error::custom),
            OneOrMany::Many(words) => Ok(Self(words)),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn paths(self) -> Vec<PathBuf> {
        match self {
            Self::One(path) => vec![path.into()],
            Self::Many(paths) => paths.into_iter().map(Into::into).collect(),
        }
    }
}

/// A time: a string as on the command line, or a number of seconds.
#[derive(Debug, PartialEq, Eq)]
struct Time(std::time::Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a time such as \"10m\", or seconds")]
        enum Raw {
            Text(String),
            Seconds(f64),
        }
        let text = match Raw::deserialize(deserializer)? {
            Raw::Text(text) => text,
            Raw::Seconds(seconds) => seconds.to_string(),
        };
        duration(&text).map(Self).map_err(D::Error::custom)
    }
}

/// A whole number, within the limits that the flag has.
#[derive(Debug, PartialEq, Eq)]
struct Within<const MIN: u32, const MAX: u32>(u32);

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        match u32::try_from(number) {
            Ok(n) if (MIN..=MAX).contains(&n) => Ok(Self(n)),
            _ => Err(D::Error::custom(format!(
                "{number} is not in {MIN}..={MAX}"
            ))),
        }
    }
}

/// A word that the command line takes too.
#[derive(Debug, PartialEq, Eq)]
struct Choice<T>(T);

impl<'de, T: clap::ValueEnum> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        T::from_str(&word, false).map(Self).map_err(|_| {
            let words: Vec<String> = T::value_variants()
                .iter()
                .filter_map(T::to_possible_value)
                .map(|v| v.get_name().to_owned())
                .collect();
            D::Error::custom(format!("`{word}` is not one of {}", words.join(", ")))
        })
    }
}

/// Reads the file at the top of the checkout, if there is one.
///
/// # Errors
/// When it cannot be read or is wrong: `fbisect.toml:LINE: what`.
pub fn read(root: &Path) -> Result<Config> {
    let path = root.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(e) => {
            return Err(Error::usage(format!("{} cannot be read", path.display())).caused_by(e));
        }
    };
    parse(&text)
}

fn parse(text: &str) -> Result<Config> {
    toml::from_str(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        let line = text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
        Error::usage(format!(
            "{FILE}:{line}: {}",
            e.message().replace('\n', "; ")
        ))
        .hint("the keys are the long flags with `_` for `-`, and `repro` for the command")
    })
}

impl CommitsArgs {
    /// Fills in from the file what the command line left open.
    #[must_use]
    pub fn with_defaults(mut self, config: Config, root: &Path) -> Self {
        let many = |flag: &mut Vec<PathBuf>, file: Option<OneOrMany>| {
            if let (true, Some(paths)) = (flag.is_empty(), file) {
                // The file stands at the top; a flag's path is relative to where it is typed.
                *flag = paths.paths().into_iter().map(|p| root.join(p)).collect();
            }
        };
        if let (true, Some(Words(words))) = (self.command.is_empty(), config.repro) {
            self.command = words;
            self.command_from_file = true;
        }
        many(&mut self.path, config.path);
        many(&mut self.pin, config.pin);
        many(&mut self.link, config.link);
        // A key belongs to its setup: another setup on the command line does not inherit it.
        if self.setup.is_none() {
            many(&mut self.setup_key, config.setup_key);
        }
        self.setup = self.setup.or(config.setup);
        self.build = self.build.or(config.build);
        self.apply = self.apply.or(config.apply.map(|p| root.join(p)));
        self.workspace_dir = (self.workspace_dir).or(config.workspace_dir.map(|p| root.join(p)));
        self.clean = self.clean.or(config.clean.map(|c| c.0));
        self.jobs = self
            .jobs
            .or(config.jobs.and_then(|n| u16::try_from(n.0).ok()));
        self.timeout = self.timeout.or(config.timeout.map(|t| t.0));
        self.on_timeout = self.on_timeout.or(config.on_timeout.map(|c| c.0));
        self.grace = self.grace.or(config.grace.map(|t| t.0));
        self.cache = self.cache.or(config.cache.map(|c| c.0));
        self.output_limit = self.output_limit.or(config.output_limit.map(|n| n.0));
        self.seed = self.seed.or(config.seed);
        self.max_trials = self.max_trials.or(config.max_trials.map(|n| n.0));
        self.max_time = self.max_time.or(config.max_time.map(|t| t.0));
        for (flag, file) in [
            (&mut self.unpinned, config.unpinned),
            (&mut self.first_parent, config.first_parent),
            (&mut self.submodules, config.submodules),
            (&mut self.allow_editable, config.allow_editable),
            (&mut self.any_failure, config.any_failure),
            (&mut self.deterministic, config.deterministic),
        ] {
            *flag |= file.unwrap_or(false);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_key_names_its_line() {
        let error = parse("build = \"make\"\n\ntiemout = \"10m\"\n").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("fbisect.toml:3: unknown field `tiemout`"),
            "{text}"
        );
    }

    #[test]
    fn wrong_values_name_their_line() {
        for (text, line, what) in [
            ("timeout = \"soon\"", 1, "expected a time"),
            ("\nclean = \"some\"", 2, "not one of none, untracked, all"),
            ("\n\njobs = \"two\"", 3, "invalid type"),
            ("repro = \"sh -c 'unclosed\"", 1, "missing closing quote"),
            ("a = 1\na = 2", 2, "duplicate key"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("fbisect.toml:{line}: ")),
                "{text}: {error}"
            );
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn reads_every_way_of_writing() {
        let config = parse(
            "repro = \"python3 'my train.py' --steps 5\"\npin = \"a.py\"\nlink = [\"data\", \"w\"]\n\
             timeout = 90\nmax_time = \"1h30m\"\nclean = \"all\"\n",
        )
        .unwrap();
        assert_eq!(
            config.repro,
            Some(Words(vec![
                "python3".into(),
                "my train.py".into(),
                "--steps".into(),
                "5".into()
            ]))
        );
        assert_eq!(
            config.timeout,
            Some(Time(std::time::Duration::from_secs(90)))
        );
        assert_eq!(
            config.max_time,
            Some(Time(std::time::Duration::from_mins(90)))
        );
        assert_eq!(config.clean, Some(Choice(CleanArg::All)));
        assert_eq!(
            config.link.unwrap().paths(),
            [PathBuf::from("data"), PathBuf::from("w")]
        );
    }
}
