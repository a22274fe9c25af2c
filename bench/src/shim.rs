//! Running this program once more with another disk: every sync takes as long as it is told, and is
//! counted.
//!
//! A measurement there does not depend on the mood of the real disk.

use agent_host_tests::guests;
use agent_host_tests::process::PRELOAD;
use agent_host_tests::slow_disk::{SlowDisk, Syncs};
use anyhow::ensure;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// True if the disk can be replaced here.
pub(crate) const AVAILABLE: bool = cfg!(target_os = "linux");
/// Duration of a sync on a steady disk.
pub(crate) const STEADY: Duration = Duration::from_millis(4);

/// Starts this program again with a flag and the path of the counter of syncs, each of which takes
/// so long; the numbers that it answers with.
///
/// # Errors
/// This is not Linux, there is no C compiler, or the program has failed.
pub(crate) fn again(flag: &str, sync: Duration) -> anyhow::Result<Vec<f64>> {
    ensure!(AVAILABLE, "the disk can be replaced on Linux only");
    let folder = guests::root().join("target/bench");
    fs::create_dir_all(&folder)?;
    let disk = SlowDisk::new(&folder)?;
    disk.set(Syncs::Take(sync))?;
    let mut again = Command::new(std::env::current_exe()?);
    let output = again
        .arg(flag)
        .arg(disk.counter())
        .env(PRELOAD, disk.library())
        .envs([disk.variable()])
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}
