//! Pairing codes that were not entered in time. Each is settled, so that the events record its
//! outcome, and its receiver is no longer listed. Some days later it is erased, with all other data
//! about unknown senders.

use super::Shared;
use super::intake::once_since;
use crate::journal::Context;
use broker::Error;
use domain::time::Timestamp;
use std::sync::Arc;
use store::{PairingRow, Rewritten};

/// Milliseconds between two polls for codes that have expired.
const POLL_MS: u64 = 30_000;
/// Milliseconds between two checks for data to erase.
const ERASURE_MS: u64 = 3_600_000;
/// Codes that are settled after one inspection. Further ones are settled after the next.
const PAGE: usize = 1_000;

/// Settles expired codes, and erases old data, until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut next_erasure = shared.core.now();
    let mut is_rewritten = true;
    loop {
        shared.settle_expired().await;
        let now = shared.core.now();
        if now >= next_erasure {
            is_rewritten = shared.erase_unknown_senders(now, is_rewritten).await;
            next_erasure = now.plus_ms(ERASURE_MS);
        }
        if !shared.core.sleep_ms(POLL_MS).await {
            return;
        }
    }
}

impl Shared {
    /// Settles the codes that have expired.
    pub(super) async fn settle_expired(&self) {
        if let Err(error) = self.expire().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "pairing codes that have expired cannot be settled now"
            );
        }
    }

    /// Erases data about unknown senders, once a message of that time would count as a new one.
    /// Returns whether none of it is left in the store's log; `is_rewritten` is the same for data
    /// erased before.
    async fn erase_unknown_senders(&self, now: Timestamp, is_rewritten: bool) -> bool {
        let store = self.core.store();
        let erased = store.erase_unknown_senders(once_since(now)).await;
        if is_rewritten && matches!(erased, Ok(0)) {
            return true;
        }
        // If it failed, data may have been erased before that.
        let rewritten = store.rewrite_erased().await;
        match erased.and(rewritten) {
            Ok(Rewritten::Yes) => true,
            Ok(Rewritten::NotYet { reason }) => {
                tracing::warn!(reason, "what was erased may be in the store's files still");
                false
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "what is stored of people whom nobody knows cannot be erased now"
                );
                false
            }
        }
    }

    async fn expire(&self) -> Result<(), Error> {
        let now = self.core.now();
        let expired = self.core.store().expired_pairings(now, PAGE).await?;
        for pairing in &expired {
            let context = Context::new(origin(pairing), now);
            self.settle_pairing(&context, pairing, None, None).await?;
        }
        Ok(())
    }
}

/// Returns the actor of the end of a pairing: its connector.
fn origin(pairing: &PairingRow) -> String {
    format!("connector:{}", pairing.key.connector())
}
