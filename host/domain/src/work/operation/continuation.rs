//! Tool operations that continue in another segment: what they wait for, and what they call.

use super::Operation;
use crate::access::tool::ClientAction;
use crate::agents::session::PendingAction;
use crate::values::id::OperationId;
use crate::values::time::Timestamp;
use crate::work::step::OperationOutcome;
use serde::{Deserialize, Serialize};

/// The state of an operation between its segments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pause {
    /// It is not between segments.
    #[default]
    None,
    /// Its next segment is due at a time.
    Until {
        /// The time.
        due: Timestamp,
    },
    /// Its next segment needs the user's answer.
    Asking {
        /// The tool that asks.
        tool: String,
        /// The question.
        action: Box<ClientAction>,
        /// Time until which it may be answered; then the call has timed out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Time of the question.
        since: Timestamp,
    },
    /// A user has to approve it, as its [`Operation::approval`] says. This happens before its first
    /// segment only.
    Approving,
    /// The user refused it: it settles as refused.
    Declined,
}

/// A tool operation continues in another segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// The operation.
    pub operation: OperationId,
    /// The next segment, counted from 1.
    pub segment: u32,
    /// State from the tool for that segment.
    #[serde(with = "crate::access::tool::bytes_as_hex")]
    pub state: Vec<u8>,
    /// The pause before that segment.
    pub pause: Pause,
    /// Milliseconds of the run's active time that are recorded with it ([`Settlement::active_ms`]).
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub active_ms: u64,
    /// The call of a command line that the next segment waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<CommandCall>>,
}

/// A call by a command line: an operation that starts, and whose outcome only the line receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandCall {
    /// The tool.
    pub tool: String,
    /// The arguments from the line: a JSON object as text.
    pub arguments: String,
    /// The operation, as rules and limits allow it.
    pub started: Operation,
    /// Time of its start.
    pub time: Timestamp,
}

/// A command line's call with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// The tool.
    pub tool: String,
    /// The arguments from the line.
    pub arguments: String,
    /// The outcome.
    pub outcome: OperationOutcome,
    /// True if the outcome rests on content from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl Continuation {
    /// The id for the answer to its question.
    #[must_use]
    pub fn question(&self) -> OperationId {
        self.operation.question(self.segment)
    }

    /// Returns the present question to a user: from the tool that continues, or about a command
    /// line's call.
    #[must_use]
    pub fn asked(&self) -> Option<PendingAction> {
        match &self.pause {
            Pause::Asking { tool, action, .. } => Some(PendingAction {
                tool_call_id: self.question(),
                tool_name: tool.clone(),
                action: ClientAction::clone(action),
            }),
            Pause::None | Pause::Until { .. } | Pause::Approving | Pause::Declined => {
                self.call.as_ref()?.started.question_at_start()
            }
        }
    }

    /// Returns the bytes of the tool's stored state and question.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        let asked = match &self.pause {
            Pause::Asking { action, .. } => {
                let schema = action.response_schema.as_ref();
                action.props.to_string().len() + schema.map_or(0, |it| it.to_string().len())
            }
            _ => 0,
        };
        (self.state.len() + asked) as u64
    }
}
