//! The search for one secret in bytes that come in pieces.

use super::needle::{FORMS, Needle};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the longest escape, `\u0041`.
const ESCAPE_BYTES_MAX: usize = 6;
/// Stands for a character that no secret has.
const OTHER: u8 = 0xff;

/// The search for one secret.
pub(super) struct Scan {
    needle: Arc<Needle>,
    /// For each form, bytes that fit as they are, whatever escapes mean.
    plain: [usize; FORMS],
    /// For each form, characters that fit once escapes are undone.
    forms: [usize; FORMS],
    /// Where the last characters began: as many as fit in any form.
    characters: VecDeque<u64>,
    /// What may become an escape.
    escape: Vec<u8>,
    /// The offset after the last byte.
    end: u64,
}

/// What a possible escape is.
enum Escape {
    Unfinished,
    /// A character, and how many bytes it is written with.
    Character(u8, usize),
}

impl Scan {
    pub(super) fn of(needle: Arc<Needle>) -> Self {
        let escape = Vec::with_capacity(ESCAPE_BYTES_MAX);
        Self { needle, plain: [0; FORMS], forms: [0; FORMS], characters: VecDeque::new(), escape, end: 0 }
    }

    /// Looks at the next bytes, the first of which has this offset.
    pub(super) fn push(&mut self, from: u64, bytes: &[u8], found: &mut Vec<Range<u64>>) {
        self.end = from;
        for &byte in bytes {
            self.end += 1;
            if self.begun().is_none() && !self.needle.can_begin_with(byte) {
                continue;
            }
            for ((fold, pattern), fits) in self.needle.forms.iter().zip(&mut self.plain) {
                *fits = pattern.step(*fits, fold.read(byte));
                if *fits == pattern.len() {
                    found.push(self.end - *fits as u64..self.end);
                    *fits = pattern.fall(*fits);
                }
            }
            self.escape.push(byte);
            while let Escape::Character(character, bytes) = escape(&self.escape) {
                self.character(character, bytes, found);
            }
        }
    }

    /// Nothing more is to come.
    pub(super) fn finish(&mut self, found: &mut Vec<Range<u64>>) {
        while let Some(&byte) = self.escape.first() {
            self.character(byte, 1, found);
        }
    }

    /// Where something began that may become the secret.
    pub(super) fn begun(&self) -> Option<u64> {
        let plain = self.plain.iter().copied().max().filter(|fits| *fits > 0).map(|fits| self.end - fits as u64);
        let escape = (!self.escape.is_empty()).then(|| self.end - self.escape.len() as u64);
        [plain, self.characters.front().copied(), escape].into_iter().flatten().min()
    }

    /// Takes a character that so many bytes of the possible escape stand for.
    fn character(&mut self, character: u8, bytes: usize, found: &mut Vec<Range<u64>>) {
        self.characters.push_back(self.end - self.escape.len() as u64);
        self.escape.drain(..bytes);
        let end = self.end - self.escape.len() as u64;
        let mut longest = 0;
        for ((fold, pattern), fits) in self.needle.forms.iter().zip(&mut self.forms) {
            *fits = pattern.step(*fits, fold.read(character));
            if *fits == pattern.len() {
                let first = self.characters.len().checked_sub(*fits).and_then(|first| self.characters.get(first));
                found.extend(first.map(|first| *first..end));
                *fits = pattern.fall(*fits);
            }
            longest = longest.max(*fits);
        }
        let over = self.characters.len().saturating_sub(longest);
        self.characters.drain(..over);
    }
}

/// What the first of these bytes are.
fn escape(bytes: &[u8]) -> Escape {
    match bytes {
        [] | [b'%' | b'\\'] => Escape::Unfinished,
        [b'%', digits @ ..] => number(bytes, digits, 2),
        [b'\\', b'u', digits @ ..] => number(bytes, digits, 4),
        [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] => Escape::Character(*escaped, 2),
        [byte, ..] => Escape::Character(*byte, 1),
    }
}

/// An escape by so many hexadecimal digits, or a byte that only looked like one.
fn number(bytes: &[u8], digits: &[u8], count: usize) -> Escape {
    let digits = digits.get(..count).unwrap_or(digits);
    let Some(number) = digits.iter().try_fold(0, |number, &digit| Some(number << 4 | char::from(digit).to_digit(16)?)) else {
        return Escape::Character(bytes.first().copied().unwrap_or(OTHER), 1);
    };
    let length = bytes.len().min(if count == 2 { 3 } else { ESCAPE_BYTES_MAX });
    if digits.len() < count { Escape::Unfinished } else { Escape::Character(u8::try_from(number).unwrap_or(OTHER), length) }
}
