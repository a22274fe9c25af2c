//! `new`: a project of an author's own, outside the repository, with all that it builds with.
//!
//! The program carries the SDK, the interface and the templates, so that a project fits this very
//! host and nothing but the language's own packages is fetched.
//!
//! - the name of a project, and the files that the program carries: `new/embedded.rs`, as
//!   `build.rs` finds them; the interfaces of WASI 0.2 among them, with their licence: `new/wasi/`
//! - the files of a project: `new/project.rs`
//! - templates: `new/templates/`, those of a kind of plugin and those of a language

mod embedded;
mod project;
#[cfg(test)]
mod tests;

use crate::answer::Answer;
use crate::cli::{Kind, Language, New, word_of};
use crate::failure::{Exit, Failure};
use crate::terminal::quoted;
use anyhow::{Context, anyhow};
use project::{Project, ProjectFile};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The permissions of a file that is run.
const EXECUTABLE: u32 = 0o755;

/// Makes a project in the current folder.
pub(crate) fn run(new: &New) -> Result<Answer, Failure> {
    let New { kind, name, lang } = new;
    if let Some(fault) = embedded::fault(name) {
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
    let line = format!("made {name}/ with {} files", files.len());
    let document = json!({ "folder": name, "files": paths, "next": next });
    let commands = next.iter().map(|command| format!("  {command}"));
    Ok(Answer::line(document, line)
        .notice(["next:"])
        .notice(commands)
        .notice(["README.md there has the rest"]))
}

/// Returns the failure of a kind of plugin that has no template in the language.
fn no_template(new: &New) -> Failure {
    let New { kind, name, lang } = new;
    let word = word_of(kind);
    let languages: Vec<String> = kind.languages().iter().map(word_of).collect();
    let error = anyhow!(
        "there is no template of a {word} in `{}`; there is one in `{}`",
        word_of(lang),
        languages.join("`, `")
    );
    let failure = Failure::new(Exit::Usage, error);
    match languages.first() {
        Some(first) => failure.advise(format!("agent-host new {word} {name} --lang {first}")),
        None => failure,
    }
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
