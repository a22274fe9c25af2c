//! Agents with several users, over HTTP: the four scenarios of design S0, section 12, and the role
//! matrix on everything that is read, written and streamed. What the agent sees and remembers in
//! them is in `memory`.

mod memory;

use agent_host_tests::patience::found;
use agent_host_tests::process::{Folder, Host, Line, PATIENCE, puppet, puppets, shows, tells};
use serde_json::json;

struct Team {
    host: Host,
    alice: Line,
    bob: Line,
    carol: Line,
    dana: Line,
    /// Alice's puppet.
    agent: String,
    _folder: Folder,
}

/// Four users, and an agent of Alice's.
async fn team() -> Team {
    let (folder, host) = Folder::serving(puppets(&json!([puppet()])), &["puppet"]).await;
    let scopes = ["read", "write"];
    let alice = host.user("alice", &scopes).await;
    let bob = host.user("bob", &scopes).await;
    let carol = host.user("carol", &scopes).await;
    let dana = host.user("dana", &scopes).await;
    let made = alice
        .post("/api/agents", &json!({ "definition": "puppet" }))
        .gives(201)
        .await;
    Team {
        agent: format!("/api/agents/{}", made.text("id")),
        host,
        alice,
        bob,
        carol,
        dana,
        _folder: folder,
    }
}

impl Team {
    async fn assign(&self, user: &str, role: &str) {
        self.alice.assign(&self.agent, user, role).await;
    }

    /// Begins a session of a user's, in which a message is sent and answered.
    async fn exchange(&self, line: &Line, words: &str) -> String {
        let session = line.open_as(&self.agent, "chat").await.id().to_owned();
        self.say(line, &session, words).await;
        session
    }

    async fn say(&self, line: &Line, session: &str, words: &str) {
        let path = format!("{}/sessions/{session}", self.agent);
        line.play(&path, &json!([{ "reply": words }])).await;
        let said = format!("\"{words}\"");
        line.until(&path, |seen| seen["messages"].to_string().contains(&said))
            .await;
    }

