//! The events of triggers in public form.
//!
//! Texts that reach an agent, and what an occasion brought from outside, are not shown here: they
//! are in the session that took them, for whoever may see that. How much there was is shown.

use domain::event::{
    Event, OccasionAccepted, PauseReason, PostedMessage, TriggerFired, TriggerOrigin,
    TriggerTrouble,
};
use domain::time::Timestamp;
use domain::trigger::Occasion;
use serde_json::{Value, json};

/// Returns the data of such an event; null for other kinds.
pub(super) fn data(event: &Event) -> Value {
    match event {
        Event::TriggerDefined(it) => json!({
            "trigger": it.name, "spec": it.spec, "origin": origin(&it.origin),
            "next_due_at": shown(it.next_due),
        }),
        Event::TriggerRemoved(it) => json!({ "trigger": it.name, "removed_by": it.by }),
        Event::TriggerPaused(it) => {
            json!({ "trigger": it.name, "reason": pause_reason(&it.reason) })
        }
        Event::TriggerResumed(it) => json!({
            "trigger": it.name, "resumed_by": it.by, "next_due_at": shown(it.next_due),
        }),
        Event::OccasionAccepted(it) => accepted(it),
        // What a purge left of them, so that the schedule goes on.
        Event::OccasionsSkipped(it) if it.count == 0 => Value::Null,
        Event::TriggerFired(it) if it.occasion.0.is_nil() => Value::Null,
        Event::OccasionsSkipped(it) => json!({
            "trigger": it.name, "due": it.due.to_string(), "count": it.count,
            "reason": it.reason, "next_due_at": shown(it.next_due),
        }),
        Event::TriggerFired(it) => fired(it),
        Event::OccasionFailed(it) => json!({
            "trigger": it.name, "occasion_id": it.occasion, "attempt": it.attempt,
            "error": it.error, "retry_at": shown(it.retry_at),
        }),
        Event::TriggerPosted(it) => json!({
            "trigger": it.name, "occasion_id": it.occasion,
            "results": it.results.iter().map(posted).collect::<Vec<_>>(),
        }),
        Event::TriggerTroubled(it) => {
            json!({ "trigger": it.name, "trouble": trouble(&it.trouble) })
        }
        _ => Value::Null,
    }
}

/// Returns whose a trigger is.
pub(super) fn origin(origin: &TriggerOrigin) -> Value {
    match origin {
        TriggerOrigin::Configuration => json!({ "kind": "configuration" }),
        TriggerOrigin::Api { user } => json!({ "kind": "api", "user_id": user }),
        TriggerOrigin::Agent { agent, user, .. } => {
            json!({ "kind": "agent", "agent_id": agent, "user_id": user })
        }
    }
}

/// Returns the reason why a trigger is not fired.
pub(super) fn pause_reason(reason: &PauseReason) -> Value {
    match reason {
        PauseReason::User { user } => json!({ "kind": "user", "user_id": user }),
        PauseReason::Failures { failures } => json!({ "kind": "failures", "failures": failures }),
        PauseReason::Schedule { errors, error } => {
            json!({ "kind": "schedule", "errors": errors, "error": error })
        }
        PauseReason::Done => json!({ "kind": "done" }),
    }
}

/// Returns what became of a message of a trigger.
pub(super) fn posted(posted: &PostedMessage) -> Value {
    match posted {
        PostedMessage::Accepted {
            input,
            session,
            agent,
        } => json!({
            "outcome": "accepted", "input_id": input, "session_id": session, "agent_id": agent,
        }),
        PostedMessage::Refused { reason } => json!({ "outcome": "refused", "reason": reason }),
    }
}

/// Returns what happened, without anything that was said from outside.
pub(super) fn occasion(occasion: &Occasion) -> Value {
    let kind = occasion.kind();
    match occasion {
        Occasion::Due { due, missed } => {
            json!({ "kind": kind, "due": due.to_string(), "missed": missed })
        }
        Occasion::Heartbeat { due, checklist: _ } => {
            json!({ "kind": kind, "due": due.to_string() })
        }
        Occasion::Webhook(it) => json!({ "kind": kind, "delivery_id": it.delivery_id }),
        Occasion::Files(it) => json!({
            "kind": kind, "folder": it.folder, "changes": it.changes.len(), "more": it.more,
        }),
        Occasion::Event(it) => json!({
            "kind": kind, "name": it.name, "event_id": it.id, "chain": it.chain,
        }),
    }
}

fn accepted(it: &OccasionAccepted) -> Value {
    json!({
        "trigger": it.name, "occasion_id": it.occasion, "occasion": occasion(&it.what),
        "run_by": it.run_by, "scheduled": it.scheduled, "next_due_at": shown(it.next_due),
    })
}

fn fired(it: &TriggerFired) -> Value {
    let messages = it
        .messages
        .iter()
        .map(|it| json!({ "target": it.target, "bytes": it.text.len(), "key": it.key }));
    json!({
        "trigger": it.name, "occasion_id": it.occasion, "component": it.component.reference(),
        "messages": messages.collect::<Vec<_>>(), "keeps_state": it.state.is_some(),
        "rejected": it.rejected, "took_us": it.took_us,
    })
}

fn trouble(trouble: &TriggerTrouble) -> Value {
    match trouble {
        TriggerTrouble::Failing { failures } => {
            json!({ "kind": "failing", "failures": failures })
        }
        TriggerTrouble::BreakerOpened { until } => {
            json!({ "kind": "breaker_opened", "until": until.to_string() })
        }
        TriggerTrouble::Recovered => json!({ "kind": "recovered" }),
        TriggerTrouble::Stuck { occasion } => {
            json!({ "kind": "stuck", "occasion_id": occasion })
        }
    }
}

fn shown(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}
