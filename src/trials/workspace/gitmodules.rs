//! What a commit says of its submodules: `.gitmodules` and the index, read by git.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::WorkspaceError;
use super::git::{Git, path_from};
use super::tree;
use crate::model::PrepareStep;

const STEP: PrepareStep = PrepareStep::Submodules;

/// What a commit says of a submodule.
#[derive(Debug, Default)]
pub(super) struct Submodule {
    pub(super) name: String,
    /// Relative to the level's root.
    pub(super) path: PathBuf,
    pub(super) address: String,
    pub(super) commit: String,
}

/// The submodules that `.gitmodules` names and the index has.
pub(super) fn submodules_of(root: &Path) -> Result<Vec<Submodule>, WorkspaceError> {
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

/// Resolves `./x` and `../x` against the address of the checkout that names the submodule.
pub(super) fn absolute_address(address: &str, base: &str) -> String {
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
