//! Using a bucket: valid keys and values, quotas, counters, and the uncommitted writes of a call.

use crate::access::grant::{BucketGrant, KEY_BYTES_MAX, VALUE_BYTES_MAX, WRITTEN_BYTES_MAX};
use crate::access::tool::bytes_as_hex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound;

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
            _ => None,
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

// The overlay of one call: its writes to a bucket. Other calls do not see them before they are
// committed with the call's outcome.

/// The spent part of a call's allowance, in all buckets together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    bytes: usize,
    keys: usize,
}

/// The writes of one call to one bucket, over the stored values.
#[derive(Debug, Clone, Default)]
pub struct Overlay {
    /// A key without a value was deleted.
    entries: BTreeMap<String, Option<Vec<u8>>>,
    /// The bucket's size with these writes.
    size: BucketSize,
}

/// One page of a bucket's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The keys, in the order of their bytes.
    pub keys: Vec<String>,
    /// The key that precedes the next page; none after the last page.
    pub next: Option<String>,
}

impl Overlay {
    /// No writes, over a stored bucket of this size.
    #[must_use]
    pub fn over(size: BucketSize) -> Self {
        Self {
            entries: BTreeMap::new(),
            size,
        }
    }

    /// Returns a call's write to a key: a value, or its deletion. None if the call has not written
    /// it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Option<&[u8]>> {
        self.entries.get(key).map(Option::as_deref)
    }

    /// Sets a key to a value, or deletes it. `stored` is the length in bytes of the key's stored
    /// value, if there is one.
    ///
    /// # Errors
    /// The key or the value is invalid, or a limit is exceeded. Nothing has changed then.
    pub fn put(
        &mut self,
        key: &str,
        value: Option<Vec<u8>>,
        stored: Option<u64>,
        grant: &BucketGrant,
        spent: &mut Spent,
    ) -> Result<(), Unfit> {
        check_key(key)?;
        if value
            .as_ref()
            .is_some_and(|value| value.len() > VALUE_BYTES_MAX)
        {
            return Err(Unfit::LongValue);
        }
        let written = self.entries.get(key);
        // Deleting a key that was never stored leaves nothing to write.
        let adds_entry = value.is_some() || stored.is_some();
        let cost = |value: &Option<Vec<u8>>| key.len() + value.as_ref().map_or(0, Vec::len);
        let was_cost = written.map_or(0, cost);
        let is_cost = if adds_entry { cost(&value) } else { 0 };
        let to = Spent {
            bytes: spent.bytes.saturating_sub(was_cost) + is_cost,
            keys: spent.keys.saturating_sub(usize::from(written.is_some()))
                + usize::from(adds_entry),
        };
        if to.bytes > spent.bytes && to.bytes > WRITTEN_BYTES_MAX {
            return Err(Unfit::WrittenBytes);
        }
        if to.keys > spent.keys && to.keys > KEYS_WRITTEN_MAX {
            return Err(Unfit::WrittenKeys);
        }
        let leased = |bytes: u64| BucketSize {
            keys: 1,
            bytes: key.len() as u64 + bytes,
        };
        let was = match written {
            Some(value) => value.as_ref().map(|value| leased(value.len() as u64)),
            None => stored.map(leased),
        };
        let is = value.as_ref().map(|value| leased(value.len() as u64));
        let was = was.unwrap_or_default();
        let is = is.unwrap_or_default();
        let size = BucketSize {
            keys: self.size.keys.saturating_sub(was.keys) + is.keys,
            bytes: self.size.bytes.saturating_sub(was.bytes) + is.bytes,
        };
        grant.may_grow(self.size, size)?;
        (self.size, *spent) = (size, to);
        if adds_entry {
            self.entries.insert(key.to_owned(), value);
        } else {
            self.entries.remove(key);
        }
        Ok(())
    }

    /// The page of keys after a key. `stored` is the first of the stored keys after it, in the
    /// order of their bytes: one more than a page has, or all that exist. A page may have fewer
    /// keys if the call has deleted some.
    #[must_use]
    pub fn page(&self, after: Option<&str>, stored: Vec<String>) -> Page {
        // After the last stored key that was read, there may be more stored keys before the next
        // written one.
        let end = if stored.len() > PAGE_KEYS_MAX {
            stored.last().cloned()
        } else {
            None
        };
        let range = (
            after.map_or(Bound::Unbounded, Bound::Excluded),
            end.as_deref().map_or(Bound::Unbounded, Bound::Included),
        );
        let mut keys: BTreeMap<String, bool> = stored.into_iter().map(|key| (key, true)).collect();
        keys.extend(
            self.entries
                .range::<str, _>(range)
                .map(|(key, value)| (key.clone(), value.is_some())),
        );
        let mut keys: Vec<String> = keys
            .into_iter()
            .filter_map(|(key, there)| there.then_some(key))
            .collect();
        let next = if keys.len() > PAGE_KEYS_MAX {
            keys.truncate(PAGE_KEYS_MAX);
            keys.last().cloned()
        } else {
            end
        };
        Page { keys, next }
    }

    /// All writes, in the order of the keys.
    #[must_use]
    pub fn into_entries(self) -> Vec<WrittenEntry> {
        self.entries
            .into_iter()
            .map(|(key, value)| WrittenEntry {
                key,
                value: WrittenValue::of(value),
            })
            .collect()
    }
}

