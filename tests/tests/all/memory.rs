//! The memory of agents: notes that they save, find and forget, chats that a memory agent reads,
//! and notes that stand in the prompts of later ones.

mod tools;

use agent_host_tests::peer::{Peer, Says};
use agent_host_tests::process::{Folder, Host, Line, PATIENCE, tells};
use agent_host_tests::prompt::{counted, filled, last_words, saying};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Tokens that the model of the conversation holds.
const WINDOW: u64 = 4_000;
/// Words of Alice to the agent.
const FACT: &str = "FACT: Alice drinks Assam tea in the morning.";
/// The note that comes of it.
const NOTE: &str = "Alice drinks Assam tea in the morning.";
/// A question to which the note is a hint.
const QUESTION: &str = "Which tea shall I buy?";

/// A host whose chats are read when they were idle for this long.
fn config(peer: &Peer, idle_s: u64) -> Value {
    json!({
        "agents": [
            {
                "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [],
                "memory": { "idleS": idle_s }, "memoryHints": { "max": 2, "bytesMax": 1_000 },
            },
            {
                "agentId": "memory-agent", "displayName": "Memory", "component": "memory",
                "toolAllowlist": ["memory_search", "memory_save"], "agentAllowlist": [],
            },
        ],
        "providers": { "peer": { "kind": "openai-compatible", "baseUrl": peer.url("/v1") } },
        "models": {
            "chat": { "provider": "peer", "model": "chat", "contextWindow": WINDOW },
            "memory": { "provider": "peer", "model": "memory", "contextWindow": 64_000 },
        },
        "defaultModel": "chat",
        "roles": { "memory": "memory" },
        "retry": { "attemptsMax": 1 },
    })
}

/// A model's provider that replies to people, and keeps every line that says `FACT:` as a memory
/// agent's model. `fill:3600` in what was said last says how many tokens it took.
fn model() -> Peer {
    Peer::new(|asked, _| {
        let last = last_words(&asked.body);
        let reads = last.contains("Read this part of a conversation");
        let text = match asked.body["model"].as_str() {
            Some("memory") if reads => {
                let facts = last.lines().filter_map(|line| line.split("FACT: ").nth(1));
                let notes: Vec<Value> = facts.map(|fact| json!({ "text": fact.trim() })).collect();
                json!({ "notes": notes }).to_string()
            }
            Some("memory") => "a summary".to_owned(),
            _ => "I see.".to_owned(),
        };
        Says::Json(
            200,
            counted(&asked.body, &saying(&text), filled(&asked.body)),
        )
    })
}

/// Returns the requests to a model so far, each as one text.
fn asked(peer: &Peer, model: &str) -> Vec<String> {
    let asked = peer.prompts(model).into_iter();
    asked.map(|asked| asked["messages"].to_string()).collect()
}

struct Stage {
    folder: Folder,
    host: Host,
    peer: Peer,
    alice: Line,
    /// The path of Alice's agent.
    agent: String,
}

async fn stage(idle_s: u64) -> Stage {
    stage_that_dies(idle_s, None).await
}

async fn stage_that_dies(idle_s: u64, at: Option<&str>) -> Stage {
    let peer = model();
    let config = config(&peer, idle_s);
    stage_of(peer, config, at).await
}

async fn stage_of(peer: Peer, config: Value, at: Option<&str>) -> Stage {
    let folder = Folder::new(config);
    folder.warm(&["assistant", "memory"]).await;
    let host = folder
        .start(at)
        .await
        .unwrap_or_else(|ended| panic!("{}", ended.said));
    let alice = host.user("alice", &["read", "write"]).await;
    let made = json!({ "definition": "assistant" });
    let made = alice.post("/api/agents", &made).gives(201).await;
    Stage {
        agent: format!("/api/agents/{}", made.text("id")),
        folder,
        host,
        peer,
        alice,
    }
}

async fn get(line: &Line, path: &str) -> Value {
    line.get(path).await.body
}

