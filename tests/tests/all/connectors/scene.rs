//! A host with a connector to a stand-in for Telegram, whose agents do what messages say.

use super::telegram_server::{TOKEN, Telegram};
use agent_host_tests::patience::found;
use agent_host_tests::process::{
    Folder, Host, Line, PATIENCE, Reply, effects, puppet, puppets, script,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;

/// The person at the service who is the user `ada`.
pub(super) const ADA: i64 = 7;
/// A person whom nobody knows.
pub(super) const UNKNOWN_SENDER: i64 = 8;
/// The agent that Ada talks with.
pub(super) const AGENT: &str = "/ada/telegram";

/// The requests of a test on its scene.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Further keys of the connector.
    pub(super) connector: Value,
    /// The settings of the queue; the usual ones if null.
    pub(super) queue: Value,
    /// The definition of the agents that talk.
    pub(super) agent: &'static str,
    /// The rules of the scripted model; its usual ones without.
    pub(super) script: Option<&'static str>,
    /// The crash point at which the host dies.
    pub(super) crash_at: Option<String>,
    /// The triggers of the host.
    pub(super) triggers: Value,
    /// Tools that the puppet calls with an approval alone. They are those of `effects`, which is
    /// there for them.
    pub(super) confirm: &'static [&'static str],
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            connector: json!({}),
            queue: Value::Null,
            agent: "puppet",
            script: None,
            crash_at: None,
            triggers: json!({}),
            confirm: &[],
        }
    }
}

/// A host and a service.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) telegram: Telegram,
    pub(super) folder: Folder,
    pub(super) host: Host,
}

impl Scene {
    /// One in which Ada is known.
    pub(super) async fn new() -> Self {
        Self::with(Wanted::default()).await
    }

    /// The same with further keys of the connector.
    pub(super) async fn connected(connector: Value) -> Self {
        Self::with(Wanted {
            connector,
            ..Wanted::default()
        })
        .await
    }

    /// The same with everything that a test wants.
    pub(super) async fn with(wanted: Wanted) -> Self {
        let telegram = Telegram::new();
        let folder = Folder::new(config(&telegram, &wanted));
        if let Some(script) = wanted.script {
            std::fs::write(folder.path().join("script.toml"), script).unwrap();
        }
        folder.warm(&["puppet", "assistant", "telegram"]).await;
        if !wanted.confirm.is_empty() {
            folder.warm(&["effects"]).await;
        }
        let host = folder.start(wanted.crash_at.as_deref()).await.unwrap();
        let scene = Self {
            telegram,
            folder,
            host,
        };
        scene.bind("telegram:7", "ada").await;
        scene
    }

    /// Kills the host as `kill -9` does, and starts it again.
    pub(super) async fn killed(self) -> Self {
        let Self {
            telegram,
            folder,
            host,
        } = self;
        host.kill().await;
        let host = folder.serve().await;
        Self {
            telegram,
            folder,
            host,
        }
    }

    /// Waits until the host has died at its crash point, and starts it again.
    pub(super) async fn died(self) -> Self {
        let Self {
            telegram,
            folder,
            mut host,
        } = self;
        assert!(host.died(PATIENCE).await.is_some(), "it did not die");
        let host = folder.serve().await;
        Self {
            telegram,
            folder,
            host,
        }
    }

    /// Binds a connector key to a user.
    pub(super) async fn bind(&self, key: &str, user: &str) {
        bind(&self.host, key, user).await;
    }

    /// Returns a line of a user, who may read and write.
    pub(super) async fn user(&self, user: &str) -> Line {
        self.host.user(user, &["read", "write"]).await
    }

    /// Returns the connector as the operator sees it.
    pub(super) async fn state(&self) -> Value {
        let listed = self.host.get("/api/connectors").gives(200).await;
        listed.body["connectors"][0].clone()
    }

    /// Waits until everything that the service has was polled, and the host is done with it.
    pub(super) async fn all_polled(&self) {
        found(async || {
            let next = self.telegram.next_offset();
            let polls = self.telegram.calls("getUpdates");
            let asked = polls.iter().filter_map(|it| it.body["offset"].as_i64());
            let is_polled = asked.max() == Some(next);
            (is_polled && self.state().await["inbound_messages_waiting"] == 0).then_some(())
        })
        .await;
    }

    /// Returns whether words are in any file of the host's data.
    pub(super) fn keeps(&self, words: &str) -> bool {
        let has = |file: &Path| {
            let content = std::fs::read(file).unwrap_or_default();
            content
                .windows(words.len())
                .any(|it| it == words.as_bytes())
        };
        let files = std::fs::read_dir(self.folder.data()).unwrap();
        files
            .map(|file| file.unwrap().path())
            .any(|file| file.is_file() && has(&file))
    }

