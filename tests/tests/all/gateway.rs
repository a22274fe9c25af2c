//! The gateway from outside: models and their providers, what a request to a model is sent with,
//! and the limits of a definition.

mod limits;
mod messages;
mod numbers;
mod peer;
mod providers;
mod sampling;

use agent_host_tests::process::Folder;
use peer::Peer;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// A folder whose default model is the peer's, with an agent `plain` and more keys of the
/// configuration: those of `agents` are put after it.
async fn folder(peer: &Peer, more: Value) -> Folder {
    let mut config = json!({
        "agents": [{ "agentId": "plain", "displayName": "Plain", "toolAllowlist": [] }],
        "providers": {
            "local": { "kind": "openai-compatible", "baseUrl": peer.base() },
            "script": { "kind": "scripted", "script": "script.toml" },
            "down": { "kind": "openai-compatible", "baseUrl": "http://127.0.0.1:9/v1" },
        },
        "models": {
            "main": { "provider": "local", "model": "m-1",
                      "price": { "inputPerMillion": 1.0, "outputPerMillion": 2.0 } },
            "gone": { "provider": "local", "model": "m-9" },
            "s": { "provider": "script", "model": "s" },
        },
        "defaultModel": "main",
    });
    for (key, value) in more.as_object().unwrap() {
        match (config.get_mut(key), value) {
            (Some(Value::Array(there)), Value::Array(more)) => there.extend(more.iter().cloned()),
            (Some(Value::Object(there)), Value::Object(more)) => there.extend(more.clone()),
            _ => config[key] = value.clone(),
        }
    }
    let folder = Folder::new(config);
    let mut key = std::fs::OpenOptions::new();
    key.write(true).create(true).mode(0o600);
    let mut key = key.open(folder.path().join("key")).unwrap();
    key.write_all(b"sk-test-0123456789abcdefghijklmnopqrstuv")
        .unwrap();
    folder.warm(&["assistant"]).await;
    folder
}
