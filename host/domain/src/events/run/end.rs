//! The end of a run: its turn, and the settlement for its waiting caller.

use super::decide::{PASSED_OVER, Saying};
use super::delegated::{Unmade, delegation, is_delegation, undelegated};
use super::settle::{Ended, settlement, stopped};
use super::{Run, is_any_marked};
use crate::events::agent::Agent;
use crate::events::event::{Event, RunEnded, TurnCommitted};
use crate::thread::cut_off;
use crate::thread::message::{Draft, Message, Part, Role};
use crate::thread::turn::{TurnEnd, TurnNode};
use crate::values::digest::Salt;
use crate::values::error_code::{self, TIMED_OUT};
use crate::values::id::{OperationId, TurnId};
use crate::values::time::Timestamp;
use crate::work::budget::Amount;
use crate::work::delegate::{DelegateResult, TaskState};
use crate::work::direct_message::{AGENT_MESSAGE_FAILED, Answered};
use crate::work::operation::{Operation, Performer, Settlement};
use crate::work::step::{Decision, Failure, News};
use serde_json::Value;
use std::sync::Arc;

/// The code of work that its agent gave up.
pub(super) const AGENT_FAILED: &str = "agent-failed";
/// The code of work that no turn processed.
pub const NOT_BEGUN: &str = "not-begun";
/// The code of work without progress for too long.
pub const MESSAGE_TIMED_OUT: &str = "message-timed-out";

/// The cause of a run's end.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// The agent replied.
    Replied,
    /// The agent completed its structured session.
    Completed {
        /// Its summary.
        summary: Value,
    },
    /// The agent, the host or a limit caused the failure.
    Failed {
        /// A stable code: `agent-failed`, `step-failed`, `limit-reached`, `timed-out`, or that of a
        /// model call.
        code: String,
        /// The reason, as shown to people.
        reason: String,
    },
    /// It was cancelled.
    Aborted {
        /// The reason.
        reason: String,
    },
}

impl Cause {
    /// Returns the cause for a decision that ends the turn; none for a decision that continues. An
    /// agent that gives up with the news that no model replied has that failure's code: see
    /// [`Run::model_failure`].
    #[must_use]
    pub fn of(decision: &Decision, model_failure: Option<&str>) -> Option<Self> {
        match decision {
            Decision::Wait(_) => None,
            Decision::Reply { .. } => Some(Self::Replied),
            Decision::Complete { summary } => Some(Self::Completed {
                summary: summary.clone(),
            }),
            Decision::Fail { reason } => Some(Self::Failed {
                code: model_failure.unwrap_or(AGENT_FAILED).to_owned(),
                reason: reason.clone(),
            }),
        }
    }

    fn end(&self) -> TurnEnd {
        match self {
            Self::Replied => TurnEnd::Replied,
            Self::Completed { .. } => TurnEnd::Completed,
            Self::Failed { .. } => TurnEnd::Failed,
            Self::Aborted { .. } => TurnEnd::Aborted,
        }
    }
}

/// The place where a new turn joins the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joint {
    /// Its depth.
    pub depth: u64,
    /// Its jump pointer.
    pub jump: Option<TurnId>,
}

/// Cuts off the open work of a run that is ended from outside. Returns the settlements and the
/// messages that report them.
#[must_use]
pub fn cut_off(
    run: &Run,
    notice: &str,
    time: Timestamp,
    salt: Salt,
) -> (Vec<Settlement>, Vec<Message>) {
    let mut said = Saying {
        next: run.head() + 1,
        salt,
        messages: Vec::new(),
    };
    for (_, settlement) in &run.untold {
        if let Some(draft) = settlement.result.clone() {
            said.place(draft);
        }
    }
    let mut stops: Vec<Settlement> = run.open.values().map(|open| stopped(open, time)).collect();
    let reported = said.messages.clone();
    let history: Vec<&Message> = run
        .messages
        .iter()
        .map(Arc::as_ref)
        .chain(&reported)
        .collect();
    said.place_results(&history, &mut stops);
    said.pair_what_is_left(&history, run, &[], &Unmade::PassedOver(PASSED_OVER));
    said.place(Draft::text(Role::Notice, "host", notice));
    (stops, said.messages)
}

