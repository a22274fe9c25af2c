//! The commit of a step: all that it decided, and the end of its run if it ends that, in one
//! transaction.

use super::context::SessionContext;
use super::driving::Driving;
use super::end::{Last, Wake, is_fruitless};
use super::memory::forgets;
use super::phase::Phase;
use super::session_events::{RunChange, session_events};
use super::state::Driver;
use crate::core::fresh;
use crate::driver::handover::Sent;
use crate::purge::rewrite;
use crate::resolved_config::Sealed;
use crate::shared::DriverError;
use crate::shared::outbound_messages::add;
use crate::shared::runs::snapshot;
use domain::agent::Agent;
use domain::agent::memory::{OfWhom, right_for};
use domain::event::{Event, InputAccepted, RunStarted, RunStepped};
use domain::id::Stream;
use domain::operation::Performer;
use domain::run::Run;
use domain::run::effects::consequences;
use domain::run::end::Cause;
use domain::step::Effect;
use domain::time::Timestamp;
use store::{AgentGuard, Clash, Commit, CommitError, Expected, Guard, QueueGuard, RunGuard};

/// Number of steps of a run between two of its snapshots.
const SNAPSHOT_STEPS: u32 = 32;

/// A step that was decided but not committed yet.
pub(super) struct Plan {
    pub(super) stepped: RunStepped,
    pub(super) cause: Option<Cause>,
    /// The role of the run's user with the agent, as the step saw it.
    pub(super) role: Option<domain::role::AgentRole>,
    pub(super) sent: Vec<Sent>,
    pub(super) blobs: Vec<Sealed>,
    pub(super) words: Vec<InputAccepted>,
    /// The ledger's entries about the step and its requests.
    pub(super) decided: Vec<Event>,
    /// The guard that the run's accounts can cover the step.
    pub(super) afforded: Option<Guard>,
    /// True if the output of the step depends on content from outside.
    pub(super) untrusted: bool,
    pub(super) time: Timestamp,
}

impl Plan {
    /// Gives the step the ledger's entries that go into its commit.
    fn take_entries(&mut self, driving: &Driving) {
        let waiting = driving.extras().chain(driving.entries.iter().cloned());
        let entries = waiting.chain(self.decided.drain(..));
        self.stepped.ledger = entries.flat_map(|event| event.ledger().to_vec()).collect();
    }
}

/// The run as a step leaves it.
#[derive(Clone, Copy)]
struct After<'a> {
    run: &'a Run,
    /// The agent that holds the slot for the run.
    holder: Option<&'a Agent>,
    stepped: &'a Event,
    /// The active time that the step is charged, in milliseconds.
    active_ms: u64,
}

impl Driver {
    /// Commits a run's start alone, when its first step did not reach a commit of its own. Does
    /// nothing for a run whose start is stored.
    pub(super) async fn commit_start(&mut self) -> Result<(), DriverError> {
        self.commit_start_with(Commit::new()).await
    }

    /// Commits a run's start before its first step, with the other parts of the request for the
    /// run: guards, its key, events of other streams.
    pub(super) async fn commit_start_with(&mut self, with: Commit) -> Result<(), DriverError> {
        let Some(starting) = self.phase.beginning() else {
            return Ok(());
        };
        let driving = &starting.driving;
        let context = driving.context(self.context.core.now());
        let started = Event::RunStarted(Box::new(driving.run.started.clone()));
        let mut commit = with.append(
            driving.stream(),
            self.phase.expected(),
            vec![context.event(started)],
        );
        commit.guards.extend(starting.guards());
        // A start names its resolved config, its overrides and its sections. They must be found
        // even if the configuration has changed by the next attempt.
        let served = self.context.core.serving.of_run(&driving.run.started);
        let config = served.resolved_configs.begun_with(&driving.run.started);
        let sealed = config
            .iter()
            .flat_map(|config| config.sealed())
            .chain(starting.overrides.clone())
            .chain(starting.sections.clone());
        commit
            .blobs
            .extend(sealed.map(|sealed| sealed.bytes.to_vec()));
        self.commit(commit).await?;
        self.phase.stored(1);
        Ok(())
    }

