//! Messages in a session. Messages to an address are in `route`.

mod content;
mod turn_views;

use super::queue::QueueBody;
use crate::caller::Caller;
use crate::codes::{self, AGENT_COMMAND, INVALID, LIVE_AGENT, RECORDING, SESSION};
use crate::input::{Idempotency, IdempotencyKey, Json, Params, SessionInPath, TargetSession};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::{Broker, PostMessage, PostOutcome, Target, TurnOutcome, TurnReport};
pub(super) use content::{Content, ContentShape};
use domain::delegate::Priority;
use domain::id::SessionId;
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::queue::QueueOverride;
use domain::reply_schema;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use turn_views::{
    ToolCallView, TurnErrorView, TurnMetadata, TurnUsageView, tool_call, turn_error, turn_metadata,
    turn_usage,
};

/// Seconds that a client may wait for the reply to a message, at most.
const WAIT_S_MAX: u64 = 60;

/// A new message.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "content": "read notes.txt" }))]
pub(super) struct NewMessage {
    /// Text, or a list of text parts. 1 MiB at most.
    #[schema(value_type = ContentShape)]
    content: Content,
    /// The model that this turn uses: an alias of the configuration.
    model: Option<String>,
    /// A JSON Schema, 256 KiB at most: the reply is JSON that fits it, and stands in `data` of the
    /// answer. It holds for the replies of models that the user sees, in the turn that hears the
    /// message. A reply that does not fit is asked for again; then the turn fails.
    #[schema(value_type = Option<Object>)]
    reply_schema: Option<Map<String, Value>>,
    /// Treatment of the message while the agent is busy. Fields that are left out are taken from
    /// the session, then from the host's configuration.
    queue: Option<QueueBody>,
    /// Among what waits in this session, the more urgent is taken first: `low`, `normal`, `high` or
    /// `critical`; `normal` without.
    priority: Option<Priority>,
    /// Labels of the sender's own, for itself: 16 at most, with names of 1 to 64 letters, digits,
    /// `.`, `-`, `_` and `/`, and values of 256 bytes at most. They are kept and shown with the
    /// message as an input; no agent is told of them.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// An accepted message. It is durable: it will be dealt with even if the host fails. If it was a
/// queue directive, such as `/queue collect debounce:2s`, the session's settings were changed
/// instead: then `queue` is present and `input_id` is not.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
#[schema(as = Accepted)]
pub(super) struct AcceptedMessage {
    /// Its id as an input; the `correlation_id` of everything that follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_id: Option<String>,
    /// The session.
    session_id: String,
    /// The position of its event.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// The stream of everything that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_url: Option<String>,
    /// True if this repeats the response to an earlier request with the same idempotency key.
    replayed: bool,
    /// The condition that the input waits for. `steer` waits for the next boundary of the turn in
    /// progress, `interrupt` for that turn's end, which it causes, `followup` and `collect` for
    /// their turn after that one. When no turn is in progress, one begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<wire::WaitsFor>,
    /// The labels that were put on it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// Inputs that were dropped in its favour because the queue was full. The next turn reports
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<String>,
    /// The queue as it is from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<wire::QueueView>,
    /// The outcome, with `wait_s` and when the message was dealt with in time. It is `replied`,
    /// `completed`, `failed` or `aborted`, as its turn ended; `dead`, `cancelled` or `dropped` when
    /// there is no turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// The last message of the agent in that turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<wire::MessageView>,
    /// The reply as JSON, where the message has a `reply_schema` and the reply fits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// The open questions, with `wait_s` and when the turn waits for the user before the time is
    /// over. `outcome` is missing then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    client_actions: Vec<wire::ClientActionView>,
    /// The text of `reply`, with `wait_s` and when a turn has ended; empty without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// True if the models of that turn were asked for streams (`enableStreaming`).
    #[serde(skip_serializing_if = "Option::is_none")]
    streamed: Option<bool>,
    /// The calls of tools in that turn, in the order in which they were started; 1,000 at most.
    #[serde(rename = "toolCalls", skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<ToolCallView>>,
    /// Tokens and cost of that turn's models.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TurnUsageView>,
    /// Milliseconds from the beginning of that turn to its end, waiting included.
    #[serde(rename = "durationMs", skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// The turn, and the models that were asked in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<TurnMetadata>,
    /// The reason, when that turn failed or was aborted, or when `outcome` is `dead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TurnErrorView>,
}

impl AcceptedMessage {
    /// The same, with the reply as JSON if it fits the schema that the message has.
    pub(super) async fn with_data(self, broker: &Broker, schema: Option<Value>) -> Self {
        let text = self.content.as_deref().unwrap_or_default();
        let (Some(schema), Ok(data)) = (schema, serde_json::from_str::<Value>(text)) else {
            return self;
        };
        let fits = broker.fits_schema(&schema, data.clone()).await;
        Self {
            data: fits.then_some(data),
            ..self
        }
    }

