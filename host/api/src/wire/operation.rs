//! Operations, their outcomes and client actions in public form.

use super::session::{PendingActionView, pending_action};
use super::values::Time;
use domain::id::{AgentId, InputId, OperationId, RunId, SessionId};
use domain::message::{Draft, Message, MessageId};
use domain::operation::{Attempt, Operation, Performer, ReplyTo, Settlement};
use domain::step::{Audience, Failure, ModelRequest, OperationOutcome};
use serde::Serialize;
use serde_json::Value;

/// An operation of a run, as it was started. The fields of its kind are those that are there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Operation)]
pub(crate) struct OperationView {
    /// Its id: what a question is answered under.
    #[schema(value_type = OperationId)]
    operation_id: Option<OperationId>,
    /// The agent's name for it.
    key: String,
    /// Its kind.
    kind: OperationKind,
    /// The step that started it.
    step: u32,
    /// The tool that the model called with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The call that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<AnsweredCall>,
    /// The model of a model call, as the agent names it; null for the host's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    model: Option<Option<String>>,
    /// The audience of a model call: `user` if the user sees what it says, `hidden` if nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<&'static str>,
    /// The arguments of a tool call, or of work that was handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// The tool of the host's own that changes what lasts once a user has agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The question, also that of a call that a user has to approve first.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_action: Option<PendingActionView>,
    /// The recipient of work that was handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<WorkTarget>,
    /// The messages for the program behind an external agent, by their places in the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<MessageId>>,
    /// The query of a search in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    /// Maximum number of results of a search in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    /// The command line over the agent's skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The result of a change of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// The time at which a timer is due, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Time>,
    /// The outcome of a refused call, as reported to the agent, such as `failed` or `denied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeKind>,
    /// The place of the result of a call that was answered without being made.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageId>,
    /// The value that it was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// The reason of a refused call that is reported as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    /// The reason why it is unknown whether it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Failure>,
    /// The operation that is replied to.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<ReplyToView>,
    /// True if the reply settled the operation that waited for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled: Option<bool>,
    /// The deadline, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Time>,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum OperationKind {
    /// A model is called.
    #[default]
    Model,
    /// A tool is called.
    Tool,
    /// The user is asked.
    Client,
    /// Another agent works, and its reply is waited for.
    Agent,
    /// Another agent works, and nobody waits for it.
    Detached,
    /// A program elsewhere takes the turn.
    External,
    /// The memory is searched.
    Recall,
    /// A command line is carried out.
    Command,
    /// The memory is changed.
    Memory,
    /// A time is waited for.
    Timer,
    /// A call that is not made.
    Refused,
    /// A reply to the agent that waits for it.
    Reply,
}

/// The outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OperationOutcome)]
enum OutcomeKind {
    /// A message entered the thread.
    Message,
    /// Content that stays between the agent and the host.
    Parts,
    /// A value.
    Value,
    /// The time came.
    Elapsed,
    /// It failed.
    Failed,
    /// It was not allowed.
    Denied,
    /// Its deadline passed.
    TimedOut,
    /// It was stopped.
    Cancelled,
    /// It may have been done or not.
    Unknown,
}

/// The call of a message that an operation answers.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct AnsweredCall {
    /// The message's place in the thread.
    message: MessageId,
    /// The call's index in it.
    index: u32,
}

/// The recipient of work that was handed over.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct WorkTarget {
    /// The agent.
    agent_id: AgentId,
    /// Its session.
    session_id: SessionId,
    /// The input that describes the work.
    input_id: InputId,
}

/// The operation of a caller that waits for a reply.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ReplyTo)]
pub(crate) struct ReplyToView {
    /// The waiting run.
    run_id: RunId,
    /// Its operation.
    operation_id: OperationId,
}

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = SettledOutcome)]
pub(crate) struct OutcomeView {
    /// The operation.
    operation_id: OperationId,
    /// Its kind.
    outcome: OutcomeKind,
    /// The value, of the outcome `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// The reason for the outcome `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    /// The reason why it is `unknown` whether it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Failure>,
    /// The place of the result in the thread, once it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    message: Option<Option<MessageId>>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// True if the model is told that it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    /// The attempts at it, of a model call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<Attempt>,
}

/// An outcome in the event that recorded it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct SettledOperation {
    #[serde(flatten)]
    pub(crate) outcome: OutcomeView,
    /// The time of the outcome, ISO 8601.
    time: Time,
}

impl From<&ReplyTo> for ReplyToView {
    fn from(to: &ReplyTo) -> Self {
        Self {
            run_id: to.run,
            operation_id: to.operation,
        }
    }
}

/// Returns an operation as it was started.
pub(crate) fn operation(operation: &Operation) -> OperationView {
    // What the model called: `delegate` is carried out by another agent, and a refused call by
    // nobody.
    let called = operation.answers.as_ref();
    let view = performed(operation);
    OperationView {
        operation_id: Some(operation.id),
        key: operation.key.clone(),
        step: operation.step,
        tool: view.tool.or_else(|| called.map(|call| call.name.clone())),
        answers: called.map(|call| AnsweredCall {
            message: call.message,
            index: call.index,
        }),
        client_action: operation.question_at_start().as_ref().map(pending_action),
        deadline: operation.deadline.map(Time),
        ..view
    }
}

