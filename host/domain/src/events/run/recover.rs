//! The handling of open operations, also after a restart: they are performed, left waiting, or
//! settled.

use super::{Open, Run};
use crate::access::tool::EffectClass;
use crate::events::event::{InputDead, RunRecovered, RunStepped};
use crate::events::run::end::{Cause, undelegated_in_time};
use crate::events::run::intake::wakes;
use crate::events::run::settle::{Ended, settlement};
use crate::thread::message::Part;
use crate::values::id::{InputId, OperationId};
use crate::values::limits::PARALLEL_CALLS_MAX;
use crate::values::time::Timestamp;
use crate::work::approval::{declined, expired};
use crate::work::delegate::TaskState;
use crate::work::operation::{Pause, Performer, Settlement};
use crate::work::outbound_message::is_delivered;
use crate::work::step::Failure;

/// The code of a run's end that the host caused by giving up.
pub const GIVEN_UP: &str = "host-failed";

/// The next action for an open operation without work in progress.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Perform its segment now.
    Perform {
        /// True if `operation.started` has to be recorded first. It must be possible to distinguish
        /// "sent" from "never sent".
        record_first: bool,
    },
    /// It has ended.
    Settle(Box<Settlement>),
    /// It waits for a user, for another agent, or for a time.
    Wait {
        /// The time.
        until: Option<Timestamp>,
    },
}

/// Returns the next action for an operation without work in progress.
#[must_use]
pub fn next(open: &Open, now: Timestamp) -> Next {
    let operation = &open.operation;
    let settle = |ended| Next::Settle(Box::new(settlement(operation, ended, now)));
    let wait_until = |time: Timestamp| Next::Wait {
        until: Some(
            operation
                .deadline
                .map_or(time, |deadline| deadline.min(time)),
        ),
    };
    if let Some(settled) = past_deadline(open, now) {
        return Next::Settle(Box::new(settled));
    }
    if let Some(ended) = refused(&operation.performer) {
        return settle(ended);
    }
    match (&operation.performer, &open.pause) {
        (Performer::Reply { settled, .. }, _) => settle(replied(*settled)),
        (Performer::Detached { reported, .. } | Performer::Memory { reported }, _) => {
            settle(Ended::Gave {
                parts: vec![Part::text(reported.as_str())],
                untrusted: false,
            })
        }
        (Performer::Timer { due }, _) if *due <= now => settle(Ended::Elapsed),
        (Performer::Timer { due }, _) => Next::Wait { until: Some(*due) },
        (_, Pause::Declined) => settle(Ended::Failed(declined())),
        (_, Pause::Approving) => match &operation.approval {
            Some(approval) if approval.until > now => wait_until(approval.until),
            Some(_) | None => settle(Ended::Failed(expired())),
        },
        (
            _,
            Pause::Asking {
                until: Some(until), ..
            },
        ) if *until <= now => settle(Ended::Unanswered),
        (
            _,
            Pause::Asking {
                until: Some(until), ..
            },
        ) => wait_until(*until),
        (Performer::Client { .. } | Performer::Agent { .. }, _) | (_, Pause::Asking { .. }) => {
            Next::Wait {
                until: operation.deadline,
            }
        }
        (_, Pause::Until { due }) if *due > now => wait_until(*due),
        _ if open.calling.is_some() => Next::Wait {
            until: operation.deadline,
        },
        _ if open.may_have_taken_effect() => settle(Ended::Unknown(Failure::interrupted())),
        // Approved in time, and not begun in time: the host was down, or the call waited too long.
        _ if open.segment == 0
            && operation
                .approval
                .as_ref()
                .is_some_and(|approval| approval.until <= now) =>
        {
            settle(Ended::Failed(expired()))
        }
        _ => Next::Perform {
            record_first: operation.effect == EffectClass::NonIdempotent,
        },
    }
}

/// Returns the settlement of an operation whose deadline has passed; none for others.
fn past_deadline(open: &Open, now: Timestamp) -> Option<Settlement> {
    let operation = &open.operation;
    let is_overdue = operation.deadline.is_some_and(|deadline| deadline <= now);
    // A command line ends after its present call, which ends by the same time.
    if !is_overdue || open.calling.is_some() {
        return None;
    }
    let overdue = settlement(operation, overdue(open, now), now).costing(open.stopped_attempts());
    Some(match &operation.performer {
        Performer::Agent { .. } => overdue.ending(TaskState::Timeout),
        _ => overdue,
    })
}

