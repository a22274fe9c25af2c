//! The scopes that the help of each command names: a key with them suffices, and one without does
//! not.

use super::err;
use agent_host_tests::process::{Folder, Host, puppets};
use reqwest::Method;
use serde_json::json;
use std::process::Output;

/// All scopes that there are.
const SCOPES: [&str; 4] = ["read", "write", "keys", "admin"];
/// The words in the place of an id of a session that there is.
const SESSION: &str = "SESSION";
/// The id of an old session.
const UUID: &str = "0b8f2f8e-6a5e-4c39-9d57-3f0c1b0b7f11";
/// The message about a key that may not be used for something.
const LACKS: &str = "lacks the required scope";

/// The commands that ask a running host, each with what it takes.
const COMMANDS: &[&[&str]] = &[
    &["session", "list"],
    &["session", "show", SESSION],
    &["session", "stats", SESSION],
    &["session", "tree", SESSION],
    &["session", "diff", SESSION, SESSION],
    &["session", "export", SESSION],
    &["session", "import", "empty.json", "--agent", "a"],
    &["session", "search", "word"],
    &["session", "compact", SESSION],
    &["session", "inputs", SESSION],
    &["session", "quarantined"],
    &["session", "release", SESSION],
    &["session", "cancel", SESSION],
    &["session", "cancel", SESSION, "--waiting"],
    &["events", "tail"],
    &["audit"],
    &["audit", "--component", "files"],
    &["model", "list"],
    &["model", "check"],
    &["task", "list"],
    &["task", "show", UUID],
    &["task", "stats"],
    &["task", "cancel", UUID],
    &["memory", "list", "--agent", "/local/agent/a"],
    &["memory", "search", "word", "--agent", "/local/agent/a"],
    &["memory", "forget", UUID, "--agent", "/local/agent/a"],
    &["memory", "read", SESSION],
    &["usage"],
    &["usage", "--agent", "/local/agent/a"],
    &["status"],
    &["grants", "diff"],
    &["component", "suggest", "files"],
    &["verify"],
    &["rebuild"],
    &["backup", "backup.sqlite"],
    &["dead-letter", "list"],
    &["dead-letter", "show", SESSION],
    &["dead-letter", "requeue", SESSION],
    &["dead-letter", "drop", SESSION],
    &["import", "sessions.json"],
    &["clock", "show"],
    &["clock", "confirm"],
    &["key", "create", "--scopes", "keys"],
    &["key", "list"],
    &["key", "revoke", "none"],
    &["agents", "tree"],
    &["connector", "bind", "alice", "telegram:1"],
    &["connector", "unbind", "alice", "telegram:1"],
    &["connector", "list", "alice"],
    &["connector", "pairings"],
    &["connector", "pair", "ABCD2345"],
    &["connector", "unpair", "ABCD2345"],
    &["connector", "outbound-messages", "telegram"],
    &["connector", "requeue", "telegram", UUID],
    &["connector", "test", "telegram", "--user", "alice"],
    &["trigger", "list"],
    &["trigger", "show", "none"],
    &["trigger", "run", "none"],
    &["trigger", "pause", "none"],
    &["trigger", "resume", "none"],
    &["trigger", "history", "none"],
    &["trigger", "remove", "none"],
];

/// The scopes that a help names.
#[derive(Debug)]
struct Named {
    scopes: Vec<String>,
    /// True if any one of them suffices.
    any: bool,
}

impl Named {
    fn read(help: &str) -> Self {
        let line = help
            .lines()
            .find(|line| line.starts_with("Needs a key with the scope"))
            .unwrap_or_else(|| panic!("a sentence on the key: {help}"));
        let quoted = line.split('`').skip(1).step_by(2);
        Self {
            scopes: quoted.map(str::to_owned).collect(),
            any: line.contains("` or `"),
        }
    }

    /// The sets of scopes that suffice.
    fn enough(&self) -> Vec<Vec<&str>> {
        let scopes = self.scopes.iter().map(String::as_str);
        if self.any {
            scopes.map(|scope| vec![scope]).collect()
        } else {
            vec![scopes.collect()]
        }
    }

    /// The sets that do not, with all scopes that are not named.
    fn too_few(&self) -> Vec<Vec<&'static str>> {
        let without = |missing: &dyn Fn(&str) -> bool| {
            SCOPES
                .into_iter()
                .filter(|scope| !missing(scope))
                .collect::<Vec<_>>()
        };
        if self.any {
            return vec![without(&|scope| self.scopes.iter().any(|it| it == scope))];
        }
        let each = self.scopes.iter();
        each.map(|missing| without(&|scope| scope == missing))
            .collect()
    }
}

/// Runs a command under a key with these scopes, for whoever the host's own token stands for. A
/// user has only so many keys, so it is revoked.
async fn run(folder: &Folder, host: &Host, command: &[&str], scopes: &[&str]) -> Output {
    let wanted = json!({ "name": "test", "scopes": scopes });
    let issued = host.post("/api/keys", &wanted).gives(201).await;
    // What an earlier run made is in the way of the next.
    let _ = std::fs::remove_file(folder.path().join("backup.sqlite"));
    let key = issued.text("key");
    let reported = folder
        .run_with(command, &[("AGENT_HOST_TOKEN", &key)])
        .await;
    let revoking = host.request(Method::DELETE, &format!("/api/keys/{}", issued.text("id")));
    let revoked = host.send(revoking).await;
    assert!(revoked.status < 300, "{revoked:?}");
    reported
}

/// A key with the scopes that a command's help names is never refused for a scope, and one without
/// any of them is.
#[tokio::test(flavor = "multi_thread")]
async fn the_scopes_in_the_help_suffice_and_none_is_too_many() {
    let agent = json!({ "agentId": "a", "displayName": "A", "component": "puppet" });
    let mut config = puppets(&json!([agent]));
    config["components"]["files"] = json!({});
    let folder = Folder::new(config);
    folder.warm(&["puppet", "files"]).await;
    let old = json!({ "format": "agent-host.sessions/1", "sessions": [{
        "user_id": "ann", "session_id": UUID, "conversation_id": UUID,
        "session_type": "lesson", "status": "completed", "items": [],
        "started_at": "2026-01-01T00:00:00Z",
    }] });
    std::fs::write(folder.path().join("sessions.json"), old.to_string()).unwrap();
    std::fs::write(folder.path().join("empty.json"), "{}").unwrap();
    let host = folder.serve().await;
    let opened = host.post("/api/agents/a/sessions", &json!({})).await;
    let session = opened.text("session_id");
    for command in COMMANDS {
        let command: Vec<&str> = command
            .iter()
            .map(|word| if *word == SESSION { &session } else { *word })
            .collect();
        let words = command.iter().take_while(|word| {
            word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with("--")
        });
        let mut help: Vec<&str> = words.copied().take(2).collect();
        help.push("--help");
        let help = folder.run(&help).await;
        let named = Named::read(&String::from_utf8_lossy(&help.stdout));
        for scopes in named.enough() {
            let reported = run(&folder, &host, &command, &scopes).await;
            let text = err(&reported);
            assert!(!text.contains(LACKS), "{command:?} with {scopes:?}: {text}");
        }
        for scopes in named.too_few() {
            let reported = run(&folder, &host, &command, &scopes).await;
            let text = err(&reported);
            assert!(
                text.contains(LACKS) && reported.status.code() == Some(3),
                "{command:?} with {scopes:?} and {named:?}: {text}"
            );
        }
    }
}
