//! Stepping an agent: call it with what it sees, and commit what it decides.

use super::commit::Plan;
use super::entry::{Through, entry};
use super::frozen::Frozen;
use super::{Beside, Driver, Driving, Trouble};
use crate::core::fresh;
use crate::places::{Party, Place};
use domain::agent::Agent;
use domain::agent::memory::{OfWhom, of_whom};
use domain::agent::role::Role;
use domain::authority::Rule;
use domain::digest::Digest;
use domain::event::{BoundaryDecided, Event, InputAccepted, STEP, StepFailed, Verdict};
use domain::grant::GuestLimits;
use domain::id::OperationId;
use domain::limits::STEP_ATTEMPTS_MAX;
use domain::operation::CallUsage;
use domain::run::decide::{Taken, check, decide};
use domain::run::end::Cause;
use domain::run::intake::{Intake, intake};
use domain::step::{Effect, StepResult};
use domain::time::Timestamp;
use domain::user::UserId;
use runtime::{Component, Decided, Described, Outcome};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use store::{AgentRow, Commit, Guard, Key};
use tokio::time::Instant;

/// How often a step is tried that the host could not do its part of: with the pauses between them for half a minute.
const FAULTED_ATTEMPTS_MAX: u32 = 10;
/// The pause after the first such attempt, in milliseconds; it doubles up to [`FAULTED_PAUSE_MS_MAX`].
const FAULTED_PAUSE_MS: u64 = 100;
/// The longest such pause, in milliseconds.
const FAULTED_PAUSE_MS_MAX: u64 = 10_000;
/// How such an attempt is recorded.
const FAULTED: &str = "faulted";
/// Why a turn ends whose outfit is nowhere any more.
const OUTFIT_GONE: &str = "the tools and settings that this turn began with are gone";
/// How an attempt is recorded that returned what is not acceptable.
const REFUSED: &str = "refused";

