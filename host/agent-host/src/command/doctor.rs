//! `doctor`: checks of the machine and the configuration, each with the fix.
//!
//! Here are the findings, and what is checked of the machine: the data folder, disk, clock, token
//! and limits of the process. `doctor/host.rs` has: the port, the components and the models

mod host;

use crate::answer::{Answer, serialized, size};
use crate::cli::Doctor;
use crate::command::pending::{Pending, found_in};
use crate::config::{Loaded, Severity};
use crate::failure::{Exit, Failure};
use crate::terminal::quoted;
use crate::token;
use anyhow::anyhow;
use broker::Clock;
use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Runs the command.
pub(super) async fn run(
    options: &Doctor,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Answer, Failure> {
    let mut findings = Vec::new();
    match load() {
        Ok(loaded) => examine(&loaded, options, &mut findings).await,
        Err(failure) => findings.push(Finding::of_failure("configuration", &failure)),
    }
    findings.push(open_files());
    let count = |grade| findings.iter().filter(|it| it.grade == grade).count();
    let failed = count(Grade::Fail);
    let warned = count(Grade::Warn);
    let document = json!({ "findings": findings, "failed": failed, "warned": warned });
    let answer = Answer::new(document, findings.iter().flat_map(Finding::lines));
    Ok(match (failed, warned) {
        (0, 0) => answer,
        (0, warned) if !options.strict => answer.notice([format!("{warned} to look at")]),
        (failed, warned) => {
            let error = anyhow!("{failed} failed, {warned} to look at");
            answer.failing(Failure::new(Exit::Failed, error))
        }
    })
}

async fn examine(loaded: &Loaded, options: &Doctor, findings: &mut Vec<Finding>) {
    let before = findings.len();
    let running = Pending::of_running(loaded).await;
    let of_same_file = running.as_ref().filter(|pending| pending.is_of(loaded));
    for finding in &found_in(loaded, running.as_ref()).await {
        let name = match finding.key.as_str() {
            "server.dataDir" => "file system",
            _ => "configuration",
        };
        let grade = match finding.severity {
            Severity::Error => Grade::Fail,
            Severity::Warning => Grade::Warn,
        };
        findings.push(Finding::new(name, grade, finding.without_severity()));
    }
    let is_reported = |name: &str| findings.iter().skip(before).any(|it| it.name == name);
    let ok = [
        (!is_reported("configuration")).then(|| {
            let message = format!("{} is in order", loaded.file.display());
            Finding::new("configuration", Grade::Ok, message)
        }),
        (!is_reported("file system")).then(|| {
            let message = "the data is on a local file system";
            Finding::new("file system", Grade::Ok, message)
        }),
    ];
    findings.extend(ok.into_iter().flatten());
    let data = loaded.data_dir();
    findings.push(data_folder(&data));
    findings.push(disk_space(&data));
    findings.push(clock(&data));
    findings.push(token(&loaded.token_file()));
    findings.push(host::port(loaded).await);
    findings.push(host::components(loaded).await);
    let down = match of_same_file {
        Some(_) => host::outages(loaded).await,
        None => Vec::new(),
    };
    match of_same_file {
        Some(running) if !options.ask_models => {
            let is_reported = down.iter().any(|it| it.name == host::MODELS);
            findings.extend((!is_reported).then(|| host::models_of_running(loaded, running)));
        }
        Some(_) | None => findings.extend(host::models(loaded, options.ask_models).await),
    }
    findings.extend(down);
}

/// The grade of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    /// All is well.
    Ok,
    /// A host runs, but an operator should look at it.
    Warn,
    /// A host does not start, or does not do its work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    /// The thing.
    name: &'static str,
    grade: Grade,
    message: String,
    /// The way to mend it; none where the message says it, or nothing is wrong.
    fix: Option<String>,
}

impl Finding {
    fn new(name: &'static str, grade: Grade, message: impl Into<String>) -> Self {
        Self {
            name,
            grade,
            message: message.into(),
            fix: None,
        }
    }

    /// The same with a fix.
    fn mended_by(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    /// A failure that kept something from being looked at.
    fn of_failure(name: &'static str, failure: &Failure) -> Self {
        let causes: Vec<String> = failure.error.chain().map(ToString::to_string).collect();
        Self {
            name,
            grade: Grade::Fail,
            message: causes.join(": "),
            fix: failure.advice.clone(),
        }
    }

    /// Returns its lines: the first says what it is, the second how to mend it.
    fn lines(&self) -> Vec<String> {
        let Self { name, message, .. } = self;
        let grade = serialized(&self.grade);
        let first = format!("{grade:<5} {name:<14} {message}");
        let fix = self.fix.iter().map(|fix| format!("{:<21}fix: {fix}", ""));
        std::iter::once(first).chain(fix).collect()
    }
}

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
fn data_folder(data: &Path) -> Finding {
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
fn disk_space(data: &Path) -> Finding {
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
fn clock(data: &Path) -> Finding {
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
fn token(file: &Path) -> Finding {
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
fn open_files() -> Finding {
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
