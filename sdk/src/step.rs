//! The result of a step: one decision, the effects that are stored with it, and a memo for the next
//! step.

pub use crate::bindings::agent_plugin::exports::agent_host::plugin::agent::Until;

use crate::content::{IntoParts, Part};
use crate::operation::Operation;
use crate::turn::Memo;
use serde_json::Value;
use std::error::Error;

/// Start these, stop those, and step me again.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Operations to start. They run at the same time, except that calls of non-idempotent tools
    /// run one after the other.
    pub start: Vec<Operation>,
    /// Keys of open operations to stop.
    pub cancel: Vec<String>,
    /// The condition for the next step.
    pub until: Until,
    /// True if a message of the user's also starts the next step meanwhile. Otherwise the message
    /// waits until the turn's end.
    pub hear: bool,
}

/// The decision about what happens next.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Go on working.
    Wait(Wait),
    /// Say this and end the turn. Open operations are cancelled. Empty when all is said already.
    Reply(Vec<Part>),
    /// End the turn and the structured session, with a summary for its record.
    Complete(Value),
    /// End the turn as failed, with a reason for the user.
    Fail(String),
}

/// A lasting change that comes with the decision and is stored with it. At most 64 in a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Show this to the user as a message while work goes on.
    Say(Vec<Part>),
    /// Merge these keys into the agent's preferences, which hold for all its users: a JSON object.
    /// In a turn for a mentee the host keeps them for that user alone.
    Prefer(Value),
    /// Merge these keys into what the agent remembers of this turn's user: a JSON object.
    PreferForUser(Value),
    /// Add to the structured session's record.
    RecordItem(Item),
    /// Replace the session's state. 256 KiB at most.
    SessionState(Value),
    /// Keep a note that recall finds later.
    Remember(String),
    /// Record an event of the agent's own: a name of 1 to 64 of `a-z`, `0-9`, `.` and `-`, and a
    /// JSON object of 64 KiB at most.
    Emit {
        /// Its name.
        name: String,
        /// Its payload.
        data: Value,
    },
    /// Schedule a message to the agent itself, in this session.
    Schedule {
        /// Milliseconds until then.
        after_ms: u64,
        /// The message that the agent then gets.
        content: String,
    },
}

impl Effect {
    /// Show this to the user.
    pub fn say(content: impl IntoParts) -> Self {
        Self::Say(content.into_parts())
    }
}

/// One exercise, question or exchange of a structured session, for its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The question.
    pub prompt: Value,
    /// The answer.
    pub response: Value,
    /// The evaluation of the answer.
    pub evaluation: Option<Value>,
    /// The key of the client operation that asked, when one did: the host then adds what was shown,
    /// and how long the answer took.
    pub asked: Option<String>,
}

/// The result of a step. Built from one of the decisions, then refined:
///
/// ```
/// use agent_host_sdk::{Operation, Step};
/// let step = Step::start([Operation::timer_ms("tea", 180_000)]).say("The tea is on.").hearing();
/// assert_eq!(step.effects.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The decision about what happens next.
    pub decision: Decision,
    /// The effects that are stored with it, in this order.
    pub effects: Vec<Effect>,
    /// The memo for the next step of this turn. None keeps nothing.
    pub memo: Option<Memo>,
}

impl Step {
    fn of(decision: Decision) -> Self {
        Self {
            decision,
            effects: Vec::new(),
            memo: None,
        }
    }

    /// Say this and end the turn.
    pub fn reply(content: impl IntoParts) -> Self {
        Self::of(Decision::Reply(content.into_parts()))
    }

    /// End the turn: all is said already.
    #[must_use]
    pub fn done() -> Self {
        Self::of(Decision::Reply(Vec::new()))
    }

    /// End the turn and the structured session.
    #[must_use]
    pub fn complete(summary: Value) -> Self {
        Self::of(Decision::Complete(summary))
    }

    /// End the turn as failed, with a reason for the user.
    pub fn fail(reason: impl Into<String>) -> Self {
        Self::of(Decision::Fail(reason.into()))
    }

    /// End the turn as failed, with an error and what led to it as the reason.
    #[must_use]
    pub fn fail_with(error: &dyn Error) -> Self {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            reason.push_str(": ");
            reason.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::fail(reason)
    }

    /// Start these operations and go on when all have settled.
    pub fn start(operations: impl IntoIterator<Item = Operation>) -> Self {
        let start = operations.into_iter().collect();
        Self::of(Decision::Wait(Wait {
            start,
            cancel: Vec::new(),
            until: Until::All,
            hear: false,
        }))
    }

    fn waiting(mut self, change: impl FnOnce(&mut Wait)) -> Self {
        if let Decision::Wait(wait) = &mut self.decision {
            change(wait);
        }
        self
    }

    /// Goes on as soon as one operation has settled. Changes nothing about a step that ends the
    /// turn.
    #[must_use]
    pub fn until_any(self) -> Self {
        self.waiting(|wait| wait.until = Until::Any)
    }

    /// Goes on also when the user sends a message. Changes nothing about a step that ends the turn.
    #[must_use]
    pub fn hearing(self) -> Self {
        self.waiting(|wait| wait.hear = true)
    }

    /// Stops this open operation too. Changes nothing about a step that ends the turn, which stops
    /// all.
    #[must_use]
    pub fn cancelling(self, key: impl Into<String>) -> Self {
        self.waiting(|wait| wait.cancel.push(key.into()))
    }

    /// Adds an effect.
    #[must_use]
    pub fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Shows this to the user.
    #[must_use]
    pub fn say(self, content: impl IntoParts) -> Self {
        self.with(Effect::say(content))
    }

    /// Replaces the session's state.
    #[must_use]
    pub fn keep(self, state: Value) -> Self {
        self.with(Effect::SessionState(state))
    }

    /// Adds an exercise or question to the structured session's record.
    #[must_use]
    pub fn record(self, item: Item) -> Self {
        self.with(Effect::RecordItem(item))
    }

    /// Merges these keys into the preferences for all users of the agent: what it has learned about
    /// its subject.
    #[must_use]
    pub fn prefer(self, preferences: Value) -> Self {
        self.with(Effect::Prefer(preferences))
    }

    /// Merges these keys into the preferences for this turn's user: what the agent has learned
    /// about the user.
    #[must_use]
    pub fn prefer_for_user(self, preferences: Value) -> Self {
        self.with(Effect::PreferForUser(preferences))
    }

    /// Keeps a note that recall finds later.
    #[must_use]
    pub fn remember(self, note: impl Into<String>) -> Self {
        self.with(Effect::Remember(note.into()))
    }

    /// Sets the memo for the next step of this turn.
    #[must_use]
    pub fn with_memo(mut self, memo: Memo) -> Self {
        self.memo = Some(memo);
        self
    }
}
