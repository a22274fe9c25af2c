//! The living hierarchy: agents by their paths, the recipient of a message without an address, the
//! destination of replies.

use super::messages::{Content, ContentShape};
use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, Json, OptionalJson, Params, TargetAgent, page_query, read_query,
};
use crate::problem::Problem;
use crate::routing::routes;
use crate::state::Api;
use crate::wire::{self, PathView};
use axum::extract::State;
use broker::{PathFilter, PostOutcome, PostToAll, PostedTo};
use domain::id::{AgentId, InputId, SessionId};
use domain::path::{ConnectorName, FetchStrategy, PathKind};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;

error_codes! {
    PostToAllErrors = [Invalid, MessageTooLarge] + Recording;
    ReplyTargetErrors = [NoReplyTarget, RoleForbids] + Agent;
    AbortErrors = [Invalid] + Stopping;
}

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(fetch))
        .routes(routes!(post_to_all))
        .routes(routes!(reply_target))
        .routes(routes!(abort))
}

page_query! {
    /// Query that selects a part of the hierarchy.
    pub(super) struct Page: String, 200 of 200 {
        /// The agent at this path and those below it; or a place where agents live, such as
        /// `/alice` or `/alice/agent`.
        under: Option<String>,
        /// Agents at most so far below that path, or below the topmost ones; with 0 itself alone.
        depth: Option<usize>,
        /// Only of this kind: `connector`, `agent`, `cron`, `task`, `subuser`, `app`, `system`,
        /// `sub`, `memory` or `search`.
        #[param(value_type = Option<PathKind>)]
        kind: Option<String>,
    }
}

/// One page of the hierarchy.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct PathList {
    /// The agents, in the order of their paths, byte by byte. A page may be short and have another
    /// one after it.
    paths: Vec<PathView>,
    /// The `after` of the next page; none on the last.
    next_after: Option<String>,
}

/// Lists the active agents that you are assigned to by their paths, with how much each has to do.
#[utoipa::path(
    get, path = "/api/paths", tag = "agents",
    operation_id = "listPaths",
    security(("token" = ["read"])),
    params(Page),
    responses((status = 200, description = "A page.", body = PathList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<axum::Json<PathList>, Problem> {
    let limit = page.limit()?;
    let kind: Option<PathKind> = read_query("kind", page.kind.as_deref())?;
    let filter = PathFilter {
        under: page.under,
        depth: page.depth,
        kind,
    };
    let (entries, next_after) = api
        .broker()?
        .paths()
        .list(&caller.user, &filter, page.after.as_deref(), limit)
        .await
        .map_err(in_the_query)?;
    Ok(axum::Json(PathList {
        paths: entries.iter().map(wire::path).collect(),
        next_after,
    }))
}

/// Query that selects a strategy for finding an agent.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Strategy {
    /// The strategy. `most-recent-foreground` (default) finds the agent that you last talked with,
    /// among those that people talk with. `heartbeat` finds the system agent that does recurring
    /// work.
    #[param(value_type = Option<FetchStrategy>)]
    strategy: Option<String>,
}

/// Finds the agent that a message without an address goes to.
#[utoipa::path(
    get, path = "/api/paths/fetch", tag = "agents",
    operation_id = "findPath",
    security(("token" = ["read"])),
    params(Strategy),
    responses((status = 200, description = "The agent.", body = PathView)),
)]
pub(super) async fn fetch(
    State(api): State<Api>,
    caller: Caller,
    Params(Strategy { strategy }): Params<Strategy>,
) -> Result<axum::Json<PathView>, Refused<codes::Agent>> {
    let strategy = read_query("strategy", strategy.as_deref())?;
    let strategy = strategy.unwrap_or(FetchStrategy::MostRecentForeground);
    let found = api.broker()?.paths().fetch(&caller.user, strategy).await?;
    Ok(axum::Json(wire::path(&found)))
}

/// A message for all of your agents that people talk with.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "content": "I am back." }))]
pub(super) struct MessageToAll {
    /// Text, or a list of text parts. 1 MiB at most.
    #[schema(value_type = ContentShape)]
    content: Content,
}

/// The outcome of the message for one agent.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SentTo {
    /// The agent.
    agent_id: AgentId,
    /// Its path.
    path: String,
    /// The session; none if the message was not accepted there.
    session_id: Option<SessionId>,
    /// The message's id as an input there; none if it was not accepted.
    input_id: Option<InputId>,
    /// The error code; none if it was accepted.
    code: Option<String>,
    /// The error, for people; none if it was accepted.
    detail: Option<String>,
}

