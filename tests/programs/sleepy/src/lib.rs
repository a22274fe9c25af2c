//! A tool that sleeps for an hour, in the host's hands.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        vec![named("sleepy")]
    }

    fn call(
        _context: CallContext,
        _name: String,
        arguments: String,
    ) -> Result<Progress, ToolError> {
        let ms = arguments
            .chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .unwrap_or(3_600_000);
        let before = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(ms));
        done(before.elapsed().as_millis().to_string())
    }
}

plugin::tool::export!(Program);
