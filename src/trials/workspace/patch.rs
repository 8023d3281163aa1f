//! The user's patch (`--apply`): laid on every commit where it applies and is not there yet.
//!
//! It is applied to the index as well, so that the forced checkout of the next commit undoes all
//! of it, files that it created included, without a further git process.

use std::path::Path;

use super::error::{Fault, WorkspaceError};
use super::git::Git;
use crate::model::PrepareStep;

/// How the patch stands at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchState {
    /// It was laid on the commit.
    Applied,
    /// The commit has it already.
    AlreadyThere,
    /// It does not apply; the commit is as it was.
    DoesNotApply,
}

impl PatchState {
    /// Whether the trial ran with the patch's changes, as a trial's record says it.
    pub fn is_there(self) -> bool {
        match self {
            Self::Applied | Self::AlreadyThere => true,
            Self::DoesNotApply => false,
        }
    }
}

/// Checks that a file is a patch that git can read, before a session is built on it.
///
/// # Errors
/// With git's words, when it is none or is damaged.
pub fn check_patch(file: &Path) -> Result<(), WorkspaceError> {
    let file = std::path::absolute(file)
        .map_err(|e| WorkspaceError::io(PrepareStep::Apply, "find", file, &e))?;
    let here = file.parent().unwrap_or(Path::new("/"));
    apply(here, &["--numstat"], &file).run().map(drop)
}

/// Lays the patch on a fresh checkout. All of it or nothing: git checks before it writes.
pub(super) fn lay(root: &Path, file: &Path) -> Result<PatchState, WorkspaceError> {
    match apply(root, &["--index"], file).run() {
        Ok(_) => return Ok(PatchState::Applied),
        Err(error) if error.fault == Fault::Machine => return Err(error),
        Err(_) => {}
    }
    let there = apply(root, &["--index", "--reverse", "--check"], file).succeeds()?;
    Ok(if there {
        PatchState::AlreadyThere
    } else {
        PatchState::DoesNotApply
    })
}

fn apply(root: &Path, options: &[&str], file: &Path) -> Git {
    Git::new(root, PrepareStep::Apply)
        .args(["apply", "--whitespace=nowarn", "--no-ignore-whitespace"])
        .args(options)
        .arg("--")
        .arg(file)
}
