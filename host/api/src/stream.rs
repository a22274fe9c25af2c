//! An agent's event stream: committed events in order, and between them what is shown while it happens.
//!
//! The `id` of an event is its global position, so a client that comes back with `Last-Event-ID` gets exactly what it missed. Frames
//! without an id are ephemeral: nothing is lost with them.

mod feed;
mod outbox;
mod scope;
#[cfg(test)]
mod tests;

use crate::input::{OfAgent, Params, id_in_query};
use crate::problem::{Place, Problem};
use crate::server::Connected;
use crate::state::{Api, USER};
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use domain::id::SessionId;
use feed::Feed;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, StatusCode};
use scope::{Scope, Tree};
use serde::Deserialize;
use std::time::Duration;

/// The header with which a client comes back.
const LAST_EVENT_ID: &str = "last-event-id";
/// Seconds that a client is asked to wait when all places are taken.
const CROWDED_RETRY_AFTER_S: u64 = 5;

/// Which part of the stream.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamParams {
    /// Only this session.
    session: Option<String>,
    /// With `session`: also the sessions that it began by handing work to other agents, those that they began, and so on.
    spawned: Option<bool>,
    /// Only events after this position. `Last-Event-ID` goes before it. Without both: from now on.
    after: Option<String>,
}

/// Follows an agent.
///
/// Server-sent events. The `event` of a committed event is its type, its `id` its position, its `data` an `Event`. Frames without an id
/// are ephemeral: `delta` (`kind` is `text`, `thinking`, `call_started`, `note` or `performing`) and `attempt-discarded`, after which all
/// deltas of that attempt are void. With `spawned=true`, what is about a session below the followed one says so in `spawned`. A comment comes every 15 seconds. A client that does not read is disconnected and may come
/// back with `Last-Event-ID`.
#[utoipa::path(
    get, path = "/api/agents/{id}/stream", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID or path of the agent."), StreamParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The last id that was seen: the stream goes on right after it."),
    ),
    responses((status = 200, description = "The stream.", body = String, content_type = "text/event-stream"))
)]
pub(crate) async fn follow(
    State(api): State<Api>,
    OfAgent(target): OfAgent,
    Params(params): Params<StreamParams>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let broker = api.broker()?;
    let crowded = || {
        let detail = "all event streams of this host are taken; close one, or try again later";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_STREAMS", detail).retry_after(CROWDED_RETRY_AFTER_S)
    };
    let place = api.stream_place().ok_or_else(crowded)?;
    let agent = broker.agent(USER, &target).await?.row.agent.id;
    let session: Option<SessionId> = id_in_query("session", params.session.as_deref())?;
    if let Some(session) = session {
        broker.session(USER, &target, session, Some((1, 0))).await?;
    }
    let scope = match (session, params.spawned.unwrap_or(false)) {
        (None, false) => Scope::Agent(agent),
        (Some(session), false) => Scope::Session(session),
        (Some(session), true) => Scope::Tree(Tree::new(session, USER)),
        (None, true) => {
            let detail = "say with `session` which session's spawned sessions are meant";
            return Err(Problem::bad_request("INVALID_QUERY", detail).at(Place::Query("session")));
        }
    };
    // Watched before the position is read: no frame of what comes after it is missed.
    let live = broker.live().watch();
    let durable = broker.store().durable();
    let last = *durable.borrow();
    let asked = headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or("?")).filter(|text| !text.is_empty());
    let place_of_after = if asked.is_some() { Place::Header("Last-Event-ID") } else { Place::Query("after") };
    let after = asked.or(params.after.as_deref()).map(|text| position(text, last)).transpose();
    let after = after.map_err(|problem| problem.at(place_of_after))?;

    let limits = api.limits();
    let patience = Duration::from_millis(limits.stream_stall_ms_max);
    let (out, body) = outbox::channel(limits.stream_waiting_bytes_max, patience, connected.hang_up);
    let feed = Feed {
        store: broker.store().clone(),
        scope,
        position: after.unwrap_or(last),
        durable,
        live,
        out,
        heartbeat: Duration::from_millis(limits.heartbeat_ms),
        stopping: api.stopping().clone(),
    };
    api.tasks().spawn(async move {
        feed.run().await;
        drop(place);
    });
    let no_buffering = HeaderName::from_static("x-accel-buffering");
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store"), (no_buffering, "no")];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// A position to go on from.
fn position(text: &str, last: u64) -> Result<u64, Problem> {
    let invalid = |detail: String| Problem::bad_request("INVALID_LAST_EVENT_ID", detail);
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(position) if digits && position <= last => Ok(position),
        Ok(position) if digits => Err(invalid(format!("position {position} is ahead of the last event, which is {last}"))),
        _ => Err(invalid("the last event id must be the position of an event: a number from 0 up".to_owned())),
    }
}
