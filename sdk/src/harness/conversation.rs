//! A whole conversation with an agent, played through in a test.

use crate::agent::Agent;
use crate::client::ClientAction;
use crate::content::{Message, MessageId, Part, Role};
use crate::harness::performer::{Done, Fake, Open, Performed, Performer, synthetic};
use crate::harness::rules::{Used, check_definitions, check_step};
use crate::harness::scene::{Scene, plain_tool};
use crate::harness::script::Reply;
use crate::news::{News, Outcome, Settlement};
use crate::operation::{Call, ModelRequest, Work};
use crate::step::{Decision, Effect, Item, Step, Until, Wait};
use crate::tool::{IntoProgress, ToolError, Tools};
use crate::turn::{LimitsLeft, Peer};
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

/// Where a conversation stands when nothing moves any more.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// The turn has ended, and these were its last words.
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

impl Standing {
    /// The last words of a turn that has ended with a reply.
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

/// A conversation with an agent: first what surrounds it, then what is said.
///
/// Every step is run twice and must come to the same, as the host may do. Operations are carried out in the order in which they are
/// started; timers elapse when nothing else can happen.
///
/// ```
/// use agent_host_sdk::{Agent, Description, harness::{Conversation, Reply}};
/// use serde_json::json;
/// # struct Poet;
/// # impl Agent for Poet { fn describe(&self) -> Description { Description::new("poet", "Poet", "") } }
/// let mut talk = Conversation::new(Poet)
///     .tool("rhymes", |arguments| Ok(format!("cat, hat for {}", arguments["word"])))
///     .model_replies(Reply::new().call("rhymes", &json!({ "word": "bat" })))
///     .model_says("The bat has a hat.");
/// assert_eq!(talk.say("A poem on bats, please").words(), "The bat has a hat.");
/// ```
pub struct Conversation<A> {
    agent: A,
    scene: Scene,
    limits: LimitsLeft,
    performer: Performer,
    running: Option<Running>,
    waiting: Vec<MessageId>,
    steps: Vec<Step>,
}

impl<A> fmt::Debug for Conversation<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("thread", &self.scene.thread).field("steps", &self.steps).finish_non_exhaustive()
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
        Self { agent, scene, limits, performer, running: None, waiting: Vec::new(), steps: Vec::new() }
    }

    /// With this system prompt in the definition.
    #[must_use]
    pub fn prompt(mut self, prompt: &str) -> Self {
        self.scene = self.scene.prompt(prompt);
        self
    }

    /// With these settings of the operator's.
    #[must_use]
    pub fn settings(mut self, settings: Value) -> Self {
        self.scene = self.scene.settings(settings);
        self
    }

    /// In a structured session of this type.
    ///
    /// # Panics
    /// When the agent's description does not list it.
    #[must_use]
    pub fn session_type(mut self, session_type: &str) -> Self {
        let known = self.agent.describe().session_types;
        assert!(known.iter().any(|known| known == session_type), "the agent leads only {known:?}");
        self.scene = self.scene.session_type(session_type);
        self
    }

    /// With a tool of the test's own.
    #[must_use]
    pub fn tool<R: IntoProgress>(mut self, name: &str, run: impl Fn(Value) -> Result<R, ToolError> + 'static) -> Self {
        let definition = plain_tool(name);
        self.scene = self.scene.tool(definition.clone());
        let run = Box::new(move |_: &_, arguments| run(arguments)?.into_progress());
        self.performer.tools.push(Fake { definition, run });
        self
    }

    /// With all tools of a tool component.
    #[must_use]
    pub fn tools(mut self, tools: &impl Tools) -> Self {
        for tool in tools.tools() {
            let definition = tool.definition();
            self.scene = self.scene.tool(definition.clone());
            let run = Box::new(move |context: &_, arguments| tool.call(context, arguments));
            self.performer.tools.push(Fake { definition, run });
        }
        check_definitions(&self.scene.tools);
        self
    }

    /// With an agent that this one may dispatch to, and what it replies to what.
    #[must_use]
    pub fn peer(mut self, id: &str, reply: impl Fn(&str) -> String + 'static) -> Self {
        self.scene.peers.push(Peer { id: id.to_owned(), name: id.to_owned(), description: String::new() });
        self.performer.peers.push((id.to_owned(), Box::new(reply)));
        self
    }

    /// With something to recall, as `{"text","turn","session","time"}`.
    #[must_use]
    pub fn recalls(mut self, hit: Value) -> Self {
        self.performer.hits.push(hit);
        self
    }

    /// The model's next reply is this text.
    #[must_use]
    pub fn model_says(self, text: &str) -> Self {
        self.model_replies(Reply::new().text(text))
    }

    /// The model's next reply calls one tool.
    #[must_use]
    pub fn model_calls(self, tool: &str, arguments: &Value) -> Self {
        self.model_replies(Reply::new().call(tool, arguments))
    }

    /// The model's next reply is this.
    #[must_use]
    pub fn model_replies(mut self, reply: Reply) -> Self {
        self.performer.model.push_back(reply);
        self
    }

    /// The user's next answer to a question is this, given at once.
    #[must_use]
    pub fn client_answers(mut self, answer: Value) -> Self {
        self.performer.answers.push_back(answer);
        self
    }

    /// Begins a structured session without a word.
    ///
    /// # Panics
    /// When the agent breaks a rule of the host, or the script is too short. So do [`say`](Self::say) and [`answer`](Self::answer).
    pub fn open(&mut self) -> Standing {
        self.begin(News::Opened)
    }

    /// The user says something. While a turn waits and does not hear, the words wait for its end.
    ///
    /// # Panics
    /// As [`open`](Self::open).
    pub fn say(&mut self, words: &str) -> Standing {
        match &self.running {
            Some(running) if !running.hear => {
                let id = self.scene.push(Role::User, vec![Part::Text(words.to_owned())], "api", None);
                self.waiting.push(id);
                self.go_on()
            }
            running => {
                let goes_on = running.is_some();
                let id = self.scene.push(Role::User, vec![Part::Text(words.to_owned())], "api", None);
                if goes_on { self.run(vec![News::Said(vec![id])]) } else { self.begin(News::Said(vec![id])) }
            }
        }
    }

    /// The user answers the question.
    ///
    /// # Panics
    /// When nobody asks, and as [`open`](Self::open).
    pub fn answer(&mut self, answer: Value) -> Standing {
        let asked = self.running.as_ref().is_some_and(|running| running.open.iter().any(|(_, open)| open.question().is_some()));
        assert!(asked, "nobody asks the user");
        self.performer.answers.push_back(answer);
        self.go_on()
    }

    /// The thread so far.
    pub fn thread(&self) -> &[Message] {
        &self.scene.thread
    }

    /// The texts of the thread so far, one line for each message: `user: …`, `assistant: …`, `tool: …`.
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

    /// What the agent decided so far, step by step.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What went on the structured session's record so far.
    pub fn items(&self) -> Vec<&Item> {
        let effects = self.steps.iter().flat_map(|step| &step.effects);
        effects.filter_map(|effect| if let Effect::RecordItem(item) = effect { Some(item) } else { None }).collect()
    }

    /// What the model was asked so far.
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

    fn begin(&mut self, news: News) -> Standing {
        self.scene.left = self.limits;
        self.scene.memo = None;
        self.running = Some(Running { used: Used::default(), open: Vec::new(), settled: VecDeque::new(), until: Until::Any, hear: false });
        self.run(vec![news])
    }

    fn run(&mut self, news: Vec<News>) -> Standing {
        let mut news = news;
        loop {
            if self.scene.left.steps == 0 {
                return self.end(Standing::Failed("the turn's steps are used up".to_owned()));
            }
            self.scene.left.steps -= 1;
            let step = self.decide(&news);
            self.apply_effects(&step);
            self.scene.memo = step.memo;
            let standing = match step.decision {
                Decision::Wait(wait) => {
                    self.wait(wait);
                    match self.next_news() {
                        Ok(next) => {
                            news = next;
                            continue;
                        }
                        Err(standing) => return standing,
                    }
                }
                Decision::Reply(parts) => {
                    if !parts.is_empty() {
                        self.scene.push(Role::Assistant, parts, "agent", None);
                    }
                    Standing::Replied(self.last_words())
                }
                Decision::Complete(summary) => Standing::Completed(summary),
                Decision::Fail(reason) => return self.end(Standing::Failed(reason)),
            };
            if self.waiting.is_empty() {
                return self.end(standing);
            }
            news = vec![News::Said(std::mem::take(&mut self.waiting))];
        }
    }

    fn go_on(&mut self) -> Standing {
        match self.next_news() {
            Ok(news) => self.run(news),
            Err(standing) => standing,
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
        assert_eq!(step, again, "the same step, run again, came to something else");
        let running = self.running.as_ref().expect("a turn is running");
        check_step(&step, &self.scene, &running.used, running.open.len() + running.settled.len(), &formats);
        self.steps.push(step.clone());
        step
    }

    fn apply_effects(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::Say(parts) => {
                    self.scene.push(Role::Assistant, parts.clone(), "agent", None);
                }
                Effect::SessionState(state) => self.scene.state = state.clone(),
                Effect::Prefer(new) => {
                    let keys = self.scene.preferences.as_object_mut().into_iter();
                    keys.for_each(|keys| keys.extend(new.as_object().cloned().unwrap_or_default()));
                }
                Effect::RecordItem(_) | Effect::Remember(_) | Effect::Emit { .. } | Effect::Schedule { .. } => {}
            }
        }
    }

    fn wait(&mut self, wait: Wait) {
        let Wait { start, cancel, until, hear } = wait;
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
            running.take(operation.key, performed);
        }
        let running = self.running.as_mut().expect("a turn is running");
        (running.until, running.hear) = (until, hear);
        for key in cancel {
            if let Some(at) = running.open.iter().position(|(open, _)| *open == key) {
                let (key, open) = running.open.remove(at);
                running.settled.push_back((key, open.cancelled()));
            }
        }
    }

    /// Lets things happen until the agent is to be stepped again, or nothing happens any more.
    fn next_news(&mut self) -> Result<Vec<News>, Standing> {
        loop {
            let running = self.running.as_mut().expect("a turn is running");
            let ready = match running.until {
                Until::Any => !running.settled.is_empty(),
                Until::All => running.open.is_empty() && !running.settled.is_empty(),
            };
            if ready {
                let count = if running.until == Until::Any { 1 } else { running.settled.len() };
                let settled: Vec<(String, Done)> = running.settled.drain(..count).collect();
                return Ok(settled.into_iter().map(|(key, done)| self.deliver(key, done)).collect());
            }
            let asks = running.open.iter().position(|(_, open)| open.question().is_some());
            let due = running.open.iter().enumerate().filter_map(|(at, (_, open))| Some((open.due_ms()?, at))).min();
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
                    return Err(question.map_or(Standing::Listening, |action| Standing::Asking(action.clone())));
                }
                (None, None) => return Err(Standing::Listening),
            }
        }
    }

    fn deliver(&mut self, key: String, done: Done) -> News {
        let outcome = match done {
            Done::Plain(outcome) => outcome,
            Done::InThread { role, parts, origin, answers, failure } => {
                let id = self.scene.push(role, parts, &origin, answers);
                failure.map_or(Outcome::Message(id), Outcome::Failed)
            }
        };
        News::Settled(Settlement { key, outcome })
    }

    /// Pairs every call in the thread that has no result.
    fn pair_calls(&mut self, text: &str) {
        let answered: BTreeSet<(MessageId, u32)> = self.scene.thread.iter().filter_map(|message| message.answers).collect();
        let calls = self.scene.thread.iter().flat_map(|message| message.calls().map(|call| (message.id, call.index)));
        let bare: Vec<(MessageId, u32)> = calls.filter(|place| !answered.contains(place)).collect();
        for place in bare {
            self.deliver(String::new(), synthetic(text, place));
        }
    }

    fn last_words(&self) -> String {
        let last = self.scene.thread.iter().rev().find(|message| message.role == Role::Assistant);
        last.map(Message::text).unwrap_or_default()
    }

    fn end(&mut self, standing: Standing) -> Standing {
        self.pair_calls("cancelled");
        self.running = None;
        standing
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
