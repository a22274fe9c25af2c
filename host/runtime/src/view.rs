//! The interfaces of a call, as the broker provides them: what a step may read, and what a tool may
//! report and keep.

use domain::basis::Peer;
use domain::bucket::BucketSize;
use domain::digest::Digest;
use domain::grant::BucketGrant;
use domain::message::{Message, MessageId};
use domain::step::Memo;
use domain::tool::ToolDefinition;
use std::any::Any;
use std::sync::Arc;

/// The answers that are there before the step begins.
#[derive(Debug, Clone)]
pub struct ViewStatic {
    /// The agent's id.
    pub agent_id: String,
    /// The agent's path.
    pub path: String,
    /// The user whom the turn is for.
    pub user: String,
    /// The session's type.
    pub session_type: String,
    /// The configuration that the session was opened with, a JSON object as text.
    pub session_config: String,
    /// The agent's structured sessions that have ended, as far as the user would see them, a JSON
    /// array as text.
    pub history: String,
    /// The definition's prompt and settings, a JSON object as text.
    pub settings: String,
    /// The agent's preferences, a JSON object as text.
    pub preferences: String,
    /// The preferences that hold for all its users alone, a JSON object as text.
    pub shared_preferences: String,
    /// The session's state, JSON as text; `null` at first.
    pub session_state: String,
    /// The last message of the thread.
    pub head: Option<MessageId>,
    /// The tools that the agent may use, in the order in which models see them.
    pub tools: Arc<Vec<ToolDefinition>>,
    /// The agents that it may dispatch to.
    pub peers: Vec<Peer>,
    /// The memo that the turn's last step left.
    pub memo: Option<Memo>,
}

/// Something that belongs to the view could not be read. Ends the call as faulted.
#[derive(Debug, thiserror::Error)]
#[error("the view could not be read")]
pub struct ViewError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// The data that a step may read, frozen in its basis. The same question has the same answer
/// whenever the step is run.
#[async_trait::async_trait]
pub trait View: Send + Sync {
    /// The answers that are there before the step begins.
    fn basis_static(&self) -> &ViewStatic;

    /// One message of the thread; none when there is no such id.
    ///
    /// # Errors
    /// The store could not be read.
    async fn message(&self, id: MessageId) -> Result<Option<Message>, ViewError>;

    /// Up to `length` bytes of a blob from `offset` on; none when the thread does not mention the
    /// blob and it is no file of the session, or it was erased.
    ///
    /// # Errors
    /// The store could not be read.
    async fn read_blob(
        &self,
        digest: Digest,
        offset: u64,
        length: u32,
    ) -> Result<Option<Vec<u8>>, ViewError>;
}

/// The receiver of a running tool call's notes.
pub trait Notes: Send + Sync {
    /// Hears that the call was let in: from now on it is at work. Must not block.
    fn begun(&self) {}

    /// Takes one note, 1 KiB at most. Must not block.
    fn note(&self, message: &str);
}

/// A bucket could not be read. Ends the call as faulted.
#[derive(Debug, thiserror::Error)]
#[error("a bucket could not be read")]
pub struct BucketError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Exclusive write access to a bucket. It ends when the last clone is dropped.
#[derive(Clone)]
pub struct Hold {
    _guard: Arc<dyn Any + Send + Sync>,
}

impl Hold {
    /// Lasts as long as `guard` is not dropped.
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self {
            _guard: Arc::new(guard),
        }
    }
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hold").finish_non_exhaustive()
    }
}

/// The content of the buckets of a call's component, for the user, the agent and the session of the
/// call. Every read sees all that is committed.
#[async_trait::async_trait]
pub trait Buckets: Send + Sync {
    /// Waits until the bucket is free, and holds it. There is no time limit: a caller that waits no
    /// longer drops the future.
    async fn hold(&self, bucket: &BucketGrant) -> Hold;

    /// The value of a key; none when there is no such key.
    ///
    /// # Errors
    /// The store could not be read.
    async fn value(&self, bucket: &BucketGrant, key: &str) -> Result<Option<Vec<u8>>, BucketError>;

    /// The values of some keys in their order, none for a key that there is not. None when they
    /// have more than `bytes_max` bytes together.
    ///
    /// # Errors
    /// The store could not be read.
    async fn values(
        &self,
        bucket: &BucketGrant,
        keys: Vec<String>,
        bytes_max: usize,
    ) -> Result<Option<Vec<Option<Vec<u8>>>>, BucketError> {
        let mut values = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in &keys {
            let value = self.value(bucket, key).await?;
            bytes += value.as_ref().map_or(0, Vec::len);
            if bytes > bytes_max {
                return Ok(None);
            }
            values.push(value);
        }
        Ok(Some(values))
    }

    /// The size in bytes of a key's value; none when there is no such key.
    ///
    /// # Errors
    /// The store could not be read.
    async fn value_bytes(
        &self,
        bucket: &BucketGrant,
        key: &str,
    ) -> Result<Option<u64>, BucketError>;

    /// The first keys after a key, at most `max`, in the order of their bytes.
    ///
    /// # Errors
    /// The store could not be read.
    async fn keys(
        &self,
        bucket: &BucketGrant,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, BucketError>;

    /// The size of the bucket's content.
    ///
    /// # Errors
    /// The store could not be read.
    async fn size(&self, bucket: &BucketGrant) -> Result<BucketSize, BucketError>;
}

/// A sink for the progress notes of a call, which nobody reads.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unheard;

impl Notes for Unheard {
    fn note(&self, _message: &str) {}
}

/// Buckets in which nothing is, for a call whose writes are not kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyBuckets;

#[async_trait::async_trait]
impl Buckets for EmptyBuckets {
    async fn hold(&self, _bucket: &BucketGrant) -> Hold {
        Hold::new(())
    }

    async fn value(
        &self,
        _bucket: &BucketGrant,
        _key: &str,
    ) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(None)
    }

    async fn value_bytes(
        &self,
        _bucket: &BucketGrant,
        _key: &str,
    ) -> Result<Option<u64>, BucketError> {
        Ok(None)
    }

    async fn keys(
        &self,
        _bucket: &BucketGrant,
        _after: Option<&str>,
        _max: usize,
    ) -> Result<Vec<String>, BucketError> {
        Ok(Vec::new())
    }

    async fn size(&self, _bucket: &BucketGrant) -> Result<BucketSize, BucketError> {
        Ok(BucketSize::default())
    }
}
