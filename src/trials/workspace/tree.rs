//! Changes to a folder that never leave it: nothing here follows a symbolic link outwards.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// How often a removal is tried while something else still writes there.
const TRIES: u32 = 100;
/// Seconds between the tries: 20 ms, so 2 s in all.
const PAUSE: Duration = Duration::from_millis(20);

/// Removes a file, a link (not what it leads to) or a folder with all that is in it. What is not
/// there is no error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        let error = match remove_once(path) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        tries += 1;
        match error.kind() {
            ErrorKind::NotFound if fs::symlink_metadata(path).is_err() => return Ok(()),
            // A folder that a build made read-only.
            ErrorKind::PermissionDenied if tries == 1 => make_writable(path)?,
            // A git that outlived a killed fbisect is still writing.
            ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound if tries < TRIES => {
                std::thread::sleep(PAUSE);
            }
            _ => return Err(error),
        }
    }
}

fn remove_once(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Gives the owner all rights on every folder of a tree.
pub(super) fn make_writable(dir: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() {
        return Ok(());
    }
    let mode = meta.permissions().mode();
    if mode & 0o700 != 0o700 {
        fs::set_permissions(dir, Permissions::from_mode(mode | 0o700))?;
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

/// Makes the folders that lead to `relative` in `root` and returns the full path, with the folders
/// that were made, outermost first. A file in the way is removed, and so is a link that leads out
/// of `root`; a link that leads to another folder in it is followed.
///
/// `root` must be canonical, `relative` free of `..`.
pub(super) fn make_way(root: &Path, relative: &Path) -> io::Result<(PathBuf, Vec<PathBuf>)> {
    let mut at = root.to_path_buf();
    let mut made = Vec::new();
    let folders = relative.parent().unwrap_or(Path::new(""));
    for component in folders.components() {
        let Component::Normal(name) = component else {
            continue;
        };
        at.push(name);
        if is_folder_within(root, &at) {
            continue;
        }
        if fs::symlink_metadata(&at).is_ok() {
            remove(&at)?;
        }
        fs::create_dir(&at)?;
        made.push(at.clone());
    }
    if let Some(name) = relative.file_name() {
        at.push(name);
    }
    Ok((at, made))
}

fn is_folder_within(root: &Path, path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|real| real.starts_with(root) && real.is_dir())
}

/// Whether a path names a place below a root: relative, not empty, and without `..` or `.git`.
pub(super) fn is_inner(relative: &Path) -> bool {
    let mut components = relative.components().peekable();
    components.peek().is_some()
        && components.all(|part| matches!(part, Component::Normal(name) if name != ".git"))
}

/// The path with every link resolved, also where its last parts do not exist yet.
pub(super) fn canonical_as_far_as_it_exists(path: &Path) -> io::Result<PathBuf> {
    let mut missing = Vec::new();
    let mut at = std::path::absolute(path)?;
    loop {
        match fs::canonicalize(&at) {
            Ok(real) => {
                return Ok(missing
                    .iter()
                    .rev()
                    .fold(real, |real, name| real.join(name)));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Err(error) => {
                let Some(name) = at.file_name() else {
                    return Err(error);
                };
                missing.push(name.to_owned());
                at.pop();
            }
        }
    }
}

/// Whether a path is known to lie on a disk of this machine, or in its memory.
#[cfg(target_os = "linux")]
pub(super) fn is_on_local_disk(path: &Path) -> bool {
    use nix::sys::statfs::{
        BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC,
        statfs,
    };
    let local = [
        EXT4_SUPER_MAGIC,
        XFS_SUPER_MAGIC,
        BTRFS_SUPER_MAGIC,
        TMPFS_MAGIC,
        OVERLAYFS_SUPER_MAGIC,
    ];
    statfs(path).is_ok_and(|found| local.contains(&found.filesystem_type()))
}

/// Whether a path is known to lie on a disk of this machine: not told on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_on_local_disk(_path: &Path) -> bool {
    false
}
