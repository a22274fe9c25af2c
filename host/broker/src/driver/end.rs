//! The end of a run: the turn joins the tree, and its caller gets the reply, in one transaction.
//!
//! A run that leaves no turn is buried.

use super::context::SessionContext;
use super::phase::Phase;
use super::session_events::timed_out;
use super::state::Driver;
use crate::core::fresh;
use crate::driver::late_replies::{Late, LateReplyParts};
use crate::journal::Context;
use crate::shared::DriverError;
use crate::shared::outbound_messages::add;
use crate::shared::runs::load_caller;
use domain::agent::Agent;
use domain::delegate::Hit;
use domain::event::{Event, InputsDropped, RunEnded};
use domain::id::{OperationId, SessionId, Stream};
use domain::message::{Message, Part, text_of};
use domain::operation::{Performer, Settlement};
use domain::run::Run;
use domain::run::end::{
    Cause, Closing, Joint, cut_off, events, reply, settlement_for_parent, slot_left, turn,
};
use domain::run::recover::{put_aside, why_given_up};
use domain::step::{News, OperationOutcome};
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use store::{Commit, Expected, Guard, QueueGuard, RunGuard, SessionGuard};

/// The sessions to wake once a commit is durable.
pub(super) type Wake = Vec<SessionId>;

/// The facts about the end of a run in addition to its cause.
#[derive(Default)]
pub(super) struct Last {
    /// Work that the host stopped, and the host's notice about it. Empty when the agent ended the
    /// turn.
    stopped: Vec<Settlement>,
    said: Vec<Message>,
    /// Questions that were not answered in time, as the last step heard.
    timed_out: Vec<OperationId>,
    /// The news of the last step; empty when the host ended the turn.
    heard: Vec<News>,
}

impl Last {
    pub(super) fn step(before: &Run, stepped: &Event) -> Self {
        let heard = match stepped {
            Event::RunStepped(stepped) => stepped.news.clone(),
            _ => Vec::new(),
        };
        Self {
            timed_out: timed_out(before, stepped),
            heard,
            ..Self::default()
        }
    }
}

impl Driver {
    /// Ends the open run as its agent had decided. Returns whether it did.
    ///
    /// This happens when the messages for which the run continued were withdrawn, and no other work
    /// is left.
    pub(super) async fn end_as_deferred(&mut self) -> Result<bool, DriverError> {
        let Some(driving) = self
            .phase
            .driving()
            .filter(|driving| driving.busy.is_empty())
        else {
            return Ok(false);
        };
        let run = &driving.run;
        let deferred = run.deferred.as_ref();
        let Some(cause) =
            deferred.and_then(|deferred| Cause::of(deferred, run.deferred_over.as_deref()))
        else {
            return Ok(false);
        };
        let time = self.context.core.now();
        let holder = self.context.holder(&driving.run).await?;
        let entries = driving
            .context(time)
            .events(driving.entries.iter().cloned());
        let mut commit = Commit::new()
            .guard(QueueGuard::NothingWaiting {
                session: self.context.session,
                user: Some(driving.run.started.user_id.clone()),
                now: time,
                except: Vec::new(),
            })
            .append(driving.stream(), self.phase.expected(), entries);
        let wake = self
            .context
            .add_end(
                &mut commit,
                &driving.run,
                holder.as_ref(),
                &cause,
                Last::default(),
                time,
            )
            .await?;
        self.commit(commit).await?;
        self.context.wake(wake);
        self.phase = Phase::Unknown;
        Ok(true)
    }

    /// Ends the open run without asking its agent.
    pub(super) async fn end_from_outside(&mut self, cause: Cause) -> Result<(), DriverError> {
        self.end_with(cause, Commit::new()).await
    }

