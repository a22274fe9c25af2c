//! File tools: read, write, delete, list and search text files in the folders that the operator
//! granted.
//!
//! The sandbox decides what can be reached. What is checked here makes errors that a model can act
//! on, and bounds what comes back.

mod delete;
mod disk;
mod folders;
mod glob;
mod list;
mod read;
mod search;
mod write;

use crate::folders::Folders;
use agent_host_sdk::{Tool, Tools, export_tools};

/// The tools, over some folders.
#[derive(Debug, Clone)]
pub struct Files {
    folders: Folders,
}

impl Files {
    /// Over the folders that the operator granted to the component.
    #[must_use]
    pub fn granted() -> Self {
        Self {
            folders: Folders::granted(),
        }
    }

    /// Over these folders, for a test.
    #[must_use]
    pub fn over(folders: Vec<std::path::PathBuf>) -> Self {
        Self {
            folders: Folders::new(folders),
        }
    }
}

impl Tools for Files {
    fn tools(&self) -> Vec<Tool> {
        vec![
            Tool::new(
                "read_file",
                "Reads a text file, or a part of it by lines.",
                on(&self.folders, read::read),
            )
            .read_only()
            .needs("files.read"),
            Tool::new(
                "write_file",
                "Writes a text file, replacing what was there.",
                on(&self.folders, write::write),
            )
            .idempotent()
            .needs("files.write"),
            Tool::new(
                "delete_file",
                "Deletes a file, or a folder with all that is in it.",
                on(&self.folders, delete::delete),
            )
            .destructive()
            .needs("files.write"),
            Tool::new(
                "list_files",
                "Lists the files and folders in a folder.",
                on(&self.folders, list::list),
            )
            .read_only()
            .needs("files.read"),
            Tool::new(
                "search_files",
                "Finds the lines of text files that match a regular expression.",
                on(&self.folders, search::search),
            )
            .read_only()
            .needs("files.read"),
        ]
    }
}

type Ran = Result<String, agent_host_sdk::ToolError>;

/// A tool's function, bound to the folders.
fn on<A>(
    folders: &Folders,
    run: fn(&Folders, &agent_host_sdk::CallContext, &A) -> Ran,
) -> impl Fn(&agent_host_sdk::CallContext, A) -> Ran + use<A> {
    let folders = folders.clone();
    move |context, arguments| run(&folders, context, &arguments)
}

export_tools!(Files::granted(), wants: [
    folder_to_write("/workspace", "reads and writes the files of the user's work"),
]);

#[cfg(test)]
mod tests;
