//! Performing operations, after the commit that decided them: models, tools, recall. What comes of it goes back to the driver's mailbox.

use super::{Driver, Signal};
use crate::core::Core;
use crate::performance::{Model, Ran, Tool};
use domain::id::OperationId;
use domain::limits::SEGMENTS_MAX;
use domain::model::Attempt;
use domain::operation::{CallUsage, Continuation, Pause, Performer};
use domain::run::Open;
use domain::run::settle::{Ended, settlement};
use domain::step::Failure;
use domain::tool::ClientAction;
use serde_json::json;
use std::sync::Arc;

/// What a piece of work came to.
pub(crate) struct Performed {
    pub(crate) came_to: CameTo,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) usage: Option<CallUsage>,
    pub(crate) blobs: Vec<Vec<u8>>,
}

impl Performed {
    pub(crate) fn ended(ended: Ended) -> Self {
        Self::came(CameTo::End(ended))
    }

    pub(crate) fn came(came_to: CameTo) -> Self {
        Self { came_to, attempts: Vec::new(), usage: None, blobs: Vec::new() }
    }
}

/// An end, or another segment.
pub(crate) enum CameTo {
    End(Ended),
    Later { after_ms: u64, state: Vec<u8> },
    Ask { action: ClientAction, state: Vec<u8> },
}

impl Driver {
    /// Begins to work on an operation.
    pub(super) fn perform(&mut self, operation: OperationId) {
        let Some(driving) = &mut self.driving else { return };
        let Some(open) = driving.run.open.get(&operation) else { return };
        let work = Work { core: self.core.clone(), open: open.clone(), run: driving.run.clone() };
        let mailbox = self.mailbox.clone();
        let task = self.core.tasks.spawn(async move {
            store::point("broker.perform.before");
            let performed = work.perform().await;
            store::point("broker.perform.after");
            // A driver that is gone has left the operation to a successor.
            let _ = mailbox.send(Signal::Performed(operation, Box::new(performed))).await;
        });
        driving.busy.insert(operation, task.abort_handle());
    }

    /// Takes what a piece of work came to.
    pub(super) fn performed(&mut self, operation: OperationId, performed: Performed) {
        let now = self.core.now();
        let Some(driving) = &mut self.driving else { return };
        // What was cancelled meanwhile has its outcome already.
        if driving.busy.remove(&operation).is_none() {
            return;
        }
        let Some(open) = driving.run.open.get(&operation) else { return };
        let segment = open.segment + 1;
        let (pause, state) = match performed.came_to {
            CameTo::End(ended) => {
                let mut settlement = settlement(&open.operation, ended, now).costing(performed.attempts);
                settlement.usage = performed.usage;
                driving.arrived.push((settlement, performed.blobs));
                return;
            }
            _ if segment >= SEGMENTS_MAX => {
                let failure = Failure::lasting("limit-reached", format!("the call was continued {SEGMENTS_MAX} times"));
                driving.arrived.push((settlement(&open.operation, Ended::Failed(failure), now), Vec::new()));
                return;
            }
            CameTo::Later { after_ms, state } => (Pause::Until { due: now.plus_ms(after_ms) }, state),
            CameTo::Ask { action, state } => (Pause::Asking { action }, state),
        };
        driving.continued.push(Continuation { operation, segment, state, pause });
    }
}

/// One segment of an operation, with everything that it needs.
struct Work {
    core: Arc<Core>,
    open: Open,
    run: domain::run::Run,
}

impl Work {
    async fn perform(self) -> Performed {
        let Self { core, open, run } = self;
        match &open.operation.performer {
            Performer::Model { request, through, .. } => {
                Model { core: &core, run: &run, operation: &open.operation, request, through: *through }.perform().await
            }
            Performer::Tool { component, tool, arguments, capabilities } => {
                let ran = Ran { component: *component, tool, arguments, capabilities };
                Tool { core: &core, run: &run, open: &open, ran }.perform().await
            }
            Performer::Recall { query, limit } => recall(&core, &run, query, *limit).await,
            // These are settled by others: people, clocks, agents, rules.
            Performer::Client { .. } | Performer::Agent { .. } | Performer::Timer { .. } | Performer::Refused { .. } => {
                Performed::ended(Ended::Unknown)
            }
        }
    }
}

async fn recall(core: &Core, run: &domain::run::Run, query: &str, limit: u32) -> Performed {
    match core.store.recall(run.started.agent, query, limit).await {
        Ok(hits) => {
            let hits: Vec<_> = hits
                .into_iter()
                .map(|hit| json!({ "text": hit.text, "turn": hit.turn, "session": hit.session, "time": hit.time.to_string() }))
                .collect();
            Performed::ended(Ended::Value(json!({ "hits": hits })))
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a recall failed");
            Performed::ended(Ended::Failed(Failure::passing("unavailable", "the memory could not be searched")))
        }
    }
}
