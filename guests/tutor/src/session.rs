//! One step of a lesson: the news is taken in, then the lesson goes on.

use crate::course::{Course, Doing, Judged, MEMO_FORMAT, Open, take_written};
use crate::lesson::Lesson;
use crate::memory::Memory;
use crate::prompts::Prompts;
use agent_host_sdk::{
    Answer, Effect, Memo, MessageId, ModelRequest, News, Operation, Outcome, Settlement, Step,
    Turn, Unreadable, log, shortened,
};
use questions::{Question, read_judgement};
use serde_json::{Value, json};

/// Times that a model is asked to write questions.
pub(crate) const WRITE_ATTEMPTS_MAX: u32 = 2;
/// Steps below which the lesson goes on in a turn of its own: those that it takes to ask, judge and
/// answer once more.
const STEPS_MIN: u32 = 8;
/// Tokens below which the lesson goes on in a turn of its own, if it needs any.
const TOKENS_MIN: u64 = 100_000;
/// The agent's message to itself when a lesson goes on in another turn.
const GO_ON: &str = "(The lesson goes on.)";

/// The next thing in a lesson.
enum Next {
    /// A model writes the questions, teaches the next part, or both at once.
    Work { write: bool, teach: bool },
    /// The student is asked this.
    Ask(Box<Question>),
    /// Nothing.
    Finish,
}

/// A lesson in one step of a turn.
pub(crate) struct Session<'a> {
    pub(crate) turn: Turn<'a>,
    pub(crate) lesson: Lesson,
    pub(crate) parts: Vec<String>,
    pub(crate) memory: Memory,
    pub(crate) course: Course,
    /// Operations that are open.
    pub(crate) open: Open,
    /// True if this turn has had a step before.
    is_under_way: bool,
    pub(crate) effects: Vec<Effect>,
    start: Vec<Operation>,
}

impl<'a> Session<'a> {
    /// The lesson as the last step left it.
    ///
    /// # Errors
    /// Another version of the agent left it.
    pub(crate) fn resume(turn: Turn<'a>, lesson: Lesson) -> Result<Self, Unreadable> {
        let mut course: Course = turn.state()?;
        if course.began_ms == 0 {
            course.began_ms = turn.now_ms();
        }
        let memory = Memory::of(turn, &lesson);
        let parts = lesson.parts();
        Ok(Self {
            turn,
            lesson,
            parts,
            memory,
            course,
            open: turn.read_memo()?,
            is_under_way: turn.memo().is_some(),
            effects: Vec::new(),
            start: Vec::new(),
        })
    }

    /// Takes in what has happened, and decides.
    pub(crate) fn step(mut self, news: &[News]) -> Step {
        for item in news {
            match item {
                News::Opened => self.begin(),
                News::Said(messages) => self.hear(messages),
                News::Settled(settlement) => self.settle(settlement),
            }
        }
        self.go_on()
    }

    /// Decides what happens next: the student is answered, taught, asked, or the lesson ends.
    fn go_on(mut self) -> Step {
        if let Some(summary) = self.course.over.clone() {
            return self.end(Step::complete(summary));
        }
        let is_late = self.is_under_way && self.needs_a_turn_of_its_own();
        if self.is_idle() && self.course.words.is_some() {
            if is_late {
                return self.rest();
            }
            self.answer_words();
        }
        if self.open.is_empty() {
            match self.next() {
                Next::Finish => self.finish(),
                _ if is_late => return self.rest(),
                Next::Ask(question) => self.ask(&question),
                Next::Work { write, teach } => self.work(write, teach),
            }
        }
        if let Some(summary) = self.course.over.clone() {
            return self.end(Step::complete(summary));
        }
        let start = std::mem::take(&mut self.start);
        let memo = Memo::json(MEMO_FORMAT, &self.open);
        let step = Step::start(start).until_any().with_memo(memo);
        let hears = self.is_idle() && !self.lesson.needs_no_model();
        self.end(if hears { step.hearing() } else { step })
    }

    /// Returns true if nothing is under way but the question to the student.
    fn is_idle(&self) -> bool {
        self.open.values().all(|doing| *doing == Doing::Asking)
    }

