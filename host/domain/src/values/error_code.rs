//! The stable error codes of the host, and the properties of each: its kind, which is its HTTP
//! status; when a retry may succeed; its category in the terms of the designs; and the part of the
//! request that is at fault.
//!
//! A code keeps its meaning for ever. It is more exact than its category, which only names the
//! stage of the failure. Codes in capitals are those of problems and of tool results, with
//! underscores; codes in lower case are those of failed operations, steps and turns, with hyphens.

use crate::values::text::words;
use serde::Serialize;
use utoipa::ToSchema;

#[cfg(test)]
mod tests;

/// The code of a call with invalid arguments.
pub const INVALID_ARGUMENTS: &str = "invalid-arguments";
/// The code of work that met a limit.
pub const LIMIT_REACHED: &str = "limit-reached";
/// The code of work that exceeded its time.
pub const TIMED_OUT: &str = "timed-out";

/// The stage of a failure, in the terms of the designs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCategory {
    /// An agent cannot be made from its configuration.
    InitFailed,
    /// An agent, or another name, cannot be registered at its place.
    RegistrationFailed,
    /// The host, the agent or the session accepts nothing now.
    NotReady,
    /// The request, or the message in it, is invalid.
    MessageInvalid,
    /// A message was accepted, and its turn has no reply.
    MessageProcessingFailed,
    /// The host is about to end.
    ShutdownInProgress,
    /// No model gave a reply.
    LlmRequestFailed,
    /// A model's reply broke off, or is invalid.
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

/// The kind of an error of a request. Its number is the HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum ErrorKind {
    /// The request cannot be read.
    Malformed = 400,
    /// The caller is missing or unknown.
    Unauthorized = 401,
    /// The caller may see it but not do this.
    Forbidden = 403,
    /// The object does not exist, or is not the caller's.
    NotFound = 404,
    /// The object exists and does not support the method.
    NotAllowed = 405,
    /// The request was too late.
    Late = 408,
    /// Its state rules this out.
    Conflict = 409,
    /// It was there, and was purged.
    Gone = 410,
    /// The input is too large.
    TooLarge = 413,
    /// The type of the input is unsupported.
    Unsupported = 415,
    /// The input is invalid.
    Invalid = 422,
    /// Not now: try again later.
    Busy = 429,
    /// The host failed.
    Failed = 500,
    /// The host cannot do it at this moment.
    Unavailable = 503,
}

/// The time at which the same request may succeed without a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    Never,
    /// Later; the response says when, if that is known.
    Later,
    /// After so many seconds.
    After(u64),
}

/// The common properties of all errors with one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeTraits {
    /// The code.
    pub code: &'static str,
    /// True if the same request may succeed later without a correction. A failure with a known
    /// cause may say otherwise.
    pub retryable: bool,
    /// The category; none if the designs have no term.
    pub category: Option<ErrorCategory>,
}

/// Declares the codes of requests, one a row: the code, its kind, when a retry makes sense, its
/// category if it has one, and the part of the request at fault if it is always the same.
macro_rules! codes {
    ($($code:ident = $word:literal, $kind:ident, $retry:ident $(($seconds:literal))?
        $(, $category:ident)? $(=> $field:literal)?;)+) => {
        /// A code of request errors: refusals by a rule, and refusals of the API itself.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $(
                #[doc = concat!("`", $word, "`.")]
                $code,
            )+
        }

        words!(ErrorCode { $($code = $word),+ });

        impl ErrorCode {
            /// Its kind.
            #[must_use]
            pub fn kind(self) -> ErrorKind {
                match self {
                    $(Self::$code => ErrorKind::$kind,)+
                }
            }

            fn retry(self) -> Retry {
                match self {
                    $(Self::$code => Retry::$retry $(($seconds))?,)+
                }
            }

            /// Its category; none if the designs have no term.
            #[must_use]
            pub fn category(self) -> Option<ErrorCategory> {
                match self {
                    $(Self::$code => [$(ErrorCategory::$category)?].first().copied(),)+
                }
            }

            /// The part of the request at fault, if it is always the same. It is written as in
            /// [`Refusal`](crate::values::refusal::Refusal).
            #[must_use]
            pub fn field(self) -> Option<&'static str> {
                match self {
                    $(Self::$code => [$($field)?].first().copied(),)+
                }
            }
        }
    };
}

