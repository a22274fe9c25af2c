//! Redaction: removing secrets from all responses of their destinations, whole or in chunks.
//!
//! The search covers a secret in plain, in hexadecimal digits, and in base64, of either alphabet
//! and at any offset of the encoded text. Each of these is found in plain and under up to three
//! layers of escapes: those of URLs, of JSON and of HTML, in any mixture within a layer. Each byte
//! of a match becomes a `*`, so that lengths stay the same.
//!
//! A server that has the secret can hide it if it wants to. The search does not find: text that was
//! reversed, encrypted, compressed or cut into separate parts; a fourth layer; base64 of base64, or
//! with line breaks in it; a `+` that stands for a space, and entities of HTML without their
//! semicolon. A secret that itself contains an apparent escape (`%41`) is found in plain, and also
//! where that text is escaped again.

mod escape;

use crate::access::egress::DECODINGS_MAX;
use crate::access::secret::Secret;
use escape::{Escape, escape, is_begin};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The byte that replaces each byte of a secret.
const MASK: u8 = b'*';

/// Removes a set of secrets from texts. Cheap to clone; empty by default.
#[derive(Clone, Default)]
pub struct Redactor(Arc<[Arc<Needle>]>);

impl Redactor {
    /// Returns a redactor for one secret.
    #[must_use]
    pub fn of(secret: &Secret) -> Self {
        Self(Arc::new([Arc::new(Needle::of(secret.expose().as_bytes()))]))
    }

    /// Returns a redactor for all secrets of these redactors, each once.
    #[must_use]
    pub fn all<'a>(redactors: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all: Vec<Arc<Needle>> = Vec::new();
        for needle in redactors.into_iter().flat_map(|redactor| &*redactor.0) {
            if !all.iter().any(|known| Arc::ptr_eq(known, needle)) {
                all.push(needle.clone());
            }
        }
        Self(all.into())
    }

    /// Returns whether there is nothing to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without the secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            None => Cow::Borrowed(text),
            // Replaced bytes are ASCII and so is the mask.
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The bytes without the secrets; none if they contain none.
    #[must_use]
    pub fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        let mut redaction = self.begin();
        let mut out = redaction.push(bytes);
        out.append(&mut redaction.finish());
        redaction.found.then_some(out)
    }

    /// Removes the secrets from every text of a value, names of fields included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                for (name, mut value) in std::mem::take(fields) {
                    self.value(&mut value);
                    fields.insert(self.text(&name).into_owned(), value);
                }
            }
        }
    }

    /// Begins a stream of chunks.
    #[must_use]
    pub fn begin(&self) -> Redaction {
        Redaction {
            scans: self.0.iter().cloned().map(Scan::of).collect(),
            pending: Vec::new(),
            passed: 0,
            found: false,
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.0.len())
    }
}

/// A stream of bytes from which secrets are removed. A possible beginning of a secret is withheld
/// until the next bytes decide.
pub struct Redaction {
    scans: Vec<Scan>,
    pending: Vec<u8>,
    /// The number of released bytes.
    passed: u64,
    found: bool,
}

impl Redaction {
    /// Takes the next chunk, and returns the bytes that can be released: all bytes so far except a
    /// possible beginning of a secret.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let from = self.passed + self.pending.len() as u64;
        self.pending.extend_from_slice(bytes);
        let mut found = Vec::new();
        for scan in &mut self.scans {
            scan.push(from, bytes, &mut found);
        }
        self.mask(&found);
        let kept = self.scans.iter().filter_map(Scan::begun).min();
        self.release(kept)
    }

    /// Returns the withheld bytes. No chunk may follow.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut found = Vec::new();
        for scan in &mut self.scans {
            scan.finish(&mut found);
        }
        self.mask(&found);
        self.release(None)
    }

    fn mask(&mut self, found: &[Range<u64>]) {
        self.found |= !found.is_empty();
        let at =
            |offset: u64| usize::try_from(offset.saturating_sub(self.passed)).unwrap_or(usize::MAX);
        for range in found {
            if let Some(secret) = self.pending.get_mut(at(range.start)..at(range.end)) {
                secret.fill(MASK);
            }
        }
    }

    /// Releases all bytes before an offset.
    fn release(&mut self, kept: Option<u64>) -> Vec<u8> {
        let length = kept.map_or(self.pending.len(), |kept| {
            usize::try_from(kept.saturating_sub(self.passed)).unwrap_or(usize::MAX)
        });
        let rest = self.pending.split_off(length.min(self.pending.len()));
        self.passed += self.pending.len() as u64;
        std::mem::replace(&mut self.pending, rest)
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction")
            .field("passed", &self.passed)
            .finish_non_exhaustive()
    }
}

// The needle of a search: one secret in each of its forms.

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
const BASE64_DIGITS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A byte pattern, with the table of Knuth, Morris and Pratt. The table says where to continue
/// after a mismatch, so that each byte is read once.
struct Pattern {
    bytes: Vec<u8>,
    /// The fallback for each number of matched bytes: how many of the last of them match the
    /// beginning.
    falls: Vec<usize>,
}

