//! Entries of the ledger for calls of connectors: the decisions at the boundary, and the requests
//! that were sent.
//!
//! The entry of a call is stored with its outcome. Repeated calls, such as polls, get an entry when
//! the decisions differ from the last call's, and otherwise one an hour.

use super::Shared;
use super::asked::CallPurpose;
use super::served::{ConnectorLink, Served};
use crate::journal::Context;
use domain::definition::DefinitionId;
use domain::egress::Traffic;
use domain::event::{BoundaryDecided, BoundaryVerdict, Event, NewEvent};
use domain::grant::capability::NET_HTTP;
use domain::time::Timestamp;
use runtime::{CallAudit, Decided};
use std::sync::PoisonError;
use store::{Commit, Expected};

/// The content of the call audit of a call.
pub(super) struct Audited {
    /// True if a request may have been sent.
    pub(super) has_sent: bool,
    /// The entry of the ledger, if there will be one.
    pub(super) entry: Option<Event>,
}

impl Shared {
    /// Takes the decisions out of a call.
    pub(super) fn take_audit(
        &self,
        served: &Served,
        asked: CallPurpose,
        audit: &CallAudit,
    ) -> Audited {
        let (decided, egress) = audit.take();
        let has_sent = has_sent(&decided);
        let now = self.core.now();
        let is_nothing = decided.decisions.is_empty() && decided.left_out == 0;
        let is_news = || {
            let notes = &served.lasting.notes;
            let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
            notes.is_news(asked, &decided, now)
        };
        if (is_nothing && egress.is_empty()) || !is_news() {
            return Audited {
                has_sent,
                entry: None,
            };
        }
        let entry = BoundaryDecided {
            decisions: decided.decisions,
            left_out: decided.left_out,
            folders: decided.folders,
            egress,
            ..entry(served, asked, now)
        };
        Audited {
            has_sent,
            entry: Some(Event::BoundaryDecided(Box::new(entry))),
        }
    }

    /// Records the entry of a call for which nothing else is stored.
    pub(super) async fn note(&self, served: &Served, entry: Option<Event>) {
        let Some(entry) = entry else { return };
        let event = ledger_event(served, entry, self.core.now());
        let commit = Commit::new().append(served.stream(), Expected::Any, vec![event]);
        if let Err(error) = self.core.store().commit(commit).await {
            tracing::warn!(
                connector.name = %served.name,
                error = &error as &dyn std::error::Error,
                "what a connector was granted and refused could not be put into the ledger"
            );
        }
    }
}

/// Returns an entry for the store.
pub(super) fn ledger_event(served: &Served, entry: Event, now: Timestamp) -> NewEvent {
    Context::new(served.origin(), now).event(entry)
}

fn has_sent(decided: &Decided) -> bool {
    let is_request = decided.decisions.iter().any(|decision| {
        decision.capability == NET_HTTP && decision.verdict == BoundaryVerdict::Granted
    });
    is_request || decided.left_out > 0
}

/// Returns an entry without decisions.
fn entry(served: &Served, asked: CallPurpose, now: Timestamp) -> BoundaryDecided {
    let deps = match &served.link {
        ConnectorLink::Component(deps) => Some(deps),
        ConnectorLink::Direct | ConnectorLink::None => None,
    };
    BoundaryDecided {
        run: asked.run(),
        operation: None,
        segment: 0,
        definition: DefinitionId(format!("connector:{}", served.name)),
        user_id: None,
        tool: Some(asked.as_str().to_owned()),
        component: Some(served.spec.component.clone()),
        code: deps.map(|deps| deps.entry.component.digest()),
        version: deps.and_then(|deps| deps.entry.component.version().map(str::to_owned)),
        grant: deps.map(|deps| deps.grant),
        decisions: Vec::new(),
        left_out: 0,
        folders: Vec::new(),
        egress: Traffic::default(),
        time: now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::event::BoundaryDecision;
    use domain::ruling::Rule;

    fn decided(verdict: BoundaryVerdict, times: u64) -> Decided {
        Decided {
            decisions: vec![BoundaryDecision {
                capability: NET_HTTP.to_owned(),
                verdict,
                rule: Rule::Granted,
                times,
                detail: String::new(),
            }],
            ..Decided::default()
        }
    }

    #[test]
    fn only_a_request_that_was_granted_may_have_gone_out() {
        assert!(has_sent(&decided(BoundaryVerdict::Granted, 1)));
        assert!(!has_sent(&decided(BoundaryVerdict::Refused, 1)));
        assert!(!has_sent(&Decided::default()));
    }
}
