//! A user who switches to another agent in the middle of a conversation, and comes back with a
//! summary: over HTTP, and in `chat`.

use agent_host_tests::patience::until;
use agent_host_tests::process::{Answer, Folder, Host, Reply, Session, puppets, shows, tells};
use reqwest::Method;
use serde_json::{Value, json};

/// The answers of the model of the conversations.
const SCRIPT: &str = r#"
[[rule]]
when = { user = 'recall', said = 'They planned (?P<what>\w+)' }
reply.text = "You planned ${what} there."

[[rule]]
when = { userContains = "slowly" }
reply.text = "one two three four five six seven eight nine ten"
reply.delayMs = 300

[[rule]]
when = { user = '(?s)^(?P<all>.*)$' }
reply.text = "You said: ${all}"
"#;

/// The answers of the model of the role `memory`. It is given nothing but that conversation.
const MEMORY: &str = r#"
[[rule]]
when = { said = 'plan broken' }
reply.fail = "refused"

[[rule]]
when = { user = 'plan broken' }
reply.fail = "refused"

[[rule]]
when = { agent = "with another agent", said = '(?s)plan (?P<what>\w+)' }
reply.text = "They planned ${what}."

[[rule]]
when = { agent = "with another agent", user = '(?s)plan (?P<what>\w+)' }
reply.text = "They planned ${what}."

[[rule]]
reply.fail = "refused"
"#;

/// A host with a cook and a smith, whose conversations are summarised by a model of their own.
async fn town() -> (Folder, Host) {
    let agent = |id: &str| json!({ "agentId": id, "displayName": id, "toolAllowlist": [] });
    let folder = Folder::new(json!({
        "agents": [agent("cook"), agent("smith")],
        "providers": {
            "scripted": { "kind": "scripted", "script": "script.toml" },
            "other": { "kind": "scripted", "script": "memory.toml" },
        },
        "models": {
            "m": { "provider": "scripted", "model": "m" },
            "memory": { "provider": "other", "model": "memory" },
        },
        "defaultModel": "m",
        "roles": { "memory": "memory" },
        "retry": { "attemptsMax": 1 },
    }));
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    std::fs::write(folder.path().join("memory.toml"), MEMORY).unwrap();
    let host = folder.serve().await;
    (folder, host)
}

/// Returns a session once it has nothing to do and so many turns.
async fn idle(host: &Host, session: &str, turns: u64) -> Value {
    host.until(session, |seen| {
        seen["run_id"].is_null() && seen["waiting"] == 0 && seen["revision"] == turns
    })
    .await
}

#[track_caller]
fn ask(host: &Host, path: &str, body: &Value, key: &str) -> Reply {
    let request = host.request(Method::POST, path);
    let request = request.header("Idempotency-Key", key).json(body);
    host.send(request)
}

