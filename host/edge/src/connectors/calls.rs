//! Calls of connectors' components: their number at a time, their time limits, and their outcomes.

use super::Shared;
use super::asked::CallPurpose;
use super::ledger::Audited;
use super::served::{ComponentDeps, ConnectorLink, Served};
use domain::connector::{Batch, ConnectorFailure, Outgoing, kept_reason};
use domain::event::Event;
use domain::id::RunId;
use runtime::{CallAudit, Connected, ConnectorCall, Level, LogLine, Outcome, VerifiedCall};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Polls at a time, of all connectors together.
const POLLS_MAX: usize = 16;
/// Calls of services that are read at a time.
const READINGS_MAX: usize = 16;
/// Messages that are sent at a time.
pub(super) const SENDINGS_MAX: usize = 32;
/// Files that are fetched at a time.
const FETCHES_MAX: usize = 4;
/// Calls at a time that may be left out: typing, and replies that grow.
const SHOWS_MAX: usize = 8;
/// Time limit of a poll in milliseconds. It is short: no guest is kept alive to wait for messages.
const POLL_MS: u32 = 20_000;
/// Milliseconds for reading a call of a service, which waits for the answer.
const READING_MS: u32 = 10_000;
/// Milliseconds for sending one part of a message.
const SENDING_MS: u32 = 30_000;
/// Milliseconds for telling a service that a message was taken.
const ACKNOWLEDGING_MS: u32 = 5_000;
/// Milliseconds for fetching a file.
const FETCH_MS: u32 = 60_000;
/// Milliseconds that a call of a service waits for its turn.
const WAIT_MS_MAX: u64 = 2_000;
/// Milliseconds until the next attempt at a call for which the host had no place.
const BUSY_MS: u64 = 1_000;

/// The bounds on calls of components, one for each purpose, so that none of them keeps the others
/// from their work.
pub(super) struct Permits {
    polls: Semaphore,
    readings: Semaphore,
    sendings: Semaphore,
    fetches: Semaphore,
    shows: Semaphore,
}

impl Default for Permits {
    fn default() -> Self {
        Self {
            polls: Semaphore::new(POLLS_MAX),
            readings: Semaphore::new(READINGS_MAX),
            sendings: Semaphore::new(SENDINGS_MAX),
            fetches: Semaphore::new(FETCHES_MAX),
            shows: Semaphore::new(SHOWS_MAX),
        }
    }
}

/// The reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallFailure {
    /// It did not begin, since the host has no place for it. That does not indicate trouble of the
    /// connector.
    NoPlace {
        /// Milliseconds after which it may be tried again.
        after_ms: u64,
        /// The reason.
        reason: &'static str,
    },
    /// The service cannot be used, or the component is at fault.
    Failed(ConnectorFailure),
}

impl From<CallFailure> for ConnectorFailure {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::NoPlace { after_ms, reason } => later(after_ms, reason),
            CallFailure::Failed(failure) => failure,
        }
    }
}

/// A call that is over.
pub(super) struct Called<T, E = ConnectorFailure> {
    pub(super) result: Result<T, E>,
    /// Its entry in the ledger, which is stored with its outcome.
    pub(super) entry: Option<Event>,
}

impl<T> Called<T, CallFailure> {
    /// Returns the end of a call that did not begin.
    fn not_begun(failure: CallFailure) -> Self {
        Self {
            result: Err(failure),
            entry: None,
        }
    }

    /// Returns the same for a caller that retries later, whichever side failed.
    fn into_trouble_of_service(self) -> Called<T> {
        Called {
            result: self.result.map_err(ConnectorFailure::from),
            entry: self.entry,
        }
    }
}

impl Shared {
    /// Asks a service for news.
    pub(super) async fn poll(
        &self,
        served: &Served,
        cursor: Option<&str>,
    ) -> Called<Batch, CallFailure> {
        let _permit = self.permits.polls.acquire().await;
        let Some(deps) = deps(served) else {
            return Called::not_begun(no_component());
        };
        let audit = CallAudit::default();
        let call = call(served, deps, POLL_MS, &audit);
        // On the heap: a connector that waits for its next poll keeps nothing of the call.
        let polled = Box::pin(self.core.runtime.poll(call, cursor)).await;
        self.ended(served, CallPurpose::Poll, &audit, polled)
    }

    /// Makes the component read a verified call of a service.
    pub(super) async fn read_call(
        &self,
        served: &Served,
        service: VerifiedCall,
    ) -> Called<Batch, CallFailure> {
        let wait = self.permits.readings.acquire();
        let wait = tokio::time::timeout(Duration::from_millis(WAIT_MS_MAX), wait);
        let Ok(_permit) = wait.await else {
            return Called::not_begun(busy(BUSY_MS));
        };
        let Some(deps) = deps(served) else {
            return Called::not_begun(no_component());
        };
        let audit = CallAudit::default();
        let call = call(served, deps, READING_MS, &audit);
        let read = Box::pin(self.core.runtime.receive(call, service)).await;
        self.ended(served, CallPurpose::Receive, &audit, read)
    }

