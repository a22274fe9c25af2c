//! Operations, their outcomes and client actions in public form.

use super::extended;
use domain::id::OperationId;
use domain::message::{Draft, Message, MessageId};
use domain::operation::{Operation, Performer, Settlement};
use domain::step::{Audience, OperationOutcome};
use domain::tool::ClientAction;
use serde::Serialize;
use serde_json::{Value, json};

/// A question to the user. Answer it with `POST /api/agents/{id}/respond`.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ClientAction)]
pub(crate) struct ClientActionView {
    /// The id to answer under.
    pub(crate) call_id: String,
    /// The widget that shows it.
    pub(crate) widget: String,
    /// The properties that the widget shows.
    pub(crate) props: Value,
    /// JSON Schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_schema: Option<Value>,
    /// True if the client should lock its message box meanwhile.
    pub(crate) lock_input: bool,
}

/// A question with the operation that asks it.
pub(crate) fn client_action(call: OperationId, action: &ClientAction) -> ClientActionView {
    ClientActionView {
        call_id: call.to_string(),
        widget: action.widget.clone(),
        props: action.props.clone(),
        response_schema: action.response_schema.clone(),
        lock_input: action.lock_input,
    }
}

/// An operation of a run, as it was started. The fields of its kind follow the common ones.
#[derive(Debug, utoipa::ToSchema)]
#[schema(as = Operation)]
#[expect(dead_code, reason = "says in the description what an operation is")]
pub(crate) struct OperationSchema {
    /// Its id: what a question is answered under.
    operation_id: String,
    /// The agent's name for it.
    key: String,
    /// `model`, `tool`, `client`, `agent`, `detached`, `recall`, `timer`, `refused` or `reply`.
    kind: String,
    /// The step that started it.
    step: u64,
    /// The tool that the model called with it.
    tool: Option<String>,
    /// The call that it answers.
    answers: Option<AnsweredCall>,
    /// The model of a model call, as the agent names it.
    model: Option<String>,
    /// The audience of a model call: `user` if the user sees what it says, `hidden` if nobody does.
    audience: Option<String>,
    /// The arguments of a tool call, or of work that was handed over.
    arguments: Option<Value>,
    /// The question, also that of a call that a user has to approve first.
    client_action: Option<ClientActionView>,
    /// The recipient of work that was handed over.
    target: Option<WorkTarget>,
    /// The query of a search in memory.
    query: Option<String>,
    /// Maximum number of results of a search in memory.
    limit: Option<u64>,
    /// The time at which a timer is due, ISO 8601.
    due: Option<String>,
    /// The outcome of a refused call, as reported to the agent: `failed` or `denied`.
    outcome: Option<String>,
    /// The reason of a refused call that is reported as failed.
    failure: Option<Value>,
    /// The deadline, ISO 8601.
    deadline: Option<String>,
}

/// The call of a message that an operation answers.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "says in the description what an operation is")]
pub(crate) struct AnsweredCall {
    /// The message's place in the thread.
    message: u64,
    /// The call's index in it.
    index: u32,
}

/// The recipient of work that was handed over.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "says in the description what an operation is")]
pub(crate) struct WorkTarget {
    /// The agent.
    agent_id: String,
    /// Its session.
    session_id: String,
    /// The input that describes the work.
    input_id: String,
}

/// One attempt at a model call.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "says in the description what an attempt is")]
pub(crate) struct ModelAttempt {
    /// The provider.
    provider: String,
    /// The provider's name of the model.
    model: String,
    /// The tokens that it used; none where the provider did not report them.
    usage: Option<TokenUsage>,
    /// The cost of those tokens, in millionths of the currency of the configured prices. Absent
    /// where the model has no price or the provider did not report the usage.
    cost_micros: Option<u64>,
    /// The duration in milliseconds.
    wall_ms: u64,
    /// The error; none for the attempt that gave the reply.
    error: Option<String>,
    /// The reservation for it, which is charged. Absent where the provider reported the usage.
    reserved: Option<AttemptReserved>,
}

/// The reservation for an attempt at a model call.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "says in the description what an attempt is")]
pub(crate) struct AttemptReserved {
    /// Tokens of prompt and reply.
    tokens: u64,
    /// Always 0.
    calls: u32,
    /// Millionths that they cost at most; absent for 0.
    cost_micros: Option<u64>,
}

/// The tokens that a model call used.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "says in the description what an attempt is")]
pub(crate) struct TokenUsage {
    /// Tokens of the prompt, cached ones included.
    input_tokens: u64,
    /// Tokens of the reply.
    output_tokens: u64,
    /// Tokens of the prompt that were read from a cache.
    cached_tokens: u64,
}

/// Returns an operation as it was started: `operation_id`, `key`, `kind`, and the fields specific
/// to its kind.
pub(crate) fn operation(operation: &Operation) -> Value {
    let view = json!({
        "operation_id": operation.id.to_string(), "key": operation.key,
        "kind": kind(&operation.performer), "step": operation.step,
    });
    // What the model called: `delegate` is carried out by another agent, and a refused call by
    // nobody.
    let called = operation.answers.as_ref().map(|answers| {
        let call = json!({ "message": answers.message, "index": answers.index });
        json!({ "tool": answers.name, "answers": call })
    });
    let question = operation.approval.as_ref().map(|approval| {
        let action = client_action(operation.id.approval(), &approval.action);
        json!({ "client_action": action })
    });
    let deadline = operation
        .deadline
        .map(|deadline| json!({ "deadline": deadline.to_string() }));
    let more = [
        called,
        Some(performer_fields(operation)),
        question,
        deadline,
    ];
    more.into_iter().flatten().fold(view, extended)
}

