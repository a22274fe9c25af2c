//! What can be asked of the store's writer, and what may come of it.

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

/// Everything that is stored together or not at all.
///
/// Its guards look at the store as it was before its own events; then the events are appended in order, and every projection sees
/// each event after the ones before it.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// Events, stream by stream.
    pub appends: Vec<Append>,
    /// What must be so.
    pub guards: Vec<Guard>,
    /// Content that its events name by digest. The digests are computed before the commit is queued.
    pub blobs: Vec<Vec<u8>>,
    /// What makes a repetition of the same request harmless.
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

    /// With events for a stream.
    #[must_use]
    pub fn append(mut self, stream: Stream, expected: Expected, events: Vec<NewEvent>) -> Self {
        self.appends.push(Append { stream, expected, events });
        self
    }

    /// With a condition.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guards.push(guard);
        self
    }

    /// With content.
    #[must_use]
    pub fn blob(mut self, bytes: Vec<u8>) -> Self {
        self.blobs.push(bytes);
        self
    }

    /// With an idempotency key.
    #[must_use]
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// With a snapshot of a stream.
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
    /// At which version it must be.
    pub expected: Expected,
    /// The events, in order.
    pub events: Vec<NewEvent>,
}

/// At which version a stream must be for an append to land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// At any.
    Any,
    /// It has no events yet.
    New,
    /// Its last event has this version.
    Version(u64),
}

/// Something that must be so for a commit to land, looked at in the same transaction.
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
    /// No words of a user wait in the session that would join its run ([`domain::queue::Kind::Steer`]) but those that the commit itself claims; a
    /// reminder waits from when it is due. What waits for the run to end keeps nothing from ending.
    NothingWaiting {
        /// The session.
        session: SessionId,
        /// Whose words; none for everybody's.
        user: Option<UserId>,
        /// What time it is.
        now: Timestamp,
        /// What the commit itself claims.
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
        /// How many.
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
        /// How many.
        files: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// At most so many dispatches of this tree of agents, named by its topmost one, have not ended before this commit.
    TreeDispatchesAtMost {
        /// The tree.
        tree: AgentId,
        /// How many.
        max: u64,
    },
    /// All accounts of a run's have what this commit draws on them, beside what others have drawn and the run itself.
    AccountsHave {
        /// The run.
        run: RunId,
        /// Its accounts.
        accounts: Accounts,
        /// What it has drawn itself, with the outcomes that this commit records.
        drawn: Spent,
        /// What this commit draws.
        more: Spent,
    },
    /// The message that began everything has begun at most so many runs before this commit, with all that came of it.
    RunsAtMost {
        /// The accounts of what it began, of which the first is the message's.
        accounts: Accounts,
        /// How many.
        max: u64,
    },
    /// The user has a role with the agent, or with the topmost one above it, that allows this.
    Role {
        /// The agent.
        agent: AgentId,
        /// The user.
        user: UserId,
        /// What it has to allow.
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
        /// How many.
        count: u64,
    },
    /// The session exists and was not deleted, and its agent is not archived.
    SessionThere(SessionId),
    /// No open operation of the session that is to be waited for, directly or through others, waits for the one that is to wait.
    MayWait {
        /// The session that is to wait.
        session: SessionId,
        /// For which.
        for_session: SessionId,
    },
    /// The session's queue is as it was read ([`crate::Store::queue`]): what arrives was decided upon it.
    QueueUnchanged {
        /// The session.
        session: SessionId,
        /// What was read.
        seen: Box<QueueSeen>,
    },
    /// What was dropped from the session's queue, and is to be told of, comes to this notice; none when nothing is.
    Untold {
        /// The session.
        session: SessionId,
        /// The notice.
        notice: Option<OverflowNotice>,
    },
    /// The connector key stands for this user; with none, for nobody.
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
        /// How many.
        max: u64,
    },
    /// The user has brought less than so many bytes that are still there ([`crate::Store::stored_bytes`]), before this commit.
    StoredBelow {
        /// The user.
        user: UserId,
        /// How many.
        bytes: u64,
    },
    /// The user has opened less than so many sessions within some time, before this commit.
    SessionsOpenedBelow {
        /// The user.
        user: UserId,
        /// After this time.
        after: Timestamp,
        /// Up to this time.
        until: Timestamp,
        /// How many.
        max: u64,
    },
    /// The user has no open chat that words to this would go to.
    NoChat {
        /// The user.
        of: UserId,
        /// What the words are addressed to.
        with: ChatWith,
    },
    /// The session exists and was not deleted, and the turn is in its thread or was made in it: no purge takes the turn away.
    SessionShows {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: TurnId,
    },
}

/// The address of words that take the user's open chat with it, or begin one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatWith {
    /// An agent: the latest chat ([`crate::Store::latest_chat`]).
    Agent(AgentId),
    /// A persona: the main session ([`crate::Store::main_session`]).
    Persona(PersonaId),
    /// A turn: the chat that is at it ([`crate::Store::chat_at`]).
    Turn(TurnId),
}

/// What the acceptance of an input rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSeen {
    /// The run that is open.
    pub run: Option<RunId>,
    /// Whether the session holds its agent's slot and waits for its client.
    pub awaits_client: bool,
    /// The inputs of the queue proper ([`domain::queue::Kind::Queued`]), in the order of their acceptance.
    pub queued: Vec<InputId>,
    /// What was dropped and no turn has told of.
    pub overflow: Overflow,
}

/// Under what name a request is remembered, for seven days ([`domain::limits::IDEMPOTENCY_MS`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Who asked.
    pub source: String,
    /// The name that they gave the request.
    pub key: String,
    /// The digest of the request: another request under the same name is refused.
    pub request: Digest,
    /// What to answer when the same request comes again.
    pub reply: Vec<u8>,
    /// The session that it is about, with which it is forgotten; without, that of the commit's first event, or its agent.
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

/// What became of a commit that landed. It is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The position of its first event.
    pub first_position: u64,
    /// The position of its last event; one less than the first when it had none.
    pub last_position: u64,
    /// The version of each of its streams afterwards, each stream once, in the order of its appends.
    pub versions: Vec<(Stream, u64)>,
    /// Whether it accepted inputs, and all of them wait for an open run that takes them in at its end, or after another step, and not now:
    /// whoever drives it looks for them then, and need not be told.
    pub waits_unheard: bool,
}

/// Why a commit did not land. Nothing of it is stored.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Something was not as the commit expected: load again and decide again.
    #[error("conflict: {0}")]
    Conflict(Conflict),
    /// The same request landed before.
    #[error("the same request was committed before")]
    Replayed {
        /// What it was answered.
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
        /// Why.
        #[source]
        source: Source,
    },
    /// Something in it can be stored neither now nor later: an event that is nested too deep, or is too large.
    #[error("this can never be stored")]
    Unstorable {
        /// What of it, and why.
        #[source]
        source: Source,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// What was not as a commit expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// What of the commit did not hold.
    pub clash: Clash,
    /// What was found instead, for people.
    pub detail: String,
}

/// What of a commit did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clash {
    /// The stream was not at the expected version.
    Stream(Stream),
    /// This guard.
    Guard(Guard),
    /// An event of it contradicts what is stored, such as a second agent at a path: a guard is missing.
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