codes! {
    AgentArchived = "AGENT_ARCHIVED", Conflict, Never, NotReady;
    AgentDead = "AGENT_DEAD", Conflict, Never, NotReady;
    AgentExists = "AGENT_EXISTS", Conflict, Never, RegistrationFailed => "/id";
    AgentNotArchived = "AGENT_NOT_ARCHIVED", Conflict, Never;
    AgentNotExternal = "AGENT_NOT_EXTERNAL", Conflict, Never;
    AgentNotFound = "AGENT_NOT_FOUND", NotFound, Never;
    AgentPurged = "AGENT_PURGED", Gone, Never;
    AgentSpawned = "AGENT_SPAWNED", Conflict, Never;
    AnswerTooLarge = "ANSWER_TOO_LARGE", TooLarge, Never, MessageInvalid => "body";
    BackupFailed = "BACKUP_FAILED", Failed, Never;
    BodyBroken = "BODY_BROKEN", Malformed, Later, MessageInvalid;
    BodyTimeout = "BODY_TIMEOUT", Late, Later, MessageInvalid;
    BodyTooLarge = "BODY_TOO_LARGE", TooLarge, Never, MessageInvalid;
    Busy = "BUSY", Busy, After(1), NotReady;
    CallMalformed = "CALL_MALFORMED", Malformed, Never, MessageInvalid;
    CallNotTaken = "CALL_NOT_TAKEN", Unavailable, Later, NotReady;
    CallUnverified = "CALL_UNVERIFIED", Unauthorized, Never;
    ComponentNotFound = "COMPONENT_NOT_FOUND", NotFound, Never, InitFailed => "/spec/component";
    ConfigRefused = "CONFIG_REFUSED", Invalid, Never;
    ConnectorDisabled = "CONNECTOR_DISABLED", Conflict, Never, NotReady;
    ConnectorKeyBound = "CONNECTOR_KEY_BOUND", Conflict, Never, RegistrationFailed => "path:key";
    ConnectorKeyNotFound = "CONNECTOR_KEY_NOT_FOUND", NotFound, Never;
    ConnectorNotFound = "CONNECTOR_NOT_FOUND", NotFound, Never;
    ConversationNotFound = "CONVERSATION_NOT_FOUND", NotFound, Never;
    ConversationTaken = "CONVERSATION_TAKEN", Conflict, Never, RegistrationFailed
        => "/conversation_id";
    DeadLetterNotFound = "DEAD_LETTER_NOT_FOUND", NotFound, Never;
    DefinitionConfigured = "DEFINITION_CONFIGURED", Conflict, Never;
    DefinitionGone = "DEFINITION_GONE", Conflict, Never, NotReady;
    DefinitionNotFound = "DEFINITION_NOT_FOUND", NotFound, Never, InitFailed;
    OutboundMessageNotDead = "OUTBOUND_MESSAGE_NOT_DEAD", Conflict, Never;
    OutboundMessageNotFound = "OUTBOUND_MESSAGE_NOT_FOUND", NotFound, Never => "path:outbound_message";
    DependencyDown = "DEPENDENCY_DOWN", Unavailable, After(10), NotReady;
    DiskFull = "DISK_FULL", Unavailable, After(10), NotReady;
    ExportTooLarge = "EXPORT_TOO_LARGE", Conflict, Never;
    FileNotFound = "FILE_NOT_FOUND", NotFound, Never;
    FileTooLarge = "FILE_TOO_LARGE", TooLarge, Never, MessageInvalid => "body";
    HostNotAllowed = "HOST_NOT_ALLOWED", Forbidden, Never => "header:Host";
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", Conflict, Never, MessageInvalid
        => "header:Idempotency-Key";
    IdentityUnavailable = "IDENTITY_UNAVAILABLE", Unavailable, Later, NotReady;
    IndicesUsedUp = "INDICES_USED_UP", Conflict, Never;
    InputsWait = "INPUTS_WAIT", Conflict, Later;
    InputNotFound = "INPUT_NOT_FOUND", NotFound, Never;
    InputNotWaiting = "INPUT_NOT_WAITING", Conflict, Never;
    InputNotWords = "INPUT_NOT_WORDS", Conflict, Never;
    Invalid = "INVALID", Invalid, Never, MessageInvalid;
    InvalidAssignmentRole = "INVALID_ASSIGNMENT_ROLE", Invalid, Never, MessageInvalid => "/role";
    InvalidField = "INVALID_FIELD", Invalid, Never, MessageInvalid;
    InvalidFileName = "INVALID_FILE_NAME", Invalid, Never, MessageInvalid => "query:name";
    InvalidId = "INVALID_ID", Malformed, Never, MessageInvalid;
    InvalidIdempotencyKey = "INVALID_IDEMPOTENCY_KEY", Malformed, Never, MessageInvalid
        => "header:Idempotency-Key";
    InvalidLastEventId = "INVALID_LAST_EVENT_ID", Malformed, Never, MessageInvalid;
    InvalidMediaType = "INVALID_MEDIA_TYPE", Invalid, Never, MessageInvalid
        => "header:Content-Type";
    InvalidQuery = "INVALID_QUERY", Malformed, Never, MessageInvalid;
    InvalidResponse = "INVALID_RESPONSE", Invalid, Never, MessageInvalid => "/response";
    InvalidSessionType = "INVALID_SESSION_TYPE", Malformed, Never, MessageInvalid
        => "/session_type";
    InvalidToolCallId = "INVALID_TOOL_CALL_ID", Conflict, Never, MessageInvalid
        => "/tool_call_id";
    MalformedToolCallId = "INVALID_TOOL_CALL_ID", Malformed, Never, MessageInvalid
        => "/tool_call_id";
    KeyIssuedBefore = "KEY_ISSUED_BEFORE", Conflict, Never;
    KeyNotFound = "KEY_NOT_FOUND", NotFound, Never;
    KeyRequestLimit = "KEY_REQUEST_LIMIT", Busy, Later, NotReady;
    KeyRevoked = "KEY_REVOKED", Forbidden, Never;
    KeySessionLimit = "KEY_SESSION_LIMIT", Busy, Later, NotReady;
    KeyStorageLimit = "KEY_STORAGE_LIMIT", Busy, After(3600), NotReady;
    KeyStreamLimit = "KEY_STREAM_LIMIT", Busy, Later, NotReady;
    LastPrimary = "LAST_PRIMARY", Conflict, Never;
    MalformedJson = "MALFORMED_JSON", Malformed, Never, MessageInvalid;
    MayRepeatWork = "MAY_REPEAT_WORK", Conflict, Never;
    MemoryNotConfigured = "MEMORY_NOT_CONFIGURED", Conflict, Never;
    MessageTooLarge = "MESSAGE_TOO_LARGE", TooLarge, Never, MessageInvalid => "/content";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", NotAllowed, Never;
    MissingField = "MISSING_FIELD", Invalid, Never, MessageInvalid;
    NestedTooDeep = "NESTED_TOO_DEEP", Invalid, Never, MessageInvalid;
    NoteNotFound = "NOTE_NOT_FOUND", NotFound, Never;
    NothingToAnswer = "NOTHING_TO_ANSWER", Conflict, Never;
    NothingToCompact = "NOTHING_TO_COMPACT", Conflict, Never;
    NotExportable = "NOT_EXPORTABLE", Conflict, Never;
    NotQuarantined = "NOT_QUARANTINED", NotFound, Never;
    NotStorable = "NOT_STORABLE", Invalid, Never, MessageInvalid;
    NotSuspended = "NOT_SUSPENDED", Conflict, Never;
    NotSwitched = "NOT_SWITCHED", Conflict, Never;
    NoActiveSession = "NO_ACTIVE_SESSION", Conflict, Never;
    NoRandomness = "NO_RANDOMNESS", Failed, Never;
    NoReplyTarget = "NO_REPLY_TARGET", Conflict, Never;
    NoThreadFound = "NO_THREAD_FOUND", NotFound, Never => "/to/smart";
    OperatorOnly = "OPERATOR_ONLY", Forbidden, Never => "header:Authorization";
    OriginNotAllowed = "ORIGIN_NOT_ALLOWED", Forbidden, Never => "header:Origin";
    PairingNotFound = "PAIRING_NOT_FOUND", NotFound, Never => "path:code";
    PathForbidden = "PATH_FORBIDDEN", Forbidden, Never;
    PathTaken = "PATH_TAKEN", Conflict, Never, RegistrationFailed;
    PersonaNotFound = "PERSONA_NOT_FOUND", NotFound, Never, InitFailed => "/to/persona";
    PurgeRunning = "PURGE_RUNNING", Conflict, Later;
    QueueFull = "QUEUE_FULL", Busy, After(1), NotReady => "/queue";
    RebuildRunning = "REBUILD_RUNNING", Conflict, Later;
    RestoredFromBackup = "RESTORED_FROM_BACKUP", Conflict, Never;
    RoleForbids = "ROLE_FORBIDS", Forbidden, Never;
    RouteNotFound = "ROUTE_NOT_FOUND", NotFound, Never;
    RunOpen = "RUN_OPEN", Conflict, Later;
    SameSession = "SAME_SESSION", Conflict, Never => "/agent";
    ScopeMissing = "SCOPE_MISSING", Forbidden, Never;
    SessionAlreadyActive = "SESSION_ALREADY_ACTIVE", Conflict, Never, RegistrationFailed;
    SessionClosed = "SESSION_CLOSED", Conflict, Never, NotReady;
    SessionExists = "SESSION_EXISTS", Conflict, Never, RegistrationFailed => "/session_id";
    SessionExpired = "SESSION_EXPIRED", Conflict, Never, NotReady;
    SessionFilesFull = "SESSION_FILES_FULL", Conflict, Never;
    SessionFull = "SESSION_FULL", Conflict, Never, NotReady;
    SessionNotDeleted = "SESSION_NOT_DELETED", Conflict, Never;
    SessionNotFound = "SESSION_NOT_FOUND", NotFound, Never;
    SessionPurged = "SESSION_PURGED", Gone, Never;
    SessionQuarantined = "SESSION_QUARANTINED", Conflict, Never, NotReady;
    SessionStructured = "SESSION_STRUCTURED", Conflict, Never;
    SessionTaken = "SESSION_TAKEN", Conflict, Never;
    SettingFixed = "SETTING_FIXED", Forbidden, Never;
    ShuttingDown = "SHUTTING_DOWN", Unavailable, After(2), ShutdownInProgress;
    SignatureInvalid = "SIGNATURE_INVALID", Forbidden, Never => "header:X-Agent-Host-Signature";
    SignatureStale = "SIGNATURE_STALE", Forbidden, Never => "header:X-Agent-Host-Time";
    Starting = "STARTING", Unavailable, After(2), NotReady;
    StoreUnavailable = "STORE_UNAVAILABLE", Unavailable, After(10), NotReady;
    TaskNotFound = "TASK_NOT_FOUND", NotFound, Never;
    TaskSettled = "TASK_SETTLED", Conflict, Never;
    TemplateForbidden = "TEMPLATE_FORBIDDEN", Forbidden, Never => "/template";
    ThreadsApart = "THREADS_APART", Conflict, Never;
    ThreadEmpty = "THREAD_EMPTY", Conflict, Never;
    TooManyCalls = "TOO_MANY_CALLS", Busy, After(2), NotReady;
    TooManyConnections = "TOO_MANY_CONNECTIONS", Unavailable, After(5), NotReady;
    TooManyConnectorKeys = "TOO_MANY_CONNECTOR_KEYS", Conflict, Never, RegistrationFailed;
    TooManyDefinitions = "TOO_MANY_DEFINITIONS", Conflict, Never, RegistrationFailed;
    TooManyGuesses = "TOO_MANY_GUESSES", Busy, After(600), NotReady => "path:code";
    TooManyKeys = "TOO_MANY_KEYS", Conflict, Never, RegistrationFailed;
    TooManyStreams = "TOO_MANY_STREAMS", Busy, After(5), NotReady;
    TooManyTriggers = "TOO_MANY_TRIGGERS", Conflict, Never, RegistrationFailed;
    TooManyUploads = "TOO_MANY_UPLOADS", Busy, Later, NotReady;
    TooManyUsers = "TOO_MANY_USERS", Conflict, Never, RegistrationFailed;
    TooManyVisitors = "TOO_MANY_VISITORS", Conflict, Never, RegistrationFailed;
    TriggerBusy = "TRIGGER_BUSY", Busy, After(1), NotReady;
    TriggerConfigured = "TRIGGER_CONFIGURED", Conflict, Never;
    TriggerExists = "TRIGGER_EXISTS", Conflict, Never, RegistrationFailed => "/name";
    TriggerNotFound = "TRIGGER_NOT_FOUND", NotFound, Never;
    TurnConflict = "TURN_CONFLICT", Conflict, Never;
    TurnNotFound = "TURN_NOT_FOUND", NotFound, Never;
    Unauthorized = "UNAUTHORIZED", Unauthorized, Never => "header:Authorization";
    UnknownField = "UNKNOWN_FIELD", Invalid, Never, MessageInvalid;
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", Unsupported, Never, MessageInvalid
        => "header:Content-Type";
    UserAlreadyAssigned = "USER_ALREADY_ASSIGNED", Conflict, Never, RegistrationFailed
        => "/user_id";
    UserNotAssigned = "USER_NOT_ASSIGNED", NotFound, Never;
    UserRequestLimit = "USER_REQUEST_LIMIT", Busy, Later, NotReady;
    UserSessionLimit = "USER_SESSION_LIMIT", Busy, After(30), NotReady;
    UserStorageLimit = "USER_STORAGE_LIMIT", Busy, After(3600), NotReady;
    UserStreamLimit = "USER_STREAM_LIMIT", Busy, Later, NotReady;
    VisitorLimit = "VISITOR_LIMIT", Busy, Later, NotReady;
    WorkSettled = "WORK_SETTLED", Conflict, Never;
}

