//! Tools that give back what they get, and what a file holds.

use plugin::tool::{
    CallContext, Guest, Later, Progress, ToolDefinition, ToolError, done, named, note,
};

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        [
            "echo", "context", "read", "write", "later", "denied", "flood", "chatter", "shout",
        ]
        .map(named)
        .to_vec()
    }

    fn call(context: CallContext, name: String, arguments: String) -> Result<Progress, ToolError> {
        match name.as_str() {
            "echo" => {
                note("about to echo");
                done(arguments)
            }
            "context" => done(format!("{context:?}")),
            "read" => std::fs::read_to_string("/data/file.txt")
                .map_or_else(|error| Err(ToolError::Failed(error.to_string())), done),
            "write" => std::fs::write("/data/file.txt", arguments).map_or_else(
                |error| Err(ToolError::Failed(error.to_string())),
                |()| done("written"),
            ),
            "later" => Ok(Progress::Later(Later {
                after_ms: 1_000,
                state: b"state".to_vec(),
            })),
            "flood" => {
                for line in 0..100_000 {
                    println!("line {line} \u{1b}[2J of a flood");
                }
                done("flooded")
            }
            "chatter" => {
                (0..1_000).for_each(|number| note(&number.to_string()));
                done("chattered")
            }
            "shout" => {
                note(&"x".repeat(8 << 20));
                done("shouted")
            }
            _ => Err(ToolError::Denied),
        }
    }
}

plugin::tool::export!(Program);
