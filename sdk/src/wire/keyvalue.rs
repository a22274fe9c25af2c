//! An open bucket: the host's in a component, a map in memory in a native test.

#[cfg(target_family = "wasm")]
pub(crate) use self::host::Opened;
#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::harness::Opened;

/// The key and the bytes of an entry.
pub(crate) type Entry = (String, Vec<u8>);
/// Some keys, and where the next ones begin.
pub(crate) type Page = (Vec<String>, Option<u64>);

#[cfg(target_family = "wasm")]
mod host {
    use super::{Entry, Page};
    use crate::bindings::keyvalue::wasi::keyvalue::{atomics, batch, store};
    use crate::keyvalue::Error;

    #[derive(Debug)]
    pub(crate) struct Opened(store::Bucket);

    impl Opened {
        pub(crate) fn open(name: &str) -> Result<Self, Error> {
            Ok(Self(store::open(name)?))
        }

        pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
            Ok(self.0.get(key)?)
        }

        pub(crate) fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Entry>>, Error> {
            Ok(batch::get_many(&self.0, keys)?)
        }

        pub(crate) fn set(&self, key: &str, value: Vec<u8>) -> Result<(), Error> {
            Ok(self.0.set(key, &value)?)
        }

        pub(crate) fn delete(&self, key: &str) -> Result<(), Error> {
            Ok(self.0.delete(key)?)
        }

        pub(crate) fn list_keys(&self, cursor: Option<u64>) -> Result<Page, Error> {
            let store::KeyResponse { keys, cursor } = self.0.list_keys(cursor)?;
            Ok((keys, cursor))
        }

        pub(crate) fn increment(&self, key: &str, delta: u64) -> Result<u64, Error> {
            Ok(atomics::increment(&self.0, key, delta)?)
        }
    }

    impl From<store::Error> for Error {
        fn from(error: store::Error) -> Self {
            match error {
                store::Error::NoSuchStore => Self::NoSuchBucket,
                store::Error::AccessDenied => Self::Denied,
                store::Error::Other(words) => Self::Other(words),
            }
        }
    }
}