    /// Ends the open run without asking its agent, in one commit with the caller's events.
    pub(super) async fn end_with(&mut self, cause: Cause, with: Commit) -> Result<(), DriverError> {
        // Work that already has an outcome counts with the outcome, not as cut off.
        self.record_what_is_done().await?;
        let time = self.context.core.now();
        let Some(driving) = self.phase.driving_mut() else {
            return Ok(());
        };
        let all: Vec<OperationId> = driving.busy.keys().copied().collect();
        driving.note_so_far(&all, time);
        let Some(driving) = self.phase.driving() else {
            return Ok(());
        };
        let run = driving.run.clone();
        let context = driving.context(time);
        let entries = context.events(driving.entries.iter().cloned());
        let mut commit = with.append(driving.stream(), self.phase.expected(), entries);
        commit.blobs.extend(driving.blobs());
        let mut wake = Vec::new();
        let holder = self.context.holder(&run).await?;
        if run.step == 0 || is_fruitless(&run, Some(&cause)) {
            self.context
                .add_untold(&mut commit, &run, &context, time)
                .await?;
            self.context
                .add_burial(&mut commit, &run, holder.as_ref(), &cause, &context, time);
            wake.extend(
                self.context
                    .add_reply(&mut commit, &run, Closing::default(), &cause, time)
                    .await?,
            );
        } else {
            // Its turn is stored, and operators find it among the dead letters too.
            if let Some(reason) = why_given_up(&cause) {
                add_dead(&mut commit, &run, reason, &context, time);
            }
            let (mut stopped, said) = cut_off(&run, &notice(&cause), time, fresh::salt());
            Box::pin(self.context.charge_what_is_known(driving, &mut stopped)).await?;
            driving.charge_active_time(&mut stopped);
            let last = Last {
                stopped,
                said,
                ..Last::default()
            };
            wake.extend(
                self.context
                    .add_end(&mut commit, &run, holder.as_ref(), &cause, last, time)
                    .await?,
            );
        }
        wake.extend(run.open.values().filter_map(|open| open.operation.child()));
        self.add_outbound_messages(&mut commit).await?;
        store::point("broker.end.before");
        self.commit(commit).await?;
        self.context.wake(wake);
        store::point("broker.end.after");
        self.let_go().await;
        Ok(())
    }
}

impl SessionContext {
    /// Adds the end of a run: its last event, the turn, the slot's event, and the reply to its
    /// caller.
    pub(super) async fn add_end(
        &self,
        commit: &mut Commit,
        run: &Run,
        holder: Option<&Agent>,
        cause: &Cause,
        last: Last,
        time: Timestamp,
    ) -> Result<Wake, DriverError> {
        let started = &run.started;
        let context = Context::of_run(started, time);
        let joint = match started.base {
            Some(parent) => {
                let (depth, jump, _) = self.store().jump_for(parent).await?;
                Joint { depth, jump }
            }
            None => Joint {
                depth: 1,
                jump: None,
            },
        };
        let stopped = last.stopped;
        let said = last.said;
        let node = turn(run, &said, cause, joint);
        let (ended, committed) = events(run, cause, node, stopped.clone(), said.clone(), time);
        for event in holder
            .map(|agent| slot_left(agent, run, cause, &last.timed_out, time))
            .unwrap_or_default()
        {
            add(commit, Stream::Agent(started.agent), &context, event);
        }
        add_last(commit, Stream::Run(started.run), &context, ended);
        add_last(
            commit,
            Stream::Session(started.session),
            &context,
            committed,
        );
        if let Some(due) = self.due_after(started, time) {
            add_last(commit, Stream::Session(started.session), &context, due);
        }
        if !commit
            .guards
            .iter()
            .any(|guard| matches!(guard, Guard::Session(SessionGuard::Head { .. })))
        {
            commit.guards.push(Guard::Session(SessionGuard::Head {
                session: started.session,
                head: started.base,
                revision: started.revision,
            }));
        }
        self.add_reply(
            commit,
            run,
            Closing {
                said: &said,
                stopped: &stopped,
                heard: &last.heard,
            },
            cause,
            time,
        )
        .await
    }

    /// Adds the reply to the caller's operation, or to its session.
    ///
    /// It settles the operation if that is open. Otherwise it becomes an input of the session if
    /// the work was detached or ended with a reply: the operation already has its outcome, or is
    /// about to get it. A run that has replied to its caller itself adds nothing.
    async fn add_reply(
        &self,
        commit: &mut Commit,
        run: &Run,
        closing: Closing<'_>,
        cause: &Cause,
        time: Timestamp,
    ) -> Result<Wake, DriverError> {
        let Some(reply_to) = run.started.reply_to.filter(|_| !run.replied) else {
            return Ok(Vec::new());
        };
        let Some(parent) = load_caller(self.store(), reply_to.run).await? else {
            return Ok(Vec::new());
        };
        let started = &parent.started;
        let context = Context::of_run(&run.started, time).about_run(started);
        if let Some(open) = parent
            .open
            .get(&reply_to.operation)
            .filter(|open| matches!(open.operation.performer, Performer::Agent { .. }))
        {
            let (settlement, blobs) =
                settlement_for_parent(&open.operation, run, closing, cause, time);
            if *cause == Cause::Replied {
                let kept_results = &self.core.kept_results;
                kept_results.keep(&self.served, reply_to.operation, || hit(&settlement), time);
            }
            commit.blobs.extend(blobs);
            let event = Event::RunSettled(domain::event::RunSettled {
                run: reply_to.run,
                settled: vec![settlement],
            });
            commit.guards.push(Guard::Run(RunGuard::OperationOpen {
                run: reply_to.run,
                operation: reply_to.operation,
            }));
            add(commit, Stream::Run(reply_to.run), &context, event);
        } else if !reply_to.attached || *cause == Cause::Replied {
            let parts = late_reply(run, closing.said, cause);
            let untrusted = run.is_untrusted();
            let late = Late {
                from: run,
                hops: run.hops,
                to: &parent,
                parts,
                untrusted,
            };
            let LateReplyParts {
                events,
                blob,
                guard,
            } = Box::pin(late.events(&self.core, time)).await?;
            commit.blobs.extend(blob);
            commit.guards.extend(guard);
            events
                .into_iter()
                .for_each(|event| add(commit, Stream::Session(started.session), &context, event));
        }
        Ok(vec![started.session])
    }

