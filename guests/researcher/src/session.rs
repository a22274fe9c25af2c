//! One step: what has happened is taken in, the tasks go on, and the memory is kept.

use crate::budget::Budget;
use crate::memory::{Memory, Research};
use crate::settings::Settings;
use crate::stages::Stages;
use crate::task::Task;
use agent_host_sdk::{
    Decision, Effect, News, Operation, Part, Settlement, Step, Turn, Until, Wait,
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
