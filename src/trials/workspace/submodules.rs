//! Submodules (`--submodules`): checked out at each commit from the user's own clones.
//!
//! In a linked worktree `git submodule init` writes the configuration that all worktrees share:
//! the user's. So nothing is initialised here; each call carries what it needs as `-c`. Their
//! repositories stand in the worktree's administrative folder and go with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::WorkspaceRules;
use super::error::WorkspaceError;
use super::git::{Git, git_dir_of};
use super::gitmodules::{Submodule, absolute_address, submodules_of};
use super::tree;
use crate::model::PrepareStep;

const STEP: PrepareStep = PrepareStep::Submodules;

/// The submodules that were checked out, full paths, nested ones included.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeSet<PathBuf>);

/// Bringing the submodules of one workspace to what its commit says.
pub(super) struct Update<'a> {
    pub(super) rules: &'a WorkspaceRules,
    /// Cleans a submodule's folder as the workspace is cleaned.
    pub(super) clean: &'a dyn Fn(&Path) -> Result<(), WorkspaceError>,
}

/// A checkout that has submodules, and what the user has of the same project.
struct Level {
    root: PathBuf,
    /// The user's checkout of it, which may not exist.
    user_tree: PathBuf,
    /// The user's git folders of it, with their clones of its submodules in `modules`.
    user_gits: Vec<PathBuf>,
    /// Where it was cloned from: what relative addresses are relative to.
    address: String,
}

impl Update<'_> {
    /// Updates all levels. True when a submodule that was there is gone and its folder was
    /// removed, so that the checkout has to be done once more.
    pub(super) fn run(&self, root: &Path, known: &mut Known) -> Result<bool, WorkspaceError> {
        let rules = self.rules;
        let user_gits = [
            Some(rules.common_dir.clone()),
            git_dir_of(&rules.repository_root),
        ];
        let address = remote_of(root)?;
        let level = Level {
            root: root.to_path_buf(),
            user_tree: rules.repository_root.clone(),
            user_gits: user_gits.into_iter().flatten().collect(),
            address: address.unwrap_or_else(|| rules.repository_root.display().to_string()),
        };
        self.level(&level, known)
    }

    fn level(&self, level: &Level, known: &mut Known) -> Result<bool, WorkspaceError> {
        let submodules = submodules_of(&level.root)?;
        let gone = forget_gone(level, &submodules, known)?;
        for submodule in &submodules {
            let place = level.root.join(&submodule.path);
            let clones = user_clones(level, submodule);
            let address = absolute_address(&submodule.address, &level.address);
            let address = configured_address(level, submodule)?.unwrap_or(address);
            check_out(level, submodule, &clones, &address)?;
            known.0.insert(place.clone());
            (self.clean)(&place)?;
            let below = Level {
                user_tree: level.user_tree.join(&submodule.path),
                user_gits: clones,
                root: place,
                address,
            };
            if self.level(&below, known)? {
                force_to(&below.root, &submodule.commit)?;
            }
        }
        Ok(gone)
    }
}

fn check_out(
    level: &Level,
    submodule: &Submodule,
    clones: &[PathBuf],
    address: &str,
) -> Result<(), WorkspaceError> {
    let place = level.root.join(&submodule.path);
    let mut holder = None;
    for clone in clones {
        if has_commit(clone, &submodule.commit)? {
            holder = Some(clone);
            break;
        }
    }
    if let Some(own) = own_repository(&place, &submodule.name) {
        if !has_commit(&own, &submodule.commit)? {
            fetch(&place, holder, address, &submodule.commit)?;
        }
        return force_to(&place, &submodule.commit);
    }
    // What lies there belongs to another commit: git clones only into an empty folder.
    tree::remove(&place)
        .and_then(|()| fs::create_dir_all(&place))
        .map_err(|e| WorkspaceError::io(STEP, "empty", &place, &e))?;
    let own_config = |what: &str| format!("submodule.{}.{what}", submodule.name);
    let mut git = Git::new(&level.root, STEP)
        .set("submodule.active", ".")
        .set(&own_config("update"), "checkout");
    git = match holder {
        // Only for a clone that is the user's own: a commit must not name folders to read.
        Some(clone) => git
            .set(&own_config("url"), clone)
            .set("protocol.file.allow", "always"),
        None => git.set(&own_config("url"), address),
    };
    git = git.args(["submodule", "--quiet", "update", "--force", "--checkout"]);
    if let Some(reference) = holder.or(clones.first()) {
        git = git.arg("--reference").arg(reference);
    }
    git.arg("--").arg(&submodule.path).run()?;
    if own_repository(&place, &submodule.name).is_none() {
        let detail = format!("git left no checkout of {}", submodule.path.display());
        return Err(WorkspaceError::machine(STEP, detail));
    }
    Ok(())
}

