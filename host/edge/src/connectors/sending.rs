//! One message, sent chunk by chunk to the end of an attempt.
//!
//! The start of sending a chunk is recorded before it is sent, and the outcome after it. An attempt
//! that a crash cut off is repeated only if the service accepts a repeated message once, or if it
//! is an edit, which can safely be made twice. Otherwise it is unknown whether the message was
//! sent, and it is not sent again. The same applies to an edit that is refused after another one
//! that may have been made.

use super::Shared;
use super::calls::Called;
use super::previews::Preview;
use super::served::{ConnectorLink, Served};
use super::undelivered::undelivered;
use crate::journal::Context;
use crate::worker::Next;
use broker::Error;
use domain::connector::{
    Body, ConnectorFailure, Fate, Interrupted, Outbound, Outgoing, ReplyRoute, interrupted, judge,
    kept_reason,
};
use domain::event::{
    Event, NewEvent, OutboundMessageCause, OutboundMessageOutcome, OutboundMessageSettled,
    OutboundMessageStarted, Subject,
};
use domain::id::RunId;
use store::{
    Commit, CommitError, ConnectorGuard, Expected, OutboundMessageRow, OutboundMessageState,
    ReadError,
};

/// Milliseconds until the next attempt to store the outcome of an attempt.
const STORE_MS: u64 = 1_000;
/// Milliseconds after which an edit is made once more, if the answer to one before it was lost.
const UNCLEAR_MS: u64 = 5_000;
/// The reason of a message whose attempt was cut off.
const CUT_OFF: &str = "the host stopped while it was sent";
/// The reason of a question that was not sent.
const OVER: &str = "the question was answered elsewhere, or is asked no longer";
/// The reason of an empty message.
const EMPTY: &str = "there is nothing to say";

/// The state of an attempt.
struct Attempt<'a> {
    shared: &'a Shared,
    served: &'a Served,
    row: OutboundMessageRow,
    /// The state that is stored.
    state: OutboundMessageState,
    chunks: Vec<Body>,
    /// The growing message that the first chunk edits; none if the chunk becomes a message of its
    /// own.
    preview: Option<Preview>,
}

/// The outcome of sending a chunk.
enum ChunkOutcome {
    /// The service took it.
    Taken,
    /// The attempt is over, or could not begin.
    Over(Next),
}

/// Sends a message, from its present chunk on.
pub(super) async fn deliver(shared: &Shared, served: &Served, row: OutboundMessageRow) -> Next {
    let mut attempt = Attempt {
        shared,
        served,
        state: row.state,
        chunks: Vec::new(),
        preview: None,
        row,
    };
    if matches!(served.link, ConnectorLink::Direct) {
        return attempt.hand_over().await;
    }
    if let Err(next) = attempt.prepare().await {
        return next;
    }
    loop {
        match attempt.next_chunk().await {
            ChunkOutcome::Taken => {}
            ChunkOutcome::Over(next) => {
                attempt.keep_preview();
                return next;
            }
        }
    }
}

