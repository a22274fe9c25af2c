//! SHA-256 digests, plain and salted.
//!
//! Content that may have to be erased one day (people's messages) is committed to through a
//! *salted* digest. Without payload and salt, the digest in the chain reveals nothing about the
//! content, and the chain still verifies.

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of some bytes, such as a blob or a component.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of a sequence of parts. Each part is preceded by its length, so no two sequences
    /// have the same input.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Returns whether two digests are equal, in constant time. It compares every byte, whatever
    /// the first ones are.
    #[must_use]
    pub fn is_secretly(&self, other: &Self) -> bool {
        std::hint::black_box(
            self.0
                .iter()
                .zip(other.0)
                .fold(0, |difference, (a, b)| difference | (a ^ b)),
        ) == 0
    }

    /// 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The first 32 hexadecimal digits: enough to be unique, and readable.
    #[must_use]
    pub fn short(&self) -> String {
        self.hex().chars().take(32).collect()
    }

    /// Returns the form of blob references on the wire: `sha256:` and 64 hexadecimal digits.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("sha256:{}", self.hex())
    }

    /// Reads what [`Self::hex`] writes.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// Reads what [`Self::reference`] writes.
    #[must_use]
    pub fn from_reference(text: &str) -> Option<Self> {
        Self::from_hex(text.strip_prefix("sha256:")?)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Digits).map(Self)
    }
}

/// Reads a number of bytes as hexadecimal digits, without a copy of the text: events contain many
/// digests.
struct Digits<const N: usize>;

impl<const N: usize> Visitor<'_> for Digits<N> {
    type Value = [u8; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hexadecimal digits", N * 2)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<[u8; N], E> {
        let mut bytes = [0; N];
        hex::decode_to_slice(text, &mut bytes)
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))?;
        Ok(bytes)
    }
}

/// 128 random bits that protect the content of a digest from being guessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Salt(pub [u8; 16]);

impl Salt {
    /// The digest of a payload under this salt.
    #[must_use]
    pub fn digest(&self, payload: &[u8]) -> Digest {
        Digest::of_parts(&[&self.0, payload])
    }

    /// A salt derived from this one: one random salt serves all the messages of one event.
    #[must_use]
    pub fn derive(&self, ordinal: u64) -> Self {
        let Digest(bytes) = Digest::of_parts(&[b"salt", &self.0, &ordinal.to_be_bytes()]);
        let mut salt = [0; 16];
        salt.copy_from_slice(bytes.split_at(16).0);
        Self(salt)
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(…)")
    }
}

impl Serialize for Salt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Salt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Digits).map(Self)
    }
}
