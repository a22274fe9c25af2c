//! The stream of telemetry: what happens on the host, for its operator.
//!
//! Nothing of it is stored, and nothing is sent again. A client that does not read in time loses
//! events and is told how many; nothing on the host waits for it.

use super::outbox::{self, HungUp, Outbox};
use super::{crowded, event_stream, frame};
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::credential_status::CredentialStatus;
use crate::input::{Params, queried_agent, queried_agent_id, read_query};
use crate::problem::Problem;
use crate::reading::note_agents;
use crate::server::Connected;
use crate::state::Api;
use crate::wire::{LAG, TelemetryLag, telemetry_event};
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::Response;
use broker::{Broker, Heard, Listener};
use bytes::Bytes;
use domain::event::Subject;
use domain::id::SessionId;
use domain::telemetry::{
    KINDS_ASKED_MAX, TelemetryEvent, TelemetryFilter, TelemetryKind, kinds_matching,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

error_codes! {
    FollowTelemetryErrors = [] + Streams + Agent;
}

/// The name of this request in the ledger.
const REQUEST: &str = "GET /api/telemetry";
/// Milliseconds after which a client is asked to come back when the host ends the stream.
const RETRY_MS: u64 = 2_000;
/// The bytes sent when nothing happens.
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");

/// Query that selects a part of the telemetry.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "describes what is read by hand: `type` may come several times"
)]
pub(crate) struct TelemetryParams {
    /// Only about this agent, a UUID or a path, and about the whole host.
    agent: Option<String>,
    /// Only about this session, and about the whole host.
    #[param(value_type = Option<SessionId>)]
    session: Option<String>,
    /// Only of this type, such as `message.received`. `*` stands for any characters: `llm.*`. It
    /// may be given up to 40 times, for several types.
    r#type: Option<Vec<String>>,
    /// True to have the text of replies in `llm.stream_chunk`. It needs `agent` or `session`, and
    /// this reading of what is said is put on record. Text that is for the agent alone is never
    /// there.
    content: Option<bool>,
}

/// The part of the telemetry that a client asks for.
#[derive(Debug, Default)]
struct Wanted {
    filter: TelemetryFilter,
    /// The path of the agent, if it was named by its path.
    agent_path: Option<String>,
    content: bool,
}

impl Wanted {
    /// Reads a query, in which only `type` may come several times.
    fn read(query: Vec<(String, String)>) -> Result<Self, Problem> {
        let mut wanted = Self::default();
        let mut patterns = 0;
        let mut seen = BTreeSet::new();
        for (name, value) in query {
            if name != "type" && !seen.insert(name.clone()) {
                return Err(Problem::invalid_query(&name, "it is given twice"));
            }
            let filter = &mut wanted.filter;
            match name.as_str() {
                "agent" if value.starts_with('/') => wanted.agent_path = Some(value),
                "agent" => filter.agent = Some(queried_agent_id(&value)?),
                "session" => filter.session = read_query("session", Some(value.as_str()))?,
                "content" => {
                    wanted.content = read_query("content", Some(value.as_str()))?.unwrap_or(false)
                }
                "type" if patterns == KINDS_ASKED_MAX => {
                    let detail = format!("`type` may be given {KINDS_ASKED_MAX} times");
                    return Err(Problem::invalid_query("type", detail));
                }
                "type" => {
                    patterns += 1;
                    let kinds = kinds_matching(&value)
                        .map_err(|detail| Problem::invalid_query("type", detail))?;
                    filter.kinds.extend(kinds);
                }
                _ => {
                    let detail = format!(
                        "there is no parameter `{name}`; there are: agent, session, type, content"
                    );
                    return Err(Problem::invalid_query(&name, detail));
                }
            }
        }
        let filter = &wanted.filter;
        let names_agent = filter.agent.is_some() || wanted.agent_path.is_some();
        if wanted.content && !names_agent && filter.session.is_none() {
            let detail = "`content=true` needs `agent` or `session`: whose replies are read is put \
                          on record";
            return Err(Problem::invalid_query("content", detail));
        }
        Ok(wanted)
    }

    /// Puts on record whose replies are read, if any are.
    async fn note(&self, api: &Api, caller: &Caller) -> Result<(), Problem> {
        if !self.content {
            return Ok(());
        }
        let of_session = match self.filter.session {
            Some(session) => api.broker()?.sessions().agent_of(session).await?,
            None => None,
        };
        let agents: BTreeSet<_> = self.filter.agent.into_iter().chain(of_session).collect();
        note_agents(api, caller, REQUEST, agents).await
    }
}

