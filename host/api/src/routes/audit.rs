//! The ledger, a page at a time.

use super::events::each_of_page;
use crate::input::{Params, Position, page_query, read_query};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire::{self, AuditLine, AuditSubject};
use axum::extract::State;
use domain::egress::OUTCOMES;
use domain::id::{AgentId, RunId, SessionId};
use domain::user::UserId;
use serde::Serialize;
use store::EventFilter;

/// The verdicts of the boundary.
const VERDICTS: [&str; 3] = ["granted", "refused", "limited"];

page_query! {
    /// Query that selects a page of the ledger. Every filter narrows it down.
    pub(super) struct Page: Position, 100 of 1_000 {
        /// Only of this agent, a UUID, or of all agents of this definition; of a trigger or a
        /// connector as `trigger:<name>` and `connector:<name>`.
        agent: Option<String>,
        /// Only of this session.
        #[param(value_type = Option<SessionId>)]
        session: Option<String>,
        /// Only of this run.
        #[param(value_type = Option<RunId>)]
        run: Option<String>,
        /// Only of turns that act for this user, and of readings by them.
        user: Option<String>,
        /// Only of this component, by the operator's name.
        component: Option<String>,
        /// Only of this tool.
        tool: Option<String>,
        /// Only about this capability.
        capability: Option<String>,
        /// Only with this verdict: `granted`, `refused`, `limited`, or the outcome of a request.
        verdict: Option<String>,
    }
}

/// One page of the ledger.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct AuditList {
    /// The lines in the order in which they were recorded.
    lines: Vec<AuditLine>,
    /// The `after` of the next page, which may not have lines yet.
    next_after: u64,
    /// The position of the last event of all.
    last_position: u64,
}

/// Lists the decisions of the boundary.
///
/// They are grants, refusals and limits, the requests that left the host, the components that were
/// admitted with their grants, and the operator's readings of what users say.
#[utoipa::path(
    get, path = "/api/audit", tag = "operator",
    operation_id = "listAuditLines",
    security(("token" = ["admin"])),
    params(Page),
    responses((status = 200, description = "A page.", body = AuditList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    Params(page): Params<Page>,
) -> Result<axum::Json<AuditList>, Problem> {
    let broker = api.broker()?;
    let limit = page.limit()?;
    page.check()?;
    let filter = EventFilter {
        agent: page.agent.as_deref().and_then(|agent| agent.parse().ok()),
        session: read_query("session", page.session.as_deref())?,
        run: read_query("run", page.run.as_deref())?,
        ledger: true,
        ..EventFilter::default()
    };
    // Read before the events are: none up to it can then be missing from the page.
    let last_position = *broker.maintenance().durable().borrow();
    let after = page.after.map_or(0, |Position(after)| after);
    let mut lines = Vec::new();
    let read = each_of_page(broker, filter, after, limit, |recorded| {
        let of_event = wire::audit(recorded).into_iter();
        lines.extend(of_event.filter(|line| page.has(&line.subject())));
        // A step is read with all that was said in it.
        serde_json::to_string(&recorded.event).map_or(0, |text| text.len())
    });
    let next_after = read.await?.unwrap_or(last_position.max(after));
    Ok(axum::Json(AuditList {
        lines,
        next_after,
        last_position,
    }))
}

impl Page {
    /// Checks that the filters can match any line. With a value that no line ever has, an empty
    /// result would be mistaken for an answer.
    fn check(&self) -> Result<(), Problem> {
        let is_letter =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        // A call of a trigger or a connector is on record under its name.
        let name = |agent: &str| {
            let mut prefixes = ["trigger:", "connector:"].into_iter();
            let name = prefixes.find_map(|prefix| agent.strip_prefix(prefix));
            name.unwrap_or(agent).to_owned()
        };
        if let Some(agent) = self.agent.as_deref().filter(|agent| {
            let name = name(agent);
            name.is_empty() || !name.chars().all(is_letter)
        }) && agent.parse::<AgentId>().is_err()
        {
            let detail = format!(
                "agent: `{agent}` is neither the UUID of an agent nor the id of a definition; a \
                 trigger is written `trigger:<name>` and a connector `connector:<name>`"
            );
            return Err(Problem::invalid_query("agent", detail));
        }
        let _: Option<UserId> = read_query("user", self.user.as_deref())?;
        match self.verdict.as_deref() {
            Some(word) if !VERDICTS.contains(&word) && !OUTCOMES.contains(&word) => {
                let known: Vec<&str> = VERDICTS.iter().chain(&OUTCOMES).copied().collect();
                let known = known.join(", ");
                let detail = format!("verdict: `{word}` is none; known are {known}");
                Err(Problem::invalid_query("verdict", detail))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The definition that it asks for, in the place of one agent.
    fn definition(&self) -> Option<String> {
        self.agent
            .clone()
            .filter(|agent| agent.parse::<AgentId>().is_err())
    }

    fn has(&self, subject: &AuditSubject) -> bool {
        let fits = |wanted: &Option<String>, is: &Option<String>| wanted.is_none() || wanted == is;
        fits(&self.definition(), &subject.definition)
            && fits(&self.user, &subject.user)
            && fits(&self.component, &subject.component)
            && fits(&self.tool, &subject.tool)
            && fits(&self.capability, &subject.capability)
            && fits(&self.verdict, &subject.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditSubject, Page, VERDICTS};
    use domain::event::BoundaryVerdict;

    fn page(agent: Option<&str>, verdict: Option<&str>) -> Page {
        Page {
            after: None,
            limit: None,
            agent: agent.map(str::to_owned),
            session: None,
            run: None,
            user: None,
            component: None,
            tool: None,
            capability: None,
            verdict: verdict.map(str::to_owned),
        }
    }

    #[test]
    fn a_word_that_no_line_ever_has_is_refused_with_those_that_are() {
        for (agent, verdict, is_fine) in [
            (None, Some("refused"), true),
            (None, Some("address-barred"), true),
            (None, Some("denied"), false),
            (Some("reader"), None, true),
            (Some("019a0000-0000-7000-8000-000000000000"), None, true),
            (Some("trigger:morning"), None, true),
            (Some("connector:telegram"), None, true),
            (Some("connector:"), None, false),
            (Some("/local/agent/reader"), None, false),
            (Some(""), None, false),
        ] {
            assert_eq!(
                page(agent, verdict).check().is_ok(),
                is_fine,
                "{agent:?} {verdict:?}"
            );
        }
        for verdict in [
            BoundaryVerdict::Granted,
            BoundaryVerdict::Refused,
            BoundaryVerdict::Limited,
        ] {
            assert!(VERDICTS.contains(&serde_json::json!(verdict).as_str().unwrap()));
        }
    }

    #[test]
    fn the_id_of_a_definition_means_all_of_its_agents() {
        let of = |definition: &str| AuditSubject {
            definition: Some(definition.to_owned()),
            ..AuditSubject::default()
        };
        assert!(
            page(Some("reader"), None).has(&of("reader"))
                && !page(Some("reader"), None).has(&of("writer"))
        );
        assert!(page(Some("019a0000-0000-7000-8000-000000000000"), None).has(&of("writer")));
    }
}
