//! Agents: the trait of the `agent-plugin` world and the macro that exports it.

pub use crate::bindings::agent_plugin::exports::agent_host::plugin::agent::Description;

use crate::calls::Calls;
use crate::content::{MessageId, ModelCall};
use crate::news::{News, Settlement};
use crate::operation::{ModelRequest, Toolset};
use crate::step::Step;
use crate::tool_loop;
use crate::turn::Turn;

impl Description {
    /// An agent that leads chats, wants no tools and writes no memos.
    pub fn new(
        id: impl Into<String>,
        display_name: impl Into<String>,
        summary: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            display_name: display_name.into(),
            summary: summary.into(),
            session_types: Vec::new(),
            wants: Vec::new(),
            memo_formats: Vec::new(),
        }
    }

    /// Adds a session type that the agent leads.
    #[must_use]
    pub fn leads(mut self, session_type: impl Into<String>) -> Self {
        self.session_types.push(session_type.into());
        self
    }

    /// Adds a tool that the agent is of little use without.
    #[must_use]
    pub fn wants(mut self, tool: impl Into<String>) -> Self {
        self.wants.push(tool.into());
        self
    }

    /// Adds a memo format that the agent can read.
    #[must_use]
    pub fn reads_memo(mut self, format: u32) -> Self {
        self.memo_formats.push(format);
        self
    }
}

/// An agent: a pure function from news to a decision.
///
/// Only [`describe`](Agent::describe) must be written. The default [`step`](Agent::step) is the
/// tool-calling loop: ask the model, carry out the calls that it makes, ask again, until it answers
/// without a call. The other methods are the places where an agent says what it does differently:
///
/// ```
/// use agent_host_sdk::{Agent, Description, Turn};
///
/// struct Poet;
///
/// impl Agent for Poet {
///     fn describe(&self) -> Description {
///         Description::new("poet", "Poet", "Answers in verse.")
///     }
///     fn prompt(&self, _turn: Turn<'_>) -> Vec<String> {
///         vec!["You answer every question with a haiku.".to_owned()]
///     }
/// }
/// # let _ = Poet;
/// ```
///
/// Nothing survives from one call to the next but the thread, the session's state and the memo: the
/// host makes a fresh instance for each step, and may run a step again and compare.
pub trait Agent {
    /// Describes this agent. Must not depend on anything but the code.
    fn describe(&self) -> Description;

    /// The system prompt in blocks, what changes most often last. The definition's prompt. Empty
    /// blocks are left out.
    fn prompt(&self, turn: Turn<'_>) -> Vec<String> {
        vec![turn.prompt()]
    }

    /// The tools that the model may call. All that the agent may use.
    fn tools(&self, _turn: Turn<'_>) -> Toolset {
        Toolset::All
    }

    /// The loop's request to the model: with [`prompt`](Agent::prompt) and [`tools`](Agent::tools),
    /// the whole thread, for the user to see.
    fn model(&self, turn: Turn<'_>) -> ModelRequest {
        ModelRequest::new(self.prompt(turn)).with_tools(self.tools(turn))
    }

    /// The session has begun, and no message has arrived yet. Asks the model.
    fn on_opened(&self, turn: Turn<'_>) -> Step {
        tool_loop::ask_model(self, turn)
    }

    /// The user said these messages. Asks the model.
    fn on_said(&self, turn: Turn<'_>, _messages: &[MessageId]) -> Step {
        tool_loop::ask_model(self, turn)
    }

    /// The model made these calls in one reply. Runs them all.
    ///
    /// It may be asked several times about the same reply, and has to say the same each time: what
    /// it says must follow from the calls and the thread.
    fn on_calls(&self, _turn: Turn<'_>, _calls: &[ModelCall]) -> Calls {
        Calls::run()
    }

    /// Operations ended that the agent started itself, in one of these methods. Fails the turn: an
    /// agent that starts operations has to handle their ends.
    fn on_settled(&self, _turn: Turn<'_>, settled: &[Settlement]) -> Step {
        let keys: Vec<&str> = settled
            .iter()
            .map(|settlement| settlement.key.as_str())
            .collect();
        Step::fail(format!(
            "this agent does not say what follows from the operation `{}`",
            keys.join("`, `")
        ))
    }

    /// The model answered without calling a tool, and its answer stands in the thread. Ends the
    /// turn. Of an answer that is not whole the user is told why ([`CutOff`](crate::CutOff)).
    fn on_answer(&self, turn: Turn<'_>, message: MessageId) -> Step {
        match turn.message(message).and_then(|message| message.cut_off()) {
            Some(cut_off) => Step::reply(cut_off.notice()),
            None => Step::done(),
        }
    }

    /// Decides what happens next. The default is [the loop](crate::tool_loop); an agent that runs
    /// operations of its own beside the loop's writes its own and uses the loop's pieces.
    fn step(&self, turn: Turn<'_>, news: &[News]) -> Step {
        tool_loop::step(self, turn, news)
    }
}

/// Makes this crate an agent component: `export_agent!(Poet);` with any expression that yields an
/// [`Agent`]. Once per crate. The component carries a [manifest](crate::manifest) with the version,
/// the authors, the licence and the homepage of the crate's `Cargo.toml`.
///
/// The crate needs `crate-type = ["cdylib", "rlib"]` and is built for `wasm32-wasip2`; for every
/// other target the macro only checks the type, so that `cargo test` and `cargo clippy` work as in
/// any crate.
#[macro_export]
macro_rules! export_agent {
    ($agent:expr $(,)?) => {
        $crate::write_manifest!();
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct AgentPlugin;
            impl $crate::wire::AgentExports for AgentPlugin {
                fn describe() -> $crate::wire::WireDescription {
                    $crate::wire::describe_agent(&$agent)
                }
                fn step(
                    view: &$crate::wire::WireView,
                    news: $crate::wire::WireNewsList,
                ) -> $crate::wire::WireStep {
                    $crate::wire::step_agent(&$agent, view, news)
                }
            }
            $crate::bindings::agent_plugin::export_agent_plugin!(
                AgentPlugin with_types_in $crate::bindings::agent_plugin
            );
        };
        #[cfg(not(target_family = "wasm"))]
        const _: fn() = || {
            fn is_an_agent(_: &impl $crate::Agent) {}
            is_an_agent(&$agent);
        };
    };
}
