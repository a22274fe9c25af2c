//! The checks of the data folder: who may enter it, and the file system under it. They warn of one
//! that is volatile or kept by another machine.
//!
//! A message that was acknowledged is durable because a sync said so. In memory nothing is; on a
//! network file system locks and syncs depend on a server; and what a container writes to its own
//! layer goes with the container.

use super::document::Loaded;
use super::finding::{Finding, error, warning};
use crate::terminal::quoted;
use runtime::FileSystemKind;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
pub(super) fn check(loaded: &Loaded, findings: &mut Vec<Finding>) {
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

#[cfg(test)]
mod tests {
    use super::{FileSystemKind, doubt, kind_of, open_to_others};
    use crate::config::check::check;
    use crate::config::finding::Severity;
    use crate::config::load;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::Mutex;

    #[test]
    fn a_local_disk_is_not_doubted_and_others_are_by_name() {
        // ext4, XFS, Btrfs, ZFS.
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x2fc1_2fc1] {
            assert_eq!(doubt(FileSystemKind(local)), None, "{local:x}");
        }
        for (number, name) in [
            (0x0102_1994, "tmpfs"),
            (0x6969, "NFS"),
            (0x794c_7630, "overlay"),
            (0xff53_4d42, "CIFS"),
        ] {
            let doubted = doubt(FileSystemKind(number));
            assert_eq!(doubted.map(|(name, _)| name), Some(name));
        }
    }

    #[test]
    fn a_data_folder_that_others_enter_is_warned_of_and_one_that_all_write_refused() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        assert_eq!(open_to_others(&data), None, "the first start makes it");
        std::fs::create_dir(&data).unwrap();
        for (mode, graded) in [
            (0o700, None),
            (0o750, Some(Severity::Warning)),
            (0o701, Some(Severity::Warning)),
            (0o775, Some(Severity::Warning)),
            (0o777, Some(Severity::Error)),
            (0o702, Some(Severity::Error)),
        ] {
            std::fs::set_permissions(&data, Permissions::from_mode(mode)).unwrap();
            let found = open_to_others(&data);
            assert_eq!(
                found.as_ref().map(|found| found.severity),
                graded,
                "{mode:o}"
            );
            if let Some(found) = found {
                assert!(found.message.contains("run: chmod 700 "), "{found:?}");
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn data_in_memory_is_warned_of_by_the_name_of_the_file_system() {
        // The kernel says of its own tables that they are on `proc`, wherever this runs.
        let kind = kind_of(Path::new("/proc/self/not/there"));
        assert_eq!(kind, Some(FileSystemKind(0x9fa0)));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        let warned = |data: &str| {
            std::fs::write(&file, format!("[server]\ndataDir = {data:?}\n")).unwrap();
            let findings = check(&load(&file, []).unwrap());
            let mut found = findings
                .into_iter()
                .filter(|finding| finding.key == "server.dataDir");
            found
                .next()
                .map(|finding| (finding.severity, finding.message))
        };
        let (severity, message) = warned("/dev/shm/agent-host/data").unwrap();
        assert!(
            severity == Severity::Warning && message.contains("(tmpfs) that is kept in memory"),
            "{message}"
        );
        assert_eq!(
            warned("/proc/self/data"),
            None,
            "what is not listed is not doubted"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn data_in_memory_is_logged_once_with_its_folder() {
        const DATA: &str = "/dev/shm/agent-host/logged";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, format!("[server]\ndataDir = {DATA:?}\n")).unwrap();
        let log = folder.path().join("log");
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(Mutex::new(File::create(&log).unwrap()))
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..2 {
                check(&load(&file, []).unwrap());
            }
        });
        let log = std::fs::read_to_string(log).unwrap();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(DATA)).collect();
        assert!(
            lines.len() == 1
                && lines[0].contains("WARN")
                && lines[0].contains(&format!("folder={DATA}"))
                && lines[0].contains("tmpfs")
                && lines[0].contains("is kept in memory"),
            "{log}"
        );
    }
}
