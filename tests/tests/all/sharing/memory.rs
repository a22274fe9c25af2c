//! The sight and memory of a shared agent: asked of the agent itself, in each of the four
//! scenarios.

use super::{Team, team};
use agent_host_tests::patience::found;
use agent_host_tests::process::{Folder, Line, Session, puppets, shows};
use serde_json::{Value, json};

/// Returns the agent's last message in a session, once the session satisfies `is`.
async fn last_words(line: &Line, path: &str, is: impl Fn(&Value) -> bool) -> String {
    found(async || {
        let seen = line.get(path).await.body;
        let mut messages = seen["messages"].as_array().into_iter().flatten().rev();
        let words = messages.find(|message| message["role"] == "assistant")?;
        is(&seen).then(|| words["text"].as_str().unwrap().to_owned())
    })
    .await
}

/// The question that waits in a session.
async fn question(line: &Line, path: &str) -> String {
    let question = line.question(path).await;
    question["tool_call_id"].as_str().unwrap().to_owned()
}

fn has_history(seen: &Value) -> bool {
    seen["run_id"].is_null() && seen["messages"].to_string().contains("history")
}

impl Team {
    /// Opens a chat of a user's; its path.
    async fn open(&self, line: &Line) -> Session {
        line.open_as(&self.agent, "chat").await
    }

    /// Has a user tell the agent in a chat what to do.
    async fn tell(&self, line: &Line, path: &str, steps: &Value) {
        line.play(path, steps).await;
    }

    /// Opens a chat of a user's, in which they tell the agent what to do.
    async fn plays(&self, line: &Line, steps: &Value) -> Session {
        let path = self.open(line).await;
        self.tell(line, &path, steps).await;
        path
    }

    /// Returns the agent's view in a turn for this user.
    async fn seen_by_agent(&self, line: &Line) -> Value {
        let path = self.open(line).await;
        self.seen_in(line, &path).await
    }

    /// Returns the agent's view in a turn for this user in a chat that is new.
    async fn seen_in(&self, line: &Line, path: &str) -> Value {
        self.tell(line, path, &json!([{ "show": true }])).await;
        serde_json::from_str(&last_words(line, path, has_history).await).unwrap()
    }

    /// Leads a structured session of a user's, on a topic, in which the agent remembers something.
    async fn lesson(&self, line: &Line, topic: &str, effects: &Value) {
        let path = line.open_as(&self.agent, "lesson").await;
        let steps = json!([{ "complete": { "topic": topic }, "effects": effects }]);
        line.play(&path, &steps).await;
        last_words(line, &path, |seen| seen["status"] == "completed").await;
    }

    /// The events of one type in the agent's stream.
    async fn events(&self, kind: &str) -> Vec<Value> {
        let id = self.agent.rsplit('/').next().unwrap();
        let events = self.host.events(&format!("&agent={id}")).await;
        let events = events.into_iter();
        events.filter(|event| event["type"] == kind).collect()
    }
}

