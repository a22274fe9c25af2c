//! Payloads of retired kinds, read as what they mean today.
//!
//! A stored payload stays as it was, under the kind and in the form in which it was hashed. When it
//! is read, each retired kind is brought one version on, and again, until it is one that is
//! written today. A field that an older payload lacks gets a value that means "not known", and that
//! no newer event has.

use super::kinds;
use serde_json::{Map, Value, json};

/// One version on.
struct Step {
    from: &'static str,
    to: &'static str,
    change: fn(&mut Map<String, Value>),
}

/// Every retired kind, oldest versions first. The list only grows: a kind that was ever stored can
/// be read for ever.
const STEPS: &[Step] = &[Step {
    from: "session.item.recorded.v1",
    to: "session.item.recorded.v2",
    change: items_have_names_and_places,
}];

/// Reason why a stored payload cannot be brought to the current form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKnown {
    /// This program knows no such kind.
    #[error("its kind `{kind}` is not known: it was written by a newer version of this program")]
    Kind {
        /// The kind.
        kind: String,
    },
    /// A payload of this kind was never anything but an object.
    #[error("the payload of a `{kind}` is not an object")]
    Payload {
        /// The kind.
        kind: String,
    },
}

/// Every kind that was written once and is not any more.
pub fn retired() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.from)
}

/// Returns whether a kind was written once and is not any more.
#[must_use]
pub fn is_retired(kind: &str) -> bool {
    STEPS.iter().any(|step| step.from == kind)
}

/// Returns the newest kind for a stored payload, with the payload in its form. The payload may have
/// been stored under any kind there ever was.
///
/// # Errors
/// The kind is not known, or the payload is nothing that was ever stored under it.
pub fn upcast(kind: &str, mut payload: Value) -> Result<(&'static str, Value), NotKnown> {
    let mut at = kind;
    while let Some(step) = STEPS.iter().find(|step| step.from == at) {
        let object = payload.as_object_mut().ok_or_else(|| NotKnown::Payload {
            kind: kind.to_owned(),
        })?;
        (step.change)(object);
        at = step.to;
    }
    let newest = kinds()
        .iter()
        .find(|known| **known == at)
        .ok_or_else(|| NotKnown::Kind {
            kind: kind.to_owned(),
        })?;
    Ok((newest, payload))
}

/// Upgrades items from before they had a name, a place, a client action and times. The name is
/// empty, and the place 0, where others count from 1. Nothing is known of the question to the
/// client.
fn items_have_names_and_places(item: &mut Map<String, Value>) {
    item.insert("item".to_owned(), json!(""));
    item.insert("sequence".to_owned(), json!(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_retired_kind_leads_to_one_that_is_written_today() {
        for kind in retired() {
            assert!(!kinds().contains(&kind), "{kind} is retired and written");
            let (newest, _) = upcast(kind, json!({})).unwrap();
            assert!(kinds().contains(&newest), "{kind} leads to {newest}");
        }
    }

    #[test]
    fn an_older_item_has_no_name_and_no_place() {
        let (kind, item) = upcast(
            "session.item.recorded.v1",
            json!({ "prompt": "x", "evaluation": null }),
        )
        .unwrap();
        assert_eq!(kind, "session.item.recorded.v2");
        assert_eq!(
            item,
            json!({ "prompt": "x", "evaluation": null, "item": "", "sequence": 0 })
        );
    }

    #[test]
    fn what_is_written_today_stays_as_it_is_and_what_is_not_known_is_told() {
        let payload = json!({ "run": 1 });
        assert_eq!(
            upcast("run.started.v1", payload.clone()),
            Ok(("run.started.v1", payload.clone()))
        );
        let error = upcast("run.started.v9", payload).unwrap_err();
        assert_eq!(
            error,
            NotKnown::Kind {
                kind: "run.started.v9".to_owned()
            }
        );
        assert!(
            error.to_string().contains("`run.started.v9`")
                && error.to_string().contains("written by a newer version"),
            "{error}"
        );
        assert!(matches!(
            upcast("session.item.recorded.v1", json!([])),
            Err(NotKnown::Payload { .. })
        ));
    }
}
