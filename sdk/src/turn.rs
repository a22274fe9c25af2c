//! The input of a step: the turn, frozen for the length of the step.

pub use crate::bindings::agent_plugin::agent_host::plugin::turn::{LimitsLeft, Memo, Peer};

use crate::content::{Message, MessageId};
use crate::tool::ToolDefinition;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

impl Memo {
    /// A memo of something as JSON.
    ///
    /// # Panics
    /// When `value` has no JSON form, such as a map whose keys are not text.
    pub fn json(format: u32, value: &impl Serialize) -> Self {
        let bytes = serde_json::to_vec(value).expect("a memo has a JSON form");
        Self { format, bytes }
    }

    /// Reads a memo that [`Memo::json`] wrote.
    ///
    /// # Errors
    /// The bytes are not that.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Unreadable> {
        serde_json::from_slice(&self.bytes).map_err(|source| Unreadable {
            what: "memo",
            source,
        })
    }
}

/// A structured session that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastSession {
    /// Its id.
    pub session_id: String,
    /// The id of the user whom it was for. Not every one was for the user of the turn.
    #[serde(default)]
    pub user_id: String,
    /// Its type.
    pub session_type: String,
    /// `completed`, or `terminated`: ended from outside, failed or expired.
    pub status: String,
    /// The reason that it was terminated.
    #[serde(default)]
    pub reason: Option<String>,
    /// Time of its beginning (RFC 3339).
    pub started_at: String,
    /// Time of its end (RFC 3339).
    pub completed_at: String,
    /// Number of items on its record.
    pub items: u32,
    /// Its summary; `null` for a terminated one, or when it is over 8 KiB.
    #[serde(default)]
    pub summary: Value,
}

/// JSON that is not what the agent expects.
#[derive(Debug, thiserror::Error)]
#[error("the {what} cannot be read")]
pub struct Unreadable {
    /// The kind of JSON: `settings`, `session config`, `session state`, `preferences`,
    /// `shared preferences` or `memo`.
    pub what: &'static str,
    /// The mismatch, with its position.
    #[source]
    pub source: serde_json::Error,
}

/// The source that a [`Turn`] reads from: the host in a component, a
/// [`Scene`](crate::harness::Scene) in a test.
///
/// Plugins use [`Turn`]. This trait is for code that adds a third source.
pub trait View {
    /// The agent's id, a UUID.
    fn agent_id(&self) -> String;
    /// The agent's path.
    fn path(&self) -> String;
    /// The user whom the turn is for.
    fn user(&self) -> String;
    /// The session's type.
    fn session_type(&self) -> String;
    /// Time at which the step was first begun, in milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;
    /// The budget that is left to the turn.
    fn left(&self) -> LimitsLeft;
    /// An object with `prompt` and `settings`.
    fn settings(&self) -> Value;
    /// The agent's preferences with those of the turn's user over them, an object.
    fn preferences(&self) -> Value;
    /// The preferences that hold for all its users alone, an object.
    fn shared_preferences(&self) -> Value;
    /// The configuration that the session was opened with, an object.
    fn session_config(&self) -> Value;
    /// The structured sessions that have ended, as far as the user would see them, an array.
    fn history(&self) -> Value;
    /// The state that the effect `session-state` left; `null` at first.
    fn session_state(&self) -> Value;
    /// The last message of the thread.
    fn head(&self) -> Option<MessageId>;
    /// One message of the thread.
    fn message(&self, id: MessageId) -> Option<Message>;
    /// Some bytes of a blob.
    fn read_blob(&self, handle: &str, offset: u64, length: u32) -> Option<Vec<u8>>;
    /// The tools that this agent may use.
    fn tool_names(&self) -> Vec<String>;
    /// One of them.
    fn tool(&self, name: &str) -> Option<ToolDefinition>;
    /// The agents that this one may dispatch to.
    fn peers(&self) -> Vec<Peer>;
    /// The memo that the turn's last step left.
    fn memo(&self) -> Option<Memo>;
}

/// The turn as this step sees it. The same step, run again, reads the same answers.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    view: &'a dyn View,
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("head", &self.head())
            .finish_non_exhaustive()
    }
}

impl<'a> Turn<'a> {
    /// A turn that reads from a view.
    #[must_use]
    pub fn new(view: &'a dyn View) -> Self {
        Self { view }
    }

    /// The agent's id, a UUID.
    #[must_use]
    pub fn agent_id(&self) -> String {
        self.view.agent_id()
    }

    /// The agent's path.
    #[must_use]
    pub fn path(&self) -> String {
        self.view.path()
    }

    /// The id of the user whom this turn is for.
    #[must_use]
    pub fn user(&self) -> String {
        self.view.user()
    }

    /// The session's type: `chat`, or one of those that the agent's description lists.
    #[must_use]
    pub fn session_type(&self) -> String {
        self.view.session_type()
    }

