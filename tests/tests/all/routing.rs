//! One way in: a message goes to the thread, session, agent or persona that it is addressed to, or
//! to the thread on the same subject.

use agent_host_tests::patience::until;
use agent_host_tests::process::{Answer, Folder, Host, Line, PATIENCE, Reply, puppets};
use agent_host_tests::{Setup, World};
use broker::{Address, PostRouted, Routed};
use domain::message::Part;
use domain::user::UserId;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Two agents, and a persona that is for alice alone.
struct Town {
    host: Host,
    alice: Line,
    bob: Line,
    _folder: Folder,
}

async fn town() -> Town {
    let agent = |id: &str| json!({ "agentId": id, "displayName": id, "component": "puppet" });
    let mut config = puppets(&json!([agent("cook"), agent("smith")]));
    config["personas"] = json!([{
        "id": "home", "displayName": "Home", "agent": "cook", "identity": "You run a household.",
        "users": ["alice"],
    }]);
    let (folder, host) = Folder::serving(config, &["puppet"]).await;
    let scopes = ["read", "write"];
    let alice = host.user("alice", &scopes).await;
    let bob = host.user("bob", &scopes).await;
    Town {
        host,
        alice,
        bob,
        _folder: folder,
    }
}

/// Sends a message to an address, and has it repeated as the reply.
#[track_caller]
fn say(line: &Line, to: &Value, words: &str) -> Reply {
    let content = json!({ "steps": [{ "reply": words }] }).to_string();
    line.post("/api/messages", &json!({ "to": to, "content": content }))
}

/// The session as it is once its turn is over.
pub(super) async fn over(line: &Line, answer: &Answer) -> Value {
    assert_eq!(answer.status, 202, "{answer:?}");
    let path = format!("/api/sessions/{}", answer.text("session_id"));
    line.rest(&path).await
}

fn refused(answer: &Answer) -> (u16, String, String) {
    (answer.status, answer.text("code"), answer.text("field"))
}

