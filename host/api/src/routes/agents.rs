//! Agents: make, list, look at.

use crate::input::{Json, OfAgent, Params, id_in_query, limit};
use crate::problem::{Place, Problem};
use crate::state::{Api, USER};
use crate::wire;
use axum::extract::State;
use broker::{AgentView, CreateAgent};
use domain::definition::DefinitionId;
use domain::id::{AgentId, NotAnId};
use http::header::LOCATION;
use http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};

/// Agents on one page unless asked for fewer, and at most.
const PAGE_MAX: usize = 200;
/// How often agents are read for one page. When nearly all are hidden, it ends before it is full.
const READS_MAX: usize = 20;

/// What makes an agent.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAgent {
    /// The definition to make it from: an `agentId` of the configuration.
    definition: String,
    /// A UUID of your choosing.
    id: Option<String>,
    /// Its name; the definition's display name without.
    name: Option<String>,
    /// Its path; `/local/agent/<definition>` without.
    path: Option<String>,
}

/// Makes an agent from a definition.
#[utoipa::path(
    post, path = "/api/agents", tag = "agents", request_body = NewAgent,
    responses((status = 201, description = "It exists.", body = wire::AgentView))
)]
pub(super) async fn create(
    State(api): State<Api>,
    Json(new): Json<NewAgent>,
) -> Result<(StatusCode, [(HeaderName, String); 1], axum::Json<wire::AgentView>), Problem> {
    let invalid =
        |error: NotAnId| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", error.to_string()).at(Place::Body("/id"));
    let command = CreateAgent {
        definition: DefinitionId(new.definition),
        id: new.id.as_deref().map(str::parse::<AgentId>).transpose().map_err(invalid)?,
        name: new.name,
        path: new.path,
        user: USER.to_owned(),
    };
    let view = api.command()?.create_agent(command).await?;
    let location = format!("/api/agents/{}", view.row.agent.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], axum::Json(wire::agent(&view))))
}

/// Which page of agents.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// The `next_after` of the page before.
    after: Option<String>,
    /// At most so many, from 1 to 200; 200 without.
    limit: Option<usize>,
    /// Also those that the configuration hides (`uiVisible`).
    #[serde(default)]
    all: bool,
}

/// One page of agents.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct AgentList {
    /// The agents, in the order of their ids. A page may be short and have another one after it.
    agents: Vec<wire::AgentView>,
    /// Where the next page begins; none on the last.
    next_after: Option<String>,
}

/// Lists the agents that you may use, but for those that the configuration hides.
#[utoipa::path(get, path = "/api/agents", tag = "agents", params(Page), responses((status = 200, description = "A page.", body = AgentList)))]
pub(super) async fn list(State(api): State<Api>, Params(page): Params<Page>) -> Result<axum::Json<AgentList>, Problem> {
    let mut after = id_in_query::<AgentId>("after", page.after.as_deref())?;
    let limit = limit(page.limit, PAGE_MAX, PAGE_MAX)?;
    let broker = api.broker()?;
    // One whose definition is gone is shown: nothing says any more that it is to be hidden.
    let shown = |view: &AgentView| page.all || broker.catalogue().definition(&view.row.agent.definition).is_none_or(|it| it.ui_visible);
    let mut agents = Vec::new();
    for _ in 0..READS_MAX {
        let found = broker.agents(USER, after, PAGE_MAX).await?;
        let mut views = found.iter();
        while agents.len() < limit {
            let Some(view) = views.next() else { break };
            after = Some(view.row.agent.id);
            agents.extend(shown(view).then(|| wire::agent(view)));
        }
        if views.len() == 0 && found.len() < PAGE_MAX {
            after = None;
        }
        if after.is_none() || agents.len() == limit {
            break;
        }
    }
    Ok(axum::Json(AgentList { agents, next_after: after.map(|id| id.to_string()) }))
}

/// Looks at one agent.
#[utoipa::path(
    get, path = "/api/agents/{id}", tag = "agents", params(("id" = String, Path, description = "UUID or path.")),
    responses((status = 200, description = "The agent.", body = wire::AgentView))
)]
pub(super) async fn show(State(api): State<Api>, OfAgent(target): OfAgent) -> Result<axum::Json<wire::AgentView>, Problem> {
    Ok(axum::Json(wire::agent(&api.broker()?.agent(USER, &target).await?)))
}
