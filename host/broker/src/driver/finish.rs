//! Committing a step, and ending a run: the turn joins the tree and whoever waits for it gets its reply, in one transaction.

use super::fold::snapshot;
use super::step::state_blobs;
use super::story::{story, timed_out};
use super::{Driver, Driving, Trouble, load_caller};
use crate::core::fresh;
use crate::driver::handover::Sent;
use crate::driver::late::{Late, Told};
use crate::journal::Context;
use crate::outfit::Sealed;
use domain::agent::Agent;
use domain::agent::end_session::EXPIRED;
use domain::agent::memory::{OfWhom, right_for};
use domain::event::{Event, InputAccepted, InputDead, InputsDropped, RunEnded, RunStepped};
use domain::id::{OperationId, SessionId, Stream};
use domain::message::{Message, Part};
use domain::operation::{Performer, Settlement};
use domain::run::Run;
use domain::run::decide::consequences;
use domain::run::end::{Cause, Joint, TIMED_OUT, cut_off, events, is_untrusted, reply, settlement_for_parent, slot_left, turn};
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use store::{Clash, Commit, CommitError, Expected, Guard, Key};

/// Events of a run between two snapshots of it.
const SNAPSHOT_EVENTS: u64 = 64;

/// A step that was decided and is to be committed.
pub(super) struct Plan {
    pub(super) stepped: RunStepped,
    pub(super) cause: Option<Cause>,
    /// What the run's user is to the agent, as the step saw it.
    pub(super) role: Option<domain::agent::role::Role>,
    pub(super) sent: Vec<Sent>,
    pub(super) blobs: Vec<Sealed>,
    pub(super) words: Vec<InputAccepted>,
    /// What the boundary decided about the step and what it asked for.
    pub(super) decided: Vec<Event>,
    /// That its accounts have what it draws.
    pub(super) afforded: Option<Guard>,
    pub(super) time: Timestamp,
}

/// What the end of a run has beside its cause.
struct Last {
    /// Work that the host stopped, and what it says of that; nothing when the agent itself ended the turn.
    stopped: Vec<Settlement>,
    said: Vec<Message>,
    /// Questions that were not answered in time, as the last step heard.
    timed_out: Vec<OperationId>,
}

impl Last {
    fn step(before: &Run, stepped: &Event) -> Self {
        Self { stopped: Vec::new(), said: Vec::new(), timed_out: timed_out(before, stepped) }
    }
}

/// Sessions to wake once a commit is durable.
type Wake = Vec<SessionId>;

