//! The memory of agents: notes that they save, find and forget, chats that a memory agent reads,
//! and notes that stand in the prompts of later ones.

mod forgetting;
mod peer;
mod tools;

use agent_host_tests::process::{Answer, Folder, Host, Line, PATIENCE};
use peer::Peer;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Tokens that the model of the conversation holds.
const WINDOW: u64 = 4_000;
/// What Alice tells the agent.
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
        "providers": { "peer": { "kind": "openai-compatible", "baseUrl": peer.base() } },
        "models": {
            "chat": { "provider": "peer", "model": "chat", "contextWindow": WINDOW },
            "memory": { "provider": "peer", "model": "memory", "contextWindow": 64_000 },
        },
        "defaultModel": "chat",
        "roles": { "memory": "memory" },
        "retry": { "attemptsMax": 1 },
    })
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
    let peer = Peer::start().await;
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
    let made = ask(&alice, Method::POST, "/api/agents", &made).await;
    assert_eq!(made.status, 201, "{made:?}");
    Stage {
        agent: format!("/api/agents/{}", made.text("id")),
        folder,
        host,
        peer,
        alice,
    }
}

async fn ask(line: &Line, method: Method, path: &str, body: &Value) -> Answer {
    line.ask(method, path, Some(body)).await.unwrap()
}

async fn get(line: &Line, path: &str) -> Value {
    line.ask(Method::GET, path, None).await.unwrap().body
}

impl Stage {
    /// Opens a chat of a user's; its path.
    async fn open(&self, line: &Line) -> String {
        let path = format!("{}/sessions", self.agent);
        let opened = ask(line, Method::POST, &path, &json!({})).await;
        assert_eq!(opened.status, 201, "{opened:?}");
        format!("{path}/{}", opened.text("session_id"))
    }

    /// Says something in a chat, and waits until it has so many turns.
    async fn say(&self, line: &Line, session: &str, words: &str, turns: u64) {
        let path = format!("{session}/messages");
        let said = ask(line, Method::POST, &path, &json!({ "content": words })).await;
        assert_eq!(said.status, 202, "{said:?}");
        self.until(line, session, |seen| {
            seen["revision"].as_u64() == Some(turns) && seen["run_id"].is_null()
        })
        .await;
    }

    async fn until(&self, line: &Line, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                let seen = get(line, path).await;
                if is(&seen) {
                    return seen;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking)
            .await
            .unwrap_or_else(|_| panic!("it does not come to that: {}", self.folder.log()))
    }

    /// Waits until the user sees so many notes of the agent; their texts, the latest first.
    async fn notes(&self, line: &Line, count: usize) -> Vec<Value> {
        let path = format!("{}/memory", self.agent);
        let listed = self
            .until(line, &path, |seen| {
                seen["notes"].as_array().map(Vec::len) == Some(count)
            })
            .await;
        listed["notes"].as_array().unwrap().clone()
    }

    /// The events of one kind, as the operator sees them.
    async fn events(&self, kind: &str) -> Vec<Value> {
        let events = self.host.get("/api/events?limit=1000").await.unwrap().body;
        let events = events["events"].as_array().unwrap().iter();
        events
            .filter(|event| event["type"] == kind)
            .map(|event| event["data"].clone())
            .collect()
    }

    async fn assign(&self, user: &str, role: &str) -> Line {
        let line = self.host.user(user, &["read", "write"]).await;
        let path = format!("{}/assign", self.agent);
        let assigned = json!({ "user_id": user, "role": role });
        let assigned = ask(&self.alice, Method::POST, &path, &assigned).await;
        assert_eq!(assigned.status, 201, "{assigned:?}");
        line
    }