fn refusal(answer: &Answer) -> (u16, String) {
    (answer.status, answer.text("code"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_goes_to_another_agent_and_comes_back_with_a_summary() {
    let (_folder, host) = town().await;
    let first = host.open("cook").await;
    host.say(&first, "hello").await;
    idle(&host, &first, 1).await;
    let switch = format!("{first}/switch");
    let words = json!({ "agent": "smith", "message": "plan horseshoes" });
    let there = ask(&host, &switch, &words, "to the smith").await;
    there.has(200, &json!({ "is_new": true }));
    let second = Session::of(&there);
    assert_ne!(first, second);
    // Asked again it says nothing twice.
    let again = ask(&host, &switch, &words, "to the smith").await;
    assert_eq!(
        (Session::of(&again), &again.body["input_id"]),
        (second.clone(), &there.body["input_id"])
    );
    let seen = idle(&host, &second, 1).await;
    assert_eq!(
        seen["messages"][1]["text"], "You said: plan horseshoes",
        "{seen}"
    );
    let switch_origin = &seen["attributes"]["switched_from"];
    assert!(
        first.ends_with(switch_origin["session_id"].as_str().unwrap()),
        "{seen}"
    );
    host.say(&second, "and nails").await;
    idle(&host, &second, 2).await;
    let before = idle(&host, &first, 1).await;
    assert!(!before["messages"].to_string().contains("horseshoes"));

    let back = ask(&host, &format!("{second}/return"), &json!({}), "back")
        .gives(200)
        .await;
    assert_eq!(Session::of(&back), first);
    let seen = idle(&host, &first, 2).await;
    let notice = &seen["messages"][2];
    let text = notice["text"].as_str().unwrap();
    assert_eq!(
        (&notice["role"], &notice["origin"]),
        (&json!("notice"), &json!("host:return")),
        "{seen}"
    );
    assert!(
        text.contains("`smith`") && text.ends_with("They planned horseshoes."),
        "{text}"
    );
    let again = ask(&host, &format!("{second}/return"), &json!({}), "back").await;
    assert_eq!(again.body["run_id"], back.body["run_id"], "{again:?}");
    // Its agent has seen it by the next turn.
    host.say(&first, "recall").await;
    let seen = idle(&host, &first, 3).await;
    assert_eq!(
        seen["messages"][4]["text"], "You planned horseshoes there.",
        "{seen}"
    );
    // There is no second way back, and the other conversation is as it was.
    let there = idle(&host, &second, 2).await;
    assert!(there["attributes"].get("switched_from").is_none());
    let none = ask(&host, &format!("{second}/return"), &json!({}), "once more").await;
    assert_eq!(refusal(&none), (409, "NOT_SWITCHED".to_owned()));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_said_since_the_switch_is_summarised_and_nothing_is_no_run() {
    let (_folder, host) = town().await;
    let second = host.open("smith").await;
    host.say(&second, "plan anvils").await;
    idle(&host, &second, 1).await;
    let first = host.open("cook").await;
    let switch = format!("{first}/switch");
    // Without a message, and back at once.
    let there = ask(&host, &switch, &json!({ "agent": "smith" }), "a").await;
    assert_eq!(
        (
            Session::of(&there),
            &there.body["is_new"],
            &there.body["input_id"]
        ),
        (second.clone(), &json!(false), &Value::Null),
        "{there:?}"
    );
    let back = ask(&host, &format!("{second}/return"), &json!({}), "b").await;
    back.has(200, &json!({ "run_id": null }));
    idle(&host, &first, 0).await;
    // And with one, after which the earlier words are none of what is told.
    let words = json!({ "agent": "smith", "message": "plan horseshoes" });
    ask(&host, &switch, &words, "c").await;
    idle(&host, &second, 2).await;
    ask(&host, &format!("{second}/return"), &json!({}), "d").await;
    let seen = idle(&host, &first, 1).await;
    let reported = seen["messages"].to_string();
    assert!(
        reported.contains("horseshoes") && !reported.contains("anvils"),
        "{reported}"
    );
    host.stop().await;
}

/// Waits until a session has had a turn and has nothing to do.
async fn quiet(host: &Host, session: &str) {
    until(async || {
        let seen = host.get(session).await.body;
        let is_idle = seen["run_id"].is_null() && seen["waiting"] == 0;
        is_idle && seen["revision"] != 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_under_way_when_the_user_came_is_none_of_the_summary() {
    let (_folder, host) = town().await;
    for mode in ["steer", "followup"] {
        let second = host.open("smith").await;
        let queue = host
            .request(Method::PUT, &format!("{second}/queue"))
            .json(&json!({ "mode": mode }));
        host.send(queue).gives(200).await;
        // A turn is open there, and words wait behind it.
        host.say(&second, "slowly plan anvils").await;
        host.say(&second, "plan bolts").await;
        let first = host.open("cook").await;
        let switch = format!("{first}/switch");
        let without = ask(&host, &switch, &json!({ "agent": "smith" }), mode).await;
        assert_eq!(refusal(&without), (409, "RUN_OPEN".to_owned()));
        let words = json!({ "agent": "smith", "message": "plan horseshoes" });
        let there = host.post(&switch, &words).await;
        assert_eq!(Session::of(&there), second, "{there:?}");
        quiet(&host, &second).await;
        let back = host.post(&format!("{second}/return"), &json!({})).await;
        assert_eq!(Session::of(&back), first, "{back:?}");
        let seen = idle(&host, &first, 1).await;
        let reported = seen["messages"].to_string();
        assert!(
            reported.contains("They planned horseshoes."),
            "{mode}: {reported}"
        );
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_is_one_commit_and_repeated_it_lays_no_second_way_back() {
    let (_folder, host) = town().await;
    let first = host.open("cook").await;
    let switch = format!("{first}/switch");
    let words = json!({ "agent": "smith", "message": "plan horseshoes" });
    let opened = ask(&host, &switch, &words, "words").await;
    let second = Session::of(&opened);
    idle(&host, &second, 1).await;
    let back = format!("{second}/return");
    ask(&host, &back, &json!({}), "1").gives(200).await;
    idle(&host, &first, 1).await;
    let without = json!({ "agent": "smith" });
    let gone = ask(&host, &switch, &without, "without").await;
    assert_eq!(Session::of(&gone), second);
    ask(&host, &back, &json!({}), "2").gives(200).await;

    // Late duplicates are answered as the first time, and nobody is there again.
    for (body, key, before) in [(&words, "words", &opened), (&without, "without", &gone)] {
        let again = ask(&host, &switch, body, key).await;
        assert_eq!((again.status, &again.body), (200, &before.body));
    }
    let seen = idle(&host, &second, 1).await;
    assert!(seen["attributes"].get("switched_from").is_none(), "{seen}");
    let none = ask(&host, &back, &json!({}), "3").await;
    assert_eq!(refusal(&none), (409, "NOT_SWITCHED".to_owned()));
    let other = json!({ "agent": "smith", "message": "plan nails" });
    let reused = ask(&host, &switch, &other, "words").await;
    assert_eq!(refusal(&reused), (409, "IDEMPOTENCY_KEY_REUSED".to_owned()));

    // Of several places it is the last that one returns to.
    let third = host.open("cook").await;
    ask(&host, &switch, &without, "from the first").await;
    let said = ask(&host, &format!("{third}/switch"), &other, "from the third").await;
    assert_eq!(Session::of(&said), second);
    idle(&host, &second, 2).await;
    let returned = ask(&host, &back, &json!({}), "4").await;
    assert_eq!(Session::of(&returned), third);

    // The way back lies right before the words: no death of the host comes between them.
    let events = host.get("/api/events?limit=1000").await.body;
    for switched in [&opened, &said] {
        let accepted = switched.body["position"].as_u64().unwrap();
        let mut all = events["events"].as_array().unwrap().iter();
        let before = all.find(|event| event["position"] == accepted - 1);
        assert_eq!(before.unwrap()["type"], "session.attributes.updated.v1");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_leads_nowhere_and_a_return_at_the_wrong_moment_are_refused() {
    let (_folder, host) = town().await;
    let first = host.open("cook").await;
    let switch = format!("{first}/switch");
    let names = [("{switch}", &*switch)];
    let rows = [
        r#"POST {switch} {"agent":"cook"} => 409 SAME_SESSION"#,
        r#"POST {switch} {"agent":"baker"} => 404 DEFINITION_NOT_FOUND"#,
        r#"POST {switch} {"agent":"/local/agent/none","message":"x"} => 404 AGENT_NOT_FOUND"#,
        r#"POST {switch} {"message":"x"} => 422 MISSING_FIELD"#,
    ];
    host.answers(&names, &rows).await;
    let bob = host.user("bob", &["read", "write"]).await;
    bob.answers(&names, &[r#"POST {switch} {"agent":"smith"} => 404"#])
        .await;
    // Whoever writes down another place to come from gets no further than their own rights.
    let opened = bob.post("/api/agents/cook/sessions", &json!({})).await;
    let own = Session::of(&opened);
    let mut ids = first.rsplit('/').step_by(2);
    let forged = json!({
        "session_id": ids.next().unwrap(), "agent_id": ids.next().unwrap(), "first_message": 1,
    });
    let forged = json!({ "attributes": { "switched_from": forged } });
    bob.patch(&own, &forged).gives(200).await;
    let refused = bob.ask(Method::POST, &format!("{own}/return"), None).await;
    assert_eq!(refusal(&refused), (404, "AGENT_NOT_FOUND".to_owned()));
    // Nobody comes back in the middle of a turn.
    let words = json!({ "agent": "smith", "message": "slowly" });
    let there = host.post(&switch, &words).await;
    let second = Session::of(&there);
    let back = format!("{second}/return");
    let refused = host.post(&back, &json!({})).await;
    assert_eq!(refusal(&refused), (409, "RUN_OPEN".to_owned()));
    idle(&host, &second, 1).await;
    // A summary that fails leaves the conversation as it was, and the user is back all the same.
    host.say(&second, "plan broken").await;
    idle(&host, &second, 2).await;
    let returned = host.post(&back, &json!({})).await;
    assert_eq!(Session::of(&returned), first);
    let seen = idle(&host, &first, 0).await;
    assert_eq!(seen["messages"], json!([]), "{seen}");
    let ended = host.data_of("run.ended.v1").await;
    let failed = |ended: &Value| ended["code"] == "return-failed";
    assert!(ended.iter().any(failed), "{ended:?}");
    host.say(&first, "hello").await;
    idle(&host, &first, 1).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_to_an_agent_whose_definition_is_gone_is_refused_for_that() {
    let (folder, host) = town().await;
    let first = host.open("cook").await;
    let words = json!({ "agent": "smith", "message": "plan horseshoes" });
    let there = ask(&host, &format!("{first}/switch"), &words, "a").await;
    let second = Session::of(&there);
    idle(&host, &second, 1).await;
    let text = std::fs::read_to_string(folder.config_file()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["agents"].as_array_mut().unwrap().remove(0);
    folder.configure(config);
    host.post("/api/config/reload", &json!({})).gives(200).await;
    let back = ask(&host, &format!("{second}/return"), &json!({}), "b").await;
    assert_eq!(refusal(&back), (409, "DEFINITION_GONE".to_owned()));
    host.stop().await;
}

/// A host with two agents of the puppet's, one of which is to ask something.
async fn two_puppets() -> (Folder, Host) {
    let agent = |id: &str| json!({ "agentId": id, "displayName": id, "component": "puppet" });
    Folder::serving(
        puppets(&json!([agent("asks"), agent("other")])),
        &["puppet"],
    )
    .await
}

/// Has the puppet ask something, and waits until it does.
async fn have_it_ask(host: &Host, session: &str) {
    let question = json!({ "key": "q", "client": "question" });
    let steps = json!([{ "start": [question] }, { "reply": "thank you" }]);
    host.play(session, &steps).await;
    until(async || host.get(session).await.body["pending_action"].is_object()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_to_a_session_at_work_is_refused_by_the_id_of_that_session() {
    let (_folder, host) = two_puppets().await;
    let asks = host.open("asks").await;
    have_it_ask(&host, &asks).await;
    let words = json!({ "steps": [{ "reply": "over there" }] }).to_string();
    let words = json!({ "agent": "other", "message": words });
    let there = ask(&host, &format!("{asks}/switch"), &words, "a").await;
    let other = Session::of(&there);
    idle(&host, &other, 1).await;
    let refused = ask(&host, &format!("{other}/return"), &json!({}), "b").await;
    assert_eq!(refusal(&refused), (409, "RUN_OPEN".to_owned()));
    let id = asks.rsplit('/').next().unwrap();
    assert!(refused.text("detail").contains(id), "{refused:?}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_goes_to_another_agent_and_back_by_its_commands() {
    let (folder, host) = town().await;
    let lines =
        "hello\n/agents\n/agent smith plan horseshoes\n/back\nrecall\n/new\nagain\n/sessions\n";
    let chat = folder.program(&["chat", "--quiet", "--agent", "cook"]);
    let output = Folder::typed(chat, lines).await;
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let mut at = 0;
    for expected in [
        "You said: hello",
        "cook",
        "smith",
        "You said: plan horseshoes",
        "They planned horseshoes.",
        "You planned horseshoes there.",
        "You said: again",
        "* ",
    ] {
        let found = shown[at..].find(expected);
        at += found.unwrap_or_else(|| panic!("no `{expected}` in its place: {shown}"));
    }
    // What cannot be done ends lines that are piped in.
    let chat = folder.program(&["chat", "--quiet", "--agent", "smith"]);
    let output = Folder::typed(chat, "/back\n").await;
    assert!(!output.status.success(), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("nowhere to go back to"),
        "{output:?}"
    );
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_says_what_is_wrong_with_a_command_and_names_no_part_of_a_request() {
    let (folder, host) = town().await;
    for line in ["/session nope\n", "/agent nope\n"] {
        let chat = folder.program(&["chat", "--quiet", "--agent", "cook"]);
        let output = Folder::typed(chat, line).await;
        assert!(!output.status.success(), "{output:?}");
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        tells(&reported, &["`nope`"]);
        assert!(!reported.contains("(at "), "{reported}");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_names_pins_forks_clears_and_deletes_the_session_that_it_is_in() {
    let (folder, host) = two_puppets().await;
    let said = json!({ "steps": [{ "reply": "noted" }] });
    let lines = format!("{said}\n/rename Plans\n/pin\n/fork Other plans\n/delete\n/help\n");
    let chat = async |to: [&str; 2], lines: &str| {
        Folder::typed(folder.program(&["chat", "--quiet", to[0], to[1]]), lines).await
    };
    let other = ["--agent", "other"];
    let output = chat(other, &lines).await;
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    tells(&shown, &["/rename NAME"]);
    let sessions = host.get("/api/sessions?open=true").await.body;
    let names: Vec<(&Value, bool)> = sessions["agents"][0]["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| (&session["name"], session["pinned_at"].is_string()))
        .collect();
    // The fork was deleted, and `chat` went on in a new session.
    assert_eq!(names, [(&json!("Plans"), true), (&Value::Null, false)]);
    let plans = sessions["agents"][0]["sessions"][0]["session_id"]
        .as_str()
        .unwrap();
    let path = format!("/api/sessions/{plans}");
    let before = host.get(&path).await.body;
    assert!(before["messages"].to_string().contains("noted"), "{before}");
    let output = chat(["--session", plans], "/clear\n").await;
    assert!(output.status.success(), "{output:?}");
    let after = host.get(&path).await.body;
    shows(&after, &json!({ "messages": [], "name": "Plans" }));
    // What is no command is told, and not sent.
    let output = chat(other, "/halp\n").await;
    assert!(!output.status.success(), "{output:?}");
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    tells(&reported, &["`/halp` is no command"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_obeys_its_commands_while_a_question_waits_and_goes_to_any_session() {
    let (folder, host) = two_puppets().await;
    let chat = json!({ "session_type": "chat" });
    let opened = host.post("/api/agents/asks/sessions", &chat).await;
    let asks = Session::of(&opened);
    let id = opened.text("session_id");
    have_it_ask(&host, &asks).await;
    let steps = json!({ "steps": [{ "reply": "over there" }] });
    let lines = format!("/agents\n/agent other {steps}\n/sessions\n/session {id}\nyes\n");
    let chat = folder.program(&["chat", "--quiet", "--session", &id]);
    let output = Folder::typed(chat, &lines).await;
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let other_session = format!("\n  {id}");
    let mut at = 0;
    for expected in [
        "asks\nother\n",
        "over there",
        "other (/local/agent/other)\n* ",
        "asks (/local/agent/asks)",
        other_session.as_str(),
        "thank you",
    ] {
        let found = shown[at..].find(expected);
        at += found.unwrap_or_else(|| panic!("no `{expected}` in its place: {shown}"));
    }
    host.stop().await;
}