    /// Waits until the connector is in a state, and returns it.
    pub(super) async fn until_state(&self, state: &str) -> Value {
        found(async || {
            let seen = self.state().await;
            (seen["state"] == state).then_some(seen)
        })
        .await
    }

    /// Returns the outbound messages, the newest first.
    pub(super) async fn outbound_messages(&self) -> Vec<Value> {
        let path = "/api/connectors/telegram/outbound-messages";
        let listed = self.host.get(path).gives(200).await;
        listed.body["outbound_messages"].as_array().unwrap().clone()
    }

    /// Waits until the latest outbound message is in a state, and returns it.
    pub(super) async fn until_outbound_message(&self, state: &str) -> Value {
        found(async || {
            let latest = self.outbound_messages().await.into_iter().next()?;
            (latest["state"] == state).then_some(latest)
        })
        .await
    }

    /// Has an outbound message sent again.
    pub(super) fn requeue(&self, outbound_message: &Value) -> Reply {
        let id = outbound_message["outbound_message_id"].as_str().unwrap();
        let path = format!("/api/connectors/telegram/outbound-messages/{id}/requeue");
        self.host.post(&path, &json!({}))
    }

    /// Returns the one session of an agent, as its user sees it.
    pub(super) async fn session(&self, user: &str, agent: &str) -> Value {
        let line = self.user(user).await;
        found(async || {
            let listed = get(&line, &format!("{}/sessions", at(agent))).await;
            let sessions = listed["sessions"].as_array()?;
            assert!(sessions.len() <= 1, "{listed}");
            let id = sessions.first()?["session_id"].as_str()?.to_owned();
            Some(get(&line, &format!("/api/sessions/{id}?from=1&to=100")).await)
        })
        .await
    }
}

fn config(telegram: &Telegram, wanted: &Wanted) -> Value {
    let mut config = puppets(&json!([
        puppet(),
        { "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [] },
    ]));
    let server = &telegram.server;
    config["components"]["telegram"] = granted(server.port, &["/bot", "/file/bot"]);
    config["secrets"]["telegram"] = json!({ "command": ["echo", TOKEN] });
    let mut connector = json!({
        "component": "telegram", "agent": wanted.agent,
        "configuration": { "server": server.url(""), "longPollS": 1 },
    });
    let more = wanted.connector.as_object().unwrap().clone();
    connector.as_object_mut().unwrap().extend(more);
    config["connectors"]["telegram"] = connector;
    if !wanted.queue.is_null() {
        config["queue"] = wanted.queue.clone();
    }
    config["triggers"] = wanted.triggers.clone();
    if !wanted.confirm.is_empty() {
        config["agents"][0]["confirm"] = json!(wanted.confirm);
        config["components"]["effects"] = effects();
    }
    config
}

/// Returns what a component is granted that talks with a server on loopback, with the secret
/// `telegram` behind these beginnings of paths.
pub(super) fn granted(port: u16, beginnings: &[&str]) -> Value {
    let secret = |beginning: &&str| {
        json!({
            "secret": "telegram", "host": "127.0.0.1", "port": port,
            "slot": { "path": beginning },
        })
    };
    let secrets: Vec<Value> = beginnings.iter().map(secret).collect();
    json!({ "network": [reaching(port)], "secrets": secrets })
}

/// Returns the grant of requests to a server on loopback.
pub(super) fn reaching(port: u16) -> Value {
    json!({
        "host": "127.0.0.1", "schemes": ["http"], "ports": [port], "methods": ["GET", "POST"],
        "privateAddresses": ["127.0.0.1"],
    })
}

/// Binds a connector key to a user.
pub(super) async fn bind(host: &Host, key: &str, user: &str) {
    let path = format!("/api/users/{user}/connectors/{key}");
    host.send(host.request(Method::PUT, &path)).gives(200).await;
}

/// An agent as an HTTP route names it by its path.
pub(super) fn at(agent: &str) -> String {
    format!("/api/agents/{}", agent.replace('/', "%2F"))
}

/// Reads something.
pub(super) async fn get(line: &Line, path: &str) -> Value {
    line.get(path).await.body
}

/// Words that have the puppet say something.
pub(super) fn reply(text: &str) -> String {
    script(&json!([{ "reply": text }]))
}

/// Words that have the puppet ask which of some options it is to be.
pub(super) fn choice(options: &[String]) -> String {
    let props = json!({ "prompt": "Tea or coffee?", "options": options });
    script(&json!([{ "start": [{ "key": "q", "client": "multiple_choice", "props": props }] }]))
}

/// Returns the texts of a session's messages that have a role.
pub(super) fn texts(session: &Value, role: &str) -> Vec<String> {
    let messages = session["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == role)
        .map(|message| message["text"].as_str().unwrap().to_owned())
        .collect()
}
