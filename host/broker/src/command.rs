//! The commands of the broker, as they are given from outside, and their answers.

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

pub use awaiting::TurnOutcome;
pub use keys::{IssuedKey, KeysOf};
pub use messages::PostOutcome;
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
use crate::driver::DriverError;
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

/// The agent that a path parameter names: by a UUID, a path or a definition.
///
/// A definition is taken only where a command may create the agent.
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
    /// Returns the text by which it was named. A request that names the same agent otherwise is
    /// another request.
    pub(crate) fn named(&self) -> String {
        match self {
            Self::Agent(agent) => agent.to_string(),
            Self::Path(path) => path.clone(),
            Self::Definition(id) => id.to_string(),
        }
    }
}

/// A command that makes an agent from a definition.
#[derive(Debug, Clone)]
pub struct CreateAgent {
    /// The template that it is made from.
    pub template: Template,
    /// An id of the caller's choosing.
    pub id: Option<AgentId>,
    /// Its name. Without: that of its configuration, else the definition's display name, or for an
    /// agent that is made by type a name from the type.
    pub name: Option<String>,
    /// Its path. Without: `/<user>/agent/<definition>`.
    pub path: Option<String>,
    /// The agent below which it is made. It then has no path of the caller's choosing.
    pub below: Option<Below>,
    /// Its configuration beside its address. A name and a prompt in it become its own.
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

/// A command that begins a session.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The agent. A definition stands for the user's agent of it, which is made if there is none.
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
    /// A key that makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
    /// The user who begins it.
    pub user: UserId,
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
    /// The position of its event. A reader of the stream sees from there what follows.
    pub position: u64,
    /// Its kind: the turn or boundary that it waits for.
    pub waits_for: Kind,
    /// The inputs that had waited longest and were dropped for it, because the queue was full.
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
    pub role: Role,
}

/// A session as the API shows it.
#[derive(Debug, Clone)]
pub struct SessionView {
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
    /// The quarantine of the session; none if it is in none.
    pub quarantined: Option<Quarantined>,
    /// Its open operations.
    pub open: Vec<Operation>,
    /// The questions that wait for the user, with the ids to answer under.
    pub asking: Vec<(OperationId, domain::tool::ClientAction)>,
    /// The messages of its thread that were asked for, including those of the open run.
    pub messages: Vec<Message>,
}

/// The reason why a command did not succeed: refused by a rule, or not recorded.
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
            CommitError::Busy => crate::refusals::busy(
                "too much is being recorded at this moment; try again shortly",
            )
            .into(),
            CommitError::KeyReused => crate::refusals::key_reused().into(),
            CommitError::Unstorable { source } => {
                tracing::warn!(
                    error = &*source as &dyn std::error::Error,
                    "what a client wants recorded can never be stored"
                );
                crate::refusals::not_storable().into()
            }
            error => Self::unavailable(error),
        }
    }
}

impl From<DriverError> for Error {
    fn from(failure: DriverError) -> Self {
        match failure {
            DriverError::Refused(refusal) => refusal.into(),
            DriverError::Read(error) => error.into(),
            DriverError::Commit(error) => error.into(),
            failure => Self::unavailable(failure),
        }
    }
}

/// The broker. It is cheap to clone.
#[derive(Clone)]
pub struct Broker {
    pub(crate) core: Arc<Core>,
    /// True if no rule on paths hides anything from the caller.
    pub(crate) is_unruled: bool,
}

/// The key of a session's configuration for a system prompt of its own.
pub(crate) const SYSTEM_PROMPT: &str = "system_prompt";

/// The longest wait of a command for its session's driver, which may be in the middle of a step.
const DRIVER_PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a driver's answer to a command.
async fn answered<T>(
    core: &Core,
    answer: oneshot::Receiver<Result<T, DriverError>>,
) -> Result<T, Error> {
    match tokio::time::timeout(DRIVER_PATIENCE, answer).await {
        Ok(Ok(answer)) => Ok(answer?),
        Ok(Err(_)) if core.stopping.is_cancelled() => Err(Error::ShuttingDown),
        // The driver panicked, and it is unknown whether that was before or after the commit.
        Ok(Err(_)) => Err(crate::refusals::busy(
            "the host failed meanwhile; look again whether it was done before you repeat it",
        )
        .into()),
        Err(_) => Err(crate::refusals::busy(
            "the session is busy; look again whether it was done before you repeat it",
        )
        .into()),
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("catalogue", &self.core.catalogue)
            .finish_non_exhaustive()
    }
}

impl Broker {
    /// Returns the event store, for reading.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.core.store
    }

    /// Returns the catalogue of all that is configured.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.core.catalogue
    }

    /// Watches a counter that changes whenever an API key is revoked. A holder of something that a
    /// key allows for a while checks it again then.
    #[must_use]
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.core.revocations.subscribe()
    }

    /// Returns the host's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// Goes by the wall clock, because an operator says that it is right. One that is ahead is
    /// followed: what is due by it is due, and keys are kept no longer for it. By one that is
    /// behind credentials end, also after a restart.
    pub async fn confirm_clock(&self) -> ClockState {
        let state = self.core.clock.confirm();
        // Before it is answered, so that the next process knows of it.
        self.core.clock.carry().await;
        self.core.keep_keys();
        self.core.timers.notify_one();
        state
    }

    /// Returns figures of the broker: its drivers and how often they were woken.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Returns the feed of ephemeral frames.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.core.live
    }
}
