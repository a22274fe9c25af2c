//! A trigger that was built for version 0.1.0 of the interface: it repeats the times of its
//! schedule.

use bindings::agent_host::plugin::types::Part;
use bindings::exports::agent_host::plugin::trigger::{
    Description, Firing, Guest, Message, Occasion, State, TriggerError,
};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        Description {
            id: "older-trigger".to_owned(),
            summary: "Repeats the times of its schedule.".to_owned(),
            configuration: r#"{"type":"object"}"#.to_owned(),
            state_formats: vec![1],
        }
    }

    fn fire(
        _configuration: String,
        _state: Option<State>,
        now_ms: u64,
        occasion: Occasion,
    ) -> Result<Firing, TriggerError> {
        let Occasion::Due(due) = occasion else {
            return Err(TriggerError::Rejected("it is no time".to_owned()));
        };
        Ok(Firing {
            messages: vec![Message {
                target: None,
                content: vec![Part::Text(format!("due at {due}, told at {now_ms}"))],
                idempotency_key: "once".to_owned(),
            }],
            state: Some(State {
                format: 1,
                bytes: b"kept".to_vec(),
            }),
        })
    }
}

mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/frozen/0.1.0",
        world: "trigger-plugin",
        generate_all,
    });

    use super::Program;
    export!(Program);
}
