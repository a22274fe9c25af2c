//! The conditions that wake an agent, and its news.

use super::Run;
use crate::events::event::{InputAccepted, Source};
use crate::thread::message::{Draft, Message, Part, Role, text_of};
use crate::values::digest::Salt;
use crate::values::error_code::{self, ErrorCategory};
use crate::values::id::InputId;
use crate::work::operation::{Operation, Performer, Settlement};
use crate::work::queue::collected;
use crate::work::step::{News, OperationOutcome, Until};

/// The news of a step, with the messages that precede it in the thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Intake {
    /// Outcomes that arrived with it.
    pub settled: Vec<Settlement>,
    /// The inputs that it claims.
    pub claimed: Vec<InputId>,
    /// The most hops of these inputs, and of the run before.
    pub hops: u32,
    /// Results and messages, in the order in which they enter the thread.
    pub heard: Vec<Message>,
    /// The news for the guest.
    pub news: Vec<News>,
    /// True if the history of ended sessions in the step's input rests on content from outside.
    pub history_untrusted: bool,
}

/// Returns whether to step the agent now, given outcomes that have arrived and whether messages
/// wait.
#[must_use]
pub fn wakes(run: &Run, arrived: &[Settlement], words_wait: bool) -> bool {
    if run.ended.is_some() {
        return false;
    }
    let Some((until, hear)) = run.wait else {
        return true;
    };
    if hear && words_wait {
        return true;
    }
    // Only the command line receives the outcomes of its calls.
    let is_reported = |settlement: &Settlement| {
        let open = run.open.get(&settlement.operation);
        open.is_none_or(|open| open.within.is_none())
    };
    let settled =
        arrived.iter().any(is_reported) || !run.untold.is_empty() || !run.untold_stopped.is_empty();
    match until {
        Until::Any => settled,
        Until::All => settled && run.open.len() <= arrived.len(),
    }
}

/// Takes in outcomes and messages. Results are first, in the order in which they settled, then the
/// user's messages. The inputs with which a run begins are one message if they were collected. They
/// follow the notice of dropped inputs. A history is not taken in here: a caller that shows the
/// step a marked history adds the mark afterwards.
#[must_use]
pub fn intake(run: &Run, arrived: Vec<Settlement>, inputs: &[InputAccepted], salt: Salt) -> Intake {
    let mut taking = Taking {
        next: run.head() + 1,
        salt,
        heard: Vec::new(),
        news: run.untold_stopped.clone(),
    };
    let reported = run
        .untold
        .iter()
        .map(|(operation, settlement)| (operation, settlement.clone()));
    for (operation, settlement) in reported {
        taking.settle(run, operation, settlement);
    }
    for settlement in &arrived {
        if let Some(open) = run.open.get(&settlement.operation)
            && open.within.is_none()
        {
            taking.settle(run, &open.operation, settlement.clone());
        }
    }
    match (run.step == 0, run.started.collected) {
        (true, true) => taking.hear_as_one(run, inputs),
        (begins, _) => {
            if let Some(notice) = run.started.overflow.as_ref().filter(|_| begins) {
                taking.place(Draft::text(Role::Notice, "host", notice.as_str()));
            }
            taking.hear(inputs);
        }
    }
    let claimed = inputs.iter().map(|input| input.input).collect();
    let hops = inputs
        .iter()
        .map(|input| input.source.hops())
        .fold(run.hops, u32::max);
    Intake {
        settled: arrived,
        claimed,
        hops,
        heard: taking.heard,
        news: taking.news,
        history_untrusted: false,
    }
}

impl Run {
    /// Returns the code of a model call without a reply, among the outcomes for the next step.
    /// Codes that other operations share are left out, except that of a limit: people read about a
    /// limit in a text of its own.
    #[must_use]
    pub fn model_failure<'a>(&'a self, arrived: &'a [Settlement]) -> Option<&'a str> {
        self.of_models(arrived)
            .filter_map(|settlement| match &settlement.outcome {
                OperationOutcome::Failed { failure } => Some(failure.code.as_str()),
                _ => None,
            })
            .find(|code| {
                let category = error_code::category(code);
                let is_of_models = matches!(
                    category,
                    Some(ErrorCategory::LlmRequestFailed | ErrorCategory::LlmStreamFailed)
                );
                is_of_models || *code == error_code::LIMIT_REACHED
            })
    }