/// Returns the users of the sessions that an agent sees, with their topics, the latest first.
fn history(seen: &Value) -> Vec<(&str, &str)> {
    let past = seen["history"].as_array().unwrap().iter();
    past.map(|past| {
        (
            past["user_id"].as_str().unwrap(),
            past["summary"]["topic"].as_str().unwrap(),
        )
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coach_remembers_the_teams_context_and_of_each_member_what_is_theirs() {
    let team = team().await;
    team.assign("bob", "shared").await;
    team.assign("carol", "shared").await;
    let hers = json!([
        { "prefer": { "goal": "ship in May" } }, { "prefer_for_user": { "style": "brief" } },
    ]);
    team.lesson(&team.alice, "goals", &hers).await;
    let seen = team.seen_by_agent(&team.bob).await;
    shows(
        &seen,
        &json!({ "user": "bob", "preferences": { "goal": "ship in May" } }),
    );
    assert_eq!(history(&seen), [("alice", "goals")]);
    team.lesson(
        &team.bob,
        "risks",
        &json!([{ "prefer": { "goal": "ship in June" } }]),
    )
    .await;
    let seen = team.seen_by_agent(&team.alice).await;
    assert_eq!(
        seen["preferences"],
        json!({ "goal": "ship in June", "style": "brief" })
    );
    assert_eq!(
        seen["shared"],
        json!({ "goal": "ship in June" }),
        "what is hers is told apart"
    );
    assert_eq!(history(&seen), [("bob", "risks"), ("alice", "goals")]);
    let seen = team.seen_by_agent(&team.carol).await;
    let expected = json!({
        "preferences": { "goal": "ship in June" }, "shared": { "goal": "ship in June" },
    });
    shows(&seen, &expected);
    assert_eq!(history(&seen), [("bob", "risks"), ("alice", "goals")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mentee_has_the_mentors_context_and_what_they_do_is_between_them_and_the_mentor() {
    let team = team().await;
    team.assign("bob", "mentee").await;
    team.assign("carol", "mentee").await;
    let hers =
        json!([{ "prefer": { "method": "socratic" } }, { "prefer_for_user": { "level": 9 } }]);
    team.lesson(&team.alice, "the mentors own", &hers).await;
    let seen = team.seen_by_agent(&team.bob).await;
    assert_eq!(
        seen["preferences"],
        json!({ "method": "socratic" }),
        "what the agent learned of the matter, and not of her"
    );
    assert!(history(&seen).is_empty(), "{seen}");
    let his = json!([
        { "prefer": { "method": "drill", "weak": "fractions" } },
        { "prefer_for_user": { "level": 1 } },
    ]);
    team.lesson(&team.bob, "bobs own", &his).await;
    let seen = team.seen_by_agent(&team.bob).await;
    assert_eq!(
        seen["preferences"],
        json!({ "method": "drill", "weak": "fractions", "level": 1 })
    );
    assert_eq!(seen["shared"], json!({ "method": "socratic" }));
    assert_eq!(history(&seen), [("bob", "bobs own")]);
    // None of it reaches another mentee or the preferences for all; the mentor can review it.
    let seen = team.seen_by_agent(&team.carol).await;
    assert_eq!(
        (&seen["preferences"], history(&seen)),
        (&json!({ "method": "socratic" }), Vec::new())
    );
    let seen = team.seen_by_agent(&team.alice).await;
    assert_eq!(
        seen["preferences"],
        json!({ "method": "socratic", "level": 9 })
    );
    assert_eq!(
        history(&seen),
        [("bob", "bobs own"), ("alice", "the mentors own")]
    );
    let of: Vec<Value> = team
        .events("agent.preferences.updated.v1")
        .await
        .iter()
        .map(|event| event["data"]["user_id"].clone())
        .collect();
    assert_eq!(
        of,
        [Value::Null, json!("alice"), json!("bob"), json!("bob")],
        "the record says of whom it is remembered"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_speaks_in_a_mentees_chat_sees_no_lesson_of_another_mentee_there() {
    let team = team().await;
    team.assign("bob", "mentee").await;
    team.assign("carol", "mentee").await;
    for (line, topic) in [(&team.bob, "bobs own"), (&team.carol, "carols own")] {
        team.lesson(line, topic, &json!([])).await;
    }
    let all = [("carol", "carols own"), ("bob", "bobs own")];
    for (whose, expected) in [(&team.bob, &all[1..]), (&team.alice, &all[..])] {
        let chat = team.open(whose).await;
        let seen = team.seen_in(&team.alice, &chat).await;
        assert_eq!(seen["user"], "alice", "{seen}");
        assert_eq!(history(&seen), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_becomes_a_mentee_while_a_turn_waits_is_one_when_it_goes_on() {
    let team = team().await;
    team.assign("bob", "shared").await;
    team.lesson(&team.alice, "goals", &json!([])).await;
    let steps = json!([
        {
            "start": [{ "key": "q", "client": "confirmation" }],
            "effects": [{ "prefer": { "before": 1 } }],
        },
        { "show": true, "effects": [{ "prefer": { "after": 2 } }] },
    ]);
    let path = team.plays(&team.bob, &steps).await;
    let call = question(&team.bob, &path).await;
    team.alice
        .put(
            &format!("{}/assignments/bob", team.agent),
            &json!({ "role": "mentee" }),
        )
        .gives(200)
        .await;
    let answer = json!({ "tool_call_id": call, "response": { "confirmed": true } });
    team.bob
        .post(&format!("{}/respond", team.agent), &answer)
        .gives(202)
        .await;
    let seen: Value =
        serde_json::from_str(&last_words(&team.bob, &path, has_history).await).unwrap();
    assert_eq!(
        (&seen["shared"], history(&seen)),
        (&json!({ "before": 1 }), Vec::new())
    );
    let seen = team.seen_by_agent(&team.bob).await;
    shows(
        &seen,
        &json!({ "shared": { "before": 1 }, "preferences": { "before": 1, "after": 2 } }),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_leaves_no_trace_in_what_a_students_agent_sees() {
    let team = team().await;
    let hers =
        json!([{ "prefer": { "method": "socratic" } }, { "prefer_for_user": { "level": 2 } }]);
    team.lesson(&team.alice, "sums", &hers).await;
    let before = team.seen_by_agent(&team.alice).await;
    team.assign("dana", "observer").await;
    let sessions = team
        .dana
        .get(&format!("{}/sessions", team.agent))
        .await
        .body["sessions"]
        .as_array()
        .unwrap()
        .clone();
    let names: [(&str, &str); 2] = [
        ("{agent}", &team.agent),
        ("{session}", sessions[0]["session_id"].as_str().unwrap()),
    ];
    let rows = [
        r#"POST {agent}/sessions {"session_type":"lesson"} => 403 ROLE_FORBIDS"#,
        r#"POST {agent}/sessions/{session}/messages {"content":"x"} => 403 ROLE_FORBIDS"#,
        r#"PATCH {agent}/preferences {"mine":{"level":1}} => 403 ROLE_FORBIDS"#,
        r#"PATCH {agent}/preferences {"preferences":{"level":1}} => 403 ROLE_FORBIDS"#,
    ];
    team.dana.answers(&names, &rows).await;
    let after = team.seen_by_agent(&team.alice).await;
    assert_eq!(after, before);
    assert_eq!(
        (history(&after), &after["preferences"]["level"]),
        (vec![("alice", "sums")], &json!(2))
    );
    // The instructor sees the record, and of the agent's memory only the part for all users.
    let seen = team
        .dana
        .get(&format!("{}/preferences", team.agent))
        .await
        .body;
    shows(
        &seen,
        &json!({ "preferences": { "method": "socratic" }, "mine": {} }),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_has_the_whole_context_of_whoever_handed_the_agent_over() {
    let team = team().await;
    team.assign("bob", "shared").await;
    let hers = json!([
        { "prefer": { "company": "ACME" } },
        { "prefer_for_user": { "style": "brief", "client": "Wile E." } },
    ]);
    team.lesson(&team.alice, "company context", &hers).await;
    team.lesson(
        &team.bob,
        "a first look",
        &json!([{ "prefer_for_user": { "style": "long" } }]),
    )
    .await;
    team.alice
        .post(
            &format!("{}/handoff", team.agent),
            &json!({ "user_id": "bob" }),
        )
        .gives(200)
        .await;
    let seen = team.seen_by_agent(&team.bob).await;
    assert_eq!(
        seen["preferences"],
        json!({ "company": "ACME", "style": "long", "client": "Wile E." }),
        "his own style stays his"
    );
    assert_eq!(seen["shared"], json!({ "company": "ACME" }));
    assert_eq!(
        history(&seen),
        [("bob", "a first look"), ("alice", "company context")]
    );
    let transferred = team.events("agent.preferences.transferred.v1").await;
    assert_eq!(transferred.len(), 1);
    let data = &transferred[0]["data"];
    shows(data, &json!({ "from_user_id": "alice", "user_id": "bob" }));
    shows(
        data,
        &json!({ "preferences": { "client": "Wile E." }, "left_behind": [] }),
    );
    // Of her nothing is remembered any more, also when she comes back.
    team.bob.assign(&team.agent, "alice", "shared").await;
    let seen = team.seen_by_agent(&team.alice).await;
    assert_eq!(seen["preferences"], json!({ "company": "ACME" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_hands_an_agent_over_and_keeps_a_role_is_not_forgotten() {
    let team = team().await;
    team.lesson(
        &team.alice,
        "goals",
        &json!([{ "prefer_for_user": { "style": "brief" } }]),
    )
    .await;
    let handed = json!({ "user_id": "bob", "keep": "shared" });
    team.alice
        .post(&format!("{}/handoff", team.agent), &handed)
        .gives(200)
        .await;
    for line in [&team.alice, &team.bob] {
        assert_eq!(
            team.seen_by_agent(line).await["preferences"],
            json!({ "style": "brief" })
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tutor_remembers_lessons_for_the_team_and_learners_for_themselves() {
    let lesson = json!({
        "title": "Sums", "questions": [{ "prompt": "1 + 1?", "options": ["2", "3"], "answer": 0 }],
    });
    let tutor = json!({
        "agentId": "tutor", "displayName": "Tutor", "component": "tutor", "toolAllowlist": [],
        "settings": { "lesson": lesson },
    });
    let (_folder, host) = Folder::serving(puppets(&json!([tutor])), &["puppet", "tutor"]).await;
    let alice = host.user("alice", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write"]).await;
    let agent = alice.make("tutor").await;
    alice.assign(&agent, "bob", "mentee").await;
    for (line, title) in [(&alice, "Sums"), (&bob, "Bobs sums")] {
        let mut own = lesson.clone();
        own["title"] = json!(title);
        let opened = json!({ "session_type": "learning", "config": { "lesson": own } });
        let opened = line.post(&format!("{agent}/sessions"), &opened).await;
        let path = format!("{agent}/sessions/{}", opened.text("session_id"));
        let call = question(line, &path).await;
        line.post(
            &format!("{agent}/respond"),
            &json!({ "tool_call_id": call, "response": { "index": 0 } }),
        )
        .await;
        last_words(line, &path, |seen| seen["status"] == "completed").await;
    }
    let kept = alice.get(&format!("{agent}/preferences")).await.body;
    let titles: Vec<&Value> = kept["preferences"]["taught"]
        .as_array()
        .unwrap()
        .iter()
        .map(|taught| &taught["title"])
        .collect();
    assert_eq!(
        titles,
        [&json!("Sums")],
        "what a mentee did is not everybody's: {kept}"
    );
    shows(
        &kept,
        &json!({ "mine/lessons": 1, "preferences/lessons": null }),
    );
    let kept = bob.get(&format!("{agent}/preferences")).await.body;
    shows(
        &kept,
        &json!({ "mine/lessons": 1, "mine/last_lesson/title": "Bobs sums" }),
    );
}
