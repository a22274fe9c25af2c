//! The tool-calling loop: what an agent does unless it says otherwise.
//!
//! It needs no memo. Every key follows from the place in the thread at which the operation was
//! started, and the thread only grows, so a key is never used twice in a turn. `model-<head>` asks
//! the model, `call-<message>-<index>` makes a call of its reply, and `ask-<message>-<index>` asks
//! the user about that call. A call to which the user agreed has the last index of its batch too,
//! and so have the calls of a batch that the limits of the turn cut short.
//! An agent that starts operations itself gives them other keys.

use crate::agent::{Agent, Verdict};
use crate::content::{Message, MessageId, ModelCall};
use crate::news::{News, Outcome, Settlement};
use crate::operation::{Operation, Toolset};
use crate::step::Step;
use crate::turn::{LimitsLeft, Turn};

/// Calls of one reply that run at the same time; more run after those.
pub const CALLS_AT_ONCE_MAX: u32 = 32;
/// Steps that a further round of calls takes: start the calls, ask again, end the turn.
const ROUND_STEPS: u32 = 3;
/// The message to the model when there is no room for another round.
const LAST_WORDS: &str = "No more tools can be used in this turn. Answer now with what you know, \
                          and say what is missing.";

/// One step of the loop. It makes one call of an agent's method or one move of the loop, for the
/// first of these that happened: own operations ended ([`Agent::on_settled`]) · the model could not
/// be asked (the turn fails) · the model made calls ([`Agent::on_calls`] says which are made) · the
/// session began ([`Agent::on_opened`]) · the user sent a message ([`Agent::on_said`]) · the model
/// answered ([`Agent::on_answer`]) · calls ended (the model is asked again). News that is passed
/// over stands in the thread, where the model sees it.
pub fn step<A: Agent + ?Sized>(agent: &A, turn: Turn<'_>, news: &[News]) -> Step {
    let mut own: Vec<Settlement> = Vec::new();
    let mut said: Vec<MessageId> = Vec::new();
    let mut opened = false;
    let mut answer = None;
    let mut ended = Ended::default();
    let mut failure = None;
    for item in news {
        match item {
            News::Opened => opened = true,
            News::Said(messages) => said.extend(messages),
            News::Settled(settlement) => match (loop_key(&settlement.key), &settlement.outcome) {
                (None, _) => own.push(settlement.clone()),
                (Some(LoopKey::Model), Outcome::Message(message)) => answer = Some(*message),
                (Some(LoopKey::Model), outcome) => failure = Some(outcome),
                (Some(LoopKey::Call(message, index)), _) => ended.note(message, index),
                (Some(LoopKey::OfBatch(message, last)), _) => {
                    ended.note(message, last);
                    ended.is_batch = true;
                }
                (Some(LoopKey::Ask(message, index)), outcome) => {
                    ended.note(message, index);
                    ended.is_batch = true;
                    if agrees(outcome) {
                        ended.agreed.push(index);
                    }
                }
            },
        }
    }
    if !own.is_empty() {
        return agent.on_settled(turn, &own);
    }
    if let Some(outcome) = failure {
        return Step::fail(format!("the model could not be asked: {outcome}"));
    }
    if let Some(message) = answer.or(ended.message).and_then(|id| turn.message(id)) {
        let calls: Vec<ModelCall> = message.calls().cloned().collect();
        if !calls.is_empty() {
            return go_on(agent, turn, &Round { message, calls }, &ended);
        }
    }
    if opened {
        return agent.on_opened(turn);
    }
    if !said.is_empty() {
        return agent.on_said(turn, &said);
    }
    match answer {
        Some(message) => agent.on_answer(turn, message),
        None => ask_model(agent, turn),
    }
}

/// Asks the model as [`Agent::model`] says. When too little of the turn is left for another round
/// of calls, without tools.
pub fn ask_model<A: Agent + ?Sized>(agent: &A, turn: Turn<'_>) -> Step {
    ask_model_telling(agent, turn, None)
}

/// The same, with something that the model is told for this call only.
fn ask_model_telling<A: Agent + ?Sized>(
    agent: &A,
    turn: Turn<'_>,
    reported: Option<String>,
) -> Step {
    let mut request = agent.model(turn);
    if let Some(reported) = reported {
        request = request.with_also(reported);
    }
    // Providers refuse empty blocks, and an operator may have written no prompt.
    request.system.retain(|block| !block.is_empty());
    if request.tools != Toolset::None
        && !turn.tool_names().is_empty()
        && !has_room_for_a_round(turn.left())
    {
        request = request.with_tools(Toolset::None).with_also(LAST_WORDS);
    }
    let head = turn.head().unwrap_or_default();
    Step::start([Operation::model(format!("model-{head}"), request)]).until_any()
}

