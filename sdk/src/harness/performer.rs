//! Carries out operations in a test: scripted models, tools, peers and clients.

use crate::client::ClientAction;
use crate::content::{CutOff, MessageId, ModelCall, Part, Role, text_of};
use crate::harness::bench::{context_of_test, declaring};
use crate::harness::scene::Scene;
use crate::news::{Failure, Outcome};
use crate::operation::{Audience, Call, Dispatch, ModelRequest, Work};
use crate::tool::{CallContext, Progress, Run, ToolDefinition, ToolError};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A tool of a test.
pub(super) struct Fake {
    pub(super) definition: ToolDefinition,
    pub(super) run: Box<Run>,
}

/// A peer of a test: its id and what it replies.
type FakePeer = (String, Box<dyn Fn(&str) -> String>);

/// All that stands outside the agent.
#[derive(Default)]
pub(super) struct Performer {
    pub(super) model: VecDeque<Reply>,
    pub(super) tools: Vec<Fake>,
    pub(super) peers: Vec<FakePeer>,
    pub(super) answers: VecDeque<Value>,
    pub(super) hits: Vec<Value>,
    pub(super) requests: Vec<ModelRequest>,
    pub(super) calls: Vec<(String, Value)>,
}

/// A result, before it has a place in the thread.
pub(super) enum Done {
    Plain(Outcome),
    InThread {
        role: Role,
        parts: Vec<Part>,
        origin: String,
        answers: Option<(MessageId, u32)>,
        failure: Option<Failure>,
    },
}

/// A call of a tool under way.
pub(super) struct ToolCall {
    name: String,
    arguments: Value,
    pub(super) answers: Option<(MessageId, u32)>,
}

/// The event that an open operation waits for.
pub(super) enum Open {
    Client(ClientAction),
    TimerUntil(u64),
    ToolUntil {
        due_ms: u64,
        call: ToolCall,
        state: Vec<u8>,
    },
    ToolAsks {
        action: ClientAction,
        call: ToolCall,
        state: Vec<u8>,
    },
}

pub(super) enum Performed {
    Done(Done),
    Open(Open),
}

impl Open {
    pub(super) fn question(&self) -> Option<&ClientAction> {
        match self {
            Self::Client(action) | Self::ToolAsks { action, .. } => Some(action),
            Self::TimerUntil(_) | Self::ToolUntil { .. } => None,
        }
    }

    pub(super) fn due_ms(&self) -> Option<u64> {
        match self {
            Self::TimerUntil(due_ms) | Self::ToolUntil { due_ms, .. } => Some(*due_ms),
            Self::Client(_) | Self::ToolAsks { .. } => None,
        }
    }

    /// Returns the outcome of the operation when it is cancelled.
    pub(super) fn cancelled(self) -> Done {
        match self {
            Self::ToolUntil {
                call:
                    ToolCall {
                        answers: Some((message, index)),
                        ..
                    },
                ..
            }
            | Self::ToolAsks {
                call:
                    ToolCall {
                        answers: Some((message, index)),
                        ..
                    },
                ..
            } => synthetic("cancelled", message, index),
            Self::Client(_)
            | Self::TimerUntil(_)
            | Self::ToolUntil { .. }
            | Self::ToolAsks { .. } => Done::Plain(Outcome::Cancelled),
        }
    }
}

/// The result that pairs a call which was not carried out.
pub(super) fn synthetic(text: &str, message: MessageId, call: u32) -> Done {
    Done::InThread {
        role: Role::Tool,
        parts: vec![Part::Text(text.to_owned())],
        origin: "host".to_owned(),
        answers: Some((message, call)),
        failure: None,
    }
}

fn failed(code: &str, message: impl Into<String>) -> Failure {
    Failure {
        code: code.to_owned(),
        message: message.into(),
        retryable: false,
    }
}

impl Performer {
    /// Begins an operation.
    pub(super) fn start(&mut self, work: &Work, scene: &mut Scene) -> Performed {
        match work {
            Work::Model(request) => Performed::Done(self.ask_model(request)),
            Work::Tool(call) => self.start_tool(call, scene),
            Work::Client(action) => Performed::Open(Open::Client(action.clone())),
            Work::Agent(dispatch) => Performed::Done(Done::Plain(self.dispatch(dispatch))),
            Work::Recall { limit, .. } => {
                let hits: Vec<&Value> = self.hits.iter().take(*limit as usize).collect();
                Performed::Done(Done::Plain(Outcome::Value(json!({ "hits": hits }))))
            }
            Work::TimerMs(ms) => {
                Performed::Open(Open::TimerUntil(scene.now_ms.saturating_add(*ms)))
            }
        }
    }

    /// Goes on with one: a client has answered, or its time has come.
    pub(super) fn go_on(&mut self, open: Open, answer: Option<Value>, now_ms: u64) -> Performed {
        match open {
            Open::Client(_) => {
                Performed::Done(Done::Plain(Outcome::Value(answer.unwrap_or_default())))
            }
            Open::TimerUntil(_) => Performed::Done(Done::Plain(Outcome::Elapsed)),
            Open::ToolUntil { call, state, .. } | Open::ToolAsks { call, state, .. } => {
                self.run_tool(call, Some(state), answer, now_ms)
            }
        }
    }

    fn ask_model(&mut self, request: &ModelRequest) -> Done {
        self.requests.push(request.clone());
        let number = self.requests.len();
        let reply = self.model.pop_front().unwrap_or_else(|| {
            panic!("no reply is scripted for the model's call {number}: {request:?}")
        });
        match (reply.into_result(), request.audience) {
            (Err(failure), _) => Done::Plain(Outcome::Failed(failure)),
            (Ok(parts), Audience::Hidden) => Done::Plain(Outcome::Parts(parts)),
            (Ok(parts), Audience::User) => Done::InThread {
                role: Role::Assistant,
                parts,
                origin: "model:scripted".to_owned(),
                answers: None,
                failure: None,
            },
        }
    }

