//! The journal: the only state of a session.
//!
//! A session is a fold over its events ([`State::apply`]). The journal knows how events are
//! written and read; it must not know how a trial is run or what a search would ask.

pub mod event;
pub mod files;
pub mod state;
pub mod store;

pub use event::{Event, WatchedFile};
pub use files::{SessionFiles, sessions};
pub use state::{State, Trial};
pub use store::{Held, Journal, StoreError, Sync, hold, in_use, read};
