//! An agent that never makes a decision.

use plugin::agent::{Description, Guest, News, StepResult, View, named};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        named("spin")
    }

    fn step(_turn: &View, _news: Vec<News>) -> StepResult {
        loop {
            std::hint::spin_loop();
        }
    }
}

plugin::agent::export!(Program);
