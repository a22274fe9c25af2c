//! The view that a step reads: the basis, and the thread from memory and from the store.
//!
//! The run's own messages are in memory, older ones in the store.

use async_trait::async_trait;
use domain::digest::Digest;
use domain::file::UNKNOWN_MEDIA_TYPE;
use domain::id::{SessionId, TurnId};
use domain::message::{Message, MessageId, Part};
use runtime::{View, ViewError, ViewStatic};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use store::{ReadError, Store};

/// A frozen view of a run.
pub(crate) struct StepView {
    pub(crate) fixed: ViewStatic,
    pub(crate) store: Store,
    pub(crate) base: Option<TurnId>,
    pub(crate) base_message: MessageId,
    /// The run's messages, with those that this step hears.
    pub(crate) own: Vec<Arc<Message>>,
    /// The blobs that results outside the thread have shown the agent.
    pub(crate) shown: BTreeSet<Digest>,
    /// The blobs that are not stored yet.
    pub(crate) fresh: Vec<(Digest, Vec<u8>)>,
    /// The session, and the number of its files, counted from the first, that the step may read.
    pub(crate) files: (SessionId, u64),
    /// The blob that was read last. A large one is read in many chunks.
    pub(crate) last_read: LastRead,
}

/// The blob that was read last, with its digest; none at first.
#[derive(Default)]
pub(crate) struct LastRead(Mutex<Option<(Digest, Arc<Vec<u8>>)>>);

impl LastRead {
    fn get(&self, digest: Digest) -> Option<Arc<Vec<u8>>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref()
            .filter(|(of, _)| *of == digest)
            .map(|(_, bytes)| bytes.clone())
    }

    fn put(&self, digest: Digest, bytes: Arc<Vec<u8>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((digest, bytes));
    }
}

#[async_trait]
impl View for StepView {
    fn basis_static(&self) -> &ViewStatic {
        &self.fixed
    }

    async fn message(&self, id: MessageId) -> Result<Option<Message>, ViewError> {
        if id == 0 || id > self.fixed.head.unwrap_or(0) {
            return Ok(None);
        }
        if id > self.base_message {
            let index = usize::try_from(id - self.base_message - 1).unwrap_or(usize::MAX);
            return Ok(self.own.get(index).map(|message| Message::clone(message)));
        }
        self.store.message(self.base, id).await.map_err(unreadable)
    }

    async fn read_blob(
        &self,
        digest: Digest,
        offset: u64,
        length: u32,
    ) -> Result<Option<Vec<u8>>, ViewError> {
        if !self.mentions(digest).await.map_err(unreadable)? {
            return Ok(None);
        }
        let Some(bytes) = self.blob(digest).await.map_err(unreadable)? else {
            return Ok(None);
        };
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let to = from.saturating_add(length as usize).min(bytes.len());
        Ok(Some(bytes.get(from..to).unwrap_or_default().to_vec()))
    }
}

fn unreadable(error: ReadError) -> ViewError {
    ViewError(Box::new(error))
}

impl StepView {
    /// Returns a blob, whole.
    async fn blob(&self, digest: Digest) -> Result<Option<Arc<Vec<u8>>>, ReadError> {
        if let Some(read) = self.last_read.get(digest) {
            return Ok(Some(read));
        }
        let bytes = match self.fresh.iter().find(|(fresh, _)| *fresh == digest) {
            Some((_, bytes)) => Some(bytes.clone()),
            None => self.store.blob(digest).await?,
        };
        let bytes = bytes.map(Arc::new);
        if let Some(bytes) = &bytes {
            self.last_read.put(digest, bytes.clone());
        }
        Ok(bytes)
    }

    /// Returns whether the step may read a blob.
    ///
    /// It may if the thread or a result has shown the blob, or if the session's users handed it
    /// over. A guest cannot read a blob that its conversation never showed it, whatever digests it
    /// guesses.
    async fn mentions(&self, digest: Digest) -> Result<bool, ReadError> {
        if self.shown.contains(&digest) || self.own_part(digest).is_some() {
            return Ok(true);
        }
        let (session, count) = self.files;
        if count > 0 && self.store.is_file(session, digest, count).await? {
            return Ok(true);
        }
        match self.base {
            Some(base) => self.store.mentions(base, digest).await,
            None => Ok(false),
        }
    }

    /// Returns the part that passes a blob on to another agent. None for a blob that the step may
    /// not read, and for one that is no longer stored.
    ///
    /// Its media type is that under which the step knows it; results outside the thread leave none.
    pub(crate) async fn part(&self, digest: Digest) -> Result<Option<Part>, ReadError> {
        if !self.mentions(digest).await? {
            return Ok(None);
        }
        if let Some(part) = self.own_part(digest) {
            return Ok(Some(part.clone()));
        }
        if self.files.1 > 0 {
            let files = self.store.files(self.files.0).await?;
            if let Some(row) = files.into_iter().find(|row| row.file.digest == digest) {
                return Ok(Some(Part::Blob {
                    digest,
                    media_type: row.file.media_type,
                    size: row.file.bytes,
                }));
            }
        }
        if let Some(base) = self.base
            && let Some(part) = thread_part(&self.store, base, digest).await?
        {
            return Ok(Some(part));
        }
        Ok(self.blob(digest).await?.map(|bytes| Part::Blob {
            digest,
            media_type: UNKNOWN_MEDIA_TYPE.to_owned(),
            size: bytes.len() as u64,
        }))
    }

    /// Returns the part of the run's own messages that shows a blob.
    fn own_part(&self, digest: Digest) -> Option<&Part> {
        self.own
            .iter()
            .flat_map(|message| &message.parts)
            .find(|part| shows(part, digest))
    }
}

/// Returns the part of the thread that ends in `head` that shows a blob.
pub(crate) async fn thread_part(
    store: &Store,
    head: TurnId,
    digest: Digest,
) -> Result<Option<Part>, ReadError> {
    let Some(turn) = store.shown_in(head, digest).await? else {
        return Ok(None);
    };
    let messages = store
        .messages(Some(turn.id), turn.first_message, turn.last_message)
        .await?;
    Ok(messages
        .into_iter()
        .flat_map(|message| message.parts)
        .find(|part| shows(part, digest)))
}

/// Returns whether a part shows a blob.
fn shows(part: &Part, digest: Digest) -> bool {
    matches!(part, Part::Blob { digest: there, .. } if *there == digest)
}
