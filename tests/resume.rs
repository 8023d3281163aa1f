//! A session that is killed, cut, interrupted or opened twice: nothing finished is lost, nothing
//! runs again, nothing is left behind.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "resume/cut.rs"]
mod cut;
#[path = "resume/kills.rs"]
mod kills;
#[path = "resume/refusals.rs"]
mod refusals;
#[path = "resume/signals.rs"]
mod signals;
#[path = "resume/status.rs"]
mod status;
#[path = "support/kill.rs"]
mod support;
#[path = "resume/unwritable.rs"]
mod unwritable;