    async fn sessions(&self, line: &Line) -> Vec<String> {
        let listed = line
            .get(&format!("{}/sessions", self.agent))
            .gives(200)
            .await;
        let mut ids: Vec<String> = listed.body["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["session_id"].as_str().unwrap().into())
            .collect();
        ids.sort();
        ids
    }
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_shares_a_coach_and_sees_all_of_its_sessions() {
    let team = team().await;
    for member in ["bob", "carol"] {
        team.assign(member, "shared").await;
    }
    // A search for the agent by its type finds the team's.
    let found = team.bob.get("/api/agents?agent_type=puppet").await;
    assert_eq!(
        format!(
            "/api/agents/{}",
            found.body["agents"][0]["id"].as_str().unwrap()
        ),
        team.agent
    );
    assert_eq!(found.body["agents"][0]["role"], "shared");
    let hers = team.exchange(&team.alice, "alices goal").await;
    let his = team.exchange(&team.bob, "bobs goal").await;
    for member in [&team.alice, &team.bob, &team.carol] {
        assert_eq!(
            team.sessions(member).await,
            sorted(vec![hers.clone(), his.clone()])
        );
    }
    // A member may join in.
    team.say(&team.carol, &his, "carol joins").await;
    // And may not do what takes the role primary.
    let names = [("{agent}", &*team.agent)];
    let forbidden = [
        "POST {agent}/archive {} => 403 ROLE_FORBIDS",
        r#"POST {agent}/assign {"user_id":"eve","role":"shared"} => 403 ROLE_FORBIDS"#,
        r#"POST {agent}/handoff {"user_id":"eve"} => 403 ROLE_FORBIDS"#,
        r#"PUT {agent}/assignments/alice {"role":"observer"} => 403 ROLE_FORBIDS"#,
        r#"PATCH {agent} {"name":"mine"} => 403 ROLE_FORBIDS"#,
        r#"PATCH {agent}/preferences {"preferences":{"a":1}} => 403 ROLE_FORBIDS"#,
    ];
    team.bob.answers(&names, &forbidden).await;
    // Preferences of their own are theirs.
    let path = format!("{}/preferences", team.agent);
    let mine = json!({ "mine": { "a": 1 } });
    let kept = team.bob.patch(&path, &mine).await;
    kept.has(200, &json!({ "mine": { "a": 1 } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mentor_reviews_what_mentees_do_and_mentees_see_their_own() {
    let team = team().await;
    team.assign("bob", "mentee").await;
    team.assign("carol", "mentee").await;
    let hers = team.exchange(&team.alice, "the mentors secret").await;
    let bobs = team.exchange(&team.bob, "bobs first step").await;
    let carols = team.exchange(&team.carol, "carols first step").await;
    assert_eq!(
        team.sessions(&team.alice).await,
        sorted(vec![hers.clone(), bobs.clone(), carols.clone()])
    );
    assert_eq!(team.sessions(&team.bob).await, [bobs.as_str()]);
    for other in [&hers, &carols] {
        let names: [(&str, &str); 2] = [("{agent}", &team.agent), ("{other}", other)];
        let hidden = [
            "GET {agent}/sessions/{other} => 404 SESSION_NOT_FOUND",
            "GET {agent}/stream?session={other} => 404 SESSION_NOT_FOUND",
            "GET /api/sessions/{other} => 404",
            "GET /api/session/{other} => 404",
            r#"POST {agent}/sessions/{other}/messages {"content":"x"} => 404"#,
            "POST {agent}/sessions/{other}/cancel {} => 404",
        ];
        team.bob.answers(&names, &hidden).await;
    }
    // Nor do they learn who else is there.
    let seen = team.bob.get(&team.agent).await.body;
    assert_eq!(seen["assignments"].as_array().unwrap().len(), 1, "{seen}");
    // Or how much they do.
    let hers = team.alice.get(&team.agent).await.body;
    for counts in [
        "total_sessions",
        "total_interactions",
        "successful_completions",
        "last_interaction_at",
    ] {
        assert!(seen[counts].is_null(), "{seen}");
    }
    assert!(hers["total_sessions"].is_u64(), "{hers}");
    // The operator's lists are not theirs at all.
    let lists = [
        "GET /api/events => 403",
        "GET /api/audit => 403",
        "GET /api/dead-letters => 403",
        "GET /api/components => 403",
    ];
    team.bob.answers(&[], &lists).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_recalls_for_a_mentee_what_comes_from_their_own_sessions_alone() {
    let team = team().await;
    team.assign("bob", "mentee").await;
    team.assign("carol", "shared").await;
    team.exchange(&team.alice, "the zebra of alice").await;
    team.exchange(&team.bob, "the zebra of bob").await;
    let script =
        json!({ "steps": [{ "start": [{ "key": "found", "recall": "zebra" }] }] }).to_string();
    for (line, others) in [(&team.bob, false), (&team.carol, true), (&team.alice, true)] {
        let session = team.exchange(line, "hello").await;
        let path = format!("{}/sessions/{session}", team.agent);
        line.say(&path, &script).await;
        let found = found(async || {
            let messages = line.get(&path).await.body["messages"].to_string();
            messages.contains("found value").then_some(messages)
        })
        .await;
        tells(&found, &["zebra of bob"]);
        assert_eq!(found.contains("zebra of alice"), others, "{found}");
    }
}

/// An agent that was handed over is not one's own any more, and another one takes its place.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_handed_over_is_not_ones_own_any_more_and_another_takes_its_place() {
    let team = team().await;
    let open = |line: &Line| line.post("/api/agents/puppet/sessions", &json!({}));
    let first = open(&team.alice).await.text("agent_id");
    assert_eq!(
        format!("/api/agents/{first}"),
        team.agent,
        "hers, where it lives by default"
    );
    team.alice
        .post(
            &format!("{}/handoff", team.agent),
            &json!({ "user_id": "bob" }),
        )
        .gives(200)
        .await;
    let second = open(&team.alice).gives(201).await;
    let second = second.text("agent_id");
    assert!(
        second != first && open(&team.alice).await.text("agent_id") == second,
        "another one, and then that"
    );
    let path = team
        .alice
        .get(&format!("/api/agents/{second}"))
        .await
        .text("path");
    assert_eq!(path, "/alice/agent/puppet.2");
    let bobs = open(&team.bob).await.text("agent_id");
    assert!(
        bobs != first && bobs != second,
        "what was handed to him is no default of his"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_removed_while_they_write_has_written_before_that_or_not_at_all() {
    let team = team().await;
    let removal = format!("{}/assignments/bob", team.agent);
    for round in 0..40 {
        team.assign("bob", "shared").await;
        let path = format!("{}/sessions", team.agent);
        let body = json!({ "session_type": "chat" });
        let write = team.bob.post(&path, &body);
        let (written, removed) = tokio::join!(write, team.alice.delete(&removal));
        assert_eq!(removed.status, 200);
        assert!([201, 404].contains(&written.status), "round {round}");
    }
    let id = team.agent.rsplit('/').next().unwrap();
    let events = team
        .host
        .get(&format!("/api/events?agent={id}&limit=1000"))
        .await
        .body;
    let mut is_there = false;
    for event in events["events"].as_array().unwrap() {
        match event["type"].as_str().unwrap() {
            "agent.user.assigned.v1" => is_there = true,
            "agent.user.unassigned.v1" => is_there = false,
            "session.opened.v1" => assert!(is_there, "{event}"),
            _ => {}
        }
    }
}

/// A mentee's stream has their own sessions, also after the fact, and ends with their role.
#[tokio::test(flavor = "multi_thread")]
async fn a_mentees_stream_has_their_own_past_sessions_too_and_ends_with_their_role() {
    let team = team().await;
    team.assign("bob", "mentee").await;
    let path = format!("{}/stream?view=log", team.agent);
    let mut live = team.bob.follow(&path, None).await.unwrap();
    team.exchange(&team.alice, "the mentors secret").await;
    let bobs = team.exchange(&team.bob, "bobs first step").await;
    let seen = live.until("session.turn.committed.v1").await;
    let mut after = team
        .bob
        .follow(&format!("{path}&after=0"), None)
        .await
        .unwrap();
    let again = after.until("session.turn.committed.v1").await;
    for frames in [&seen, &again] {
        assert!(!frames.is_empty());
        for frame in frames
            .iter()
            .filter(|frame| frame.data["session_id"].is_string())
        {
            assert_eq!(frame.data["session_id"], bobs.as_str(), "{frame:?}");
        }
        assert!(!format!("{frames:?}").contains("secret"));
    }
    // Whether other users come is not theirs to know either; their own removal ends the stream.
    team.assign("carol", "shared").await;
    team.alice
        .delete(&format!("{}/assignments/bob", team.agent))
        .gives(200)
        .await;
    team.exchange(&team.alice, "after he left").await;
    let rest = async {
        let mut rest = Vec::new();
        while let Some(frame) = live.receive().await {
            rest.push(frame);
        }
        rest
    };
    let rest = tokio::time::timeout(PATIENCE, rest)
        .await
        .expect("an end of the stream");
    assert!(
        !format!("{rest:?}").contains("carol") && !format!("{rest:?}").contains("after he left"),
        "{rest:?}"
    );
    team.bob.get(&team.agent).gives(404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instructor_observes_and_does_not_interact() {
    let team = team().await;
    team.assign("dana", "observer").await;
    let session = team.exchange(&team.alice, "a students work").await;
    assert_eq!(team.sessions(&team.dana).await, [session.as_str()]);
    let seen = team
        .dana
        .get(&format!("{}/sessions/{session}", team.agent))
        .await;
    assert!(
        seen.body["messages"]
            .to_string()
            .contains("a students work")
    );
    let mut stream = team
        .dana
        .follow(&format!("{}/stream?view=log&after=0", team.agent), None)
        .await
        .unwrap();
    stream.until("session.turn.committed.v1").await;
    let names: [(&str, &str); 2] = [("{agent}", &team.agent), ("{session}", &session)];
    let forbidden = [
        "POST {agent}/sessions {} => 403 ROLE_FORBIDS",
        r#"POST {agent}/sessions/{session}/messages {"content":"x"} => 403 ROLE_FORBIDS"#,
        "POST {agent}/sessions/{session}/cancel {} => 403 ROLE_FORBIDS",
        "POST {agent}/archive {} => 403 ROLE_FORBIDS",
    ];
    team.dana.answers(&names, &forbidden).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_handed_over_with_all_that_it_knows() {
    let team = team().await;
    let session = team.exchange(&team.alice, "company context").await;
    team.alice
        .delete(&format!("{}/assignments/alice", team.agent))
        .refused(409, "LAST_PRIMARY")
        .await;
    team.alice
        .post(
            &format!("{}/handoff", team.agent),
            &json!({ "user_id": "bob" }),
        )
        .gives(200)
        .await;
    assert_eq!(
        team.alice.get(&team.agent).await.status,
        404,
        "what is not yours is not there"
    );
    let seen = team.bob.get(&team.agent).await;
    shows(
        &seen.body,
        &json!({ "role": "primary", "owner_user_id": "alice" }),
    );
    assert_eq!(team.sessions(&team.bob).await, [session]);
    // The successor archives it and starts afresh: the old one stays for the record, and takes
    // nothing.
    let archived = team
        .bob
        .post(
            &format!("{}/archive", team.agent),
            &json!({ "fresh": true, "reason": "new year" }),
        )
        .gives(200)
        .await;
    let old = &archived.body["archived"];
    let new = &archived.body["fresh"];
    shows(
        old,
        &json!({ "status": "archived", "archive_reason": "new year" }),
    );
    assert_eq!(
        (new["path"].clone(), new["status"].as_str()),
        (old["path"].clone(), Some("active"))
    );
    assert_ne!(new["id"], old["id"]);
    let archived = [
        "POST {agent}/sessions {} => 409 AGENT_ARCHIVED",
        "POST {agent}/archive {} => 409 AGENT_ARCHIVED",
        r#"POST {agent}/assign {"user_id":"eve","role":"shared"} => 409 AGENT_ARCHIVED"#,
        "GET {agent} => 200",
    ];
    team.bob
        .answers(&[("{agent}", &*team.agent)], &archived)
        .await;
    let listed = team.bob.get("/api/agents").await;
    assert_eq!(
        listed.body["agents"].as_array().unwrap().len(),
        1,
        "archived agents do not appear: {listed:?}"
    );
    assert_eq!(
        team.bob.get("/api/agents?status=archived").await.body["agents"][0]["id"],
        old["id"]
    );
}

/// Others who take part in a chat do not take it away; whom it is for and a primary do.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_taken_away_by_whom_it_is_for_or_by_a_primary() {
    let team = team().await;
    team.assign("bob", "shared").await;
    team.assign("carol", "shared").await;
    let session = team.exchange(&team.bob, "the plan of bob").await;
    let path = format!("{}/sessions/{session}", team.agent);
    let names = [("{path}", &*path)];
    let others = [
        "DELETE {path} => 403 ROLE_FORBIDS",
        "POST {path}/clear {} => 403 ROLE_FORBIDS",
    ];
    team.carol.answers(&names, &others).await;
    team.bob
        .answers(&names, &["POST {path}/clear {} => 200"])
        .await;
    team.alice.answers(&names, &["DELETE {path} => 200"]).await;
}
