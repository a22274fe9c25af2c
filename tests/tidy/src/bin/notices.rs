//! Prints the notices of everything that a release ships; fails when one is missing.

use agent_host_tidy::notices;
use agent_host_tidy::tree::root;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};

/// The workspaces of what is shipped: manifest, platform (that of this machine without), packages
/// (all without).
const WORKSPACES: [(&str, Option<&str>, &[&str]); 3] = [
    ("Cargo.toml", None, &["agent-host"]),
    ("guests/Cargo.toml", Some("wasm32-wasip2"), &[]),
    ("interpreters/Cargo.toml", Some("wasm32-wasip2"), &[]),
];

fn main() -> ExitCode {
    let faults = match collect() {
        Ok((all, faults)) if faults.is_empty() => {
            let written = io::stdout().write_all(notices::document(&all).as_bytes());
            return if written.is_ok() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
        }
        Ok((_, faults)) => faults,
        Err(error) => vec![error.to_string()],
    };
    for fault in faults {
        // Nobody is left to be told when this fails.
        let _ = writeln!(io::stderr(), "notices: {fault}");
    }
    ExitCode::FAILURE
}

fn collect() -> io::Result<(BTreeSet<notices::Shipped>, Vec<String>)> {
    let mut all = BTreeSet::new();
    for (manifest, platform, packages) in WORKSPACES {
        let metadata = metadata(manifest, platform)?;
        all.extend(notices::shipped(&metadata, packages)?);
    }
    let faults = notices::complete(&mut all);
    Ok((all, faults))
}

fn metadata(manifest: &str, platform: Option<&str>) -> io::Result<serde_json::Value> {
    let mut command = Command::new("cargo");
    command
        .args(["metadata", "--format-version", "1", "--locked"])
        .arg("--manifest-path")
        .arg(root().join(manifest))
        .stderr(Stdio::inherit());
    let platform = match platform {
        Some(platform) => platform.to_owned(),
        None => host_platform()?,
    };
    command.args(["--filter-platform", &platform]);
    let reported = command.output()?;
    if !reported.status.success() {
        return Err(io::Error::other(format!(
            "`cargo metadata` failed for {manifest}"
        )));
    }
    serde_json::from_slice(&reported.stdout).map_err(io::Error::other)
}

fn host_platform() -> io::Result<String> {
    let reported = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8_lossy(&reported.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| io::Error::other("`rustc -vV` names no host"))
}
