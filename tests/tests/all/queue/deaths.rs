//! Messages in any mode to a process that is killed again and again.

use super::super::crash::{open, rest};
use super::chance::{Chance, DEAF_MS, busy, grouping};
use super::refinement::check;
use super::refinement::{Sent, refine};
use super::said;
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, PATIENCE, Session, puppets, shows};
use domain::delegate::Priority;
use domain::digest::Salt;
use domain::event::{Event, InputCancelled, NewEvent, Subject};
use domain::id::{EventId, SessionId, Stream};
use domain::queue::{QueueOverride, QueueSettings};
use domain::time::Timestamp;
use domain::user::UserId;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use store::{Commit, EventFilter, Expected, QueueGuard};
use tokio::task::JoinSet;

/// Deaths of the process.
const KILLS: u64 = 8;
/// Messages that are sent before each of them, some of which it may interrupt.
const SENT_PER_LIFE: u64 = 12;

/// Sends a message until it is answered, under one key: the process may die while it is on its way.
/// None when it was refused.
async fn deliver(
    folder: &Folder,
    host: &mut Option<Host>,
    path: &str,
    body: &Value,
    key: &str,
) -> Option<String> {
    loop {
        if host.is_none() {
            *host = Some(folder.serve().await);
        }
        let living = host.as_ref().unwrap();
        let request = living
            .request(Method::POST, path)
            .header("idempotency-key", key)
            .json(body);
        match living.send(request).attempt().await {
            Ok(answer) if answer.status == 202 => return Some(answer.text("input_id")),
            Ok(answer) if answer.text("code") == "QUEUE_FULL" => return None,
            Ok(answer) => assert!([429, 503].contains(&answer.status), "{answer:?}"),
            Err(_) => *host = None,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Messages that were acknowledged in any mode survive kill -9 and are dealt with once, in their
/// order.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_messages_of_any_mode_survive_kill_nine_and_are_dealt_with_once() {
    let folder = Folder::new(puppets(&json!([busy(DEAF_MS)])));
    folder.warm(&["puppet"]).await;
    let mut host = Some(folder.serve().await);
    let opened = host
        .as_ref()
        .unwrap()
        .post("/api/agents/busy/sessions", &json!({}))
        .await;
    let session = opened.text("session_id");
    let path = format!("{}/messages", Session::of(&opened));
    let mut chance = Chance::new(0x2545_F491);
    let mut acknowledged = Vec::new();
    let mut sent: Sent = ["the end", "really"]
        .map(|words| {
            (
                words.to_owned(),
                (QueueSettings::default(), Priority::Normal),
            )
        })
        .into();
    for life in 0..KILLS {
        for number in 0..SENT_PER_LIFE {
            let [mode, debounce, cap, drop] = grouping(&mut chance);
            let words = format!("<{life}.{number}>");
            let grouping = said(&format!("{mode} debounce:{debounce} cap:{cap} drop:{drop}"));
            sent.insert(
                words.clone(),
                (
                    QueueSettings::resolve([
                        grouping,
                        QueueOverride::default(),
                        QueueOverride::default(),
                    ]),
                    Priority::Normal,
                ),
            );
            let queue = json!({ "mode": mode, "debounce_ms": debounce, "cap": cap, "drop": drop });
            let body = json!({ "content": words, "queue": queue });
            acknowledged.extend(deliver(&folder, &mut host, &path, &body, &words).await);
            tokio::time::sleep(Duration::from_millis(chance.below(20))).await;
        }
        // In the middle of a message, which is delivered again to the next process.
        let words = format!("<{life}.last>");
        sent.insert(words.clone(), (QueueSettings::default(), Priority::Normal));
        let body = json!({ "content": words });
        let dying = host.take().unwrap();
        let request = dying
            .request(Method::POST, &path)
            .header("idempotency-key", words.as_str())
            .json(&body);
        let mut on_its_way = JoinSet::new();
        on_its_way.spawn(request.send());
        tokio::time::sleep(Duration::from_micros(chance.below(3_000))).await;
        dying.kill().await;
        drop(on_its_way.join_all().await);
        acknowledged.extend(deliver(&folder, &mut host, &path, &body, &words).await);
    }
    acknowledged.extend(
        deliver(
            &folder,
            &mut host,
            &path,
            &json!({ "content": "the end" }),
            "the end",
        )
        .await,
    );
    let host = host.unwrap();
    rest(&host, &session).await.unwrap();
    // The next turn reports what was dropped last.
    let last = host.post(&path, &json!({ "content": "really" })).await;
    acknowledged.push(last.text("input_id"));
    rest(&host, &session).await.unwrap();
    assert!(host.stop().await.success());
    let store = open(&folder).await;
    let session: SessionId = session.parse().unwrap();
    let events = store
        .events(
            0,
            EventFilter {
                session: Some(session),
                ..EventFilter::default()
            },
            1_000_000,
        )
        .await
        .unwrap();
    refine(&events, &sent).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let accepted: Vec<String> = check(&store, session)
        .await
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        accepted, acknowledged,
        "each that was acknowledged, once, in the order in which they were sent"
    );
    assert_eq!(store.verify().await.unwrap().fault, None);
    store.close().await;
}

/// A turn that went on for words which were then taken back ends with the reply that it had.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_went_on_for_words_taken_back_ends_with_the_reply_that_it_had() {
    let script =
        json!({ "steps": [{ "start": [{ "key": "t", "timer": 1_500 }] }, { "reply": "done" }] });
    let talker = json!({
        "agentId": "talker", "displayName": "Talker", "component": "puppet",
        "settings": { "script": script },
    });
    let folder = Folder::new(puppets(&json!([talker])));
    folder.warm(&["puppet"]).await;
    // It dies when the reply is stored and the words that had arrived are not taken up yet.
    let mut host = folder.start(Some("broker.commit.after:2")).await.unwrap();
    let opened = host.post("/api/agents/talker/sessions", &json!({})).await;
    let agent = opened.text("agent_id");
    let session = opened.text("session_id");
    let path = format!("/api/agents/{agent}/sessions/{session}");
    host.say(&path, "go").await;
    until(async || {
        !host.get(&path).await.body["operations"]
            .as_array()
            .is_none_or(Vec::is_empty)
    })
    .await;
    let words = host
        .post(
            &format!("{path}/messages"),
            &json!({ "content": "never mind" }),
        )
        .await
        .text("input_id");
    assert!(
        host.died(PATIENCE).await.is_some(),
        "the reply was never stored"
    );
    let store = open(&folder).await;
    let session = session.parse().unwrap();
    let input = words.parse().unwrap();
    let cancelled = InputCancelled {
        input,
        session,
        cancelled_by: UserId::local(),
        reason: None,
        time: Timestamp(1),
    };
    let taken_back = NewEvent {
        id: EventId(uuid::Uuid::now_v7()),
        event: Event::InputCancelled(cancelled),
        subject: Subject {
            session: Some(session),
            ..Subject::default()
        },
        actor: "user:local".into(),
        causation: None,
        correlation: Some(input),
        time: Timestamp(1),
        salt: Salt::default(),
    };
    let commit = Commit::new().guard(QueueGuard::InputWaiting(input)).append(
        Stream::Session(session),
        Expected::Any,
        vec![taken_back],
    );
    store.commit(commit).await.unwrap();
    store.close().await;
    let host = folder.serve().await;
    rest(&host, &session.to_string()).await.unwrap();
    let seen = host.get(&path).await.body;
    shows(&seen, &json!({ "revision": 1, "last_snippet": "done" }));
    assert!(host.stop().await.success());
}
