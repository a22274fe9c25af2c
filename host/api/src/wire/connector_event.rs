//! The events of connectors in public form: what arrived, what is sent, and what became of it.
//!
//! Words that arrive are not shown here: they are in the session that took them, for whoever may
//! see that. Words that are sent are shown where they are about a session.

use domain::connector::{Choice, ReplyRoute};
use domain::event::{
    Arrival, ArrivalOutcome, ConnectorReceived, DeliveryCause, DeliveryOutcome, DeliveryQueued,
    Event, PairingOffered,
};
use serde_json::{Value, json};

/// Returns the data of such an event; null for other kinds.
pub(super) fn data(event: &Event) -> Value {
    match event {
        Event::ConnectorReceived(it) => received(it),
        Event::ArrivalsSettled(it) => json!({
            "connector": it.connector, "arrival_ids": it.arrivals, "result": settled(&it.outcome),
        }),
        Event::PairingOffered(it) => offered(it),
        Event::PairingSettled(it) => json!({ "key": it.key, "user_id": it.user }),
        Event::DeliveryQueued(it) => queued(it),
        Event::DeliveryStarted(it) => json!({
            "connector": it.connector, "delivery_id": it.delivery, "attempt": it.attempt,
            "piece": it.piece,
        }),
        Event::DeliverySettled(it) => json!({
            "connector": it.connector, "delivery_id": it.delivery,
            "result": delivered(&it.outcome),
        }),
        Event::DeliveryRequeued(it) => json!({
            "connector": it.connector, "delivery_id": it.delivery, "requeued_by": it.by,
        }),
        Event::ConnectorTroubled(it) => {
            json!({ "connector": it.connector, "trouble": it.trouble })
        }
        _ => Value::Null,
    }
}

/// Returns the chat into which replies go.
pub(super) fn reply_route(route: &ReplyRoute) -> Value {
    json!({ "connector": route.connector, "chat": route.chat })
}

/// Returns what a message to people outside comes of.
pub(super) fn cause(cause: &DeliveryCause) -> Value {
    match cause {
        DeliveryCause::Turn { session, run } => {
            json!({ "kind": "turn", "session_id": session, "run_id": run })
        }
        DeliveryCause::Question {
            session,
            run,
            operation,
        } => json!({
            "kind": "question", "session_id": session, "run_id": run, "operation_id": operation,
        }),
        DeliveryCause::Input { session, input } => {
            json!({ "kind": "input", "session_id": session, "input_id": input })
        }
        DeliveryCause::Host { arrival } => json!({ "kind": "host", "arrival_id": arrival }),
        DeliveryCause::Test { user } => json!({ "kind": "test", "user_id": user }),
    }
}

/// Returns the choices of a question.
pub(super) fn choices(choices: &[Choice]) -> Value {
    choices
        .iter()
        .map(|choice| json!({ "label": choice.label, "value": choice.value }))
        .collect()
}

fn received(it: &ConnectorReceived) -> Value {
    json!({
        "connector": it.connector, "arrivals": it.arrivals.iter().map(arrival).collect::<Vec<_>>(),
        "cursor_moved": it.cursor.is_some(),
    })
}

fn arrival(it: &Arrival) -> Value {
    let message = &it.message;
    json!({
        "arrival_id": it.id, "service_id": message.id, "sender": message.sender,
        "group": message.group, "chat": message.chat, "files": message.attachments.len(),
        "sent_at": message.sent_at.to_string(),
    })
}

fn settled(outcome: &ArrivalOutcome) -> Value {
    match outcome {
        ArrivalOutcome::Accepted {
            user,
            input,
            session,
            agent,
        } => json!({
            "outcome": "accepted", "user_id": user, "input_id": input, "session_id": session,
            "agent_id": agent,
        }),
        ArrivalOutcome::Answered { user, operation } => {
            json!({ "outcome": "answered", "user_id": user, "operation_id": operation })
        }
        ArrivalOutcome::Configured { user, session } => {
            json!({ "outcome": "configured", "user_id": user, "session_id": session })
        }
        ArrivalOutcome::Ignored => json!({ "outcome": "ignored" }),
        ArrivalOutcome::Unknown => json!({ "outcome": "unknown" }),
        ArrivalOutcome::Paired => json!({ "outcome": "paired" }),
        ArrivalOutcome::Refused { reason } => json!({ "outcome": "refused", "reason": reason }),
    }
}

/// Returns the offer of a pairing, without its code: whoever knows it may confirm it.
fn offered(it: &PairingOffered) -> Value {
    json!({
        "key": it.key, "name": it.name, "chat": it.chat, "expires_at": it.expires.to_string(),
    })
}

fn queued(it: &DeliveryQueued) -> Value {
    json!({
        "connector": it.connector, "delivery_id": it.delivery, "chat": it.chat, "text": it.text,
        "choices": choices(&it.choices), "cause": cause(&it.cause),
    })
}

fn delivered(outcome: &DeliveryOutcome) -> Value {
    match outcome {
        DeliveryOutcome::Delivered { service_ids } => {
            json!({ "outcome": "delivered", "service_ids": service_ids })
        }
        DeliveryOutcome::Piece { service_id } => {
            json!({ "outcome": "piece", "service_id": service_id })
        }
        DeliveryOutcome::Failed { reason, retry_at } => json!({
            "outcome": "failed", "reason": reason, "retry_at": retry_at.to_string(),
        }),
        DeliveryOutcome::Unknown { reason } => json!({ "outcome": "unknown", "reason": reason }),
        DeliveryOutcome::Undelivered { piece, reason } => {
            json!({ "outcome": "undelivered", "piece": piece, "reason": reason })
        }
        DeliveryOutcome::Dead { reason } => json!({ "outcome": "dead", "reason": reason }),
    }
}
