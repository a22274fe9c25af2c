//! Tools that leave a line in `/data/log` for every time they really run, one of each effect class;
//! and tools that take several segments.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use plugin::tool::agent_host::plugin::types::ClientAction;
use plugin::tool::{
    Ask, CallContext, EffectClass, Guest, Later, Progress, ToolDefinition, ToolError, done, named,
};
use serde_json::Value;

struct Program;

fn tool(name: &str, effect: EffectClass) -> ToolDefinition {
    ToolDefinition {
        capabilities: vec!["files.read".into(), "files.write".into()],
        effect,
        ..named(name)
    }
}

fn ask(state: &str, response_schema: Option<String>) -> Result<Progress, ToolError> {
    let action = ClientAction {
        widget: "question".into(),
        props: "{}".into(),
        response_schema,
        lock_input: false,
    };
    Ok(Progress::Ask(Ask {
        action,
        state: state.into(),
    }))
}

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        vec![
            tool("look", EffectClass::ReadOnly),
            tool("put", EffectClass::Idempotent),
            tool("send", EffectClass::NonIdempotent),
            tool("asks", EffectClass::Idempotent),
            tool("asks_for_much", EffectClass::Idempotent),
            tool("asks_twice", EffectClass::Idempotent),
            tool("patient", EffectClass::Idempotent),
            tool("long", EffectClass::ReadOnly),
            tool("who", EffectClass::ReadOnly),
        ]
    }

    fn call(context: CallContext, name: String, arguments: String) -> Result<Progress, ToolError> {
        let arguments: Value = serde_json::from_str(&arguments)
            .map_err(|error| ToolError::InvalidArguments(error.to_string()))?;
        let write = |what: &str| {
            let mut log = OpenOptions::new()
                .create(true)
                .append(true)
                .open("/data/log")
                .map_err(|error| ToolError::Failed(error.to_string()))?;
            // One write: calls that run side by side do not tear each other's lines.
            let line = format!("{name} {what} {}\n", context.idempotency_key);
            log.write_all(line.as_bytes())
                .map_err(|error| ToolError::Failed(error.to_string()))
        };
        write("begin")?;
        if let Some(ms) = arguments["sleep"].as_u64() {
            std::thread::sleep(Duration::from_millis(ms));
        }
        if arguments["spin"] == true {
            loop {
                std::hint::spin_loop();
            }
        }
        assert!(arguments["panic"] != true, "on purpose");
        match (name.as_str(), &context.resumed, &context.answer) {
            ("asks" | "asks_for_much", None, _) => {
                return ask(
                    "asked",
                    (name == "asks").then(|| r#"{"type":"boolean"}"#.into()),
                );
            }
            ("asks_twice", None, _) => return ask("first", None),
            ("asks_twice", Some(state), Some(_)) if state == b"first" => {
                return ask("second", None);
            }
            ("asks_twice", Some(state), Some(answer)) => {
                return done(format!("{} {answer}", String::from_utf8_lossy(state)));
            }
            ("asks_for_much", Some(_), Some(answer)) => {
                return done(format!("{} bytes", answer.len()));
            }
            ("asks", Some(state), Some(answer)) => {
                return done(format!("{} {answer}", String::from_utf8_lossy(state)));
            }
            ("patient", None, _) => {
                let after_ms = arguments["later"].as_u64().unwrap_or(50);
                return Ok(Progress::Later(Later {
                    after_ms,
                    state: b"waited".to_vec(),
                }));
            }
            ("patient", Some(state), _) => {
                return done(String::from_utf8_lossy(state).into_owned());
            }
            ("who", ..) => return done(context.user_id),
            ("long", ..) => return done("x".repeat(100_000)),
            _ => {}
        }
        write("end")?;
        done(format!("{name} done"))
    }
}

plugin::tool::export!(Program);
