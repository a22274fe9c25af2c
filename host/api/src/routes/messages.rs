//! Messages in a session. Messages to an address are in `route`.

mod content;
mod turn_views;

use super::queue::QueueBody;
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, Json, Params, SessionInPath, TargetSession};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::{Broker, PostMessage, PostOutcome, Target, TurnOutcome};
pub(super) use content::{Content, ContentShape};
use domain::delegate::Priority;
use domain::id::{InputId, SessionId};
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::queue::QueueOverride;
use domain::reply_schema;
use domain::turn::TurnEnd;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use turn_views::{
    ToolCallView, TurnErrorView, TurnMetadata, TurnUsageView, tool_call, turn_error, turn_metadata,
    turn_usage,
};

error_codes! {
    PostMessageErrors = [
        Invalid, MessageTooLarge, QueueFull, SessionClosed, SessionExpired, SessionFull,
    ] + LiveAgent + Session;
}

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

/// The outcome of a message. Once it is accepted it is durable: it will be dealt with even if the
/// host fails. All but the first and the second come with `wait_s` alone.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Accepted)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum AcceptedMessage {
    /// It was a queue directive, such as `/queue collect debounce:2s`: the session's settings were
    /// changed, and there is no input.
    Configured {
        /// The session.
        session_id: SessionId,
        /// Always false.
        replayed: bool,
        /// The queue as it is from now on.
        queue: wire::QueueView,
    },
    /// It is accepted, and not dealt with in time.
    Accepted {
        #[serde(flatten)]
        receipt: Receipt,
    },
    /// The turn, or the one before it, waits for the user.
    Asking {
        #[serde(flatten)]
        receipt: Receipt,
        /// The question that was asked first and is not answered.
        pending_action: Option<wire::PendingActionView>,
        /// The questions asked after that one that are not answered either.
        further_actions: Vec<wire::PendingActionView>,
    },
    /// Its turn has ended.
    Ended {
        #[serde(flatten)]
        receipt: Receipt,
        #[serde(flatten)]
        turn: Box<EndedTurn>,
    },
    /// It gets no turn.
    Undone {
        #[serde(flatten)]
        receipt: Receipt,
        /// `dead`, `cancelled` or `dropped`.
        outcome: &'static str,
        /// The reason, when it is `dead`.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<TurnErrorView>,
    },
}

/// The receipt of an accepted message.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Receipt {
    /// Its id as an input; the `correlation_id` of everything that follows from it.
    input_id: InputId,
    /// The session.
    session_id: SessionId,
    /// The position of its event.
    position: u64,
    /// The stream of everything that follows.
    stream_url: String,
    /// True if this repeats the response to an earlier request with the same idempotency key.
    replayed: bool,
    /// The condition that the input waits for. `steer` waits for the next boundary of the turn in
    /// progress, `interrupt` for that turn's end, which it causes, `followup` and `collect` for
    /// their turn after that one. When no turn is in progress, one begins.
    waits_for: wire::WaitsFor,
    /// The labels that were put on it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// Inputs that were dropped in its favour because the queue was full. The next turn reports
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<InputId>,
}

/// The turn that dealt with a message.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct EndedTurn {
    /// Its end: `replied`, `completed`, `failed` or `aborted`.
    outcome: TurnEnd,
    /// The last message of the agent in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<wire::MessageView>,
    /// The reply as JSON, where the message has a `reply_schema` and the reply fits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// True if its models were asked for streams (`enableStreaming`).
    streamed: bool,
    /// The calls of tools in it, in the order in which they were started; 1,000 at most.
    tool_calls: Vec<ToolCallView>,
    /// Tokens and cost of its models.
    usage: TurnUsageView,
    /// Milliseconds from its beginning to its end, waiting included.
    duration_ms: u64,
    /// The turn, and the models that were asked in it.
    metadata: TurnMetadata,
    /// The reason, when it failed or was aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TurnErrorView>,
}

impl AcceptedMessage {
    /// The same, with the reply as JSON if it fits the schema that the message has.
    pub(super) async fn with_data(mut self, broker: &Broker, schema: Option<Value>) -> Self {
        if let (Self::Ended { turn, .. }, Some(schema)) = (&mut self, schema)
            && let Some(reply) = &turn.reply
            && let Ok(data) = serde_json::from_str::<Value>(&reply.text)
            && broker.messages().fits_schema(&schema, data.clone()).await
        {
            turn.data = Some(data);
        }
        self
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
)]
pub(super) async fn post_message(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Idempotency(key): Idempotency,
    Params(wait): Params<Wait>,
    Json(new): Json<NewMessage>,
) -> Result<(StatusCode, axum::Json<AcceptedMessage>), Refused<PostMessageErrors>> {
    let broker = api.command()?;
    let patience = wait.patience()?;
    let stream = match &target {
        Target::Agent(agent) => agent.to_string(),
        Target::Path(_) | Target::Definition(_) => {
            broker.agents().id(&caller.user, &target).await?.to_string()
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
    let posted = broker
        .messages()
        .say_labelled(command, labels.clone())
        .await?;
    let (status, outcome) = awaited(&api, &caller, &posted, patience).await?;
    let message = accepted_message(posted, &stream, session, labels, outcome);
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
                Some(_share) => {
                    api.broker()?
                        .messages()
                        .await_reply(receipt.input, patience)
                        .await?
                }
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
    labels: MessageLabels,
    outcome: Option<TurnOutcome>,
) -> AcceptedMessage {
    let receipt = match posted {
        PostOutcome::Configured(queue) => {
            return AcceptedMessage::Configured {
                session_id: session,
                replayed: false,
                queue: wire::queue(&queue),
            };
        }
        PostOutcome::Accepted(receipt) => Receipt {
            input_id: receipt.input,
            session_id: receipt.session,
            position: receipt.position,
            stream_url: format!(
                "/api/agents/{agent}/stream?session={}&after={}",
                receipt.session, receipt.position
            ),
            replayed: receipt.replayed,
            waits_for: wire::waits_for(&receipt.waits_for),
            labels: labels.0,
            dropped: receipt.dropped,
        },
    };
    match outcome {
        None => AcceptedMessage::Accepted { receipt },
        Some(TurnOutcome::Asking { questions }) => {
            let mut waiting = questions.iter().map(wire::pending_action);
            AcceptedMessage::Asking {
                receipt,
                pending_action: waiting.next(),
                further_actions: waiting.collect(),
            }
        }
        Some(TurnOutcome::Undone { word, failure }) => AcceptedMessage::Undone {
            receipt,
            outcome: word,
            error: failure.as_ref().map(turn_error),
        },
        Some(TurnOutcome::Answered { end, reply, report }) => {
            let turn = Box::new(EndedTurn {
                outcome: end,
                reply: reply.as_ref().map(wire::message),
                data: None,
                streamed: report.streamed,
                usage: turn_usage(&report),
                duration_ms: report.duration_ms,
                metadata: turn_metadata(&report),
                error: report.failure.as_ref().map(turn_error),
                tool_calls: report.calls.into_iter().map(tool_call).collect(),
            });
            AcceptedMessage::Ended { receipt, turn }
        }
    }
}