    /// Time at which the step was first begun, in milliseconds since the Unix epoch. The same when
    /// the step is run again.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.view.now_ms()
    }

    /// The budget that is left to the turn.
    #[must_use]
    pub fn left(&self) -> LimitsLeft {
        self.view.left()
    }

    /// The definition's system prompt, resolved; empty when there is none.
    #[must_use]
    pub fn prompt(&self) -> String {
        self.view
            .settings()
            .get("prompt")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }

    /// The operator's settings for this agent; the default of `T` when there are none.
    ///
    /// # Errors
    /// The operator wrote something that `T` does not take.
    pub fn settings<T: DeserializeOwned + Default>(&self) -> Result<T, Unreadable> {
        let mut all = self.view.settings();
        let settings = all.get_mut("settings").map(Value::take).unwrap_or_default();
        read(settings, "settings")
    }

    /// The configuration that the session was opened with, such as the lesson that a user supplies.
    /// The default of `T` when the session was opened without one. A session that was imported from
    /// another system and goes on has in `imported` what was open there.
    ///
    /// # Errors
    /// It is not what `T` takes: the user supplied something else.
    pub fn session_config<T: DeserializeOwned + Default>(&self) -> Result<T, Unreadable> {
        match self.view.session_config() {
            Value::Object(config) if config.is_empty() => Ok(T::default()),
            config => read(config, "session config"),
        }
    }

    /// The last ten structured sessions with this agent that have ended, the latest first. They are
    /// those that this turn's user would see themselves: everybody's, or for a mentee their own
    /// alone.
    #[must_use]
    pub fn history(&self) -> Vec<PastSession> {
        serde_json::from_value(self.view.history()).unwrap_or_default()
    }

    /// The sessions among them that were for this turn's user: their own work.
    #[must_use]
    pub fn own_history(&self) -> Vec<PastSession> {
        let user = self.user();
        let mut own = self.history();
        own.retain(|past| past.user_id == user);
        own
    }

    /// The agent's preferences, with those of this turn's user over them; the default of `T` when
    /// there are none.
    ///
    /// # Errors
    /// They are not what `T` takes.
    pub fn preferences<T: DeserializeOwned + Default>(&self) -> Result<T, Unreadable> {
        read(self.view.preferences(), "preferences")
    }

    /// The agent's preferences that hold for all its users, without this turn's user's own; the
    /// default of `T` when there are none. A value for [`Effect::Prefer`](crate::Effect::Prefer)
    /// is made from these: in a mentee's turn the host keeps it for the mentee alone, so that
    /// [`preferences`](Self::preferences) may have an older copy.
    ///
    /// # Errors
    /// They are not what `T` takes.
    pub fn shared_preferences<T: DeserializeOwned + Default>(&self) -> Result<T, Unreadable> {
        read(self.view.shared_preferences(), "shared preferences")
    }

    /// The preferences, as [`Turn::preferences`] has them. Anyone may write there, so what cannot
    /// be read counts as not there: it is left aside with a warning in the log.
    #[must_use]
    pub fn remembered<T: DeserializeOwned + Default>(&self) -> T {
        readable(self.preferences(), "of the user")
    }

    /// The preferences that hold for all users, as [`Turn::shared_preferences`] has them. What
    /// cannot be read is left aside with a warning in the log.
    #[must_use]
    pub fn remembered_for_all<T: DeserializeOwned + Default>(&self) -> T {
        readable(self.shared_preferences(), "for everybody")
    }

    /// The state that this session's last turn, or this turn, left with
    /// [`Step::keep`](crate::Step::keep); the default of `T` at first.
    ///
    /// # Errors
    /// It is not what `T` takes: an earlier version of the agent wrote it.
    pub fn state<T: DeserializeOwned + Default>(&self) -> Result<T, Unreadable> {
        read(self.view.session_state(), "session state")
    }

    /// The last message of the thread.
    #[must_use]
    pub fn head(&self) -> Option<MessageId> {
        self.view.head()
    }

    /// One message of the thread; none when there is no such id.
    #[must_use]
    pub fn message(&self, id: MessageId) -> Option<Message> {
        self.view.message(id)
    }

    /// Up to `length` bytes (1 MiB at most) of a blob from `offset` on; none when this thread does
    /// not mention the blob and it is no file that was uploaded in this session, or it was
    /// erased.
    #[must_use]
    pub fn read_blob(&self, handle: &str, offset: u64, length: u32) -> Option<Vec<u8>> {
        self.view.read_blob(handle, offset, length)
    }

    /// The tools that this agent may use, in the order in which models see them.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.view.tool_names()
    }

    /// One of them.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<ToolDefinition> {
        self.view.tool(name)
    }

    /// The agents that this one may dispatch to.
    #[must_use]
    pub fn peers(&self) -> Vec<Peer> {
        self.view.peers()
    }

    /// The memo that the turn's last step left; none at the first step.
    #[must_use]
    pub fn memo(&self) -> Option<Memo> {
        self.view.memo()
    }

    /// The same, as [`Memo::json`] wrote it; the default of `T` at the first step.
    ///
    /// # Errors
    /// The bytes are not that.
    pub fn read_memo<T: DeserializeOwned + Default>(&self) -> Result<T, Unreadable> {
        self.memo()
            .map_or_else(|| Ok(T::default()), |memo| memo.read())
    }
}

fn readable<T: Default>(preferences: Result<T, Unreadable>, whose: &str) -> T {
    preferences.unwrap_or_else(|error| {
        crate::log::warn(&format!(
            "what is remembered {whose} is left aside: {error}"
        ));
        T::default()
    })
}

fn read<T: DeserializeOwned + Default>(value: Value, what: &'static str) -> Result<T, Unreadable> {
    if value.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(value).map_err(|source| Unreadable { what, source })
}
