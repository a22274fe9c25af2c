//! Limits of connectors: inbound batches, waiting messages, and times.

pub use shapes::limits::connector::*;

use crate::agents::path::EXTERNAL_ID_BYTES_MAX;
use crate::values::backoff::Backoff;

/// The most quotations in one message. Further ones are left out.
pub const QUOTATIONS_MAX: usize = 10;
/// Bytes of the handle by which a component fetches a file.
pub const HANDLE_BYTES_MAX: usize = 2 << 10;
/// The prefix of a group's id in its connector key. No sender's id begins with it.
pub const GROUP_PREFIX: &str = "group:";
/// Bytes of a service's id of a group.
pub const GROUP_ID_BYTES_MAX: usize = EXTERNAL_ID_BYTES_MAX - GROUP_PREFIX.len();
/// Bytes of the body of a service's call: 3 MiB, the most that WhatsApp sends.
pub const CALL_BYTES_MAX: usize = 3 << 20;
/// Days within which a message with the same id of its service is accepted once.
pub const ONCE_DAYS: u64 = 7;
/// Milliseconds for which messages of one path are collected before a session gets them.
pub const GATHERED_MS: u64 = 100;
/// The longest pause, in milliseconds by the service's clock, between messages of one path that are
/// collected together. Some clocks count seconds. Messages that waited at a service arrive at once,
/// but were sent at different times.
pub const GATHERED_SENT_MS: u64 = 1_000;
/// Milliseconds between two polls at least.
pub const POLL_MS_MIN: u64 = 100;
/// The most milliseconds between two polls.
pub const POLL_MS_MAX: u64 = 3_600_000;
/// The most inbound messages of one connector that are not yet with a session. At this number,
/// polling of the service stops. A batch received below it is accepted whole.
pub const INBOUND_MESSAGES_WAITING_MAX: usize = 1_000;
/// Messages that wait to be sent through one connector.
pub const OUTBOUND_MESSAGES_MAX: usize = 10_000;
/// Messages that wait to be sent into one chat.
pub const CHAT_OUTBOUND_MESSAGES_MAX: usize = 1_000;
/// Bytes of one text to be sent, before it is split: 256 KiB. The rest is cut off, and the text
/// says so.
pub const OUTGOING_BYTES_MAX: usize = 256 << 10;
/// UTF-16 code units that every service accepts in one outgoing message: no component may set a
/// lower limit.
pub const TEXT_LIMIT_MIN: u32 = 200;
/// The most choices that are sent with a question.
pub const CHOICES_MAX: usize = 100;
/// UTF-16 code units of a button's label that every service displays.
pub const BUTTON_LABEL_UNITS_MAX: usize = 20;
/// Bytes of the call that an approval shows in a chat. A longer one is answered elsewhere.
pub const APPROVAL_BYTES_MAX: usize = 8 << 10;
/// Milliseconds between two edits of one message.
pub const EDIT_MS_MIN: u64 = 1_500;
/// Milliseconds between two typing notices to a service.
pub const TYPING_MS: u64 = 4_000;
/// Milliseconds for which a pairing code is valid: one hour.
pub const PAIRING_MS: u64 = 3_600_000;
/// Valid pairing codes of one sender.
pub const PAIRINGS_OF_SENDER_MAX: usize = 3;
/// Valid pairing codes of one connector.
pub const PAIRINGS_MAX: usize = 1_000;
/// Attempts to send one message.
pub const ATTEMPTS_MAX: u32 = 16;
/// Pauses between attempts, unless the service asks for more: up to one hour.
pub const RETRIES: Backoff = Backoff {
    first_ms: 1_000,
    most_ms: 3_600_000,
};
/// The longest wait that a service may request, in milliseconds: one day.
pub const RETRY_AFTER_MS_MAX: u64 = 86_400_000;
/// Bytes of a failure's reason that are stored.
pub const REASON_BYTES_MAX: usize = 1 << 10;
/// Connectors of one host.
pub const CONNECTORS_MAX: usize = 10_000;
/// Bytes of a connector's configuration.
pub const CONFIGURATION_BYTES_MAX: usize = 64 << 10;
/// Bytes of the text for unknown senders.
pub const REFUSAL_BYTES_MAX: usize = 1 << 10;
