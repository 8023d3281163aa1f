//! The built program, used as a stranger would: real repositories, real processes.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, too, fail by panicking"
)]

#[path = "../support/cli.rs"]
mod support;

mod config;
mod ends;
mod history;
mod json;
mod output;
mod prepare;
mod search;
mod sessions;
mod statuses;
mod untouched;
mod words;
