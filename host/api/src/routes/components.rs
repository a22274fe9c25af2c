//! The components that are loaded.

use crate::problem::Problem;
use crate::state::Api;
use crate::wire::{self, ComponentView};
use axum::extract::State;
use serde::Serialize;

/// Every component.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ComponentList {
    /// The components, by name.
    components: Vec<ComponentView>,
}

/// Lists the components that this host has loaded, with what they offer, import and are granted.
#[utoipa::path(
    get, path = "/api/components", tag = "operator",
    operation_id = "listComponents",
    security(("token" = ["admin"])),
    responses((status = 200, description = "The components.", body = ComponentList)),
)]
pub(super) async fn list(State(api): State<Api>) -> Result<axum::Json<ComponentList>, Problem> {
    let broker = api.broker()?;
    let catalogue = broker.catalogue();
    let names = catalogue.entries().map(|entry| entry.name.clone());
    let admitted = broker
        .maintenance()
        .last_admissions(names.collect())
        .await?;
    let components = catalogue
        .entries()
        .map(|entry| {
            let own = entry.component.digest();
            let last = admitted.iter().find(|it| it.component == entry.name);
            let replaces = last
                .filter(|last| last.code == own && !entry.is_pinned)
                .and_then(|last| last.replaces)
                .filter(|before| *before != own);
            ComponentView {
                replaces: replaces.map(|before| before.reference()),
                ..wire::component(entry)
            }
        })
        .collect();
    Ok(axum::Json(ComponentList { components }))
}
