//! Agents: make, list, look at, set up, archive.

mod config;

use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, Json, OptionalJson, Params, TargetAgent, given, page_query,
    read_field, read_query,
};
use crate::problem::Problem;
use crate::respond::Created;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::{AgentView, CreateAgent, Setup, Template};
use config::{Named, NewConfig, NewFields};
use domain::agent::lifecycle::ARCHIVE_REASON;
use domain::definition::DefinitionId;
use domain::id::AgentId;
use domain::role::AgentRole;
use domain::user::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::AgentFilter;

error_codes! {
    CreateErrors = [
        AgentExists, DefinitionNotFound, IndicesUsedUp, Invalid, PathTaken,
    ] + AgentCommand;
    ChangeErrors = [AgentSpawned, Invalid, SettingFixed] + AgentCommand;
    PreferErrors = [AgentSpawned, Invalid] + AgentCommand;
    ArchiveErrors = [
        AgentSpawned, DefinitionNotFound, Invalid, SessionAlreadyActive,
    ] + AgentCommand;
}

/// Agents on one page unless asked for fewer, and at most.
const PAGE_MAX: usize = 200;
/// Reads of agents for one page at most. When nearly all are hidden, the page ends before it is
/// full.
const READS_MAX: usize = 20;

/// A new agent, made from a definition or a type.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "definition": "assistant", "name": "Archivist" }))]
pub(super) struct NewAgent {
    /// The definition to make it from: an `agentId` of the configuration.
    definition: Option<String>,
    /// The type of agent, such as `tutor`: the first definition that makes such agents is taken.
    /// Instead of `definition`.
    agent_type: Option<String>,
    /// A UUID of your choosing.
    id: Option<String>,
    /// Its name. Without: the definition's display name, or `Tutor Agent` when it is made by its
    /// type.
    name: Option<String>,
    /// Its path; `/<you>/agent/<definition>` without. It is `/<you>/<connector>`, or `/<you>/` with
    /// `agent`, `cron`, `task`, `subuser` or `app` and a name; with the scope `admin` also
    /// `/system/<tag>`.
    path: Option<String>,
    /// Its configuration other than its address.
    #[serde(default)]
    config: NewConfig,
    /// The agent below which it is made: `{"agent_id": …}` or `{"path": "/…"}`. This requires the
    /// role primary there. The host then assigns the path, such as `<parent>/sub/3`, and no number
    /// is ever given twice. Whatever is denied to the agents above it is denied to it too.
    parent: Option<Named>,
    /// The kind of an agent made below a `parent`: `sub`, `memory` or `search`.
    kind: Option<String>,
}

/// Makes an agent. You are its first user, in the role primary.
#[utoipa::path(
    post, path = "/api/agents", tag = "agents",
    operation_id = "createAgent",
    security(("token" = ["write"])),
    params(IdempotencyKey),
    request_body = NewAgent,
    responses(
        (
            status = 201,
            description = "It exists.",
            body = wire::AgentView,
            headers(("Location" = String, description = "Where it is.")),
        ),
    ),
)]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Idempotency(idempotency_key): Idempotency,
    Json(new): Json<NewAgent>,
) -> Result<Created<wire::AgentView>, Refused<CreateErrors>> {
    let template = match (new.definition, new.agent_type) {
        (Some(definition), None) => Template::Definition(DefinitionId(definition)),
        (None, Some(agent_type)) => Template::Type(agent_type),
        _ => {
            let detail =
                "give either `definition` or `agent_type`; GET /api/definitions lists both";
            return Err(Problem::missing_field("/definition", detail).into());
        }
    };
    let id = new.id.as_deref().map(|id| read_field("/id", id));
    let command = CreateAgent {
        template,
        id: id.transpose()?,
        name: new.name,
        path: new.path,
        below: config::below(new.parent, new.kind)?,
        config: new.config.into(),
        user: caller.user.clone(),
        as_operator: caller.scopes.contains(&Scope::Admin),
        idempotency_key,
    };
    let view = api.command()?.agents().create(command).await?;
    let location = format!("/api/agents/{}", view.row.agent.id);
    let view = wire::agent(&view, &caller.user);
    Ok(Created { location, view })
}

page_query! {
    /// Query that selects a page of agents.
    pub(super) struct Page: String, 200 of 200 {
        /// Only of this type, such as `tutor`.
        agent_type: Option<String>,
        /// Only those to which you are this: `primary`, `shared`, `mentee` or `observer`.
        #[param(value_type = Option<AgentRole>)]
        role: Option<String>,
        /// `active` (without) or `archived`.
        #[param(inline)]
        status: Option<Lifecycle>,
        /// True to include agents that the configuration hides (`uiVisible`).
        #[serde(default)]
        all: bool,
        /// True to include agents that other agents spawned. They are left out by default.
        spawned: Option<bool>,
    }
}

