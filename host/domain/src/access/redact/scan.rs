//! The search for one secret in a stream of chunks.

use super::escape::{Escape, escape};
use super::needle::{FORMS, Needle};
use crate::access::egress::DECODINGS_MAX;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The plain bytes, and the bytes after each number of decodings.
const LEVELS: usize = DECODINGS_MAX + 1;

/// The search for one secret.
pub(super) struct Scan {
    needle: Arc<Needle>,
    levels: [Level; LEVELS],
    /// The offset after the last byte.
    end: u64,
}

/// The search in the text after decoding escapes a number of times.
#[derive(Default)]
struct Level {
    /// Characters that fit, for each form.
    fits: [usize; FORMS],
    /// The offsets of the last characters: as many as the longest form has.
    characters: VecDeque<u64>,
    /// Characters of a possible escape, and their positions.
    escape: Vec<u8>,
    places: Vec<Range<u64>>,
}

impl Scan {
    pub(super) fn of(needle: Arc<Needle>) -> Self {
        Self {
            needle,
            levels: Default::default(),
            end: 0,
        }
    }

    /// Reads the next bytes, the first of which has this offset.
    pub(super) fn push(&mut self, from: u64, bytes: &[u8], found: &mut Vec<Range<u64>>) {
        self.end = from;
        let mut begun = self.begun().is_some();
        for &byte in bytes {
            let place = self.end..self.end + 1;
            self.end += 1;
            if begun || self.needle.can_begin_with(byte) {
                read(&self.needle, &mut self.levels, byte, place, found);
                begun = self.begun().is_some();
            }
        }
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self, found: &mut Vec<Range<u64>>) {
        let mut levels = self.levels.as_mut_slice();
        while let Some((level, deeper)) = levels.split_first_mut() {
            let unfinished = std::mem::take(&mut level.escape)
                .into_iter()
                .zip(std::mem::take(&mut level.places));
            unfinished.for_each(|(byte, place)| read(&self.needle, deeper, byte, place, found));
            levels = deeper;
        }
    }

    /// Returns the offset of a possible beginning of the secret.
    pub(super) fn begun(&self) -> Option<u64> {
        self.levels
            .iter()
            .flat_map(|level| {
                [
                    level.characters.front().copied(),
                    level.places.first().map(|place| place.start),
                ]
            })
            .flatten()
            .min()
    }
}

/// Reads a character in the first of these levels, and the decoded characters in the others.
fn read(
    needle: &Needle,
    levels: &mut [Level],
    byte: u8,
    place: Range<u64>,
    found: &mut Vec<Range<u64>>,
) {
    let Some((level, deeper)) = levels.split_first_mut() else {
        return;
    };
    level.compare(needle, byte, &place, found);
    if deeper.is_empty() {
        return;
    }
    level.escape.push(byte);
    level.places.push(place);
    while let Some((character, place)) = level.undone() {
        read(needle, deeper, character, place, found);
    }
}

impl Level {
    fn compare(
        &mut self,
        needle: &Needle,
        byte: u8,
        place: &Range<u64>,
        found: &mut Vec<Range<u64>>,
    ) {
        self.characters.push_back(place.start);
        let mut longest = 0;
        for ((fold, pattern), fits) in needle.forms.iter().zip(&mut self.fits) {
            *fits = pattern.step(*fits, fold.read(byte));
            if *fits == pattern.len() {
                let first = self
                    .characters
                    .len()
                    .checked_sub(*fits)
                    .and_then(|first| self.characters.get(first));
                found.extend(first.map(|first| *first..place.end));
                *fits = pattern.fall(*fits);
            }
            longest = longest.max(*fits);
        }
        let over = self.characters.len().saturating_sub(longest);
        self.characters.drain(..over);
    }

    /// The first character of a possible escape, once decided, and its position.
    fn undone(&mut self) -> Option<(u8, Range<u64>)> {
        let Escape::Character(character, bytes) = escape(&self.escape) else {
            return None;
        };
        let from = self.places.first()?.start;
        let to = self.places.get(bytes.checked_sub(1)?)?.end;
        self.escape.drain(..bytes);
        self.places.drain(..bytes);
        Some((character, from..to))
    }
}
