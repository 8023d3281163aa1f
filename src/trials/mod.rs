//! One trial, end to end: a leased workspace, made ready, run and classified.
//!
//! Everything here acts on files and processes. It must not know why a commit was chosen (the
//! search) nor how a session is written down (the journal).

pub mod classify;
pub mod editable;
pub mod environment;
pub mod rerun;
pub mod run;
pub mod signature;
pub mod slot;
pub mod workspace;
