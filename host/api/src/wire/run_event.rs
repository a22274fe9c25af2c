//! The events of runs and their operations in public form.

use super::extended;
use super::message::message;
use super::operation::{client_action, operation, settlements};
use super::turn::turn_end;
use domain::event::{Event, RunEnded, RunStarted, RunStepped};
use domain::operation::{Continuation, Kept, Operation, Pause, Performer};
use domain::step::Decision;
use serde_json::{Value, json};

/// Returns the data of such an event; null for other kinds.
pub(super) fn data(event: &Event) -> Value {
    match event {
        Event::RunStarted(it) => started(it),
        Event::RunStepped(it) => stepped(it),
        Event::StepFailed(it) => json!({
            "step": it.step, "attempt": it.attempt, "outcome": it.outcome, "detail": it.detail,
            "usage": it.usage,
        }),
        Event::RunRecovered(it) => json!({ "count": it.count }),
        Event::RunSettled(it) => json!({ "settled": settlements(&it.settled, &[]) }),
        Event::OperationContinued(it) => continued(it),
        Event::OperationAnswered(it) => match &it.kept {
            Kept::Value(value) => json!({ "operation_id": it.operation, "value": value }),
            Kept::Blob(blob) => json!({ "operation_id": it.operation, "blob": blob.reference() }),
        },
        Event::ApprovalAnswered(it) => json!({
            "operation_id": it.operation, "call": it.call.hex(), "approved": it.approved,
            "user_id": it.by,
        }),
        Event::OperationStarted(it) => json!({
            "operation_id": it.operation, "segment": it.segment, "effect": it.effect,
        }),
        Event::OperationAttempted(it) => json!({
            "operation_id": it.operation, "attempt": it.attempt, "ended": it.ended,
            "reserved": it.reserved,
        }),
        Event::RunCut(it) => json!({
            "operation_id": it.operation, "stubs": it.cut.stubs,
            "left_out_through": it.cut.left_out_through, "summary": it.cut.summary,
            "tokens_before": it.cut.tokens_before, "tokens_after": it.cut.tokens_after,
        }),
        Event::RunEnded(it) => ended(it),
        Event::PluginEmitted(it) => json!({ "name": it.name, "data": it.data }),
        _ => Value::Null,
    }
}

fn started(it: &RunStarted) -> Value {
    let hints = it.hints.iter().map(
        |hint| json!({ "note_id": hint.note, "bytes": hint.bytes, "untrusted": hint.untrusted }),
    );
    json!({
        "definition": it.definition, "session_type": it.session_type, "base_turn_id": it.base,
        "base_message": it.base_message, "revision": it.revision, "claimed": it.claimed,
        "limits": it.limits, "accounts": it.accounts,
        "deadline": it.deadline.map(|time| time.to_string()),
        "reply_to": it.reply_to.map(|to| json!({ "run_id": to.run, "operation_id": to.operation })),
        "depth": it.depth, "hops": it.hops, "spawn_depth": it.spawn_depth,
        "priority": it.priority, "user_id": it.user_id, "model": it.model,
        "collected": it.collected, "overflow": it.overflow, "compacts": it.compacts,
        "configuration": it.configuration.reference(),
        "persona": it.persona,
        "generation": it.generation, "hints": hints.collect::<Vec<_>>(),
    })
}

fn stepped(it: &RunStepped) -> Value {
    let mut settled = settlements(&it.settled, &it.heard);
    settled.extend(settlements(&it.stopped, &it.said));
    let view = json!({
        "step": it.step,
        "decision": match &it.decision {
            Decision::Wait(_) => "wait",
            Decision::Reply { .. } => "reply",
            Decision::Complete { .. } => "complete",
            Decision::Fail { .. } => "fail",
        },
        "messages": it.heard.iter().chain(&it.said).map(message).collect::<Vec<_>>(),
        "started": it.started.iter().map(operation).collect::<Vec<_>>(),
        "settled": settled,
        "claimed": it.claimed,
        "client_actions": it.started.iter().filter_map(asked).collect::<Vec<_>>(),
        "usage": it.usage,
    });
    let more = match &it.decision {
        Decision::Complete { summary } => json!({ "summary": summary }),
        Decision::Fail { reason } => json!({ "reason": reason.as_str() }),
        Decision::Wait(_) | Decision::Reply { .. } => json!({}),
    };
    extended(view, more)
}

/// Returns the question of an operation that asks the user.
fn asked(operation: &Operation) -> Option<Value> {
    if let Some(approval) = &operation.approval {
        return Some(json!(client_action(
            operation.id.approval(),
            &approval.action
        )));
    }
    match &operation.performer {
        Performer::Client { action } => Some(json!(client_action(operation.id, action))),
        Performer::Model { .. }
        | Performer::Tool { .. }
        | Performer::Agent { .. }
        | Performer::Detached { .. }
        | Performer::External { .. }
        | Performer::Recall { .. }
        | Performer::Command { .. }
        | Performer::Memory { .. }
        | Performer::Lasting { .. }
        | Performer::Timer { .. }
        | Performer::Refused { .. }
        | Performer::Reply { .. } => None,
    }
}

fn continued(it: &Continuation) -> Value {
    let (pause, more) = match &it.pause {
        Pause::None | Pause::Approving | Pause::Declined => ("none", json!({})),
        Pause::Until { due } => ("until", json!({ "due": due.to_string() })),
        Pause::Asking { action, .. } => {
            let asked = client_action(it.question(), action);
            ("asking", json!({ "client_actions": [asked] }))
        }
    };
    let mut view = json!({ "operation_id": it.operation, "segment": it.segment, "pause": pause });
    if let Some(call) = &it.call {
        let started = json!({ "started": [operation(&call.started)] });
        view = extended(view, started);
        if let Some(asked) = asked(&call.started) {
            view = extended(view, json!({ "client_actions": [asked] }));
        }
    }
    extended(view, more)
}

fn ended(it: &RunEnded) -> Value {
    json!({
        "end": turn_end(it.end), "code": it.code, "reason": it.reason, "turn_id": it.turn,
        "settled": settlements(&it.stopped, &it.said),
        "messages": it.said.iter().map(message).collect::<Vec<_>>(),
    })
}
