//! Payloads of retired kinds, converted to the present kinds.
//!
//! A stored payload stays unchanged, under the kind and in the form in which it was hashed. On
//! reading, each retired kind is converted by one version at a time, until it is a current kind. A
//! field that an older payload lacks gets a value that means "not known", which newer events never
//! have.

use super::kinds;
use serde_json::{Map, Value};

/// A retired kind, and the conversion to its replacement.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The retired kind.
    pub from: &'static str,
    /// The kind of the next version.
    pub to: &'static str,
    /// Converts a payload to the form of that kind.
    pub change: fn(&mut Map<String, Value>),
}

/// Every kind retired since the first release, oldest versions first. The list only grows: a kind
/// that a release stored stays readable for ever.
const STEPS: &[Step] = &[];

/// Reason why a stored payload cannot be converted to the current form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotKnown {
    /// The kind is unknown to this program.
    #[error("its kind `{kind}` is not known: it was written by a newer version of this program")]
    Kind {
        /// The kind.
        kind: String,
    },
    /// The payload is not an object, which it always was for this kind.
    #[error("the payload of a `{kind}` is not an object")]
    Payload {
        /// The kind.
        kind: String,
    },
}

/// Every kind that was written once and is now retired.
pub fn retired() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.from)
}

/// Returns whether a kind is retired.
#[must_use]
pub fn is_retired(kind: &str) -> bool {
    retired().any(|from| from == kind)
}

/// Returns the newest kind for a stored payload, with the payload in its form. The payload may have
/// any kind, current or retired.
///
/// # Errors
/// The kind is unknown, or the payload was never valid for it.
pub fn upcast(kind: &str, payload: Value) -> Result<(&'static str, Value), NotKnown> {
    upcast_by(STEPS, kinds(), kind, payload)
}

/// Does the same as [`upcast`], with these steps and for one of these kinds.
fn upcast_by(
    steps: &[Step],
    newest: &[&'static str],
    kind: &str,
    mut payload: Value,
) -> Result<(&'static str, Value), NotKnown> {
    let mut at = kind;
    while let Some(step) = steps.iter().find(|step| step.from == at) {
        let object = payload.as_object_mut().ok_or_else(|| NotKnown::Payload {
            kind: kind.to_owned(),
        })?;
        (step.change)(object);
        at = step.to;
    }
    let known = newest.iter().find(|known| **known == at);
    known
        .map(|known| (*known, payload))
        .ok_or_else(|| NotKnown::Kind {
            kind: kind.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_retired_kind_leads_to_one_that_is_written_today() {
        for kind in retired() {
            assert!(!kinds().contains(&kind), "{kind} is retired and written");
            let (newest, _) = upcast(kind, json!({})).unwrap();
            assert!(kinds().contains(&newest), "{kind} leads to {newest}");
        }
    }

    /// Made-up next versions of an event that exists: two that were retired one after the other.
    #[test]
    fn a_retired_kind_is_brought_on_version_by_version() {
        let named: fn(&mut Map<String, Value>) = |it| {
            it.insert("mood".to_owned(), json!("not known"));
        };
        let renamed: fn(&mut Map<String, Value>) = |it| {
            let mood = it.remove("mood").unwrap_or_default();
            it.insert("spirits".to_owned(), mood);
        };
        let [first, second, third] = [
            "session.pinned.v1",
            "session.pinned.v2",
            "session.pinned.v3",
        ];
        let steps = [(first, second, named), (second, third, renamed)]
            .map(|(from, to, change)| Step { from, to, change });
        let upcast = |kind, payload| upcast_by(&steps, &[third], kind, payload);
        let newest = json!({ "pinned": true, "spirits": "not known" });
        assert_eq!(
            upcast(first, json!({ "pinned": true })),
            Ok((third, newest.clone()))
        );
        assert_eq!(
            upcast(second, json!({ "pinned": true, "mood": "good" })),
            Ok((third, json!({ "pinned": true, "spirits": "good" })))
        );
        assert_eq!(upcast(third, newest.clone()), Ok((third, newest)));
        assert_eq!(
            upcast(first, json!([])),
            Err(NotKnown::Payload {
                kind: first.to_owned()
            })
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
    }
}
