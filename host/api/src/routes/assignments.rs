//! Assignments of users to agents: assign users, change their roles, remove them, hand the agent
//! over.

use crate::caller::Caller;
use crate::codes::{self, AGENT_COMMAND, INVALID, RECORDING, TOPMOST_AGENT};
use crate::input::{Idempotency, IdempotencyKey, InPath, Json, TargetAgent, id_in_path};
use crate::problem::{Problem, RequestPart};
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::Target;
use domain::role::AgentRole;
use domain::user::UserId;
use http::StatusCode;
use serde::Deserialize;

/// A user to assign, and the role.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAssignment {
    /// The user: 1 to 64 letters, digits, `-`, `_`, `.` and `@`.
    user_id: String,
    /// `primary`, `shared`, `mentee` or `observer`.
    role: String,
}

/// Assigns a user to an agent. Takes the role primary.
#[utoipa::path(
    post, path = "/api/agents/{id}/assign", tag = "agents",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path."), IdempotencyKey),
    request_body = NewAssignment,
    responses((status = 201, description = "The agent afterwards.", body = wire::AgentView)),
    extensions(("x-codes" = json!(codes::join(&[
        RECORDING, AGENT_COMMAND, TOPMOST_AGENT,
        &[
            (409, "TOO_MANY_USERS"),
            (409, "USER_ALREADY_ASSIGNED"),
            (422, "INVALID_ASSIGNMENT_ROLE"),
        ],
    ])))),
)]
pub(super) async fn assign(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    Json(new): Json<NewAssignment>,
) -> Result<(StatusCode, axum::Json<wire::AgentView>), Problem> {
    let user = user(&new.user_id)?;
    let role = new.role.parse::<AgentRole>().map_err(broker::Error::from)?;
    let view = api
        .command()?
        .assign(key.by(&caller.user), &target, user, role)
        .await?;
    Ok((
        StatusCode::CREATED,
        axum::Json(wire::agent(&view, &caller.user)),
    ))
}

/// A user's new role.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRole {
    /// `primary`, `shared`, `mentee` or `observer`.
    role: String,
}

/// Changes a user's role with an agent.
///
/// Requires the role primary. An agent always has a primary user.
#[utoipa::path(
    put, path = "/api/agents/{id}/assignments/{user}", tag = "agents",
    security(("token" = ["write"])),
    params(
        ("id" = String, Path, description = "UUID or path of the agent."),
        ("user" = String, Path, description = "The user."),
        IdempotencyKey,
    ),
    request_body = NewRole,
    responses((status = 200, description = "The agent afterwards.", body = wire::AgentView)),
    extensions(("x-codes" = json!(codes::join(&[
        RECORDING, AGENT_COMMAND, TOPMOST_AGENT,
        &[(404, "USER_NOT_ASSIGNED"), (409, "LAST_PRIMARY"), (422, "INVALID_ASSIGNMENT_ROLE")],
    ])))),
)]
pub(super) async fn change_role(
    State(api): State<Api>,
    caller: Caller,
    InPath((id, named)): InPath<(String, String)>,
    key: Idempotency,
    Json(new): Json<NewRole>,
) -> Result<axum::Json<wire::AgentView>, Problem> {
    let (target, named) = of_user(&id, &named)?;
    let role = new.role.parse::<AgentRole>().map_err(broker::Error::from)?;
    Ok(axum::Json(wire::agent(
        &api.command()?
            .change_role(key.by(&caller.user), &target, named, role)
            .await?,
        &caller.user,
    )))
}

/// Removes a user from an agent.
///
/// Requires the role primary, but everybody may remove themselves. An agent always has a primary
/// user.
#[utoipa::path(
    delete, path = "/api/agents/{id}/assignments/{user}", tag = "agents",
    security(("token" = ["write"])),
    params(
        ("id" = String, Path, description = "UUID or path of the agent."),
        ("user" = String, Path, description = "The user."),
        IdempotencyKey,
    ),
    responses((status = 200, description = "The agent afterwards.", body = wire::AgentView)),
    extensions(("x-codes" = json!(codes::join(&[
        RECORDING, AGENT_COMMAND, TOPMOST_AGENT,
        &[(404, "USER_NOT_ASSIGNED"), (409, "LAST_PRIMARY")],
    ])))),
)]
pub(super) async fn unassign(
    State(api): State<Api>,
    caller: Caller,
    InPath((id, named)): InPath<(String, String)>,
    key: Idempotency,
) -> Result<axum::Json<wire::AgentView>, Problem> {
    let (target, named) = of_user(&id, &named)?;
    Ok(axum::Json(wire::agent(
        &api.command()?
            .unassign(key.by(&caller.user), &target, named)
            .await?,
        &caller.user,
    )))
}

/// The successor for an agent.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Handoff {
    /// The successor, who becomes primary.
    user_id: String,
    /// The role that you keep; none without: then you are not assigned to it any more.
    keep: Option<String>,
}

/// Hands an agent over to another user.
///
/// Assigns the successor, makes them primary, transfers to them what the agent remembers of you,
/// and removes you or changes your role. Either all of it is done or nothing.
#[utoipa::path(
    post, path = "/api/agents/{id}/handoff", tag = "agents",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path."), IdempotencyKey),
    request_body = Handoff,
    responses((status = 200, description = "The agent afterwards.", body = wire::AgentView)),
    extensions(("x-codes" = json!(codes::join(&[
        RECORDING, AGENT_COMMAND, TOPMOST_AGENT, INVALID,
        &[(409, "TOO_MANY_USERS"), (422, "INVALID_ASSIGNMENT_ROLE")],
    ])))),
)]
pub(super) async fn hand_off(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    Json(handoff): Json<Handoff>,
) -> Result<axum::Json<wire::AgentView>, Problem> {
    let to = user(&handoff.user_id)?;
    let keep = handoff
        .keep
        .as_deref()
        .map(str::parse::<AgentRole>)
        .transpose()
        .map_err(|refusal| broker::Error::from(refusal.at("/keep")))?;
    Ok(axum::Json(wire::agent(
        &api.command()?
            .hand_off(key.by(&caller.user), &target, to, keep)
            .await?,
        &caller.user,
    )))
}

fn user(text: &str) -> Result<UserId, Problem> {
    let invalid = |error: domain::user::NotAUser| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "INVALID_FIELD",
            error.to_string(),
        )
    };
    text.parse()
        .map_err(|error| invalid(error).at(RequestPart::Body("/user_id")))
}

fn of_user(id: &str, named: &str) -> Result<(Target, UserId), Problem> {
    let user = named.parse().map_err(|error: domain::user::NotAUser| {
        Problem::bad_request("INVALID_ID", error.to_string()).at(RequestPart::Path("user"))
    })?;
    let target = if id.starts_with('/') {
        Target::Path(id.to_owned())
    } else {
        Target::Agent(id_in_path("id", id)?)
    };
    Ok((target, user))
}