    /// The same, with the labels that were put on the message.
    pub(super) fn labelled(self, labels: MessageLabels) -> Self {
        Self {
            labels: labels.0,
            ..self
        }
    }
}

/// Query that sets a time to wait for the reply.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    /// Seconds to wait for the outcome of the message, from 1 to 60. When it takes longer, the
    /// response is the same as without waiting: the message is accepted, and its stream reports the
    /// rest. So it is, with the open questions, as soon as the turn, or the one before it, waits
    /// for the user; and at once when the user, or the API key, waits for as many messages as it
    /// may.
    #[param(minimum = 1, maximum = 60)]
    wait_s: Option<u64>,
}

impl Wait {
    pub(super) fn patience(&self) -> Result<Option<Duration>, Problem> {
        match self.wait_s {
            None => Ok(None),
            Some(seconds) if (1..=WAIT_S_MAX).contains(&seconds) => {
                Ok(Some(Duration::from_secs(seconds)))
            }
            Some(seconds) => {
                let detail = format!(
                    "wait_s: {seconds} is out of its range: it must be from 1 to {WAIT_S_MAX}"
                );
                Err(Problem::invalid_query("wait_s", detail))
            }
        }
    }
}

/// Sends a message in a session, and waits for the reply on request.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/messages", tag = "sessions",
    operation_id = "sendMessage",
    security(("token" = ["write"])),
    params(SessionInPath, Wait, IdempotencyKey),
    request_body = NewMessage,
    responses(
        (
            status = 200,
            description = "It was dealt with within the time to wait.",
            body = AcceptedMessage,
        ),
        (status = 202, description = "It is accepted.", body = AcceptedMessage),
    ),
    extensions(("x-codes" = json!(codes::join(&[
        RECORDING, AGENT_COMMAND, LIVE_AGENT, SESSION, INVALID,
        &[(409, "SESSION_CLOSED"), (409, "SESSION_EXPIRED"), (409, "SESSION_FULL"), (413, "MESSAGE_TOO_LARGE"), (429, "QUEUE_FULL")],
    ])))),
)]
pub(super) async fn post_message(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Idempotency(key): Idempotency,
    Params(wait): Params<Wait>,
    Json(new): Json<NewMessage>,
) -> Result<(StatusCode, axum::Json<AcceptedMessage>), Problem> {
    let broker = api.command()?;
    let patience = wait.patience()?;
    let stream = match &target {
        Target::Agent(agent) => agent.to_string(),
        Target::Path(_) | Target::Definition(_) => {
            broker.agent_id(&caller.user, &target).await?.to_string()
        }
    };
    let reply_schema = new.reply_schema.map(Value::Object);
    let command = PostMessage {
        target,
        session,
        content: with_schema(new.content.0, reply_schema.as_ref()),
        model: new.model,
        queue: new.queue.map(QueueOverride::from).unwrap_or_default(),
        priority: new.priority,
        user: caller.user.clone(),
        idempotency_key: key,
    };
    let labels = MessageLabels(new.labels);
    let posted = broker.say_labelled(command, labels.clone()).await?;
    let (status, outcome) = awaited(&api, &caller, &posted, patience).await?;
    let message = accepted_message(posted, &stream, session, outcome).labelled(labels);
    let message = message.with_data(broker, reply_schema).await;
    Ok((status, axum::Json(message)))
}

