//! The intake of what has happened since the last step: the beginning, messages, and operations
//! that have ended.

use crate::course::{Doing, Judged};
use crate::session::{Session, WRITE_ATTEMPTS_MAX};
use crate::written;
use agent_host_sdk::{Answer, MessageId, Outcome, Settlement, log, shortened};
use questions::read_judgement;
use serde_json::Value;

/// Bytes of a reason that is shown to the student.
const REASON_BYTES_MAX: usize = 300;

impl Session<'_> {
    pub(crate) fn begin(&mut self) {
        let title = &self.lesson.title;
        let count = self.lesson.questions.len();
        let extent = match (self.parts.len(), count) {
            (0, 1) => "There is one question.".to_owned(),
            (0, count) => format!("There are {count} questions."),
            (1, _) => "I explain it, then I ask you a little.".to_owned(),
            (parts, _) => format!("It has {parts} parts; after each I ask you a little."),
        };
        let greeting = format!(
            "{}Welcome to the lesson \"{title}\". {extent}",
            self.memory.greeting(&self.lesson)
        );
        self.say(greeting);
    }

    pub(crate) fn hear(&mut self, messages: &[MessageId]) {
        let is_word = |id: &MessageId| {
            let message = self.turn.message(*id);
            message.is_none_or(|message| message.origin != "reminder")
        };
        let Some(words) = messages.iter().copied().find(is_word) else {
            return;
        };
        if self.course.over.is_some() {
            self.say("The lesson is over.");
        } else if self.lesson.needs_no_model() {
            self.say("Let us stay with the lesson: please answer the question.");
        } else {
            self.course.words.get_or_insert(words);
        }
    }

    pub(crate) fn settle(&mut self, settlement: &Settlement) {
        match self.open.remove(&settlement.key) {
            Some(Doing::Writing) => self.take_questions(settlement),
            Some(Doing::Teaching) => self.take_teaching(&settlement.outcome),
            Some(Doing::Asking) => self.take_answer(settlement),
            Some(Doing::Judging) => self.take_judgement(settlement),
            Some(Doing::Answering) => {
                if let Err(reason) = self.heard(&settlement.outcome) {
                    self.say(format!(
                        "I cannot answer that just now ({reason}). Let us go on with the lesson."
                    ));
                }
            }
            None => {
                let key = &settlement.key;
                log::warn(&format!("nobody waits for the operation `{key}`"));
            }
        }
    }

    fn take_questions(&mut self, settlement: &Settlement) {
        let written = settlement
            .reply::<Value>()
            .map(|reply| written::take(&reply, self.parts.len()));
        let reason = match written {
            Ok(written) if !written.is_empty() => {
                self.course.written = written;
                return;
            }
            Ok(_) => "none of them can be asked".to_owned(),
            Err(reason) => shortened(&reason, REASON_BYTES_MAX),
        };
        self.course.write_failures += 1;
        let then = if self.course.write_failures < WRITE_ATTEMPTS_MAX {
            "I will try again."
        } else {
            "We do without them."
        };
        self.say(format!("I could not prepare questions ({reason}). {then}"));
    }

    /// A part that a model could not explain is shown as it is.
    fn take_teaching(&mut self, outcome: &Outcome) {
        if let Err(reason) = self.heard(outcome) {
            let part = self.parts.get(self.course.taught);
            let part = part.cloned().unwrap_or_default();
            self.say(format!(
                "I cannot explain this just now ({reason}). Here is the material itself:\n\n{part}"
            ));
        }
        self.course.taught += 1;
    }

    /// Says so where what the model said ends at the limit of its length.
    fn heard(&mut self, outcome: &Outcome) -> Result<(), String> {
        if let Some(cut_off) = outcome.replied(self.turn)? {
            self.say(cut_off.notice());
        }
        Ok(())
    }

    fn take_answer(&mut self, settlement: &Settlement) {
        let Some((question, _)) = self.current() else {
            return;
        };
        let asked = settlement.key.clone();
        match settlement.answer(self.turn) {
            Answer::Given(response) if question.is_judged() => self.judge(asked, response),
            answer => self.evaluate(&asked, answer),
        }
    }

    fn judge(&mut self, asked: String, response: Value) {
        let Some((question, part)) = self.current() else {
            return;
        };
        let request = self.prompts().judge(&question, part, &response);
        self.course.judged = Some(Judged { asked, response });
        self.begin_work("judge", Doing::Judging, request);
    }

    fn take_judgement(&mut self, settlement: &Settlement) {
        let Some(judged) = self.course.judged.take() else {
            return;
        };
        match read_judgement(settlement) {
            Ok(judgement) => self.evaluate_judged(judged, &judgement),
            Err(reason) => self.leave_unjudged(judged, &shortened(&reason, REASON_BYTES_MAX)),
        }
    }
}
