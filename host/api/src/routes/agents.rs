//! Agents: make, list, look at.

use crate::input::{Json, OfAgent, Params, id_in_query};
use crate::problem::{Place, Problem};
use crate::state::{Api, USER};
use crate::wire;
use axum::extract::State;
use broker::CreateAgent;
use domain::definition::DefinitionId;
use domain::id::{AgentId, NotAnId};
use http::header::LOCATION;
use http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};

/// Agents on one page unless asked for fewer, and at most.
const PAGE_MAX: usize = 200;

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
    /// At most so many, 200 at most.
    limit: Option<usize>,
}

/// One page of agents.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct AgentList {
    /// The agents, in the order of their ids.
    agents: Vec<wire::AgentView>,
    /// Where the next page begins; none on the last.
    next_after: Option<String>,
}

/// Lists the agents that you may use.
#[utoipa::path(get, path = "/api/agents", tag = "agents", params(Page), responses((status = 200, description = "A page.", body = AgentList)))]
pub(super) async fn list(State(api): State<Api>, Params(page): Params<Page>) -> Result<axum::Json<AgentList>, Problem> {
    let after = id_in_query::<AgentId>("after", page.after.as_deref())?;
    let limit = page.limit.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
    let agents = api.broker()?.agents(USER, after, limit).await?;
    let next_after = agents.last().filter(|_| agents.len() == limit).map(|last| last.row.agent.id.to_string());
    Ok(axum::Json(AgentList { agents: agents.iter().map(wire::agent).collect(), next_after }))
}

/// Looks at one agent.
#[utoipa::path(
    get, path = "/api/agents/{id}", tag = "agents", params(("id" = String, Path, description = "UUID or path.")),
    responses((status = 200, description = "The agent.", body = wire::AgentView))
)]
pub(super) async fn show(State(api): State<Api>, OfAgent(target): OfAgent) -> Result<axum::Json<wire::AgentView>, Problem> {
    Ok(axum::Json(wire::agent(&api.broker()?.agent(USER, &target).await?)))
}