/// Returns whether an operation would affect the outside without further input, at once or after
/// its pause. It would call a model, call a tool that does more than read, or run a command line.
/// After a restore from a backup it may have done so before.
#[must_use]
pub fn would_be_sent(open: &Open, now: Timestamp) -> bool {
    let reaches_out = match &open.operation.performer {
        // A line makes its calls without further input.
        Performer::Model { .. } | Performer::Command { .. } => true,
        Performer::Tool { .. } => open.operation.effect != EffectClass::ReadOnly,
        Performer::External { .. } => !is_delivered(open.state.as_deref()),
        Performer::Client { .. }
        | Performer::Agent { .. }
        | Performer::Detached { .. }
        | Performer::Recall { .. }
        | Performer::Memory { .. }
        | Performer::Lasting { .. }
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

/// Returns whether a run would continue now without further input. A step is due, or an operation
/// can be performed or settled.
#[must_use]
pub fn goes_on(run: &Run, now: Timestamp) -> bool {
    let moves =
        |open: &Open| would_be_sent(open, now) || !matches!(next(open, now), Next::Wait { .. });
    run.ended.is_none() && (wakes(run, &[], false) || run.open.values().any(moves))
}

impl Run {
    /// Returns whether a step, before it is applied, is progress: whether its news has more than
    /// elapsed timers and the client's answers.
    pub(super) fn is_progress(&self, stepped: &RunStepped) -> bool {
        let arrived = stepped
            .settled
            .iter()
            .filter_map(|settlement| self.open.get(&settlement.operation));
        let mut reported = self
            .untold
            .iter()
            .map(|reported| &reported.0)
            .chain(arrived.map(|open| &open.operation))
            .peekable();
        let hears_only_others = reported.peek().is_some() && stepped.claimed.is_empty();
        !(hears_only_others && reported.all(|operation| operation.performer.only_waits()))
    }
}

/// The record that a run continues after the host ended unexpectedly.
#[must_use]
pub fn recovered(run: &Run, time: Timestamp) -> RunRecovered {
    RunRecovered {
        run: run.started.run,
        count: run.recoveries.saturating_add(1),
        time,
    }
}

/// The end of a run that ended the host this many times.
#[must_use]
pub fn given_up(ends: u32) -> Cause {
    Cause::Failed {
        code: GIVEN_UP.to_owned(),
        reason: format!(
            "the host ended {ends} times in a row while it worked on this, and was not told to; \
             whoever runs it finds the reason in its log"
        ),
    }
}

/// Returns the reason why the host gave up a run. None for any other cause of an end.
#[must_use]
pub fn why_given_up(cause: &Cause) -> Option<&str> {
    match cause {
        Cause::Failed { code, reason } if code == GIVEN_UP => Some(reason),
        _ => None,
    }
}

/// Returns the dead letters for a run's unanswered inputs. A run that has replied to its caller has
/// answered the work that it began with.
#[must_use]
pub fn put_aside(run: &Run, reason: &str, time: Timestamp) -> Vec<InputDead> {
    let dead = |input: &InputId| InputDead {
        input: *input,
        session: run.started.session,
        reason: reason.to_owned(),
        time,
    };
    let answered = run.answered.max(usize::from(run.replied));
    run.claimed.iter().skip(answered).map(dead).collect()
}

/// Returns the settlement of an operation whose work the host lost in progress. Its outcome is
/// unknown if it may have taken effect; otherwise it failed.
#[must_use]
pub fn lost(open: &Open, failure: Failure, now: Timestamp) -> Settlement {
    let ended = if open.may_have_taken_effect() {
        Ended::Unknown(failure)
    } else {
        Ended::Failed(failure)
    };
    settlement(&open.operation, ended, now).costing(open.cut_off())
}

/// Returns the end of an operation that has timed out. It is the same as if its work ended at the
/// same moment. A message that was not answered in time is processed all the same.
fn overdue(open: &Open, now: Timestamp) -> Ended {
    if let Performer::Agent {
        session,
        input,
        message: Some(messaged),
        ..
    } = &open.operation.performer
    {
        return Ended::Gave {
            parts: vec![Part::text(messaged.timeout(*session, *input).to_string())],
            untrusted: false,
        };
    }
    if let Some(reported) = undelegated_in_time(&open.operation, now) {
        return reported;
    }
    match open.operation.performer {
        _ if open.may_have_taken_effect() => Ended::Unknown(Failure::lasting(
            "timed-out",
            "this took too long and was stopped",
        )),
        Performer::Client { .. } => Ended::Unanswered,
        _ => Ended::TimedOut,
    }
}

fn replied(settled: bool) -> Ended {
    let reported = if settled {
        "Your caller has it and goes on."
    } else {
        "Your caller waits no more; it gets this as a message."
    };
    Ended::Gave {
        parts: vec![Part::text(reported)],
        untrusted: false,
    }
}

/// Returns the end of work whose outcome is known as soon as it is decided; none for other work.
#[must_use]
pub fn at_once(performer: &Performer) -> Option<Ended> {
    match performer {
        Performer::Memory { reported } => Some(Ended::Gave {
            parts: vec![Part::text(reported.as_str())],
            untrusted: false,
        }),
        performer => refused(performer),
    }
}

/// Returns the outcome that an operation had from the start; none for one that is performed.
fn refused(performer: &Performer) -> Option<Ended> {
    use crate::work::step::OperationOutcome;
    let Performer::Refused {
        outcome, untrusted, ..
    } = performer
    else {
        return None;
    };
    Some(match outcome.clone() {
        OperationOutcome::Failed { failure } => Ended::Failed(failure),
        OperationOutcome::Denied => Ended::Denied,
        OperationOutcome::TimedOut => Ended::TimedOut,
        OperationOutcome::Value { value } => Ended::Value(value),
        OperationOutcome::Parts { parts } => Ended::Gave {
            parts,
            untrusted: *untrusted,
        },
        OperationOutcome::Elapsed => Ended::Elapsed,
        OperationOutcome::Cancelled => Ended::Cancelled,
        OperationOutcome::Unknown { cause } => Ended::Unknown(cause),
        OperationOutcome::Message { .. } => Ended::Unknown(Failure::interrupted()),
    })
}

/// Returns the operations to start now, given those in progress. Reads and idempotent calls run in
/// parallel up to [`PARALLEL_CALLS_MAX`]; non-idempotent ones run one after the other in the order
/// of their requests.
#[must_use]
pub fn ready(
    run: &Run,
    busy: &dyn Fn(OperationId) -> bool,
    now: Timestamp,
) -> Vec<(OperationId, Next)> {
    let mut calls = run
        .open
        .values()
        .filter(|open| open.is_active() && busy(open.operation.id))
        .count();
    let mut serial_taken = run
        .open
        .values()
        .any(|open| is_serial(open) && busy(open.operation.id));
    let mut order: Vec<&Open> = run
        .open
        .values()
        .filter(|open| !busy(open.operation.id))
        .collect();
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

/// Returns whether an operation may be performed when calls run one at a time. It is no call, or
/// all calls requested before it have their outcomes.
#[must_use]
pub fn is_its_turn(run: &Run, operation: OperationId) -> bool {
    let calls = || run.open.values().filter(|open| is_call(open));
    let place = |open: &Open| (open.operation.step, open.operation.place);
    let own = calls()
        .find(|open| open.operation.id == operation)
        .map(place);
    own.is_none_or(|own| calls().all(|open| place(open) >= own))
}

/// Returns whether an operation is a call of the agent's own, and not of a command line.
fn is_call(open: &Open) -> bool {
    let calls = matches!(
        open.operation.performer,
        Performer::Tool { .. }
            | Performer::Agent { .. }
            | Performer::Command { .. }
            | Performer::Recall { .. }
    );
    calls && open.within.is_none()
}

fn is_serial(open: &Open) -> bool {
    open.operation.effect == EffectClass::NonIdempotent && open.is_active()
}
