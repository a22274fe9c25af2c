//! The commands of the broker from outside, and their answers.
//!
//! ## Where things are
//!
//! - the broker that they are given to, their errors, what drivers need too: `shared.rs`
//! - a driver's answers: `command/driver_answer.rs`
//! - accepting messages: `command/messages.rs`
//! - messages to a turn, a session, an agent, a persona or no address: `command/route.rs`
//! - words that a trigger or a connector brings: `command/inbound_message.rs`,
//!   `command/arriving.rs`
//! - a message to all agents that a user talks with: `command/posting.rs`
//! - addresses of such messages: `command/address.rs`
//! - a chat that begins with its first message: `command/beginning.rs`
//! - post and await: `command/awaiting.rs`
//! - waiting messages, listed and withdrawn: `command/queue.rs`
//! - opening of sessions, and their models: `command/opening.rs`, `command/generation.rs`
//! - agents, and the rights to make one: `command/agents.rs`, `command/placing.rs`
//! - users of an agent, archiving: `command/assignments.rs`, `command/archiving.rs`
//! - keys of connectors: `command/connectors.rs`
//! - agents that a user can reach: `command/reach.rs`, `command/paths.rs`
//! - names, pins, clearing and deleting of sessions: `command/labels.rs`
//! - sessions, shown, listed and searched: `command/sessions.rs`, `command/search.rs`
//! - ends of runs and structured sessions: `command/ending.rs`, `command/reason.rs`
//! - work that agents handed to each other: `command/tasks.rs`
//! - replacing the configuration: `command/configuration.rs`
//! - switches to another agent, and returns: `command/switching.rs`, `command/switch_origin.rs`
//! - compaction on request: `command/compacting.rs`
//! - the prompt that an agent's model would get: `command/prompt.rs`
//! - notes, and reading a session into notes on request: `command/memory.rs`
//! - forks and comparisons: `command/trees.rs`
//! - export and import of threads: `command/transcripts.rs`
//! - files that users hand over: `command/files.rs`
//! - answers to questions: `command/respond.rs`
//! - sessions of external agents, and their answers: `command/external.rs`
//! - requests under an idempotency key: `command/once.rs`
//! - limits of one user: `command/quota.rs`
//! - sessions in quarantine, and dead letters: `command/quarantine.rs`,
//!   `command/dead_letters.rs`
//! - readings by the operator, which are recorded: `command/reading.rs`
//! - events as they are followed: `command/feeds.rs`
//! - API keys: `command/keys.rs`
//! - the right to purge: `command/purge.rs`
//! - import of the old system's sessions: `command/import.rs`

mod address;
mod agents;
mod archiving;
mod arriving;
mod assignments;
mod awaiting;
mod beginning;
mod compacting;
mod configuration;
mod connectors;
mod dead_letters;
mod definitions;
mod driver_answer;
mod ending;
mod external;
mod feeds;
mod files;
mod generation;
mod grouped;
mod import;
mod inbound_message;
mod keys;
mod labels;
mod memory;
mod messages;
mod once;
mod opening;
mod own_paths;
mod paths;
mod placing;
mod posting;
mod prompt;
mod purge;
mod quarantine;
mod queue;
mod quota;
mod reach;
mod reading;
mod reason;
mod respond;
mod route;
mod search;
mod session_limits;
mod session_stats;
mod sessions;
mod switch_origin;
mod switching;
mod tasks;
mod transcripts;
mod trees;
mod turn_report;

