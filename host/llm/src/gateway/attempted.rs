//! News of an attempt: its failure in the log, and its usage where that can be. Calls that nobody
//! waits for, which give way to others.

use crate::gate::YieldLimits;
use crate::gateway::Gateway;
use crate::provider::Ask;
use crate::retry::AttemptError;
use domain::model::Usage;
use std::num::NonZeroU64;
use std::time::Duration;

/// Logs a failed attempt, with the provider's own words, without keys and cut. While it fails in
/// one way, an outage is no news at each call.
pub(super) fn log_failure(ask: &Ask<'_>, number: u32, error: &AttemptError, is_news: bool) {
    let code = error.failure.code();
    let report = error.failure.report();
    if is_news {
        tracing::warn!(
            llm.provider = ask.provider,
            llm.model = ask.model,
            llm.attempt = number,
            error.code = code,
            error = report,
            retry_after_ms = error.retry_after_ms.map(NonZeroU64::get),
            "a call of a model failed"
        );
    } else {
        tracing::debug!(
            llm.provider = ask.provider,
            llm.model = ask.model,
            error.code = code,
            "a call of a model failed as the one before it did"
        );
    }
}

/// Returns the usage that is told of an attempt, unless it cannot be.
pub(super) fn believed(reported: Option<Usage>, wall_ms: u64, ask: &Ask<'_>) -> Option<Usage> {
    let usage = reported.and_then(|usage| usage.possible(wall_ms));
    if reported.is_some() && usage.is_none() {
        tracing::warn!(
            llm.provider = ask.provider,
            llm.model = ask.model,
            "more tokens are reported than can be, and the report is not believed"
        );
    }
    usage
}

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
