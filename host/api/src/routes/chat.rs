//! Chats of web pages: a visitor comes, says something, answers a question, and follows what is
//! said to them.

use crate::chat::{
    USER_PREFIX, Visitor, VisitorToken, chat_named, cross_origin, preflight, visiting,
};
use crate::codes::{Refused, error_codes};
use crate::input::{InPath, Params, read_json};
use crate::problem::Problem;
use crate::routing::routes;
use crate::server::Connected;
use crate::state::Api;
use crate::stream::visitor::{VisitorRequest, follow_chat};
use crate::visits::Saying;
use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::middleware;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use broker::Coming;
use domain::connector::{BUTTON_BYTES_MAX, INCOMING_TEXT_BYTES_MAX, Incoming, Said};
use domain::digest::Digest;
use domain::id::TriggerEventId;
use domain::path::ConnectorKey;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa_axum::router::OpenApiRouter;
use uuid::Uuid;

error_codes! {
    CreateErrors = [
        ConnectorDisabled, NoRandomness, TooManyVisitors, VisitorLimit,
    ] + Recording + Chat;
    SayErrors = [ConnectorDisabled, Unauthorized, VisitorLimit] + Recording + Chat;
    FollowErrors = [InvalidLastEventId, TooManyStreams, Unauthorized] + Chat;
}

/// Bytes of the body of a visitor's request: a text as long as it may be, with room for escapes.
const BODY_BYTES_MAX: usize = 2 * INCOMING_TEXT_BYTES_MAX;
/// Characters of a page's own id of a message.
const ID_CHARS_MAX: usize = 128;

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(say))
        .routes(routes!(answer))
        .routes(routes!(follow))
}

/// The routes by which browsers ask beforehand what a page may send.
pub(super) fn preflights() -> Router<Api> {
    let asked = || on(MethodFilter::OPTIONS, preflight);
    Router::new()
        .route("/chat/{connector}/visitors", asked())
        .route("/chat/{connector}/messages", asked())
        .route("/chat/{connector}/answers", asked())
        .route("/chat/{connector}/events", asked())
}

/// Lets the pages of the origins that the operator lists use the chats.
pub(super) fn guarded(routes: Router<Api>, api: &Api) -> Router<Api> {
    routes.route_layer(middleware::from_fn_with_state(api.clone(), cross_origin))
}

/// A visitor who came.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct NewVisitor {
    /// The visitor's id.
    visitor_id: String,
    /// The visitor's token, which is told only now. It opens this chat alone: keep it where only
    /// this page finds it, and send it as `authorization: Bearer <token>`.
    token: String,
}

/// Makes a visitor of a chat, with a token of their own.
///
/// It needs no credential. Visitors are limited in number, and in how many come in a minute. In a
/// full chat, a new visitor gets the place of one who never said anything, or nothing for long, or
/// whose address has more places than others: that one is not known any more (401 at what they do
/// next), and comes again as a new visitor.
#[utoipa::path(
    post, path = "/chat/{connector}/visitors", tag = "chat",
    operation_id = "createVisitor",
    security(()),
    params(("connector" = String, Path, description = "The connector.")),
    responses(
        (
            status = 201,
            description = "They may talk.",
            body = NewVisitor,
            headers(("Cache-Control" = String, description = "`no-store`.")),
        ),
    ),
)]
async fn create(
    State(api): State<Api>,
    InPath(connector): InPath<String>,
    Extension(connected): Extension<Connected>,
) -> Result<
    (
        StatusCode,
        [(HeaderName, &'static str); 1],
        axum::Json<NewVisitor>,
    ),
    Refused<CreateErrors>,
> {
    let chat = chat_named(&api, &connector)?;
    chat.takes()?;
    let broker = api.command()?;
    let from = connected.peer.ip();
    api.visits().come(&chat.connector, from)?;
    let token = VisitorToken::random()?;
    let Visitor { key, user } = Visitor::new(&chat.connector, &token)?;
    let of_address = |visitor: &ConnectorKey| {
        if *visitor == key {
            api.visits().places_of(&chat.connector, from)
        } else {
            api.visits().places_beside(visitor)
        }
    };
    let coming = Coming {
        user: &user,
        key: &key,
        prefix: USER_PREFIX,
        visitors_max: chat.spec.visitors_max,
        of_address: &of_address,
    };
    let gone = broker.connectors().admit_visitor(coming).await?;
    api.visits().place(&key, from, gone.as_ref());
    let view = NewVisitor {
        visitor_id: key.external_id().to_owned(),
        token: token.expose().to_owned(),
    };
    let no_store = [(CACHE_CONTROL, "no-store")];
    Ok((StatusCode::CREATED, no_store, axum::Json(view)))
}

/// A message of a visitor.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct VisitorMessage {
    /// The page's own id of it, of 1 to 128 characters. The same id within seven days is the same
    /// message, whatever it says: it is taken once.
    #[schema(min_length = 1, max_length = 128)]
    id: Option<String>,
    /// The visitor's words, 64 KiB at most. While a question waits that has no choices, they are
    /// the answer.
    #[schema(min_length = 1)]
    text: String,
}

/// An answer of a visitor.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct VisitorAnswer {
    /// The page's own id of it, as of a message.
    #[schema(min_length = 1, max_length = 128)]
    id: Option<String>,
    /// The `value` of the choice.
    #[schema(min_length = 1, max_length = 64)]
    value: String,
}

