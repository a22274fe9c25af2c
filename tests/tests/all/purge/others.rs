//! Purging where others took part: workers, agents that were written to, messages that were
//! dropped, a summary; and runs that are open elsewhere.

use super::{ask, delete, holders_of, intact, open, path, play, purge, rebuilt, shelved};
use agent_host_tests::process::{Folder, Host};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Said to a worker, and by it.
const WORKER: &str = "workmanlike";
/// Said to another agent in a session of its own, and by it.
const OTHER: &str = "messengerly";
/// Words that were dropped, of which a line stayed.
const DROPPED: &str = "droppable";
/// Said only by the model that summarises.
const SUMMARY: &str = "epitomist";
const MARKS: [&str; 4] = [WORKER, OTHER, DROPPED, SUMMARY];

/// The model summarises in a word of its own.
const SCRIPT: &str = r#"
[[rule]]
when = { agent = "You summarise conversations" }
reply = { text = "an epitomist was here" }
"#;

async fn started() -> (Folder, Host) {
    let mut config = shelved("session");
    config["agents"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "agentId": "other", "displayName": "Other", "component": "puppet" }));
    config["components"]["puppet"]["agents"] = json!(["*"]);
    let folder = Folder::new(config);
    std::fs::write(
        folder.path().join("script.toml"),
        format!("{SCRIPT}{}", agent_host_tests::world::SCRIPT),
    )
    .unwrap();
    folder.warm(&["puppet", "shelf"]).await;
    let host = folder.serve().await;
    (folder, host)
}

fn rests(seen: &Value) -> bool {
    seen["run_id"].is_null() && seen["waiting"] == 0
}

fn says(reply: &str) -> String {
    json!({ "steps": [{ "reply": reply }] }).to_string()
}

/// Returns the marks that are left in the files.
fn left(data: &Path) -> BTreeSet<&'static str> {
    holders_of(&MARKS, data)
        .into_iter()
        .map(|(_, mark)| mark)
        .collect()
}

/// A session in which a worker, another agent, a full queue and a summary took part: its agent, and
/// itself.
async fn eventful(host: &Host) -> (String, String) {
    let (agent, session) = open(host, "puppet").await;
    let at = path(&agent, &session);
    let to_worker = says(&format!("a {WORKER} reply"));
    let to_other = says(&format!("a {OTHER} reply"));
    let seen = play(
        host,
        &at,
        json!([{
            "until": "all",
            "start": [
                {
                    "key": "w", "tool": "dispatch_to_agent",
                    "args": { "target": "other", "content": to_worker, "wait": true },
                },
                {
                    "key": "m", "tool": "agents_message",
                    "args": { "agentId": "other", "content": to_other },
                },
            ],
        }]),
    )
    .await;
    assert!(
        seen["messages"]
            .to_string()
            .contains("w parts a workmanlike reply"),
        "{seen}"
    );
    let say = async |content: &str, queue: Value| {
        let said = ask(
            host,
            Method::POST,
            &format!("{at}/messages"),
            json!({ "content": content, "queue": queue }),
        )
        .await;
        assert_eq!(said.status, 202, "{said:?}");
    };
    say(
        &json!({ "steps": [{ "start": [{ "key": "t", "timer": 600 }] }] }).to_string(),
        json!({}),
    )
    .await;
    host.until(&at, |seen| !seen["run_id"].is_null()).await;
    let small = json!({ "mode": "followup", "debounce_ms": 0, "cap": 1, "drop": "summarize" });
    say(&format!("a {DROPPED} one"), small.clone()).await;
    say("what took its place", small).await;
    let seen = host
        .until(&at, |seen| {
            rests(seen) && seen["revision"].as_u64() >= Some(3)
        })
        .await;
    assert!(
        seen["messages"].to_string().contains("- a droppable one"),
        "its line is told: {seen}"
    );
    for reply in ["one more", "and another"] {
        play(host, &at, json!([{ "reply": reply }])).await;
    }
    let compacts = ask(host, Method::POST, &format!("{at}/compact"), json!({})).await;
    assert_eq!(compacts.status, 202, "{compacts:?}");
    host.until(&at, |seen| {
        rests(seen) && seen["messages"].to_string().contains(SUMMARY)
    })
    .await;
    (agent, session)
}

/// The session of another agent that was written to: its agent, and itself.
async fn written_to(host: &Host) -> (String, String) {
    let agents = host.get("/api/agents").await.body;
    let is_it = |agent: &&Value| agent["path"] == "/local/agent/other";
    let other = agents["agents"]
        .as_array()
        .unwrap()
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{agents}"));
    let agent = other["id"].as_str().unwrap().to_owned();
    let sessions = host
        .get(&format!("/api/agents/{agent}/sessions"))
        .await
        .body;
    (
        agent,
        sessions["sessions"][0]["session_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{sessions}"))
            .to_owned(),
    )
}

