//! The files of the repository, as text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One file.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Its path from the repository's root, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
}

impl TextFile {
    /// A file that exists in a test only.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Returns whether the file has this extension.
    #[must_use]
    pub fn is(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }

    /// Its folder, from the repository's root.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns whether the file holds nothing but tests: by its name, or by a folder above it.
    #[must_use]
    pub fn is_only_tests(&self) -> bool {
        self.name() == "tests.rs" || self.folder().split('/').any(|folder| folder == "tests")
    }
}

/// Folders, or in a worktree files, that hold what was built or kept, not what was written.
const NOT_WRITTEN: [&str; 5] = ["target", ".git", "data", "node_modules", "__pycache__"];

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every text file of the repository, by path.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn files() -> io::Result<Vec<TextFile>> {
    let mut files = Vec::new();
    collect(&root(), "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(folder: &Path, path: &str, files: &mut Vec<TextFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}/{name}")
        };
        let kind = entry.file_type()?;
        if NOT_WRITTEN.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else if kind.is_file()
            && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
        {
            files.push(TextFile { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::TextFile;

    #[test]
    fn a_file_of_tests_is_known_by_its_name_or_a_folder() {
        for (path, expected) in [
            ("host/a/src/b/tests.rs", true),
            ("host/a/src/tests/b.rs", true),
            ("tests/programs/x/src/lib.rs", true),
            ("host/a/src/b.rs", false),
            ("host/a/src/contests/b.rs", false),
        ] {
            let file = TextFile::new(path, "");
            assert_eq!(file.is_only_tests(), expected, "{path}");
        }
    }
}
