//! Triggers and their runs in public form.

use super::Time;
use super::trigger_event::occasion;
use domain::event::{PauseReason, PostedMessage, TriggerOrigin};
use domain::id::AgentId;
use domain::time::Timestamp;
use domain::trigger::{TriggerName, TriggerSpec};
use domain::user::UserId;
use edge::KindName;
use serde::Serialize;
use serde_json::{Value, json};
use store::{OccasionRow, OccasionState, TriggerRecord, TriggerRow};
use utoipa::ToSchema;

/// A trigger.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Trigger)]
pub(crate) struct TriggerView {
    /// Its name.
    pub(crate) name: TriggerName,
    /// The trigger, as the configuration writes it under `triggers`.
    pub(crate) spec: TriggerSpec,
    /// The kind of its occasions.
    pub(crate) kind: KindName,
    /// Who defined it.
    pub(crate) origin: TriggerOriginView,
    /// The agent that made it, if one did.
    pub(crate) made_by_agent_id: Option<AgentId>,
    /// The user on whose behalf it speaks.
    pub(crate) user_id: Option<UserId>,
    /// Whether it is fired.
    pub(crate) state: TriggerState,
    /// The reason why it is paused.
    pub(crate) pause: Option<TriggerPauseView>,
    /// The time of its next occasion, ISO 8601; none without a schedule, or when that is over.
    pub(crate) next_due_at: Option<Time>,
    /// Number of failures in a row.
    pub(crate) failures: u32,
    /// The time before which it is not tried again, ISO 8601.
    pub(crate) resting_until_at: Option<Time>,
    /// Occasions that were accepted and are not dealt with yet.
    pub(crate) waiting: u64,
    /// The time at which it was fired last, ISO 8601.
    pub(crate) last_fired_at: Option<Time>,
    /// The time at which it was defined as it is, ISO 8601.
    pub(crate) defined_at: Time,
}

/// The reason why a trigger is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerPause)]
pub(crate) struct TriggerPauseView {
    /// `user`, `failures`, `schedule` or `done`.
    pub(crate) kind: &'static str,
    /// The user who paused it.
    pub(crate) user_id: Option<String>,
    /// Number of failures in a row.
    pub(crate) failures: Option<u32>,
    /// The last error of its schedule.
    pub(crate) error: Option<String>,
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

/// An occasion of a trigger, and what became of it; or occasions that were passed over.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerRun)]
pub(crate) struct TriggerRunView {
    /// The id of the occasion; none of those that were passed over.
    pub(crate) occasion_id: Option<String>,
    /// The occasion: `kind`, and by kind `due`, `missed`, `delivery_id`, `folder`, `changes`,
    /// `more`, `name` and `event_id`. What was said from outside is in the session that took it.
    /// Of those that were passed over `due` of the first, `count` and `reason`.
    #[schema(value_type = Object)]
    pub(crate) occasion: Value,
    /// The user who ran it by hand.
    pub(crate) run_by_user_id: Option<String>,
    /// `waiting`, `fired` while its messages are handed over, `done`, `rejected` by its component,
    /// `failed` for good, or `skipped`.
    pub(crate) state: &'static str,
    /// Number of failed attempts.
    pub(crate) attempts: u32,
    /// The time of the next attempt, ISO 8601.
    pub(crate) retry_at: Option<String>,
    /// The reason of the last failure, or of the rejection.
    pub(crate) error: Option<String>,
    /// The outcomes of its messages, in their order.
    pub(crate) messages: Vec<TriggerMessageView>,
    /// True if a turn that it began was reported because it does not come to an end.
    pub(crate) stuck: bool,
    /// The time at which it was accepted or passed over, ISO 8601.
    pub(crate) accepted_at: String,
    /// The time at which the trigger was fired with it, ISO 8601.
    pub(crate) fired_at: Option<String>,
}

/// A message of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = TriggerMessage)]
pub(crate) struct TriggerMessageView {
    /// The granted target that it picked; none for the configured one.
    pub(crate) target: Option<String>,
    /// Its length in bytes.
    pub(crate) bytes: u64,
    /// `waiting`, `accepted` by a session, or `refused` for good.
    pub(crate) outcome: &'static str,
    /// The input that it became.
    pub(crate) input_id: Option<String>,
    /// The session that took it.
    pub(crate) session_id: Option<String>,
    /// The agent of that session.
    pub(crate) agent_id: Option<String>,
    /// The reason why it was refused.
    pub(crate) reason: Option<String>,
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
        pause: row.paused.as_ref().map(pause),
        next_due_at: row.next_due.map(Time),
        failures: row.failures.in_a_row,
        resting_until_at: resting_until.map(Time),
        waiting: row.pending,
        last_fired_at: row.last_fired.map(Time),
        defined_at: Time(row.defined),
    }
}

