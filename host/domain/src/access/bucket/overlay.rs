//! The overlay of one call: its writes to a bucket. Other calls do not see them before they are
//! committed with the call's outcome.

use super::{
    BucketSize, KEYS_WRITTEN_MAX, PAGE_KEYS_MAX, Unfit, WrittenEntry, WrittenValue, check_key,
};
use crate::access::grant::{BucketGrant, VALUE_BYTES_MAX, WRITTEN_BYTES_MAX};
use std::collections::BTreeMap;
use std::ops::Bound;

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
mod tests;
