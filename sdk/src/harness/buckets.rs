//! Buckets in memory, for native tests: a test has those that it granted, and no other test sees
//! them.

use crate::keyvalue::{Error, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::tool::ToolError;
use crate::wire::keyvalue::{Entry, Page};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Keys of a page.
const PAGE_KEYS_MAX: usize = 100;

type Entries = BTreeMap<String, Vec<u8>>;

thread_local! {
    static BUCKETS: RefCell<BTreeMap<String, Entries>> = const { RefCell::new(BTreeMap::new()) };
}

/// Grants a bucket to the code under test. Content that this test wrote before stays.
pub fn grant_bucket(name: &str) {
    BUCKETS.with_borrow_mut(|buckets| {
        buckets.entry(name.to_owned()).or_default();
    });
}

/// Makes one call: what it writes stays only when it succeeds.
pub(super) fn as_one<T>(call: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    let before = BUCKETS.with_borrow(Clone::clone);
    let result = call();
    if result.is_err() {
        BUCKETS.set(before);
    }
    result
}

/// A bucket that was opened.
#[derive(Debug)]
pub(crate) struct Opened(String);

impl Opened {
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        let is_granted = BUCKETS.with_borrow(|buckets| buckets.contains_key(name));
        if is_granted {
            Ok(Self(name.to_owned()))
        } else {
            Err(Error::Denied)
        }
    }

    fn with<T>(&self, run: impl FnOnce(&mut Entries) -> T) -> Result<T, Error> {
        BUCKETS
            .with_borrow_mut(|buckets| buckets.get_mut(&self.0).map(run))
            .ok_or(Error::Denied)
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.with(|entries| entries.get(key).cloned())
    }

    pub(crate) fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Entry>>, Error> {
        self.with(|entries| {
            keys.iter()
                .map(|key| {
                    entries
                        .get_key_value(key)
                        .map(|(key, value)| (key.clone(), value.clone()))
                })
                .collect()
        })
    }

    pub(crate) fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Error> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::Other(format!(
                "the key has more than {KEY_BYTES_MAX} bytes"
            )));
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::Other(format!(
                "the value has more than {VALUE_BYTES_MAX} bytes"
            )));
        }
        self.with(|entries| entries.insert(key.to_owned(), value))
            .map(drop)
    }

    pub(crate) fn delete(&self, key: &str) -> Result<(), Error> {
        self.with(|entries| entries.remove(key)).map(drop)
    }

    pub(crate) fn list_keys(&self, cursor: Option<u64>) -> Result<Page, Error> {
        let begin = usize::try_from(cursor.unwrap_or_default()).unwrap_or(usize::MAX);
        self.with(|entries| {
            let end = begin.saturating_add(PAGE_KEYS_MAX);
            let keys = entries
                .keys()
                .skip(begin)
                .take(PAGE_KEYS_MAX)
                .cloned()
                .collect();
            (keys, (end < entries.len()).then_some(end as u64))
        })
    }

    pub(crate) fn increment(&self, key: &str, delta: u64) -> Result<u64, Error> {
        let number: u64 = match self.get(key)? {
            None => 0,
            Some(bytes) => std::str::from_utf8(&bytes)
                .ok()
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| Error::Other(format!("there is no number under `{key}`")))?,
        };
        let sum = number
            .checked_add(delta)
            .ok_or_else(|| Error::Other(format!("the number under `{key}` is too large")))?;
        self.set(key, sum.to_string().into_bytes())?;
        Ok(sum)
    }
}
