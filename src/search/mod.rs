//! What to try next: pure searches that are asked and told.
//!
//! A search knows points, outcomes and costs. It must not know a file, a process, a clock or a
//! random source: the same state gives the same answer, which is what makes a session resumable.
//! The driver ([`crate::session`]) asks for queries, runs them somewhere, and tells the search
//! what was seen.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod bisect;
pub mod bits;
pub mod graph;
pub mod narrow;
pub mod record;

use serde::{Deserialize, Serialize};

/// What a trial says of its candidate, after classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The candidate behaved like the good end.
    Good,
    /// The candidate failed as the bad end does.
    Bad,
    /// The candidate could not be tested: no evidence either way.
    Skip,
}

impl Outcome {
    /// Good for bad and bad for good: what a search for a *fix* is told.
    #[must_use]
    pub fn inverted(self) -> Self {
        match self {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
            Self::Skip => Self::Skip,
        }
    }
}

/// Why a query is asked. The driver uses it to choose a workspace, reports to explain a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Does the end that should fail really fail, here?
    BadEnd,
    /// Does an end that should pass really pass, here?
    GoodEnd,
    /// Is the commit where the two ends' histories part still good?
    MergeBase,
    /// Make the set of suspects smaller.
    Narrow,
    /// Test the culprit or one of its parents again, in a fresh workspace.
    Confirm,
}

/// One question: run the repro on `point`, for the `index`-th time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Query<P> {
    /// What to run on.
    pub point: P,
    /// How many trials of this point were asked before (0 for the first).
    pub index: u32,
    /// Why.
    pub purpose: Purpose,
}

/// A query that has been started and not yet told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running<P> {
    /// The question.
    pub query: Query<P>,
    /// The slot where it runs.
    pub slot: usize,
}

/// What the search may know of a slot when it chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotState<P> {
    /// The point that is checked out and built there, if any.
    pub built: Option<P>,
    /// Whether a query could start there now.
    pub free: bool,
}

/// What was seen when a query was run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// The classified outcome.
    pub outcome: Outcome,
    /// The measured number, in metric mode.
    pub metric: Option<f64>,
    /// Seconds of checkout, setup and build before the run (0 when the point was built already).
    pub prepare_seconds: f64,
    /// Seconds of the run itself.
    pub run_seconds: f64,
    /// The slot it ran in.
    pub slot: usize,
    /// Position in the order in which observations are told, from 0.
    pub order: u64,
}

/// A search's answer to "what now?".
#[derive(Debug, Clone, PartialEq)]
pub enum Step<P, C> {
    /// Run these, at most as many as there are free slots, most wanted first. Never empty.
    Try(Vec<Query<P>>),
    /// Nothing is worth starting until something that runs has ended.
    Wait,
    /// The search is over.
    Done(C),
}

/// What a reader of the progress wants to know of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress<P> {
    /// Candidates that can still be the answer.
    pub suspects: usize,
    /// A sample of them (all, when few), in history order.
    pub leading: Vec<P>,
    /// Trials that are still expected with one slot, confirmation included: (fewest, most).
    pub trials_left: (u32, u32),
}

/// A search over points of type [`Search::Point`].
pub trait Search {
    /// What can be asked about.
    type Point: Copy + Eq;
    /// What a finished search says.
    type Conclusion;

    /// What to run next, given what runs now and which slots there are.
    ///
    /// Never mutates: the same state and arguments give the same answer. The queries of
    /// [`Step::Try`] are distinct from each other and from those in `running`.
    fn ask(
        &self,
        running: &[Running<Self::Point>],
        slots: &[SlotState<Self::Point>],
    ) -> Step<Self::Point, Self::Conclusion>;

    /// What was seen for a query. A point's queries are told in the order of their index.
    fn tell(&mut self, query: &Query<Self::Point>, seen: &Observation);

    /// How far the search is.
    fn progress(&self) -> Progress<Self::Point>;

    /// Every point that can still be the answer, in history order.
    fn suspects(&self) -> Vec<Self::Point>;
}
