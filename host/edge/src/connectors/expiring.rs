//! Pairing codes that nobody entered in time: each is settled, so that the events say what became
//! of it, and who got it stands in no list any more.

use super::Shared;
use crate::journal::Context;
use broker::Error;
use std::sync::Arc;
use store::PairingRow;

/// Milliseconds between two looks for codes that have expired.
const LOOK_MS: u64 = 30_000;
/// Codes that are settled after one look. Further ones are settled after the next.
const PAGE: usize = 1_000;

/// Settles codes that have expired, until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        shared.settle_expired().await;
        if !shared.core.sleep_ms(LOOK_MS).await {
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

/// Returns what brings the end of a pairing about: nobody but its connector.
fn origin(pairing: &PairingRow) -> String {
    format!("connector:{}", pairing.key.connector())
}
