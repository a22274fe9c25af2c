//! The small commits of a run: outcomes, starts and continuations of segments, answers, dead
//! letters.

use super::late_replies::waiting_for;
use super::phase::Phase;
use super::session_events::{Answered, RunChange, session_events};
use super::state::Driver;
use super::state::Failures;
use crate::journal::{Context, uploaded};
use crate::performance::result::CommitExtras;
use crate::refusals::{changing, not_suspended};
use crate::shared::DriverError;
use crate::shared::blocked::wake_blocked;
use crate::shared::guards::{allowed, may_store, room_for};
use crate::shared::outbound_messages::tell_of_dead;
use crate::shared::{AnswerAt, Request};
use crate::signal::ClientAnswer;
use domain::event::{Event, InputAccepted, InputDead, NewEvent, OperationStarted, RunSettled};
use domain::file::full;
use domain::id::{OperationId, Stream};
use domain::operation::Continuation;
use domain::run::end::settlement_of_nothing;
use domain::time::Timestamp;
use domain::tool::EffectClass;
use store::{
    AgentGuard, Append, Clash, Commit, CommitError, Committed, Expected, Guard, Key, KeyGuard,
    QueueGuard, RunGuard, SessionGuard, UserGuard,
};

/// Number of tries of a client's command while others write to the run first.
pub(super) const OVERTAKEN_MAX: u32 = 16;

/// The parts of a commit that a client brought about.
#[derive(Default)]
struct ByClient {
    /// Its answer, for the agent's own stream.
    answered: Option<Answered>,
    /// The guards.
    guards: Vec<Guard>,
    /// The events of the files that it handed over, for the session's stream.
    files: Vec<NewEvent>,
    /// The events of other streams in the same commit.
    appends: Vec<Append>,
    /// The idempotency key of its request.
    key: Option<Key>,
}

impl Driver {
    /// Records outcomes when no step follows at once.
    pub(super) async fn settle(&mut self) -> Result<(), DriverError> {
        let Some(driving) = self.phase.driving_mut() else {
            return Ok(());
        };
        let extras = CommitExtras {
            blobs: driving.blobs(),
            events: driving.extras().collect(),
            ..CommitExtras::default()
        };
        let mut settled = driving.settlements();
        let active_ms = driving.charge_active_time(&mut settled);
        let event = Event::RunSettled(RunSettled {
            run: driving.run.started.run,
            settled,
        });
        self.commit_run_event(event, extras).await?;
        if let Some(driving) = self.phase.driving_mut() {
            driving.stopwatch.recorded(active_ms);
            driving.arrived.clear();
        }
        Ok(())
    }

    /// Commits events of this session. A commit is progress, so earlier failures do not count any
    /// more.
    pub(super) async fn commit(&mut self, commit: Commit) -> Result<Committed, CommitError> {
        let committed = self.context.store().commit(commit).await?;
        self.failures = Failures::default();
        self.trouble.cut_short();
        Ok(committed)
    }

    /// Commits one event of the run's own stream, with its companions, and applies it.
    pub(super) async fn commit_run_event(
        &mut self,
        event: Event,
        extras: CommitExtras,
    ) -> Result<(), DriverError> {
        self.commit_with_story(event, extras, ByClient::default())
            .await
            .map(drop)
    }

    /// Commits one event of the run's own stream under further guards, and applies it.
    pub(super) async fn commit_run_event_under(
        &mut self,
        event: Event,
        guards: Vec<Guard>,
    ) -> Result<(), DriverError> {
        let by_client = ByClient {
            guards,
            ..ByClient::default()
        };
        self.commit_with_story(event, CommitExtras::default(), by_client)
            .await
            .map(drop)
    }

    /// Commits one event of the run's own stream with its companions under further guards, and
    /// applies it.
    pub(super) async fn commit_run_event_with(
        &mut self,
        event: Event,
        extras: CommitExtras,
        guards: Vec<Guard>,
    ) -> Result<(), DriverError> {
        let by_client = ByClient {
            guards,
            ..ByClient::default()
        };
        self.commit_with_story(event, extras, by_client)
            .await
            .map(drop)
    }

