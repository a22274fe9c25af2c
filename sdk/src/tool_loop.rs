//! The tool-calling loop: what an agent does unless it says otherwise.
//!
//! It needs no memo. Every key follows from the place in the thread at which the operation was
//! started, and the thread only grows, so a key is never used twice in a turn: `model-<head>` for
//! asking the model, `call-<message>-<index>` for a call that it made.

use crate::agent::Agent;
use crate::content::MessageId;
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
/// be asked (the turn fails) · the model made calls (they are carried out) · the session began
/// ([`Agent::on_opened`]) · the user sent a message ([`Agent::on_said`]) · the model answered
/// ([`Agent::on_answer`]) · calls ended (the model is asked again). News that is passed over stands
/// in the thread, where the model sees it.
pub fn step<A: Agent + ?Sized>(agent: &A, turn: Turn<'_>, news: &[News]) -> Step {
    let mut own: Vec<Settlement> = Vec::new();
    let mut said: Vec<MessageId> = Vec::new();
    let mut opened = false;
    let mut answer = None;
    let mut last_call = None;
    let mut failure = None;
    for item in news {
        match item {
            News::Opened => opened = true,
            News::Said(messages) => said.extend(messages),
            News::Settled(settlement) => match (loop_key(&settlement.key), &settlement.outcome) {
                (None, _) => own.push(settlement.clone()),
                (Some(LoopKey::Model), Outcome::Message(message)) => answer = Some(*message),
                (Some(LoopKey::Model), outcome) => failure = Some(outcome),
                (Some(LoopKey::Call(message, index)), _) => {
                    last_call = last_call.max(Some((message, index)))
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
    let (message, from) = match (answer, last_call) {
        (Some(message), _) => (message, 0),
        (None, Some((message, index))) => (message, index.saturating_add(1)),
        (None, None) => (0, 0),
    };
    if let Some(step) = carry_out_calls(turn, message, from) {
        return step;
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
    let mut request = agent.model(turn);
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

/// Starts the calls that the model made in a message, from one index on. Starts as many as may run
/// at once; none when there are no such calls or no call is left to the turn. The host pairs calls
/// that were never started with a result that says so.
#[must_use]
pub fn carry_out_calls(turn: Turn<'_>, message: MessageId, from: u32) -> Option<Step> {
    let said = turn.message(message)?;
    let room = turn.left().tool_calls.min(CALLS_AT_ONCE_MAX);
    let calls = said
        .calls()
        .map(|call| call.index)
        .filter(|index| *index >= from)
        .take(room as usize);
    let operations: Vec<Operation> = calls
        .map(|index| Operation::call_of_model(format!("call-{message}-{index}"), message, index))
        .collect();
    if operations.is_empty() {
        None
    } else {
        Some(Step::start(operations))
    }
}

fn has_room_for_a_round(left: LimitsLeft) -> bool {
    left.steps >= ROUND_STEPS && left.tool_calls > 0
}

/// A key of the loop's own.
enum LoopKey {
    Model,
    Call(MessageId, u32),
}

fn loop_key(key: &str) -> Option<LoopKey> {
    if let Some(head) = key.strip_prefix("model-") {
        return head.parse::<MessageId>().ok().map(|_| LoopKey::Model);
    }
    let (message, index) = key.strip_prefix("call-")?.split_once('-')?;
    Some(LoopKey::Call(message.parse().ok()?, index.parse().ok()?))
}

#[cfg(test)]
mod tests;
