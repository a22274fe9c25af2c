//! What can be asked of the broker from outside, and what it answers.

mod agents;
mod assignments;
mod awaiting;
mod beginning;
mod compacting;
mod connectors;
mod dead_letters;
mod files;
mod import;
mod keys;
mod labels;
mod messages;
mod once;
mod opening;
mod paths;
mod placing;
mod purge;
mod quarantine;
mod queue;
mod quota;
mod reach;
mod reading;
mod respond;
mod route;
mod search;
mod sessions;
mod transcripts;
mod trees;

pub use awaiting::Became;
pub use keys::{IssuedKey, KeysOf};
pub use messages::Said;
pub use once::By;
pub use paths::{PathEntry, PathFilter};
pub use placing::Below;
pub(crate) use purge::agent_of;
pub use purge::{Gone, PurgeOf};
pub use queue::{InputView, QueueSaid, WaitingInputs};
pub use quota::UserLimits;
pub use reading::Reading;
pub use sessions::Cancelled;
pub use transcripts::{ImportSession, ImportedSession, TRANSCRIPT_BYTES_MAX};
pub use trees::{DIFF_TURNS_MAX, Fork, Other};

use crate::catalogue::Catalogue;
use crate::clock::{Clock, ClockState};
pub(crate) use crate::command::agents::Whom;
pub use crate::command::agents::{Setup, Template};
pub(crate) use crate::command::files::{room_for, uploaded};
pub use crate::command::import::Imported;
pub(crate) use crate::command::once::{AnswerAt, Request};
pub(crate) use crate::command::quota::{may_store, passed_limit};
pub use crate::command::route::{Address, Meant, PostRouted, Routed, RoutedReceipt};
pub(crate) use crate::command::sessions::allowed;
use crate::core::{Core, Stats};
use crate::driver::Trouble;
use crate::live::Live;
use crate::quarantine::Quarantined;
use domain::agent::role::Role;
use domain::agent::session::ActiveSession;
use domain::definition::DefinitionId;
use domain::delegate::Priority;
use domain::id::{AgentId, InputId, OperationId, RunId, SessionId};
use domain::message::{Message, Part};
use domain::operation::Operation;
use domain::path::AgentConfig;
use domain::queue::{Kind, QueueOverride};
use domain::refusal::Refusal;
use domain::user::UserId;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use store::{AgentRow, CommitError, ReadError, SessionRow, Store};
use tokio::sync::{oneshot, watch};

/// Whom an agent path parameter names: a UUID, a path, or (where a command may create) a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An agent's id.
    Agent(AgentId),
    /// An agent's path.
    Path(String),
    /// A definition's id: the caller's agent of that definition.
    Definition(DefinitionId),
}

impl Target {
    /// As it was named: a request that names it otherwise is another one.
    pub(crate) fn named(&self) -> String {
        match self {
            Self::Agent(agent) => agent.to_string(),
            Self::Path(path) => path.clone(),
            Self::Definition(id) => id.to_string(),
        }
    }
}

/// Makes an agent from a definition.
#[derive(Debug, Clone)]
pub struct CreateAgent {
    /// What it is made from.
    pub template: Template,
    /// An id of the caller's choosing.
    pub id: Option<AgentId>,
    /// Its name; the definition's display name without.
    pub name: Option<String>,
    /// Its path; `/<user>/agent/<definition>` without.
    pub path: Option<String>,
    /// Below which agent it is made; then it has no path of the caller's choosing.
    pub below: Option<Below>,
    /// What is kept about it beside its address. A name and a prompt in it become its own.
    pub config: AgentConfig,
    /// Whose it is.
    pub user: UserId,
    /// Whether they ask as the operator, who makes the host's own agents.
    pub as_operator: bool,
    /// Makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
}

impl CreateAgent {
    /// A user's agent of which nothing else is said.
    #[must_use]
    pub fn of(template: Template, user: UserId) -> Self {
        let config = AgentConfig::default();
        Self { template, id: None, name: None, path: None, below: None, config, user, as_operator: false, idempotency_key: None }
    }
}

/// Begins a session.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// With whom. A definition is got or created.
    pub target: Target,
    /// `chat`, or a structured type that the agent leads. Without: the agent's first type, or `chat`.
    pub session_type: Option<String>,
    /// A label.
    pub name: Option<String>,
    /// The model that its turns use.
    pub model: Option<String>,
    /// What it is opened with, such as a lesson: an object.
    pub config: Option<serde_json::Map<String, Value>>,
    /// For a structured one: seconds until it expires, where its policy has no shorter time.
    pub time_limit_s: Option<u32>,
    /// Makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
    /// Who begins it.
    pub user: UserId,
}

/// Says something in a session.
#[derive(Debug, Clone)]
pub struct PostMessage {
    /// The agent.
    pub target: Target,
    /// The session.
    pub session: SessionId,
    /// What is said.
    pub content: Vec<Part>,
    /// The model that this turn uses.
    pub model: Option<String>,
    /// What is to happen to it while the agent is busy; what it leaves out is as the session and the operator have it.
    pub queue: QueueOverride,
    /// How urgent it is among what waits in its session; normal without.
    pub priority: Option<Priority>,
    /// Who says it.
    pub user: UserId,
    /// Makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
}

