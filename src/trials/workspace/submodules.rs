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
use super::git::{Git, git_dir_of, path_from};
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

/// What a commit says of a submodule.
#[derive(Debug, Default)]
struct Submodule {
    name: String,
    /// Relative to the level's root.
    path: PathBuf,
    address: String,
    commit: String,
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

/// The submodules that `.gitmodules` names and the index has.
fn submodules_of(root: &Path) -> Result<Vec<Submodule>, WorkspaceError> {
    let file = root.join(".gitmodules");
    if !fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file()) {
        return Ok(Vec::new());
    }
    let listed = Git::new(root, STEP)
        .args(["config", "-z", "--file", ".gitmodules", "--list"])
        .run()?;
    let mut named = parse_modules(&listed);
    named.retain(|s| tree::is_inner(&s.path) && is_safe_name(&s.name));
    if named.is_empty() {
        return Ok(named);
    }
    let entries = Git::new(root, STEP)
        .args(["--literal-pathspecs", "ls-files", "--stage", "-z", "--"])
        .args(named.iter().map(|s| &s.path))
        .run()?;
    for entry in entries.split(|&b| b == 0) {
        let Some(tab) = entry.iter().position(|&b| b == b'\t') else {
            continue;
        };
        let mut words = entry[..tab].split(|&b| b == b' ');
        if words.next() != Some(b"160000") {
            continue;
        }
        let path = path_from(&entry[tab + 1..]);
        let commit = String::from_utf8_lossy(words.next().unwrap_or_default());
        if let Some(submodule) = named.iter_mut().find(|s| s.path == path) {
            submodule.commit = commit.into_owned();
        }
    }
    named.retain(|s| !s.commit.is_empty());
    Ok(named)
}

/// Entries of `git config -z --list`: `submodule.<name>.<key>\n<value>\0`.
fn parse_modules(listed: &[u8]) -> Vec<Submodule> {
    let mut found: Vec<Submodule> = Vec::new();
    for entry in listed.split(|&b| b == 0) {
        let text = String::from_utf8_lossy(entry);
        let Some((key, value)) = text.split_once('\n') else {
            continue;
        };
        let Some((name, key)) = key
            .strip_prefix("submodule.")
            .and_then(|rest| rest.rsplit_once('.'))
        else {
            continue;
        };
        let index = found
            .iter()
            .position(|s| s.name == name)
            .unwrap_or_else(|| {
                found.push(Submodule {
                    name: name.to_owned(),
                    ..Submodule::default()
                });
                found.len() - 1
            });
        match key {
            "path" => found[index].path = PathBuf::from(value),
            "url" => value.clone_into(&mut found[index].address),
            _ => {}
        }
    }
    found
}

/// As git requires: a name becomes a path below `modules`.
fn is_safe_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('=') && !name.split(['/', '\\']).any(|part| part == "..")
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

/// Resolves `./x` and `../x` against the address of the checkout that names the submodule.
fn absolute_address(address: &str, base: &str) -> String {
    if !address.starts_with("./") && !address.starts_with("../") {
        return address.to_owned();
    }
    let (mut base, mut rest) = (base.trim_end_matches('/'), address);
    loop {
        if let Some(below) = rest.strip_prefix("./") {
            rest = below;
        } else if let Some(below) = rest.strip_prefix("../") {
            rest = below;
            let Some(cut) = base.rfind(['/', ':']) else {
                return format!("{base}/{rest}");
            };
            if base[cut..].starts_with(':') {
                return format!("{}{rest}", &base[..=cut]);
            }
            base = &base[..cut];
        } else {
            return format!("{base}/{rest}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_addresses_are_taken_from_the_remote() {
        let cases = [
            (
                "../lib.git",
                "https://h.example/o/app.git",
                "https://h.example/o/lib.git",
            ),
            (
                "../../p/lib",
                "https://h.example/o/app",
                "https://h.example/p/lib",
            ),
            ("./lib", "/srv/app/", "/srv/app/lib"),
            ("../lib", "git@h.example:app", "git@h.example:lib"),
            ("https://x.example/l", "/srv/app", "https://x.example/l"),
        ];
        for (address, base, expected) in cases {
            assert_eq!(absolute_address(address, base), expected);
        }
    }

    #[test]
    fn names_with_dots_are_parsed_and_escapes_refused() {
        let listed = b"submodule.a.b.path\nlib/a\0submodule.a.b.url\n../a\0core.x\n1\0";
        let found = parse_modules(listed);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "a.b");
        assert_eq!(found[0].path, PathBuf::from("lib/a"));
        assert!(!is_safe_name("../../config"));
    }
}
