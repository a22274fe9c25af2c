//! One step: what has happened is taken in, the tasks go on, and the memory is kept.

use crate::memory::{Memory, Research};
use crate::settings::Settings;
use crate::stages::Stages;
use crate::task::Task;
use agent_host_sdk::{
    Decision, Effect, LimitsLeft, ModelRequest, News, Operation, Part, Settlement, Step, Turn,
    Until, Wait, text_of,
};
use serde_json::json;

/// The desk of one step: all that it reads from and writes to.
pub(crate) struct Desk<'a> {
    pub(crate) turn: Turn<'a>,
    pub(crate) settings: &'a Settings,
    pub(crate) budget: Budget,
    /// Operations that the turn has started.
    pub(crate) operations: u64,
    pub(crate) start: Vec<Operation>,
    pub(crate) effects: Vec<Effect>,
}

impl Desk<'_> {
    /// Returns whether the agent may use a tool.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.turn.tool(tool).is_some()
    }

    /// Shows progress, or the report of one of several tasks.
    pub(crate) fn say(&mut self, words: String) {
        self.effects.push(Effect::say(words));
    }
}

/// Takes in what has happened, and decides.
pub(crate) fn step(turn: Turn<'_>, settings: &Settings, news: &[News]) -> Step {
    let mut memory = match Memory::load(turn) {
        Ok(memory) => memory,
        Err(error) => return Step::fail_with(&error),
    };
    let mut settled: Vec<&Settlement> = Vec::new();
    for item in news {
        match item {
            News::Opened => {}
            News::Said(messages) => memory.waiting.extend(messages),
            News::Settled(settlement) => settled.push(settlement),
        }
    }
    let mut desk = Desk {
        turn,
        settings,
        budget: Budget {
            left: turn.left(),
            is_late: false,
        },
        operations: memory.operations,
        start: Vec::new(),
        effects: Vec::new(),
    };
    let decision = decide(&mut desk, &mut memory, &settled);
    memory.operations = desk.operations;
    kept(memory, decision, desk)
}

/// Goes on with the task under way, and with those that wait as soon as it has ended.
fn decide(desk: &mut Desk<'_>, memory: &mut Memory, settled: &[&Settlement]) -> Decision {
    let mut settled = settled;
    loop {
        let mut research = match memory.research.take() {
            Some(research) => research,
            None if memory.waiting.is_empty() => return Decision::Reply(Vec::new()),
            None => Research::new(memory.waiting.remove(0), desk.turn.now_ms()),
        };
        let task = match Task::from_message(desk.turn, research.message) {
            Ok(task) => task,
            Err(reason) if memory.waiting.is_empty() => return Decision::Fail(reason),
            Err(reason) => {
                desk.say(failed(&reason));
                continue;
            }
        };
        let spent_ms = desk.turn.now_ms().saturating_sub(research.started_ms);
        desk.budget.is_late = spent_ms >= desk.settings.reading_ms(task.timeout_ms);
        let stages = Stages {
            desk: &mut *desk,
            task: &task,
            research: &mut research,
        };
        match stages.go_on(std::mem::take(&mut settled)) {
            None => {
                memory.research = Some(research);
                return Decision::Wait(Wait {
                    start: std::mem::take(&mut desk.start),
                    cancel: Vec::new(),
                    until: Until::All,
                    hear: false,
                });
            }
            Some(Err(reason)) if memory.waiting.is_empty() => return Decision::Fail(reason),
            Some(Err(reason)) => desk.say(failed(&reason)),
            Some(Ok(report)) if memory.waiting.is_empty() => {
                return Decision::Reply(vec![Part::Text(report)]);
            }
            Some(Ok(report)) => desk.say(report),
        }
    }
}

/// The words on one of several tasks that failed.
fn failed(reason: &str) -> String {
    format!("A task failed: {reason}")
}

/// The step with its memory in the memo or, when that is too small, in the session's state, which
/// is emptied when it is not needed any more.
fn kept(memory: Memory, decision: Decision, desk: Desk<'_>) -> Step {
    let was_in_state = Memory::is_in_state(desk.turn);
    let saved = memory.save();
    let mut effects = desk.effects;
    match saved.state {
        Some(state) => effects.push(Effect::SessionState(state)),
        None if was_in_state => effects.push(Effect::SessionState(json!({}))),
        None => {}
    }
    Step {
        decision,
        effects,
        memo: Some(saved.memo),
    }
}

/// Bytes of a prompt that are counted as one token.
const BYTES_PER_TOKEN: u64 = 3;
/// Tokens that stay for the report: its reply, its instructions, and a repair of it.
const REPORT_TOKENS: u64 = 16_000;
/// Tokens that a request without a limit of its own is taken to reply with.
const REPLY_TOKENS: u64 = 4_000;

/// A kind of work, by what has to come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Questions are planned; then a search, and what follows from it.
    Plan,
    /// A search; then pages, and what follows from them.
    Search,
    /// Pages; then notes, and what follows from them.
    Read,
    /// Notes; then the report.
    Note,
    /// The report; then its reply.
    Report,
}

impl Begins {
    /// Further steps without which it ends in nothing.
    fn steps(self) -> u32 {
        match self {
            Self::Plan => 5,
            Self::Search => 4,
            Self::Read => 3,
            Self::Note => 2,
            Self::Report => 1,
        }
    }
}

/// The budget that is left to a step, less what the step has begun.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) left: LimitsLeft,
    /// True if the time for reading has passed.
    pub(crate) is_late: bool,
}

impl Budget {
    /// Says why something may not be begun; none if it may. Late, what was read is still noted and
    /// reported.
    pub(crate) fn against(&self, what: Begins) -> Option<&'static str> {
        let is_for_time = matches!(what, Begins::Plan | Begins::Search | Begins::Read);
        if self.left.steps < what.steps() {
            Some("the steps of the turn were nearly used up")
        } else if self.is_late && is_for_time {
            Some("its time was over")
        } else {
            None
        }
    }

    /// Takes one tool call, and returns whether there was one.
    pub(crate) fn take_call(&mut self) -> bool {
        let is_there = self.left.tool_calls > 0;
        self.left.tool_calls = self.left.tool_calls.saturating_sub(1);
        is_there
    }

    /// Takes the tokens of a request, and returns whether there were as many. `notes` bytes are
    /// kept for the prompt of the report, and its reply.
    pub(crate) fn take_tokens(&mut self, request: &ModelRequest, notes: usize) -> bool {
        let kept = REPORT_TOKENS.saturating_add(notes as u64 / BYTES_PER_TOKEN);
        let wanted = tokens(request);
        let is_there = self.left.tokens >= wanted.saturating_add(kept);
        if is_there {
            self.left.tokens = self.left.tokens.saturating_sub(wanted);
        }
        is_there
    }

    /// Returns whether the report can still be asked for.
    pub(crate) fn covers_report(&self, request: &ModelRequest) -> bool {
        self.left.tokens >= tokens(request)
    }
}

/// The tokens that a request may take.
fn tokens(request: &ModelRequest) -> u64 {
    let system: usize = request.system.iter().map(String::len).sum();
    let prompt = (system + text_of(&request.also).len()) as u64 / BYTES_PER_TOKEN;
    prompt.saturating_add(request.max_tokens.map_or(REPLY_TOKENS, u64::from))
}
