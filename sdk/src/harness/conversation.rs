//! A whole conversation with an agent, played through in a test.

mod setting;

use crate::agent::Agent;
use crate::client::ClientAction;
use crate::content::{Message, MessageId, Part, Role};
use crate::harness::performer::{Done, Open, Performed, Performer, synthetic};
use crate::harness::rules::{Used, check_step};
use crate::harness::scene::{Scene, keep};
use crate::news::{News, Outcome, Settlement};
use crate::operation::{Call, ModelRequest, Work};
use crate::step::{Decision, Effect, Item, Step, Until, Wait};
use crate::turn::LimitsLeft;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

/// The state of a conversation when nothing moves any more.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationStatus {
    /// The turn has ended with this reply.
    Replied(String),
    /// The structured session has ended with this summary.
    Completed(Value),
    /// The turn has failed for this reason.
    Failed(String),
    /// The user is asked; [`Conversation::answer`] goes on.
    Asking(ClientAction),
    /// The agent waits for the user to speak.
    Listening,
}

impl ConversationStatus {
    /// The reply of a turn that has ended with one.
    ///
    /// # Panics
    /// When it has not.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Replied(words) => words,
            other => panic!("the turn has not ended with a reply: {other:?}"),
        }
    }

    /// The question that the user is asked.
    ///
    /// # Panics
    /// When nobody asks.
    #[must_use]
    pub fn question(&self) -> &ClientAction {
        match self {
            Self::Asking(action) => action,
            other => panic!("nobody asks the user: {other:?}"),
        }
    }
}

/// A turn in the making.
struct Running {
    used: Used,
    open: Vec<(String, Open)>,
    settled: VecDeque<(String, Done)>,
    until: Until,
    hear: bool,
}

/// A conversation with an agent: first its setting, then the messages.
///
/// Every step is run twice and must come to the same, as the host may do. Operations are carried
/// out in the order in which they are started; timers elapse when nothing else can happen.
///
/// ```
/// use agent_host_sdk::{Agent, Description, harness::{Conversation, Reply}};
/// use serde_json::json;
/// # struct Poet;
/// # impl Agent for Poet {
/// #     fn describe(&self) -> Description { Description::new("poet", "Poet", "") }
/// # }
/// let mut conversation = Conversation::new(Poet)
///     .tool("rhymes", |arguments| Ok(format!("cat, hat for {}", arguments["word"])))
///     .model_replies(Reply::new().call("rhymes", &json!({ "word": "bat" })))
///     .model_says("The bat has a hat.");
/// assert_eq!(conversation.say("A poem on bats, please").words(), "The bat has a hat.");
/// ```
pub struct Conversation<A> {
    agent: A,
    scene: Scene,
    limits: LimitsLeft,
    performer: Performer,
    running: Option<Running>,
    waiting: Vec<MessageId>,
    reminders: Vec<(u64, String)>,
    steps: Vec<Step>,
}

impl<A> fmt::Debug for Conversation<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("thread", &self.scene.thread)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl<A: Agent> Conversation<A> {
    /// An empty chat.
    pub fn new(agent: A) -> Self {
        Self::in_scene(agent, Scene::new())
    }

