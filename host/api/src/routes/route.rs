//! The single route for addressed messages: to a turn, a session, an agent, a persona, or the
//! thread on the same topic.

use super::messages::{
    AcceptedMessage, Content, ContentShape, Wait, accepted_message, awaited, with_schema,
};
use super::queue::QueueBody;
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, Json, Params, read_field, target};
use crate::problem::Problem;
use crate::quota::SessionShare;
use crate::state::Api;
use crate::wire::Time;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use broker::{Address, AddressLevel, Meant, PostRouted, Routed, RoutedReceipt, TurnOutcome};
use domain::definition::DefinitionId;
use domain::delegate::Priority;
use domain::id::{AgentId, SessionId, TurnId};
use domain::message::text_of;
use domain::message_labels::MessageLabels;
use domain::path::FetchStrategy;
use domain::persona::PersonaId;
use domain::queue::QueueOverride;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

error_codes! {
    PostErrors = [
        MessageTooLarge, NoThreadFound, PersonaNotFound, SessionClosed, SessionFull, TurnNotFound,
    ] + Opening + Session;
}

/// Bytes of what is sought.
const ABOUT_BYTES_MAX: usize = 4 << 10;

/// A message and its recipient.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "to": { "agent": "assistant" }, "content": "read notes.txt" }))]
pub(super) struct RoutedMessage {
    /// The recipient. Without one it is the agent that `most-recent-foreground` finds.
    to: Option<To>,
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
    /// Among what waits in its session, the more urgent is taken first: `low`, `normal`, `high` or
    /// `critical`; `normal` without.
    priority: Option<Priority>,
    /// Labels of the sender's own, for itself: 16 at most, with names of 1 to 64 letters, digits,
    /// `.`, `-`, `_` and `/`, and values of 256 bytes at most. They are kept and shown with the
    /// message as an input; no agent is told of them.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// The recipient of a message: exactly one of these. An unknown recipient is refused, and never
/// taken for another.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct To {
    /// A turn's id: what comes next is its child. Goes to your session that is at that turn, or to
    /// a new one that is forked from it.
    #[schema(value_type = Option<TurnId>)]
    thread: Option<String>,
    /// A session's id.
    #[schema(value_type = Option<SessionId>)]
    session: Option<String>,
    /// An agent's UUID or path, or the id of a definition: your latest chat with it, or a new one.
    agent: Option<String>,
    /// A persona's id: your main session with it, or a new one.
    persona: Option<String>,
    /// Your thread on the same topic.
    smart: Option<Smart>,
    /// The strategy that finds the agent, as `GET /api/paths/fetch` does: your latest chat with it,
    /// or a new one. `most-recent-foreground` finds the agent that you last talked with,
    /// `heartbeat` the system agent that does recurring work.
    strategy: Option<FetchStrategy>,
}

/// The threads among which one on the same topic is searched.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Smart {
    /// The topic of the thread, 4 KiB at most; by default, the content of the message.
    #[schema(max_length = 4096)]
    about: Option<String>,
    /// Only threads with this agent: a UUID or path, or the id of a definition.
    agent: Option<String>,
    /// Only threads that are led as this persona.
    persona: Option<String>,
}

/// An accepted message. It is durable: it will be dealt with even if the host fails. If it was a
/// queue directive, such as `/queue collect debounce:2s`, the session's settings were changed
/// instead: then `queue` is present and `input_id` is not.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct RoutedTo {
    /// The agent.
    agent_id: AgentId,
    /// The outcome of the message in the session.
    #[serde(flatten)]
    accepted: AcceptedMessage,
    /// The level at which they were addressed.
    level: AddressLevel,
    /// The reason why this session was chosen; none when the response to an earlier request with
    /// the same idempotency key is repeated.
    why: Option<String>,
    /// True if the session was opened for this message.
    is_new: bool,
}

/// Several threads on the same topic. Nothing was accepted: name the one that is meant in
/// `to.session`.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct WhichThread {
    /// A question for the sender of the message.
    question: String,
    /// The threads, the best first, five at most.
    candidates: Vec<ThreadMeant>,
}

/// A thread that may be meant.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ThreadMeant {
    /// Its session.
    session_id: SessionId,
    /// Its agent.
    agent_id: AgentId,
    /// The session's name.
    name: Option<String>,
    /// The beginning of its last reply.
    last_snippet: Option<String>,
    /// The relevance of the thread; 1 is the best.
    score: f64,
    /// Number of its messages on that topic.
    messages: usize,
    /// The time of the last of them, ISO 8601.
    last_at: Time,
}

