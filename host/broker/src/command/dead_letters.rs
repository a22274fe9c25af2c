//! Dead letters: inputs that could not be processed. They can be listed, requeued and dropped.

use super::once::Plan;
use super::reason::check_reason;
use super::{By, DeadLetters, Error, Request};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::{session_closed, session_not_found};
use domain::error_code::ErrorCode;
use domain::event::{Event, InputCancelled, InputRequeued, Source};
use domain::id::{InputId, RunId, Stream};
use domain::refusal::Refusal;
use domain::time::Timestamp;
use domain::user::UserId;
use serde_json::json;
use store::{Commit, DeadInput, Expected, InputState, QueueGuard, SessionGuard, SessionStatus};

impl DeadLetters<'_> {
    /// Returns dead letters, the newest first.
    #[boxed]
    pub async fn list(&self, limit: usize) -> Result<Vec<DeadInput>, Error> {
        Ok(self.store().dead_inputs(None, limit).await?)
    }

    /// Returns dead letters, the newest first, of those that died before this position.
    #[boxed]
    pub async fn list_before(&self, before: u64, limit: usize) -> Result<Vec<DeadInput>, Error> {
        Ok(self.store().dead_inputs(Some(before), limit).await?)
    }

    /// Returns one dead letter.
    ///
    /// # Errors
    /// There is no such dead letter.
    #[boxed]
    pub async fn get(&self, input: InputId) -> Result<DeadInput, Error> {
        let found = self.store().dead_input(input).await?;
        found.ok_or_else(|| not_there(input))
    }

    /// Requeues a dead letter: it waits again. If a turn had begun with it, `repeat` has to name
    /// the last run that left one: the effects of that turn may then be repeated, once.
    ///
    /// # Errors
    /// The dead letter does not exist, or its session has ended. Or it is work that another agent
    /// handed over and no longer waits for, or whose deadline has passed. Or a turn had begun with
    /// it, and `repeat` does not name its run.
    #[boxed]
    pub async fn requeue<'a>(
        &'a self,
        by: By<'a>,
        input: InputId,
        repeat: Option<RunId>,
    ) -> Result<(), Error> {
        let request = Request::of(by, &json!({ "requeue": input, "repeat": repeat }))?;
        let plan = || self.planned_requeue(by.user, input, repeat);
        self.requests()
            .carry_out(request.as_ref(), "the dead letter", plan)
            .await?;
        store::point("broker.requeue.after");
        Ok(())
    }

    async fn planned_requeue(
        &self,
        user: &UserId,
        input: InputId,
        repeat: Option<RunId>,
    ) -> Result<Plan<()>, Error> {
        let found = self.store().input(input).await?;
        let Some((accepted, InputState::Dead { run, begun, .. })) = found else {
            return Err(not_there(input));
        };
        let begun = run.filter(|_| begun);
        let now = self.core.now();
        let session = accepted.session;
        if is_settled(&accepted.source, now) {
            return Err(work_settled().into());
        }
        let row = self.store().session(session).await?;
        let row = row.filter(|row| row.status != SessionStatus::Deleted);
        let row = row.ok_or_else(|| session_not_found(session))?;
        if row.status != SessionStatus::Open {
            return Err(session_closed().into());
        }
        if let Some(run) = begun.filter(|run| repeat != Some(*run)) {
            return Err(may_repeat_work(run).into());
        }
        let event = Event::InputRequeued(InputRequeued {
            input,
            session,
            requeued_by: user.clone(),
            repeat: begun,
            time: now,
        });
        let context = Context::by(user, now)
            .about(row.agent, Some(session), None)
            .following(Some(input));
        let guarded = Commit::new()
            .guard(QueueGuard::InputDeadAfter { input, begun })
            .guard(SessionGuard::Open(session));
        let commit = guarded.append(
            Stream::Session(session),
            Expected::Any,
            vec![context.event(event)],
        );
        store::point("broker.requeue.before");
        Ok(Plan::new(commit, ()).waking(session))
    }

    /// Drops a dead letter: it is cancelled, no longer listed, and cannot be requeued. If a turn
    /// had begun with it, that stays. The session may have ended.
    ///
    /// # Errors
    /// There is no such dead letter, or the reason is too long.
    #[boxed]
    pub async fn drop<'a>(
        &'a self,
        by: By<'a>,
        input: InputId,
        reason: Option<String>,
    ) -> Result<(), Error> {
        let asked = json!({ "drop_dead_letter": input, "reason": reason });
        let request = Request::of(by, &asked)?;
        check_reason(reason.as_deref())?;
        let plan = || async {
            let letter = self.get(input).await?;
            let session = letter.accepted.session;
            let now = self.core.now();
            let mut context = Context::by(by.user, now).following(Some(input));
            if let Some(agent) = letter.agent {
                context = context.about(agent, Some(session), None);
            }
            let event = Event::InputCancelled(InputCancelled {
                input,
                session,
                cancelled_by: by.user.clone(),
                reason: reason.clone(),
                time: now,
            });
            let commit = Commit::new().guard(QueueGuard::InputDead(input)).append(
                Stream::Session(session),
                Expected::Any,
                vec![context.event(event)],
            );
            Ok(Plan::new(commit, ()))
        };
        self.requests()
            .carry_out(request.as_ref(), "the dead letter", plan)
            .await
    }
}

/// Returns whether another agent handed work over whose result it cannot be given any more.
fn is_settled(source: &Source, now: Timestamp) -> bool {
    matches!(source, Source::Dispatch { reply_to: Some(to), .. } if to.attached)
        || source.deadline().is_some_and(|deadline| deadline <= now)
}

/// Returns the refusal for work whose result no caller can be given any more.
fn work_settled() -> Refusal {
    let message = "another agent handed this work over, and waits for its result no more, or its \
                   time is over: have it hand it over again";
    Refusal::new(ErrorCode::WorkSettled, message)
}

/// Returns the refusal for an input with which a turn had begun before the host gave it up.
fn may_repeat_work(run: RunId) -> Refusal {
    let message = format!(
        "the turn of run `{run}` had begun with this before the host gave it up, and what it did \
         may be done again: look at the turn, and say `?repeat={run}` (`agent-host dead-letter \
         requeue --repeat`) if it may be"
    );
    Refusal::new(ErrorCode::MayRepeatWork, message)
}

fn not_there(input: InputId) -> Error {
    Refusal::new(
        ErrorCode::DeadLetterNotFound,
        format!("there is no dead letter `{input}`"),
    )
    .into()
}
