//! Purging what was deleted: for the operator alone.

use crate::caller::{Caller, Credential};
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, Json, existing};
use crate::problem::{Problem, RequestPart};
use crate::state::Api;
use crate::wire::Time;
use axum::extract::State;
use broker::{Gone, PurgeOf};
use domain::error_code::ErrorCode;
use domain::id::{AgentId, SessionId};
use serde::{Deserialize, Serialize};
use store::Rewritten;

error_codes! {
    PurgeErrors = [
        AgentNotArchived, AgentNotFound, AgentSpawned, OperatorOnly, RunOpen, SessionNotDeleted,
        SessionNotFound,
    ] + Recording;
}

/// The agent or session to purge.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PurgeRequest {
    /// UUID of the agent, or its path while it is active.
    agent_id: String,
    /// UUID of a session of its that was deleted. Without, the agent itself is purged, which has to
    /// be archived: with all its sessions, deleted or not, and all agents below it.
    #[schema(value_type = Option<SessionId>)]
    session_id: Option<String>,
}

/// Counts of erased data.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct ErasedView {
    /// Sessions.
    sessions: u64,
    /// Turns, of which nothing is left but their places in the tree.
    turns: u64,
    /// Messages of theirs.
    messages: u64,
    /// Events that keep their place in the chain, but whose payload and its salt were erased.
    events: u64,
    /// Blobs that are no longer referenced.
    blobs: u64,
    /// Their bytes.
    blob_bytes: u64,
    /// Keys of what tools keep.
    bucket_keys: u64,
    /// Requests that were remembered under their idempotency keys.
    requests: u64,
}

/// Counts of data that is kept because other data refers to it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct KeptView {
    /// Turns in the thread of a session that was not deleted, or that were made in one.
    turns: u64,
    /// Writes of tools to what is not the session's alone: its agent's, its user's or the
    /// component's.
    bucket_writes: u64,
}

/// The result of a purge.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PurgeReport {
    /// The agent.
    agent_id: AgentId,
    /// The session, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    /// The time of the purge, ISO 8601.
    purged_at: Time,
    /// Counts of erased data.
    erased: ErasedView,
    /// Counts of data that is kept.
    kept: KeptView,
    /// True if the store's log has since been emptied, and its file holds no remains. Until then,
    /// either may still hold chunks of what was erased. If false, request the same purge again.
    files_rewritten: bool,
    /// The reason why the files were not rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Purges a deleted session or an archived agent.
///
/// Everything said, done, stored and noted in it is erased permanently, and cannot be recovered.
/// This needs the host's own token; a user's key or an issuer's token does not suffice. Whatever is
/// in the thread of a session that was not deleted stays. A repeated purge is answered as the first
/// one was.
#[utoipa::path(
    post, path = "/api/purges", tag = "operator",
    operation_id = "createPurge",
    security(("token" = ["admin"])),
    params(IdempotencyKey),
    request_body = PurgeRequest,
    responses((status = 200, description = "It is gone.", body = PurgeReport)),
)]
pub(super) async fn purge(
    State(api): State<Api>,
    caller: Caller,
    key: Idempotency,
    Json(PurgeRequest {
        agent_id,
        session_id,
    }): Json<PurgeRequest>,
) -> Result<axum::Json<PurgeReport>, Refused<PurgeErrors>> {
    if caller.credential != Credential::HostToken {
        let detail = "only the operator may purge: send the host's own token, which `agent-host \
                      token show` prints";
        return Err(Problem::new(ErrorCode::OperatorOnly, detail).into());
    }
    let target =
        existing(&agent_id).map_err(|problem| problem.at(RequestPart::Body("/agent_id")))?;
    let what = match session_id {
        Some(session) => PurgeOf::Session(target, session_of(&session)?),
        None => PurgeOf::Agent(target),
    };
    let gone = api.command()?.purge(key.by(&caller.user), &what).await?;
    Ok(axum::Json(report(gone)))
}

fn session_of(text: &str) -> Result<SessionId, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("`{text}` is not the id of a session: that is a UUID");
        Problem::invalid_field("/session_id", detail)
    })
}

fn report(gone: Gone) -> PurgeReport {
    let Gone { purged, files } = gone;
    let erased = purged.erased;
    let kept = purged.kept;
    let reason = match files {
        Rewritten::Yes => None,
        Rewritten::NotYet { reason } => Some(reason),
    };
    PurgeReport {
        agent_id: purged.agent,
        session_id: purged.session,
        purged_at: Time(purged.time),
        erased: ErasedView {
            sessions: erased.sessions,
            turns: erased.turns,
            messages: erased.messages,
            events: erased.events,
            blobs: erased.blobs,
            blob_bytes: erased.blob_bytes,
            bucket_keys: erased.bucket_keys,
            requests: erased.requests,
        },
        kept: KeptView {
            turns: kept.turns,
            bucket_writes: kept.bucket_writes,
        },
        files_rewritten: reason.is_none(),
        reason,
    }
}
