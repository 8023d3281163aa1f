//! Reads a log of any size into a text of bounded size.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes kept from the beginning.
const HEAD: u64 = 64 * 1024;

/// The beginning (64 KiB) and the end (what `limit` leaves, usually 512 KiB) of a file as text,
/// without control sequences of a terminal; a line in the middle says how many bytes are left out.
///
/// Bytes that are not UTF-8 are replaced. Carriage returns become line ends, so that each state of
/// a progress bar is a line. `limit` is the number of bytes read at most. A file that cannot be
/// read gives an empty text: a trial without output is still a trial.
pub fn read_tail_and_head(path: &Path, limit: u64) -> String {
    read(path, limit).map_or_else(|_| String::new(), |bytes| clean(&bytes))
}

fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    if size <= limit {
        // The file may still grow: take no more than was asked for.
        file.take(limit).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let head = HEAD.min(limit / 2);
    let tail = limit - head;
    file.by_ref().take(head).read_to_end(&mut bytes)?;
    bytes.extend(format!("\n[... {} bytes left out ...]\n", size - limit).bytes());
    file.seek(SeekFrom::Start(size - tail))?;
    file.take(tail).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = console::strip_ansi_codes(&text);
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn a_small_file_is_read_whole_and_cleaned() {
        let file = written(b"\x1b[31mred\x1b[0m\rbar 1\rbar 2\r\nbad byte \xff\n");
        assert_eq!(
            read_tail_and_head(file.path(), 1 << 20),
            "red\nbar 1\nbar 2\nbad byte \u{fffd}\n"
        );
    }

    #[test]
    fn a_large_file_keeps_its_head_and_its_tail() {
        let mut bytes = b"first line\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', 2_000_000));
        bytes.extend(b"\nlast line\n");
        let file = written(&bytes);
        let text = read_tail_and_head(file.path(), 576 * 1024);
        assert!(text.starts_with("first line\n"));
        assert!(text.ends_with("\nlast line\n"));
        let left_out = bytes.len() - 576 * 1024;
        assert!(text.contains(&format!("[... {left_out} bytes left out ...]")));
        assert!(text.len() < 577 * 1024);
    }

    #[test]
    fn a_missing_file_is_an_empty_text() {
        assert_eq!(read_tail_and_head(Path::new("/nonexistent/log"), 100), "");
    }
}
