//! Payloads of a trigger's stream: its definition, its trigger events, and their outcomes.
//!
//! A trigger event is accepted first. The component's messages for it are stored with the trigger's
//! new state and the acknowledgement of the trigger event. Afterwards they are handed to their
//! sessions, each under an idempotency key derived from the trigger event.

use crate::access::user::UserId;
use crate::values::digest::Digest;
use crate::values::id::{AgentId, InputId, SessionId, TriggerEventId};
use crate::values::time::Timestamp;
pub use crate::work::trigger::SkipReason;
use crate::work::trigger::{
    TriggerEvent, TriggerName, TriggerSpec, TriggerState, TriggerTargetName,
};
use serde::{Deserialize, Serialize};

/// The origin of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TriggerOrigin {
    /// By the configuration: it changes and is removed with it.
    Configuration,
    /// Made over the API.
    Api {
        /// The user who made it.
        user: UserId,
    },
    /// Made by an agent with permission to do so.
    Agent {
        /// The agent.
        agent: AgentId,
        /// The user for whom it works.
        user: UserId,
        /// True if its turn rested on content from outside.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
    },
}

/// See [`super::Event::TriggerDefined`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerDefined {
    /// Its name.
    pub name: TriggerName,
    /// Its definition.
    pub spec: Box<TriggerSpec>,
    /// Its origin.
    pub origin: TriggerOrigin,
    /// The first trigger event of its schedule; none without a schedule or if that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Timestamp>,
    /// Time of the definition.
    pub time: Timestamp,
}

/// See [`super::Event::TriggerRemoved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerRemoved {
    /// Its name.
    pub name: TriggerName,
    /// The user who removed it; none when it was removed from the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// Time of the removal.
    pub time: Timestamp,
}

/// The reason why a trigger is not fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PauseReason {
    /// A user paused it.
    User {
        /// The user.
        user: UserId,
    },
    /// It failed this many times in a row.
    Failures {
        /// Number of failures in a row.
        failures: u32,
    },
    /// Its next trigger event could not be computed this many times in a row.
    Schedule {
        /// Number of errors in a row.
        errors: u32,
        /// The last error.
        error: String,
    },
    /// Its component reported that it is done, or its schedule has no further trigger event.
    Done,
}

/// See [`super::Event::TriggerPaused`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerPaused {
    /// Its name.
    pub name: TriggerName,
    /// The reason.
    pub reason: PauseReason,
    /// Time of the pause.
    pub time: Timestamp,
}

/// See [`super::Event::TriggerResumed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerResumed {
    /// Its name.
    pub name: TriggerName,
    /// The user who resumed it.
    pub by: UserId,
    /// The next trigger event of its schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Timestamp>,
    /// Time at which it was resumed.
    pub time: Timestamp,
}

/// See [`super::Event::TriggerEventAccepted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerEventAccepted {
    /// The trigger.
    pub name: TriggerName,
    /// The trigger event.
    pub trigger_event: TriggerEventId,
    /// The trigger event itself.
    pub what: Box<TriggerEvent>,
    /// The user who started it by hand, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_by: Option<UserId>,
    /// The next trigger event of its schedule; none for a trigger event without a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Timestamp>,
    /// True if the trigger event is that of its schedule, which `next_due` replaces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    /// Time of acceptance.
    pub time: Timestamp,
}

/// See [`super::Event::TriggerEventsSkipped`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerEventsSkipped {
    /// The trigger.
    pub name: TriggerName,
    /// Time at which the first of them was due.
    pub due: Timestamp,
    /// Their number.
    pub count: u32,
    /// The reason.
    pub reason: SkipReason,
    /// The next trigger event of its schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Timestamp>,
    /// Time at which they were skipped.
    pub time: Timestamp,
}

/// A message that the component made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerMessage {
    /// The granted target that it chose; none for the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TriggerTargetName>,
    /// Its text.
    pub text: String,
    /// The idempotency key under which its session accepts it.
    pub key: String,
}

/// See [`super::Event::TriggerFired`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerFired {
    /// The trigger.
    pub name: TriggerName,
    /// The trigger event, which is acknowledged with this.
    pub trigger_event: TriggerEventId,
    /// The component's code.
    pub component: Digest,
    /// Messages to hand over. None if the trigger event was irrelevant.
    pub messages: Vec<TriggerMessage>,
    /// The trigger's new state; none to keep the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TriggerState>,
    /// The reason why the component rejected the trigger event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// Time that the call took, in microseconds.
    pub took_us: u64,
    /// Time of the trigger run.
    pub time: Timestamp,
}

/// See [`super::Event::TriggerEventFailed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerEventFailed {
    /// The trigger.
    pub name: TriggerName,
    /// The trigger event.
    pub trigger_event: TriggerEventId,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The reason.
    pub error: String,
    /// Time of the next attempt; none if the trigger event is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Time of the failure.
    pub time: Timestamp,
}

/// The fate of one message of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PostedMessage {
    /// A session took it.
    Accepted {
        /// The input.
        input: InputId,
        /// The session.
        session: SessionId,
        /// Its agent.
        agent: AgentId,
    },
    /// It was refused for good.
    Refused {
        /// The reason.
        reason: String,
    },
}

/// See [`super::Event::TriggerPosted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerPosted {
    /// The trigger.
    pub name: TriggerName,
    /// The trigger event.
    pub trigger_event: TriggerEventId,
    /// The fate of its messages, in order.
    pub results: Vec<PostedMessage>,
    /// Time at which the last was handed over.
    pub time: Timestamp,
}

/// A trouble of a trigger that an operator should know of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TriggerTrouble {
    /// It failed this many times in a row.
    Failing {
        /// Number of failures in a row.
        failures: u32,
    },
    /// It failed so often that attempts are suspended until a time.
    BreakerOpened {
        /// The time of the next try.
        until: Timestamp,
    },
    /// It works again.
    Recovered,
    /// A turn that it began does not end.
    Stuck {
        /// The trigger event.
        trigger_event: TriggerEventId,
    },
}

/// See [`super::Event::TriggerTroubled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerTroubled {
    /// The trigger.
    pub name: TriggerName,
    /// The trouble.
    pub trouble: TriggerTrouble,
    /// Time at which it was noticed.
    pub time: Timestamp,
}
