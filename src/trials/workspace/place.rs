//! Where worktrees stand, how they are recognised as ours, and how leftovers are removed.
//!
//! `<base>/<repository>-<8 hex digits>/<session>/<name>`: a folder of a session is ours as a whole;
//! of `<common>/worktrees` only those entries are that lead into it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::error::WorkspaceError;
use super::git::path_from;
use super::tree;
use crate::model::PrepareStep;

/// The variable that names the base folder when no option does.
pub const BASE_VARIABLE: &str = "FBISECT_WORKSPACE_DIR";

/// No folder for the worktrees.
#[derive(Debug, Error)]
pub enum BaseDirError {
    /// It lies in the repository.
    #[error(
        "the workspace folder {} lies inside your checkout {}: build tools would find the project \
         above it and test a mixture; choose one elsewhere with --workspace-dir or {BASE_VARIABLE}",
        .base.display(), .tree.display()
    )]
    InsideTree {
        /// The folder.
        base: PathBuf,
        /// The user's checkout.
        tree: PathBuf,
    },
    /// Nothing says where.
    #[error("no cache folder is known (HOME is not set): give --workspace-dir or {BASE_VARIABLE}")]
    Unknown,
    /// It cannot be looked at.
    #[error("cannot use the workspace folder {}: {source}", .base.display())]
    Io {
        /// The folder.
        base: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The folder under which all worktrees stand, links resolved: `explicit` (`--workspace-dir`), else
/// [`BASE_VARIABLE`], else `fbisect` in the user's cache folder. It is not made yet.
///
/// # Errors
/// When it lies inside one of `trees` (the user's checkout, its git folder), or none is known.
pub fn base_dir(explicit: Option<&Path>, trees: &[&Path]) -> Result<PathBuf, BaseDirError> {
    let variable = std::env::var_os(BASE_VARIABLE).filter(|value| !value.is_empty());
    let chosen = explicit
        .map(Path::to_path_buf)
        .or(variable.map(PathBuf::from))
        .or_else(|| dirs::cache_dir().map(|cache| cache.join("fbisect")))
        .ok_or(BaseDirError::Unknown)?;
    let real = |path: &Path| {
        tree::canonical_as_far_as_it_exists(path).map_err(|source| BaseDirError::Io {
            base: chosen.clone(),
            source,
        })
    };
    let base = real(&chosen)?;
    for tree in trees {
        let tree = real(tree)?;
        if base.starts_with(&tree) {
            return Err(BaseDirError::InsideTree { base, tree });
        }
    }
    Ok(base)
}

/// The folder of a session's worktrees. `None` when the session's name is no plain file name.
pub(super) fn session_dir(common_dir: &Path, base_dir: &Path, session: &str) -> Option<PathBuf> {
    if !is_plain(session) {
        return None;
    }
    Some(base_dir.join(repository_name(common_dir)).join(session))
}

/// Makes a folder and those above it, and resolves links. Another slot that removes its worktree
/// also removes the folders that this leaves empty, possibly between two of our steps.
pub(super) fn make(dir: &Path) -> io::Result<PathBuf> {
    let attempt = || fs::create_dir_all(dir).and_then(|()| fs::canonicalize(dir));
    let mut made = attempt();
    for _ in 0..100 {
        match &made {
            // "Exists" is also what a folder gives that went between the making and the look at it.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists
                ) => {}
            Ok(_) | Err(_) => break,
        }
        made = attempt();
    }
    made
}

/// Whether a name is one component that cannot lead elsewhere.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

fn repository_name(common_dir: &Path) -> String {
    let common = fs::canonicalize(common_dir).unwrap_or_else(|_| common_dir.to_path_buf());
    let named = match common.file_name() {
        Some(name) if name == ".git" => common.parent().and_then(Path::file_name),
        name => name,
    };
    let name = named.unwrap_or_default().to_string_lossy();
    // Paths with blanks or colons break shebangs and PYTHONPATH.
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name
        .trim_end_matches(".git")
        .trim_start_matches('.')
        .chars()
        .map(|c| if safe(c) { c } else { '-' })
        .collect();
    let digest = Sha256::digest(common.as_os_str().as_encoded_bytes());
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    format!("{name}-{number:08x}")
}