fn pause(reason: &PauseReason) -> TriggerPauseView {
    let (kind, user, failures, error) = match reason {
        PauseReason::User { user } => ("user", Some(user.to_string()), None, None),
        PauseReason::Failures { failures } => ("failures", None, Some(*failures), None),
        PauseReason::Schedule { errors, error } => {
            ("schedule", None, Some(*errors), Some(error.clone()))
        }
        PauseReason::Done => ("done", None, None, None),
    };
    TriggerPauseView {
        kind,
        user_id: user,
        failures,
        error,
    }
}

/// An entry of a trigger's history as clients see it.
pub(crate) fn trigger_run(record: &TriggerRecord) -> TriggerRunView {
    match record {
        TriggerRecord::Occasion(row) => occasion_run(row),
        TriggerRecord::Skipped { skipped, .. } => TriggerRunView {
            occasion_id: None,
            occasion: json!({
                "kind": "skipped", "due": skipped.due.to_string(), "count": skipped.count,
                "reason": skipped.reason,
            }),
            run_by_user_id: None,
            state: "skipped",
            attempts: 0,
            retry_at: None,
            error: None,
            messages: Vec::new(),
            stuck: false,
            accepted_at: skipped.time.to_string(),
            fired_at: None,
        },
    }
}

fn occasion_run(row: &OccasionRow) -> TriggerRunView {
    let fired = row.fired.as_ref();
    let messages = fired.into_iter().flat_map(|fired| &fired.messages);
    let posted = row.posted.as_deref().unwrap_or_default();
    let messages = messages.enumerate().map(|(number, message)| {
        let mut view = message_view(posted.get(number));
        view.target = message.target.as_ref().map(ToString::to_string);
        view.bytes = message.text.len() as u64;
        view
    });
    let rejected = fired.and_then(|fired| fired.rejected.clone());
    TriggerRunView {
        occasion_id: Some(row.occasion.to_string()),
        occasion: occasion(&row.what),
        run_by_user_id: row.run_by.as_ref().map(ToString::to_string),
        state: state_name(row.state),
        attempts: row.attempts,
        retry_at: is_retried(row).then(|| row.not_before.to_string()),
        error: rejected.or_else(|| row.last_error.clone()),
        messages: messages.collect(),
        stuck: row.stuck,
        accepted_at: row.accepted.to_string(),
        fired_at: shown(fired.map(|fired| fired.time)),
    }
}

/// Returns whether an occasion failed and is tried again.
fn is_retried(row: &OccasionRow) -> bool {
    row.state == OccasionState::Waiting && row.attempts > 0
}

fn state_name(state: OccasionState) -> &'static str {
    match state {
        OccasionState::Waiting => "waiting",
        OccasionState::Fired => "fired",
        OccasionState::Done => "done",
        OccasionState::Rejected => "rejected",
        OccasionState::GivenUp => "failed",
    }
}

fn message_view(posted: Option<&PostedMessage>) -> TriggerMessageView {
    let waiting = TriggerMessageView {
        target: None,
        bytes: 0,
        outcome: "waiting",
        input_id: None,
        session_id: None,
        agent_id: None,
        reason: None,
    };
    match posted {
        None => waiting,
        Some(PostedMessage::Accepted {
            input,
            session,
            agent,
        }) => TriggerMessageView {
            outcome: "accepted",
            input_id: Some(input.to_string()),
            session_id: Some(session.to_string()),
            agent_id: Some(agent.to_string()),
            ..waiting
        },
        Some(PostedMessage::Refused { reason }) => TriggerMessageView {
            outcome: "refused",
            reason: Some(reason.clone()),
            ..waiting
        },
    }
}

fn shown(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}
