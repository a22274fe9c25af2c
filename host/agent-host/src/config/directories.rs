//! Checks of the folders that a component is granted, and of the data folder: who may enter it, and
//! the file system under it.

#[cfg(test)]
mod tests;

use super::document::Loaded;
use super::finding::{Finding, error, warning};
use super::shared::own_of_host;
use super::{literal_paths, locations};
use crate::terminal::quoted;
use domain::grant::{
    Access, DirectoryGrant, FolderChain, FolderPattern, Meeting, Nesting, Placed, meeting, nested,
};
use runtime::{FileSystemKind, folder_chain};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Folders of the machine that no component should have, with all that is in them, and what they
/// are.
const SYSTEM: [(&str, &str); 14] = [
    ("/etc", "the configuration of the machine (`/etc`)"),
    ("/proc", "what the machine tells of its processes (`/proc`)"),
    ("/sys", "the settings of the machine's kernel (`/sys`)"),
    ("/dev", "the devices of the machine (`/dev`)"),
    ("/boot", "what the machine starts from (`/boot`)"),
    ("/run", "the sockets of the machine's services (`/run`)"),
    ("/root", "the home of the machine's administrator (`/root`)"),
    ("/usr", "the programs of the machine (`/usr`)"),
    ("/bin", "the programs of the machine (`/bin`)"),
    ("/sbin", "the programs of the machine (`/sbin`)"),
    ("/lib", "the libraries of the machine (`/lib`)"),
    ("/lib32", "the libraries of the machine (`/lib32`)"),
    ("/lib64", "the libraries of the machine (`/lib64`)"),
    ("/libx32", "the libraries of the machine (`/libx32`)"),
];

/// Folders in which each program or person has a folder. A single one of those may be granted, but
/// not all of them at once.
const SHARED: [(&str, &str); 6] = [
    ("/home", "the homes of everybody (`/home`)"),
    (
        "/opt",
        "the programs that were added to the machine (`/opt`)",
    ),
    ("/var", "the data of all services (`/var`)"),
    ("/var/lib", "the data of all services (`/var/lib`)"),
    ("/var/log", "the logs of all services (`/var/log`)"),
    (
        "/var/spool",
        "the work that waits for services (`/var/spool`)",
    ),
];

/// Places in people's homes that no component should have.
const KEPT_AT_HOME: [(&str, &str); 8] = [
    (".ssh", "keys of its owner (`~/.ssh`)"),
    (".gnupg", "keys of its owner (`~/.gnupg`)"),
    (".aws", "keys of its owner (`~/.aws`)"),
    (".azure", "keys of its owner (`~/.azure`)"),
    (".kube", "keys of its owner (`~/.kube`)"),
    (".docker", "keys of its owner (`~/.docker`)"),
    (".config/gcloud", "keys of its owner (`~/.config/gcloud`)"),
    (
        ".local/share/keyrings",
        "keys of its owner (`~/.local/share/keyrings`)",
    ),
];

/// Finds faulty grants of folders: folders that do not exist, that hold data of the host or the
/// machine, or that conflict with each other. Also finds places that are invalid, and patterns and
/// quotas that make no sense.
pub(super) fn check(
    loaded: &Loaded,
    component: &str,
    granted: &[DirectoryGrant],
    findings: &mut Vec<Finding>,
) {
    let mut seen = BTreeSet::new();
    for (index, directory) in granted.iter().enumerate() {
        let DirectoryGrant {
            path, at, access, ..
        } = directory;
        let key = format!("components.{component}.directories[{index}]");
        let path = match FolderPattern::parse(&loaded.resolve(path)) {
            Ok(pattern) => pattern.base,
            Err(why) => {
                findings.push(error(format!("{key}.path"), why.to_string()));
                continue;
            }
        };
        // Nobody is told to make a folder that is called `~`.
        if !path.is_dir() && literal_paths::sign(&directory.path).is_none() {
            let message = format!(
                "there is no folder `{}`; make it with: mkdir -p {}",
                path.display(),
                quoted(&path)
            );
            findings.push(error(format!("{key}.path"), message));
        }
        if let Some(own) = own_of_host(loaded, &path, *access) {
            let message = format!(
                "`{}` holds {own}, which no component may have; grant another folder",
                path.display()
            );
            findings.push(error(format!("{key}.path"), message));
        } else if let Some(what) = dangerous(&Reached::by(&path).end, locations::home().as_deref())
        {
            let message = format!(
                "`{}` is, is in or holds {what}; grant a folder that is there for this component \
                 alone",
                path.display()
            );
            findings.push(error(format!("{key}.path"), message));
        }
        if !is_normal(at) {
            let message = format!(
                "`{at}` must be a path such as `/workspace`: from `/` on, without `.`, \
                         `..` and doubled or trailing `/`"
            );
            findings.push(error(format!("{key}.at"), message));
        }
        if !seen.insert(at) {
            findings.push(error(
                format!("{key}.at"),
                format!("`{at}` is granted twice; give one of the two folders another `at`"),
            ));
        }
        check_patterns(&key, directory, findings);
        if *access == Access::ReadOnly && directory.has_quota() {
            let message = "nothing is written to a read-only folder, so its quota says nothing; remove it, \
                 or grant `read-write`";
            findings.push(warning(key, message));
        }
    }
}

