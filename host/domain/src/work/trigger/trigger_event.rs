//! Trigger events: their causes, and the state that a trigger keeps between them.

use super::{FileChanges, HostEvent, STATE_BYTES_MAX, WebhookCall};
use crate::values::time::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

/// A trigger event: a thing that happened, for which a trigger is fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TriggerEvent {
    /// A time of its schedule is due.
    Due {
        /// Time at which it was due.
        due: Timestamp,
        /// Missed trigger events before it, which this one includes.
        #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
        missed: u32,
    },
    /// A heartbeat is due.
    Heartbeat {
        /// Time at which it was due.
        due: Timestamp,
        /// The text of the checklist; none if no file is configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checklist: Option<String>,
    },
    /// A verified sender called a webhook.
    Webhook(WebhookCall),
    /// Files of a watched folder changed.
    Files(FileChanges),
    /// Something happened on the host.
    Event(HostEvent),
}

impl TriggerEvent {
    /// Returns whether it has content from outside. Its messages are then marked untrusted.
    #[must_use]
    pub fn is_from_outside(&self) -> bool {
        match self {
            Self::Due { .. } => false,
            // Anybody with write access may have written the file.
            Self::Heartbeat { checklist, .. } => checklist.is_some(),
            Self::Webhook(_) | Self::Files(_) | Self::Event(_) => true,
        }
    }

    /// Returns the name of its kind, as components name it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Due { .. } => "clock",
            Self::Heartbeat { .. } => "heartbeat",
            Self::Webhook(_) => "webhook",
            Self::Files(_) => "files",
            Self::Event(_) => "events",
        }
    }

    /// Returns when it was due; none for an event without a schedule.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Due { due, .. } | Self::Heartbeat { due, .. } => Some(*due),
            _ => None,
        }
    }

    /// Returns its content for templates: the payload of a webhook, the data of a host event, and
    /// the facts about other events.
    #[must_use]
    pub fn payload(&self) -> Value {
        match self {
            Self::Due { due, missed } => json!({ "due": due.to_string(), "missed": missed }),
            Self::Heartbeat { due, checklist } => {
                json!({ "due": due.to_string(), "checklist": checklist })
            }
            Self::Webhook(call) => call.payload.clone(),
            Self::Files(changes) => json!(changes),
            Self::Event(event) => json!({
                "name": event.name,
                "id": event.id,
                "time": event.time.to_string(),
                "data": event.data,
            }),
        }
    }

    /// Returns the headers of a webhook call; none for others.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        match self {
            Self::Webhook(call) => &call.headers,
            _ => &[],
        }
    }

    /// Returns the query of a webhook call; none for others.
    #[must_use]
    pub fn query(&self) -> &[(String, String)] {
        match self {
            Self::Webhook(call) => &call.query,
            _ => &[],
        }
    }

    /// Returns the rest of a webhook call's path, or the folder's name of changed files; empty for
    /// others.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Webhook(call) => &call.path,
            Self::Files(changes) => &changes.folder,
            _ => "",
        }
    }
}

/// The state that a trigger keeps from one trigger event to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerState {
    /// The version of its layout.
    pub format: u32,
    /// Its bytes: [`STATE_BYTES_MAX`] at most. In JSON as base64.
    #[serde(serialize_with = "write_base64", deserialize_with = "read_base64")]
    pub bytes: Vec<u8>,
}

impl TriggerState {
    /// Returns whether it is small enough to store.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.bytes.len() <= STATE_BYTES_MAX
    }
}

fn write_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

fn read_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64.decode(text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_brings_no_words_from_outside_is_unmarked() {
        let beat = |checklist: Option<&str>| TriggerEvent::Heartbeat {
            due: Timestamp(1),
            checklist: checklist.map(str::to_owned),
        };
        let due = TriggerEvent::Due {
            due: Timestamp(1),
            missed: 0,
        };
        for (trigger_event, outside) in [
            (due, false),
            (beat(None), false),
            (beat(Some("- mail")), true),
        ] {
            assert_eq!(
                trigger_event.is_from_outside(),
                outside,
                "{trigger_event:?}"
            );
        }
    }

    #[test]
    fn what_a_trigger_keeps_is_stored_as_base64() {
        let state = TriggerState {
            format: 1,
            bytes: vec![0, 255],
        };
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(text, r#"{"format":1,"bytes":"AP8="}"#);
        assert_eq!(serde_json::from_str::<TriggerState>(&text).unwrap(), state);
        assert!(serde_json::from_str::<TriggerState>(r#"{"format":1,"bytes":"?"}"#).is_err());
    }

    #[test]
    fn a_schedule_says_nothing_from_outside() {
        let due = TriggerEvent::Due {
            due: Timestamp(0),
            missed: 2,
        };
        assert!(!due.is_from_outside());
        assert_eq!(due.kind(), "clock");
        assert_eq!(
            due.payload(),
            json!({ "due": "1970-01-01T00:00:00.000Z", "missed": 2 })
        );
    }
}
