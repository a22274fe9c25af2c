//! Triggers: the trait of the `trigger-plugin` world and the macro that exports it.

pub use crate::bindings::trigger_plugin::exports::agent_host::plugin::trigger::{
    ChangeKind, Due, FileChange, Files as FileChanges, Heartbeat, State as TriggerState,
};

use crate::tool::schema_of;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A kind of trigger events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerEventKind {
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

impl TriggerEventKind {
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
pub enum TriggerEvent {
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

impl TriggerEvent {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> TriggerEventKind {
        match self {
            Self::Due(_) => TriggerEventKind::Clock,
            Self::Heartbeat(_) => TriggerEventKind::Heartbeat,
            Self::Webhook(_) => TriggerEventKind::Webhook,
            Self::Files(_) => TriggerEventKind::Files,
            Self::Event(_) => TriggerEventKind::Events,
        }
    }
}

/// A webhook call after the host verified it.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookCall {
    /// The sender's own id of it, under which it is taken once within seven days.
    pub call_id: String,
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

/// The facts that the host knows of a trigger component.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerDescription {
    /// A short name: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    pub id: String,
    /// Its purpose, in a sentence.
    pub summary: String,
    /// JSON Schema (2020-12) of its configuration.
    pub configuration: Value,
    /// The kinds of trigger events that it can deal with.
    pub trigger_events: Vec<TriggerEventKind>,
    /// The state formats that this version can read.
    pub state_formats: Vec<u32>,
}

impl TriggerDescription {
    /// The description of a trigger without configuration and without state.
    pub fn new(
        id: impl Into<String>,
        summary: impl Into<String>,
        trigger_events: impl IntoIterator<Item = TriggerEventKind>,
    ) -> Self {
        Self {
            id: id.into(),
            summary: summary.into(),
            configuration: json!({ "type": "object", "additionalProperties": false }),
            trigger_events: trigger_events.into_iter().collect(),
            state_formats: Vec::new(),
        }
    }

    /// Says that the configuration is this type, in JSON.
    #[must_use]
    pub fn configured_by<C: JsonSchema>(mut self) -> Self {
        self.configuration = schema_of::<C>();
        self
    }

    /// Says that this version reads state of a format.
    #[must_use]
    pub fn reads_state(mut self, format: u32) -> Self {
        self.state_formats.push(format);
        self
    }
}

/// The facts that a trigger is told beside the trigger event.
#[derive(Debug, Clone, PartialEq)]
pub struct FireContext {
    /// The operator's name of the trigger.
    pub trigger: String,
    /// The present time in milliseconds since the Unix epoch, the same for every attempt at this
    /// trigger event.
    pub now_ms: u64,
    /// The operator's configuration, which fits the schema.
    pub configuration: Value,
    /// The message that the operator wrote, with its variables filled in.
    pub message: Option<String>,
}

impl FireContext {
    /// Reads the configuration as the type that the description named.
    ///
    /// # Errors
    /// [`TriggerError::Rejected`] if it does not fit the type, which is a fault of its schema.
    pub fn configured<C: DeserializeOwned>(&self) -> Result<C, TriggerError> {
        serde_json::from_value(self.configuration.clone())
            .map_err(|error| TriggerError::Rejected(format!("`configuration`: {error}")))
    }
}

/// A message for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerMessage {
    /// The name of one of the targets granted to the trigger; the configured target without.
    pub target: Option<String>,
    /// The words: 64 KiB at most.
    pub text: String,
    /// Messages with the same key are taken once within seven days. Of an empty key the host makes
    /// one from trigger, trigger event and place.
    pub idempotency_key: String,
}

impl TriggerMessage {
    /// A message for the configured target.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            target: None,
            text: text.into(),
            idempotency_key: String::new(),
        }
    }

    /// Sends it to one of the targets granted to the trigger.
    #[must_use]
    pub fn to(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Has it taken once within seven days under a key of the trigger's own.
    #[must_use]
    pub fn once_as(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = key.into();
        self
    }
}

