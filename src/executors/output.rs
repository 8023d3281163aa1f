//! A command's output files: opened so that a leaked writer hangs nobody, and kept within a limit.
//!
//! The command writes to plain files in append mode, never to pipes. When a file grows past its
//! limit, the first quarter and the most recent part are kept and a line says how much is missing
//! between them. While writers are alive, the middle is given back to the file system by punching
//! a hole (offsets stay, nothing is lost to a race); the hole is closed when they are gone. File
//! systems that cannot punch holes have the file rewritten in place instead.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::OutputTo;

/// How far past its limit a file may stay: more than any marker line, so that a cut always gains.
const SLACK: u64 = 4096;

/// Holes are made in whole blocks of this size.
const BLOCK: u64 = 4096;

/// One or two output files of one command.
#[derive(Debug)]
pub(super) struct Logs {
    files: Vec<Log>,
}

impl Logs {
    /// Opens both files and returns them with the handles that the command will write to.
    pub(super) fn open(
        stdout: &Path,
        stderr: &Path,
        to: OutputTo,
        limit: u64,
    ) -> Result<(Self, File, File), String> {
        let append = match to {
            OutputTo::Append => true,
            OutputTo::NewFiles => false,
            OutputTo::Ours => {
                let (out, err) = ours().map_err(|e| format!("cannot pass our output on: {e}"))?;
                return Ok((Self { files: Vec::new() }, out, err));
            }
        };
        let open = |path: &Path| {
            Log::open(path, append, limit)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let (first, out) = open(stdout)?;
        if stdout == stderr {
            let err = out
                .try_clone()
                .map_err(|error| format!("cannot write {}: {error}", stderr.display()))?;
            return Ok((Self { files: vec![first] }, out, err));
        }
        let (second, err) = open(stderr)?;
        let files = vec![first, second];
        Ok((Self { files }, out, err))
    }

    /// Brings files that are past their limit back; says whether one grows fast.
    pub(super) fn trim(&mut self) -> io::Result<bool> {
        let mut fast = false;
        for log in &mut self.files {
            fast |= log.trim()?;
        }
        Ok(fast)
    }

    /// Gives the files their final form, once nobody writes to them any more.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.files.iter_mut().try_for_each(Log::cut)
    }
}

/// Our own standard output and error, as files.
fn ours() -> io::Result<(File, File)> {
    let out = io::stdout().as_fd().try_clone_to_owned()?;
    let err = io::stderr().as_fd().try_clone_to_owned()?;
    Ok((out.into(), err.into()))
}

#[derive(Debug)]
struct Log {
    file: File,
    limit: u64,
    /// Bytes kept from the beginning.
    head: u64,
    /// Length of the marker line that stands after the head; 0 while the file is whole.
    marker: u64,
    /// Bytes cut out so far.
    left_out: u64,
    /// Up to where the middle has been given back.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "holes are punched on Linux only")
    )]
    punched: u64,
    can_punch: bool,
    /// The length when last looked at.
    seen: u64,
}

