//! A turn made by hand: what a step reads, natively.

use crate::client::UploadedFile;
use crate::content::{IntoParts, Message, MessageId, Part, Role};
use crate::tool::{EffectClass, ToolDefinition};
use crate::turn::{LimitsLeft, Memo, PastSession, Peer, Turn, View};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A turn for a test. Starts out as an empty chat with no prompt, no tools and the host's default
/// limits.
///
/// ```
/// use agent_host_sdk::{Agent, Description, News, Step, harness::Scene};
/// # struct Poet;
/// # impl Agent for Poet {
/// #     fn describe(&self) -> Description { Description::new("poet", "Poet", "") }
/// # }
/// let scene = Scene::new().prompt("Be brief.").said("Good morning");
/// let step = Poet.step(scene.turn(), &[News::Said(vec![1])]);
/// assert!(matches!(step.decision, agent_host_sdk::Decision::Wait(_)));
/// ```
#[derive(Debug, Clone)]
pub struct Scene {
    pub(super) user: String,
    pub(super) session_type: String,
    pub(super) session_config: Value,
    pub(super) history: Vec<PastSession>,
    pub(super) now_ms: u64,
    pub(super) left: LimitsLeft,
    pub(super) prompt: String,
    pub(super) settings: Value,
    pub(super) preferences: Value,
    pub(super) shared_preferences: Value,
    pub(super) is_mentee: bool,
    pub(super) state: Value,
    pub(super) thread: Vec<Message>,
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
    pub(super) tools: Vec<ToolDefinition>,
    pub(super) peers: Vec<Peer>,
    pub(super) memo: Option<Memo>,
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// An empty chat.
    #[must_use]
    pub fn new() -> Self {
        Self {
            user: "local".to_owned(),
            session_type: "chat".to_owned(),
            session_config: json!({}),
            history: Vec::new(),
            now_ms: 1_700_000_000_000,
            left: LimitsLeft {
                steps: 50,
                tool_calls: 100,
                tokens: 1_000_000,
            },
            prompt: String::new(),
            settings: json!({}),
            preferences: json!({}),
            shared_preferences: json!({}),
            is_mentee: false,
            state: Value::Null,
            thread: Vec::new(),
            blobs: BTreeMap::new(),
            tools: Vec::new(),
            peers: Vec::new(),
            memo: None,
        }
    }

    /// Sets the system prompt of the definition.
    #[must_use]
    pub fn prompt(mut self, prompt: &str) -> Self {
        prompt.clone_into(&mut self.prompt);
        self
    }

    /// Sets the settings of the operator's.
    #[must_use]
    pub fn settings(mut self, settings: Value) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the preferences of the user's own.
    #[must_use]
    pub fn preferences(mut self, preferences: Value) -> Self {
        self.preferences = preferences;
        self
    }

    /// Sets the preferences of the agent's, which hold for all its users.
    #[must_use]
    pub fn shared_preferences(mut self, preferences: Value) -> Self {
        self.shared_preferences = preferences;
        self
    }

    /// Assigns the user as a mentee: preferences that are meant for all are kept for them alone.
    #[must_use]
    pub fn for_mentee(mut self) -> Self {
        self.is_mentee = true;
        self
    }

    /// Sets the session state.
    #[must_use]
    pub fn state(mut self, state: Value) -> Self {
        self.state = state;
        self
    }

    /// Sets the type of the session.
    #[must_use]
    pub fn session_type(mut self, session_type: &str) -> Self {
        session_type.clone_into(&mut self.session_type);
        self
    }

    /// Sets the user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// Sets the configuration that the session was opened with.
    #[must_use]
    pub fn session_config(mut self, config: Value) -> Self {
        self.session_config = config;
        self
    }

    /// Adds a structured session that has ended, later than those before it. One that names no user
    /// was the user's.
    #[must_use]
    pub fn past_session(mut self, session: PastSession) -> Self {
        self.history.insert(0, session);
        self
    }

    /// Sets the time.
    #[must_use]
    pub fn now_ms(mut self, now_ms: u64) -> Self {
        self.now_ms = now_ms;
        self
    }

    /// Sets the rest of the turn's limits.
    #[must_use]
    pub fn left(mut self, left: LimitsLeft) -> Self {
        self.left = left;
        self
    }

    /// Sets the memo of the last step.
    #[must_use]
    pub fn memo(mut self, memo: Memo) -> Self {
        self.memo = Some(memo);
        self
    }

    /// Adds a message of the user's at the thread's end.
    #[must_use]
    pub fn said(self, words: &str) -> Self {
        self.message(Role::User, words)
    }

