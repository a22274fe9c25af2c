//! The system's facts about a process, and its limits for one.

use anyhow::{Context, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::time::Duration;

/// Milliseconds of the unit in which Linux tells programs the processor time of a process.
const TICK_MS: u64 = 10;

/// Bytes of anonymous memory that a process has in use: all of its own, without what it only maps
/// from files.
///
/// # Errors
/// It has ended, or this is not Linux.
pub(crate) fn anonymous_bytes(process: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))
        .context("what a process holds is told on Linux only")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .context("this system does not tell anonymous memory")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib << 10)
}

/// Processor time that a process has taken, of all its threads.
///
/// # Errors
/// It has ended, or this is not Linux.
pub(crate) fn processor_time(process: u32) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))
        .context("the processor time of a process is told on Linux only")?;
    // The name before the last bracket may have anything in it. The fields behind it are counted
    // from the third: the 14th is the time of the process itself, and the 15th that of the system.
    let (_, fields) = stat.rsplit_once(')').context("a process without a name")?;
    let ticks: Result<Vec<u64>, _> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect();
    let ticks: u64 = ticks?.iter().sum();
    Ok(Duration::from_millis(ticks * TICK_MS))
}

/// Allows this process, and those that it starts from here on, so many open files.
///
/// # Errors
/// The system allows fewer.
pub(crate) fn allow_files(files: u64) -> anyhow::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    // Only root may raise the maximum too.
    let maximum = maximum.map(|maximum| maximum.max(files));
    let allowed = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(files),
            maximum,
        },
    );
    ensure!(
        allowed.is_ok(),
        "{files} open files are needed, and the system allows fewer: raise `ulimit -n`"
    );
    Ok(())
}
