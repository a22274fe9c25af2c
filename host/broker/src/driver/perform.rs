//! Performing operations, after the commit that decided them: models, tools, recall.
//!
//! The result goes to the driver's mailbox.

use super::busy::Busy;
use super::entry::{Through, entry};
use super::{CommitExtras, Driver, Signal, Stopwatch, Thread};
use crate::catalogue::CHAT;
use crate::core::Core;
use crate::panics::caught;
use crate::performance::{Attempts, Model, Ran, Tool};
use domain::event::{BoundaryDecided, RunStarted};
use domain::id::OperationId;
use domain::limits::SEGMENTS_MAX;
use domain::message::Message;
use domain::model::Attempt;
use domain::operation::{CallUsage, Continuation, Pause, Performer};
use domain::run::recover::lost;
use domain::run::settle::{Ended, settlement};
use domain::run::{Open, Run};
use domain::step::Failure;
use domain::tool::ClientAction;
use runtime::CallAudit;
use serde_json::{Value, json};
use std::sync::Arc;
use store::Hit;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// The result of a piece of work.
pub(crate) struct Performed {
    pub(crate) came_to: CameTo,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) usage: Option<CallUsage>,
    pub(crate) extras: CommitExtras,
}

impl Performed {
    pub(crate) fn ended(ended: Ended) -> Self {
        Self::came(CameTo::End(ended))
    }

    pub(crate) fn came(came_to: CameTo) -> Self {
        Self {
            came_to,
            attempts: Vec::new(),
            usage: None,
            extras: CommitExtras::default(),
        }
    }
}

/// The way in which work came to its result: an end, a loss by panic, or another segment to come.
pub(crate) enum CameTo {
    End(Ended),
    Lost,
    Later {
        after_ms: u64,
        state: Vec<u8>,
    },
    Ask {
        action: ClientAction,
        state: Vec<u8>,
    },
}

impl Driver {
    /// Begins to work on an operation.
    pub(super) fn perform(&mut self, operation: OperationId) {
        let Some(driving) = &mut self.driving else {
            return;
        };
        driving.unsent.remove(&operation);
        let Some(open) = driving.run.open.get(&operation) else {
            return;
        };
        let (started, messages) = (driving.run.started.clone(), seen(&driving.run, open));
        // Models, other agents, timers and users are asked by the agent itself.
        let through = match &open.operation.performer {
            Performer::Tool {
                component, tool, ..
            } => Through::Tool {
                name: tool,
                code: Some(*component),
            },
            _ => Through::Agent(driving.run.component),
        };
        let entry = entry(&self.core, &driving.run, through);
        let (audit, entry) = (
            CallAudit::default(),
            BoundaryDecided {
                operation: Some(operation),
                segment: open.segment,
                ..entry
            },
        );
        let core = self.core.clone();
        let driver = self.mailbox.signals.clone();
        let stopwatch = driving.stopwatch.clone();
        let thread = driving.thread.get().cloned();
        let work = Work {
            core,
            driver,
            open: open.clone(),
            started,
            messages,
            thread,
            audit: audit.clone(),
            stopwatch,
        };
        let mailbox = self.mailbox.signals.clone();
        let segment = open.segment;
        let (session, noted) = (self.session, audit.clone());
        let task = self.core.spawn(async move {
            let performed = caught(Box::pin(work.perform())).await.unwrap_or_else(|panic| {
                tracing::error!(session.id = %session, operation.id = %operation, segment, panic, "the work on an operation panicked");
                Performed::came(CameTo::Lost)
            });
            noted.closed().await;
            // If the driver is gone, the operation is a successor's.
            let _ = mailbox.send(Signal::Performed { operation, segment, performed: Box::new(performed) }).await;
        });
        driving.busy.insert(
            operation,
            Busy::new(AbortOnDropHandle::new(task), audit, entry),
        );
    }