pub use address::{Address, AddressLevel};
pub use agents::{Setup, Template};
pub use arriving::{Arriving, Isolated};
pub use awaiting::TurnOutcome;
pub use configuration::{RefusedReload, Reload, Reloaded};
pub use connectors::{Coming, KeyBefore};
pub(crate) use definitions::MADE_DEFINITIONS_MAX;
pub use definitions::MakeDefinition;
pub use ending::Cancelled;
pub use external::{AttachExternal, Attached, ExternalPost};
pub use feeds::Viewer;
pub use grouped::{AgentSessions, SessionsByAgent};
pub use import::Imported;
pub use keys::{IssuedKey, KeysOf};
pub use memory::WantedNotes;
pub use messages::PostOutcome;
pub use once::By;
pub use paths::{PathEntry, PathFilter};
pub use placing::Below;
pub use posting::{PostToAll, PostedTo};
pub use prompt::{PromptPart, PromptTool, ShownPrompt};
pub use purge::{Gone, PurgeOf};
pub use queue::{InputView, QueueSaid, WaitingInputs};
pub use reading::Reading;
pub use route::{Meant, PostRouted, Routed, RoutedReceipt};
pub use session_stats::{SessionNumbers, WindowFill};
pub use switching::{Switch, Switched};
pub use tasks::{TaskList, TaskQuery};
pub use transcripts::{ImportSession, ImportedSession, TRANSCRIPT_BYTES_MAX};
pub use trees::{DIFF_TURNS_MAX, Fork, Other};
pub use turn_report::{CallReport, TurnFailure, TurnReport};

use crate::prompting::{GENERATION, SYSTEM_PROMPT};
use crate::quarantine::Quarantined;
use crate::shared::{
    Access, Agents, Broker, Configuration, Connectors, DeadLetters, Definitions, Error,
    ExternalAgents, Feeds, Files, Imports, Keys, Memory, Messages, Models, Paths, Quarantines,
    Queue, Request, Requests, Runs, Sessions, Switches, Target, Tasks, Transcripts, Whom,
};
use domain::delegate::Priority;
use domain::event::Recorded;
use domain::id::{AgentId, ConversationId, InputId, OperationId, RunId, SessionId};
use domain::message::{Message, Part};
use domain::operation::Operation;
use domain::path::AgentConfig;
use domain::queue::{QueueOverride, WaitKind};
use domain::role::AgentRole;
use domain::session::{ActiveSession, PendingAction};
use domain::user::UserId;
use serde_json::Value;
use store::{AgentRow, SessionRow};

/// A command that makes an agent from a definition.
#[derive(Debug, Clone)]
pub struct CreateAgent {
    /// The template that it is made from.
    pub template: Template,
    /// An id of the caller's choosing.
    pub id: Option<AgentId>,
    /// Its name. By default that of its configuration, or the definition's display name, or for an
    /// agent that is made by type a name derived from the type.
    pub name: Option<String>,
    /// Its path. Without: `/<user>/agent/<definition>`.
    pub path: Option<String>,
    /// The agent below which it is made. The host then chooses its path.
    pub below: Option<Below>,
    /// Its configuration in addition to its address. A name and a prompt in it become its own.
    pub config: AgentConfig,
    /// Its owner.
    pub user: UserId,
    /// True if the user asks as the operator, who makes the host's own agents.
    pub as_operator: bool,
    /// A key that makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
}

impl CreateAgent {
    /// Returns the command for a user's agent without further settings.
    #[must_use]
    pub fn of(template: Template, user: UserId) -> Self {
        let config = AgentConfig::default();
        Self {
            template,
            id: None,
            name: None,
            path: None,
            below: None,
            config,
            user,
            as_operator: false,
            idempotency_key: None,
        }
    }
}

/// Ids that a user chooses for a new session; the host mints those that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionIds {
    /// The id of the session, which no session has had yet.
    pub session: Option<SessionId>,
    /// The conversation that the session joins or begins. It belongs to its user alone and gives
    /// access to nothing: clients use it to group sessions.
    pub conversation: Option<ConversationId>,
}

/// A command that begins a session.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The agent. A definition means the user's agent of it, which is made if it does not exist.
    pub target: Target,
    /// The type: `chat`, or a structured type that the agent leads. Without: the agent's first
    /// type, or `chat`.
    pub session_type: Option<String>,
    /// A label.
    pub name: Option<String>,
    /// The model that its turns use.
    pub model: Option<String>,
    /// The configuration that it is opened with, such as a lesson: an object.
    pub config: Option<serde_json::Map<String, Value>>,
    /// Seconds until a structured session expires, unless its policy has a shorter time.
    pub time_limit_s: Option<u32>,
    /// Ids of the user's choosing.
    pub ids: SessionIds,
    /// A key that makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
    /// The user who begins it.
    pub user: UserId,
}

