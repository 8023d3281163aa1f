//! Looks for editable installs that lead back into the user's checkout.
//!
//! With one, every trial would import today's code, whatever commit its workspace holds. So before
//! the first trial the Pythons that the command will use are asked for their `site-packages`, and
//! the files there that can lead elsewhere are read. What cannot be found out is let pass: this is
//! a guard against a common trap, not a proof. It must not know how the trials are run.

mod pythons;
mod site;

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Python would import from the user's checkout and not from the commit under test.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{} would import from your checkout, not from the commit under test: {} leads to {}",
    .interpreter.display(), .source_of, .path.display()
)]
pub struct EditableError {
    /// The Python that was asked.
    pub interpreter: PathBuf,
    /// What leads there.
    pub source_of: LeadsBack,
    /// The place in the checkout.
    pub path: PathBuf,
    /// What to do about it, one remedy each.
    pub hints: Vec<String>,
}

/// What leads back into the checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadsBack {
    /// A file in `site-packages`.
    File {
        /// The file.
        file: PathBuf,
        /// Its line, from 1; `None` for files that are not read by line.
        line: Option<usize>,
    },
    /// The variable `PYTHONPATH` of the command's environment.
    PythonPath,
}

impl std::fmt::Display for LeadsBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { file, line: None } => write!(f, "{}", file.display()),
            Self::File {
                file,
                line: Some(line),
            } => write!(f, "{}:{line}", file.display()),
            Self::PythonPath => f.write_str("PYTHONPATH"),
        }
    }
}

/// Checks the Pythons that a command will use.
///
/// `workspace_cwd` is the folder in the workspace where the command will run, `user_root` the top
/// of the user's checkout, `argv` the command with its placeholders replaced, and `env` what the
/// command's environment has beyond, or instead of, this process's.
///
/// # Errors
/// For the first file or variable that leads into the checkout, with its remedies.
pub fn check(
    workspace_cwd: &Path,
    user_root: &Path,
    argv: &[String],
    env: &[(String, String)],
) -> Result<(), EditableError> {
    let root = std::fs::canonicalize(user_root).unwrap_or_else(|_| user_root.to_path_buf());
    let command = pythons::Command {
        cwd: workspace_cwd,
        argv,
        env,
    };
    let interpreters = command.interpreters();
    for interpreter in &interpreters {
        if let Some(path) = command.python_path().and_then(|p| entry_into(&p, &root)) {
            return Err(EditableError {
                interpreter: interpreter.clone(),
                source_of: LeadsBack::PythonPath,
                path,
                hints: vec![format!(
                    "give the command the workspace's own: \
                     `-- env PYTHONPATH={{workspace}}/src {}`, or unset PYTHONPATH",
                    shell_words::join(argv)
                )],
            });
        }
        let Some(site) = site::ask(interpreter, &command) else {
            continue;
        };
        if let Some((source_of, path)) = site.leads_into(&root) {
            return Err(EditableError {
                interpreter: interpreter.clone(),
                source_of,
                path,
                hints: remedies(interpreter, argv),
            });
        }
    }
    Ok(())
}

fn entry_into(python_path: &str, root: &Path) -> Option<PathBuf> {
    std::env::split_paths(python_path)
        .filter(|entry| entry.is_absolute())
        .filter_map(|entry| std::fs::canonicalize(entry).ok())
        .find(|entry| entry.starts_with(root))
}

fn remedies(interpreter: &Path, argv: &[String]) -> Vec<String> {
    vec![
        format!(
            "uninstall it there (`{} -m pip uninstall ...`) and put the checkout on the path: \
             `-- env PYTHONPATH={{workspace}}/src {}`",
            interpreter.display(),
            shell_words::join(argv)
        ),
        "or install each commit into an environment inside the workspace: \
         `--setup 'python3 -m venv .venv && .venv/bin/pip install -e .'`, and run `.venv/bin/python`"
            .to_owned(),
        "or give --allow-editable, when the command itself puts the workspace first".to_owned(),
    ]
}
