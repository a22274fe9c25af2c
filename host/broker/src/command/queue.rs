//! Commands on a session's queue: configure it, list it, withdraw inputs.

use super::once::Plan;
use super::reason::check_reason;
use super::route::Route;
use super::{By, Error, Queue, Request, Target};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::{input_not_found, input_not_waiting, input_not_words, session_closed};
use crate::shared::guards::{allowed, in_session};
use domain::event::{Event, InputAccepted, InputCancelled, QueueConfigured};
use domain::id::{InputId, RunId, SessionId, Stream, TurnId};
use domain::limits::WAITING_INPUTS_MAX;
use domain::queue::{Directive, QueueOverride, QueueSettings};
use domain::role::Right;
use domain::time::Timestamp;
use domain::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{
    Commit, Expected, Guard, InputState, QueueGuard, SessionGuard, SessionRow, SessionStatus,
};

/// The queue settings of a session: its own, and those in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSaid {
    /// The session's own settings.
    pub said: QueueOverride,
    /// The settings in force: its own, with the operator's for those that it leaves out.
    pub holds: QueueSettings,
}

/// The inputs that wait in a session.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingInputs {
    /// The session.
    pub row: SessionRow,
    /// The settings of its queue.
    pub queue: QueueSaid,
    /// The inputs, in the order of acceptance. Reminders that are not due yet are included.
    pub inputs: Vec<InputAccepted>,
}

/// An input with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct InputView {
    /// The input, as it was accepted.
    pub accepted: InputAccepted,
    /// Its state.
    pub state: InputState,
    /// The turn that it became a part of.
    pub turn: Option<TurnId>,
}

/// Settings of a session's queue, as they are remembered for the answer to a repeated request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Configured {
    pub(super) queue: QueueOverride,
    /// The choice of the session; none when it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) route: Option<Route>,
}

/// A session, as a user names it in a command.
#[derive(Clone, Copy)]
pub(super) struct NamedSession<'a> {
    pub(super) user: &'a UserId,
    pub(super) target: &'a Target,
    pub(super) session: SessionId,
}

/// A change of a session's queue settings.
#[derive(Clone, Copy)]
pub(super) enum QueueChange {
    /// Replaces all of them.
    Replace(QueueOverride),
    /// Changes those that a directive names.
    Direct(Directive),
}

impl QueueChange {
    fn applied(self, settings: QueueOverride) -> QueueOverride {
        match self {
            Self::Replace(queue) => queue,
            Self::Direct(directive) => directive.applied(settings),
        }
    }

    /// Returns the description of the request for it.
    fn asked(self, target: &Target, session: SessionId) -> Value {
        let target = target.named();
        match self {
            Self::Replace(queue) => {
                json!({ "configure_queue": session, "target": target, "queue": queue })
            }
            Self::Direct(Directive::Set(said)) => {
                json!({ "direct_queue": session, "target": target, "directive": said })
            }
            Self::Direct(Directive::Reset) => {
                json!({ "direct_queue": session, "target": target, "directive": "reset" })
            }
        }
    }
}