/// Returns what depends on the performer of an operation.
fn performed(operation: &Operation) -> OperationView {
    match &operation.performer {
        Performer::Model { request, .. } => model_call(request),
        Performer::Tool {
            tool, arguments, ..
        } => OperationView {
            tool: Some(tool.clone()),
            arguments: Some(parsed(arguments)),
            ..kind(OperationKind::Tool)
        },
        Performer::Client { .. } => kind(OperationKind::Client),
        Performer::Agent {
            agent,
            session,
            input,
            delegation,
            ..
        } => OperationView {
            target: handed_over(agent, session, input),
            arguments: delegation.as_deref().map(parsed),
            ..kind(OperationKind::Agent)
        },
        Performer::Detached {
            agent,
            session,
            input,
            ..
        } => OperationView {
            target: handed_over(agent, session, input),
            ..kind(OperationKind::Detached)
        },
        Performer::External { messages } => OperationView {
            messages: Some(messages.clone()),
            ..kind(OperationKind::External)
        },
        Performer::Recall { query, limit, .. } => OperationView {
            query: Some(query.clone()),
            limit: Some(*limit),
            ..kind(OperationKind::Recall)
        },
        Performer::Command { command } => OperationView {
            command: Some(command.clone()),
            ..kind(OperationKind::Command)
        },
        Performer::Memory { reported } => OperationView {
            result: Some(parsed(reported)),
            ..kind(OperationKind::Memory)
        },
        Performer::Lasting { tool, arguments } => OperationView {
            name: Some(tool.clone()),
            arguments: Some(parsed(arguments)),
            ..kind(OperationKind::Tool)
        },
        Performer::Timer { due } => OperationView {
            due: Some(Time(*due)),
            ..kind(OperationKind::Timer)
        },
        Performer::Refused { outcome, .. } => {
            Outcome::of(outcome).shown_in(kind(OperationKind::Refused))
        }
        Performer::Reply { to, settled } => OperationView {
            reply_to: Some(to.into()),
            settled: Some(*settled),
            ..kind(OperationKind::Reply)
        },
    }
}

fn kind(kind: OperationKind) -> OperationView {
    OperationView {
        kind,
        ..OperationView::default()
    }
}

fn model_call(request: &ModelRequest) -> OperationView {
    OperationView {
        model: Some(request.model.clone()),
        audience: Some(match request.audience {
            Audience::User => "user",
            Audience::Hidden => "hidden",
        }),
        ..kind(OperationKind::Model)
    }
}

fn handed_over(agent: &AgentId, session: &SessionId, input: &InputId) -> Option<WorkTarget> {
    Some(WorkTarget {
        agent_id: *agent,
        session_id: *session,
        input_id: *input,
    })
}

/// Arguments were validated when the operation was started, so they are JSON; shown as text should
/// that ever not hold.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
}

/// Returns the outcomes of operations. `messages` entered the thread with them.
pub(crate) fn settlements<'a>(
    settled: impl IntoIterator<Item = &'a Settlement>,
    messages: &[Message],
) -> Vec<SettledOperation> {
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
fn view(settlement: &Settlement, message: Option<MessageId>) -> SettledOperation {
    let result = settlement.result.as_ref();
    let called = result.and_then(|result| result.answers.as_ref());
    let outcome = Outcome::of(&settlement.outcome);
    SettledOperation {
        outcome: OutcomeView {
            operation_id: settlement.operation,
            outcome: outcome.kind,
            value: outcome.value,
            failure: outcome.failure,
            cause: outcome.cause,
            message: result.map(|_| message).or(outcome.message.map(Some)),
            tool: called.map(|call| call.name.clone()),
            failed: called.map(|call| call.failed),
            attempts: settlement.attempts.clone(),
        },
        time: Time(settlement.time),
    }
}

/// An outcome as a word, with what belongs to it.
struct Outcome {
    kind: OutcomeKind,
    message: Option<MessageId>,
    value: Option<Value>,
    failure: Option<Failure>,
    cause: Option<Failure>,
}

impl Outcome {
    fn shown_in(self, view: OperationView) -> OperationView {
        OperationView {
            outcome: Some(self.kind),
            message: self.message,
            value: self.value,
            failure: self.failure,
            cause: self.cause,
            ..view
        }
    }

    fn of(outcome: &OperationOutcome) -> Self {
        let mut message = None;
        let mut value = None;
        let mut failure = None;
        let mut cause = None;
        let kind = match outcome {
            OperationOutcome::Message { id } => {
                message = Some(*id);
                OutcomeKind::Message
            }
            // What is not in the thread is between the agent and the host.
            OperationOutcome::Parts { .. } => OutcomeKind::Parts,
            OperationOutcome::Value { value: answer } => {
                value = Some(answer.clone());
                OutcomeKind::Value
            }
            OperationOutcome::Elapsed => OutcomeKind::Elapsed,
            OperationOutcome::Failed { failure: why } => {
                failure = Some(why.clone());
                OutcomeKind::Failed
            }
            OperationOutcome::Denied => OutcomeKind::Denied,
            OperationOutcome::TimedOut => OutcomeKind::TimedOut,
            OperationOutcome::Cancelled => OutcomeKind::Cancelled,
            OperationOutcome::Unknown { cause: why } => {
                cause = Some(why.clone());
                OutcomeKind::Unknown
            }
        };
        Self {
            kind,
            message,
            value,
            failure,
            cause,
        }
    }
}
