//! Appending to a journal and reading it back.
//!
//! One write a line, so that a kill leaves at most one torn line at the end; synced after every
//! event that would cost a trial if it were lost. The file takes its name only when its first
//! event is whole: a session that was killed before is none. After a write that failed nothing more
//! is written: what followed would hang on an event that is not there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::Deserialize;

use super::event::{Event, VERSION};
use super::files::SessionFiles;
use super::state::State;

/// How long a lock may be seen held by somebody who is about to let go: a reader that asks whether
/// the session is in use.
const BRIEFLY: Duration = Duration::from_millis(200);
/// The same when its owner is dead: a child that had been forked when it was killed, and that has
/// not yet become another program, holds the lock too.
const INHERITED: Duration = Duration::from_secs(10);

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
    /// Of a format that is not ours.
    #[error(
        "{}:1: the journal has format {version} (written by fbisect {fbisect}); this fbisect \
         reads format {VERSION}",
        path.display()
    )]
    Version {
        /// The journal.
        path: PathBuf,
        /// Its format.
        version: u32,
        /// The version of the tool that wrote it.
        fbisect: String,
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
    /// Bytes of whole lines.
    len: u64,
    /// What a write failed with.
    broken: Option<String>,
    // Held for its lock, which ends with it.
    _lock: File,
}

impl Journal {
    /// Makes a session's folder and takes its lock. There is no session before [`Journal::begin`].
    ///
    /// # Errors
    /// When the session is in use or the files cannot be made.
    pub fn create(files: &SessionFiles) -> Result<Self, StoreError> {
        let path = files.unbegun_journal();
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
            len: 0,
            broken: None,
            _lock: lock,
        })
    }

    /// Writes the first event and gives the journal its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, files: &SessionFiles, opened: &Event) -> Result<(), StoreError> {
        self.append(std::slice::from_ref(opened), Sync::Yes)?;
        let path = files.journal();
        std::fs::rename(&self.path, &path)
            // Some file systems cannot sync a folder; then a power cut may cost the session.
            .map(|()| drop(File::open(files.folder()).and_then(|folder| folder.sync_all())))
            .map_err(StoreError::io(&path, "naming the journal"))?;
        self.path = path;
        Ok(())
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
                len: bytes.len() as u64,
                broken: None,
                _lock: lock,
            },
            state,
        ))
    }

    /// Appends events as one write; with `sync` they are on disk when this returns.
    ///
    /// # Errors
    /// When the journal cannot be written: the session must stop, since it could not be resumed.
    /// Then every later append fails too.
    pub fn append(&mut self, events: &[Event], sync: Sync) -> Result<(), StoreError> {
        if let Some(error) = &self.broken {
            let error = io::Error::other(error.clone());
            return Err(StoreError::io(&self.path, "appending to the journal")(
                error,
            ));
        }
        let mut line = Vec::new();
        for event in events {
            serde_json::to_writer(&mut line, event).map_err(|e| StoreError::Io {
                path: self.path.clone(),
                what: "encoding an event",
                source: e.into(),
            })?;
            line.push(b'\n');
        }
        if let Err(error) = self.file.write_all(&line) {
            self.broken = Some(error.to_string());
            // Part of it may be there. Where it cannot be taken back, it is a torn last line.
            let _ = self.file.set_len(self.len);
            return Err(StoreError::io(&self.path, "appending to the journal")(
                error,
            ));
        }
        self.len += line.len() as u64;
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
        if state.is_none() {
            refuse_other_version(path, line)?;
        }
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

/// Looked at before the event as a whole, whose form is another one there.
fn refuse_other_version(path: &Path, first: &[u8]) -> Result<(), StoreError> {
    #[derive(Deserialize)]
    struct Header {
        version: u32,
        #[serde(default)]
        fbisect: String,
    }
    match serde_json::from_slice(first) {
        Ok(Header { version, fbisect }) if version != VERSION => Err(StoreError::Version {
            path: path.to_owned(),
            version,
            fbisect,
        }),
        // What is no header is told as what it is: no event.
        Ok(_) | Err(_) => Ok(()),
    }
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
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // The number is a courtesy: without it the refusal is still right.
                let _ = file.rewind().and_then(|()| file.read_to_string(&mut pid));
                let pid = pid.trim().to_owned();
                let patience = if is_dead(&pid) { INHERITED } else { BRIEFLY };
                if began.elapsed() >= patience {
                    let session = files.session().to_string();
                    return Err(StoreError::Locked { session, pid });
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::Error(source)) => {
                return Err(StoreError::io(&path, "locking the session")(source));
            }
        }
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(StoreError::io(&path, "writing the session's lock"))?;
    Ok(file)
}

fn is_dead(pid: &str) -> bool {
    let pid = pid.parse().ok().filter(|pid| *pid > 0).map(Pid::from_raw);
    pid.is_some_and(|pid| kill(pid, None) == Err(Errno::ESRCH))
}

/// Holds a session that nobody works on, for as long as the result lives. `None` when it is in use.
///
/// # Errors
/// When it cannot be locked at all.
pub fn hold(files: &SessionFiles) -> Result<Option<Held>, StoreError> {
    match lock(files) {
        Ok(file) => Ok(Some(Held { _lock: file })),
        Err(StoreError::Locked { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A session that no other process can take up.
#[derive(Debug)]
pub struct Held {
    _lock: File,
}