/// Something that a visitor said, and that is durable: it will be dealt with even if the host
/// fails.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct VisitorSaid {
    /// Its id on this host.
    inbound_message_id: TriggerEventId,
    /// The id by which the frame `said` names it. It follows from the page's own one.
    message_id: String,
    /// True if it was taken before. Nothing has happened again.
    replayed: bool,
}

/// Takes a message of a visitor.
///
/// The agent's reply comes over `GET /chat/{connector}/events`.
#[utoipa::path(
    post, path = "/chat/{connector}/messages", tag = "chat",
    operation_id = "sendVisitorMessage",
    security(("visitor" = [])),
    params(("connector" = String, Path, description = "The connector.")),
    request_body = VisitorMessage,
    responses((status = 202, description = "It is accepted.", body = VisitorSaid)),
)]
async fn say(
    State(api): State<Api>,
    InPath(connector): InPath<String>,
    Extension(connected): Extension<Connected>,
    request: Request,
) -> Result<(StatusCode, axum::Json<VisitorSaid>), Refused<SayErrors>> {
    let (parts, body) = request.into_parts();
    let (chat, visitor) = visiting(&api, &connector, &parts.headers).await?;
    chat.takes()?;
    api.visits().say(&visitor.key)?;
    let message: VisitorMessage = read_json(BODY_BYTES_MAX, &parts.headers, body).await?;
    let text = message.text;
    if text.trim().is_empty() || text.len() > INCOMING_TEXT_BYTES_MAX {
        let detail = format!(
            "a text of 1 to {INCOMING_TEXT_BYTES_MAX} bytes is needed, this has {}",
            text.trim().len()
        );
        return Err(Problem::invalid_field("/text", detail).into());
    }
    let id = message_id(&visitor, message.id)?;
    let from = connected.peer.ip();
    let said = Said::Text { text };
    Ok(taken(&api, &visitor, Word { id, from, said }).await?)
}

/// Takes the answer of a visitor to a question that has choices.
///
/// A question that waits no longer is answered by nothing: then the choice is said as a message.
#[utoipa::path(
    post, path = "/chat/{connector}/answers", tag = "chat",
    operation_id = "answerVisitorQuestion",
    security(("visitor" = [])),
    params(("connector" = String, Path, description = "The connector.")),
    request_body = VisitorAnswer,
    responses((status = 202, description = "It is accepted.", body = VisitorSaid)),
)]
async fn answer(
    State(api): State<Api>,
    InPath(connector): InPath<String>,
    Extension(connected): Extension<Connected>,
    request: Request,
) -> Result<(StatusCode, axum::Json<VisitorSaid>), Refused<SayErrors>> {
    let (parts, body) = request.into_parts();
    let (chat, visitor) = visiting(&api, &connector, &parts.headers).await?;
    chat.takes()?;
    api.visits().say(&visitor.key)?;
    let VisitorAnswer { id, value } = read_json(BODY_BYTES_MAX, &parts.headers, body).await?;
    let has_length = (1..=BUTTON_BYTES_MAX).contains(&value.len());
    if !has_length || value.chars().any(char::is_control) {
        let detail = format!(
            "the value of a choice has 1 to {BUTTON_BYTES_MAX} bytes, and no control character"
        );
        return Err(Problem::invalid_field("/value", detail).into());
    }
    let id = message_id(&visitor, id)?;
    let from = connected.peer.ip();
    let said = Said::Button { value };
    Ok(taken(&api, &visitor, Word { id, from, said }).await?)
}

