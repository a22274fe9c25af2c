//! Limits of what a plugin returns, by its kind, with their units.

/// Limits of an agent's step.
pub mod step {
    /// Bytes of an operation's key.
    pub const KEY_BYTES_MAX: usize = 128;
    /// Bytes of a memo.
    pub const MEMO_BYTES_MAX: usize = 64 << 10;
    /// Bytes of a session's state.
    pub const SESSION_STATE_BYTES_MAX: usize = 256 << 10;
    /// Effects of one step.
    pub const EFFECTS_MAX: usize = 64;
    /// Operations that are open at the same time, unless the operator says otherwise.
    pub const OPEN_OPERATIONS: u32 = 64;
}

/// Limits of a component that offers tools.
pub mod tool {
    /// Tools of one component.
    pub const TOOLS_MAX: usize = 128;
    /// Bytes of a key in a bucket.
    pub const KEY_BYTES_MAX: usize = 256;
    /// Bytes of a value in a bucket: 64 KiB.
    pub const VALUE_BYTES_MAX: usize = 64 << 10;
    /// Bytes of the URL of a request.
    pub const URL_BYTES_MAX: usize = 8 << 10;
}

/// Limits of what a trigger's component returns.
pub mod trigger {
    /// Messages of one trigger run.
    pub const MESSAGES_MAX: usize = 100;
    /// Bytes of a message with its variables filled in, and of a message that the component makes.
    pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
    /// Bytes of what a trigger keeps.
    pub const STATE_BYTES_MAX: usize = 64 << 10;
    /// Bytes of an idempotency key that a component gives a message.
    pub const KEY_OF_MESSAGE_BYTES_MAX: usize = 256;
}

/// Limits of what a connector's component returns.
pub mod connector {
    /// Messages that one poll or one call of a service brings. Of the services that are known,
    /// WhatsApp puts most into one call: 1,000. A batch with more is taken at no time, not even in
    /// part.
    pub const BATCH_MESSAGES_MAX: usize = 1_000;
    /// Ids that changed, in one batch.
    pub const BATCH_MOVED_MAX: usize = 1_000;
    /// Messages that were not delivered after all, which one poll or one call of a service tells
    /// of.
    pub const BATCH_UNDELIVERED_MAX: usize = 1_000;
    /// Bytes of the text of one message that arrives. What is beyond is cut off, and the message
    /// says so.
    pub const INCOMING_TEXT_BYTES_MAX: usize = 64 << 10;
    /// Files that come with one message. Further ones are left out, and the message says so.
    pub const ATTACHMENTS_MAX: usize = 10;
    /// Bytes of a file that comes with a message.
    pub const ATTACHMENT_BYTES_MAX: u64 = 8 << 20;
    /// Bytes of the handle by which a component acknowledges a message: a question whose buttons
    /// are taken away has room in it.
    pub const ACKNOWLEDGE_BYTES_MAX: usize = 16 << 10;
    /// Bytes of the place where the next poll goes on.
    pub const CURSOR_BYTES_MAX: usize = 4 << 10;
    /// Bytes of what a service's call is answered with.
    pub const ANSWER_BYTES_MAX: usize = 4 << 10;
    /// Bytes of a service's id of a message, of a chat or of a group.
    pub const SERVICE_ID_BYTES_MAX: usize = 256;
    /// Bytes of what a service sends back when a button is pressed.
    pub const BUTTON_BYTES_MAX: usize = 64;
}
