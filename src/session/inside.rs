//! Paths that a user typed, as they stand in a plan.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Paths as they stand in a plan: relative to the checkout's top, whatever they were typed from.
///
/// # Errors
/// For one that lies outside the checkout.
pub fn inside(root: &Path, cwd: &Path, flag: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let top = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    paths
        .iter()
        .map(|path| {
            let full = lexical(&cwd.join(path));
            // The last name is kept as it is: a link is pinned or linked as a link.
            let real = match (full.parent().map(fs::canonicalize), full.file_name()) {
                (Some(Ok(parent)), Some(name)) => parent.join(name),
                _ => full.clone(),
            };
            let relative = real.strip_prefix(&top).or_else(|_| full.strip_prefix(root));
            relative.map(Path::to_path_buf).map_err(|_| {
                Error::usage(format!(
                    "{flag} {}: not inside the checkout {}",
                    path.display(),
                    root.display()
                ))
            })
        })
        .collect()
}

/// `a/./b/../c` as `a/c`, without asking the file system.
fn lexical(path: &Path) -> PathBuf {
    use std::path::Component;
    path.components().fold(PathBuf::new(), |mut out, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
        out
    })
}
