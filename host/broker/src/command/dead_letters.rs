//! Dead letters: inputs that could not be dealt with. They can be looked at, requeued and dropped.

use super::reason::check_reason;
use super::{Broker, Error};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::{conflict, not_found, session_closed, session_not_found};
use domain::event::{Event, InputCancelled, InputRequeued, Source};
use domain::id::{InputId, RunId, Stream};
use domain::refusal::Refusal;
use domain::user::UserId;
use store::{
    Clash, Commit, CommitError, DeadInput, Expected, Guard, InputState, QueueGuard, SessionGuard,
    SessionStatus,
};

impl Broker {
    /// Returns dead letters, the newest first.
    #[boxed]
    pub async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadInput>, Error> {
        Ok(self.store().dead_inputs(None, limit).await?)
    }

    /// Returns dead letters, the newest first, of those that died before this position.
    #[boxed]
    pub async fn dead_letters_before(
        &self,
        before: u64,
        limit: usize,
    ) -> Result<Vec<DeadInput>, Error> {
        Ok(self.store().dead_inputs(Some(before), limit).await?)
    }

    /// Returns one dead letter.
    ///
    /// # Errors
    /// There is no such dead letter.
    #[boxed]
    pub async fn dead_letter(&self, input: InputId) -> Result<DeadInput, Error> {
        let found = self.store().dead_input(input).await?;
        found.ok_or_else(|| not_there(input))
    }

    /// Requeues a dead letter: it waits again. If a turn had begun with it, in whichever of its
    /// runs, that is done only when what the turn did may be repeated.
    ///
    /// # Errors
    /// There is no such dead letter, or its session has ended. Or it is work that another agent
    /// handed over and waits for no more, or whose deadline has passed. Or a turn had begun with
    /// it, and nobody said that it may be repeated.
    #[boxed]
    pub async fn requeue(&self, input: InputId, may_repeat: bool) -> Result<(), Error> {
        let found = self.store().input(input).await?;
        let Some((accepted, InputState::Dead { run, begun, .. })) = found else {
            return Err(not_there(input));
        };
        let now = self.core.now();
        let session = accepted.session;
        let waits =
            matches!(&accepted.source, Source::Dispatch { reply_to: Some(to), .. } if to.attached);
        if waits
            || accepted
                .source
                .deadline()
                .is_some_and(|deadline| deadline <= now)
        {
            return Err(work_settled().into());
        }
        let row = self.store().session(session).await?;
        let row = row.filter(|row| row.status != SessionStatus::Deleted);
        let row = row.ok_or_else(|| session_not_found(session))?;
        let event = Event::InputRequeued(InputRequeued {
            input,
            session,
            time: now,
        });
        let context = Context::new("user:operator", now)
            .about(row.agent, Some(session), None)
            .following(Some(input));
        if row.status != SessionStatus::Open {
            return Err(session_closed().into());
        }
        if let Some(run) = run.filter(|_| begun && !may_repeat) {
            return Err(may_repeat_work(run).into());
        }
        let guarded = Commit::new()
            .guard(QueueGuard::InputDead {
                input,
                may_have_begun: may_repeat,
            })
            .guard(SessionGuard::Open(session));
        let commit = guarded.append(
            Stream::Session(session),
            Expected::Any,
            vec![context.event(event)],
        );
        store::point("broker.requeue.before");
        match self.core.commit_work(session, commit).await {
            Err(CommitError::Conflict(conflict))
                if conflict.clash == Clash::Guard(Guard::Session(SessionGuard::Open(session))) =>
            {
                return Err(session_closed().into());
            }
            Err(CommitError::Conflict(_)) => {
                let found = self.store().input(input).await?;
                let state = found.as_ref().map(|(_, state)| state);
                return Err(overtaken(state, input, may_repeat));
            }
            committed => committed?,
        };
        store::point("broker.requeue.after");
        Ok(())
    }

    /// Drops a dead letter: it is cancelled, listed no more, and cannot be requeued. If a turn had
    /// begun with it, that stays. The session may have ended.
    ///
    /// # Errors
    /// There is no such dead letter, or the reason is too long.
    #[boxed]
    pub async fn drop_dead_letter(
        &self,
        user: &UserId,
        input: InputId,
        reason: Option<String>,
    ) -> Result<(), Error> {
        check_reason(reason.as_deref())?;
        let letter = self.dead_letter(input).await?;
        let session = letter.accepted.session;
        let now = self.core.now();
        let mut context = Context::by(user, now).following(Some(input));
        if let Some(agent) = letter.agent {
            context = context.about(agent, Some(session), None);
        }
        let event = Event::InputCancelled(InputCancelled {
            input,
            session,
            cancelled_by: user.clone(),
            reason,
            time: now,
        });
        let commit = Commit::new()
            .guard(QueueGuard::InputDead {
                input,
                may_have_begun: true,
            })
            .append(
                Stream::Session(session),
                Expected::Any,
                vec![context.event(event)],
            );
        match self.store().commit(commit).await {
            Err(CommitError::Conflict(_)) => Err(not_there(input)),
            committed => {
                committed?;
                Ok(())
            }
        }
    }
}

/// Returns the refusal for work whose result no caller can be given any more.
fn work_settled() -> Refusal {
    let message = "another agent handed this work over, and waits for its result no more, or its \
                   time is over: have it hand it over again";
    conflict("WORK_SETTLED", message)
}

/// Returns the refusal for an input with which a turn had begun before the host gave it up.
fn may_repeat_work(run: RunId) -> Refusal {
    let message = format!(
        "the turn of run `{run}` had begun with this before the host gave it up, and what it did \
         may be done again: look at the turn, and say `?repeat=true` (`agent-host dead-letter \
         requeue --repeat`) if it may be"
    );
    conflict("MAY_REPEAT_WORK", message)
}

fn not_there(input: InputId) -> Error {
    not_found(
        "DEAD_LETTER_NOT_FOUND",
        format!("there is no dead letter `{input}`"),
    )
    .into()
}

/// Returns the refusal of a requeue that another one was quicker than: the input may have died
/// again meanwhile, in a turn that had begun.
fn overtaken(state: Option<&InputState>, input: InputId, may_repeat: bool) -> Error {
    match state {
        Some(InputState::Dead {
            run: Some(run),
            begun: true,
            ..
        }) if !may_repeat => may_repeat_work(*run).into(),
        _ => not_there(input),
    }
}
