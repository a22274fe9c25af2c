//! The view of a step in a scripted conversation.

use async_trait::async_trait;
use domain::basis::Peer;
use domain::digest::Digest;
use domain::message::{Message, MessageId};
use domain::run::Run;
use domain::step::{Effect, StepResult};
use domain::tool::{EffectClass, ToolDefinition};
use runtime::{AgentDescription, View, ViewError, ViewStatic};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The tool that every scripted agent may use.
pub(crate) const TOOL: &str = "sample_tool";
/// The agent that every scripted agent may dispatch to.
pub(crate) const PEER: &str = "sample-peer";

/// The session type, the tools and the memory of a scripted agent.
#[derive(Debug, Clone)]
pub(crate) struct Situation {
    pub(crate) session_type: String,
    pub(crate) tools: Arc<Vec<ToolDefinition>>,
    preferences: Map<String, Value>,
    state: Value,
}

impl Situation {
    /// The situation at the beginning: with the tools that the agent wants, and one more.
    pub(crate) fn new(agent: &AgentDescription) -> Self {
        let wanted = agent.wants.iter().map(String::as_str);
        let names = std::iter::once(TOOL).chain(wanted.filter(|name| *name != TOOL));
        let leads = agent.session_types.first();
        Self {
            session_type: leads.map_or("chat", String::as_str).to_owned(),
            tools: Arc::new(names.map(tool).collect()),
            preferences: Map::new(),
            state: Value::Null,
        }
    }

    /// Takes in the effects of a step, which the next one sees.
    pub(crate) fn learn(&mut self, result: &StepResult) {
        for effect in &result.effects {
            match effect {
                Effect::Prefer {
                    preferences: Value::Object(new),
                }
                | Effect::PreferForUser {
                    preferences: Value::Object(new),
                } => self.preferences.extend(new.clone()),
                Effect::SessionState { state } => self.state = state.clone(),
                _ => {}
            }
        }
    }

    /// Returns the view of a step that hears these messages.
    pub(crate) fn view(&self, run: &Run, heard: &[Message]) -> StepView {
        let own = run.messages.iter().map(|message| Message::clone(message));
        let own: Vec<Message> = own.chain(heard.iter().cloned()).collect();
        let preferences = Value::Object(self.preferences.clone()).to_string();
        StepView {
            fixed: ViewStatic {
                agent_id: run.started.agent.to_string(),
                path: "/sample".to_owned(),
                user: run.started.user_id.to_string(),
                session_type: self.session_type.clone(),
                session_config: "{}".to_owned(),
                history: "[]".to_owned(),
                settings: json!({ "prompt": "Be brief.", "settings": {} }).to_string(),
                shared_preferences: preferences.clone(),
                preferences,
                session_state: self.state.to_string(),
                head: own.last().map(|message| message.id),
                tools: self.tools.clone(),
                peers: vec![Peer {
                    id: PEER.to_owned(),
                    name: "Sample peer".to_owned(),
                    description: "Does work that is handed to it.".to_owned(),
                }],
                memo: run.memo.clone(),
            },
            own,
        }
    }
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "A stand-in for a tool.".to_owned(),
        arguments: json!({ "type": "object" }),
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

/// A view of the messages of one run.
pub(crate) struct StepView {
    fixed: ViewStatic,
    own: Vec<Message>,
}

#[async_trait]
impl View for StepView {
    fn basis_static(&self) -> &ViewStatic {
        &self.fixed
    }

    async fn message(&self, id: MessageId) -> Result<Option<Message>, ViewError> {
        Ok(self.own.iter().find(|message| message.id == id).cloned())
    }

    async fn read_blob(
        &self,
        _digest: Digest,
        _offset: u64,
        _length: u32,
    ) -> Result<Option<Vec<u8>>, ViewError> {
        Ok(None)
    }
}
