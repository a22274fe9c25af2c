//! The real `agent-host serve`, with the built-in components and a scripted model, in a folder of
//! its own.

use agent_host_tests::process::{Folder, Host};
use anyhow::anyhow;
use serde_json::{Value, json};

/// Every component that comes with the host.
const BUILT_INS: [&str; 6] = ["assistant", "worker", "tutor", "files", "web", "lists"];
/// Clients of one host. All of them come from one address here.
const CONNECTIONS_MAX: u64 = 20_000;

/// A folder for a host whose components are compiled already.
///
/// # Errors
/// The system's error.
pub(crate) async fn folder() -> anyhow::Result<Folder> {
    let folder = Folder::new(config());
    std::fs::create_dir_all(folder.data())?;
    folder.warm(&BUILT_INS).await;
    Ok(folder)
}

/// The demo with every component, and with limits that let all clients in.
fn config() -> Value {
    let limits = json!({
        "connectionsMax": CONNECTIONS_MAX,
        "connectionsPerAddressMax": CONNECTIONS_MAX,
        "streamsMax": CONNECTIONS_MAX,
    });
    json!({
        "server": { "listen": "127.0.0.1:0", "dataDir": "data", "limits": limits },
        "agents": [
            { "agentId": "assistant", "displayName": "Assistant", "maxConcurrentMessages": 100_000, "toolAllowlist": ["delegate"] },
            {
                "agentId": "worker", "displayName": "Worker", "component": "worker",
                "toolAllowlist": ["*_file", "*_files"],
            },
            {
                "agentId": "tutor", "displayName": "Tutor", "component": "tutor",
                "toolAllowlist": [],
            },
        ],
        "components": {
            "files": {
                "directories": [{ "path": "files", "at": "/workspace", "access": "read-write" }],
            },
            "web": {},
            "lists": {},
        },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "demo": { "provider": "scripted", "model": "demo" } },
    })
}

/// Starts it and waits until it is ready.
///
/// # Errors
/// It ended before, with what it said.
pub(crate) async fn start(folder: &Folder) -> anyhow::Result<Host> {
    folder
        .start(None)
        .await
        .map_err(|ended| anyhow!("the host did not start: {}", ended.said))
}

/// The process of a host.
pub(crate) fn process(host: &Host) -> u32 {
    host.process().as_raw_nonzero().get().unsigned_abs()
}
