//! The frames that events become for a client that shows a session. They have the names of the
//! design's stream (`client_action`, `content_chunk`, …) instead of those of the log. One event may
//! become several frames, or none.

use super::event::{file_uploaded, source};
use super::extended;
use super::frame_name::FrameName;
use super::message::{draft, message};
use super::operation::{operation, settlements};
use super::queue::waits_for;
use super::session::pending_action;
use super::turn::turn_end;
use broker::{Frame, Show};
use domain::agent::end_session::EXPIRED;
use domain::error_code;
use domain::event::{Event, InputAccepted, Recorded, RunEnded, RunStepped};
use domain::id::{InputId, OperationId};
use domain::message::{Message, Role};
use domain::operation::{Attempt, Continuation, Pause, Performer, Settlement};
use domain::session::PendingAction;
use domain::step::OperationOutcome;
use domain::thinking;
use domain::tool::ClientAction;
use domain::turn::TurnEnd;
use serde_json::{Value, json};

/// A frame of the stream: its name and its data.
pub(crate) type SessionEvent = (FrameName, Value);

/// Returns the frames of a stored event, in order.
pub(crate) fn session_events(recorded: &Recorded) -> Vec<SessionEvent> {
    let Some(event) = &recorded.event else {
        return Vec::new();
    };
    let mut events = frames(event);
    for (_, data) in &mut events {
        let common = json!({
            "session_id": recorded.subject.session, "run_id": recorded.subject.run,
            "time": recorded.time.to_string(),
        });
        *data = extended(std::mem::take(data), common);
    }
    events
}

fn frames(event: &Event) -> Vec<SessionEvent> {
    match event {
        Event::InputAccepted(it) => message_accepted(it).into_iter().collect(),
        Event::InputCancelled(it) => vec![withdrawn(&[it.input], "cancelled")],
        Event::InputsDropped(it) if !it.inputs.is_empty() => vec![withdrawn(&it.inputs, "dropped")],
        Event::InputDead(it) => vec![withdrawn(&[it.input], "dead")],
        Event::FileUploaded(it) => vec![(FrameName::FileUploaded, file_uploaded(it))],
        Event::RunStarted(started) => vec![(
            FrameName::RunStarted,
            extended(
                json!({ "session_type": started.session_type }),
                turn_of(&started.claimed, started.compacts.is_some()),
            ),
        )],
        Event::RunStepped(stepped) => step(stepped),
        Event::RunSettled(settled) => voided(&settled.settled)
            .chain(results(&settled.settled, &[]))
            .collect(),
        Event::OperationContinued(continuation) => continued(continuation),
        // What was shown of the attempt before it came to nothing, also when the host was killed in
        // the middle of it.
        Event::OperationAttempted(it) => {
            vec![discarded(it.operation, it.attempt.saturating_sub(1).into())]
        }
        Event::RunEnded(ended) => end(ended),
        Event::TurnCommitted(committed) => {
            let turn = &committed.turn;
            let complete = json!({ "turn_id": turn.id, "last_message": turn.last_message });
            let of = turn_of(&committed.inputs, committed.compacts);
            vec![
                (FrameName::MessageComplete, extended(complete, of.clone())),
                stream_complete(turn.end, of),
            ]
        }
        _ => slot_frames(event),
    }
}

/// Returns the frame of a message that a session has accepted; none of an input without words.
pub(crate) fn message_accepted(it: &InputAccepted) -> Option<SessionEvent> {
    let message = draft(it.message.as_ref()?);
    let source = source(&it.source);
    let data = json!({
        "input_id": it.input, "message": message, "source": source.get("kind"),
        "user_id": it.user_id, "waits_for": waits_for(&it.waits_for()),
    });
    Some((FrameName::MessageAccepted, data))
}

fn withdrawn(inputs: &[InputId], reason: &str) -> SessionEvent {
    let data = json!({ "input_ids": inputs, "reason": reason });
    (FrameName::MessageWithdrawn, data)
}

