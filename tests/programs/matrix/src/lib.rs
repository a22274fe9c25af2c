//! A tool that calls every function that can be imported, once, and reports the result of each.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let asked = [
            "files.read",
            "files.write",
            "net.http",
            "env.read",
            "notes.read",
            "notes.write",
        ];
        vec![ToolDefinition {
            capabilities: asked.map(String::from).to_vec(),
            ..named("matrix")
        }]
    }

    fn call(_context: CallContext, _name: String, url: String) -> Result<Progress, ToolError> {
        probe::leave(&url);
        done(probe::rows(&url).0)
    }
}

plugin::tool::export!(Program);
