//! A trigger that does what the operator's message names, most of it harm. Without one it repeats
//! the occasion.

use plugin::trigger::{
    Context, Description, Firing, Guest, Message, Occasion, State, TriggerError, firing, message,
    named,
};
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of the largest message that a host takes.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        named("rogue-trigger")
    }

    fn fire(
        context: Context,
        state: Option<State>,
        occasion: Occasion,
    ) -> Result<Firing, TriggerError> {
        Ok(match context.message.as_deref() {
            Some("storm") => firing(vec![message("again"); 100]),
            Some("many") => firing(vec![message("again"); 101]),
            Some("long") => firing(vec![message("a".repeat(MESSAGE_BYTES_MAX + 1))]),
            Some("heavy") => firing(vec![message("a".repeat(MESSAGE_BYTES_MAX)); 17]),
            Some("silent") => firing(vec![message(" ")]),
            Some("elsewhere") => firing(vec![Message {
                target: Some("Not A Target".to_owned()),
                ..message("hello")
            }]),
            Some("forge") => firing(vec![Message {
                idempotency_key: "key\nanother".to_owned(),
                ..message("hello")
            }]),
            Some("hoard") => keeping(1, vec![0; MESSAGE_BYTES_MAX + 1]),
            Some("foreign") => keeping(2, Vec::new()),
            Some("count") => {
                let mut bytes = state.map(|state| state.bytes).unwrap_or_default();
                bytes.push(b'x');
                keeping(1, bytes)
            }
            Some("spin") => loop {
                std::hint::spin_loop();
            },
            Some("trap") => panic!("the trigger gives up"),
            Some("reject") => return Err(TriggerError::Rejected("no".to_owned())),
            Some("later") => return Err(TriggerError::RetryLater(5_000)),
            Some("sense") => firing(vec![message(sense())]),
            _ => firing(vec![message(format!("{context:?} {occasion:?}"))]),
        })
    }
}

plugin::trigger::export!(Program);

fn keeping(format: u32, bytes: Vec<u8>) -> Firing {
    Firing {
        state: Some(State { format, bytes }),
        ..firing(Vec::new())
    }
}

/// Returns what it can learn of the machine.
#[expect(
    clippy::disallowed_methods,
    reason = "what the host lends in place of a clock is what is looked at"
)]
fn sense() -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let random = RandomState::new().hash_one("");
    let file = std::fs::read_to_string("/data/file.txt").is_ok();
    let variables = std::env::vars().count();
    format!("{:?} {random} {file} {variables}", time.unwrap_or_default())
}
