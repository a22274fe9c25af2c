//! Using a bucket: valid keys and values, quotas, counters, and the uncommitted writes of a call.

mod overlay;

pub use overlay::{Overlay, Page, Spent};

use crate::access::grant::{BucketGrant, KEY_BYTES_MAX, VALUE_BYTES_MAX, WRITTEN_BYTES_MAX};
use crate::access::tool::bytes_as_hex;
use serde::{Deserialize, Serialize};

/// Keys that one call may write, in all buckets together.
pub const KEYS_WRITTEN_MAX: usize = 10_000;
/// Keys of one page of a list.
pub const PAGE_KEYS_MAX: usize = 1_000;
/// Keys of one batch.
pub const BATCH_KEYS_MAX: usize = 1_000;
/// Bytes of all keys and values that one batch reads: 2 MiB.
pub const BATCH_BYTES_MAX: usize = 2 << 20;

/// Number of keys and bytes of a bucket in one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BucketSize {
    /// Keys.
    pub keys: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// A key and its value after the commit of a call's writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenEntry {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: WrittenValue,
}

/// A value in an event: as text if it is readable text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrittenValue {
    /// Text.
    Text(String),
    /// Bytes that are no text, or text with control characters other than line ends and tabs.
    Hex(#[serde(with = "bytes_as_hex")] Vec<u8>),
    /// No value: the key was deleted.
    Deleted,
}

impl WrittenValue {
    /// The form of a value in an event.
    #[must_use]
    pub fn of(value: Option<Vec<u8>>) -> Self {
        let Some(bytes) = value else {
            return Self::Deleted;
        };
        // In JSON a control character takes six bytes.
        let plain = |text: &str| {
            text.chars()
                .all(|letter| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t'))
        };
        match String::from_utf8(bytes) {
            Ok(text) if plain(&text) => Self::Text(text),
            Ok(text) => Self::Hex(text.into_bytes()),
            Err(error) => Self::Hex(error.into_bytes()),
        }
    }

    /// The value; none if the key was deleted.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Hex(bytes) => Some(bytes),
            Self::Deleted => None,
        }
    }
}

/// The reason why a bucket refuses an input or an addition to a counter. The guest reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A key without a letter.
    #[error("a key is not empty")]
    EmptyKey,
    /// A key over [`KEY_BYTES_MAX`].
    #[error("limit: a key has at most {KEY_BYTES_MAX} bytes")]
    LongKey,
    /// A value over [`VALUE_BYTES_MAX`].
    #[error("limit: a value has at most {VALUE_BYTES_MAX} bytes")]
    LongValue,
    /// A call over [`WRITTEN_BYTES_MAX`].
    #[error("limit: a call writes at most {WRITTEN_BYTES_MAX} bytes, keys included")]
    WrittenBytes,
    /// A call over [`KEYS_WRITTEN_MAX`].
    #[error("limit: a call writes at most {KEYS_WRITTEN_MAX} keys")]
    WrittenKeys,
    /// A batch over [`BATCH_KEYS_MAX`].
    #[error("limit: a batch has at most {BATCH_KEYS_MAX} keys")]
    BatchKeys,
    /// A batch over [`BATCH_BYTES_MAX`].
    #[error("limit: a batch reads at most {BATCH_BYTES_MAX} bytes, keys included")]
    BatchBytes,
    /// More bytes than the grant allows for the bucket.
    #[error("quota: the bucket holds at most {max} bytes, keys included (bytesMax)")]
    QuotaBytes {
        /// The limit in bytes.
        max: u64,
    },
    /// More keys than the grant allows for the bucket.
    #[error("quota: the bucket holds at most {max} keys (keysMax)")]
    QuotaKeys {
        /// The limit in keys.
        max: u32,
    },
    /// Something that is no counter.
    #[error("the value is not a number: digits only, at most {}", u64::MAX)]
    NoNumber,
    /// A counter would exceed 2^64 - 1.
    #[error("the sum is over {}", u64::MAX)]
    Overflow,
    /// A page token that was never issued, or is too old.
    #[error("there is no page of this cursor: a cursor is good for the call that got it")]
    NoPage,
}

impl Unfit {
    /// The exceeded limit, by its name in the ledger; none if no limit is exceeded.
    #[must_use]
    pub fn limit(self) -> Option<&'static str> {
        match self {
            Self::LongKey => Some("keyBytes"),
            Self::LongValue => Some("valueBytes"),
            Self::WrittenBytes => Some("writtenBytes"),
            Self::WrittenKeys => Some("writtenKeys"),
            Self::BatchKeys => Some("batchKeys"),
            Self::BatchBytes => Some("batchBytes"),
            Self::QuotaBytes { .. } => Some("bytesMax"),
            Self::QuotaKeys { .. } => Some("keysMax"),
            Self::EmptyKey | Self::NoNumber | Self::Overflow | Self::NoPage => None,
        }
    }
}

/// Checks that a text is a valid key: 1 to [`KEY_BYTES_MAX`] bytes.
///
/// # Errors
/// It is empty or too long.
pub fn check_key(key: &str) -> Result<(), Unfit> {
    match key.len() {
        0 => Err(Unfit::EmptyKey),
        1..=KEY_BYTES_MAX => Ok(()),
        _ => Err(Unfit::LongKey),
    }
}

/// Checks that a batch is short enough and that each of its keys is valid.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_batch<'a>(keys: impl ExactSizeIterator<Item = &'a str>) -> Result<(), Unfit> {
    if keys.len() > BATCH_KEYS_MAX {
        return Err(Unfit::BatchKeys);
    }
    for key in keys {
        check_key(key)?;
    }
    Ok(())
}

/// A counter after an addition. A counter is a decimal number from 0 to 2^64 - 1 as text, digits
/// only; without a value it is 0.
///
/// # Errors
/// The value is not such a number, or the sum exceeds the limit.
pub fn counted(value: Option<&[u8]>, delta: u64) -> Result<u64, Unfit> {
    let Some(value) = value else { return Ok(delta) };
    if !value.iter().all(u8::is_ascii_digit) {
        return Err(Unfit::NoNumber);
    }
    let number: u64 = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(Unfit::NoNumber)?;
    number.checked_add(delta).ok_or(Unfit::Overflow)
}

impl BucketGrant {
    /// Checks that a bucket may grow from one size to another. It may always shrink, even if the
    /// quota was lowered meanwhile.
    ///
    /// # Errors
    /// The exceeded quota.
    pub fn may_grow(&self, from: BucketSize, to: BucketSize) -> Result<(), Unfit> {
        if to.keys > from.keys && to.keys > u64::from(self.keys_max) {
            return Err(Unfit::QuotaKeys { max: self.keys_max });
        }
        if to.bytes > from.bytes && to.bytes > self.bytes_max {
            return Err(Unfit::QuotaBytes {
                max: self.bytes_max,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
