//! Buckets of the host's key-value store (`wasi:keyvalue`), with values of any type as JSON.
//!
//! A tool opens a bucket by the name under which the operator granted it. What a call writes it
//! reads again at once; it stays if the call succeeds, together with its result, and is gone if it
//! fails. In a native test a bucket is a map in memory that the test grants with
//! [`harness::grant_bucket`](crate::harness::grant_bucket), and
//! [`harness::Bench`](crate::harness::Bench) keeps the same promise.

pub use agent_host_shapes::limits::tool::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use crate::tool::ToolError;
use crate::wire::keyvalue::Opened;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Keys that [`Bucket::keys`] lists.
pub const LISTED_KEYS_MAX: usize = 100_000;
/// Entries that are asked for at a time: as many of the largest come within the 2 MiB that the host
/// reads at once.
const BATCH_KEYS_MAX: usize = 30;

/// The reason that an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no bucket of that name.
    #[error("there is no such bucket")]
    NoSuchBucket,
    /// The call may not use the bucket, or not in this way.
    #[error("not allowed")]
    Denied,
    /// The bytes under a key are not JSON of the type.
    #[error("what is stored under `{key}` cannot be read")]
    Unreadable {
        /// The key.
        key: String,
        /// The fault in the bytes.
        source: serde_json::Error,
    },
    /// A value has no JSON form.
    #[error("the value for `{key}` has no JSON form")]
    Unwritable {
        /// The key.
        key: String,
        /// The reason.
        source: serde_json::Error,
    },
    /// There are more than [`LISTED_KEYS_MAX`] keys.
    #[error("the bucket has more than {LISTED_KEYS_MAX} keys")]
    TooManyKeys,
    /// Another error, with the host's message: a key or a value is too large, the bucket is full.
    #[error("{0}")]
    Other(String),
}

/// The conversion for `?` in a tool.
impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied => Self::Denied,
            Error::NoSuchBucket
            | Error::Unreadable { .. }
            | Error::Unwritable { .. }
            | Error::TooManyKeys
            | Error::Other(_) => Self::Failed(error.to_string()),
        }
    }
}

/// A named set of entries.
#[derive(Debug)]
pub struct Bucket(Opened);

impl Bucket {
    /// Opens a bucket.
    ///
    /// # Errors
    /// [`Error::Denied`] when it is not granted, whether or not there is one.
    pub fn open(name: &str) -> Result<Self, Error> {
        Opened::open(name).map(Self)
    }

