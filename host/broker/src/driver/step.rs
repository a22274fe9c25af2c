//! Steps of an agent: it is called with its view, and its decision is committed.

use super::commit::Plan;
use super::context::SessionContext;
use super::driving::Driving;
use super::phase::Phase;
use super::prepare::Prepared;
use super::scope::{NotMade, RequestingStep};
use super::state::Driver;
use super::ticket::{Seat, StepTicket, StepTurn, step_of};
use crate::engine::{Admission, Component};
use crate::performance::result::CommitExtras;
use crate::shared::DriverError;
use domain::agent::Agent;
use domain::agent::memory::{OfWhom, of_whom};
use domain::backoff::Backoff;
use domain::digest::Digest;
use domain::event::{BoundaryVerdict, Event, InputAccepted, StepFailed, StepFault};
use domain::id::OperationId;
use domain::limits::STEP_ATTEMPTS_MAX;
use domain::operation::CallUsage;
use domain::role::AgentRole;
use domain::ruling::{Rule, STEP, TOOL_CALL};
use domain::run::Run;
use domain::run::check::check;
use domain::run::decide::{Taken, decide};
use domain::run::end::Cause;
use domain::step::{Effect, StepResult};
use domain::user::UserId;
use runtime::{Decided, NotAdmitted, Outcome, TurnedAway};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::Instant;

/// Number of attempts at a step that the host could not do its part of. With their pauses they take
/// half a minute.
const FAULTED_ATTEMPTS_MAX: u32 = 10;
/// Pauses between such attempts.
const FAULTED_PAUSES: Backoff = Backoff {
    first_ms: 100,
    most_ms: 10_000,
};

impl Driver {
    /// Takes the next step: the agent's, or in a run that compacts its thread the host's own.
    /// Returns false if it has no ticket yet; then no data for the step was read for good.
    pub(super) async fn step(&mut self, words: Vec<InputAccepted>) -> Result<bool, DriverError> {
        // The places for steps are a limit of their own.
        self.starting = None;
        let Some(driving) = self.phase.driving() else {
            return Ok(true);
        };
        if driving.run.started.compacts.is_some() {
            return Box::pin(self.step_compacting()).await.map(|()| true);
        }
        let entry = self.context.configured(driving)?;
        // Before it has its turn: loading replaced code takes time, and a slot of its own.
        let Some(component) = self.context.component(driving, &entry).await? else {
            let reason = format!(
                "the component {} that this turn began with is gone",
                driving.run.component.short()
            );
            return self
                .fail(Cause::Failed {
                    code: "component-gone".into(),
                    reason,
                })
                .await
                .map(|()| true);
        };
        let party = step_of(&driving.run.started, &entry);
        let Some(StepTurn { seat, answer }) =
            StepTicket::turn(&mut self.ticket, &self.context.core, party, &entry)
        else {
            // A start that is not stored yet begins again with the present state once it has its
            // turn.
            self.stale |= self.phase.beginning().is_some();
            return Ok(false);
        };
        match answer {
            Ok(admission) => Box::pin(self.step_agent(words, &component, seat, admission)).await?,
            Err(turned_away) => {
                self.not_begun(turned_away, Some(seat), component.digest())
                    .await?
            }
        }
        Ok(true)
    }

