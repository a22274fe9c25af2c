//! The blobs that a delegation names: passed on to its target if its caller may read them.

use super::Delegation;
use crate::values::digest::Digest;
use serde_json::Value;

/// The most blobs that one delegation passes on: the first ones in its parameters.
pub const BLOBS_MAX: usize = 32;
/// The beginning of a blob's reference in a text.
const SCHEME: &str = "sha256:";
/// Bytes of a blob's reference.
const REFERENCE_BYTES: usize = SCHEME.len() + 64;

impl Delegation {
    /// Returns the digests of the blobs that its parameters name, each once, at most [`BLOBS_MAX`].
    #[must_use]
    pub fn digests(&self) -> Vec<Digest> {
        let mut found = Vec::new();
        for value in self.parameters.values() {
            collect(value, &mut found);
        }
        found
    }
}

fn collect(value: &Value, found: &mut Vec<Digest>) {
    match value {
        Value::String(text) => {
            for digest in named(text) {
                if found.len() < BLOBS_MAX && !found.contains(&digest) {
                    found.push(digest);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The digests that a text names. A digest followed by more digits is none.
fn named(text: &str) -> impl Iterator<Item = Digest> {
    text.match_indices(SCHEME).filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        let after = rest.get(REFERENCE_BYTES..)?;
        let digest = Digest::from_reference(rest.get(..REFERENCE_BYTES)?)?;
        (!after.starts_with(|next: char| next.is_ascii_hexdigit())).then_some(digest)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Target, parse};
    use super::*;
    use serde_json::json;

    fn digests(sources: &[String]) -> Vec<Digest> {
        let call = json!({
            "target": "researcher", "operation": "synthesize_sources",
            "parameters": { "sources": sources, "format": "markdown" },
        });
        parse(&call.to_string(), &Target::ALL).unwrap().digests()
    }

    #[test]
    fn blobs_are_found_in_the_texts_of_the_parameters() {
        let one = Digest::of(b"one");
        let two = Digest::of(b"two");
        let first = one.reference();
        let second = two.reference();
        for (sources, expected) in [
            (vec![first.clone()], vec![one]),
            (vec![second.clone(), first.clone()], vec![two, one]),
            (vec![format!("ä{second}, then {first}.")], vec![two, one]),
            (vec![first.clone(), first.clone()], vec![one]),
            (vec!["no digest".to_owned()], Vec::new()),
            (vec![one.hex()], Vec::new()),
            (vec![format!("{first}0")], Vec::new()),
            (vec![first[..first.len() - 1].to_owned()], Vec::new()),
            (vec![format!("sha256:{}", "ä".repeat(32))], Vec::new()),
        ] {
            assert_eq!(digests(&sources), expected, "{sources:?}");
        }
    }

    #[test]
    fn no_more_blobs_are_found_than_may_be_handed_on() {
        let all: Vec<Digest> = (0..=BLOBS_MAX as u64)
            .map(|at| Digest::of(&at.to_be_bytes()))
            .collect();
        let sources: Vec<String> = all.iter().map(Digest::reference).collect();
        assert_eq!(digests(&sources), all[..BLOBS_MAX].to_vec());
    }
}