/// The outcomes of a message for all.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SentToAll {
    /// The agents, in the order of their paths.
    sent: Vec<SentTo>,
}

/// Sends a message to all of your agents that people talk with: in your latest chat with each.
///
/// These are agents of connectors, agents that you named, and subusers; 100 at most, those that you
/// used last. Agents with which you have no chat are left out. Under an idempotency key each gets
/// the message once.
#[utoipa::path(
    post, path = "/api/paths/messages", tag = "agents",
    operation_id = "sendMessageToAll",
    security(("token" = ["write"])),
    params(IdempotencyKey),
    request_body = MessageToAll,
    responses((status = 202, description = "The outcomes.", body = SentToAll)),
)]
pub(super) async fn post_to_all(
    State(api): State<Api>,
    caller: Caller,
    Idempotency(idempotency_key): Idempotency,
    Json(message): Json<MessageToAll>,
) -> Result<(StatusCode, axum::Json<SentToAll>), Refused<PostToAllErrors>> {
    let command = PostToAll {
        content: message.content.0,
        user: caller.user,
        idempotency_key,
    };
    let posted = api.command()?.messages().post_to_all(command).await?;
    let sent = posted.into_iter().map(sent_to).collect();
    Ok((StatusCode::ACCEPTED, axum::Json(SentToAll { sent })))
}

fn sent_to(posted: PostedTo) -> SentTo {
    let nothing = SentTo {
        agent_id: posted.agent,
        path: posted.path,
        session_id: None,
        input_id: None,
        code: None,
        detail: None,
    };
    match posted.result {
        Ok(receipt) => SentTo {
            session_id: Some(receipt.session),
            input_id: match receipt.said {
                PostOutcome::Accepted(said) => Some(said.input),
                PostOutcome::Configured(_) => None,
            },
            ..nothing
        },
        Err(refusal) => SentTo {
            code: Some(refusal.code.to_string()),
            detail: Some(refusal.message),
            ..nothing
        },
    }
}

/// The destination of an agent's replies.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ReplyTarget {
    /// Through which connector.
    connector: ConnectorName,
    /// The recipient, by the service's own id.
    target_id: String,
}

/// Shows where an agent's replies go.
///
/// The recipient is the one that its connector's service knows as the user in the agent's path.
/// Requires the role primary.
#[utoipa::path(
    get, path = "/api/agents/{id}/reply-target", tag = "agents",
    operation_id = "getReplyTarget",
    security(("token" = ["read"])),
    params(("id" = String, Path, description = "UUID or path.")),
    responses((status = 200, description = "The target.", body = ReplyTarget)),
)]
pub(super) async fn reply_target(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
) -> Result<axum::Json<ReplyTarget>, Refused<ReplyTargetErrors>> {
    let domain::path::ReplyTarget {
        connector,
        target_id,
    } = caller
        .reading(&api)?
        .paths()
        .reply_target(&caller.user, &target)
        .await?;
    Ok(axum::Json(ReplyTarget {
        connector,
        target_id,
    }))
}

/// The reason why an agent's turns are stopped.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AbortReason)]
pub(super) struct AbortReason {
    /// The reason, for the record.
    reason: Option<String>,
}

/// The result of an abort.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Stopped {
    /// Number of turns that were stopped.
    stopped: u64,
}

/// Stops every turn of an agent that is in progress.
///
/// Only turns in sessions that you see are stopped. The inputs that wait there are withdrawn, so
/// that no turns follow.
#[utoipa::path(
    post, path = "/api/agents/{id}/abort", tag = "agents",
    operation_id = "abortAgent",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path."), IdempotencyKey),
    request_body = Option<AbortReason>,
    responses(
        (status = 200, description = "None of them is in progress any more.", body = Stopped),
    ),
)]
pub(super) async fn abort(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    OptionalJson(AbortReason { reason }): OptionalJson<AbortReason>,
) -> Result<axum::Json<Stopped>, Refused<AbortErrors>> {
    Ok(axum::Json(Stopped {
        stopped: api
            .command()?
            .paths()
            .cancel_all(key.by(&caller.user), &target, reason)
            .await?,
    }))
}

/// Attributes an error to the query parameter that caused it.
fn in_the_query(error: broker::Error) -> Problem {
    let problem = Problem::from(error);
    match problem.field.as_deref() {
        Some("query:under") => Problem::invalid_query("under", problem.detail),
        _ => problem,
    }
}
