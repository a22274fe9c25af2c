//! Ranges of configured numbers: declared once, at the field, for the schema and for the check.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A number outside its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfRange {
    /// Its key, as it is written.
    pub key: String,
    /// The number.
    pub value: u64,
    /// The least that it may be.
    pub least: u64,
    /// The most that it may be.
    pub most: u64,
}

/// Returns the numbers of a section outside their ranges, in the order of the keys. The section's
/// schema has the ranges. Numbers without both bounds are not checked.
#[must_use]
pub fn out_of_range<T: JsonSchema + Serialize>(section: &T) -> Vec<OutOfRange> {
    let schema = schemars::schema_for!(T);
    let Ok(Value::Object(values)) = serde_json::to_value(section) else {
        return Vec::new();
    };
    let bound = |key: &str, name: &str| schema.get("properties")?.get(key)?.get(name)?.as_u64();
    let inspected = values.into_iter().filter_map(|(key, value)| {
        let value = value.as_u64()?;
        let least = bound(&key, "minimum")?;
        let most = bound(&key, "maximum")?;
        Some(OutOfRange {
            key,
            value,
            least,
            most,
        })
    });
    inspected
        .filter(|found| !(found.least..=found.most).contains(&found.value))
        .collect()
}
