//! The error codes that routes answer with, and their statuses.
//!
//! A route lists its own codes in `x-codes` of its `utoipa::path`, made with [`join`] from the
//! groups in here. Codes that follow from the form of a request (a body, a query, a key) are added
//! by [`common`]. The API's description lists all of them by operation; a code that comes and is
//! not listed fails the tests that send every route what it does not take.

use std::collections::BTreeSet;

/// A status and a stable code.
pub(crate) type Code = (u16, &'static str);

/// The parts of a request that an operation reads. Each can be wrong in ways of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reads {
    pub(crate) credential: bool,
    pub(crate) body: bool,
    pub(crate) query: bool,
    /// Something in the path.
    pub(crate) path: bool,
    /// An idempotency key.
    pub(crate) key: bool,
}

const BODY: &[Code] = &[
    (400, "BODY_BROKEN"),
    (400, "MALFORMED_JSON"),
    (408, "BODY_TIMEOUT"),
    (413, "BODY_TOO_LARGE"),
    (415, "UNSUPPORTED_MEDIA_TYPE"),
    (422, "INVALID_FIELD"),
    (422, "MISSING_FIELD"),
    (422, "NESTED_TOO_DEEP"),
    (422, "UNKNOWN_FIELD"),
];
const QUERY: &[Code] = &[(400, "INVALID_QUERY")];
const PATH: &[Code] = &[(400, "INVALID_ID")];
const KEY: &[Code] = &[
    (400, "INVALID_IDEMPOTENCY_KEY"),
    (409, "IDEMPOTENCY_KEY_REUSED"),
    (422, "INVALID"),
];
const CREDENTIAL: &[Code] = &[
    (401, "UNAUTHORIZED"),
    (403, "HOST_NOT_ALLOWED"),
    (403, "ORIGIN_NOT_ALLOWED"),
    (403, "SCOPE_MISSING"),
    (429, "KEY_REQUEST_LIMIT"),
    (429, "USER_REQUEST_LIMIT"),
    (503, "IDENTITY_UNAVAILABLE"),
    (503, "STARTING"),
    (503, "STORE_UNAVAILABLE"),
];

/// Codes of every route that records something.
pub(crate) const RECORDING: &[Code] = &[
    (422, "NOT_STORABLE"),
    (429, "BUSY"),
    (429, "KEY_STORAGE_LIMIT"),
    (429, "USER_STORAGE_LIMIT"),
    (503, "DISK_FULL"),
    (503, "SHUTTING_DOWN"),
];
/// Codes of every route that looks an agent up. A purged one is known by its id.
pub(crate) const AGENT: &[Code] = &[(404, "AGENT_NOT_FOUND"), (410, "AGENT_PURGED")];
/// Codes of every command on an agent or its sessions.
pub(crate) const AGENT_COMMAND: &[Code] = &[
    (403, "PATH_FORBIDDEN"),
    (403, "ROLE_FORBIDS"),
    (404, "AGENT_NOT_FOUND"),
    (409, "AGENT_ARCHIVED"),
    (410, "AGENT_PURGED"),
];
/// Codes of every command that sends something to an agent. An agent made for one piece of work is
/// dead some time after it, and one whose definition was taken away takes nothing.
pub(crate) const LIVE_AGENT: &[Code] = &[(409, "AGENT_DEAD"), (409, "DEFINITION_GONE")];
/// Codes of every command on an agent that goes through the topmost one above it.
pub(crate) const TOPMOST_AGENT: &[Code] = &[(409, "AGENT_SPAWNED")];
/// Codes of commands that stop a turn. An archived agent's turns can be stopped too.
pub(crate) const STOPPING: &[Code] = &[
    (403, "PATH_FORBIDDEN"),
    (403, "ROLE_FORBIDS"),
    (404, "AGENT_NOT_FOUND"),
    (410, "AGENT_PURGED"),
];
/// Codes of commands that only the driver of a session can do.
pub(crate) const DRIVER: &[Code] = &[(409, "SESSION_QUARANTINED")];
/// Codes of every route that looks a session up.
pub(crate) const SESSION: &[Code] = &[
    (404, "SESSION_NOT_FOUND"),
    (410, "AGENT_PURGED"),
    (410, "SESSION_PURGED"),
];
/// Codes of commands with fields that the domain checks.
pub(crate) const INVALID: &[Code] = &[(422, "INVALID")];
/// Codes of commands that open a session, and the agent for it if need be.
pub(crate) const OPENING: &[Code] = &[
    (404, "DEFINITION_NOT_FOUND"),
    (409, "AGENT_SPAWNED"),
    (409, "PATH_TAKEN"),
    (409, "SESSION_ALREADY_ACTIVE"),
];
/// Codes of every route that makes a session.
pub(crate) const SESSION_LIMITS: &[Code] =
    &[(429, "KEY_SESSION_LIMIT"), (429, "USER_SESSION_LIMIT")];
/// Codes of commands that answer a question.
pub(crate) const ANSWERING: &[Code] = &[
    (409, "INVALID_TOOL_CALL_ID"),
    (409, "NOT_SUSPENDED"),
    (409, "SESSION_FILES_FULL"),
    (413, "ANSWER_TOO_LARGE"),
    (422, "INVALID_RESPONSE"),
];
/// Codes of the upload of a file.
pub(crate) const FILE_UPLOAD: &[Code] = &[
    (400, "BODY_BROKEN"),
    (408, "BODY_TIMEOUT"),
    (409, "SESSION_FILES_FULL"),
    (413, "FILE_TOO_LARGE"),
    (415, "UNSUPPORTED_MEDIA_TYPE"),
    (422, "INVALID_FILE_NAME"),
    (422, "INVALID_MEDIA_TYPE"),
];
/// Codes of every route that looks a turn up.
pub(crate) const TURN: &[Code] = &[(404, "TURN_NOT_FOUND")];
/// Codes of event streams.
pub(crate) const STREAM: &[Code] = &[
    (400, "INVALID_LAST_EVENT_ID"),
    (429, "KEY_STREAM_LIMIT"),
    (429, "TOO_MANY_STREAMS"),
    (429, "USER_STREAM_LIMIT"),
];

/// Codes of the stream of telemetry, which is never resumed.
pub(crate) const TELEMETRY: &[Code] = &[
    (429, "KEY_STREAM_LIMIT"),
    (429, "TOO_MANY_STREAMS"),
    (429, "USER_STREAM_LIMIT"),
];

/// Joins the groups of codes of one route.
pub(crate) fn join(groups: &[&[Code]]) -> Vec<Code> {
    groups.concat()
}

/// Returns the codes that follow from what an operation reads.
pub(crate) fn common(reads: Reads) -> BTreeSet<Code> {
    let groups = [
        (reads.credential, CREDENTIAL),
        (reads.body, BODY),
        (reads.query, QUERY),
        (reads.path, PATH),
        (reads.key, KEY),
    ];
    groups
        .into_iter()
        .filter(|(is_read, _)| *is_read)
        .flat_map(|(_, codes)| codes)
        .copied()
        .collect()
}
