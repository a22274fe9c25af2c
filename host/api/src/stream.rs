//! An agent's event stream: committed events in order, and between them what is shown while it
//! happens.
//!
//! The `id` of an event is its global position, so a client that comes back with `Last-Event-ID`
//! gets exactly what it missed, also between two frames of one event. Frames without an id are
//! ephemeral: nothing is lost with them.

mod end;
mod feed;
mod frame;
mod outbox;
mod scope;
pub(crate) mod startup_wait;
pub(crate) mod tail;
pub(crate) mod telemetry;
#[cfg(test)]
mod tests;
mod thread;
pub(crate) mod visitor;
mod welcome;

use crate::caller::Caller;
use crate::codes::{self, Refused};
use crate::credential_status::CredentialStatus;
use crate::input::{Params, Position, TargetAgent, read_query};
use crate::problem::{Problem, RequestPart};
use crate::server::Connected;
use crate::state::Api;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use broker::{AgentView, Broker, SessionView, Target};
use domain::error_code::ErrorCode;
use domain::id::{AgentId, SessionId};
use domain::user::UserId;
use feed::Feed;
use frame::View;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use scope::{StreamScope, Tree};
use serde::Deserialize;
use std::time::Duration;
use thread::Thread;
use welcome::VisitorEntry;

/// The header with which a client comes back.
const LAST_EVENT_ID: &str = "last-event-id";

/// Query that selects a part of the stream.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamParams {
    /// Only this session.
    #[param(value_type = Option<SessionId>)]
    session: Option<String>,
    /// True to include the sessions that `session` began by handing work to other agents. Those
    /// that they began are included too, and so on.
    spawned: Option<bool>,
    /// Only events after this position. `Last-Event-ID` takes precedence. Without both, the stream
    /// begins with new events.
    #[param(pattern = r"^[0-9]{1,16}(\.[0-9]+)?$", example = "41")]
    after: Option<String>,
    /// `thread` to begin with the messages of the session's thread, and to continue with what is
    /// stored after them; with `session`. `Last-Event-ID` takes precedence.
    #[param(inline)]
    from: Option<StreamFrom>,
    /// The form in which events are shown: `session` (default) or `log`.
    #[param(inline)]
    view: Option<View>,
}

/// The beginning of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum StreamFrom {
    /// The messages of the session's thread.
    Thread,
}

