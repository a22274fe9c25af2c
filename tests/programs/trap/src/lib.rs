//! A tool that writes to stderr, and panics.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, named};

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        vec![named("trap")]
    }

    fn call(
        _context: CallContext,
        _name: String,
        arguments: String,
    ) -> Result<Progress, ToolError> {
        eprintln!("before the end: \u{200b}a reason");
        panic!("nothing works here: {arguments}");
    }
}

plugin::tool::export!(Program);
