//! A trigger that does what the operator's message names, most of it harm. Without one it repeats
//! the trigger event.

use plugin::trigger::{
    Context, Description, Guest, Message, State, TriggerError, TriggerEvent, TriggerRun, message,
    named, trigger_run,
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
        trigger_event: TriggerEvent,
    ) -> Result<TriggerRun, TriggerError> {
        Ok(match context.message.as_deref() {
            Some("storm") => trigger_run(vec![message("again"); 100]),
            Some("many") => trigger_run(vec![message("again"); 101]),
            Some("long") => trigger_run(vec![message("a".repeat(MESSAGE_BYTES_MAX + 1))]),
            Some("heavy") => trigger_run(vec![message("a".repeat(MESSAGE_BYTES_MAX)); 17]),
            Some("silent") => trigger_run(vec![message(" ")]),
            Some("elsewhere") => trigger_run(vec![Message {
                target: Some("Not A Target".to_owned()),
                ..message("hello")
            }]),
            Some("forge") => trigger_run(vec![Message {
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
            Some("sense") => trigger_run(vec![message(sense())]),
            _ => trigger_run(vec![message(format!("{context:?} {trigger_event:?}"))]),
        })
    }
}

plugin::trigger::export!(Program);

fn keeping(format: u32, bytes: Vec<u8>) -> TriggerRun {
    TriggerRun {
        state: Some(State { format, bytes }),
        ..trigger_run(Vec::new())
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
