//! The consequences of an agent's decision: the step's event, and the events that its effects add.

use super::intake::Intake;
use super::settle::stopped;
use super::{Run, unpaired};
use crate::agent::memory::{OfWhom, of_whom};
use crate::agent::role::Role as AgentRole;
use crate::approval::Approval;
use crate::basis::Basis;
use crate::budget::Spent;
use crate::digest::{Digest, Salt};
use crate::event::{
    Event, InputAccepted, ItemRecorded, NoteRemembered, PluginEmitted, PreferencesUpdated,
    RunStarted, RunStepped, Source,
};
use crate::id::{InputId, OperationId, Stream};
use crate::limits;
use crate::message::{Answers, Draft, Message, Part, Role};
use crate::operation::{CallUsage, Operation, Performer, Settlement};
use crate::queue::SKIPPED;
use crate::step::{Call, Decision, Effect, News, Outcome, StepResult, Wait, Work};
use crate::time::Timestamp;
use crate::tool::EffectClass;
use serde_json::Value;
use std::sync::Arc;

/// The result of a call that the agent did not make.
pub(super) const PASSED_OVER: &str = "Skipped.";

/// A decision that cannot be carried out. It is a bug in the agent, reported in the guest's own
/// terms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unacceptable(pub String);

/// Everything that a request of the guest's became, once grants, peers and limits were looked up.
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
    /// The amount set aside for it.
    pub reserved: Spent,
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
    /// The operations that its requests became, in order.
    pub resolved: Vec<Resolved>,
    /// The running hash over what the guest read.
    pub answers: Digest,
    /// Resources that the call used.
    pub usage: CallUsage,
    /// Time of the decision.
    pub time: Timestamp,
    /// The event's salt.
    pub salt: Salt,
}

/// Checks what can be checked of a decision before anything is looked up.
///
/// # Errors
/// What the agent has to mend.
pub fn check(run: &Run, intake: &Intake, result: &StepResult) -> Result<(), Unacceptable> {
    let no = |text: String| Err(Unacceptable(text));
    if result.effects.len() > limits::EFFECTS_MAX {
        return no(format!(
            "effects: {} of them; at most {} are allowed",
            result.effects.len(),
            limits::EFFECTS_MAX
        ));
    }
    check_parts(run, intake, result)?;
    for effect in &result.effects {
        if let Effect::RecordItem {
            asked: Some(key), ..
        } = effect
            && !run.asked.contains_key(key)
        {
            return no(format!(
                "effects: record-item: no client operation of this turn was started under `{key}`"
            ));
        }
    }
    let Decision::Wait(wait) = &result.decision else {
        return Ok(());
    };
    let mut keys = run.keys.clone();
    for request in &wait.start {
        if request.key.is_empty() || request.key.len() > limits::KEY_BYTES_MAX {
            return no(format!(
                "start: the key `{}` is not 1 to {} bytes long",
                request.key,
                limits::KEY_BYTES_MAX
            ));
        }
        if !keys.insert(request.key.clone()) {
            return no(format!(
                "start: the key `{}` was used in this turn before; choose another",
                request.key
            ));
        }
        check_call(run, intake, &request.work)?;
    }
    let settled = |id: &OperationId| {
        intake
            .settled
            .iter()
            .any(|settlement| settlement.operation == *id)
    };
    let open_after = run
        .open
        .values()
        .filter(|open| !settled(&open.operation.id))
        .count();
    for key in &wait.cancel {
        if !run.keys.contains(key) {
            return no(format!(
                "cancel: no operation was ever started under `{key}`"
            ));
        }
    }
    let cancelled = wait
        .cancel
        .iter()
        .filter(|key| {
            run.by_key(key)
                .is_some_and(|open| !settled(&open.operation.id))
        })
        .count();
    if open_after + wait.start.len() == 0 && cancelled == 0 && !wait.hear {
        return no(
            "wait: nothing is open and `hear` is not set, so nothing could ever wake this turn"
                .to_owned(),
        );
    }
    let open_max = usize::try_from(run.started.limits.open_operations_max).unwrap_or(usize::MAX);
    if open_after + wait.start.len() > open_max {
        return no(format!(
            "start: more than {open_max} operations would be open"
        ));
    }
    Ok(())
}

