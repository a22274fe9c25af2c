//! One trigger event: its trigger's component is called on it, and one commit stores the results.
//!
//! The call has no effects, and its results count only from that commit on. So a call that a crash
//! cut off is repeated, with the same clock and the same randomness.

use super::failing::{Failure, failed};
use super::{Shared, ledger, posting, recording};
use crate::worker::Next;
use broker::{Entry, Error, guest_log};
use domain::connector::kept_reason;
use domain::digest::Digest;
use domain::event::{Event, PauseReason, TriggerFired, TriggerMessage, TriggerTrouble};
use domain::id::TriggerEventId;
use domain::time::Timestamp;
use domain::trigger::{TriggerKind, TriggerName, TriggerSpec, TriggerTarget, Variables, render};
use runtime::{FireCall, Fired, FiredMessage, Outcome, TriggerError, TriggerRun};
use std::time::Duration;
use store::{TriggerEventRow, TriggerEventState, TriggerRow};
use tokio::time::Instant;

/// Milliseconds until a component is called again that too many call.
const BUSY_MS: u64 = 250;
/// Most milliseconds until a component is called again that was called too often.
const TOO_OFTEN_MS_MAX: u64 = 60_000;

/// Processes a trigger event, from its present state on.
///
/// # Errors
/// The store cannot be read, or does not accept the outcome. It is processed again.
pub(super) async fn deal_with(
    shared: &Shared,
    trigger_event: &TriggerEventRow,
) -> Result<Next, Error> {
    // Trigger events of a removed trigger are processed. Nothing is left of a purged one.
    let Some(row) = shared.core.store().trigger(&trigger_event.trigger).await? else {
        return Ok(Next::GoOn);
    };
    match &trigger_event.fired {
        Some(fired) => posting::post(shared, &row, trigger_event, fired).await,
        None => fire(shared, &row, trigger_event).await,
    }
}

async fn fire(
    shared: &Shared,
    row: &TriggerRow,
    trigger_event: &TriggerEventRow,
) -> Result<Next, Error> {
    let core = &shared.core;
    let name = row.spec.component();
    let Some(entry) = core.component(name) else {
        let failure = Failure::of(format!("there is no component `{name}`"));
        return failed(shared, trigger_event, failure).await;
    };
    let message = match message(row, trigger_event) {
        Ok(message) => message,
        Err(failure) => return failed(shared, trigger_event, failure).await,
    };
    let call = FireCall {
        trigger: &row.name,
        now: trigger_event.accepted,
        configuration: &row.spec.configuration,
        message: message.as_deref(),
        state: row.state.as_ref(),
        trigger_event: &trigger_event.what,
        seed: seed(&row.name, trigger_event.trigger_event),
    };
    store::point("edge.call.before");
    let began = Instant::now();
    let fired = core
        .runtime
        .fire(&entry.component, &entry.grant.limits, call)
        .await;
    let took = began.elapsed();
    store::point("edge.call.after");
    guest_log::record(&entry.name, &fired.logs);
    let Fired {
        outcome, decided, ..
    } = fired;
    let ledger = ledger::entry(row, &entry, decided, core.now());
    match acknowledged(outcome) {
        Ok(acknowledged) => {
            let what = Acknowledging {
                row,
                trigger_event,
                entry: &entry,
                took,
                ledger,
            };
            acknowledge(shared, what, acknowledged).await
        }
        Err(Unfinished::Again { ms }) => Ok(Next::Again { ms }),
        Err(Unfinished::Failed(failure)) => {
            failed(shared, trigger_event, failure.with_ledger(ledger)).await
        }
    }
}

/// Returns the operator's message with its variables filled in; none if none is configured.
fn message(row: &TriggerRow, trigger_event: &TriggerEventRow) -> Result<Option<String>, Failure> {
    let Some(template) = &row.spec.message else {
        return Ok(None);
    };
    let payload = trigger_event.what.payload();
    let variables = Variables {
        now: trigger_event.accepted,
        path: trigger_event.what.path(),
        agent_id: agent_id(&row.spec),
        trigger_id: row.name.as_str(),
        headers: trigger_event.what.headers(),
        query: trigger_event.what.query(),
        payload: &payload,
    };
    // The same template and trigger event give the same error.
    render(template, &variables)
        .map(Some)
        .map_err(|error| Failure::lasting(error.to_string()))
}

/// Returns the name by which a trigger's target names an agent; empty where it names none.
fn agent_id(spec: &TriggerSpec) -> &str {
    match &spec.target {
        TriggerTarget::Agent { agent } => agent,
        TriggerTarget::Path { path } => path.as_str(),
        TriggerTarget::Smart { smart } => smart.agent.as_deref().unwrap_or_default(),
        TriggerTarget::Session { .. }
        | TriggerTarget::Turn { .. }
        | TriggerTarget::Persona { .. } => "",
    }
}

/// Returns the source of a trigger run's randomness: the same for every attempt at the trigger
/// event.
fn seed(name: &TriggerName, trigger_event: TriggerEventId) -> Digest {
    Digest::of_parts(&[
        b"trigger_run",
        name.as_str().as_bytes(),
        trigger_event.0.as_bytes(),
    ])
}

/// The acknowledgement of a trigger event by its component.
enum Acknowledged {
    /// It was processed.
    Fired(TriggerRun),
    /// It is malformed.
    Rejected(String),
}

