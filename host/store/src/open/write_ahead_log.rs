//! Damage in the middle of the write-ahead log.
//!
//! SQLite reads the log up to the first frame with a wrong checksum. That is right for the torn end
//! that a power failure leaves, but silently drops whole commits when a bit flipped further up.
//! Commits are synced one after the other, so only the last one can be torn. If a bad frame is
//! followed by good ones that end two commits or more, acknowledged commits would be lost. The
//! format: <https://sqlite.org/fileformat2.html#the_write_ahead_log>.

use super::OpenError;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// Size of the header of the log's index, in bytes. The second constant is the offset of the number
/// of committed frames in it, in this machine's byte order.
const INDEX_HEADER_BYTES: usize = 48;
const COMMITTED_AT: usize = 16;
/// The header's first word. Its last bit gives the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;
const PAGE_BYTES_MAX: u32 = 65_536;
/// Bytes per read: few enough to stay in the processor's cache until they are checked.
const BUFFER_BYTES: usize = 64 << 10;

/// Refuses a log from which SQLite would silently drop commits that were synced. Returns its size
/// in bytes, which is 0 after a database was closed.
pub(crate) fn check(path: &Path) -> Result<u64, OpenError> {
    let (file, bytes) =
        match File::open(path).and_then(|file| file.metadata().map(|about| (file, about.len()))) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(OpenError::io("opened", path, error)),
        };
    match lost_commits(file) {
        Ok(LogCondition::Sound) => Ok(bytes),
        Ok(LogCondition::BadHeader) => Err(OpenError::Corrupt {
            path: path.to_owned(),
            detail: "the log's header was changed".to_owned(),
        }),
        Ok(LogCondition::BadFrame { frame }) => Err(OpenError::Corrupt {
            path: path.to_owned(),
            detail: format!("frame {frame} of the log was changed, and commits follow it"),
        }),
        Err(error) => Err(OpenError::io("read", path, error)),
    }
}

