//! A tool that panics.

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
        panic!("nothing works here: {arguments}");
    }
}

plugin::tool::export!(Program);
