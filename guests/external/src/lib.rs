//! The driver of external agents: hands what is said to the program behind the agent, and says what
//! the program answers. It never asks a model.
//!
//! Messages that come while an answer is waited for are handed on too, each with an answer of its
//! own. The turn ends when all are answered, or when one of them could not be delivered or was not
//! answered in time.

use agent_host_sdk::{
    Agent, ClientAction, Description, Memo, MessageId, News, Operation, Outcome, Part, Step, Turn,
    export_agent,
};
use serde_json::{Value, json};

/// The agent.
#[derive(Debug)]
pub struct External;

/// The widget of the question that the host takes for a delivery.
const WIDGET: &str = "external_message";

impl Agent for External {
    fn describe(&self) -> Description {
        Description::new(
            "external",
            "External agent",
            "Hands messages to a program elsewhere, and says what it answers.",
        )
        .reads_memo(FORMAT)
    }

    fn step(&self, turn: Turn<'_>, news: &[News]) -> Step {
        let mut waiting = waiting(turn);
        let mut said: Vec<MessageId> = Vec::new();
        let mut answers: Vec<Part> = Vec::new();
        for one in news {
            match one {
                News::Opened => {}
                News::Said(messages) => said.extend(messages),
                News::Settled(settlement) => {
                    waiting = waiting.saturating_sub(1);
                    match answer(&settlement.outcome) {
                        Ok(parts) => answers.extend(parts),
                        Err(reason) => return Step::fail(reason),
                    }
                }
            }
        }
        let delivery = said.first().map(|first| {
            let action = ClientAction::new(WIDGET, json!({ "messages": said }));
            Operation::client(format!("message-{first}"), action)
        });
        waiting += u32::from(delivery.is_some());
        if waiting == 0 {
            return Step::reply(answers);
        }
        let step = Step::start(delivery).until_any().hearing();
        let step = step.with_memo(Memo::json(FORMAT, &waiting));
        if answers.is_empty() {
            step
        } else {
            step.say(answers)
        }
    }
}

/// Returns the program's answer.
///
/// # Errors
/// There is none, for the reason that the user is told.
fn answer(outcome: &Outcome) -> Result<Vec<Part>, String> {
    match outcome {
        Outcome::Parts(parts) => Ok(parts.clone()),
        Outcome::Value(Value::String(text)) => Ok(vec![Part::Text(text.clone())]),
        Outcome::Failed(failure) => Err(failure.message.clone()),
        Outcome::TimedOut => Err("the agent did not answer in time".to_owned()),
        outcome => Err(outcome.to_string()),
    }
}

/// The version of the memo.
const FORMAT: u32 = 1;

/// Returns the number of messages that wait for an answer.
fn waiting(turn: Turn<'_>) -> u32 {
    let memo = turn.memo();
    memo.and_then(|memo| memo.read().ok()).unwrap_or_default()
}

export_agent!(External);

#[cfg(test)]
mod tests;