    /// A conversation that begins in a scene.
    pub fn in_scene(agent: A, scene: Scene) -> Self {
        let limits = scene.left;
        let performer = Performer::default();
        Self {
            agent,
            scene,
            limits,
            performer,
            running: None,
            waiting: Vec::new(),
            reminders: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Begins a structured session without a word.
    ///
    /// # Panics
    /// When the agent breaks a rule of the host, or the script is too short. So do
    /// [`say`](Self::say) and [`answer`](Self::answer).
    pub fn open(&mut self) -> ConversationStatus {
        self.begin(News::Opened)
    }

    /// Sends a message of the user's. While a turn waits and does not hear, the message waits for
    /// its end.
    ///
    /// # Panics
    /// As [`open`](Self::open).
    pub fn say(&mut self, words: &str) -> ConversationStatus {
        match &self.running {
            Some(running) if !running.hear => {
                let id =
                    self.scene
                        .push(Role::User, vec![Part::Text(words.to_owned())], "api", None);
                self.waiting.push(id);
                self.go_on()
            }
            running => {
                let goes_on = running.is_some();
                let id =
                    self.scene
                        .push(Role::User, vec![Part::Text(words.to_owned())], "api", None);
                if goes_on {
                    self.run(vec![News::Said(vec![id])])
                } else {
                    self.begin(News::Said(vec![id]))
                }
            }
        }
    }

    /// The user answers the question.
    ///
    /// # Panics
    /// When nobody asks, and as [`open`](Self::open).
    pub fn answer(&mut self, answer: Value) -> ConversationStatus {
        let asked = self.running.as_ref().is_some_and(|running| {
            running
                .open
                .iter()
                .any(|(_, open)| open.question().is_some())
        });
        assert!(asked, "nobody asks the user");
        self.performer.answers.push_back(answer);
        self.go_on()
    }

    /// The question stays open for too long.
    ///
    /// # Panics
    /// When nobody asks, and as [`open`](Self::open).
    pub fn time_out(&mut self) -> ConversationStatus {
        self.end_question(Outcome::TimedOut)
    }

    /// Withdraws the question, as another party than the agent may.
    ///
    /// # Panics
    /// When nobody asks, and as [`open`](Self::open).
    pub fn withdraw(&mut self) -> ConversationStatus {
        self.end_question(Outcome::Cancelled)
    }

    /// The time of the earliest reminder comes that the agent has scheduled.
    ///
    /// # Panics
    /// When it has scheduled none or a turn is running, and as [`open`](Self::open).
    pub fn remind(&mut self) -> ConversationStatus {
        assert!(self.running.is_none(), "a turn is running");
        let earliest = self
            .reminders
            .iter()
            .enumerate()
            .min_by_key(|(_, (due_ms, _))| *due_ms)
            .map(|(at, _)| at);
        let (due_ms, content) = self
            .reminders
            .remove(earliest.expect("the agent has scheduled no reminder"));
        self.scene.now_ms = self.scene.now_ms.max(due_ms);
        let id = self
            .scene
            .push(Role::User, vec![Part::Text(content)], "reminder", None);
        self.begin(News::Said(vec![id]))
    }

    /// The thread so far.
    pub fn thread(&self) -> &[Message] {
        &self.scene.thread
    }

    /// The texts of the thread so far, one line for each message: `user: …`, `assistant: …`, `tool:
    /// …`.
    pub fn transcript(&self) -> Vec<String> {
        let line = |message: &Message| {
            let role = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
                Role::Notice => "notice",
            };
            format!("{role}: {}", message.text())
        };
        self.scene.thread.iter().map(line).collect()
    }

    /// The agent's decisions so far, step by step.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The items on the structured session's record so far.
    pub fn items(&self) -> Vec<&Item> {
        let effects = self.steps.iter().flat_map(|step| &step.effects);
        effects
            .filter_map(|effect| {
                if let Effect::RecordItem(item) = effect {
                    Some(item)
                } else {
                    None
                }
            })
            .collect()
    }

    /// The notes that the agent has remembered so far.
    pub fn notes(&self) -> Vec<&str> {
        let effects = self.steps.iter().flat_map(|step| &step.effects);
        effects
            .filter_map(|effect| {
                if let Effect::Remember(note) = effect {
                    Some(note.as_str())
                } else {
                    None
                }
            })
            .collect()
    }

    /// The preferences of the user's own as they stand.
    pub fn preferred(&self) -> &Value {
        &self.scene.preferences
    }

    /// The preferences that hold for all users as they stand.
    pub fn preferred_for_all(&self) -> &Value {
        &self.scene.shared_preferences
    }

    /// The requests to the model so far.
    pub fn requests(&self) -> &[ModelRequest] {
        &self.performer.requests
    }

    /// The tool calls that were made so far: names and arguments.
    pub fn calls(&self) -> &[(String, Value)] {
        &self.performer.calls
    }

    /// The session's state as it stands.
    pub fn state(&self) -> &Value {
        &self.scene.state
    }

    fn begin(&mut self, news: News) -> ConversationStatus {
        self.scene.left = self.limits;
        self.scene.memo = None;
        self.running = Some(Running {
            used: Used::default(),
            open: Vec::new(),
            settled: VecDeque::new(),
            until: Until::Any,
            hear: false,
        });
        self.run(vec![news])
    }

    fn run(&mut self, news: Vec<News>) -> ConversationStatus {
        let mut news = news;
        loop {
            if self.scene.left.steps == 0 {
                return self.end(ConversationStatus::Failed(
                    "the turn's steps are used up".to_owned(),
                ));
            }
            self.scene.left.steps -= 1;
            let step = self.decide(&news);
            self.apply_effects(&step);
            self.scene.memo = step.memo;
            let status = match step.decision {
                Decision::Wait(wait) => {
                    self.wait(wait);
                    match self.next_news() {
                        Ok(next) => {
                            news = next;
                            continue;
                        }
                        Err(status) => return status,
                    }
                }
                Decision::Reply(parts) => {
                    if !parts.is_empty() {
                        self.scene.push(Role::Assistant, parts, "agent", None);
                    }
                    ConversationStatus::Replied(self.last_words())
                }
                Decision::Complete(summary) => ConversationStatus::Completed(summary),
                Decision::Fail(reason) => return self.end(ConversationStatus::Failed(reason)),
            };
            if self.waiting.is_empty() {
                return self.end(status);
            }
            news = vec![News::Said(std::mem::take(&mut self.waiting))];
        }
    }

    fn end_question(&mut self, outcome: Outcome) -> ConversationStatus {
        let running = self.running.as_mut().expect("nobody asks the user");
        let at = running
            .open
            .iter()
            .position(|(_, open)| matches!(open, Open::Client(_)))
            .expect("nobody asks the user");
        let (key, _) = running.open.remove(at);
        running.settled.push_back((key, Done::Plain(outcome)));
        self.go_on()
    }

    fn go_on(&mut self) -> ConversationStatus {
        match self.next_news() {
            Ok(news) => self.run(news),
            Err(status) => status,
        }
    }

    /// Steps the agent twice, and holds it to the rules.
    fn decide(&mut self, news: &[News]) -> Step {
        let formats = self.agent.describe().memo_formats;
        let step = self.agent.step(self.scene.turn(), news);
        let before = super::logged();
        let again = self.agent.step(self.scene.turn(), news);
        drop(super::logged());
        for (level, message) in before {
            super::keep_logged(level, &message);
        }
        assert_eq!(
            step, again,
            "the same step, run again, came to something else"
        );
        let running = self.running.as_ref().expect("a turn is running");
        check_step(
            &step,
            &self.scene,
            &running.used,
            running.open.len() + running.settled.len(),
            &formats,
        );
        self.steps.push(step.clone());
        step
    }

    fn apply_effects(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::Say(parts) => {
                    self.scene
                        .push(Role::Assistant, parts.clone(), "agent", None);
                }
                Effect::SessionState(state) => self.scene.state = state.clone(),
                Effect::Prefer(new) if !self.scene.is_mentee => {
                    keep(&mut self.scene.shared_preferences, new)
                }
                Effect::Prefer(new) | Effect::PreferForUser(new) => {
                    keep(&mut self.scene.preferences, new)
                }
                Effect::Schedule { after_ms, content } => {
                    self.reminders
                        .push((self.scene.now_ms.saturating_add(*after_ms), content.clone()));
                }
                Effect::RecordItem(_) | Effect::Remember(_) | Effect::Emit { .. } => {}
            }
        }
    }

    fn wait(&mut self, wait: Wait) {
        let Wait {
            start,
            cancel,
            until,
            hear,
        } = wait;
        for operation in start {
            if matches!(operation.work, Work::Model(_)) {
                self.pair_calls("skipped");
            }
            let performed = self.performer.start(&operation.work, &mut self.scene);
            let running = self.running.as_mut().expect("a turn is running");
            if let Work::Tool(Call::OfModel { message, index }) = operation.work {
                running.used.calls.insert((message, index));
            }
            running.used.keys.insert(operation.key.clone());
            if matches!(operation.work, Work::Client(_)) {
                running.used.questions.insert(operation.key.clone());
            }
            running.take(operation.key, performed);
        }
        let running = self.running.as_mut().expect("a turn is running");
        running.until = until;
        running.hear = hear;
        for key in cancel {
            if let Some(at) = running.open.iter().position(|(open, _)| *open == key) {
                let (key, open) = running.open.remove(at);
                running.settled.push_back((key, open.cancelled()));
            }
        }
    }

    /// Lets things happen until the agent is to be stepped again, or nothing happens any more.
    fn next_news(&mut self) -> Result<Vec<News>, ConversationStatus> {
        loop {
            let running = self.running.as_mut().expect("a turn is running");
            let ready = match running.until {
                Until::Any => !running.settled.is_empty(),
                Until::All => running.open.is_empty() && !running.settled.is_empty(),
            };
            if ready {
                let count = if running.until == Until::Any {
                    1
                } else {
                    running.settled.len()
                };
                let settled: Vec<(String, Done)> = running.settled.drain(..count).collect();
                let hears = running.hear && !self.waiting.is_empty();
                let mut news: Vec<News> = settled
                    .into_iter()
                    .map(|(key, done)| self.deliver(key, done))
                    .collect();
                news.extend(hears.then(|| News::Said(std::mem::take(&mut self.waiting))));
                return Ok(news);
            }
            if running.hear && !self.waiting.is_empty() {
                return Ok(vec![News::Said(std::mem::take(&mut self.waiting))]);
            }
            let asks = running
                .open
                .iter()
                .position(|(_, open)| open.question().is_some());
            let due = running
                .open
                .iter()
                .enumerate()
                .filter_map(|(at, (_, open))| Some((open.due_ms()?, at)))
                .min();
            match (asks, due) {
                (Some(at), _) if !self.performer.answers.is_empty() => {
                    let (key, open) = running.open.remove(at);
                    let answer = self.performer.answers.pop_front();
                    let performed = self.performer.go_on(open, answer, self.scene.now_ms);
                    running.take(key, performed);
                }
                (_, Some((due_ms, at))) => {
                    self.scene.now_ms = self.scene.now_ms.max(due_ms);
                    let (key, open) = running.open.remove(at);
                    let performed = self.performer.go_on(open, None, due_ms);
                    running.take(key, performed);
                }
                (Some(at), None) => {
                    let question = running.open.get(at).and_then(|(_, open)| open.question());
                    return Err(question.map_or(ConversationStatus::Listening, |action| {
                        ConversationStatus::Asking(action.clone())
                    }));
                }
                (None, None) => return Err(ConversationStatus::Listening),
            }
        }
    }

    fn deliver(&mut self, key: String, done: Done) -> News {
        let outcome = match done {
            Done::Plain(outcome) => outcome,
            Done::InThread {
                role,
                parts,
                origin,
                answers,
                failure,
            } => {
                let id = self.scene.push(role, parts, &origin, answers);
                failure.map_or(Outcome::Message(id), Outcome::Failed)
            }
        };
        News::Settled(Settlement { key, outcome })
    }

    /// Pairs every call in the thread that has no result.
    fn pair_calls(&mut self, text: &str) {
        let answered: BTreeSet<(MessageId, u32)> = self
            .scene
            .thread
            .iter()
            .filter_map(|message| message.answers)
            .collect();
        let calls = self
            .scene
            .thread
            .iter()
            .flat_map(|message| message.calls().map(|call| (message.id, call.index)));
        let bare: Vec<(MessageId, u32)> = calls.filter(|call| !answered.contains(call)).collect();
        for (message, index) in bare {
            self.deliver(String::new(), synthetic(text, message, index));
        }
    }

    fn last_words(&self) -> String {
        let last = self
            .scene
            .thread
            .iter()
            .rev()
            .find(|message| message.role == Role::Assistant);
        last.map(Message::text).unwrap_or_default()
    }

    fn end(&mut self, status: ConversationStatus) -> ConversationStatus {
        self.pair_calls("cancelled");
        self.running = None;
        status
    }
}

impl Running {
    fn take(&mut self, key: String, performed: Performed) {
        match performed {
            Performed::Done(done) => self.settled.push_back((key, done)),
            Performed::Open(open) => self.open.push((key, open)),
        }
    }
}
