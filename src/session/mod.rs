//! The session: opens or resumes a journal, drives trials, folds what happens, concludes.
//!
//! One task owns the state, the journal and the reporters; trials run beside it and send it
//! messages. Resuming is the only way in: a new session is the resume of a journal that holds
//! nothing but its first event.

mod drive;
mod judge;
mod open;
mod slots;

pub use drive::{Closed, drive};
pub use judge::outlook;
pub use open::{Opened, Request, history_error, inside, load, open, reopen, rules};