/// The outcome of a trigger run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriggerRun {
    /// Messages to send: 100 at most. None if the trigger event was of no interest.
    pub messages: Vec<TriggerMessage>,
    /// The state to keep; none to keep what there was.
    pub state: Option<TriggerState>,
    /// True if the trigger is done: it is not fired again.
    pub done: bool,
}

impl TriggerRun {
    /// Nothing: the trigger event was of no interest.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// One message for the configured target.
    pub fn message(text: impl Into<String>) -> Self {
        Self::nothing().and(TriggerMessage::new(text))
    }

    /// Adds a message.
    #[must_use]
    pub fn and(mut self, message: TriggerMessage) -> Self {
        self.messages.push(message);
        self
    }

    /// Keeps a state, which is stored in one commit with the messages.
    #[must_use]
    pub fn keep(mut self, format: u32, bytes: impl Into<Vec<u8>>) -> Self {
        self.state = Some(TriggerState {
            format,
            bytes: bytes.into(),
        });
        self
    }

    /// Says that the trigger is done.
    #[must_use]
    pub fn and_done(mut self) -> Self {
        self.done = true;
        self
    }
}

/// The reason why a trigger event could not be dealt with. A panic is a bug in the trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// It makes no sense; it is acknowledged and recorded.
    #[error("{0}")]
    Rejected(String),
    /// The same trigger event may be tried again after so many milliseconds, ten times at most.
    #[error("busy, try again in {0} ms")]
    RetryLater(u32),
}

/// A trigger: a pure function that turns a trigger event into messages for agents. It has the log,
/// a frozen clock and seeded randomness, and nothing else.
pub trait Trigger {
    /// Its description. Must not depend on anything but the code.
    fn describe(&self) -> TriggerDescription;

    /// Turns a trigger event into messages. The same trigger event may be fired again after a crash
    /// of the host; then only one of the results counts.
    ///
    /// # Errors
    /// The trigger event makes no sense, or is to be tried again later.
    fn fire(
        &self,
        context: &FireContext,
        state: Option<&TriggerState>,
        trigger_event: &TriggerEvent,
    ) -> Result<TriggerRun, TriggerError>;
}

/// Makes this crate a trigger component: `export_trigger!(Digest);` with any expression that yields
/// a [`Trigger`]. Once per crate. The component carries a [manifest](crate::manifest) with the
/// version, the authors, the licence and the homepage of the crate's `Cargo.toml`.
///
/// The crate needs `crate-type = ["cdylib", "rlib"]` and is built for `wasm32-wasip2`; for every
/// other target the macro only checks the type, so that `cargo test` and `cargo clippy` work as in
/// any crate.
#[macro_export]
macro_rules! export_trigger {
    ($trigger:expr $(,)?) => {
        $crate::write_manifest!();
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct TriggerPlugin;
            impl $crate::wire::TriggerExports for TriggerPlugin {
                fn describe() -> $crate::wire::WireTriggerDescription {
                    $crate::wire::describe_trigger(&$trigger)
                }
                fn fire(
                    context: $crate::wire::WireFireContext,
                    state: ::std::option::Option<$crate::wire::WireTriggerState>,
                    trigger_event: $crate::wire::WireTriggerEvent,
                ) -> $crate::wire::WireTriggerRun {
                    $crate::wire::fire_trigger(&$trigger, context, state.as_ref(), trigger_event)
                }
            }
            $crate::bindings::trigger_plugin::export_trigger_plugin!(
                TriggerPlugin with_types_in $crate::bindings::trigger_plugin
            );
        };
        #[cfg(not(target_family = "wasm"))]
        const _: fn() = || {
            fn is_a_trigger(_: &impl $crate::Trigger) {}
            is_a_trigger(&$trigger);
        };
    };
}
