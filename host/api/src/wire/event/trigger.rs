//! The public form of the events of triggers.
//!
//! Texts that reach an agent, and what a trigger event brought from outside, are not shown here:
//! they are in the session that took them, for whoever may see that. How much there was is shown.

use super::public;
use crate::wire::trigger::{MessageOutcome, TriggerPauseView};
use crate::wire::values::{ContentDigest, Time};
use domain::event::{self, TriggerOrigin, TriggerTrouble};
use domain::id::{AgentId, TriggerEventId};
use domain::trigger::{
    HostEventKind, SkipReason, TriggerEvent, TriggerName, TriggerSpec, TriggerTargetName,
};
use domain::user::UserId;
use serde::Serialize;

public! {
    TriggerDefined(it: event::TriggerDefined) {
        trigger: TriggerName = it.name.clone(),
        spec: Box<TriggerSpec>,
        origin: OriginView = (&it.origin).into(),
        next_due_at: Option<Time> = it.next_due.map(Time),
    }
    TriggerRemoved(it: event::TriggerRemoved) {
        trigger: TriggerName = it.name.clone(),
        removed_by: Option<UserId> = it.by.clone(),
    }
    TriggerPaused(it: event::TriggerPaused) {
        trigger: TriggerName = it.name.clone(),
        reason: TriggerPauseView = (&it.reason).into(),
    }
    TriggerResumed(it: event::TriggerResumed) {
        trigger: TriggerName = it.name.clone(),
        resumed_by: UserId = it.by.clone(),
        next_due_at: Option<Time> = it.next_due.map(Time),
    }
    TriggerEventAccepted(it: event::TriggerEventAccepted) {
        trigger: TriggerName = it.name.clone(),
        trigger_event_id: TriggerEventId = it.trigger_event,
        trigger_event: TriggerEventView = (&*it.what).into(),
        run_by: Option<UserId>,
        scheduled: bool,
        next_due_at: Option<Time> = it.next_due.map(Time),
    }
    TriggerEventsSkipped(it: event::TriggerEventsSkipped) {
        trigger: TriggerName = it.name.clone(),
        due: Time = Time(it.due),
        count: u32,
        #[schema(value_type = String)]
        reason: SkipReason,
        next_due_at: Option<Time> = it.next_due.map(Time),
    }
    TriggerFired(it: event::TriggerFired) {
        trigger: TriggerName = it.name.clone(),
        trigger_event_id: TriggerEventId = it.trigger_event,
        component: ContentDigest = ContentDigest(it.component),
        messages: Vec<FiredMessage> = it.messages.iter().map(|message| FiredMessage {
            target: message.target.clone(),
            bytes: message.text.len(),
            key: message.key.clone(),
        }).collect(),
        keeps_state: bool = it.state.is_some(),
        rejected: Option<String>,
        took_us: u64,
    }
    TriggerEventFailed(it: event::TriggerEventFailed) {
        trigger: TriggerName = it.name.clone(),
        trigger_event_id: TriggerEventId = it.trigger_event,
        attempt: u32,
        error: String,
        retry_at: Option<Time> = it.retry_at.map(Time),
    }
    TriggerPosted(it: event::TriggerPosted) {
        trigger: TriggerName = it.name.clone(),
        trigger_event_id: TriggerEventId = it.trigger_event,
        results: Vec<MessageOutcome> = it.results.iter().map(Into::into).collect(),
    }
    TriggerTroubled(it: event::TriggerTroubled) {
        trigger: TriggerName = it.name.clone(),
        trouble: TriggerTroubleView = (&it.trouble).into(),
    }
}

/// A message that a trigger run is to hand over.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct FiredMessage {
    /// The granted target that it picked; none for the configured one.
    #[schema(value_type = Option<String>)]
    target: Option<TriggerTargetName>,
    /// Its length in bytes.
    bytes: usize,
    key: String,
}

/// The one who made a trigger.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerMaker)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum OriginView {
    /// The configuration, with which it changes and goes.
    Configuration,
    /// A user, over the API.
    Api { user_id: UserId },
    /// An agent.
    Agent { agent_id: AgentId, user_id: UserId },
}

impl From<&TriggerOrigin> for OriginView {
    fn from(origin: &TriggerOrigin) -> Self {
        match origin {
            TriggerOrigin::Configuration => Self::Configuration,
            TriggerOrigin::Api { user } => Self::Api {
                user_id: user.clone(),
            },
            TriggerOrigin::Agent { agent, user, .. } => Self::Agent {
                agent_id: *agent,
                user_id: user.clone(),
            },
        }
    }
}

/// An event of a trigger, without anything that was said from outside.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerEvent)]
#[serde(tag = "kind")]
pub(crate) enum TriggerEventView {
    /// A time of its schedule has come.
    #[serde(rename = "clock")]
    Due {
        due: Time,
        /// Number of trigger events before it that were missed, and are dealt with by this one.
        missed: u32,
    },
    /// A heartbeat is due.
    #[serde(rename = "heartbeat")]
    Heartbeat { due: Time },
    /// A webhook was called.
    #[serde(rename = "webhook")]
    Webhook {
        /// The sender's id of the call.
        call_id: String,
    },
    /// Files of a watched folder changed.
    #[serde(rename = "files")]
    Files {
        folder: String,
        /// Number of changes that it has.
        changes: usize,
        /// Number of further changes.
        more: u32,
    },
    /// Something happened on the host.
    #[serde(rename = "events")]
    Event {
        #[schema(value_type = String)]
        name: HostEventKind,
        event_id: String,
        chain: u32,
    },
}

impl From<&TriggerEvent> for TriggerEventView {
    fn from(trigger_event: &TriggerEvent) -> Self {
        match trigger_event {
            TriggerEvent::Due { due, missed } => Self::Due {
                due: Time(*due),
                missed: *missed,
            },
            TriggerEvent::Heartbeat { due, checklist: _ } => Self::Heartbeat { due: Time(*due) },
            TriggerEvent::Webhook(it) => Self::Webhook {
                call_id: it.call_id.clone(),
            },
            TriggerEvent::Files(it) => Self::Files {
                folder: it.folder.clone(),
                changes: it.changes.len(),
                more: it.more,
            },
            TriggerEvent::Event(it) => Self::Event {
                name: it.name,
                event_id: it.id.clone(),
                chain: it.chain,
            },
        }
    }
}

/// A trouble of a trigger, for its operator.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerTrouble)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum TriggerTroubleView {
    /// It failed so many times in a row.
    Failing { failures: u32 },
    /// It is not tried before a time.
    BreakerOpened { until: Time },
    /// It works again.
    Recovered,
    /// A turn that it began does not come to an end.
    Stuck { trigger_event_id: TriggerEventId },
}

impl From<&TriggerTrouble> for TriggerTroubleView {
    fn from(trouble: &TriggerTrouble) -> Self {
        match trouble {
            TriggerTrouble::Failing { failures } => Self::Failing {
                failures: *failures,
            },
            TriggerTrouble::BreakerOpened { until } => Self::BreakerOpened {
                until: Time(*until),
            },
            TriggerTrouble::Recovered => Self::Recovered,
            TriggerTrouble::Stuck { trigger_event } => Self::Stuck {
                trigger_event_id: *trigger_event,
            },
        }
    }
}
