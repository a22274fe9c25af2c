//! The settlement of operations: outcomes, and the results for a model's calls.

use super::delegated::{address, answers_delegate, delegation, is_own_refused};
use super::{Open, Run};
use crate::access::tool::ClientAction;
use crate::access::user::UserId;
use crate::events::event::{Event, RunSettled};
use crate::thread::cut_off::CutOff;
use crate::thread::message::{Answers, Draft, Part, Role};
use crate::thread::model::Reply;
use crate::thread::spill::{spill, spill_value};
use crate::values::digest::Digest;
use crate::values::error_code::ErrorCode;
use crate::values::id::OperationId;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;
use crate::work::approval::{self, ApprovalAnswered};
use crate::work::budget::Amount;
use crate::work::delegate::{DelegateResult, TaskState};
use crate::work::operation::{Answer, Attempt, Kept, Operation, Pause, Performer, Settlement};
use crate::work::step::{Failure, OperationOutcome};
use serde_json::Value;

/// The end of a piece of work, before it is turned into a result for the agent and the thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// A model replied.
    Replied(Reply),
    /// A tool or an agent returned a result; `untrusted` if it is from outside.
    Gave {
        /// The result.
        parts: Vec<Part>,
        /// True if it is from outside the user's and the operator's control.
        untrusted: bool,
    },
    /// A client answered.
    Value(Value),
    /// A recall has a result; `untrusted` if any of it has that mark.
    Recalled {
        /// The hits.
        hits: Value,
        /// True if any of the hits rests on content from outside.
        untrusted: bool,
    },
    /// The time has passed.
    Elapsed,
    /// It failed.
    Failed(Failure),
    /// It was not allowed.
    Denied,
    /// It took too long.
    TimedOut,
    /// Its question was not answered in time.
    Unanswered,
    /// It was cancelled.
    Cancelled,
    /// It is unknown whether it happened, for this reason.
    Unknown(Failure),
}

/// The settlement of an operation with this end. A model's call always gets a result, whatever
/// happened.
#[must_use]
pub fn settlement(operation: &Operation, ended: Ended, time: Timestamp) -> Settlement {
    let marked = ended.is_untrusted(operation);
    let own_calls = match &ended {
        Ended::Replied(reply) => reply.own_calls.clone(),
        _ => Vec::new(),
    };
    let (outcome, result) = match ended {
        Ended::Replied(reply) if operation.in_thread => {
            let origin = format!("model:{}", reply.model);
            let draft = Draft {
                role: Role::Assistant,
                parts: marked_parts(reply),
                origin,
                untrusted: false,
                speaker: None,
                answers: None,
            };
            (OperationOutcome::Message { id: 0 }, Some(draft))
        }
        Ended::Replied(reply) => {
            let parts = marked_parts(reply);
            (OperationOutcome::Parts { parts }, None)
        }
        Ended::Gave {
            parts,
            untrusted: _,
        } => match paired(operation, parts.clone(), false) {
            Some(draft) => (OperationOutcome::Message { id: 0 }, Some(draft)),
            None => (OperationOutcome::Parts { parts }, None),
        },
        Ended::Value(value)
        | Ended::Recalled {
            hits: value,
            untrusted: _,
        } => {
            let draft = paired(operation, vec![Part::text(value.to_string())], false);
            (OperationOutcome::Value { value }, draft)
        }
        Ended::Elapsed => (
            OperationOutcome::Elapsed,
            paired(operation, vec![Part::text("The time has passed.")], false),
        ),
        Ended::Failed(failure) => resultless(operation, OperationOutcome::Failed { failure }, time),
        Ended::Denied => resultless(operation, OperationOutcome::Denied, time),
        Ended::TimedOut => resultless(operation, OperationOutcome::TimedOut, time),
        Ended::Unanswered => {
            let (outcome, _) = resultless(operation, OperationOutcome::TimedOut, time);
            let parts = vec![Part::text("Error (timed-out): nobody answered in time.")];
            (outcome, paired(operation, parts, true))
        }
        Ended::Cancelled => resultless(operation, OperationOutcome::Cancelled, time),
        Ended::Unknown(cause) => resultless(operation, OperationOutcome::Unknown { cause }, time),
    };
    Settlement {
        result,
        own_calls,
        ..Settlement::new(operation.id, outcome, time)
    }
    .marked(marked)
}

