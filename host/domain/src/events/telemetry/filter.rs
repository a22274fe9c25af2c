//! The selection of telemetry by agent, session and kind.

use super::{TelemetryEvent, TelemetryKind};
use crate::values::id::{AgentId, SessionId};
use agent_host_glob::name_matches;

/// The most kinds, or patterns of kinds, in a filter.
pub const KINDS_ASKED_MAX: usize = 40;

/// A selection of events. Each part narrows it; without any, everything is selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TelemetryFilter {
    /// About this agent.
    pub agent: Option<AgentId>,
    /// About this session.
    pub session: Option<SessionId>,
    /// The kinds to select; empty for all kinds.
    pub kinds: Vec<TelemetryKind>,
}

impl TelemetryFilter {
    /// Returns whether an event is selected. An event about the whole host is about every agent.
    #[must_use]
    pub fn selects(&self, event: &TelemetryEvent) -> bool {
        let subject = event.subject;
        let is_of_host = subject.agent.is_none() && subject.session.is_none();
        let is_about = |wanted: bool| wanted || is_of_host;
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && is_about(self.agent.is_none_or(|agent| subject.agent == Some(agent)))
            && is_about(
                self.session
                    .is_none_or(|session| subject.session == Some(session)),
            )
    }
}

/// Returns the kinds that match a pattern: a kind, or a text with `*` for any characters.
///
/// # Errors
/// No kind matches. The error lists the kinds.
pub fn kinds_matching(pattern: &str) -> Result<Vec<TelemetryKind>, String> {
    let matches = |kind: &TelemetryKind| name_matches(pattern, kind.as_str());
    let kinds: Vec<TelemetryKind> = TelemetryKind::ALL.into_iter().filter(matches).collect();
    if kinds.is_empty() {
        let known = TelemetryKind::ALL.map(TelemetryKind::as_str).join(", ");
        return Err(format!(
            "`{pattern}` matches no type of event; there are: {known}, and `*` stands for any \
             characters"
        ));
    }
    Ok(kinds)
}
