//! The commit of a step: all that it decided, and the end of its run if it ends that, in one
//! transaction.

use super::end::{Last, is_fruitless};
use super::fold::snapshot;
use super::session_events::session_events;
use super::step::state_blobs;
use super::{Driver, DriverError, Driving};
use crate::core::fresh;
use crate::driver::handover::Sent;
use crate::journal::Context;
use crate::resolved_config::Sealed;
use domain::agent::memory::{OfWhom, right_for};
use domain::event::{Event, InputAccepted, RunStepped};
use domain::id::{SessionId, Stream};
use domain::operation::Performer;
use domain::run::Run;
use domain::run::decide::consequences;
use domain::run::end::Cause;
use domain::time::Timestamp;
use store::{Clash, Commit, CommitError, Expected, Guard};

/// Number of events of a run between two of its snapshots.
const SNAPSHOT_EVENTS: u64 = 64;

/// A step that was decided and is to be committed.
pub(super) struct Plan {
    pub(super) stepped: RunStepped,
    pub(super) cause: Option<Cause>,
    /// The role of the run's user with the agent, as the step saw it.
    pub(super) role: Option<domain::agent::role::Role>,
    pub(super) sent: Vec<Sent>,
    pub(super) blobs: Vec<Sealed>,
    pub(super) words: Vec<InputAccepted>,
    /// The boundary's decisions about the step and its requests.
    pub(super) decided: Vec<Event>,
    /// The guard that the run's accounts have what the step draws.
    pub(super) afforded: Option<Guard>,
    /// True if what leaves the step rests on content from outside.
    pub(super) untrusted: bool,
    pub(super) time: Timestamp,
}

/// The sessions to wake once a commit is durable.
pub(super) type Wake = Vec<SessionId>;

