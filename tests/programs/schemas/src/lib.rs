//! Tools whose schemas ask for more work than there is time. What the tool `promise` promises, a
//! test writes over [`PROMISES`] in the built component.

use plugin::tool::agent_host::plugin::types::ClientAction;
use plugin::tool::{
    Ask, CallContext, EffectClass, Guest, Progress, ToolDefinition, ToolError, done, named,
};
use serde_json::{Value, json};

struct Program;

/// The promised schema: `a number`, `long path` or `doubling.`.
static PROMISES: [u8; 18] = *b"promises:a number.";

/// Definitions of which each refers to the next one.
fn chained(links: usize, by: impl Fn(Value) -> Value) -> Value {
    let definitions = (1..links).map(|link| {
        (
            format!("d{link}"),
            by(json!({ "$ref": format!("#/$defs/d{}", link + 1) })),
        )
    });
    let last = (format!("d{links}"), json!({ "type": "integer" }));
    let all: serde_json::Map<_, _> = definitions.chain([last]).collect();
    json!({ "$ref": "#/$defs/d1", "$defs": all })
}

fn promised() -> Value {
    match std::hint::black_box(&PROMISES).get(9..) {
        Some(b"long path") => chained(30_000, |next| next),
        Some(b"doubling.") => chained(60, |next| json!({ "allOf": [next.clone(), next] })),
        // It doubles with every level of the document only.
        Some(b"by levels") => {
            json!({ "allOf": [{ "items": { "$ref": "#" } }, { "items": { "$ref": "#" } }] })
        }
        _ => json!({ "type": "integer" }),
    }
}

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let tool = |name: &str| ToolDefinition {
            effect: EffectClass::Idempotent,
            ..named(name)
        };
        vec![
            ToolDefinition {
                results: Some(promised().to_string()),
                ..tool("promise")
            },
            tool("ask"),
        ]
    }

    fn call(context: CallContext, name: String, arguments: String) -> Result<Progress, ToolError> {
        let arguments: Value = serde_json::from_str(&arguments)
            .map_err(|error| ToolError::InvalidArguments(error.to_string()))?;
        match (name.as_str(), context.answer) {
            ("ask", None) => {
                let response_schema = Some(arguments["schema"].to_string());
                let action = ClientAction {
                    widget: "question".into(),
                    props: "{}".into(),
                    response_schema,
                    lock_input: false,
                };
                Ok(Progress::Ask(Ask {
                    action,
                    state: b"asked".to_vec(),
                }))
            }
            ("ask", Some(answer)) => done(answer),
            _ => done(arguments["result"].to_string()),
        }
    }
}

plugin::tool::export!(Program);
