//! Sessions in quarantine, as clients see them.

use broker::Quarantined;
use serde::Serialize;

/// A session for which nothing is done.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Quarantined)]
pub struct QuarantinedView {
    /// Its id.
    pub session_id: String,
    /// `skipped` by the operator at the start of the host, or `stuck` because the host cannot go on
    /// with it.
    pub why: &'static str,
    /// The reason, for people.
    pub reason: String,
    /// The time at which it was put there, ISO 8601.
    pub since: String,
}

/// A session in quarantine.
#[must_use]
pub fn quarantined(quarantined: &Quarantined) -> QuarantinedView {
    let Quarantined {
        session,
        why,
        reason,
        since,
    } = quarantined;
    QuarantinedView {
        session_id: session.to_string(),
        why: why.as_str(),
        reason: reason.clone(),
        since: since.to_string(),
    }
}