#[cfg(test)]
mod overlay_tests {
    use super::*;
    use crate::access::grant::Access;

    fn grant() -> BucketGrant {
        BucketGrant::new("b", Access::ReadWrite)
    }

    fn text(value: &str) -> Option<Vec<u8>> {
        Some(value.as_bytes().to_vec())
    }

    /// The writes of a call, with what it has spent and how large the bucket would be.
    struct Call {
        overlay: Overlay,
        spent: Spent,
        grant: BucketGrant,
    }

    impl Call {
        fn new(grant: BucketGrant, keys: u64, bytes: u64) -> Self {
            Self {
                overlay: Overlay::over(BucketSize { keys, bytes }),
                spent: Spent::default(),
                grant,
            }
        }

        fn put(
            &mut self,
            key: &str,
            value: Option<Vec<u8>>,
            stored: Option<u64>,
        ) -> Result<(), Unfit> {
            self.overlay
                .put(key, value, stored, &self.grant, &mut self.spent)
        }

        fn sums(&self) -> (u64, u64, usize, usize) {
            (
                self.overlay.size.keys,
                self.overlay.size.bytes,
                self.spent.keys,
                self.spent.bytes,
            )
        }
    }

    #[test]
    fn a_call_sees_what_it_has_written_and_the_sums_follow() {
        let mut call = Call::new(grant(), 1, 6);
        call.put("new", text("12"), None).unwrap();
        assert_eq!(call.sums(), (2, 11, 1, 5));
        call.put("new", text("1"), None).unwrap();
        assert_eq!(call.sums(), (2, 10, 1, 4));
        call.put("old", text("1"), Some(3)).unwrap();
        assert_eq!(call.sums(), (2, 8, 2, 8));
        call.put("old", None, Some(3)).unwrap();
        assert_eq!(call.sums(), (1, 4, 2, 7));
        call.put("new", None, None).unwrap();
        assert_eq!(
            call.sums(),
            (0, 0, 1, 3),
            "what was never stored leaves nothing to write"
        );
        call.put("never", None, None).unwrap();
        assert_eq!(call.sums(), (0, 0, 1, 3));
        assert_eq!(
            (call.overlay.get("old"), call.overlay.get("new")),
            (Some(None), None)
        );
        assert_eq!(
            call.overlay.into_entries(),
            [WrittenEntry {
                key: "old".to_owned(),
                value: WrittenValue::Deleted
            }]
        );
    }

