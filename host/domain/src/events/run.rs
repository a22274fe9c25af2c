//! The run aggregate: one turn in progress, as the fold of its stream.
//!
//! The step engine's rules are in the modules below, one transition each. [`intake`] decides when
//! an agent wakes and with which news. [`check`], [`decide`] and [`effects`] apply its decision.
//! [`attempt`] counts the cost of attempts at models, [`settle`] settles operations, and [`end`]
//! ends a run. [`outward`](mod@outward) reports to people outside, and [`recover`] handles open
//! work after a restart. The steps of a run that compacts its thread are in [`compact`].

pub mod attempt;
mod calls;
pub mod check;
pub mod compact;
pub mod decide;
mod delegated;
pub mod effects;
pub mod end;
pub mod external;
pub mod intake;
mod line;
mod open;
pub mod outward;
pub mod recover;
pub mod repeated;
pub mod settle;
mod spending;

use crate::access::tool::ClientAction;
use crate::events::event::{Event, RunCut, RunEnded, RunStarted, RunStepped};
use crate::thread::message::{Message, MessageId};
use crate::thread::model::Usage;
use crate::thread::prompt_cut::PromptCut;
use crate::thread::turn::TurnEnd;
use crate::values::digest::Digest;
use crate::values::id::{InputId, OperationId};
use crate::values::time::Timestamp;
use crate::work::account;
use crate::work::operation::{Operation, Pause, Performer, Settlement};
use crate::work::step::{Context, Decision, Effect, Memo, News, OperationOutcome, Until, Wait};
pub use attempt::Attempts;
pub use calls::CallMade;
use intake::Intake;
pub use open::{Open, OpenCut, Waited, Within};
use serde::{Deserialize, Serialize};
pub use spending::Spending;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A completed model call that included the whole thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestCall {
    /// The requested model, by its alias or name; none for the host's own.
    pub model: Option<String>,
    /// Tokens that the call used.
    pub usage: Usage,
}

/// Something that the client was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientQuestion {
    /// The question as the client saw it.
    pub action: ClientAction,
    /// Time of the question.
    pub at: Timestamp,
    /// Time of the answer.
    pub answered_at: Option<Timestamp>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The start of the run.
    pub started: RunStarted,
    /// The number of steps so far, which is the number of the next one.
    pub step: u32,
    /// Failed attempts at the next step.
    pub failed_attempts: u32,
    /// Recoveries in a row after the host ended unexpectedly. Progress resets it: a step, an
    /// outcome or another segment of a call. Another attempt at lost work is no progress. Neither
    /// is an elapsed timer, an answer of the client, or a step whose only news is one of these:
    /// they may happen while something else ends the host.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub recoveries: u32,
    /// The component for its next step.
    pub component: Digest,
    /// Its messages, in order. They are shared, so that a copy of a run does not copy them.
    #[serde(with = "crate::thread::message::shared")]
    pub messages: Vec<Arc<Message>>,
    /// Its operations without an outcome.
    pub open: BTreeMap<OperationId, Open>,
    /// Every key that was ever used.
    pub keys: BTreeSet<String>,
    /// Questions to the client by the guest's key, for the record of a structured session.
    pub asked: BTreeMap<String, ClientQuestion>,
    /// Outcomes that are recorded and not yet reported to the agent.
    pub untold: Vec<(Operation, Settlement)>,
    /// Outcomes that are in the thread and not yet reported to the agent.
    pub untold_stopped: Vec<News>,
    /// The outcomes and messages it waits for; none before the first step.
    pub wait: Option<(Until, bool)>,
    /// The last step's decision to end the run, deferred because messages arrived meanwhile. If
    /// those messages are withdrawn, the run ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Decision>,
    /// The code of the model call that caused that decision: see [`Run::model_failure`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred_over: Option<String>,
    /// Inputs that it claimed.
    pub claimed: Vec<InputId>,
    /// Number of inputs that the agent has answered: those claimed at its last reply, after which
    /// the run continued with newer messages.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub answered: usize,
    /// The most hops of its inputs ([`crate::work::dispatch::DispatchLimits::hops_max`]).
    pub hops: u32,
    /// The memo of the last step.
    pub memo: Option<Memo>,
    /// The session's state, a blob.
    pub session_state: Digest,
    /// Blobs from results outside the thread.
    pub shown: BTreeSet<Digest>,
    /// Bytes of its tools' states and questions between the segments of their calls.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub segments_bytes: u64,
    /// The spent part of its limits.
    pub spending: Spending,
    /// Its first calls, for a caller that waits for its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallMade>,
    /// Number of calls that programs in a model's place made for it.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub own_calls: u32,
    /// True if it replied to its caller before its end. Its end then reports nothing more to the
    /// caller.
    pub replied: bool,
    /// True if any of its input or its thread rests on content from outside: see
    /// [`Run::is_untrusted`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// True if others may spend from its accounts, because it has handed work over or set itself a
    /// reminder.
    pub shares: bool,
    /// The newest model call that included the whole thread.
    pub newest_call: Option<NewestCall>,
    /// The newest cut of its prompts for each requested model; under an empty name for the host's
    /// own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cuts: BTreeMap<String, PromptCut>,
    /// Models that took part.
    pub models: Vec<String>,
    /// The time for which it waited for people.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub waited: Waited,
    /// The kind of its end; none while it is open.
    pub ended: Option<TurnEnd>,
}

