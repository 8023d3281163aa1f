//! What can vary, one module an axis: each says what lies between a good and a bad world.
//!
//! An axis turns what the user typed into candidates for a [`crate::search`]. It must not know
//! how a candidate is tried, what a trial is, or how a session is kept.

pub mod commits;
