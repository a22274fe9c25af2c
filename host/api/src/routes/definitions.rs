//! The definitions of agents that are configured.

use crate::problem::Problem;
use crate::state::Api;
use crate::wire::{self, DefinitionView};
use axum::extract::State;
use serde::Serialize;

/// Every definition.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct DefinitionList {
    /// The definitions, by `agentId`.
    definitions: Vec<DefinitionView>,
}

/// Lists the agents that this host is configured with.
///
/// Hidden ones are included, with the component and the lists of each.
#[utoipa::path(
    get, path = "/api/definitions", tag = "operator",
    operation_id = "listDefinitions",
    security(("token" = ["read"])),
    responses((status = 200, description = "The definitions.", body = DefinitionList)),
)]
pub(super) async fn list(State(api): State<Api>) -> Result<axum::Json<DefinitionList>, Problem> {
    let catalogue = api.broker()?.catalogue();
    let definitions = catalogue
        .definitions()
        .map(|definition| wire::definition(definition))
        .collect();
    Ok(axum::Json(DefinitionList { definitions }))
}
