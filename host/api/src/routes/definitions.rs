//! Definitions of agents: those that are configured, and those that users make of templates.

use super::all_sessions;
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, InPath, Json, Params, page_query};
use crate::problem::Problem;
use crate::respond::Created;
use crate::routing::routes;
use crate::state::Api;
use crate::wire::{self, DefinitionEntryView, LeftOutDefinitionView};
use axum::extract::State;
use broker::MakeDefinition;
use domain::definition::{DefinitionId, OwnDefinition, OwnLists};
use domain::user::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;

error_codes! {
    ShowErrors = [DefinitionNotFound];
    CreateErrors = [
        DefinitionNotFound, Invalid, PathForbidden, TemplateForbidden, TooManyDefinitions,
    ] + Recording;
    DeleteErrors = [DefinitionConfigured, DefinitionNotFound] + Recording;
}

/// The routes about definitions, and about sessions with the agents of all.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, delete))
        .routes(routes!(all_sessions::list))
        .routes(routes!(all_sessions::conversation))
}

page_query! {
    /// Query that selects a page of definitions.
    pub(super) struct DefinitionParams: String, 500 of 500 {}
}

/// One page of definitions.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct DefinitionList {
    /// The definitions, by `agentId`.
    definitions: Vec<DefinitionEntryView>,
    /// Definitions that you made and that fit no template any more, by id. They count among those
    /// that you may have, and can be deleted. With the scope `admin` those of all users. They come
    /// with the first page alone.
    left_out: Vec<LeftOutDefinitionView>,
    /// The `after` of the next page; none on the last.
    next_after: Option<String>,
}

