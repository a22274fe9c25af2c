//! The intake of what has happened since the last step: the beginning, messages, and operations
//! that have ended.

use crate::dialogue::{Doing, Notes};
use crate::session::Session;
use agent_host_sdk::{Answer, Effect, Item, MessageId, Outcome, Role, Settlement, log, shortened};
use serde_json::{Value, json};

/// Bytes of a question and of an answer on the record.
const RECORDED_BYTES_MAX: usize = 4 << 10;
/// The messages with which a user ends the dialogue.
const ENDINGS: [&str; 14] = [
    "stop",
    "enough",
    "that's enough",
    "that is enough",
    "end",
    "the end",
    "finish",
    "quit",
    "exit",
    "done",
    "i'm done",
    "i am done",
    "bye",
    "goodbye",
];

impl Session<'_> {
    pub(crate) fn begin(&mut self) {
        if self.config.topic.is_some() {
            self.ask_on(Doing::Opening);
        } else {
            self.say(self.memory.opening());
        }
    }

    pub(crate) fn hear(&mut self, messages: &[MessageId]) {
        if self.dialogue.over.is_some() {
            return self.say("The dialogue is over.");
        }
        let was_offered = self.withdraw_offer();
        self.dialogue.offer = false;
        match (self.is_an_ending(messages), was_offered) {
            (true, true) => self.wind_up(),
            (true, false) => self.dialogue.offer = true,
            (false, _) => self.ask_on(Doing::Asking(messages.to_owned())),
        }
    }

    pub(crate) fn settle(&mut self, settlement: &Settlement) {
        match self.open.remove(&settlement.key) {
            Some(Doing::Opening) => {
                if let Err(reason) = self.heard(&settlement.outcome) {
                    log::warn(&format!("the first question could not be asked: {reason}"));
                    let topic = self.config.topic.clone().unwrap_or_default();
                    self.say(format!(
                        "You want to think about \"{topic}\". What makes it matter to you now?"
                    ));
                }
            }
            Some(Doing::Asking(words)) => self.take_question(&words, &settlement.outcome),
            Some(Doing::Noting) => match settlement.reply::<Notes>() {
                Ok(notes) => {
                    self.dialogue.notes = notes.bounded();
                    self.dialogue.noted = self.dialogue.exchanges;
                }
                // The notes so far stay, and are tried again with the next exchange.
                Err(reason) => log::warn(&format!("nothing was noted: {reason}")),
            },
            Some(Doing::Offering) => match settlement.answer(self.turn) {
                Answer::Given(answer) if answer.get("confirmed") == Some(&json!(true)) => {
                    self.wind_up()
                }
                Answer::Given(_) => self.say("Good, let us go on. What comes to your mind?"),
                Answer::Skipped | Answer::TimedOut | Answer::Cancelled | Answer::Failed(_) => {}
            },
            Some(Doing::Rating) => self.take_rating(settlement),
            // An offer that was withdrawn.
            None => {}
        }
    }

    fn take_question(&mut self, words: &[MessageId], outcome: &Outcome) {
        if let Err(reason) = self.heard(outcome) {
            return self.say(format!(
                "I cannot think along just now ({reason}). What you said is kept; say something \
                 when you want to go on."
            ));
        }
        self.dialogue.exchanges += 1;
        let asked = words.first().and_then(|first| self.question_before(*first));
        let said = self.texts_of(words).join("\n");
        self.effects.push(Effect::RecordItem(Item {
            prompt: json!({ "prompt": asked.map(|asked| shortened(&asked, RECORDED_BYTES_MAX)) }),
            response: json!({ "text": shortened(&said, RECORDED_BYTES_MAX) }),
            evaluation: None,
            asked: None,
        }));
        let exchanges = self.dialogue.exchanges;
        self.dialogue.offer = exchanges.is_multiple_of(self.config.offer_every);
    }

    /// Says so where what the model said ends at the limit of its length.
    fn heard(&mut self, outcome: &Outcome) -> Result<(), String> {
        if let Some(cut_off) = outcome.replied(self.turn)? {
            self.say(cut_off.notice());
        }
        Ok(())
    }

    fn take_rating(&mut self, settlement: &Settlement) {
        let Answer::Given(response) = settlement.answer(self.turn) else {
            return;
        };
        self.dialogue.rating = response.get("rating").and_then(Value::as_i64);
        self.effects.push(Effect::RecordItem(Item {
            prompt: json!({ "widget": "rating_scale" }),
            response,
            evaluation: None,
            asked: Some(settlement.key.clone()),
        }));
    }

    /// Returns the agent's last message before the user's.
    fn question_before(&self, words: MessageId) -> Option<String> {
        let before = (1..words).rev().filter_map(|id| self.turn.message(id));
        before
            .take_while(|message| message.role != Role::User)
            .find(|message| message.role == Role::Assistant)
            .map(|message| message.text())
    }

    fn texts_of(&self, messages: &[MessageId]) -> Vec<String> {
        let messages = messages.iter().filter_map(|id| self.turn.message(*id));
        messages.map(|message| message.text()).collect()
    }

    /// Returns true if the messages say nothing but that the user wants to end.
    fn is_an_ending(&self, messages: &[MessageId]) -> bool {
        let words = self.texts_of(messages).join(" ").to_lowercase();
        let words = words
            .trim_matches(|letter: char| letter.is_whitespace() || letter.is_ascii_punctuation());
        ENDINGS.contains(&words)
    }
}