/// The parts of a reply, with a mark if it is incomplete.
fn marked_parts(reply: Reply) -> Vec<Part> {
    let mark = CutOff::of_stop(&reply.stop).map(CutOff::part);
    reply.parts.into_iter().chain(mark).collect()
}

impl Ended {
    /// Returns whether its result rests on content from outside.
    fn is_untrusted(&self, operation: &Operation) -> bool {
        match self {
            Self::Gave { untrusted, .. } | Self::Recalled { untrusted, .. } => *untrusted,
            // The tool may have worded the reason of its failure or interruption.
            Self::Failed(failure) | Self::Unknown(failure) => {
                matches!(operation.performer, Performer::Tool { .. }) && !approval::is_of(failure)
            }
            Self::Replied(reply) => reply.untrusted,
            _ => false,
        }
    }
}

impl Settlement {
    /// Adds the attempts at a model, with the cost of each.
    #[must_use]
    pub fn costing(mut self, attempts: Vec<Attempt>) -> Self {
        self.attempts = attempts;
        self
    }

    /// Moves its long parts to blobs, which are to be stored with it. A value that is too long
    /// becomes parts. A model's reply stays unchanged, because it is its message.
    #[must_use]
    pub fn spilled(mut self) -> (Self, Vec<Vec<u8>>) {
        let mut blobs = Vec::new();
        self.outcome = match self.outcome {
            OperationOutcome::Value { value } => match spill_value(&value) {
                Some((parts, blob)) => {
                    blobs.push(blob);
                    OperationOutcome::Parts { parts }
                }
                None => OperationOutcome::Value { value },
            },
            OperationOutcome::Parts { parts } => {
                let (parts, blob) = spill(parts);
                blobs.extend(blob);
                OperationOutcome::Parts { parts }
            }
            outcome => outcome,
        };
        if let Some(result) = &mut self.result {
            let (parts, blob) = spill(std::mem::take(&mut result.parts));
            result.parts = parts;
            blobs.extend(blob);
        }
        (self, blobs)
    }

    /// Adds the resources that another agent used for it.
    #[must_use]
    pub fn spending(mut self, spent: Amount) -> Self {
        self.spent = Some(spent);
        self
    }
}

/// Returns the settlement of an operation whose task is cancelled. A delegation by the agent itself
/// is reported as one by its model is.
#[must_use]
pub fn task_cancelled(operation: &Operation, time: Timestamp) -> Settlement {
    let ended = match delegation(operation, time) {
        Some((delegation, task)) if operation.answers.is_none() => Ended::Gave {
            parts: vec![Part::text(
                DelegateResult::cancelled(&delegation, &task).to_string(),
            )],
            untrusted: false,
        },
        _ => Ended::Cancelled,
    };
    settlement(operation, ended, time).ending(TaskState::Cancelled)
}

/// Returns the outcome of an operation without a result, and the message that reports it to a
/// model.
fn resultless(
    operation: &Operation,
    outcome: OperationOutcome,
    time: Timestamp,
) -> (OperationOutcome, Option<Draft>) {
    let delegated = undelegated(operation, &outcome, time).map(|result| result.to_string());
    let text = delegated
        .or_else(|| outcome.complaint())
        .unwrap_or_default();
    let parts = vec![Part::text(text)];
    let outcome = match outcome {
        _ if is_own_refused(operation) => OperationOutcome::Parts {
            parts: parts.clone(),
        },
        outcome => outcome,
    };
    (outcome, paired(operation, parts, true))
}

/// Returns the result of a failed call of `delegate`; none for other operations.
fn undelegated(
    operation: &Operation,
    outcome: &OperationOutcome,
    time: Timestamp,
) -> Option<DelegateResult> {
    if !answers_delegate(operation) {
        return None;
    }
    let complaint = outcome.complaint()?;
    let Some((delegation, task)) = delegation(operation, time) else {
        let refused = match outcome {
            OperationOutcome::Denied => DelegateResult::denied(),
            OperationOutcome::Failed { failure } => DelegateResult::refused(failure),
            _ => DelegateResult::not_started(&complaint),
        };
        return Some(refused.addressed(address(operation)));
    };
    Some(match outcome {
        OperationOutcome::Failed { failure } => {
            DelegateResult::failed(&delegation, &task, &failure.message, true)
        }
        OperationOutcome::TimedOut => DelegateResult::timed_out(&delegation, &task),
        OperationOutcome::Cancelled => DelegateResult::cancelled(&delegation, &task),
        OperationOutcome::Unknown { cause } => DelegateResult::unknown(&delegation, &task, cause),
        _ => DelegateResult::unknown(&delegation, &task, &Failure::interrupted()),
    })
}