fn check_patterns(key: &str, directory: &DirectoryGrant, findings: &mut Vec<Finding>) {
    let DirectoryGrant {
        allow: Some(allow),
        deny,
        ..
    } = directory
    else {
        return;
    };
    if allow.is_empty() {
        let message = "an empty list allows no file; leave `allow` out for all files, or the whole entry for \
             none";
        findings.push(error(format!("{key}.allow"), message));
    }
    for (index, allowed) in allow.iter().enumerate() {
        let Some(denied) = deny.iter().find(|denied| denied.covers(allowed)) else {
            continue;
        };
        let message = match denied == allowed {
            true => {
                format!("`{allowed}` is also in `deny`, which wins; remove it from one of the two")
            }
            false => {
                format!(
                    "`{allowed}` allows nothing: `deny` has `{denied}`, which covers all of it \
                         and wins; remove one of the two"
                )
            }
        };
        findings.push(error(format!("{key}.allow[{index}]"), message));
    }
}

/// A granted folder, whose it is, and where it is.
struct Granted<'a> {
    component: &'a str,
    index: usize,
    grant: &'a DirectoryGrant,
    pattern: FolderPattern,
    reached: Reached,
}

/// Folders of all components that hold each other in a way that gives one of them more than is
/// granted.
pub(super) fn check_overlaps(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let mut granted = Vec::new();
    for (component, config) in &loaded.config.components {
        for (index, grant) in config.directories.iter().enumerate() {
            // What is no path is told of by itself.
            let Ok(pattern) = FolderPattern::parse(&loaded.resolve(&grant.path)) else {
                continue;
            };
            granted.push(Granted {
                component,
                index,
                grant,
                reached: Reached::by(&pattern.base),
                pattern,
            });
        }
    }
    let before = findings.len();
    check_nesting(&granted, findings);
    // Each folder is told of once.
    let reported: BTreeSet<String> = findings
        .iter()
        .skip(before)
        .map(|finding| finding.key.clone())
        .collect();
    for (index, directory) in granted.iter().enumerate() {
        let mut before = granted
            .iter()
            .take(index)
            .filter(|other| other.component == directory.component);
        if !reported.contains(&directory.key())
            && let Some(other) = before.find(|other| directory.differs_within(other))
        {
            let path = directory.grant.path.display();
            let earlier = other.grant.path.display();
            let place = other.index;
            let message = format!(
                "`{path}` and `{earlier}` of `directories[{place}]` hold one another, with other \
                 access, patterns or quotas: what the one \
                 refuses the other grants; grant folders apart from each other"
            );
            findings.push(error(directory.key(), message));
        }
    }
}

/// Finds folders that are reached through one that some component may write: it could replace them
/// by a link to anything.
fn check_nesting(granted: &[Granted<'_>], findings: &mut Vec<Finding>) {
    let placed: Vec<Placed<'_>> = granted
        .iter()
        .map(|directory| Placed {
            access: directory.grant.access,
            chain: &directory.reached.chain,
            below: &directory.pattern.below,
        })
        .collect();
    for found in nested(&placed) {
        let (Some(inner), Some(outer)) = (granted.get(found.inner), granted.get(found.outer))
        else {
            continue;
        };
        let path = inner.grant.path.display();
        let other = outer.grant.path.display();
        let key = outer.key();
        let place = key.trim_end_matches(".path");
        let message = match found.how {
            Nesting::Through => format!(
                "`{path}` is reached through `{other}` of `{place}`, which that component may \
                 write: it could put a link to anything in its place; grant folders apart from \
                 each other"
            ),
            Nesting::Owned => format!(
                "`{path}` can be the folder of one {} in `{other}` of `{place}`, because an id can \
                 be any name; grant folders apart from each other, such as `users/{{user}}` and \
                 `sessions/{{session}}`",
                outer.pattern.owners_text()
            ),
        };
        findings.push(error(inner.key(), message));
    }
}

impl Granted<'_> {
    fn key(&self) -> String {
        format!(
            "components.{}.directories[{}].path",
            self.component, self.index
        )
    }

    /// Returns whether anything refused under one of the two is granted under the other.
    fn differs_within(&self, other: &Self) -> bool {
        let bounded = |grant: &DirectoryGrant| grant.has_patterns() || grant.has_quota();
        let differ =
            self.grant.access != other.grant.access || bounded(self.grant) || bounded(other.grant);
        let is_same_base = self.reached.end == other.reached.end;
        if is_same_base && meeting(&self.pattern.below, &other.pattern.below) == Meeting::Apart {
            return false;
        }
        differ && (self.reached.is_in(&other.reached) || other.reached.is_in(&self.reached))
    }
}

