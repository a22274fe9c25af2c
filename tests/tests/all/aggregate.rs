//! The rules of design S0 for agents, users and sessions as a whole, seen over HTTP: the terms, the
//! payloads, and who drives what.

use agent_host_tests::process::{Folder, Host, acting, is_asking, puppets, shows};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The design's terms for the types of agents, those included that it keeps for later.
const TYPES: [&str; 8] = [
    "tutor",
    "thought",
    "evaluator",
    "coach",
    "connector",
    "wellness",
    "planner",
    "researcher",
];

async fn serving(agents: &Value) -> (Folder, Host) {
    let mut config = puppets(agents);
    // They may hand work to each other.
    config["components"]["puppet"]["agents"] = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["agentId"].clone())
        .collect();
    Folder::serving(config, &["puppet"]).await
}

async fn post(host: &Host, path: &str, body: Value) -> Value {
    let answer = host.post(path, &body).await;
    assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
    answer.body
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

fn is_time(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.ends_with('Z') && text.parse::<domain::time::Timestamp>().is_ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_every_type_that_the_design_names_are_made_found_and_told_apart() {
    let mut agents: Vec<Value> = TYPES
        .iter()
        .map(|word| acting(&format!("my-{word}"), &json!([])))
        .collect();
    for (agent, word) in agents.iter_mut().zip(TYPES) {
        agent["agentType"] = json!(word);
    }
    agents.push(acting("untyped", &json!([])));
    let (_folder, host) = serving(&json!(agents)).await;
    for word in TYPES {
        let made = post(&host, "/api/agents", json!({ "agent_type": word })).await;
        let name = format!("{}{} Agent", word[..1].to_uppercase(), &word[1..]);
        let expected = json!({
            "agent_type": word, "name": name, "definition": format!("my-{word}"),
        });
        shows(&made, &expected);
        let found = host
            .get(&format!("/api/agents?agent_type={word}"))
            .await
            .body;
        let found: Vec<&Value> = found["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|agent| &agent["id"])
            .collect();
        assert_eq!(found, [&made["id"]], "{word}");
    }
    let made = post(&host, "/api/agents", json!({ "definition": "untyped" })).await;
    assert_eq!(
        made["agent_type"], "puppet",
        "what its component calls itself"
    );
    let nobody = host
        .post("/api/agents", &json!({ "agent_type": "dancer" }))
        .await;
    nobody.has(404, &json!({ "field": "/agent_type" }));
    assert!(
        TYPES
            .iter()
            .all(|word| nobody.text("detail").contains(word)),
        "it says which there are: {nobody:?}"
    );
}

/// An assignment says who, as what, since when and by whom, in its event and on its agent.
#[tokio::test(flavor = "multi_thread")]
async fn an_assignment_says_who_as_what_since_when_and_by_whom_in_event_and_agent() {
    let (_folder, host) = serving(&json!([acting("puppet", &json!([]))])).await;
    let alice = host.user("alice", &["read", "write"]).await;
    let agent = alice.make("puppet").await;
    for (user, role) in [
        ("bob", "shared"),
        ("carol", "mentee"),
        ("dana", "observer"),
        ("eve", "primary"),
    ] {
        alice.assign(&agent, user, role).await;
    }
    let seen = alice.get(&agent).await.body;
    let assignments = seen["assignments"].as_array().unwrap();
    assert_eq!(
        assignments[0],
        json!({
            "user_id": "alice", "role": "primary", "assigned_at": seen["created_at"],
            "assigned_by": "alice",
        }),
        "its creator is there from the beginning"
    );
    let events = host.events("").await;
    let reported = of_kind(&events, "agent.user.assigned.v1");
    assert_eq!((reported.len(), assignments.len()), (4, 5));
    for ((event, assignment), (user, role)) in reported.iter().zip(&assignments[1..]).zip([
        ("bob", "shared"),
        ("carol", "mentee"),
        ("dana", "observer"),
        ("eve", "primary"),
    ]) {
        let expected = json!({
            "user_id": user, "role": role, "assigned_by": "alice",
            "assigned_at": event["data"]["assigned_at"],
        });
        assert_eq!((&event["data"], assignment), (&expected, &expected));
        assert!(is_time(&event["data"]["assigned_at"]), "{event}");
        shows(
            event,
            &json!({ "agent_id": seen["id"], "actor": "user:alice" }),
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_there_before_its_session_starts_and_belongs_to_it_alone() {
    let asks = json!([{ "start": [{ "key": "q", "client": "confirmation" }] }, { "complete": {} }]);
    let (_folder, host) = serving(&json!([acting("first", &asks), acting("second", &asks)])).await;
    let mut conversations = BTreeSet::new();
    for (nth, agent) in ["first", "first", "second"].into_iter().enumerate() {
        let opened = post(
            &host,
            &format!("/api/agents/{agent}/sessions"),
            json!({ "session_type": "lesson" }),
        )
        .await;
        let path = format!(
            "/api/agents/{}/sessions/{}",
            opened["agent_id"].as_str().unwrap(),
            opened["session_id"].as_str().unwrap()
        );
        host.until(&path, is_asking).await;
        let events = host.events("").await;
        let of_session = |event: &&Value| event["data"]["session_id"] == opened["session_id"];
        let exists = of_kind(&events, "session.opened.v1")
            .into_iter()
            .find(of_session)
            .unwrap();
        let started = of_kind(&events, "agent.session.started.v1")
            .into_iter()
            .find(of_session)
            .unwrap();
        // It is referred to by its id, which is there first.
        assert!(
            exists["position"].as_u64() < started["position"].as_u64(),
            "{exists} {started}"
        );
        assert_eq!(exists["data"]["user_id"], "local");
        for named in [
            &exists["data"]["conversation_id"],
            &started["data"]["conversation_id"],
        ] {
            assert_eq!(named, &opened["conversation_id"]);
        }
        // What else its event says.
        shows(
            started,
            &json!({ "data/session_type": "lesson", "agent_id": opened["agent_id"] }),
        );
        assert!(is_time(&started["data"]["started_at"]), "{started}");
        let current = format!(
            "/api/agents/{}/sessions/current",
            opened["agent_id"].as_str().unwrap()
        );
        host.delete(&current).gives(200).await;
        let ended = host.becomes(&path, "terminated").await;
        assert_eq!(
            ended["conversation_id"], opened["conversation_id"],
            "it stays the same to the end"
        );
        conversations.insert(opened["conversation_id"].as_str().unwrap().to_owned());
        assert_eq!(conversations.len(), nth + 1, "no two sessions share one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_of_a_session_names_the_one_agent_that_drives_it_and_it_never_moves() {
    let asks = json!([{ "start": [{ "key": "q", "client": "confirmation" }] }, { "complete": {} }]);
    // Hands work to another agent and asks its client meanwhile, so that three agents are at work
    // in one matter.
    let work = json!({ "steps": [{ "reply": "done" }] }).to_string();
    let hands_over = json!([
        {
            "start": [
                { "key": "d", "agent": "works", "text": work },
                { "key": "q", "client": "confirmation" },
            ],
            "until": "all",
        },
        { "complete": { "over": true } },
    ]);
    let works = json!({ "agentId": "works", "displayName": "works", "component": "puppet" });
    let (folder, host) = serving(&json!([
        acting("asks", &asks),
        acting("leads", &hands_over),
        works
    ]))
    .await;
    let mut drives = BTreeMap::new();
    for (agent, kind) in [("asks", "lesson"), ("leads", "lesson"), ("works", "chat")] {
        let opened = post(
            &host,
            &format!("/api/agents/{agent}/sessions"),
            json!({ "session_type": kind }),
        )
        .await;
        let text = |name: &str| opened[name].as_str().unwrap().to_owned();
        drives.insert(text("session_id"), (text("agent_id"), kind));
    }
    for (session, (agent, kind)) in &drives {
        let path = format!("/api/agents/{agent}/sessions/{session}");
        // No other agent has it, nor takes what is meant for it.
        for (other, _) in drives.values().filter(|(other, _)| other != agent) {
            let elsewhere = format!("/api/agents/{other}/sessions/{session}");
            assert_eq!(host.get(&elsewhere).await.text("code"), "SESSION_NOT_FOUND");
            host.post(
                &format!("{elsewhere}/messages"),
                &json!({ "content": "hello" }),
            )
            .refused(404, "SESSION_NOT_FOUND")
            .await;
        }
        if *kind == "chat" {
            post(
                &host,
                &format!("{path}/messages"),
                json!({ "content": work }),
            )
            .await;
            host.until(&path, |seen| seen["messages"].to_string().contains("done"))
                .await;
            continue;
        }
        let seen = host.until(&path, is_asking).await;
        let call = &seen["ui_state"]["active_widget"]["tool_call_id"];
        post(
            &host,
            &format!("/api/agents/{agent}/respond"),
            json!({ "tool_call_id": call, "response": { "confirmed": true } }),
        )
        .await;
    }
    // Also those that agents begin with each other.
    for (session, (agent, kind)) in &drives {
        let path = format!("/api/agents/{agent}/sessions/{session}");
        host.until(&path, |seen| {
            *kind == "chat" || seen["status"] == "completed"
        })
        .await;
    }
    host.kill().await;
    let host = folder.serve().await;
    let events = host.events("").await;
    let mut agents: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in &events {
        if let Some(session) = event["session_id"].as_str() {
            let agent = event["agent_id"]
                .as_str()
                .unwrap_or_else(|| panic!("an event of a session says whose it is: {event}"));
            agents.entry(session).or_default().insert(agent);
        }
    }
    let settled: Vec<&Value> = events
        .iter()
        .map(|event| &event["data"]["settled"])
        .filter(|settled| settled.is_array())
        .collect();
    assert!(
        agents.len() > drives.len(),
        "the work that was handed over has a session of its own: {settled:?}"
    );
    assert!(
        agents.values().all(|agents| agents.len() == 1),
        "{agents:?}"
    );
    for (session, (agent, _)) in &drives {
        assert_eq!(agents[session.as_str()], BTreeSet::from([agent.as_str()]));
        let opened = of_kind(&events, "session.opened.v1")
            .into_iter()
            .filter(|event| event["session_id"] == json!(session))
            .count();
        let runs = of_kind(&events, "run.started.v1")
            .into_iter()
            .filter(|event| event["session_id"] == json!(session))
            .count();
        assert!(
            opened == 1 && runs > 0,
            "{session}: opened {opened} times, {runs} runs"
        );
    }
}
