//! The error codes that each route may answer with, and their statuses. The API's description lists
//! them by operation.
//!
//! What follows from the form of a request (a body, a query, a key) is derived from the description
//! itself; the table has what is the route's own. A code that comes and is not listed fails the
//! tests that send every route what it does not take.

use http::Method;
use std::collections::BTreeSet;

/// A status and a stable code.
pub(crate) type Code = (u16, &'static str);

/// The parts of a request that an operation reads. Each can be wrong in ways of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reads {
    /// A JSON body.
    pub(crate) body: bool,
    /// A query.
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

/// Codes of every route that needs a credential.
const GUARDED: &[Code] = &[
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
const RECORDS: &[Code] = &[
    (422, "NOT_STORABLE"),
    (429, "BUSY"),
    (429, "USER_STORAGE_LIMIT"),
    (503, "DISK_FULL"),
    (503, "SHUTTING_DOWN"),
];
/// Codes of every operation on an agent or its sessions.
const OF_AGENT: &[Code] = &[
    (403, "PATH_FORBIDDEN"),
    (403, "ROLE_FORBIDS"),
    (404, "AGENT_NOT_FOUND"),
    (409, "AGENT_ARCHIVED"),
];
/// Codes of every operation that sends something to an agent. An agent made for one piece of work
/// is dead some time after it.
const SAID: &[Code] = &[(409, "AGENT_DEAD")];
/// Codes of every operation on an agent that goes through the topmost one above it.
const OF_TOPMOST: &[Code] = &[(409, "AGENT_SPAWNED")];
/// Codes of operations that stop a turn. An archived agent's turns can be stopped too.
const STOPS: &[Code] = &[
    (403, "PATH_FORBIDDEN"),
    (403, "ROLE_FORBIDS"),
    (404, "AGENT_NOT_FOUND"),
];
/// Codes of commands that only the driver of a session can do.
const DRIVEN: &[Code] = &[(409, "SESSION_QUARANTINED")];
const OF_SESSION: &[Code] = &[(404, "SESSION_NOT_FOUND"), (410, "SESSION_PURGED")];
const INVALID: &[Code] = &[(422, "INVALID")];
const OPENS: &[Code] = &[
    (404, "DEFINITION_NOT_FOUND"),
    (409, "AGENT_SPAWNED"),
    (409, "PATH_TAKEN"),
    (409, "SESSION_ALREADY_ACTIVE"),
];
const ANSWERS: &[Code] = &[
    (409, "INVALID_TOOL_CALL_ID"),
    (409, "NOT_SUSPENDED"),
    (409, "SESSION_FILES_FULL"),
    (413, "ANSWER_TOO_LARGE"),
    (422, "INVALID_RESPONSE"),
];
const FILES: &[Code] = &[
    (400, "BODY_BROKEN"),
    (408, "BODY_TIMEOUT"),
    (409, "SESSION_FILES_FULL"),
    (413, "FILE_TOO_LARGE"),
    (415, "UNSUPPORTED_MEDIA_TYPE"),
    (422, "INVALID_FILE_NAME"),
    (422, "INVALID_MEDIA_TYPE"),
];
const CARRIES: &[Code] = &[
    (400, "BODY_BROKEN"),
    (408, "BODY_TIMEOUT"),
    (409, "TURN_CONFLICT"),
    (413, "FILE_TOO_LARGE"),
    (415, "UNSUPPORTED_MEDIA_TYPE"),
    (429, "TOO_MANY_UPLOADS"),
];
const TURNS: &[Code] = &[(404, "TURN_NOT_FOUND")];
const STREAMS: &[Code] = &[
    (400, "INVALID_LAST_EVENT_ID"),
    (429, "KEY_STREAM_LIMIT"),
    (429, "TOO_MANY_STREAMS"),
    (429, "USER_STREAM_LIMIT"),
];
/// Codes of every operation that opens a session.
const BEGINS: &[Code] = &[(429, "KEY_SESSION_LIMIT"), (429, "USER_SESSION_LIMIT")];

/// Codes specific to single routes. A route that is not listed has only the common ones.
const OWN: &[(&str, &str, &[&[Code]])] = &[
    (
        "POST",
        "/api/agents",
        &[
            OF_AGENT,
            INVALID,
            &[
                (404, "DEFINITION_NOT_FOUND"),
                (409, "AGENT_EXISTS"),
                (409, "INDICES_USED_UP"),
                (409, "PATH_TAKEN"),
            ],
        ],
    ),
    ("GET", "/api/agents/{id}", &[&[(404, "AGENT_NOT_FOUND")]]),
    (
        "PATCH",
        "/api/agents/{id}",
        &[OF_AGENT, OF_TOPMOST, INVALID, &[(403, "SETTING_FIXED")]],
    ),
    (
        "GET",
        "/api/agents/{id}/preferences",
        &[&[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "PATCH",
        "/api/agents/{id}/preferences",
        &[OF_AGENT, OF_TOPMOST, INVALID],
    ),
    (
        "POST",
        "/api/agents/{id}/archive",
        &[
            OF_AGENT,
            OF_TOPMOST,
            INVALID,
            &[
                (404, "DEFINITION_NOT_FOUND"),
                (409, "SESSION_ALREADY_ACTIVE"),
            ],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/assign",
        &[
            OF_AGENT,
            OF_TOPMOST,
            &[
                (409, "TOO_MANY_USERS"),
                (409, "USER_ALREADY_ASSIGNED"),
                (422, "INVALID_ASSIGNMENT_ROLE"),
            ],
        ],
    ),
    (
        "PUT",
        "/api/agents/{id}/assignments/{user}",
        &[
            OF_AGENT,
            OF_TOPMOST,
            &[
                (404, "USER_NOT_ASSIGNED"),
                (409, "LAST_PRIMARY"),
                (422, "INVALID_ASSIGNMENT_ROLE"),
            ],
        ],
    ),
    (
        "DELETE",
        "/api/agents/{id}/assignments/{user}",
        &[
            OF_AGENT,
            OF_TOPMOST,
            &[(404, "USER_NOT_ASSIGNED"), (409, "LAST_PRIMARY")],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/handoff",
        &[
            OF_AGENT,
            OF_TOPMOST,
            INVALID,
            &[(409, "TOO_MANY_USERS"), (422, "INVALID_ASSIGNMENT_ROLE")],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/sessions",
        &[OF_AGENT, SAID, OPENS, BEGINS, INVALID],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions",
        &[&[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "GET",
        "/api/agents/{id}/history",
        &[&[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "DELETE",
        "/api/agents/{id}/sessions/current",
        &[
            OF_AGENT,
            SAID,
            INVALID,
            DRIVEN,
            &[(409, "NO_ACTIVE_SESSION")],
        ],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}",
        &[OF_SESSION, &[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}/items",
        &[OF_SESSION, &[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "PUT",
        "/api/agents/{id}/sessions/{sid}/ui-state",
        &[
            OF_AGENT,
            SAID,
            OF_SESSION,
            INVALID,
            &[(409, "NOT_SUSPENDED"), (409, "SESSION_CLOSED")],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/sessions/{sid}/messages",
        &[
            OF_AGENT,
            SAID,
            OF_SESSION,
            INVALID,
            &[
                (409, "SESSION_CLOSED"),
                (413, "MESSAGE_TOO_LARGE"),
                (429, "QUEUE_FULL"),
            ],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/sessions/{sid}/cancel",
        &[OF_SESSION, INVALID, STOPS, DRIVEN],
    ),
    (
        "POST",
        "/api/agents/{id}/sessions/{sid}/files",
        &[
            OF_AGENT,
            SAID,
            OF_SESSION,
            FILES,
            &[(409, "SESSION_CLOSED"), (429, "TOO_MANY_UPLOADS")],
        ],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}/files",
        &[OF_SESSION, &[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}/files/{digest}",
        &[
            OF_SESSION,
            &[(404, "AGENT_NOT_FOUND"), (404, "FILE_NOT_FOUND")],
        ],
    ),
    (
        "PUT",
        "/api/agents/{id}/sessions/{sid}/queue",
        &[OF_AGENT, OF_SESSION, &[(409, "SESSION_CLOSED")]],
    ),
    (
        "DELETE",
        "/api/agents/{id}/sessions/{sid}/queue",
        &[OF_AGENT, OF_SESSION, &[(409, "SESSION_CLOSED")]],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}/inputs",
        &[OF_SESSION, &[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}/inputs/{input}",
        &[
            OF_SESSION,
            &[(404, "AGENT_NOT_FOUND"), (404, "INPUT_NOT_FOUND")],
        ],
    ),
    (
        "DELETE",
        "/api/agents/{id}/sessions/{sid}/inputs/{input}",
        &[
            OF_SESSION,
            INVALID,
            &[
                (403, "ROLE_FORBIDS"),
                (404, "AGENT_NOT_FOUND"),
                (404, "INPUT_NOT_FOUND"),
            ],
            &[(409, "INPUT_NOT_WAITING"), (409, "INPUT_NOT_WORDS")],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/respond",
        &[OF_AGENT, SAID, OF_SESSION, ANSWERS, DRIVEN],
    ),
    (
        "GET",
        "/api/agents/{id}/stream",
        &[OF_SESSION, STREAMS, &[(404, "AGENT_NOT_FOUND")]],
    ),
    ("GET", "/api/sessions/{sid}", &[OF_SESSION]),
    (
        "POST",
        "/api/messages",
        &[
            OF_AGENT,
            SAID,
            OF_SESSION,
            OPENS,
            BEGINS,
            INVALID,
            &[
                (404, "NO_THREAD_FOUND"),
                (404, "PERSONA_NOT_FOUND"),
                (404, "TURN_NOT_FOUND"),
                (409, "SESSION_CLOSED"),
                (413, "MESSAGE_TOO_LARGE"),
            ],
        ],
    ),
    (
        "GET",
        "/api/dead-letters/{id}",
        &[&[(404, "DEAD_LETTER_NOT_FOUND")]],
    ),
    (
        "POST",
        "/api/dead-letters/{id}/requeue",
        &[
            OF_SESSION,
            &[
                (404, "DEAD_LETTER_NOT_FOUND"),
                (409, "SESSION_CLOSED"),
                (409, "WORK_SETTLED"),
            ],
        ],
    ),
    ("POST", "/api/backups", &[&[(500, "BACKUP_FAILED")]]),
    (
        "POST",
        "/api/rebuilds",
        &[&[
            (409, "PURGE_RUNNING"),
            (409, "REBUILD_RUNNING"),
            (503, "SHUTTING_DOWN"),
        ]],
    ),
    (
        "POST",
        "/api/purges",
        &[
            &[
                (403, "OPERATOR_ONLY"),
                (404, "AGENT_NOT_FOUND"),
                (404, "SESSION_NOT_FOUND"),
                (409, "AGENT_NOT_ARCHIVED"),
            ],
            &[
                (409, "AGENT_SPAWNED"),
                (409, "RUN_OPEN"),
                (409, "SESSION_NOT_DELETED"),
            ],
        ],
    ),
    (
        "POST",
        "/api/quarantine/{id}/release",
        &[&[(404, "NOT_QUARANTINED")]],
    ),
    ("POST", "/api/import", &[INVALID]),
    (
        "POST",
        "/api/keys",
        &[
            INVALID,
            &[
                (403, "KEY_REVOKED"),
                (409, "KEY_ISSUED_BEFORE"),
                (409, "TOO_MANY_KEYS"),
            ],
        ],
    ),
    (
        "DELETE",
        "/api/keys/{id}",
        &[INVALID, &[(404, "KEY_NOT_FOUND")]],
    ),
    (
        "POST",
        "/api/session/",
        &[
            OF_AGENT,
            SAID,
            OPENS,
            BEGINS,
            INVALID,
            &[(400, "INVALID_SESSION_TYPE")],
        ],
    ),
    ("GET", "/api/session/{sid}", &[OF_SESSION]),
    ("GET", "/api/session/{sid}/state", &[OF_SESSION]),
    (
        "POST",
        "/api/session/{sid}/respond",
        &[
            OF_AGENT,
            SAID,
            OF_SESSION,
            ANSWERS,
            DRIVEN,
            &[(400, "INVALID_TOOL_CALL_ID")],
        ],
    ),
    (
        "DELETE",
        "/api/session/{sid}",
        &[
            OF_AGENT,
            SAID,
            OF_SESSION,
            INVALID,
            DRIVEN,
            &[(409, "NO_ACTIVE_SESSION")],
        ],
    ),
    (
        "GET",
        "/api/session/{sid}/stream",
        &[OF_SESSION, STREAMS, &[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "PATCH",
        "/api/agents/{id}/sessions/{sid}",
        &[OF_AGENT, OF_SESSION, INVALID],
    ),
    (
        "DELETE",
        "/api/agents/{id}/sessions/{sid}",
        &[
            OF_AGENT,
            OF_SESSION,
            &[
                (409, "INPUTS_WAIT"),
                (409, "RUN_OPEN"),
                (409, "SESSION_ALREADY_ACTIVE"),
            ],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/sessions/{sid}/clear",
        &[
            OF_AGENT,
            OF_SESSION,
            &[
                (409, "INPUTS_WAIT"),
                (409, "RUN_OPEN"),
                (409, "SESSION_CLOSED"),
                (409, "SESSION_STRUCTURED"),
            ],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/sessions/{sid}/compact",
        &[
            OF_AGENT,
            OF_SESSION,
            DRIVEN,
            &[
                (409, "NOTHING_TO_COMPACT"),
                (409, "RUN_OPEN"),
                (409, "SESSION_CLOSED"),
                (409, "SESSION_STRUCTURED"),
            ],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/sessions/{sid}/fork",
        &[
            OF_AGENT,
            OF_SESSION,
            INVALID,
            TURNS,
            BEGINS,
            &[(409, "THREAD_EMPTY")],
        ],
    ),
    ("GET", "/api/turns/{turn_id}", &[TURNS]),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}/tree",
        &[OF_SESSION, &[(404, "AGENT_NOT_FOUND")]],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}/diff",
        &[
            OF_SESSION,
            TURNS,
            &[(404, "AGENT_NOT_FOUND"), (409, "THREADS_APART")],
        ],
    ),
    (
        "GET",
        "/api/agents/{id}/sessions/{sid}/export",
        &[
            OF_SESSION,
            &[
                (404, "AGENT_NOT_FOUND"),
                (409, "EXPORT_TOO_LARGE"),
                (409, "NOT_EXPORTABLE"),
            ],
        ],
    ),
    (
        "POST",
        "/api/agents/{id}/sessions/import",
        &[OF_AGENT, INVALID, CARRIES, BEGINS],
    ),
    ("GET", "/api/search", &[&[(404, "AGENT_NOT_FOUND")]]),
    ("POST", "/api/agents/{id}/abort", &[STOPS, INVALID]),
    (
        "GET",
        "/api/agents/{id}/reply-target",
        &[&[
            (403, "ROLE_FORBIDS"),
            (404, "AGENT_NOT_FOUND"),
            (409, "NO_REPLY_TARGET"),
        ]],
    ),
    ("GET", "/api/paths/fetch", &[&[(404, "AGENT_NOT_FOUND")]]),
    (
        "PUT",
        "/api/users/{user}/connectors/{key}",
        &[&[
            (409, "CONNECTOR_KEY_BOUND"),
            (409, "TOO_MANY_CONNECTOR_KEYS"),
        ]],
    ),
    (
        "DELETE",
        "/api/users/{user}/connectors/{key}",
        &[&[(404, "CONNECTOR_KEY_NOT_FOUND")]],
    ),
    (
        "GET",
        "/readyz",
        &[&[
            (503, "DISK_FULL"),
            (503, "SHUTTING_DOWN"),
            (503, "STARTING"),
            (503, "STORE_UNAVAILABLE"),
        ]],
    ),
];

/// Routes by which the operator asks something of the store, and which record nothing.
const RECORDS_NOTHING: &[&str] = &[
    "/api/backups",
    "/api/clock/confirm",
    "/api/rebuilds",
    "/api/verifications",
];

/// The route at which an earlier purge is reported instead of refused.
const PURGES: &str = "/api/purges";

/// Returns all codes that an operation may answer with.
pub(crate) fn of(method: &Method, route: &str, reads: Reads, is_open: bool) -> BTreeSet<Code> {
    let records = *method != Method::GET && !RECORDS_NOTHING.contains(&route);
    let common = [
        (!is_open, GUARDED),
        (!is_open && records, RECORDS),
        (reads.body, BODY),
        (reads.query, QUERY),
        (reads.path, PATH),
        (reads.key, KEY),
    ];
    let common = common
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .flat_map(|(_, codes)| codes);
    let own = OWN
        .iter()
        .filter(|(of, at, _)| *of == method.as_str() && *at == route)
        .flat_map(|(_, _, groups)| groups.iter().copied());
    let mut all: BTreeSet<Code> = common.chain(own.flatten()).copied().collect();
    // What was purged is known by its id, wherever it is asked for.
    if route != PURGES
        && [(404, "AGENT_NOT_FOUND"), (404, "SESSION_NOT_FOUND")]
            .iter()
            .any(|code| all.contains(code))
    {
        all.insert((410, "AGENT_PURGED"));
    }
    all
}

/// Every route of the table.
#[cfg(test)]
pub(crate) fn routes() -> impl Iterator<Item = String> {
    OWN.iter()
        .map(|(method, route, _)| format!("{method} {route}"))
}