impl Driver {
    /// Commits a step. If it would end the turn and words have arrived meanwhile, the turn goes on
    /// with them.
    pub(super) async fn commit_step(&mut self, mut plan: Plan) -> Result<(), DriverError> {
        let Some(driving) = &self.driving else {
            return Ok(());
        };
        let active_ms = driving.charge_active_time(
            plan.stepped
                .settled
                .iter_mut()
                .chain(&mut plan.stepped.stopped),
        );
        let holder = self.holder(&driving.run).await?;
        let stepped = Event::RunStepped(Box::new(plan.stepped.clone()));
        let mut run = driving.run.clone();
        run.advance(&stepped)?;
        let mut ends = plan.cause.is_some();
        let core = self.core.clone();
        // Until the commit is durable, nobody deletes the blobs that it names.
        let _naming = core.naming.read().await;
        loop {
            let Some(driving) = &self.driving else {
                return Ok(());
            };
            let (mut commit, mut wake) = self.step_commit(driving, &plan, &stepped);
            if let (true, Some(cause), true) =
                (ends, &plan.cause, is_fruitless(&run, plan.cause.as_ref()))
            {
                self.add_burial(
                    &mut commit,
                    &run,
                    holder.as_ref(),
                    cause,
                    &driving.context(plan.time),
                    plan.time,
                );
            } else if let (true, Some(cause)) = (ends, &plan.cause) {
                wake.extend(
                    self.add_end(
                        &mut commit,
                        &run,
                        holder.as_ref(),
                        cause,
                        Last::step(&driving.run, &stepped),
                        plan.time,
                    )
                    .await?,
                );
                // Without another step left, arrived words wait for the next turn: they must not
                // turn this one into a failure. While a thread is compacted, nothing joins it:
                // arrived words lead the next turn.
                let unrecorded_ms = driving.stopwatch.unrecorded_ms().saturating_sub(active_ms);
                let is_open = run.spent(unrecorded_ms).is_none() && run.started.compacts.is_none();
                if matches!(cause, Cause::Replied | Cause::Completed { .. }) && is_open {
                    let except = plan.words.iter().map(|input| input.input).collect();
                    commit.guards.push(Guard::NothingWaiting {
                        session: self.session,
                        user: Some(run.started.user_id.clone()),
                        now: plan.time,
                        except,
                    });
                }
            }
            if !ends {
                let told = session_events(
                    holder.as_ref(),
                    (&driving.run, &run),
                    &stepped,
                    None,
                    plan.time,
                )?;
                told.into_iter().for_each(|event| {
                    add(
                        &mut commit,
                        Stream::Agent(run.started.agent),
                        &driving.context(plan.time),
                        event,
                    )
                });
            }
            self.add_snapshot(&mut commit, driving, &run, ends);
            store::point("broker.commit.before");
            match self.commit(commit).await {
                Ok(committed) => {
                    // Before anything else: only this driver knows that these sessions have
                    // something to do.
                    self.wake(wake);
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
                    Clash::Guard(Guard::NothingWaiting { .. }) => ends = false,
                    // The caller waits no more, or too many inputs wait in its session: look again
                    // for who gets the reply.
                    Clash::Guard(
                        guard @ (Guard::OperationOpen { .. } | Guard::WaitingAtMost { .. }),
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
        let mut own = Vec::new();
        if driving.version == 0 {
            own.push(context.event(Event::RunStarted(Box::new(driving.run.started.clone()))));
            commit.guards = driving.start_guards(&plan.words);
        } else {
            // A first step that is tried again hears inputs that its run has claimed already.
            let waiting = plan
                .words
                .iter()
                .map(|input| input.input)
                .filter(|input| !driving.run.claimed.contains(input));
            commit.guards = waiting.map(Guard::InputWaiting).collect();
        }
        commit.guards.extend(plan.afforded.clone());
        own.push(context.event(stepped.clone()));
        own.extend(
            context.events(
                driving
                    .extras()
                    .chain(driving.entries.iter().cloned())
                    .chain(plan.decided.iter().cloned()),
            ),
        );
        commit.appends.push(store::Append {
            stream: driving.stream(),
            expected: driving.expected(),
            events: own,
        });
        let untrusted = plan.untrusted;
        let effects = consequences(
            &driving.run,
            &plan.stepped.effects,
            plan.role,
            untrusted,
            plan.time,
            &mut fresh::input,
        );
        for (stream, event) in effects {
            commit.guards.extend(still_remembered(&event, &driving.run));
            add(&mut commit, stream, &context, event);
        }
        for sent in &plan.sent {
            commit.guards.extend(sent.guards.iter().cloned());
            for (stream, event) in &sent.events {
                commit.appends.push(store::Append {
                    stream: *stream,
                    expected: Expected::Any,
                    events: vec![sent.context.event(event.clone())],
                });
            }
        }
        let basis = plan
            .blobs
            .iter()
            .map(|sealed| (sealed.digest, sealed.bytes.clone()))
            .collect();
        commit.blobs = self
            .core
            .unknown_blobs(basis)
            .into_iter()
            .map(|(_, bytes)| bytes.to_vec())
            .collect();
        commit.blobs.extend(state_blobs(&plan.stepped.effects));
        commit.blobs.extend(driving.blobs());
        commit
            .blobs
            .extend(plan.sent.iter().flat_map(|sent| sent.blobs.iter().cloned()));
        let stopped = plan.stepped.stopped.iter().filter_map(|settlement| {
            driving
                .run
                .open
                .get(&settlement.operation)?
                .operation
                .child()
        });
        (
            commit,
            plan.sent
                .iter()
                .map(|sent| sent.session)
                .chain(stopped)
                .collect(),
        )
    }

    /// Adds a snapshot of a long run, so that a restart does not fold it from its beginning.
    fn add_snapshot(&self, commit: &mut Commit, driving: &Driving, run: &Run, ends: bool) {
        let stream = driving.stream();
        let own: usize = commit
            .appends
            .iter()
            .filter(|append| append.stream == stream)
            .map(|append| append.events.len())
            .sum();
        let version = driving.version + own as u64;
        if ends || version / SNAPSHOT_EVENTS == driving.version / SNAPSHOT_EVENTS {
            return;
        }
        commit
            .snapshots
            .extend(snapshot(run, version).map(|snapshot| (stream, snapshot)));
    }

    /// Takes note of a step whose commit is durable.
    async fn committed(&mut self, run: Run, version: u64, plan: &Plan, ended: bool) {
        self.core
            .know_blobs(plan.blobs.iter().map(|sealed| sealed.digest));
        let timed = plan
            .stepped
            .started
            .iter()
            .any(|operation| operation.deadline.is_some() || operation.due().is_some());
        let reminded = plan
            .stepped
            .effects
            .iter()
            .any(|effect| matches!(effect, domain::step::Effect::Schedule { .. }));
        if timed || reminded {
            self.core.timers.notify_one();
        }
        if ended {
            return self.let_go().await;
        }
        let now = self.core.now();
        let Some(driving) = &mut self.driving else {
            return;
        };
        let outcomes = plan.stepped.settled.iter().chain(&plan.stepped.stopped);
        driving
            .stopwatch
            .recorded(outcomes.map(|outcome| outcome.active_ms).sum());
        driving.version = version;
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

    pub(super) fn wake(&self, sessions: Wake) {
        sessions
            .into_iter()
            .for_each(|session| self.core.wake(session));
    }
}

/// Returns the guard that the run's user still has the right under which a step's memory is kept.
///
/// None for an event that is no memory.
fn still_remembered(event: &Event, run: &Run) -> Option<Guard> {
    let Event::PreferencesUpdated(updated) = event else {
        return None;
    };
    let of = if updated.user_id.is_some() {
        OfWhom::User
    } else {
        OfWhom::Everybody
    };
    Some(Guard::Role {
        agent: updated.agent,
        user: run.started.user_id.clone(),
        right: right_for(of),
    })
}

/// Adds an event to a commit, behind those that its stream has in it already.
pub(super) fn add(commit: &mut Commit, stream: Stream, context: &Context, event: Event) {
    let event = context.event(event);
    match commit
        .appends
        .iter_mut()
        .find(|append| append.stream == stream)
    {
        Some(append) => append.events.push(event),
        None => commit.appends.push(store::Append {
            stream,
            expected: Expected::Any,
            events: vec![event],
        }),
    }
}
