//! A host with triggers: what is configured, the calls of its webhooks, the time that passes on it,
//! and what came of its triggers.

use agent_host_tests::guests::test_program;
use agent_host_tests::patience::found;
use agent_host_tests::process::{Folder, Host, PATIENCE, Reply, Session, acting, puppets};
use domain::time::Timestamp;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The secret `hook`.
pub(super) const SECRET: &str = "a-secret-of-the-test";
/// The components of all these hosts.
const COMPONENTS: [&str; 6] = [
    "puppet",
    "schedule",
    "heartbeat",
    "webhook",
    "files-watch",
    "rogue-trigger",
];

/// A running host with triggers.
pub(super) struct Scene {
    pub(super) folder: Folder,
    pub(super) host: Host,
    /// Milliseconds by which the host's wall clock is ahead of the machine's.
    ahead_ms: i64,
}

/// Returns a trigger of the operator's that speaks to the puppet and has these keys besides.
pub(super) fn trigger(keys: &Value) -> Value {
    let speaks = json!({ "user": "local", "target": { "agent": "puppet" } });
    with(speaks, keys)
}

/// Returns a webhook whose callers know the token, with these keys besides.
pub(super) fn webhook(keys: &Value) -> Value {
    let hook = json!({ "webhook": { "auth": { "token": { "secret": "hook" } } } });
    with(trigger(&hook), keys)
}

/// Returns an object with further keys.
pub(super) fn with(mut object: Value, keys: &Value) -> Value {
    let fields = object.as_object_mut().unwrap();
    fields.extend(keys.as_object().unwrap().clone());
    object
}

/// Returns a configuration with these triggers, and two agents that note whatever they are told,
/// unless they are told steps.
pub(super) fn config(triggers: &Value) -> Value {
    let steps = json!([{ "reply": "noted" }]);
    let mut config = puppets(&json!([acting("puppet", &steps), acting("other", &steps)]));
    let folder = |path: &str| {
        let at = format!("/{path}");
        json!({ "directories": [{ "path": path, "at": at, "access": "read-only" }] })
    };
    config["components"]["files-watch"] = folder("inbox");
    config["components"]["heartbeat"] = folder("notes");
    // Those that the triggers over the API use are loaded as they are named here.
    config["components"]["schedule"] = json!({});
    config["components"]["webhook"] = json!({});
    config["components"]["rogue-trigger"] =
        json!({ "path": rogue(), "limits": { "cpuMsMax": 200 } });
    config["secrets"] = json!({ "hook": { "file": "hook.key" } });
    config["triggers"] = triggers.clone();
    config
}

fn rogue() -> PathBuf {
    test_program("rogue_trigger")
}