/// Sends a message to a turn, a session, an agent, a persona, or your thread on the same topic, and
/// waits for the reply on request.
///
/// When several threads are close, nothing is accepted, and the response asks which one is meant. A
/// message without a recipient goes to the agent that you last talked with.
#[utoipa::path(
    post, path = "/api/messages", tag = "sessions",
    operation_id = "routeMessage",
    security(("token" = ["write"])),
    params(Wait, IdempotencyKey),
    request_body = RoutedMessage,
    responses(
        (
            status = 200,
            description = "It was dealt with within the time to wait.",
            body = RoutedTo,
        ),
        (status = 202, description = "It is accepted.", body = RoutedTo),
        (
            status = 300,
            description = "Several threads match: name one of them.",
            body = WhichThread,
        ),
    ),
)]
pub(super) async fn post(
    State(api): State<Api>,
    caller: Caller,
    Idempotency(idempotency_key): Idempotency,
    Params(wait): Params<Wait>,
    Json(message): Json<RoutedMessage>,
) -> Result<Response, Refused<PostErrors>> {
    let patience = wait.patience()?;
    let to = address(message.to)?;
    let level = to.level();
    let reply_schema = message.reply_schema.map(Value::Object);
    let content = with_schema(message.content.0, reply_schema.as_ref());
    let labels = MessageLabels(message.labels);
    let broker = api.command()?;
    let share = match api.session_share(&caller, idempotency_key.as_deref()).await {
        Ok(share) => Some(share),
        // A message goes on in what is open, also with a key that has opened too much.
        Err(spent)
            if broker
                .messages()
                .where_to(&caller.user, &to, &text_of(&content))
                .await?
                .is_none() =>
        {
            return Err(spent.into());
        }
        Err(_) => None,
    };
    let command = PostRouted {
        to,
        content,
        model: message.model,
        queue: message.queue.map(QueueOverride::from).unwrap_or_default(),
        priority: message.priority,
        labels: labels.clone(),
        user: caller.user.clone(),
        idempotency_key,
    };
    let routed = broker.messages().post_routed(command).await?;
    if matches!(&routed, Routed::Accepted(accepted) if accepted.is_new) {
        share.into_iter().for_each(SessionShare::keep);
    }
    Ok(match routed {
        Routed::Accepted(accepted) => {
            let (status, outcome) = awaited(&api, &caller, &accepted.said, patience).await?;
            let mut routed = routed_to(accepted, level, labels, outcome);
            routed.accepted = routed.accepted.with_data(broker, reply_schema).await;
            (status, axum::Json(routed)).into_response()
        }
        Routed::Unclear(several) => (
            StatusCode::MULTIPLE_CHOICES,
            axum::Json(which_thread(&several)),
        )
            .into_response(),
    })
}

fn routed_to(
    receipt: RoutedReceipt,
    level: AddressLevel,
    labels: MessageLabels,
    outcome: Option<TurnOutcome>,
) -> RoutedTo {
    let agent = receipt.agent;
    RoutedTo {
        accepted: accepted_message(
            receipt.said,
            &agent.to_string(),
            receipt.session,
            labels,
            outcome,
        ),
        agent_id: agent,
        level,
        why: receipt.why,
        is_new: receipt.is_new,
    }
}

fn which_thread(several: &[Meant]) -> WhichThread {
    let candidates = several.iter().map(|Meant { row, candidate }| ThreadMeant {
        session_id: row.id,
        agent_id: row.agent,
        name: row.name.clone(),
        last_snippet: row.last_snippet.clone(),
        score: candidate.score,
        messages: candidate.found,
        last_at: Time(candidate.last),
    });
    WhichThread {
        question: format!(
            "{} threads speak of that; which do you mean?",
            several.len()
        ),
        candidates: candidates.collect(),
    }
}

/// Returns the address of a message: exactly one of its forms is given, or none at all.
fn address(to: Option<To>) -> Result<Address, Problem> {
    let Some(to) = to else {
        return Ok(Address::Found(FetchStrategy::MostRecentForeground));
    };
    let To {
        thread,
        session,
        agent,
        persona,
        smart,
        strategy,
    } = to;
    let thread = thread.map(|turn| read_field("/to/thread", &turn).map(Address::Thread));
    let session = session.map(|id| read_field("/to/session", &id).map(Address::Session));
    let agent = agent.map(|agent| Ok(Address::Agent(target(&agent))));
    let persona = persona.map(|id| read_field("/to/persona", &id).map(Address::Persona));
    let smart = smart.map(smart_address);
    let strategy = strategy.map(|strategy| Ok(Address::Found(strategy)));
    let mut given = [thread, session, agent, persona, smart, strategy]
        .into_iter()
        .flatten();
    match (given.next(), given.next()) {
        (Some(address), None) => address,
        _ => {
            let detail = "give exactly one of `thread`, `session`, `agent`, `persona`, `smart` and \
                          `strategy`, or leave `to` out";
            Err(Problem::invalid_field("/to", detail))
        }
    }
}

fn smart_address(smart: Smart) -> Result<Address, Problem> {
    let about = smart.about.as_ref();
    if about.is_some_and(|about| about.len() > ABOUT_BYTES_MAX) {
        let detail = format!("it may have at most {ABOUT_BYTES_MAX} bytes");
        return Err(Problem::invalid_field("/to/smart/about", detail));
    }
    Ok(Address::Smart {
        about: smart.about,
        agent: smart.agent.as_deref().map(target),
        persona: smart
            .persona
            .map(|id| read_field("/to/smart/persona", &id))
            .transpose()?,
    })
}

/// A persona.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Persona)]
pub(super) struct PersonaView {
    /// The id under which it is addressed.
    id: PersonaId,
    /// Its name for people.
    display_name: String,
    /// The definition whose agents lead its main sessions.
    definition: DefinitionId,
}

/// The personas that you may write to.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PersonaList {
    /// The personas, by id.
    personas: Vec<PersonaView>,
}

/// Lists the personas that you may write to.
#[utoipa::path(
    get, path = "/api/personas", tag = "sessions",
    operation_id = "listPersonas",
    security(("token" = ["read"])),
    responses((status = 200, description = "The personas.", body = PersonaList)),
)]
pub(super) async fn personas(
    State(api): State<Api>,
    caller: Caller,
) -> Result<axum::Json<PersonaList>, Problem> {
    let view = |persona: &std::sync::Arc<domain::persona::Persona>| PersonaView {
        id: persona.id.clone(),
        display_name: persona.display_name.clone(),
        definition: persona.agent.clone(),
    };
    Ok(axum::Json(PersonaList {
        personas: api
            .broker()?
            .messages()
            .personas(&caller.user)
            .iter()
            .map(view)
            .collect(),
    }))
}
