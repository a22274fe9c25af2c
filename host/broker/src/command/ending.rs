//! Ending work in a session: structured sessions are terminated, open runs cancelled.

use super::driver_answer::answered;
use super::once::{Once, lands};
use super::quarantine::driven;
use super::queue::NamedSession;
use super::reason::checked_reason;
use super::sessions::visible;
use super::{By, Error, Request, Runs, Sessions, Target};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::{changing, no_active_session};
use crate::shared::guards::allowed;
use crate::signal::{Aborted, Signal};
use domain::agent::end_session::TERMINATE_REASON;
use domain::id::{InputId, SessionId, Stream};
use domain::role::Right;
use domain::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Clash, Commit, CommitError, Expected, SessionGuard, SessionRow};
use tokio::sync::oneshot;

/// The reason of a cancellation without a stated one.
pub(super) const CANCEL_REASON: &str = "User cancelled";
/// Number of tries of a command while others change the same thing at the same time.
const TRIES_MAX: u32 = 5;
/// Number of attempts to end a turn together with the waiting inputs, while the session's driver
/// continues and claims some of them.
const WITHDRAWAL_TRIES_MAX: u32 = 16;

/// The parts of a session that were cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// True if a run was open.
    pub run: bool,
    /// The inputs that waited.
    pub inputs: Vec<InputId>,
}

impl Sessions<'_> {
    /// Ends the structured session that holds the agent's slot.
    ///
    /// # Errors
    /// No session is active; the user may not, or does not see it.
    #[boxed]
    pub async fn terminate_current<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        reason: Option<String>,
    ) -> Result<SessionRow, Error> {
        let request = Request::of(
            by,
            &json!({ "terminate_current": target.named(), "reason": reason }),
        )?;
        let act = self.terminate_if(by.user, target, None, reason, request.as_ref());
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(row) => Ok(row),
            // An ended session does not change any more.
            Once::Before(ended) => self.row(ended).await,
        }
    }

    /// Ends a structured session, if it holds its agent's slot.
    ///
    /// # Errors
    /// It is not active; the user may not, or does not see it.
    #[boxed]
    pub async fn terminate(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        reason: Option<String>,
    ) -> Result<SessionRow, Error> {
        self.terminate_if(user, target, Some(session), reason, None)
            .await
    }

    async fn terminate_if(
        &self,
        user: &UserId,
        target: &Target,
        mut only: Option<SessionId>,
        reason: Option<String>,
        request: Option<&Request>,
    ) -> Result<SessionRow, Error> {
        let reason = checked_reason(reason, TERMINATE_REASON)?;
        for _ in 0..TRIES_MAX {
            let (agent, _) = self
                .agents()
                .find_for(user, target, Right::Interact)
                .await?;
            let now = self.core.now();
            let event = agent.agent.terminate_session(reason.clone(), now)?;
            let Some(session) = agent
                .agent
                .active_session
                .as_ref()
                .map(|active| active.session_id)
            else {
                continue;
            };
            // The first session found is the one meant by all attempts: a later one is another
            // session.
            if *only.get_or_insert(session) != session {
                return Err(no_active_session().into());
            }
            // Another user's session looks absent to users who see only their own.
            let none = |_| Error::from(no_active_session());
            self.for_command(user, &Target::Agent(agent.agent.id), session)
                .await
                .map_err(none)?;
            let keyed = Commit {
                key: request.map(|request| request.answered(&session)),
                ..Commit::new()
            };
            let aborted = self
                .runs()
                .abort(session, reason.clone(), keyed.clone())
                .await?;
            if aborted != Aborted::Ended {
                let context = Context::by(user, now).about(agent.agent.id, Some(session), None);
                let allowed = allowed(agent.agent.id, user);
                let commit = keyed
                    .guard(SessionGuard::NoOpenRun(session))
                    .guard(SessionGuard::Open(session))
                    .guard(allowed)
                    .append(
                        Stream::Agent(agent.agent.id),
                        Expected::Any,
                        vec![context.event(event)],
                    );
                if !lands(self.store().commit(commit).await)? {
                    continue;
                }
            }
            return self.row(session).await;
        }
        Err(changing("the session").into())
    }
}