/// Query that selects a part of a chat.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ChatParams {
    /// Only what was said after this position. `Last-Event-ID` takes precedence. Without both, the
    /// chat from its beginning.
    #[param(pattern = r"^[0-9]{1,16}(\.[0-9]+)?$", example = "41")]
    after: Option<String>,
}

/// Follows what is said to a visitor, and by them, as a stream of server-sent events.
///
/// The frames are: `connected` first (`open_question_ids`, `typing`); `message`, `question` and
/// `said`, what the visitor said, which stay: their `id` is a position, with which a page that
/// comes back as `Last-Event-ID` gets what it missed; `question_closed` when a question is not to
/// be answered any more; `typing`; `delta`, `delta_so_far` and `delta_discarded`, where the
/// operator has replies shown while they are made; `reset` after a restored backup; `disconnected`
/// when the host ends the stream. A comment comes every 15 seconds. An `EventSource` cannot send
/// the token: read the stream with `fetch`.
#[utoipa::path(
    get, path = "/chat/{connector}/events", tag = "chat",
    operation_id = "followChat",
    security(("visitor" = [])),
    params(
        ("connector" = String, Path, description = "The connector."),
        ChatParams,
        (
            "Last-Event-ID" = Option<String>,
            Header,
            description = "The last id that was seen: the stream continues right after it.",
        ),
    ),
    responses(
        (
            status = 200,
            description = "The stream.",
            body = String,
            content_type = "text/event-stream",
        ),
    ),
)]
async fn follow(
    State(api): State<Api>,
    InPath(connector): InPath<String>,
    Params(params): Params<ChatParams>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Result<Response, Refused<FollowErrors>> {
    let (chat, visitor) = visiting(&api, &connector, &headers).await?;
    let request = VisitorRequest {
        chat,
        visitor,
        after: params.after,
        connected,
        headers,
    };
    Ok(follow_chat(&api, request).await?)
}

/// Returns the id under which something that a visitor says is taken once. It follows from the
/// page's own id of it.
fn message_id(visitor: &Visitor, given: Option<String>) -> Result<String, Problem> {
    let Some(given) = given else {
        return Ok(Uuid::new_v4().to_string());
    };
    let has_length = (1..=ID_CHARS_MAX).contains(&given.chars().count());
    if !has_length || given.chars().any(char::is_control) {
        let detail = format!(
            "an id of 1 to {ID_CHARS_MAX} characters is needed, and no control character in it"
        );
        return Err(Problem::invalid_field("/id", detail));
    }
    let parts = [b"said", visitor.id().as_bytes(), given.as_bytes()];
    Ok(Digest::of_parts(&parts).hex())
}

/// Something that a visitor says.
struct Word {
    /// The id under which it is taken once.
    id: String,
    /// The address that it comes from.
    from: IpAddr,
    said: Said,
}

/// Hands what a visitor says to the connector, which stores it before this returns. Its bytes count
/// if it is taken now, and not if it is refused or was taken before.
async fn taken(
    api: &Api,
    visitor: &Visitor,
    word: Word,
) -> Result<(StatusCode, axum::Json<VisitorSaid>), Problem> {
    let Word { id, from, said } = word;
    let broker = api.command()?;
    let now = broker.clock().now();
    let saying = Saying {
        visitor: &visitor.key,
        from,
        bytes: match &said {
            Said::Text { text } | Said::Aside { text } => text.len(),
            Said::Button { value } => value.len(),
        },
    };
    let connectors = broker.connectors();
    let received = connectors.bytes_of_visitors(visitor.key.connector());
    let share = api.visits().say_bytes(received, saying).await?;
    let incoming = Incoming {
        id: id.clone(),
        sender: visitor.id().to_owned(),
        sender_name: None,
        group: None,
        chat: visitor.id().to_owned(),
        said,
        quotations: Vec::new(),
        attachments: Vec::new(),
        sent_at: now,
    };
    let connectors = api.commanded_edge()?.connectors();
    let accepted = connectors.accept(visitor.key.connector(), incoming).await?;
    if !accepted.replayed {
        share.keep();
    }
    let view = VisitorSaid {
        inbound_message_id: accepted.inbound_message,
        message_id: id,
        replayed: accepted.replayed,
    };
    Ok((StatusCode::ACCEPTED, axum::Json(view)))
}
