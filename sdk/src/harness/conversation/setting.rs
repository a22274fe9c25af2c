//! The surroundings of a conversation in a test: the session, the operator's configuration, tools,
//! peers and the scripted replies.

use crate::agent::Agent;
use crate::client::UploadedFile;
use crate::harness::conversation::Conversation;
use crate::harness::performer::{Fake, Reply};
use crate::harness::rules::check_definitions;
use crate::harness::scene::plain_tool;
use crate::tool::{IntoProgress, ToolError, Tools};
use crate::turn::{LimitsLeft, PastSession, Peer};
use serde_json::Value;

impl<A: Agent> Conversation<A> {
    /// Sets the system prompt of the definition.
    #[must_use]
    pub fn prompt(mut self, prompt: &str) -> Self {
        self.scene = self.scene.prompt(prompt);
        self
    }

    /// Sets the settings of the operator's.
    #[must_use]
    pub fn settings(mut self, settings: Value) -> Self {
        self.scene = self.scene.settings(settings);
        self
    }

    /// Sets the preferences of the user's own.
    #[must_use]
    pub fn preferences(mut self, preferences: Value) -> Self {
        self.scene = self.scene.preferences(preferences);
        self
    }

    /// Adds a file that the user uploads in the session. An answer to a question names it:
    /// `client_answers(json!({ "files": [file] }))`.
    #[must_use]
    pub fn file(mut self, file: &UploadedFile, bytes: &[u8]) -> Self {
        self.scene = self.scene.file(file, bytes);
        self
    }

    /// Sets the preferences of the agent's, which hold for all its users.
    #[must_use]
    pub fn shared_preferences(mut self, preferences: Value) -> Self {
        self.scene = self.scene.shared_preferences(preferences);
        self
    }

    /// Assigns the user as a mentee: preferences that are meant for all are kept for them alone.
    #[must_use]
    pub fn for_mentee(mut self) -> Self {
        self.scene = self.scene.for_mentee();
        self
    }

    /// Sets the user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.scene = self.scene.user(user);
        self
    }

    /// Sets the configuration that the session was opened with.
    #[must_use]
    pub fn session_config(mut self, config: Value) -> Self {
        self.scene = self.scene.session_config(config);
        self
    }

    /// Adds a structured session that has ended, later than those before it. One that names no user
    /// was the user's.
    #[must_use]
    pub fn past_session(mut self, session: PastSession) -> Self {
        self.scene = self.scene.past_session(session);
        self
    }

    /// Sets the limits of each turn.
    #[must_use]
    pub fn limits(mut self, limits: LimitsLeft) -> Self {
        self.limits = limits;
        self.scene = self.scene.left(limits);
        self
    }

    /// Makes it a structured session of this type.
    ///
    /// # Panics
    /// When the agent's description does not list it.
    #[must_use]
    pub fn session_type(mut self, session_type: &str) -> Self {
        let known = self.agent.describe().session_types;
        assert!(
            known.iter().any(|known| known == session_type),
            "the agent leads only {known:?}"
        );
        self.scene = self.scene.session_type(session_type);
        self
    }

    /// Adds a tool of the test's own.
    #[must_use]
    pub fn tool<R: IntoProgress>(
        mut self,
        name: &str,
        run: impl Fn(Value) -> Result<R, ToolError> + 'static,
    ) -> Self {
        let definition = plain_tool(name);
        self.scene = self.scene.tool(definition.clone());
        let run = Box::new(move |_: &_, arguments| run(arguments)?.into_progress());
        self.performer.tools.push(Fake { definition, run });
        self
    }

    /// Adds all tools of a tool component.
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

    /// Adds an agent that this one may dispatch to, with its replies.
    #[must_use]
    pub fn peer(mut self, id: &str, reply: impl Fn(&str) -> String + 'static) -> Self {
        self.scene.peers.push(Peer {
            id: id.to_owned(),
            name: id.to_owned(),
            description: String::new(),
        });
        self.performer.peers.push((id.to_owned(), Box::new(reply)));
        self
    }

    /// Adds something to recall, as `{"text","turn","session","time"}`.
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
}
