//! The arguments of a call, as the model wrote them, checked.

use super::{MESSAGE, MESSAGE_TIMEOUT_S, TIMEOUT_S_MAX};
use crate::agents::definition::DefinitionId;
use crate::agents::external::ExternalName;
use crate::thread::message::Part;
use crate::values::error_code::INVALID_ARGUMENTS;
use crate::values::id::{AgentId, SessionId};
use crate::values::limits::INPUT_BYTES_MAX;
use crate::work::budget::Budget;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A fault in a call, which had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    /// The public code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        INVALID_ARGUMENTS
    }
}

/// The agent that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// A kind of agent.
    Definition(DefinitionId),
    /// The agent at a path.
    Path(String),
    /// An agent by its id.
    Agent(AgentId),
}

impl Whom {
    fn named(name: String) -> Self {
        if name.starts_with('/') {
            return Self::Path(name);
        }
        match name.parse() {
            Ok(agent) => Self::Agent(agent),
            Err(_) => Self::Definition(DefinitionId(name)),
        }
    }
}

/// The selected session of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The most recently active session.
    Latest,
    /// A new one.
    Create,
    /// The latest, or a new one if there is none.
    LatestOrCreate,
    /// This one.
    Id(SessionId),
}

/// The mode of a message: whether it waits for its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It does.
    Sync,
    /// It does not.
    Async,
}

/// A call of `dispatch_to_agent` that passed every check.
#[derive(Debug, Clone, PartialEq)]
pub struct DispatchCall {
    /// The agent that receives the work.
    pub target: Whom,
    /// The work.
    pub content: Vec<Part>,
    /// True to wait for the reply.
    pub wait: bool,
    /// Milliseconds until it is stopped: the lesser of its timeout and its budget's time.
    pub timeout_ms: Option<u64>,
    /// Its budget.
    pub budget: Budget,
}

/// A call of `agents_message` that passed every check.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageCall {
    /// The recipient.
    pub agent: Whom,
    /// Its content.
    pub content: Vec<Part>,
    /// The session of the message.
    pub session: Which,
    /// Its mode.
    pub mode: Mode,
    /// Seconds to wait.
    pub timeout_s: u64,
}

/// Checks a call of `dispatch_to_agent`.
///
/// # Errors
/// The first thing that is wrong.
pub fn dispatch(arguments: Map<String, Value>) -> Result<DispatchCall, Invalid> {
    let mut arguments = Arguments(arguments);
    let target = Whom::named(arguments.text_needed("target")?);
    let content = arguments.content()?;
    let wait = arguments.flag("wait")?;
    let timeout_s = arguments.seconds("timeout")?;
    let (budget, wall_s) = match arguments.0.remove("budget") {
        None | Some(Value::Null) => (Budget::default(), None),
        Some(Value::Object(budget)) => {
            let mut budget = Arguments(budget);
            let tokens = budget.number("tokens", 1)?;
            let calls = budget
                .number("calls", 0)?
                .map(|calls| u32::try_from(calls).unwrap_or(u32::MAX));
            let cost_micros = budget.number("cost_micros", 1)?;
            let wall_s = budget.seconds("wall_s")?;
            budget.nothing_else("a budget", "tokens, calls, cost_micros, wall_s")?;
            (
                Budget {
                    tokens,
                    calls,
                    cost_micros,
                },
                wall_s,
            )
        }
        Some(_) => {
            return invalid("`budget` must be an object of tokens, calls, cost_micros and wall_s");
        }
    };
    arguments.nothing_else(super::DISPATCH, "target, content, wait, timeout, budget")?;
    let timeout_ms = timeout_s
        .into_iter()
        .chain(wall_s)
        .min()
        .map(|seconds| seconds * 1_000);
    Ok(DispatchCall {
        target,
        content,
        wait,
        timeout_ms,
        budget,
    })
}