impl StreamParams {
    /// Selects a session from now on.
    pub(crate) fn for_session(session: SessionId) -> Self {
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
/// `pending_action`) first; `thread_message` for each message of the thread with `from=thread`, and
/// of a forked or imported session from its beginning; `message_accepted` for what users and others
/// say, `message_withdrawn`; `client_action` (a `PendingAction`) when the client is asked
/// something, and again when it reconnects for every question that still waits;
/// `client_action_withdrawn`; `file_uploaded` when a user has uploaded a file; `run_started`,
/// `run_suspended`, `run_resumed`; `content_chunk` (ephemeral; void after `content_discarded` of
/// its attempt, which clients that reconnect get too), `content_so_far` (ephemeral; the text of a
/// reply in the middle of which you came, in place of what you show of its operation),
/// `content_complete`; `thinking_chunk` (ephemeral) and `thinking_complete` of models whose
/// provider shows it; `tool_calls_detected`, `tool_executing`, `tool_progress` (ephemeral),
/// `tool_result`; `program_tool_call` (ephemeral) when a program in a model's place calls a tool of
/// its own; `message_complete` when a turn is stored, `stream_complete` when its run has ended;
/// `state_change` (`status`); `session_completed`, `session_expired`, `terminated`; `error`;
/// `heartbeat` every 15 seconds; `disconnected` when the host ends the stream.
///
/// A stream that is asked for while the host starts begins when it is ready. If that takes long it
/// ends at once, with a time after which to come back.
///
/// In the view `log` the `event` of a frame is the event's type and its `data` an `Event`.
/// Ephemeral are `delta` (`kind` is `text`, `so_far`, `thinking`, `call_started`, `note` or
/// `performing`) and `attempt-discarded`. After the latter, all deltas of that attempt are void, as
/// those of earlier attempts are after `operation.attempted.v1`. A comment comes every 15 seconds.
#[utoipa::path(
    get, path = "/api/agents/{id}/stream", tag = "sessions",
    operation_id = "followAgent",
    security(("token" = ["read"])),
    params(
        ("id" = String, Path, description = "UUID or path of the agent."),
        StreamParams,
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
pub(crate) async fn follow(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    Params(params): Params<StreamParams>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Result<Response, Refused<codes::ResumedStreams>> {
    let request = StreamRequest {
        target,
        params,
        caller,
        connected,
        headers,
    };
    Ok(begin(&api, request).await?)
}

/// A request to follow an agent, or one of its sessions.
#[derive(Debug)]
pub(crate) struct StreamRequest {
    pub(crate) target: Target,
    pub(crate) params: StreamParams,
    pub(crate) caller: Caller,
    /// The connection on which it came.
    pub(crate) connected: Connected,
    pub(crate) headers: HeaderMap,
}

/// Starts a stream.
pub(crate) async fn begin(api: &Api, request: StreamRequest) -> Result<Response, Problem> {
    let StreamRequest {
        target,
        params,
        caller,
        connected,
        headers,
    } = request;
    let broker = &caller.reading(api)?;
    let share = api.quotas().stream(&caller, api.limits())?;
    let place = api.stream_place().ok_or_else(crowded)?;
    let found = broker.agents().get(&caller.user, &target).await?;
    let agent = found.row.agent.id;
    let session: Option<SessionId> = read_query("session", params.session.as_deref())?;
    let tree = |session| Tree::new(agent, session, &caller, broker.clone());
    let scope = scope_of(agent, session, params.spawned.unwrap_or(false), tree)?;
    let tail = api.tail()?.clone();
    let after = resume_point(&headers, params.after.as_deref())?;
    let beginning = Beginning::new(agent, session, after);
    let thread = beginning.thread(broker, &caller.user, &params).await?;
    // Position and frames fit together: nothing is missed between them, and nothing comes twice.
    let joined = broker
        .live()
        .join(|agent, session| scope.may_have(agent, session));
    let last = joined.position;
    let newcomer = VisitorEntry {
        broker,
        user: &caller.user,
        scope: &scope,
        last,
    };
    // Read after that: what has happened since is streamed.
    let shown = shown_session(broker, &caller.user, &found, session).await?;
    let view = params.view.unwrap_or_default();
    let welcome = newcomer.welcome(view, shown.as_ref()).await?;
    let is_operator = caller.operator.is_some();
    let viewer = broker
        .feeds()
        .viewer(&caller.user, &found, is_operator)
        .await?;
    // Not an error: a browser would give up for good, and this one has only outlived what it saw.
    let ahead = after.map(Resumed::seen).filter(|seen| *seen > last);

    let limits = api.limits();
    let patience = Duration::from_millis(limits.stream_stall_ms_max);
    let (out, body) = outbox::channel(limits.stream_waiting_bytes_max, patience, connected.hang_up);
    let feed = Feed {
        broker: broker.clone(),
        scope,
        viewer,
        view,
        welcome,
        ahead,
        position: beginning.position(thread.as_ref(), last),
        thread,
        begun: after.filter(|_| ahead.is_none()).and_then(Resumed::begun),
        tail,
        joined,
        out,
        heartbeat: Duration::from_millis(limits.heartbeat_ms),
        stopping: api.stopping().clone(),
    };
    let credential_status = CredentialStatus::new(&caller, api, broker);
    keep_sending(api, feed, credential_status, (place, share));
    Ok(event_stream(Body::from_stream(body)))
}

/// Sends what happens until the stream or its credential ends, and gives its places back then.
fn keep_sending(
    api: &Api,
    feed: Feed,
    credential_status: CredentialStatus,
    places: impl Send + 'static,
) {
    api.tasks().spawn(async move {
        tokio::select! {
            () = feed.run() => {}
            // Nothing is said of coming back: with this credential there is no way.
            () = credential_status.ended() => {}
        }
        drop(places);
    });
}

fn crowded() -> Problem {
    let detail = "all event streams of this host are taken (server.limits.streamsMax); close one, \
                  or try again later";
    Problem::new(ErrorCode::TooManyStreams, detail)
}

fn event_stream(body: impl Into<Body>) -> Response {
    let no_buffering = HeaderName::from_static("x-accel-buffering");
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (no_buffering, "no"),
    ];
    (headers, body.into()).into_response()
}

/// The place at which a stream is asked to begin.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    agent: AgentId,
    session: Option<SessionId>,
    after: Option<Resumed>,
}

impl Beginning {
    fn new(agent: AgentId, session: Option<SessionId>, after: Option<Resumed>) -> Self {
        Self {
            agent,
            session,
            after,
        }
    }

    /// Returns the position after which events are told; `last` is the newest.
    fn position(self, thread: Option<&Thread>, last: u64) -> u64 {
        let after = self.after.map(|after| after.position);
        let after = thread.map(|thread| thread.position).or(after);
        after.map_or(last, |after| after.min(last))
    }

    /// Returns the thread that is told before the events; none where those tell everything.
    ///
    /// # Errors
    /// It is asked for with something else that does not go with it; the session is not the user's
    /// to see.
    async fn thread(
        self,
        broker: &Broker,
        user: &UserId,
        params: &StreamParams,
    ) -> Result<Option<Thread>, Problem> {
        let shows_session = params.view.unwrap_or_default() == View::Session;
        let begins = self.after.is_some_and(|after| after.seen() == 0);
        match (params.from, self.session) {
            (Some(StreamFrom::Thread), _) if params.after.is_some() => {
                let detail = "`from` and `after` each say where the stream begins: leave out one";
                Err(Problem::invalid_query("from", detail))
            }
            (Some(StreamFrom::Thread), Some(session)) if shows_session => match self.after {
                None => Ok(Some(Thread::now(broker, user, self.agent, session).await?)),
                Some(_) => Ok(None),
            },
            (Some(StreamFrom::Thread), _) => {
                let detail = "`from=thread` needs `session`, and the view `session`";
                Err(Problem::invalid_query("from", detail))
            }
            (None, Some(session)) if shows_session && begins => {
                Ok(Thread::before(broker, user, self.agent, session).await?)
            }
            (None, _) => Ok(None),
        }
    }
}

/// Returns the session that a client shows first: the followed one, or the agent's active one.
///
/// # Errors
/// The followed session is not there, or is not the user's to see.
async fn shown_session(
    broker: &Broker,
    user: &UserId,
    found: &AgentView,
    session: Option<SessionId>,
) -> Result<Option<SessionView>, Problem> {
    let agent = &found.row.agent;
    let active = agent.active_session.as_ref().map(|it| it.session_id);
    let Some(id) = session.or(active) else {
        return Ok(None);
    };
    let target = Target::Agent(agent.id);
    match (
        broker.sessions().get(user, &target, id, Some((1, 0))).await,
        session,
    ) {
        (Ok(shown), _) => Ok(Some(shown)),
        (Err(error), Some(_)) => Err(error.into()),
        // The agent's active session is not theirs to see.
        (Err(_), None) => Ok(None),
    }
}

/// Returns the point at which a client's stream continues; none for new events only.
fn resume_point(headers: &HeaderMap, after: Option<&str>) -> Result<Option<Resumed>, Problem> {
    let last_id = headers
        .get(LAST_EVENT_ID)
        .map(|value| value.to_str().unwrap_or("?"))
        .filter(|text| !text.is_empty());
    let (text, part) = match (last_id, after) {
        (Some(id), _) => (id, RequestPart::Header("Last-Event-ID")),
        (None, Some(after)) => (after, RequestPart::Query("after")),
        (None, None) => return Ok(None),
    };
    resumed(text).map(Some).map_err(|problem| problem.at(part))
}

/// Returns the scope to follow: an agent, a session of it, or a session with those that work for
/// it.
fn scope_of(
    agent: AgentId,
    session: Option<SessionId>,
    spawned: bool,
    tree: impl FnOnce(SessionId) -> Tree,
) -> Result<StreamScope, Problem> {
    match (session, spawned) {
        (None, false) => Ok(StreamScope::Agent(agent)),
        (Some(session), false) => Ok(StreamScope::Session(session)),
        (Some(session), true) => Ok(StreamScope::Tree(tree(session))),
        (None, true) => {
            let detail = "`spawned` needs `session`: the session whose spawned sessions are meant";
            Err(Problem::invalid_query("session", detail))
        }
    }
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

/// Reads the id of a frame, after which a stream continues.
fn resumed(text: &str) -> Result<Resumed, Problem> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (position, frames) = text
        .split_once('.')
        .map_or((text, None), |(position, frames)| (position, Some(frames)));
    let numbers =
        is_number(position) && frames.is_none_or(|frames| is_number(frames) && frames != "0");
    match (position.parse::<u64>(), frames.map_or(Ok(0), str::parse)) {
        (Ok(position), Ok(frames)) if numbers => {
            let Position(position) = Position::try_from(position)
                .map_err(|error| not_resumed(&format!("the position {error}")))?;
            Ok(Resumed { position, frames })
        }
        _ => {
            let detail = "the last event id must be the id of a frame: the position of an event, \
                          a number from 0 up";
            Err(not_resumed(detail))
        }
    }
}

fn not_resumed(detail: &str) -> Problem {
    Problem::new(ErrorCode::InvalidLastEventId, detail)
}
