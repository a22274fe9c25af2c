//! One occasion: its trigger's component is called on it, and one commit stores what comes of it.
//!
//! The call has no effects, and nothing of it counts before that commit. So a call that a crash cut
//! off is made again, with the same clock and the same randomness.

use super::dispatch::Next;
use super::failing::{Failure, failed, shortened};
use super::{Shared, ledger, posting};
use crate::journal::Context;
use broker::{Entry, Error, guest_log};
use domain::digest::Digest;
use domain::event::{
    Event, PauseReason, TriggerFired, TriggerMessage, TriggerPaused, TriggerTrouble,
    TriggerTroubled,
};
use domain::id::{OccasionId, Stream};
use domain::time::Timestamp;
use domain::trigger::{TriggerKind, TriggerName, TriggerSpec, TriggerTarget, Variables, render};
use runtime::{FireCall, Fired, FiredMessage, Firing, Outcome, TriggerError};
use std::time::Duration;
use store::{Commit, CommitError, Expected, OccasionRow, TriggerGuard, TriggerRow};
use tokio::time::Instant;

/// Milliseconds until a component is called again that too many call.
const BUSY_MS: u64 = 250;
/// Most milliseconds until a component is called again that was called too often.
const TOO_OFTEN_MS_MAX: u64 = 60_000;

/// Deals with an occasion, from where it is.
///
/// # Errors
/// The store cannot be read, or does not take what became of it. It is dealt with again.
pub(super) async fn deal_with(shared: &Shared, occasion: &OccasionRow) -> Result<Next, Error> {
    // Occasions of one that was removed are dealt with. Nothing is left of a purged one.
    let Some(row) = shared.core.store().trigger(&occasion.trigger).await? else {
        return Ok(Next::GoOn);
    };
    match &occasion.fired {
        Some(fired) => posting::post(shared, &row, occasion, fired).await,
        None => fire(shared, &row, occasion).await,
    }
}

async fn fire(shared: &Shared, row: &TriggerRow, occasion: &OccasionRow) -> Result<Next, Error> {
    let core = &shared.core;
    let name = row.spec.component();
    let Some(entry) = core.component(name) else {
        let failure = Failure::of(format!("there is no component `{name}`"));
        return failed(shared, occasion, failure).await;
    };
    let message = match message(row, occasion) {
        Ok(message) => message,
        Err(failure) => return failed(shared, occasion, failure).await,
    };
    let call = FireCall {
        trigger: &row.name,
        now: occasion.accepted,
        configuration: &row.spec.configuration,
        message: message.as_deref(),
        state: row.state.as_ref(),
        occasion: &occasion.what,
        seed: seed(&row.name, occasion.occasion),
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
                occasion,
                entry: &entry,
                took,
                ledger,
            };
            acknowledge(shared, what, acknowledged).await
        }
        Err(Unfinished::Again { ms }) => Ok(Next::Again { ms }),
        Err(Unfinished::Failed(failure)) => {
            failed(shared, occasion, failure.with_ledger(ledger)).await
        }
    }
}

