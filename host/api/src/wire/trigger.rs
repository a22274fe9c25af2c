//! Triggers and their runs in public form.

use super::event::TriggerEventView;
use super::values::Time;
use domain::event::{PauseReason, PostedMessage, TriggerOrigin};
use domain::id::{AgentId, InputId, SessionId, TriggerEventId};
use domain::time::Timestamp;
use domain::trigger::{SkipReason, TriggerName, TriggerSpec, TriggerTargetName};
use domain::user::UserId;
use edge::KindName;
use serde::Serialize;
use store::{TriggerEventRow, TriggerEventState, TriggerRecord, TriggerRow};
use utoipa::ToSchema;

/// A trigger.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Trigger)]
pub(crate) struct TriggerView {
    /// Its name.
    pub(crate) name: TriggerName,
    /// The trigger, as the configuration writes it under `triggers`.
    pub(crate) spec: TriggerSpec,
    /// The kind of its trigger events.
    pub(crate) kind: KindName,
    /// Its origin.
    pub(crate) origin: TriggerOriginView,
    /// The agent that made it, if one did.
    pub(crate) made_by_agent_id: Option<AgentId>,
    /// The user on whose behalf it speaks.
    pub(crate) user_id: Option<UserId>,
    /// Its state.
    pub(crate) state: TriggerState,
    /// The reason why it is paused.
    pub(crate) pause: Option<TriggerPauseView>,
    /// The time of its next trigger event, ISO 8601; none without a schedule, or when that is over.
    pub(crate) next_due_at: Option<Time>,
    /// Number of failures in a row.
    pub(crate) failures: u32,
    /// The time before which it is not tried again, ISO 8601.
    pub(crate) resting_until_at: Option<Time>,
    /// Trigger events that were accepted and are not dealt with yet.
    pub(crate) waiting: u64,
    /// The time at which it was fired last, ISO 8601.
    pub(crate) last_fired_at: Option<Time>,
    /// The time at which it was defined as it is, ISO 8601.
    pub(crate) defined_at: Time,
}

/// The reason why a trigger is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerPause)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum TriggerPauseView {
    /// A user paused it.
    User {
        /// The user.
        user_id: UserId,
    },
    /// It failed too often.
    Failures {
        /// Number of failures in a row.
        failures: u32,
    },
    /// Its schedule cannot be evaluated.
    Schedule {
        /// Number of errors in a row.
        errors: u32,
        /// The last error.
        error: String,
    },
    /// Its schedule is over.
    Done,
}

impl From<&PauseReason> for TriggerPauseView {
    fn from(reason: &PauseReason) -> Self {
        match reason {
            PauseReason::User { user } => Self::User {
                user_id: user.clone(),
            },
            PauseReason::Failures { failures } => Self::Failures {
                failures: *failures,
            },
            PauseReason::Schedule { errors, error } => Self::Schedule {
                errors: *errors,
                error: error.clone(),
            },
            PauseReason::Done => Self::Done,
        }
    }
}

/// The origin of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TriggerOrigin)]
pub(crate) enum TriggerOriginView {
    /// It changes and goes with the configuration.
    Configuration,
    /// A client of the API.
    Api,
    /// An agent.
    Agent,
}

/// The state of a trigger: `resting` until `resting_until_at` after failures, `paused` until
/// somebody resumes it, `disabled` as its `spec` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TriggerState {
    /// It is fired when it is due.
    Active,
    /// It failed, and is fired again later.
    Resting,
    /// It is not fired until somebody resumes it.
    Paused,
    /// Its definition turns it off.
    Disabled,
}

/// An event of a trigger, and what became of it; or trigger events that were passed over.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerRun)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum TriggerRunView {
    /// The trigger is to be fired with it.
    Waiting {
        #[serde(flatten)]
        run: TriggerEventRunView,
        /// The time of the next attempt after a failure, ISO 8601.
        retry_at: Option<Time>,
    },
    /// The trigger was fired, and its messages are being handed over.
    Fired {
        #[serde(flatten)]
        run: TriggerEventRunView,
        #[serde(flatten)]
        fired: FiredView,
    },
    /// Its messages were handed over.
    Done {
        #[serde(flatten)]
        run: TriggerEventRunView,
        #[serde(flatten)]
        fired: FiredView,
    },
    /// The trigger's component rejected it.
    Rejected {
        #[serde(flatten)]
        run: TriggerEventRunView,
        /// The time at which the trigger was fired with it, ISO 8601.
        fired_at: Option<Time>,
    },
    /// It failed for good.
    Failed {
        #[serde(flatten)]
        run: TriggerEventRunView,
    },
    /// Trigger events that were passed over.
    Skipped {
        /// The trigger events.
        trigger_event: SkippedView,
        /// The time at which they were passed over, ISO 8601.
        accepted_at: Time,
    },
}

/// A trigger event that was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerEventRun)]
pub(crate) struct TriggerEventRunView {
    /// Its id.
    trigger_event_id: TriggerEventId,
    /// The trigger event. What was said from outside is in the session that took it.
    trigger_event: TriggerEventView,
    /// The user who ran it by hand.
    run_by_user_id: Option<UserId>,
    /// Number of failed attempts.
    attempts: u32,
    /// The reason of the last failure, or of the rejection.
    error: Option<String>,
    /// The time at which it was accepted, ISO 8601.
    accepted_at: Time,
}