/// Checks that an agent says only text, or blobs that its conversation has shown it. Writing down a
/// digest gives no access to the blob.
fn check_parts(run: &Run, intake: &Intake, result: &StepResult) -> Result<(), Unacceptable> {
    let starts = match &result.decision {
        Decision::Wait(wait) => wait.start.as_slice(),
        Decision::Reply { .. } | Decision::Complete { .. } | Decision::Fail { .. } => &[],
    };
    let started = starts.iter().flat_map(|request| match &request.work {
        Work::Agent(dispatch) => dispatch.content.as_slice(),
        Work::Model(model) => model.also.as_slice(),
        _ => &[],
    });
    let effects = result.effects.iter().flat_map(|effect| match effect {
        Effect::Say { parts } => parts.as_slice(),
        _ => &[],
    });
    let reply = match &result.decision {
        Decision::Reply { parts } => parts.as_slice(),
        Decision::Wait(_) | Decision::Complete { .. } | Decision::Fail { .. } => &[],
    };
    let now_shown: Vec<Digest> = intake.settled.iter().flat_map(Settlement::blobs).collect();
    let heard = || {
        run.messages
            .iter()
            .map(Arc::as_ref)
            .chain(&intake.heard)
            .flat_map(|message| &message.parts)
    };
    for part in started.chain(effects).chain(reply) {
        match part {
            Part::Text { .. } => {}
            Part::Blob { digest, .. }
                if run.shown.contains(digest)
                    || now_shown.contains(digest)
                    || heard().any(|there| there == part) => {}
            Part::Blob { digest, .. } => {
                return Err(Unacceptable(format!(
                    "parts: the blob {} is not one that this turn was shown",
                    digest.reference()
                )));
            }
            Part::Call { .. } | Part::Opaque { .. } => {
                return Err(Unacceptable(
                    "parts: calls and opaque parts are written by models only".to_owned(),
                ));
            }
        }
    }
    Ok(())
}

fn check_call(run: &Run, intake: &Intake, work: &Work) -> Result<(), Unacceptable> {
    let Work::Tool {
        call: Call::OfModel { message, index },
    } = work
    else {
        return Ok(());
    };
    if find_call(run, intake, *message, *index).is_some() {
        return Ok(());
    }
    Err(Unacceptable(format!(
        "start: message {message} of this turn has no call {index}"
    )))
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

/// The step's event. [`check`] has passed.
#[must_use]
pub fn decide(run: &Run, taken: Taken) -> RunStepped {
    let mut started = operations(run, &taken);
    let mut said = Saying {
        next: taken.intake.heard.last().map_or(run.head(), |m| m.id) + 1,
        salt: taken.salt,
        messages: Vec::new(),
    };
    let settled = |id: OperationId| {
        taken
            .intake
            .settled
            .iter()
            .any(|settlement| settlement.operation == id)
    };
    let ends = !matches!(taken.result.decision, Decision::Wait(_));
    let cancel = |key: &str| match &taken.result.decision {
        Decision::Wait(Wait { cancel, .. }) => cancel.iter().any(|cancelled| cancelled == key),
        _ => true,
    };
    let mut stops: Vec<Settlement> = run
        .open
        .values()
        .filter(|open| !settled(open.operation.id) && cancel(&open.operation.key))
        .map(|open| stopped(open, taken.time))
        .collect();
    let history: Vec<&Message> = run
        .messages
        .iter()
        .map(Arc::as_ref)
        .chain(&taken.intake.heard)
        .collect();
    said.place_results(&history, &mut stops);
    if ends
        || started
            .iter()
            .any(|operation| matches!(operation.performer, Performer::Model { .. }))
    {
        let why = if steers(run, &taken.intake) {
            SKIPPED
        } else {
            PASSED_OVER
        };
        said.pair_what_is_left(&history, run, &started, why);
    }
    for effect in &taken.result.effects {
        if let Effect::Say { parts } = effect {
            said.place(Draft {
                role: Role::Assistant,
                parts: parts.clone(),
                origin: "agent".into(),
                untrusted: false,
                answers: None,
            });
        }
    }
    match &taken.result.decision {
        Decision::Reply { parts } if !parts.is_empty() => {
            said.place(Draft {
                role: Role::Assistant,
                parts: parts.clone(),
                origin: "agent".into(),
                untrusted: false,
                answers: None,
            });
        }
        Decision::Fail { reason } => {
            said.place(Draft::text(
                Role::Notice,
                "host",
                format!("The turn failed: {reason}"),
            ));
        }
        Decision::Reply { .. } | Decision::Wait(_) | Decision::Complete { .. } => {}
    }
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
        decision: taken.result.decision,
        effects: taken.result.effects,
        memo: taken.result.memo,
        said: said.messages,
        started,
        stopped: stops,
        answers: taken.answers,
        usage: taken.usage,
        time: taken.time,
    }
}

/// Returns whether messages have joined a run that is under way. Calls of the model's that the run
/// then drops have not begun because of them. A call that runs is never cancelled for it.
fn steers(run: &Run, intake: &Intake) -> bool {
    run.step > 0
        && intake
            .news
            .iter()
            .any(|news| matches!(news, News::Said { .. }))
}

