//! Results of calls of `delegate`, as the model reads them: the delegation of an operation, and the
//! text for each reason why there is none.

use super::end::{AGENT_FAILED, Cause, NOT_BEGUN};
use crate::values::error_code::TIMED_OUT;
use crate::values::time::Timestamp;
use crate::work::delegate::{self, Code, DelegateAddress, DelegateResult, Delegation, Task};
use crate::work::operation::{Operation, Performer};
use crate::work::step::{Failure, News, OperationOutcome};

/// Returns whether an operation is a task of `delegate`.
pub(super) fn is_delegation(operation: &Operation) -> bool {
    matches!(
        operation.performer,
        Performer::Agent {
            delegation: Some(_),
            ..
        }
    )
}

/// Returns the name of `delegate` for the outcome of such a call, whatever name a model called it
/// by.
pub(super) fn tool(performer: &Performer) -> Option<&'static str> {
    let is_delegate = matches!(
        performer,
        Performer::Agent {
            delegation: Some(_),
            ..
        } | Performer::Refused {
            address: Some(_),
            ..
        }
    );
    is_delegate.then_some(delegate::NAME)
}

/// Returns the delegation and its task; none if the operation is no delegation.
pub(super) fn delegation(operation: &Operation, time: Timestamp) -> Option<(Delegation, Task)> {
    let Performer::Agent {
        agent,
        delegation: Some(arguments),
        since,
        ..
    } = &operation.performer
    else {
        return None;
    };
    let delegation = delegate::parse(arguments, &delegate::Target::ALL).ok()?;
    Some((
        delegation,
        Task {
            operation: operation.id,
            agent: *agent,
            created: *since,
            completed: time,
        },
    ))
}

/// Returns the result of a failed delegation; none if the operation is no delegation.
pub(super) fn undelegated(
    operation: &Operation,
    cause: &Cause,
    heard: &[News],
    time: Timestamp,
) -> Option<DelegateResult> {
    let (delegation, task) = delegation(operation, time)?;
    Some(match cause {
        Cause::Failed { code, .. } if code == TIMED_OUT => {
            DelegateResult::timed_out(&delegation, &task)
        }
        Cause::Failed { code, reason } => match given_up_over(heard) {
            Some(reported) if code == AGENT_FAILED => {
                DelegateResult::given_up(&delegation, &task, reported, reason)
            }
            _ => DelegateResult::failed(&delegation, &task, reason, code != NOT_BEGUN),
        },
        _ => DelegateResult::cancelled(&delegation, &task),
    })
}

/// Returns the code of a task that its agent gives up because of an outcome which says more than
/// that it failed.
fn given_up_over(heard: &[News]) -> Option<Code> {
    let codes = heard.iter().filter_map(|news| match news {
        News::Settled {
            outcome: OperationOutcome::Unknown { .. },
            ..
        } => Some(Code::TaskUnknown),
        News::Settled {
            outcome: OperationOutcome::Denied,
            ..
        } => Some(Code::NotAllowed),
        _ => None,
    });
    codes.max_by_key(|code| *code == Code::TaskUnknown)
}

/// Returns whether an operation's result is reported as one of `delegate`: a call of the model's,
/// whatever its outcome, or a refused call of the agent's own.
pub(super) fn answers_delegate(operation: &Operation) -> bool {
    let is_models = operation
        .answers
        .as_ref()
        .is_some_and(|answers| answers.name == delegate::NAME);
    is_models || is_own_refused(operation)
}

/// Returns whether an operation is the agent's own call of `delegate` that was refused.
pub(super) fn is_own_refused(operation: &Operation) -> bool {
    matches!(
        operation.performer,
        Performer::Refused {
            of_delegate: true,
            ..
        }
    )
}

/// Returns the target and the operation of a refused call of `delegate`, as far as it named any.
pub(super) fn address(operation: &Operation) -> Option<&DelegateAddress> {
    match &operation.performer {
        Performer::Refused { address, .. } => address.as_ref(),
        _ => None,
    }
}

/// The reason why a call of the model's was not made.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Unmade {
    /// Its agent skipped it, with this text.
    PassedOver(&'static str),
    /// A limit was exhausted.
    Limited(Failure),
}

/// Returns the result of a call that was not made. For other tools, the reason is given in plain
/// words.
pub(super) fn passed_over(tool: &str, arguments: &str, why: &Unmade) -> String {
    if tool != delegate::NAME {
        return match why {
            Unmade::PassedOver(words) => (*words).to_owned(),
            Unmade::Limited(failure) => failure.message.clone(),
        };
    }
    let result = match why {
        Unmade::PassedOver(words) => DelegateResult::not_started(words),
        Unmade::Limited(failure) => DelegateResult::refused(failure),
    };
    result
        .addressed(DelegateAddress::of(arguments).as_ref())
        .to_string()
}
