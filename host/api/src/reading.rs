//! The operator's reading. With the host's own token any agent, session and turn can be read, and
//! each such reading is in the ledger before it is answered.
//!
//! Only requests that look come here. Nothing is said, answered or changed in anybody's name.

use crate::caller::{Caller, Credential, OperatorReading};
use crate::input::{existing, target};
use crate::problem::Problem;
use crate::state::Api;
use axum::RequestExt;
use axum::extract::{MatchedPath, Query, RawPathParams, Request};
use broker::{Broker, Other, Reading, Target};
use domain::digest::Digest;
use domain::event::Recorded;
use domain::id::{AgentId, SessionId, TurnId};
use domain::user::UserId;
use http::Method;
use std::collections::BTreeSet;

/// The agent, session and turn that a request names.
#[derive(Debug, Default)]
struct Named {
    agent: Option<String>,
    session: Option<SessionId>,
    turn: Option<TurnId>,
}

impl Caller {
    /// The broker as this caller reads from it.
    pub(crate) fn reading(&self, api: &Api) -> Result<Broker, Problem> {
        let broker = api.broker()?;
        Ok(if self.operator.is_some() {
            broker.for_operator()
        } else {
            broker.clone()
        })
    }
}

/// Returns the caller as whom a request is answered. When the operator reads without a role of
/// their own, it is the user as whom they read.
///
/// # Errors
/// The reading cannot be recorded.
pub(crate) async fn reader(
    api: &Api,
    caller: Caller,
    request: &mut Request,
) -> Result<Caller, Problem> {
    if caller.credential != Credential::HostToken
        || !matches!(*request.method(), Method::GET | Method::HEAD)
    {
        return Ok(caller);
    }
    let Some(route) = request
        .extensions()
        .get::<MatchedPath>()
        .map(|route| route.as_str().to_owned())
    else {
        return Ok(caller);
    };
    let named = named(&route, request).await;
    let broker = api.broker()?;
    let (of, session) = match (&named.agent, named.session, named.turn) {
        (Some(agent), session, _) => match existing(agent) {
            Ok(target) => (Some(target), session),
            Err(_) => (None, session),
        },
        (None, Some(session), _) => {
            let agent = broker.sessions().agent_of(session).await?;
            (agent.map(Target::Agent), Some(session))
        }
        (None, None, Some(turn)) => match broker.transcripts().session_of(turn).await? {
            Some((agent, session)) => (Some(Target::Agent(agent)), Some(session)),
            None => (None, None),
        },
        (None, None, None) => (None, None),
    };
    let Some(of) = of else { return Ok(caller) };
    let asked = format!("{} {route}", request.method());
    let reading = Reading {
        session,
        turn: named.turn,
        ..without_names(&caller.user, &asked)
    };
    Ok(
        match broker.access().read_as_operator(reading, &of).await? {
            Some(user) => Caller {
                operator: Some(OperatorReading {
                    by: caller.user,
                    request: asked,
                }),
                user,
                ..caller
            },
            None => caller,
        },
    )
}

async fn named(route: &str, request: &mut Request) -> Named {
    let mut named = Named::default();
    if let Ok(params) = request.extract_parts::<RawPathParams>().await {
        for (name, value) in &params {
            match name {
                "id" if route.starts_with("/api/agents/") => named.agent = Some(value.to_owned()),
                "sid" => named.session = value.parse().ok(),
                "turn_id" => named.turn = Digest::from_hex(value).map(TurnId),
                _ => {}
            }
        }
    }
    if route.starts_with("/api/agents/") && named.session.is_none() {
        named.session = queried(request, "session").and_then(|session| session.parse().ok());
    }
    if route == "/api/search" {
        named.agent =
            queried(request, "agent").filter(|agent| matches!(target(agent), Target::Agent(_)));
    }
    named
}

/// Returns a value of the query, read as the route reads it.
fn queried(request: &Request, name: &str) -> Option<String> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok()?;
    pairs
        .into_iter()
        .find(|pair| pair.0 == name)
        .map(|pair| pair.1)
}

/// Returns a reading by a request that names no session, run or turn.
pub(crate) fn without_names<'a>(by: &'a UserId, request: &'a str) -> Reading<'a> {
    Reading {
        by,
        request,
        session: None,
        run: None,
        turn: None,
    }
}

/// Records the other side of a comparison, which a request names in its query.
///
/// # Errors
/// It is not there any more, or it cannot be recorded.
pub(crate) async fn note_compared(api: &Api, caller: &Caller, with: Other) -> Result<(), Problem> {
    let Some(OperatorReading { by, request }) = &caller.operator else {
        return Ok(());
    };
    let reading = without_names(by, request);
    let broker = api.broker()?;
    Ok(broker
        .access()
        .compare_as_operator(reading, &caller.user, with)
        .await?)
}

/// Returns the agents whose stored events reveal what users say. Events without a session reveal
/// none of it, and neither do those of the ledger.
pub(crate) fn agents_with_content(shown: &[Recorded]) -> impl Iterator<Item = AgentId> {
    shown
        .iter()
        .filter(|it| it.subject.session.is_some() && !is_of_ledger(it))
        .filter_map(|it| it.subject.agent)
}

/// Records a list that the operator reads, as far as it shows more than the caller's roles would.
///
/// # Errors
/// It cannot be recorded.
pub(crate) async fn note_agents(
    api: &Api,
    caller: &Caller,
    request: &str,
    agents: BTreeSet<AgentId>,
) -> Result<(), Problem> {
    if agents.is_empty() {
        return Ok(());
    }
    let reading = without_names(&caller.user, request);
    let broker = api.broker()?;
    Ok(broker
        .access()
        .read_lists_as_operator(reading, agents)
        .await?)
}

fn is_of_ledger(recorded: &Recorded) -> bool {
    matches!(
        recorded.kind.as_str(),
        "operator.read.v1" | "boundary.decided.v1"
    )
}
