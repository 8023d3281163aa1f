//! The commits axis: which commits lie between the good and the bad end, and how they descend
//! from one another.
//!
//! **Ends.** "Good end" always means the *old* end here and "bad end" the *new* one, whatever the
//! user looks for; see [`Request`] for how `--fixed` changes what is typed.
//!
//! **Who reads what.** Whatever is asked a few times in a session (where the repository is, what a
//! revision names, a merge base, a commit's author and files) is asked of the `git` program, which
//! alone knows every revision syntax, object format and ref storage. What is asked of
//! each of 50,000 commits (parents, the entry at a path) is read with libgit2, which needs no
//! process and no text; where libgit2 cannot read a repository (SHA-256, reftable, replaced
//! objects, trees that a partial clone left out), `git` answers that too, with the same result.
//!
//! **Which repository.** The one that `git` would use in the user's directory, so `GIT_DIR` and
//! `GIT_WORK_TREE` are honoured once, by [`Repo::discover`]; from then on every command gets the
//! repository by its absolute path, and variables that could lead it elsewhere are removed.
//! Needs git 2.30 or newer.
//!
//! This axis reads. It must not write to a repository, check anything out or test anything.

mod details;
mod error;
mod git;
mod history;
mod repo;
mod resolve;
mod touching;
mod walk;

pub use details::{changed_between, details, is_hidden_by_sparse_checkout, subjects};
pub use error::HistoryError;
pub use history::History;
pub use repo::Repo;
pub use resolve::{Request, Resolved, resolve, revisions_now};