impl Driver {
    /// Takes the next step: the agent's, or in a run that compacts its thread the host's own. False when its place is not there yet: nothing
    /// of what the step is to see was looked at for good.
    pub(super) async fn step(&mut self, words: Vec<InputAccepted>) -> Result<bool, Trouble> {
        // Steps are bounded on their own.
        self.starting = None;
        let Some(driving) = &self.driving else { return Ok(true) };
        if driving.run.started.compacts.is_some() {
            return Box::pin(self.step_compacting()).await.map(|()| true);
        }
        let party = Party::from(&driving.run.started);
        match self.place(party) {
            Some(place) => self.step_agent(words, place).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// The place for a step, if it is there. So that whoever has much under way does not take all places before others, each waits for its
    /// turn, which it keeps whatever else happens in its session meanwhile.
    fn place(&mut self, party: Party) -> Option<Place> {
        let asked = self.ticket.take().filter(|(for_whom, _)| *for_whom == party).map(|(_, ticket)| ticket);
        match asked.unwrap_or_else(|| self.core.steps.ask(&party)).place() {
            Ok(place) => Some(place),
            Err(ticket) => {
                self.ticket = Some((party, ticket));
                None
            }
        }
    }

    /// Steps the agent once.
    async fn step_agent(&mut self, words: Vec<InputAccepted>, place: Place) -> Result<(), Trouble> {
        let begun_with = self.driving.as_mut().and_then(|driving| driving.agent.take());
        let Some(driving) = &self.driving else { return Ok(()) };
        let (now, salt) = (self.core.now(), fresh::salt());
        let agent = match begun_with {
            Some(agent) => agent,
            None => self.agent_row(driving).await?,
        };
        let agent = self.with_own(driving, agent).await?;
        let Some((component, limits)) = self.component(driving).await? else {
            let reason = format!("the component {} that this turn began with is gone", driving.run.component.short());
            return self.fail(Cause::Failed { code: "component-gone".into(), reason }).await;
        };
        let intake = self.take_in(driving, &words, salt);
        let Some(outfit) = self.core.outfits.of_run(&self.core.store, &driving.run.started).await? else {
            return self.fail(Cause::Failed { code: "outfit-gone".into(), reason: OUTFIT_GONE.into() }).await;
        };
        let own = match self.own(driving, &agent, &outfit, component.digest()).await? {
            Ok(own) => own,
            Err((code, reason)) => return self.fail(Cause::Failed { code: code.to_owned(), reason: reason.to_owned() }).await,
        };
        let (role, Frozen { basis, view, blobs }) = (own.role, self.freeze(driving, &agent, &outfit, &intake, own, now));
        store::point("broker.step.before");
        let stepped = self.core.runtime.step(&component, Arc::new(view), &intake.news, &basis, &limits).await;
        drop(place);
        store::point("broker.step.after");
        crate::guest_log::record(&driving.run.started.definition.0, &stepped.logs);
        let (usage, mut decided) = (stepped.usage, stepped.decided);
        let result = match judged(stepped.outcome) {
            Ok(result) => check(&driving.run, &intake, &result)
                .map_err(|no| no.0)
                .and_then(|()| can_be_remembered(&agent.agent, &driving.run.started.user_id, role, &result.effects))
                .map(|()| result)
                .map_err(|complaint| NotTaken::Failed(REFUSED, complaint)),
            Err(not_taken) => Err(not_taken),
        };
        let result = match result {
            Ok(result) => result,
            Err(NotTaken::Busy) => {
                self.keep_waiting(component.digest(), decided, &words).await?;
                return Err(Trouble::Busy);
            }
            Err(NotTaken::TooOften { wait_ms }) => return self.too_often(wait_ms, (component.digest(), decided), &words).await,
            Err(NotTaken::Failed(outcome, detail)) => {
                if let Some(driving) = &mut self.driving {
                    driving.waits_told.clear();
                }
                if outcome == REFUSED {
                    decided.note(STEP, Verdict::Refused, Rule::Contract, &detail);
                }
                return self.step_failed((outcome, detail), usage, (component.digest(), decided), &words).await;
            }
        };
        let now = self.core.now();
        let (cause, resolved) = (Cause::of(&result.decision), self.resolve(driving, &agent, &outfit, &intake, &result, now).await?);
        let untrusted = driving.run.is_untrusted_with(&intake);
        let taken = Taken { basis, intake, resolved: resolved.operations, answers: stepped.answers, usage, time: now, salt, result };
        let mut stepped = decide(&driving.run, taken);
        Box::pin(self.charge_what_is_known(driving, &mut stepped.stopped)).await?;
        let afforded = self.afforded(driving, &stepped.settled, &stepped.started);
        decided.decisions.extend(resolved.granted.decisions);
        let refused = resolved.refused.into_iter().map(|not_made| self.not_made(driving, not_made, component.digest(), now));
        let decided: Vec<Event> = self.step_decided(driving, component.digest(), decided, now).into_iter().chain(refused).collect();
        let stopped: Vec<OperationId> = stepped.stopped.iter().map(|settlement| settlement.operation).collect();
        let Some(driving) = &mut self.driving else { return Ok(()) };
        driving.waits_told.clear();
        driving.note_so_far(&stopped, now);
        self.commit_step(Plan { stepped, cause, role, sent: resolved.sent, blobs, words, decided, afforded, untrusted, time: now }).await
    }

    /// Has the ledger say, once for each limit and wait, that the next step is kept waiting. A run that is not stored yet is stored for it:
    /// nothing of it would remain otherwise.
    async fn keep_waiting(&mut self, code: Digest, mut decided: Decided, words: &[InputAccepted]) -> Result<(), Trouble> {
        let now = self.core.now();
        let Some(driving) = &mut self.driving else { return Ok(()) };
        decided.decisions.retain(|decision| !driving.waits_told.contains(&decision.detail));
        driving.waits_told.extend(decided.decisions.iter().map(|decision| decision.detail.clone()));
        let entry = self.driving.as_ref().and_then(|driving| self.step_decided(driving, code, decided, now));
        let (Some(driving), Some(entry)) = (&mut self.driving, entry) else { return Ok(()) };
        if driving.version > 0 {
            driving.entries.push(entry);
            return Ok(());
        }
        self.commit_start(words).await?;
        self.commit_run_event(entry, Beside::default()).await.map(drop)
    }

    /// The agent's component has been called as often as it may be: waits until it may be called again, which the ledger says.
    async fn too_often(&mut self, wait_ms: u64, (code, decided): (Digest, Decided), words: &[InputAccepted]) -> Result<(), Trouble> {
        tracing::warn!(session.id = %self.session, wait_ms, "an agent's component is called too often: it waits");
        self.keep_waiting(code, decided, words).await?;
        if let Some(driving) = &mut self.driving {
            driving.rests_until = Some(Instant::now() + Duration::from_millis(wait_ms.max(1)));
        }
        Ok(())
    }

    /// The ledger's entry for a step that this code took; none when there is nothing to tell.
    fn step_decided(&self, driving: &Driving, code: Digest, decided: Decided, time: Timestamp) -> Option<Event> {
        let Decided { decisions, left_out } = decided;
        (!decisions.is_empty()).then(|| {
            let entry = entry(&self.core, &driving.run, Through::Agent(code));
            Event::BoundaryDecided(Box::new(BoundaryDecided { decisions, left_out, time, ..entry }))
        })
    }

    pub(super) async fn agent_row(&self, driving: &Driving) -> Result<AgentRow, Trouble> {
        let id = driving.run.started.agent;
        self.core.store.agent(id).await?.ok_or_else(|| Trouble::Missing(format!("agent {id}")))
    }

    /// The agent with what it remembers of the run's user, and of nobody else.
    pub(super) async fn with_own(&self, driving: &Driving, mut agent: AgentRow) -> Result<AgentRow, Trouble> {
        let user = &driving.run.started.user_id;
        let own = self.core.store.remembered_of(agent.agent.id, user).await?;
        agent.agent.user_preferences = own.map(|keys| (user.clone(), keys)).into_iter().collect();
        Ok(agent)
    }

    /// The component that takes the next step; none when it is gone. A newer version takes over as soon as it can read the memo; until then
    /// the run stays with the version that wrote it, unless the newer one is pinned.
    async fn component(&self, driving: &Driving) -> Result<Option<(Arc<Component>, GuestLimits)>, Trouble> {
        let run = &driving.run;
        let definition = self.core.catalogue.definition(&run.started.definition).ok_or_else(|| missing_definition(driving))?;
        let current = self
            .core
            .catalogue
            .entry(&definition.component)
            .ok_or_else(|| Trouble::Missing(format!("component `{}`", definition.component)))?;
        let accepts = |format: u32| match current.component.describes() {
            Described::Agent(description) => description.memo_formats.contains(&format),
            Described::Tools(_) => false,
        };
        let limits = current.grant.limits;
        if current.component.digest() == run.component || run.memo.as_ref().is_none_or(|memo| accepts(memo.format)) {
            return Ok(Some((current.component.clone(), limits)));
        }
        if current.is_pinned {
            return Ok(None);
        }
        let kept = self.core.runtime.kept(run.component).await;
        Ok(kept.map(|kept| (kept.in_place_of(&current.component), limits)))
    }

    /// What a step is told. A run's first step claims nothing more than its start has claimed.
    pub(super) fn take_in(&self, driving: &Driving, words: &[InputAccepted], salt: domain::digest::Salt) -> Intake {
        let mut intake = intake(&driving.run, driving.settlements(), words, salt);
        if driving.run.step == 0 {
            intake.claimed.clear();
        }
        intake
    }

    /// Records that an attempt at a step failed, and ends the run when it was the last. After a fault of the host's, which may pass and is no
    /// doing of the guest's, there are more attempts, and pauses between them.
    async fn step_failed(
        &mut self,
        (outcome, detail): (&str, String),
        usage: CallUsage,
        (code, decided): (Digest, Decided),
        words: &[InputAccepted],
    ) -> Result<(), Trouble> {
        let Some(driving) = &self.driving else { return Ok(()) };
        let attempt = driving.run.failed_attempts + 1;
        tracing::warn!(
            session.id = %self.session, run.id = %driving.run.started.run, step = driving.run.step, attempt, outcome, detail,
            "an agent's step failed"
        );
        let run = driving.run.started.run;
        let beside =
            Beside { events: self.step_decided(driving, code, decided, self.core.now()).into_iter().collect(), ..Beside::default() };
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
        // To fail is no progress: an end that panics must not be tried for ever, with another attempt before each time.
        let panics = self.panics;
        self.commit_run_event(Event::StepFailed(failed), beside).await?;
        self.panics = panics;
        let faulted = outcome == FAULTED;
        if attempt < if faulted { FAULTED_ATTEMPTS_MAX } else { STEP_ATTEMPTS_MAX } {
            if let Some(driving) = self.driving.as_mut().filter(|_| faulted) {
                driving.rests_until = Some(Instant::now() + Duration::from_millis(faulted_pause_ms(attempt)));
            }
            return Ok(());
        }
        let reason = if detail.is_empty() { outcome.to_owned() } else { format!("{outcome}: {detail}") };
        self.end_from_outside(Cause::Failed { code: "step-failed".into(), reason }).await
    }

    /// Commits a run's start alone, when its first step did not come to a commit of its own.
    pub(super) async fn commit_start(&mut self, words: &[InputAccepted]) -> Result<(), Trouble> {
        self.commit_start_under(words, Vec::new(), None).await
    }

    /// The same under further guards, and under the key of whoever asked for the run.
    pub(super) async fn commit_start_under(
        &mut self,
        words: &[InputAccepted],
        guards: Vec<Guard>,
        key: Option<Key>,
    ) -> Result<(), Trouble> {
        let Some(driving) = self.driving.as_ref().filter(|driving| driving.version == 0) else { return Ok(()) };
        let context = driving.context(self.core.now());
        let started = Event::RunStarted(Box::new(driving.run.started.clone()));
        let mut commit = Commit::new().append(driving.stream(), driving.expected(), vec![context.event(started)]);
        commit.guards = driving.start_guards(words);
        commit.guards.extend(guards);
        commit.key = key;
        // A start names its outfit and what overrides it, which must be found when the configuration has changed by the next attempt.
        let outfit = self.core.outfits.of(&driving.run.started.definition);
        let sealed = outfit.iter().flat_map(|outfit| outfit.sealed()).chain(driving.overrides.clone());
        commit.blobs = sealed.map(|sealed| sealed.bytes.to_vec()).collect();
        self.commit(commit).await?;
        if let Some(driving) = &mut self.driving {
            driving.version = 1;
        }
        Ok(())
    }
}

impl Driving {
    /// What must be so for this run to begin.
    pub(super) fn start_guards(&self, words: &[InputAccepted]) -> Vec<Guard> {
        let started = &self.run.started;
        let session = started.session;
        let mut guards = vec![
            Guard::SessionOpen(session),
            Guard::NoOpenRun(session),
            Guard::Head { session, head: started.base, revision: started.revision },
        ];
        guards.extend(words.iter().map(|input| Guard::InputWaiting(input.input)));
        // Of what is dropped meanwhile the next turn tells, with these.
        guards.extend(self.begins_under.clone());
        guards.extend(started.overflow.iter().map(|notice| Guard::Untold { session, notice: Some(notice.clone()) }));
        guards
    }
}

/// Why a step was not taken.
enum NotTaken {
    /// Nothing of it ran: the runtime has no free place.
    Busy,
    /// Nothing of it ran: the component is called too often.
    TooOften { wait_ms: u64 },
    /// It failed: how, with details.
    Failed(&'static str, String),
}

/// Whether an agent has room for what a step wants to remember, in a run for a user in a role.
fn can_be_remembered(agent: &Agent, user: &UserId, role: Option<Role>, effects: &[Effect]) -> Result<(), String> {
    let (mut of_all, mut of_user) = (Map::new(), Map::new());
    for effect in effects {
        let (keys, of) = match effect {
            Effect::Prefer { preferences: Value::Object(keys) } => (keys, of_whom(role, true)),
            Effect::PreferForUser { preferences: Value::Object(keys) } => (keys, of_whom(role, false)),
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
            agent.remembering(&keys, of).map_err(|refusal| refusal.to_string())?;
        }
    }
    Ok(())
}

/// What a step decided.
fn judged(outcome: Outcome<StepResult>) -> Result<StepResult, NotTaken> {
    let (outcome, detail) = match outcome {
        Outcome::Returned(result) => return Ok(result),
        Outcome::Busy => return Err(NotTaken::Busy),
        Outcome::TooOften { wait_ms } => return Err(NotTaken::TooOften { wait_ms }),
        Outcome::Faulted { detail } => (FAULTED, detail),
        Outcome::Refused { detail } => (REFUSED, detail),
        Outcome::Trapped { message, .. } => ("trapped", message),
        Outcome::OutOfMemory => ("out_of_memory", String::new()),
        Outcome::OutOfCpu => ("out_of_cpu", String::new()),
        Outcome::TimedOut => ("timed_out", String::new()),
    };
    Err(NotTaken::Failed(outcome, detail))
}

/// The pause after an attempt, counted from 1, that the host could not do its part of.
fn faulted_pause_ms(attempt: u32) -> u64 {
    FAULTED_PAUSE_MS.saturating_mul(1 << (attempt - 1).min(16)).min(FAULTED_PAUSE_MS_MAX)
}

fn missing_definition(driving: &Driving) -> Trouble {
    Trouble::Missing(format!("definition `{}`", driving.run.started.definition))
}

/// The session states that a decision's effects leave, to be stored as blobs.
pub(super) fn state_blobs(result: &[Effect]) -> Vec<Vec<u8>> {
    result
        .iter()
        .filter_map(|effect| match effect {
            Effect::SessionState { state } => Some(state.to_string().into_bytes()),
            _ => None,
        })
        .collect()
}