/// Checks a call of `reply_to_caller`; returns the reply.
///
/// # Errors
/// The first thing that is wrong.
pub fn reply(arguments: Map<String, Value>) -> Result<Vec<Part>, Invalid> {
    let mut arguments = Arguments(arguments);
    let content = arguments.content()?;
    arguments.nothing_else(super::REPLY, "content")?;
    Ok(content)
}

/// Checks a call of `agents_message`.
///
/// # Errors
/// The first thing that is wrong.
pub fn message(arguments: Map<String, Value>) -> Result<MessageCall, Invalid> {
    let mut arguments = Arguments(arguments);
    let agent = Whom::named(arguments.text_needed("agentId")?);
    let content = arguments.content()?;
    let session = match arguments.text("session")?.as_deref() {
        None | Some("latest-or-create") => Which::LatestOrCreate,
        Some("latest") => Which::Latest,
        Some("create") => Which::Create,
        // An id is its own name.
        Some(name) => match name.parse::<ExternalName>() {
            Ok(name) => Which::Id(name.session()),
            Err(_) => {
                return invalid(
                    "`session` must be `latest`, `create`, `latest-or-create`, the id of a \
                     session, or the name of one of an external agent's",
                );
            }
        },
    };
    let mode = match arguments.text("mode")?.as_deref() {
        None | Some("sync") => Mode::Sync,
        Some("async") => Mode::Async,
        Some(_) => return invalid("`mode` must be `sync` or `async`"),
    };
    let timeout_s = arguments.seconds("timeout")?.unwrap_or(MESSAGE_TIMEOUT_S);
    arguments.nothing_else(MESSAGE, "agentId, content, session, mode, timeout")?;
    Ok(MessageCall {
        agent,
        content,
        session,
        mode,
        timeout_s,
    })
}

fn invalid<T>(what: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid(what.into()))
}

/// The unchecked arguments. Models write `null` for omitted ones.
struct Arguments(Map<String, Value>);

impl Arguments {
    fn text(&mut self, name: &str) -> Result<Option<String>, Invalid> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => invalid(format!("`{name}` must be text")),
        }
    }

    fn text_needed(&mut self, name: &str) -> Result<String, Invalid> {
        match self.text(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => invalid(format!("`{name}` must not be empty")),
            None => invalid(format!("`{name}` is missing")),
        }
    }

    fn content(&mut self) -> Result<Vec<Part>, Invalid> {
        let content = self.text_needed("content")?;
        if content.len() > INPUT_BYTES_MAX {
            return invalid(format!("`content` is longer than {INPUT_BYTES_MAX} bytes"));
        }
        Ok(vec![Part::text(content)])
    }

    fn flag(&mut self, name: &str) -> Result<bool, Invalid> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => invalid(format!("`{name}` must be true or false")),
        }
    }

    fn number(&mut self, name: &str, least: u64) -> Result<Option<u64>, Invalid> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().filter(|number| *number >= least) {
                Some(number) => Ok(Some(number)),
                None => invalid(format!("`{name}` must be a whole number from {least}")),
            },
        }
    }

    /// Seconds; a fraction is dropped.
    fn seconds(&mut self, name: &str) -> Result<Option<u64>, Invalid> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let whole = value.as_u64().or_else(|| {
                    let seconds = value
                        .as_f64()
                        .filter(|seconds| (1.0..=TIMEOUT_S_MAX as f64).contains(seconds))?;
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "it was just compared with its bounds"
                    )]
                    Some(seconds as u64)
                });
                match whole.filter(|seconds| (1..=TIMEOUT_S_MAX).contains(seconds)) {
                    Some(seconds) => Ok(Some(seconds)),
                    None => invalid(format!(
                        "`{name}` must be a number of seconds from 1 to {TIMEOUT_S_MAX}"
                    )),
                }
            }
        }
    }

    fn nothing_else(&self, of: &str, known: &str) -> Result<(), Invalid> {
        match self.0.keys().next() {
            Some(unknown) => invalid(format!(
                "`{unknown}` is not an argument of {of}; there are: {known}"
            )),
            None => Ok(()),
        }
    }
}