/// The reason why a trigger event is not acknowledged.
enum Unfinished {
    /// The component could not be called now.
    Again { ms: u64 },
    /// The attempt failed.
    Failed(Failure),
}

fn acknowledged(
    outcome: Outcome<Result<TriggerRun, TriggerError>>,
) -> Result<Acknowledged, Unfinished> {
    let failure = match outcome {
        Outcome::Returned(Ok(trigger_run)) => return Ok(Acknowledged::Fired(trigger_run)),
        Outcome::Returned(Err(TriggerError::Rejected(reason))) => {
            return Ok(Acknowledged::Rejected(kept_reason(&reason)));
        }
        Outcome::Returned(Err(TriggerError::RetryLater(ms))) => {
            Failure::after(TriggerError::RetryLater(ms).to_string(), ms)
        }
        Outcome::Busy => return Err(Unfinished::Again { ms: BUSY_MS }),
        Outcome::TooOften { wait_ms } => {
            let ms = wait_ms.clamp(BUSY_MS, TOO_OFTEN_MS_MAX);
            return Err(Unfinished::Again { ms });
        }
        Outcome::Refused { detail } => {
            Failure::of(format!("the component's answer cannot be taken: {detail}"))
        }
        Outcome::Trapped { message, .. } => {
            Failure::of(format!("the component trapped: {message}"))
        }
        Outcome::OutOfMemory => Failure::of("the component ran out of memory"),
        Outcome::OutOfCpu => Failure::of("the component computed longer than it may"),
        Outcome::TimedOut => Failure::of("the component took longer than it may"),
        Outcome::Faulted { detail, .. } => {
            Failure::of(format!("the host could not call it: {detail}"))
        }
    };
    Err(Unfinished::Failed(failure))
}

/// A trigger event that is being acknowledged.
struct Acknowledging<'a> {
    row: &'a TriggerRow,
    trigger_event: &'a TriggerEventRow,
    entry: &'a Entry,
    /// Time that the call took.
    took: Duration,
    /// The entry of the ledger, if there is one.
    ledger: Option<Event>,
}

/// Stores the result of a trigger run, and hands its messages over.
async fn acknowledge(
    shared: &Shared,
    what: Acknowledging<'_>,
    acknowledged: Acknowledged,
) -> Result<Next, Error> {
    let core = &shared.core;
    let row = what.row;
    let trigger_event = what.trigger_event;
    let now = core.now();
    let is_done = matches!(&acknowledged, Acknowledged::Fired(trigger_run) if trigger_run.done);
    let fired = fired_event(&what, acknowledged, now);
    let is_over = is_done || is_over(row);
    let mut events = following(row, &fired, is_over, now);
    events.extend(what.ledger);
    let state = TriggerEventState::Waiting;
    store::point("edge.fire.before");
    let is_stored = recording::settle(shared, trigger_event, state, events, now).await;
    store::point("edge.fire.after");
    if !is_stored? || fired.messages.is_empty() {
        return Ok(Next::GoOn);
    }
    posting::post(shared, row, trigger_event, &fired).await
}

/// Returns whether this was the last trigger event of a schedule.
pub(super) fn is_over(row: &TriggerRow) -> bool {
    let is_schedule = matches!(row.spec.on, TriggerKind::Schedule(_));
    is_schedule && row.next_due.is_none() && row.pending <= 1
}

fn fired_event(
    what: &Acknowledging<'_>,
    acknowledged: Acknowledged,
    now: Timestamp,
) -> TriggerFired {
    let name = &what.row.name;
    let trigger_event = what.trigger_event.trigger_event;
    let (trigger_run, rejected) = match acknowledged {
        Acknowledged::Fired(trigger_run) => (Some(trigger_run), None),
        Acknowledged::Rejected(reason) => (None, Some(reason)),
    };
    let (messages, state) = match trigger_run {
        Some(trigger_run) => (trigger_run.messages, trigger_run.state),
        None => (Vec::new(), None),
    };
    let messages = messages.into_iter().enumerate();
    TriggerFired {
        name: name.clone(),
        trigger_event,
        component: what.entry.component.digest(),
        messages: messages
            .map(|(number, message)| numbered(name, trigger_event, number, message))
            .collect(),
        state,
        rejected,
        took_us: u64::try_from(what.took.as_micros()).unwrap_or(u64::MAX),
        time: now,
    }
}

/// Returns a message under its idempotency key. A key of the component's own never equals one of
/// the host's.
fn numbered(
    name: &TriggerName,
    trigger_event: TriggerEventId,
    number: usize,
    message: FiredMessage,
) -> TriggerMessage {
    let key = match message.key.filter(|key| !key.is_empty()) {
        Some(own) => format!("own:{own}"),
        None => format!("trigger:{name}:{trigger_event}:{number}"),
    };
    TriggerMessage {
        target: message.target,
        text: message.text,
        key,
    }
}

/// Returns the events of a trigger run: messages and state, and the consequences for the trigger.
fn following(row: &TriggerRow, fired: &TriggerFired, is_over: bool, now: Timestamp) -> Vec<Event> {
    let name = &row.name;
    let mut failures = row.failures;
    let mut events = vec![Event::TriggerFired(fired.clone())];
    let recovered = || recording::troubled(name, TriggerTrouble::Recovered, now);
    events.extend(failures.after_success().then(recovered));
    events.extend(is_over.then(|| recording::paused(name, PauseReason::Done, now)));
    events
}