/// Follows what happens on the host as a stream of server-sent events.
///
/// It is for watching, and not for keeping records: nothing of it is stored, it begins when you
/// come, and it is never sent again. A client that does not read in time loses events, and the
/// frame `lag` says how many (`dropped`); nothing on the host waits for it. The stored events are
/// at `GET /api/events`.
///
/// The `event` of a frame is the type of what happened, and its `data` a `TelemetryEvent`: `type`,
/// `timestamp`, `data` with ids, numbers and names, and `error` with a `code`. The types are:
/// `agent.initialized`, `agent.registered`, `agent.ready`, `agent.unregistered`, `agent.shutdown`;
/// `message.received`, `message.processing`, `message.processed` (`input_id`, `session_id`,
/// `duration_ms`, `tool_call_count`), `message.failed`; `llm.request_start`, `llm.stream_start`,
/// `llm.stream_chunk`, `llm.stream_end`, `llm.request_complete`, `llm.error`; `tool.call_start`,
/// `tool.call_complete`, `tool.call_failed`; `session.created`; `error`. A chunk of a reply has its
/// length and not its text, unless `content=true`. When the host ends, `agent.shutdown` comes
/// without an agent, as the last event.
#[utoipa::path(
    get, path = "/api/telemetry", tag = "operator",
    operation_id = "followTelemetry",
    security(("token" = ["admin"])),
    params(TelemetryParams),
    responses(
        (
            status = 200,
            description = "The stream.",
            body = String,
            content_type = "text/event-stream",
        ),
    ),
)]
pub(crate) async fn follow_telemetry(
    State(api): State<Api>,
    caller: Caller,
    Params(query): Params<Vec<(String, String)>>,
    Extension(connected): Extension<Connected>,
) -> Result<Response, Refused<FollowTelemetryErrors>> {
    let mut wanted = Wanted::read(query)?;
    let share = api.quotas().stream(&caller, api.limits())?;
    let place = api.stream_place().ok_or_else(crowded)?;
    let broker = api.broker()?;
    if let Some(path) = wanted.agent_path.as_deref() {
        wanted.filter.agent = queried_agent(broker, &caller, Some(path)).await?;
    }
    wanted.note(&api, &caller).await?;
    let limits = api.limits();
    let patience = Duration::from_millis(limits.stream_stall_ms_max);
    let (out, body) = outbox::channel(limits.stream_waiting_bytes_max, patience, connected.hang_up);
    let feed = Feed {
        listener: broker.listen(wanted.filter.clone(), wanted.content),
        filter: wanted.filter,
        broker: broker.clone(),
        out,
        heartbeat: Duration::from_millis(limits.heartbeat_ms),
        stopping: api.stopping().clone(),
    };
    let credential_status = CredentialStatus::new(&caller, &api, broker);
    api.tasks().spawn(async move {
        tokio::select! {
            _ = feed.run() => {}
            () = credential_status.ended() => {}
        }
        drop((place, share));
    });
    Ok(event_stream(Body::from_stream(body)))
}

/// Feeds one client.
struct Feed {
    listener: Listener,
    filter: TelemetryFilter,
    broker: Broker,
    out: Outbox,
    heartbeat: Duration,
    stopping: CancellationToken,
}

impl Feed {
    /// Feeds until the client goes, does not read for too long, or the host stops.
    async fn run(mut self) -> Result<(), HungUp> {
        self.out.push(frame::GREETING).await?;
        let mut heartbeat = interval_at(Instant::now() + self.heartbeat, self.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.out.closed() => return Err(HungUp),
                () = self.stopping.cancelled() => return self.end().await,
                heard = self.listener.hear() => match heard {
                    Some(Heard::Event(event)) => self.out.push(shown(&event)).await?,
                    Some(Heard::Lost(dropped)) => {
                        self.out.push(written(LAG, &TelemetryLag { dropped })).await?;
                    }
                    None => return self.end().await,
                },
                _ = heartbeat.tick() => self.out.push(HEARTBEAT).await?,
            }
        }
    }

    /// Says that every agent is shut down with the host, and when to come back.
    async fn end(&self) -> Result<(), HungUp> {
        let now = self.broker.clock().now();
        let event = TelemetryEvent::new(TelemetryKind::AgentShutdown, Subject::default(), now);
        if self.filter.selects(&event) {
            self.out.push(shown(&event)).await?;
        }
        self.out.push(frame::retry(RETRY_MS)).await
    }
}

fn shown(event: &TelemetryEvent) -> Bytes {
    written(event.kind.as_str(), &telemetry_event(event))
}

/// A frame. JSON has no line breaks of its own, so its data is one line.
fn written(name: &str, data: &impl Serialize) -> Bytes {
    // It is made of text and numbers: it always has a JSON form.
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &[(&str, &str)]) -> Result<Wanted, (&'static str, Option<String>)> {
        let pairs = query
            .iter()
            .map(|pair| (pair.0.to_owned(), pair.1.to_owned()))
            .collect();
        Wanted::read(pairs).map_err(|problem| (problem.code.as_str(), problem.field))
    }

    #[test]
    fn only_the_type_may_be_given_several_times() {
        let id = "7b3c2a54-8a75-4c7b-9d7e-0d7f3c1d2e3f";
        let wanted = read(&[
            ("type", "llm.*"),
            ("agent", id),
            ("type", "error"),
            ("content", "true"),
        ])
        .unwrap();
        assert_eq!(wanted.filter.kinds.len(), 7);
        assert!(wanted.content && wanted.filter.agent.is_some());
        let by_path = read(&[("agent", "/local/agent/a"), ("content", "true")]).unwrap();
        assert_eq!(by_path.agent_path.as_deref(), Some("/local/agent/a"));
        assert!(by_path.content && by_path.filter.agent.is_none());
        let many = vec![("type", "*"); KINDS_ASKED_MAX + 1];
        for (query, field) in [
            (vec![("agent", id), ("agent", id)], "agent"),
            (vec![("agent", "x")], "agent"),
            (vec![("session", "x")], "session"),
            (vec![("type", "nothing.*")], "type"),
            (vec![("type", "")], "type"),
            (many, "type"),
            (vec![("content", "maybe")], "content"),
            (vec![("content", "true")], "content"),
            (vec![("nonsense", "x")], "nonsense"),
        ] {
            let reported = read(&query).unwrap_err();
            assert_eq!(reported, ("INVALID_QUERY", Some(format!("query:{field}"))));
        }
    }
}
