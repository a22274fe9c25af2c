//! The real program in a folder of its own: started, talked to over a socket, killed, and started
//! again.
//!
//! The program is the one in the target folder: `cargo build --workspace` makes it.

mod folder;
mod frames;
mod host;
mod line;
mod session;

pub use folder::{DEMO_COMPONENTS, Folder, Printed};
pub use frames::{Frame, Frames};
pub use host::Host;
pub use line::{Answer, Line, Reply, Row, http, shows, tells};
pub use session::{Session, is_asking, rests, script};

use crate::guests::test_program;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// Time limit of a start, a stop or an answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The crash point at which a program dies; see `store::point`.
pub const CRASH_AT: &str = "AGENT_HOST_CRASH_AT";
/// The text in an event that is never stored; see `store::fault`.
pub const UNSTORABLE: &str = "AGENT_HOST_UNSTORABLE";
/// The variable with the words of a call's arguments over which the process dies.
pub const PERFORMING_DIES_ON: &str = "AGENT_HOST_PERFORMING_DIES_ON";
/// The variable with the words of an event on which a projection panics; see `store::fault`.
pub const PANICS_ON: &str = "AGENT_HOST_PANICS_ON";
/// The variable with the words of an event that contradicts stored rows; see `store::fault`.
pub const CONTRADICTS_ON: &str = "AGENT_HOST_CONTRADICTS_ON";
/// The variable with the words of an event that rests on an unreadable row; see `store::fault`.
pub const MISREADS_ON: &str = "AGENT_HOST_MISREADS_ON";
/// The variable with the words of an event whose reading panics; see `store::fault`.
pub const READING_PANICS_ON: &str = "AGENT_HOST_READING_PANICS_ON";
/// The variable with the words of an event whose reading ends the process; see `store::fault`.
pub const READING_DIES_ON: &str = "AGENT_HOST_READING_DIES_ON";
/// The variable that names the libraries which a program loads before its C library.
pub const PRELOAD: &str = "LD_PRELOAD";

/// A program that ended before it was ready.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its output on stderr, that of earlier programs in the same folder included.
    pub said: String,
}

/// The real program.
///
/// # Panics
/// When it is not built.
#[must_use]
pub fn program() -> PathBuf {
    let this = std::env::current_exe().expect("this program's path");
    // The bench is beside it, and the tests are one folder further down.
    let folders: Vec<&Path> = this.ancestors().skip(1).take(2).collect();
    let found = folders
        .iter()
        .map(|folder| folder.join("agent-host"))
        .find(|program| program.is_file());
    found.unwrap_or_else(|| {
        panic!("`agent-host` is not built in any of {folders:?}; run: cargo build --workspace")
    })
}

/// The agent `puppet`: it does what messages or its settings say.
#[must_use]
pub fn puppet() -> Value {
    json!({ "agentId": "puppet", "displayName": "Puppet", "component": "puppet" })
}

/// An agent of its own name that takes these steps at each message.
#[must_use]
pub fn acting(id: &str, steps: &Value) -> Value {
    json!({
        "agentId": id, "displayName": id, "component": "puppet",
        "settings": { "script": { "steps": steps } },
    })
}

/// A configuration with these agents, a scripted model, the puppet that they are made of, and more
/// components.
#[must_use]
pub fn scripted(agents: &Value, more: &[(&str, Value)]) -> Value {
    let mut config = json!({
        "agents": agents,
        "components": {
            "puppet": { "path": test_program("puppet"), "models": ["*"], "agents": ["*"] },
        },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    });
    for (name, component) in more {
        config["components"][name] = component.clone();
    }
    config
}

/// The component `effects`, which writes what its tools did to a log in `files`.
#[must_use]
pub fn effects() -> Value {
    json!({
        "path": test_program("effects"),
        "directories": [{ "path": "files", "at": "/data", "access": "read-write" }],
    })
}

/// The same as [`scripted`] with agents that have as many sessions at work as they like.
#[must_use]
pub fn puppets(agents: &Value) -> Value {
    let agents: Value = agents
        .as_array()
        .into_iter()
        .flatten()
        .cloned()
        .map(|mut agent| {
            if let Some(fields) = agent.as_object_mut() {
                fields
                    .entry("maxConcurrentMessages")
                    .or_insert(json!(10_000));
            }
            agent
        })
        .collect();
    scripted(&agents, &[])
}