/// Returns the fields of an operation that depend on its performer.
fn performer_fields(operation: &Operation) -> Value {
    match &operation.performer {
        Performer::Model { request, .. } => {
            let audience = match request.audience {
                Audience::User => "user",
                Audience::Hidden => "hidden",
            };
            json!({ "model": request.model, "audience": audience })
        }
        Performer::Tool {
            tool, arguments, ..
        } => {
            json!({ "tool": tool, "arguments": parsed(arguments) })
        }
        Performer::Client { action } => {
            json!({ "client_action": client_action(operation.id, action) })
        }
        Performer::Agent {
            agent,
            session,
            input,
            delegation,
            message: _,
            since: _,
            queued: _,
        } => {
            let target = json!({ "agent_id": agent, "session_id": session, "input_id": input });
            match delegation {
                Some(arguments) => json!({ "target": target, "arguments": parsed(arguments) }),
                None => json!({ "target": target }),
            }
        }
        Performer::Detached {
            agent,
            session,
            input,
            told: _,
        } => {
            json!({ "target": { "agent_id": agent, "session_id": session, "input_id": input } })
        }
        Performer::External { messages } => json!({ "messages": messages }),
        Performer::Recall { query, limit, .. } => json!({ "query": query, "limit": limit }),
        Performer::Command { command } => json!({ "command": command }),
        Performer::Memory { told } => json!({ "result": parsed(told) }),
        Performer::Lasting { tool, arguments } => {
            json!({ "name": tool, "arguments": parsed(arguments) })
        }
        Performer::Timer { due } => json!({ "due": due.to_string() }),
        Performer::Refused { outcome, .. } => outcome_view(outcome),
        Performer::Reply { to, settled } => {
            json!({
                "reply_to": { "run_id": to.run, "operation_id": to.operation }, "settled": settled,
            })
        }
    }
}

/// Arguments were validated when the operation was started, so they are JSON; shown as text should
/// that ever not hold.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
}

/// Returns the outcomes of operations: `operation_id`, `outcome`, and the fields specific to the
/// outcome. `messages` entered the thread with them.
pub(crate) fn settlements<'a>(
    settled: impl IntoIterator<Item = &'a Settlement>,
    messages: &[Message],
) -> Vec<Value> {
    let mut left: Vec<&Message> = messages.iter().collect();
    let mut place = |result: &Draft| {
        let entered = |message: &&Message| match &result.answers {
            Some(answers) => message.answers.as_ref() == Some(answers),
            None => {
                message.role == result.role
                    && message.origin == result.origin
                    && message.parts == result.parts
            }
        };
        left.iter()
            .position(entered)
            .map(|index| left.remove(index).id)
    };
    settled
        .into_iter()
        .map(|settlement| view(settlement, settlement.result.as_ref().and_then(&mut place)))
        .collect()
}

/// Returns the view of a settlement, which is recorded before its result has a place in the thread.
/// `message` is that place, once there is one.
fn view(settlement: &Settlement, message: Option<MessageId>) -> Value {
    let view = json!({ "operation_id": settlement.operation.to_string() });
    let result = settlement.result.as_ref();
    let place = result.map(|_| json!({ "message": message }));
    let called = result
        .and_then(|result| result.answers.as_ref())
        .map(|answers| json!({ "tool": answers.name, "failed": answers.failed }));
    let attempts = &settlement.attempts;
    let attempts = (!attempts.is_empty()).then(|| json!({ "attempts": attempts }));
    let outcome = Some(outcome_view(&settlement.outcome));
    let time = Some(json!({ "time": settlement.time.to_string() }));
    let more = [outcome, place, called, attempts, time];
    more.into_iter().flatten().fold(view, extended)
}

fn kind(performer: &Performer) -> &'static str {
    match performer {
        Performer::Model { .. } => "model",
        Performer::Tool { .. } => "tool",
        Performer::Client { .. } => "client",
        Performer::Agent { .. } => "agent",
        Performer::Detached { .. } => "detached",
        Performer::External { .. } => "external",
        Performer::Recall { .. } => "recall",
        Performer::Command { .. } => "command",
        Performer::Memory { .. } => "memory",
        Performer::Lasting { .. } => "tool",
        Performer::Timer { .. } => "timer",
        Performer::Refused { .. } => "refused",
        Performer::Reply { .. } => "reply",
    }
}

fn outcome_view(outcome: &OperationOutcome) -> Value {
    match outcome {
        OperationOutcome::Message { id } => json!({ "outcome": "message", "message": id }),
        // What is not in the thread is between the agent and the host.
        OperationOutcome::Parts { .. } => json!({ "outcome": "parts" }),
        OperationOutcome::Value { value } => json!({ "outcome": "value", "value": value }),
        OperationOutcome::Elapsed => json!({ "outcome": "elapsed" }),
        OperationOutcome::Failed { failure } => json!({ "outcome": "failed", "failure": failure }),
        OperationOutcome::Denied => json!({ "outcome": "denied" }),
        OperationOutcome::TimedOut => json!({ "outcome": "timed_out" }),
        OperationOutcome::Cancelled => json!({ "outcome": "cancelled" }),
        OperationOutcome::Unknown { cause } => json!({ "outcome": "unknown", "cause": cause }),
    }
}