/// Returns the turn of a run. The run's last step is applied already; `said` are messages that are
/// added by the end itself.
#[must_use]
pub fn turn(run: &Run, said: &[Message], cause: &Cause, joint: Joint) -> TurnNode {
    let messages: Vec<&Message> = run.messages.iter().map(Arc::as_ref).chain(said).collect();
    let mut node = TurnNode {
        id: TurnId(crate::values::digest::Digest([0; 32])),
        parent: run.started.base,
        jump: joint.jump,
        depth: joint.depth,
        run: run.started.run,
        first_message: run.started.base_message + 1,
        last_message: messages
            .last()
            .map_or(run.started.base_message, |message| message.id),
        messages: messages.iter().map(|message| message.digest()).collect(),
        session_state: run.session_state,
        end: cause.end(),
        usage: run.spending.usage,
        models: run.models.clone(),
    };
    node.id = node.compute_id();
    node
}

/// Returns the run's last event and the session's. `stopped` and `said` are empty if the agent
/// itself ended the turn.
#[must_use]
pub fn events(
    run: &Run,
    cause: &Cause,
    node: TurnNode,
    stopped: Vec<Settlement>,
    said: Vec<Message>,
    time: Timestamp,
) -> (Event, Event) {
    let (code, reason) = match cause {
        Cause::Replied | Cause::Completed { .. } => (None, None),
        Cause::Failed { code, reason } => (Some(code.clone()), Some(reason.clone())),
        Cause::Aborted { reason } => (Some("aborted".to_owned()), Some(reason.clone())),
    };
    let session = run.started.session;
    let untrusted = run.is_untrusted() || is_any_marked(&said);
    let ended = RunEnded {
        run: run.started.run,
        session,
        end: cause.end(),
        code,
        reason,
        turn: Some(node.id),
        stopped,
        said,
        inputs: run.claimed.clone(),
        compacts: run.started.compacts.is_some(),
        time,
    };
    let committed = TurnCommitted {
        session,
        turn: node,
        revision: run.started.revision + 1,
        untrusted,
        inputs: run.claimed.clone(),
        compacts: run.started.compacts.is_some(),
        time,
    };
    (Event::RunEnded(ended), Event::TurnCommitted(committed))
}

/// Returns the events of the agent's stream when a run of its active session ends. Questions that
/// expired in the last step are withdrawn. The session leaves the slot, unless the run ended with a
/// reply; after a reply all questions are withdrawn. For any other session there are no events.
#[must_use]
pub fn slot_left(
    agent: &Agent,
    run: &Run,
    cause: &Cause,
    timed_out: &[OperationId],
    time: Timestamp,
) -> Vec<Event> {
    let Some(known) = agent.pending_calls(run) else {
        return Vec::new();
    };
    let gone = known
        .iter()
        .filter(|call| *cause == Cause::Replied || timed_out.contains(call));
    let (agent, mut events) = agent.without(gone, timed_out, time);
    let left = match cause {
        Cause::Replied => return events,
        Cause::Completed { summary } => agent.complete_session(summary.clone(), time),
        Cause::Failed { reason, .. } | Cause::Aborted { reason } => {
            agent.terminate_session(reason.clone(), time)
        }
    };
    // The session is active, so it is not refused.
    events.extend(left);
    events
}

/// The messages and settlements that the end of a run adds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Closing<'a> {
    /// The messages of its last step.
    pub said: &'a [Message],
    /// The settlements of the operations that the end stopped.
    pub stopped: &'a [Settlement],
    /// The news of its last step; empty if the host ended the run.
    pub heard: &'a [News],
}

/// Returns the settlement for another run's operation that waits for this run's end, and the blobs
/// to be stored with it. The reply of a turn is the agent's last message. A delegation is reported
/// in the terms of the tool `delegate`, a message in those of `agents_message`.
#[must_use]
pub fn settlement_for_parent(
    operation: &Operation,
    run: &Run,
    closing: Closing<'_>,
    cause: &Cause,
    time: Timestamp,
) -> (Settlement, Vec<Vec<u8>>) {
    let untrusted = run.is_untrusted();
    let parts = match cause {
        Cause::Replied => Some(reply(run, closing.said)),
        Cause::Completed { summary } => Some(vec![Part::text(summary.to_string())]),
        Cause::Failed { .. } | Cause::Aborted { .. } => None,
    };
    let spent = run.spent_with(closing.stopped);
    if let Some(parts) = parts {
        let reply = CallerReply {
            run,
            said: closing.said,
            parts,
            untrusted,
        };
        let (settlement, blobs) = given(operation, reply, time);
        return (settlement.spending(spent), blobs);
    }
    // The agent may have worded the reason.
    settlement(
        operation,
        failed_without_reply(operation, cause, closing.heard, untrusted, time),
        time,
    )
    .marked(untrusted)
    .spending(spent)
    .ending(state_of(cause))
    .spilled()
}

