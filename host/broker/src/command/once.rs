//! Commands under their user's idempotency key: executed once, with the same answer to each
//! repetition.
//!
//! The key and the answer are part of the commit of the effect, so a crash cannot separate them. A
//! repeated request is answered before anything is decided: after its effect, the same command
//! would often be refused.

use super::{Error, Requests};
use crate::boxed::boxed;
use crate::refusals::{agent_not_found, changing, key_reused};
use crate::shared::error::invalid;
use crate::shared::guards::passed_limit;
use crate::shared::{AnswerAt, Request};
use domain::agent::Agent;
use domain::digest::Digest;
use domain::id::{AgentId, SessionId, Stream};
use domain::role::AgentRole;
use domain::time::Timestamp;
use domain::user::UserId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use store::{AgentRow, Commit, CommitError, Committed, RememberedRequest};

/// Number of times that a command is planned while others change the same thing at the same time.
const TRIES_MAX: u32 = 8;
/// The length of an idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;
/// Number of events that are read at a time to show an agent in an earlier state.
const EVENTS_READ: usize = 256;

/// The user of a request, and the key that identifies its repetitions.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// The user.
    pub user: &'a UserId,
    /// A key that makes a repeated request the same request, for seven days. Under it, any other
    /// request is refused. Keys of different users are independent.
    pub key: Option<&'a str>,
}

impl<'a> By<'a> {
    pub(super) fn new(user: &'a UserId, key: Option<&'a String>) -> Self {
        let key = key.map(String::as_str);
        Self { user, key }
    }
}

impl<'a> From<&'a UserId> for By<'a> {
    fn from(user: &'a UserId) -> Self {
        Self { user, key: None }
    }
}

impl Request {
    /// Describes all that a user asks for, under the key; none without a key.
    ///
    /// # Errors
    /// The key is empty or too long.
    pub(super) fn of(by: By<'_>, asked: &Value) -> Result<Option<Self>, Error> {
        let Some(key) = by.key else { return Ok(None) };
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(invalid(
                format!("an idempotency key has 1 to {KEY_BYTES_MAX} bytes"),
                "header:Idempotency-Key",
            ));
        }
        let digest = Digest::of(asked.to_string().as_bytes());
        Ok(Some(Self {
            source: source_of(by.user),
            key: key.to_owned(),
            digest,
            about: None,
        }))
    }

    /// Ties the request to a session. When that is purged, the request is forgotten.
    pub(super) fn about(self, session: SessionId) -> Self {
        Self {
            about: Some(session),
            ..self
        }
    }
}

/// The result of a command under a key.
pub(super) enum Once<T, R> {
    /// The result of doing it now.
    Now(T),
    /// The remembered answer: it was done before.
    Before(R),
}

impl<T> Once<T, T> {
    /// Returns the result, whenever it was done.
    pub(super) fn either(self) -> T {
        match self {
            Self::Now(result) | Self::Before(result) => result,
        }
    }
}

/// An agent as a command has left it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AsItWas {
    pub(super) agent: AgentId,
    /// The version of its stream.
    pub(super) version: u64,
    /// The role that the user had with it.
    pub(super) role: AgentRole,
}

/// The effect of a command, as its rules decide it from the present state.
pub(super) struct Plan<T> {
    commit: Commit,
    answer: T,
    /// The session that gets work by it.
    wakes: Option<SessionId>,
}

impl<T> Plan<T> {
    /// Plans a commit, which stores nothing if it has neither events nor a key.
    pub(super) fn new(commit: Commit, answer: T) -> Self {
        Self {
            commit,
            answer,
            wakes: None,
        }
    }

    /// Plans a commit that gives a session work.
    pub(super) fn waking(self, session: SessionId) -> Self {
        Self {
            wakes: Some(session),
            ..self
        }
    }

    /// Has the commit remember the answer under the request's key, if it has one.
    pub(super) fn keyed(mut self, request: Option<&Request>) -> Self
    where
        T: Serialize,
    {
        self.commit.key = request.map(|request| request.answered(&self.answer));
        self
    }
}

