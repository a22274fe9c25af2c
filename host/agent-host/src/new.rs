//! `new`: a project of an author's own, outside the repository, with all that it builds with.
//!
//! The program carries the SDK, the interface and the templates, so that a project fits this very
//! host and nothing but the language's own packages is fetched.
//!
//! - the name of a project: `new/name.rs`
//! - the files that the program carries: `new/carried.rs`; the interfaces of WASI 0.2 among them,
//!   with their licence: `new/wasi/`
//! - the files of a project: `new/project.rs`
//! - templates: `new/templates/`, those of a kind of plugin and those of a language

mod carried;
mod name;
mod project;
#[cfg(test)]
mod tests;

use crate::failure::{Exit, Failure};
use crate::invocation::quoted;
use crate::terminal::Terminal;
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use project::{Project, ProjectFile};
use serde_json::json;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The permissions of a file that is run.
const EXECUTABLE: u32 = 0o755;

/// The project to make.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// The kind of plugin
    #[arg(value_enum)]
    kind: Kind,
    /// The project's name, and its folder's: 1 to 64 of a-z, 0-9, - and _, a letter first
    name: String,
    /// The language
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = Language::Rust)]
    lang: Language,
}

/// The kinds of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Decides what happens next in a conversation
    Agent,
    /// Offers tools that agents call
    Tool,
    /// Speaks to agents when something happens: a time, a webhook call, files, events; in Rust
    Trigger,
    /// Lets people at a messaging service talk with agents; in Rust
    Connector,
}

/// The languages that a project can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// With the SDK; tested with `cargo test`
    Rust,
    /// With componentize-py
    Python,
    /// With componentize-qjs for tools and componentize-js for agents
    #[value(alias = "javascript")]
    Js,
    /// With clang, and bindings that are generated already
    C,
}

/// Makes a project in the current folder.
pub(crate) fn run(new: &New, terminal: Terminal) -> Result<(), Failure> {
    let New { kind, name, lang } = new;
    if let Some(fault) = name::fault(name) {
        return Err(Failure::new(Exit::Usage, anyhow!("{fault}"))
            .advise("take another name, such as `word-count`"));
    }
    let program = program();
    let Some(project) = Project::new(*kind, *lang, name, program.as_deref()) else {
        return Err(no_template(new));
    };
    let files = project.files();
    write(Path::new("."), name, &files)?;
    let host = program
        .as_deref()
        .map_or_else(|| "agent-host".to_owned(), quoted);
    let next = project.next(&host);
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    terminal.result(
        &json!({ "folder": name, "files": paths, "next": next }),
        || vec![format!("made {name}/ with {} files", files.len())],
    );
    terminal.notice("next:");
    for command in &next {
        terminal.notice(&format!("  {command}"));
    }
    terminal.notice("README.md there has the rest");
    Ok(())
}

/// Returns the failure of a kind of plugin that has no template in the language.
fn no_template(new: &New) -> Failure {
    let New { kind, name, lang } = new;
    let word = kind.as_str();
    let languages: Vec<String> = kind.languages().into_iter().map(word_of).collect();
    let error = anyhow!(
        "there is no template of a {word} in `{}`; there is one in `{}`",
        word_of(*lang),
        languages.join("`, `")
    );
    let failure = Failure::new(Exit::Usage, error);
    match languages.first() {
        Some(first) => failure.advise(format!("agent-host new {word} {name} --lang {first}")),
        None => failure,
    }
}

/// Returns a language's word on the command line.
fn word_of(language: Language) -> String {
    let value = language.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns the program's path when it was called by one. A name alone was found on the PATH.
fn program() -> Option<PathBuf> {
    let called = PathBuf::from(std::env::args_os().next()?);
    called.components().nth(1)?;
    std::path::absolute(called).ok()
}

/// Writes a project into a folder of this name: all of it, or nothing.
///
/// # Errors
/// A folder of that name has something in it already, or it cannot be written.
fn write(parent: &Path, name: &str, files: &[ProjectFile]) -> Result<(), Failure> {
    let folder = parent.join(name);
    match fs::read_dir(&folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => {}
        Ok(false) => return Err(taken(name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(unwritten(name, error)),
    }
    let work = tempfile::Builder::new()
        .prefix(".agent-host-new-")
        .tempdir_in(parent)
        .context("no folder can be made here")?;
    // One with the permissions that the user's new folders have.
    let whole = work.path().join(name);
    for file in files {
        let path = whole.join(&file.path);
        put(&path, file).with_context(|| format!("`{}` cannot be written", path.display()))?;
    }
    // An empty folder gives way. Whatever was put there meanwhile stays.
    fs::rename(&whole, &folder).map_err(|error| unwritten(name, error))
}

fn put(path: &Path, file: &ProjectFile) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, &file.bytes)?;
    if file.is_run {
        fs::set_permissions(path, fs::Permissions::from_mode(EXECUTABLE))?;
    }
    Ok(())
}

/// Returns the failure of an error of the project's own folder.
fn unwritten(name: &str, error: io::Error) -> Failure {
    let is_taken = matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::NotADirectory
    );
    if is_taken {
        return taken(name);
    }
    anyhow::Error::new(error)
        .context(format!("`{name}` cannot be written"))
        .into()
}

fn taken(name: &str) -> Failure {
    let error = anyhow!("`{name}` is there already and not an empty folder");
    Failure::new(Exit::Usage, error).advise(format!(
        "take another name, or move it out of the way: mv {name} {name}.old"
    ))
}
