//! The error codes that routes answer with, by the type of a route's error.
//!
//! A handler that refuses returns [`Refused`] of a set of codes. [`error_codes!`](error_codes)
//! declares the set beside the handler, of codes and of the sets in here; from the type the codes
//! come into the API's description (`crate::routing`). Codes that follow from the form of a request
//! (a body, a query, a key) are added by [`common`].

use crate::problem::Problem;
use axum::response::{IntoResponse, Response};
use domain::error_code::ErrorCode;
use std::collections::BTreeSet;
use std::marker::PhantomData;

/// A set of codes: those of the errors of some routes.
pub(crate) trait ErrorCodes {
    /// The codes.
    fn codes() -> BTreeSet<ErrorCode>;
}

/// A problem whose code is one of a set: the error of a handler. The set is the type's, so that the
/// description of the route has it; a test that meets another code fails.
#[derive(Debug)]
pub(crate) struct Refused<S> {
    problem: Problem,
    codes: PhantomData<fn() -> S>,
}

impl<S, E: Into<Problem>> From<E> for Refused<S> {
    fn from(error: E) -> Self {
        Self {
            problem: error.into(),
            codes: PhantomData,
        }
    }
}

impl<S: ErrorCodes> IntoResponse for Refused<S> {
    fn into_response(self) -> Response {
        #[cfg(test)]
        assert!(
            S::codes().contains(&self.problem.code) || is_common(self.problem.code),
            "a route answers with {}, which its error's type does not have",
            self.problem.code
        );
        self.problem.into_response()
    }
}

/// Declares sets of codes, one a row: the codes, and the sets of this module that belong to it.
macro_rules! error_codes {
    ($($(#[$doc:meta])* $set:ident = [$($code:ident),* $(,)?] $(+ $other:ident)*;)+) => {$(
        $(#[$doc])*
        pub(crate) enum $set {}

        impl $crate::codes::ErrorCodes for $set {
            fn codes() -> std::collections::BTreeSet<domain::error_code::ErrorCode> {
                let own = std::collections::BTreeSet::from([
                    $(domain::error_code::ErrorCode::$code),*
                ]);
                let all = [own $(, <$crate::codes::$other as $crate::codes::ErrorCodes>::codes())*];
                all.into_iter().flatten().collect()
            }
        }
    )+};
}
pub(crate) use error_codes;

error_codes! {
    /// Everything that records something.
    Recording = [NotStorable, Busy, KeyStorageLimit, UserStorageLimit, DiskFull, ShuttingDown];
    /// Everything that looks an agent up. A purged one is known by its id.
    Agent = [AgentNotFound, AgentPurged];
    /// Every command on an agent or its sessions.
    AgentCommand = [AgentArchived] + Stopping + Recording;
    /// Every command that sends something to an agent. An agent made for one piece of work is dead
    /// some time after it, and one whose definition was taken away takes nothing.
    LiveAgent = [AgentDead, DefinitionGone] + AgentCommand;
    /// Commands that stop a turn. An archived agent's turns can be stopped too.
    Stopping = [PathForbidden, RoleForbids] + Agent + Recording;
    /// Everything that looks a session up.
    Session = [SessionNotFound, AgentPurged, SessionPurged];
    /// Everything that looks up a session of an agent that is named.
    SessionOfAgent = [] + Session + Agent;
    /// Every command that makes a session.
    SessionLimits = [KeySessionLimit, UserSessionLimit];
    /// Commands that open a session, and the agent for it if need be.
    Opening = [DefinitionNotFound, AgentSpawned, PathTaken, SessionAlreadyActive, Invalid]
        + LiveAgent + SessionLimits;
    /// Commands that answer a question.
    Answering = [
        InvalidToolCallId, NotSuspended, SessionFilesFull, AnswerTooLarge, InvalidResponse,
        SessionQuarantined,
    ] + LiveAgent + Session;
    /// Everything that reads a body of bytes.
    Bytes = [BodyBroken, BodyTimeout];
    /// Everything that reads a file, which takes a permit.
    File = [FileTooLarge, UnsupportedMediaType, TooManyUploads] + Bytes;
    /// Streams of events, and of telemetry.
    Streams = [KeyStreamLimit, TooManyStreams, UserStreamLimit];
    /// Streams of events, which can be resumed.
    ResumedStreams = [InvalidLastEventId] + Streams + SessionOfAgent;
    /// Everything that needs no credential and asks the store.
    Open = [Starting, StoreUnavailable];
    /// A chat that is not there, or whose page may not use it.
    Chat = [OriginNotAllowed, ConnectorNotFound] + Open;
    /// Calls of webhooks and of services.
    Call = [CallMalformed, CallUnverified, BodyTooLarge, TooManyCalls] + Bytes + Open + Recording;
}

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

error_codes! {
    Body = [
        MalformedJson, BodyTooLarge, UnsupportedMediaType, InvalidField, MissingField,
        NestedTooDeep, UnknownField,
    ] + Bytes;
    Query = [InvalidQuery];
    InPath = [InvalidId];
    Key = [InvalidIdempotencyKey, IdempotencyKeyReused, Invalid];
    Credential = [
        Unauthorized, HostNotAllowed, OriginNotAllowed, ScopeMissing, KeyRequestLimit,
        UserRequestLimit, IdentityUnavailable,
    ] + Open;
}

/// Returns the codes that follow from what an operation reads.
pub(crate) fn common(reads: Reads) -> BTreeSet<ErrorCode> {
    let groups = [
        (reads.credential, Credential::codes()),
        (reads.body, Body::codes()),
        (reads.query, Query::codes()),
        (reads.path, InPath::codes()),
        (reads.key, Key::codes()),
    ];
    let read = groups.into_iter().filter(|(is_read, _)| *is_read);
    read.flat_map(|(_, codes)| codes).collect()
}

/// Tells whether a code follows from the form of a request.
#[cfg(test)]
pub(crate) fn is_common(code: ErrorCode) -> bool {
    let everything = Reads {
        credential: true,
        body: true,
        query: true,
        path: true,
        key: true,
    };
    common(everything).contains(&code)
}
