//! The session: opens or resumes a journal, drives trials, folds what happens, concludes.
//!
//! One task owns the state, the journal and the reporters; trials run beside it and send it
//! messages. Resuming is the only way in: a new session is the resume of a journal that holds
//! nothing but its first event.

mod drive;
mod inside;
mod judge;
mod open;
mod reopen;
mod slots;
mod watched;

pub use drive::{Closed, drive};
pub use inside::inside;
pub use judge::outlook;
pub use open::{Opened, Request, history_error, load, open, rules};
pub use reopen::{GoingOn, reopen};
