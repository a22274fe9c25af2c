//! An agent's event stream: committed events in order, and between them what is shown while it
//! happens.
//!
//! The `id` of an event is its global position, so a client that comes back with `Last-Event-ID`
//! gets exactly what it missed, also between two frames of one event. Frames without an id are
//! ephemeral: nothing is lost with them.

mod feed;
mod frame;
mod outbox;
mod scope;
mod tail;
#[cfg(test)]
mod tests;
mod viewer;

pub(crate) use tail::Tail;

use crate::caller::Caller;
use crate::input::{OfAgent, Params, id_in_query};
use crate::problem::{Place, Problem};
use crate::server::Connected;
use crate::standing::Standing;
use crate::state::Api;
use crate::wire::{self, FrameName};
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use broker::{Broker, SessionView, Target};
use domain::id::{AgentId, SessionId};
use domain::user::UserId;
use feed::{Feed, Pending, Welcome};
use frame::View;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, StatusCode};
use scope::{Scope, Tree};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use store::EventFilter;
use viewer::Viewer;

/// The header with which a client comes back.
const LAST_EVENT_ID: &str = "last-event-id";
/// Seconds that a client is asked to wait when all places are taken.
const CROWDED_RETRY_AFTER_S: u64 = 5;

/// Sessions that are looked at for questions that wait when a client comes.
const SESSIONS_ASKED_MAX: usize = 100;
/// Events of one session that are looked at, of those that came while the client came.
const EVENTS_SINCE_MAX: usize = 100;

/// Query that selects a part of the stream.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamParams {
    /// Only this session.
    session: Option<String>,
    /// True to include the sessions that `session` began by handing work to other agents. Those
    /// that they began are included too, and so on.
    spawned: Option<bool>,
    /// Only events after this position. `Last-Event-ID` takes precedence. Without both, the stream
    /// begins with new events.
    after: Option<String>,
    /// The form in which events are shown: `session` (default) or `log`.
    #[param(inline)]
    view: Option<View>,
}

impl StreamParams {
    /// A session from now on.
    pub(crate) fn of_session(session: SessionId) -> Self {
        Self {
            session: Some(session.to_string()),
            ..Self::default()
        }
    }
}

/// Follows an agent as a stream of server-sent events.
///
/// You get the events that your role lets you see; a mentee gets those of their own sessions. The
/// `id` of a frame is the position of a stored event: reconnect with it as `Last-Event-ID`, and you
/// get what you missed. Where an event comes in several frames, those before its last have the
/// position before it and a number, such as `41.1`. Frames without an id are ephemeral. A client
/// that does not read is disconnected and may reconnect. The stream ends with the credential that
/// opened it. With `spawned=true`, frames about a session below the followed one have its place in
/// `spawned`.
///
/// A client's position may be ahead of all events, as after the host was restored from a backup. It
/// is answered by the frame `reset` in both views; its `id` and `position` are where the stream
/// continues. Read again what you show.
///
/// In the view `session` the frames are: `connected` (`session_id`, `status`, `control_mode`,
/// `pending_action`) first; `client_action` (a `PendingAction`) when the client is asked something,
/// and again when it reconnects for every question that still waits; `client_action_withdrawn`;
/// `file_uploaded` when a user has uploaded a file; `run_started`, `run_suspended`, `run_resumed`;
/// `content_chunk` (ephemeral; void after `content_discarded` of its attempt, which clients that
/// reconnect get too), `content_complete`; `tool_calls_detected`, `tool_executing`, `tool_progress`
/// (ephemeral), `tool_result`; `message_complete` when a turn is stored, `stream_complete` when its
/// run has ended; `state_change` (`status`); `session_completed`, `session_expired`, `terminated`;
/// `error`; `heartbeat` every 15 seconds; `disconnected` when the host ends the stream.
///
/// In the view `log` the `event` of a frame is the event's type and its `data` an `Event`.
/// Ephemeral are `delta` (`kind` is `text`, `thinking`, `call_started`, `note` or `performing`) and
/// `attempt-discarded`. After the latter, all deltas of that attempt are void, as those of earlier
/// attempts are after `operation.attempted.v1`. A comment comes every 15 seconds.
#[utoipa::path(
    get, path = "/api/agents/{id}/stream", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID or path of the agent."), StreamParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The last id that was seen: the \
            stream goes on right after it."),
    ),
    responses((status = 200, description = "The stream.", body = String, content_type = "text/event-stream"))
)]
pub(crate) async fn follow(
    State(api): State<Api>,
    caller: Caller,
    OfAgent(target): OfAgent,
    Params(params): Params<StreamParams>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    begin(&api, target, params, caller, connected, &headers).await
}

