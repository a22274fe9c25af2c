//! Requests to the store's writer, and their possible outcomes.

use crate::sql::Source;
use domain::account::Accounts;
use domain::agent::role::Right;
use domain::budget::Spent;
use domain::digest::Digest;
use domain::event::NewEvent;
use domain::id::{AgentId, InputId, OperationId, RunId, SessionId, Stream, TurnId};
use domain::key::KeyId;
use domain::path::ConnectorKey;
use domain::persona::PersonaId;
use domain::queue::{Overflow, OverflowNotice};
use domain::time::Timestamp;
use domain::user::UserId;
use std::fmt;

/// A set of changes that are stored together or not at all.
///
/// Its guards look at the store as it was before its own events. Then the events are appended in
/// order, and every projection sees each event after the ones before it.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// Events, stream by stream.
    pub appends: Vec<Append>,
    /// Conditions that must hold.
    pub guards: Vec<Guard>,
    /// Content that its events name by digest. The digests are computed before the commit is
    /// queued.
    pub blobs: Vec<Vec<u8>>,
    /// Idempotency key that makes a repetition of the same request harmless.
    pub key: Option<Key>,
    /// Folds worth keeping.
    pub snapshots: Vec<(Stream, Snapshot)>,
}

impl Commit {
    /// An empty commit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds events for a stream.
    #[must_use]
    pub fn append(mut self, stream: Stream, expected: Expected, events: Vec<NewEvent>) -> Self {
        self.appends.push(Append {
            stream,
            expected,
            events,
        });
        self
    }

    /// Adds a condition.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guards.push(guard);
        self
    }

    /// Adds content.
    #[must_use]
    pub fn blob(mut self, bytes: Vec<u8>) -> Self {
        self.blobs.push(bytes);
        self
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Adds a snapshot of a stream.
    #[must_use]
    pub fn snapshot(mut self, stream: Stream, snapshot: Snapshot) -> Self {
        self.snapshots.push((stream, snapshot));
        self
    }
}

/// Events for one stream.
#[derive(Debug, Clone)]
pub struct Append {
    /// The stream.
    pub stream: Stream,
    /// The expected version of the stream.
    pub expected: Expected,
    /// The events, in order.
    pub events: Vec<NewEvent>,
}

/// Version at which a stream must be for an append to land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any version.
    Any,
    /// No version: the stream has no events yet.
    New,
    /// Its last event has this version.
    Version(u64),
}