/// Makes the folder of a host, with what its configuration names.
pub(super) async fn folder(config: Value) -> Folder {
    let folder = Folder::with_clock(config);
    for name in ["inbox", "notes"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let key = folder.path().join("hook.key");
    std::fs::write(&key, SECRET).unwrap();
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    folder.warm(&COMPONENTS).await;
    folder
}

impl Scene {
    /// A host with these triggers in its configuration.
    pub(super) async fn new(triggers: &Value) -> Self {
        Self::of(config(triggers)).await
    }

    /// A host with this configuration.
    pub(super) async fn of(config: Value) -> Self {
        let folder = folder(config).await;
        let host = folder.serve().await;
        Self::around(folder, host)
    }

    /// A host that runs in its folder.
    pub(super) fn around(folder: Folder, host: Host) -> Self {
        Self {
            folder,
            host,
            ahead_ms: 0,
        }
    }

    /// Kills the host, and starts another one after so many milliseconds.
    pub(super) async fn restarted_after(self, ms: i64) -> Self {
        let Self { folder, host, .. } = self;
        host.kill().await;
        let ahead_ms = self.ahead_ms + ms;
        if ms > 0 {
            folder.clock().shift(ahead_ms);
            // As if the machine had been booted: the time counts as downtime, and not as a jump.
            let _ = std::fs::remove_file(folder.data().join("clock"));
        }
        let host = folder.serve().await;
        Self {
            folder,
            host,
            ahead_ms,
        }
    }

    /// The present time of the host.
    pub(super) async fn now(&self) -> Timestamp {
        let clock = self.host.get("/api/clock").await;
        clock.text("now").parse().unwrap()
    }

    /// Has so many milliseconds pass on the host.
    pub(super) async fn pass(&mut self, ms: u64) {
        self.ahead_ms += i64::try_from(ms).unwrap();
        self.folder.clock().shift(self.ahead_ms);
        self.host
            .post("/api/clock/confirm", &json!({}))
            .gives(200)
            .await;
    }

    /// Has the time pass until a trigger is due.
    pub(super) async fn pass_until_due(&mut self, name: &str) {
        let due = self.shown(name).await["next_due_at"].clone();
        let due: Timestamp = due.as_str().unwrap().parse().unwrap();
        let now = self.now().await;
        if due > now {
            self.pass(due.since_ms(now)).await;
        }
    }

    /// Makes a trigger over the API.
    pub(super) async fn make(&self, name: &str, spec: &Value) {
        self.asked_to_make(name, spec).gives(201).await;
    }

    /// Asks for a trigger, and returns the answer.
    #[track_caller]
    pub(super) fn asked_to_make(&self, name: &str, spec: &Value) -> Reply {
        let new = json!({ "name": name, "spec": spec });
        self.host.post("/api/triggers", &new)
    }

    /// Does something with a trigger that needs no words: `run`, `pause` or `resume`.
    #[track_caller]
    pub(super) fn command(&self, name: &str, verb: &str) -> Reply {
        let path = format!("/api/triggers/{name}/{verb}");
        self.host.post(&path, &json!({}))
    }

    /// Runs a trigger by hand.
    pub(super) async fn run(&self, name: &str) {
        self.command(name, "run").gives(202).await;
    }

    /// A trigger as the API shows it.
    pub(super) async fn shown(&self, name: &str) -> Value {
        let path = format!("/api/triggers/{name}");
        let answer = self.host.get(&path).gives(200).await;
        answer.body
    }

    /// The history of a trigger, the newest first.
    pub(super) async fn runs(&self, name: &str) -> Vec<Value> {
        let path = format!("/api/triggers/{name}/history?limit=100");
        let answer = self.host.get(&path).gives(200).await;
        answer.body["runs"].as_array().unwrap().clone()
    }

    /// Waits until something is there.
    pub(super) async fn until<T>(&self, what: &str, inspect: impl AsyncFn() -> Option<T>) -> T {
        let inspected = tokio::time::timeout(PATIENCE, found(inspect)).await;
        inspected.unwrap_or_else(|_| panic!("not in time: {what}\n{}", self.folder.log()))
    }

    /// Waits until so many events of a trigger came to an end and none waits, and returns its
    /// history, the newest first.
    pub(super) async fn done(&self, name: &str, count: usize) -> Vec<Value> {
        let is_open = |run: &Value| run["state"] == "waiting" || run["state"] == "fired";
        self.until(&format!("{count} runs of {name}"), async || {
            let runs = self.runs(name).await;
            let is_over = runs.len() >= count && !runs.iter().any(is_open);
            is_over.then_some(runs)
        })
        .await
    }

    /// The sessions that took messages of a trigger, in that order.
    pub(super) async fn sessions(&self, name: &str) -> Vec<Session> {
        let mut known = BTreeSet::new();
        let runs = self.runs(name).await;
        let messages = runs
            .iter()
            .rev()
            .filter_map(|run| run["messages"].as_array())
            .flatten();
        let paths = messages.filter_map(|message| {
            let agent = message["agent_id"].as_str()?;
            let session = message["session_id"].as_str()?;
            Some(Session::at(agent, session))
        });
        paths.filter(|path| known.insert(path.clone())).collect()
    }

    /// Waits until a session has nothing to do, and returns it.
    pub(super) async fn idle(&self, session: &str) -> Value {
        self.host.rest(session).await
    }

    /// The messages that a trigger brought into the threads of its sessions, in their order.
    pub(super) async fn reported(&self, name: &str) -> Vec<Value> {
        let origin = format!("trigger:{name}");
        let mut reported = Vec::new();
        for session in self.sessions(name).await {
            let seen = self.idle(&session).await;
            let messages = seen["messages"].as_array().unwrap().iter();
            reported.extend(
                messages
                    .filter(|message| message["origin"] == origin)
                    .cloned(),
            );
        }
        reported
    }

    /// Waits until a trigger has brought one message into a thread, and returns its text.
    pub(super) async fn reported_once(&self, name: &str) -> String {
        self.done(name, 1).await;
        let reported = self.reported(name).await;
        assert_eq!(reported.len(), 1, "{reported:?}");
        reported[0]["text"].as_str().unwrap().to_owned()
    }

    /// Says something to a session, or to an agent, and returns the session.
    pub(super) async fn say(&self, to: &Value, text: &str) -> Session {
        let words = json!({ "to": to, "content": text });
        Session::of(&self.host.post("/api/messages", &words).gives(202).await)
    }

    /// The events of a kind, the oldest first.
    pub(super) async fn events(&self, kind: &str) -> Vec<Value> {
        self.host.events_of(kind).await
    }

    /// A call of a webhook with a body of JSON and without a proof.
    pub(super) fn bare(&self, path: &str, body: impl Into<String>) -> RequestBuilder {
        let path = format!("/hooks/{path}");
        let request = self.host.bare(Method::POST, &path);
        request
            .header("content-type", "application/json")
            .body(body.into())
    }

    /// Calls a webhook with its token, under the sender's own id of the call.
    #[track_caller]
    pub(super) fn call(&self, path: &str, id: &str, payload: &Value) -> Reply {
        let request = self.bare(path, payload.to_string());
        let request = request.bearer_auth(SECRET).header("webhook-id", id);
        self.host.send(request)
    }
}
