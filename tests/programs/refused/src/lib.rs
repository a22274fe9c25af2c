//! An agent whose every step is refused: its session state is not JSON.

use plugin::agent::{Decision, Description, Effect, Guest, News, StepResult, View, named};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        named("refused")
    }

    fn step(_turn: &View, _news: Vec<News>) -> StepResult {
        StepResult {
            decision: Decision::Reply(Vec::new()),
            effects: vec![Effect::SessionState("{nonsense".to_owned())],
            memo: None,
        }
    }
}

plugin::agent::export!(Program);