    /// Commits an outcome with decisions about it and with the other parts of its commit, and
    /// applies it.
    pub(super) async fn commit_settled_with(
        &mut self,
        settled: Event,
        decided: Vec<Event>,
        with: Commit,
    ) -> Result<(), DriverError> {
        let by_client = ByClient {
            guards: with.guards,
            appends: with.appends,
            ..ByClient::default()
        };
        let extras = CommitExtras {
            events: decided,
            ..CommitExtras::default()
        };
        self.commit_with_story(settled, extras, by_client)
            .await
            .map(drop)
    }

    /// Commits one event of the run's own stream, with its companions, under the key of a request,
    /// and applies it. Returns the position of the event.
    pub(super) async fn commit_run_event_once(
        &mut self,
        event: Event,
        extras: CommitExtras,
        key: Key,
    ) -> Result<u64, DriverError> {
        let by_client = ByClient {
            key: Some(key),
            ..ByClient::default()
        };
        let committed = self.commit_with_story(event, extras, by_client).await?;
        Ok(committed.first_position)
    }

    /// Commits one event of the run's own stream, and its part in the agent's stream, such as an
    /// answer.
    async fn commit_with_story(
        &mut self,
        event: Event,
        extras: CommitExtras,
        by_client: ByClient,
    ) -> Result<Committed, DriverError> {
        let driving = self.phase.open()?;
        let now = self.context.core.now();
        let context = driving.context(now);
        let events = context.events(
            std::iter::once(event.clone())
                .chain(extras.events)
                .chain(driving.entries.iter().cloned()),
        );
        let added = events.len() as u64;
        let mut commit = Commit::new().append(driving.stream(), self.phase.expected(), events);
        commit.guards = by_client.guards;
        commit.appends.extend(by_client.appends);
        if !by_client.files.is_empty() {
            let stream = Stream::Session(self.context.session);
            commit = commit.append(stream, Expected::Any, by_client.files);
        }
        if let Some(holder) = self.context.holder(&driving.run).await? {
            let after = driving.run.clone().apply(&event)?;
            let change = RunChange {
                before: &driving.run,
                after: &after,
            };
            let reported = session_events(Some(&holder), change, &event, by_client.answered, now)?;
            if !reported.is_empty() {
                commit = commit.append(
                    Stream::Agent(driving.run.started.agent),
                    Expected::Any,
                    context.events(reported),
                );
            }
        }
        commit.blobs = extras.blobs;
        commit.key = by_client.key;
        self.add_outbound_messages(&mut commit).await?;
        store::point("broker.settle.before");
        let committed = self.commit(commit).await?;
        store::point("broker.settle.after");
        if let Phase::Running(running) = &mut self.phase {
            running.version += added;
            running.driving.entries.clear();
            running.driving.run.advance(&event)?;
        }
        Ok(committed)
    }

    /// Records that a non-idempotent segment is about to be sent, with its present effect if that
    /// has changed.
    pub(super) async fn record_started(
        &mut self,
        operation: OperationId,
        effect: Option<EffectClass>,
        time: Timestamp,
    ) -> Result<(), DriverError> {
        let Some(driving) = self.phase.driving() else {
            return Ok(());
        };
        let segment = driving
            .run
            .open
            .get(&operation)
            .map_or(0, |open| open.segment);
        let run = driving.run.started.run;
        self.commit_run_event(
            Event::OperationStarted(OperationStarted {
                run,
                operation,
                segment,
                effect,
                time,
            }),
            CommitExtras::default(),
        )
        .await?;
        store::point("broker.started.after");
        Ok(())
    }

    /// Records the calls that continue in another segment.
    pub(super) async fn record_continued(&mut self) -> Result<(), DriverError> {
        while let Some(driving) = self.phase.driving() {
            let Some((continuation, extras)) = driving.continued.first().cloned() else {
                break;
            };
            let active_ms = driving.stopwatch.unrecorded_ms();
            self.commit_run_event(
                Event::OperationContinued(Continuation {
                    active_ms,
                    ..continuation
                }),
                extras,
            )
            .await?;
            if let Some(driving) = self.phase.driving_mut() {
                driving.stopwatch.recorded(active_ms);
                driving.continued.remove(0);
            }
            self.context.core.timers.notify_one();
        }
        Ok(())
    }