    /// Steps the agent once. It has been admitted, and its data are read from here on.
    async fn step_agent(
        &mut self,
        words: Vec<InputAccepted>,
        component: &Component,
        seat: Seat,
        admission: Admission,
    ) -> Result<(), DriverError> {
        let code = component.digest();
        let prepared = match Box::pin(self.prepare(&words, code)).await? {
            Ok(prepared) => prepared,
            Err(cause) => return self.fail(cause).await,
        };
        let Prepared { intake, frozen, .. } = &prepared;
        let driving = self.phase.open()?;
        store::point("broker.step.before");
        let stepped = self
            .context
            .core
            .runtime
            .step(
                admission,
                component,
                frozen.view.clone(),
                &intake.news,
                &frozen.basis,
            )
            .await;
        // The next step gets the place, unless nothing of this step ran.
        let seat = matches!(stepped.outcome, Outcome::Busy).then_some(seat);
        store::point("broker.step.after");
        crate::guest_log::record(&driving.run.started.definition.0, &stepped.logs);
        let usage = stepped.usage;
        let decided = stepped.decided;
        let judged =
            judged(stepped.outcome).and_then(|result| acceptable(&driving.run, &prepared, result));
        let result = match judged {
            Ok(result) => result,
            Err(not_taken) => {
                let attempt = Attempt {
                    code,
                    usage,
                    decided,
                };
                return self.not_taken(not_taken, seat, attempt).await;
            }
        };
        let plan = Box::pin(self.context.plan_step(StepTaken {
            driving,
            prepared,
            code,
            result,
            answers: stepped.answers,
            usage,
            decided,
        }))
        .await?;
        let stopped: Vec<OperationId> = plan
            .stepped
            .stopped
            .iter()
            .map(|settlement| settlement.operation)
            .collect();
        let Some(driving) = self.phase.driving_mut() else {
            return Ok(());
        };
        driving.waits_reported.clear();
        driving.note_so_far(&stopped, plan.time);
        Box::pin(self.commit_step(Plan { words, ..plan })).await
    }

    /// Waits with a step of which nothing ran, or records that it failed.
    async fn not_taken(
        &mut self,
        not_taken: NotTaken,
        seat: Option<Seat>,
        mut attempt: Attempt,
    ) -> Result<(), DriverError> {
        match not_taken {
            NotTaken::NotBegun(why) => {
                let decided = attempt.decided;
                self.not_begun(TurnedAway { why, decided }, seat, attempt.code)
                    .await
            }
            NotTaken::Failed(outcome, detail) => {
                if let Some(driving) = self.phase.driving_mut() {
                    driving.waits_reported.clear();
                }
                if outcome == StepFault::Refused {
                    let decided = &mut attempt.decided;
                    decided.note(STEP, BoundaryVerdict::Refused, Rule::Contract, &detail);
                }
                self.step_failed(outcome, detail, attempt).await
            }
        }
    }

    /// Waits with a step that did not begin. If there is only no room for it at the moment, it
    /// keeps its turn.
    async fn not_begun(
        &mut self,
        turned_away: TurnedAway,
        seat: Option<Seat>,
        code: Digest,
    ) -> Result<(), DriverError> {
        let TurnedAway { why, decided } = turned_away;
        // It is read again by then.
        drop(self.phase.take_agent());
        match why {
            NotAdmitted::Busy => {
                self.ticket = seat.map(StepTicket::keeping);
                self.keep_waiting(code, decided).await?;
                Err(DriverError::Busy)
            }
            NotAdmitted::TooOften { wait_ms } => {
                drop(seat);
                self.too_often(wait_ms, code, decided).await
            }
        }
    }

    /// Records in the ledger that the next step is delayed, once for each limit and wait. A run
    /// that is not stored yet is stored for that: otherwise no trace of it would remain.
    async fn keep_waiting(
        &mut self,
        code: Digest,
        mut decided: Decided,
    ) -> Result<(), DriverError> {
        let now = self.context.core.now();
        let Some(driving) = self.phase.driving_mut() else {
            return Ok(());
        };
        decided
            .decisions
            .retain(|decision| !driving.waits_reported.contains(&decision.detail));
        driving.waits_reported.extend(
            decided
                .decisions
                .iter()
                .map(|decision| decision.detail.clone()),
        );
        let entry = self
            .phase
            .driving()
            .and_then(|driving| self.context.step_decided(driving, code, decided, now));
        let Some(entry) = entry else {
            return Ok(());
        };
        if let Phase::Running(running) = &mut self.phase {
            running.driving.entries.push(entry);
            return Ok(());
        }
        self.commit_start().await?;
        self.commit_run_event(entry, CommitExtras::default()).await
    }

    /// Keeps the step waiting until the agent's component may be called again, and records that in
    /// the ledger.
    async fn too_often(
        &mut self,
        wait_ms: u64,
        code: Digest,
        decided: Decided,
    ) -> Result<(), DriverError> {
        tracing::warn!(session.id = %self.context.session, wait_ms, "an agent's component is called too \
                                                             often: it waits");
        self.keep_waiting(code, decided).await?;
        if let Some(driving) = self.phase.driving_mut() {
            driving.rests_until = Some(Instant::now() + Duration::from_millis(wait_ms.max(1)));
        }
        Ok(())
    }

