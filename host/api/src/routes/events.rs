//! Stored events, a page at a time.

use crate::caller::Caller;
use crate::input::{Params, Position, page_query, read_query};
use crate::problem::Problem;
use crate::reading::{agents_with_content, note_agents};
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::Broker;
use domain::event::Recorded;
use domain::id::{AgentId, RunId, SessionId};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use store::EventFilter;

/// Bytes of events after which a page is full.
const PAGE_BYTES: usize = 4 << 20;
/// Events that are read at a time: one of them may be megabytes.
const CHUNK: usize = 32;

/// The name of this request in the ledger.
const REQUEST: &str = "GET /api/events";

page_query! {
    /// Query that selects a page of events.
    pub(super) struct Page: Position, 100 of 1_000 {
        /// Only about this agent, a UUID.
        #[param(value_type = Option<AgentId>)]
        agent: Option<String>,
        /// Only about this session.
        #[param(value_type = Option<SessionId>)]
        session: Option<String>,
        /// Only about this run.
        #[param(value_type = Option<RunId>)]
        run: Option<String>,
    }
}

/// One page of events.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct EventList {
    /// The events in the order of their positions. There may be fewer than requested when they are
    /// large.
    #[schema(value_type = Vec<wire::Event>)]
    events: Vec<Box<RawValue>>,
    /// The `after` of the next page, which may not have events yet.
    next_after: u64,
    /// The position of the last event of all.
    last_position: u64,
}

/// Lists events.
#[utoipa::path(
    get, path = "/api/events", tag = "operator",
    operation_id = "listEvents",
    security(("token" = ["admin"])),
    params(Page),
    responses((status = 200, description = "A page.", body = EventList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<axum::Json<EventList>, Problem> {
    let broker = api.broker()?;
    let after = page.after.map_or(0, |Position(after)| after);
    let limit = page.limit()?;
    let filter = EventFilter {
        agent: read_query("agent", page.agent.as_deref())?,
        session: read_query("session", page.session.as_deref())?,
        run: read_query("run", page.run.as_deref())?,
        ..EventFilter::default()
    };
    // Read before the events are: none up to it can then be missing from the page.
    let last_position = *broker.maintenance().durable().borrow();
    let mut events = Vec::new();
    let mut agents = BTreeSet::new();
    let read = each_of_page(broker, filter, after, limit, |recorded| {
        agents.extend(agents_with_content(std::slice::from_ref(recorded)));
        let event = serde_json::value::to_raw_value(&wire::event(recorded)).unwrap_or_default();
        let bytes = event.get().len();
        events.push(event);
        bytes
    });
    let next_after = read.await?.unwrap_or(last_position.max(after));
    note_agents(&api, &caller, REQUEST, agents).await?;
    Ok(axum::Json(EventList {
        events,
        next_after,
        last_position,
    }))
}

/// Reads the events of a page, a few at a time, until they are enough or too many bytes. `add`
/// takes each of them and returns its size in bytes. Returns the position of the last one, or none
/// if no others follow.
pub(super) async fn each_of_page(
    broker: &Broker,
    filter: EventFilter,
    mut after: u64,
    limit: usize,
    mut add: impl FnMut(&Recorded) -> usize + Send,
) -> Result<Option<u64>, broker::Error> {
    let mut left = limit;
    let mut bytes = 0;
    loop {
        let wanted = CHUNK.min(left);
        let chunk = broker.feeds().events(after, filter, wanted).await?;
        for recorded in &chunk {
            bytes += add(recorded);
            after = recorded.position;
        }
        left -= chunk.len();
        if chunk.len() < wanted {
            return Ok(None);
        }
        if left == 0 || bytes >= PAGE_BYTES {
            return Ok(Some(after));
        }
    }
}
