//! The ledger, a page at a time.

use crate::input::{Params, id_in_query, limit};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire::{self, AuditLine};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use store::EventFilter;

/// Events whose lines make a page unless asked for others, and at most.
const PAGE: (usize, usize) = (100, 1_000);

/// Which page of the ledger. Every filter narrows it down.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Only what comes after this position; 0 without.
    after: Option<u64>,
    /// The lines of at most so many events, from 1 to 1,000; 100 without.
    limit: Option<usize>,
    /// Only of this agent, a UUID.
    agent: Option<String>,
    /// Only of this session.
    session: Option<String>,
    /// Only of this run.
    run: Option<String>,
    /// Only of this component, by the operator's name.
    component: Option<String>,
    /// Only of this tool.
    tool: Option<String>,
    /// Only about this capability.
    capability: Option<String>,
    /// Only with this verdict: `granted`, `refused`, `limited`, or what became of a request.
    verdict: Option<String>,
}

/// One page of the ledger.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct AuditList {
    /// In the order in which they were recorded.
    lines: Vec<AuditLine>,
    /// Where the next page begins, whether it has lines yet or not.
    next_after: u64,
    /// The position of the last event of all.
    last_position: u64,
}

/// Lists what the boundary decided: what was granted, refused and limited, which requests left the host, and which components were admitted
/// with which grants.
#[utoipa::path(get, path = "/api/audit", tag = "operator", params(Page), responses((status = 200, description = "A page.", body = AuditList)))]
pub(super) async fn list(State(api): State<Api>, Params(page): Params<Page>) -> Result<axum::Json<AuditList>, Problem> {
    let store = api.broker()?.store();
    let limit = limit(page.limit, PAGE.0, PAGE.1)?;
    let filter = EventFilter {
        agent: id_in_query("agent", page.agent.as_deref())?,
        session: id_in_query("session", page.session.as_deref())?,
        run: id_in_query("run", page.run.as_deref())?,
        ledger: true,
        ..EventFilter::default()
    };
    // Read before the events are: none up to it can then be missing from the page.
    let last_position = *store.durable().borrow();
    let after = page.after.unwrap_or(0);
    let events = store.events(after, filter, limit).await.map_err(broker::Error::from)?;
    let next_after = match events.last() {
        Some(last) if events.len() == limit => last.position,
        _ => last_position.max(after),
    };
    let lines = events.iter().flat_map(wire::audit).filter(|line| page.has(line)).collect();
    Ok(axum::Json(AuditList { lines, next_after, last_position }))
}

impl Page {
    fn has(&self, line: &AuditLine) -> bool {
        let fits = |wanted: &Option<String>, is: &Option<String>| wanted.is_none() || wanted == is;
        fits(&self.component, &line.component)
            && fits(&self.tool, &line.tool)
            && fits(&self.capability, &line.capability)
            && fits(&self.verdict, &line.verdict)
    }
}
