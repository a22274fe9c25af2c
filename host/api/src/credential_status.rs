//! The status of a credential after its request was let in: anything as long-lived as an event
//! stream checks it again.

use crate::caller::{Caller, Credential};
use crate::clock::Clock;
use crate::state::Api;
use broker::Broker;
use domain::time::Timestamp;
use std::time::Duration;
use tokio::sync::watch;

/// Milliseconds after which is looked again in any case: clocks are set, and machines sleep.
const POLL_MS_MAX: u64 = 30_000;
/// Milliseconds until it is looked again after too many reads waited.
const BUSY_MS: u64 = 1_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct CredentialStatus {
    credential: Credential,
    clock: Clock,
    broker: Broker,
    revocations: watch::Receiver<u64>,
}

impl CredentialStatus {
    /// The status of a caller's credential from here on.
    pub(crate) fn new(caller: &Caller, api: &Api, broker: &Broker) -> Self {
        Self {
            credential: caller.credential.clone(),
            clock: api.access().clock().clone(),
            broker: broker.clone(),
            revocations: broker.revocations(),
        }
    }

    /// Waits until the credential has ended: its time is over, or it was revoked. Looks at once,
    /// because it may have been revoked since it was checked.
    pub(crate) async fn ended(mut self) {
        let Some(expires_at) = self.credential.expires_at() else {
            return std::future::pending().await;
        };
        loop {
            // Before the inspection, so that what is revoked during it is not missed.
            self.revocations.mark_unchanged();
            let Some(wait_ms) = self.wait_ms(expires_at).await else {
                return;
            };
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
                // A broker that is gone revokes nothing any more, and ends the streams itself.
                changed = self.revocations.changed() => if changed.is_err() {
                    tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                },
            }
        }
    }

    /// Returns the time to wait until the next check; none when the credential has ended.
    async fn wait_ms(&self, expires_at: Timestamp) -> Option<u64> {
        let now = self.clock.now();
        let left = expires_at.since_ms(now);
        if left == 0 {
            return None;
        }
        let Credential::Key { id, .. } = &self.credential else {
            return Some(left.min(POLL_MS_MAX));
        };
        match self.broker.keys().get(id).await {
            Ok(Some(row)) => row.ended(now).is_none().then_some(left.min(POLL_MS_MAX)),
            Err(error) if error.is_busy() => Some(BUSY_MS),
            // What cannot be told to be good is not.
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the state of an API key cannot be read: its stream ends"
                );
                None
            }
        }
    }
}