/// Hands over a file.
#[derive(Debug, Clone)]
pub struct UploadFile {
    /// The agent.
    pub target: Target,
    /// The session.
    pub session: SessionId,
    /// What the file is called.
    pub name: String,
    /// What it is.
    pub media_type: String,
    /// Its bytes.
    pub content: Vec<u8>,
    /// Who hands it over.
    pub user: UserId,
}

/// Answers a client action.
#[derive(Debug, Clone)]
pub struct Respond {
    /// The agent.
    pub target: Target,
    /// The operation that asked, as `client.action` named it.
    pub call: OperationId,
    /// The session that it is asked in, if that is to be so.
    pub session: Option<SessionId>,
    /// The answer.
    pub response: Value,
    /// Who answers.
    pub user: UserId,
    /// Makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
}

/// An input was accepted and is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputReceipt {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// The position of its event: read the stream from here to see what follows.
    pub position: u64,
    /// What it waits for.
    pub waits_for: Kind,
    /// Inputs that had waited longest and were dropped for it, because the queue was full.
    pub dropped: Vec<InputId>,
    /// Whether an earlier request with the same key was answered again.
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
    /// What the user who asks is to it.
    pub role: Role,
}

/// A session as the API shows it.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// The stored row.
    pub row: SessionRow,
    /// What it is doing, if it holds its agent's slot.
    pub active: Option<ActiveSession>,
    /// What it was opened with.
    pub config: Option<Value>,
    /// The run that is open.
    pub run: Option<RunId>,
    /// Whether that compacts the thread.
    pub compacts: bool,
    /// The reason why nothing is done for it; none of a session that is not in quarantine.
    pub quarantined: Option<Quarantined>,
    /// Its open operations.
    pub open: Vec<Operation>,
    /// The questions that wait for the user, with the ids to answer under.
    pub asking: Vec<(OperationId, domain::tool::ClientAction)>,
    /// The messages of its thread that were asked for, the open run's included.
    pub messages: Vec<Message>,
}

/// Why a command did not succeed. Two layers: refused by a rule, or not recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rule refused it; nothing has changed.
    #[error("refused")]
    Refused(#[from] Refusal),
    /// The disk is full; nothing has changed. Try again later.
    #[error("the disk is full: nothing was recorded")]
    DiskFull,
    /// The store cannot record just now; nothing has changed.
    #[error("the event store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The host is shutting down.
    #[error("the host is shutting down")]
    ShuttingDown,
}

impl Error {
    pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::unavailable(error)
    }
}

impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Full => Self::DiskFull,
            CommitError::Closed => Self::ShuttingDown,
            CommitError::Busy => crate::refusals::busy("too much is being recorded at this moment; try again shortly").into(),
            CommitError::KeyReused => crate::refusals::key_reused().into(),
            CommitError::Unstorable { source } => {
                tracing::warn!(error = &*source as &dyn std::error::Error, "what a client wants recorded can never be stored");
                crate::refusals::not_storable().into()
            }
            error => Self::unavailable(error),
        }
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(refusal) => refusal.into(),
            Trouble::Read(error) => error.into(),
            Trouble::Commit(error) => error.into(),
            trouble => Self::unavailable(trouble),
        }
    }
}

/// The broker. Cheap to clone.
#[derive(Clone)]
pub struct Broker {
    pub(crate) core: Arc<Core>,
    /// Whether no rule on paths hides anything from whoever asks.
    pub(crate) is_unruled: bool,
}

/// The key of what a session is opened with that is a system prompt of its own.
pub(crate) const SYSTEM_PROMPT: &str = "system_prompt";

/// How long a command waits for its session's driver, which may be in the middle of a step.
const DRIVER_PATIENCE: Duration = Duration::from_secs(30);

/// Waits for what a driver says to a command.
async fn answered<T>(core: &Core, answer: oneshot::Receiver<Result<T, Trouble>>) -> Result<T, Error> {
    match tokio::time::timeout(DRIVER_PATIENCE, answer).await {
        Ok(Ok(answer)) => Ok(answer?),
        Ok(Err(_)) if core.stopping.is_cancelled() => Err(Error::ShuttingDown),
        // It panicked, and somewhere around the commit.
        Ok(Err(_)) => Err(crate::refusals::busy("the host failed meanwhile; look again whether it was done before you repeat it").into()),
        Err(_) => Err(crate::refusals::busy("the session is busy; look again whether it was done before you repeat it").into()),
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").field("catalogue", &self.core.catalogue).finish_non_exhaustive()
    }
}

impl Broker {
    /// The event store, for reading.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.core.store
    }

    /// What is configured.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.core.catalogue
    }

    /// Changes whenever an API key was revoked: whoever lets a key do something that lasts looks again then.
    #[must_use]
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.core.revocations.subscribe()
    }

    /// What time it is, and what the host goes by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// Follows the wall clock ahead, because an operator says that it is right: what is due by it is due, and keys are kept no longer for it.
    #[must_use]
    pub fn confirm_clock(&self) -> ClockState {
        let state = self.core.clock.confirm();
        self.core.keep_keys();
        self.core.timers.notify_one();
        state
    }

    /// How many drivers there are, and what they were woken for.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// The ephemeral feed.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.core.live
    }
}
