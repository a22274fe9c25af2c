//! The end of an event stream, as all feeds have it: why it ends, what its client is told, and the
//! wait where reading again makes sense.

use super::frame;
use super::outbox::{HungUp, Outbox};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Milliseconds after which a client is asked to come back when the host ends the stream.
const RETRY_MS: u64 = 2_000;
/// Milliseconds until something is read again after too many reads waited.
const BUSY_MS: u64 = 50;

/// The reason why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Its client may not follow any more.
    Dismissed,
    /// Its client has disconnected.
    HungUp,
    /// The host ends it; the client may come back.
    Retry,
}

/// The last words to a client.
pub(super) struct Farewell {
    /// The reason why the stream ends.
    pub(super) reason: &'static str,
    /// The frame that asks the client to come back; none for one that may not.
    pub(super) retry: Option<Bytes>,
}

impl From<HungUp> for End {
    fn from(_: HungUp) -> Self {
        Self::HungUp
    }
}

impl End {
    /// Returns the last words to the client; none if it is gone. `dismissed` is the reason for one
    /// that may not follow any more.
    pub(super) fn farewell(self, dismissed: &'static str) -> Option<Farewell> {
        match self {
            Self::HungUp => None,
            Self::Retry => Some(Farewell {
                reason: "the host ends the stream; come back",
                retry: Some(frame::retry(RETRY_MS)),
            }),
            Self::Dismissed => Some(Farewell {
                reason: dismissed,
                retry: None,
            }),
        }
    }
}

/// Sends the frame of something that is stored.
pub(super) async fn push_committed(out: &Outbox, frame: Bytes) -> Result<(), HungUp> {
    if frame.is_empty() {
        return Ok(());
    }
    out.push(frame).await?;
    store::point("api.stream.pushed");
    Ok(())
}

/// Returns the ticks of a stream's heartbeat.
pub(super) fn heartbeat_every(period: Duration) -> Interval {
    let mut heartbeat = interval_at(Instant::now() + period, period);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat
}

/// Waits where reading again makes sense.
pub(super) async fn wait_out(error: impl Into<broker::Error>) -> Result<(), End> {
    let error = error.into();
    if error.is_busy() {
        tokio::time::sleep(Duration::from_millis(BUSY_MS)).await;
        return Ok(());
    }
    tracing::warn!(
        error = &error as &dyn std::error::Error,
        "an event stream ends because it cannot be read"
    );
    Err(End::Retry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ReadError;

    #[test]
    fn only_a_client_that_may_come_back_is_asked_to() {
        let retry = End::Retry.farewell("dismissed").unwrap();
        assert!(retry.retry.is_some());
        let dismissed = End::Dismissed.farewell("dismissed").unwrap();
        assert_eq!((dismissed.reason, dismissed.retry), ("dismissed", None));
        assert!(End::HungUp.farewell("dismissed").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_did_not_get_its_turn_is_made_again() {
        assert_eq!(wait_out(ReadError::Busy).await, Ok(()));
        assert_eq!(wait_out(ReadError::Closed).await, Err(End::Retry));
    }
}