    /// Adds a message at the thread's end.
    #[must_use]
    pub fn message(mut self, role: Role, content: impl IntoParts) -> Self {
        self.push(role, content.into_parts(), "test", None);
        self
    }

    /// Adds a blob that the thread mentions.
    #[must_use]
    pub fn blob(mut self, handle: &str, bytes: &[u8]) -> Self {
        self.blobs.insert(handle.to_owned(), bytes.to_owned());
        self
    }

    /// Adds a file that a user uploaded in the session.
    #[must_use]
    pub fn file(self, file: &UploadedFile, bytes: &[u8]) -> Self {
        self.blob(&file.digest, bytes)
    }

    /// Adds a tool that the agent may use.
    #[must_use]
    pub fn tool(mut self, definition: ToolDefinition) -> Self {
        self.tools.push(definition);
        self
    }

    /// Adds a tool that the agent may use, of which only the name matters.
    #[must_use]
    pub fn tool_named(self, name: &str) -> Self {
        self.tool(plain_tool(name))
    }

    /// Adds an agent that this one may dispatch to.
    #[must_use]
    pub fn peer(mut self, id: &str, description: &str) -> Self {
        self.peers.push(Peer {
            id: id.to_owned(),
            name: id.to_owned(),
            description: description.to_owned(),
        });
        self
    }

    /// The turn, to hand to [`Agent::step`](crate::Agent::step).
    #[must_use]
    pub fn turn(&self) -> Turn<'_> {
        Turn::new(self)
    }

    pub(super) fn push(
        &mut self,
        role: Role,
        parts: Vec<Part>,
        origin: &str,
        answers: Option<(MessageId, u32)>,
    ) -> MessageId {
        let id = self.thread.len() as MessageId + 1;
        self.thread.push(Message {
            id,
            role,
            parts,
            origin: origin.to_owned(),
            untrusted: false,
            answers,
        });
        id
    }
}

/// Merges keys into others.
pub(super) fn keep(keys: &mut Value, new: &Value) {
    if let (Some(keys), Some(new)) = (keys.as_object_mut(), new.as_object()) {
        keys.extend(new.clone());
    }
}

/// A tool of which only the name matters.
pub(super) fn plain_tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        arguments: json!({ "type": "object" }),
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

impl View for Scene {
    fn agent_id(&self) -> String {
        "00000000-0000-4000-8000-000000000001".to_owned()
    }

    fn path(&self) -> String {
        "/agent/test".to_owned()
    }

    fn user(&self) -> String {
        self.user.clone()
    }

    fn session_type(&self) -> String {
        self.session_type.clone()
    }

    fn session_config(&self) -> Value {
        self.session_config.clone()
    }

    fn history(&self) -> Value {
        let named = |past: &PastSession| {
            let user_id = if past.user_id.is_empty() {
                self.user.clone()
            } else {
                past.user_id.clone()
            };
            PastSession {
                user_id,
                ..past.clone()
            }
        };
        let seen = self
            .history
            .iter()
            .map(named)
            .filter(|past| !self.is_mentee || past.user_id == self.user);
        json!(seen.collect::<Vec<_>>())
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn left(&self) -> LimitsLeft {
        self.left
    }

    fn settings(&self) -> Value {
        json!({ "prompt": self.prompt, "settings": self.settings })
    }

    fn preferences(&self) -> Value {
        let mut all = self.shared_preferences.clone();
        keep(&mut all, &self.preferences);
        all
    }

    fn shared_preferences(&self) -> Value {
        self.shared_preferences.clone()
    }

    fn session_state(&self) -> Value {
        self.state.clone()
    }

    fn head(&self) -> Option<MessageId> {
        self.thread.last().map(|message| message.id)
    }

    fn message(&self, id: MessageId) -> Option<Message> {
        self.thread.iter().find(|message| message.id == id).cloned()
    }

    fn read_blob(&self, handle: &str, offset: u64, length: u32) -> Option<Vec<u8>> {
        let bytes = self.blobs.get(handle)?;
        let from = usize::try_from(offset).ok()?.min(bytes.len());
        Some(
            bytes
                .iter()
                .skip(from)
                .take(length as usize)
                .copied()
                .collect(),
        )
    }

    fn tool_names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    fn tool(&self, name: &str) -> Option<ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    fn peers(&self) -> Vec<Peer> {
        self.peers.clone()
    }

    fn memo(&self) -> Option<Memo> {
        self.memo.clone()
    }
}
