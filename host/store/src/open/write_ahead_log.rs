//! Damage in the middle of the write-ahead log.
//!
//! SQLite reads the log up to the first frame whose checksum is wrong, which is right for the torn end that a power failure leaves, and
//! silently drops whole commits when a bit flipped further up. Commits are synced one after the other, so only the last one can be
//! torn: if a bad frame is followed by good ones that end two commits or more, acknowledged ones would be lost.
//! The format: <https://sqlite.org/fileformat2.html#the_write_ahead_log>.

use super::OpenError;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The header's first word; its last bit says in which byte order checksums are computed.
const MAGIC: u32 = 0x377f_0682;
/// The largest page that SQLite knows.
const PAGE_BYTES_MAX: u32 = 65_536;
const BUFFER_BYTES: usize = 256 << 10;

/// Refuses a log from which SQLite would silently drop commits that were synced.
pub(crate) fn check(path: &Path) -> Result<(), OpenError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(OpenError::io("opened", path, error)),
    };
    match lost_commits(BufReader::with_capacity(BUFFER_BYTES, file)) {
        Ok(Verdict::Sound) => Ok(()),
        Ok(Verdict::BadHeader) => Err(OpenError::Corrupt { path: path.to_owned(), detail: "the log's header was changed".to_owned() }),
        Ok(Verdict::BadFrame { frame }) => Err(OpenError::Corrupt {
            path: path.to_owned(),
            detail: format!("frame {frame} of the log was changed, and commits follow it"),
        }),
        Err(error) => Err(OpenError::io("read", path, error)),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Sound,
    BadHeader,
    BadFrame { frame: u64 },
}

fn lost_commits(mut log: impl Read) -> std::io::Result<Verdict> {
    let mut header = [0; HEADER_BYTES];
    if !filled(&mut log, &mut header)? || header == [0; HEADER_BYTES] {
        // Nothing was ever synced to it.
        return Ok(Verdict::Sound);
    }
    let big_endian = word(&header, 0) & 1 == 1;
    let page_bytes = word(&header, 8);
    let sum = checksum((0, 0), header.get(..24).unwrap_or_default(), big_endian);
    let intact = word(&header, 0) & !1 == MAGIC
        && page_bytes.is_power_of_two()
        && page_bytes <= PAGE_BYTES_MAX
        && sum == (word(&header, 24), word(&header, 28));
    if !intact {
        return Ok(Verdict::BadHeader);
    }
    let salts = (word(&header, 16), word(&header, 20));
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes as usize];
    let (mut number, mut first_bad, mut commits) = (0_u64, None, 0);
    // What the next frame's checksum may go on from: after a bad frame both what it says and what follows from it.
    let mut sums = [sum, sum];
    while filled(&mut log, &mut frame)? {
        number += 1;
        let stored = (word(&frame, 16), word(&frame, 20));
        let follows = sums.map(|sum| frame_checksum(sum, &frame, big_endian));
        let intact = (word(&frame, 8), word(&frame, 12)) == salts && follows.contains(&stored);
        match (intact, first_bad) {
            (true, _) => sums = [stored, stored],
            (false, None) => {
                first_bad = Some(number);
                let [follows, _] = follows;
                sums = [stored, follows];
            }
            (false, Some(_)) => break,
        }
        // A frame that ends a commit says how many pages the database has then.
        if first_bad.is_some() && word(&frame, 4) != 0 {
            commits += 1;
        }
    }
    Ok(match first_bad {
        Some(frame) if commits >= 2 => Verdict::BadFrame { frame },
        Some(_) | None => Verdict::Sound,
    })
}

/// A frame's checksum, given that of the frame before it.
fn frame_checksum(sum: (u32, u32), frame: &[u8], big_endian: bool) -> (u32, u32) {
    let sum = checksum(sum, frame.get(..8).unwrap_or_default(), big_endian);
    checksum(sum, frame.get(FRAME_HEADER_BYTES..).unwrap_or_default(), big_endian)
}

/// Fills the buffer; false at the end.
fn filled(log: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// A big-endian word; 0 beyond the end.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The log's running checksum over pairs of words.
fn checksum((mut first, mut second): (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let (pairs, _) = bytes.as_chunks::<8>();
    for [a, b, c, d, e, f, g, h] in pairs {
        let (x, y) = ([*a, *b, *c, *d], [*e, *f, *g, *h]);
        let (x, y) =
            if big_endian { (u32::from_be_bytes(x), u32::from_be_bytes(y)) } else { (u32::from_le_bytes(x), u32::from_le_bytes(y)) };
        first = first.wrapping_add(x).wrapping_add(second);
        second = second.wrapping_add(y).wrapping_add(first);
    }
    (first, second)
}
