//! Operations: pieces of work that take time or leave the host, as an agent asks for them.

pub use crate::bindings::agent_plugin::exports::agent_host::plugin::agent::{
    Audience, Context, Dispatch, Toolset,
};

use crate::client::ClientAction;
use crate::content::{IntoParts, MessageId, Part};
use crate::turn::Turn;
use serde_json::Value;

/// One piece of work under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// A name of the agent's choosing: 1 to 128 bytes, unused by any operation of this turn before.
    pub key: String,
    /// The work to do.
    pub work: Work,
}

/// Something that takes time or leaves the host.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Ask a model. Settles with a message, or with parts when the audience is hidden.
    Model(ModelRequest),
    /// Call a tool. Settles with a message for a model's call and with parts for the agent's own.
    Tool(Call),
    /// Ask the user. Settles with a value, the answer.
    Client(ClientAction),
    /// Hand work to another agent. Settles with parts, its reply.
    Agent(Dispatch),
    /// Look something up. Settles with a value: `{"hits":[{"text","turn","session","time"}]}`.
    Recall {
        /// Words to look for.
        query: String,
        /// Number of hits at most; no more than 50.
        limit: u32,
    },
    /// Wait for so many milliseconds. Survives restarts; never early.
    TimerMs(u64),
}

/// A call of a tool: the model's or the agent's own.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// A call that a model made. The result enters the thread, paired with the call.
    OfModel {
        /// The assistant message.
        message: MessageId,
        /// The call's index in it.
        index: u32,
    },
    /// A call of the agent's own. The result is in the outcome and not in the thread.
    Own {
        /// The tool's name.
        name: String,
        /// The arguments: a JSON object.
        arguments: Value,
    },
}

impl Operation {
    /// Ask a model.
    pub fn model(key: impl Into<String>, request: ModelRequest) -> Self {
        Self {
            key: key.into(),
            work: Work::Model(request),
        }
    }

    /// Carry out a call that the model made.
    pub fn call_of_model(key: impl Into<String>, message: MessageId, index: u32) -> Self {
        Self {
            key: key.into(),
            work: Work::Tool(Call::OfModel { message, index }),
        }
    }

    /// Call a tool with arguments of the agent's own.
    pub fn tool(key: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self {
            key: key.into(),
            work: Work::Tool(Call::Own {
                name: name.into(),
                arguments,
            }),
        }
    }

    /// Ask the user.
    pub fn client(key: impl Into<String>, action: ClientAction) -> Self {
        Self {
            key: key.into(),
            work: Work::Client(action),
        }
    }

    /// Hand work to another agent.
    pub fn agent(key: impl Into<String>, dispatch: Dispatch) -> Self {
        Self {
            key: key.into(),
            work: Work::Agent(dispatch),
        }
    }

    /// Look something up in what this agent's threads and notes hold.
    pub fn recall(key: impl Into<String>, query: impl Into<String>, limit: u32) -> Self {
        Self {
            key: key.into(),
            work: Work::Recall {
                query: query.into(),
                limit,
            },
        }
    }

    /// Wait for so many milliseconds.
    pub fn timer_ms(key: impl Into<String>, ms: u64) -> Self {
        Self {
            key: key.into(),
            work: Work::TimerMs(ms),
        }
    }
}

/// A call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The system prompt in blocks, those that change most often last, so that a provider can cache
    /// what stays.
    pub system: Vec<String>,
    /// The part of the thread that it sees.
    pub context: Context,
    /// Messages after those, for this call only, as the user's.
    pub also: Vec<Part>,
    /// The tools that it may call.
    pub tools: Toolset,
    /// A model or alias of the operator's. Without one: the session's, the definition's, the
    /// host's, in this order.
    pub model: Option<String>,
    /// Number of tokens of the reply at most.
    pub max_tokens: Option<u32>,
    /// JSON Schema that the reply must fit.
    pub reply_schema: Option<Value>,
    /// The audience of its reply.
    pub audience: Audience,
}

impl ModelRequest {
    /// A request with these blocks of system prompt, the whole thread and all tools. It uses the
    /// model of the session's choice and shows the reply to the user.
    #[must_use]
    pub fn new(system: Vec<String>) -> Self {
        Self {
            system,
            context: Context::Whole,
            also: Vec::new(),
            tools: Toolset::All,
            model: None,
            max_tokens: None,
            reply_schema: None,
            audience: Audience::User,
        }
    }

    /// A request for work of the agent's own: under the definition's prompt and then these words,
    /// and without tools. What stands last is what a weak model follows.
    #[must_use]
    pub fn for_task<const N: usize>(turn: Turn<'_>, words: [&str; N]) -> Self {
        let prompt = Some(turn.prompt()).filter(|prompt| !prompt.trim().is_empty());
        let words = words.into_iter().map(str::to_owned);
        Self::new(prompt.into_iter().chain(words).collect()).with_tools(Toolset::None)
    }

    /// Shows nothing of the thread.
    #[must_use]
    pub fn without_thread(self, turn: Turn<'_>) -> Self {
        self.since(turn.head().unwrap_or_default() + 1)
    }

    /// Offers these tools to the model.
    #[must_use]
    pub fn with_tools(mut self, tools: Toolset) -> Self {
        self.tools = tools;
        self
    }

    /// Adds content at the end of the prompt, for this call only.
    #[must_use]
    pub fn with_also(mut self, parts: impl IntoParts) -> Self {
        self.also.extend(parts.into_parts());
        self
    }

    /// Shows only the thread's messages from this one on. The id after the thread's last shows
    /// none.
    #[must_use]
    pub fn since(mut self, message: MessageId) -> Self {
        self.context = Context::Since(message);
        self
    }

    /// Asks for a reply that is JSON and fits this schema. The host validates it, and lets the
    /// model repair it twice.
    #[must_use]
    pub fn replying_with(mut self, schema: Value) -> Self {
        self.reply_schema = Some(schema);
        self
    }

    /// Limits the tokens of the reply.
    #[must_use]
    pub fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Hides the reply: the outcome carries it, and no client shows it.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.audience = Audience::Hidden;
        self
    }
}

impl Dispatch {
    /// Tells a peer something and waits for its reply.
    pub fn to(target: impl Into<String>, content: impl IntoParts) -> Self {
        Self {
            target: target.into(),
            content: content.into_parts(),
            detached: false,
            timeout_ms: None,
        }
    }
}
