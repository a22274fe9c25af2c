//! One step of a dialogue: what has happened is taken in, then it goes on or ends.

use crate::dialogue::{Config, Dialogue, Doing, MEMO_FORMAT, Notes, Open};
use crate::memory::Memory;
use crate::prompts::Prompts;
use agent_host_sdk::{
    Answer, ClientAction, Effect, Item, Memo, MessageId, News, Operation, Outcome, Role,
    Settlement, Step, Turn, Unreadable, Work, log, shortened,
};
use serde_json::{Value, json};

/// Exchanges after which notes are written anew.
const NOTE_EVERY: u64 = 3;
/// Steps that must be left for an offer to end. The turn goes on while the offer is open, and a
/// user who goes on does so in it.
const OFFER_STEPS: u32 = 10;
/// Bytes of a topic that was not named: the user's first message.
const TOPIC_BYTES_MAX: usize = 120;

/// A dialogue in one step of a turn.
pub(crate) struct Session<'a> {
    pub(crate) turn: Turn<'a>,
    pub(crate) config: Config,
    pub(crate) memory: Memory,
    pub(crate) dialogue: Dialogue,
    /// Operations that are open.
    pub(crate) open: Open,
    pub(crate) effects: Vec<Effect>,
    start: Vec<Operation>,
    cancel: Vec<String>,
}

impl<'a> Session<'a> {
    /// The dialogue as the last step left it.
    ///
    /// # Errors
    /// Another version of the agent left it.
    pub(crate) fn resume(turn: Turn<'a>, config: Config) -> Result<Self, Unreadable> {
        let dialogue: Dialogue = turn.state()?;
        let memory = Memory::of(turn);
        Ok(Self {
            turn,
            config,
            memory,
            dialogue,
            open: turn.read_memo()?,
            effects: Vec::new(),
            start: Vec::new(),
            cancel: Vec::new(),
        })
    }

    /// Takes in what has happened, and decides.
    pub(crate) fn step(mut self, news: &[News]) -> Step {
        for item in news {
            match item {
                News::Opened => self.begin(),
                News::Settled(settlement) => self.settle(settlement),
                News::Said(messages) => self.hear(messages),
            }
        }
        if self.dialogue.ending && self.dialogue.over.is_none() && self.open.is_empty() {
            self.finish();
        }
        let mut effects = std::mem::take(&mut self.effects);
        if let Some(summary) = self.dialogue.over.clone() {
            effects.push(Effect::SessionState(json!(self.dialogue)));
            return Step {
                effects,
                ..Step::complete(summary)
            };
        }
        if self.dialogue.offer && self.open.is_empty() {
            self.dialogue.offer = false;
            if self.turn.left().steps >= OFFER_STEPS {
                self.offer_to_end();
            }
        }
        effects.push(Effect::SessionState(json!(self.dialogue)));
        if self.open.is_empty() {
            return Step {
                effects,
                ..Step::done()
            };
        }
        let hears = self.open.values().all(|doing| *doing == Doing::Offering);
        let step = Step::start(self.start)
            .until_any()
            .with_memo(Memo::json(MEMO_FORMAT, &self.open));
        let step = self.cancel.into_iter().fold(step, Step::cancelling);
        Step {
            effects,
            ..if hears { step.hearing() } else { step }
        }
    }

    fn offer_to_end(&mut self) {
        let question = ClientAction::confirmation("Shall we end the dialogue here?");
        let question = question
            .with_prop("confirm_label", "End it")
            .with_prop("cancel_label", "Go on");
        self.begin_operation("offer", Doing::Offering, Work::Client(question));
    }

    /// Asks a model for the next question, and for notes when they are due.
    pub(crate) fn ask_on(&mut self, doing: Doing) {
        let prompts = self.prompts();
        let request = if doing == Doing::Opening {
            prompts.open()
        } else {
            prompts.ask()
        };
        self.begin_operation("ask", doing, Work::Model(request));
        if self.dialogue.exchanges >= self.dialogue.noted + NOTE_EVERY {
            self.note();
        }
    }