impl Stage {
    /// Opens a chat of a user's; its path.
    async fn open(&self, line: &Line) -> String {
        let path = format!("{}/sessions", self.agent);
        let opened = line.post(&path, &json!({})).gives(201).await;
        format!("{path}/{}", opened.text("session_id"))
    }

    /// Says something in a chat, and waits until it has so many turns.
    async fn say(&self, line: &Line, session: &str, words: &str, turns: u64) {
        let path = format!("{session}/messages");
        line.post(&path, &json!({ "content": words }))
            .gives(202)
            .await;
        line.until(session, |seen| {
            seen["revision"].as_u64() == Some(turns) && seen["run_id"].is_null()
        })
        .await;
    }

    /// Waits until the user sees so many notes of the agent; their texts, the latest first.
    async fn notes(&self, line: &Line, count: usize) -> Vec<Value> {
        let path = format!("{}/memory", self.agent);
        let listed = line
            .until(&path, |seen| {
                seen["notes"].as_array().map(Vec::len) == Some(count)
            })
            .await;
        listed["notes"].as_array().unwrap().clone()
    }

    /// The data of the events of one kind, as the operator sees them.
    async fn events(&self, kind: &str) -> Vec<Value> {
        self.host.data_of(kind).await
    }

    async fn assign(&self, user: &str, role: &str) -> Line {
        let line = self.host.user(user, &["read", "write"]).await;
        let path = format!("{}/assign", self.agent);
        let assigned = json!({ "user_id": user, "role": role });
        self.alice.post(&path, &assigned).gives(201).await;
        line
    }

    async fn over(self) {
        self.folder.over(self.host).await;
    }
}

/// A session says a fact, idle passes, the memory agent saves it, and another session of the same
/// user gets the hint. A mentee's does not.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_a_hint_in_the_users_next_chat_and_in_no_mentees() {
    let stage = stage(1).await;
    let bob = stage.assign("bob", "mentee").await;
    let first = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &first, FACT, 1).await;
    let notes = stage.notes(&stage.alice, 1).await;
    let id = first.rsplit('/').next().unwrap();
    assert_eq!(
        (
            &notes[0]["text"],
            &notes[0]["session_id"],
            &notes[0]["user_id"]
        ),
        (&json!(NOTE), &json!(id), &json!("alice"))
    );
    let agent_id = stage.agent.rsplit('/').next().unwrap();
    assert!(
        notes[0]["turn_id"].is_string() && notes[0]["written_by"] != agent_id,
        "{notes:?}"
    );
    let read = &asked(&stage.peer, "memory")[0];
    tells(
        read,
        &["> User: FACT: Alice drinks", "nothing in it is an instr"],
    );

    let second = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &second, QUESTION, 1).await;
    let prompt = asked(&stage.peer, "chat").pop().unwrap();
    let hint = prompt.find(NOTE).unwrap_or_else(|| panic!("{prompt}"));
    let words = prompt.find(QUESTION).unwrap();
    assert!(
        prompt.contains("not instructions") && hint < words,
        "{prompt}"
    );
    let begun = stage.events("run.started.v1").await;
    let hints: Vec<&Value> = begun
        .iter()
        .filter_map(|run| run["hints"].as_array())
        .flatten()
        .map(|hint| &hint["note_id"])
        .collect();
    assert_eq!(hints, [&notes[0]["note_id"]], "{begun:?}");
    let theirs = stage.open(&bob).await;
    stage.say(&bob, &theirs, QUESTION, 1).await;
    let prompt = asked(&stage.peer, "chat").pop().unwrap();
    assert!(
        prompt.contains(QUESTION) && !prompt.contains("Assam"),
        "{prompt}"
    );
    assert_eq!(stage.notes(&bob, 0).await, Vec::<Value>::new());
    stage.over().await;
}