    /// The value of a key; none when there is no such entry.
    ///
    /// # Errors
    /// Reading is not granted, or what is stored is not a `T`.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        self.0.get(key)?.map(|bytes| read(key, &bytes)).transpose()
    }

    /// The values of some keys, in their order; none where there is no entry.
    ///
    /// # Errors
    /// As [`Bucket::get`].
    pub fn get_many<T: DeserializeOwned>(&self, keys: &[String]) -> Result<Vec<Option<T>>, Error> {
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH_KEYS_MAX) {
            for entry in self.0.get_many(keys)? {
                values.push(entry.map(|(key, bytes)| read(&key, &bytes)).transpose()?);
            }
        }
        Ok(values)
    }

    /// Sets the value of a key, whether or not there was one. The key has [`KEY_BYTES_MAX`] bytes
    /// at most, the value as JSON [`VALUE_BYTES_MAX`].
    ///
    /// # Errors
    /// Writing is not granted, or something is too large.
    pub fn set<T: Serialize>(&self, key: &str, value: &T) -> Result<(), Error> {
        let bytes = serde_json::to_vec(value).map_err(|source| Error::Unwritable {
            key: key.to_owned(),
            source,
        })?;
        self.0.set(key, bytes)
    }

    /// Removes an entry. Succeeds when there is none.
    ///
    /// # Errors
    /// Writing is not granted.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        self.0.delete(key)
    }

    /// All keys, sorted.
    ///
    /// # Errors
    /// Reading is not granted, or there are more than [`LISTED_KEYS_MAX`].
    pub fn keys(&self) -> Result<Vec<String>, Error> {
        let mut keys = Vec::new();
        let mut cursor = None;
        loop {
            let (page, next) = self.0.list_keys(cursor)?;
            keys.extend(page);
            if keys.len() > LISTED_KEYS_MAX {
                return Err(Error::TooManyKeys);
            }
            match next {
                // A page may be empty, but not the same again.
                Some(_) if next != cursor => cursor = next,
                _ => break,
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// Adds to the number under a key, which counts as 0 when there is none, and returns the sum.
    /// It is stored as decimal digits.
    ///
    /// # Errors
    /// Writing is not granted, or what is stored is not such a number.
    pub fn increment(&self, key: &str, delta: u64) -> Result<u64, Error> {
        self.0.increment(key, delta)
    }
}

fn read<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|source| Error::Unreadable {
        key: key.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Bench, grant_bucket};
    use crate::{CallContext, Tool, Tools};
    use serde_json::json;

    #[test]
    fn a_bucket_that_is_not_granted_is_denied() {
        assert!(matches!(Bucket::open("lists"), Err(Error::Denied)));
        assert_eq!(ToolError::from(Error::Denied), ToolError::Denied);
    }

    #[test]
    fn entries_are_set_read_listed_and_removed() {
        grant_bucket("lists");
        let bucket = Bucket::open("lists").unwrap();
        assert_eq!(bucket.get::<String>("a").unwrap(), None);
        bucket.set("a", &"one").unwrap();
        bucket.set("b", &json!({ "two": 2 })).unwrap();
        // A bucket that is opened again shows the same.
        let bucket = Bucket::open("lists").unwrap();
        assert_eq!(bucket.get::<String>("a").unwrap().as_deref(), Some("one"));
        let keys = ["b", "ghost", "a"].map(str::to_owned);
        assert_eq!(
            bucket.get_many::<serde_json::Value>(&keys).unwrap(),
            [Some(json!({ "two": 2 })), None, Some(json!("one"))]
        );
        assert_eq!(bucket.keys().unwrap(), ["a", "b"]);
        bucket.delete("a").unwrap();
        bucket.delete("a").unwrap();
        assert_eq!(bucket.keys().unwrap(), ["b"]);
        assert!(matches!(bucket.get::<u32>("b"), Err(Error::Unreadable { key, .. }) if key == "b"));
    }

    #[test]
    fn many_keys_come_page_by_page() {
        grant_bucket("lists");
        let bucket = Bucket::open("lists").unwrap();
        let keys: Vec<String> = (0..1_234).map(|n| format!("{n:05}")).collect();
        for key in &keys {
            bucket.set(key, &1).unwrap();
        }
        assert_eq!(bucket.keys().unwrap(), keys);
        assert_eq!(bucket.get_many::<u32>(&keys).unwrap().len(), keys.len());
    }

    #[test]
    fn numbers_count_up() {
        grant_bucket("lists");
        let bucket = Bucket::open("lists").unwrap();
        assert_eq!(
            [3, 0, 4].map(|delta| bucket.increment("n", delta).unwrap()),
            [3, 3, 7]
        );
        bucket.set("text", &"x").unwrap();
        assert!(matches!(bucket.increment("text", 1), Err(Error::Other(_))));
    }

    #[test]
    fn keys_and_values_that_are_too_large_are_refused() {
        grant_bucket("lists");
        let bucket = Bucket::open("lists").unwrap();
        assert!(matches!(
            bucket.set(&"k".repeat(KEY_BYTES_MAX + 1), &1),
            Err(Error::Other(_))
        ));
        assert!(matches!(
            bucket.set("k", &"v".repeat(VALUE_BYTES_MAX - 1)),
            Err(Error::Other(_))
        ));
        bucket
            .set(&"k".repeat(KEY_BYTES_MAX), &"v".repeat(VALUE_BYTES_MAX - 2))
            .unwrap();
    }

    struct Counter;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Fails {
        fails: bool,
    }

    impl Tools for Counter {
        fn tools(&self) -> Vec<Tool> {
            vec![Tool::new(
                "count",
                "Counts.",
                |_: &CallContext, Fails { fails }| {
                    let count = Bucket::open("lists")?.increment("n", 1)?;
                    if fails {
                        Err(ToolError::Failed(format!("at {count}")))
                    } else {
                        Ok(count.to_string())
                    }
                },
            )]
        }
    }

    #[test]
    fn what_a_call_that_fails_wrote_is_gone() {
        grant_bucket("lists");
        let bench = Bench::new(Counter);
        assert_eq!(bench.text("count", json!({ "fails": false })).unwrap(), "1");
        assert_eq!(
            bench.text("count", json!({ "fails": true })).unwrap_err(),
            ToolError::Failed("at 2".to_owned())
        );
        assert_eq!(bench.text("count", json!({ "fails": false })).unwrap(), "2");
    }
}