    /// Records all results of work, without a step.
    pub(super) async fn record_what_is_done(&mut self) -> Result<(), DriverError> {
        self.record_continued().await?;
        self.record_calls().await?;
        match &self.phase {
            Phase::Running(running) if !running.driving.arrived.is_empty() => self.settle().await,
            Phase::Unknown | Phase::Idle(_) | Phase::Starting(_) | Phase::Running(_) => Ok(()),
        }
    }

    /// Records all results of work, and the ledger's entries of stopped work. No driver continues
    /// from here.
    pub(super) async fn record_what_is_left(&mut self) -> Result<(), DriverError> {
        self.record_afterwards().await?;
        self.record_what_is_done().await?;
        self.record_entries().await
    }

    /// Records the ledger's entries that wait for a commit.
    pub(super) async fn record_entries(&mut self) -> Result<(), DriverError> {
        let Phase::Running(running) = &mut self.phase else {
            return Ok(());
        };
        let Some(last) = running.driving.entries.pop() else {
            return Ok(());
        };
        let recorded = self
            .commit_run_event(last.clone(), CommitExtras::default())
            .await;
        if let (Err(_), Some(driving)) = (&recorded, self.phase.driving_mut()) {
            driving.entries.push(last);
        }
        recorded
    }

    /// Records the ledger's entries of runs that have ended.
    pub(super) async fn record_afterwards(&mut self) -> Result<(), DriverError> {
        if self.afterwards.is_empty() {
            return Ok(());
        }
        let commit = Commit {
            appends: self.afterwards.clone(),
            ..Commit::new()
        };
        self.commit(commit).await?;
        self.afterwards.clear();
        Ok(())
    }

    /// Lets go of the run, whose end is stored, and stops its work.
    pub(super) async fn let_go(&mut self) {
        let now = self.context.core.now();
        let Some(mut driving) = self.phase.take_run() else {
            return;
        };
        let started = &driving.run.started;
        if let (Some(_), Some(input)) = (started.reply_to, started.claimed.first()) {
            wake_blocked(&self.context.core, *input).await;
        }
        driving.entries.clear();
        driving.stop_all(now).await;
        let events = driving.context(now).events(driving.entries.iter().cloned());
        if !events.is_empty() {
            self.afterwards.push(Append {
                stream: driving.stream(),
                expected: Expected::Any,
                events,
            });
        }
    }

    /// Takes a client's answer, with the files that it brings along. Returns the position of its
    /// event.
    ///
    /// Work of other sessions settles in the run's own stream. If that happens first, the answer is
    /// applied to the run as it is then.
    pub(super) async fn answer(
        &mut self,
        answer: ClientAnswer,
        request: Option<&Request>,
    ) -> Result<u64, DriverError> {
        for _ in 0..OVERTAKEN_MAX {
            match self.answer_now(answer.clone(), request).await {
                Err(failure) if is_overtaken(&failure) => {}
                answered => return answered,
            }
        }
        Err(DriverError::Refused(changing("the session")))
    }

    async fn answer_now(
        &mut self,
        answer: ClientAnswer,
        request: Option<&Request>,
    ) -> Result<u64, DriverError> {
        let by = answer.by;
        let files = answer.files;
        self.stale = true;
        self.refresh().await?;
        let Phase::Running(running) = &self.phase else {
            return Err(DriverError::Refused(not_suspended()));
        };
        let driving = &running.driving;
        let now = self.context.core.now();
        let (event, kept, mut blobs) =
            domain::run::settle::answer(&driving.run, answer.call, &by, answer.value, now)?;
        let agent = driving.run.started.agent;
        let mut guards = vec![allowed(agent, &by)];
        guards.extend(may_store(&self.context.core, &by));
        if !files.is_empty() {
            let bytes = files.iter().map(|brought| brought.file.bytes).sum();
            guards.push(room_for(self.context.session, files.len() as u64, bytes));
        }
        let context = Context::by(&by, now).about(agent, Some(self.context.session), None);
        // Its event is the first of the commit.
        let key = request.map(|request| {
            request.answered(&AnswerAt {
                run: driving.run.started.run,
                version: running.version + 1,
            })
        });
        let reported = files
            .iter()
            .map(|brought| uploaded(self.context.session, &brought.file, &by, now));
        let by_client = ByClient {
            answered: Some((answer.call, kept)),
            guards,
            files: context.events(reported),
            appends: Vec::new(),
            key,
        };
        blobs.extend(files.into_iter().map(|brought| brought.content));
        let extras = CommitExtras {
            blobs,
            ..CommitExtras::default()
        };
        let committed = self.commit_with_story(event, extras, by_client).await;
        committed
            .map(|committed| committed.first_position)
            .map_err(refused_answer)
    }