    /// Sends one part of a message, for its run if it has one, to the present id of its chat.
    /// Returns the service's id of it.
    pub(super) async fn send(
        &self,
        served: &Served,
        message: &Outgoing,
        run: Option<RunId>,
    ) -> Called<String> {
        let _permit = self.permits.sendings.acquire().await;
        let asked = CallPurpose::Send(run);
        let called = self.send_now(served, message, asked, SENDING_MS).await;
        let Err(ConnectorFailure::Moved { chat, moved }) = &called.result else {
            return called;
        };
        served.lasting.chat_moved(&message.chat, chat);
        if let Err(error) = self.follow(served, moved).await {
            tracing::warn!(
                connector.name = %served.name,
                error = &error as &dyn std::error::Error,
                "it cannot be recorded by which id a group is known now"
            );
        }
        self.note(served, called.entry).await;
        self.send_now(served, message, asked, SENDING_MS).await
    }

    /// Shows progress of a run, which may be skipped. None if there is no place for it.
    pub(super) async fn show(
        &self,
        served: &Served,
        message: &Outgoing,
        run: RunId,
    ) -> Option<Result<String, ConnectorFailure>> {
        let _permit = self.permits.shows.try_acquire().ok()?;
        let shown = self
            .send_now(served, message, CallPurpose::Show(run), SENDING_MS)
            .await;
        self.note(served, shown.entry).await;
        Some(shown.result)
    }

    /// Acknowledges a message to its service. The caller bounds the number of such calls:
    /// `connectors/acknowledging.rs`.
    pub(super) async fn acknowledge(
        &self,
        served: &Served,
        message: &Outgoing,
    ) -> Result<(), ConnectorFailure> {
        let reported = self
            .send_now(served, message, CallPurpose::Acknowledge, ACKNOWLEDGING_MS)
            .await;
        self.note(served, reported.entry).await;
        reported.result.map(drop)
    }

    async fn send_now(
        &self,
        served: &Served,
        message: &Outgoing,
        asked: CallPurpose,
        deadline_ms: u32,
    ) -> Called<String> {
        let Some(deps) = deps(served) else {
            return Called::not_begun(no_component()).into_trouble_of_service();
        };
        let audit = CallAudit::default();
        let call = call(served, deps, deadline_ms, &audit);
        let message = Outgoing {
            chat: served.lasting.present_chat(&message.chat),
            ..message.clone()
        };
        let sent = Box::pin(self.core.runtime.send(call, &message)).await;
        self.ended(served, asked, &audit, sent)
            .into_trouble_of_service()
    }

    /// Fetches a file of a message.
    pub(super) async fn fetch(
        &self,
        served: &Served,
        handle: &str,
    ) -> Result<Vec<u8>, CallFailure> {
        let _permit = self.permits.fetches.acquire().await;
        let deps = deps(served).ok_or_else(no_component)?;
        let audit = CallAudit::default();
        let call = call(served, deps, FETCH_MS, &audit);
        let fetched = Box::pin(self.core.runtime.fetch(call, handle)).await;
        let fetched = self.ended(served, CallPurpose::Fetch, &audit, fetched);
        self.note(served, fetched.entry).await;
        fetched.result
    }

    /// Returns the outcome of a call, with its entry in the ledger.
    fn ended<T>(
        &self,
        served: &Served,
        asked: CallPurpose,
        audit: &CallAudit,
        connected: Connected<T>,
    ) -> Called<T, CallFailure> {
        let log = &served.lasting.log;
        log.record(&served.spec.component, &connected.logs);
        let Audited { has_sent, entry } = self.take_audit(served, asked, audit);
        let Connected {
            mut outcome, logs, ..
        } = connected;
        if let Outcome::Returned(Err(failure)) = &mut outcome {
            explain(failure, &logs);
        }
        Called {
            result: judge(outcome, has_sent),
            entry,
        }
    }
}

fn deps(served: &Served) -> Option<&ComponentDeps> {
    match &served.link {
        ConnectorLink::Component(deps) => Some(deps),
        ConnectorLink::Direct | ConnectorLink::None => None,
    }
}

fn later(after_ms: u64, reason: &str) -> ConnectorFailure {
    ConnectorFailure::RetryLater {
        after_ms,
        reason: kept_reason(reason),
    }
}

fn busy(after_ms: u64) -> CallFailure {
    let reason = "the host has no place for the call at the moment";
    CallFailure::NoPlace { after_ms, reason }
}

fn no_component() -> CallFailure {
    let reason = "the connector has no component at the moment";
    let after_ms = BUSY_MS;
    CallFailure::NoPlace { after_ms, reason }
}

fn call<'a>(
    served: &'a Served,
    deps: &'a ComponentDeps,
    deadline_ms: u32,
    audit: &'a CallAudit,
) -> ConnectorCall<'a> {
    ConnectorCall {
        component: &deps.entry.component,
        grant: &deps.entry.grant,
        configuration: &served.spec.configuration,
        deadline_ms,
        audit,
    }
}