/// An event that cannot follow the previous ones: the stream is damaged, or this code is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a run's events do not fit together: {0}")]
pub struct Corrupt(pub String);

impl Run {
    /// The run that a start makes.
    #[must_use]
    pub fn begin(started: RunStarted) -> Self {
        Self {
            step: 0,
            failed_attempts: 0,
            recoveries: 0,
            component: started.component,
            messages: Vec::new(),
            open: BTreeMap::new(),
            keys: BTreeSet::new(),
            asked: BTreeMap::new(),
            untold: Vec::new(),
            untold_stopped: Vec::new(),
            wait: None,
            deferred: None,
            deferred_over: None,
            claimed: started.claimed.clone(),
            answered: 0,
            hops: started.hops,
            memo: None,
            session_state: started.session_state,
            shown: BTreeSet::new(),
            segments_bytes: 0,
            spending: Spending::default(),
            calls: Vec::new(),
            own_calls: 0,
            replied: false,
            untrusted: false,
            shares: !started.accounts.is_empty(),
            newest_call: None,
            cuts: BTreeMap::new(),
            models: Vec::new(),
            waited: Waited::default(),
            ended: None,
            started,
        }
    }

    /// The fold of a stream.
    ///
    /// # Errors
    /// If the events do not begin with a start or do not follow from each other.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Self, Corrupt> {
        let mut run: Option<Self> = None;
        for event in events {
            run = Some(match (run, event) {
                (None, Event::RunStarted(started)) => Self::started(RunStarted::clone(started))?,
                (Some(run), event) => run.apply(event)?,
                (None, _) => return Err(Corrupt("the first event is not a start".to_owned())),
            });
        }
        run.ok_or_else(|| Corrupt("there is no event".to_owned()))
    }

    fn started(mut started: RunStarted) -> Result<Self, Corrupt> {
        let first_step = started.first_step.take();
        let run = Self::begin(started);
        match first_step {
            Some(step) => run.apply(&Event::RunStepped(step)),
            None => Ok(run),
        }
    }

    /// The run after one more event.
    ///
    /// # Errors
    /// When the event cannot follow.
    pub fn apply(mut self, event: &Event) -> Result<Self, Corrupt> {
        self.advance(event)?;
        Ok(self)
    }

    /// [`Self::apply`] in place, for callers that fold as events are committed.
    ///
    /// # Errors
    /// When the event cannot follow; the run is then unusable.
    pub fn advance(&mut self, event: &Event) -> Result<(), Corrupt> {
        match event {
            Event::RunStepped(stepped) => self.apply_stepped(stepped)?,
            Event::StepFailed(failed) => self.failed_attempts = failed.attempt,
            Event::RunRecovered(recovered) => self.recoveries = recovered.count,
            Event::RunSettled(settled) => {
                for settlement in &settled.settled {
                    let open = self.close(settlement)?;
                    if !open.operation.performer.only_waits() {
                        self.recoveries = 0;
                    }
                    if open.within.is_none() {
                        self.untold.push((open.operation, settlement.clone()));
                    }
                }
            }
            Event::OperationStarted(started) => self.open_mut(started.operation)?.send(started),
            Event::OperationAttempted(attempted) => self
                .open_mut(attempted.operation)?
                .attempts
                .go_on(attempted),
            Event::RunCut(made) => self.apply_cut(made)?,
            Event::OperationContinued(continuation) => self.apply_continued(continuation)?,
            Event::OperationAnswered(answer) => {
                let open = self.open_mut(answer.operation)?;
                open.pause = Pause::None;
                open.answer = Some(answer.kept.clone());
            }
            Event::ApprovalAnswered(answered) => {
                let open = self.open_mut(answered.operation)?;
                open.pause = if answered.approved {
                    Pause::None
                } else {
                    Pause::Declined
                };
            }
            Event::RunEnded(ended) => self.apply_ended(ended)?,
            Event::RunStarted(_) => return Err(Corrupt("it starts twice".to_owned())),
            // A plugin's own events are in the stream without meaning for the run; the others are
            // in other streams.
            _ => {}
        }
        self.note_wait(event);
        Ok(())
    }

    fn apply_stepped(&mut self, stepped: &RunStepped) -> Result<(), Corrupt> {
        if stepped.step != self.step {
            return Err(Corrupt(format!(
                "step {} follows step {}",
                stepped.step, self.step
            )));
        }
        if self.is_progress(stepped) {
            self.recoveries = 0;
        }
        self.deferred_over = match &stepped.decision {
            Decision::Fail { .. } => self.model_failure(&stepped.settled).map(str::to_owned),
            Decision::Wait(_) | Decision::Reply { .. } | Decision::Complete { .. } => None,
        };
        for settlement in &stepped.settled {
            self.close(settlement)?;
        }
        self.untold.clear();
        self.untold_stopped.clear();
        self.messages.extend(
            stepped
                .heard
                .iter()
                .chain(&stepped.said)
                .cloned()
                .map(Arc::new),
        );
        for settlement in &stepped.stopped {
            let open = self.close(settlement)?;
            if open.within.is_none() {
                self.untold_stopped.push(News::Settled {
                    key: open.operation.key,
                    outcome: settlement.outcome.clone(),
                });
            }
        }
        for operation in &stepped.started {
            self.start(operation, stepped.time);
        }
        self.claimed.extend(&stepped.claimed);
        // The reply of a compaction answers nobody: until the run ends, it has no effect.
        if self.started.compacts.is_none() && stepped.decision.replies() {
            self.answered = self.claimed.len();
        }
        self.hops = self.hops.max(stepped.hops);
        self.untrusted |= stepped.history_untrusted;
        self.memo.clone_from(&stepped.memo);
        for effect in &stepped.effects {
            match effect {
                Effect::SessionState { state } => {
                    self.session_state = Digest::of(state.to_string().as_bytes())
                }
                Effect::Schedule { .. } => self.shares = true,
                _ => {}
            }
        }
        self.component = stepped.basis.documents.component;
        self.step += 1;
        self.failed_attempts = 0;
        (self.wait, self.deferred) = match &stepped.decision {
            Decision::Wait(Wait { until, hear, .. }) => (Some((*until, *hear)), None),
            // Decided while messages were waiting: the run continues with them at once.
            decision => (Some((Until::Any, decision.hears())), Some(decision.clone())),
        };
        Ok(())
    }

    fn apply_cut(&mut self, made: &RunCut) -> Result<(), Corrupt> {
        let open = self.open_mut(made.operation)?;
        open.cut = Some(Box::new(OpenCut {
            cut: made.cut.clone(),
            is_own: true,
        }));
        let model = open.operation.performer.asked_model().to_owned();
        self.cuts.insert(model, made.cut.clone());
        Ok(())
    }

    fn apply_ended(&mut self, ended: &RunEnded) -> Result<(), Corrupt> {
        for settlement in &ended.stopped {
            self.close(settlement)?;
        }
        self.messages
            .extend(ended.said.iter().cloned().map(Arc::new));
        self.open.clear();
        self.ended = Some(ended.end);
        Ok(())
    }

    fn start(&mut self, operation: &Operation, time: Timestamp) {
        self.keys.insert(operation.key.clone());
        if let Performer::Client { action } = &operation.performer {
            self.asked.insert(
                operation.key.clone(),
                ClientQuestion {
                    action: action.clone(),
                    at: time,
                    answered_at: None,
                },
            );
        }
        self.begin_operation(operation, time);
    }

    fn begin_operation(&mut self, operation: &Operation, time: Timestamp) {
        self.spending.tool_calls += u32::from(account::is_call(&operation.performer));
        self.note_call(operation, time);
        self.shares |= !operation.performer.stays_here() && account::is_call(&operation.performer);
        self.replied |= matches!(operation.performer, Performer::Reply { .. });
        let pause = if operation.approval.is_some() {
            Pause::Approving
        } else {
            Pause::None
        };
        let cut = matches!(operation.performer, Performer::Model { .. })
            .then(|| self.cuts.get(operation.performer.asked_model()))
            .flatten()
            .map(|cut| {
                Box::new(OpenCut {
                    cut: cut.clone(),
                    is_own: false,
                })
            });
        let open = Open {
            operation: operation.clone(),
            segment: 0,
            state: None,
            pause,
            answer: None,
            sent: None,
            attempts: Attempts::default(),
            cut,
            within: None,
            calling: None,
            called: Vec::new(),
        };
        self.open.insert(operation.id, open);
    }

    fn close(&mut self, settlement: &Settlement) -> Result<Open, Corrupt> {
        let open = self.open.remove(&settlement.operation).ok_or_else(|| {
            Corrupt(format!(
                "operation {} settles and is not open",
                settlement.operation
            ))
        })?;
        self.tell_line(&open, settlement);
        self.shown.extend(settlement.blobs());
        self.untrusted |= settlement.is_untrusted();
        if let (Some(asked), OperationOutcome::Value { .. } | OperationOutcome::Parts { .. }) =
            (self.asked.get_mut(&open.operation.key), &settlement.outcome)
        {
            asked.answered_at = Some(settlement.time);
        }
        self.spending.charge(&open, settlement);
        self.note_outcome(settlement);
        // With a cut, a summary may be among its attempts. The call itself is the last.
        let is_cut = open.cut.as_ref().is_some_and(|cut| cut.is_own);
        let is_failed = matches!(settlement.outcome, OperationOutcome::Failed { .. });
        let last = settlement.attempts.len().saturating_sub(1);
        for (place, attempt) in settlement.attempts.iter().enumerate() {
            let is_of_call = !is_cut || (place == last && !is_failed);
            if let (Performer::Model { request, .. }, Some(usage), None) =
                (&open.operation.performer, attempt.usage, &attempt.error)
                && request.context == Context::Whole
                && is_of_call
            {
                self.newest_call = Some(NewestCall {
                    model: request.model.clone(),
                    usage,
                });
            }
            if attempt.error.is_none() && !self.models.contains(&attempt.model) {
                self.models.push(attempt.model.clone());
            }
        }
        Ok(open)
    }

    fn open_mut(&mut self, id: OperationId) -> Result<&mut Open, Corrupt> {
        self.open
            .get_mut(&id)
            .ok_or_else(|| Corrupt(format!("operation {id} is not open")))
    }

    /// The last message of the thread; 0 in an empty one.
    #[must_use]
    pub fn head(&self) -> MessageId {
        self.messages
            .last()
            .map_or(self.started.base_message, |message| message.id)
    }

    /// The open operation under a guest's key.
    #[must_use]
    pub fn by_key(&self, key: &str) -> Option<&Open> {
        self.open.values().find(|open| open.operation.key == key)
    }

    /// The message of this id.
    #[must_use]
    pub fn message(&self, id: MessageId) -> Option<&Message> {
        let first = self.messages.first()?.id;
        self.messages
            .get(usize::try_from(id.checked_sub(first)?).ok()?)
            .map(Arc::as_ref)
    }

    /// Calls of its assistant messages that have no result yet: message, index, the provider's id,
    /// name.
    #[must_use]
    pub fn unpaired(&self) -> Vec<(MessageId, u32, String, String)> {
        unpaired(self.messages.iter().map(Arc::as_ref))
    }

    /// Returns whether a model or a tool works, or should.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.open.values().any(Open::is_active)
    }
}