impl ErrorCode {
    /// Its HTTP status.
    #[must_use]
    pub fn status(self) -> u16 {
        self.kind() as u16
    }

    /// True if the same request may succeed later without a correction.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        self.retry() != Retry::Never
    }

    /// The seconds after which a retry makes sense; none if that varies.
    #[must_use]
    pub fn retry_after_s(self) -> Option<u64> {
        match self.retry() {
            Retry::After(seconds) => Some(seconds),
            _ => None,
        }
    }

    fn traits(self) -> CodeTraits {
        CodeTraits {
            code: self.as_str(),
            retryable: self.is_retryable(),
            category: self.category(),
        }
    }
}

impl PartialEq<&str> for ErrorCode {
    fn eq(&self, code: &&str) -> bool {
        self.as_str() == *code
    }
}

/// Returns the properties of a code; none for a code that an agent or a tool chose itself.
#[must_use]
pub fn find(code: &str) -> Option<CodeTraits> {
    let of_request = ErrorCode::from_word(code).map(ErrorCode::traits);
    of_request.or_else(|| OF_WORK.iter().find(|known| known.code == code).copied())
}

/// Every code.
pub fn all() -> impl Iterator<Item = CodeTraits> {
    let of_requests = ErrorCode::ALL.into_iter().map(ErrorCode::traits);
    of_requests.chain(OF_WORK.iter().copied())
}