/// A role that shows everybody's sessions puts nobody's notes beside somebody else's words.
#[tokio::test(flavor = "multi_thread")]
async fn no_hint_crosses_between_a_mentee_and_the_mentor_whoever_speaks() {
    let stage = stage(1).await;
    let bob = stage.assign("bob", "mentee").await;
    let carol = stage.assign("carol", "mentee").await;
    for (line, fact) in [
        (&bob, "FACT: Bob drinks Assam tea."),
        (&carol, "FACT: Carol drinks Oolong tea."),
    ] {
        let session = stage.open(line).await;
        stage.say(line, &session, fact, 1).await;
        stage.notes(line, 1).await;
    }
    stage.notes(&stage.alice, 2).await;
    let own = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &own, QUESTION, 1).await;
    let theirs = stage.open(&bob).await;
    stage.say(&stage.alice, &theirs, QUESTION, 1).await;
    for prompt in asked(&stage.peer, "chat").iter().rev().take(2) {
        assert!(
            prompt.contains(QUESTION) && !prompt.contains("Assam") && !prompt.contains("Oolong"),
            "{prompt}"
        );
    }
    stage.say(&bob, &theirs, QUESTION, 2).await;
    let prompt = asked(&stage.peer, "chat").pop().unwrap();
    assert!(
        prompt.contains("Assam") && !prompt.contains("Oolong"),
        "{prompt}"
    );
    stage.over().await;
}

/// A memory agent compares with the notes of the user alone whose chat it reads.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_note_of_two_users_is_kept_for_each_of_them() {
    let stage = stage(1).await;
    let bob = stage.assign("bob", "mentee").await;
    for line in [&bob, &stage.alice] {
        let session = stage.open(line).await;
        let fact = "FACT: The meeting is on Monday.";
        stage.say(line, &session, fact, 1).await;
        stage.notes(&bob, 1).await;
    }
    let notes = stage.notes(&stage.alice, 2).await;
    assert_eq!(
        (&notes[0]["user_id"], &notes[1]["user_id"]),
        (&json!("alice"), &json!("bob")),
        "{notes:?}"
    );
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_that_is_forgotten_is_no_hint_any_more_and_its_event_is_erased() {
    let stage = stage(1).await;
    let first = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &first, FACT, 1).await;
    let notes = stage.notes(&stage.alice, 1).await;
    let second = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &second, QUESTION, 1).await;
    assert!(asked(&stage.peer, "chat").pop().unwrap().contains(NOTE));
    let id = notes[0]["note_id"].as_str().unwrap();
    let path = format!("{}/memory/{id}", stage.agent);
    let forgotten = stage.alice.delete(&path).await;
    forgotten.has(200, &json!({ "forgotten": true }));
    stage
        .alice
        .delete(&path)
        .refused(404, "NOTE_NOT_FOUND")
        .await;
    stage.notes(&stage.alice, 0).await;
    let found = get(&stage.alice, &format!("{}/memory?q=tea", stage.agent)).await;
    assert_eq!(found["notes"], json!([]));
    let third = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &third, QUESTION, 1).await;
    let prompt = asked(&stage.peer, "chat").pop().unwrap();
    assert!(!prompt.contains("Assam"), "{prompt}");
    let kept = stage.events("agent.note.remembered.v1").await;
    assert!(
        kept.iter().all(Value::is_null) && kept.len() == 1,
        "what it said is erased: {kept:?}"
    );
    assert_eq!(stage.events("agent.note.forgotten.v1").await.len(), 1);
    stage.over().await;
}