    /// Hands the notice of dropped inputs on to the next turn, if a run was to give it and leaves
    /// no turn.
    async fn add_untold(
        &self,
        commit: &mut Commit,
        run: &Run,
        context: &Context,
        time: Timestamp,
    ) -> Result<(), DriverError> {
        let Some(notice) = &run.started.overflow else {
            return Ok(());
        };
        let Some(row) = self.store().queue(self.session, time).await? else {
            return Ok(());
        };
        // More may have been dropped since the run began.
        commit.guards.push(Guard::Queue(QueueGuard::Unreported {
            session: self.session,
            notice: row.queue.overflow.notice(),
        }));
        let overflow = notice.untold().and(row.queue.overflow);
        let dropped = InputsDropped {
            session: self.session,
            inputs: Vec::new(),
            overflow,
            time,
        };
        add(
            commit,
            Stream::Session(self.session),
            context,
            Event::InputsDropped(dropped),
        );
        Ok(())
    }

    /// Buries a run that leaves no turn: its inputs become dead letters.
    ///
    /// Such a run never had a successful first step, or is a failed compaction.
    pub(super) fn add_burial(
        &self,
        commit: &mut Commit,
        run: &Run,
        holder: Option<&Agent>,
        cause: &Cause,
        context: &Context,
        time: Timestamp,
    ) {
        let (code, reason) = match cause {
            Cause::Failed { code, reason } => (code.clone(), reason.clone()),
            Cause::Aborted { reason } => ("aborted".to_owned(), reason.clone()),
            Cause::Replied | Cause::Completed { .. } => (String::new(), String::new()),
        };
        let started = &run.started;
        let ended = RunEnded {
            run: started.run,
            session: started.session,
            end: if matches!(cause, Cause::Aborted { .. }) {
                TurnEnd::Aborted
            } else {
                TurnEnd::Failed
            },
            code: Some(code),
            reason: Some(reason.clone()),
            turn: None,
            stopped: Vec::new(),
            said: Vec::new(),
            inputs: run.claimed.clone(),
            compacts: started.compacts.is_some(),
            time,
        };
        add_dead(commit, run, &reason, context, time);
        for event in holder
            .map(|agent| slot_left(agent, run, cause, &[], time))
            .unwrap_or_default()
        {
            add(commit, Stream::Agent(started.agent), context, event);
        }
        add_last(
            commit,
            Stream::Run(started.run),
            context,
            Event::RunEnded(ended),
        );
    }
}

/// Returns whether a run with steps leaves no turn with this end. A compaction without a summary
/// leaves its thread unchanged.
pub(super) fn is_fruitless(run: &Run, cause: Option<&Cause>) -> bool {
    run.started.compacts.is_some() && cause.is_some_and(|cause| *cause != Cause::Replied)
}

/// Returns the reply to a session whose operation no longer waits for the work.
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

/// Adds the dead letters that the inputs of a run become.
fn add_dead(commit: &mut Commit, run: &Run, reason: &str, context: &Context, time: Timestamp) {
    let session = Stream::Session(run.started.session);
    for dead in put_aside(run, reason, time) {
        add(commit, session, context, Event::InputDead(dead));
    }
}

/// Adds an event behind all others of a commit. A follower sees the end of a run after its results.
fn add_last(commit: &mut Commit, stream: Stream, context: &Context, event: Event) {
    let empty = commit
        .appends
        .iter()
        .position(|append| append.stream == stream && append.events.is_empty());
    let expected = empty.map_or(Expected::Any, |place| commit.appends.remove(place).expected);
    commit.appends.push(store::Append {
        stream,
        expected,
        events: vec![context.event(event)],
    });
}

/// Returns the result of a settlement in the form that may be cached. None for a result with blobs,
/// which are deleted with the sessions that show them.
fn hit(settlement: &Settlement) -> Option<Hit> {
    let parts = match (&settlement.result, &settlement.outcome) {
        (Some(result), _) => &result.parts,
        (None, OperationOutcome::Parts { parts }) => parts,
        (None, _) => return None,
    };
    if parts.iter().any(|part| matches!(part, Part::Blob { .. })) {
        return None;
    }
    Some(Hit {
        result: text_of(parts),
        untrusted: settlement.is_untrusted(),
    })
}