/// Messages that enter the thread with a decision.
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

    /// Puts the results of stopped operations into the thread, unless their call has one already.
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
                if matches!(settlement.outcome, Outcome::Message { .. }) {
                    settlement.outcome = Outcome::Message { id };
                }
            }
        }
    }

    /// Gives every call that has no result a synthetic one: a model must never see a call without.
    /// `why` is that of a call that was not made.
    pub(super) fn pair_what_is_left(
        &mut self,
        history: &[&Message],
        run: &Run,
        started: &[Operation],
        why: &str,
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
                None => why.to_owned(),
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
                        name: name.to_owned(),
                        failed: false,
                    })
                }
                _ => None,
            };
            let shown = matches!(&request.work, Work::Model(model) if model.audience == crate::step::Audience::User);
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

/// Returns the events that a step's effects add in other streams and its own, in order. `role` is
/// that of the run's user with the agent. It decides for whom the agent remembers what it learned.
/// `new_input` makes an id for each reminder.
pub fn consequences(
    run: &Run,
    effects: &[Effect],
    role: Option<AgentRole>,
    untrusted: bool,
    time: Timestamp,
    new_input: &mut dyn FnMut() -> InputId,
) -> Vec<(Stream, Event)> {
    let (agent, session) = (run.started.agent, run.started.session);
    let mut events = Vec::new();
    for (place, effect) in effects.iter().enumerate() {
        match effect {
            Effect::Prefer { preferences } => events.extend(preferred(
                run,
                preferences,
                of_whom(role, true),
                untrusted,
                time,
            )),
            Effect::PreferForUser { preferences } => events.extend(preferred(
                run,
                preferences,
                of_whom(role, false),
                untrusted,
                time,
            )),
            Effect::RecordItem {
                prompt,
                response,
                evaluation,
                asked,
            } => {
                let asked = asked.as_ref().and_then(|key| run.asked.get(key));
                let item = ItemRecorded {
                    session,
                    item: ItemRecorded::name(run.started.run, run.step, place),
                    sequence: 0,
                    prompt: prompt.clone(),
                    response: response.clone(),
                    imported: false,
                    evaluation: evaluation.clone(),
                    client_action: asked.map(|asked| asked.action.clone()),
                    asked_at: asked.map(|asked| asked.at),
                    answered_at: asked.and_then(|asked| asked.answered_at),
                    time,
                };
                events.push((Stream::Session(session), Event::ItemRecorded(item)));
            }
            Effect::Remember { note } => {
                let note = NoteRemembered {
                    agent,
                    session,
                    note: note.clone(),
                    untrusted,
                    time,
                };
                events.push((Stream::Agent(agent), Event::NoteRemembered(note)));
            }
            Effect::Emit { name, data } => {
                let name = format!("plugin.{}.{name}", run.started.definition);
                events.push((
                    Stream::Run(run.started.run),
                    Event::PluginEmitted(PluginEmitted {
                        name,
                        data: data.clone(),
                    }),
                ));
            }
            Effect::Schedule { after_ms, content } => {
                let due = time.plus_ms((*after_ms).min(limits::TIMER_MS_MAX));
                let message = Some(Draft {
                    untrusted,
                    ..Draft::text(Role::User, "reminder", content.clone())
                });
                let RunStarted {
                    depth,
                    spawn_depth,
                    denies,
                    permissions,
                    deadline,
                    ..
                } = &run.started;
                let source = Source::Reminder {
                    due,
                    depth: *depth,
                    spawn_depth: *spawn_depth,
                    hops: run.hops,
                    denies: denies.clone(),
                    permissions: permissions.clone(),
                    accounts: run.started.accounts(),
                    deadline: *deadline,
                };
                let user_id = Some(run.started.user_id.clone());
                let input = InputAccepted {
                    input: new_input(),
                    session,
                    source,
                    user_id,
                    message,
                    model: None,
                    waits_for: None,
                    priority: None,
                    time,
                };
                events.push((Stream::Session(session), Event::InputAccepted(input)));
            }
            // Both are part of the step itself.
            Effect::Say { .. } | Effect::SessionState { .. } => {}
        }
    }
    events
}

fn preferred(
    run: &Run,
    preferences: &Value,
    of: Option<OfWhom>,
    untrusted: bool,
    time: Timestamp,
) -> Option<(Stream, Event)> {
    let agent = run.started.agent;
    let user_id = match of? {
        OfWhom::Everybody => None,
        OfWhom::User => Some(run.started.user_id.clone()),
    };
    let updated = PreferencesUpdated {
        agent,
        preferences: preferences.clone(),
        user_id,
        untrusted,
        updated_at: time,
    };
    Some((Stream::Agent(agent), Event::PreferencesUpdated(updated)))
}
