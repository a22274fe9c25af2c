//! `completions` and `man`, which follow from the command line itself; and the processes that a
//! host starts from its own program.

use crate::answer::Answer;
use crate::cli::{
    CONFINE_COMMAND, Cli, CompileComponent, Completions, ConfineProgram, Man, describe,
};
use crate::failure::Failure;
use anyhow::Context;
use clap::CommandFactory;
use llm::program::{Starter, confine, keep};
use runtime::{COMPILE_REFUSED, CompileError, CompileLimits};
use serde_json::json;
use std::io::{Write, stderr, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;

/// The name of the program.
const PROGRAM: &str = "agent-host";

/// Returns the completions of a shell.
pub(super) fn completions(what: &Completions) -> Answer {
    Answer::file(script(what))
}

fn script(what: &Completions) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(
        what.shell,
        &mut describe(Cli::command()),
        PROGRAM,
        &mut script,
    );
    script
}

/// Writes the manual pages.
pub(super) fn man(what: &Man) -> Result<Answer, Failure> {
    let pages = write_pages(&what.out)?;
    let line = format!("{} pages in {}", pages.len(), what.out.display());
    let document = json!({ "folder": what.out, "pages": pages });
    Ok(Answer::line(document, line))
}

/// Writes a page for each command into a folder, and returns their names.
fn write_pages(folder: &Path) -> anyhow::Result<Vec<String>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    let mut command = describe(Cli::command()).disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_page(&command, folder, &mut pages)?;
    Ok(pages)
}

/// Writes the page of a command and of those below it, as far as its help shows them.
fn write_page(
    command: &clap::Command,
    folder: &Path,
    pages: &mut Vec<String>,
) -> anyhow::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let name = page.get_filename();
    page.generate_to(folder)
        .with_context(|| format!("cannot write `{}`", folder.join(&name).display()))?;
    pages.push(name);
    let shown = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    for below in shown.filter(|below| below.get_name() != "help") {
        write_page(below, folder, pages)?;
    }
    Ok(())
}

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

#[cfg(test)]
mod tests {
    use super::{Completions, script, write_pages};
    use clap_complete::Shell;

    #[test]
    fn every_shell_gets_completions_of_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish] {
            let script = String::from_utf8(script(&Completions { shell })).unwrap();
            let option = match shell {
                Shell::Fish => "-l session",
                _ => "--session",
            };
            for word in ["agent-host", "dead-letter", "completions", option] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn there_is_a_page_for_every_command_and_none_for_hidden_ones() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("share/man1");
        let pages = write_pages(&out).unwrap();
        for page in [
            "agent-host.1",
            "agent-host-chat.1",
            "agent-host-session-list.1",
        ] {
            assert!(pages.iter().any(|it| it == page), "{page} in {pages:?}");
            let text = std::fs::read_to_string(out.join(page)).unwrap();
            assert!(text.starts_with(".ie") || text.contains(".TH"), "{text}");
        }
        assert!(!pages.iter().any(|page| page.contains("compile-component")));
        assert!(
            !pages.iter().any(|page| page.contains("-help")),
            "{pages:?}"
        );
        let chat = std::fs::read_to_string(out.join("agent-host-chat.1")).unwrap();
        assert!(chat.contains("scopes"), "{chat}");
    }
}
