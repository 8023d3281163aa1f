//! One trial end to end: what a repro's end means.

pub mod classify;
pub mod signature;