impl Driver {
    /// Commits a step. If it would end the turn and words have arrived meanwhile, the turn goes on with them instead.
    pub(super) async fn commit_step(&mut self, plan: Plan) -> Result<(), Trouble> {
        let Some(driving) = &self.driving else { return Ok(()) };
        let holder = self.holder(&driving.run).await?;
        let stepped = Event::RunStepped(Box::new(plan.stepped.clone()));
        let mut run = driving.run.clone();
        run.advance(&stepped)?;
        let mut ends = plan.cause.is_some();
        let core = self.core.clone();
        // Until this is committed nobody deletes what it names.
        let _naming = core.naming.read().await;
        loop {
            let Some(driving) = &self.driving else { return Ok(()) };
            let (mut commit, mut wake) = self.step_commit(driving, &plan, &stepped);
            if let (true, Some(cause), true) = (ends, &plan.cause, is_fruitless(&run, plan.cause.as_ref())) {
                self.add_burial(&mut commit, &run, holder.as_ref(), cause, &driving.context(plan.time), plan.time);
            } else if let (true, Some(cause)) = (ends, &plan.cause) {
                wake.extend(self.add_end(&mut commit, &run, holder.as_ref(), cause, Last::step(&driving.run, &stepped), plan.time).await?);
                // Without another step left, words that arrived wait for the next turn: they must not make a failure of this one.
                // While a thread is compacted nothing joins it: what arrived meanwhile leads the next turn.
                let is_open = run.spent(plan.time).is_none() && run.started.compacts.is_none();
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
                let told = story(holder.as_ref(), (&driving.run, &run), &stepped, None, plan.time)?;
                told.into_iter().for_each(|event| add(&mut commit, Stream::Agent(run.started.agent), &driving.context(plan.time), event));
            }
            self.add_snapshot(&mut commit, driving, &run, ends);
            store::point("broker.commit.before");
            match self.commit(commit).await {
                Ok(committed) => {
                    // Before anything else: nobody but this driver knows that they have something to do.
                    self.wake(wake);
                    store::point("broker.commit.after");
                    let stream = Stream::Run(run.started.run);
                    let version = committed.versions.iter().find(|(there, _)| *there == stream).map_or(0, |(_, version)| *version);
                    self.committed(run, version, &plan, ends);
                    return Ok(());
                }
                Err(CommitError::Conflict(conflict)) => match conflict.clash {
                    Clash::Guard(Guard::NothingWaiting { .. }) => ends = false,
                    // Whoever waited waits no more, or too many wait in its session: look again who is to get the reply.
                    Clash::Guard(guard @ (Guard::OperationOpen { .. } | Guard::WaitingAtMost { .. }))
                        if !plan.sent.iter().any(|sent| sent.guards.contains(&guard)) => {}
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
            // A first step that is tried again hears what its run has claimed already.
            let waiting = plan.words.iter().map(|input| input.input).filter(|input| !driving.run.claimed.contains(input));
            commit.guards = waiting.map(Guard::InputWaiting).collect();
        }
        commit.guards.extend(plan.afforded.clone());
        own.push(context.event(stepped.clone()));
        own.extend(context.events(driving.beside().chain(driving.entries.iter().cloned()).chain(plan.decided.iter().cloned())));
        commit.appends.push(store::Append { stream: driving.stream(), expected: driving.expected(), events: own });
        let untrusted = is_untrusted(&driving.run);
        let effects = consequences(&driving.run, &plan.stepped.effects, plan.role, untrusted, plan.time, &mut fresh::input);
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
        let basis = plan.blobs.iter().map(|sealed| (sealed.digest, sealed.bytes.clone())).collect();
        commit.blobs = self.core.unknown_blobs(basis).into_iter().map(|(_, bytes)| bytes.to_vec()).collect();
        commit.blobs.extend(state_blobs(&plan.stepped.effects));
        commit.blobs.extend(driving.blobs());
        commit.blobs.extend(plan.sent.iter().flat_map(|sent| sent.blobs.iter().cloned()));
        let stopped = plan.stepped.stopped.iter().filter_map(|settlement| driving.run.open.get(&settlement.operation)?.operation.child());
        (commit, plan.sent.iter().map(|sent| sent.session).chain(stopped).collect())
    }

    /// Keeps the fold of a long run, so that going on with it after a restart does not begin at its beginning.
    fn add_snapshot(&self, commit: &mut Commit, driving: &Driving, run: &Run, ends: bool) {
        let stream = driving.stream();
        let own: usize = commit.appends.iter().filter(|append| append.stream == stream).map(|append| append.events.len()).sum();
        let version = driving.version + own as u64;
        if ends || version / SNAPSHOT_EVENTS == driving.version / SNAPSHOT_EVENTS {
            return;
        }
        commit.snapshots.extend(snapshot(run, version).map(|snapshot| (stream, snapshot)));
    }

    /// Adds what ends a run: its last event, the turn, the slot's event, and the reply to whoever waits.
    async fn add_end(
        &self,
        commit: &mut Commit,
        run: &Run,
        holder: Option<&Agent>,
        cause: &Cause,
        last: Last,
        time: Timestamp,
    ) -> Result<Wake, Trouble> {
        let started = &run.started;
        let Last { stopped, said, timed_out } = last;
        let context = Context::new(format!("agent:{}", started.definition), time)
            .about(started.agent, Some(started.session), Some(started.run))
            .following(started.claimed.first().copied());
        let joint = match started.base {
            Some(parent) => {
                let (depth, jump, _) = self.core.store.jump_for(parent).await?;
                Joint { depth, jump }
            }
            None => Joint { depth: 1, jump: None },
        };
        let node = turn(run, &said, cause, joint);
        let (ended, committed) = events(run, cause, node, stopped.clone(), said.clone(), time);
        for event in holder.map(|agent| slot_left(agent, run, cause, &timed_out, time)).unwrap_or_default() {
            add(commit, Stream::Agent(started.agent), &context, event);
        }
        add_last(commit, Stream::Run(started.run), &context, ended);
        add_last(commit, Stream::Session(started.session), &context, committed);
        if !commit.guards.iter().any(|guard| matches!(guard, Guard::Head { .. })) {
            commit.guards.push(Guard::Head { session: started.session, head: started.base, revision: started.revision });
        }
        self.add_reply(commit, run, (&said, &stopped), cause, time).await
    }

    /// A completion is addressed to (run, operation): it settles the operation if that is open, and becomes an input of the waiting session
    /// if it is not, or if the work was detached: that operation has its outcome already, or is about to have it. Whoever has replied to its
    /// caller itself has nothing more to tell them.
    async fn add_reply(
        &self,
        commit: &mut Commit,
        run: &Run,
        (said, stopped): (&[Message], &[Settlement]),
        cause: &Cause,
        time: Timestamp,
    ) -> Result<Wake, Trouble> {
        let Some(reply_to) = run.started.reply_to.filter(|_| !run.replied) else { return Ok(Vec::new()) };
        let Some(parent) = load_caller(&self.core.store, reply_to.run).await? else { return Ok(Vec::new()) };
        let started = &parent.started;
        let context = Context::new(format!("agent:{}", run.started.definition), time)
            .about(started.agent, Some(started.session), Some(started.run))
            .following(run.started.claimed.first().copied());
        if let Some(open) = parent.open.get(&reply_to.operation).filter(|open| matches!(open.operation.performer, Performer::Agent { .. }))
        {
            let (settlement, blobs) = settlement_for_parent(&open.operation, run, (said, stopped), cause, time).spilled();
            commit.blobs.extend(blobs);
            let event = Event::RunSettled(domain::event::RunSettled { run: reply_to.run, settled: vec![settlement] });
            commit.guards.push(Guard::OperationOpen { run: reply_to.run, operation: reply_to.operation });
            add(commit, Stream::Run(reply_to.run), &context, event);
        } else if !reply_to.attached || *cause == Cause::Replied {
            let (parts, untrusted) = (late_reply(run, said, cause), is_untrusted(run));
            let late = Late { from: run, hops: run.hops, to: &parent, parts, untrusted };
            let Told { events, blob, guard } = Box::pin(late.events(&self.core, time)).await?;
            commit.blobs.extend(blob);
            commit.guards.extend(guard);
            events.into_iter().for_each(|event| add(commit, Stream::Session(started.session), &context, event));
        }
        Ok(vec![started.session])
    }

    /// What follows once a step's commit is durable.
    fn committed(&mut self, run: Run, version: u64, plan: &Plan, ended: bool) {
        self.core.know_blobs(plan.blobs.iter().map(|sealed| sealed.digest));
        let timed = plan.stepped.started.iter().any(|operation| operation.deadline.is_some() || operation.due().is_some());
        let reminded = plan.stepped.effects.iter().any(|effect| matches!(effect, domain::step::Effect::Schedule { .. }));
        if timed || reminded {
            self.core.timers.notify_one();
        }
        let Some(driving) = &mut self.driving else { return };
        driving.version = version;
        driving.run = run;
        driving.entries.clear();
        driving.put_off.clear();
        driving.drop_what_is_settled();
        if ended {
            self.driving = None;
        }
    }

    fn wake(&self, sessions: Wake) {
        sessions.into_iter().for_each(|session| self.core.wake_soon(session));
    }

    /// Ends the open run as its agent had decided, when the words for which it went on were taken back and nothing else is left to do. True
    /// when it did.
    pub(super) async fn end_as_held(&mut self) -> Result<bool, Trouble> {
        let Some(driving) = self.driving.as_ref().filter(|driving| driving.busy.is_empty()) else { return Ok(false) };
        let Some(cause) = driving.run.held.as_ref().and_then(Cause::of) else { return Ok(false) };
        let time = self.core.now();
        let holder = self.holder(&driving.run).await?;
        let mut commit = Commit::new().guard(Guard::NothingWaiting {
            session: self.session,
            user: Some(driving.run.started.user_id.clone()),
            now: time,
            except: Vec::new(),
        });
        let entries = driving.context(time).events(driving.entries.iter().cloned());
        commit.appends.push(store::Append { stream: driving.stream(), expected: driving.expected(), events: entries });
        let last = Last { stopped: Vec::new(), said: Vec::new(), timed_out: Vec::new() };
        let wake = self.add_end(&mut commit, &driving.run, holder.as_ref(), &cause, last, time).await?;
        self.commit(commit).await?;
        self.wake(wake);
        self.driving = None;
        Ok(true)
    }

    /// Ends the open run without asking its agent.
    pub(super) async fn end_from_outside(&mut self, cause: Cause) -> Result<(), Trouble> {
        self.end_under(cause, None).await
    }

    /// The same under the key of whoever asked for it.
    async fn end_under(&mut self, cause: Cause, key: Option<Key>) -> Result<(), Trouble> {
        // What has come of work already counts as what it is, not as cut off.
        self.record_what_is_done().await?;
        let time = self.core.now();
        let Some(driving) = &mut self.driving else { return Ok(()) };
        driving.stop_all(time).await;
        let Some(driving) = &self.driving else { return Ok(()) };
        let run = driving.run.clone();
        let mut commit = Commit::new();
        (commit.blobs, commit.key) = (driving.blobs(), key);
        let context = driving.context(time);
        let mut wake = Vec::new();
        let entries = context.events(driving.entries.iter().cloned());
        commit.appends.push(store::Append { stream: driving.stream(), expected: driving.expected(), events: entries });
        let holder = self.holder(&run).await?;
        if run.step == 0 || is_fruitless(&run, Some(&cause)) {
            self.add_untold(&mut commit, &run, &context, time).await?;
            self.add_burial(&mut commit, &run, holder.as_ref(), &cause, &context, time);
            wake.extend(self.add_reply(&mut commit, &run, (&[], &[]), &cause, time).await?);
        } else {
            let (mut stopped, said) = cut_off(&run, &notice(&cause), time, fresh::salt());
            Box::pin(self.charge_what_is_known(driving, &mut stopped)).await?;
            wake.extend(
                self.add_end(&mut commit, &run, holder.as_ref(), &cause, Last { stopped, said, timed_out: Vec::new() }, time).await?,
            );
        }
        wake.extend(run.open.values().filter_map(|open| open.operation.child()));
        store::point("broker.end.before");
        self.commit(commit).await?;
        self.wake(wake);
        store::point("broker.end.after");
        self.driving = None;
        Ok(())
    }

    /// What a run was to tell of what was dropped, and that leaves no turn, the next one tells.
    async fn add_untold(&self, commit: &mut Commit, run: &Run, context: &Context, time: Timestamp) -> Result<(), Trouble> {
        let Some(notice) = &run.started.overflow else { return Ok(()) };
        let Some(row) = self.core.store.queue(self.session, time).await? else { return Ok(()) };
        // More may have been dropped since the run began.
        let overflow = notice.untold().and(row.queue.overflow);
        let dropped = InputsDropped { session: self.session, inputs: Vec::new(), overflow, time };
        add(commit, Stream::Session(self.session), context, Event::InputsDropped(dropped));
        commit.guards.push(Guard::QueueUnchanged { session: self.session, seen: Box::new(row.seen) });
        Ok(())
    }

    /// A run whose first step never succeeded leaves no turn, and neither does a compaction that failed: its inputs become dead letters.
    fn add_burial(&self, commit: &mut Commit, run: &Run, holder: Option<&Agent>, cause: &Cause, context: &Context, time: Timestamp) {
        let (code, reason) = match cause {
            Cause::Failed { code, reason } => (code.clone(), reason.clone()),
            Cause::Aborted { reason } => ("aborted".to_owned(), reason.clone()),
            Cause::Replied | Cause::Completed { .. } => (String::new(), String::new()),
        };
        let started = &run.started;
        let ended = RunEnded {
            run: started.run,
            session: started.session,
            end: if matches!(cause, Cause::Aborted { .. }) { TurnEnd::Aborted } else { TurnEnd::Failed },
            code: Some(code),
            reason: Some(reason.clone()),
            turn: None,
            stopped: Vec::new(),
            said: Vec::new(),
            time,
        };
        for input in &run.claimed {
            let dead = InputDead { input: *input, session: started.session, reason: reason.clone(), time };
            add(commit, Stream::Session(started.session), context, Event::InputDead(dead));
        }
        for event in holder.map(|agent| slot_left(agent, run, cause, &[], time)).unwrap_or_default() {
            add(commit, Stream::Agent(started.agent), context, event);
        }
        add_last(commit, Stream::Run(started.run), context, Event::RunEnded(ended));
    }

    /// Why nobody wants the run's work any more: its agent was archived, or whoever handed the work over waits no more. Found from the
    /// store alone, so that it reaches a run whose host was killed in between.
    async fn unwanted(&self) -> Result<Option<&'static str>, Trouble> {
        let Some(driving) = self.driving.as_ref().filter(|driving| !driving.wanted) else { return Ok(None) };
        let started = &driving.run.started;
        // A run that begins has just looked at its agent.
        if driving.agent.is_none() && self.core.store.agent(started.agent).await?.is_some_and(|row| !row.active) {
            return Ok(Some("the agent was archived"));
        }
        let Some(reply_to) = started.reply_to.filter(|reply_to| reply_to.attached && !driving.run.replied) else { return Ok(None) };
        let waits = self.core.store.operation_owner(reply_to.operation).await?.is_some();
        Ok((!waits).then_some("the caller waits for it no more"))
    }

    /// Ends a run that has reached a limit or its deadline, or that nobody waits for any more. True when it did.
    pub(super) async fn check_limits(&mut self) -> Result<bool, Trouble> {
        let unwanted = self.unwanted().await?;
        let Some(driving) = &mut self.driving else { return Ok(false) };
        driving.wanted = unwanted.is_none();
        let run = &driving.run;
        let now = self.core.now();
        let failed = |code: &str, reason: String| Some(Cause::Failed { code: code.to_owned(), reason });
        let cause = if run.started.session_expires_at.is_some_and(|expires| expires <= now) {
            Some(Cause::Aborted { reason: EXPIRED.to_owned() })
        } else if let Some(reason) = unwanted {
            Some(Cause::Aborted { reason: reason.to_owned() })
        } else if run.started.deadline.is_some_and(|deadline| deadline <= now) {
            failed(TIMED_OUT, "it was not done by its deadline".to_owned())
        } else if self.core.catalogue.definition(&run.started.definition).is_none() {
            failed("not-configured", format!("the definition `{}` is no longer configured", run.started.definition))
        } else {
            run.spent(now).and_then(|reason| failed("limit-reached", reason))
        };
        let Some(cause) = cause else { return Ok(false) };
        self.fail(cause).await?;
        Ok(true)
    }

    /// Ends the run for a reason of the host's, also when its start is not stored yet.
    pub(super) async fn fail(&mut self, cause: Cause) -> Result<(), Trouble> {
        let opening = self.driving.as_ref().map(|driving| driving.opening.clone()).unwrap_or_default();
        self.commit_start(&opening).await?;
        self.end_from_outside(cause).await
    }

    /// Cancels the open run. False when none is open.
    pub(super) async fn abort_now(&mut self, reason: String, key: Option<Key>) -> Result<bool, Trouble> {
        self.stale = true;
        if !self.refresh().await? {
            return Ok(false);
        }
        self.end_under(Cause::Aborted { reason }, key).await?;
        Ok(true)
    }
}

/// Whether a run leaves no turn with such an end although it was stepped: a compaction that has no summary leaves its thread as it was.
fn is_fruitless(run: &Run, cause: Option<&Cause>) -> bool {
    run.started.compacts.is_some() && cause.is_some_and(|cause| *cause != Cause::Replied)
}

/// What a session is told of work that nobody waits for any more.
fn late_reply(run: &Run, said: &[Message], cause: &Cause) -> Vec<Part> {
    match cause {
        Cause::Replied => reply(run, said),
        Cause::Completed { summary } => vec![Part::text(summary.to_string())],
        Cause::Failed { .. } | Cause::Aborted { .. } => vec![Part::text(notice(cause))],
    }
}

fn notice(cause: &Cause) -> String {
    match cause {
        Cause::Failed { reason, .. } => format!("The turn failed: {reason}"),
        Cause::Aborted { reason } => format!("The turn was cancelled: {reason}"),
        Cause::Replied | Cause::Completed { .. } => String::new(),
    }
}

/// That the run's user is still to the agent what it takes for something to be remembered of whom it was decided to be.
fn still_remembered(event: &Event, run: &Run) -> Option<Guard> {
    let Event::PreferencesUpdated(updated) = event else { return None };
    let of = if updated.user_id.is_some() { OfWhom::User } else { OfWhom::Everybody };
    Some(Guard::Role { agent: updated.agent, user: run.started.user_id.clone(), right: right_for(of) })
}

/// Adds an event to a commit, behind those that its stream has in it already.
fn add(commit: &mut Commit, stream: Stream, context: &Context, event: Event) {
    let event = context.event(event);
    match commit.appends.iter_mut().find(|append| append.stream == stream) {
        Some(append) => append.events.push(event),
        None => commit.appends.push(store::Append { stream, expected: Expected::Any, events: vec![event] }),
    }
}

/// Adds an event behind everything that a commit has so far: whoever follows sees the end of a run after what came of it.
fn add_last(commit: &mut Commit, stream: Stream, context: &Context, event: Event) {
    let empty = commit.appends.iter().position(|append| append.stream == stream && append.events.is_empty());
    let expected = empty.map_or(Expected::Any, |place| commit.appends.remove(place).expected);
    commit.appends.push(store::Append { stream, expected, events: vec![context.event(event)] });
}
