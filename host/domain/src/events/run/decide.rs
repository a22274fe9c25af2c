//! An agent's decision: the event of its step, with all its consequences in the thread.

use super::delegated::{self, Unmade, passed_over};
use super::intake::Intake;
use super::settle::stopped;
use super::{Open, Run, unpaired};
use crate::access::tool::EffectClass;
use crate::events::event::RunStepped;
use crate::thread::message::{Answers, Draft, Message, Part, Role};
use crate::values::digest::{Digest, Salt};
use crate::values::id::OperationId;
use crate::values::time::Timestamp;
use crate::work::approval::Approval;
use crate::work::basis::Basis;
use crate::work::budget::Amount;
use crate::work::operation::{CallUsage, Operation, Performer, Settlement};
use crate::work::queue::SKIPPED;
use crate::work::step::{
    Call, Decision, Effect, Failure, News, OperationOutcome, StepResult, Wait, Work,
};
use std::sync::Arc;

/// The result of a call that the agent did not make.
pub(super) const PASSED_OVER: &str = "Skipped.";
/// The limit on the calls of a turn.
const CALLS_LIMIT: &str = "toolCallsMax";

/// The effects of a guest's requests, after grants, peers and limits were looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The performer of the operation.
    pub performer: Performer,
    /// The effect of running it again.
    pub effect: EffectClass,
    /// Time limit of one segment, in milliseconds.
    pub time_limit_ms: Option<u64>,
    /// Time at which it ends as timed out.
    pub deadline: Option<Timestamp>,
    /// The amount reserved for it.
    pub reserved: Amount,
    /// The approval that it first needs from a user.
    pub approval: Option<Approval>,
}

/// A step that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// The basis of the decision.
    pub basis: Basis,
    /// The intake of the step.
    pub intake: Intake,
    /// The guest's result.
    pub result: StepResult,
    /// The resolved operations of its requests, in order.
    pub resolved: Vec<Resolved>,
    /// The running hash over the guest's reads.
    pub answers: Digest,
    /// Resources that the call used.
    pub usage: CallUsage,
    /// Time of the decision.
    pub time: Timestamp,
    /// The event's salt.
    pub salt: Salt,
}

/// A call that the model made in this turn: the provider's id, name and arguments.
#[must_use]
pub fn find_call<'a>(
    run: &'a Run,
    intake: &'a Intake,
    message: u64,
    index: u32,
) -> Option<(&'a str, &'a str, &'a str)> {
    let message = run
        .message(message)
        .or_else(|| intake.heard.iter().find(|heard| heard.id == message))?;
    message
        .calls()
        .find(|(at, ..)| *at == index)
        .map(|(_, call_id, name, arguments)| (call_id, name, arguments))
}

/// The arguments of a call among some messages; empty text if the call is missing.
fn arguments_of<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    message: u64,
    index: u32,
) -> &'a str {
    messages
        .into_iter()
        .find(|one| one.id == message)
        .and_then(|one| one.calls().find(|(at, ..)| *at == index))
        .map_or("", |(_, _, _, arguments)| arguments)
}

