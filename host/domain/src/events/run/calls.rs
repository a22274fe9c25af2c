//! The calls of a run and its models' thinking, as reported to a caller that waits for its answer.

use super::Run;
use crate::agents::skill::BASH;
use crate::thread::message::{Message, Role};
use crate::thread::thinking;
use crate::values::id::OperationId;
use crate::values::time::Timestamp;
use crate::work::direct_message::{CALLS_REPORTED_MAX, DISPATCH, MESSAGE, REPLY, ToolCall};
use crate::work::operation::{Operation, Performer, Settlement};
use crate::work::outbound_message::DELIVER;
use crate::work::{account, delegate};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The name of a memory call by the agent's own code.
const MEMORY: &str = "memory";

/// One of a run's first calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMade {
    /// The operation.
    operation: OperationId,
    /// The tool, as its caller named it.
    name: String,
    /// Time at which it was started.
    started: Timestamp,
    /// Milliseconds until its outcome; none without an outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

impl Run {
    /// Notes the start of an operation, if it is one of the first calls.
    pub(super) fn note_call(&mut self, operation: &Operation, time: Timestamp) {
        if self.calls.len() < CALLS_REPORTED_MAX && account::is_call(&operation.performer) {
            self.calls.push(CallMade {
                operation: operation.id,
                name: name(operation).to_owned(),
                started: time,
                duration_ms: None,
            });
        }
    }

    /// Names an operation's call, where the name does not follow from the operation: a call by a
    /// command line.
    pub(super) fn name_call(&mut self, operation: OperationId, tool: &str) {
        let mut calls = self.calls.iter_mut();
        if let Some(call) = calls.find(|call| call.operation == operation) {
            tool.clone_into(&mut call.name);
        }
    }

    /// Notes the outcome of an operation, if it is one of the first calls. Notes also the calls
    /// that a program in a model's place made for it, whose times are unknown.
    pub(super) fn note_outcome(&mut self, settlement: &Settlement) {
        for name in &settlement.own_calls {
            self.own_calls = self.own_calls.saturating_add(1);
            if self.calls.len() < CALLS_REPORTED_MAX {
                self.calls.push(CallMade {
                    operation: settlement.operation,
                    name: name.clone(),
                    started: settlement.time,
                    duration_ms: Some(0),
                });
            }
        }
        let mut calls = self.calls.iter_mut();
        if let Some(call) = calls.find(|call| call.operation == settlement.operation) {
            call.duration_ms = Some(settlement.time.since_ms(call.started));
        }
    }

    /// Returns the number of calls: its own, and those of programs in a model's place.
    #[must_use]
    pub fn calls_made(&self) -> u32 {
        self.spending.tool_calls.saturating_add(self.own_calls)
    }

    /// Returns its first calls, in the order of their start. A call without an outcome has lasted
    /// until now.
    #[must_use]
    pub fn tool_calls(&self, now: Timestamp) -> Vec<ToolCall> {
        let calls = self.calls.iter().map(|call| ToolCall {
            name: call.name.clone(),
            duration_ms: call.duration_ms.unwrap_or(now.since_ms(call.started)),
        });
        calls.collect()
    }

    /// Returns the visible thinking in its messages and these further ones, one paragraph for each
    /// part.
    #[must_use]
    pub fn thinking(&self, said: &[Message]) -> String {
        let messages = self.messages.iter().map(Arc::as_ref).chain(said);
        let thoughts: Vec<&str> = messages
            .filter(|message| message.role == Role::Assistant)
            .flat_map(|message| &message.parts)
            .filter_map(thinking::of_part)
            .collect();
        thoughts.join("\n\n")
    }
}

/// Returns the tool of a call: the one that the model named, or the one for such work.
fn name(operation: &Operation) -> &str {
    match (&operation.answers, &operation.performer) {
        (Some(answers), _) => &answers.name,
        (None, Performer::Tool { tool, .. } | Performer::Lasting { tool, .. }) => tool,
        (
            None,
            Performer::Agent {
                delegation: Some(_),
                ..
            },
        ) => delegate::NAME,
        (
            None,
            Performer::Agent {
                message: Some(_), ..
            },
        ) => MESSAGE,
        (None, Performer::Reply { .. }) => REPLY,
        (None, Performer::Command { .. }) => BASH,
        (None, Performer::External { .. }) => DELIVER,
        (None, Performer::Memory { .. } | Performer::Recall { .. }) => MEMORY,
        (
            None,
            Performer::Agent { .. }
            | Performer::Detached { .. }
            | Performer::Refused { .. }
            | Performer::Model { .. }
            | Performer::Client { .. }
            | Performer::Timer { .. },
        ) => DISPATCH,
    }
}
