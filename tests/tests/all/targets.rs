//! The targets of the design that any machine meets: memory of sessions, messages and delegations
//! in progress, and what lies between a delegation and its beginning. `bench` has the figures, and
//! the times.

use agent_host_tests::process::{Folder, Host};
use agent_host_tests::{Setup, World};
use domain::event::Recorded;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Sessions, messages in progress and open delegations.
const OPEN: usize = 8;
/// Bytes that each of these may take.
const SESSION_BYTES_MAX: u64 = 5 << 20;
const MESSAGE_BYTES_MAX: u64 = 10 << 20;
/// Delegations whose beginning is looked at.
const DELEGATIONS: usize = 5;
/// Time for which a host is left alone before its memory is read.
const REST: Duration = Duration::from_secs(1);

/// A model that delegates, and is slow for whoever is to wait.
const SCRIPT: &str = r#"
[[rule]]
when = { last = "tool" }
reply.text = "It is done."

[[rule]]
when = { user = "^delegate$", tools = ["delegate"] }
[[rule.reply.calls]]
tool = "delegate"
arguments = { target = "worker", operation = "read_file", parameters = { path = "a" } }

[[rule]]
when.userContains = "hello"
reply.text = "Hello."

[[rule]]
reply = { text = "At last.", firstDelayMs = 25000 }
"#;

async fn host() -> (Folder, Host) {
    let folder = Folder::new(json!({
        "agents": [
            { "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": ["delegate"] },
            {
                "agentId": "worker", "displayName": "Worker", "toolAllowlist": [],
                "agentAllowlist": [],
            },
        ],
        "providers": { "scripted": {
            "kind": "scripted", "script": "script.toml", "concurrentMax": 100,
        } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    }));
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    folder.warm(&["assistant"]).await;
    let host = folder.serve().await;
    (folder, host)
}

/// Bytes of anonymous memory of a host that gets no requests; none where the system does not tell.
async fn resident(host: &Host) -> Option<u64> {
    sleep(REST).await;
    let process = host.process().as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().ok()?;
    Some(kib << 10)
}

/// Makes an agent of its own and opens a chat with it; the chat's path. So no limit of one agent
/// keeps the chats from being busy together.
async fn open(host: &Host, number: usize) -> String {
    let path = format!("/local/agent/assistant-{number}");
    let made = json!({ "definition": "assistant", "path": path });
    let made = host.post("/api/agents", &made).gives(201).await;
    let sessions = format!("/api/agents/{}/sessions", made.text("id"));
    let opened = host.post(&sessions, &json!({})).gives(201).await;
    format!("{sessions}/{}", opened.text("session_id"))
}

/// Checks what each of those takes that were opened between two polls at the memory.
fn check_each(inspections: [Option<u64>; 2], bytes_max: u64, what: &str) {
    // Only Linux tells it.
    let [Some(before), Some(after)] = inspections else {
        assert_ne!(std::env::consts::OS, "linux", "{inspections:?}");
        return;
    };
    let each = after.saturating_sub(before) / OPEN as u64;
    assert!(each <= bytes_max, "{each} bytes for each {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_messages_and_delegations_in_progress_take_megabytes_at_most() {
    let (folder, host) = host().await;
    let before = resident(&host).await;
    let mut chats = Vec::new();
    for number in 0..2 * OPEN {
        let chat = open(&host, number).await;
        host.say(&chat, "hello").await;
        host.until(&chat, |seen| seen["revision"].as_u64() == Some(1))
            .await;
        chats.push(chat);
    }
    let idle = resident(&host).await;
    // There are twice as many.
    check_each([before, idle], 2 * SESSION_BYTES_MAX, "two sessions");

    let (waiting, delegating) = chats.split_at(OPEN);
    for chat in waiting {
        host.say(chat, "wait").await;
        host.until(chat, |seen| seen["run_id"].is_string()).await;
    }
    let busy = resident(&host).await;
    check_each([idle, busy], MESSAGE_BYTES_MAX, "message in progress");

    for chat in delegating {
        host.say(chat, "delegate").await;
    }
    host.until("/api/tasks?state=RUNNING", |seen| {
        seen["tasks"].as_array().map(Vec::len) == Some(OPEN)
    })
    .await;
    let delegated = resident(&host).await;
    check_each([busy, delegated], MESSAGE_BYTES_MAX, "open delegation");
    host.kill().await;
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_begins_with_its_first_step_and_waits_for_no_other() {
    let world = World::new(Setup::default()).await;
    let session = world.open("assistant").await;
    let mut workers = BTreeSet::new();
    for number in 0..DELEGATIONS {
        let before = *world.store().durable().borrow();
        world.turn("assistant", session, "read /data/a").await;
        let filter = store::EventFilter::default();
        let events = world.store().events(before, filter, 1_000).await.unwrap();
        let of_worker: Vec<_> = events
            .iter()
            .filter(|event| event.subject.session.is_some_and(|of| of != session))
            .filter(|event| event.kind.starts_with("session.") || event.kind.starts_with("run."))
            .take(3)
            .collect();
        let kinds: Vec<&str> = of_worker.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "session.opened.v1",
                "session.input.accepted.v1",
                "run.started.v1"
            ],
            "delegation {number}"
        );
        // Start and step are one event, and its caller takes no step in between.
        let [handed_over, _, stepped] = of_worker[..] else {
            panic!("{kinds:?}");
        };
        let has_step =
            |event: &Recorded| event.event.as_ref().is_some_and(|it| it.step().is_some());
        assert!(has_step(stepped), "{stepped:?}");
        let between = events.iter().filter(|event| {
            has_step(event)
                && event.position > handed_over.position
                && event.position < stepped.position
        });
        assert_eq!(between.count(), 0, "delegation {number}");
        workers.insert(stepped.subject.session.map(|it| it.to_string()));
    }
    assert_eq!(workers.len(), DELEGATIONS, "each has a session of its own");
}
