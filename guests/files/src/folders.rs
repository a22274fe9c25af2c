//! The granted folders: from the paths of callers to places in them, and from failures of the file
//! system to errors for callers.

use crate::disk::{self, Kind};
use agent_host_sdk::ToolError;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The error code of the sandbox for a path outside the granted folders.
#[cfg(target_os = "wasi")]
const ENOTCAPABLE: i32 = 76;

/// Links that are followed one after the other.
const LINKS_MAX: usize = 40;
/// Names that an error tells of a folder.
pub(crate) const NAMES_REPORTED_MAX: usize = 10;
/// Entries of a folder that are looked at for such names.
const INSPECTED_MAX: usize = 1_000;

/// The folders that the component was granted.
#[derive(Debug, Clone)]
pub(crate) struct Folders(Vec<PathBuf>);

/// A place in a granted folder.
#[derive(Debug, Clone)]
pub(crate) struct GrantedPath {
    /// The path for the file system.
    pub(crate) path: PathBuf,
    /// The path for people and models, good as an argument of the next call.
    pub(crate) shown: String,
    /// True if it is a granted folder itself.
    pub(crate) is_root: bool,
}

impl Folders {
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        Self(folders)
    }

    /// Asks the host. Natively there are none.
    pub(crate) fn granted() -> Self {
        #[cfg(target_os = "wasi")]
        let granted = wasip2::filesystem::preopens::get_directories()
            .into_iter()
            .map(|(_, at)| at.into())
            .collect();
        #[cfg(not(target_os = "wasi"))]
        let granted = Vec::new();
        Self(granted)
    }

    /// The place that a caller names. A relative path is taken in the first folder, when there is
    /// only one.
    pub(crate) fn place(&self, path: &str) -> Result<GrantedPath, ToolError> {
        let given = Path::new(path);
        if path.is_empty() {
            return Err(ToolError::invalid(
                "path",
                "must not be empty; `.` is the granted folder",
            ));
        }
        if given
            .components()
            .any(|component| component == Component::ParentDir)
        {
            return Err(ToolError::invalid("path", "must not contain `..`"));
        }
        // Without `.` and doubled slashes.
        let given: PathBuf = given
            .components()
            .filter(|component| *component != Component::CurDir)
            .collect();
        match self.0.as_slice() {
            [] => Err(ToolError::NotFound(
                "no folder is granted to the file tools; the operator grants one in the config"
                    .to_owned(),
            )),
            [only] if given.is_relative() => Ok(place(only, only.join(&given))),
            many if given.is_relative() => Err(ToolError::invalid(
                "path",
                format_args!("must be absolute and in one of: {}", list_of(many)),
            )),
            many => match many.iter().find(|root| given.starts_with(root)) {
                Some(root) => Ok(place(root, given)),
                None => Err(ToolError::NotFound(format!(
                    "`{path}` is not in a granted folder; there are: {}",
                    list_of(many)
                ))),
            },
        }
    }

    /// Refuses an absolute pattern that is about what is in no granted folder.
    pub(crate) fn check_pattern(&self, pattern: &str) -> Result<(), ToolError> {
        let plain = pattern
            .split(['*', '?', '[', '{'])
            .next()
            .unwrap_or(pattern);
        let (plain, _) = plain.rsplit_once('/').unwrap_or((plain, ""));
        let plain = Path::new(if plain.is_empty() { "/" } else { plain });
        let may_match = |root: &PathBuf| plain.starts_with(root) || root.starts_with(plain);
        if self.0.iter().any(may_match) {
            return Ok(());
        }
        Err(ToolError::invalid(
            "pattern",
            format_args!(
                "begins with `/` and is in no granted folder; there are: {}",
                list_of(&self.0)
            ),
        ))
    }

    /// Returns the place to which a link leads, through others if need be. What is no link is where
    /// it is.
    pub(crate) fn followed(&self, place: &GrantedPath) -> Result<GrantedPath, ToolError> {
        let invalid = |why: String| {
            let shown = &place.shown;
            ToolError::invalid("path", format_args!("is a link: `{shown}` leads {why}"))
        };
        let mut path = place.path.clone();
        for _ in 0..LINKS_MAX {
            let is_link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
            if !is_link {
                return Ok(GrantedPath {
                    path,
                    shown: place.shown.clone(),
                    is_root: false,
                });
            }
            let target = fs::read_link(&path).map_err(|error| self.error(place, &error))?;
            path.pop();
            if target.is_absolute() || self.climbs_out(&path.join(&target)) {
                return Err(invalid("out of the granted folder".to_owned()));
            }
            path.push(target);
        }
        Err(invalid(format!("through more than {LINKS_MAX} others")))
    }

    /// Returns true if the names of a path lead out of its granted folder.
    fn climbs_out(&self, path: &Path) -> bool {
        let inside = self.0.iter().find_map(|root| path.strip_prefix(root).ok());
        let mut depth = 0_i32;
        inside.is_none_or(|inside| {
            inside.components().any(|component| {
                depth += match component {
                    Component::ParentDir => -1,
                    Component::Normal(_) => 1,
                    _ => 0,
                };
                depth < 0
            })
        })
    }

    /// Converts such a failure for a caller that may read. Of what is missing it tells the names
    /// in the nearest folder above.
    pub(crate) fn read_error(&self, place: &GrantedPath, error: &io::Error) -> ToolError {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        match is_missing.then(|| self.names_above(place)).flatten() {
            Some(names) => ToolError::NotFound(format!("there is no `{}`; {names}", place.shown)),
            None => self.error(place, error),
        }
    }

    /// Returns words that name what is in the nearest folder above a place that can be read.
    fn names_above(&self, place: &GrantedPath) -> Option<String> {
        let root = self.0.iter().find(|root| place.path.starts_with(root))?;
        let above = place.path.ancestors().skip(1);
        let mut granted = above.take_while(|folder| folder.starts_with(root));
        granted.find_map(|folder| names_in(folder).ok())
    }

    /// Converts a failure of the file system to an error for the caller.
    pub(crate) fn error(&self, place: &GrantedPath, error: &io::Error) -> ToolError {
        #[cfg(target_os = "wasi")]
        if error.raw_os_error() == Some(ENOTCAPABLE) {
            return ToolError::Denied;
        }
        let shown = &place.shown;
        match error.kind() {
            io::ErrorKind::NotFound => ToolError::NotFound(format!(
                "there is no `{shown}`; the granted folders are: {}",
                list_of(&self.0)
            )),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ToolError::Denied
            }
            io::ErrorKind::IsADirectory => {
                ToolError::invalid("path", format_args!("is a folder: `{shown}`"))
            }
            io::ErrorKind::NotADirectory => {
                ToolError::invalid("path", format_args!("leads through a file: `{shown}`"))
            }
            _ => ToolError::Failed(format!("`{shown}`: {error}")),
        }
    }
}