/// Returns the frames of an event of the agent's structured sessions; none of other kinds.
fn slot_frames(event: &Event) -> Vec<SessionEvent> {
    match event {
        Event::SlotTaken(it) => {
            let data = json!({ "status": "active", "session_type": it.session_type });
            vec![(FrameName::StateChange, data)]
        }
        // What is asked comes with the step that asks it, in a chat too; both are in one commit.
        Event::ExecutionSuspended(it) => {
            let call = json!({ "tool_call_id": it.pending_action.tool_call_id });
            vec![
                state("awaiting_client_action"),
                (FrameName::RunSuspended, call),
            ]
        }
        Event::ExecutionResumed(it) => {
            let call = json!({ "tool_call_id": it.tool_call_id });
            vec![state("active"), (FrameName::RunResumed, call)]
        }
        Event::ActionWithdrawn(it) => {
            let withdrawn = (
                FrameName::ClientActionWithdrawn,
                json!({ "tool_call_id": it.tool_call_id, "reason": it.reason }),
            );
            let goes_on = (!it.still_waiting).then(|| state("active"));
            std::iter::once(withdrawn).chain(goes_on).collect()
        }
        Event::SlotCompleted(it) => {
            let summary = json!({ "summary": it.summary });
            vec![state("completed"), (FrameName::SessionCompleted, summary)]
        }
        Event::SlotTerminated(it) if it.reason == EXPIRED => {
            vec![state("expired"), (FrameName::SessionExpired, json!({}))]
        }
        Event::SlotTerminated(it) => vec![
            state("terminated"),
            (FrameName::Terminated, json!({ "reason": it.reason })),
        ],
        _ => Vec::new(),
    }
}

fn state(status: &str) -> SessionEvent {
    (FrameName::StateChange, json!({ "status": status }))
}

/// A question that waits from now on.
fn asked(call: OperationId, tool_name: &str, action: &ClientAction) -> SessionEvent {
    let pending = PendingAction {
        tool_call_id: call,
        tool_name: tool_name.to_owned(),
        action: action.clone(),
    };
    (FrameName::ClientAction, json!(pending_action(&pending)))
}

fn discarded(operation: OperationId, attempt: u64) -> SessionEvent {
    (
        FrameName::ContentDiscarded,
        json!({ "operation_id": operation, "attempt": attempt }),
    )
}

/// Returns the frames by which a part of a model's reply is void where no other attempt follows:
/// the call came to an end with an attempt of which nothing more is known, because the host was
/// killed or the call was stopped.
fn voided(settled: &[Settlement]) -> impl Iterator<Item = SessionEvent> {
    let is_void = |settlement: &&Settlement| {
        let is_reply = matches!(
            settlement.outcome,
            OperationOutcome::Message { .. }
                | OperationOutcome::Parts { .. }
                | OperationOutcome::Value { .. }
        );
        !is_reply && settlement.attempts.last().is_some_and(Attempt::is_lost)
    };
    // One that used nothing has its number in common with the next, so the newest has one of these.
    // Those before it are void as well.
    let of_each = |settlement: &Settlement| {
        let operation = settlement.operation;
        (0..)
            .zip(&settlement.attempts)
            .map(move |numbered| discarded(operation, numbered.0))
            .collect::<Vec<_>>()
    };
    settled.iter().filter(is_void).flat_map(of_each)
}

fn step(stepped: &RunStepped) -> Vec<SessionEvent> {
    let mut events: Vec<SessionEvent> = voided(&stepped.settled)
        .chain(voided(&stepped.stopped))
        .collect();
    events.extend(results(&stepped.settled, &stepped.heard));
    events.extend(spoken(&stepped.heard));
    events.extend(results(&stepped.stopped, &stepped.said));
    events.extend(spoken(&stepped.said));
    for started in &stepped.started {
        if let (Some(approval), Performer::Tool { tool, .. }) =
            (&started.approval, &started.performer)
        {
            events.push(asked(started.id.approval(), tool, &approval.action));
            continue;
        }
        match &started.performer {
            Performer::Tool { .. } | Performer::Agent { .. } | Performer::Recall { .. } => {
                events.push((FrameName::ToolExecuting, operation(started)));
            }
            Performer::Client { action } => events.push(asked(started.id, &started.key, action)),
            Performer::Model { .. }
            | Performer::Detached { .. }
            | Performer::Command { .. }
            | Performer::External { .. }
            | Performer::Memory { .. }
            | Performer::Lasting { .. }
            | Performer::Timer { .. }
            | Performer::Refused { .. }
            | Performer::Reply { .. } => {}
        }
    }
    events
}