/// Condition for a commit to land, checked in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// The session exists and no run of it is open.
    NoOpenRun(SessionId),
    /// The session's head and revision are still these.
    Head {
        /// The session.
        session: SessionId,
        /// Its head.
        head: Option<TurnId>,
        /// Its revision.
        revision: u64,
    },
    /// No message waits in the session that would join its run ([`domain::queue::Kind::Steer`]),
    /// except those that the commit itself claims. A reminder waits from when it is due. Messages
    /// that wait for the run to end do not keep it from ending.
    NothingWaiting {
        /// The session.
        session: SessionId,
        /// The user whose messages count; none for all users.
        user: Option<UserId>,
        /// The current time.
        now: Timestamp,
        /// Inputs that the commit itself claims.
        except: Vec<InputId>,
    },
    /// The input was accepted and waits.
    InputWaiting(InputId),
    /// The input was put aside as a dead letter.
    InputDead(InputId),
    /// The operation of this run was started and has not settled.
    OperationOpen {
        /// The run.
        run: RunId,
        /// The operation.
        operation: OperationId,
    },
    /// The run was started and has not ended.
    RunOpen(RunId),
    /// The agent's slot for structured sessions is free, or held by this session.
    SlotFor {
        /// The agent.
        agent: AgentId,
        /// The session.
        session: SessionId,
    },
    /// The agent exists, and neither it nor the topmost one above it was archived.
    AgentActive(AgentId),
    /// The session exists and was neither completed nor terminated, and its agent is not archived.
    SessionOpen(SessionId),
    /// At most so many inputs of the session wait before this commit, reminders included.
    WaitingAtMost {
        /// The session.
        session: SessionId,
        /// Maximum number of inputs.
        max: u64,
    },
    /// The session has no file of this content and name.
    FileAbsent {
        /// The session.
        session: SessionId,
        /// The content.
        digest: Digest,
        /// The name.
        name: String,
    },
    /// The session has at most so many files, of so many bytes together, before this commit.
    FilesAtMost {
        /// The session.
        session: SessionId,
        /// Maximum number of files.
        files: u64,
        /// Maximum number of bytes.
        bytes: u64,
    },
    /// At most so many dispatches of this tree of agents are open before this commit. The tree is
    /// named by its topmost agent.
    TreeDispatchesAtMost {
        /// The tree.
        tree: AgentId,
        /// Maximum number of dispatches.
        max: u64,
    },
    /// All accounts of a run can cover what this commit draws on them. What others and the run
    /// itself have drawn counts as well.
    AccountsHave {
        /// The run.
        run: RunId,
        /// Its accounts.
        accounts: Accounts,
        /// Amount that the run has drawn itself, with the outcomes that this commit records.
        drawn: Spent,
        /// Amount that this commit draws.
        more: Spent,
    },
    /// The message that began everything has led to at most so many runs before this commit.
    RunsAtMost {
        /// The accounts of what it began, of which the first is the message's.
        accounts: Accounts,
        /// Maximum number of runs.
        max: u64,
    },
    /// The user has a role with the agent, or with the topmost one above it, that allows this.
    Role {
        /// The agent.
        agent: AgentId,
        /// The user.
        user: UserId,
        /// The right that the role must grant.
        right: Right,
    },
    /// No active agent lives at this path.
    PathFree(String),
    /// The API key was issued and not revoked.
    KeyNotRevoked(KeyId),
    /// The agent has spawned exactly so many so far.
    SubCount {
        /// The agent.
        agent: AgentId,
        /// Expected number of spawned agents.
        count: u64,
    },
    /// The session exists and was not deleted, and its agent is not archived.
    SessionThere(SessionId),
    /// The awaited session does not wait for the waiting one, directly or through others. Only open
    /// operations count.
    MayWait {
        /// The session that is to wait.
        session: SessionId,
        /// The session that it is to wait for.
        for_session: SessionId,
    },
    /// The session's queue is as it was read ([`crate::Store::queue`]): what arrives was decided
    /// upon it.
    QueueUnchanged {
        /// The session.
        session: SessionId,
        /// The state of the queue as it was read.
        seen: Box<QueueSeen>,
    },
    /// The unreported drops from the session's queue amount to this notice; none when there are
    /// none.
    Untold {
        /// The session.
        session: SessionId,
        /// The notice.
        notice: Option<OverflowNotice>,
    },
    /// The connector key is bound to this user; with none, to no user.
    ConnectorKeyOf {
        /// The key.
        key: ConnectorKey,
        /// The user.
        user: Option<UserId>,
    },
    /// The user has at most so many connector keys before this commit.
    ConnectorKeysAtMost {
        /// The user.
        user: UserId,
        /// Maximum number of connector keys.
        max: u64,
    },
    /// The user has brought less than so many bytes that are still there
    /// ([`crate::Store::stored_bytes`]), before this commit.
    StoredBelow {
        /// The user.
        user: UserId,
        /// The limit in bytes.
        bytes: u64,
    },
    /// The user has opened less than so many sessions within some time, before this commit.
    SessionsOpenedBelow {
        /// The user.
        user: UserId,
        /// Start of the period.
        after: Timestamp,
        /// Up to this time.
        until: Timestamp,
        /// The limit on sessions.
        max: u64,
    },
    /// The user has no open chat that messages to this addressee would go to.
    NoChat {
        /// The user.
        of: UserId,
        /// The addressee of the messages.
        with: ChatWith,
    },
    /// The session exists and was not deleted, and the turn is in its thread or was made in it: no
    /// purge takes the turn away.
    SessionShows {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: TurnId,
    },
}

