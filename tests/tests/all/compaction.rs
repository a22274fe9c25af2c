//! Compaction: a thread that has grown to its model's window is summarised by a turn of its own,
//! and nothing of it is lost.

mod during;
mod peer;

use super::crash;
use agent_host_tests::process::{Folder, Host, Session, shows};
use domain::compaction::PREFACE;
use domain::operation::Performer;
use peer::Peer;
use reqwest::Method;
use serde_json::{Value, json};

/// Tokens that the model of the conversation holds.
const WINDOW: u64 = 4_000;
/// The script of a turn at whose end the thread is compacted: so many tokens were used.
const FULL: &str = "fill:3600";

/// A host whose models are played by a peer: `chat` leads the conversation, `memory` summarises.
struct Stage {
    folder: Folder,
    host: Host,
    peer: Peer,
}

fn config(peer: &Peer) -> Value {
    json!({
        "agents": [{ "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [] }],
        "providers": { "peer": { "kind": "openai-compatible", "baseUrl": peer.base() } },
        "models": {
            "chat": { "provider": "peer", "model": "chat", "contextWindow": WINDOW },
            "memory": { "provider": "peer", "model": "memory", "contextWindow": 16_000 },
        },
        "defaultModel": "chat",
        "roles": { "memory": "memory" },
        "retry": { "attemptsMax": 1 },
        "breaker": { "failuresMax": 1_000 },
    })
}

async fn stage() -> Stage {
    stage_that_dies(None).await
}

async fn stage_that_dies(at: Option<&str>) -> Stage {
    let peer = Peer::start();
    let folder = Folder::new(config(&peer));
    folder.warm(&["assistant"]).await;
    started(folder, peer, at).await
}

async fn started(folder: Folder, peer: Peer, at: Option<&str>) -> Stage {
    let host = folder
        .start(at)
        .await
        .unwrap_or_else(|ended| panic!("{}", ended.said));
    Stage { folder, host, peer }
}

/// Words that are worth so many bytes, and easy to find.
fn long(name: &str, bytes: usize) -> String {
    format!("{name} {}", "x".repeat(bytes))
}

impl Stage {
    /// Waits until a session has so many turns and nothing to do.
    async fn turns(&self, session: &str, turns: u64) -> Value {
        self.host
            .until(session, |seen| {
                seen["revision"].as_u64() == Some(turns)
                    && seen["run_id"].is_null()
                    && seen["waiting"] == 0
            })
            .await
    }

    /// Three turns, at whose end the thread is full; then it is compacted.
    async fn compacted(&self) -> Session {
        let session = self.host.open("assistant").await;
        for (turn, words) in [
            long("one", 4_000),
            long("two", 4_000),
            long(&format!("three {FULL}"), 200),
        ]
        .iter()
        .enumerate()
        {
            self.host.say(&session, words).await;
            self.host
                .until(&session, |seen| {
                    seen["revision"].as_u64() > Some(turn as u64)
                })
                .await;
        }
        self.turns(&session, 4).await;
        session
    }

    async fn over(self) {
        self.folder.over(self.host).await;
    }
}

/// A thread that fills nine tenths of its window is summarised by the memory role's model.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_fills_nine_tenths_of_its_window_is_summarised() {
    let stage = stage().await;
    let session = stage.host.open("assistant").await;
    stage
        .host
        .say(&session, &long("one fill:3599", 4_000))
        .await;
    stage.turns(&session, 1).await;
    stage.host.say(&session, &long("two", 4_000)).await;
    stage.turns(&session, 2).await;
    assert!(stage.peer.asked("memory").is_empty(), "there is room yet");
    stage
        .host
        .say(&session, &long("three fill:3600", 200))
        .await;
    let seen = stage.turns(&session, 4).await;
    let asked = stage.peer.asked("memory");
    let [request] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    let reported = request["messages"].to_string();
    assert!(
        reported.contains("User: one ")
            && reported.contains("User: two ")
            && !reported.contains("three"),
        "{reported}"
    );
    assert!(
        request["tools"].is_null()
            && request["max_tokens"]
                .as_u64()
                .or(request["max_completion_tokens"].as_u64())
                == Some(500),
        "{request}"
    );
    // All that was said is there still, and the summary behind it.
    let messages = seen["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 7, "{seen}");
    let last = messages.last().unwrap();
    shows(
        last,
        &json!({ "role": "notice", "text": "summary 1", "origin": "host:compaction" }),
    );
    let compaction = &last["compaction"];
    assert_eq!(
        (
            &compaction["tokens_before"],
            compaction["first_kept_turn_id"].is_string()
        ),
        (&json!(3600), true),
        "{last}"
    );
    let compacts = stage
        .host
        .story(&session, "run.started.v1")
        .await
        .into_iter()
        .find(|it| !it["compacts"].is_null())
        .unwrap();
    shows(&compacts, &json!({ "model": "memory", "claimed": [] }));
    shows(
        &compacts,
        &json!({ "compacts/tokens_before": 3600, "compacts/through_message": 4 }),
    );
    // It is in the ledger like every call of a model.
    let id = session.rsplit('/').next().unwrap();
    let audit = stage
        .host
        .get(&format!("/api/audit?limit=1000&session={id}"))
        .await
        .body;
    let lines = audit["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["detail"] == "memory" && line["verdict"] == "granted");
    assert_eq!(lines.count(), 1, "{audit}");
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_asked_for_the_reply_that_is_reserved_and_that_its_window_has_room_for() {
    let stage = stage().await;
    let session = stage.host.open("assistant").await;
    stage.host.say(&session, &long("one", 4_000)).await;
    stage.turns(&session, 1).await;
    let asked = stage.peer.newest("chat")["max_tokens"].as_u64().unwrap();
    assert!(asked < WINDOW - 1_000, "{asked}: a thousand are the words");
    assert!(stage.host.stop().await.success(), "{}", stage.folder.log());
    let store = crash::open(&stage.folder).await;
    let events = store
        .events(0, store::EventFilter::default(), 1_000)
        .await
        .unwrap();
    store.close().await;
    let started = events
        .into_iter()
        .filter_map(|recorded| Some(recorded.event?.step()?.started.clone()));
    let calls: Vec<(Option<u32>, u64)> = started
        .flatten()
        .filter_map(|operation| match operation.performer {
            Performer::Model {
                request,
                reserved_tokens,
                ..
            } => Some((request.max_tokens, reserved_tokens)),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [(u32::try_from(asked).ok(), WINDOW)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_says_which_inputs_it_answers_and_a_compaction_that_it_is_the_hosts_own() {
    let stage = stage().await;
    let session = stage.host.open("assistant").await;
    let mut asked = Vec::new();
    for (turn, words) in [long("one", 4_000), long(&format!("two {FULL}"), 200)]
        .iter()
        .enumerate()
    {
        asked.push(stage.host.say(&session, words).await.text("input_id"));
        stage
            .host
            .until(&session, |seen| {
                seen["revision"].as_u64() > Some(turn as u64)
            })
            .await;
    }
    let seen = stage.turns(&session, 3).await;
    assert_eq!(seen["run_input_ids"], json!([]));
    let expected = [
        (json!([asked[0]]), false),
        (json!([asked[1]]), false),
        (json!([]), true),
    ];
    // On the stream, in each frame of a turn.
    let stream = session.replacen("/sessions/", "/stream?after=0&session=", 1);
    let mut frames = stage.host.follow(&stream, None).await;
    for (inputs, is_compaction) in &expected {
        let turn = frames.until("stream_complete").await;
        for name in ["run_started", "message_complete", "stream_complete"] {
            let frame = turn.iter().find(|frame| frame.event == name).unwrap();
            assert_eq!(
                (&frame.data["input_ids"], &frame.data["compaction"]),
                (inputs, &json!(is_compaction)),
                "{name}"
            );
        }
    }
    // And in the JSON of each turn, alone and in its tree.
    let mut turn = seen["turn_id"].clone();
    for (inputs, is_compaction) in expected.iter().rev() {
        let path = format!("/api/turns/{}", turn.as_str().unwrap());
        let shown = stage.host.get(&path).await.body;
        shows(
            &shown,
            &json!({ "input_ids": inputs, "compaction": is_compaction }),
        );
        turn = shown["parent_turn_id"].clone();
    }
    let tree = stage.host.get(&format!("{session}/tree")).await.body;
    let marked = tree["turns"].as_array().unwrap().iter();
    let marked = marked.filter(|turn| turn["compaction"] == true && turn["input_ids"] == json!([]));
    assert_eq!(marked.count(), 1, "{tree}");
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_call_begins_with_the_summary_and_has_the_newest_turns_word_for_word() {
    let stage = stage().await;
    let session = stage.compacted().await;
    stage.host.say(&session, "four").await;
    stage.turns(&session, 5).await;
    let shown = stage.peer.newest("chat");
    let texts = peer::texts(&shown);
    let texts: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|text| !text.starts_with("system:"))
        .collect();
    let [first, reply, four] = texts[..] else {
        panic!("{texts:?}")
    };
    let (summary, three) = first.split_once("</notice>\n\n").unwrap();
    assert!(
        summary.contains(PREFACE) && summary.contains("summary 1"),
        "{summary}"
    );
    assert_eq!(
        (three, reply, four),
        (
            long(&format!("three {FULL}"), 200).as_str(),
            "assistant: reply to three",
            "user: four"
        )
    );
    // The next compaction is given the former summary, and not what that stands for.
    stage
        .host
        .say(&session, &long(&format!("five {FULL}"), 6_000))
        .await;
    stage.turns(&session, 7).await;
    let reported = stage.peer.newest("memory")["messages"].to_string();
    assert!(
        reported.contains("summary 1")
            && reported.contains("three ")
            && !reported.contains("one x"),
        "{reported}"
    );
    stage.host.say(&session, "six").await;
    stage.turns(&session, 8).await;
    let shown = stage.peer.newest("chat")["messages"].to_string();
    assert!(
        shown.contains("summary 2")
            && !shown.contains("summary 1")
            && !shown.contains("three fill"),
        "{shown}"
    );
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_summarised_is_found_and_a_fork_from_before_sees_the_thread_as_it_was() {
    let stage = stage().await;
    let session = stage.compacted().await;
    let found = stage.host.get("/api/search?q=one").await.body;
    assert_eq!(
        found["hits"].as_array().unwrap().len(),
        2,
        "the words and the reply: {found}"
    );
    let forked = stage
        .host
        .post(&format!("{session}/fork"), &json!({ "message": 6 }))
        .gives(201)
        .await;
    let fork = Session::of(&forked);
    // The thread of the fork is full as well, so that it is compacted before its next turn, by a
    // turn of its own.
    stage.peer.fails("memory");
    stage.host.say(&fork, "aside").await;
    stage.turns(&fork, 1).await;
    let shown = stage.peer.newest("chat")["messages"].to_string();
    assert!(
        shown.contains("one x") && !shown.contains("summary"),
        "{shown}"
    );
    let later = stage
        .host
        .post(&format!("{session}/fork"), &json!({}))
        .await;
    let later = Session::of(&later);
    stage.host.say(&later, "onward").await;
    stage.turns(&later, 1).await;
    let shown = stage.peer.newest("chat")["messages"].to_string();
    assert!(
        !shown.contains("one x") && shown.contains("summary 1"),
        "{shown}"
    );
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_to_the_turn_that_a_compaction_followed_go_on_in_the_same_session() {
    let stage = stage().await;
    let session = stage.compacted().await;
    let turns = stage
        .host
        .story(&session, "session.turn.committed.v1")
        .await;
    let body = json!({ "to": { "thread": turns[2]["turn_id"] }, "content": "four" });
    let said = stage.host.post("/api/messages", &body).await;
    assert_eq!(
        (said.status, session.ends_with(&said.text("session_id"))),
        (202, true),
        "{said:?}"
    );
    stage.turns(&session, 5).await;
    stage.over().await;
}

/// A compacted thread goes out and in again as the same bytes and goes on from its summary.
#[tokio::test(flavor = "multi_thread")]
async fn a_compacted_thread_is_exported_and_imported_as_the_same_bytes() {
    let old = stage().await;
    let session = old.compacted().await;
    for dialect in ["pi", "aix"] {
        let export = async |stage: &Stage, session: &str| {
            let request = stage
                .host
                .request(Method::GET, &format!("{session}/export?dialect={dialect}"));
            request
                .send()
                .await
                .unwrap()
                .bytes()
                .await
                .unwrap()
                .to_vec()
        };
        let file = export(&old, &session).await;
        let text = String::from_utf8(file.clone()).unwrap();
        assert_eq!(
            text.contains("\"type\":\"compaction\""),
            dialect == "pi",
            "{text}"
        );
        let new = stage().await;
        let made = new
            .host
            .post("/api/agents", &json!({ "definition": "assistant" }))
            .await;
        let agent = format!("/api/agents/{}", made.text("id"));
        let request = new
            .host
            .request(Method::POST, &format!("{agent}/sessions/import"))
            .body(file.clone());
        let imported = new.host.send(request).await;
        imported.has(201, &json!({ "exact": true }));
        let there = format!("{agent}/sessions/{}", imported.text("session_id"));
        assert!(
            export(&new, &there).await == file,
            "{dialect}: other bytes came out again"
        );
        new.host.say(&there, "four").await;
        new.host
            .until(&there, |seen| {
                seen["messages"].to_string().contains("reply to four")
            })
            .await;
        let shown = new.peer.newest("chat")["messages"].to_string();
        assert!(
            shown.contains("summary 1") && shown.contains("three ") && !shown.contains("one x"),
            "{shown}"
        );
        new.over().await;
    }
    old.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_write_has_a_chat_compacted_before_it_is_due() {
    let stage = stage().await;
    let session = stage.host.open("assistant").await;
    let compact = |key: &'static str| {
        let request = stage
            .host
            .request(Method::POST, &format!("{session}/compact"))
            .header("Idempotency-Key", key);
        stage.host.send(request)
    };
    compact("a").refused(409, "NOTHING_TO_COMPACT").await;
    for turn in 1..=3 {
        stage.host.say(&session, &long("words", 100)).await;
        stage.turns(&session, turn).await;
    }
    stage.peer.slow_ms(300);
    let begun = compact("b").await;
    assert_eq!(begun.status, 202, "{begun:?}");
    compact("c").refused(409, "RUN_OPEN").await;
    stage.turns(&session, 4).await;
    let again = compact("b").await;
    again.has(202, &json!({ "run_id": begun.text("run_id") }));
    compact("d").refused(409, "NOTHING_TO_COMPACT").await;
    let reported = stage.peer.newest("memory")["messages"].to_string();
    assert_eq!(
        reported.matches("User: words").count(),
        2,
        "the newest turn is kept: {reported}"
    );
    stage.host.say(&session, "and?").await;
    stage.turns(&session, 5).await;
    let id = session.rsplit('/').next().unwrap();
    stage.folder.succeeds(&["session", "compact", id]).await;
    stage.turns(&session, 6).await;
    stage.over().await;
}
