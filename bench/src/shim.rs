//! Running this program once more with another disk: `shim.c` is loaded before the C library, and every sync takes 4 ms and is counted.
//!
//! What is measured there has no disk's mood in it.

use agent_host_tests::guests;
use anyhow::{Context, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether the disk can be replaced here.
pub(crate) const AVAILABLE: bool = cfg!(target_os = "linux");

/// Starts this program again with a flag and the path of the counter of syncs; the numbers that it answers with.
///
/// # Errors
/// This is not Linux, there is no C compiler, or the program has failed.
pub(crate) fn again(flag: &str) -> anyhow::Result<Vec<f64>> {
    ensure!(AVAILABLE, "the disk can be replaced on Linux only");
    let folder = guests::root().join("target/bench");
    fs::create_dir_all(&folder)?;
    let (shim, counter, source) = (folder.join("shim.so"), folder.join("syncs"), guests::root().join("bench/shim.c"));
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&shim).arg(&source);
    ensure!(compiler.status().context("cc does not start")?.success(), "cc does not compile {}", source.display());
    fs::write(&counter, [0; 8])?;
    let mut again = Command::new(std::env::current_exe()?);
    let output = again.arg(flag).arg(&counter).env("LD_PRELOAD", &shim).env("BENCH_SYNCS", &counter).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Syncs that were counted so far.
///
/// # Errors
/// There is no counter.
pub(crate) fn counted(counter: &Path) -> anyhow::Result<u64> {
    let bytes = fs::read(counter)?;
    Ok(u64::from_ne_bytes(*bytes.first_chunk().context("the counter is cut short")?))
}