/// Returns the frames of a call that goes on: its question, and the call of a command line.
fn continued(continuation: &Continuation) -> Vec<SessionEvent> {
    let asking = match &continuation.pause {
        Pause::Asking { action, .. } => Some(asked(continuation.question(), "tool", action)),
        Pause::None | Pause::Until { .. } | Pause::Approving | Pause::Declined => None,
    };
    let calling = continuation.call.as_ref().map(|call| {
        let started = &call.started;
        match &started.approval {
            Some(approval) => asked(started.id.approval(), &call.tool, &approval.action),
            None => (FrameName::ToolExecuting, operation(started)),
        }
    });
    asking.into_iter().chain(calling).collect()
}

/// Returns the frames of the agent's messages, of its model's thinking, and of the calls that the
/// model made.
fn spoken(messages: &[Message]) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    for said in messages.iter().filter(|said| said.role == Role::Assistant) {
        let thoughts: Vec<&str> = said.parts.iter().filter_map(thinking::of_part).collect();
        if !thoughts.is_empty() {
            events.push((
                FrameName::ThinkingComplete,
                json!({ "message": said.id, "content": thoughts.join("\n\n") }),
            ));
        }
        let view = message(said);
        if !view.calls.is_empty() {
            events.push((
                FrameName::ToolCallsDetected,
                json!({ "message": said.id, "tool_calls": view.calls }),
            ));
        }
        if !view.text.is_empty() || view.stop.is_some() {
            events.push((
                FrameName::ContentComplete,
                json!({
                    "message": said.id, "content": view.text, "origin": view.origin,
                    "stop": view.stop,
                }),
            ));
        }
    }
    events
}

/// Returns the frames of tool results.
fn results(settled: &[Settlement], messages: &[Message]) -> Vec<SessionEvent> {
    let of_tools = settled.iter().filter(|settlement| {
        settlement
            .result
            .as_ref()
            .is_some_and(|result| result.role == Role::Tool)
    });
    settlements(of_tools, messages)
        .into_iter()
        .map(|result| (FrameName::ToolResult, result))
        .collect()
}

fn end(ended: &RunEnded) -> Vec<SessionEvent> {
    let mut events: Vec<SessionEvent> = voided(&ended.stopped)
        .chain(results(&ended.stopped, &ended.said))
        .collect();
    let of = turn_of(&ended.inputs, ended.compacts);
    if matches!(ended.end, TurnEnd::Failed | TurnEnd::Aborted) {
        let code = ended.code.as_deref().unwrap_or_default();
        let error = json!({
            "code": ended.code, "message": ended.reason,
            "retryable": error_code::is_retryable(code),
            "category": error_code::category_of_turn(code).as_str(),
        });
        events.push((FrameName::Error, extended(error, of.clone())));
    }
    // Otherwise its turn follows, and with that it is complete.
    if ended.turn.is_none() {
        events.push(stream_complete(ended.end, of));
    }
    events
}

fn stream_complete(end: TurnEnd, of: Value) -> SessionEvent {
    let end = json!({ "end": turn_end(end) });
    (FrameName::StreamComplete, extended(end, of))
}

/// Returns the fields that say which inputs a turn answers, and whether it is the host's own.
fn turn_of(inputs: &[InputId], compacts: bool) -> Value {
    json!({ "input_ids": inputs, "compaction": compacts })
}

/// Returns the frame of something ephemeral; none if a session's stream does not show it.
pub(crate) fn session_frame(frame: &Frame) -> Option<SessionEvent> {
    let (name, more) = match &frame.show {
        Show::Text(text) => (FrameName::ContentChunk, json!({ "content": text })),
        Show::SoFar(text) => (FrameName::ContentSoFar, json!({ "content": text.concat() })),
        Show::Discarded => (FrameName::ContentDiscarded, json!({})),
        Show::Note(text) => (FrameName::ToolProgress, json!({ "message": text })),
        Show::OwnCall { name } => (FrameName::ProgramToolCall, json!({ "tool": name })),
        Show::Thinking(text) => (FrameName::ThinkingChunk, json!({ "content": text })),
        Show::CallStarted { .. } | Show::Performing { .. } => return None,
    };
    let data = json!({
        "session_id": frame.session, "run_id": frame.run, "operation_id": frame.operation,
        "attempt": frame.attempt, "seq": frame.seq,
    });
    Some((name, extended(data, more)))
}
