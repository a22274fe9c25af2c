//! A tool that counts its calls in a static, which no call ever sees above 1.

use std::sync::atomic::{AtomicU32, Ordering};

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};

static CALLS: AtomicU32 = AtomicU32::new(0);

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        vec![named("counter")]
    }

    fn call(
        _context: CallContext,
        _name: String,
        _arguments: String,
    ) -> Result<Progress, ToolError> {
        done((CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string())
    }
}

plugin::tool::export!(Program);