/// Returns the operator's message with its variables filled in; none where there is none.
fn message(row: &TriggerRow, occasion: &OccasionRow) -> Result<Option<String>, Failure> {
    let Some(template) = &row.spec.message else {
        return Ok(None);
    };
    let payload = occasion.what.payload();
    let variables = Variables {
        now: occasion.accepted,
        path: occasion.what.path(),
        agent_id: agent_id(&row.spec),
        trigger_id: row.name.as_str(),
        headers: occasion.what.headers(),
        query: occasion.what.query(),
        payload: &payload,
    };
    // The same template and occasion give the same error.
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

/// Returns the source of a firing's randomness: the same for every attempt at the occasion.
fn seed(name: &TriggerName, occasion: OccasionId) -> Digest {
    Digest::of_parts(&[b"firing", name.as_str().as_bytes(), occasion.0.as_bytes()])
}

/// The acknowledgement of an occasion by its component.
enum Acknowledged {
    /// It was dealt with.
    Fired(Firing),
    /// It makes no sense.
    Rejected(String),
}

/// The reason why an occasion is not acknowledged.
enum Unfinished {
    /// The component could not be called now.
    Again { ms: u64 },
    /// The attempt failed.
    Failed(Failure),
}

fn acknowledged(
    outcome: Outcome<Result<Firing, TriggerError>>,
) -> Result<Acknowledged, Unfinished> {
    let failure = match outcome {
        Outcome::Returned(Ok(firing)) => return Ok(Acknowledged::Fired(firing)),
        Outcome::Returned(Err(TriggerError::Rejected(reason))) => {
            return Ok(Acknowledged::Rejected(shortened(reason)));
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

/// An occasion that is being acknowledged.
struct Acknowledging<'a> {
    row: &'a TriggerRow,
    occasion: &'a OccasionRow,
    entry: &'a Entry,
    /// Time that the call took.
    took: Duration,
    /// The entry of the ledger, if there is one.
    ledger: Option<Event>,
}

/// Stores what firing came to, and hands its messages over.
async fn acknowledge(
    shared: &Shared,
    what: Acknowledging<'_>,
    acknowledged: Acknowledged,
) -> Result<Next, Error> {
    let core = &shared.core;
    let row = what.row;
    let occasion = what.occasion;
    let now = core.now();
    let is_done = matches!(&acknowledged, Acknowledged::Fired(firing) if firing.done);
    let fired = fired_event(&what, acknowledged, now);
    let is_over = is_done || is_over(row);
    let mut events = following(row, &fired, is_over, now);
    events.extend(what.ledger);
    let commit = committing(row, occasion.occasion, events, now);
    store::point("edge.fire.before");
    let committed = core.store().commit(commit).await;
    store::point("edge.fire.after");
    match committed {
        Ok(_) => {}
        // It was dealt with, or given up, in between.
        Err(CommitError::Conflict(_)) => return Ok(Next::GoOn),
        Err(error) => return Err(error.into()),
    }
    if fired.messages.is_empty() {
        return Ok(Next::GoOn);
    }
    posting::post(shared, row, occasion, &fired).await
}

/// Returns whether this was the last occasion of a schedule.
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
    let occasion = what.occasion.occasion;
    let (firing, rejected) = match acknowledged {
        Acknowledged::Fired(firing) => (Some(firing), None),
        Acknowledged::Rejected(reason) => (None, Some(reason)),
    };
    let (messages, state) = match firing {
        Some(firing) => (firing.messages, firing.state),
        None => (Vec::new(), None),
    };
    let messages = messages.into_iter().enumerate();
    TriggerFired {
        name: name.clone(),
        occasion,
        component: what.entry.component.digest(),
        messages: messages
            .map(|(number, message)| numbered(name, occasion, number, message))
            .collect(),
        state,
        rejected,
        took_us: u64::try_from(what.took.as_micros()).unwrap_or(u64::MAX),
        time: now,
    }
}

/// Returns a message under its idempotency key. One of the component's own never meets one of the
/// host's.
fn numbered(
    name: &TriggerName,
    occasion: OccasionId,
    number: usize,
    message: FiredMessage,
) -> TriggerMessage {
    let key = match message.key.filter(|key| !key.is_empty()) {
        Some(own) => format!("own:{own}"),
        None => format!("trigger:{name}:{occasion}:{number}"),
    };
    TriggerMessage {
        target: message.target,
        text: message.text,
        key,
    }
}

/// Returns the events of a firing: messages and state, and what follows for the trigger.
fn following(row: &TriggerRow, fired: &TriggerFired, is_over: bool, now: Timestamp) -> Vec<Event> {
    let name = &row.name;
    let mut failures = row.failures;
    let mut events = vec![Event::TriggerFired(fired.clone())];
    events.extend(failures.after_success().then(|| {
        Event::TriggerTroubled(TriggerTroubled {
            name: name.clone(),
            trouble: TriggerTrouble::Recovered,
            time: now,
        })
    }));
    events.extend(is_over.then(|| {
        Event::TriggerPaused(TriggerPaused {
            name: name.clone(),
            reason: PauseReason::Done,
            time: now,
        })
    }));
    events
}

/// Returns the commit that acknowledges an occasion.
fn committing(
    row: &TriggerRow,
    occasion: OccasionId,
    events: Vec<Event>,
    now: Timestamp,
) -> Commit {
    let name = &row.name;
    let context = Context::new(format!("trigger:{name}"), now);
    Commit::new()
        .guard(TriggerGuard::OccasionWaiting {
            trigger: name.clone(),
            occasion,
        })
        .append(
            Stream::Trigger(name.id()),
            Expected::Any,
            context.events(events),
        )
}