/// A run of a trigger.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Fired)]
pub(crate) struct FiredView {
    /// The outcomes of its messages, in their order.
    messages: Vec<TriggerMessageView>,
    /// True if a turn that it began was reported because it does not come to an end.
    stuck: bool,
    /// The time at which the trigger was fired, ISO 8601.
    fired_at: Option<Time>,
}

/// Trigger events that were passed over.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = SkippedTriggerEvents)]
pub(crate) struct SkippedView {
    /// Always `skipped`.
    kind: &'static str,
    /// The time at which the first was due, ISO 8601.
    due: Time,
    /// Their number.
    count: u32,
    /// The reason.
    #[schema(value_type = String)]
    reason: SkipReason,
}

/// A message of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerMessage)]
pub(crate) struct TriggerMessageView {
    /// The granted target that it picked; none for the configured one.
    #[schema(value_type = Option<String>)]
    target: Option<TriggerTargetName>,
    /// Its length in bytes.
    bytes: u64,
    #[serde(flatten)]
    outcome: MessageOutcome,
}

/// The outcome of a message of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerMessageOutcome)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum MessageOutcome {
    /// It is to be handed over.
    Waiting,
    /// A session took it.
    Accepted {
        /// The input that it became.
        input_id: InputId,
        /// The session.
        session_id: SessionId,
        /// The agent of that session.
        agent_id: AgentId,
    },
    /// It was refused for good.
    Refused {
        /// The reason.
        reason: String,
    },
}

impl From<&PostedMessage> for MessageOutcome {
    fn from(posted: &PostedMessage) -> Self {
        match posted {
            PostedMessage::Accepted {
                input,
                session,
                agent,
            } => Self::Accepted {
                input_id: *input,
                session_id: *session,
                agent_id: *agent,
            },
            PostedMessage::Refused { reason } => Self::Refused {
                reason: reason.clone(),
            },
        }
    }
}

/// A trigger as clients see it at a time.
pub(crate) fn trigger(row: &TriggerRow, now: Timestamp) -> TriggerView {
    let resting_until = row.failures.open_until.filter(|until| *until > now);
    TriggerView {
        name: row.name.clone(),
        spec: row.spec.as_ref().clone(),
        kind: KindName::of(&row.spec.on),
        origin: match &row.origin {
            TriggerOrigin::Configuration => TriggerOriginView::Configuration,
            TriggerOrigin::Api { .. } => TriggerOriginView::Api,
            TriggerOrigin::Agent { .. } => TriggerOriginView::Agent,
        },
        made_by_agent_id: match &row.origin {
            TriggerOrigin::Agent { agent, .. } => Some(*agent),
            TriggerOrigin::Configuration | TriggerOrigin::Api { .. } => None,
        },
        user_id: row.user.clone(),
        state: match (&row.paused, resting_until) {
            _ if !row.spec.enabled => TriggerState::Disabled,
            (Some(_), _) => TriggerState::Paused,
            (None, Some(_)) => TriggerState::Resting,
            (None, None) => TriggerState::Active,
        },
        pause: row.paused.as_ref().map(Into::into),
        next_due_at: row.next_due.map(Time),
        failures: row.failures.in_a_row,
        resting_until_at: resting_until.map(Time),
        waiting: row.pending,
        last_fired_at: row.last_fired.map(Time),
        defined_at: Time(row.defined),
    }
}

/// An entry of a trigger's history as clients see it.
pub(crate) fn trigger_run(record: &TriggerRecord) -> TriggerRunView {
    match record {
        TriggerRecord::TriggerEvent(row) => trigger_event_run(row),
        TriggerRecord::Skipped { skipped, .. } => TriggerRunView::Skipped {
            trigger_event: SkippedView {
                kind: "skipped",
                due: Time(skipped.due),
                count: skipped.count,
                reason: skipped.reason,
            },
            accepted_at: Time(skipped.time),
        },
    }
}

fn trigger_event_run(row: &TriggerEventRow) -> TriggerRunView {
    let rejected = row.fired.as_ref().and_then(|fired| fired.rejected.clone());
    let run = TriggerEventRunView {
        trigger_event_id: row.trigger_event,
        trigger_event: (&*row.what).into(),
        run_by_user_id: row.run_by.clone(),
        attempts: row.attempts,
        error: rejected.or_else(|| row.last_error.clone()),
        accepted_at: Time(row.accepted),
    };
    match row.state {
        TriggerEventState::Waiting => TriggerRunView::Waiting {
            run,
            retry_at: (row.attempts > 0).then_some(Time(row.not_before)),
        },
        TriggerEventState::Fired => TriggerRunView::Fired {
            run,
            fired: fired(row),
        },
        TriggerEventState::Done => TriggerRunView::Done {
            run,
            fired: fired(row),
        },
        TriggerEventState::Rejected => TriggerRunView::Rejected {
            run,
            fired_at: row.fired.as_ref().map(|fired| Time(fired.time)),
        },
        TriggerEventState::GivenUp => TriggerRunView::Failed { run },
    }
}

fn fired(row: &TriggerEventRow) -> FiredView {
    let messages = row.fired.iter().flat_map(|fired| &fired.messages);
    let posted = row.posted.as_deref().unwrap_or_default();
    FiredView {
        messages: messages
            .enumerate()
            .map(|(number, message)| TriggerMessageView {
                target: message.target.clone(),
                bytes: message.text.len() as u64,
                outcome: posted
                    .get(number)
                    .map_or(MessageOutcome::Waiting, Into::into),
            })
            .collect(),
        stuck: row.stuck,
        fired_at: row.fired.as_ref().map(|fired| Time(fired.time)),
    }
}