/// Returns the sensitive part of the machine that a folder is, is in or contains, which no
/// component should have.
pub(super) fn dangerous(granted: &Path, home: Option<&Path>) -> Option<&'static str> {
    let meets = |place: &Path| {
        let place = Reached::by(place).end;
        granted.starts_with(&place) || place.starts_with(granted)
    };
    let owned = home.and_then(|home| {
        if Reached::by(home).end.starts_with(granted) {
            return Some("the home of the user that the host runs as");
        }
        KEPT_AT_HOME
            .iter()
            .find(|(name, _)| meets(&home.join(name)))
            .map(|(_, what)| *what)
    });
    // Whoever is at home there may grant folders in it.
    let at_home =
        |place: &str| home.is_some_and(|home| home.starts_with(place) && granted.starts_with(home));
    let system = || {
        SYSTEM
            .iter()
            .find(|(place, _)| meets(Path::new(place)) && !at_home(place))
    };
    let shared = || {
        SHARED
            .iter()
            .find(|(place, _)| Reached::by(Path::new(place)).end.starts_with(granted))
    };
    owned.or_else(|| system().or_else(shared).map(|(_, what)| *what))
}

/// Returns whether there is no other way to write the same absolute path.
fn is_normal(at: &str) -> bool {
    let segments = |rest: &str| {
        rest.split('/')
            .all(|segment| !matches!(segment, "" | "." | ".."))
    };
    at == "/" || at.strip_prefix('/').is_some_and(segments)
}

/// A resolved path: its end by name, as far as that tells, and the folders through which it is
/// looked up.
pub(super) struct Reached {
    pub(super) end: PathBuf,
    chain: FolderChain,
}

impl Reached {
    /// Follows a path as far as there is something, and goes by its names from there on.
    pub(super) fn by(path: &Path) -> Self {
        // Only an empty path cannot be made absolute.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut end = PathBuf::new();
        for component in path.components() {
            if component == Component::ParentDir {
                end.pop();
                continue;
            }
            end.push(component);
            if let Ok(real) = end.canonicalize() {
                end = real;
            }
        }
        // What cannot be looked at cannot be opened either.
        let chain = folder_chain(&path).unwrap_or_default();
        Self { end, chain }
    }

    /// Returns whether the path is a folder or in it. It may be in it by a link in the folder,
    /// which anyone who may write there can redirect.
    pub(super) fn is_in(&self, folder: &Self) -> bool {
        self.end.starts_with(&folder.end)
            || folder
                .chain
                .end
                .is_some_and(|folder| self.chain.meets(folder))
    }
}

/// Kinds of file systems by their numbers (`statfs(2)`), each with what is wrong with it. Those
/// that something else than this machine's kernel keeps are known to [`FileSystemKind`].
const VOLATILE: [(u64, &str, &str); 3] = [
    (0x0102_1994, "tmpfs", IN_MEMORY),
    (0x8584_58f6, "ramfs", IN_MEMORY),
    (0x794c_7630, "overlay", IN_LAYER),
];

const IN_MEMORY: &str = "is kept in memory, and all of it is gone when the machine stops";
const IN_LAYER: &str =
    "goes with the container that it belongs to, and is not synced where it is mounted `volatile`";
const ELSEWHERE: &str = "is kept by something else than this machine's kernel, whose syncs and locks this host cannot \
     rely on";

/// The folders that the log has a warning of: a start checks its configuration more than once.
static LOGGED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Warns of a data folder that is not on a local and durable file system, and logs it once: the
/// notices of a start are gone by the time that somebody looks for lost data.
pub(super) fn check_file_system(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let data = loaded.data_dir();
    findings.extend(open_to_others(&data));
    let Some((name, what)) = kind_of(&data).and_then(doubt) else {
        return;
    };
    let message = format!(
        "`{}` is on a file system ({name}) that {what}; put the data on a local disk",
        data.display()
    );
    findings.push(warning("server.dataDir", message));
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.insert(data.clone()) {
        tracing::warn!(
            folder = %data.display(),
            file_system = name,
            "the data folder is on a file system that {what}"
        );
    }
}

/// Finds that others than the owner enter the folder, if it is there. Where everybody may write,
/// anybody puts a file in the place of the host's.
fn open_to_others(data: &Path) -> Option<Finding> {
    let mode = std::fs::metadata(data).ok()?.permissions().mode() & 0o777;
    let what = match mode {
        mode if mode & 0o002 != 0 => "everybody may write in",
        mode if mode & 0o077 != 0 => "others may enter",
        _ => return None,
    };
    let message = format!(
        "{what} `{}` (mode {mode:o}); run: chmod 700 {}",
        data.display(),
        quoted(data)
    );
    Some(if mode & 0o002 != 0 {
        error("server.dataDir", message)
    } else {
        warning("server.dataDir", message)
    })
}

fn doubt(kind: FileSystemKind) -> Option<(&'static str, &'static str)> {
    let volatile = VOLATILE
        .iter()
        .find(|(number, ..)| *number == kind.0)
        .map(|(_, name, what)| (*name, *what));
    volatile.or_else(|| Some((kind.kept_elsewhere()?, ELSEWHERE)))
}

/// The kind of the file system that a folder is on, or would be made on.
fn kind_of(folder: &Path) -> Option<FileSystemKind> {
    let folder = std::path::absolute(folder).ok()?;
    folder.ancestors().find_map(FileSystemKind::at)
}
