//! Agents: the trait of the `agent-plugin` world, what an agent makes of the calls of a model's
//! reply, and the macro that exports it.

pub use crate::bindings::agent_plugin::exports::agent_host::plugin::agent::Description;
use crate::client::ClientAction;
use crate::content::{MessageId, ModelCall};
use crate::news::{News, Settlement};
use crate::operation::{ModelRequest, Toolset};
use crate::step::Step;
use crate::tool_loop;
use crate::turn::Turn;
use std::collections::BTreeMap;

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
    /// operations of its own beside the loop's writes its own and uses the loop's chunks.
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

/// The decision on the calls of one reply. Made by [`Agent::on_calls`](crate::Agent::on_calls):
///
/// ```
/// use agent_host_sdk::{Calls, ModelCall};
///
/// fn guard(calls: &[ModelCall]) -> Calls {
///     let payments = calls.iter().filter(|call| call.name == "pay");
///     payments.fold(Calls::run(), |decided, call| {
///         decided.ask_first(call.index, format!("Really {}?", call.arguments))
///     })
/// }
/// # let _ = guard;
/// ```
///
/// A call that is refused, or to which the user does not agree, is never made. The model gets a
/// result for it that says so, and is told the reason when it is asked next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    /// The calls that are not simply run, by index.
    others: BTreeMap<u32, Verdict>,
}

/// The fate of one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Run,
    Refuse(String),
    Ask(ClientAction),
}

impl Calls {
    /// Runs all calls.
    #[must_use]
    pub fn run() -> Self {
        Self::default()
    }

    /// Does not make a call, for a reason that the model is told.
    #[must_use]
    pub fn refuse(mut self, index: u32, why: impl Into<String>) -> Self {
        self.others.insert(index, Verdict::Refuse(why.into()));
        self
    }

    /// Makes a call only after the user has said yes to this question.
    #[must_use]
    pub fn ask_first(self, index: u32, question: impl AsRef<str>) -> Self {
        self.ask_first_with(index, ClientAction::confirmation(question.as_ref()))
    }

    /// The same with a question of the agent's making: a
    /// [`confirmation`](ClientAction::confirmation) or an [`approval`](ClientAction::approval). Any
    /// other answer than a yes counts as no.
    #[must_use]
    pub fn ask_first_with(mut self, index: u32, question: ClientAction) -> Self {
        self.others.insert(index, Verdict::Ask(question));
        self
    }

    /// The calls that are not refused, with what is to be done about each.
    pub(crate) fn wanted(&self, calls: &[ModelCall]) -> impl Iterator<Item = (u32, Verdict)> {
        calls.iter().filter_map(|call| {
            let verdict = self.others.get(&call.index).unwrap_or(&Verdict::Run);
            let is_wanted = !matches!(verdict, Verdict::Refuse(_));
            is_wanted.then(|| (call.index, verdict.clone()))
        })
    }

    /// The reasons for the calls that were not made; none when all were.
    pub(crate) fn reported(
        &self,
        turn: Turn<'_>,
        message: MessageId,
        calls: &[ModelCall],
    ) -> Option<String> {
        let made = made(turn, message);
        let reported = calls.iter().filter_map(|call| {
            let why = match self.others.get(&call.index)? {
                Verdict::Run => return None,
                Verdict::Refuse(why) => why.as_str(),
                Verdict::Ask(_) if made.contains(&call.index) => return None,
                Verdict::Ask(_) => "the user was asked and did not agree",
            };
            let place = call.index.saturating_add(1);
            Some(format!(
                "Call {place} of `{}` was not made: {why}.",
                call.name
            ))
        });
        let reported: Vec<String> = reported.collect();
        (!reported.is_empty()).then(|| reported.join("\n"))
    }
}

/// The indexes of the calls of a message that have a result in the thread.
fn made(turn: Turn<'_>, message: MessageId) -> Vec<u32> {
    let head = turn.head().unwrap_or(message);
    let later = (message.saturating_add(1)..=head).filter_map(|id| turn.message(id));
    later
        .filter_map(|later| later.answers)
        .filter_map(|(of, index)| (of == message).then_some(index))
        .collect()
}