    /// Commits a step. If it would end the turn and messages have been accepted meanwhile, the turn
    /// continues with them.
    pub(super) async fn commit_step(&mut self, mut plan: Plan) -> Result<(), DriverError> {
        let Some(driving) = self.phase.driving() else {
            return Ok(());
        };
        let active_ms = driving.charge_active_time(
            plan.stepped
                .settled
                .iter_mut()
                .chain(&mut plan.stepped.stopped),
        );
        plan.take_entries(driving);
        let holder = self.context.holder(&driving.run).await?;
        let stepped = Event::RunStepped(Box::new(plan.stepped.clone()));
        let mut run = driving.run.clone();
        run.advance(&stepped)?;
        let mut ends = plan.cause.is_some();
        let core = self.context.core.clone();
        // Until the commit is durable, no task deletes the blobs that it names.
        let _naming = core.naming.read().await;
        loop {
            let Some(driving) = self.phase.driving() else {
                return Ok(());
            };
            let (mut commit, mut wake) = self.step_commit(driving, &plan, &stepped);
            let after = After {
                run: &run,
                holder: holder.as_ref(),
                stepped: &stepped,
                active_ms,
            };
            if ends {
                let ended = self
                    .context
                    .add_step_end(&mut commit, driving, &plan, after);
                wake.extend(ended.await?);
            } else {
                add_session_events(&mut commit, driving, plan.time, after)?;
            }
            self.add_snapshot(&mut commit, &run, ends);
            self.add_outbound_messages(&mut commit).await?;
            store::point("broker.commit.before");
            match self.commit(commit).await {
                Ok(committed) => {
                    // Before anything else: only this driver knows that these sessions have work.
                    self.context.wake(wake);
                    store::point("broker.commit.after");
                    let stream = Stream::Run(run.started.run);
                    let version = committed
                        .versions
                        .iter()
                        .find(|(there, _)| *there == stream)
                        .map_or(0, |(_, version)| *version);
                    self.committed(run, version, &plan, ends).await;
                    return Ok(());
                }
                Err(CommitError::Conflict(conflict)) => match conflict.clash {
                    Clash::Guard(Guard::Queue(QueueGuard::NothingWaiting { .. })) => ends = false,
                    // The caller no longer waits, or too many inputs wait in its session: determine
                    // the recipient of the reply again.
                    Clash::Guard(
                        guard @ (Guard::Run(RunGuard::OperationOpen { .. })
                        | Guard::Queue(QueueGuard::WaitingAtMost { .. })),
                    ) if !plan.sent.iter().any(|sent| sent.guards.contains(&guard)) => {}
                    _ => return Err(CommitError::Conflict(conflict).into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn step_commit(&self, driving: &Driving, plan: &Plan, stepped: &Event) -> (Commit, Wake) {
        let context = driving.context(plan.time);
        let mut commit = Commit::new();
        let first = if let Some(starting) = self.phase.beginning() {
            commit.guards = starting.guards();
            Event::RunStarted(Box::new(RunStarted {
                first_step: Some(Box::new(plan.stepped.clone())),
                ..driving.run.started.clone()
            }))
        } else {
            // A first step that is tried again hears inputs that its run has claimed already.
            let waiting = plan
                .words
                .iter()
                .map(|input| input.input)
                .filter(|input| !driving.run.claimed.contains(input));
            commit.guards = waiting
                .map(QueueGuard::InputWaiting)
                .map(Guard::from)
                .collect();
            stepped.clone()
        };
        commit.guards.extend(plan.afforded.clone());
        let written = driving.extras().filter(|event| event.ledger().is_empty());
        let own = context.events(std::iter::once(first).chain(written));
        commit = commit.append(driving.stream(), self.phase.expected(), own);
        add_effects(&mut commit, driving, plan);
        commit.blobs = self.step_blobs(driving, plan);
        let stopped = plan.stepped.stopped.iter().filter_map(|settlement| {
            driving
                .run
                .open
                .get(&settlement.operation)?
                .operation
                .child()
        });
        let sent = plan.sent.iter().map(|sent| sent.session);
        (commit, sent.chain(stopped).collect())
    }

    /// Returns the blobs that a step's commit brings along.
    fn step_blobs(&self, driving: &Driving, plan: &Plan) -> Vec<Vec<u8>> {
        let basis = plan
            .blobs
            .iter()
            .map(|sealed| (sealed.digest, sealed.bytes.clone()))
            .collect();
        let unknown = self.context.core.unknown_blobs(basis);
        unknown
            .into_iter()
            .map(|(_, bytes)| bytes.to_vec())
            .chain(state_blobs(&plan.stepped.effects))
            .chain(driving.blobs())
            .chain(plan.sent.iter().flat_map(|sent| sent.blobs.iter().cloned()))
            .collect()
    }

    /// Adds a snapshot of a long run, so that a restart does not fold it from its beginning.
    fn add_snapshot(&self, commit: &mut Commit, run: &Run, ends: bool) {
        if ends || !run.step.is_multiple_of(SNAPSHOT_STEPS) {
            return;
        }
        let stream = Stream::Run(run.started.run);
        let before = match &self.phase {
            Phase::Running(running) => running.version,
            Phase::Unknown | Phase::Idle(_) | Phase::Starting(_) => 0,
        };
        let own: usize = commit
            .appends
            .iter()
            .filter(|append| append.stream == stream)
            .map(|append| append.events.len())
            .sum();
        let version = before + own as u64;
        commit
            .snapshots
            .extend(snapshot(run, version).map(|snapshot| (stream, snapshot)));
    }

    /// Takes note of a step whose commit is durable.
    async fn committed(&mut self, run: Run, version: u64, plan: &Plan, ended: bool) {
        self.context
            .core
            .know_blobs(plan.blobs.iter().map(|sealed| sealed.digest));
        let timed = plan.stepped.started.iter().any(|operation| {
            operation.deadline.is_some()
                || operation.due().is_some()
                || operation.approval.is_some()
        });
        let reminded = plan
            .stepped
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Schedule { .. }));
        if timed || reminded {
            self.context.core.timers.notify_one();
        }
        if forgets(&plan.sent) {
            let core = self.context.core.clone();
            self.context.core.spawn(async move { rewrite(&core).await });
        }
        if ended {
            let started = &run.started;
            if self.context.due_after(started, plan.time).is_some() {
                self.context.core.timers.notify_one();
            }
            return self.let_go().await;
        }
        let now = self.context.core.now();
        self.phase.stored(version);
        let Some(driving) = self.phase.driving_mut() else {
            return;
        };
        let outcomes = plan.stepped.settled.iter().chain(&plan.stepped.stopped);
        driving
            .stopwatch
            .recorded(outcomes.map(|outcome| outcome.active_ms).sum());
        driving.run = run;
        driving.entries.clear();
        let models = plan
            .stepped
            .started
            .iter()
            .filter(|operation| matches!(operation.performer, Performer::Model { .. }));
        driving.unsent.extend(models.map(|operation| operation.id));
        driving.stop_what_is_over(now).await;
    }
}

impl SessionContext {
    /// Adds the end of a run by its step, or its burial. Returns the sessions to wake.
    async fn add_step_end(
        &self,
        commit: &mut Commit,
        driving: &Driving,
        plan: &Plan,
        after: After<'_>,
    ) -> Result<Wake, DriverError> {
        let Some(cause) = &plan.cause else {
            return Ok(Vec::new());
        };
        let run = after.run;
        let holder = after.holder;
        if is_fruitless(run, Some(cause)) {
            let context = driving.context(plan.time);
            self.add_burial(commit, run, holder, cause, &context, plan.time);
            return Ok(Vec::new());
        }
        let last = Last::step(&driving.run, after.stepped);
        let wake = self
            .add_end(commit, run, holder, cause, last, plan.time)
            .await?;
        // Without another step left, new words wait for the next turn: they must not turn this one
        // into a failure. Nothing joins a thread that is compacted, or a turn whose replies go
        // nowhere: new words begin the next turn.
        let unrecorded_ms = driving
            .stopwatch
            .unrecorded_ms()
            .saturating_sub(after.active_ms);
        let subscribers = self
            .heard(driving.subscribers.clone(), &run.claimed)
            .await?;
        let is_open = run.exhausted_limit(unrecorded_ms).is_none()
            && run.started.compacts.is_none()
            && !subscribers.is_unheard;
        if matches!(cause, Cause::Replied | Cause::Completed { .. }) && is_open {
            let except = plan.words.iter().map(|input| input.input).collect();
            commit.guards.push(Guard::Queue(QueueGuard::NothingWaiting {
                session: self.session,
                user: Some(run.started.user_id.clone()),
                now: plan.time,
                except,
            }));
        }
        Ok(wake)
    }
}

/// Adds the events of a step's effects, and its messages to other sessions.
fn add_effects(commit: &mut Commit, driving: &Driving, plan: &Plan) {
    let context = driving.context(plan.time);
    let effects = consequences(
        &driving.run,
        &plan.stepped.effects,
        plan.role,
        plan.untrusted,
        plan.time,
        &mut fresh::input,
    );
    for (stream, event) in effects {
        commit.guards.extend(still_remembered(&event, &driving.run));
        add(commit, stream, &context, event);
    }
    add_sent(commit, &plan.sent);
}

/// Adds events of other streams, with the guards that they need.
pub(super) fn add_sent(commit: &mut Commit, sent: &[Sent]) {
    for sent in sent {
        commit.guards.extend(sent.guards.iter().cloned());
        for (stream, event) in &sent.events {
            commit.appends.push(store::Append {
                stream: *stream,
                expected: Expected::Any,
                events: vec![sent.context.event(event.clone())],
            });
        }
    }
}

/// Adds the events of the agent's own stream that go with a step.
fn add_session_events(
    commit: &mut Commit,
    driving: &Driving,
    time: Timestamp,
    after: After<'_>,
) -> Result<(), DriverError> {
    let change = RunChange {
        before: &driving.run,
        after: after.run,
    };
    for event in session_events(after.holder, change, after.stepped, None, time)? {
        let stream = Stream::Agent(after.run.started.agent);
        add(commit, stream, &driving.context(time), event);
    }
    Ok(())
}

/// Returns the guard that the run's user still has the right under which a step's memory is kept.
///
/// None for an event that changes no memory.
fn still_remembered(event: &Event, run: &Run) -> Option<Guard> {
    let Event::PreferencesUpdated(updated) = event else {
        return None;
    };
    let of = if updated.user_id.is_some() {
        OfWhom::User
    } else {
        OfWhom::Everybody
    };
    Some(Guard::Agent(AgentGuard::Role {
        agent: updated.agent,
        user: run.started.user_id.clone(),
        right: right_for(of),
    }))
}

/// Returns the session states that a step's effects leave, to be stored as blobs.
fn state_blobs(result: &[Effect]) -> Vec<Vec<u8>> {
    result
        .iter()
        .filter_map(|effect| match effect {
            Effect::SessionState { state } => Some(state.to_string().into_bytes()),
            _ => None,
        })
        .collect()
}