/// The step's event. [`check`](super::check::check) has passed.
#[must_use]
pub fn decide(run: &Run, taken: Taken) -> RunStepped {
    let mut started = operations(run, &taken);
    let mut said = Saying {
        next: taken.intake.heard.last().map_or(run.head(), |m| m.id) + 1,
        salt: taken.salt,
        messages: Vec::new(),
    };
    let mut stops = stops(run, &taken);
    let history: Vec<&Message> = run
        .messages
        .iter()
        .map(Arc::as_ref)
        .chain(&taken.intake.heard)
        .collect();
    said.place_results(&history, &mut stops);
    if !matches!(taken.result.decision, Decision::Wait(_))
        || started
            .iter()
            .any(|operation| matches!(operation.performer, Performer::Model { .. }))
    {
        let why = unmade(run, &taken);
        said.pair_what_is_left(&history, run, &started, &why);
    }
    said.place_own(run, &taken);
    let head = said.next - 1;
    for operation in &mut started {
        if let Performer::Model { through, .. } = &mut operation.performer {
            *through = head;
        }
    }
    RunStepped {
        run: run.started.run,
        step: run.step,
        basis: taken.basis,
        settled: taken.intake.settled,
        claimed: taken.intake.claimed,
        hops: taken.intake.hops,
        news: taken.intake.news,
        heard: taken.intake.heard,
        history_untrusted: taken.intake.history_untrusted,
        decision: taken.result.decision,
        effects: taken.result.effects,
        memo: taken.result.memo,
        said: said.messages,
        started,
        stopped: stops,
        answers: taken.answers,
        usage: taken.usage,
        ledger: Vec::new(),
        time: taken.time,
    }
}

/// Returns the settlements of the operations that the decision stops: the cancelled ones, or all
/// open ones if it ends the turn.
fn stops(run: &Run, taken: &Taken) -> Vec<Settlement> {
    let settled = |id: OperationId| {
        taken
            .intake
            .settled
            .iter()
            .any(|settlement| settlement.operation == id)
    };
    let cancel = |key: &str| match &taken.result.decision {
        Decision::Wait(Wait { cancel, .. }) => cancel.iter().any(|cancelled| cancelled == key),
        _ => true,
    };
    // Cancelling a command line also stops its present call.
    let is_cancelled = |open: &Open| match &open.within {
        None => cancel(&open.operation.key),
        Some(within) => run
            .open
            .get(&within.line)
            .is_none_or(|line| settled(line.operation.id) || cancel(&line.operation.key)),
    };
    run.open
        .values()
        .filter(|open| !settled(open.operation.id) && is_cancelled(open))
        .map(|open| stopped(open, taken.time))
        .collect()
}

/// Returns whether messages have joined an open run. The model's calls that the run then drops have
/// not begun because of them. A running call is never cancelled for it.
fn steers(run: &Run, intake: &Intake) -> bool {
    run.step > 0
        && intake
            .news
            .iter()
            .any(|news| matches!(news, News::Said { .. }))
}

/// Returns why the model's calls without a result were not made. An agent that continues, and was
/// shown that no calls are left, could make none.
fn unmade(run: &Run, taken: &Taken) -> Unmade {
    if steers(run, &taken.intake) {
        return Unmade::PassedOver(SKIPPED);
    }
    let goes_on = matches!(taken.result.decision, Decision::Wait(_));
    if !goes_on || run.limits_left().tool_calls > 0 {
        return Unmade::PassedOver(PASSED_OVER);
    }
    let settled = &taken.intake.settled;
    let reported = format!("no tool calls are left of this turn's limit ({CALLS_LIMIT})");
    let failure = Failure::lasting("limit-reached", reported).with("limit", CALLS_LIMIT);
    // Handed-over work may return some of its share.
    let retryable =
        run.available_after(settled).calls > 0 || run.lent_after(settled).has_any_of(CALLS_LIMIT);
    Unmade::Limited(Failure {
        retryable,
        ..failure
    })
}

/// Messages that a decision adds to the thread.
pub(super) struct Saying {
    pub(super) next: u64,
    pub(super) salt: Salt,
    pub(super) messages: Vec<Message>,
}

impl Saying {
    pub(super) fn place(&mut self, draft: Draft) -> u64 {
        let id = self.next;
        self.next += 1;
        self.messages.push(draft.at(id, self.salt));
        id
    }

