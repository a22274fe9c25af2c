//! The parties to a call of a model: the ledger that records its decisions at the boundary, the run
//! that pays for it, and the viewers of its session.

use super::Model;
use crate::core::Core;
use crate::live::{Frame, Show};
use crate::performance::attempts::Attempts;
use crate::performance::stopwatch::Stopwatch;
use crate::performance::telling::Telling;
use domain::authority::Caller;
use domain::delegate::Priority;
use domain::event::{BoundaryVerdict, RunStarted};
use domain::grant::capability;
use domain::operation::{Attempt, Operation};
use domain::path::PathKind;
use domain::ruling::{PROGRAM_RUN, Rule};
use llm::fair_semaphore::Party;
use llm::{Afforded, AttemptBudget, Delta, DeltaSink, Measuring, ProgramNote, Records};
use runtime::CallAudit;
use std::sync::Arc;

/// The record of the call's dealings with the boundary, for its entry in the ledger.
#[derive(Debug)]
pub(super) struct Trail<'a> {
    pub(super) audit: &'a CallAudit,
    pub(super) records: Arc<dyn Records>,
}

impl llm::Trail for Trail<'_> {
    fn records(&self) -> Arc<dyn Records> {
        self.records.clone()
    }

    fn key_used(&self, used: &str) {
        self.audit.decided(
            capability::SECRETS_USE,
            BoundaryVerdict::Granted,
            Rule::Granted,
            used,
        );
    }

    fn program(&self, note: &ProgramNote) {
        let (verdict, rule) = if note.is_limit {
            (BoundaryVerdict::Limited, Rule::Limits)
        } else {
            (BoundaryVerdict::Granted, Rule::Granted)
        };
        self.audit
            .decided(PROGRAM_RUN, verdict, rule, &note.reported);
    }
}

impl Model<'_> {
    /// Lets turns that a user waits for go first, if this one is the least urgent and no user waits
    /// for it: the reading of a chat into notes. The priority of a user's message counts in its
    /// queue alone, so its turn does not wait here, however low that is.
    pub(super) async fn give_way(&self) {
        if self.started.priority > Priority::Low || self.started.reply_to.is_some() {
            return;
        }
        let model = self.request.model.as_deref();
        let gateway = self.gateway(model);
        tokio::select! {
            () = gateway.give_way(model) => {}
            () = self.core.stopping.cancelled() => {}
        }
    }

    /// Returns the fallbacks of the model that may not answer in the turn.
    pub(super) fn refused_fallbacks(&self) -> Vec<String> {
        let asked = self.request.model.as_deref();
        let route = self.gateway(asked).resolve(asked);
        let mut fallbacks = route.map_or_else(|_| Vec::new(), |route| route.fallbacks);
        fallbacks.retain(|alias| !self.may_fall_back_to(alias));
        fallbacks
    }

    /// Returns whether a model that the operator chose in the place of another may answer in the
    /// turn, by its alias.
    pub(super) fn may_fall_back_to(&self, alias: &str) -> bool {
        let present = self.core.serving.present();
        let bounds = present.bounds_of_run(self.started);
        let Some(agent) = present.catalogue.definition(&self.started.definition) else {
            return false;
        };
        let caller = Caller {
            agent,
            denies: &bounds.denies,
            permissions: &bounds.permissions,
        };
        // Only the model of the definition counts, and no role's.
        let gateway = &present.settings.gateway;
        let paths = &present.settings.paths;
        let model = paths.named(gateway, PathKind::Agent, agent, alias);
        caller.may_fall_back_to(model).is_ok()
    }
}

/// The run, as the payer of the call.
#[derive(Debug)]
pub(super) struct Payer<'a> {
    pub(super) started: &'a RunStarted,
    pub(super) attempts: &'a Attempts<'a>,
    pub(super) stopwatch: &'a Stopwatch,
    /// Aliases of models that may not answer in its turn.
    pub(super) refused: Vec<String>,
}

impl AttemptBudget for Payer<'_> {
    fn first(&self) -> u32 {
        self.attempts.number()
    }

    fn afford<'a>(&'a self, ended: &'a [Attempt]) -> Afforded<'a> {
        Box::pin(self.attempts.afford(ended))
    }

    fn permits(&self, fallback: &str) -> bool {
        !self.refused.iter().any(|alias| alias == fallback)
    }

    fn party(&self) -> Party {
        self.started.into()
    }

    /// A new attempt is a step further, however long those before it took.
    fn measure(&self, quiet_ms: Option<u64>) -> Measuring<'_> {
        self.stopwatch.progressed();
        Box::new(match quiet_ms {
            Some(limit_ms) => self.stopwatch.start_quiet(limit_ms),
            None => self.stopwatch.start(),
        })
    }
}

/// The watchers of the session.
pub(super) struct Watchers<'a> {
    pub(super) core: &'a Core,
    pub(super) started: &'a RunStarted,
    pub(super) operation: &'a Operation,
    pub(super) stopwatch: &'a Stopwatch,
    pub(super) watched: bool,
    /// True if the reply is streamed and shown as it grows.
    pub(super) streams: bool,
    /// The telemetry of the call.
    pub(super) telling: Telling<'a>,
}

impl Watchers<'_> {
    pub(super) fn show(&self, attempt: u32, seq: u64, show: Show) {
        if self.watched {
            let started = self.started;
            self.core.live.show(Frame {
                agent: started.agent,
                session: started.session,
                run: started.run,
                operation: self.operation.id,
                attempt,
                seq,
                show,
            });
        }
    }
}

/// The call is over, or is stopped: nobody joins its reply any more.
impl Drop for Watchers<'_> {
    fn drop(&mut self) {
        self.core.live.end(self.operation.id);
    }
}

impl DeltaSink for Watchers<'_> {
    fn streams(&self) -> bool {
        self.streams
    }

    fn delta(&self, attempt: u32, seq: u64, delta: Delta) {
        self.stopwatch.progressed();
        if !self.streams {
            return;
        }
        self.telling.said(attempt, seq, &delta);
        let show = match delta {
            Delta::Text(text) => Show::Text(text),
            Delta::Thinking(text) => Show::Thinking(text),
            Delta::CallStarted { name, .. } => Show::CallStarted { name },
            Delta::OwnCall { name, .. } => Show::OwnCall { name },
        };
        self.show(attempt, seq, show);
    }

    fn discarded(&self, attempt: u32) {
        self.telling.discarded(attempt);
        self.show(attempt, 0, Show::Discarded);
    }
}