#[tokio::test(flavor = "multi_thread")]
async fn words_go_to_the_latest_chat_with_an_agent_or_to_a_new_one() {
    let town = town().await;
    let first = say(&town.alice, &json!({ "agent": "cook" }), "first").await;
    assert_eq!(
        (first.text("level"), &first.body["is_new"]),
        ("agent".to_owned(), &json!(true))
    );
    let seen = over(&town.alice, &first).await;
    let second = say(&town.alice, &json!({ "agent": "cook" }), "second").await;
    assert_eq!(
        (second.text("session_id"), &second.body["is_new"]),
        (first.text("session_id"), &json!(false))
    );
    // By its path and its id as well; of somebody else it is somebody else's.
    let path = town
        .alice
        .get(&format!(
            "/api/agents/{}",
            seen["agent_id"].as_str().unwrap()
        ))
        .await
        .text("path");
    for name in [path, first.text("agent_id")] {
        assert_eq!(
            say(&town.alice, &json!({ "agent": name }), "again")
                .await
                .text("session_id"),
            first.text("session_id")
        );
        assert_eq!(
            refused(&say(&town.bob, &json!({ "agent": name }), "again").await).1,
            "AGENT_NOT_FOUND"
        );
    }
    let bobs = say(&town.bob, &json!({ "agent": "cook" }), "mine").await;
    assert_ne!(bobs.text("agent_id"), first.text("agent_id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_chats_the_one_updated_last_takes_words_whatever_is_pinned() {
    let town = town().await;
    let alice = &town.alice;
    let ask = async |method: Method, path: String, body: Value| {
        let body = Some(&body).filter(|body| !body.is_null());
        let answer = alice.ask(method, &path, body).await;
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer
    };
    let goes_to = async |to: Value| {
        sleep(Duration::from_millis(5)).await;
        let said = say(alice, &to, "soup").await;
        over(alice, &said).await;
        said
    };
    let cook = || json!({ "agent": "cook" });
    let first = goes_to(cook()).await;
    let older = first.text("session_id");
    let sessions = format!("/api/agents/{}/sessions", first.text("agent_id"));
    let older_path = format!("{sessions}/{older}");
    ask(Method::PATCH, older_path.clone(), json!({ "pinned": true })).await;
    sleep(Duration::from_millis(5)).await;
    let chat = json!({ "session_type": "chat" });
    let newer = ask(Method::POST, sessions.clone(), chat)
        .await
        .text("session_id");
    assert_eq!(
        goes_to(cook()).await.text("session_id"),
        newer,
        "no pin counts"
    );
    // Words to the older one make it the one updated last.
    goes_to(json!({ "session": older })).await;
    assert_eq!(goes_to(cook()).await.text("session_id"), older);
    // One that was deleted takes none, and without any there is a new one.
    ask(Method::DELETE, older_path, Value::Null).await;
    assert_eq!(goes_to(cook()).await.text("session_id"), newer);
    ask(Method::DELETE, format!("{sessions}/{newer}"), Value::Null).await;
    let fresh = goes_to(cook()).await;
    assert_eq!(fresh.body["is_new"], true, "{fresh:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_it_gets_the_reply_to_an_addressed_message() {
    let town = town().await;
    let ask = |query: &str| {
        let words = json!({ "steps": [{ "reply": "soup" }] }).to_string();
        let body = json!({ "to": { "agent": "cook" }, "content": words });
        let path = format!("/api/messages{query}");
        town.alice.post(&path, &body)
    };
    let said = ask("?wait_s=30").await;
    said.has(200, &json!({ "outcome": "replied" }));
    assert_eq!(said.body["reply"]["text"], "soup", "{said:?}");
    ask("?wait_s=61").refused(400, "INVALID_QUERY").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_reply_is_shown_the_question_that_the_turn_waits_with() {
    let town = town().await;
    let steps = json!({
        "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }, { "reply": "thanks" }],
    });
    let content = steps.to_string();
    let ask = async |path: &str, body: Value| {
        let asking = town.alice.post(path, &body);
        let asked = tokio::time::timeout(PATIENCE, asking).await;
        asked.expect("an answer before the time to wait")
    };
    let to = json!({ "agent": "cook" });
    let addressed = ask(
        "/api/messages?wait_s=60",
        json!({ "to": to, "content": content }),
    )
    .await;
    let agent = format!("/api/agents/{}", addressed.text("agent_id"));
    let session = format!("{agent}/sessions/{}", addressed.text("session_id"));
    let seen = town.alice.get(&session).await;
    assert_eq!(
        addressed.body["pending_action"], seen.body["pending_action"],
        "{addressed:?}"
    );
    let question = &addressed.body["pending_action"];
    assert_eq!(question["widget_type"], "confirmation", "{addressed:?}");
    let answer =
        json!({ "tool_call_id": question["tool_call_id"], "response": { "confirmed": true } });
    let answered = ask(&format!("{agent}/respond"), answer).await;
    assert_eq!(answered.status, 202, "{answered:?}");
    over(&town.alice, &addressed).await;
    let in_session = ask(
        &format!("{session}/messages?wait_s=60"),
        json!({ "content": content }),
    )
    .await;
    let next = &in_session.body["pending_action"];
    assert_eq!(next["widget_type"], "confirmation", "{in_session:?}");
    assert_ne!(next["tool_call_id"], question["tool_call_id"]);
    for waiting in [&addressed, &in_session] {
        assert_eq!(waiting.status, 202, "{waiting:?}");
        assert_eq!(waiting.body["outcome"], Value::Null, "{waiting:?}");
    }
}

/// Words wait as they say wherever they are addressed to, and a directive sets the queue there.
#[tokio::test(flavor = "multi_thread")]
async fn words_wait_as_they_say_wherever_addressed_and_a_directive_sets_that_queue() {
    let town = town().await;
    let first = say(&town.alice, &json!({ "agent": "cook" }), "first").await;
    assert_eq!(first.text("waits_for"), "steer");
    over(&town.alice, &first).await;
    let ask = |content: &str, queue: Value, priority: Value| {
        let body = json!({
            "to": { "agent": "cook" }, "content": content, "queue": queue, "priority": priority,
        });
        town.alice.post("/api/messages", &body)
    };
    let words = json!({ "steps": [{ "reply": "second" }] }).to_string();
    let second = ask(
        &words,
        json!({ "mode": "follow-up", "debounce_ms": "1ms" }),
        json!("high"),
    )
    .await;
    second.has(
        202,
        &json!({ "waits_for": "followup", "session_id": first.text("session_id") }),
    );
    assert_eq!(over(&town.alice, &second).await["last_snippet"], "second");
    let set = ask("/queue collect cap:5", Value::Null, Value::Null).await;
    assert_eq!(
        (
            set.status,
            &set.body["queue"]["settings"]["mode"],
            &set.body["input_id"]
        ),
        (202, &json!("collect"), &Value::Null),
        "{set:?}"
    );
    assert_eq!(set.text("session_id"), first.text("session_id"));
    let busy = json!({ "steps": [{ "start": [{ "key": "t", "timer": 3_000 }] }] }).to_string();
    ask(&busy, json!({ "mode": "steer" }), Value::Null).await;
    let path = format!("/api/sessions/{}", first.text("session_id"));
    until(async || !town.alice.get(&path).await.body["run_id"].is_null()).await;
    let third = ask(&words, Value::Null, Value::Null).await;
    assert_eq!(third.text("waits_for"), "collect");
    let no = ask(&words, json!({ "mode": "never" }), Value::Null).await;
    no.has(422, &json!({ "field": "/queue/mode" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_no_longer_the_last_is_gone_on_from_in_a_thread_of_its_own() {
    let town = town().await;
    let first = say(&town.alice, &json!({ "agent": "cook" }), "soup").await;
    let turn = over(&town.alice, &first).await["turn_id"].clone();
    // While it is the last turn, its session goes on.
    let second = say(&town.alice, &json!({ "thread": turn }), "salad").await;
    assert_eq!(
        (second.text("session_id"), second.text("level")),
        (first.text("session_id"), "thread".to_owned())
    );
    over(&town.alice, &second).await;
    let third = say(&town.alice, &json!({ "thread": turn }), "steak").await;
    assert_ne!(third.text("session_id"), first.text("session_id"));
    assert_eq!(third.body["is_new"], true);
    let texts = |seen: &Value| -> Vec<String> {
        let messages = seen["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "assistant");
        messages
            .map(|message| message["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let forked = over(&town.alice, &third).await;
    assert_eq!(texts(&forked), ["soup", "steak"]);
    // The fork is one of hers too, and what is said at its last turn goes on in it.
    let fourth = say(
        &town.alice,
        &json!({ "thread": forked["turn_id"] }),
        "sauce",
    )
    .await;
    assert_eq!(
        (fourth.text("session_id"), &fourth.body["is_new"]),
        (third.text("session_id"), &json!(false))
    );
    assert_eq!(
        texts(&over(&town.alice, &fourth).await),
        ["soup", "steak", "sauce"]
    );
    assert_eq!(texts(&over(&town.alice, &first).await), ["soup", "salad"]);
    // Of a turn that is not theirs nobody learns that it is there.
    let unknown = "00".repeat(32);
    assert_eq!(
        refused(&say(&town.bob, &json!({ "thread": turn }), "x").await),
        (404, "TURN_NOT_FOUND".into(), "/to/thread".into())
    );
    assert_eq!(
        refused(&say(&town.alice, &json!({ "thread": unknown }), "x").await),
        (404, "TURN_NOT_FOUND".into(), "/to/thread".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persona_has_a_main_session_of_each_user_whom_it_is_for_and_says_who_it_is() {
    let town = town().await;
    let first = say(&town.alice, &json!({ "persona": "home" }), "hello").await;
    let seen = over(&town.alice, &first).await;
    assert_eq!(
        (seen["name"].as_str(), first.text("level")),
        (Some("Home"), "persona".to_owned())
    );
    // A chat with the same agent that is none of the persona's is another one, whichever was last.
    let plain = say(&town.alice, &json!({ "agent": "cook" }), "plain").await;
    assert_ne!(plain.text("session_id"), first.text("session_id"));
    over(&town.alice, &plain).await;
    let again = say(&town.alice, &json!({ "persona": "home" }), "hello again").await;
    assert_eq!(again.text("session_id"), first.text("session_id"));
    assert_eq!(
        refused(&say(&town.bob, &json!({ "persona": "home" }), "x").await),
        (404, "PERSONA_NOT_FOUND".into(), "/to/persona".into())
    );
    assert_eq!(
        refused(&say(&town.alice, &json!({ "persona": "work" }), "x").await),
        (404, "PERSONA_NOT_FOUND".into(), "/to/persona".into())
    );
    let personas = |line: &Line| line.clone();
    let listed = personas(&town.alice).get("/api/personas").await.body;
    assert_eq!(listed["personas"][0]["id"], "home");
    assert_eq!(
        personas(&town.bob).get("/api/personas").await.body["personas"],
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_of_a_message_with_an_address_are_kept_in_a_new_chat_and_in_an_open_one() {
    let town = town().await;
    let send = |key: &str, content: &str, labels: Value| {
        let body = json!({ "to": { "agent": "cook" }, "content": content, "labels": labels });
        town.alice
            .ask_under(key, Method::POST, "/api/messages", Some(&body))
    };
    let words = json!({ "steps": [{ "reply": "done" }] }).to_string();
    for (topic, is_new) in [("first", true), ("second", false)] {
        let labels = json!({ "topic": topic });
        let said = send(topic, &words, labels.clone()).await;
        assert_eq!(
            (&said.body["labels"], &said.body["is_new"]),
            (&labels, &json!(is_new)),
            "{said:?}"
        );
        over(&town.alice, &said).await;
        let [agent, session, input] =
            ["agent_id", "session_id", "input_id"].map(|field| said.text(field));
        let input = format!("/api/agents/{agent}/sessions/{session}/inputs/{input}");
        let kept = town.alice.get(&input).await;
        assert_eq!(kept.body["labels"], labels, "{kept:?}");
        let again = send(topic, &words, labels).await;
        assert_eq!(again.body["replayed"], true, "{again:?}");
        let other = send(topic, &words, json!({ "topic": "other" })).await;
        assert_eq!(refused(&other).1, "IDEMPOTENCY_KEY_REUSED");
    }
    for (key, content, labels) in [
        ("a", words.as_str(), json!({ "a b": "x" })),
        ("b", "/queue collect", json!({ "a": "b" })),
    ] {
        assert_eq!(
            refused(&send(key, content, labels).await),
            (422, "INVALID".to_owned(), "/labels".to_owned())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_at_its_level_is_refused_there_and_nothing_changes() {
    let town = town().await;
    say(&town.alice, &json!({ "agent": "cook" }), "something").await;
    let before = town.host.get("/api/events?limit=1").await.body["last_position"].clone();
    let nobody = "00000000-0000-4000-8000-00000000dead";
    let rows = [
        r#"{"session":"{nobody}"} => 404 SESSION_NOT_FOUND /to/session"#,
        r#"{"session":"x"} => 422 INVALID_FIELD /to/session"#,
        r#"{"agent":"{nobody}"} => 404 AGENT_NOT_FOUND /to/agent"#,
        r#"{"agent":"/bob/agent/cook"} => 404 AGENT_NOT_FOUND /to/agent"#,
        r#"{"agent":"baker"} => 404 DEFINITION_NOT_FOUND /to/agent"#,
        r#"{"smart":{"about":"zebras","agent":"baker"}} => 404 AGENT_NOT_FOUND /to/smart/agent"#,
        r#"{"persona":"A B"} => 422 INVALID_FIELD /to/persona"#,
        r#"{"thread":"x"} => 422 INVALID_FIELD /to/thread"#,
        r#"{"smart":{"about":"zebras"}} => 404 NO_THREAD_FOUND /to/smart"#,
        "{} => 422 INVALID_FIELD /to",
        r#"{"agent":"cook","persona":"home"} => 422 INVALID_FIELD /to"#,
        r#"{"nobody":1} => 422 UNKNOWN_FIELD /to/nobody"#,
    ];
    for row in rows {
        // Of bob nothing is there yet.
        let (to, refusal) = row.split_once(" => ").unwrap();
        let row = format!(r#"POST /api/messages {{"to":{to},"content":"x"}} => {refusal}"#);
        town.bob.answers(&[("{nobody}", nobody)], &[&row]).await;
    }
    let after = town.host.get("/api/events?limit=1").await.body["last_position"].clone();
    assert!(after.as_u64() >= before.as_u64());
    let bobs = town.bob.get("/api/agents").await.body;
    assert_eq!(
        bobs["agents"],
        json!([]),
        "something was made on the way to a refusal"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_thread_that_speaks_of_it_is_found_and_two_that_are_close_are_asked_about() {
    let town = town().await;
    let mut sessions = Vec::new();
    for words in [
        "the zebra eats grass",
        "the tiger sleeps",
        "the tiger sleeps",
    ] {
        let opened = over(
            &town.alice,
            &say(&town.alice, &json!({ "agent": "cook" }), "begin").await,
        )
        .await;
        let path = format!(
            "/api/agents/{}/sessions",
            opened["agent_id"].as_str().unwrap()
        );
        let fresh = town
            .alice
            .post(&path, &json!({ "session_type": "chat" }))
            .await
            .text("session_id");
        over(
            &town.alice,
            &say(&town.alice, &json!({ "session": fresh }), words).await,
        )
        .await;
        sessions.push(fresh);
    }
    let found = say(
        &town.alice,
        &json!({ "smart": { "about": "zebra" } }),
        "and what does it drink?",
    )
    .await;
    assert_eq!(
        (found.status, found.text("session_id")),
        (202, sessions[0].clone()),
        "{found:?}"
    );
    assert!(
        found.text("why").contains("of it, the last at 2"),
        "{found:?}"
    );
    over(&town.alice, &found).await;
    let unclear = say(
        &town.alice,
        &json!({ "smart": { "about": "tiger" } }),
        "wake it",
    )
    .await;
    unclear.has(
        300,
        &json!({ "question": "2 threads speak of that; which do you mean?" }),
    );
    let mut meant: Vec<&str> = unclear.body["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|candidate| candidate["session_id"].as_str().unwrap())
        .collect();
    meant.sort_unstable();
    let mut tigers = [sessions[1].as_str(), sessions[2].as_str()];
    tigers.sort_unstable();
    assert_eq!(meant, tigers);
    // Nobody finds the threads of others.
    assert_eq!(
        refused(&say(&town.bob, &json!({ "smart": { "about": "zebra" } }), "x").await).1,
        "NO_THREAD_FOUND"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_under_a_key_go_once_and_to_where_they_went() {
    let town = town().await;
    let body = json!({
        "to": { "agent": "cook" }, "content": json!({ "steps": [{ "reply": "x" }] }).to_string(),
    });
    let send = |body: &Value| {
        let request = town
            .host
            .request(Method::POST, "/api/messages")
            .header("idempotency-key", "k")
            .json(body);
        town.host.send(request)
    };
    let first = send(&body).gives(202).await;
    // A newer chat would be the latest by now.
    let agent = first.text("agent_id");
    town.host
        .post(
            &format!("/api/agents/{agent}/sessions"),
            &json!({ "session_type": "chat" }),
        )
        .await;
    let again = send(&body).await;
    assert_eq!(
        (again.text("input_id"), &again.body["replayed"]),
        (first.text("input_id"), &json!(true))
    );
    let reported = |answer: &Answer| {
        [
            "session_id",
            "agent_id",
            "is_new",
            "why",
            "level",
            "position",
        ]
        .map(|name| answer.body[name].clone())
    };
    assert_eq!(
        (reported(&again), &again.body["is_new"]),
        (reported(&first), &json!(true)),
        "as it was answered first"
    );
    let other = send(&json!({ "to": { "agent": "smith" }, "content": "x" })).await;
    assert_eq!(
        refused(&other),
        (
            409,
            "IDEMPOTENCY_KEY_REUSED".into(),
            "header:Idempotency-Key".into()
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_persona_denies_no_turn_of_it_does_whatever_its_agent_may() {
    let personas = vec![
        json!({ "id": "free", "displayName": "Free", "agent": "puppet" }),
        json!({
            "id": "strict", "displayName": "Strict", "agent": "puppet", "toolDenylist": ["put"],
        }),
        json!({
            "id": "narrow", "displayName": "Narrow", "agent": "puppet", "toolAllowlist": ["look"],
        }),
    ];
    let world = World::new(Setup {
        personas,
        ..Setup::default()
    })
    .await;
    let script = json!({
        "steps": [{
            "until": "all",
            "start": [{ "key": "a", "tool": "look" }, { "key": "b", "tool": "put" }],
        }],
    });
    for (persona, reported, rule) in [
        ("free", "b parts put done", None),
        ("strict", "b denied", Some("callersDenylist")),
        ("narrow", "b denied", Some("permissions")),
    ] {
        let before = world.ledger().await.len();
        let posted = world
            .broker
            .messages()
            .post_routed(PostRouted {
                to: Address::Persona(persona.parse().unwrap()),
                content: vec![Part::text(script.to_string())],
                model: None,
                queue: domain::queue::QueueOverride::default(),
                priority: None,
                labels: domain::message_labels::MessageLabels::default(),
                user: UserId::local(),
                idempotency_key: None,
            })
            .await;
        let Routed::Accepted(accepted) = posted.unwrap() else {
            panic!("it was not accepted")
        };
        world.idle(accepted.session).await;
        let reply = world.last_reply(accepted.session).await;
        assert!(
            reply.lines().any(|line| line == reported),
            "{persona}: {reply}"
        );
        let ledger = world.ledger().await;
        let refused = ledger
            .iter()
            .skip(before)
            .filter(|it| it.tool.as_deref() == Some("put"))
            .flat_map(|it| &it.decisions);
        let rules: Vec<&str> = refused
            .map(|it| it.rule.as_str())
            .filter(|rule| *rule != "grant")
            .collect();
        assert_eq!(rules, rule.into_iter().collect::<Vec<_>>(), "{persona}");
    }
}