impl Pattern {
    fn of(bytes: Vec<u8>) -> Self {
        let mut pattern = Self {
            falls: vec![0; bytes.len()],
            bytes,
        };
        let mut fits = 0;
        for at in 1..pattern.bytes.len() {
            let byte = pattern.bytes.get(at).copied().unwrap_or_default();
            fits = pattern.step(fits, byte);
            if let Some(fall) = pattern.falls.get_mut(at) {
                *fall = fits;
            }
        }
        pattern
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of matched bytes after one more.
    fn step(&self, mut fits: usize, byte: u8) -> usize {
        loop {
            if self.bytes.get(fits) == Some(&byte) {
                return fits + 1;
            }
            if fits == 0 {
                return 0;
            }
            fits = self.fall(fits);
        }
    }

    /// Returns how many of the last bytes match the beginning too.
    fn fall(&self, fits: usize) -> usize {
        fits.checked_sub(1)
            .and_then(|last| self.falls.get(last))
            .copied()
            .unwrap_or_default()
    }
}

/// The normalisation of a byte before its comparison.
#[derive(Debug, Clone, Copy)]
enum Fold {
    None,
    /// Hexadecimal digits have two cases.
    Hex,
    /// base64 has two alphabets.
    Base64,
}

impl Fold {
    fn read(self, byte: u8) -> u8 {
        match (self, byte) {
            (Self::Hex, b'A'..=b'F') => byte.to_ascii_lowercase(),
            (Self::Base64, b'-') => b'+',
            (Self::Base64, b'_') => b'/',
            _ => byte,
        }
    }
}

/// Number of encoded forms of a secret that are searched. Each is searched in plain, and after
/// decoding escapes up to three times.
const FORMS: usize = 5;

/// One secret in each of its forms.
struct Needle {
    /// The forms.
    forms: [(Fold, Pattern); FORMS],
    /// First bytes of all forms.
    begins: [bool; 256],
}

impl Needle {
    fn of(secret: &[u8]) -> Self {
        let hex = secret
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .filter_map(|digit| HEX_DIGITS.get(usize::from(digit)).copied());
        let base64 = |before: usize| (Fold::Base64, Pattern::of(base64(secret, before)));
        let forms = [
            (Fold::None, Pattern::of(secret.to_vec())),
            (Fold::Hex, Pattern::of(hex.collect())),
            base64(0),
            base64(1),
            base64(2),
        ];
        let mut begins = [false; 256];
        for byte in 0..=u8::MAX {
            let fits = forms
                .iter()
                .any(|(fold, pattern)| pattern.step(0, fold.read(byte)) > 0);
            if let Some(begins) = begins.get_mut(usize::from(byte)) {
                *begins = fits || is_begin(byte);
            }
        }
        Self { forms, begins }
    }

    fn can_begin_with(&self, byte: u8) -> bool {
        self.begins
            .get(usize::from(byte))
            .copied()
            .unwrap_or_default()
    }
}

/// The base64 digits that depend on the secret alone when so many other bytes precede it.
fn base64(secret: &[u8], before: usize) -> Vec<u8> {
    let bit = |at: usize| {
        secret
            .get(at / 8 - before)
            .map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1))
    };
    let first = (before * 8).div_ceil(6);
    let end = (before + secret.len()) * 8 / 6;
    let digit = |at: usize| {
        BASE64_DIGITS
            .get((at * 6..at * 6 + 6).fold(0, |digit, at| digit << 1 | bit(at)))
            .copied()
    };
    (first..end).filter_map(digit).collect()
}

#[cfg(test)]
mod needle_tests {
    use super::*;

    #[test]
    fn the_digits_of_base64_are_those_that_the_secret_decides_wherever_it_begins() {
        // "secret42", "?secret42" and "??secret42" in base64 are c2VjcmV0NDI=, P3NlY3JldDQy and
        // Pz9zZWNyZXQ0Mg==.
        let digits = |before| String::from_utf8(base64(b"secret42", before)).unwrap();
        assert_eq!(
            [digits(0), digits(1), digits(2)],
            ["c2VjcmV0ND", "NlY3JldDQy", "zZWNyZXQ0M"]
        );
    }

    #[test]
    fn a_pattern_that_overlaps_with_itself_is_found_again() {
        let pattern = Pattern::of(b"abab".to_vec());
        let mut fits = 0;
        let found: Vec<usize> = b"abababab"
            .iter()
            .enumerate()
            .filter_map(|(at, &byte)| {
                fits = pattern.step(fits, byte);
                (fits == pattern.len()).then_some(at)
            })
            .collect();
        assert_eq!(found, [3, 5, 7]);
    }
}

// The search for one secret in a stream of chunks.

/// The plain bytes, and the bytes after each number of decodings.
const LEVELS: usize = DECODINGS_MAX + 1;

/// The search for one secret.
struct Scan {
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
    fn of(needle: Arc<Needle>) -> Self {
        Self {
            needle,
            levels: Default::default(),
            end: 0,
        }
    }

    /// Reads the next bytes, the first of which has this offset.
    fn push(&mut self, from: u64, bytes: &[u8], found: &mut Vec<Range<u64>>) {
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
    fn finish(&mut self, found: &mut Vec<Range<u64>>) {
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
    fn begun(&self) -> Option<u64> {
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

#[cfg(test)]
mod tests;
