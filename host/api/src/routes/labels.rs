//! Sessions as labels: rename, pin, note attributes, clear, delete, fork.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, Json, OptionalJson, Position, SessionInPath, TargetSession, given,
};
use crate::problem::Problem;
use crate::respond::Created;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::Fork;
use domain::digest::Digest;
use domain::id::{SessionId, TurnId};
use domain::session_label::Changes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

error_codes! {
    ChangeErrors = [Invalid] + AgentCommand + Session;
    ClearErrors = [InputsWait, RunOpen, SessionClosed, SessionStructured] + AgentCommand + Session;
    DeleteErrors = [InputsWait, RunOpen, SessionAlreadyActive] + AgentCommand + Session;
    ForkErrors = [Invalid, ThreadEmpty, TurnNotFound] + LiveAgent + SessionLimits + Session;
}

/// Changes to a session.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionChanges {
    /// Its name: 1 to 200 bytes. `null` removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Option<Option<String>>,
    /// True to pin the session. This has no influence on where a message goes that names no
    /// session.
    pinned: Option<bool>,
    /// Keys to merge into its attributes; `null` takes one away. 16 KiB of them are kept at most.
    /// The host itself notes in `switched_from` where you came from (`switchSession`).
    #[schema(value_type = Option<Object>)]
    attributes: Option<Map<String, Value>>,
}

/// Renames a session, pins it, or changes its attributes.
///
/// Either all of the changes are made or none. The session counts as updated if anything changes.
#[utoipa::path(
    patch, path = "/api/agents/{id}/sessions/{sid}", tag = "sessions",
    operation_id = "updateSession",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    request_body = SessionChanges,
    responses((status = 200, description = "The session afterwards.", body = wire::SessionRowView)),
)]
pub(super) async fn change(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
    Json(new): Json<SessionChanges>,
) -> Result<axum::Json<wire::SessionRowView>, Refused<ChangeErrors>> {
    let changes = Changes {
        name: new.name,
        pinned: new.pinned,
        attributes: new.attributes,
    };
    let broker = api.command()?;
    let by = key.by(&caller.user);
    let row = broker
        .sessions()
        .relabel(by, &target, session, changes)
        .await?;
    Ok(axum::Json(wire::session_row(&row)))
}

/// A session points to an empty thread.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Cleared {
    /// The session.
    session_id: SessionId,
    /// Its revision then.
    revision: u64,
}

/// Starts a chat anew with an empty thread.
///
/// The chat keeps its name, its pin and its attributes. Its turns stay in the tree, where forks
/// point to them, and users who see the session find them by their ids. Refused while a turn is in
/// progress or inputs wait.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/clear", tag = "sessions",
    operation_id = "clearSession",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    responses((status = 200, description = "Its thread is empty.", body = Cleared)),
)]
pub(super) async fn clear(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
) -> Result<axum::Json<Cleared>, Refused<ClearErrors>> {
    let revision = api
        .command()?
        .sessions()
        .clear(key.by(&caller.user), &target, session)
        .await?;
    Ok(axum::Json(Cleared {
        session_id: session,
        revision,
    }))
}

/// A deleted session.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Deleted {
    /// The session.
    session_id: SessionId,
    /// Always true.
    deleted: bool,
}

/// Deletes a session, which can then no longer be found.
///
/// Its waiting inputs become dead letters; its turns stay where forks point to them. Refused while
/// a turn is in progress, while it is a structured session that holds its agent's slot, and while
/// another agent waits for it.
#[utoipa::path(
    delete, path = "/api/agents/{id}/sessions/{sid}", tag = "sessions",
    operation_id = "deleteSession",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    responses((status = 200, description = "It is gone.", body = Deleted)),
)]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
) -> Result<axum::Json<Deleted>, Refused<DeleteErrors>> {
    api.command()?
        .sessions()
        .delete(key.by(&caller.user), &target, session)
        .await?;
    Ok(axum::Json(Deleted {
        session_id: session,
        deleted: true,
    }))
}

/// The starting point of a fork, and the settings of the new session.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewFork {
    /// The turn, of any session of this agent that you see; the one that the session is at,
    /// without.
    #[schema(value_type = Option<TurnId>)]
    turn_id: Option<String>,
    /// An alternative to a turn: the place of a message in the session's thread. The fork begins
    /// after the turn that contains it.
    message: Option<Position>,
    /// A label for people; the session's without.
    name: Option<String>,
    /// The model that its turns use: an alias of the configuration; the session's without.
    model: Option<String>,
}

/// Forks a session: opens a chat that continues from one of its turns.
///
/// The chat has the state and the messages up to that turn. Nothing is copied, and neither of the
/// two changes the other.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/fork", tag = "sessions",
    operation_id = "forkSession",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    request_body = Option<NewFork>,
    responses(
        (
            status = 201,
            description = "It is there.",
            body = wire::SessionView,
            headers(("Location" = String, description = "Where it is.")),
        ),
    ),
)]
pub(super) async fn fork(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
    OptionalJson(new): OptionalJson<NewFork>,
) -> Result<Created<wire::SessionView>, Refused<ForkErrors>> {
    let no_turn = || Problem::invalid_field("/turn_id", "a turn's id is 64 hexadecimal digits");
    let turn = new
        .turn_id
        .map(|text| Digest::from_hex(&text).map(TurnId).ok_or_else(no_turn))
        .transpose()?;
    let share = api.session_share(&caller, key.by(&caller.user).key).await?;
    let fork = Fork {
        turn,
        message: new.message.map(|Position(message)| message),
        name: new.name,
        model: new.model,
    };
    let broker = api.command()?;
    let by = key.by(&caller.user);
    let view = broker
        .transcripts()
        .fork(by, &target, session, fork)
        .await?;
    share.keep();
    Ok(Created::session(&view))
}
