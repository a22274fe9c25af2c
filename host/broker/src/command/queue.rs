//! A session's queue from outside: how it is to be, what waits in it, and taking something back.

use super::agents::invalid;
use super::once::Once;
use super::quota::passed_limit;
use super::route::Route;
use super::sessions::{REASON_BYTES_MAX, allowed};
use super::{Broker, By, Error, Request, Target};
use crate::journal::Context;
use crate::refusals::{input_not_found, input_not_waiting, input_not_words, session_closed};
use domain::agent::role::Right;
use domain::event::{Event, InputAccepted, InputCancelled, QueueConfigured};
use domain::id::{InputId, RunId, SessionId, Stream, TurnId};
use domain::limits::WAITING_INPUTS_MAX;
use domain::queue::{Directive, QueueOverride, QueueSettings};
use domain::time::Timestamp;
use domain::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Clash, Commit, CommitError, Expected, Guard, InputState, SessionRow};

/// How often what waits is looked up again when some of it was taken up meanwhile.
const TRIES_MAX: u32 = 5;

/// What a session says of its queue, and what holds for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSaid {
    /// What it says itself.
    pub said: QueueOverride,
    /// That with what it leaves out as the operator has it.
    pub holds: QueueSettings,
}

/// What waits in a session.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingInputs {
    /// The session.
    pub row: SessionRow,
    /// How its queue is.
    pub queue: QueueSaid,
    /// What waits, in the order of acceptance; reminders whose time has not come included.
    pub inputs: Vec<InputAccepted>,
}

/// An input with what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct InputView {
    /// As it was accepted.
    pub accepted: InputAccepted,
    /// How far it has come.
    pub state: InputState,
    /// The turn that it became a part of.
    pub turn: Option<TurnId>,
}

/// Settings of a session's queue, as a repeated request is answered with them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Configured {
    pub(super) queue: QueueOverride,
    /// The choice of the session; none when it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) route: Option<Route>,
}