/// The lifecycle state of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum Lifecycle {
    /// The agent takes commands.
    Active,
    /// The agent was archived.
    Archived,
}

/// One page of agents.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct AgentList {
    /// The agents, in the order of their ids. A page may be short and have another one after it.
    agents: Vec<wire::AgentView>,
    /// The `after` of the next page; none on the last.
    next_after: Option<String>,
}

/// Lists the agents that you are assigned to, but for those that the configuration hides.
#[utoipa::path(
    get, path = "/api/agents", tag = "agents",
    operation_id = "listAgents",
    security(("token" = ["read"])),
    params(Page),
    responses((status = 200, description = "A page.", body = AgentList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<axum::Json<AgentList>, Problem> {
    let mut after = read_query::<AgentId>("after", page.after.as_deref())?;
    let limit = page.limit()?;
    let role = page.role.as_deref().map(str::parse::<AgentRole>);
    let filter = AgentFilter {
        agent_type: page.agent_type,
        role: role
            .transpose()
            .map_err(|refusal| Problem::invalid_query("role", refusal.message))?,
        active: page.status != Some(Lifecycle::Archived),
        topmost: page.spawned != Some(true),
    };
    let broker = api.broker()?;
    // One whose definition is gone is shown: nothing says any more that it is to be hidden.
    let may_see = |view: &AgentView| {
        broker
            .access()
            .may_see(&caller.user, view.row.agent.path.as_str())
    };
    let is_visible = |view: &AgentView| {
        page.all
            || broker
                .catalogue()
                .definition(&view.row.agent.definition)
                .is_none_or(|it| it.ui_visible)
    };
    let shown = |view: &AgentView| may_see(view) && is_visible(view);
    let mut agents = Vec::new();
    for _ in 0..READS_MAX {
        let found = broker
            .agents()
            .list(&caller.user, filter.clone(), after, PAGE_MAX)
            .await?;
        let mut views = found.iter();
        while agents.len() < limit {
            let Some(view) = views.next() else { break };
            after = Some(view.row.agent.id);
            agents.extend(shown(view).then(|| wire::agent(view, &caller.user)));
        }
        if views.len() == 0 && found.len() < PAGE_MAX {
            after = None;
        }
        if after.is_none() || agents.len() == limit {
            break;
        }
    }
    Ok(axum::Json(AgentList {
        agents,
        next_after: after.map(|id| id.to_string()),
    }))
}

/// Looks at one agent.
#[utoipa::path(
    get, path = "/api/agents/{id}", tag = "agents",
    operation_id = "getAgent",
    security(("token" = ["read"])),
    params(("id" = String, Path, description = "UUID or path.")),
    responses((status = 200, description = "The agent.", body = wire::AgentView)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
) -> Result<axum::Json<wire::AgentView>, Refused<codes::Agent>> {
    let view = caller
        .reading(&api)?
        .agents()
        .get(&caller.user, &target)
        .await?;
    Ok(axum::Json(wire::agent(&view, &caller.user)))
}

/// Changes to an agent. Fields that are left out stay as they are.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentChanges {
    /// Its name: 1 to 200 bytes.
    name: Option<String>,
    /// Its own system prompt, 64 KiB at most; `null` for its definition's.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    system_prompt_override: Option<Option<String>>,
    /// Keys of its settings, which lie over its definition's; `null` takes one away.
    #[schema(value_type = Option<Object>)]
    settings: Option<Map<String, Value>>,
    /// Fields of what is kept about it beside its address. They are merged, and `null` takes one
    /// away.
    #[serde(default)]
    config: NewFields,
}

/// Renames an agent, and changes its system prompt, settings and configuration.
///
/// Either all of the changes are made or none. Requires the role primary.
#[utoipa::path(
    patch, path = "/api/agents/{id}", tag = "agents",
    operation_id = "updateAgent",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path."), IdempotencyKey),
    request_body = AgentChanges,
    responses((status = 200, description = "The agent afterwards.", body = wire::AgentView)),
)]
pub(super) async fn change(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    Json(mut changes): Json<AgentChanges>,
) -> Result<axum::Json<wire::AgentView>, Refused<ChangeErrors>> {
    let name = changes.config.name.take();
    let prompt = changes.config.system_prompt.take();
    let prompts = ["system_prompt_override", "system_prompt"];
    let setup = Setup {
        name: config::either(changes.name, name, ["name", "name"])?,
        system_prompt_override: config::either(changes.system_prompt_override, prompt, prompts)?,
        settings: changes.settings,
        config: changes.config.into(),
    };
    let broker = api.command()?;
    let view = broker
        .agents()
        .set_up(key.by(&caller.user), &target, setup)
        .await?;
    Ok(axum::Json(wire::agent(&view, &caller.user)))
}

