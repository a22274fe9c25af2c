//! The shell of skills: carries command lines out, read by a shell's parser and run by no shell.
//!
//! A line reaches the files of an agent's skills, which are texts in memory, and the tools of its
//! commands, which the host calls as it calls any other tool. There is nothing else that it could
//! reach: the component has no grant, and names no file system, network, clock or environment.
//! The host's sandbox bounds the time and memory of a line. Nothing is counted here.
//!
//! The input and the outcome of a line are declared in `host/shell`, which the host links too.
//!
//! ## Where things are
//!
//! - lines that would be misread, refused before they are parsed: `vet.rs`
//! - commands, pipes, variables, substitution, words: `line.rs`; their state: `state.rs`
//! - files below `/skills`: `files.rs`; options and texts of commands: `reading.rs`
//! - the commands `cat`, `wc`, `uniq`, `echo`, `ls`: `builtins.rs`; `head` and `tail`: `edge.rs`;
//!   `sort`: `sort.rs`; `grep`: `grep.rs`; `jq`: `jq.rs`
//! - the commands of skills: `cli.rs`

mod builtins;
mod cli;
mod edge;
mod files;
mod grep;
mod jq;
mod line;
mod reading;
mod sort;
mod state;
#[cfg(test)]
mod tests;
mod vet;

use agent_host_sdk::{CallContext, Json, Tool, ToolError, Tools, export_tools};
use agent_host_shell::{CommandLine, LineOutcome, Output, TOOL, Wanted};

/// The tool, which the host alone calls.
#[derive(Debug, Clone, Copy)]
pub struct Shell;

impl Tools for Shell {
    fn tools(&self) -> Vec<Tool> {
        vec![Tool::new(TOOL, "Carries a command line out.", execute).read_only()]
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the SDK hands arguments over by value"
)]
fn execute(_: &CallContext, line: CommandLine<'static>) -> Result<Json<LineOutcome>, ToolError> {
    Ok(Json(match run(&line) {
        Ok(output) => LineOutcome::Done(output.shown()),
        Err(wanted) => LineOutcome::Call(wanted),
    }))
}

export_tools!(Shell);

/// Carries a command line out, as far as the results of its calls go.
///
/// # Errors
/// The call that it needs next.
fn run(line: &CommandLine<'_>) -> Result<Output, Wanted> {
    if let Err(refused) = vet::vet(&line.command) {
        return Ok(Output::refused(&refused));
    }
    let list = match deno_task_shell::parser::parse(&line.command) {
        Ok(list) => list,
        Err(error) => return Ok(Output::refused(&error.to_string())),
    };
    if let Err(refused) = vet::vet_list(&list) {
        return Ok(Output::refused(&refused));
    }
    state::Line::new(line).carry_out(&list)
}
