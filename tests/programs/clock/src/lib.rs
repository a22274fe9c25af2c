//! An agent that says what it perceives of time and chance, after trying to sleep.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plugin::agent::{Description, Guest, News, StepResult, View, named, reply};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        named("clock")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is what the machine's clock looks like from inside"
    )]
    fn step(turn: &View, _news: Vec<News>) -> StepResult {
        let before = Instant::now();
        std::thread::sleep(Duration::from_secs(3_600));
        let slept = before.elapsed().as_millis();
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis();
        // The keys of hash maps come from the randomness of the machine.
        let chance = RandomState::new().hash_one(0_u8);
        reply(format!(
            "now {} wall {wall} slept {slept} chance {chance}",
            turn.now_ms()
        ))
    }
}

plugin::agent::export!(Program);
