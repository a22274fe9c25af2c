//! Calls of one reply of a model, and what an agent makes of each: run, refused, or asked about.

use crate::client::ClientAction;
use crate::content::{MessageId, ModelCall};
use crate::turn::Turn;
use std::collections::BTreeMap;

/// The decision on the calls of one reply. Made by [`Agent::on_calls`](crate::Agent::on_calls):
///
/// ```
/// use agent_host_sdk::{Calls, ModelCall};
///
/// fn guard(calls: &[ModelCall]) -> Calls {
///     let payments = calls.iter().filter(|call| call.name == "pay");
///     payments.fold(Calls::run(), |decided, call| {
///         decided.ask_first(call.index, format!("Really {}?", call.arguments))
///     })
/// }
/// # let _ = guard;
/// ```
///
/// A call that is refused, or to which the user does not agree, is never made. The model gets a
/// result for it that says so, and is told the reason when it is asked next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    /// The calls that are not simply run, by index.
    others: BTreeMap<u32, Verdict>,
}

/// The fate of one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Run,
    Refuse(String),
    Ask(ClientAction),
}

impl Calls {
    /// Runs all calls.
    #[must_use]
    pub fn run() -> Self {
        Self::default()
    }

    /// Does not make a call, for a reason that the model is told.
    #[must_use]
    pub fn refuse(mut self, index: u32, why: impl Into<String>) -> Self {
        self.others.insert(index, Verdict::Refuse(why.into()));
        self
    }

    /// Makes a call only after the user has said yes to this question.
    #[must_use]
    pub fn ask_first(self, index: u32, question: impl AsRef<str>) -> Self {
        self.ask_first_with(index, ClientAction::confirmation(question.as_ref()))
    }

    /// The same with a question of the agent's making: a
    /// [`confirmation`](ClientAction::confirmation) or an [`approval`](ClientAction::approval). Any
    /// other answer than a yes counts as no.
    #[must_use]
    pub fn ask_first_with(mut self, index: u32, question: ClientAction) -> Self {
        self.others.insert(index, Verdict::Ask(question));
        self
    }

    /// The calls that are not refused, with what is to be done about each.
    pub(crate) fn wanted(&self, calls: &[ModelCall]) -> impl Iterator<Item = (u32, Verdict)> {
        calls.iter().filter_map(|call| {
            let verdict = self.others.get(&call.index).unwrap_or(&Verdict::Run);
            let is_wanted = !matches!(verdict, Verdict::Refuse(_));
            is_wanted.then(|| (call.index, verdict.clone()))
        })
    }

    /// The reasons for the calls that were not made; none when all were.
    pub(crate) fn told(
        &self,
        turn: Turn<'_>,
        message: MessageId,
        calls: &[ModelCall],
    ) -> Option<String> {
        let made = made(turn, message);
        let told = calls.iter().filter_map(|call| {
            let why = match self.others.get(&call.index)? {
                Verdict::Run => return None,
                Verdict::Refuse(why) => why.as_str(),
                Verdict::Ask(_) if made.contains(&call.index) => return None,
                Verdict::Ask(_) => "the user was asked and did not agree",
            };
            let place = call.index.saturating_add(1);
            Some(format!(
                "Call {place} of `{}` was not made: {why}.",
                call.name
            ))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("\n"))
    }
}

/// The indexes of the calls of a message that have a result in the thread.
fn made(turn: Turn<'_>, message: MessageId) -> Vec<u32> {
    let head = turn.head().unwrap_or(message);
    let later = (message.saturating_add(1)..=head).filter_map(|id| turn.message(id));
    later
        .filter_map(|later| later.answers)
        .filter_map(|(of, index)| (of == message).then_some(index))
        .collect()
}
