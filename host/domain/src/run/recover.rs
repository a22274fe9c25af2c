//! What happens to an open operation: performed, left waiting, or settled, also after a restart.

use super::{Open, Run};
use crate::approval::{declined, expired};
use crate::limits::PARALLEL_CALLS_MAX;
use crate::message::Part;
use crate::operation::{Pause, Performer};
use crate::run::end::undelegated_in_time;
use crate::run::intake::wakes;
use crate::run::settle::{Ended, settlement};
use crate::step::Failure;
use crate::time::Timestamp;
use crate::tool::EffectClass;
use crate::{id::OperationId, operation::Settlement};

/// What is to be done about an open operation that nobody is working on.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Perform its segment now.
    Perform {
        /// Whether to record `operation.started` first: it must be possible to tell "sent" from "never sent".
        record_first: bool,
    },
    /// It has come to its end.
    Settle(Box<Settlement>),
    /// It waits for somebody or for a time.
    Wait {
        /// The time.
        until: Option<Timestamp>,
    },
}

/// What is to be done about an operation, if nobody is working on it.
#[must_use]
pub fn next(open: &Open, now: Timestamp) -> Next {
    let operation = &open.operation;
    let settle = |ended| Next::Settle(Box::new(settlement(operation, ended, now)));
    if operation.deadline.is_some_and(|deadline| deadline <= now) {
        return settle(overdue(open, now));
    }
    match (&operation.performer, &open.pause) {
        (Performer::Refused { outcome }, _) => settle(refused(outcome.clone())),
        (Performer::Reply { settled, .. }, _) => settle(replied(*settled)),
        (Performer::Detached { told, .. }, _) => settle(Ended::Gave { parts: vec![Part::text(told.as_str())], untrusted: false }),
        (Performer::Timer { due }, _) if *due <= now => settle(Ended::Elapsed),
        (Performer::Timer { due }, _) => Next::Wait { until: Some(*due) },
        (_, Pause::Declined) => settle(Ended::Failed(declined())),
        (_, Pause::Approving) => match &operation.approval {
            Some(approval) if approval.until > now => {
                Next::Wait { until: Some(operation.deadline.map_or(approval.until, |deadline| deadline.min(approval.until))) }
            }
            Some(_) | None => settle(Ended::Failed(expired())),
        },
        (_, Pause::Asking { until: Some(until), .. }) if *until <= now => settle(Ended::TimedOut),
        (_, Pause::Asking { until: Some(until), .. }) => {
            Next::Wait { until: Some(operation.deadline.map_or(*until, |deadline| deadline.min(*until))) }
        }
        (Performer::Client { .. } | Performer::Agent { .. }, _) | (_, Pause::Asking { .. }) => Next::Wait { until: operation.deadline },
        (_, Pause::Until { due }) if *due > now => {
            Next::Wait { until: Some(operation.deadline.map_or(*due, |deadline| deadline.min(*due))) }
        }
        _ if open.may_have_taken_effect() => settle(Ended::Unknown),
        _ => Next::Perform { record_first: operation.effect == EffectClass::NonIdempotent },
    }
}

/// Whether an operation would reach out of the host by itself, at once or when its pause is over: a model would be asked, or a tool called that
/// does more than read. After a restore from a backup it may have done so before.
#[must_use]
pub fn would_be_sent(open: &Open, now: Timestamp) -> bool {
    let reaches_out = match &open.operation.performer {
        Performer::Model { .. } => true,
        Performer::Tool { .. } => open.operation.effect != EffectClass::ReadOnly,
        Performer::Client { .. }
        | Performer::Agent { .. }
        | Performer::Detached { .. }
        | Performer::Recall { .. }
        | Performer::Timer { .. }
        | Performer::Refused { .. }
        | Performer::Reply { .. } => false,
    };
    let by_itself = match next(open, now) {
        Next::Perform { .. } => true,
        Next::Wait { .. } => matches!(open.pause, Pause::Until { .. }),
        Next::Settle(_) => false,
    };
    reaches_out && by_itself
}

/// Whether a run would go on by itself now: a step is due, or something is to be done or settled that nobody has to say a word about.
#[must_use]
pub fn goes_on(run: &Run, now: Timestamp) -> bool {
    let moves = |open: &Open| would_be_sent(open, now) || !matches!(next(open, now), Next::Wait { .. });
    run.ended.is_none() && (wakes(run, &[], false) || run.open.values().any(moves))
}

/// The settlement of an operation whose work the host lost while it was done: not known if it may have taken effect, and otherwise failed.
#[must_use]
pub fn lost(open: &Open, failure: Failure, now: Timestamp) -> Settlement {
    let ended = if open.may_have_taken_effect() { Ended::Unknown } else { Ended::Failed(failure) };
    settlement(&open.operation, ended, now).costing(open.cut_off())
}

/// What an operation comes to whose time is up: the same that its work would say of it that ends at the same moment. A message that was not
/// answered in time is worked on all the same.
fn overdue(open: &Open, now: Timestamp) -> Ended {
    if let Performer::Agent { session, input, message: Some(messaged), .. } = &open.operation.performer {
        return Ended::Gave { parts: vec![Part::text(messaged.timeout(*session, *input).to_string())], untrusted: false };
    }
    if let Some(told) = undelegated_in_time(&open.operation, now) {
        return told;
    }
    if open.may_have_taken_effect() { Ended::Unknown } else { Ended::TimedOut }
}

fn replied(settled: bool) -> Ended {
    let told = if settled { "Your caller has it and goes on." } else { "Your caller waits no more; it gets this as a message." };
    Ended::Gave { parts: vec![Part::text(told)], untrusted: false }
}

fn refused(outcome: crate::step::Outcome) -> Ended {
    use crate::step::Outcome;
    match outcome {
        Outcome::Failed { failure } => Ended::Failed(failure),
        Outcome::Denied => Ended::Denied,
        Outcome::TimedOut => Ended::TimedOut,
        Outcome::Value { value } => Ended::Value(value),
        Outcome::Parts { parts } => Ended::Gave { parts, untrusted: false },
        Outcome::Elapsed => Ended::Elapsed,
        Outcome::Cancelled => Ended::Cancelled,
        Outcome::Message { .. } | Outcome::Unknown => Ended::Unknown,
    }
}

/// Which operations to look at now, given those that are being worked on: reads and idempotent calls side by side up to
/// [`PARALLEL_CALLS_MAX`], non-idempotent ones one after the other in the order in which they were asked for.
#[must_use]
pub fn ready(run: &Run, busy: &dyn Fn(OperationId) -> bool, now: Timestamp) -> Vec<(OperationId, Next)> {
    let mut calls = run.open.values().filter(|open| open.is_active() && busy(open.operation.id)).count();
    let mut serial_taken = run.open.values().any(|open| is_serial(open) && busy(open.operation.id));
    let mut order: Vec<&Open> = run.open.values().filter(|open| !busy(open.operation.id)).collect();
    order.sort_by_key(|open| (open.operation.step, open.operation.place));
    let mut ready = Vec::new();
    for open in order {
        let next = next(open, now);
        if matches!(next, Next::Perform { .. }) {
            let serial = is_serial(open);
            if calls >= PARALLEL_CALLS_MAX || (serial && serial_taken) {
                continue;
            }
            calls += 1;
            serial_taken |= serial;
        }
        ready.push((open.operation.id, next));
    }
    ready
}

fn is_serial(open: &Open) -> bool {
    open.operation.effect == EffectClass::NonIdempotent && open.is_active()
}
