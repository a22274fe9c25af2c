//! Assignments of users to agents: assign users, change their roles, remove them, hand the agent
//! over.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, InPath, Json, TargetAgent, read_field, read_path};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::Target;
use domain::role::AgentRole;
use domain::user::UserId;
use http::StatusCode;
use serde::Deserialize;

error_codes! {
    AssignErrors = [
        AgentSpawned, InvalidAssignmentRole, TooManyUsers, UserAlreadyAssigned,
    ] + AgentCommand;
    ChangeRoleErrors = [
        AgentSpawned, InvalidAssignmentRole, LastPrimary, UserNotAssigned,
    ] + AgentCommand;
    UnassignErrors = [AgentSpawned, LastPrimary, UserNotAssigned] + AgentCommand;
    HandOffErrors = [AgentSpawned, Invalid, InvalidAssignmentRole, TooManyUsers] + AgentCommand;
}

/// A user to assign, and the role.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAssignment {
    /// The user: 1 to 64 letters, digits, `-`, `_`, `.` and `@`.
    #[schema(value_type = UserId)]
    user_id: String,
    /// `primary`, `shared`, `mentee` or `observer`.
    #[schema(value_type = AgentRole)]
    role: String,
}

/// Assigns a user to an agent. Takes the role primary.
#[utoipa::path(
    post, path = "/api/agents/{id}/assign", tag = "agents",
    operation_id = "createAssignment",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path."), IdempotencyKey),
    request_body = NewAssignment,
    responses((status = 201, description = "The agent afterwards.", body = wire::AgentView)),
)]
pub(super) async fn assign(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    Json(new): Json<NewAssignment>,
) -> Result<(StatusCode, axum::Json<wire::AgentView>), Refused<AssignErrors>> {
    let user = read_field("/user_id", &new.user_id)?;
    let role = new.role.parse::<AgentRole>()?;
    let broker = api.command()?;
    let by = key.by(&caller.user);
    let view = broker.agents().assign(by, &target, user, role).await?;
    let view = wire::agent(&view, &caller.user);
    Ok((StatusCode::CREATED, axum::Json(view)))
}

/// A user's new role.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRole {
    /// `primary`, `shared`, `mentee` or `observer`.
    #[schema(value_type = AgentRole)]
    role: String,
}

/// Changes a user's role with an agent.
///
/// Requires the role primary. An agent always has a primary user.
#[utoipa::path(
    put, path = "/api/agents/{id}/assignments/{user}", tag = "agents",
    operation_id = "updateAssignment",
    security(("token" = ["write"])),
    params(
        ("id" = String, Path, description = "UUID or path of the agent."),
        ("user" = String, Path, description = "The user."),
        IdempotencyKey,
    ),
    request_body = NewRole,
    responses((status = 200, description = "The agent afterwards.", body = wire::AgentView)),
)]
pub(super) async fn change_role(
    State(api): State<Api>,
    caller: Caller,
    InPath((id, named)): InPath<(String, String)>,
    key: Idempotency,
    Json(new): Json<NewRole>,
) -> Result<axum::Json<wire::AgentView>, Refused<ChangeRoleErrors>> {
    let (target, named) = read_assignment(&id, &named)?;
    let role = new.role.parse::<AgentRole>()?;
    let broker = api.command()?;
    let by = key.by(&caller.user);
    let view = broker
        .agents()
        .change_role(by, &target, named, role)
        .await?;
    Ok(axum::Json(wire::agent(&view, &caller.user)))
}

/// Removes a user from an agent.
///
/// Requires the role primary, but everybody may remove themselves. An agent always has a primary
/// user.
#[utoipa::path(
    delete, path = "/api/agents/{id}/assignments/{user}", tag = "agents",
    operation_id = "deleteAssignment",
    security(("token" = ["write"])),
    params(
        ("id" = String, Path, description = "UUID or path of the agent."),
        ("user" = String, Path, description = "The user."),
        IdempotencyKey,
    ),
    responses((status = 200, description = "The agent afterwards.", body = wire::AgentView)),
)]
pub(super) async fn unassign(
    State(api): State<Api>,
    caller: Caller,
    InPath((id, named)): InPath<(String, String)>,
    key: Idempotency,
) -> Result<axum::Json<wire::AgentView>, Refused<UnassignErrors>> {
    let (target, named) = read_assignment(&id, &named)?;
    let broker = api.command()?;
    let view = broker
        .agents()
        .unassign(key.by(&caller.user), &target, named)
        .await?;
    Ok(axum::Json(wire::agent(&view, &caller.user)))
}

/// The successor for an agent.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Handoff {
    /// The successor, who becomes primary.
    #[schema(value_type = UserId)]
    user_id: String,
    /// The role that you keep; none without: then you are not assigned to it any more.
    #[schema(value_type = Option<AgentRole>)]
    keep: Option<String>,
}

/// Hands an agent over to another user.
///
/// Assigns the successor, makes them primary, transfers to them what the agent remembers of you,
/// and removes you or changes your role. Either all of it is done or nothing.
#[utoipa::path(
    post, path = "/api/agents/{id}/handoff", tag = "agents",
    operation_id = "handOffAgent",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path."), IdempotencyKey),
    request_body = Handoff,
    responses((status = 200, description = "The agent afterwards.", body = wire::AgentView)),
)]
pub(super) async fn hand_off(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    Json(handoff): Json<Handoff>,
) -> Result<axum::Json<wire::AgentView>, Refused<HandOffErrors>> {
    let to = read_field("/user_id", &handoff.user_id)?;
    let keep = handoff.keep.as_deref().map(str::parse::<AgentRole>);
    let keep = keep.transpose().map_err(|refusal| refusal.at("/keep"))?;
    let broker = api.command()?;
    let by = key.by(&caller.user);
    let view = broker.agents().hand_off(by, &target, to, keep).await?;
    Ok(axum::Json(wire::agent(&view, &caller.user)))
}

/// Reads the agent and the user that a path names.
fn read_assignment(id: &str, user: &str) -> Result<(Target, UserId), Problem> {
    let user = read_path("user", user)?;
    let target = if id.starts_with('/') {
        Target::Path(id.to_owned())
    } else {
        Target::Agent(read_path("id", id)?)
    };
    Ok((target, user))
}