impl Log {
    fn open(path: &Path, append: bool, limit: u64) -> io::Result<(Self, File)> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(!append)
            .open(path)?;
        let writer = OpenOptions::new().append(true).open(path)?;
        let head = limit / 4;
        let seen = file.metadata()?.len();
        let log = Self {
            file,
            limit,
            head,
            marker: 0,
            left_out: 0,
            punched: head.next_multiple_of(BLOCK),
            can_punch: cfg!(target_os = "linux"),
            seen,
        };
        Ok((log, writer))
    }

    fn tail(&self) -> u64 {
        self.limit - self.head
    }

    fn trim(&mut self) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        let fast = length.saturating_sub(self.seen) > self.limit / 4;
        self.seen = length;
        if length > self.limit + SLACK {
            if self.can_punch {
                self.can_punch = self.punch(length).is_ok();
            }
            if !self.can_punch {
                self.cut()?;
            }
        }
        Ok(fast)
    }

    #[cfg(target_os = "linux")]
    fn punch(&mut self, length: u64) -> io::Result<()> {
        use nix::fcntl::{FallocateFlags, fallocate};
        let end = (length - self.tail()) / BLOCK * BLOCK;
        if end <= self.punched {
            return Ok(());
        }
        let offset = i64::try_from(self.punched).map_err(io::Error::other)?;
        let size = i64::try_from(end - self.punched).map_err(io::Error::other)?;
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        fallocate(&self.file, flags, offset, size)?;
        self.punched = end;
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn punch(&mut self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Moves the most recent part to just after the head and a marker, and ends the file there.
    /// Leaves a file that is within its limit alone.
    fn cut(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length <= self.limit + SLACK {
            return Ok(()); // a writer has emptied it since
        }
        let mut from = length - self.tail();
        self.left_out += from - (self.head + self.marker);
        let marker = format!("\n[fbisect: {} bytes left out here]\n", self.left_out);
        self.file.write_all_at(marker.as_bytes(), self.head)?;
        self.marker = marker.len() as u64;

        // Up to the true end of the file, since a writer may still be adding to it.
        let mut to = self.head + self.marker;
        let mut chunk = vec![0; 256 * 1024];
        loop {
            let read = match self.file.read_at(&mut chunk, from) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.file.write_all_at(&chunk[..read], to)?;
            from += read as u64;
            to += read as u64;
        }
        self.file.set_len(to)?;
        self.seen = to;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::io::Write as _;

    const LIMIT: u64 = 64 * 1024;

    fn lines(range: std::ops::Range<u32>) -> String {
        range.fold(String::new(), |mut text, number| {
            let _ = writeln!(text, "line {number:08}");
            text
        })
    }

    /// Writes a million bytes in parts, trimming after each, and returns what is left.
    fn flood(can_punch: bool) -> (String, u64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (mut log, mut writer) = Log::open(&path, false, LIMIT).unwrap();
        log.can_punch = can_punch;
        let mut written = 0;
        for part in 0..100 {
            let text = lines(part * 1000..(part + 1) * 1000);
            writer.write_all(text.as_bytes()).unwrap();
            written += text.len() as u64;
            log.trim().unwrap();
        }
        log.cut().unwrap();
        (std::fs::read_to_string(&path).unwrap(), written)
    }

    #[test]
    fn head_and_tail_are_kept_and_the_rest_is_counted() {
        for can_punch in [true, false] {
            let (text, written) = flood(can_punch);
            assert!(text.len() as u64 <= LIMIT + SLACK, "{}", text.len());
            assert!(text.starts_with("line 00000000\n"));
            assert!(text.ends_with("line 00099999\n"));
            assert!(!text.contains('\0'));
            let marker = text.lines().find(|line| line.starts_with('[')).unwrap();
            let missing: u64 = marker
                .split(' ')
                .find_map(|word| word.parse().ok())
                .unwrap();
            let kept = text.len() as u64 - (marker.len() as u64 + 2);
            assert_eq!(kept + missing, written);
        }
    }

    #[test]
    fn a_file_within_its_limit_is_left_alone_and_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        for text in ["one\n", "two\n"] {
            let (mut logs, mut out, _err) =
                Logs::open(&path, &path, OutputTo::Append, LIMIT).unwrap();
            out.write_all(text.as_bytes()).unwrap();
            logs.trim().unwrap();
            logs.close().unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_middle_takes_no_disk_while_the_writer_lives() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (mut log, mut writer) = Log::open(&path, false, LIMIT).unwrap();
        for part in 0..40 {
            writer
                .write_all(lines(part * 1000..(part + 1) * 1000).as_bytes())
                .unwrap();
            log.trim().unwrap();
        }
        if log.can_punch {
            writer.sync_all().unwrap();
            let data = std::fs::metadata(&path).unwrap();
            assert!(data.len() > 8 * LIMIT);
            assert!(data.blocks() * 512 < 3 * LIMIT, "{}", data.blocks() * 512);
        }
    }
}