fn place(root: &Path, path: PathBuf) -> GrantedPath {
    let is_root = path == root;
    GrantedPath {
        shown: path.display().to_string(),
        path,
        is_root,
    }
}

impl GrantedPath {
    /// A place below this one.
    pub(crate) fn below(&self, name: &str) -> Self {
        let shown = format!("{}/{name}", self.shown.trim_end_matches('/'));
        Self {
            path: self.path.join(name),
            shown,
            is_root: false,
        }
    }
}

/// Returns words that name what is in a folder, as far as an error has room for it.
fn names_in(folder: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    let mut inspected = 0;
    let mut is_whole = true;
    disk::entries(folder, |entry| {
        is_whole = names.len() < NAMES_REPORTED_MAX && inspected < INSPECTED_MAX;
        inspected += 1;
        if let Some(entry) = entry.filter(|_| is_whole) {
            let mark = if entry.kind == Kind::Folder { "/" } else { "" };
            names.push(format!("`{}{mark}`", entry.name));
        }
        is_whole
    })?;
    names.sort_unstable();
    let shown = folder.display();
    Ok(match (names.is_empty(), is_whole) {
        (true, true) => format!("nothing is in `{shown}`"),
        (true, false) => format!("list_files shows what is in `{shown}`"),
        (false, true) => format!("in `{shown}` there are: {}", names.join(", ")),
        (false, false) => format!(
            "in `{shown}` there are: {}, and more; list_files shows them",
            names.join(", ")
        ),
    })
}

fn list_of(folders: &[PathBuf]) -> String {
    let folders: Vec<String> = folders
        .iter()
        .map(|folder| format!("`{}`", folder.display()))
        .collect();
    folders.join(", ")
}