    /// Returns the reason why the agent gives up, for people. The agent does not know why a program
    /// in a model's place was cut off; the outcomes of its news do.
    #[must_use]
    pub fn given_up(&self, reason: &str, arrived: &[Settlement]) -> String {
        let unknown = self
            .of_models(arrived)
            .filter(|settlement| matches!(settlement.outcome, OperationOutcome::Unknown { .. }))
            .find_map(|settlement| settlement.attempts.last()?.error.as_deref());
        match unknown {
            Some(reported) => format!("{reason}: {reported}"),
            None => reason.to_owned(),
        }
    }

    /// Returns the outcomes of model calls among those for the next step.
    fn of_models<'a>(&'a self, arrived: &'a [Settlement]) -> impl Iterator<Item = &'a Settlement> {
        self.to_hear(arrived)
            .filter(|(operation, _)| matches!(operation.performer, Performer::Model { .. }))
            .map(|(_, settlement)| settlement)
    }

    /// Returns the outcomes for the next step, with their operations: those not yet reported to a
    /// step, and those that have just arrived.
    pub(super) fn to_hear<'a>(
        &'a self,
        arrived: &'a [Settlement],
    ) -> impl Iterator<Item = (&'a Operation, &'a Settlement)> {
        let arrived = arrived.iter().filter_map(move |settlement| {
            let open = self.open.get(&settlement.operation)?;
            Some((&open.operation, settlement))
        });
        self.untold
            .iter()
            .map(|reported| (&reported.0, &reported.1))
            .chain(arrived)
    }
}

struct Taking {
    next: u64,
    salt: Salt,
    heard: Vec<Message>,
    news: Vec<News>,
}

impl Taking {
    fn place(&mut self, draft: Draft) -> u64 {
        let id = self.next;
        self.next += 1;
        self.heard.push(draft.at(id, self.salt));
        id
    }

    fn settle(&mut self, run: &Run, operation: &Operation, settlement: Settlement) {
        let placed = settlement.result.map(|draft| self.place(late(run, draft)));
        let outcome = match (settlement.outcome, placed) {
            (OperationOutcome::Message { .. }, Some(id)) => OperationOutcome::Message { id },
            (outcome, _) => outcome,
        };
        self.news.push(News::Settled {
            key: operation.key.clone(),
            outcome,
        });
    }

    fn hear(&mut self, inputs: &[InputAccepted]) {
        let mut said = Vec::new();
        for input in inputs {
            match (&input.source, &input.message) {
                (Source::Opening, None) => self.news.push(News::Opened),
                (_, Some(draft)) => said.push(self.place(draft.clone())),
                // An input without a message that opens nothing is no news.
                (_, None) => {}
            }
        }
        if !said.is_empty() {
            self.news.push(News::Said { messages: said });
        }
    }

    /// Takes in collected inputs. Each speaker's consecutive texts become one message, marked texts
    /// apart from unmarked ones. The first message reports dropped inputs.
    fn hear_as_one(&mut self, run: &Run, inputs: &[InputAccepted]) {
        let drafts: Vec<&Draft> = inputs
            .iter()
            .filter_map(|input| input.message.as_ref())
            .collect();
        let mut overflow = run.started.overflow.as_ref();
        let mut said = Vec::new();
        let is_one = |one: &&Draft, next: &&Draft| {
            (one.role, one.untrusted) == (next.role, next.untrusted)
                && one.said_by() == next.said_by()
        };
        for drafts in drafts.chunk_by(is_one) {
            let Some(last) = drafts.last() else { continue };
            let texts: Vec<String> = drafts.iter().map(|draft| text_of(&draft.parts)).collect();
            let texts = texts.iter().map(String::as_str);
            let mut parts = vec![Part::text(collected(overflow.take(), texts))];
            let others = drafts
                .iter()
                .flat_map(|draft| &draft.parts)
                .filter(|part| !matches!(part, Part::Text { .. }));
            parts.extend(others.cloned());
            said.push(self.place(Draft {
                parts,
                ..(*last).clone()
            }));
        }
        if !said.is_empty() {
            self.news.push(News::Said { messages: said });
        }
    }
}

/// The result of a call that already has a synthetic result ("still running") becomes a notice: no
/// call has two results.
fn late(run: &Run, draft: Draft) -> Draft {
    let Some(answers) = &draft.answers else {
        return draft;
    };
    let answered = run
        .messages
        .iter()
        .filter_map(|message| message.answers.as_ref());
    if !answered
        .into_iter()
        .any(|other| (other.message, other.index) == (answers.message, answers.index))
    {
        return draft;
    }
    let mut parts = vec![Part::text(format!(
        "The earlier call of `{}` has ended:",
        answers.name
    ))];
    parts.extend(draft.parts);
    Draft {
        role: Role::Notice,
        parts,
        answers: None,
        ..draft
    }
}
