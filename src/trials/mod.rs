//! One trial, end to end: a leased workspace, made ready, run and classified.
//!
//! Everything here acts on files and processes. It must not know why a commit was chosen (the
//! search) nor how a session is written down (the journal).

pub mod editable;
pub mod workspace;