    /// Has what was found so far noted.
    pub(crate) fn note(&mut self) {
        let request = self.prompts().note();
        self.begin_operation("note", Doing::Noting, Work::Model(request));
    }

    /// Asks for a rating, and has the last exchanges noted meanwhile.
    pub(crate) fn wind_up(&mut self) {
        self.dialogue.ending = true;
        if self.dialogue.exchanges > self.dialogue.noted {
            self.note();
        }
        if self.dialogue.exchanges > 0 {
            let labels = json!({ "1": "not at all", "5": "very much" });
            let question =
                ClientAction::rating_scale("How much has this helped you to think?", 1, 5)
                    .with_prop("labels", labels);
            self.begin_operation("rating", Doing::Rating, Work::Client(question.skippable()));
        }
    }

    /// Ends the dialogue: says what was found, and keeps what helps the next time.
    fn finish(&mut self) {
        let topic = self.topic();
        let notes = self.dialogue.notes.clone();
        let list = |title: &str, notes: &[String]| {
            let lines: String = notes.iter().map(|note| format!("\n- {note}")).collect();
            if notes.is_empty() {
                lines
            } else {
                format!("\n\n{title}:{lines}")
            }
        };
        let found = format!(
            "{}{}",
            list("What you found", &notes.insights),
            list("What stays open", &notes.open_questions)
        );
        self.say(format!("Thank you for thinking aloud.{found}"));
        let remembered = format!(
            "Dialogue of the user {} about \"{topic}\".{found}",
            self.turn.user()
        );
        self.effects.push(Effect::Remember(remembered));
        let own = self.memory.after(&topic, &self.dialogue);
        self.effects.push(Effect::PreferForUser(own));
        if self.dialogue.exchanges > 0 {
            let shared = self.memory.after_for_all(&topic, &self.dialogue);
            self.effects.push(Effect::Prefer(shared));
        }
        let mut summary = json!({
            "topic": topic,
            "insights": notes.insights,
            "open_questions": notes.open_questions,
            "exchanges": self.dialogue.exchanges,
        });
        if let (Some(fields), Some(rating)) = (summary.as_object_mut(), self.dialogue.rating) {
            fields.insert("rating".to_owned(), json!(rating));
        }
        self.dialogue.over = Some(summary);
    }

    /// Returns the topic: as noted, as chosen, or in the words with which the dialogue began.
    fn topic(&self) -> String {
        let noted =
            Some(self.dialogue.notes.topic.clone()).filter(|topic| !topic.trim().is_empty());
        let words = || {
            let ids = 1..=self.turn.head().unwrap_or_default();
            let mut messages = ids.filter_map(|id| self.turn.message(id));
            let first = messages.find(|message| message.role == Role::User);
            first.map(|message| message.text())
        };
        let topic = noted.or_else(|| self.config.topic.clone()).or_else(words);
        shortened(&topic.unwrap_or_default(), TOPIC_BYTES_MAX)
    }

    fn prompts(&self) -> Prompts<'_> {
        Prompts {
            turn: self.turn,
            topic: self.config.topic.as_deref(),
            memory: &self.memory,
            dialogue: &self.dialogue,
        }
    }

    fn begin_operation(&mut self, name: &str, doing: Doing, work: Work) {
        self.dialogue.operations += 1;
        let key = format!("{name}-{}", self.dialogue.operations);
        self.open.insert(key.clone(), doing);
        self.start.push(Operation { key, work });
    }

    /// Takes back the offer to end, because the user has said something. Returns whether there was
    /// one.
    pub(crate) fn withdraw_offer(&mut self) -> bool {
        let open = self.open.len();
        self.open.retain(|key, doing| {
            if *doing == Doing::Offering {
                self.cancel.push(key.clone());
            }
            *doing != Doing::Offering
        });
        self.open.len() < open
    }

    pub(crate) fn say(&mut self, words: impl Into<String>) {
        self.effects.push(Effect::say(words.into()));
    }
}

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