    /// Records that an attempt at a step failed, and ends the run after the last one.
    ///
    /// A fault of the host's may pass and is not the guest's doing. So there are more attempts
    /// after it, and pauses between them.
    async fn step_failed(
        &mut self,
        outcome: StepFault,
        detail: String,
        failed: Attempt,
    ) -> Result<(), DriverError> {
        let Some(driving) = self.phase.driving() else {
            return Ok(());
        };
        let attempt = driving.run.failed_attempts + 1;
        tracing::warn!(
            session.id = %self.context.session, run.id = %driving.run.started.run, step = driving.run.step, attempt, %outcome, detail,
            "an agent's step failed"
        );
        let run = driving.run.started.run;
        let now = self.context.core.now();
        let extras = CommitExtras {
            events: self
                .context
                .step_decided(driving, failed.code, failed.decided, now)
                .into_iter()
                .collect(),
            ..CommitExtras::default()
        };
        let failed = StepFailed {
            run,
            step: driving.run.step,
            attempt,
            outcome,
            detail: detail.clone(),
            usage: failed.usage,
            time: now,
        };
        self.commit_start().await?;
        // A failure is no progress: an end that panics must not be tried for ever, with an attempt
        // before each time.
        let failures = self.failures;
        self.commit_run_event(Event::StepFailed(failed), extras)
            .await?;
        self.failures = failures;
        let faulted = outcome == StepFault::Faulted;
        if attempt
            < if faulted {
                FAULTED_ATTEMPTS_MAX
            } else {
                STEP_ATTEMPTS_MAX
            }
        {
            if let Some(driving) = self.phase.driving_mut().filter(|_| faulted) {
                let pause = Duration::from_millis(FAULTED_PAUSES.pause_ms(attempt));
                driving.rests_until = Some(Instant::now() + pause);
            }
            return Ok(());
        }
        let reason = if detail.is_empty() {
            outcome.to_string()
        } else {
            format!("{outcome}: {detail}")
        };
        self.end_from_outside(Cause::Failed {
            code: "step-failed".into(),
            reason,
        })
        .await
    }
}

/// A step that the agent took, and that is acceptable.
struct StepTaken<'a> {
    driving: &'a Driving,
    prepared: Prepared,
    /// The code that took it.
    code: Digest,
    result: StepResult,
    answers: Digest,
    usage: CallUsage,
    decided: Decided,
}

/// An attempt at a step that failed.
struct Attempt {
    code: Digest,
    usage: CallUsage,
    decided: Decided,
}

impl SessionContext {
    /// Resolves a step's requests and plans its commit.
    async fn plan_step(&self, step: StepTaken<'_>) -> Result<Plan, DriverError> {
        let driving = step.driving;
        let code = step.code;
        let prepared = step.prepared;
        let mut decided = step.decided;
        let now = self.core.now();
        let asked = RequestingStep {
            driving,
            agent: &prepared.agent,
            config: &prepared.config,
            intake: &prepared.intake,
            view: Some(&*prepared.frozen.view),
            now,
        };
        let resolved = self.resolve(asked, &step.result).await?;
        let untrusted = driving.run.is_untrusted_with(&prepared.intake);
        let settled = &prepared.intake.settled;
        let mut cause = Cause::of(&step.result.decision, driving.run.model_failure(settled));
        if let Some(Cause::Failed { reason, .. }) = &mut cause {
            *reason = driving.run.given_up(reason, settled);
        }
        let taken = Taken {
            basis: prepared.frozen.basis,
            intake: prepared.intake,
            resolved: resolved.operations,
            answers: step.answers,
            usage: step.usage,
            time: now,
            salt: prepared.salt,
            result: step.result,
        };
        let mut stepped = decide(&driving.run, taken);
        Box::pin(self.charge_what_is_known(driving, &mut stepped.stopped)).await?;
        let afforded = self.afforded(driving, &stepped.settled, &stepped.started);
        decided.decisions.extend(resolved.granted.decisions);
        let unkept = untrusted
            .then(|| unkept(&driving.run, &stepped.effects))
            .flatten();
        let refused = resolved
            .refused
            .into_iter()
            .chain(unkept)
            .map(|not_made| self.not_made(driving, not_made, code, now));
        let decided: Vec<Event> = self
            .step_decided(driving, code, decided, now)
            .into_iter()
            .chain(refused)
            .collect();
        Ok(Plan {
            stepped,
            cause,
            role: prepared.role,
            sent: resolved.sent,
            blobs: prepared.frozen.blobs,
            words: Vec::new(),
            decided,
            afforded,
            untrusted,
            time: now,
        })
    }
}

