//! What one Python has in its `site-packages` that leads elsewhere.
//!
//! Pip, setuptools, uv and other build back ends install "editable" in four ways: a path line in a
//! `.pth` file; an `import` line there, of a module whose text holds the path; an `.egg-link`; and,
//! beside these, a `direct_url.json` that says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::LeadsBack;
use super::pythons::Command;

/// How long a Python may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a file that are looked at.
const MAX_BYTES: u64 = 4 << 20;

/// Prints the prefix and each folder that is read for `.pth` files, marked, a line each. The
/// user's own folder counts as it would without `-I`.
const QUESTION: &str = r#"
import sys, os, site, sysconfig
dirs = list(site.getsitepackages()) if hasattr(site, "getsitepackages") else []
dirs += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
venv, shared = sys.prefix != sys.base_prefix, True
if venv:
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg")) as f:
            shared = any(l.replace(" ", "").strip().lower() == "include-system-site-packages=true" for l in f)
    except OSError:
        shared = False
if shared and not os.environ.get("PYTHONNOUSERSITE"):
    dirs.append(site.getusersitepackages())
print("\nfbisect-prefix\t" + sys.prefix)
for d in dict.fromkeys(d for d in dirs if d):
    print("fbisect-site\t" + d)
"#;

/// One Python's folders.
pub(super) struct Site {
    prefix: PathBuf,
    folders: Vec<PathBuf>,
}

/// Asks an interpreter; `None` when it does not answer in time and form.
pub(super) fn ask(interpreter: &Path, command: &Command<'_>) -> Option<Site> {
    let mut question = duct::cmd(interpreter, ["-I", "-c", QUESTION])
        .dir(command.cwd)
        .stdin_null()
        .stderr_null()
        .stdout_capture()
        .unchecked();
    for (name, value) in command.env {
        question = question.env(name, value);
    }
    let handle = question.start().ok()?;
    let answer = handle.wait_timeout(PATIENCE).ok().flatten().cloned();
    let Some(output) = answer else {
        // It may have ended meanwhile: then there is nothing to end.
        let _ = handle.kill();
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let marked = |mark: &str| -> Vec<PathBuf> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(mark));
        lines.map(|path| PathBuf::from(path.trim_start())).collect()
    };
    Some(Site {
        prefix: marked("fbisect-prefix\t").into_iter().next()?,
        folders: marked("fbisect-site\t"),
    })
}

impl Site {
    /// The first thing that leads into `root`, and where to. `root` must be canonical.
    pub(super) fn leads_into(&self, root: &Path) -> Option<(LeadsBack, PathBuf)> {
        let target = Target {
            root,
            // An environment may stand in the checkout: its own packages are no code of it.
            prefix: fs::canonicalize(&self.prefix).ok(),
        };
        self.folders
            .iter()
            .find_map(|folder| target.in_folder(folder))
    }
}

struct Target<'a> {
    root: &'a Path,
    prefix: Option<PathBuf>,
}

impl Target<'_> {
    fn in_folder(&self, folder: &Path) -> Option<(LeadsBack, PathBuf)> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .ok()?
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        let with = |end: &'static str| {
            let matching = move |name: &&String| name.ends_with(end);
            names.iter().filter(matching).map(|name| folder.join(name))
        };
        with(".pth")
            .find_map(|file| self.in_pth(folder, &file))
            .or_else(|| with(".egg-link").find_map(|file| self.in_egg_link(folder, &file)))
            .or_else(|| with(".dist-info").find_map(|dir| self.in_direct_url(&dir)))
    }

    fn in_pth(&self, folder: &Path, file: &Path) -> Option<(LeadsBack, PathBuf)> {
        let text = read(file)?;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if let Some(modules) = line.strip_prefix("import ") {
                let hook = modules
                    .split([';', ',', ' '])
                    .filter(|name| !name.is_empty())
                    .map(|name| folder.join(format!("{name}.py")))
                    .find_map(|module| self.in_text(&module));
                if hook.is_some() {
                    return hook;
                }
                // Some back ends write the path into the line itself.
                if let Some(path) = self.quoted_in(line) {
                    return Some((at(file, index), path));
                }
            } else if !line.is_empty()
                && !line.starts_with('#')
                && let Some(path) = self.reached_by(&folder.join(line))
            {
                return Some((at(file, index), path));
            }
        }
        None
    }

    /// A finder module, as setuptools, scikit-build-core and meson-python write it.
    fn in_text(&self, file: &Path) -> Option<(LeadsBack, PathBuf)> {
        let text = read(file)?;
        let mut lines = text.lines().enumerate();
        lines.find_map(|(index, line)| Some((at(file, index), self.quoted_in(line)?)))
    }

    fn in_egg_link(&self, folder: &Path, file: &Path) -> Option<(LeadsBack, PathBuf)> {
        let text = read(file)?;
        let path = self.reached_by(&folder.join(text.lines().next()?.trim()))?;
        Some((at(file, 0), path))
    }

    fn in_direct_url(&self, dist_info: &Path) -> Option<(LeadsBack, PathBuf)> {
        let file = dist_info.join("direct_url.json");
        let json: serde_json::Value = serde_json::from_str(&read(&file)?).ok()?;
        let editable = json.pointer("/dir_info/editable")?.as_bool()?;
        let address = json.get("url")?.as_str()?.strip_prefix("file://")?;
        let local = address.strip_prefix("localhost").unwrap_or(address);
        let path = self.reached_by(Path::new(&percent_decoded(local)))?;
        editable.then_some((LeadsBack::File { file, line: None }, path))
    }

    /// The first quoted absolute path in a line that leads into the root.
    fn quoted_in(&self, line: &str) -> Option<PathBuf> {
        let quoted = line.split(['\'', '"']).skip(1);
        quoted
            .filter(|text| text.starts_with('/'))
            .find_map(|text| self.reached_by(Path::new(text)))
    }

    fn reached_by(&self, path: &Path) -> Option<PathBuf> {
        let real = fs::canonicalize(path).ok()?;
        let own = self.prefix.as_ref().is_some_and(|p| real.starts_with(p));
        (real.starts_with(self.root) && !own).then_some(real)
    }
}

fn at(file: &Path, index: usize) -> LeadsBack {
    LeadsBack::File {
        file: file.to_path_buf(),
        line: Some(index + 1),
    }
}

fn read(file: &Path) -> Option<String> {
    let meta = fs::metadata(file).ok()?;
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return None;
    }
    Some(String::from_utf8_lossy(&fs::read(file).ok()?).into_owned())
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::percent_decoded;

    #[test]
    fn addresses_are_decoded_and_stray_percent_signs_kept() {
        assert_eq!(percent_decoded("/a%20b/%C3%A9"), "/a b/é");
        assert_eq!(percent_decoded("/100%/é%"), "/100%/é%");
    }
}
