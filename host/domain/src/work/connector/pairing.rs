//! Pairing: an unknown sender receives a code, with which the operator or a user says who the
//! sender is.

use super::limits::{PAIRING_MS, PAIRINGS_MAX, PAIRINGS_OF_SENDER_MAX};
use crate::values::text::{serde_as_text, wrapped_text};
use crate::values::time::Timestamp;
use std::str::FromStr;

/// Characters of a code.
pub const PAIRING_CODE_CHARS: usize = 8;
/// The characters of codes: no two of them look alike.
const ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/// A pairing code: 8 of `2`–`9` and `A`–`Z` without `I` and `O`. Small letters, blanks and dashes
/// are accepted on reading.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairingCode(String);

/// A text that is no pairing code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no pairing code: {PAIRING_CODE_CHARS} letters and digits are needed, as the sender \
     was told them"
)]
pub struct NotACode;

/// The answer to an unknown sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingOffer {
    /// They get a new code, which is valid until then.
    New {
        /// Time until which it is valid.
        expires: Timestamp,
    },
    /// They get no answer: too many codes of theirs, or of the connector's, are valid now.
    Nothing,
}

/// The reason why a pairing cannot be confirmed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairingRefused {
    /// Its time is over.
    #[error("the code has expired; have the sender write again for another one")]
    Expired,
}

impl PairingCode {
    /// The code from random bytes. Each character is equally likely.
    #[must_use]
    pub fn from_random(bytes: [u8; PAIRING_CODE_CHARS]) -> Self {
        Self(bytes.into_iter().map(sign).collect())
    }
}

/// Returns the character for a byte.
pub(super) fn sign(byte: u8) -> char {
    let index = usize::from(byte) % ALPHABET.len();
    ALPHABET.get(index).copied().map_or('2', char::from)
}

impl FromStr for PairingCode {
    type Err = NotACode;

    fn from_str(text: &str) -> Result<Self, NotACode> {
        let code: String = text
            .chars()
            .filter(|char| *char != '-' && *char != ' ')
            .map(|char| char.to_ascii_uppercase())
            .take(PAIRING_CODE_CHARS + 1)
            .collect();
        if code.len() == PAIRING_CODE_CHARS && code.bytes().all(|byte| ALPHABET.contains(&byte)) {
            Ok(Self(code))
        } else {
            Err(NotACode)
        }
    }
}

wrapped_text!(PairingCode);
serde_as_text!(PairingCode::from_str);

impl PairingOffer {
    /// Returns the answer, by the number of codes that are valid now: those of the sender, and
    /// those of the whole connector.
    #[must_use]
    pub fn new(of_sender: usize, of_connector: usize, now: Timestamp) -> Self {
        if of_sender >= PAIRINGS_OF_SENDER_MAX || of_connector >= PAIRINGS_MAX {
            return Self::Nothing;
        }
        Self::New {
            expires: now.plus_ms(PAIRING_MS),
        }
    }
}

/// Checks that a code is still valid.
///
/// # Errors
/// It has expired.
pub fn confirm(expires: Timestamp, now: Timestamp) -> Result<(), PairingRefused> {
    if now < expires {
        Ok(())
    } else {
        Err(PairingRefused::Expired)
    }
}

/// Returns the text with which a sender receives a code.
#[must_use]
pub fn offer_words(code: &PairingCode) -> String {
    format!(
        "I do not know you yet. Give this code to whoever runs this service, or enter it where \
         you are signed in: **{code}**. It counts for {} minutes.",
        PAIRING_MS / 60_000
    )
}

#[cfg(test)]
mod tests;
