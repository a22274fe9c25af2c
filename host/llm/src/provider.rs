//! Providers: one file each. Those on the network share the exchange and differ in their dialect.

pub(crate) mod anthropic;
pub(crate) mod exchange;
mod list;
pub(crate) mod openai;
pub(crate) mod program;
pub(crate) mod scripted;

use crate::conversation::{Entry, entries, strip};
use crate::delta::Feed;
use crate::key::ApiKey;
use crate::peer::Peer;
use crate::retry::{AttemptError, Mode};
use crate::sse::Event;
use crate::trail::Trail;
use domain::id::AgentId;
use domain::message::Part;
use domain::model::{Prompt, Stop, Usage};
use domain::redact::Redactor;
use domain::sampling::Sampling;
use http::HeaderMap;
use serde_json::{Map, Value};

/// Calls of one reply.
pub(crate) const CALLS_MAX: usize = 128;
/// Bytes of one call's arguments.
pub(crate) const ARGUMENTS_BYTES_MAX: usize = 1 << 20;

/// A request to a provider.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// The prompt for the model.
    pub(crate) prompt: &'a Prompt,
    /// The provider's name in the config.
    pub(crate) provider: &'a str,
    /// The provider's name of the model.
    pub(crate) model: &'a str,
    /// The operator's limit of the reply, in tokens.
    pub(crate) max_tokens: Option<u32>,
    /// More fields of the request.
    pub(crate) parameters: &'a Map<String, Value>,
    /// The agent that asks.
    pub(crate) agent: AgentId,
    /// The model's window, in tokens.
    pub(crate) context_window: u64,
    /// The trail that records that it is asked.
    pub(crate) trail: &'a dyn Trail,
    /// Nothing is sent but what every server takes: a request was refused for its form.
    pub(crate) bare: bool,
}

impl Ask<'_> {
    /// The conversation as it is sent.
    pub(crate) fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries = entries(&self.prompt.messages, self.provider, self.model);
        if self.bare {
            strip(&mut entries);
        }
        entries
    }

    /// The stricter of the two limits of the reply.
    pub(crate) fn tokens_max(&self) -> Option<u32> {
        match (self.prompt.max_tokens, self.max_tokens) {
            (Some(asked), Some(allowed)) => Some(asked.min(allowed).max(1)),
            (asked, allowed) => asked.map(|asked| asked.max(1)).or(allowed),
        }
    }
}

/// The whole answer of a provider.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) parts: Vec<Part>,
    pub(crate) stop: Stop,
    pub(crate) usage: Option<Usage>,
    /// The work of a program with its own tools; none of a model.
    pub(crate) own_work: OwnWork,
}

/// The work that a program in a model's place did with tools of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OwnWork {
    /// The tools that it called, in order.
    pub(crate) calls: Vec<String>,
    /// True if it has any, and so may have read whatever they reach.
    pub(crate) has_tools: bool,
}

/// A reply that cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Broken {
    /// It makes no sense.
    Garbage {
        /// The problem.
        problem: &'static str,
        /// Some of it, not cleaned yet.
        sample: String,
    },
    /// It is not all there.
    CutShort,
    /// The provider reports an error inside it.
    Reported(Value),
}

impl Broken {
    pub(crate) fn garbage(problem: &'static str, sample: impl Into<String>) -> Self {
        Self::Garbage {
            problem,
            sample: sample.into(),
        }
    }
}