    /// Ends the turn, whose limits are nearly used up, and goes on in another. An open question is
    /// asked again there.
    fn rest(self) -> Step {
        self.end(Step::done()).with(Effect::Schedule {
            after_ms: 1,
            content: GO_ON.to_owned(),
        })
    }

    fn answer_words(&mut self) {
        let Some(words) = self.course.words.take() else {
            return;
        };
        let (question, part) = self.current().unzip();
        let part = part.flatten().or(self.course.taught.checked_sub(1));
        let question = question.filter(|_| !self.open.is_empty());
        let request = self.prompts().answer(words, part, question.as_ref());
        self.begin_work("words", Doing::Answering, request);
    }

    /// Returns the next thing in the lesson.
    fn next(&mut self) -> Next {
        let questions = self.questions();
        let repeats = self.course.repeats(questions);
        let write = questions == 0 && self.course.write_failures < WRITE_ATTEMPTS_MAX;
        let teach = match self.current().filter(|_| !repeats) {
            Some((_, part)) => part.is_some_and(|part| part >= self.course.taught),
            None => self.course.taught < self.parts.len(),
        };
        if write || teach {
            return Next::Work { write, teach };
        }
        if repeats && self.course.again.is_none() {
            self.choose_what_comes_again();
        }
        self.current()
            .map_or(Next::Finish, |(question, _)| Next::Ask(Box::new(question)))
    }

    fn work(&mut self, write: bool, teach: bool) {
        if write {
            let request = self.prompts().write();
            self.begin_work("write", Doing::Writing, request);
        }
        if teach {
            let request = self.prompts().teach(self.course.taught);
            self.begin_work("teach", Doing::Teaching, request);
        }
    }

    fn ask(&mut self, question: &Question) {
        let mut action = question.action();
        if self.lesson.needs_no_model() {
            action = action.locking_input();
        }
        let key = self.course.key("question");
        self.open.insert(key.clone(), Doing::Asking);
        self.start.push(Operation::client(key, action));
    }

    pub(crate) fn begin_work(&mut self, name: &str, doing: Doing, request: ModelRequest) {
        let key = self.course.key(name);
        self.open.insert(key.clone(), doing);
        self.start.push(Operation::model(key, request));
    }

    fn needs_a_turn_of_its_own(&self) -> bool {
        let left = self.turn.left();
        left.steps < STEPS_MIN || (left.tokens < TOKENS_MIN && !self.lesson.needs_no_model())
    }

    fn end(self, step: Step) -> Step {
        let mut effects = self.effects;
        effects.push(Effect::SessionState(json!(self.course)));
        Step { effects, ..step }
    }

    pub(crate) fn prompts(&self) -> Prompts<'_> {
        Prompts {
            turn: self.turn,
            lesson: &self.lesson,
            memory: &self.memory,
            parts: &self.parts,
        }
    }

    pub(crate) fn say(&mut self, words: impl Into<String>) {
        self.effects.push(Effect::say(words.into()));
    }

    /// Returns the number of questions, repetitions not counted.
    pub(crate) fn questions(&self) -> usize {
        if self.lesson.questions.is_empty() {
            self.course.written.len()
        } else {
            self.lesson.questions.len()
        }
    }

    /// A question, and the part of the material after which it is asked; none for a lesson without
    /// material.
    pub(crate) fn question(&self, at: usize) -> Option<(Question, Option<usize>)> {
        let parts = self.parts.len();
        if let Some(written) = self.course.written.get(at) {
            return Some((written.question.clone(), Some(written.part)));
        }
        let question = self.lesson.questions.get(at)?.clone();
        // The questions are spread evenly over the parts, the last one after the last part.
        let part = ((at + 1) * parts)
            .div_ceil(self.lesson.questions.len())
            .checked_sub(1);
        Some((question, part))
    }

    /// The question that is asked next, or is being asked.
    pub(crate) fn current(&self) -> Option<(Question, Option<usize>)> {
        self.question(self.course.current(self.questions())?)
    }
}

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
            .map(|reply| take_written(&reply, self.parts.len()));
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