/// Removes a worktree's folder and its administrative folder, which must lie directly in
/// `<common>/worktrees`, then the folders above that this leaves empty.
pub(super) fn remove_worktree(
    common_dir: &Path,
    root: &Path,
    admin: &Path,
) -> Result<(), WorkspaceError> {
    let step = PrepareStep::Checkout;
    let failed = |path: &Path, error| WorkspaceError::io(step, "remove", path, &error);
    tree::remove(root).map_err(|error| failed(root, error))?;
    if is_admin_folder(common_dir, admin) {
        tree::remove(admin).map_err(|error| failed(admin, error))?;
    }
    remove_if_empty(&common_dir.join("worktrees"));
    if let Some(session) = root.parent() {
        remove_empty_session(session);
    }
    Ok(())
}

fn is_admin_folder(common_dir: &Path, admin: &Path) -> bool {
    let parent = admin.parent().and_then(|p| fs::canonicalize(p).ok());
    let worktrees = fs::canonicalize(common_dir.join("worktrees")).ok();
    parent.is_some() && parent == worktrees && admin.file_name().is_some()
}

/// As git does with `worktrees`: an empty folder is no trace to leave.
fn remove_if_empty(dir: &Path) {
    // It fails exactly when the folder is not empty or not there: both are as wanted.
    let _ = fs::remove_dir(dir);
}

pub(super) fn remove_empty_session(session_dir: &Path) {
    remove_if_empty(session_dir);
    if let Some(repository) = session_dir.parent() {
        remove_if_empty(repository);
    }
}

/// Removes what a killed session left: its worktrees, with their entries in
/// `<common>/worktrees`, and nothing else; stale worktrees of the user's own stay. The roots of
/// what was removed, in order.
///
/// Call it only while no process of that session runs any more.
///
/// # Errors
/// When a folder cannot be read or removed, or `session` is no plain file name.
pub fn remove_leftovers(
    common_dir: &Path,
    base_dir: &Path,
    session: &str,
) -> Result<Vec<PathBuf>, WorkspaceError> {
    let step = PrepareStep::Checkout;
    let Some(home) = session_dir(common_dir, base_dir, session) else {
        let detail = format!("'{session}' is no session's name");
        return Err(WorkspaceError::machine(step, detail));
    };
    let home = tree::canonical_as_far_as_it_exists(&home).unwrap_or(home);
    let mut removed = Vec::new();
    for (root, admin) in registered_in(common_dir, &home) {
        remove_worktree(common_dir, &root, &admin)?;
        removed.push(root);
    }
    // Killed before git had registered it, or after its entry was removed.
    if let Ok(entries) = fs::read_dir(&home) {
        for entry in entries.flatten() {
            let path = entry.path();
            tree::remove(&path).map_err(|e| WorkspaceError::io(step, "remove", &path, &e))?;
            removed.push(path);
        }
    }
    remove_empty_session(&home);
    removed.sort();
    Ok(removed)
}

/// The worktrees that git has registered directly in the folder `home`: (root, administrative folder).
fn registered_in(common_dir: &Path, home: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(entries) = fs::read_dir(common_dir.join("worktrees")) else {
        return Vec::new();
    };
    let root_of = |admin: &Path| {
        let text = fs::read(admin.join("gitdir")).ok()?;
        let dot_git = admin.join(path_from(text.trim_ascii_end()));
        // Git writes it relative to the administrative folder when asked to.
        tree::canonical_as_far_as_it_exists(dot_git.parent()?).ok()
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter_map(|admin| Some((root_of(&admin)?, admin)))
        .filter(|(root, _)| root.parent() == Some(home))
        .collect()
}
