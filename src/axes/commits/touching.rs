//! Which commits change one of the chosen paths.
//!
//! A commit touches the paths when their content differs from that in *each* of its parents; a
//! root commit, when it has one of them. (A merge that takes everything at the paths from one
//! parent is as good or bad as that parent, so it cannot be the first bad commit. One that
//! combines two parents' changes can, even without a conflict.) Renames are not followed.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use git2::{ObjectType, Oid};

use super::error::HistoryError;
use super::repo::Repo;
use super::walk::Link;
use crate::model::CommitId;

/// For each link, whether it touches one of the paths.
///
/// # Errors
/// When a path does not lie below the root, and when neither libgit2 (if it is given) nor `git`
/// can read the trees.
pub(super) fn touching(
    repo: &Repo,
    libgit2: Option<&git2::Repository>,
    links: &[Link],
    paths: &[PathBuf],
) -> Result<Vec<bool>, HistoryError> {
    let paths = paths
        .iter()
        .map(|path| components(path))
        .collect::<Result<Vec<_>, _>>()?;
    // A partial clone has no trees for libgit2 to read; git fetches them.
    if let Some(touching) = libgit2.and_then(|libgit2| by_entries(libgit2, links, &paths).ok()) {
        return Ok(touching);
    }
    by_diffs(repo, links, &paths)
}

/// The names on the way from the root to an entry; none for the root itself.
type Names = Vec<Vec<u8>>;

fn components(path: &Path) -> Result<Names, HistoryError> {
    let outside = || HistoryError::PathOutside {
        path: path.to_owned(),
    };
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(outside());
    }
    path.components()
        .filter(|component| *component != Component::CurDir)
        .map(|component| match component {
            Component::Normal(name) => Ok(name.as_bytes().to_vec()),
            _ => Err(outside()),
        })
        .collect()
}

/// What stands at a path: an object and its mode.
type Entry = Option<(Oid, i32)>;

/// Looks entries up in trees, each but once.
struct Lookup<'r> {
    libgit2: &'r git2::Repository,
    paths: &'r [Names],
    /// What is known of a path below a tree: (tree, path, names already walked).
    known: HashMap<(Oid, usize, usize), Entry>,
}

impl Lookup<'_> {
    /// What stands at each path under the root tree `tree`.
    fn entries(&mut self, tree: Oid) -> Result<Vec<Entry>, git2::Error> {
        (0..self.paths.len())
            .map(|path| self.entry(tree, path, 0))
            .collect()
    }

    fn entry(&mut self, tree: Oid, path: usize, depth: usize) -> Result<Entry, git2::Error> {
        let names = &self.paths[path];
        let Some(name) = names.get(depth) else {
            return Ok(Some((tree, 0)));
        };
        if let Some(entry) = self.known.get(&(tree, path, depth)) {
            return Ok(*entry);
        }
        let last = depth + 1 == names.len();
        let found = self.libgit2.find_tree(tree)?.get_name_bytes(name).map(|e| {
            let folder = e.kind() == Some(ObjectType::Tree);
            (e.id(), e.filemode_raw(), folder)
        });
        let entry = match found {
            Some((id, mode, _)) if last => Some((id, mode)),
            Some((id, _, true)) => self.entry(id, path, depth + 1)?,
            Some((_, _, false)) | None => None,
        };
        self.known.insert((tree, path, depth), entry);
        Ok(entry)
    }
}

/// By comparing the entries at the paths, read with libgit2.
fn by_entries(
    libgit2: &git2::Repository,
    links: &[Link],
    paths: &[Names],
) -> Result<Vec<bool>, git2::Error> {
    let mut lookup = Lookup {
        libgit2,
        paths,
        known: HashMap::new(),
    };
    let mut entries: HashMap<&CommitId, Vec<Entry>> = HashMap::with_capacity(links.len());
    let parents = links.iter().flat_map(|link| &link.parents);
    let with_trees = links.iter().map(|link| (&link.id, link.tree));
    for (id, tree) in with_trees.chain(parents.map(|parent| (parent, None))) {
        if entries.contains_key(id) {
            continue;
        }
        let tree = match tree {
            Some(tree) => tree,
            None => libgit2.find_commit(Oid::from_str(id.as_str())?)?.tree_id(),
        };
        entries.insert(id, lookup.entries(tree)?);
    }
    Ok(links
        .iter()
        .map(|link| {
            let own = &entries[&link.id];
            if link.parents.is_empty() {
                own.iter().any(Option::is_some)
            } else {
                link.parents.iter().all(|parent| entries[parent] != *own)
            }
        })
        .collect())
}

/// By counting the parents from which `git diff-tree` sees a difference.
fn by_diffs(repo: &Repo, links: &[Link], paths: &[Names]) -> Result<Vec<bool>, HistoryError> {
    let mut args: Vec<std::ffi::OsString> = [
        "--literal-pathspecs",
        "diff-tree",
        "--stdin",
        "-m",
        "-r",
        "--root",
        "--raw",
        "--no-renames",
        "--ignore-submodules=none",
        "--end-of-options",
        "--",
    ]
    .map(Into::into)
    .to_vec();
    // The root is every path, and no path at all means every path too.
    if !paths.iter().any(Vec::is_empty) {
        let joined = paths.iter().map(|names| names.join(&b'/'));
        args.extend(joined.map(|path| std::ffi::OsStr::from_bytes(&path).to_owned()));
    }
    let mut input = String::new();
    for link in links {
        // Parents after the commit stand in for its own: here, only those of this search.
        input.push_str(link.id.as_str());
        for parent in &link.parents {
            input.push(' ');
            input.push_str(parent.as_str());
        }
        input.push('\n');
    }
    let answer = repo.git().ask_with_input(args, Some(input.into_bytes()))?;
    let text = answer.text()?;
    // A commit's hash stands on a line of its own before its differences from a parent, if any.
    let mut different: HashMap<&str, usize> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with(':')) {
        *different.entry(line).or_default() += 1;
    }
    Ok(links
        .iter()
        .map(|link| {
            let count = different.get(link.id.as_str()).copied().unwrap_or(0);
            count > 0 && count >= link.parents.len()
        })
        .collect())
}
