//! Purging by the operator: a deleted session or an archived agent, with all that was said in it.

use super::{Broker, By, Error, Request, Target};
use crate::boxed::boxed;
use crate::purge::{begin_agent, begin_session, finish, reader_of};
use crate::refusals::{
    agent_not_archived, agent_not_found, busy, session_not_deleted, session_not_found, spawned,
};
use domain::event::Purged;
use domain::id::{SessionId, Stream};
use serde_json::json;
use store::{AgentRow, Rewritten, SessionStatus};
use tokio::sync::oneshot;

/// The object of a purge.
#[derive(Debug, Clone)]
pub enum PurgeOf {
    /// A session of an agent's.
    Session(Target, SessionId),
    /// An agent, with its sessions and those of all agents below it.
    Agent(Target),
}

/// The result of a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// The record of the deleted data, and of the data that stays.
    pub purged: Purged,
    /// The state of the store's files: whether purged content may still be in them.
    pub files: Rewritten,
}

/// The state of a purge.
enum PurgeState {
    /// Done before, to its end.
    Done(Box<Purged>),
    /// Not begun, or begun and not ended.
    Open(Stream),
}

impl Broker {
    /// Purges a deleted session or an archived agent. A purge that was done before returns its old
    /// result.
    ///
    /// It is for the operator alone, who needs no role with the agent. The caller has to check
    /// that.
    ///
    /// # Errors
    /// The session or agent does not exist; it was not deleted, or not archived; another purge or a
    /// rebuild is under way.
    #[boxed]
    pub async fn purge<'a>(&'a self, by: By<'a>, what: &PurgeOf) -> Result<Gone, Error> {
        let asked = match what {
            PurgeOf::Session(target, session) => {
                json!({ "purge": session, "target": target.named() })
            }
            PurgeOf::Agent(target) => json!({ "purge_agent": target.named() }),
        };
        let request = Request::of(by, &asked)?;
        let act = self.try_purging(what, request.as_ref());
        let purged = self.requests().once(request.as_ref(), act).await;
        // This is done after an earlier purge, too: the log may not have been emptied then. An
        // unfinished purge has also erased something.
        let files = self.store().rewrite_erased().await;
        Ok(Gone {
            purged: purged?.either(),
            files: files?,
        })
    }

    async fn try_purging(
        &self,
        what: &PurgeOf,
        request: Option<&Request>,
    ) -> Result<Purged, Error> {
        let stream = match self.purgeable(what).await? {
            PurgeState::Done(purged) => {
                self.requests().note(request, &purged).await?;
                return Ok(*purged);
            }
            PurgeState::Open(stream) => stream,
        };
        let Some(purging) = self.store().begin_purging() else {
            return Err(busy(
                "something else is being purged, or everything is folded again; try again shortly",
            )
            .into());
        };
        let core = self.core.clone();
        let request = request.cloned();
        let key = store::api_key_here();
        let (reply, answer) = oneshot::channel();
        // The task runs to its end, even if its caller is dropped.
        self.core.spawn(async move {
            let purged = async {
                match stream {
                    Stream::Session(session) => {
                        begin_session(&core, session).await?;
                        // The purge of the session deletes the record of its reader, so the reader
                        // is determined first.
                        if let Some(reader) = reader_of(&core, session).await?
                            && core.store.open_purges().await?.contains(&reader)
                        {
                            finish(&core, reader, None).await?;
                        }
                    }
                    Stream::Agent(agent) => begin_agent(&core, agent).await?,
                    Stream::Run(_) | Stream::Trigger(_) | Stream::Connector(_) | Stream::Host => {}
                }
                finish(&core, stream, request.as_ref()).await
            };
            let purged = store::under_api_key(key, Box::pin(purged)).await;
            drop(purging);
            let _ = reply.send(purged);
        });
        answer.await.unwrap_or(Err(Error::ShuttingDown))
    }

    /// Determines the work of a purge.
    async fn purgeable(&self, what: &PurgeOf) -> Result<PurgeState, Error> {
        let store = self.store();
        let (stream, purged) = match what {
            PurgeOf::Session(target, session) => {
                let agent = self.whichever(target).await?.agent.id;
                let row = store
                    .session(*session)
                    .await?
                    .filter(|row| row.agent == agent);
                let row = row.ok_or_else(|| session_not_found(session))?;
                if !row.purged && row.status != SessionStatus::Deleted {
                    return Err(session_not_deleted(agent, session).into());
                }
                (Stream::Session(*session), row.purged)
            }
            PurgeOf::Agent(target) => {
                let row = self.whichever(target).await?;
                let id = row.agent.id;
                if row.parent.is_some() {
                    return Err(spawned(id).into());
                }
                if row.active {
                    return Err(agent_not_archived(id).into());
                }
                (Stream::Agent(id), row.purged)
            }
        };
        if purged
            && !store.open_purges().await?.contains(&stream)
            && let Some(done) = store.purged(stream).await?
        {
            return Ok(PurgeState::Done(Box::new(done)));
        }
        Ok(PurgeState::Open(stream))
    }

    /// Returns an agent, whoever owns it.
    async fn whichever(&self, target: &Target) -> Result<AgentRow, Error> {
        let found = match target {
            Target::Agent(id) => self.store().agent(*id).await?,
            Target::Path(path) => self.store().agent_at(path).await?,
            Target::Definition(_) => None,
        };
        found.ok_or_else(|| agent_not_found(&target.named()).into())
    }
}