/// Calls without results among some messages.
#[must_use]
pub fn unpaired<'a>(
    messages: impl IntoIterator<Item = &'a Message> + Clone,
) -> Vec<(MessageId, u32, String, String)> {
    let answers = messages
        .clone()
        .into_iter()
        .filter_map(|message| message.answers.as_ref());
    let answered: BTreeSet<(MessageId, u32)> = answers
        .map(|answers| (answers.message, answers.index))
        .collect();
    messages
        .into_iter()
        .flat_map(|message| {
            message.calls().map(move |(index, call_id, name, _)| {
                (message.id, index, call_id.to_owned(), name.to_owned())
            })
        })
        .filter(|(message, index, ..)| !answered.contains(&(*message, *index)))
        .collect()
}

// The mark *untrusted*: content that rests on anything from outside the user's and the operator's
// control.
//
// The result of a component's tool is from outside. The mark applies to the whole run, from the
// first such content on. It is unknown which parts of a model's text rest on which parts of its
// input. Three more groups of turns get the mark: every later turn of the same thread, which shows
// the content again; every turn of an agent whose memory has it; and every turn that is shown the
// end of a session whose thread has it. Everything that leaves a marked run is marked at its
// destination: handed-over work, replies, late replies, reminders, notes, an agent's memories, and
// the results of a recall.
//
// An agent's text that follows from an external program's answer counts as that program's, and has
// the mark itself. A mark is never removed by a message; an empty thread has none.

