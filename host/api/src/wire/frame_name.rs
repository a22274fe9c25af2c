//! The frames of event streams: their names and data, for the streams that send them and for the
//! description of the API.

use super::delivery::ChoiceView;
use super::message::{CallView, MessageView};
use super::operation::{AnsweredCall, ModelAttempt, WorkTarget};
use super::session::PendingActionView;
use super::spawned::Spawned;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// A schema that code describes, and not a route.
pub(crate) struct CodedSchema {
    /// The key under which it is referred to, such as the name of a frame on the stream.
    pub(crate) key: &'static str,
    /// The name of the schema.
    pub(crate) name: String,
    /// The schema itself.
    pub(crate) schema: RefOr<Schema>,
    /// The schemas that it refers to.
    pub(crate) others: Vec<(String, RefOr<Schema>)>,
}

impl CodedSchema {
    /// Describes a type under a key and a name.
    pub(crate) fn new<T: utoipa::ToSchema>(key: &'static str, name: String) -> Self {
        let mut others = Vec::new();
        T::schemas(&mut others);
        Self {
            key,
            name,
            schema: T::schema(),
            others,
        }
    }
}

/// Defines the data of a frame, with the fields that all frames of its kind have.
macro_rules! shape {
    // What a stored event means.
    (stored, $(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        shape! { plain, $(#[$doc])* $name {
            /// The session; none for what is about the agent alone.
            session_id: Option<String>,
            /// The run.
            run_id: Option<String>,
            /// The time at which it was stored, ISO 8601.
            time: String,
            /// The place of its session below the followed one, with `spawned=true`.
            spawned: Option<Spawned>,
            $($fields)*
        } }
    };
    // What is shown while it happens, and is not stored.
    (shown, $(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        shape! { plain, $(#[$doc])* $name {
            /// The session.
            session_id: String,
            /// The run.
            run_id: String,
            /// The operation.
            operation_id: String,
            /// The attempt at it.
            attempt: u64,
            /// Its place in the attempt.
            seq: u64,
            /// The place of its session below the followed one, with `spawned=true`.
            spawned: Option<Spawned>,
            $($fields)*
        } }
    };
    (plain, $(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(utoipa::ToSchema)]
        pub(super) struct $name { $($(#[$of])* $field: $type,)* }
    };
}

/// The names of frames and what each has, in one list.
macro_rules! frames {
    ($(#[$about:meta])* $names:ident in $shapes:ident {
        $($(#[$doc:meta])* $kind:ident $name:ident = $text:literal { $($fields:tt)* })*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $names { $($(#[$doc])* $name,)* }

        impl $names {
            /// Its name on the stream.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the description of each frame.
            pub(crate) fn schemas() -> Vec<CodedSchema> {
                let name = |name: &str| format!("{name}Frame");
                vec![$(CodedSchema::new::<$shapes::$name>($text, name(stringify!($name))),)*]
            }
        }

        mod $shapes {
            #![expect(dead_code, reason = "describes what frames have")]

            use super::*;

            $(shape! { $kind, $(#[$doc])* $name { $($fields)* } })*
        }
    };
}

frames! {
    /// A frame in the view `session`.
    FrameName in shapes {
        /// Comes first: what is followed, as it is now.
        plain Connected = "connected" {
            /// The session; none when an agent is followed that has no active one.
            session_id: Option<String>,
            /// `active`, `awaiting_client_action`, `completed`, `expired` or `terminated`.
            status: Option<String>,
            /// `reactive` or `proactive`.
            control_mode: Option<String>,
            /// The question that waits for its answer.
            pending_action: Option<PendingActionView>,
        }
        /// The stream starts over: the client's position is not one that this host has assigned, as
        /// after a restored backup. Its `id` replaces that position.
        plain Reset = "reset" {
            /// The position from which the stream continues. Read everything again that was shown
            /// before.
            position: u64,
            /// The reason, for people.
            reason: String,
        }
        /// A structured session is in another state.
        stored StateChange = "state_change" {
            /// `active`, `awaiting_client_action`, `completed`, `expired` or `terminated`.
            status: String,
            /// Its type, when it begins.
            session_type: Option<String>,
        }
        /// The client is asked something; also when it comes back and the question still waits.
        plain ClientAction = "client_action" {
            /// The id to answer under.
            tool_call_id: String,
            /// The agent's name for it, or the tool that asks.
            tool_name: String,
            /// The widget.
            widget_type: String,
            /// The properties that the widget shows.
            props: Value,
            /// JSON Schema of the answer.
            response_schema: Option<Value>,
            /// True if the message box is locked meanwhile.
            lock_input: bool,
            /// The session.
            session_id: String,
            /// The run; absent when the question is repeated.
            run_id: Option<String>,
            /// The time at which it was stored, ISO 8601; absent when the question is repeated.
            time: Option<String>,
            /// The place of its session below the followed one, with `spawned=true`.
            spawned: Option<Spawned>,
        }
        /// A question is not to be answered any more.
        stored ClientActionWithdrawn = "client_action_withdrawn" {
            /// The question.
            tool_call_id: String,
            /// `timed_out` or `cancelled`.
            reason: String,
        }
        /// A user has uploaded a file.
        stored FileUploaded = "file_uploaded" {
            /// `sha256:` and 64 hexadecimal digits.
            digest: String,
            /// The file name.
            name: String,
            /// The media type, as declared at the upload.
            media_type: String,
            /// Its size in bytes.
            bytes: u64,
            /// The user who uploaded it.
            user_id: String,
        }
        /// A message of the thread before the stream, in order: with `from=thread`, and from the
        /// beginning of a session that began with the thread of another.
        plain ThreadMessage = "thread_message" {
            /// The session.
            session_id: String,
            /// The message.
            message: MessageView,
        }
        /// The session has accepted a message, whoever wrote it: a user, or somebody else by its
        /// `speaker`. With `from=thread`, also one that still waits.
        plain MessageAccepted = "message_accepted" {
            /// The input.
            input_id: String,
            /// The message.
            message: MessageView,
            /// The source of it: `api`, `trigger`, `connector`, `dispatch`, `late_reply` or
            /// `reminder`.
            source: String,
            /// The user who wrote it, or for whom the sending agent works.
            user_id: Option<String>,
            /// The point that it waits for while a turn is in progress: `steer`, `interrupt`,
            /// `followup`, `collect` or `own_turn`.
            waits_for: String,
            /// The session.
            session_id: String,
            /// None: it belongs to no run yet. Absent when the message comes with the thread.
            run_id: Option<String>,
            /// The time at which it was stored, ISO 8601; absent when it comes with the thread.
            time: Option<String>,
            /// The place of its session below the followed one, with `spawned=true`.
            spawned: Option<Spawned>,
        }
        /// Messages that were accepted get no turn.
        stored MessageWithdrawn = "message_withdrawn" {
            /// The inputs.
            input_ids: Vec<String>,
            /// `cancelled` by a user, `dropped` from a full queue, or `dead`: put aside as a dead
            /// letter.
            reason: String,
        }
        /// A turn begins.
        stored RunStarted = "run_started" {
            /// The type of its session.
            session_type: String,
            /// The inputs that the turn answers. Those that join it later are in its last frames.
            input_ids: Vec<String>,
            /// True if the turn is the host's own: it compacts the conversation, or brings the
            /// summary of another one back, and answers no input.
            compaction: bool,
        }
        /// The turn of a structured session waits for the client.
        stored RunSuspended = "run_suspended" {
            /// The question.
            tool_call_id: String,
        }
        /// The turn of a structured session continues.
        stored RunResumed = "run_resumed" {
            /// The question that was answered.
            tool_call_id: String,
        }
        /// A piece of a model's reply; void after `content_discarded` of its attempt.
        shown ContentChunk = "content_chunk" {
            /// The text.
            content: String,
        }
        /// The whole text of a model's reply up to now, for a client that comes in the middle of
        /// it. It replaces what the client shows of this operation.
        shown ContentSoFar = "content_so_far" {
            /// The text up to the piece `seq`, with which the next `content_chunk` continues.
            content: String,
        }
        /// Everything shown of this attempt is void. The frame is stored, and sent to clients that
        /// come back, when another attempt is recorded, and when the call ends without a reply
        /// because the attempt was cut off or stopped. It may also be sent as it happens.
        plain ContentDiscarded = "content_discarded" {
            /// The session.
            session_id: String,
            /// The run.
            run_id: String,
            /// The operation.
            operation_id: String,
            /// The attempt at it.
            attempt: u64,
            /// Its place in the attempt; absent when it is stored.
            seq: Option<u64>,
            /// The time at which it was stored, ISO 8601; absent when it is not.
            time: Option<String>,
            /// The place of its session below the followed one, with `spawned=true`.
            spawned: Option<Spawned>,
        }
        /// A piece of a model's thinking; void after `content_discarded` of its attempt.
        shown ThinkingChunk = "thinking_chunk" {
            /// The text.
            content: String,
        }
        /// The thinking in a message of the agent's, as far as its provider shows it. It comes
        /// before the message's other frames, and alone where the model said nothing else.
        stored ThinkingComplete = "thinking_complete" {
            /// Its place in the thread.
            message: u64,
            /// The text.
            content: String,
        }
        /// A message of the agent's is complete.
        stored ContentComplete = "content_complete" {
            /// Its place in the thread.
            message: u64,
            /// Its text.
            content: String,
            /// The author of the message.
            origin: String,
            /// The reason why it is not whole: `length`, `content_filter` or `refusal`; none if it
            /// is.
            stop: Option<String>,
        }
        /// A model calls tools.
        stored ToolCallsDetected = "tool_calls_detected" {
            /// The message with the calls.
            message: u64,
            /// The calls.
            tool_calls: Vec<CallView>,
        }
        /// A tool is called, work is handed to another agent, or memory is searched.
        stored ToolExecuting = "tool_executing" {
            /// The operation.
            operation_id: String,
            /// The agent's name for it.
            key: String,
            /// `tool`, `agent` or `recall`.
            kind: String,
            /// The step that started it.
            step: u64,
            /// The tool.
            tool: Option<String>,
            /// The call that it answers: `message` and `index`.
            answers: Option<AnsweredCall>,
            /// The arguments.
            arguments: Option<Value>,
            /// The recipient of the work: `agent_id`, `session_id`, `input_id`.
            target: Option<WorkTarget>,
            /// The query for the search in memory.
            query: Option<String>,
            /// The maximum number of results of the search.
            limit: Option<u64>,
            /// The deadline, ISO 8601.
            deadline: Option<String>,
        }
        /// A note of a tool on its progress.
        shown ToolProgress = "tool_progress" {
            /// The text of the note.
            message: String,
        }
        /// The program in a model's place has called a tool of its own. The host does not make the
        /// call, so that no result follows; void after `content_discarded` of its attempt.
        shown ProgramToolCall = "program_tool_call" {
            /// The program's name of the tool.
            tool: String,
        }
        /// The outcome of a tool call.
        stored ToolResult = "tool_result" {
            /// The operation.
            operation_id: String,
            /// `message`, `parts`, `value`, `elapsed`, `failed`, `denied`, `timed_out`, `cancelled`
            /// or `unknown`.
            outcome: String,
            /// The value, of the outcome `value`.
            value: Option<Value>,
            /// The reason for the outcome `failed`.
            failure: Option<Value>,
            /// The place of the result in the thread, once it has one.
            message: Option<u64>,
            /// The tool.
            tool: Option<String>,
            /// True if the model is told that it failed.
            failed: Option<bool>,
            /// The attempts at it.
            attempts: Option<Vec<ModelAttempt>>,
        }
        /// A turn is stored.
        stored MessageComplete = "message_complete" {
            /// The turn.
            turn_id: String,
            /// Its last message.
            last_message: u64,
            /// The inputs that the turn answers.
            input_ids: Vec<String>,
            /// True if the turn is the host's own: it compacts the conversation, or brings the
            /// summary of another one back, and answers no input.
            compaction: bool,
        }
        /// A run has ended.
        stored StreamComplete = "stream_complete" {
            /// `replied`, `completed`, `failed` or `aborted`.
            end: String,
            /// The inputs that the turn answers.
            input_ids: Vec<String>,
            /// True if the turn is the host's own: it compacts the conversation, or brings the
            /// summary of another one back, and answers no input.
            compaction: bool,
        }
        /// A structured session has ended well.
        stored SessionCompleted = "session_completed" {
            /// The agent's summary.
            summary: Value,
        }
        /// A structured session has ended because its time was up.
        stored SessionExpired = "session_expired" {}
        /// A structured session was ended.
        stored Terminated = "terminated" {
            /// The reason.
            reason: String,
        }
        /// A turn has failed, or was aborted.
        stored Error = "error" {
            /// A stable code.
            code: Option<String>,
            /// True if the same message may have a reply when it is sent again.
            retryable: bool,
            /// The stage at which it went wrong.
            category: String,
            /// The reason.
            message: Option<String>,
            /// The inputs that the turn answers.
            input_ids: Vec<String>,
            /// True if the turn is the host's own: it compacts the conversation, or brings the
            /// summary of another one back, and answers no input.
            compaction: bool,
        }
        /// Nothing has happened for a while.
        plain Heartbeat = "heartbeat" {
            /// The number of the heartbeat, from 1.
            count: u64,
        }
        /// The host ends the stream.
        plain Disconnected = "disconnected" {
            /// The reason.
            reason: String,
        }
    }
}

frames! {
    /// A frame in the view `log` that is no stored event.
    EphemeralName in ephemeral {
        /// Ephemeral output of an operation; void after `attempt-discarded` of its attempt.
        shown Delta = "delta" {
            /// True.
            ephemeral: bool,
            /// The agent.
            agent_id: String,
            /// `text`, `so_far`, `thinking`, `call_started`, `note` or `performing`. A client that
            /// comes in the middle of a reply gets `so_far`: its whole text up to the piece `seq`,
            /// in place of what the client shows of this operation.
            kind: String,
            /// The text, of `text`, `so_far`, `thinking` and `note`.
            text: Option<String>,
            /// The tool, of `call_started`.
            name: Option<String>,
            /// The call that is performed, for `performing`: `model:<name>` or `tool:<name>`.
            what: Option<String>,
        }
        /// The stream starts over: the client's position is not one that this host has assigned, as
        /// after a restored backup. Its `id` replaces that position.
        plain Reset = "reset" {
            /// The position from which the stream continues. Read everything again that was shown
            /// before.
            position: u64,
            /// The reason, for people.
            reason: String,
        }
        /// All deltas of this attempt are void.
        shown AttemptDiscarded = "attempt-discarded" {
            /// True.
            ephemeral: bool,
            /// The agent.
            agent_id: String,
        }
    }
}

frames! {
    /// A frame of a chat with a visitor.
    #[expect(
        clippy::enum_variant_names,
        reason = "the names of their schemas follow from them, and are unique in the description"
    )]
    VisitorFrame in visitor {
        /// Comes first: the chat as it is now.
        plain VisitorConnected = "connected" {
            /// The visitor's id.
            visitor_id: String,
            /// The questions that wait for an answer. All others are closed.
            open_question_ids: Vec<String>,
            /// True if a reply is in the making.
            typing: bool,
        }
        /// Something was said to the visitor.
        plain VisitorMessage = "message" {
            /// Its id.
            delivery_id: String,
            /// Its text, in Markdown.
            text: String,
            /// The time at which it was said, ISO 8601.
            time: String,
        }
        /// An agent got what the visitor said, on this page or on another one of theirs.
        plain VisitorWords = "said" {
            /// Its id.
            input_id: String,
            /// The `message_id` of each message in it: what is said within a moment is one.
            message_ids: Vec<String>,
            /// Its text.
            text: String,
            /// The time at which it was taken, ISO 8601.
            time: String,
        }
        /// The visitor is asked something.
        plain VisitorQuestion = "question" {
            /// Its id.
            delivery_id: String,
            /// The question, by which `question_closed` names it.
            question_id: String,
            /// Its text, in Markdown.
            text: String,
            /// The choices; none for a question that is answered in words, as a message.
            choices: Vec<ChoiceView>,
            /// True if it waits for an answer.
            is_open: bool,
            /// The time at which it was asked, ISO 8601.
            time: String,
        }
        /// A question is not to be answered any more: it was answered, here or elsewhere, or is
        /// asked no longer.
        plain VisitorQuestionClosed = "question_closed" {
            /// The question.
            question_id: String,
        }
        /// A reply is in the making, or is not any more.
        plain VisitorTyping = "typing" {
            /// True if one is.
            typing: bool,
        }
        /// A piece of a reply in the making, where the operator lets those be shown. The whole
        /// follows as a message.
        plain VisitorDelta = "delta" {
            /// The reply that it is a piece of.
            reply_id: String,
            /// The attempt at that reply: pieces of an earlier one are void.
            attempt: u64,
            /// Its place in the attempt.
            seq: u64,
            /// The text.
            text: String,
        }
        /// The whole text of a reply in the making up to now, in place of its pieces.
        plain VisitorDeltaSoFar = "delta_so_far" {
            /// The reply.
            reply_id: String,
            /// The attempt at that reply.
            attempt: u64,
            /// The place of the last piece that is in it.
            seq: u64,
            /// The text.
            text: String,
        }
        /// All pieces of an attempt at a reply are void.
        plain VisitorDeltaDiscarded = "delta_discarded" {
            /// The reply.
            reply_id: String,
            /// The attempt.
            attempt: u64,
        }
        /// The stream starts over: the page's position is not one that this host has assigned, as
        /// after a restored backup. Its `id` replaces that position.
        plain VisitorReset = "reset" {
            /// The reason, for people.
            reason: String,
        }
        /// The host ends the stream.
        plain VisitorDisconnected = "disconnected" {
            /// The reason.
            reason: String,
        }
    }
}
