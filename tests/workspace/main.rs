//! Worktrees of real repositories, made, moved and removed by the real git.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod leftovers;
mod moving;
mod named;
mod overlays;
mod repo;
mod submodules;
