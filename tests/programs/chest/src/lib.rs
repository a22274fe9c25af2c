//! Ninety-nine tools that do nothing, for prompts that tell of many.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};

const TOOLS: usize = 99;
/// The beginning of their names. The bench makes a second chest of the built program by putting
/// other letters in its place.
static NAME: &str = "tool_of_the_first_chest";

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let tool = |index: usize| ToolDefinition {
            description: "Does one thing of many, as its name says. Never anything else.".into(),
            ..named(&format!("{NAME}_{index}"))
        };
        (0..TOOLS).map(tool).collect()
    }

    fn call(
        _context: CallContext,
        _name: String,
        _arguments: String,
    ) -> Result<Progress, ToolError> {
        done("nothing")
    }
}

plugin::tool::export!(Program);
