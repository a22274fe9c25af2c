//! `compile-component`: a process of its own for each component that is compiled.

use crate::cli::CompileComponent;
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