/// Returns the content of a message with the schema that its reply is to fit.
pub(super) fn with_schema(mut content: Vec<Part>, schema: Option<&Value>) -> Vec<Part> {
    content.extend(schema.cloned().map(reply_schema::part));
    content
}

/// Waits for the outcome of a message, if that is asked for, and returns it with the status of the
/// response. It does not wait when the caller has no wait left: the message is accepted already.
pub(super) async fn awaited(
    api: &Api,
    caller: &Caller,
    posted: &PostOutcome,
    patience: Option<Duration>,
) -> Result<(StatusCode, Option<TurnOutcome>), Problem> {
    let outcome = match (posted, patience) {
        (PostOutcome::Accepted(receipt), Some(patience)) => {
            match api.quotas().wait(caller, api.limits()) {
                // Given back once the wait is over, or when the client has gone.
                Some(_share) => api.broker()?.await_reply(receipt.input, patience).await?,
                None => None,
            }
        }
        _ => None,
    };
    let status = match &outcome {
        Some(TurnOutcome::Answered { .. } | TurnOutcome::Undone { .. }) => StatusCode::OK,
        Some(TurnOutcome::Asking { .. }) | None => StatusCode::ACCEPTED,
    };
    Ok((status, outcome))
}

/// Describes the outcome of a message to a session of the agent with this id.
pub(super) fn accepted_message(
    posted: PostOutcome,
    agent: &str,
    session: SessionId,
    outcome: Option<TurnOutcome>,
) -> AcceptedMessage {
    let dealt = outcome.map(dealt).unwrap_or_default();
    let base = match posted {
        PostOutcome::Accepted(receipt) => AcceptedMessage {
            input_id: Some(receipt.input.to_string()),
            session_id: receipt.session.to_string(),
            position: Some(receipt.position),
            stream_url: Some(format!(
                "/api/agents/{agent}/stream?session={}&after={}",
                receipt.session, receipt.position
            )),
            replayed: receipt.replayed,
            waits_for: Some(wire::waits_for(&receipt.waits_for)),
            dropped: receipt.dropped.iter().map(ToString::to_string).collect(),
            ..AcceptedMessage::default()
        },
        PostOutcome::Configured(queue) => AcceptedMessage {
            session_id: session.to_string(),
            queue: Some(wire::queue(&queue)),
            ..AcceptedMessage::default()
        },
    };
    let Dealt {
        outcome,
        reply,
        client_actions,
        report,
        error,
    } = dealt;
    let content = report.is_some().then(|| {
        let text = reply.as_ref().map(|reply| reply.text.clone());
        text.unwrap_or_default()
    });
    AcceptedMessage {
        outcome,
        reply,
        client_actions,
        content,
        streamed: report.as_ref().map(|report| report.streamed),
        duration_ms: report.as_ref().map(|report| report.duration_ms),
        usage: report.as_deref().map(turn_usage),
        metadata: report.as_deref().map(turn_metadata),
        error,
        tool_calls: report.map(|report| report.calls.into_iter().map(tool_call).collect()),
        ..base
    }
}

/// The outcome of a message: as a word, with the reply, the open questions, the report of its turn
/// and the reason why there is no reply.
#[derive(Default)]
struct Dealt {
    outcome: Option<&'static str>,
    reply: Option<wire::MessageView>,
    client_actions: Vec<wire::ClientActionView>,
    report: Option<Box<TurnReport>>,
    error: Option<TurnErrorView>,
}

fn dealt(outcome: TurnOutcome) -> Dealt {
    match outcome {
        TurnOutcome::Answered { end, reply, report } => Dealt {
            outcome: Some(end.as_str()),
            reply: reply.as_ref().map(wire::message),
            error: report.failure.as_ref().map(turn_error),
            report: Some(report),
            ..Dealt::default()
        },
        TurnOutcome::Undone { word, failure } => Dealt {
            outcome: Some(word),
            error: failure.as_ref().map(turn_error),
            ..Dealt::default()
        },
        TurnOutcome::Asking { questions } => {
            let actions = questions
                .iter()
                .map(|(call, action)| wire::client_action(*call, action));
            Dealt {
                client_actions: actions.collect(),
                ..Dealt::default()
            }
        }
    }
}