    /// Puts the agent's own messages into the thread: during work, and at the end.
    fn place_own(&mut self, run: &Run, taken: &Taken) {
        let result = &taken.result;
        let untrusted = run.hears_from_elsewhere(&taken.intake);
        let own = |parts: &[Part]| Draft {
            role: Role::Assistant,
            parts: parts.to_vec(),
            origin: "agent".into(),
            untrusted,
            speaker: None,
            answers: None,
        };
        for effect in &result.effects {
            if let Effect::Say { parts } = effect {
                self.place(own(parts));
            }
        }
        match &result.decision {
            Decision::Reply { parts } if !parts.is_empty() => {
                self.place(own(parts));
            }
            Decision::Fail { reason } => {
                let reason = run.given_up(reason, &taken.intake.settled);
                let text = format!("The turn failed: {reason}");
                self.place(Draft::text(Role::Notice, "host", text));
            }
            _ => {}
        }
    }

    /// Puts the results of stopped operations into the thread, unless their calls have results
    /// already.
    pub(super) fn place_results(&mut self, history: &[&Message], stops: &mut [Settlement]) {
        let open = unpaired(history.iter().copied());
        for settlement in stops {
            let Some(draft) = settlement.result.take() else {
                continue;
            };
            let wanted = draft.answers.as_ref().is_some_and(|a| {
                open.iter()
                    .any(|(m, i, ..)| (*m, *i) == (a.message, a.index))
            });
            if wanted {
                let id = self.place(draft);
                if matches!(settlement.outcome, OperationOutcome::Message { .. }) {
                    settlement.outcome = OperationOutcome::Message { id };
                }
            }
        }
    }

    /// Gives every call without a result a synthetic one: a model must never see a call without a
    /// result. `why` is the reason of a call that was not made.
    pub(super) fn pair_what_is_left(
        &mut self,
        history: &[&Message],
        run: &Run,
        started: &[Operation],
        why: &Unmade,
    ) {
        let unpaired = unpaired(history.iter().copied().chain(&self.messages));
        for (message, index, call_id, name) in unpaired {
            let mut operations = run.open.values().map(|open| &open.operation).chain(started);
            let running = operations.find(|operation| {
                operation
                    .answers
                    .as_ref()
                    .is_some_and(|answers| (answers.message, answers.index) == (message, index))
            });
            let text = match running {
                Some(operation) => format!(
                    "Still running, task {}. Its result will follow.",
                    operation.id.0.short()
                ),
                None => {
                    let all = history.iter().copied().chain(&self.messages);
                    passed_over(&name, arguments_of(all, message, index), why)
                }
            };
            let answers = Some(Answers {
                message,
                index,
                call_id,
                name,
                failed: running.is_none(),
            });
            let draft = Draft {
                role: Role::Tool,
                parts: vec![Part::text(text)],
                origin: "host".into(),
                untrusted: false,
                speaker: None,
                answers,
            };
            self.place(draft);
        }
    }
}

fn operations(run: &Run, taken: &Taken) -> Vec<Operation> {
    let Decision::Wait(wait) = &taken.result.decision else {
        return Vec::new();
    };
    let starts = wait.start.iter().zip(&taken.resolved).zip(0_u32..);
    starts
        .map(|((request, resolved), place)| {
            let answers = match &request.work {
                Work::Tool { call: Call::OfModel { message, index } } => {
                    find_call(run, &taken.intake, *message, *index).map(|(call_id, name, _)| Answers {
                        message: *message,
                        index: *index,
                        call_id: call_id.to_owned(),
                        name: delegated::tool(&resolved.performer).unwrap_or(name).to_owned(),
                        failed: false,
                    })
                }
                _ => None,
            };
            let shown = matches!(&request.work, Work::Model(model) if model.audience == crate::work::step::Audience::User);
            Operation {
                id: OperationId::mint(run.started.run, run.step, &request.key),
                key: request.key.clone(),
                step: run.step,
                place,
                performer: resolved.performer.clone(),
                effect: resolved.effect,
                time_limit_ms: resolved.time_limit_ms,
                deadline: resolved.deadline,
                in_thread: shown || answers.is_some(),
                answers,
                reserved: resolved.reserved,
                approval: resolved.approval.clone().map(Box::new),
            }
        })
        .collect()
}
