//! The tools of the memory, called by an agent that does what it is told.
//!
//! The rest of a note that is forgotten, and how it is erased.

use super::{asked, get, model};
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{Folder, Host, Line, PATIENCE, puppets, tells};
use agent_host_tests::world::{Setup, World};
use domain::event::Event;
use domain::path::PathKind;
use rusqlite::Connection;
use serde_json::{Value, json};

fn with_tools(allowlist: &Value) -> Setup {
    Setup {
        definitions: vec![
            json!({
                "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
                "toolAllowlist": allowlist,
            }),
            json!({ "agentId": "other", "displayName": "Other", "component": "puppet" }),
        ],
        ..Setup::default()
    }
}

pub(super) fn call(tool: &str, arguments: &Value) -> Value {
    json!([{ "start": [{ "key": "c", "tool": tool, "args": arguments }] }])
}

/// Outcome of a tool's call, as the puppet reports it.
async fn called(world: &World, tool: &str, arguments: &Value) -> String {
    let reported = world.play(call(tool, arguments)).await;
    let line = reported.into_iter().find(|line| line.starts_with("c "));
    line.unwrap()
}

/// A field of the JSON that a call gave.
fn field(reported: &str, name: &str) -> String {
    let start = reported.find('{').unwrap_or_else(|| panic!("{reported}"));
    let end = reported.rfind('}').unwrap_or_else(|| panic!("{reported}"));
    let result: Value = serde_json::from_str(&reported[start..=end]).unwrap();
    result[name].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_saved_found_and_forgotten_by_the_tools() {
    let world = World::new(with_tools(&json!(["memory_*", "look"]))).await;
    let saved = called(
        &world,
        "memory_save",
        &json!({ "text": "Ada likes zebras.", "about": "animals" }),
    )
    .await;
    let id = field(&saved, "saved");
    let found = called(&world, "memory_search", &json!({ "query": "zebras" })).await;
    tells(&found, &["Ada likes zebras.", &id, "animals"]);
    assert!(!found.contains("untrusted"), "{found}");
    let forgotten = called(&world, "memory_forget", &json!({ "id": id })).await;
    assert_eq!(field(&forgotten, "forgotten"), id);
    let notes = json!({ "query": "zebras", "notes": true });
    let found = called(&world, "memory_search", &notes).await;
    tells(&found, &[r#"{"hits":[]}"#]);
    let again = called(&world, "memory_forget", &json!({ "id": id })).await;
    tells(&again, &["note-not-found"]);
    let events = world.recorded().await;
    let left = events
        .iter()
        .filter(|recorded| matches!(recorded.event, Some(Event::NoteRemembered(_))));
    assert_eq!(left.count(), 0, "what the note said is erased");
    let database = Connection::open(world.dir.path().join("data/store.db")).unwrap();
    let rewritten = async {
        let due = "SELECT count(*) FROM meta WHERE name = 'rewrite'";
        until(async || {
            database
                .query_row(due, [], |row| row.get::<_, i64>(0))
                .unwrap()
                <= 0
        })
        .await;
    };
    tokio::time::timeout(PATIENCE, rewritten)
        .await
        .expect("its words go from the store's files, too");
}

/// Plays steps of which one asks the user, who agrees. Returns what the agent says at the end.
async fn agreed(world: &World, steps: &Value) -> String {
    let session = world.open("puppet").await;
    let steps = json!({ "steps": steps }).to_string();
    world.say("puppet", session, &steps).await;
    let (question, action) = world.question("puppet", session).await;
    let agrees = json!({ "approve": true, "call": action.props["call"] });
    world.answer("puppet", question, agrees).await.unwrap();
    world.idle(session).await;
    world.last_reply(session).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_that_rests_on_content_from_outside_is_marked_and_marks_who_finds_it() {
    let world = World::new(with_tools(&json!(["memory_*", "look"]))).await;
    let save = json!({ "key": "s", "tool": "memory_save", "args": { "text": "derivednote" } });
    let inspection = json!({ "start": [{ "key": "t", "tool": "look" }] });
    agreed(&world, &json!([inspection, { "start": [save] }])).await;
    let search = json!({ "key": "f", "tool": "memory_search", "args": { "query": "derivednote" } });
    let save = json!({ "key": "s", "tool": "memory_save", "args": { "text": "again" } });
    let reported = agreed(&world, &json!([{ "start": [search] }, { "start": [save] }])).await;
    tells(&reported, &[r#""untrusted":true"#]);
    let events = world.recorded().await;
    let marks: Vec<(String, bool)> = events
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Some(Event::NoteRemembered(note)) => Some((note.note, note.untrusted)),
            _ => None,
        })
        .collect();
    assert_eq!(
        marks,
        [("derivednote".to_owned(), true), ("again".to_owned(), true)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_list_does_not_name_them_has_no_memory_tools() {
    for allowlist in [json!(null), json!(["*"]), json!(["look"])] {
        let world = World::new(with_tools(&allowlist)).await;
        let reported = called(&world, "memory_save", &json!({ "text": "a" })).await;
        assert!(
            reported.contains("TOOL_NOT_AVAILABLE") || reported.contains("denied"),
            "{allowlist}: {reported}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deep_search_is_made_by_an_agent_below_in_the_memory_of_the_one_above() {
    let mut setup = with_tools(&json!(["memory_*"]));
    setup.definitions = vec![
        json!({
            "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
            "toolAllowlist": ["memory_*"], "memory": { "agent": "other", "search": "other" },
        }),
        json!({
            "agentId": "other", "displayName": "Other", "component": "puppet",
            "toolAllowlist": ["memory_search", "memory_save"],
        }),
    ];
    let world = World::new(setup).await;
    called(
        &world,
        "memory_save",
        &json!({ "text": "Ada likes zebras." }),
    )
    .await;
    let inspections = json!({ "key": "s", "tool": "memory_search", "args": { "query": "zebras" } });
    let saves = json!({ "key": "k", "tool": "memory_save", "args": { "text": "mine" } });
    for index in 0..2 {
        let query =
            json!({ "steps": [{ "start": [inspections, saves], "until": "all" }] }).to_string();
        let reported = world
            .play(call(
                "memory_search",
                &json!({ "query": query, "deep": true }),
            ))
            .await
            .join("\n");
        tells(&reported, &["Ada likes zebras."]);
        assert!(
            reported.contains("nothing-read"),
            "who searches keeps no notes: {reported}"
        );
        let path = format!("/local/agent/puppet/search/{index}");
        let row = world.store().agent_at(&path).await.unwrap().unwrap();
        assert_eq!(row.kind, PathKind::Search);
    }
    let none = World::new(with_tools(&json!(["memory_*"]))).await;
    let reported = called(
        &none,
        "memory_search",
        &json!({ "query": "zebras", "deep": true }),
    )
    .await;
    tells(&reported, &["invalid-arguments"]);
}

/// A host with an agent of Alice's that others may share.
pub(super) struct Shared {
    pub(super) folder: Folder,
    pub(super) host: Host,
    /// The path of the agent.
    pub(super) agent: String,
}

pub(super) async fn shared() -> Shared {
    let config = puppets(&json!([{
        "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
        "toolAllowlist": ["memory_*"],
    }]));
    shared_of(config, &["puppet"]).await
}

async fn shared_of(config: Value, components: &[&str]) -> Shared {
    let (folder, host) = Folder::serving(config, components).await;
    let alice = host.user("alice", &["read", "write"]).await;
    let made = json!({ "definition": "puppet" });
    let made = alice.post("/api/agents", &made).gives(201).await;
    Shared {
        agent: format!("/api/agents/{}", made.text("id")),
        host,
        folder,
    }
}

impl Shared {
    pub(super) async fn user(&self, name: &str, role: Option<&str>) -> Line {
        let line = self.host.user(name, &["read", "write"]).await;
        if let Some(role) = role {
            let alice = self.host.user("alice", &["read", "write"]).await;
            let path = format!("{}/assign", self.agent);
            let assigned = json!({ "user_id": name, "role": role });
            alice.post(&path, &assigned).gives(201).await;
        }
        line
    }

    /// Opens a chat of this user's; its path.
    pub(super) async fn open(&self, line: &Line) -> String {
        let path = format!("{}/sessions", self.agent);
        let opened = line.post(&path, &json!({})).gives(201).await;
        format!("{path}/{}", opened.text("session_id"))
    }

    /// Outcome of a call in a chat of this user.
    async fn called(&self, line: &Line, tool: &str, arguments: &Value) -> String {
        let session = self.open(line).await;
        self.played(line, &session, &call(tool, arguments)).await
    }

    /// The messages of a new chat after its turn, in which this user has it do these steps.
    pub(super) async fn played(&self, line: &Line, session: &str, steps: &Value) -> String {
        let said = json!({ "content": json!({ "steps": steps }).to_string() });
        line.post(&format!("{session}/messages"), &said)
            .gives(202)
            .await;
        found(async || {
            let seen = get(line, session).await;
            (seen["revision"].as_u64() == Some(1) && seen["run_id"].is_null())
                .then(|| seen["messages"].to_string())
        })
        .await
    }

    pub(super) async fn ids(&self, line: &Line) -> Vec<String> {
        let listed = get(line, &format!("{}/memory", self.agent)).await;
        let notes = listed["notes"].as_array().unwrap().iter();
        notes
            .map(|note| note["note_id"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deep_search_asks_the_model_of_its_role() {
    let peer = model();
    let mut config = puppets(&json!([
        {
            "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
            "toolAllowlist": ["memory_*"],
            "memory": { "agent": "searcher", "search": "searcher" },
        },
        {
            "agentId": "searcher", "displayName": "Searcher",
            "toolAllowlist": ["memory_search", "memory_save"],
        },
    ]));
    config["providers"]["peer"] =
        json!({ "kind": "openai-compatible", "baseUrl": peer.url("/v1") });
    for model in ["chat", "search"] {
        config["models"][model] =
            json!({ "provider": "peer", "model": model, "contextWindow": 64_000 });
    }
    config["defaultModel"] = json!("chat");
    config["roles"] = json!({ "memorySearch": "search" });
    let shared = shared_of(config, &["puppet", "assistant"]).await;
    let alice = shared.user("alice", None).await;
    let query = json!({ "query": "Who likes zebras?", "deep": true });
    let reported = shared.called(&alice, "memory_search", &query).await;
    tells(&reported, &["I see."]);
    let searched = asked(&peer, "search");
    assert_eq!(searched.len(), 1, "{searched:?}");
    assert!(searched[0].contains("Who likes zebras?"), "{searched:?}");
    assert_eq!(asked(&peer, "chat"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_private_to_a_mentee_is_seen_and_forgotten_by_them_and_their_mentor_alone() {
    let shared = shared().await;
    let alice = shared.user("alice", None).await;
    let bob = shared.user("bob", Some("mentee")).await;
    let carol = shared.user("carol", Some("mentee")).await;
    let dana = shared.user("dana", Some("observer")).await;
    for text in ["Bob fears fractions.", "Bob likes fractals."] {
        shared
            .called(&bob, "memory_save", &json!({ "text": text }))
            .await;
    }
    let ids = shared.ids(&bob).await;
    assert_eq!(ids.len(), 2);
    assert!(shared.ids(&carol).await.is_empty());
    let query = json!({ "query": "Bob fractions fractals" });
    let found = shared.called(&carol, "memory_search", &query).await;
    assert!(!found.contains("fears"), "{found}");
    let forget = json!({ "id": ids[0] });
    let refused = shared.called(&carol, "memory_forget", &forget).await;
    tells(&refused, &["note-not-found"]);
    let path = format!("{}/memory/{}", shared.agent, ids[0]);
    carol.delete(&path).gives(404).await;
    // Who sees everything and teaches nothing may not have it forgotten.
    assert_eq!(shared.ids(&dana).await.len(), 2);
    dana.delete(&path).refused(403, "ROLE_FORBIDS").await;
    let found = shared.called(&alice, "memory_search", &query).await;
    assert!(
        found.contains("fears") && found.contains(r#"\"user\":\"bob\""#),
        "whose it is: {found}"
    );
    alice.delete(&path).gives(200).await;
    let forget = json!({ "id": ids[1] });
    shared.called(&bob, "memory_forget", &forget).await;
    assert!(shared.ids(&bob).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_speaks_in_a_mentees_chat_nothing_of_another_mentee_is_found_there() {
    let config = puppets(&json!([
        {
            "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
            "toolAllowlist": ["memory_*"], "memory": { "agent": "other", "search": "other" },
        },
        {
            "agentId": "other", "displayName": "Other", "component": "puppet",
            "toolAllowlist": ["memory_search", "memory_save"],
        },
    ]));
    let shared = shared_of(config, &["puppet"]).await;
    let anne = shared.user("anne", Some("mentee")).await;
    let bob = shared.user("bob", Some("shared")).await;
    let dave = shared.user("dave", Some("mentee")).await;
    for (line, text) in [
        (&anne, "Anne likes fractions."),
        (&dave, "Dave fears fractions."),
    ] {
        let note = json!({ "text": text });
        shared.called(line, "memory_save", &note).await;
    }
    let notes = json!({ "query": "fractions", "notes": true });
    let below = json!({ "steps": call("memory_search", &notes) }).to_string();
    let all = json!({ "query": "fractions", "limit": 20 });
    for steps in [
        json!([{ "start": [{ "key": "c", "recall": "fractions" }] }]),
        call("memory_search", &all),
        call("memory_search", &json!({ "query": below, "deep": true })),
    ] {
        for (whose, finds_dave) in [(&bob, true), (&anne, false)] {
            let session = shared.open(whose).await;
            let reported = shared.played(&bob, &session, &steps).await;
            assert!(reported.contains("Anne likes"), "{steps}: {reported}");
            assert_eq!(
                reported.contains("Dave fears"),
                finds_dave,
                "{steps}: {reported}"
            );
        }
    }
}

/// Text of the note.
const NOTE: &str = "Ada likes zebras.";

impl Shared {
    async fn purge(&self, line: &Line, session: &str) {
        line.delete(session).gives(200).await;
        let [agent, id] =
            [self.agent.as_str(), session].map(|path| path.rsplit('/').next().unwrap());
        let purge = ["session", "purge", id, "--agent", agent, "--yes"];
        self.folder.succeeds(&purge).await;
    }

    async fn events_have_the_note(&self) -> bool {
        let events = self.host.get("/api/events?limit=1000").await;
        events.body.to_string().contains(NOTE)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_in_which_a_search_found_a_note_keeps_its_words_until_it_is_purged() {
    let shared = shared().await;
    let alice = shared.user("alice", None).await;
    let saves = shared.open(&alice).await;
    let save = call("memory_save", &json!({ "text": NOTE }));
    shared.played(&alice, &saves, &save).await;
    let search = json!({ "query": "zebras", "notes": true });
    let search = call("memory_search", &search);
    let finds = shared.open(&alice).await;
    let reported = shared.played(&alice, &finds, &search).await;
    tells(&reported, &[NOTE]);
    for id in shared.ids(&alice).await {
        let path = format!("{}/memory/{id}", shared.agent);
        alice.delete(&path).gives(200).await;
    }
    let later = shared.open(&alice).await;
    let reported = shared.played(&alice, &later, &search).await;
    assert!(!reported.contains(NOTE), "{reported}");
    shared.purge(&alice, &saves).await;
    let kept = get(&alice, &finds).await["messages"].to_string();
    assert!(kept.contains(NOTE), "what was found was said: {kept}");
    assert!(shared.events_have_the_note().await);
    shared.purge(&alice, &finds).await;
    assert!(!shared.events_have_the_note().await);
}