    #[test]
    fn what_meets_a_limit_changes_nothing() {
        let mut call = Call::new(
            BucketGrant {
                bytes_max: 8,
                keys_max: 2,
                ..grant()
            },
            1,
            4,
        );
        call.put("a", text("123"), None).unwrap();
        let before = call.sums();
        for (key, value, expected) in [
            ("", text(""), Unfit::EmptyKey),
            ("b", text(""), Unfit::QuotaKeys { max: 2 }),
            ("a", text("1234"), Unfit::QuotaBytes { max: 8 }),
            ("a", Some(vec![0; VALUE_BYTES_MAX + 1]), Unfit::LongValue),
        ] {
            assert_eq!(call.put(key, value, None), Err(expected), "{key}");
            assert_eq!(call.sums(), before);
        }
        assert_eq!(call.overlay.get("a"), Some(Some(&b"123"[..])));
    }

    #[test]
    fn one_call_writes_so_many_bytes_and_keys_and_no_more() {
        let mut call = Call::new(
            BucketGrant {
                bytes_max: u64::MAX,
                ..grant()
            },
            0,
            0,
        );
        for n in 0..15 {
            call.put(&format!("{n:02}"), Some(vec![0; VALUE_BYTES_MAX]), None)
                .unwrap();
        }
        assert_eq!(
            call.put("15", Some(vec![0; VALUE_BYTES_MAX]), None),
            Err(Unfit::WrittenBytes)
        );
        call.put("00", text("small"), None).unwrap();
        call.put("15", Some(vec![0; VALUE_BYTES_MAX]), None)
            .unwrap();

        let mut call = Call::new(
            BucketGrant {
                keys_max: u32::MAX,
                ..grant()
            },
            0,
            0,
        );
        for n in 0..KEYS_WRITTEN_MAX {
            call.put(&n.to_string(), text(""), None).unwrap();
        }
        assert_eq!(call.put("more", text(""), None), Err(Unfit::WrittenKeys));
        assert_eq!(call.put("more", None, Some(1)), Err(Unfit::WrittenKeys));
        call.put("1", None, None).unwrap();
        call.put("more", text(""), None).unwrap();
    }

    #[test]
    fn pages_of_stored_and_written_keys_leave_out_none_and_repeat_none() {
        let all: Vec<String> = (0..2_500).map(|n| format!("k{n:04}")).collect();
        let mut call = Call::new(grant(), 2_500, 0);
        for (key, value, stored) in [
            ("a", text(""), None),
            ("k0500", None, Some(0)),
            ("k0999x", text(""), None),
            ("k1500", text(""), Some(0)),
            ("z", text(""), None),
        ] {
            call.put(key, value, stored).unwrap();
        }
        let mut seen = Vec::new();
        let mut after = None::<String>;
        let mut pages = 0;
        loop {
            let from = all.partition_point(|key| after.as_ref().is_some_and(|after| key <= after));
            let stored = all[from..]
                .iter()
                .take(PAGE_KEYS_MAX + 1)
                .cloned()
                .collect();
            let page = call.overlay.page(after.as_deref(), stored);
            assert!(page.keys.len() <= PAGE_KEYS_MAX);
            pages += 1;
            seen.extend(page.keys);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let mut expected: Vec<String> = all.into_iter().filter(|key| key != "k0500").collect();
        expected.extend(["a", "k0999x", "z"].map(str::to_owned));
        expected.sort();
        assert_eq!((seen == expected, pages), (true, 3));
    }

    #[test]
    fn a_page_whose_keys_are_all_deleted_is_empty_and_not_the_last() {
        let stored: Vec<String> = (0..=PAGE_KEYS_MAX).map(|n| format!("{n:04}")).collect();
        let mut call = Call::new(grant(), 5_000, 50_000);
        for key in &stored {
            call.put(key, None, Some(1)).unwrap();
        }
        let page = call.overlay.page(None, stored.clone());
        assert_eq!(
            page,
            Page {
                keys: Vec::new(),
                next: stored.last().cloned()
            }
        );
    }
}

#[cfg(test)]
mod tests;