impl Attempt<'_> {
    /// Returns the run whose reply the message is.
    fn run(&self) -> Option<RunId> {
        match &self.row.cause {
            OutboundMessageCause::Turn { run, .. } => Some(*run),
            OutboundMessageCause::Question { .. }
            | OutboundMessageCause::Input { .. }
            | OutboundMessageCause::Host { .. }
            | OutboundMessageCause::Test { .. } => None,
        }
    }

    fn chat(&self) -> ReplyRoute {
        self.served.chat(&self.row.chat)
    }

    /// Returns the service's id of the message that the present chunk edits; none if it becomes a
    /// message of its own.
    fn edits(&self) -> Option<String> {
        self.preview.as_ref().map(|preview| preview.id.clone())
    }

    /// Determines what has to be sent, or settles a message of which nothing is sent.
    async fn prepare(&mut self) -> Result<(), Next> {
        if let Err(error) = self.find_preview().await {
            tracing::warn!(
                outbound_message.id = %self.row.outbound_message,
                error = &error as &dyn std::error::Error,
                "it cannot be read in which message a reply grew"
            );
            return Err(Next::Again { ms: STORE_MS });
        }
        let is_cut_off = self.state == OutboundMessageState::Started && self.preview.is_none();
        if is_cut_off && interrupted(self.served.abilities().idempotent) == Interrupted::Unknown {
            let reason = CUT_OFF.to_owned();
            let outcome = OutboundMessageOutcome::Unknown { reason };
            return Err(self.settle(outcome, None).await);
        }
        match self.outbound().await {
            Ok(Some(outbound)) => self.chunks = outbound.chunks(&self.served.abilities()),
            Ok(None) => {
                let reason = OVER.to_owned();
                return Err(self
                    .settle(OutboundMessageOutcome::Dead { reason }, None)
                    .await);
            }
            Err(error) => {
                tracing::warn!(
                    outbound_message.id = %self.row.outbound_message,
                    error = &error as &dyn std::error::Error,
                    "it cannot be read whether a question is still asked"
                );
                return Err(Next::Again { ms: STORE_MS });
            }
        }
        Ok(())
    }

    /// Finds the message in which the reply grew. It is known to this process, or stored by an
    /// earlier one, or the target of an earlier attempt's edit.
    async fn find_preview(&mut self) -> Result<(), ReadError> {
        let Some(run) = self.run().filter(|_| self.row.chunk == 0) else {
            return Ok(());
        };
        let known = self.shared.previews.close(run, &self.chat()).await;
        let is_first_attempt =
            self.state == OutboundMessageState::Queued && self.row.reason.is_none();
        // The record of an attempt that had begun decides.
        let is_known = known.is_some() && self.state != OutboundMessageState::Started;
        self.preview = if is_known {
            known
        } else if is_first_attempt {
            let outbound_message = Some(self.row.outbound_message);
            let stored = self
                .shared
                .stored_preview(self.served, run, outbound_message);
            stored.await?.map(Preview::stored)
        } else {
            let edited = self
                .shared
                .core
                .store()
                .edited_by(self.row.outbound_message);
            edited.await?.map(|id| Preview {
                id,
                is_unclear: false,
                // The outcomes of some attempts are not recorded. An operator who retries it has
                // checked the chat.
                may_be_whole: self.state != OutboundMessageState::Queued,
            })
        };
        self.shared.drop_preview(self.served, run).await;
        Ok(())
    }

    /// Returns the whole message. None for a question that is no longer open: it was answered
    /// elsewhere, or its run has ended.
    async fn outbound(&self) -> Result<Option<Outbound>, Error> {
        let said = Outbound {
            text: self.row.text.clone(),
            choices: self.row.choices.clone(),
            without_buttons: self.row.without_buttons.clone(),
        };
        let OutboundMessageCause::Question {
            session, operation, ..
        } = &self.row.cause
        else {
            return Ok(Some(said));
        };
        let Some(row) = self.shared.core.store().session(*session).await? else {
            return Ok(None);
        };
        let asked = self
            .shared
            .open_question(&row.user_id, *session, *operation)
            .await?;
        Ok(asked.map(|_| said))
    }

    /// Sends the chunk at which the message is.
    async fn next_chunk(&mut self) -> ChunkOutcome {
        let place = usize::try_from(self.row.chunk).unwrap_or(usize::MAX);
        let Some(body) = self.chunks.get(place).cloned() else {
            let outcome = if self.chunks.is_empty() {
                OutboundMessageOutcome::Dead {
                    reason: EMPTY.to_owned(),
                }
            } else {
                // The component's limit was another one when the first chunks were sent.
                OutboundMessageOutcome::Delivered {
                    service_ids: self.row.service_ids.clone(),
                }
            };
            return ChunkOutcome::Over(self.settle(outcome, None).await);
        };
        if self.row.chunk > 0 || !matches!(body, Body::Text(_)) {
            self.preview = None;
        }
        let number = self.row.attempts.saturating_add(1);
        let mut called = match self.attempt(&body, number).await {
            Ok(called) => called,
            Err(next) => return ChunkOutcome::Over(next),
        };
        let is_refused = matches!(called.result, Err(ConnectorFailure::Rejected(_)));
        let gone = self
            .preview
            .take_if(|preview| is_refused && !preview.may_be_whole);
        if gone.is_some() {
            // The growing message is gone: the text becomes a message of its own. That is recorded
            // before it is sent.
            self.shared.note(self.served, called.entry.take()).await;
            called = match self.attempt(&body, number).await {
                Ok(called) => called,
                Err(next) => return ChunkOutcome::Over(next),
            };
        }
        store::point("edge.sent");
        self.conclude(called, number).await
    }

    /// Sends the present chunk, after recording that it is about to be sent.
    async fn attempt(&mut self, body: &Body, number: u32) -> Result<Called<String>, Next> {
        self.start(number).await?;
        Ok(
            if let (Some(preview), Body::Text(text)) = (self.preview.clone(), body) {
                self.send_edit(&preview, text).await
            } else {
                self.send(body.clone()).await
            },
        )
    }

    async fn send(&self, body: Body) -> Called<String> {
        let message = Outgoing {
            chat: self.row.chat.clone(),
            body,
            idempotency_key: match self.row.lost_id(self.row.chunk) {
                Some(lost) => self
                    .row
                    .outbound_message
                    .chunk_key_after(self.row.chunk, lost),
                None => self.row.outbound_message.chunk_key(self.row.chunk),
            },
        };
        self.shared.send(self.served, &message, self.run()).await
    }

    /// Makes the final text the last edit of the message in which it grew. Returns that message's
    /// id.
    async fn send_edit(&mut self, preview: &Preview, text: &str) -> Called<String> {
        let edit = || Body::Edit {
            id: preview.id.clone(),
            text: text.to_owned(),
        };
        let mut called = self.send(edit()).await;
        if let Some(known) = &mut self.preview {
            known.may_be_whole |= may_be_made(&called.result);
        }
        let may_be_undone = called.result.is_ok() && preview.is_unclear;
        if may_be_undone && self.shared.core.sleep_ms(UNCLEAR_MS).await {
            let again = self.send(edit()).await;
            // A refused edit leaves the message as it was.
            if !matches!(again.result, Err(ConnectorFailure::Rejected(_))) {
                called.result = again.result;
            }
            self.shared.note(self.served, again.entry).await;
        }
        // The id stays, whatever the service returns.
        called.result = called.result.map(|_| preview.id.clone());
        called
    }

    /// Keeps the message in which the reply grew for the next try.
    fn keep_preview(&mut self) {
        if let Some(preview) = self.preview.take()
            && let Some(run) = self.run()
        {
            self.shared.previews.keep(run, &self.chat(), preview);
        }
    }

    /// Stores that a chunk is about to be sent.
    async fn start(&mut self, number: u32) -> Result<(), Next> {
        let now = self.shared.core.now();
        let started = Event::OutboundMessageStarted(OutboundMessageStarted {
            connector: self.served.name.clone(),
            outbound_message: self.row.outbound_message,
            attempt: number,
            chunk: self.row.chunk,
            edits: self.edits(),
            time: now,
        });
        let commit = self.commit(vec![self.event(started)]);
        store::point("edge.started.before");
        let stored = self.shared.core.store().commit(commit).await;
        store::point("edge.started.after");
        match stored {
            Ok(_) => {
                self.state = OutboundMessageState::Started;
                self.row.attempts = number;
                Ok(())
            }
            // Another task is processing it, or it was erased.
            Err(CommitError::Conflict(_)) => Err(Next::GoOn),
            Err(error) => {
                tracing::warn!(
                    outbound_message.id = %self.row.outbound_message,
                    error = &error as &dyn std::error::Error,
                    "it cannot be recorded that a message is about to be sent; it is sent later"
                );
                Err(Next::Again { ms: STORE_MS })
            }
        }
    }

    /// Stores the outcome of a chunk.
    async fn conclude(&mut self, called: Called<String>, number: u32) -> ChunkOutcome {
        let entry = called.entry;
        // Chunks that were delivered before are not sent again.
        let following = self.row.missing_from(self.row.chunk.saturating_add(1));
        let is_last =
            usize::try_from(following).is_ok_and(|following| following >= self.chunks.len());
        let failure = match called.result {
            Ok(id) => {
                self.shared.note_success(self.served).await;
                self.preview = None;
                self.row.take(self.row.chunk, id.clone());
                if is_last {
                    let service_ids = self.row.service_ids.clone();
                    let outcome = OutboundMessageOutcome::Delivered { service_ids };
                    return ChunkOutcome::Over(self.settle(outcome, entry).await);
                }
                let outcome = OutboundMessageOutcome::Chunk { service_id: id };
                let next = self.settle(outcome, entry).await;
                if self.state != OutboundMessageState::Queued {
                    return ChunkOutcome::Over(next);
                }
                self.row.chunk = following;
                self.row.attempts = 0;
                return ChunkOutcome::Taken;
            }
            Err(failure) => failure,
        };
        if !matches!(failure, ConnectorFailure::Rejected(_)) {
            self.shared.note_failure(self.served, &failure).await;
        }
        let reason = kept_reason(&failure.to_string());
        let outcome = match self.fate(&failure, number) {
            Fate::Retry(retry_at) => OutboundMessageOutcome::Failed { reason, retry_at },
            Fate::Unknown => OutboundMessageOutcome::Unknown { reason },
            Fate::Dead => OutboundMessageOutcome::Dead { reason },
        };
        let is_over = !matches!(outcome, OutboundMessageOutcome::Failed { .. });
        let next = self.settle(outcome, entry).await;
        if is_over {
            // It is recorded, for an operator who retries the message.
            self.preview = None;
        }
        ChunkOutcome::Over(next)
    }

    /// Returns the state of the message after a failed attempt at one of its chunks.
    fn fate(&self, failure: &ConnectorFailure, number: u32) -> Fate {
        // An edit can safely be made twice.
        let idempotent = self.served.abilities().idempotent || self.preview.is_some();
        let fate = judge(failure, number, idempotent, self.shared.core.now());
        let is_refused = matches!(failure, ConnectorFailure::Rejected(_));
        let may_be_whole = self.preview.as_ref().is_some_and(|it| it.may_be_whole);
        if is_refused && may_be_whole {
            return Fate::Unknown;
        }
        fate
    }

    /// Hands a message to people at a web page, who read it from the store.
    async fn hand_over(&mut self) -> Next {
        let outcome = OutboundMessageOutcome::Delivered {
            service_ids: vec![self.row.outbound_message.to_string()],
        };
        self.settle(outcome, None).await
    }

    /// Stores an outcome, however long the store takes. Only the end of the host can prevent it:
    /// then the next process finds the attempt begun.
    async fn settle(&mut self, outcome: OutboundMessageOutcome, entry: Option<Event>) -> Next {
        loop {
            store::point("edge.delivered.before");
            let stored = self.record(&outcome, entry.clone()).await;
            store::point("edge.delivered.after");
            match stored {
                Ok(()) => {
                    if matches!(outcome, OutboundMessageOutcome::Chunk { .. }) {
                        self.state = OutboundMessageState::Queued;
                    }
                    self.log_loss(&outcome);
                    return Next::GoOn;
                }
                Err(CommitError::Conflict(_) | CommitError::Closed) => return Next::GoOn,
                Err(error) => {
                    tracing::warn!(
                        outbound_message.id = %self.row.outbound_message,
                        error = &error as &dyn std::error::Error,
                        "what became of a message cannot be recorded now"
                    );
                }
            }
            if !self.shared.core.sleep_ms(STORE_MS).await {
                return Next::GoOn;
            }
        }
    }

    /// Stores an outcome, and with it the report about the chunk that was received while it was
    /// sent.
    async fn record(
        &self,
        outcome: &OutboundMessageOutcome,
        entry: Option<Event>,
    ) -> Result<(), CommitError> {
        // An earlier report is found here, and a later one finds this outcome.
        let _reports = self.served.lasting.reports.lock().await;
        let reported = self.reported(outcome).await;
        let reported = reported.map_err(|error| CommitError::Unavailable {
            source: Box::new(error),
        })?;
        let now = self.shared.core.now();
        let settled = |outcome: &OutboundMessageOutcome, edits: Option<String>| {
            self.event(Event::OutboundMessageSettled(OutboundMessageSettled {
                connector: self.served.name.clone(),
                outbound_message: self.row.outbound_message,
                outcome: outcome.clone(),
                edits,
                time: now,
            }))
        };
        let lost = reported.as_ref().map(|outcome| settled(outcome, None));
        // So the ledger of a run has the requests that were sent for it.
        let entry = entry.map(|entry| self.event(entry));
        let events = [Some(settled(outcome, self.edits())), lost, entry];
        let commit = self.commit(events.into_iter().flatten().collect());
        self.shared.core.store().commit(commit).await?;
        if let Some(outcome) = &reported {
            self.log_loss(outcome);
        }
        Ok(())
    }

    /// Returns the report about a chunk that was received while it was sent; none without one.
    async fn reported(
        &self,
        outcome: &OutboundMessageOutcome,
    ) -> Result<Option<OutboundMessageOutcome>, ReadError> {
        let id = match outcome {
            OutboundMessageOutcome::Chunk { service_id } => Some(service_id),
            OutboundMessageOutcome::Delivered { service_ids } => usize::try_from(self.row.chunk)
                .ok()
                .and_then(|place| service_ids.get(place)),
            OutboundMessageOutcome::Failed { .. }
            | OutboundMessageOutcome::Undelivered { .. }
            | OutboundMessageOutcome::Unknown { .. }
            | OutboundMessageOutcome::Dead { .. } => None,
        };
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return Ok(None);
        };
        let kept = self.shared.kept_report(self.served, id).await?;
        Ok(kept.map(|reason| undelivered(self.row.chunk, self.chunks.len(), &reason)))
    }

    /// Logs that a message is not sent again, or not by itself.
    fn log_loss(&self, outcome: &OutboundMessageOutcome) {
        let outbound_message = self.row.outbound_message;
        let connector = &self.served.name;
        match outcome {
            OutboundMessageOutcome::Unknown { reason } => tracing::warn!(
                connector.name = %connector,
                outbound_message.id = %outbound_message,
                reason,
                "nobody knows whether a message was sent; it is sent again when it is requeued"
            ),
            OutboundMessageOutcome::Undelivered { reason, .. } => tracing::warn!(
                connector.name = %connector,
                outbound_message.id = %outbound_message,
                reason,
                "a service took a message and did not deliver it"
            ),
            OutboundMessageOutcome::Dead { reason } => tracing::warn!(
                connector.name = %connector,
                outbound_message.id = %outbound_message,
                reason,
                "a message could not be sent, and is given up"
            ),
            OutboundMessageOutcome::Delivered { .. }
            | OutboundMessageOutcome::Chunk { .. }
            | OutboundMessageOutcome::Failed { .. } => {}
        }
    }

    /// Returns an event with the subject of the message.
    fn event(&self, event: Event) -> NewEvent {
        let context = Context::new(self.served.origin(), self.shared.core.now());
        NewEvent {
            subject: subject_of(&self.row.cause),
            ..context.event(event)
        }
    }

    /// Returns a commit that lands only if the message is unchanged.
    fn commit(&self, events: Vec<NewEvent>) -> Commit {
        Commit::new()
            .guard(ConnectorGuard::OutboundMessageIs {
                outbound_message: self.row.outbound_message,
                state: self.state,
            })
            .append(self.served.stream(), Expected::Any, events)
    }
}

/// Returns the source of a message, as the subject of its events.
pub(super) fn subject_of(cause: &OutboundMessageCause) -> Subject {
    match cause {
        OutboundMessageCause::Turn { session, run }
        | OutboundMessageCause::Question { session, run, .. } => Subject {
            agent: None,
            session: Some(*session),
            run: Some(*run),
        },
        OutboundMessageCause::Input { session, .. } => Subject {
            session: Some(*session),
            ..Subject::default()
        },
        OutboundMessageCause::Host { .. } | OutboundMessageCause::Test { .. } => Subject::default(),
    }
}

/// Returns whether a service may have carried out a request.
fn may_be_made(result: &Result<String, ConnectorFailure>) -> bool {
    match result {
        Ok(_) | Err(ConnectorFailure::Unknown(_)) => true,
        Err(
            ConnectorFailure::Rejected(_)
            | ConnectorFailure::Unauthorised(_)
            | ConnectorFailure::RetryLater { .. }
            | ConnectorFailure::Moved { .. },
        ) => false,
    }
}
