//! The stable error codes of the host: whether the same request may succeed later, and the category
//! of each in the terms of the designs.
//!
//! A code keeps its meaning for ever. It is more exact than its category, which only says at which
//! stage something went wrong. Codes in capitals are those of problems and of tool results, with
//! underscores; codes in lower case are those of failed operations, steps and turns, with hyphens.

use crate::values::text::words;
use serde::Serialize;
use utoipa::ToSchema;

#[cfg(test)]
mod tests;

/// The code of a call whose arguments make no sense.
pub const INVALID_ARGUMENTS: &str = "invalid-arguments";
/// The code of work that met a limit.
pub const LIMIT_REACHED: &str = "limit-reached";
/// The code of work that was not done in its time.
pub const TIMED_OUT: &str = "timed-out";

/// The stage at which something went wrong, as the designs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCategory {
    /// An agent cannot be made of what is configured.
    InitFailed,
    /// An agent, or another name, cannot be entered where it was to be.
    RegistrationFailed,
    /// The host, the agent or the session takes nothing now.
    NotReady,
    /// The request, or the message in it, makes no sense.
    MessageInvalid,
    /// A message was accepted, and its turn has no reply.
    MessageProcessingFailed,
    /// The host is about to end.
    ShutdownInProgress,
    /// No model gave a reply.
    LlmRequestFailed,
    /// A model's reply broke off, or is none.
    LlmStreamFailed,
    /// The agent has no such tool.
    ToolNotAvailable,
    /// A tool, or an agent that was handed work, has no result.
    ToolExecutionFailed,
}

words!(ErrorCategory {
    InitFailed = "INIT_FAILED",
    RegistrationFailed = "REGISTRATION_FAILED",
    NotReady = "NOT_READY",
    MessageInvalid = "MESSAGE_INVALID",
    MessageProcessingFailed = "MESSAGE_PROCESSING_FAILED",
    ShutdownInProgress = "SHUTDOWN_IN_PROGRESS",
    LlmRequestFailed = "LLM_REQUEST_FAILED",
    LlmStreamFailed = "LLM_STREAM_FAILED",
    ToolNotAvailable = "TOOL_NOT_AVAILABLE",
    ToolExecutionFailed = "TOOL_EXECUTION_FAILED",
});

/// The properties that all errors with one code share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// The code.
    pub code: &'static str,
    /// True if the same request, sent again later, may succeed without anything being corrected. A
    /// failure that knows more of its cause may say otherwise.
    pub retryable: bool,
    /// The category; none for what the designs have no word for.
    pub category: Option<ErrorCategory>,
}

/// Returns the properties of a code; none of a code that an agent or a tool chose itself.
#[must_use]
pub fn find(code: &str) -> Option<&'static ErrorCode> {
    ALL.binary_search_by(|known| known.code.cmp(code))
        .ok()
        .and_then(|place| ALL.get(place))
}

/// Returns whether the same request may succeed later. An unknown code is not worth another try.
#[must_use]
pub fn is_retryable(code: &str) -> bool {
    find(code).is_some_and(|known| known.retryable)
}

/// Returns the category of a code.
#[must_use]
pub fn category(code: &str) -> Option<ErrorCategory> {
    find(code).and_then(|known| known.category)
}

/// Returns the category of the end of a turn without a reply. Every such end has one.
#[must_use]
pub fn category_of_turn(code: &str) -> ErrorCategory {
    category(code).unwrap_or(ErrorCategory::MessageProcessingFailed)
}

/// Returns the category of a tool's call without a result. Every such end has one, whatever code
/// the tool chose.
#[must_use]
pub fn category_of_tool(code: &str) -> ErrorCategory {
    match category(code) {
        Some(ErrorCategory::ToolNotAvailable) => ErrorCategory::ToolNotAvailable,
        _ => ErrorCategory::ToolExecutionFailed,
    }
}

const fn lasting(code: &'static str, category: Option<ErrorCategory>) -> ErrorCode {
    ErrorCode {
        code,
        retryable: false,
        category,
    }
}

const fn passing(code: &'static str, category: Option<ErrorCategory>) -> ErrorCode {
    ErrorCode {
        code,
        retryable: true,
        category,
    }
}

