//! fbisect finds the first thing that broke a training run.
//!
//! ```text
//! args → Plan → [ ask → lease → edits → prepare → run → classify → Event → fold ]* → report
//! ```
//!
//! A request becomes a [`model::Plan`]; a [`search`] is asked for trials; each runs in a leased
//! workspace ([`trials`], [`executors`]); its result becomes one event, which is appended to the
//! [`journal`], folded into the state and shown by the [`reports`], in that order, in one place:
//! the [`session`] loop.

pub mod cli;
pub mod model;
pub mod search;
pub mod trials;
