//! A memory of the schemas that were given up, which are refused from then on.

use super::threads::GivenUp;
use domain::digest::Digest;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Schemas that are remembered; of more, the oldest is forgotten.
pub(super) const GIVEN_UP_SCHEMAS_MAX: usize = 256;

/// The digests of the schemas that were given up last, the oldest first.
#[derive(Debug, Default)]
pub(super) struct GivenUpSchemas(Mutex<VecDeque<Digest>>);

impl GivenUpSchemas {
    /// Refuses a schema that was given up. As long as none was, this costs nothing.
    pub(super) fn check(&self, schema: &Value) -> Result<(), GivenUp> {
        if self.digests().is_empty() {
            return Ok(());
        }
        let digest = digest(schema);
        if self.digests().contains(&digest) {
            return Err(GivenUp::Before(digest));
        }
        Ok(())
    }

    /// Remembers a schema that took too long.
    pub(super) fn remember(&self, schema: &Value) {
        let digest = digest(schema);
        tracing::warn!(
            schema = %digest,
            "a JSON Schema took too long and is refused from now on"
        );
        let mut digests = self.digests();
        if digests.contains(&digest) {
            return;
        }
        if digests.len() >= GIVEN_UP_SCHEMAS_MAX {
            digests.pop_front();
        }
        digests.push_back(digest);
    }

    fn digests(&self) -> MutexGuard<'_, VecDeque<Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The digest of a schema's text: of two that mean the same, each has its own.
fn digest(schema: &Value) -> Digest {
    Digest::of(schema.to_string().as_bytes())
}
