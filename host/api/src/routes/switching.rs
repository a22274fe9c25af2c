//! Going on with another agent, and coming back.

use super::messages::{Content, ContentShape};
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, Json, SessionInPath, TargetSession, target};
use crate::problem::Problem;
use crate::quota::SessionShare;
use crate::routing::routes;
use crate::state::Api;
use axum::extract::State;
use broker::{Address, Switch};
use domain::id::{AgentId, InputId, RunId, SessionId};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;

error_codes! {
    SwitchErrors = [
        MessageTooLarge, RunOpen, SameSession, SessionClosed, SessionFull, SessionStructured,
    ] + Opening + Session;
    GoBackErrors = [
        Invalid, NotSwitched, RunOpen, SessionClosed, SessionQuarantined, SessionStructured,
    ] + LiveAgent + Session;
}

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(switch))
        .routes(routes!(go_back))
}

/// A switch to another agent.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Switch, example = json!({ "agent": "worker", "message": "It is about notes.txt." }))]
pub(super) struct SwitchBody {
    /// The other agent: a UUID or path, or the id of a definition. It is your latest chat with it,
    /// or a new one.
    agent: String,
    /// Your first message to it: text, or a list of text parts, 1 MiB at most, and no directive of
    /// the queue. Without one you begin to speak there.
    #[schema(value_type = Option<ContentShape>)]
    message: Option<Content>,
}

/// The session that you have switched to.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Switched)]
pub(super) struct SwitchedView {
    /// Its agent.
    agent_id: AgentId,
    /// The session.
    session_id: SessionId,
    /// True if it was opened for this.
    is_new: bool,
    /// The message's id as an input; none without a message.
    input_id: Option<InputId>,
    /// The position of its event; none without a message.
    position: Option<u64>,
}

/// Takes you to another agent, with a message.
///
/// You go on in your latest chat with it, or in a new one. Where you came from is noted in the
/// attributes of that session, as `switched_from`, and `return` takes you back. Without a message
/// it is refused while a turn is in the making there: what you say then could not be told from it.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/switch", tag = "sessions",
    operation_id = "switchSession",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    request_body = SwitchBody,
    responses((status = 200, description = "You are there.", body = SwitchedView)),
)]
pub(super) async fn switch(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(from, session): TargetSession,
    key: Idempotency,
    Json(body): Json<SwitchBody>,
) -> Result<axum::Json<SwitchedView>, Refused<SwitchErrors>> {
    let switch = Switch {
        agent: target(&body.agent),
        content: body.message.map(|content| content.0),
    };
    let broker = api.command()?;
    let share = match api.session_share(&caller, key.0.as_deref()).await {
        Ok(share) => Some(share),
        // Whoever goes on in what is open needs no room for a session.
        Err(spent) => {
            let to = Address::Agent(switch.agent.clone());
            let there = broker.messages().where_to(&caller.user, &to, "").await;
            match there.map_err(|error| at_own_field(error.into()))? {
                Some(_) => None,
                None => return Err(spent.into()),
            }
        }
    };
    let by = key.by(&caller.user);
    let switched = broker.switches().to(by, &from, session, switch).await;
    let switched = switched.map_err(|error| at_own_field(error.into()))?;
    if switched.is_new {
        share.into_iter().for_each(SessionShare::keep);
    }
    let said = switched.said.as_ref();
    Ok(axum::Json(SwitchedView {
        agent_id: switched.agent,
        session_id: switched.session,
        is_new: switched.is_new,
        input_id: said.map(|said| said.input),
        position: said.map(|said| said.position),
    }))
}

/// Puts the blame on the field of this body that a routed message has under another name.
fn at_own_field(mut problem: Problem) -> Problem {
    problem.field = problem.field.map(|field| {
        if field == "/to/agent" {
            "/agent".to_owned()
        } else if let Some(place) = field.strip_prefix("/content") {
            format!("/message{place}")
        } else {
            field
        }
    });
    problem
}

/// The session that you came back to.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Returned)]
pub(super) struct ReturnedView {
    /// Its agent.
    agent_id: AgentId,
    /// The session.
    session_id: SessionId,
    /// The run that brings the summary; none when nothing was said since you left.
    run_id: Option<RunId>,
}

/// Takes you back to where you switched from, with a summary.
///
/// The model of the role `memory`, or else that of the session, summarises what was said here since
/// you came. The summary stands in the other session as a notice, a turn of its own that answers
/// nothing; its agent sees it from its next turn on. If no summary can be made, that run fails, and
/// you are back all the same. Refused while a turn is in the making in one of the two sessions.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/return", tag = "sessions",
    operation_id = "returnSession",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    responses((status = 200, description = "You are back.", body = ReturnedView)),
)]
pub(super) async fn go_back(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(from, session): TargetSession,
    key: Idempotency,
) -> Result<axum::Json<ReturnedView>, Refused<GoBackErrors>> {
    let by = key.by(&caller.user);
    let returned = api.command()?.switches().back(by, &from, session).await?;
    Ok(axum::Json(ReturnedView {
        agent_id: returned.agent,
        session_id: returned.session,
        run_id: returned.run,
    }))
}
