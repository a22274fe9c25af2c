//! Values that clients are shown in another form than the one in which they are stored.

use domain::digest::Digest;
use domain::json::snake_case;
use domain::time::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

/// A point in time: ISO 8601 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub(crate) struct Time(pub(crate) Timestamp);

/// The digest of some content: `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, pattern = "^sha256:[0-9a-fA-F]{64}$")]
pub struct ContentDigest(pub Digest);

/// Returns a part of the configuration under the names of the API.
pub(super) fn snake_keys(part: &impl Serialize) -> Value {
    match serde_json::to_value(part) {
        Ok(Value::Object(keys)) => keys
            .into_iter()
            .map(|(key, value)| (snake_case(&key), value))
            .collect(),
        Ok(other) => other,
        Err(_) => Value::Null,
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Serialize for ContentDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.reference())
    }
}
