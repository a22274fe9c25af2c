//! The inputs of steps: a basis, and the view of a thread or of nothing.

use async_trait::async_trait;
use domain::basis::{Basis, Documents, LimitsLeft};
use domain::digest::Digest;
use domain::id::TurnId;
use domain::message::{Message, MessageId};
use domain::time::Timestamp;
use runtime::{View, ViewError, ViewStatic};
use std::sync::Arc;
use store::{EMPTY_STATE, Store};

/// The time of everything that happens.
pub(crate) const NOON: Timestamp = Timestamp(1_700_000_000_000);

/// A basis that names nothing.
pub(crate) fn basis() -> Basis {
    let nothing = Digest::of(EMPTY_STATE);
    Basis {
        files: 0,
        documents: Documents::all_of(nothing, nothing),
        base: None,
        head: 1,
        session_state: nothing,
        now: NOON,
        left: LimitsLeft {
            steps: 1,
            tool_calls: 1,
            tokens: 1,
        },
        seed: nothing,
    }
}

fn fixed(head: Option<MessageId>) -> ViewStatic {
    ViewStatic {
        shared_preferences: "{}".to_owned(),
        history: "[]".to_owned(),
        session_config: "{}".to_owned(),
        user: "local".to_owned(),
        agent_id: "agent".to_owned(),
        path: "/local/agent".to_owned(),
        session_type: "chat".to_owned(),
        settings: r#"{"prompt":"Be brief.","settings":{}}"#.to_owned(),
        preferences: "{}".to_owned(),
        session_state: "null".to_owned(),
        head,
        tools: Arc::default(),
        peers: Vec::new(),
        memo: None,
    }
}

/// The view of a thread in a store, and of messages after it that are not stored yet.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) fixed: ViewStatic,
    pub(crate) store: Store,
    /// The last turn that is stored.
    pub(crate) head: Option<TurnId>,
    /// The last message of that turn.
    pub(crate) head_message: MessageId,
    /// The messages after it.
    pub(crate) messages: Vec<Message>,
}

impl Thread {
    /// The thread that ends in `head`, with `messages` messages.
    pub(crate) fn new(store: Store, head: Option<TurnId>, messages: MessageId) -> Self {
        Self {
            fixed: fixed(Some(messages)),
            store,
            head,
            head_message: messages,
            messages: Vec::new(),
        }
    }
}

#[async_trait]
impl View for Thread {
    fn basis_static(&self) -> &ViewStatic {
        &self.fixed
    }

    async fn message(&self, id: MessageId) -> Result<Option<Message>, ViewError> {
        if id == 0 || id > self.fixed.head.unwrap_or(0) {
            return Ok(None);
        }
        if id > self.head_message {
            let index = usize::try_from(id - self.head_message - 1).unwrap_or(usize::MAX);
            return Ok(self.messages.get(index).cloned());
        }
        self.store
            .message(self.head, id)
            .await
            .map_err(|error| ViewError(error.into()))
    }

    async fn read_blob(
        &self,
        _digest: Digest,
        _offset: u64,
        _length: u32,
    ) -> Result<Option<Vec<u8>>, ViewError> {
        Ok(None)
    }
}

/// The view of an empty thread.
#[derive(Debug)]
pub(crate) struct Nothing(ViewStatic);

impl Nothing {
    pub(crate) fn new() -> Self {
        Self(fixed(None))
    }
}

#[async_trait]
impl View for Nothing {
    fn basis_static(&self) -> &ViewStatic {
        &self.0
    }

    async fn message(&self, _id: MessageId) -> Result<Option<Message>, ViewError> {
        Ok(None)
    }

    async fn read_blob(
        &self,
        _digest: Digest,
        _offset: u64,
        _length: u32,
    ) -> Result<Option<Vec<u8>>, ViewError> {
        Ok(None)
    }
}