/// Returns whether the same request may succeed later. An unknown code is not retried.
#[must_use]
pub fn is_retryable(code: &str) -> bool {
    find(code).is_some_and(|known| known.retryable)
}

/// Returns the category of a code.
#[must_use]
pub fn category(code: &str) -> Option<ErrorCategory> {
    find(code).and_then(|known| known.category)
}

/// Returns the category of a turn's end without a reply. Every such end has one.
#[must_use]
pub fn category_of_turn(code: &str) -> ErrorCategory {
    category(code).unwrap_or(ErrorCategory::MessageProcessingFailed)
}

/// Returns the category of a tool call without a result. Every such end has one, whatever code the
/// tool chose.
#[must_use]
pub fn category_of_tool(code: &str) -> ErrorCategory {
    match category(code) {
        Some(ErrorCategory::ToolNotAvailable) => ErrorCategory::ToolNotAvailable,
        _ => ErrorCategory::ToolExecutionFailed,
    }
}

const fn lasting(code: &'static str, category: ErrorCategory) -> CodeTraits {
    CodeTraits {
        code,
        retryable: false,
        category: Some(category),
    }
}

const fn passing(code: &'static str, category: ErrorCategory) -> CodeTraits {
    CodeTraits {
        retryable: true,
        ..lasting(code, category)
    }
}

const PROCESSING: ErrorCategory = ErrorCategory::MessageProcessingFailed;
const REQUEST: ErrorCategory = ErrorCategory::LlmRequestFailed;
const STREAM: ErrorCategory = ErrorCategory::LlmStreamFailed;
const NO_TOOL: ErrorCategory = ErrorCategory::ToolNotAvailable;
const TOOL: ErrorCategory = ErrorCategory::ToolExecutionFailed;

/// The codes of failed operations, steps and turns, and those of tool results.
const OF_WORK: &[CodeTraits] = &[
    lasting("AGENT_UNAVAILABLE", TOOL),
    lasting("INVALID_OPERATION", TOOL),
    lasting("INVALID_PARAMETERS", TOOL),
    lasting("INVALID_TARGET", TOOL),
    lasting("LIMIT_REACHED", TOOL),
    lasting("NOT_ALLOWED", TOOL),
    lasting("TASK_FAILED", TOOL),
    passing("TASK_NOT_STARTED", TOOL),
    lasting("TASK_TIMEOUT", TOOL),
    lasting("TASK_UNKNOWN", TOOL),
    lasting("TOOL_NOT_AVAILABLE", NO_TOOL),
    lasting("WAITS_FOR_CYCLE", TOOL),
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