const INIT: Option<ErrorCategory> = Some(ErrorCategory::InitFailed);
const REGISTRATION: Option<ErrorCategory> = Some(ErrorCategory::RegistrationFailed);
const NOT_READY: Option<ErrorCategory> = Some(ErrorCategory::NotReady);
const MESSAGE: Option<ErrorCategory> = Some(ErrorCategory::MessageInvalid);
const PROCESSING: Option<ErrorCategory> = Some(ErrorCategory::MessageProcessingFailed);
const SHUTDOWN: Option<ErrorCategory> = Some(ErrorCategory::ShutdownInProgress);
const REQUEST: Option<ErrorCategory> = Some(ErrorCategory::LlmRequestFailed);
const STREAM: Option<ErrorCategory> = Some(ErrorCategory::LlmStreamFailed);
const NO_TOOL: Option<ErrorCategory> = Some(ErrorCategory::ToolNotAvailable);
const TOOL: Option<ErrorCategory> = Some(ErrorCategory::ToolExecutionFailed);

/// Every code, in the order of its bytes.
pub const ALL: &[ErrorCode] = &[
    lasting("AGENT_ARCHIVED", NOT_READY),
    lasting("AGENT_DEAD", NOT_READY),
    lasting("AGENT_EXISTS", REGISTRATION),
    lasting("AGENT_NOT_ARCHIVED", None),
    lasting("AGENT_NOT_EXTERNAL", None),
    lasting("AGENT_NOT_FOUND", None),
    lasting("AGENT_PURGED", None),
    lasting("AGENT_SPAWNED", None),
    lasting("AGENT_UNAVAILABLE", TOOL),
    lasting("ANSWER_TOO_LARGE", MESSAGE),
    lasting("BACKUP_FAILED", None),
    passing("BODY_BROKEN", MESSAGE),
    passing("BODY_TIMEOUT", MESSAGE),
    lasting("BODY_TOO_LARGE", MESSAGE),
    passing("BUSY", NOT_READY),
    lasting("CALL_MALFORMED", MESSAGE),
    passing("CALL_NOT_TAKEN", NOT_READY),
    lasting("CALL_UNVERIFIED", None),
    lasting("COMPONENT_NOT_FOUND", INIT),
    lasting("CONFIG_REFUSED", None),
    lasting("CONNECTOR_DISABLED", NOT_READY),
    lasting("CONNECTOR_KEY_BOUND", REGISTRATION),
    lasting("CONNECTOR_KEY_NOT_FOUND", None),
    lasting("CONNECTOR_NOT_FOUND", None),
    lasting("CONVERSATION_NOT_FOUND", None),
    lasting("CONVERSATION_TAKEN", REGISTRATION),
    lasting("DEAD_LETTER_NOT_FOUND", None),
    lasting("DEFINITION_CONFIGURED", None),
    lasting("DEFINITION_GONE", NOT_READY),
    lasting("DEFINITION_NOT_FOUND", INIT),
    lasting("DELIVERY_NOT_DEAD", None),
    lasting("DELIVERY_NOT_FOUND", None),
    passing("DEPENDENCY_DOWN", NOT_READY),
    passing("DISK_FULL", NOT_READY),
    lasting("EXPORT_TOO_LARGE", None),
    lasting("FILE_NOT_FOUND", None),
    lasting("FILE_TOO_LARGE", MESSAGE),
    lasting("HOST_NOT_ALLOWED", None),
    lasting("IDEMPOTENCY_KEY_REUSED", MESSAGE),
    passing("IDENTITY_UNAVAILABLE", NOT_READY),
    lasting("INDICES_USED_UP", None),
    passing("INPUTS_WAIT", None),
    lasting("INPUT_NOT_FOUND", None),
    lasting("INPUT_NOT_WAITING", None),
    lasting("INPUT_NOT_WORDS", None),
    lasting("INVALID", MESSAGE),
    lasting("INVALID_ASSIGNMENT_ROLE", MESSAGE),
    lasting("INVALID_FIELD", MESSAGE),
    lasting("INVALID_FILE_NAME", MESSAGE),
    lasting("INVALID_ID", MESSAGE),
    lasting("INVALID_IDEMPOTENCY_KEY", MESSAGE),
    lasting("INVALID_LAST_EVENT_ID", MESSAGE),
    lasting("INVALID_MEDIA_TYPE", MESSAGE),
    lasting("INVALID_OPERATION", TOOL),
    lasting("INVALID_PARAMETERS", TOOL),
    lasting("INVALID_QUERY", MESSAGE),
    lasting("INVALID_RESPONSE", MESSAGE),
    lasting("INVALID_SESSION_TYPE", MESSAGE),
    lasting("INVALID_TARGET", TOOL),
    lasting("INVALID_TOOL_CALL_ID", MESSAGE),
    lasting("KEY_ISSUED_BEFORE", None),
    lasting("KEY_NOT_FOUND", None),
    passing("KEY_REQUEST_LIMIT", NOT_READY),
    lasting("KEY_REVOKED", None),
    passing("KEY_SESSION_LIMIT", NOT_READY),
    passing("KEY_STORAGE_LIMIT", NOT_READY),
    passing("KEY_STREAM_LIMIT", NOT_READY),
    lasting("LAST_PRIMARY", None),
    lasting("LIMIT_REACHED", TOOL),
    lasting("MALFORMED_JSON", MESSAGE),
    lasting("MAY_REPEAT_WORK", None),
    lasting("MEMORY_NOT_CONFIGURED", None),
    lasting("MESSAGE_TOO_LARGE", MESSAGE),
    lasting("METHOD_NOT_ALLOWED", None),
    lasting("MISSING_FIELD", MESSAGE),
    lasting("NESTED_TOO_DEEP", MESSAGE),
    lasting("NOTE_NOT_FOUND", None),
    lasting("NOTHING_TO_ANSWER", None),
    lasting("NOTHING_TO_COMPACT", None),
    lasting("NOT_ALLOWED", TOOL),
    lasting("NOT_EXPORTABLE", None),
    lasting("NOT_QUARANTINED", None),
    lasting("NOT_STORABLE", MESSAGE),
    lasting("NOT_SUSPENDED", None),
    lasting("NOT_SWITCHED", None),
    lasting("NO_ACTIVE_SESSION", None),
    lasting("NO_RANDOMNESS", None),
    lasting("NO_REPLY_TARGET", None),
    lasting("NO_THREAD_FOUND", None),
    lasting("OPERATOR_ONLY", None),
    lasting("ORIGIN_NOT_ALLOWED", None),
    lasting("PAIRING_NOT_FOUND", None),
    lasting("PATH_FORBIDDEN", None),
    lasting("PATH_TAKEN", REGISTRATION),
    lasting("PERSONA_NOT_FOUND", INIT),
    passing("PURGE_RUNNING", None),
    passing("QUEUE_FULL", NOT_READY),
    passing("REBUILD_RUNNING", None),
    lasting("RESTORED_FROM_BACKUP", None),
    lasting("ROLE_FORBIDS", None),
    lasting("ROUTE_NOT_FOUND", None),
    passing("RUN_OPEN", None),
    lasting("SAME_SESSION", None),
    lasting("SCOPE_MISSING", None),
    lasting("SESSION_ALREADY_ACTIVE", REGISTRATION),
    lasting("SESSION_CLOSED", NOT_READY),
    lasting("SESSION_EXISTS", REGISTRATION),
    lasting("SESSION_EXPIRED", NOT_READY),
    lasting("SESSION_FILES_FULL", None),
    lasting("SESSION_FULL", NOT_READY),
    lasting("SESSION_NOT_DELETED", None),
    lasting("SESSION_NOT_FOUND", None),
    lasting("SESSION_PURGED", None),
    lasting("SESSION_QUARANTINED", NOT_READY),
    lasting("SESSION_STRUCTURED", None),
    lasting("SESSION_TAKEN", None),
    lasting("SETTING_FIXED", None),
    passing("SHUTTING_DOWN", SHUTDOWN),
    lasting("SIGNATURE_INVALID", None),
    lasting("SIGNATURE_STALE", None),
    passing("STARTING", NOT_READY),
    passing("STORE_UNAVAILABLE", NOT_READY),
    lasting("TASK_FAILED", TOOL),
    lasting("TASK_NOT_FOUND", None),
    passing("TASK_NOT_STARTED", TOOL),
    lasting("TASK_SETTLED", None),
    lasting("TASK_TIMEOUT", TOOL),
    lasting("TASK_UNKNOWN", TOOL),
    lasting("TEMPLATE_FORBIDDEN", None),
    lasting("THREADS_APART", None),
    lasting("THREAD_EMPTY", None),
    lasting("TOOL_NOT_AVAILABLE", NO_TOOL),
    passing("TOO_MANY_CALLS", NOT_READY),
    passing("TOO_MANY_CONNECTIONS", NOT_READY),
    lasting("TOO_MANY_CONNECTOR_KEYS", REGISTRATION),
    lasting("TOO_MANY_DEFINITIONS", REGISTRATION),
    passing("TOO_MANY_GUESSES", NOT_READY),
    lasting("TOO_MANY_KEYS", REGISTRATION),
    passing("TOO_MANY_STREAMS", NOT_READY),
    lasting("TOO_MANY_TRIGGERS", REGISTRATION),
    passing("TOO_MANY_UPLOADS", NOT_READY),
    lasting("TOO_MANY_USERS", REGISTRATION),
    lasting("TOO_MANY_VISITORS", REGISTRATION),
    passing("TRIGGER_BUSY", NOT_READY),
    lasting("TRIGGER_CONFIGURED", None),
    lasting("TRIGGER_EXISTS", REGISTRATION),
    lasting("TRIGGER_NOT_FOUND", None),
    lasting("TURN_CONFLICT", None),
    lasting("TURN_NOT_FOUND", None),
    lasting("UNAUTHORIZED", None),
    lasting("UNKNOWN_FIELD", MESSAGE),
    lasting("UNSUPPORTED_MEDIA_TYPE", MESSAGE),
    lasting("USER_ALREADY_ASSIGNED", REGISTRATION),
    lasting("USER_NOT_ASSIGNED", None),
    passing("USER_REQUEST_LIMIT", NOT_READY),
    passing("USER_SESSION_LIMIT", NOT_READY),
    passing("USER_STORAGE_LIMIT", NOT_READY),
    passing("USER_STREAM_LIMIT", NOT_READY),
    passing("VISITOR_LIMIT", NOT_READY),
    lasting("WAITS_FOR_CYCLE", TOOL),
    lasting("WORK_SETTLED", None),
    lasting("aborted", PROCESSING),
    lasting("agent-failed", PROCESSING),
    lasting("agent-message-failed", TOOL),
    lasting("agent-not-accessible", TOOL),
    lasting("agent-not-found", TOOL),
    lasting("agent-session-error", TOOL),
    lasting("approval-denied", TOOL),
    lasting("approval-expired", TOOL),
    passing("busy", TOOL),
    lasting("cancelled", PROCESSING),
    lasting("compaction-failed", PROCESSING),
    passing("component-gone", PROCESSING),
    passing("configuration-gone", PROCESSING),
    lasting("cut-off", TOOL),
    lasting("denied", TOOL),
    lasting("dropped", PROCESSING),
    passing("external-undelivered", PROCESSING),
    lasting("faulted", PROCESSING),
    lasting("host-failed", PROCESSING),
    lasting("host-stopped", TOOL),
    lasting(INVALID_ARGUMENTS, TOOL),
    lasting("invalid-reply", STREAM),
    lasting(LIMIT_REACHED, PROCESSING),
    lasting("memory-full", TOOL),
    passing("message-timed-out", PROCESSING),
    lasting("model-barred", REQUEST),
    lasting("model-failed", REQUEST),
    passing("model-garbage", STREAM),
    lasting("model-prompt-too-long", REQUEST),
    passing("model-rate-limited", REQUEST),
    lasting("model-refused", REQUEST),
    passing("model-unavailable", REQUEST),
    lasting("model-unknown", REQUEST),
    lasting("no-caller", TOOL),
    lasting("not-begun", PROCESSING),
    lasting("not-configured", TOOL),
    lasting("not-found", TOOL),
    lasting("not-storable", PROCESSING),
    lasting("note-forbidden", TOOL),
    lasting("note-not-found", TOOL),
    lasting("nothing-read", TOOL),
    lasting("out-of-cpu", TOOL),
    lasting("out-of-memory", TOOL),
    passing("rate-limited", TOOL),
    lasting("refused", TOOL),
    lasting("repeated-call", TOOL),
    lasting("restored", TOOL),
    passing("retry-later", TOOL),
    lasting("return-failed", PROCESSING),
    lasting("settings-gone", PROCESSING),
    lasting("state-gone", PROCESSING),
    lasting("step-failed", PROCESSING),
    lasting("stopped", TOOL),
    passing(TIMED_OUT, PROCESSING),
    lasting("tool-failed", TOOL),
    lasting("trapped", TOOL),
    lasting("trigger-not-found", TOOL),
    lasting("triggers-full", TOOL),
    lasting("triggers-not-here", TOOL),
    passing("unavailable", TOOL),
    lasting("unknown", TOOL),
];