/// The protocol of a provider on the network. Pure: the exchange does the sending.
pub(crate) trait Dialect: Send + Sync {
    /// Returns the path of requests, below the base URL.
    fn path(&self) -> &'static str;
    /// Returns the path of the list of models, below the base URL.
    fn list_path(&self) -> &'static str;
    /// Headers beside the content type.
    fn headers(&self, key: Option<&ApiKey>) -> HeaderMap;
    /// Fields of the request that an operator's parameters may not set.
    fn reserved(&self) -> &'static [&'static str];
    /// Returns the tokens of a reply that a request asks for if nothing limits it; none if it then
    /// asks for no limit.
    fn default_output_tokens(&self) -> Option<u32> {
        None
    }
    /// Returns the first of the settings that the provider does not take: its key, and what would
    /// be taken.
    fn unfit(&self, sampling: &Sampling) -> Option<(&'static str, String)>;
    /// The request.
    fn request(&self, ask: &Ask<'_>, mode: Mode) -> Value;
    /// Reads a reply that came in one piece, and shows it to the watcher.
    fn whole(&self, ask: &Ask<'_>, body: &Value, feed: &Feed<'_>) -> Result<Answer, Broken>;
    /// Starts to put a streamed reply together.
    fn assembly(&self, ask: &Ask<'_>) -> Box<dyn Assembly>;
}

/// A streamed reply that is being put together.
pub(crate) trait Assembly: Send {
    /// Takes the next event.
    fn take(&mut self, event: &Event, feed: &Feed<'_>) -> Result<(), Broken>;
    /// Returns whether the provider's own end mark was seen and nothing more is to come.
    fn ended(&self) -> bool;
    /// The reply, if it is all there. What was held back is shown.
    fn finish(self: Box<Self>, feed: &Feed<'_>) -> Result<Answer, Broken>;
}

/// A provider.
pub(crate) enum Provider {
    /// One on the network.
    Remote(Box<exchange::Remote>),
    /// A rule file.
    Scripted(scripted::Script),
    /// A program of the operating system.
    Program(Box<program::Program>),
}

impl Provider {
    /// Returns the redactor that takes its key out of every response.
    pub(crate) fn redactor(&self) -> Redactor {
        match self {
            Self::Remote(remote) => remote.redactor.clone(),
            Self::Scripted(_) => Redactor::default(),
            Self::Program(program) => program.redactor.clone(),
        }
    }

    /// Returns the milliseconds for which an attempt may show nothing because its reply comes in
    /// one chunk; none for one that is streamed.
    pub(crate) fn quiet_ms(&self, mode: Mode) -> Option<u64> {
        match (self, mode) {
            (Self::Remote(remote), Mode::Whole) => Some(remote.timeouts.whole_ms),
            (Self::Program(program), _) => Some(program.quiet_ms()),
            (Self::Remote(_), Mode::Stream) | (Self::Scripted(_), _) => None,
        }
    }

    /// Returns the tokens of a reply that it is asked for if nothing limits it; none if it is then
    /// asked for no limit.
    pub(crate) fn default_output_tokens(&self) -> Option<u32> {
        match self {
            Self::Remote(remote) => remote.dialect.default_output_tokens(),
            Self::Scripted(_) | Self::Program(_) => None,
        }
    }

    /// Returns whether it is a script in a model's place.
    pub(crate) fn is_script(&self) -> bool {
        matches!(self, Self::Scripted(_))
    }

    /// Returns whether it is a program, which may change the world by itself.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self, Self::Program(_))
    }

    /// Returns the first of the settings that it does not take: its key, and what would be taken.
    pub(crate) fn unfit(&self, sampling: &Sampling) -> Option<(&'static str, String)> {
        match self {
            Self::Remote(remote) => remote.dialect.unfit(sampling),
            // A rule file can look at all of them.
            Self::Scripted(_) => None,
            Self::Program(program) => program.unfit(sampling),
        }
    }

    /// Asks once.
    pub(crate) async fn ask(
        &self,
        ask: &Ask<'_>,
        mode: Mode,
        feed: &Feed<'_>,
    ) -> Result<Answer, AttemptError> {
        match self {
            Self::Remote(remote) => remote.ask(ask, mode, feed).await,
            Self::Scripted(script) => script.ask(ask, mode, feed).await,
            Self::Program(program) => Box::pin(program.ask(ask, mode, feed)).await,
        }
    }

    /// The provider as failures name it.
    pub(crate) fn peer<'a>(&'a self, provider: &'a str, model: &'a str) -> Peer<'a> {
        let key = match self {
            Self::Remote(remote) => remote.key(),
            Self::Scripted(_) => None,
            Self::Program(program) => program.key(),
        };
        Peer {
            provider,
            model,
            key,
        }
    }
}

/// Adds to the arguments of a call, within the limit.
fn grow_arguments(arguments: &mut String, chunk: &str) -> Result<(), Broken> {
    if arguments.len() + chunk.len() > ARGUMENTS_BYTES_MAX {
        return Err(Broken::garbage(
            "the arguments of a call are larger than 1 MiB",
            "",
        ));
    }
    arguments.push_str(chunk);
    Ok(())
}
