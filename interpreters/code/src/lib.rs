//! The code tool: runs a program in an interpreter that is part of the component.
//!
//! The interpreter adds nothing to the sandbox's rules. A program has what the operator granted to
//! this component, and there is no function in it that would open a file or send a request. What it
//! prints is bounded while it is printed, and its time is that of the call.

mod javascript;
mod output;
mod request;

pub use crate::output::{Ending, RunResult, Thrown};

use agent_host_sdk::{CallContext, Json, Tool, ToolError, Tools, export_tools};

/// Bytes of a program.
pub(crate) const CODE_BYTES_MAX: usize = 256 << 10;

/// The tool.
#[derive(Debug, Clone, Copy)]
pub struct Code;

impl Tools for Code {
    fn tools(&self) -> Vec<Tool> {
        vec![
            Tool::new(
                "execute_code",
                "Runs a JavaScript program and returns what it printed and the value of its last \
                 expression. It has no files, no network and no modules. `await` and `return` are \
                 allowed at the top level; timers do not wait.",
                execute,
            )
            .read_only(),
        ]
    }
}

fn execute(
    context: &CallContext,
    arguments: request::Arguments,
) -> Result<Json<RunResult>, ToolError> {
    let request = arguments.check(context.deadline_ms)?;
    Ok(Json(match request.language {
        request::Language::JavaScript => javascript::run(&request.code, request.allowance),
    }))
}

export_tools!(Code);

#[cfg(test)]
mod tests;
