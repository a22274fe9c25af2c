//! The needle of a search: one secret in each of its forms.

use super::escape::is_begin;

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
const BASE64_DIGITS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A byte pattern, with the table of Knuth, Morris and Pratt. The table says where to continue
/// after a mismatch, so that each byte is read once.
pub(super) struct Pattern {
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

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of matched bytes after one more.
    pub(super) fn step(&self, mut fits: usize, byte: u8) -> usize {
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
    pub(super) fn fall(&self, fits: usize) -> usize {
        fits.checked_sub(1)
            .and_then(|last| self.falls.get(last))
            .copied()
            .unwrap_or_default()
    }
}

/// The normalisation of a byte before its comparison.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fold {
    None,
    /// Hexadecimal digits have two cases.
    Hex,
    /// base64 has two alphabets.
    Base64,
}

impl Fold {
    pub(super) fn read(self, byte: u8) -> u8 {
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
pub(super) const FORMS: usize = 5;

/// One secret in each of its forms.
pub(super) struct Needle {
    /// The forms.
    pub(super) forms: [(Fold, Pattern); FORMS],
    /// First bytes of all forms.
    begins: [bool; 256],
}

impl Needle {
    pub(super) fn of(secret: &[u8]) -> Self {
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

    pub(super) fn can_begin_with(&self, byte: u8) -> bool {
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
mod tests {
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
