//! The commits axis on real repositories, made with the git program.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "history/bed.rs"]
mod bed;
#[path = "history/errors.rs"]
mod errors;
#[path = "history/large.rs"]
mod large;
#[path = "history/places.rs"]
mod places;
#[path = "history/shapes.rs"]
mod shapes;