impl Requests<'_> {
    /// Executes an action once. If the same request executed it before, or does so at this moment,
    /// its answer is returned instead.
    pub(super) async fn once<T, R: DeserializeOwned>(
        &self,
        request: Option<&Request>,
        act: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<Once<T, R>, Error> {
        // Boxed, because the future would be stored twice otherwise: here, and in the function that
        // it is passed to.
        let act = Box::pin(act);
        let Some(request) = request else {
            return act.await.map(Once::Now);
        };
        match self.landed(request, self.core.now()).await? {
            Some(landed) if landed.request == request.digest => return before(&landed),
            Some(_) => return Err(key_reused().into()),
            None => {}
        }
        self.unless_done(Some(request), act).await
    }

    /// Executes a command once: its plan is committed with its answer under the request's key. See
    /// [`Self::attempt`].
    pub(super) async fn carry_out<T, F>(
        &self,
        request: Option<&Request>,
        what: &'static str,
        plan: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned + Send,
        F: Future<Output = Result<Plan<T>, Error>> + Send,
    {
        let act = self.attempt(what, || async { Ok(plan().await?.keyed(request)) });
        self.once(request, act).await.map(Once::either)
    }

    /// Runs a command: it is planned from the present state, and its plan is committed. If others
    /// change `what` at the same time it is planned again, which finds the reason for a refusal.
    pub(super) async fn attempt<T, F>(
        &self,
        what: &'static str,
        plan: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Error>
    where
        T: Send,
        F: Future<Output = Result<Plan<T>, Error>> + Send,
    {
        for _ in 0..TRIES_MAX {
            let Plan {
                commit,
                answer,
                wakes,
            } = plan().await?;
            if commit.appends.is_empty() && commit.key.is_none() {
                return Ok(answer);
            }
            let committed = match wakes {
                Some(session) => self.core.commit_work(session, commit).await,
                None => self.store().commit(commit).await,
            };
            if lands(committed)? {
                return Ok(answer);
            }
        }
        Err(changing(what).into())
    }

    /// Executes an action once, without a check beforehand. For commands that only their commit,
    /// which has the key, can refuse.
    pub(super) async fn unless_done<T, R: DeserializeOwned>(
        &self,
        request: Option<&Request>,
        act: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<Once<T, R>, Error> {
        let act = Box::pin(act);
        let Some(request) = request else {
            return act.await.map(Once::Now);
        };
        match act.await {
            Ok(done) => Ok(Once::Now(done)),
            // The request's own effect, which landed after the inspection, may be the reason of the
            // refusal. Its age does not matter: a commit without events uses the time of the last
            // event. After a long silence it knows keys that the inspection did not.
            Err(error) => match self.landed(request, Timestamp(0)).await? {
                Some(landed) if landed.request == request.digest => before(&landed),
                Some(_) | None => Err(error),
            },
        }
    }

    /// Returns whether a user has made a request under this key before. If so, no request under it
    /// begins anything.
    #[boxed]
    pub async fn is_remembered<'a>(&'a self, by: By<'a>) -> Result<bool, Error> {
        let Some(key) = by.key else { return Ok(false) };
        let source = source_of(by.user);
        Ok(self
            .store()
            .remembered_request(&source, key, self.core.now())
            .await?
            .is_some())
    }

    async fn landed(
        &self,
        request: &Request,
        now: Timestamp,
    ) -> Result<Option<RememberedRequest>, Error> {
        Ok(self
            .store()
            .remembered_request(&request.source, &request.key, now)
            .await?)
    }

    /// Remembers a request that changed nothing, so that a repetition changes nothing either.
    pub(super) async fn note(
        &self,
        request: Option<&Request>,
        reply: &impl Serialize,
    ) -> Result<(), Error> {
        if let Some(request) = request {
            let commit = Commit::new().key(request.answered(reply));
            self.store().commit(commit).await?;
        }
        Ok(())
    }

    /// Returns an agent in an earlier state, folded again from its stream.
    pub(super) async fn agent_as_it_was(&self, was: &AsItWas) -> Result<AgentRow, Error> {
        let row = self.store().agent(was.agent).await?;
        let row = row.ok_or_else(|| agent_not_found(&was.agent.to_string()))?;
        let mut agent = None;
        let mut version = 0;
        let mut updated_at = row.created_at;
        while version < was.version {
            let events = self
                .store()
                .stream(Stream::Agent(was.agent), version, EVENTS_READ)
                .await?;
            let Some(last) = events.last().map(|last| last.version) else {
                break;
            };
            for recorded in events
                .iter()
                .take_while(|recorded| recorded.version <= was.version)
            {
                let Some(event) = &recorded.event else {
                    return Err(Error::unavailable(io::Error::other("an event was erased")));
                };
                agent = Agent::apply(agent, event);
                updated_at = recorded.time;
            }
            version = last;
        }
        let agent =
            agent.ok_or_else(|| Error::unavailable(io::Error::other("an agent has no events")))?;
        // A spawned agent is archived with the topmost agent above it, and its own stream does not
        // say when.
        let active = if row.parent.is_some() {
            row.active
        } else {
            !agent.is_archived()
        };
        Ok(AgentRow {
            agent,
            version: was.version,
            updated_at,
            active,
            ..row
        })
    }

    /// Returns the position of an answer among all events.
    pub(super) async fn position_of(&self, answer: &AnswerAt) -> Result<u64, Error> {
        let found = self
            .store()
            .stream(Stream::Run(answer.run), answer.version.saturating_sub(1), 1)
            .await?;
        found
            .first()
            .map(|recorded| recorded.position)
            .ok_or_else(|| Error::unavailable(io::Error::other("an answer is not there")))
    }
}

/// Returns false for a commit that lost against another one: a new check finds the reason.
pub(super) fn lands(committed: Result<Committed, CommitError>) -> Result<bool, Error> {
    match committed {
        Ok(_) => Ok(true),
        Err(CommitError::Conflict(conflict)) if passed_limit(&conflict.clash).is_none() => {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// The one whose keys a user's requests are under.
fn source_of(user: &UserId) -> String {
    format!("user:{user}")
}

fn before<T, R: DeserializeOwned>(landed: &RememberedRequest) -> Result<Once<T, R>, Error> {
    serde_json::from_slice(&landed.reply)
        .map(Once::Before)
        .map_err(Error::unavailable)
}