impl Runs<'_> {
    /// Stops a session's open run, without a successor. Returns false when none was open.
    ///
    /// # Errors
    /// There is no such session; the user may not.
    #[boxed]
    pub async fn cancel<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
        reason: Option<String>,
    ) -> Result<bool, Error> {
        let asked = json!({ "cancel": session, "target": target.named(), "reason": reason });
        let request = Request::of(by, &asked)?.map(|request| request.about(session));
        let act = async {
            let agents = self.agents();
            let (found, row) =
                tokio::join!(agents.find(by.user, target), self.store().session(session));
            let (agent, role) = found?;
            let row = visible(row?, agent.agent.id, by.user, role, session)?;
            // The agent may be archived: work that is still under way must not be out of
            // everybody's reach.
            role.permits(Right::Interact)?;
            self.access()
                .may_command(by.user, agent.agent.path.as_str())?;
            let keyed = Commit {
                key: request.as_ref().map(|request| request.answered(&true)),
                ..Commit::new()
            };
            let reason = checked_reason(reason, CANCEL_REASON)?;
            let cancelled = self.abort(row.id, reason, keyed).await? == Aborted::Ended;
            if !cancelled {
                // The answer is remembered: a repetition does not stop a turn that begins later.
                self.requests().note(request.as_ref(), &false).await?;
            }
            Ok(cancelled)
        };
        Ok(self.requests().once(request.as_ref(), act).await?.either())
    }

    /// Stops a session's open run and takes back the words that wait, in one commit.
    ///
    /// # Errors
    /// Those of [`Self::cancel`].
    #[boxed]
    pub async fn cancel_with_waiting<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
        reason: Option<String>,
    ) -> Result<Cancelled, Error> {
        let asked =
            json!({ "cancel_with_waiting": session, "target": target.named(), "reason": reason });
        let request = Request::of(by, &asked)?.map(|request| request.about(session));
        let at = NamedSession {
            user: by.user,
            target,
            session,
        };
        let act = async {
            let said = checked_reason(reason.clone(), CANCEL_REASON)?;
            for _ in 0..WITHDRAWAL_TRIES_MAX {
                let (withdrawal, inputs) = self.queue().withdrawal(at, reason.as_deref()).await?;
                let answered_with = |cancelled: &Cancelled| Commit {
                    key: request.as_ref().map(|request| request.answered(cancelled)),
                    ..withdrawal.clone()
                };
                let mut cancelled = Cancelled { run: true, inputs };
                let with = answered_with(&cancelled);
                match self.abort(session, said.clone(), with).await? {
                    Aborted::Ended => return Ok(cancelled),
                    // Some of the words were claimed meanwhile, or the user may not any more.
                    Aborted::Outdated => continue,
                    Aborted::NoneOpen => cancelled.run = false,
                }
                let alone = answered_with(&cancelled);
                match self.commit_without_run(session, alone).await {
                    Ok(()) => return Ok(cancelled),
                    // The same, or a run has begun.
                    Err(CommitError::Conflict(conflict))
                        if matches!(conflict.clash, Clash::Guard(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(changing("what waits").into())
        };
        Ok(self.requests().once(request.as_ref(), act).await?.either())
    }

    /// Commits the events that would have been recorded with the end of the open run, if no run is
    /// open.
    async fn commit_without_run(
        &self,
        session: SessionId,
        commit: Commit,
    ) -> Result<(), CommitError> {
        if commit.appends.is_empty() && commit.key.is_none() {
            return Ok(());
        }
        let commit = commit.guard(SessionGuard::NoOpenRun(session));
        self.core.commit_work(session, commit).await.map(drop)
    }

    /// Has the session's driver end the open run, in one commit with the command's own events.
    pub(super) async fn abort(
        &self,
        session: SessionId,
        reason: String,
        with: Commit,
    ) -> Result<Aborted, Error> {
        driven(self.core, session)?;
        let (done, aborted) = oneshot::channel();
        let signal = Signal::Abort {
            reason,
            with: Box::new(with),
            with_key: store::api_key_here(),
            done,
        };
        self.core.signal(session, signal).await;
        answered(self.core, aborted).await
    }
}
