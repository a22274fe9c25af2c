//! The processes that a host starts from its own program: `compile-component` for each component
//! that is compiled, `keep-program` and `confine-program` for a program in a model's place.

use crate::cli::{CONFINE_COMMAND, CompileComponent, ConfineProgram};
use llm::program::{Starter, confine, keep};
use runtime::{COMPILE_REFUSED, CompileError, CompileLimits};
use std::io::{Write, stderr, stdin, stdout};
use std::process::ExitCode;

/// Runs the command, before there are threads, a log or a configuration. What is wrong goes to
/// stderr as one line, for the host to read.
pub(crate) fn compile(limits: &CompileComponent) -> ExitCode {
    let parent = limits.parent;
    let limits = CompileLimits {
        memory_bytes_max: limits.memory_bytes_max,
        cpu_s_max: limits.cpu_s_max,
    };
    let (what, exit) = match runtime::compile(parent, limits, stdin().lock(), stdout().lock()) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(CompileError::Refused(error)) => {
            (format!("{error:#}"), ExitCode::from(COMPILE_REFUSED))
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            (format!("{error:#}"), ExitCode::FAILURE)
        }
    };
    // Without a reader there is nobody to tell.
    let _ = writeln!(stderr(), "{what}");
    exit
}

/// Runs as a supervisor, before there are threads, a log or a configuration.
pub(crate) fn keep_program() -> ExitCode {
    let Ok(program) = std::env::current_exe() else {
        return ExitCode::FAILURE;
    };
    let starter = Starter {
        program,
        arguments: vec![CONFINE_COMMAND.into()],
    };
    ExitCode::from(keep(stdin(), &starter))
}

/// Becomes a program. What is wrong goes to stderr as one line, for the host to read.
pub(crate) fn confine_program(what: &ConfineProgram) -> ExitCode {
    let Err(error) = confine(&what.confinement, &what.command);
    let code = error.exit_code();
    // Without a reader there is nobody to tell.
    let _ = writeln!(stderr(), "{:#}", anyhow::Error::from(error));
    ExitCode::from(code)
}
