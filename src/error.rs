//! The one error type that reaches a person: what failed, why, and what to do about it.

use std::error::Error as StdError;
use std::fmt;

/// How the program ends. The numbers are a public promise (README, "Exit status").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Concluded, or printed what was asked for.
    Ok = 0,
    /// The tool failed.
    Failed = 1,
    /// The request makes no sense.
    Usage = 2,
    /// The bad end did not fail.
    BadEndPassed = 3,
    /// The good end failed as the bad one does.
    GoodEndFailed = 4,
    /// No culprit is claimed.
    NoCulprit = 5,
    /// Nothing lies between the ends.
    EmptyRange = 6,
    /// Interrupted; can be resumed.
    Interrupted = 130,
}

/// An error with its cause chain and hints.
#[derive(Debug)]
pub struct Error {
    /// The exit status it leads to.
    pub exit: Exit,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    hints: Vec<String>,
}

impl Error {
    /// The tool failed: `message` is a lower-case fragment.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::with_exit(Exit::Failed, message)
    }

    /// The request makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::with_exit(Exit::Usage, message)
    }

    /// Any other exit status.
    pub fn with_exit(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            source: None,
            hints: Vec::new(),
        }
    }

    /// Adds what caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Adds what the reader can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What the reader can do.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|s| s as _)
    }
}

/// Shorthand used throughout.
pub type Result<T, E = Error> = std::result::Result<T, E>;
