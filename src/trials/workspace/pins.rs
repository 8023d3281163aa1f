//! Pins: files of today, laid over every checkout, so that the test stays while the code moves.
//!
//! They are copied once, when the session is opened, and from then on come from that copy: an edit
//! in the user's tree in mid-session changes nothing.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::tree;

/// Bytes that a pinned file may have: it is compared and copied at every checkout.
pub const MAX_PIN_BYTES: u64 = 64 << 20;

/// A file that cannot be pinned.
#[derive(Debug, Error)]
pub enum PinError {
    /// There is no such file.
    #[error("cannot pin {}: there is no such file in {}", .path.display(), .root.display())]
    Missing {
        /// Relative to the root.
        path: PathBuf,
        /// The user's checkout, or the session's copy.
        root: PathBuf,
    },
    /// It is a folder or a device.
    #[error("cannot pin {}: expected a regular file; name its files one by one, or show a folder \
             in each checkout with --link", .0.display())]
    NotAFile(PathBuf),
    /// It is not in the checkout.
    #[error("cannot pin {}: expected a path inside the checkout, relative to its root", .0.display())]
    NotInside(PathBuf),
    /// It is too large to copy at every checkout.
    #[error("cannot pin {}: {} MiB are too large to copy to every checkout (at most {}); use --link {}",
            .path.display(), .bytes >> 20, MAX_PIN_BYTES >> 20, .path.display())]
    TooLarge {
        /// Relative to the root.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// Reading or writing failed.
    #[error("cannot copy {} for pinning: {source}", .path.display())]
    Io {
        /// Relative to the root.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Copies of the pinned files, in a folder of the session's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinSnapshot {
    store: PathBuf,
    files: Vec<PathBuf>,
}

impl PinSnapshot {
    /// Copies `files` (relative to `root`) with content, mode and time of change into `store`.
    /// A symbolic link is pinned as the file that it leads to when that is inside the tree, else
    /// as a link to it.
    ///
    /// # Errors
    /// When a file is missing, is none, lies outside the tree, is larger than [`MAX_PIN_BYTES`],
    /// or cannot be copied.
    pub fn take(root: &Path, files: &[PathBuf], store: &Path) -> Result<Self, PinError> {
        for path in files {
            take_one(root, path, store)?;
        }
        Ok(Self {
            store: store.to_path_buf(),
            files: files.to_vec(),
        })
    }

    /// The copies that an earlier [`PinSnapshot::take`] left in `store`.
    ///
    /// # Errors
    /// When one of them is missing.
    pub fn open(store: &Path, files: &[PathBuf]) -> Result<Self, PinError> {
        for path in files {
            if !tree::is_inner(path) {
                return Err(PinError::NotInside(path.clone()));
            }
            if fs::symlink_metadata(store.join(path)).is_err() {
                return Err(PinError::Missing {
                    path: path.clone(),
                    root: store.to_path_buf(),
                });
            }
        }
        Ok(Self {
            store: store.to_path_buf(),
            files: files.to_vec(),
        })
    }

    /// The pinned files, relative to the root.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Those that differ in the user's tree from what was pinned, in content, mode or existence.
    pub fn changed_in(&self, root: &Path) -> Vec<PathBuf> {
        let differs = |path: &&PathBuf| {
            let (kept, now) = (self.store.join(path), root.join(path));
            let same = if kept.is_symlink() {
                fs::canonicalize(&now)
                    .is_ok_and(|real| fs::read_link(&kept).is_ok_and(|to| to == real))
            } else {
                same_file(&kept, &now).unwrap_or(false)
            };
            !same
        };
        self.files.iter().filter(differs).cloned().collect()
    }

    /// Lays every pinned file over a checkout. `root` must be canonical.
    pub(super) fn lay(&self, root: &Path) -> Result<(), (PathBuf, io::Error)> {
        for path in &self.files {
            lay_one(&self.store.join(path), root, path).map_err(|e| (path.clone(), e))?;
        }
        Ok(())
    }
}

fn take_one(root: &Path, path: &Path, store: &Path) -> Result<(), PinError> {
    if !tree::is_inner(path) {
        return Err(PinError::NotInside(path.to_path_buf()));
    }
    let io = |source| PinError::Io {
        path: path.to_path_buf(),
        source,
    };
    let source = root.join(path);
    let (Ok(meta), Ok(real)) = (fs::metadata(&source), fs::canonicalize(&source)) else {
        return Err(PinError::Missing {
            path: path.to_path_buf(),
            root: root.to_path_buf(),
        });
    };
    if !meta.is_file() {
        return Err(PinError::NotAFile(path.to_path_buf()));
    }
    let target = store.join(path);
    fs::create_dir_all(target.parent().unwrap_or(store)).map_err(io)?;
    tree::remove(&target).map_err(io)?;
    if !real.starts_with(fs::canonicalize(root).map_err(io)?) {
        return symlink(&real, &target).map_err(io);
    }
    if meta.len() > MAX_PIN_BYTES {
        return Err(PinError::TooLarge {
            path: path.to_path_buf(),
            bytes: meta.len(),
        });
    }
    copy(&real, &target).map_err(io)
}

fn lay_one(kept: &Path, root: &Path, path: &Path) -> io::Result<()> {
    let (target, _) = tree::make_way(root, path)?;
    let standing = fs::symlink_metadata(&target).ok();
    if kept.is_symlink() {
        let to = fs::read_link(kept)?;
        if fs::read_link(&target).is_ok_and(|now| now == to) {
            return Ok(());
        }
        tree::remove(&target)?;
        return symlink(to, &target);
    }
    if standing.is_some_and(|meta| meta.is_file()) && same_file(kept, &target)? {
        return Ok(());
    }
    tree::remove(&target)?;
    copy(kept, &target)
}

/// Content, mode and time of change. The time is kept so that tools that compare times (make,
/// Python's bytecode) see one unchanged file at every commit.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let meta = fs::metadata(from)?;
    fs::copy(from, to)?;
    let mode = meta.permissions().mode();
    // A read-only file could not be given its time: owner's write comes off last.
    fs::set_permissions(to, Permissions::from_mode(mode | 0o200))?;
    File::options()
        .write(true)
        .open(to)?
        .set_modified(meta.modified()?)?;
    fs::set_permissions(to, meta.permissions())
}

fn same_file(one: &Path, other: &Path) -> io::Result<bool> {
    let (a, b) = (fs::metadata(one)?, fs::metadata(other)?);
    let modes = a.permissions().mode() & 0o777 == b.permissions().mode() & 0o777;
    if !b.is_file() || a.len() != b.len() || !modes {
        return Ok(false);
    }
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let n = one.read(&mut left)?;
        if n == 0 {
            return Ok(true);
        }
        // Lengths are equal; a file that shrinks meanwhile differs.
        match other.read_exact(&mut right[..n]) {
            Ok(()) if left[..n] == right[..n] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}