/// Returns the refusal of preferences that a step would store in a turn that depends on content
/// from outside; none of a step without any.
fn unkept(run: &Run, effects: &[Effect]) -> Option<NotMade> {
    let keeps =
        |effect: &Effect| matches!(effect, Effect::Prefer { .. } | Effect::PreferForUser { .. });
    effects.iter().any(keeps).then(|| {
        let mut decided = Decided::default();
        decided.note(
            TOOL_CALL,
            BoundaryVerdict::Refused,
            Rule::Approval,
            "prefer",
        );
        NotMade {
            operation: OperationId::mint(run.started.run, run.step, "prefer"),
            tool: None,
            decided,
        }
    })
}

/// The reason why a step was not taken.
enum NotTaken {
    /// No part of it ran.
    NotBegun(NotAdmitted),
    /// It failed, with the kind of fault and details.
    Failed(StepFault, String),
}

/// Returns the result of a step if it keeps the contract, and its memory fits the bounds.
fn acceptable(run: &Run, prepared: &Prepared, result: StepResult) -> Result<StepResult, NotTaken> {
    let Prepared {
        agent,
        intake,
        role,
        ..
    } = prepared;
    check(run, intake, &result)
        .map_err(|no| no.0)
        .and_then(|()| {
            can_be_remembered(&agent.agent, &run.started.user_id, *role, &result.effects)
        })
        .map(|()| result)
        .map_err(|complaint| NotTaken::Failed(StepFault::Refused, complaint))
}

/// Checks that a step's memory changes fit the agent's bounds, in a run for a user in this role.
fn can_be_remembered(
    agent: &Agent,
    user: &UserId,
    role: Option<AgentRole>,
    effects: &[Effect],
) -> Result<(), String> {
    let mut of_all = Map::new();
    let mut of_user = Map::new();
    for effect in effects {
        let (keys, of) = match effect {
            Effect::Prefer {
                preferences: Value::Object(keys),
            } => (keys, of_whom(role, true)),
            Effect::PreferForUser {
                preferences: Value::Object(keys),
            } => (keys, of_whom(role, false)),
            _ => continue,
        };
        match of {
            Some(OfWhom::Everybody) => of_all.extend(keys.clone()),
            Some(OfWhom::User) => of_user.extend(keys.clone()),
            None => {}
        }
    }
    for (keys, of) in [(of_all, None), (of_user, Some(user))] {
        if !keys.is_empty() {
            agent
                .remembering(&keys, of)
                .map_err(|refusal| refusal.to_string())?;
        }
    }
    Ok(())
}

/// Returns the decision of a step, or the reason why there is none.
fn judged(outcome: Outcome<StepResult>) -> Result<StepResult, NotTaken> {
    let (outcome, detail) = match outcome {
        Outcome::Returned(result) => return Ok(result),
        Outcome::Busy => return Err(NotTaken::NotBegun(NotAdmitted::Busy)),
        Outcome::TooOften { wait_ms } => {
            return Err(NotTaken::NotBegun(NotAdmitted::TooOften { wait_ms }));
        }
        Outcome::Faulted { detail, .. } => (StepFault::Faulted, detail),
        Outcome::Refused { detail } => (StepFault::Refused, detail),
        Outcome::Trapped { message, .. } => (StepFault::Trapped, message),
        Outcome::OutOfMemory => (StepFault::OutOfMemory, String::new()),
        Outcome::OutOfCpu => (StepFault::OutOfCpu, String::new()),
        Outcome::TimedOut => (StepFault::TimedOut, String::new()),
    };
    Err(NotTaken::Failed(outcome, detail))
}
