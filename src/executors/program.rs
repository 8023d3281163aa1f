//! Which file a command's first word names, found as a shell finds it.
//!
//! Knows paths and permissions only; it starts nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::ProcessEnd;

/// Where a shell looks when there is no `PATH` at all.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The absolute path of `word` for a command that runs in `cwd` with `path` as its `PATH`.
///
/// # Errors
///
/// [`ProcessEnd::SpawnFailed`]: 127 when there is no such file, 126 when it cannot be executed.
pub(super) fn find(word: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<PathBuf, ProcessEnd> {
    if word.is_empty() {
        return Err(failed(127, "the command's name is empty".into()));
    }
    if word.as_bytes().contains(&b'/') {
        let file = cwd.join(word);
        return match fitness(&file) {
            Fitness::Runs => Ok(file),
            Fitness::Missing => Err(failed(127, format!("{}: not found", file.display()))),
            Fitness::Unfit(why) => Err(failed(126, format!("{}: {why}", file.display()))),
        };
    }
    let folders = path.map_or_else(|| OsString::from(DEFAULT_PATH), OsStr::to_owned);
    let mut unfit = None;
    for folder in std::env::split_paths(&folders) {
        // An empty entry means the current directory; a relative one starts there.
        let file = cwd.join(folder).join(word);
        match fitness(&file) {
            Fitness::Runs => return Ok(file),
            Fitness::Unfit(_) if file.is_dir() => {}
            Fitness::Unfit(why) => unfit = unfit.or(Some((file, why))),
            Fitness::Missing => {}
        }
    }
    Err(match unfit {
        Some((file, why)) => failed(126, format!("{}: {why}", file.display())),
        None => failed(
            127,
            format!("{}: not found on the PATH", Path::new(word).display()),
        ),
    })
}

enum Fitness {
    Runs,
    Missing,
    Unfit(&'static str),
}

fn fitness(file: &Path) -> Fitness {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Fitness::Unfit("permission denied")
        }
        Err(_) => Fitness::Missing,
        Ok(data) if data.is_dir() => Fitness::Unfit("is a directory"),
        Ok(_) if access(file, AccessFlags::X_OK).is_err() => {
            Fitness::Unfit("not executable (chmod +x?)")
        }
        Ok(_) => Fitness::Runs,
    }
}

fn failed(code: i32, error: String) -> ProcessEnd {
    ProcessEnd::SpawnFailed { code, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn code(found: Result<PathBuf, ProcessEnd>) -> i32 {
        match found {
            Err(ProcessEnd::SpawnFailed { code, .. }) => code,
            other => panic!("expected a spawn failure, got {other:?}"),
        }
    }

    #[test]
    fn words_are_found_where_a_shell_finds_them() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir_all(bin.join("folder")).unwrap();
        for (name, mode) in [("tool", 0o755), ("text", 0o644)] {
            let file = bin.join(name);
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        let find = |word: &str, path: &str| {
            super::find(OsStr::new(word), dir.path(), Some(OsStr::new(path)))
        };
        assert_eq!(find("bin/tool", "").unwrap(), bin.join("tool"));
        assert_eq!(
            find("./bin/tool", "").unwrap(),
            dir.path().join("./bin/tool")
        );
        assert_eq!(find("tool", "/nowhere:bin").unwrap(), bin.join("tool"));
        assert_eq!(code(find("tool", "/nowhere")), 127);
        assert_eq!(code(find("", "bin")), 127);
        assert_eq!(code(find("folder", "bin")), 127);
        assert_eq!(code(find("bin/folder", "")), 126);
        assert_eq!(code(find("bin/none", "")), 127);
        // Access is not denied to root by a mode of 0644 alone, but execution is.
        assert_eq!(code(find("bin/text", "")), 126);
        assert_eq!(code(find("text", "bin")), 126);
    }

    #[test]
    fn without_a_path_the_usual_folders_are_searched() {
        assert!(find(OsStr::new("sh"), Path::new("/"), None).is_ok());
    }
}