/// Removes the folders of submodules directly in this level that its commit no longer has.
fn forget_gone(
    level: &Level,
    now: &[Submodule],
    known: &mut Known,
) -> Result<bool, WorkspaceError> {
    let here: BTreeSet<_> = now.iter().map(|s| level.root.join(&s.path)).collect();
    let below = |place: &Path| place.starts_with(&level.root) && place != level.root;
    // Inside another submodule of this level: that one's own level decides.
    let nested = |place: &Path| {
        let others = known.0.iter().chain(&here);
        others
            .filter(|other| below(other))
            .any(|other| other != place && place.starts_with(other))
    };
    let gone: Vec<_> = known
        .0
        .iter()
        .filter(|place| below(place) && !here.contains(*place) && !nested(place))
        .cloned()
        .collect();
    for place in &gone {
        tree::remove(place).map_err(|e| WorkspaceError::io(STEP, "remove", place, &e))?;
        known.0.retain(|other| !other.starts_with(place));
    }
    Ok(!gone.is_empty())
}

/// The repository that a checked out submodule belongs to, if it is the one of that name.
fn own_repository(place: &Path, name: &str) -> Option<PathBuf> {
    let own = git_dir_of(place)?;
    let own = fs::canonicalize(own).ok()?;
    own.ends_with(Path::new("modules").join(name))
        .then_some(own)
}

/// The user's clones of a submodule: kept beside the repository, or in the old way in their tree.
fn user_clones(level: &Level, submodule: &Submodule) -> Vec<PathBuf> {
    let kept = level
        .user_gits
        .iter()
        .map(|git| git.join("modules").join(&submodule.name));
    let mut clones: Vec<PathBuf> = kept
        .chain(git_dir_of(&level.user_tree.join(&submodule.path)))
        .filter(|clone| clone.join("objects").is_dir())
        .filter_map(|clone| fs::canonicalize(clone).ok())
        .collect();
    clones.dedup();
    clones
}

fn has_commit(git_dir: &Path, commit: &str) -> Result<bool, WorkspaceError> {
    Git::new(git_dir, STEP)
        .only_in(git_dir)
        .args(["cat-file", "-e"])
        .arg(format!("{commit}^{{commit}}"))
        .succeeds()
}

fn fetch(
    place: &Path,
    holder: Option<&PathBuf>,
    address: &str,
    commit: &str,
) -> Result<(), WorkspaceError> {
    let git = Git::new(place, STEP);
    let git = match holder {
        Some(clone) => git
            .set("protocol.file.allow", "always")
            .args(["fetch", "--quiet", "--no-tags", "--"])
            .arg(clone),
        None => git
            .guarded()
            .args(["fetch", "--quiet", "--no-tags", "--"])
            .arg(address),
    };
    git.arg(commit).run().map(drop)
}

fn force_to(place: &Path, commit: &str) -> Result<(), WorkspaceError> {
    Git::new(place, STEP)
        .args(["checkout", "--quiet", "--force", "--detach", commit, "--"])
        .run()
        .map(drop)
}

fn remote_of(root: &Path) -> Result<Option<String>, WorkspaceError> {
    config(root, "remote.origin.url")
}

/// The address that the user's configuration gives a submodule: it wins over the commit's.
fn configured_address(
    level: &Level,
    submodule: &Submodule,
) -> Result<Option<String>, WorkspaceError> {
    config(&level.root, &format!("submodule.{}.url", submodule.name))
}

fn config(root: &Path, key: &str) -> Result<Option<String>, WorkspaceError> {
    // A key that is not set is told by the exit status, as an unreadable file is.
    let out = Git::new(root, STEP)
        .args(["config", "--default", "", "--get", key])
        .run()?;
    let value = String::from_utf8_lossy(&out).trim_end().to_owned();
    Ok((!value.is_empty()).then_some(value))
}
