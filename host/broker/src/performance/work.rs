//! One segment of the work on an operation, in a task of its own: a model, a tool, a recall.
//!
//! It is begun after the commit that decided it.

use crate::computing::Computes;
use crate::core::Core;
use crate::ledger::{Through, entry};
use crate::panics::caught;
use crate::performance::attempts::{AttemptPayer, Attempts};
use crate::performance::busy::Busy;
use crate::performance::command::Command;
use crate::performance::external::OutboundMessage;
use crate::performance::model::Model;
use crate::performance::recall::{RecallQuery, recall};
use crate::performance::result::{Performed, Thread, WorkOutcome};
use crate::performance::stopwatch::Stopwatch;
use crate::performance::tool::{Ran, Tool};
use domain::event::{BoundaryDecided, RunStarted};
use domain::message::{Message, MessageId};
use domain::operation::Performer;
use domain::run::settle::Ended;
use domain::run::{Open, Run};
use domain::sections::Section;
use domain::step::{Failure, ModelRequest};
use runtime::CallAudit;
use std::sync::{Arc, OnceLock};
use tokio_util::task::AbortOnDropHandle;

/// Returns the run's messages that an operation needs: those that a model's call or an outbound
/// message sends, else none.
fn seen(run: &Run, open: &Open) -> Vec<Arc<Message>> {
    let select = |is_seen: &dyn Fn(MessageId) -> bool| {
        let messages = run.messages.iter();
        let selected = messages.filter(|message| is_seen(message.id));
        selected.cloned().collect()
    };
    match &open.operation.performer {
        Performer::Model {
            request, through, ..
        } => {
            let first = request.context.first();
            select(&|id| id >= first && id <= *through)
        }
        Performer::External { messages } => select(&|id| messages.contains(&id)),
        _ => Vec::new(),
    }
}

/// The facts from which a segment of an operation is performed.
pub(crate) struct Origin<'a> {
    pub(crate) core: &'a Arc<Core>,
    /// The payer of further attempts.
    pub(crate) payer: Arc<dyn AttemptPayer>,
    pub(crate) run: &'a Run,
    pub(crate) open: &'a Open,
    /// The thread before the run, if it was read for its first call of a model.
    pub(crate) thread: Option<Arc<Thread>>,
    /// The sections of the run's prompts, if they were read.
    pub(crate) sections: Arc<OnceLock<Vec<Section>>>,
    pub(crate) stopwatch: &'a Stopwatch,
}

/// One segment of an operation, with all its inputs.
pub(crate) struct Work {
    core: Arc<Core>,
    payer: Arc<dyn AttemptPayer>,
    open: Open,
    started: RunStarted,
    messages: Vec<Arc<Message>>,
    thread: Option<Arc<Thread>>,
    sections: Arc<OnceLock<Vec<Section>>>,
    audit: CallAudit,
    /// The ledger's entry, without the content of the call audit.
    entry: BoundaryDecided,
    stopwatch: Stopwatch,
}

impl Work {
    pub(crate) fn new(origin: Origin<'_>) -> Self {
        let run = origin.run;
        let open = origin.open;
        // Models, other agents, timers and users are asked by the agent itself.
        let through = match &open.operation.performer {
            Performer::Tool {
                component, tool, ..
            } => Through::Tool {
                name: tool,
                code: Some(*component),
            },
            _ => Through::Agent(run.component),
        };
        let entry = BoundaryDecided {
            operation: Some(open.operation.id),
            segment: open.segment,
            ..entry(origin.core, run, through)
        };
        Self {
            core: origin.core.clone(),
            payer: origin.payer,
            open: open.clone(),
            started: run.started.clone(),
            messages: seen(run, open),
            thread: origin.thread,
            sections: origin.sections,
            audit: CallAudit::default(),
            entry,
            stopwatch: origin.stopwatch.clone(),
        }
    }

    /// Begins the work, in a task of its own. Its result is delivered when all that it did is in
    /// the call audit.
    pub(crate) fn begin<F>(self, deliver: impl FnOnce(Performed) -> F + Send + 'static) -> Busy
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let core = self.core.clone();
        let audit = self.audit.clone();
        let noted = self.audit.clone();
        let entry = self.entry.clone();
        let session = self.started.session;
        let operation = self.open.operation.id;
        let segment = self.open.segment;
        let task = core.spawn(async move {
            let performed = caught(self.perform()).await.unwrap_or_else(|panic| {
                tracing::error!(session.id = %session, operation.id = %operation, segment, panic, "the work on an operation panicked");
                Performed::finished(WorkOutcome::Lost)
            });
            noted.closed().await;
            deliver(performed).await;
        });
        Busy::new(AbortOnDropHandle::new(task), audit, entry)
    }

    async fn perform(self) -> Performed {
        let computes = self.core.computing.enter(self.started.session);
        store::point("broker.perform.before");
        let performed = Box::pin(self.segment(&computes)).await;
        store::point("broker.perform.after");
        performed
    }

    async fn segment(self, computes: &Computes) -> Performed {
        match &self.open.operation.performer {
            Performer::Model {
                request, through, ..
            } => self.model(request, *through, computes).await,
            Performer::Tool {
                component,
                tool,
                arguments,
                capabilities,
            } => {
                let ran = Ran {
                    component: *component,
                    tool,
                    arguments,
                    capabilities,
                };
                let tool = Tool {
                    core: &self.core,
                    started: &self.started,
                    open: &self.open,
                    ran,
                    audit: &self.audit,
                    stopwatch: &self.stopwatch,
                };
                store::perform(arguments);
                computes.while_polled(Box::pin(tool.perform())).await
            }
            Performer::Recall {
                query,
                limit,
                of,
                notes,
                own,
            } => {
                let recall_query = RecallQuery {
                    query,
                    limit: *limit,
                    notes: *notes,
                    own: *own,
                };
                recall(&self.core, &self.started, recall_query, *of).await
            }
            Performer::Command { command } => self.command(command, computes).await,
            Performer::External { .. } => computes.while_polled(self.outbound_message()).await,
            // These are settled by others: people, clocks, agents, rules.
            Performer::Client { .. }
            | Performer::Agent { .. }
            | Performer::Detached { .. }
            | Performer::Memory { .. }
            | Performer::Lasting { .. }
            | Performer::Timer { .. }
            | Performer::Refused { .. }
            | Performer::Reply { .. } => Performed::ended(Ended::Unknown(Failure::interrupted())),
        }
    }

    async fn command(&self, command: &str, computes: &Computes) -> Performed {
        let command = Command {
            core: &self.core,
            started: &self.started,
            open: &self.open,
            command,
            computes,
        };
        command.perform().await
    }

    async fn outbound_message(&self) -> Performed {
        let outbound_message = OutboundMessage {
            core: &self.core,
            started: &self.started,
            open: &self.open,
            messages: &self.messages,
            audit: &self.audit,
        };
        outbound_message.perform().await
    }

    async fn model(
        &self,
        request: &ModelRequest,
        through: MessageId,
        computes: &Computes,
    ) -> Performed {
        Model {
            core: &self.core,
            started: &self.started,
            messages: &self.messages,
            thread: self.thread.clone(),
            sections: &self.sections,
            cut: self.open.cut.as_ref().map(|open| &open.cut),
            operation: &self.open.operation,
            request,
            through,
            audit: &self.audit,
            stopwatch: &self.stopwatch,
            computes,
            attempts: Attempts::new(&self.open, &*self.payer, &self.audit),
        }
        .perform()
        .await
    }
}