    fn dispatch(&self, dispatch: &Dispatch) -> Outcome {
        match self.peers.iter().find(|(id, _)| *id == dispatch.target) {
            Some((_, reply)) => {
                Outcome::Parts(vec![Part::Text(reply(&text_of(&dispatch.content)))])
            }
            None => Outcome::Denied,
        }
    }

    fn start_tool(&mut self, call: &Call, scene: &mut Scene) -> Performed {
        let (name, arguments, answers) = match call {
            Call::Own { name, arguments } => (name.clone(), Ok(arguments.clone()), None),
            Call::OfModel { message, index } => {
                let said = scene
                    .turn()
                    .message(*message)
                    .expect("the rules were checked");
                let made = said
                    .calls()
                    .find(|call| call.index == *index)
                    .expect("the rules were checked");
                (
                    made.name.clone(),
                    serde_json::from_str(&made.arguments),
                    Some((*message, *index)),
                )
            }
        };
        if scene.left.tool_calls == 0 {
            let failure = failed("limit-reached", "the turn's tool calls are used up");
            return Performed::Done(failure_of(&name, failure, answers));
        }
        scene.left.tool_calls -= 1;
        match arguments {
            Ok(arguments) => self.run_tool(
                ToolCall {
                    name,
                    arguments,
                    answers,
                },
                None,
                None,
                scene.now_ms,
            ),
            Err(error) => {
                let failure = failed(
                    "invalid-arguments",
                    format!("the arguments are not JSON: {error}"),
                );
                Performed::Done(failure_of(&name, failure, answers))
            }
        }
    }

    fn run_tool(
        &mut self,
        call: ToolCall,
        resumed: Option<Vec<u8>>,
        answer: Option<Value>,
        now_ms: u64,
    ) -> Performed {
        let Some(tool) = self
            .tools
            .iter()
            .find(|tool| tool.definition.name == call.name)
        else {
            let failure = failed("not-found", format!("there is no tool `{}`", call.name));
            return Performed::Done(failure_of(&call.name, failure, call.answers));
        };
        if resumed.is_none() {
            self.calls.push((call.name.clone(), call.arguments.clone()));
        }
        let context = CallContext {
            resumed,
            answer,
            ..context_of_test()
        };
        let declared = tool.definition.capabilities.clone();
        match declaring(declared, || (tool.run)(&context, call.arguments.clone())) {
            Ok(Progress::Done(parts)) => Performed::Done(match call.answers {
                None => Done::Plain(Outcome::Parts(parts)),
                answers => Done::InThread {
                    role: Role::Tool,
                    parts,
                    origin: format!("tool:{}", call.name),
                    answers,
                    failure: None,
                },
            }),
            Ok(Progress::Later { after_ms, state }) => Performed::Open(Open::ToolUntil {
                due_ms: now_ms.saturating_add(after_ms),
                call,
                state,
            }),
            Ok(Progress::Ask { action, state }) => Performed::Open(Open::ToolAsks {
                action,
                call,
                state,
            }),
            Err(error) => {
                let code = match &error {
                    ToolError::InvalidArguments(_) => "invalid-arguments",
                    ToolError::NotFound(_) => "not-found",
                    ToolError::Denied => "denied",
                    ToolError::Failed(_) => "tool-failed",
                    ToolError::RetryLater(_) => "busy",
                };
                Performed::Done(failure_of(
                    &call.name,
                    failed(code, error.to_string()),
                    call.answers,
                ))
            }
        }
    }
}

fn failure_of(name: &str, failure: Failure, answers: Option<(MessageId, u32)>) -> Done {
    if answers.is_none() {
        return Done::Plain(Outcome::Failed(failure));
    }
    let parts = vec![Part::Text(failure.message.clone())];
    Done::InThread {
        role: Role::Tool,
        parts,
        origin: format!("tool:{name}"),
        answers,
        failure: Some(failure),
    }
}

/// One reply of a model: text, calls of tools, or both.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    parts: Vec<Part>,
    calls: u32,
    failure: Option<Failure>,
}

impl Reply {
    /// A reply that says nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.parts.push(Part::Text(text.to_owned()));
        self
    }

    /// Adds a call of a tool.
    #[must_use]
    pub fn call(self, tool: &str, arguments: &Value) -> Self {
        self.raw_call(tool, &arguments.to_string())
    }

    /// Adds a call of a tool whose arguments are as a model may write them: not necessarily JSON.
    #[must_use]
    pub fn raw_call(mut self, tool: &str, arguments: &str) -> Self {
        let call = ModelCall {
            index: self.calls,
            name: tool.to_owned(),
            arguments: arguments.to_owned(),
        };
        self.parts.push(Part::Call(call));
        self.calls += 1;
        self
    }

    /// Marks the reply as one that is not whole.
    #[must_use]
    pub fn cut_off(mut self, cut_off: CutOff) -> Self {
        self.parts.push(cut_off.part());
        self
    }

    /// No reply: the model could not be asked.
    #[must_use]
    pub fn failure(code: &str, message: &str) -> Self {
        let failure = Failure {
            code: code.to_owned(),
            message: message.to_owned(),
            retryable: true,
        };
        Self {
            failure: Some(failure),
            ..Self::default()
        }
    }

    pub(super) fn into_result(self) -> Result<Vec<Part>, Failure> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.parts),
        }
    }
}
