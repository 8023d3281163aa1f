//! Tells by a walk of our own that a checkout holds nothing untracked, so that no `git clean` is
//! needed: the usual case between two trials, at a fraction of that process's time.
//!
//! Only the answer "nothing" is ever acted on. What to remove, git decides: it knows the ignore
//! rules, and every form of index that is not read here.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::tree;

/// The mode of an index entry that stands for a submodule.
const GITLINK: u32 = 0o160_000;

/// What is expected in a checkout, sorted by path.
struct Expected {
    path: Vec<u8>,
    submodule: bool,
}

enum Kind<'a> {
    File,
    Submodule,
    /// A folder with these below.
    Folder(&'a [Expected]),
}

/// What a checkout may hold besides what its index lists.
pub(super) struct Besides<'a> {
    /// Files relative to its top.
    pub(super) files: &'a [PathBuf],
    /// Untracked folders of this name are removed on the way.
    pub(super) removed: Option<&'a str>,
}

/// Whether a checkout holds only what its index lists, `besides` apart. False in any doubt.
pub(super) fn is_absent(root: &Path, index: &Path, besides: &Besides<'_>) -> bool {
    let Ok(index) = git2::Index::open(index) else {
        return false;
    };
    let listed = index.iter().map(|entry| Expected {
        submodule: entry.mode == GITLINK,
        path: entry.path,
    });
    let own = besides.files.iter().map(|path| Expected {
        path: path.as_os_str().as_bytes().to_vec(),
        submodule: false,
    });
    let mut expected: Vec<_> = listed.chain(own).collect();
    // Nearly sorted already; git's order is by bytes, as this one.
    expected.sort_by(|a, b| a.path.cmp(&b.path));
    holds_only(root, &expected, 0, besides).unwrap_or(false)
}

/// Whether `dir` holds only what is expected, whose paths begin with it: `depth` bytes.
fn holds_only(
    dir: &Path,
    expected: &[Expected],
    depth: usize,
    besides: &Besides<'_>,
) -> io::Result<bool> {
    let known = by_name(expected, depth);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (name, is_dir) = (entry.file_name(), entry.file_type()?.is_dir());
        let fine = match known.get(name.as_bytes()) {
            Some(Kind::File) => !is_dir,
            Some(Kind::Submodule) => is_dir,
            Some(Kind::Folder(below)) => {
                let depth = depth + name.len() + 1;
                is_dir && holds_only(&entry.path(), below, depth, besides)?
            }
            None if depth == 0 && name == ".git" => true,
            None if is_dir && besides.removed.is_some_and(|removed| name == removed) => {
                tree::remove(&entry.path())?;
                true
            }
            None => false,
        };
        if !fine {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The names expected in one folder.
fn by_name(expected: &[Expected], depth: usize) -> BTreeMap<&[u8], Kind<'_>> {
    let mut known = BTreeMap::new();
    let mut rest = expected;
    while let Some(first) = rest.first() {
        let tail = first.path.get(depth..).unwrap_or_default();
        let Some(slash) = tail.iter().position(|&b| b == b'/') else {
            let kind = if first.submodule {
                Kind::Submodule
            } else {
                Kind::File
            };
            known.insert(tail, kind);
            rest = &rest[1..];
            continue;
        };
        let within = &first.path[..=depth + slash];
        let below = rest.partition_point(|e| e.path.starts_with(within));
        known.insert(&tail[..slash], Kind::Folder(&rest[..below]));
        rest = &rest[below..];
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(root: &Path, listed: &[&str]) -> bool {
        let mut expected: Vec<_> = listed
            .iter()
            .map(|path| Expected {
                path: path.as_bytes().to_vec(),
                submodule: false,
            })
            .collect();
        expected.sort_by(|a, b| a.path.cmp(&b.path));
        let besides = Besides {
            files: &[],
            removed: Some("__pycache__"),
        };
        holds_only(root, &expected, 0, &besides).unwrap()
    }

    #[test]
    fn anything_not_listed_is_seen_at_every_depth() {
        let temp = tempfile::TempDir::new().unwrap();
        let root = temp.path();
        for file in ["a/b/c.txt", "a/b.txt", "a-b/x", "z", ".git/HEAD"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        let all = ["a/b/c.txt", "a/b.txt", "a-b/x", "z"];
        assert!(holds(root, &all));
        assert!(holds(root, &[&all[..], &["not/there"]].concat()));
        for missing in 0..all.len() {
            let mut listed = all.to_vec();
            listed.remove(missing);
            assert!(!holds(root, &listed), "{}", all[missing]);
        }
        fs::create_dir(root.join("a/b/empty")).unwrap();
        assert!(!holds(root, &all));
        fs::rename(root.join("a/b/empty"), root.join("a/b/__pycache__")).unwrap();
        assert!(holds(root, &all));
        assert!(!root.join("a/b/__pycache__").exists());
    }
}
