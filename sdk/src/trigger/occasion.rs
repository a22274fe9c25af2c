//! Occasions: what happened that a trigger may make messages of.

pub use crate::bindings::trigger_plugin::exports::agent_host::plugin::trigger::{
    ChangeKind, Due, FileChange, Files as FileChanges, Heartbeat,
};

use serde_json::Value;

/// A kind of occasions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccasionKind {
    /// Times of a schedule.
    Clock,
    /// Heartbeats.
    Heartbeat,
    /// Webhook calls.
    Webhook,
    /// Files that changed.
    Files,
    /// Events of the host.
    Events,
}

impl OccasionKind {
    /// Its word, as the host knows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Heartbeat => "heartbeat",
            Self::Webhook => "webhook",
            Self::Files => "files",
            Self::Events => "events",
        }
    }
}

/// The event for which a trigger is fired.
#[derive(Debug, Clone, PartialEq)]
pub enum Occasion {
    /// A time of its schedule has come.
    Due(Due),
    /// A heartbeat is due.
    Heartbeat(Heartbeat),
    /// An authenticated webhook call.
    Webhook(WebhookCall),
    /// Files below a granted folder changed.
    Files(FileChanges),
    /// An event of the host.
    Event(HostEvent),
}

impl Occasion {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> OccasionKind {
        match self {
            Self::Due(_) => OccasionKind::Clock,
            Self::Heartbeat(_) => OccasionKind::Heartbeat,
            Self::Webhook(_) => OccasionKind::Webhook,
            Self::Files(_) => OccasionKind::Files,
            Self::Event(_) => OccasionKind::Events,
        }
    }
}

/// A webhook call after the host verified it.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookCall {
    /// The sender's own id of it, under which it is taken once within seven days.
    pub delivery_id: String,
    /// The rest of its path.
    pub path: String,
    /// Headers without credentials, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The query, decoded, without credentials.
    pub query: Vec<(String, String)>,
    /// The body: JSON when it was JSON, otherwise a JSON string. The data of a CloudEvent.
    pub payload: Value,
}

impl WebhookCall {
    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// An event of the host that the operator lets the trigger hear.
#[derive(Debug, Clone, PartialEq)]
pub struct HostEvent {
    /// Its type, such as `session.completed`.
    pub name: String,
    /// Its id, the same whenever it is told.
    pub id: String,
    /// Time at which it happened, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The facts that it tells.
    pub data: Value,
}
