//! What one place of a log says about a failure.

use super::class;
use super::normal;
use crate::model::{Signature, SignatureClass};

/// How much a piece of evidence says about the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// What a failure elsewhere sets off.
    Aftermath,
    /// An ordinary line that speaks of a failure.
    Hint,
    /// An exception, a panic, an abort, a test report.
    Error,
}

/// One piece of evidence.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    /// First line in the log.
    pub at: usize,
    /// Last line in the log.
    pub end: usize,
    pub weight: Weight,
    pub class: SignatureClass,
    pub exception: Option<String>,
    pub frame: Option<String>,
    /// It is a test runner's conclusion about itself: nothing in the log counts more.
    pub report: bool,
    /// It is written by the runtime as the process dies, and cannot be caught.
    pub native: bool,
    /// It follows the evidence before it in one chain of exceptions.
    pub chained: bool,
    /// Training went on after it.
    pub survived: bool,
    /// Hardly anything follows it in its process.
    pub near_end: bool,
}

impl Evidence {
    /// An exception, classified and weighed by its type and words.
    pub(super) fn exception(at: usize, end: usize, name: &str, message: &str) -> Self {
        if let Some(signal) = class::child_death(message) {
            return Self {
                exception: Some(signal.to_owned()),
                ..Self::plain(at, end, Weight::Aftermath, SignatureClass::Crash, message)
            };
        }
        let class = class::class_of(Some(name), message);
        let weight = if class::is_aftermath(class, Some(name), message) {
            Weight::Aftermath
        } else {
            Weight::Error
        };
        Self {
            exception: Some(name.to_owned()),
            ..Self::plain(at, end, weight, class, message)
        }
    }

    /// Evidence without an exception type.
    pub(super) fn plain(
        at: usize,
        end: usize,
        weight: Weight,
        class: SignatureClass,
        message: &str,
    ) -> Self {
        Self {
            at,
            end,
            weight,
            class,
            exception: None,
            frame: normal::message(message),
            report: false,
            native: false,
            chained: false,
            survived: false,
            near_end: false,
        }
    }

    pub(super) fn into_signature(self) -> Signature {
        Signature {
            class: self.class,
            exception: self.exception,
            frame: self.frame,
        }
    }
}
