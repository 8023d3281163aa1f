//! What a trial's processes find: placeholders, variables, scratch folders.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::slot::Slot;
use crate::model::TrialSpec;

/// Variables that would lead a trial's own git commands to the user's repository.
const GIT_VARIABLES: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
];

/// Compile caches that a trial must not share with another commit's: variable and folder.
const CACHES: [(&str, &str); 5] = [
    ("TRITON_CACHE_DIR", "triton"),
    ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
    ("TORCH_EXTENSIONS_DIR", "torch_extensions"),
    ("CUDA_CACHE_PATH", "cuda"),
    ("JAX_COMPILATION_CACHE_DIR", "jax"),
];

/// A slot's folder for temporary files and caches, emptied before each trial and removed with it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// The folder of slot `index`, beside its worktree.
    ///
    /// # Errors
    /// When it cannot be made, with its path.
    pub fn beside(workspace: &Path, index: usize) -> Result<Self, (PathBuf, io::Error)> {
        let path = workspace.with_file_name(format!("slot-{index}.tmp"));
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(Self(path)),
            Err(e) => Err((path, e)),
        }
    }

    fn empty(&self) -> io::Result<PathBuf> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        let tmp = self.0.join("tmp");
        fs::create_dir(&tmp)?;
        Ok(tmp)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed with the session's leftovers.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Replaces `{seed}`, `{commit}`, `{trial_dir}` and `{workspace}` in a word.
pub fn fill_in(word: &str, spec: &TrialSpec, folder: &Path, workspace: &Path) -> String {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        filled.push_str(before);
        let value = from.find('}').and_then(|close| {
            let value = match from.get(1..close)? {
                "seed" => spec.seed.to_string(),
                "commit" => spec.commit.to_string(),
                "trial_dir" => folder.to_string_lossy().into_owned(),
                "workspace" => workspace.to_string_lossy().into_owned(),
                _ => return None,
            };
            Some((value, close))
        });
        if let Some((value, close)) = value {
            filled.push_str(&value);
            rest = from.get(close + 1..).unwrap_or_default();
        } else {
            filled.push('{');
            rest = from.get(1..).unwrap_or_default();
        }
    }
    filled.push_str(rest);
    filled
}

/// The changes to our own environment that a trial's processes see.
///
/// # Errors
/// When the scratch folder cannot be emptied or no port is free.
pub fn variables(
    spec: &TrialSpec,
    slot: &Slot,
    scratch: Option<&Scratch>,
    folder: &Path,
    workspace: &Path,
    cold_caches: bool,
) -> io::Result<Vec<(OsString, Option<OsString>)>> {
    let mut set: Vec<(OsString, Option<OsString>)> = Vec::new();
    let mut put = |name: &str, value: OsString| set.push((name.into(), Some(value)));
    put("FBISECT_SEED", spec.seed.to_string().into());
    put("FBISECT_TRIAL", spec.trial.to_string().into());
    put("FBISECT_COMMIT", spec.commit.as_str().into());
    put("FBISECT_SLOT", slot.index.to_string().into());
    put("FBISECT_TRIAL_DIR", folder.into());
    put("FBISECT_WORKSPACE", workspace.into());
    let port = free_port()?.to_string();
    put("MASTER_PORT", port.clone().into());
    put("PET_MASTER_PORT", port.into());
    if let Some(devices) = &slot.devices {
        put("CUDA_VISIBLE_DEVICES", devices.into());
    }
    if let Some(scratch) = scratch {
        put("TMPDIR", scratch.empty()?.into());
        if cold_caches {
            for (variable, name) in CACHES {
                put(variable, scratch.0.join("caches").join(name).into());
            }
        }
    }
    set.extend(GIT_VARIABLES.iter().map(|name| ((*name).into(), None)));
    set.push(("OLDPWD".into(), None));
    Ok(set)
}

/// A port that was free a moment ago, so that two slots' process groups do not meet on one.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AttemptId, CommitId, TrialId};
    use crate::search::Purpose;

    #[test]
    fn placeholders_are_replaced_and_other_braces_stay() {
        let spec = TrialSpec {
            trial: TrialId(3),
            commit: CommitId::parse(&"a".repeat(40)).unwrap(),
            index: 0,
            purpose: Purpose::Narrow,
            seed: 7,
            slot: 0,
            attempt: AttemptId(0),
        };
        let fill = |word| fill_in(word, &spec, Path::new("/t/3"), Path::new("/w"));
        assert_eq!(fill("--seed={seed}"), "--seed=7");
        assert_eq!(fill("{workspace}/a:{trial_dir}"), "/w/a:/t/3");
        assert_eq!(fill("{\"lr\": {seed}}"), "{\"lr\": 7}");
        assert_eq!(fill("{unknown} {"), "{unknown} {");
        assert_eq!(fill("{{commit}}"), format!("{{{}}}", "a".repeat(40)));
    }
}