impl Broker {
    /// Says how a session's queue is to be from now on; what is left out is as the operator has it.
    ///
    /// # Errors
    /// There is no such session, or it has ended; the user may not; an idempotency key of another request.
    pub async fn configure_queue<'a>(
        &self,
        by: impl Into<By<'a>>,
        target: &Target,
        session: SessionId,
        queue: QueueOverride,
    ) -> Result<QueueSaid, Error> {
        let by = by.into();
        let request = Request::of(by, &json!({ "configure_queue": session, "target": target.named(), "queue": queue }))?;
        self.configured(by.user, target, session, request.as_ref(), |_| queue).await
    }

    /// The same as the text of a message says it: what that leaves out stays as the session has it.
    pub(super) async fn direct_queue(
        &self,
        by: By<'_>,
        target: &Target,
        session: SessionId,
        directive: Directive,
    ) -> Result<QueueSaid, Error> {
        let said = match directive {
            Directive::Set(said) => json!(said),
            Directive::Reset => json!("reset"),
        };
        let request = Request::of(by, &json!({ "direct_queue": session, "target": target.named(), "directive": said }))?;
        self.configured(by.user, target, session, request.as_ref(), |session| directive.applied(session)).await
    }

    async fn configured(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        request: Option<&Request>,
        change: impl FnOnce(QueueOverride) -> QueueOverride + Send,
    ) -> Result<QueueSaid, Error> {
        let act = self.try_configuring((user, target, session), request, None, change);
        let (Once::Now(Configured { queue, .. }) | Once::Before(Configured { queue, .. })) = self.once(request, act).await?;
        Ok(self.queue_said(queue))
    }

    /// Changes what a session says of its queue, in the commit that has the request's key.
    pub(super) async fn try_configuring(
        &self,
        (user, target, session): (&UserId, &Target, SessionId),
        request: Option<&Request>,
        route: Option<Route>,
        change: impl FnOnce(QueueOverride) -> QueueOverride + Send,
    ) -> Result<Configured, Error> {
        // What it says is changed by one at a time.
        let _in_turn = self.core.in_turn(session).await;
        let row = self.session_for(user, target, session).await?;
        let now = self.core.now();
        let queue = change(row.queue);
        let context = Context::new(format!("user:{user}"), now).about(row.agent, Some(session), None);
        let event = context.event(Event::QueueConfigured(QueueConfigured { session, queue, time: now }));
        let mut commit = Commit::new().guard(Guard::SessionOpen(session)).guard(allowed(row.agent, user)).append(
            Stream::Session(session),
            Expected::Any,
            vec![event],
        );
        commit.guards.extend(self.may_store(user));
        let configured = Configured { queue, route };
        commit.key = request.map(|request| request.answered(&configured));
        match self.core.store.commit(commit).await {
            Ok(_) => Ok(configured),
            Err(CommitError::Conflict(conflict)) => {
                // Whoever may not any more is told that.
                self.session_for(user, target, session).await?;
                Err(passed_limit(&conflict.clash).unwrap_or_else(session_closed).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn queue_said(&self, said: QueueOverride) -> QueueSaid {
        QueueSaid { said, holds: QueueSettings::resolve([QueueOverride::default(), said, self.core.limits.queue]) }
    }

    /// What waits in a session.
    ///
    /// # Errors
    /// There is no such session.
    pub async fn inputs(&self, user: &UserId, target: &Target, session: SessionId) -> Result<WaitingInputs, Error> {
        let (row, _) = self.session_of(user, target, session).await?;
        let inputs = self.core.store.waiting_inputs(session, Timestamp(u64::MAX), WAITING_INPUTS_MAX * 2).await?;
        Ok(WaitingInputs { queue: self.queue_said(row.queue), row, inputs })
    }

    /// An input of a session, whatever became of it.
    ///
    /// # Errors
    /// There is no such session or input.
    pub async fn input(&self, user: &UserId, target: &Target, session: SessionId, input: InputId) -> Result<InputView, Error> {
        let (row, _) = self.session_of(user, target, session).await?;
        let found = self.core.store.input(input).await?.filter(|(accepted, _)| accepted.session == row.id);
        let (accepted, state) = found.ok_or_else(|| input_not_found(input))?;
        let run: Option<RunId> = match &state {
            InputState::Claimed { run } | InputState::Consumed { run } => Some(*run),
            InputState::Waiting | InputState::Dead { .. } | InputState::Cancelled | InputState::Dropped => None,
        };
        let turn = match run {
            Some(run) => self.core.store.run(run).await?.and_then(|run| run.turn),
            None => None,
        };
        Ok(InputView { accepted, state, turn })
    }

    /// Takes back an input that waits.
    ///
    /// Only words: work that another agent handed over is its agent's to cancel, who waits for what comes of it.
    ///
    /// # Errors
    /// There is no such session or input; it is no words, or does not wait any more; the user may not; an idempotency key of another
    /// request.
    pub async fn cancel_input<'a>(
        &self,
        by: impl Into<By<'a>>,
        target: &Target,
        session: SessionId,
        input: InputId,
        reason: Option<String>,
    ) -> Result<InputView, Error> {
        let by = by.into();
        let request = Request::of(by, &json!({ "cancel_input": input, "target": target.named(), "reason": reason }))?;
        let act = self.try_cancelling_input(by.user, target, (session, input), reason, request.as_ref());
        let (Once::Now(cancelled) | Once::Before(cancelled)): Once<InputId, InputId> = self.once(request.as_ref(), act).await?;
        self.input(by.user, target, session, cancelled).await
    }

    async fn try_cancelling_input(
        &self,
        user: &UserId,
        target: &Target,
        (session, input): (SessionId, InputId),
        reason: Option<String>,
        request: Option<&Request>,
    ) -> Result<InputId, Error> {
        check_reason(reason.as_deref())?;
        let row = self.reachable(user, target, session).await?;
        let InputView { accepted, state, .. } = self.input(user, target, session, input).await?;
        if !accepted.source.is_words() {
            return Err(input_not_words().into());
        }
        if state != InputState::Waiting {
            return Err(input_not_waiting(&state).into());
        }
        let mut commit = self.cancelling(user, &row, &[input], reason.as_deref());
        commit.key = request.map(|request| request.answered(&input));
        match self.core.commit_work(session, commit).await {
            Ok(_) => Ok(input),
            Err(CommitError::Conflict(_)) => {
                self.reachable(user, target, session).await?;
                let now = self.input(user, target, session, input).await?;
                Err(input_not_waiting(&now.state).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes back all words that wait in a session now, and returns them.
    pub(super) async fn cancel_waiting(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        reason: Option<&str>,
    ) -> Result<Vec<InputId>, Error> {
        check_reason(reason)?;
        for _ in 0..TRIES_MAX {
            let row = self.reachable(user, target, session).await?;
            let waiting = self.core.store.waiting_inputs(session, self.core.now(), WAITING_INPUTS_MAX * 2).await?;
            let words: Vec<InputId> = waiting.iter().filter(|input| input.source.is_words()).map(|input| input.input).collect();
            if words.is_empty() {
                return Ok(words);
            }
            match self.core.commit_work(session, self.cancelling(user, &row, &words, reason)).await {
                Ok(_) => return Ok(words),
                // Some of them were taken up in between.
                Err(CommitError::Conflict(conflict)) if matches!(conflict.clash, Clash::Guard(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(crate::refusals::busy("what waits is changing at this moment; try again shortly").into())
    }

    fn cancelling(&self, user: &UserId, row: &SessionRow, inputs: &[InputId], reason: Option<&str>) -> Commit {
        let now = self.core.now();
        let about = Context::new(format!("user:{user}"), now).about(row.agent, Some(row.id), None);
        let cancelled = |input: &InputId| {
            let reason = reason.map(str::to_owned);
            let event = InputCancelled { input: *input, session: row.id, cancelled_by: user.clone(), reason, time: now };
            about.clone().following(Some(*input)).event(Event::InputCancelled(event))
        };
        let events = inputs.iter().map(cancelled).collect();
        let mut commit = Commit::new().guard(allowed(row.agent, user)).append(Stream::Session(row.id), Expected::Any, events);
        commit.guards.extend(inputs.iter().map(|input| Guard::InputWaiting(*input)));
        commit
    }

    /// A session in which a user may cancel: of an archived agent too, where what still waits must not be beyond everybody's reach.
    async fn reachable(&self, user: &UserId, target: &Target, session: SessionId) -> Result<SessionRow, Error> {
        let (agent, role) = self.find(user, target).await?;
        let (row, _) = self.session_of(user, target, session).await?;
        role.permits(Right::Interact)?;
        self.may_command(user, &agent.agent.path)?;
        Ok(row)
    }
}

fn check_reason(reason: Option<&str>) -> Result<(), Error> {
    if reason.is_some_and(|reason| reason.len() > REASON_BYTES_MAX) {
        return Err(invalid(format!("a reason has at most {REASON_BYTES_MAX} bytes"), "/reason"));
    }
    Ok(())
}
