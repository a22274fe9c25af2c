//! Redaction: removing secrets from all responses of their destinations, whole or in chunks.
//!
//! The search covers a secret in plain, in hexadecimal digits, and in base64, of either alphabet
//! and at any offset of the encoded text. Each of these is found in plain and under up to three
//! layers of escapes: those of URLs, of JSON and of HTML, in any mixture within a layer. Each byte
//! of a match becomes a `*`, so that lengths stay the same.
//!
//! A server that has the secret can hide it if it wants to. The search does not find: text that was
//! reversed, encrypted, compressed or cut into separate parts; a fourth layer; base64 of base64, or
//! with line breaks in it; a `+` that stands for a space, and entities of HTML without their
//! semicolon. A secret that itself contains an apparent escape (`%41`) is found in plain, and also
//! where that text is escaped again.

mod escape;
mod needle;
mod scan;

use crate::access::secret::Secret;
use needle::Needle;
use scan::Scan;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The byte that replaces each byte of a secret.
const MASK: u8 = b'*';

/// Removes a set of secrets from texts. Cheap to clone; empty by default.
#[derive(Clone, Default)]
pub struct Redactor(Arc<[Arc<Needle>]>);

impl Redactor {
    /// Returns a redactor for one secret.
    #[must_use]
    pub fn of(secret: &Secret) -> Self {
        Self(Arc::new([Arc::new(Needle::of(secret.expose().as_bytes()))]))
    }

    /// Returns a redactor for all secrets of these redactors, each once.
    #[must_use]
    pub fn all<'a>(redactors: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all: Vec<Arc<Needle>> = Vec::new();
        for needle in redactors.into_iter().flat_map(|redactor| &*redactor.0) {
            if !all.iter().any(|known| Arc::ptr_eq(known, needle)) {
                all.push(needle.clone());
            }
        }
        Self(all.into())
    }

    /// Returns whether there is nothing to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without the secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            None => Cow::Borrowed(text),
            // Replaced bytes are ASCII and so is the mask.
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The bytes without the secrets; none if they contain none.
    #[must_use]
    pub fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        let mut redaction = self.begin();
        let mut out = redaction.push(bytes);
        out.append(&mut redaction.finish());
        redaction.found.then_some(out)
    }

    /// Removes the secrets from every text of a value, names of fields included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                for (name, mut value) in std::mem::take(fields) {
                    self.value(&mut value);
                    fields.insert(self.text(&name).into_owned(), value);
                }
            }
        }
    }

    /// Begins a stream of chunks.
    #[must_use]
    pub fn begin(&self) -> Redaction {
        Redaction {
            scans: self.0.iter().cloned().map(Scan::of).collect(),
            pending: Vec::new(),
            passed: 0,
            found: false,
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.0.len())
    }
}

/// A stream of bytes from which secrets are removed. A possible beginning of a secret is withheld
/// until the next bytes decide.
pub struct Redaction {
    scans: Vec<Scan>,
    pending: Vec<u8>,
    /// The number of released bytes.
    passed: u64,
    found: bool,
}

impl Redaction {
    /// Takes the next chunk, and returns the bytes that can be released: all bytes so far except a
    /// possible beginning of a secret.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let from = self.passed + self.pending.len() as u64;
        self.pending.extend_from_slice(bytes);
        let mut found = Vec::new();
        for scan in &mut self.scans {
            scan.push(from, bytes, &mut found);
        }
        self.mask(&found);
        let kept = self.scans.iter().filter_map(Scan::begun).min();
        self.release(kept)
    }

    /// Returns the withheld bytes. No chunk may follow.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut found = Vec::new();
        for scan in &mut self.scans {
            scan.finish(&mut found);
        }
        self.mask(&found);
        self.release(None)
    }

    fn mask(&mut self, found: &[std::ops::Range<u64>]) {
        self.found |= !found.is_empty();
        let at =
            |offset: u64| usize::try_from(offset.saturating_sub(self.passed)).unwrap_or(usize::MAX);
        for range in found {
            if let Some(secret) = self.pending.get_mut(at(range.start)..at(range.end)) {
                secret.fill(MASK);
            }
        }
    }

    /// Releases all bytes before an offset.
    fn release(&mut self, kept: Option<u64>) -> Vec<u8> {
        let length = kept.map_or(self.pending.len(), |kept| {
            usize::try_from(kept.saturating_sub(self.passed)).unwrap_or(usize::MAX)
        });
        let rest = self.pending.split_off(length.min(self.pending.len()));
        self.passed += self.pending.len() as u64;
        std::mem::replace(&mut self.pending, rest)
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction")
            .field("passed", &self.passed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
