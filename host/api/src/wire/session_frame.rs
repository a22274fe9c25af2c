//! The frames of the view `session`: what a client that shows a session is sent. They have the
//! names of the design's stream.

use super::message::{CallView, MessageView};
use super::operation::{OperationView, OutcomeView};
use super::queue::{InputSource, WaitsFor};
use super::session::{ControlMode, PendingActionView, SessionPhase};
use super::spawned::Spawned;
use super::values::{ContentDigest, Time};
use domain::cut_off::CutOff;
use domain::error_code::ErrorCategory;
use domain::id::{InputId, OperationId, RunId, SessionId, TurnId};
use domain::session::Withdrawal;
use domain::turn::TurnEnd;
use domain::user::UserId;
use serde::Serialize;
use serde_json::Value;

/// A frame. Its name on the stream is that of its variant.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[expect(
    clippy::large_enum_variant,
    reason = "a frame is written as it is made: a box would be an allocation for nothing"
)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub(crate) enum SessionFrame<'a> {
    /// Comes first: what is followed, as it is now.
    Connected {
        /// The session; none when an agent is followed that has no active one.
        session_id: Option<SessionId>,
        /// `active`, `awaiting_client_action`, `completed`, `expired` or `terminated`.
        status: Option<SessionPhase>,
        /// `reactive` or `proactive`.
        control_mode: Option<ControlMode>,
        /// The question that waits for its answer.
        pending_action: Option<PendingActionView>,
    },
    /// The stream starts over: the client's position is not one that this host has assigned, as
    /// after a restored backup. Its `id` replaces that position.
    Reset {
        /// The position from which the stream continues. Read everything again that was shown
        /// before.
        position: u64,
        /// The reason, for people.
        reason: &'a str,
    },
    /// A structured session is in another state.
    StateChange {
        /// `active`, `awaiting_client_action`, `completed`, `expired` or `terminated`.
        status: SessionPhase,
        /// Its type, when it begins.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_type: Option<&'a str>,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// The client is asked something; also when it comes back and the question still waits.
    ClientAction {
        #[serde(flatten)]
        question: PendingActionView,
        #[serde(flatten)]
        of: Repeatable<'a>,
    },
    /// A question is not to be answered any more.
    ClientActionWithdrawn {
        /// The question.
        tool_call_id: OperationId,
        /// `timed_out` or `cancelled`.
        #[schema(value_type = String)]
        reason: Withdrawal,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A user has uploaded a file.
    FileUploaded {
        /// `sha256:` and 64 hexadecimal digits.
        digest: ContentDigest,
        /// The file name.
        name: &'a str,
        /// The media type, as declared at the upload.
        media_type: &'a str,
        /// Its size in bytes.
        bytes: u64,
        /// The user who uploaded it.
        user_id: &'a UserId,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A message of the thread before the stream, in order: with `from=thread`, and from the
    /// beginning of a session that began with the thread of another.
    ThreadMessage {
        /// The session.
        session_id: SessionId,
        /// The message.
        message: MessageView,
    },
    /// The session has accepted a message, whoever wrote it: a user, or somebody else by its
    /// `speaker`. With `from=thread`, also one that still waits.
    MessageAccepted {
        /// The input.
        input_id: InputId,
        /// The message.
        message: MessageView,
        /// The source of it: `api`, `trigger`, `connector`, `dispatch`, `late_reply` or
        /// `reminder`.
        source: InputSource,
        /// The user who wrote it, or for whom the sending agent works.
        user_id: &'a UserId,
        /// The point that it waits for while a turn is in progress: `steer`, `interrupt`,
        /// `followup`, `collect` or `own_turn`.
        waits_for: WaitsFor,
        #[serde(flatten)]
        of: Repeatable<'a>,
    },
    /// Messages that were accepted get no turn.
    MessageWithdrawn {
        /// The inputs.
        input_ids: Vec<InputId>,
        /// `cancelled` by a user, `dropped` from a full queue, or `dead`: put aside as a dead
        /// letter.
        reason: &'static str,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A turn begins.
    RunStarted {
        /// The type of its session.
        session_type: &'a str,
        /// With the inputs that it began with. Those that join it later are in its last frames.
        #[serde(flatten)]
        turn: TurnOf,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// The turn of a structured session waits for the client.
    RunSuspended {
        /// The question.
        tool_call_id: OperationId,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// The turn of a structured session continues.
    RunResumed {
        /// The question that was answered.
        tool_call_id: OperationId,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A chunk of a model's reply; void after `content_discarded` of its attempt.
    ContentChunk {
        /// The text.
        content: &'a str,
        #[serde(flatten)]
        of: Shown<'a>,
    },
    /// The whole text of a model's reply up to now, for a client that comes in the middle of
    /// it. It replaces what the client shows of this operation.
    ContentSoFar {
        /// The text up to the chunk `seq`, with which the next `content_chunk` continues.
        content: String,
        #[serde(flatten)]
        of: Shown<'a>,
    },
    /// Everything shown of this attempt is void. The frame is stored, and sent to clients that
    /// come back, when another attempt is recorded, and when the call ends without a reply
    /// because the attempt was cut off or stopped. It may also be sent as it happens.
    ContentDiscarded {
        /// The session.
        #[schema(value_type = SessionId)]
        session_id: Option<SessionId>,
        /// The run.
        #[schema(value_type = RunId)]
        run_id: Option<RunId>,
        /// The operation.
        operation_id: OperationId,
        /// The attempt at it.
        attempt: u64,
        /// Its place in the attempt; absent when it is stored.
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
        /// The time at which it was stored, ISO 8601; absent when it is not.
        #[serde(skip_serializing_if = "Option::is_none")]
        time: Option<Time>,
        /// The place of its session below the followed one, with `spawned=true`.
        #[serde(skip_serializing_if = "Option::is_none")]
        spawned: Option<&'a Spawned>,
    },
    /// A chunk of a model's thinking; void after `content_discarded` of its attempt.
    ThinkingChunk {
        /// The text.
        content: &'a str,
        #[serde(flatten)]
        of: Shown<'a>,
    },
    /// The thinking in a message of the agent's, as far as its provider shows it. It comes
    /// before the message's other frames, and alone where the model said nothing else.
    ThinkingComplete {
        /// Its place in the thread.
        message: u64,
        /// The text.
        content: String,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A message of the agent's is complete.
    ContentComplete {
        /// Its place in the thread.
        message: u64,
        /// Its text.
        content: String,
        /// The author of the message.
        origin: String,
        /// The reason why it is not whole: `length`, `content_filter` or `refusal`; none if it
        /// is.
        stop: Option<CutOff>,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A model calls tools.
    ToolCallsDetected {
        /// The message with the calls.
        message: u64,
        /// The calls.
        tool_calls: Vec<CallView>,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A tool is called, work is handed to another agent, or memory is searched.
    ToolExecuting {
        #[serde(flatten)]
        operation: OperationView,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A note of a tool on its progress.
    ToolProgress {
        /// The text of the note.
        message: &'a str,
        #[serde(flatten)]
        of: Shown<'a>,
    },
    /// The program in a model's place has called a tool of its own. The host does not make the
    /// call, so that no result follows; void after `content_discarded` of its attempt.
    ProgramToolCall {
        /// The program's name of the tool.
        tool: &'a str,
        #[serde(flatten)]
        of: Shown<'a>,
    },
    /// The outcome of a tool call.
    ToolResult {
        #[serde(flatten)]
        outcome: OutcomeView,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A turn is stored.
    MessageComplete {
        /// The turn.
        turn_id: TurnId,
        /// Its last message.
        last_message: u64,
        #[serde(flatten)]
        turn: TurnOf,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A run has ended.
    StreamComplete {
        /// `replied`, `completed`, `failed` or `aborted`.
        end: TurnEnd,
        #[serde(flatten)]
        turn: TurnOf,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A structured session has ended well.
    SessionCompleted {
        /// The agent's summary.
        summary: &'a Value,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A structured session has ended because its time was up.
    SessionExpired {
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A structured session was ended.
    Terminated {
        /// The reason.
        reason: &'a str,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// A turn has failed, or was aborted.
    Error {
        /// A stable code.
        code: Option<&'a str>,
        /// True if the same message may have a reply when it is sent again.
        retryable: bool,
        /// The stage at which it went wrong.
        category: ErrorCategory,
        /// The reason.
        message: Option<&'a str>,
        #[serde(flatten)]
        turn: TurnOf,
        #[serde(flatten)]
        of: Stored<'a>,
    },
    /// Nothing has happened for a while.
    Heartbeat {
        /// The number of the heartbeat, from 1.
        count: u64,
    },
    /// The host ends the stream.
    Disconnected {
        /// The reason.
        reason: &'a str,
    },
}

/// The subject of the frame of a stored event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct Stored<'a> {
    /// The session; none for what is about the agent alone.
    pub(super) session_id: Option<SessionId>,
    /// The run.
    pub(super) run_id: Option<RunId>,
    /// The time at which it was stored, ISO 8601.
    pub(super) time: Time,
    /// The place of its session below the followed one, with `spawned=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spawned: Option<&'a Spawned>,
}

/// The subject of a frame that also comes without its event: the question is repeated, or the
/// message comes with the thread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct Repeatable<'a> {
    /// The session.
    #[schema(value_type = SessionId)]
    session_id: Option<SessionId>,
    /// The run; none of a message, which belongs to no run yet. Absent when it is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunId>)]
    run_id: Option<Option<RunId>>,
    /// The time at which it was stored, ISO 8601; absent when it is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Time>,
    /// The place of its session below the followed one, with `spawned=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    spawned: Option<&'a Spawned>,
}

/// The subject of a frame that is shown while it happens, and is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct Shown<'a> {
    /// The session.
    pub(super) session_id: SessionId,
    /// The run.
    pub(super) run_id: RunId,
    /// The operation.
    pub(super) operation_id: OperationId,
    /// The attempt at it.
    pub(super) attempt: u32,
    /// Its place in the attempt.
    pub(super) seq: u64,
    /// The place of its session below the followed one, with `spawned=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spawned: Option<&'a Spawned>,
}

/// The turn that a frame is about.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct TurnOf {
    /// The inputs that the turn answers, those that it began with when it begins.
    pub(super) input_ids: Vec<InputId>,
    /// True if the turn is the host's own: it compacts the conversation, or brings the summary of
    /// another one back, and answers no input.
    pub(super) compaction: bool,
}

impl<'a> Repeatable<'a> {
    /// About a session, without an event.
    pub(crate) fn again(session: SessionId, spawned: Option<&'a Spawned>) -> Self {
        Self {
            session_id: Some(session),
            run_id: None,
            time: None,
            spawned,
        }
    }
}

impl<'a> From<Stored<'a>> for Repeatable<'a> {
    fn from(stored: Stored<'a>) -> Self {
        Self {
            session_id: stored.session_id,
            run_id: Some(stored.run_id),
            time: Some(stored.time),
            spawned: stored.spawned,
        }
    }
}
