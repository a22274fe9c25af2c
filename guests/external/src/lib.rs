//! The driver of external agents: hands what is said to the program behind the agent, and says what
//! the program answers. It never asks a model.
//!
//! Messages that come while an answer is waited for are handed on too, each with an answer of its
//! own. The turn goes on until each is answered, or could not be delivered, or was not answered in
//! time. It fails only when none was answered.

use agent_host_sdk::{
    Agent, ClientAction, Description, Memo, MessageId, News, Operation, Outcome, Part, Step, Turn,
    export_agent,
};
use serde_json::{Value, json};

/// The agent.
#[derive(Debug)]
pub struct External;

/// The widget of the question that the host takes for an outbound message.
const WIDGET: &str = "external_message";
/// The reply to a message that has no answer, beside one that has.
const UNANSWERED: &str = "One message has no answer";

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
        let mut course = Course::of(turn);
        let mut said: Vec<MessageId> = Vec::new();
        let mut words: Vec<Part> = Vec::new();
        for one in news {
            match one {
                News::Opened => {}
                News::Said(messages) => said.extend(messages),
                News::Settled(settlement) => {
                    course.waiting = course.waiting.saturating_sub(1);
                    match answer(&settlement.outcome) {
                        Ok(parts) => {
                            course.is_answered = true;
                            words.extend(parts);
                        }
                        Err(reason) => course.untold.push(reason),
                    }
                }
            }
        }
        let outbound_message = said.first().map(|first| {
            let action = ClientAction::new(WIDGET, json!({ "messages": said }));
            Operation::client(format!("message-{first}"), action)
        });
        course.waiting += u32::from(outbound_message.is_some());
        if course.waiting == 0 && !course.is_answered && !course.untold.is_empty() {
            return Step::fail(course.untold.join("; "));
        }
        if course.is_answered {
            let untold = course.untold.drain(..);
            words.extend(untold.map(|reason| Part::Text(format!("{UNANSWERED}: {reason}"))));
        }
        if course.waiting == 0 {
            return Step::reply(words);
        }
        let step = Step::start(outbound_message).until_any().hearing();
        let step = step.with_memo(course.memo());
        if words.is_empty() {
            step
        } else {
            step.say(words)
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

/// The course of a turn, from step to step.
struct Course {
    /// Number of messages that wait for an answer.
    waiting: u32,
    /// True if one was answered.
    is_answered: bool,
    /// The reasons why others were not, as far as they were not told.
    untold: Vec<String>,
}

impl Course {
    fn of(turn: Turn<'_>) -> Self {
        let memo = turn.memo();
        let kept: Option<(u32, bool, Vec<String>)> = memo.and_then(|memo| memo.read().ok());
        let (waiting, is_answered, untold) = kept.unwrap_or_default();
        Self {
            waiting,
            is_answered,
            untold,
        }
    }

    fn memo(&self) -> Memo {
        Memo::json(FORMAT, &(self.waiting, self.is_answered, &self.untold))
    }
}

export_agent!(External);

#[cfg(test)]
mod tests;
