//! An agent's structured sessions: the one that occupies its slot, and the records of ended ones.

use crate::access::tool::ClientAction;
use crate::access::user::UserId;
use crate::thread::message::MessageId;
use crate::values::id::{ConversationId, OperationId, RunId, SessionId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The type of a chat session, which is no structured session.
pub const CHAT: &str = "chat";
/// Ended sessions that an agent keeps; all of them can be listed.
pub const HISTORY_MAX: usize = 10;
/// Bytes of a summary that the history keeps; a longer one is in its event only.
pub const SUMMARY_BYTES_MAX: usize = 8 << 10;

/// A structured session that occupies its agent's slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActiveSession {
    /// Its id.
    pub session_id: SessionId,
    /// The conversation that it is a part of.
    pub conversation_id: ConversationId,
    /// Its type.
    pub session_type: String,
    /// The user who began it.
    pub started_by: UserId,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// Time at which it ends as expired, if it has not ended by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The current phase.
    pub phase: Phase,
    /// Client actions that were answered.
    pub interactions: u64,
    /// Items imported from another system, which do not count towards its limit of items.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub items_imported: u32,
}

/// The phase of an active session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Phase {
    /// The agent is at work.
    Active,
    /// It waits for the client. Only this state has an execution state.
    AwaitingClientAction {
        /// The first unanswered question.
        pending: Box<PendingAction>,
        /// The questions that were asked later.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        further: Vec<PendingAction>,
        /// The point from which the agent continues.
        execution: Execution,
    },
}

impl Phase {
    /// Returns the questions that wait for an answer, in the order in which they were asked.
    pub fn pending(&self) -> impl Iterator<Item = &PendingAction> {
        let (pending, further) = match self {
            Self::Active => (None, [].as_slice()),
            Self::AwaitingClientAction {
                pending, further, ..
            } => (Some(pending.as_ref()), further.as_slice()),
        };
        pending.into_iter().chain(further)
    }
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingAction {
    /// The operation that asked, which an answer must name.
    pub tool_call_id: OperationId,
    /// The guest's name for the operation, or the tool that asked.
    pub tool_name: String,
    /// The action as the client sees it, with the schema for its answer.
    #[serde(flatten)]
    pub action: ClientAction,
}

/// The point from which an agent continues after its client's answer. It refers to the log of the
/// run and to its thread, which contain everything else. The design's `ExecutionState` is derived
/// from it on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// The turn in the making.
    pub run: RunId,
    /// Steps that it has taken.
    pub iteration: u32,
    /// Tool calls that it has made.
    pub tool_calls_made: u32,
    /// The last message of its thread.
    pub head: MessageId,
    /// Time at which the run began.
    pub started_at: Timestamp,
    /// Time at which it was suspended.
    pub suspended_at: Timestamp,
}

/// The kind of end of a structured session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionEnd)]
pub enum EndStatus {
    /// Well.
    Completed,
    /// It was ended from outside, failed or expired.
    Terminated,
}

/// The record of a structured session that has ended. Its questions and answers are in the
/// session's own stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastSession {
    /// Its id.
    pub session_id: SessionId,
    /// The conversation that it was a part of.
    pub conversation_id: ConversationId,
    /// Its type.
    pub session_type: String,
    /// The user who began it.
    pub started_by: UserId,
    /// The kind of its end.
    pub status: EndStatus,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// Time at which it ended.
    pub completed_at: Timestamp,
    /// Reason for its termination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated_reason: Option<String>,
    /// Client actions that were answered.
    pub interactions: u64,
    /// The agent's summary; none if it was terminated, or if the summary exceeds
    /// [`SUMMARY_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
}

impl ActiveSession {
    /// The session once it has ended.
    pub(crate) fn ended(
        self,
        status: EndStatus,
        at: Timestamp,
        reason: Option<String>,
        summary: Option<&Value>,
    ) -> PastSession {
        PastSession {
            session_id: self.session_id,
            conversation_id: self.conversation_id,
            session_type: self.session_type,
            started_by: self.started_by,
            status,
            started_at: self.started_at,
            completed_at: at,
            terminated_reason: reason,
            interactions: self.interactions,
            summary: summary
                .filter(|summary| summary.to_string().len() <= SUMMARY_BYTES_MAX)
                .cloned(),
        }
    }
}

/// Reason why a question can no longer be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withdrawal {
    /// Its time was up.
    TimedOut,
    /// The agent, or the end of its turn, cancelled it.
    Cancelled,
}
