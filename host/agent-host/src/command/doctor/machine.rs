//! Checks of the machine: the data folder, its disk, the clock, the token, the limits of a process.

use super::report::{Finding, Grade};
use crate::command::status::size;
use crate::terminal::quoted;
use crate::token;
use broker::Clock;
use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Bytes of free space below which a host may stop soon.
const FREE_BYTES_WARN: u64 = 1 << 30;
/// Bytes of free space below which a host does not work.
const FREE_BYTES_FAIL: u64 = 64 << 20;
/// Files that a process has to be able to open, connections included.
const OPEN_FILES_MIN: u64 = 1_024;
/// Milliseconds since 1970 of the beginning of 2026: no clock that is right shows less.
const CLOCK_MS_MIN: u64 = 1_767_225_600_000;
/// Seconds by which the clock may be behind the last change of the data.
const CLOCK_BEHIND_S_MAX: u64 = 60;

/// The folder of the data, or the nearest one above it that is there.
fn existing(folder: &Path) -> PathBuf {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let mut above = folder.ancestors();
    above
        .find(|folder| folder.exists())
        .map_or(folder.clone(), Path::to_owned)
}

/// Checks that the data folder is one that can be written, by nobody else.
pub(super) fn data_folder(data: &Path) -> Finding {
    let name = "data folder";
    let there = existing(data);
    let shown = data.display();
    if !there.is_dir() {
        let message = format!("`{}` is not a folder", there.display());
        return Finding::new(name, Grade::Fail, message)
            .mended_by("name another folder in `server.dataDir`");
    }
    if access(&there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let message = format!("`{}` cannot be written by this user", there.display());
        return Finding::new(name, Grade::Fail, message).mended_by(format!(
            "run as the user that the host runs as, or: sudo chown $(id -u) {}",
            quoted(&there)
        ));
    }
    if there != std::path::absolute(data).unwrap_or_else(|_| data.to_owned()) {
        let message = format!("`{shown}` is not there yet; the first start makes it");
        return Finding::new(name, Grade::Ok, message);
    }
    Finding::new(name, Grade::Ok, shown.to_string())
}

/// Checks the free space on the disk of the data.
pub(super) fn disk_space(data: &Path) -> Finding {
    let name = "disk space";
    let there = existing(data);
    let Ok(disk) = statvfs(&there) else {
        let message = format!("the disk of `{}` does not tell its space", there.display());
        return Finding::new(name, Grade::Warn, message);
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let message = format!("{} are free", size(free));
    match free {
        free if free < FREE_BYTES_FAIL => Finding::new(name, Grade::Fail, message)
            .mended_by(format!("free space on the disk of `{}`", there.display())),
        free if free < FREE_BYTES_WARN => Finding::new(name, Grade::Warn, message)
            .mended_by("free some: a full disk stops the recording of messages"),
        _ => Finding::new(name, Grade::Ok, message),
    }
}

/// Checks that the clock shows a time that can be.
pub(super) fn clock(data: &Path) -> Finding {
    let wall = Clock::system().state().wall;
    let database = data.join("store.db");
    let changed = std::fs::metadata(database).and_then(|found| found.modified());
    let changed = changed
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .unwrap_or_default();
    clock_at(wall.0, &wall.to_string(), changed)
}

fn clock_at(wall_ms: u64, shown: &str, changed: Duration) -> Finding {
    let name = "clock";
    let fix = "set the clock, best by a time service (`timedatectl set-ntp true`)";
    if wall_ms < CLOCK_MS_MIN {
        let message = format!("the clock shows {shown}, which is long past");
        return Finding::new(name, Grade::Fail, message).mended_by(fix);
    }
    let behind = changed.saturating_sub(Duration::from_millis(wall_ms));
    if behind > Duration::from_secs(CLOCK_BEHIND_S_MAX) {
        let message = format!(
            "the clock is {} s behind the last change of the data",
            behind.as_secs()
        );
        return Finding::new(name, Grade::Warn, message).mended_by(fix);
    }
    Finding::new(name, Grade::Ok, shown)
}

/// Checks the host's own token.
pub(super) fn token(file: &Path) -> Finding {
    let name = "token";
    if !file.exists() {
        let message = format!(
            "`{}` is not there yet; the first start makes it",
            file.display()
        );
        return Finding::new(name, Grade::Ok, message);
    }
    match token::read(file) {
        Ok(_) => Finding::new(name, Grade::Ok, file.display().to_string()),
        Err(failure) => Finding::of_failure(name, &failure),
    }
}

/// Checks the number of files that a process may open.
pub(super) fn open_files() -> Finding {
    let name = "open files";
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < OPEN_FILES_MIN => {
            let message = format!("a process may open {limit} files, connections included");
            Finding::new(name, Grade::Warn, message).mended_by(format!(
                "ulimit -n {OPEN_FILES_MIN}, or LimitNOFILE={OPEN_FILES_MIN} in a systemd unit"
            ))
        }
        Some(limit) => Finding::new(name, Grade::Ok, format!("a process may open {limit}")),
        None => Finding::new(name, Grade::Ok, "a process may open any number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_data_folder_is_judged_by_who_may_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a/b/data");
        let missing = data_folder(&data);
        assert_eq!(missing.grade, Grade::Ok);
        assert!(missing.message.contains("the first start makes it"));
        std::fs::create_dir_all(&data).unwrap();
        assert_eq!(data_folder(&data).grade, Grade::Ok);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(data_folder(&file).grade, Grade::Fail);
    }

    #[test]
    fn a_clock_that_cannot_be_right_is_told_with_the_fix() {
        let now = CLOCK_MS_MIN + 1_000_000;
        let changed = |ms: u64| clock_at(now, "now", Duration::from_millis(ms)).grade;
        assert_eq!(changed(0), Grade::Ok);
        assert_eq!(changed(now + 60_000), Grade::Ok);
        assert_eq!(changed(now + 62_000), Grade::Warn);
        let long_past = clock_at(1_000, "1970", Duration::ZERO);
        assert_eq!(long_past.grade, Grade::Fail);
        assert!(long_past.fix.is_some());
    }

    #[test]
    fn a_token_that_others_may_read_fails_with_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        assert_eq!(token(&file).grade, Grade::Ok);
        token::get_or_make(&file).unwrap();
        assert_eq!(token(&file).grade, Grade::Ok);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = token(&file);
        assert_eq!(open.grade, Grade::Fail);
        assert!(open.fix.unwrap().starts_with("chmod 600 "));
    }

    #[test]
    fn the_disk_and_the_limits_of_this_machine_are_told() {
        let folder = tempfile::tempdir().unwrap();
        assert!(disk_space(folder.path()).message.contains("are free"));
        assert!(open_files().message.contains("a process may open"));
    }
}