impl NewSession {
    /// Returns the command that begins a session of the agent's first type, with no further
    /// options.
    #[must_use]
    pub fn of(target: Target, user: UserId) -> Self {
        Self {
            target,
            session_type: None,
            name: None,
            model: None,
            config: None,
            time_limit_s: None,
            ids: SessionIds::default(),
            idempotency_key: None,
            user,
        }
    }
}

/// A command that posts a message in a session.
#[derive(Debug, Clone)]
pub struct PostMessage {
    /// The agent.
    pub target: Target,
    /// The session.
    pub session: SessionId,
    /// The content of the message.
    pub content: Vec<Part>,
    /// The model that this turn uses.
    pub model: Option<String>,
    /// The treatment of the message while the agent is busy. Without: as the session and the
    /// operator have it.
    pub queue: QueueOverride,
    /// Its urgency among the inputs that wait in its session. Without: normal.
    pub priority: Option<Priority>,
    /// The user who posts it.
    pub user: UserId,
    /// A key that makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
}

/// A command that hands over a file.
#[derive(Debug, Clone)]
pub struct UploadFile {
    /// The agent.
    pub target: Target,
    /// The session.
    pub session: SessionId,
    /// The name of the file.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its bytes.
    pub content: Vec<u8>,
    /// The user who hands it over.
    pub user: UserId,
}

/// A command that answers a client action.
#[derive(Debug, Clone)]
pub struct Respond {
    /// The agent.
    pub target: Target,
    /// The operation that asked, as `client.action` named it.
    pub call: OperationId,
    /// The session in which it must have been asked; none for any.
    pub session: Option<SessionId>,
    /// The answer.
    pub response: Value,
    /// The user who answers.
    pub user: UserId,
    /// A key that makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
}

/// The receipt for an input that was accepted and is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputReceipt {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// The position of its event. A reader of the stream that starts there sees all later events.
    pub position: u64,
    /// Its kind: the turn or boundary that it waits for.
    pub waits_for: WaitKind,
    /// The longest waiting inputs, which were dropped for it because the queue was full.
    pub dropped: Vec<InputId>,
    /// True if this repeats the answer to an earlier request with the same key.
    pub replayed: bool,
}

/// An agent as the API shows it.
#[derive(Debug, Clone)]
pub struct AgentView {
    /// The stored row.
    pub row: AgentRow,
    /// The display name of its definition; none when that is no longer configured.
    pub definition_name: Option<String>,
    /// The tools that it may use.
    pub tools: Vec<String>,
    /// The session types that it leads.
    pub session_types: Vec<String>,
    /// The role of the user who asks.
    pub role: AgentRole,
}

/// A session as the API shows it.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// The position of the last event that was stored before the session was read.
    pub position: u64,
    /// The stored row.
    pub row: SessionRow,
    /// Its activity, if it holds its agent's slot.
    pub active: Option<ActiveSession>,
    /// The configuration that it was opened with.
    pub config: Option<Value>,
    /// The run that is open.
    pub run: Option<RunId>,
    /// True if that run compacts the thread.
    pub compacts: bool,
    /// The inputs that the open run has claimed.
    pub claimed: Vec<InputId>,
    /// The quarantine of the session; none if it is not in quarantine.
    pub quarantined: Option<Quarantined>,
    /// Its open operations.
    pub open: Vec<Operation>,
    /// The questions that wait for the user, in the order in which they were asked.
    pub asking: Vec<PendingAction>,
    /// The first 200 items that were asked and answered in it.
    pub items: Vec<Recorded>,
    /// The messages of its thread that were asked for, including those of the open run.
    pub messages: Vec<Message>,
}