async fn archive(host: &Host, agent: &str) {
    let archived = ask(
        host,
        Method::POST,
        &format!("/api/agents/{agent}/archive"),
        json!({ "reason": "over" }),
    )
    .await;
    assert_eq!(archived.status, 200, "{archived:?}");
}

/// Words that were dropped or summarised go with their session, a worker's with its agent, and
/// others' with theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_purge_erases_dropped_and_summarised_words_and_those_of_workers_with_theirs() {
    let (folder, host) = started().await;
    let data = folder.data();
    let (agent, session) = eventful(&host).await;
    assert_eq!(left(&data), MARKS.into());
    delete(&host, &agent, &session).await;
    let purged = purge(&host, &agent, Some(&session)).await;
    purged.has(200, &json!({ "files_rewritten": true }));
    assert_eq!(
        left(&data),
        [WORKER, OTHER].into(),
        "words that went to others are theirs"
    );
    intact(&host).await;
    archive(&host, &agent).await;
    assert_eq!(purge(&host, &agent, None).await.status, 200);
    assert_eq!(
        left(&data),
        [OTHER].into(),
        "the worker went with the agent above it"
    );
    let (other, theirs) = written_to(&host).await;
    purge(&host, &other, Some(&theirs))
        .await
        .is_refusal(409, "SESSION_NOT_DELETED");
    delete(&host, &other, &theirs).await;
    assert_eq!(purge(&host, &other, Some(&theirs)).await.status, 200);
    assert_eq!(holders_of(&MARKS, &data), []);
    intact(&host).await;
    assert_eq!(rebuilt(&host).await["replaced"], json!([]));
    assert!(host.stop().await.success());
    assert_eq!(holders_of(&MARKS, &data), []);
    let host = folder.serve().await;
    intact(&host).await;
    assert_eq!(
        host.get("/api/dead-letters").await.body["dead_letters"],
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_purged_while_others_are_at_work_who_go_on_after_a_kill_and_a_restart() {
    let (folder, host) = started().await;
    let (agent, session) = eventful(&host).await;
    let (theirs, one) = open(&host, "other").await;
    let slow = |reply: &str| {
        json!({ "steps": [{ "start": [{ "key": "t", "timer": 4_000 }] }, { "reply": reply }] })
            .to_string()
    };
    // One is at work for its own user, and one for the agent that is purged, which waits for it no
    // more.
    let at = path(&theirs, &one);
    assert_eq!(
        ask(
            &host,
            Method::POST,
            &format!("{at}/messages"),
            json!({ "content": slow("for its user") })
        )
        .await
        .status,
        202
    );
    let message = json!({
        "agentId": "other", "content": slow("for nobody"), "session": "create", "mode": "async",
    });
    play(
        &host,
        &path(&agent, &session),
        json!([{ "start": [{ "key": "m", "tool": "agents_message", "args": message }] }]),
    )
    .await;
    archive(&host, &agent).await;
    let purged = purge(&host, &agent, None).await;
    assert_eq!(purged.status, 200, "{purged:?}");
    host.until(&at, |seen| !seen["run_id"].is_null()).await;
    host.kill().await;
    let host = folder.serve().await;
    assert_eq!(left(&folder.data()), [OTHER].into());
    host.get(&format!("/api/agents/{agent}"))
        .refused(410, "AGENT_PURGED")
        .await;
    let seen = host
        .until(&at, |seen| rests(seen) && seen["revision"] == 1)
        .await;
    assert_eq!(seen["last_snippet"], "for its user", "{seen}");
    let sessions = format!("/api/agents/{theirs}/sessions");
    let is_done = |seen: &Value| {
        seen["sessions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|it| it["last_snippet"] == "for nobody"))
    };
    host.until(&sessions, is_done).await;
    let events = host.events("").await;
    let places = |kind: &str| -> Vec<usize> {
        (0..events.len())
            .filter(|place| events[*place]["type"] == kind)
            .collect()
    };
    let purged = places("purge.done.v1")[0];
    assert!(
        places("input.accepted.v1")
            .iter()
            .all(|place| *place < purged),
        "nobody is told of what came of it"
    );
    assert_eq!(
        places("run.ended.v1")
            .iter()
            .filter(|place| **place > purged)
            .count(),
        2
    );
    intact(&host).await;
    assert_eq!(rebuilt(&host).await["replaced"], json!([]));
}
