//! A component that cannot even say what it is.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done};

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let configuration = std::fs::read_to_string("/etc/configuration");
        panic!("no configuration: {configuration:?}");
    }

    fn call(
        _context: CallContext,
        _name: String,
        arguments: String,
    ) -> Result<Progress, ToolError> {
        done(arguments)
    }
}

plugin::tool::export!(Program);
