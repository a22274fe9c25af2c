//! Attempts at an outbound message: the consequence of a failed one, and the time of the next.

use super::incoming::Moved;
use super::limits::{ATTEMPTS_MAX, REASON_BYTES_MAX, RETRIES, RETRY_AFTER_MS_MAX};
use crate::values::time::Timestamp;

/// Milliseconds before another attempt with refused credentials: an operator has to change them
/// first.
const UNAUTHORISED_MS: u64 = 60_000;

/// The reason why a service failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectorFailure {
    /// It can never be done.
    #[error("the service refused it: {0}")]
    Rejected(String),
    /// The credentials are refused.
    #[error("the service does not take the credentials: {0}")]
    Unauthorised(String),
    /// Nothing was done. It may be repeated after so many milliseconds.
    #[error("the service cannot be used now: {reason}")]
    RetryLater {
        /// Milliseconds that the service asks for.
        after_ms: u64,
        /// The reason.
        reason: String,
    },
    /// It is unknown whether it was done.
    #[error("it cannot be told whether the service did it: {0}")]
    Unknown(String),
    /// Nothing was done: the id of the chat has changed.
    #[error("the chat is `{chat}` now")]
    Moved {
        /// The new id of the chat, in the service's terms.
        chat: String,
        /// The change of the id.
        moved: Moved,
    },
}

/// The consequence of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is tried again at this time.
    Retry(Timestamp),
    /// It may have been sent, and is not sent again.
    Unknown,
    /// It is given up.
    Dead,
}

/// The consequence of an attempt that had begun when the host stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// It is sent again, under the same idempotency key.
    Again,
    /// It may have been sent, and is not sent again.
    Unknown,
}

/// Returns the time of the attempt after a failed one, which is not before the service's own wait.
/// None after the last attempt. Attempts are counted from 1.
#[must_use]
pub fn retry_at(attempt: u32, retry_after_ms: Option<u64>, now: Timestamp) -> Option<Timestamp> {
    if attempt >= ATTEMPTS_MAX {
        return None;
    }
    let asked_ms = retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MS_MAX);
    Some(now.plus_ms(RETRIES.pause_ms(attempt).max(asked_ms)))
}

/// Returns the consequence of a failed attempt to send. An attempt that may have succeeded is
/// repeated only if the service accepts the same message once, and is not reported as given up.
#[must_use]
pub fn judge(failure: &ConnectorFailure, attempt: u32, idempotent: bool, now: Timestamp) -> Fate {
    let again =
        |asked_ms, else_fate| retry_at(attempt, asked_ms, now).map_or(else_fate, Fate::Retry);
    match failure {
        // After repeated moves, a message is given up.
        ConnectorFailure::Rejected(_) | ConnectorFailure::Moved { .. } => Fate::Dead,
        ConnectorFailure::Unauthorised(_) => again(Some(UNAUTHORISED_MS), Fate::Dead),
        ConnectorFailure::RetryLater { after_ms, .. } => again(Some(*after_ms), Fate::Dead),
        ConnectorFailure::Unknown(_) if idempotent => again(None, Fate::Unknown),
        ConnectorFailure::Unknown(_) => Fate::Unknown,
    }
}

/// Returns the consequence of an attempt that had begun when the host stopped.
#[must_use]
pub fn interrupted(idempotent: bool) -> Interrupted {
    if idempotent {
        Interrupted::Again
    } else {
        Interrupted::Unknown
    }
}

/// Returns the stored beginning of a reason.
#[must_use]
pub fn kept_reason(reason: &str) -> String {
    let mut kept = reason.to_owned();
    kept.truncate(kept.floor_char_boundary(REASON_BYTES_MAX));
    kept
}

#[cfg(test)]
mod tests;