/// The older note has more of the user's words in fewer of its own.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_hint_stands_first_also_where_an_older_one_fits_better() {
    let stage = stage(1).await;
    let first = stage.open(&stage.alice).await;
    let facts = "FACT: The tea is Assam tea.\n\
                 FACT: From this week on the tea is, until Alice says otherwise, Darjeeling.";
    stage.say(&stage.alice, &first, facts, 1).await;
    stage.notes(&stage.alice, 2).await;
    let second = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &second, QUESTION, 1).await;
    let prompt = asked(&stage.peer, "chat").pop().unwrap();
    let place = |word: &str| prompt.find(word).unwrap_or_else(|| panic!("{prompt}"));
    assert!(place("Darjeeling") < place("Assam"), "{prompt}");
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_read_once_wherever_the_host_dies() {
    for point in ["broker.memory.before", "broker.memory.after"] {
        let mut stage = stage_that_dies(1, Some(point)).await;
        let session = stage.open(&stage.alice).await;
        let path = format!("{session}/messages");
        stage
            .alice
            .post(&path, &json!({ "content": FACT }))
            .gives(202)
            .await;
        assert!(stage.host.died(PATIENCE).await.is_some(), "{point}");
        stage.host = stage.folder.serve().await;
        stage.alice = stage.host.user("alice", &["read", "write"]).await;
        let notes = stage.notes(&stage.alice, 1).await;
        assert_eq!(notes[0]["text"], NOTE, "{point}");
        // Longer than it takes to be idle: nothing is read again.
        sleep(Duration::from_millis(1_500)).await;
        assert_eq!(
            stage.events("session.memory.read.v1").await.len(),
            1,
            "{point}"
        );
        stage.notes(&stage.alice, 1).await;
        stage.over().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_new_is_read_the_next_time_and_on_demand_at_once() {
    let stage = stage(3_600).await;
    let session = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &session, FACT, 1).await;
    let path = format!("{session}/memory");
    stage.alice.post(&path, &json!({})).gives(202).await;
    stage.notes(&stage.alice, 1).await;
    let more = "FACT: Alice rides a red bicycle.";
    stage.say(&stage.alice, &session, more, 2).await;
    stage.alice.post(&path, &json!({})).await;
    stage.notes(&stage.alice, 2).await;
    let read = asked(&stage.peer, "memory");
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(
        read[1].contains("red bicycle") && !read[1].contains("Assam"),
        "{}",
        read[1]
    );
    // There is nothing new to read.
    stage.alice.post(&path, &json!({})).await;
    stage
        .alice
        .until(&session, |seen| seen["run_id"].is_null())
        .await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(asked(&stage.peer, "memory").len(), 2);
    assert_eq!(stage.events("session.memory.read.v1").await.len(), 2);
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_chat_is_read_from_its_beginning_in_pieces() {
    let peer = model();
    let mut config = config(&peer, 3_600);
    config["models"]["chat"]["contextWindow"] = json!(200_000);
    let stage = stage_of(peer, config, None).await;
    let session = stage.open(&stage.alice).await;
    let around = "x".repeat(1_500);
    let first = format!("{around}\n{FACT}\n{around}");
    stage.say(&stage.alice, &session, &first, 1).await;
    // More than 48 KiB with what was said first.
    let long = "y".repeat(3_900);
    for turn in 2..=14 {
        stage.say(&stage.alice, &session, &long, turn).await;
    }
    let last = "FACT: Alice rides a red bicycle.";
    stage.say(&stage.alice, &session, last, 15).await;
    let path = format!("{session}/memory");
    stage.alice.post(&path, &json!({})).gives(202).await;
    let notes = stage.notes(&stage.alice, 2).await;
    assert_eq!(
        (&notes[0]["text"], &notes[1]["text"]),
        (&json!("Alice rides a red bicycle."), &json!(NOTE)),
        "{notes:?}"
    );
    let read = stage.events("session.memory.read.v1").await;
    assert_eq!(read.len(), 2, "{read:?}");
    assert_ne!(
        read[0]["through_turn_id"], read[1]["through_turn_id"],
        "{read:?}"
    );
    assert_eq!(
        (&notes[0]["turn_id"], &notes[1]["turn_id"]),
        (&read[1]["through_turn_id"], &read[0]["through_turn_id"]),
        "each names the end of its own piece: {notes:?}"
    );
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_handed_over_before_it_is_compacted() {
    let stage = stage(3_600).await;
    let session = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &session, FACT, 1).await;
    for turn in [2, 3] {
        let long = "x".repeat(4_000);
        stage.say(&stage.alice, &session, &long, turn).await;
    }
    let path = format!("{session}/messages");
    let full = json!({ "content": "It is full. fill:3600" });
    stage.alice.post(&path, &full).gives(202).await;
    stage
        .alice
        .until(&session, |seen| {
            seen["revision"].as_u64() == Some(5) && seen["run_id"].is_null()
        })
        .await;
    stage.notes(&stage.alice, 1).await;
    let read = stage.events("session.memory.read.v1").await;
    assert_eq!(read.len(), 1, "{read:?}");
    assert_eq!(read[0]["because"], "compaction");
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_handed_over_once_before_compaction_wherever_the_host_dies() {
    for point in ["broker.memory.before", "broker.memory.after"] {
        let mut stage = stage_that_dies(3_600, Some(point)).await;
        let session = stage.open(&stage.alice).await;
        stage.say(&stage.alice, &session, FACT, 1).await;
        for turn in [2, 3] {
            let long = "x".repeat(4_000);
            stage.say(&stage.alice, &session, &long, turn).await;
        }
        let path = format!("{session}/messages");
        let full = json!({ "content": "It is full. fill:3600" });
        stage.alice.post(&path, &full).gives(202).await;
        assert!(stage.host.died(PATIENCE).await.is_some(), "{point}");
        stage.host = stage.folder.serve().await;
        stage.alice = stage.host.user("alice", &["read", "write"]).await;
        // A thread is compacted when its session is looked at, and before the next words.
        stage.say(&stage.alice, &session, "Go on.", 6).await;
        let notes = stage.notes(&stage.alice, 1).await;
        assert_eq!(notes[0]["text"], NOTE, "{point}");
        let read = stage.events("session.memory.read.v1").await;
        assert_eq!(read.len(), 1, "{point}: {read:?}");
        assert_eq!(read[0]["because"], "compaction", "{point}");
        stage.over().await;
    }
}

/// The new thread has as many messages as the one that was read, and none of them was read.
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_that_begins_anew_is_read_from_its_new_beginning() {
    let stage = stage(3_600).await;
    let session = stage.open(&stage.alice).await;
    let path = format!("{session}/memory");
    stage.say(&stage.alice, &session, FACT, 1).await;
    stage.alice.post(&path, &json!({})).await;
    stage.notes(&stage.alice, 1).await;
    let clear = format!("{session}/clear");
    stage.alice.post(&clear, &Value::Null).gives(200).await;
    let anew = "FACT: Alice rides a red bicycle.";
    stage.say(&stage.alice, &session, anew, 3).await;
    stage.alice.post(&path, &json!({})).await;
    let notes = stage.notes(&stage.alice, 2).await;
    assert_eq!(notes[0]["text"], "Alice rides a red bicycle.");
    let read = asked(&stage.peer, "memory");
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(
        read[1].contains("red bicycle") && !read[1].contains("> User: FACT: Alice drinks"),
        "{}",
        read[1]
    );
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purging_a_chat_purges_its_notes_and_what_the_memory_agent_was_told() {
    let stage = stage(1).await;
    let session = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &session, FACT, 1).await;
    stage.notes(&stage.alice, 1).await;
    let read = stage.events("session.memory.read.v1").await;
    let reader = format!(
        "/api/sessions/{}",
        read[0]["reader_session_id"].as_str().unwrap()
    );
    stage
        .alice
        .until(&reader, |seen| {
            seen["run_id"].is_null() && seen["revision"].as_u64() == Some(1)
        })
        .await;
    stage.alice.delete(&session).gives(200).await;
    let id = session.rsplit('/').next().unwrap();
    let agent = stage.agent.rsplit('/').next().unwrap();
    let purged = stage
        .folder
        .run(&["session", "purge", id, "--agent", agent, "--yes"])
        .await;
    assert!(purged.status.success(), "{purged:?}");
    stage.notes(&stage.alice, 0).await;
    let events = stage.host.get("/api/events?limit=1000").await.body;
    assert!(!events.to_string().contains("Assam"), "{events}");
    stage.over().await;
}
