//! Links (`--link`): untracked inputs of the user's (data, weights) shown in each checkout.
//!
//! A link stands only where the checkout has nothing. All links are taken away before git moves
//! or cleans the worktree, so git never meets one of ours.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::tree;

/// A path that cannot be linked.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LinkError {
    /// There is nothing there.
    #[error("--link {}: there is no such file or folder in {}", .path.display(), .root.display())]
    Missing {
        /// The path as given.
        path: PathBuf,
        /// The user's checkout.
        root: PathBuf,
    },
    /// It is not in the checkout.
    #[error("--link {}: expected a path inside the checkout, relative to its root", .0.display())]
    NotInside(PathBuf),
}

/// Checks, before a session starts, that every path to link is there.
///
/// # Errors
/// For the first that is missing, or is not a path below `root`.
pub fn check_links(root: &Path, links: &[PathBuf]) -> Result<(), LinkError> {
    for path in links {
        if !tree::is_inner(path) {
            return Err(LinkError::NotInside(path.clone()));
        }
        if !root.join(path).exists() {
            return Err(LinkError::Missing {
                path: path.clone(),
                root: root.to_path_buf(),
            });
        }
    }
    Ok(())
}

/// The links and folders that were laid into one checkout.
#[derive(Debug, Default)]
pub(super) struct Laid {
    /// (link, what it leads to).
    links: Vec<(PathBuf, PathBuf)>,
    /// Folders made for them, outermost first.
    folders: Vec<PathBuf>,
}

impl Laid {
    /// Links `path` of the user's tree into the checkout, or, where both have a folder, those of
    /// its children that the checkout lacks.
    pub(super) fn lay(&mut self, user: &Path, root: &Path, path: &Path) -> io::Result<()> {
        let source = user.join(path);
        let target = root.join(path);
        match fs::symlink_metadata(&target) {
            Err(error) if is_absence(&error) => {
                let (target, made) = tree::make_way(root, path)?;
                self.folders.extend(made);
                symlink(&source, &target)?;
                self.links.push((target, source));
                Ok(())
            }
            Err(error) => Err(error),
            Ok(meta) if meta.is_dir() && source.is_dir() => {
                for child in fs::read_dir(&source)? {
                    let name = child?.file_name();
                    if name != ".git" {
                        self.lay(user, root, &path.join(name))?;
                    }
                }
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Removes the links that still are ours, and the folders made for them that are empty.
    pub(super) fn take_away(&mut self) -> io::Result<()> {
        for (link, source) in self.links.drain(..) {
            if fs::read_link(&link).is_ok_and(|to| to == source) {
                fs::remove_file(&link)?;
            }
        }
        for folder in self.folders.drain(..).rev() {
            // Not empty: the trial wrote there, and cleaning decides.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}

/// Nothing is there, or something on the way is no folder.
fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
