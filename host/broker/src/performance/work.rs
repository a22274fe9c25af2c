//! One segment of the work on an operation, in a task of its own: a model, a tool, a recall.
//!
//! It is begun after the commit that decided it.

use crate::core::Core;
use crate::ledger::{Through, entry};
use crate::panics::caught;
use crate::performance::attempts::{AttemptPayer, Attempts};
use crate::performance::busy::Busy;
use crate::performance::command::Command;
use crate::performance::external::Delivery;
use crate::performance::model::Model;
use crate::performance::result::{CameTo, Performed, Thread};
use crate::performance::stopwatch::Stopwatch;
use crate::performance::tool::{Ran, Tool};
use domain::event::{BoundaryDecided, RunStarted};
use domain::id::AgentId;
use domain::message::{Message, MessageId, Part};
use domain::operation::Performer;
use domain::role::AgentRole;
use domain::run::settle::Ended;
use domain::run::{Open, Run};
use domain::step::{Failure, ModelRequest};
use runtime::CallAudit;
use serde_json::{Value, json};
use std::sync::Arc;
use store::Hit;
use tokio_util::task::AbortOnDropHandle;

/// Returns the run's messages that an operation needs: those that a model's call or a delivery
/// sends, else none.
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
    pub(crate) stopwatch: &'a Stopwatch,
}

/// One segment of an operation, with all that it needs.
pub(crate) struct Work {
    core: Arc<Core>,
    payer: Arc<dyn AttemptPayer>,
    open: Open,
    started: RunStarted,
    messages: Vec<Arc<Message>>,
    thread: Option<Arc<Thread>>,
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
            let performed = caught(Box::pin(self.perform())).await.unwrap_or_else(|panic| {
                tracing::error!(session.id = %session, operation.id = %operation, segment, panic, "the work on an operation panicked");
                Performed::came(CameTo::Lost)
            });
            noted.closed().await;
            deliver(performed).await;
        });
        Busy::new(AbortOnDropHandle::new(task), audit, entry)
    }

    async fn perform(self) -> Performed {
        store::point("broker.perform.before");
        let performed = self.segment().await;
        store::point("broker.perform.after");
        performed
    }

    async fn segment(self) -> Performed {
        match &self.open.operation.performer {
            Performer::Model {
                request, through, ..
            } => self.model(request, *through).await,
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
                    core: &self.core,
                    started: &self.started,
                    open: &self.open,
                    ran,
                    audit: &self.audit,
                    stopwatch: &self.stopwatch,
                }
                .perform()
                .await
            }
            Performer::Recall {
                query,
                limit,
                of,
                notes,
                own,
            } => {
                let looked_for = LookedFor {
                    query,
                    limit: *limit,
                    notes: *notes,
                    own: *own,
                };
                recall(&self.core, &self.started, looked_for, *of).await
            }
            Performer::Command { command } => self.command(command).await,
            Performer::External { .. } => self.delivery().await,
            // These are settled by others: people, clocks, agents, rules.
            Performer::Client { .. }
            | Performer::Agent { .. }
            | Performer::Detached { .. }
            | Performer::Memory { .. }
            | Performer::Timer { .. }
            | Performer::Refused { .. }
            | Performer::Reply { .. } => Performed::ended(Ended::Unknown),
        }
    }

    async fn command(&self, command: &str) -> Performed {
        let command = Command {
            core: &self.core,
            started: &self.started,
            open: &self.open,
            command,
        };
        command.perform().await
    }

    async fn delivery(&self) -> Performed {
        let delivery = Delivery {
            core: &self.core,
            started: &self.started,
            open: &self.open,
            messages: &self.messages,
            audit: &self.audit,
        };
        delivery.perform().await
    }

    async fn model(&self, request: &ModelRequest, through: MessageId) -> Performed {
        Model {
            core: &self.core,
            started: &self.started,
            messages: &self.messages,
            thread: self.thread.clone(),
            cut: self.open.cut.as_ref().map(|open| &open.cut),
            operation: &self.open.operation,
            request,
            through,
            audit: &self.audit,
            stopwatch: &self.stopwatch,
            attempts: Attempts::new(&self.open, &*self.payer, &self.audit),
        }
        .perform()
        .await
    }
}

/// The words of a search, and the most hits.
struct LookedFor<'a> {
    query: &'a str,
    limit: u32,
    /// True if only notes are looked for.
    notes: bool,
    /// True if only the user's own sessions are looked in.
    own: bool,
}

/// Searches an agent's threads and notes, as far as the user of the run could see them.
///
/// A tool's call names the agent (`of`), and its result is a text; else it is the run's own.
async fn recall(
    core: &Core,
    started: &RunStarted,
    looked_for: LookedFor<'_>,
    of: Option<AgentId>,
) -> Performed {
    let agent = of.unwrap_or(started.agent);
    let user = &started.user_id;
    let LookedFor {
        query,
        limit,
        notes,
        own,
    } = looked_for;
    let hits = match core.store.role(user, agent).await {
        Ok(role) => {
            let sees_all = !own && role.is_some_and(AgentRole::sees_all_sessions);
            let only = (!sees_all).then_some(user);
            if notes {
                core.store.recall_notes(agent, only, query, limit).await
            } else {
                core.store.recall(agent, only, query, limit).await
            }
        }
        Err(error) => Err(error),
    };
    match hits {
        Ok(hits) => {
            let untrusted = hits.iter().any(|hit| hit.untrusted);
            let hits: Vec<Value> = hits.iter().map(describe).collect();
            let hits = json!({ "hits": hits });
            Performed::ended(if of.is_some() {
                Ended::Gave {
                    parts: vec![Part::text(hits.to_string())],
                    untrusted,
                }
            } else {
                Ended::Recalled { hits, untrusted }
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

/// Returns a hit as the agent is told of it, with the user in whose session it was said. It has an
/// id only if it is a note, and a mark only if it rests on content from outside.
fn describe(hit: &Hit) -> Value {
    let mut described = json!({
        "text": hit.text,
        "turn": hit.turn,
        "session": hit.session,
        "user": hit.user_id,
        "time": hit.time.to_string(),
    });
    if let Some(fields) = described.as_object_mut() {
        let note = hit.note.map(|note| ("note", json!(note)));
        let about = hit.about.as_ref().map(|about| ("about", json!(about)));
        let mark = hit.untrusted.then(|| ("untrusted", true.into()));
        let more = [note, about, mark].into_iter().flatten();
        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    described
}
