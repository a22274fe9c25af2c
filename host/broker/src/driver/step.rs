//! Steps of an agent: it is called with its view, and its decision is committed.

use super::commit::Plan;
use super::entry::{Through, entry};
use super::frozen::Frozen;
use super::ticket::{Seat, StepTicket, StepTurn, step_of};
use super::{CommitExtras, Driver, DriverError, Driving};
use crate::catalogue::Entry;
use crate::core::fresh;
use domain::agent::Agent;
use domain::agent::memory::{OfWhom, of_whom};
use domain::agent::role::Role;
use domain::authority::Rule;
use domain::digest::Digest;
use domain::event::{BoundaryDecided, Event, InputAccepted, STEP, StepFailed, Verdict};
use domain::id::OperationId;
use domain::limits::STEP_ATTEMPTS_MAX;
use domain::operation::CallUsage;
use domain::run::decide::{Taken, check, decide};
use domain::run::end::Cause;
use domain::run::intake::{Intake, intake};
use domain::step::{Effect, StepResult};
use domain::time::Timestamp;
use domain::user::UserId;
use runtime::{Admission, Component, Decided, Described, NotAdmitted, Outcome, TurnedAway};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use store::{AgentRow, Commit, Guard, Key};
use tokio::time::Instant;

/// Number of attempts at a step that the host could not do its part of. With their pauses they take
/// half a minute.
const FAULTED_ATTEMPTS_MAX: u32 = 10;
/// The pause after the first such attempt, in milliseconds; it doubles up to
/// [`FAULTED_PAUSE_MS_MAX`].
const FAULTED_PAUSE_MS: u64 = 100;
/// The longest such pause, in milliseconds.
const FAULTED_PAUSE_MS_MAX: u64 = 10_000;
/// The recorded outcome of such an attempt.
const FAULTED: &str = "faulted";
/// The reason for the end of a turn whose resolved config is not stored any more.
const OUTFIT_GONE: &str = "the tools and settings that this turn began with are gone";
/// The recorded outcome of an attempt that returned something unacceptable.
const REFUSED: &str = "refused";