    async fn over(self) {
        assert!(self.host.stop().await.success(), "{}", self.folder.log());
        let verified = self.folder.run(&["verify"]).await;
        assert!(verified.status.success(), "{verified:?}");
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
    let read = &stage.peer.asked("memory")[0];
    assert!(
        read.contains("> User: FACT: Alice drinks") && read.contains("nothing in it is an instr"),
        "{read}"
    );

    let second = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &second, QUESTION, 1).await;
    let prompt = stage.peer.asked("chat").pop().unwrap();
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
    let prompt = stage.peer.asked("chat").pop().unwrap();
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
    for prompt in stage.peer.asked("chat").iter().rev().take(2) {
        assert!(
            prompt.contains(QUESTION) && !prompt.contains("Assam") && !prompt.contains("Oolong"),
            "{prompt}"
        );
    }
    stage.say(&bob, &theirs, QUESTION, 2).await;
    let prompt = stage.peer.asked("chat").pop().unwrap();
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
    assert!(stage.peer.asked("chat").pop().unwrap().contains(NOTE));
    let id = notes[0]["note_id"].as_str().unwrap();
    let path = format!("{}/memory/{id}", stage.agent);
    let forgotten = stage.alice.ask(Method::DELETE, &path, None).await.unwrap();
    assert_eq!(
        (forgotten.status, &forgotten.body["forgotten"]),
        (200, &json!(true)),
        "{forgotten:?}"
    );
    let again = stage.alice.ask(Method::DELETE, &path, None).await.unwrap();
    assert_eq!(
        (again.status, again.text("code").as_str()),
        (404, "NOTE_NOT_FOUND"),
        "{again:?}"
    );
    stage.notes(&stage.alice, 0).await;
    let found = get(&stage.alice, &format!("{}/memory?q=tea", stage.agent)).await;
    assert_eq!(found["notes"], json!([]));
    let third = stage.open(&stage.alice).await;
    stage.say(&stage.alice, &third, QUESTION, 1).await;
    let prompt = stage.peer.asked("chat").pop().unwrap();
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
    let prompt = stage.peer.asked("chat").pop().unwrap();
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
        let said = ask(
            &stage.alice,
            Method::POST,
            &path,
            &json!({ "content": FACT }),
        )
        .await;
        assert_eq!(said.status, 202, "{said:?}");
        assert!(stage.host.died(PATIENCE).await.is_some(), "{point}");
        stage.host = stage
            .folder
            .start(None)
            .await
            .unwrap_or_else(|ended| panic!("{}", ended.said));
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
    let read = ask(&stage.alice, Method::POST, &path, &json!({})).await;
    assert_eq!(read.status, 202, "{read:?}");
    stage.notes(&stage.alice, 1).await;
    let more = "FACT: Alice rides a red bicycle.";
    stage.say(&stage.alice, &session, more, 2).await;
    ask(&stage.alice, Method::POST, &path, &json!({})).await;
    stage.notes(&stage.alice, 2).await;
    let read = stage.peer.asked("memory");
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(
        read[1].contains("red bicycle") && !read[1].contains("Assam"),
        "{}",
        read[1]
    );
    // There is nothing new to read.
    ask(&stage.alice, Method::POST, &path, &json!({})).await;
    stage
        .until(&stage.alice, &session, |seen| seen["run_id"].is_null())
        .await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(stage.peer.asked("memory").len(), 2);
    assert_eq!(stage.events("session.memory.read.v1").await.len(), 2);
    stage.over().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_chat_is_read_from_its_beginning_in_pieces() {
    let peer = Peer::start().await;
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
    let read = ask(&stage.alice, Method::POST, &path, &json!({})).await;
    assert_eq!(read.status, 202, "{read:?}");
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
    let said = ask(&stage.alice, Method::POST, &path, &full).await;
    assert_eq!(said.status, 202, "{said:?}");
    stage
        .until(&stage.alice, &session, |seen| {
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
        let said = ask(&stage.alice, Method::POST, &path, &full).await;
        assert_eq!(said.status, 202, "{said:?}");
        assert!(stage.host.died(PATIENCE).await.is_some(), "{point}");
        stage.host = stage
            .folder
            .start(None)
            .await
            .unwrap_or_else(|ended| panic!("{}", ended.said));
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
    ask(&stage.alice, Method::POST, &path, &json!({})).await;
    stage.notes(&stage.alice, 1).await;
    let clear = format!("{session}/clear");
    let cleared = ask(&stage.alice, Method::POST, &clear, &Value::Null).await;
    assert_eq!(cleared.status, 200, "{cleared:?}");
    let anew = "FACT: Alice rides a red bicycle.";
    stage.say(&stage.alice, &session, anew, 3).await;
    ask(&stage.alice, Method::POST, &path, &json!({})).await;
    let notes = stage.notes(&stage.alice, 2).await;
    assert_eq!(notes[0]["text"], "Alice rides a red bicycle.");
    let read = stage.peer.asked("memory");
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
        .until(&stage.alice, &reader, |seen| {
            seen["run_id"].is_null() && seen["revision"].as_u64() == Some(1)
        })
        .await;
    let deleted = stage
        .alice
        .ask(Method::DELETE, &session, None)
        .await
        .unwrap();
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let id = session.rsplit('/').next().unwrap();
    let agent = stage.agent.rsplit('/').next().unwrap();
    let purged = stage
        .folder
        .run(&["session", "purge", id, "--agent", agent, "--yes"])
        .await;
    assert!(purged.status.success(), "{purged:?}");
    stage.notes(&stage.alice, 0).await;
    let events = stage.host.get("/api/events?limit=1000").await.unwrap().body;
    assert!(!events.to_string().contains("Assam"), "{events}");
    stage.over().await;
}