fn paired(operation: &Operation, parts: Vec<Part>, failed: bool) -> Option<Draft> {
    let answers = operation.answers.as_ref()?;
    let origin = format!("tool:{}", answers.name);
    let answers = Some(Answers {
        failed,
        ..answers.clone()
    });
    Some(Draft {
        role: Role::Tool,
        parts,
        origin,
        untrusted: false,
        speaker: None,
        answers,
    })
}

/// Returns the settlement of an open operation that is stopped. It is cancelled, unless it may have
/// had an effect, which must not be reported as undone.
#[must_use]
pub fn stopped(open: &Open, time: Timestamp) -> Settlement {
    let ended = if open.may_have_taken_effect() {
        Ended::Unknown(Failure::lasting(
            "stopped",
            "this was stopped while it was running",
        ))
    } else {
        Ended::Cancelled
    };
    settlement(&open.operation, ended, time).costing(open.stopped_attempts())
}

/// The open question of an operation.
#[must_use]
pub fn question(open: &Open) -> Option<&ClientAction> {
    match (&open.operation.performer, &open.pause) {
        (Performer::Client { action }, _) => Some(action),
        (_, Pause::Asking { action, .. }) => Some(action),
        (_, Pause::Approving) => open
            .operation
            .approval
            .as_ref()
            .map(|approval| &approval.action),
        _ => None,
    }
}

/// Takes a client's answer to the question of an id. The caller has validated the answer against
/// the question's schema. Returns the event, the answer as events store it, and the blobs to be
/// stored with it. The host's own questions about a call are answered by a separate event.
///
/// # Errors
/// If no question is open, or a different one is.
pub fn answer(
    run: &Run,
    call: OperationId,
    by: &UserId,
    value: Value,
    time: Timestamp,
) -> Result<(Event, Kept, Vec<Vec<u8>>), Refusal> {
    let open = asking(run, call)?;
    let (kept, spilled) = match spill_value(&value) {
        Some((_, blob)) => (Kept::Blob(Digest::of(&blob)), vec![blob]),
        None => (Kept::Value(value.clone()), Vec::new()),
    };
    if let (Pause::Approving, Some(approval)) = (&open.pause, &open.operation.approval) {
        if approval.until <= time {
            return Err(Refusal::new(
                ErrorCode::NotSuspended,
                "the time in which this call could be agreed to is over",
            ));
        }
        let answered = ApprovalAnswered {
            run: run.started.run,
            operation: open.operation.id,
            call: approval.call,
            approved: approval.agrees(&value),
            by: by.clone(),
            time,
        };
        return Ok((Event::ApprovalAnswered(answered), kept, Vec::new()));
    }
    Ok(match open.operation.performer {
        Performer::Client { .. } => {
            let (settlement, blobs) =
                settlement(&open.operation, Ended::Value(value), time).spilled();
            let settled = RunSettled {
                run: run.started.run,
                settled: vec![settlement],
            };
            (Event::RunSettled(settled), kept, blobs)
        }
        _ => (
            Event::OperationAnswered(Answer {
                operation: open.operation.id,
                kept: kept.clone(),
                time,
            }),
            kept,
            spilled,
        ),
    })
}

/// Finds the operation that asks a question.
///
/// # Errors
/// If no question is open, or a different one is.
fn asking(run: &Run, call: OperationId) -> Result<&Open, Refusal> {
    let asking: Vec<&Open> = run
        .open
        .values()
        .filter(|open| question(open).is_some())
        .collect();
    if let Some(open) = asking.iter().find(|open| open.question() == call) {
        return Ok(open);
    }
    let Some(pending) = asking.first() else {
        return Err(Refusal::new(
            ErrorCode::NotSuspended,
            "Cannot resume: agent is not suspended",
        ));
    };
    let message = format!(
        "Response tool_call_id {call} doesn't match pending {}",
        pending.question()
    );
    Err(Refusal::new(ErrorCode::InvalidToolCallId, message))
}