impl Queue<'_> {
    /// Replaces a session's queue settings. Settings that are left out are the operator's from now
    /// on.
    ///
    /// # Errors
    /// There is no such session, or it has ended; the user may not.
    #[boxed]
    pub async fn configure<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
        queue: QueueOverride,
    ) -> Result<QueueSaid, Error> {
        self.configured(by, target, session, QueueChange::Replace(queue))
            .await
    }

    /// Changes a session's queue settings, once under a key.
    pub(super) async fn configured(
        &self,
        by: By<'_>,
        target: &Target,
        session: SessionId,
        change: QueueChange,
    ) -> Result<QueueSaid, Error> {
        let request = Request::of(by, &change.asked(target, session))?;
        let at = NamedSession {
            user: by.user,
            target,
            session,
        };
        let act = self.try_configuring(at, change, request.as_ref(), None);
        let configured = self.requests().once(request.as_ref(), act).await?.either();
        Ok(self.said(configured.queue))
    }

    /// Changes a session's queue settings, in the commit that has the request's key.
    pub(super) async fn try_configuring(
        &self,
        at: NamedSession<'_>,
        change: QueueChange,
        request: Option<&Request>,
        route: Option<Route>,
    ) -> Result<Configured, Error> {
        let NamedSession {
            user,
            target,
            session,
        } = at;
        // One change of the settings at a time.
        let _in_turn = self.core.in_turn(session).await;
        let plan = || async {
            let row = self.sessions().for_command(user, target, session).await?;
            if row.status != SessionStatus::Open {
                return Err(session_closed().into());
            }
            let now = self.core.now();
            let queue = change.applied(row.queue);
            let configured = Event::QueueConfigured(QueueConfigured {
                session,
                queue,
                time: now,
            });
            let commit = in_session(&row, user, now, [configured])
                .guard(SessionGuard::Open(session))
                .guards(self.access().may_store(user));
            let route = route.clone();
            Ok(Plan::new(commit, Configured { queue, route }).keyed(request))
        };
        self.requests().attempt("the session", plan).await
    }

    pub(super) fn said(&self, said: QueueOverride) -> QueueSaid {
        QueueSaid {
            said,
            holds: QueueSettings::resolve([
                QueueOverride::default(),
                said,
                self.core.limits().queue,
            ]),
        }
    }

    /// Returns the inputs that wait in a session.
    ///
    /// # Errors
    /// There is no such session.
    #[boxed]
    pub async fn inputs(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<WaitingInputs, Error> {
        let (row, _) = self.sessions().visible(user, target, session).await?;
        let inputs = self
            .store()
            .waiting_inputs(session, Timestamp(u64::MAX), WAITING_INPUTS_MAX * 2)
            .await?;
        Ok(WaitingInputs {
            queue: self.said(row.queue),
            row,
            inputs,
        })
    }

    /// Returns an input of a session, whatever its state.
    ///
    /// # Errors
    /// There is no such session or input.
    #[boxed]
    pub async fn input(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        input: InputId,
    ) -> Result<InputView, Error> {
        let (row, _) = self.sessions().visible(user, target, session).await?;
        let found = self.store().input(input).await?;
        let found = found.filter(|(accepted, _)| accepted.session == row.id);
        let (accepted, state) = found.ok_or_else(|| input_not_found(input))?;
        let run: Option<RunId> = match &state {
            InputState::Claimed { run } | InputState::Consumed { run } => Some(*run),
            InputState::Dead { run, .. } | InputState::Cancelled { run, .. } => *run,
            InputState::Waiting | InputState::Dropped => None,
        };
        let turn = match run {
            Some(run) => self.store().run(run).await?.and_then(|run| run.turn),
            None => None,
        };
        Ok(InputView {
            accepted,
            state,
            turn,
        })
    }

    /// Takes back an input that waits.
    ///
    /// Only words are withdrawn. Work that another agent handed over can be cancelled by that agent
    /// only, which waits for its result.
    ///
    /// # Errors
    /// There is no such session or input; the input is no words, or does not wait any more; the
    /// user may not.
    #[boxed]
    pub async fn cancel<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
        input: InputId,
        reason: Option<String>,
    ) -> Result<InputView, Error> {
        let request = Request::of(
            by,
            &json!({ "cancel_input": input, "target": target.named(), "reason": reason }),
        )?;
        check_reason(reason.as_deref())?;
        let plan = || async {
            let row = self.reachable(by.user, target, session).await?;
            let InputView {
                accepted, state, ..
            } = self.input(by.user, target, session, input).await?;
            if !accepted.source.is_words() {
                return Err(input_not_words().into());
            }
            if state != InputState::Waiting {
                return Err(input_not_waiting(&state).into());
            }
            let commit = self.cancelling(by.user, &row, &[input], reason.as_deref());
            Ok(Plan::new(commit, input).waking(session))
        };
        let cancelled = self
            .requests()
            .carry_out(request.as_ref(), "the input", plan)
            .await?;
        self.input(by.user, target, session, cancelled).await
    }

    /// Returns the commit that withdraws all words that wait in a session now, and these words. It
    /// is empty when none wait.
    pub(super) async fn withdrawal(
        &self,
        at: NamedSession<'_>,
        reason: Option<&str>,
    ) -> Result<(Commit, Vec<InputId>), Error> {
        let NamedSession {
            user,
            target,
            session,
        } = at;
        let row = self.reachable(user, target, session).await?;
        let waiting = self
            .store()
            .waiting_inputs(session, self.core.now(), WAITING_INPUTS_MAX * 2)
            .await?;
        let inputs: Vec<InputId> = waiting
            .iter()
            .filter(|input| input.source.is_words())
            .map(|input| input.input)
            .collect();
        let commit = if inputs.is_empty() {
            Commit::new()
        } else {
            self.cancelling(user, &row, &inputs, reason)
        };
        Ok((commit, inputs))
    }

    fn cancelling(
        &self,
        user: &UserId,
        row: &SessionRow,
        inputs: &[InputId],
        reason: Option<&str>,
    ) -> Commit {
        let now = self.core.now();
        let about = Context::by(user, now).about(row.agent, Some(row.id), None);
        let cancelled = |input: &InputId| {
            let reason = reason.map(str::to_owned);
            let event = InputCancelled {
                input: *input,
                session: row.id,
                cancelled_by: user.clone(),
                reason,
                time: now,
            };
            about
                .clone()
                .following(Some(*input))
                .event(Event::InputCancelled(event))
        };
        let events = inputs.iter().map(cancelled).collect();
        let mut commit = Commit::new().guard(allowed(row.agent, user)).append(
            Stream::Session(row.id),
            Expected::Any,
            events,
        );
        commit.guards.extend(
            inputs
                .iter()
                .map(|input| Guard::Queue(QueueGuard::InputWaiting(*input))),
        );
        commit
    }

    /// Returns a session in which a user may cancel. Its agent may be archived: inputs that still
    /// wait there must not be out of everybody's reach.
    async fn reachable(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<SessionRow, Error> {
        let (agent, role) = self.agents().find(user, target).await?;
        let (row, _) = self.sessions().visible(user, target, session).await?;
        role.permits(Right::Interact)?;
        self.access().may_command(user, agent.agent.path.as_str())?;
        Ok(row)
    }
}