/// Returns the state of a task whose work ended with this cause.
fn state_of(cause: &Cause) -> TaskState {
    match cause {
        Cause::Replied | Cause::Completed { .. } => TaskState::Completed,
        Cause::Failed { code, .. } if code == TIMED_OUT => TaskState::Timeout,
        Cause::Failed { .. } => TaskState::Failed,
        Cause::Aborted { .. } => TaskState::Cancelled,
    }
}

/// Returns the settlement for another run's waiting operation when no run will do its work. None of
/// the work was done.
#[must_use]
pub fn settlement_of_nothing(operation: &Operation, reason: &str, time: Timestamp) -> Settlement {
    let cause = Cause::Failed {
        code: NOT_BEGUN.to_owned(),
        reason: reason.to_owned(),
    };
    settlement(
        operation,
        failed_without_reply(operation, &cause, &[], false, time),
        time,
    )
    .spending(Amount::default())
    .ending(TaskState::Failed)
}

/// Returns the end of an operation whose work ended with this cause, without a reply.
fn failed_without_reply(
    operation: &Operation,
    cause: &Cause,
    heard: &[News],
    untrusted: bool,
    time: Timestamp,
) -> Ended {
    match (cause, &operation.performer) {
        _ if is_delegation(operation) => match undelegated(operation, cause, heard, time) {
            Some(result) => Ended::Gave {
                parts: vec![Part::text(result.to_string())],
                untrusted,
            },
            None => Ended::Cancelled,
        },
        (
            Cause::Failed { reason, .. } | Cause::Aborted { reason },
            Performer::Agent {
                message: Some(_), ..
            },
        ) => Ended::Failed(Failure::lasting(
            AGENT_MESSAGE_FAILED,
            format!("the other agent's turn came to nothing: {reason}"),
        )),
        (Cause::Failed { code, .. }, _) if code == TIMED_OUT => Ended::TimedOut,
        (Cause::Failed { code, reason }, _) => Ended::Failed(Failure {
            retryable: error_code::is_retryable(code),
            ..Failure::lasting(code, reason.clone())
        }),
        _ => Ended::Cancelled,
    }
}

/// The reply of a run to its waiting caller.
#[derive(Debug)]
pub struct CallerReply<'a> {
    /// The run.
    pub run: &'a Run,
    /// The messages that are added with it and are not part of the run yet.
    pub said: &'a [Message],
    /// The content of the reply.
    pub parts: Vec<Part>,
    /// True if it rests on content from outside.
    pub untrusted: bool,
}

/// Returns the settlement for another run's waiting operation when it receives its reply. The reply
/// may be sent at the end of a turn or within it. Content that is too long becomes blobs, which are
/// to be stored with it.
#[must_use]
pub fn given(
    operation: &Operation,
    reply: CallerReply<'_>,
    time: Timestamp,
) -> (Settlement, Vec<Vec<u8>>) {
    let CallerReply {
        run,
        said,
        parts,
        untrusted,
    } = reply;
    let mut blobs = Vec::new();
    let parts = match &operation.performer {
        Performer::Agent {
            session,
            input,
            message: Some(messaged),
            since,
            ..
        } => {
            let answered = Answered {
                parts,
                thinking: run.thinking(said),
                calls: run.tool_calls(time),
                call_count: run.calls_made(),
                duration_ms: time.since_ms(*since),
            };
            let (parts, blob) = messaged.complete(*session, *input, answered);
            blobs.extend(blob);
            parts
        }
        _ => match delegation(operation, time) {
            Some((delegation, task)) => {
                let (parts, blob) = DelegateResult::parts(&delegation, &task, parts);
                blobs.extend(blob);
                parts
            }
            None => parts,
        },
    };
    let (settlement, spilled) =
        settlement(operation, Ended::Gave { parts, untrusted }, time).spilled();
    blobs.extend(spilled);
    (settlement, blobs)
}

/// Returns the end of a delegation that was late; none for other operations.
pub(super) fn undelegated_in_time(operation: &Operation, time: Timestamp) -> Option<Ended> {
    let cause = Cause::Failed {
        code: TIMED_OUT.to_owned(),
        reason: String::new(),
    };
    is_delegation(operation).then(|| failed_without_reply(operation, &cause, &[], false, time))
}

/// Returns the turn's reply to its caller: see [`cut_off::reply`].
#[must_use]
pub fn reply(run: &Run, said: &[Message]) -> Vec<Part> {
    let reply = cut_off::reply(run.messages.iter().map(Arc::as_ref).chain(said));
    let mut parts = reply.map(|message| message.parts).unwrap_or_default();
    parts.retain(|part| matches!(part, Part::Text { .. } | Part::Blob { .. }));
    parts
}
