//! Calls that nobody waits for, which give way to those of turns that somebody waits for.

use super::Gateway;
use crate::gate::YieldLimits;
use std::time::Duration;

/// Milliseconds for which a provider has no more urgent call before such a one goes out.
const QUIET_MS: u64 = 2_000;
/// Milliseconds for which such a call gives way at most.
const YIELD_MS_MAX: u64 = 120_000;

impl Gateway {
    /// Waits while the provider of a model is asked for somebody, for two minutes at most. How many
    /// calls a server really takes at a time, only its operator knows, so that free places are no
    /// reason to go.
    pub async fn give_way(&self, model: Option<&str>) {
        let limits = YieldLimits {
            quiet: Duration::from_millis(QUIET_MS),
            longest: Duration::from_millis(YIELD_MS_MAX),
        };
        // Another one fails when it is asked.
        if let Ok((_, model)) = self.find(model) {
            model.upstream.gate.give_way(limits).await;
        }
    }
}