/// Returns the outcome of a call. One that was cut off before it sent any request had no effect.
fn judge<T>(
    outcome: Outcome<Result<T, ConnectorFailure>>,
    has_sent: bool,
) -> Result<T, CallFailure> {
    let cut_off = |reason: &str| {
        CallFailure::Failed(if has_sent {
            ConnectorFailure::Unknown(kept_reason(reason))
        } else {
            later(BUSY_MS, reason)
        })
    };
    match outcome {
        Outcome::Returned(returned) => returned.map_err(CallFailure::Failed),
        Outcome::Refused { detail } => Err(cut_off(&format!(
            "the component returned what is not acceptable: {detail}"
        ))),
        Outcome::Trapped { message, .. } => {
            Err(cut_off(&format!("the component crashed: {message}")))
        }
        Outcome::OutOfMemory => Err(cut_off("the component used more memory than it may")),
        Outcome::OutOfCpu => Err(cut_off("the component computed for longer than it may")),
        // The record of a request that was cut off may arrive too late to rely on it.
        Outcome::TimedOut => {
            let reason = "the service did not answer in time".to_owned();
            Err(CallFailure::Failed(ConnectorFailure::Unknown(reason)))
        }
        Outcome::Faulted { detail, .. } => Err(cut_off(&format!(
            "the host could not serve the call: {detail}"
        ))),
        Outcome::Busy => Err(busy(BUSY_MS)),
        Outcome::TooOften { wait_ms } => Err(busy(wait_ms)),
    }
}

/// Gives a failure the last warning of the component as its reason, if the component returned
/// nothing but the time to wait.
fn explain(failure: &mut ConnectorFailure, logs: &[LogLine]) {
    let ConnectorFailure::RetryLater { reason, .. } = failure else {
        return;
    };
    let warning = logs.iter().rev().find(|line| line.level >= Level::Warn);
    if let Some(warning) = warning {
        *reason = kept_reason(&warning.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sent = Outcome<Result<String, ConnectorFailure>>;

    #[test]
    fn a_call_that_was_cut_off_is_unknown_only_if_it_sent_a_request() {
        let crashed = || Sent::Trapped {
            message: "unreachable".to_owned(),
            backtrace: String::new(),
        };
        assert!(matches!(
            judge(crashed(), true),
            Err(CallFailure::Failed(ConnectorFailure::Unknown(_)))
        ));
        assert!(matches!(
            judge(crashed(), false),
            Err(CallFailure::Failed(ConnectorFailure::RetryLater { .. }))
        ));
        assert!(matches!(
            judge(Sent::TimedOut, false),
            Err(CallFailure::Failed(ConnectorFailure::Unknown(_)))
        ));
    }

    #[test]
    fn a_call_that_did_not_begin_is_tried_again_and_says_nothing_of_the_connector() {
        let not_begun = judge(Sent::TooOften { wait_ms: 7 }, false).unwrap_err();
        assert!(matches!(
            not_begun,
            CallFailure::NoPlace { after_ms: 7, .. }
        ));
        assert!(matches!(
            ConnectorFailure::from(not_begun),
            ConnectorFailure::RetryLater { after_ms: 7, .. }
        ));
        assert!(matches!(
            judge(Sent::Busy, false),
            Err(CallFailure::NoPlace { .. })
        ));
    }

    #[test]
    fn what_a_component_returns_over_a_bound_is_its_own_fault() {
        let detail = "`messages` are 1001; 1000 at most".to_owned();
        assert!(matches!(
            judge(Sent::Refused { detail }, false),
            Err(CallFailure::Failed(ConnectorFailure::RetryLater { .. }))
        ));
    }

    #[test]
    fn a_pause_that_a_component_asks_for_has_its_last_warning_as_the_reason() {
        let line = |level, message: &str| LogLine {
            level,
            context: String::new(),
            message: message.to_owned(),
        };
        let logs = [
            line(Level::Warn, "first"),
            line(Level::Warn, "no connection"),
            line(Level::Info, "done"),
        ];
        let mut paused = later(7, "again");
        explain(&mut paused, &logs);
        assert_eq!(paused, later(7, "no connection"));
        explain(&mut paused, &logs[2..]);
        assert_eq!(paused, later(7, "no connection"));
        let mut gone = ConnectorFailure::Rejected("gone".to_owned());
        explain(&mut gone, &logs);
        assert_eq!(gone, ConnectorFailure::Rejected("gone".to_owned()));
    }

    #[test]
    fn what_a_component_returned_counts() {
        let sent = Sent::Returned(Ok("7".to_owned()));
        assert_eq!(judge(sent, true), Ok("7".to_owned()));
        let gone = ConnectorFailure::Rejected("gone".to_owned());
        assert_eq!(
            judge(Sent::Returned(Err(gone.clone())), true),
            Err(CallFailure::Failed(gone))
        );
    }
}