/// Ensures that nothing in the log after the committed frames is mistaken for committed. A
/// transaction whose sync failed may be complete in the log, and a process that opens the database
/// after a kill would read it. The first frame after the last committed one, as recorded in the
/// log's index, loses its header. The caller holds the lock under which the log is written.
pub(crate) fn disown(log: &Path, index: &File) -> std::io::Result<()> {
    let mut known = [0; INDEX_HEADER_BYTES];
    index.read_exact_at(&mut known, 0)?;
    let committed: [u8; 4] = known
        .get(COMMITTED_AT..COMMITTED_AT + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .unwrap_or_default();
    let file = OpenOptions::new().read(true).write(true).open(log)?;
    let mut header = [0; HEADER_BYTES];
    if filled(&mut (&file), &mut header)? < HEADER_BYTES {
        return Ok(());
    }
    let frame_bytes = FRAME_HEADER_BYTES as u64 + u64::from(be_u32(&header, 8));
    let at = HEADER_BYTES as u64 + u64::from(u32::from_ne_bytes(committed)) * frame_bytes;
    let mut frame = [0; FRAME_HEADER_BYTES];
    match file.read_exact_at(&mut frame, at) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
        Err(error) => return Err(error),
    }
    // A frame of an earlier log, or one that was disowned before, is ignored when the database is
    // opened.
    if frame.get(8..16) != header.get(16..24) {
        return Ok(());
    }
    file.write_all_at(&[0; FRAME_HEADER_BYTES], at)?;
    // The write already survives a kill. The earlier sync failure means that it may not survive a
    // power failure.
    let _ = file.sync_data();
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum LogCondition {
    Sound,
    BadHeader,
    BadFrame { frame: u64 },
}

fn lost_commits(mut log: impl Read) -> std::io::Result<LogCondition> {
    let mut header = [0; HEADER_BYTES];
    if filled(&mut log, &mut header)? < HEADER_BYTES || header == [0; HEADER_BYTES] {
        // No commit was ever synced to it.
        return Ok(LogCondition::Sound);
    }
    let big_endian = be_u32(&header, 0) & 1 == 1;
    let page_bytes = be_u32(&header, 8);
    let sum = checksum((0, 0), header.get(..24).unwrap_or_default(), big_endian);
    let intact = be_u32(&header, 0) & !1 == MAGIC
        && page_bytes.is_power_of_two()
        && page_bytes <= PAGE_BYTES_MAX
        && sum == (be_u32(&header, 24), be_u32(&header, 28));
    if !intact {
        return Ok(LogCondition::BadHeader);
    }
    let salts = (be_u32(&header, 16), be_u32(&header, 20));
    let mut frames = Frames {
        salts,
        big_endian,
        read: 0,
        first_bad: None,
        commits: 0,
        sums: [sum, sum],
    };
    let frame_bytes = FRAME_HEADER_BYTES + page_bytes as usize;
    // Whole frames, checked in the buffer: the log may have sixty megabytes, and a caller waits.
    let mut some = vec![0; frame_bytes * (BUFFER_BYTES / frame_bytes).max(1)];
    loop {
        let bytes = filled(&mut log, &mut some)?;
        let is_over = some
            .get(..bytes)
            .unwrap_or_default()
            .chunks_exact(frame_bytes)
            .any(|frame| frames.end_at(frame));
        if is_over || bytes < some.len() {
            return Ok(frames.condition());
        }
    }
}

/// State of the checksums over the frames so far.
struct Frames {
    salts: (u32, u32),
    big_endian: bool,
    read: u64,
    first_bad: Option<u64>,
    /// Commits that end in or after the first bad one.
    commits: u32,
    /// Checksums that the next frame may continue from. After a bad frame these are both its stated
    /// and its computed checksum.
    sums: [(u32, u32); 2],
}

impl Frames {
    /// Takes in the next frame, and returns whether the log ends before it.
    fn end_at(&mut self, frame: &[u8]) -> bool {
        self.read += 1;
        let stored = (be_u32(frame, 16), be_u32(frame, 20));
        let [said, followed] = self.sums;
        let first = frame_checksum(said, frame, self.big_endian);
        // The two differ after a bad frame only.
        let follows = [
            first,
            if followed == said {
                first
            } else {
                frame_checksum(followed, frame, self.big_endian)
            },
        ];
        let intact =
            (be_u32(frame, 8), be_u32(frame, 12)) == self.salts && follows.contains(&stored);
        match (intact, self.first_bad) {
            (true, _) => self.sums = [stored, stored],
            (false, None) => {
                self.first_bad = Some(self.read);
                self.sums = [stored, first];
            }
            (false, Some(_)) => return true,
        }
        // A frame that ends a commit has the number of the database's pages after it.
        if self.first_bad.is_some() && be_u32(frame, 4) != 0 {
            self.commits += 1;
        }
        false
    }

    fn condition(&self) -> LogCondition {
        match self.first_bad {
            Some(frame) if self.commits >= 2 => LogCondition::BadFrame { frame },
            Some(_) | None => LogCondition::Sound,
        }
    }
}

/// A frame's checksum, given that of the frame before it.
fn frame_checksum(sum: (u32, u32), frame: &[u8], big_endian: bool) -> (u32, u32) {
    let sum = checksum(sum, frame.get(..8).unwrap_or_default(), big_endian);
    checksum(
        sum,
        frame.get(FRAME_HEADER_BYTES..).unwrap_or_default(),
        big_endian,
    )
}

/// Fills the buffer until the end of the file; returns the number of bytes.
fn filled(log: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut bytes = 0;
    while let Some(rest) = buffer.get_mut(bytes..).filter(|rest| !rest.is_empty()) {
        match log.read(rest) {
            Ok(0) => break,
            Ok(read) => bytes += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// A big-endian word; 0 beyond the end.
fn be_u32(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_be_bytes)
}

/// The log's running checksum over pairs of words.
fn checksum(sum: (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    if big_endian {
        checksum_of(sum, bytes, |pair| {
            (u64::from_be_bytes(pair) >> 32, u64::from_be_bytes(pair))
        })
    } else {
        checksum_of(sum, bytes, |pair| {
            (u64::from_le_bytes(pair), u64::from_le_bytes(pair) >> 32)
        })
    }
}

/// Returns the checksum continued over some bytes. Of each pair of words only the low halves count.
fn checksum_of(
    (mut first, mut second): (u32, u32),
    bytes: &[u8],
    words: impl Fn([u8; 8]) -> (u64, u64),
) -> (u32, u32) {
    let (pairs, _) = bytes.as_chunks::<8>();
    for pair in pairs {
        let (one, other) = words(*pair);
        first = first.wrapping_add(one as u32).wrapping_add(second);
        second = second.wrapping_add(other as u32).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::disown;
    use crate::sql::{Columns, Connection};
    use std::fs;

    #[test]
    fn what_was_not_committed_for_the_index_is_not_found_in_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let [database, log, index] =
            ["a.db", "a.db-wal", "a.db-shm"].map(|name| dir.path().join(name));
        let connection = Connection::open(&database).unwrap();
        connection
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .unwrap();
        connection
            .execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (1)")
            .unwrap();
        let before = fs::read(&index).unwrap();
        connection
            .execute_batch("INSERT INTO t VALUES (2)")
            .unwrap();
        // As a process leaves them whose sync failed and that was killed: the frames are whole, and
        // the index does not know of them.
        let copy = dir.path().join("copy");
        fs::create_dir(&copy).unwrap();
        let [copied, copied_log, known] = ["a.db", "a.db-wal", "known"].map(|name| copy.join(name));
        fs::copy(&database, &copied).unwrap();
        fs::copy(&log, &copied_log).unwrap();
        fs::write(&known, before).unwrap();
        let known = fs::File::open(known).unwrap();
        let rows = || {
            Connection::open(&copied)
                .unwrap()
                .query_row("SELECT count(*) FROM t", [], |row| row.get::<u32>(0))
                .unwrap()
        };
        disown(&copied_log, &known).unwrap();
        assert_eq!(rows(), 1, "the second row was never committed");
        fs::copy(&database, &copied).unwrap();
        fs::copy(&log, &copied_log).unwrap();
        assert_eq!(rows(), 2, "without that it is found");
    }
}