/// The reply whose calls are dealt with.
struct Round {
    message: Message,
    calls: Vec<ModelCall>,
}

/// The calls and questions of one reply that have ended since the last step.
#[derive(Default)]
struct Ended {
    message: Option<MessageId>,
    /// The last index, or that of the batch to which agreed calls belong.
    last: Option<u32>,
    /// True if their keys say that the loop started them, and that the batch ended there.
    is_batch: bool,
    /// Indexes of calls to which the user agreed.
    agreed: Vec<u32>,
}

impl Ended {
    fn note(&mut self, message: MessageId, index: u32) {
        self.message = Some(message);
        self.last = self.last.max(Some(index));
    }
}

/// Makes the calls to which the user agreed, or else the next ones that the agent wants made, as
/// many as may run at once. After the last of them, asks the model again.
///
/// The agent is asked each time anew. What it says follows from the thread, so it says the same.
fn go_on<A: Agent + ?Sized>(agent: &A, turn: Turn<'_>, round: &Round, ended: &Ended) -> Step {
    let verdicts = agent.on_calls(turn, &round.calls);
    let id = round.message.id;
    let room = turn.left().tool_calls as usize;
    if let Some(last) = ended.last {
        let agreed = ended.agreed.iter().take(room);
        let agreed: Vec<Operation> = agreed
            .map(|index| {
                let key = format!("call-{id}-{index}-{last}");
                Operation::call_of_model(key, id, *index)
            })
            .collect();
        if !agreed.is_empty() {
            return Step::start(agreed);
        }
    }
    let wanted: Vec<(u32, Verdict)> = verdicts.wanted(&round.calls).collect();
    // Only a batch of the loop's own is followed by another one: to what an agent has started
    // itself, the loop adds nothing.
    let goes_on = ended.last.is_none() || ended.is_batch;
    let is_next = |index: u32| goes_on && ended.last.is_none_or(|last| index > last);
    let batch: Vec<&(u32, Verdict)> = wanted
        .iter()
        .filter(|(index, _)| is_next(*index))
        .take(room.min(CALLS_AT_ONCE_MAX as usize))
        .collect();
    let last = batch.last().map_or(0, |(index, _)| *index);
    let is_final = wanted.last().is_some_and(|(index, _)| *index == last);
    let call_key = |index: u32| {
        if is_final {
            format!("call-{id}-{index}")
        } else {
            format!("call-{id}-{index}-{last}")
        }
    };
    let operations: Vec<Operation> = batch
        .into_iter()
        .map(|(index, verdict)| match verdict {
            Verdict::Ask(question) => {
                Operation::client(format!("ask-{id}-{index}"), question.clone())
            }
            Verdict::Run | Verdict::Refuse(_) => {
                Operation::call_of_model(call_key(*index), id, *index)
            }
        })
        .collect();
    if operations.is_empty() {
        ask_model_telling(
            agent,
            turn,
            verdicts.reported(turn, round.message.id, &round.calls),
        )
    } else {
        Step::start(operations)
    }
}

/// Returns whether an answer to a confirmation or an approval is a yes.
fn agrees(outcome: &Outcome) -> bool {
    let Outcome::Value(answer) = outcome else {
        return false;
    };
    ["confirmed", "approved"]
        .iter()
        .any(|field| answer[field] == true)
}

fn has_room_for_a_round(left: LimitsLeft) -> bool {
    left.steps >= ROUND_STEPS && left.tool_calls > 0
}

/// A key of the loop's own.
enum LoopKey {
    Model,
    Call(MessageId, u32),
    /// A call of a batch that ended at this index.
    OfBatch(MessageId, u32),
    Ask(MessageId, u32),
}

fn loop_key(key: &str) -> Option<LoopKey> {
    if let Some(head) = key.strip_prefix("model-") {
        return head.parse::<MessageId>().ok().map(|_| LoopKey::Model);
    }
    let place = |key: &str| {
        let (message, index) = key.split_once('-')?;
        Some((message.parse().ok()?, index.parse().ok()?))
    };
    if let Some((message, index)) = key.strip_prefix("ask-").and_then(place) {
        return Some(LoopKey::Ask(message, index));
    }
    let call = key.strip_prefix("call-")?;
    let of_batch = || {
        let (call, last) = call.rsplit_once('-')?;
        Some((place(call)?.0, last.parse().ok()?))
    };
    match place(call) {
        Some((message, index)) => Some(LoopKey::Call(message, index)),
        None => of_batch().map(|(message, last)| LoopKey::OfBatch(message, last)),
    }
}

#[cfg(test)]
mod tests;
