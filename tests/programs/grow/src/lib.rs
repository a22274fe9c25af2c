//! A tool that takes memory until it gets no more: at once with `all`, and coping with the refusal
//! with `cope`.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        vec![named("grow")]
    }

    fn call(
        _context: CallContext,
        _name: String,
        arguments: String,
    ) -> Result<Progress, ToolError> {
        if arguments.contains("cope") {
            let mut bytes: Vec<u8> = Vec::new();
            return done(format!(
                "refused {}",
                bytes.try_reserve_exact(512 << 20).is_err()
            ));
        }
        let mut kept: Vec<Vec<u8>> = Vec::new();
        loop {
            kept.push(vec![1; 1 << 20]);
        }
    }
}

plugin::tool::export!(Program);