    /// Takes the result of a segment of an operation.
    pub(super) fn performed(
        &mut self,
        operation: OperationId,
        segment: u32,
        mut performed: Performed,
    ) {
        let now = self.core.now();
        let Some(driving) = &mut self.driving else {
            return;
        };
        // A cancelled operation has its outcome already, and so has a segment whose end another has
        // recorded.
        let went_on = driving
            .run
            .open
            .get(&operation)
            .is_some_and(|open| open.segment != segment);
        if went_on {
            return;
        }
        let Some(busy) = driving.busy.remove(&operation) else {
            return;
        };
        performed.extras.events.splice(0..0, busy.ended(now));
        let Some(open) = driving.run.open.get(&operation) else {
            return;
        };
        let segment = open.segment + 1;
        let (pause, state) = match performed.came_to {
            CameTo::End(ended) => {
                let mut settlement = settlement(&open.operation, ended, now)
                    .costing(open.attempts_with(performed.attempts));
                settlement.usage = performed.usage;
                driving.arrived.push((settlement, performed.extras));
                return;
            }
            CameTo::Lost => {
                let told = "the host failed while it worked on this, and has no result; whoever \
                            runs it finds the reason in its log";
                driving.arrived.push((
                    lost(open, Failure::lasting("host-failed", told), now),
                    performed.extras,
                ));
                return;
            }
            _ if segment >= SEGMENTS_MAX => {
                let failure = Failure::lasting(
                    "limit-reached",
                    format!("the call was continued {SEGMENTS_MAX} times"),
                );
                driving.arrived.push((
                    settlement(&open.operation, Ended::Failed(failure), now),
                    performed.extras.unwritten(),
                ));
                return;
            }
            CameTo::Later { after_ms, state } => (
                Pause::Until {
                    due: now.plus_ms(after_ms),
                },
                state,
            ),
            CameTo::Ask { action, state } => {
                let started = &driving.run.started;
                let definition = self
                    .core
                    .catalogue
                    .definition(&started.definition)
                    .filter(|_| started.session_type != CHAT);
                let until = definition.and_then(|definition| {
                    definition
                        .session_policy(&started.session_type)
                        .item_deadline(now)
                });
                (Pause::Asking { action, until }, state)
            }
        };
        driving.continued.push((
            Continuation {
                operation,
                segment,
                state,
                pause,
                active_ms: 0,
            },
            performed.extras,
        ));
    }
}

/// Returns the run's messages that an operation needs: those that a model's call sends, else none.
fn seen(run: &Run, open: &Open) -> Vec<Arc<Message>> {
    let Performer::Model {
        request, through, ..
    } = &open.operation.performer
    else {
        return Vec::new();
    };
    let first = request.context.first();
    run.messages
        .iter()
        .filter(|message| message.id >= first && message.id <= *through)
        .cloned()
        .collect()
}

/// One segment of an operation, with all that it needs.
struct Work {
    core: Arc<Core>,
    /// The mailbox of the session's driver.
    driver: mpsc::Sender<Signal>,
    open: Open,
    started: RunStarted,
    messages: Vec<Arc<Message>>,
    /// The thread before the run, if it was read for its first call of a model.
    thread: Option<Arc<Thread>>,
    audit: CallAudit,
    stopwatch: Stopwatch,
}

impl Work {
    async fn perform(self) -> Performed {
        store::point("broker.perform.before");
        let performed = self.segment().await;
        store::point("broker.perform.after");
        performed
    }

    async fn segment(self) -> Performed {
        let Self {
            core,
            driver,
            open,
            started,
            messages,
            thread,
            audit,
            stopwatch,
        } = self;
        match &open.operation.performer {
            Performer::Model {
                request, through, ..
            } => {
                let operation = &open.operation;
                let attempts = Attempts::new(&open, driver, &audit);
                let core = &core;
                let started = &started;
                let messages = &messages;
                let audit = &audit;
                let stopwatch = &stopwatch;
                let through = *through;
                Model {
                    core,
                    started,
                    messages,
                    thread,
                    operation,
                    request,
                    through,
                    audit,
                    stopwatch,
                    attempts,
                }
                .perform()
                .await
            }
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
                Tool {
                    core: &core,
                    started: &started,
                    open: &open,
                    ran,
                    audit: &audit,
                    stopwatch: &stopwatch,
                }
                .perform()
                .await
            }
            Performer::Recall { query, limit } => recall(&core, &started, query, *limit).await,
            // These are settled by others: people, clocks, agents, rules.
            Performer::Client { .. }
            | Performer::Agent { .. }
            | Performer::Detached { .. }
            | Performer::Timer { .. }
            | Performer::Refused { .. }
            | Performer::Reply { .. } => Performed::ended(Ended::Unknown),
        }
    }
}

/// Searches the agent's threads and notes, as far as the user of the run could see them.
async fn recall(core: &Core, started: &RunStarted, query: &str, limit: u32) -> Performed {
    let (agent, user) = (started.agent, &started.user_id);
    let hits = match core.store.role(user, agent).await {
        Ok(Some(role)) if role.sees_all_sessions() => {
            core.store.recall(agent, None, query, limit).await
        }
        Ok(_) => core.store.recall(agent, Some(user), query, limit).await,
        Err(error) => Err(error),
    };
    match hits {
        Ok(hits) => {
            let untrusted = hits.iter().any(|hit| hit.untrusted);
            let hits: Vec<Value> = hits.iter().map(told).collect();
            Performed::ended(Ended::Recalled {
                hits: json!({ "hits": hits }),
                untrusted,
            })
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a recall failed");
            Performed::ended(Ended::Failed(Failure::passing(
                "unavailable",
                "the memory could not be searched",
            )))
        }
    }
}

/// Returns a hit as the agent is told of it. It has a mark only if it rests on content from
/// outside.
fn told(hit: &Hit) -> Value {
    let mut told = json!({ "text": hit.text, "turn": hit.turn, "session": hit.session, "time": hit.time.to_string() });
    if let Some(told) = told.as_object_mut().filter(|_| hit.untrusted) {
        told.insert("untrusted".to_owned(), true.into());
    }
    told
}
