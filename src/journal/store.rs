//! Appending to a journal and reading it back.
//!
//! One write a line, so that a kill leaves at most one torn line at the end; synced after every
//! event that would cost a trial if it were lost.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::event::Event;
use super::files::SessionFiles;
use super::state::State;

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process works on the session.
    #[error("session {session} is in use by process {pid}")]
    Locked {
        /// The session.
        session: String,
        /// The number of the process that holds it, as that wrote it down.
        pid: String,
    },
    /// A line that is no event, or one that cannot follow.
    #[error("{}:{line}: {why}", path.display())]
    Line {
        /// The journal.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// Nothing in it.
    #[error("{}: the journal is empty", path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
    },
    /// Reading or writing failed.
    #[error("{}: {what}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        what: &'static str,
        /// The operating system's words.
        source: io::Error,
    },
}

impl StoreError {
    fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, what, source }
    }
}

/// An open journal, locked for this process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    // Held for its lock, which ends with it.
    _lock: File,
}

impl Journal {
    /// Starts a session's journal.
    ///
    /// # Errors
    /// When the session is in use or the files cannot be made.
    pub fn create(files: &SessionFiles) -> Result<Self, StoreError> {
        let path = files.journal();
        files.create().map_err(StoreError::io(
            &files.folder(),
            "making the session's folder",
        ))?;
        let lock = lock(files)?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(StoreError::io(&path, "creating the journal"))?;
        Ok(Self {
            file,
            path,
            _lock: lock,
        })
    }

    /// Takes a session up again: locks it, drops a torn last line, and folds what is left.
    ///
    /// # Errors
    /// When the session is in use or its journal cannot be read.
    pub fn resume(files: &SessionFiles) -> Result<(Self, State), StoreError> {
        let lock = lock(files)?;
        let path = files.journal();
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&path)
            .map_err(StoreError::io(&path, "opening the journal"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(StoreError::io(&path, "reading the journal"))?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)
                .and_then(|()| file.seek(SeekFrom::End(0)).map(drop))
                .map_err(StoreError::io(&path, "dropping the torn last line"))?;
            bytes.truncate(whole);
        }
        let state = fold(&path, &bytes)?;
        Ok((
            Self {
                file,
                path,
                _lock: lock,
            },
            state,
        ))
    }

    /// Appends events as one write; with `sync` they are on disk when this returns.
    ///
    /// # Errors
    /// When the journal cannot be written: the session must stop, since it could not be resumed.
    pub fn append(&mut self, events: &[Event], sync: Sync) -> Result<(), StoreError> {
        let mut line = Vec::new();
        for event in events {
            serde_json::to_writer(&mut line, event).map_err(|e| StoreError::Io {
                path: self.path.clone(),
                what: "encoding an event",
                source: e.into(),
            })?;
            line.push(b'\n');
        }
        self.file
            .write_all(&line)
            .map_err(StoreError::io(&self.path, "appending to the journal"))?;
        match sync {
            Sync::No => Ok(()),
            Sync::Yes => self.sync(),
        }
    }

    /// Waits until everything appended is on disk.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        synced(&self.file, &self.path)
    }

    /// The same as work for another thread: what has been appended so far is on disk when it is
    /// done.
    ///
    /// # Errors
    /// When no further file can be opened; the work fails when the disk refuses it.
    pub fn sync_elsewhere(
        &self,
    ) -> Result<impl FnOnce() -> Result<(), StoreError> + Send + use<>, StoreError> {
        let file = self.file.try_clone();
        let file = file.map_err(StoreError::io(&self.path, "syncing the journal"))?;
        let path = self.path.clone();
        Ok(move || synced(&file, &path))
    }
}

fn synced(file: &File, path: &Path) -> Result<(), StoreError> {
    file.sync_data()
        .map_err(StoreError::io(path, "syncing the journal"))
}

/// Whether an append waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// The system may write it later; a kill of this process loses nothing.
    No,
    /// On disk before anything else happens; a power cut loses nothing.
    Yes,
}

/// Reads a journal without locking it, for `status`, `log` and `rerun`. A torn last line is left out.
///
/// # Errors
/// When it cannot be read or is no journal.
pub fn read(path: &Path) -> Result<State, StoreError> {
    let bytes = std::fs::read(path).map_err(StoreError::io(path, "reading the journal"))?;
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    fold(path, bytes.get(..whole).unwrap_or_default())
}

fn fold(path: &Path, bytes: &[u8]) -> Result<State, StoreError> {
    let mut state: Option<State> = None;
    for (number, line) in bytes.split(|b| *b == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let wrong = |why: String| StoreError::Line {
            path: path.to_owned(),
            line: number + 1,
            why,
        };
        let event: Event =
            serde_json::from_slice(line).map_err(|e| wrong(format!("not an event: {e}")))?;
        match &mut state {
            None => state = Some(State::open(&event).map_err(|e| wrong(e.to_string()))?),
            Some(state) => state.apply(&event).map_err(|e| wrong(e.to_string()))?,
        }
    }
    state.ok_or_else(|| StoreError::Empty {
        path: path.to_owned(),
    })
}

/// Whether a process works on the session now.
pub fn in_use(files: &SessionFiles) -> bool {
    File::open(files.lock())
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn lock(files: &SessionFiles) -> Result<File, StoreError> {
    let path = files.lock();
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(StoreError::io(&path, "opening the session's lock"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The number is a courtesy: without it the refusal is still right.
            let _ = file.read_to_string(&mut pid);
            return Err(StoreError::Locked {
                session: files.session().to_string(),
                pid: pid.trim().to_owned(),
            });
        }
        Err(TryLockError::Error(source)) => {
            return Err(StoreError::Io {
                path,
                what: "locking the session",
                source,
            });
        }
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(StoreError::io(&path, "writing the session's lock"))?;
    Ok(file)
}