/// An agent's memory: its preferences.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Preferences {
    /// The preferences for all its users. Hidden from a mentee.
    #[schema(value_type = Object)]
    preferences: Map<String, Value>,
    /// The preferences for you alone.
    #[schema(value_type = Object)]
    mine: Map<String, Value>,
}

fn preferences(view: &AgentView, caller: &Caller) -> Preferences {
    let agent = &view.row.agent;
    Preferences {
        preferences: if view.role.sees_all_sessions() {
            agent.preferences.clone()
        } else {
            Map::new()
        },
        mine: agent
            .user_preferences
            .get(&caller.user)
            .cloned()
            .unwrap_or_default(),
    }
}

/// Shows what an agent remembers.
#[utoipa::path(
    get, path = "/api/agents/{id}/preferences", tag = "agents",
    operation_id = "getPreferences",
    security(("token" = ["read"])),
    params(("id" = String, Path, description = "UUID or path.")),
    responses((status = 200, description = "Its preferences.", body = Preferences)),
)]
pub(super) async fn show_preferences(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
) -> Result<axum::Json<Preferences>, Refused<codes::Agent>> {
    let view = caller
        .reading(&api)?
        .agents()
        .get(&caller.user, &target)
        .await?;
    Ok(axum::Json(preferences(&view, &caller)))
}

/// Preferences for an agent to remember: keys to merge. No key is ever removed.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPreferences {
    /// Preferences for all its users; requires the role primary. 64 KiB at most, existing ones
    /// included.
    #[schema(value_type = Option<Object>)]
    preferences: Option<Map<String, Value>>,
    /// Preferences for you alone.
    #[schema(value_type = Option<Object>)]
    mine: Option<Map<String, Value>>,
}

/// Merges keys into what an agent remembers.
#[utoipa::path(
    patch, path = "/api/agents/{id}/preferences", tag = "agents",
    operation_id = "updatePreferences",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path."), IdempotencyKey),
    request_body = NewPreferences,
    responses((status = 200, description = "Its preferences afterwards.", body = Preferences)),
)]
pub(super) async fn prefer(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    Json(new): Json<NewPreferences>,
) -> Result<axum::Json<Preferences>, Refused<PreferErrors>> {
    let broker = api.command()?;
    let (keys, own) = match (new.preferences, new.mine) {
        (Some(keys), None) => (keys, false),
        (None, Some(keys)) => (keys, true),
        _ => {
            let detail = "give either `preferences`, which apply to all users, or `mine`";
            return Err(Problem::missing_field("/preferences", detail).into());
        }
    };
    let by = key.by(&caller.user);
    let view = broker.agents().prefer(by, &target, keys, own).await?;
    Ok(axum::Json(preferences(&view, &caller)))
}

/// Options for archiving an agent.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Archive {
    /// The reason, for the record; `User requested reset` by default. 1,000 bytes at most.
    reason: Option<String>,
    /// True to create another agent of the same definition at the same path and under the same
    /// name: a fresh start.
    #[serde(default)]
    fresh: bool,
}

/// An agent was archived.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ArchivedAgent {
    /// The archived agent. It can be looked at for ever.
    archived: wire::AgentView,
    /// The one that took its place, if that was asked for.
    fresh: Option<wire::AgentView>,
}

/// Archives an agent. Takes the role primary, and no active structured session.
#[utoipa::path(
    post, path = "/api/agents/{id}/archive", tag = "agents",
    operation_id = "archiveAgent",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path."), IdempotencyKey),
    request_body = Option<Archive>,
    responses((status = 200, description = "It is archived.", body = ArchivedAgent)),
)]
pub(super) async fn archive(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    OptionalJson(how): OptionalJson<Archive>,
) -> Result<axum::Json<ArchivedAgent>, Refused<ArchiveErrors>> {
    let broker = api.command()?;
    let user = &caller.user;
    let reason = how.reason.unwrap_or_else(|| ARCHIVE_REASON.to_owned());
    let (archived, fresh) = if how.fresh {
        let (archived, fresh) = broker
            .agents()
            .start_afresh(key.by(user), &target, reason)
            .await?;
        (archived, Some(fresh))
    } else {
        let archived = broker
            .agents()
            .archive(key.by(user), &target, reason)
            .await?;
        (archived, None)
    };
    Ok(axum::Json(ArchivedAgent {
        archived: wire::agent(&archived, user),
        fresh: fresh.map(|fresh| wire::agent(&fresh, user)),
    }))
}