/// Lists the agents that this host is configured with, and those that you made of templates.
///
/// Hidden ones are included, with the component and the lists of each, and with how many agents
/// and sessions you have of it. With the scope `admin` the list has what all users made.
#[utoipa::path(
    get, path = "/api/definitions", tag = "agents",
    operation_id = "listDefinitions",
    security(("token" = ["read"])),
    params(DefinitionParams),
    responses((status = 200, description = "A page.", body = DefinitionList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(params): Params<DefinitionParams>,
) -> Result<axum::Json<DefinitionList>, Problem> {
    let limit = params.limit()?;
    let is_on_page = |id: &DefinitionId| params.after.as_ref().is_none_or(|after| id.0 > *after);
    let broker = api.broker()?;
    let counts = broker.definitions().counts(&caller.user).await?;
    let catalogue = broker.catalogue();
    let is_operator = caller.scopes.contains(&Scope::Admin);
    let mut shown = catalogue
        .definitions()
        .filter(|definition| is_on_page(&definition.agent_id))
        .filter(|definition| is_operator || definition.is_open_to(&caller.user));
    let page: Vec<_> = shown.by_ref().take(limit).collect();
    let last = page.last().map(|last| last.agent_id.to_string());
    let next_after = last.filter(|_| shown.next().is_some());
    let definitions = page
        .into_iter()
        .map(|definition| {
            let counts = counts.get(&definition.agent_id).copied();
            wire::definition_entry(definition, &caller.user, counts.unwrap_or_default())
        })
        .collect();
    let left_out = catalogue
        .left_out()
        .iter()
        .filter(|_| params.after.is_none())
        .filter(|it| is_operator || it.user == caller.user)
        .map(wire::left_out_definition)
        .collect();
    Ok(axum::Json(DefinitionList {
        definitions,
        left_out,
        next_after,
    }))
}

/// Looks at one definition.
///
/// One that another user made is shown only with the scope `admin`.
#[utoipa::path(
    get, path = "/api/definitions/{definition}", tag = "agents",
    operation_id = "getDefinition",
    security(("token" = ["read"])),
    params(("definition" = String, Path, description = "Its `agentId`.")),
    responses((status = 200, description = "The definition.", body = DefinitionEntryView)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<axum::Json<DefinitionEntryView>, Refused<ShowErrors>> {
    let broker = api.broker()?;
    let id = DefinitionId(id);
    let is_operator = caller.scopes.contains(&Scope::Admin);
    let definition = match broker.catalogue().definition(&id) {
        Some(definition) if is_operator => definition.clone(),
        Some(_) | None => broker.definitions().get(&caller.user, &id)?,
    };
    let counts = broker.definitions().counts(&caller.user).await?;
    let counts = counts.get(&id).copied().unwrap_or_default();
    Ok(axum::Json(wire::definition_entry(
        &definition,
        &caller.user,
        counts,
    )))
}

/// A definition that a user makes of a template.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "template": "helper", "display_name": "Trip planner" }))]
pub(super) struct NewDefinition {
    /// The template: a definition whose `is_template` is true for you.
    template: String,
    /// Its name for people, of 1 to 200 bytes.
    display_name: String,
    /// Purpose of the agent, 8 KiB at most; the template's without.
    description: Option<String>,
    /// Its icon, of 1 to 64 bytes; the template's without.
    icon: Option<String>,
    /// Its colour, such as `#3366cc`; the template's without.
    color: Option<String>,
    /// Its system prompt, 64 KiB at most; the template's without.
    system_prompt: Option<String>,
    /// Settings over those of the template, 64 KiB at most. What the template fixes is refused.
    #[schema(value_type = Option<Object>)]
    settings: Option<Map<String, Value>>,
    /// Its lists: `tool_allowlist`, `tool_denylist`, `skill_allowlist`, `skill_denylist`,
    /// `capability_allowlist`, `capability_denylist`, `agent_allowlist`, `agent_denylist`,
    /// `model_allowlist`, `confirm`. One that is missing is the template's. Every entry of an allow
    /// list has to be within the template's; deny lists are added to its.
    #[schema(value_type = Option<Object>)]
    lists: Option<OwnLists>,
}

/// Makes a definition of a template, for agents of your own.
///
/// The operator says in a definition's `templateFor` who may do this. The new definition has all
/// of its template, may do no more than it, and is yours alone: other users do not see it, nor do
/// their agents. It gets an id of its own, which stays. You may have 50 of them.
#[utoipa::path(
    post, path = "/api/definitions", tag = "agents",
    operation_id = "createDefinition",
    security(("token" = ["write"])),
    params(IdempotencyKey),
    request_body = NewDefinition,
    responses(
        (
            status = 201,
            description = "It exists.",
            body = DefinitionEntryView,
            headers(("Location" = String, description = "Where it is.")),
        ),
    ),
)]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Idempotency(idempotency_key): Idempotency,
    Json(new): Json<NewDefinition>,
) -> Result<Created<DefinitionEntryView>, Refused<CreateErrors>> {
    let command = MakeDefinition {
        template: DefinitionId(new.template),
        own: OwnDefinition {
            display_name: new.display_name,
            description: new.description,
            icon: new.icon,
            color: new.color,
            system_prompt: new.system_prompt,
            settings: new.settings.unwrap_or_default(),
            lists: new.lists.unwrap_or_default(),
        },
        user: caller.user.clone(),
        idempotency_key,
    };
    let definition = api.command()?.definitions().make(command).await?;
    let counts = store::DefinitionCounts::default();
    Ok(Created {
        location: format!("/api/definitions/{}", definition.agent_id),
        view: wire::definition_entry(&definition, &caller.user, counts),
    })
}

/// A definition that was removed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct RemovedDefinition {
    /// Its `agentId`.
    definition: DefinitionId,
}

/// Deletes a definition that you made; with the scope `admin` one that anybody made.
///
/// The open turns of its agents end as failed, those that wait included. The agents stay, can be
/// looked at, and take no words any more: 409 `DEFINITION_GONE`.
#[utoipa::path(
    delete, path = "/api/definitions/{definition}", tag = "agents",
    operation_id = "deleteDefinition",
    security(("token" = ["write"])),
    params(
        ("definition" = String, Path, description = "Its `agentId`."),
        IdempotencyKey,
    ),
    responses((status = 200, description = "It is gone.", body = RemovedDefinition)),
)]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
    key: Idempotency,
) -> Result<axum::Json<RemovedDefinition>, Refused<DeleteErrors>> {
    let is_operator = caller.scopes.contains(&Scope::Admin);
    let definition = DefinitionId(id);
    api.command()?
        .definitions()
        .remove(key.by(&caller.user), &definition, is_operator)
        .await?;
    Ok(axum::Json(RemovedDefinition { definition }))
}
