//! `keep-program` and `confine-program`: the processes between the host and a program that answers
//! in a model's place.

use crate::cli::{CONFINE_COMMAND, ConfineProgram};
use llm::program::{Starter, confine, keep};
use std::io::{Write, stderr, stdin};
use std::process::ExitCode;

/// Runs as a keeper, before there are threads, a log or a configuration.
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
