//! Where a session's files lie: `.fbisect/` at the root of the user's checkout.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::{SessionId, TrialId};

/// The paths of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFiles {
    root: PathBuf,
    session: SessionId,
}

impl SessionFiles {
    /// The paths of a session of the repository whose checkout is at `root`.
    pub fn new(root: &Path, session: SessionId) -> Self {
        Self {
            root: root.to_owned(),
            session,
        }
    }

    /// Makes the session's folder, and `.fbisect/` with an ignore file of its own, so that the
    /// user's `git status` stays as it was.
    ///
    /// # Errors
    /// When a folder or that file cannot be written.
    pub fn create(&self) -> io::Result<()> {
        let top = self.root.join(".fbisect");
        fs::create_dir_all(&top)?;
        let ignore = top.join(".gitignore");
        if !ignore.exists() {
            fs::write(ignore, "*\n")?;
        }
        fs::create_dir_all(self.folder().join("trials"))
    }

    /// The session's name.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// `.fbisect/sessions/<id>`
    pub fn folder(&self) -> PathBuf {
        sessions_folder(&self.root).join(&self.session.0)
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.folder().join("events.jsonl")
    }

    /// The journal before its first event is whole.
    pub fn unbegun_journal(&self) -> PathBuf {
        self.folder().join("events.jsonl.new")
    }

    /// The file whose lock says that a process works on the session.
    pub fn lock(&self) -> PathBuf {
        self.folder().join("lock")
    }

    /// The final report.
    pub fn result(&self) -> PathBuf {
        self.folder().join("result.json")
    }

    /// Copies of the files that the command names, as they were when the session was opened.
    pub fn pins(&self) -> PathBuf {
        self.folder().join("pins")
    }

    /// The patch that `--apply` named, as it was then.
    pub fn patch(&self) -> PathBuf {
        self.folder().join("apply.patch")
    }

    /// A trial's folder, `trials/<n>`.
    pub fn trial(&self, trial: TrialId) -> PathBuf {
        self.folder().join("trials").join(trial.to_string())
    }
}

fn sessions_folder(root: &Path) -> PathBuf {
    root.join(".fbisect").join("sessions")
}

/// The sessions of a checkout, oldest first.
///
/// # Errors
/// When the folder exists and cannot be read.
pub fn sessions(root: &Path) -> io::Result<Vec<SessionId>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(sessions_folder(root)) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let entry = entry?;
        if entry.path().join("events.jsonl").is_file()
            && let Ok(name) = entry.file_name().into_string()
        {
            found.push(SessionId(name));
        }
    }
    found.sort();
    Ok(found)
}