impl Driver {
    /// Takes the next step: the agent's, or in a run that compacts its thread the host's own. False
    /// when its turn is not there yet: nothing of what the step is to see was looked at for good.
    pub(super) async fn step(&mut self, words: Vec<InputAccepted>) -> Result<bool, DriverError> {
        // The places for steps are a limit of their own.
        self.starting = None;
        let Some(driving) = &self.driving else {
            return Ok(true);
        };
        if driving.run.started.compacts.is_some() {
            return Box::pin(self.step_compacting()).await.map(|()| true);
        }
        let entry = self.configured(driving)?;
        // Before its turn: to load what was replaced takes time, and a slot of its own.
        let Some(component) = self.component(driving, &entry).await? else {
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
        let Some(StepTurn { seat, answer }) = self.turn(party, &entry) else {
            // What is not stored yet begins anew, with what there is once its turn has come.
            self.stale |= self
                .driving
                .as_ref()
                .is_some_and(|driving| driving.version == 0);
            return Ok(false);
        };
        match answer {
            Ok(admission) => Box::pin(self.step_agent(words, &component, seat, admission)).await?,
            Err(turned_away) => {
                self.not_begun(turned_away, Some(seat), component.digest(), &words)
                    .await?
            }
        }
        Ok(true)
    }

    /// Steps the agent once. It was let in, and what it sees is read from here on.
    async fn step_agent(
        &mut self,
        words: Vec<InputAccepted>,
        component: &Component,
        seat: Seat,
        admission: Admission,
    ) -> Result<(), DriverError> {
        let begun_with = self
            .driving
            .as_mut()
            .and_then(|driving| driving.agent.take());
        let Some(driving) = &self.driving else {
            return Ok(());
        };
        let (now, salt) = (self.core.now(), fresh::salt());
        let agent = match begun_with {
            Some(agent) => agent,
            None => self.agent_row(driving).await?,
        };
        let agent = self.with_own(driving, agent).await?;
        let intake = self.take_in(driving, &words, salt);
        let Some(config) = self
            .core
            .resolved_configs
            .of_run(&self.core.store, &driving.run.started)
            .await?
        else {
            return self
                .fail(Cause::Failed {
                    code: "outfit-gone".into(),
                    reason: OUTFIT_GONE.into(),
                })
                .await;
        };
        let own = match self
            .own(driving, &agent, &config, component.digest())
            .await?
        {
            Ok(own) => own,
            Err((code, reason)) => {
                return self
                    .fail(Cause::Failed {
                        code: code.to_owned(),
                        reason: reason.to_owned(),
                    })
                    .await;
            }
        };
        let (role, Frozen { basis, view, blobs }) = (
            own.role,
            self.freeze(driving, &agent, &config, &intake, own, now),
        );
        store::point("broker.step.before");
        let stepped = self
            .core
            .runtime
            .step(admission, component, Arc::new(view), &intake.news, &basis)
            .await;
        // Whoever is next has the place, unless nothing of this step ran.
        let seat = matches!(stepped.outcome, Outcome::Busy).then_some(seat);
        store::point("broker.step.after");
        crate::guest_log::record(&driving.run.started.definition.0, &stepped.logs);
        let (usage, mut decided) = (stepped.usage, stepped.decided);
        let result = match judged(stepped.outcome) {
            Ok(result) => check(&driving.run, &intake, &result)
                .map_err(|no| no.0)
                .and_then(|()| {
                    can_be_remembered(
                        &agent.agent,
                        &driving.run.started.user_id,
                        role,
                        &result.effects,
                    )
                })
                .map(|()| result)
                .map_err(|complaint| NotTaken::Failed(REFUSED, complaint)),
            Err(not_taken) => Err(not_taken),
        };
        let result = match result {
            Ok(result) => result,
            Err(NotTaken::NotBegun(why)) => {
                return self
                    .not_begun(
                        TurnedAway { why, decided },
                        seat,
                        component.digest(),
                        &words,
                    )
                    .await;
            }
            Err(NotTaken::Failed(outcome, detail)) => {
                if let Some(driving) = &mut self.driving {
                    driving.waits_told.clear();
                }
                if outcome == REFUSED {
                    decided.note(STEP, Verdict::Refused, Rule::Contract, &detail);
                }
                return self
                    .step_failed(
                        (outcome, detail),
                        usage,
                        (component.digest(), decided),
                        &words,
                    )
                    .await;
            }
        };
        let now = self.core.now();
        let (cause, resolved) = (
            Cause::of(&result.decision),
            self.resolve(driving, &agent, &config, &intake, &result, now)
                .await?,
        );
        let untrusted = driving.run.is_untrusted_with(&intake);
        let taken = Taken {
            basis,
            intake,
            resolved: resolved.operations,
            answers: stepped.answers,
            usage,
            time: now,
            salt,
            result,
        };
        let mut stepped = decide(&driving.run, taken);
        Box::pin(self.charge_what_is_known(driving, &mut stepped.stopped)).await?;
        let afforded = self.afforded(driving, &stepped.settled, &stepped.started);
        decided.decisions.extend(resolved.granted.decisions);
        let refused = resolved
            .refused
            .into_iter()
            .map(|not_made| self.not_made(driving, not_made, component.digest(), now));
        let decided: Vec<Event> = self
            .step_decided(driving, component.digest(), decided, now)
            .into_iter()
            .chain(refused)
            .collect();
        let stopped: Vec<OperationId> = stepped
            .stopped
            .iter()
            .map(|settlement| settlement.operation)
            .collect();
        let Some(driving) = &mut self.driving else {
            return Ok(());
        };
        driving.waits_told.clear();
        driving.note_so_far(&stopped, now);
        self.commit_step(Plan {
            stepped,
            cause,
            role,
            sent: resolved.sent,
            blobs,
            words,
            decided,
            afforded,
            untrusted,
            time: now,
        })
        .await
    }

    /// Waits with a step of which nothing ran. Where there is only no room for it at the moment, it
    /// keeps its turn.
    async fn not_begun(
        &mut self,
        turned_away: TurnedAway,
        seat: Option<Seat>,
        code: Digest,
        words: &[InputAccepted],
    ) -> Result<(), DriverError> {
        let TurnedAway { why, decided } = turned_away;
        if let Some(driving) = &mut self.driving {
            // It is looked at anew by then.
            driving.agent = None;
        }
        match why {
            NotAdmitted::Busy => {
                self.ticket = seat.map(StepTicket::keeping);
                self.keep_waiting(code, decided, words).await?;
                Err(DriverError::Busy)
            }
            NotAdmitted::TooOften { wait_ms } => {
                drop(seat);
                self.too_often(wait_ms, (code, decided), words).await
            }
        }
    }

    /// Has the ledger say, once for each limit and wait, that the next step is kept waiting. A run
    /// that is not stored yet is stored for it: nothing of it would remain otherwise.
    async fn keep_waiting(
        &mut self,
        code: Digest,
        mut decided: Decided,
        words: &[InputAccepted],
    ) -> Result<(), DriverError> {
        let now = self.core.now();
        let Some(driving) = &mut self.driving else {
            return Ok(());
        };
        decided
            .decisions
            .retain(|decision| !driving.waits_told.contains(&decision.detail));
        driving.waits_told.extend(
            decided
                .decisions
                .iter()
                .map(|decision| decision.detail.clone()),
        );
        let entry = self
            .driving
            .as_ref()
            .and_then(|driving| self.step_decided(driving, code, decided, now));
        let (Some(driving), Some(entry)) = (&mut self.driving, entry) else {
            return Ok(());
        };
        if driving.version > 0 {
            driving.entries.push(entry);
            return Ok(());
        }
        self.commit_start(words).await?;
        self.commit_run_event(entry, CommitExtras::default())
            .await
            .map(drop)
    }

    /// Keeps the step waiting until the agent's component may be called again, and records that in
    /// the ledger.
    async fn too_often(
        &mut self,
        wait_ms: u64,
        (code, decided): (Digest, Decided),
        words: &[InputAccepted],
    ) -> Result<(), DriverError> {
        tracing::warn!(session.id = %self.session, wait_ms, "an agent's component is called too \
                                                             often: it waits");
        self.keep_waiting(code, decided, words).await?;
        if let Some(driving) = &mut self.driving {
            driving.rests_until = Some(Instant::now() + Duration::from_millis(wait_ms.max(1)));
        }
        Ok(())
    }

    /// Returns the ledger's entry for a step that this code took; none when there is nothing to
    /// tell.
    fn step_decided(
        &self,
        driving: &Driving,
        code: Digest,
        decided: Decided,
        time: Timestamp,
    ) -> Option<Event> {
        let Decided {
            decisions,
            left_out,
        } = decided;
        (!decisions.is_empty()).then(|| {
            let entry = entry(&self.core, &driving.run, Through::Agent(code));
            Event::BoundaryDecided(Box::new(BoundaryDecided {
                decisions,
                left_out,
                time,
                ..entry
            }))
        })
    }

    pub(super) async fn agent_row(&self, driving: &Driving) -> Result<AgentRow, DriverError> {
        let id = driving.run.started.agent;
        self.core
            .store
            .agent(id)
            .await?
            .ok_or_else(|| DriverError::Missing(format!("agent {id}")))
    }

    /// Adds the preferences of the run's user to the agent, and of no other user.
    pub(super) async fn with_own(
        &self,
        driving: &Driving,
        mut agent: AgentRow,
    ) -> Result<AgentRow, DriverError> {
        let user = &driving.run.started.user_id;
        let own = self.core.store.remembered_of(agent.agent.id, user).await?;
        agent.agent.user_preferences = own.map(|keys| (user.clone(), keys)).into_iter().collect();
        Ok(agent)
    }

    /// The component that is configured for a run's agent.
    fn configured(&self, driving: &Driving) -> Result<Arc<Entry>, DriverError> {
        let definition = self
            .core
            .catalogue
            .definition(&driving.run.started.definition)
            .ok_or_else(|| missing_definition(driving))?;
        let entry = self.core.catalogue.entry(&definition.component);
        entry
            .cloned()
            .ok_or_else(|| DriverError::Missing(format!("component `{}`", definition.component)))
    }

    /// The code that takes the next step; none when it is gone. A newer version takes over as soon
    /// as it can read the memo; until then the run stays with the version that wrote it, unless the
    /// newer one is pinned.
    async fn component(
        &self,
        driving: &Driving,
        current: &Entry,
    ) -> Result<Option<Arc<Component>>, DriverError> {
        let run = &driving.run;
        let accepts = |format: u32| match current.component.describes() {
            Described::Agent(description) => description.memo_formats.contains(&format),
            Described::Tools(_) => false,
        };
        if current.component.digest() == run.component
            || run.memo.as_ref().is_none_or(|memo| accepts(memo.format))
        {
            return Ok(Some(current.component.clone()));
        }
        if current.is_pinned {
            return Ok(None);
        }
        let kept = self.core.runtime.kept(run.component).await;
        Ok(kept.map(|kept| kept.in_place_of(&current.component)))
    }

    /// Returns what a step takes in. A first step claims nothing beyond what its run's start has
    /// claimed.
    pub(super) fn take_in(
        &self,
        driving: &Driving,
        words: &[InputAccepted],
        salt: domain::digest::Salt,
    ) -> Intake {
        let mut intake = intake(&driving.run, driving.settlements(), words, salt);
        if driving.run.step == 0 {
            intake.claimed.clear();
        }
        intake
    }

    /// Records that an attempt at a step failed, and ends the run after the last one.
    ///
    /// A fault of the host's may pass and is not the guest's doing. So there are more attempts
    /// after it, and pauses between them.
    async fn step_failed(
        &mut self,
        (outcome, detail): (&str, String),
        usage: CallUsage,
        (code, decided): (Digest, Decided),
        words: &[InputAccepted],
    ) -> Result<(), DriverError> {
        let Some(driving) = &self.driving else {
            return Ok(());
        };
        let attempt = driving.run.failed_attempts + 1;
        tracing::warn!(
            session.id = %self.session, run.id = %driving.run.started.run, step = driving.run.step, attempt, outcome, detail,
            "an agent's step failed"
        );
        let run = driving.run.started.run;
        let extras = CommitExtras {
            events: self
                .step_decided(driving, code, decided, self.core.now())
                .into_iter()
                .collect(),
            ..CommitExtras::default()
        };
        let failed = StepFailed {
            run,
            step: driving.run.step,
            attempt,
            outcome: outcome.to_owned(),
            detail: detail.clone(),
            usage,
            time: self.core.now(),
        };
        self.commit_start(words).await?;
        // A failure is no progress: an end that panics must not be tried for ever, with an attempt
        // before each time.
        let failures = self.failures;
        self.commit_run_event(Event::StepFailed(failed), extras)
            .await?;
        self.failures = failures;
        let faulted = outcome == FAULTED;
        if attempt
            < if faulted {
                FAULTED_ATTEMPTS_MAX
            } else {
                STEP_ATTEMPTS_MAX
            }
        {
            if let Some(driving) = self.driving.as_mut().filter(|_| faulted) {
                driving.rests_until =
                    Some(Instant::now() + Duration::from_millis(faulted_pause_ms(attempt)));
            }
            return Ok(());
        }
        let reason = if detail.is_empty() {
            outcome.to_owned()
        } else {
            format!("{outcome}: {detail}")
        };
        self.end_from_outside(Cause::Failed {
            code: "step-failed".into(),
            reason,
        })
        .await
    }

    /// Commits a run's start alone, when its first step did not come to a commit of its own.
    pub(super) async fn commit_start(
        &mut self,
        words: &[InputAccepted],
    ) -> Result<(), DriverError> {
        self.commit_start_under(words, Vec::new(), None).await
    }

    /// Commits a run's start alone, under further guards and the key of the request for the run.
    pub(super) async fn commit_start_under(
        &mut self,
        words: &[InputAccepted],
        guards: Vec<Guard>,
        key: Option<Key>,
    ) -> Result<(), DriverError> {
        let Some(driving) = self.driving.as_ref().filter(|driving| driving.version == 0) else {
            return Ok(());
        };
        let context = driving.context(self.core.now());
        let started = Event::RunStarted(Box::new(driving.run.started.clone()));
        let mut commit = Commit::new().append(
            driving.stream(),
            driving.expected(),
            vec![context.event(started)],
        );
        commit.guards = driving.start_guards(words);
        commit.guards.extend(guards);
        commit.key = key;
        // A start names its resolved config and its overrides. They must be found even if the
        // configuration has changed by the next attempt.
        let config = self
            .core
            .resolved_configs
            .of(&driving.run.started.definition);
        let sealed = config
            .iter()
            .flat_map(|config| config.sealed())
            .chain(driving.overrides.clone());
        commit.blobs = sealed.map(|sealed| sealed.bytes.to_vec()).collect();
        self.commit(commit).await?;
        if let Some(driving) = &mut self.driving {
            driving.version = 1;
        }
        Ok(())
    }
}

impl Driving {
    /// Returns the guards for the run's start.
    pub(super) fn start_guards(&self, words: &[InputAccepted]) -> Vec<Guard> {
        let started = &self.run.started;
        let session = started.session;
        let mut guards = vec![
            Guard::SessionOpen(session),
            Guard::NoOpenRun(session),
            Guard::Head {
                session,
                head: started.base,
                revision: started.revision,
            },
        ];
        guards.extend(words.iter().map(|input| Guard::InputWaiting(input.input)));
        // The next turn tells of inputs that are dropped meanwhile, together with these.
        guards.extend(self.begins_under.clone());
        guards.extend(started.overflow.iter().map(|notice| Guard::Untold {
            session,
            notice: Some(notice.clone()),
        }));
        guards
    }
}

/// The reason why a step was not taken.
enum NotTaken {
    /// Nothing of it ran.
    NotBegun(NotAdmitted),
    /// It failed: how, with details.
    Failed(&'static str, String),
}

/// Checks that an agent has room for what a step wants to remember, in a run for a user in this
/// role.
fn can_be_remembered(
    agent: &Agent,
    user: &UserId,
    role: Option<Role>,
    effects: &[Effect],
) -> Result<(), String> {
    let (mut of_all, mut of_user) = (Map::new(), Map::new());
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
        Outcome::Faulted { detail } => (FAULTED, detail),
        Outcome::Refused { detail } => (REFUSED, detail),
        Outcome::Trapped { message, .. } => ("trapped", message),
        Outcome::OutOfMemory => ("out_of_memory", String::new()),
        Outcome::OutOfCpu => ("out_of_cpu", String::new()),
        Outcome::TimedOut => ("timed_out", String::new()),
    };
    Err(NotTaken::Failed(outcome, detail))
}

/// Returns the pause after an attempt, counted from 1, that the host could not do its part of.
fn faulted_pause_ms(attempt: u32) -> u64 {
    FAULTED_PAUSE_MS
        .saturating_mul(1 << (attempt - 1).min(16))
        .min(FAULTED_PAUSE_MS_MAX)
}

fn missing_definition(driving: &Driving) -> DriverError {
    DriverError::Missing(format!("definition `{}`", driving.run.started.definition))
}

/// Returns the session states that a step's effects leave, to be stored as blobs.
pub(super) fn state_blobs(result: &[Effect]) -> Vec<Vec<u8>> {
    result
        .iter()
        .filter_map(|effect| match effect {
            Effect::SessionState { state } => Some(state.to_string().into_bytes()),
            _ => None,
        })
        .collect()
}
