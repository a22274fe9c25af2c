//! The label of a session, which users may change: its name, whether it is pinned, and its
//! attributes.

use crate::events::agent::configure::check_name;
use crate::events::event::{Event, SessionAttributed, SessionPinned, SessionRenamed};
use crate::values::error_code::ErrorCode;
use crate::values::id::SessionId;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;
use serde_json::{Map, Value};

/// Bytes of a session's attributes as JSON.
pub const ATTRIBUTES_BYTES_MAX: usize = 16 << 10;

/// A session as a label.
#[derive(Debug, Clone, Copy)]
pub struct Label<'a> {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: Option<&'a str>,
    /// True if it is pinned.
    pub pinned: bool,
    /// Its attributes.
    pub attributes: &'a Map<String, Value>,
}

/// Changes of a label; a missing field is unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The new name; an inner none removes it.
    pub name: Option<Option<String>>,
    /// True to pin it, false to unpin it.
    pub pinned: Option<bool>,
    /// Keys to merge into its attributes; `null` removes a key.
    pub attributes: Option<Map<String, Value>>,
}

impl Label<'_> {
    /// Returns the events of a change; none if nothing changes.
    ///
    /// # Errors
    /// The name is invalid, or there would be too many attributes.
    pub fn change(&self, changes: Changes, time: Timestamp) -> Result<Vec<Event>, Refusal> {
        let session = self.session;
        let mut events = Vec::new();
        if let Some(name) = changes.name {
            name.as_deref().map_or(Ok(()), check_name)?;
            if name.as_deref() != self.name {
                events.push(Event::SessionRenamed(SessionRenamed {
                    session,
                    name,
                    time,
                }));
            }
        }
        if let Some(pinned) = changes.pinned.filter(|pinned| *pinned != self.pinned) {
            events.push(Event::SessionPinned(SessionPinned {
                session,
                pinned,
                time,
            }));
        }
        if let Some(attributes) = changes.attributes {
            let merged = merge(self.attributes.clone(), &attributes);
            if merged != *self.attributes {
                check_size(&merged)?;
                events.push(Event::SessionAttributed(SessionAttributed {
                    session,
                    attributes,
                    time,
                }));
            }
        }
        Ok(events)
    }
}

/// Attributes with keys merged into them.
#[must_use]
pub fn merge(
    mut attributes: Map<String, Value>,
    changes: &Map<String, Value>,
) -> Map<String, Value> {
    for (name, value) in changes {
        if value.is_null() {
            attributes.remove(name);
        } else {
            attributes.insert(name.clone(), value.clone());
        }
    }
    attributes
}

fn check_size(attributes: &Map<String, Value>) -> Result<(), Refusal> {
    let bytes = serde_json::to_vec(attributes).map_or(usize::MAX, |text| text.len());
    if bytes <= ATTRIBUTES_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "at most {ATTRIBUTES_BYTES_MAX} bytes of attributes are kept, these would be \
                 {bytes}; take some away with `null`"
    );
    Err(Refusal::new(ErrorCode::Invalid, message).at("/attributes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    const T: Timestamp = Timestamp(1_700_000_000_000);

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn change(attributes: &Map<String, Value>, changes: Changes) -> Result<Vec<Event>, Refusal> {
        Label {
            session: SessionId(Uuid::nil()),
            name: Some("Greek"),
            pinned: false,
            attributes,
        }
        .change(changes, T)
    }

    #[test]
    fn a_session_is_renamed_pinned_and_noted_of_and_what_is_so_already_is_no_event() {
        let there = map(&json!({ "a": 1, "b": 2 }));
        let all = Changes {
            name: Some(None),
            pinned: Some(true),
            attributes: Some(map(&json!({ "a": null, "c": 3 }))),
        };
        assert_eq!(change(&there, all).unwrap().len(), 3);
        let none = Changes {
            name: Some(Some("Greek".into())),
            pinned: Some(false),
            attributes: Some(map(&json!({ "a": 1, "z": null }))),
        };
        assert_eq!(change(&there, none).unwrap(), []);
        assert_eq!(
            merge(there, &map(&json!({ "a": null, "c": 3 }))),
            map(&json!({ "b": 2, "c": 3 }))
        );
    }

    #[test]
    fn attributes_have_a_limit_to_the_byte_and_a_name_is_one_to_be_read() {
        let of = |bytes: usize| map(&json!({ "k": "x".repeat(bytes - r#"{"k":""}"#.len()) }));
        let put = |attributes| {
            change(
                &Map::new(),
                Changes {
                    attributes: Some(attributes),
                    ..Changes::default()
                },
            )
        };
        assert_eq!(put(of(ATTRIBUTES_BYTES_MAX)).unwrap().len(), 1);
        assert_eq!(
            put(of(ATTRIBUTES_BYTES_MAX + 1))
                .unwrap_err()
                .field
                .as_deref(),
            Some("/attributes")
        );
        for bad in ["", " ", "a\nb"] {
            let named = Changes {
                name: Some(Some(bad.into())),
                ..Changes::default()
            };
            assert_eq!(
                change(&Map::new(), named).unwrap_err().field.as_deref(),
                Some("/name"),
                "{bad}"
            );
        }
    }
}
