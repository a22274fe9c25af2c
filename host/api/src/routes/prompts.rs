//! Prompts as a model would get them, and the panels that clients show beside a session.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Json, Params, SessionInPath, TargetSession, blameless,
    read_query, target,
};
use crate::state::Api;
use axum::extract::State;
use broker::{PromptPart, PromptTool, ShownPrompt};
use domain::id::SessionId;
use domain::panels::{ATTRIBUTE, Panel, PanelInventory};
use domain::session_label::Changes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

error_codes! {
    ShowErrors = [DefinitionNotFound, RoleForbids] + SessionOfAgent;
    PushErrors = [Invalid] + AgentCommand + Session;
}

/// Query for a prompt.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptParams {
    /// The session whose prompt it is. Without it, that of a chat that is opened for you.
    #[param(value_type = Option<SessionId>)]
    session: Option<String>,
}

/// A prompt, part by part.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PromptView {
    /// Its parts in the order in which a model gets them.
    parts: Vec<PromptPartView>,
    /// The tools that the model is told of beside it, in their order.
    tools: Vec<PromptToolView>,
    /// The estimated number of tokens of all parts and tools.
    tokens: u64,
}

/// A tool, as a model is told of it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PromptToolView {
    /// Its name.
    name: String,
    /// Its description.
    description: String,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object)]
    arguments: Value,
    /// The estimated number of its tokens.
    tokens: u64,
}

impl From<PromptTool> for PromptToolView {
    fn from(tool: PromptTool) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            arguments: tool.arguments,
            tokens: tool.tokens,
        }
    }
}

/// A part of a prompt.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PromptPartView {
    /// Its name: `base`, or `tools`, `skills`, `artifactItems`, `messageContext`,
    /// `artifactsPanels`, `availableAgents`.
    name: String,
    /// The text.
    text: String,
    /// The estimated number of its tokens.
    tokens: u64,
}

impl From<PromptPart> for PromptPartView {
    fn from(part: PromptPart) -> Self {
        Self {
            name: part.name.to_owned(),
            text: part.text,
            tokens: part.tokens,
        }
    }
}

/// Shows the system prompt that a turn would begin with now, and its tools.
///
/// It is made as for a turn: tools that list artifact items are called, which only read. The code
/// of an agent may put blocks of its own between the base and the sections, and a model call that
/// may use no tools, or only some, gets no sections. As mentee you may not look at it.
#[utoipa::path(
    get, path = "/api/agents/{id}/prompt", tag = "agents",
    operation_id = "getPrompt",
    security(("token" = ["read"])),
    params(
        (
            "id" = String, Path,
            description = "UUID or path of the agent, or the id of a definition for yours of it.",
        ),
        PromptParams,
    ),
    responses((status = 200, description = "The prompt.", body = PromptView)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
    Params(PromptParams { session }): Params<PromptParams>,
) -> Result<axum::Json<PromptView>, Refused<ShowErrors>> {
    let target = target(&id);
    let session: Option<SessionId> = read_query("session", session.as_deref())?;
    let ShownPrompt { parts, tools } = caller
        .reading(&api)?
        .agents()
        .prompt(&caller.user, &target, session)
        .await
        .map_err(blameless)?;
    Ok(axum::Json(PromptView {
        tokens: parts.iter().map(|part| part.tokens).sum::<u64>()
            + tools.iter().map(|tool| tool.tokens).sum::<u64>(),
        parts: parts.into_iter().map(PromptPartView::from).collect(),
        tools: tools.into_iter().map(PromptToolView::from).collect(),
    }))
}

/// The panels that a client shows.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "type": "panel_inventory",
    "panels": [{
        "panel_id": "panel-1", "panel_type": "artifacts", "panel_title": "Lists",
        "context": { "type": "todo", "id": "2", "name": "Buy milk" },
    }],
    "selected_panel_id": "panel-1",
}))]
pub(super) struct PanelPush {
    /// Always `panel_inventory`.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: domain::panels::Kind,
    /// All open panels, 64 at most: `panel_id`, `panel_type`, and optionally `panel_title` and
    /// `context`. A context has any of `type`, `id`, `name`, `view_name`, `view_query`, `selection`
    /// (a list of ids) and `mode`. No text is longer than 512 bytes.
    #[schema(value_type = Vec<Object>)]
    panels: Vec<Panel>,
    /// The `panel_id` of the panel that is selected.
    selected_panel_id: Option<String>,
}

/// The panels that are kept.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PanelsKept {
    /// The session.
    session_id: SessionId,
    /// Number of its panels.
    panels: usize,
}

/// Pushes the inventory of the panels that a client shows beside a session.
///
/// It replaces what was pushed before, is one of the session's attributes (`panel_inventory`), and
/// counts with them towards their limit. Turns that begin afterwards are told of it, if their agent
/// has tools that list artifacts; `panels_list` and `panels_selected` show it to agents.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/panels", tag = "sessions",
    operation_id = "sendPanels",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    request_body = PanelPush,
    responses((status = 200, description = "The panels are kept.", body = PanelsKept)),
)]
pub(super) async fn push(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
    Json(pushed): Json<PanelPush>,
) -> Result<axum::Json<PanelsKept>, Refused<PushErrors>> {
    let inventory = PanelInventory {
        kind: pushed.kind,
        panels: pushed.panels,
        selected_panel_id: pushed.selected_panel_id,
    };
    inventory.check()?;
    let panels = inventory.panels.len();
    let value = serde_json::to_value(&inventory).unwrap_or(Value::Null);
    let changes = Changes {
        attributes: Some(Map::from_iter([(ATTRIBUTE.to_owned(), value)])),
        ..Changes::default()
    };
    let broker = api.command()?;
    let by = key.by(&caller.user);
    let row = broker
        .sessions()
        .relabel(by, &target, session, changes)
        .await?;
    Ok(axum::Json(PanelsKept {
        session_id: row.id,
        panels,
    }))
}
