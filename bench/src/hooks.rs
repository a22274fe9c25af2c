//! Webhook calls that the real program accepts in a second over HTTP, beside messages
//! (`POST /api/messages`). Each call and each message has a key under which it is taken once.
//!
//! Nothing else is done meanwhile: the sessions wait for their clients, and the triggers rest after
//! failures.

use crate::answer;
use crate::ingress::WORDS;
use crate::measure::{Pair, in_turns};
use crate::trigger_events::{
    CALLERS, CALLS, PATIENCE, POLL, SECRET, all_done, per_second, triggers,
};
use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, Host, puppets};
use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Connections of one host. All of them come from one address here.
const CONNECTIONS_MAX: usize = 2 * CALLERS;
/// Messages that a session's queue holds: those of all measurements.
const CAP: usize = 1_000;

/// Measures both.
///
/// # Errors
/// The host's, and an answer that is none of those that are expected.
pub(crate) async fn accepted() -> anyhow::Result<Pair> {
    let folder = folder().await?;
    let host = folder
        .start(None)
        .await
        .map_err(|ended| anyhow!("the host did not start: {}", ended.said))?;
    let sessions = busy(&host).await?;
    send(&host, calls(0)).await?;
    rest(&host).await?;
    let mut called = 0;
    let mut said = 0;
    let pair = in_turns(
        async || {
            called += 1;
            send(&host, calls(called)).await
        },
        async || {
            said += 1;
            send(&host, messages(&host, &sessions, said)).await
        },
    )
    .await?;
    host.kill().await;
    Ok(pair)
}

/// A folder for a host with as many webhooks as there are callers.
async fn folder() -> anyhow::Result<Folder> {
    let rogue = root().join("tests/programs/target/wasm32-wasip2/release/rogue_trigger.wasm");
    let mut config = puppets(&json!([
        { "agentId": "puppet", "displayName": "Puppet", "component": "puppet" },
    ]));
    let hook = json!({
        "user": "local", "target": { "agent": "puppet" }, "component": "rogue-trigger",
        "message": "trap", "webhook": { "auth": { "token": { "secret": "hook" } } },
    });
    let limits = json!({
        "connectionsMax": CONNECTIONS_MAX, "connectionsPerAddressMax": CONNECTIONS_MAX,
    });
    add(
        &mut config,
        "/components",
        json!({ "rogue-trigger": { "path": rogue } }),
    );
    let rest = json!({
        "secrets": { "hook": { "file": "hook.key" } },
        "server": { "listen": "127.0.0.1:0", "dataDir": "data", "limits": limits },
        "triggers": triggers(CALLERS, |_| hook.clone()),
    });
    add(&mut config, "", rest);
    let folder = Folder::new(config);
    let key = folder.path().join("hook.key");
    std::fs::write(&key, SECRET)?;
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600))?;
    folder.warm(&["puppet", "rogue-trigger"]).await;
    Ok(folder)
}

/// Adds fields to the object at a place of a value.
fn add(value: &mut Value, at: &str, fields: Value) {
    let object = value.pointer_mut(at).and_then(Value::as_object_mut);
    if let (Some(object), Value::Object(fields)) = (object, fields) {
        object.extend(fields);
    }
}

/// Begins sessions that each have a turn waiting for its client; their ids.
async fn busy(host: &Host) -> anyhow::Result<Vec<String>> {
    let asks = json!({ "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }] });
    let asks = json!({ "content": asks.to_string() });
    let mut sessions = Vec::with_capacity(CALLERS);
    for _ in 0..CALLERS {
        let opened = host.post("/api/agents/puppet/sessions", &json!({})).await;
        let id = opened.text("session_id");
        let agent = opened.text("agent_id");
        let said = format!("/api/agents/{agent}/sessions/{id}/messages");
        let said = host.post(&said, &asks).await;
        ensure!(said.status < 300, "what is said is answered by {said:?}");
        sessions.push(id);
    }
    Ok(sessions)
}

/// Waits until every trigger rests after its failures.
async fn rest(host: &Host) -> anyhow::Result<()> {
    let resting = async {
        for caller in 0..CALLERS {
            let path = format!("/api/triggers/t-{caller}");
            while host.get(&path).await.text("state") != "resting" {
                tokio::time::sleep(POLL).await;
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, resting)
        .await
        .context("the triggers do not rest in time")?
}

/// The calls of one round: those of each caller, one after the other.
fn calls(round: usize) -> Vec<Vec<String>> {
    of_callers(|caller, number| {
        request(&[
            format!("POST /hooks/t-{caller} HTTP/1.1"),
            format!("authorization: Bearer {SECRET}"),
            "content-type: text/plain".to_owned(),
            format!("webhook-id: {round}-{number}"),
        ])(WORDS)
    })
}

/// The messages of one round: those to each session, one after the other.
fn messages(host: &Host, sessions: &[String], round: usize) -> Vec<Vec<String>> {
    of_callers(|caller, number| {
        let session = sessions.get(caller);
        let body = json!({
            "to": { "session": session }, "content": WORDS, "queue": { "cap": CAP },
        });
        request(&[
            "POST /api/messages HTTP/1.1".to_owned(),
            format!("authorization: Bearer {}", host.token),
            "content-type: application/json".to_owned(),
            format!("idempotency-key: {round}-{caller}-{number}"),
        ])(&body.to_string())
    })
}

fn of_callers(one: impl Fn(usize, usize) -> String) -> Vec<Vec<String>> {
    let of = |caller| (0..CALLS).map(|number| one(caller, number)).collect();
    (0..CALLERS).map(of).collect()
}

/// Returns the text of a request with this head, for a body.
fn request(head: &[String]) -> impl Fn(&str) -> String {
    let head = head.join("\r\n");
    move |body| {
        let length = body.len();
        format!("{head}\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}")
    }
}

/// Sends the requests of each caller, each after the answer to the one before: requests in a
/// second.
async fn send(host: &Host, requests: Vec<Vec<String>>) -> anyhow::Result<f64> {
    let address = host.base.trim_start_matches("http://");
    let mut streams = Vec::with_capacity(requests.len());
    for _ in &requests {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for (requests, mut stream) in requests.into_iter().zip(streams) {
        callers.spawn(async move {
            for request in requests {
                stream.write_all(request.as_bytes()).await?;
                answer::read(&mut stream, "202").await?;
            }
            anyhow::Ok(())
        });
    }
    all_done(callers).await?;
    Ok(per_second(CALLERS * CALLS, began.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_body_of_the_length_that_it_says() {
        let text = request(&["POST /x HTTP/1.1".to_owned()])("hello");
        assert!(text.starts_with("POST /x HTTP/1.1\r\n"), "{text}");
        assert!(text.ends_with("content-length: 5\r\n\r\nhello"), "{text}");
    }
}
