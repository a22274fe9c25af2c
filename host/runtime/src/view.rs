//! What a step may read, as the broker provides it.

use domain::basis::Peer;
use domain::digest::Digest;
use domain::message::{Message, MessageId};
use domain::step::Memo;
use domain::tool::ToolDefinition;
use std::sync::Arc;

/// The answers that are there before the step begins.
#[derive(Debug, Clone)]
pub struct ViewStatic {
    /// The agent's id.
    pub agent_id: String,
    /// The agent's path.
    pub path: String,
    /// The session's type.
    pub session_type: String,
    /// The definition's prompt and settings, a JSON object as text.
    pub settings: String,
    /// The agent's preferences, a JSON object as text.
    pub preferences: String,
    /// The session's state, JSON as text; `null` at first.
    pub session_state: String,
    /// The last message of the thread.
    pub head: Option<MessageId>,
    /// The tools that the agent may use, in the order in which models see them.
    pub tools: Arc<Vec<ToolDefinition>>,
    /// The agents that it may dispatch to.
    pub peers: Vec<Peer>,
    /// What the turn's last step left.
    pub memo: Option<Memo>,
}

/// Something that belongs to the view could not be read. Ends the call as faulted.
#[derive(Debug, thiserror::Error)]
#[error("the view could not be read")]
pub struct ViewError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// What a step may read, frozen in its basis: the same question has the same answer whenever the step is run.
#[async_trait::async_trait]
pub trait View: Send + Sync {
    /// The answers that are there before the step begins.
    fn basis_static(&self) -> &ViewStatic;

    /// One message of the thread; none when there is no such id.
    ///
    /// # Errors
    /// The store could not be read.
    async fn message(&self, id: MessageId) -> Result<Option<Message>, ViewError>;

    /// Up to `length` bytes of a blob from `offset` on; none when the thread does not mention the blob or it was erased.
    ///
    /// # Errors
    /// The store could not be read.
    async fn read_blob(&self, digest: Digest, offset: u64, length: u32) -> Result<Option<Vec<u8>>, ViewError>;
}

/// Who is told how a running tool call is getting on.
pub trait Notes: Send + Sync {
    /// Takes one note, 1 KiB at most. Must not block.
    fn note(&self, message: &str);
}