/// Starts a stream.
pub(crate) async fn begin(
    api: &Api,
    target: Target,
    params: StreamParams,
    caller: Caller,
    connected: Connected,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let broker = &caller.reading(api)?;
    let crowded = || {
        let detail = "all event streams of this host are taken; close one, or try again later";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_STREAMS", detail)
            .retry_after(CROWDED_RETRY_AFTER_S)
    };
    let share = api.quotas().stream(&caller, api.limits())?;
    let place = (api.stream_place().ok_or_else(crowded)?, share);
    let found = broker.agent(&caller.user, &target).await?;
    let agent = found.row.agent.id;
    let view = params.view.unwrap_or_default();
    let session: Option<SessionId> = id_in_query("session", params.session.as_deref())?;
    let tree = |session| Tree::new(agent, session, &caller, broker.clone());
    let scope = scope_of(agent, session, params.spawned.unwrap_or(false), tree)?;
    // Watched before the position is read: no frame of what comes after it is missed.
    let (live, tail) = (broker.live().watch(), api.tail()?.clone());
    let last = *broker.store().durable().borrow();
    // Read after that: what has happened since is streamed.
    let active = found
        .row
        .agent
        .active_session
        .as_ref()
        .map(|active| active.session_id);
    let shown = match session.or(active) {
        None => None,
        Some(id) => match (
            broker
                .session(&caller.user, &Target::Agent(agent), id, Some((1, 0)))
                .await,
            session,
        ) {
            (Ok(shown), _) => Some(shown),
            (Err(error), Some(_)) => return Err(error.into()),
            // The agent's active session is not theirs to see.
            (Err(_), None) => None,
        },
    };
    let welcome = match view {
        View::Session => Some(welcome(broker, &caller.user, shown.as_ref(), &scope, last).await?),
        View::Log => None,
    };
    let root = broker
        .store()
        .root(agent)
        .await
        .map_err(broker::Error::from)?;
    let asked = headers
        .get(LAST_EVENT_ID)
        .map(|value| value.to_str().unwrap_or("?"))
        .filter(|text| !text.is_empty());
    let place_of_after = if asked.is_some() {
        Place::Header("Last-Event-ID")
    } else {
        Place::Query("after")
    };
    let after = asked.or(params.after.as_deref()).map(resumed).transpose();
    let after = after.map_err(|problem| problem.at(place_of_after))?;
    // An error would make a browser's client give up for good, and this one has only outlived what
    // it saw.
    let ahead = after.map(Resumed::seen).filter(|seen| *seen > last);

    let limits = api.limits();
    let patience = Duration::from_millis(limits.stream_stall_ms_max);
    let (out, body) = outbox::channel(limits.stream_waiting_bytes_max, patience, connected.hang_up);
    let feed = Feed {
        store: broker.store().clone(),
        scope,
        viewer: match caller.operator.is_some() {
            true => Viewer::operator(caller.user.clone(), root),
            false => Viewer::new(caller.user.clone(), root, found.role),
        },
        view,
        welcome,
        ahead,
        position: after.map_or(last, |after| after.position).min(last),
        begun: after.filter(|_| ahead.is_none()).and_then(Resumed::begun),
        stored: last,
        tail,
        live,
        out,
        heartbeat: Duration::from_millis(limits.heartbeat_ms),
        stopping: api.stopping().clone(),
    };
    let standing = Standing::of(&caller, api, broker);
    api.tasks().spawn(async move {
        tokio::select! {
            () = feed.run() => {}
            // Nothing is said of coming back: with this credential there is no way.
            () = standing.ended() => {}
        }
        drop(place);
    });
    let no_buffering = HeaderName::from_static("x-accel-buffering");
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (no_buffering, "no"),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// Returns the scope to follow: an agent, a session of it, or a session with those that work for
/// it.
fn scope_of(
    agent: AgentId,
    session: Option<SessionId>,
    spawned: bool,
    tree: impl FnOnce(SessionId) -> Tree,
) -> Result<Scope, Problem> {
    match (session, spawned) {
        (None, false) => Ok(Scope::Agent(agent)),
        (Some(session), false) => Ok(Scope::Session(session)),
        (Some(session), true) => Ok(Scope::Tree(tree(session))),
        (None, true) => {
            let detail = "say with `session` which session's spawned sessions are meant";
            Err(Problem::bad_request("INVALID_QUERY", detail).at(Place::Query("session")))
        }
    }
}

/// Returns the first frames for a client that shows a session.
async fn welcome(
    broker: &Broker,
    user: &UserId,
    shown: Option<&SessionView>,
    scope: &Scope,
    last: u64,
) -> Result<Welcome, broker::Error> {
    let Some(shown) = shown else {
        let nothing = json!({ "session_id": null, "status": null, "control_mode": null, "pending_action": null });
        return Ok(Welcome {
            connected: (FrameName::Connected, nothing),
            pending: pending(broker, user, scope, last).await?,
        });
    };
    let session = wire::legacy_session(shown, &[]);
    let connected = json!({
        "session_id": session.id, "status": session.status, "control_mode": session.control_mode, "pending_action": session.pending_action,
    });
    let pending = pending(broker, user, scope, last).await?;
    Ok(Welcome {
        connected: (FrameName::Connected, connected),
        pending,
    })
}

/// The questions that wait in the sessions of a scope, as far as they are the user's to see.
async fn pending(
    broker: &Broker,
    user: &UserId,
    scope: &Scope,
    last: u64,
) -> Result<Vec<Pending>, broker::Error> {
    let store = broker.store();
    let sessions: Vec<(AgentId, SessionId)> = match scope {
        Scope::Agent(agent) => store.sessions_running(*agent).await?,
        Scope::Session(session) => store
            .session(*session)
            .await?
            .into_iter()
            .map(|row| (row.agent, row.id))
            .collect(),
        Scope::Tree(tree) => {
            let own = store
                .session(tree.session)
                .await?
                .map(|row| (row.agent, row.id));
            let below = store.spawned(tree.session, user).await?;
            own.into_iter()
                .chain(below.into_iter().map(|session| (session.agent, session.id)))
                .collect()
        }
    };
    let mut pending = Vec::new();
    for (agent, session) in sessions.into_iter().take(SESSIONS_ASKED_MAX) {
        // One that is not theirs to see asks them nothing.
        let Ok(shown) = broker
            .session(user, &Target::Agent(agent), session, Some((1, 0)))
            .await
        else {
            continue;
        };
        pending.extend(waiting(broker, &shown, last).await?);
    }
    Ok(pending)
}

/// The questions that wait in a session since before a position: later ones are streamed.
async fn waiting(
    broker: &Broker,
    shown: &SessionView,
    last: u64,
) -> Result<Vec<Pending>, broker::Error> {
    let asked = wire::pending_actions(shown);
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let session = shown.row.id;
    let filter = EventFilter {
        session: Some(session),
        ..EventFilter::default()
    };
    let since = broker
        .store()
        .events(last, filter, EVENTS_SINCE_MAX)
        .await?;
    let before = asked
        .into_iter()
        .filter(|(call, _)| !since.iter().any(|recorded| feed::asks(recorded, *call)));
    let told = |(call, action)| {
        let mut data = json!(action);
        if let Some(data) = data.as_object_mut() {
            data.insert("session_id".to_owned(), json!(session));
        }
        Pending {
            call,
            session,
            event: (FrameName::ClientAction, data),
        }
    };
    Ok(before.map(told).collect())
}

/// The point at which a stream continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resumed {
    /// The position right after which it continues.
    position: u64,
    /// Number of frames to leave out of the event right after it.
    frames: usize,
}

impl Resumed {
    /// The event of which the client has some frames already, and how many.
    fn begun(self) -> Option<(u64, usize)> {
        (self.frames > 0).then(|| (self.position.saturating_add(1), self.frames))
    }

    /// The last event of which the client has seen something.
    fn seen(self) -> u64 {
        self.position.saturating_add(u64::from(self.frames > 0))
    }
}

/// The id of a frame, to go on from.
fn resumed(text: &str) -> Result<Resumed, Problem> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (position, frames) = text
        .split_once('.')
        .map_or((text, None), |(position, frames)| (position, Some(frames)));
    let numbers =
        is_number(position) && frames.is_none_or(|frames| is_number(frames) && frames != "0");
    match (position.parse(), frames.map_or(Ok(0), str::parse)) {
        (Ok(position), Ok(frames)) if numbers => Ok(Resumed { position, frames }),
        _ => {
            let detail = "the last event id must be the id of a frame: the position of an event, a number \
                 from 0 up";
            Err(Problem::bad_request("INVALID_LAST_EVENT_ID", detail))
        }
    }
}