impl Run {
    /// Returns whether any of its input or its thread rests on content from outside.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.untrusted
            || self.started.untrusted
            || is_any_marked(self.messages.iter().map(AsRef::as_ref))
    }

    /// Returns the same, including what a step takes in.
    #[must_use]
    pub fn is_untrusted_with(&self, intake: &Intake) -> bool {
        self.is_untrusted()
            || intake.history_untrusted
            || is_any_marked(&intake.heard)
            || intake.settled.iter().any(Settlement::is_untrusted)
    }

    /// Returns whether a step's input has an answer by an external program.
    fn hears_from_elsewhere(&self, intake: &Intake) -> bool {
        self.to_hear(&intake.settled)
            .filter(|(_, settlement)| settlement.is_untrusted())
            .any(|(operation, _)| matches!(operation.performer, Performer::External { .. }))
    }
}

impl Settlement {
    /// Returns whether it contains content that rests on the outside.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.untrusted || self.result.as_ref().is_some_and(|result| result.untrusted)
    }

    /// Adds the mark if `untrusted` is true.
    #[must_use]
    pub fn marked(mut self, untrusted: bool) -> Self {
        self.untrusted |= untrusted;
        if let Some(result) = &mut self.result {
            result.untrusted |= untrusted;
        }
        self
    }
}

/// Returns whether any of these messages has the mark.
fn is_any_marked<'a>(messages: impl IntoIterator<Item = &'a Message>) -> bool {
    messages.into_iter().any(|message| message.untrusted)
}

#[cfg(test)]
mod tests;
