//! Sessions in quarantine, as clients see them.

use super::Time;
use broker::{QuarantineCause, Quarantined};
use domain::id::SessionId;
use serde::Serialize;

/// A session for which nothing is done.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Quarantined)]
pub(crate) struct QuarantinedView {
    /// Its id.
    pub(crate) session_id: SessionId,
    /// `skipped` by the operator at the start of the host, `stuck` because the host cannot go on
    /// with it, or `suspected` because the host may have ended over it: it goes on by itself.
    pub(crate) why: QuarantineCause,
    /// The reason, for people.
    pub(crate) reason: String,
    /// The time at which it was put there, ISO 8601.
    pub(crate) since: Time,
}

/// A session in quarantine.
pub(crate) fn quarantined(quarantined: &Quarantined) -> QuarantinedView {
    QuarantinedView {
        session_id: quarantined.session,
        why: quarantined.why,
        reason: quarantined.reason.clone(),
        since: Time(quarantined.since),
    }
}