    /// Turns inputs that cannot be processed into dead letters, which can be inspected and
    /// requeued.
    pub(super) async fn bury(
        &mut self,
        inputs: &[InputAccepted],
        reason: String,
    ) -> Result<(), DriverError> {
        let now = self.context.core.now();
        let session = self.context.session_row().await?;
        let mut commit = Commit::new();
        let mut events = Vec::new();
        let mut wake = Vec::new();
        for accepted in inputs {
            let input = accepted.input;
            tracing::warn!(session.id = %self.context.session, input.id = %input, reason, "an input was \
                put aside as a dead letter");
            let context = Context::new("host", now)
                .about(session.agent, Some(self.context.session), None)
                .following(Some(input));
            let dead = InputDead {
                input,
                session: self.context.session,
                reason: reason.clone(),
                time: now,
            };
            events.push(context.event(Event::InputDead(dead)));
            tell_of_dead(&mut commit, std::slice::from_ref(accepted), &context);
            commit = commit.guard(QueueGuard::InputWaiting(input));
            // A caller that waits for the input is notified, instead of waiting until its time is
            // up.
            if let Some((caller, operation)) = waiting_for(self.context.store(), accepted).await? {
                let run = caller.started.run;
                let session = caller.started.session;
                let settled = vec![settlement_of_nothing(&operation, &reason, now)];
                let context = Context::new("host", now)
                    .about_run(&caller.started)
                    .following(Some(input));
                let reported = vec![context.event(Event::RunSettled(RunSettled { run, settled }))];
                commit = commit
                    .guard(RunGuard::OperationOpen {
                        run,
                        operation: operation.id,
                    })
                    .append(Stream::Run(run), Expected::Any, reported);
                wake.push(session);
            }
        }
        self.commit(commit.append(Stream::Session(self.context.session), Expected::Any, events))
            .await?;
        wake.into_iter()
            .for_each(|session| self.context.core.wake(session));
        for accepted in inputs {
            wake_blocked(&self.context.core, accepted.input).await;
        }
        Ok(())
    }
}

/// Returns the failure of an answer's commit: a refusal, if the session has no room for its files.
fn refused_answer(failure: DriverError) -> DriverError {
    let DriverError::Commit(CommitError::Conflict(conflict)) = failure else {
        return failure;
    };
    if matches!(
        conflict.clash,
        Clash::Guard(Guard::Session(SessionGuard::FilesAtMost { .. }))
    ) {
        return DriverError::Refused(full().at("/response/files"));
    }
    DriverError::Commit(CommitError::Conflict(conflict))
}

/// Returns whether another writer was first, so that the store has to be read again.
///
/// A refused right, a full session of files and used-up storage are permanent, and so is a
/// contradiction to stored rows.
pub(super) fn is_overtaken(failure: &DriverError) -> bool {
    let DriverError::Commit(CommitError::Conflict(conflict)) = failure else {
        return false;
    };
    !matches!(
        conflict.clash,
        Clash::Row
            | Clash::Guard(
                Guard::Agent(AgentGuard::Role { .. })
                    | Guard::Session(SessionGuard::FilesAtMost { .. })
                    | Guard::User(UserGuard::StoredBelow { .. })
                    | Guard::Key(KeyGuard::StoredBelow { .. })
            )
    )
}