/// Addressee of messages that go to the user's open chat with it, or begin one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatWith {
    /// An agent: the latest chat ([`crate::Store::latest_chat`]).
    Agent(AgentId),
    /// A persona: the main session ([`crate::Store::main_session`]).
    Persona(PersonaId),
    /// A turn: the chat that is at it ([`crate::Store::chat_at`]).
    Turn(TurnId),
}

/// State of the queue on which the acceptance of an input rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSeen {
    /// The run that is open.
    pub run: Option<RunId>,
    /// True if the session holds its agent's slot and waits for its client.
    pub awaits_client: bool,
    /// The inputs of the queue proper ([`domain::queue::Kind::Queued`]), in the order of their
    /// acceptance.
    pub queued: Vec<InputId>,
    /// Dropped inputs that no turn has reported yet.
    pub overflow: Overflow,
}

/// Idempotency key of a request, remembered for seven days ([`domain::limits::IDEMPOTENCY_MS`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The requester.
    pub source: String,
    /// The name that they gave the request.
    pub key: String,
    /// The digest of the request: another request under the same name is refused.
    pub request: Digest,
    /// The reply when the same request comes again.
    pub reply: Vec<u8>,
    /// The session that it is about, with which it is forgotten; without, that of the commit's
    /// first event, or its agent.
    pub about: Option<SessionId>,
}

/// The fold of a stream up to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The version of the last event in it.
    pub version: u64,
    /// The layout of the state.
    pub format: u32,
    /// The state.
    pub state: Vec<u8>,
}

/// Result of a commit that landed. It is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The position of its first event.
    pub first_position: u64,
    /// The position of its last event; one less than the first when it had none.
    pub last_position: u64,
    /// The version of each of its streams afterwards, each stream once, in the order of its
    /// appends.
    pub versions: Vec<(Stream, u64)>,
    /// True if the commit accepted inputs and all of them can wait for an open run without a
    /// notification. That run takes them in at its end or after another step, not now: its driver
    /// looks for them then.
    pub waits_unheard: bool,
}

/// Reason why a commit did not land. Nothing of it is stored.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Something was not as the commit expected: load again and decide again.
    #[error("conflict: {0}")]
    Conflict(Conflict),
    /// The same request landed before.
    #[error("the same request was committed before")]
    Replayed {
        /// The reply that was given the first time.
        reply: Vec<u8>,
    },
    /// Another request landed under this idempotency key.
    #[error("the idempotency key belongs to another request")]
    KeyReused,
    /// Too many commits wait. Try again shortly.
    #[error("too many commits are waiting")]
    Busy,
    /// The disk is full. Reads go on; commits are taken again as soon as there is space.
    #[error("no space is left to store anything")]
    Full,
    /// The database did not take it, and may take it later.
    #[error("the store is not available")]
    Unavailable {
        /// The cause.
        #[source]
        source: Source,
    },
    /// Something in it can be stored neither now nor later: an event that is nested too deep, or is
    /// too large, or over which the writer panics.
    #[error("this can never be stored")]
    Unstorable {
        /// The part that cannot be stored, and the cause.
        #[source]
        source: Source,
    },
    /// Something stored that it rests on does not read as what it should be: a newer version wrote
    /// it, or it was damaged. Another try fails until that is mended.
    #[error("something stored that this rests on does not read as what it should be")]
    Unreadable {
        /// The cause.
        #[source]
        source: Source,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// A condition that did not hold as a commit expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The part of the commit that did not hold.
    pub clash: Clash,
    /// Human-readable description of what was found instead.
    pub detail: String,
}

/// The part of a commit that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clash {
    /// The stream was not at the expected version.
    Stream(Stream),
    /// This guard.
    Guard(Guard),
    /// An event of it contradicts what is stored, such as a second agent at a path: a guard is
    /// missing.
    Row,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.clash {
            Clash::Stream(stream) => write!(f, "{stream}: {}", self.detail),
            Clash::Guard(guard) => write!(f, "{guard:?}: {}", self.detail),
            Clash::Row => f.write_str(&self.detail),
        }
    }
}
