//! `completions` and `man`: what follows from the command line itself.

use crate::answer::Answer;
use crate::cli::{Cli, Completions, Man, describe};
use crate::failure::Failure;
use anyhow::Context;
use clap::CommandFactory;
use serde_json::json;
use std::path::Path;

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
