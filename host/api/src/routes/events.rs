//! Stored events, a page at a time.

use crate::input::Params;
use crate::problem::Problem;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use domain::id::NotAnId;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use store::EventFilter;

/// Events on one page unless asked for others, and at most.
const PAGE: (usize, usize) = (100, 1_000);

/// Which page of events.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Only events after this position; 0 without.
    after: Option<u64>,
    /// At most so many: 100 without, 1,000 at most.
    limit: Option<usize>,
    /// Only about this agent, a UUID.
    agent: Option<String>,
    /// Only about this session.
    session: Option<String>,
    /// Only about this run.
    run: Option<String>,
}

/// One page of events.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct EventList {
    /// In the order of their positions.
    events: Vec<wire::Event>,
    /// Where the next page begins, whether it has events yet or not.
    next_after: u64,
    /// The position of the last event of all.
    last_position: u64,
}

/// Lists events.
#[utoipa::path(get, path = "/api/events", tag = "operator", params(Page), responses((status = 200, description = "A page.", body = EventList)))]
pub(super) async fn list(State(api): State<Api>, Params(page): Params<Page>) -> Result<axum::Json<EventList>, Problem> {
    let store = api.broker()?.store();
    let after = page.after.unwrap_or(0);
    let limit = page.limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
    let filter = EventFilter {
        agent: id("agent", page.agent.as_deref())?,
        session: id("session", page.session.as_deref())?,
        run: id("run", page.run.as_deref())?,
        stream: None,
    };
    // Read before the events are: none up to it can then be missing from the page.
    let last_position = *store.durable().borrow();
    let events = store.events(after, filter, limit).await.map_err(broker::Error::from)?;
    let next_after = match events.last() {
        Some(last) if events.len() == limit => last.position,
        last => last.map_or(0, |last| last.position).max(last_position).max(after),
    };
    Ok(axum::Json(EventList { events: events.iter().map(wire::event).collect(), next_after, last_position }))
}

fn id<T: FromStr<Err = NotAnId>>(name: &str, text: Option<&str>) -> Result<Option<T>, Problem> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error| Problem::bad_request("INVALID_QUERY", format!("{name}: {error}")))
}
