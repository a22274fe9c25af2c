//! Agents as people see them: what they look like, the sessions with all of them, those that users
//! make themselves, and how a session begins.

use agent_host_tests::process::{
    Folder, Host, Line, Reply, Session, is_asking, puppets, shows, tells,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Rules of the model: it takes its time over one message, and says what it was told otherwise.
const SCRIPT: &str = "[[rule]]\nwhen.userContains = \"slowly\"\n\
    reply = { text = \"at last\", firstDelayMs = 60000 }\n\
    [[rule]]\nreply.text = \"{user}\"\n";

/// An agent that says what a message tells it to say, with more keys.
fn puppet(id: &str, more: Value) -> Value {
    let mut agent = json!({ "agentId": id, "displayName": id, "component": "puppet" });
    if let (Some(agent), Value::Object(more)) = (agent.as_object_mut(), more) {
        agent.extend(more);
    }
    agent
}

async fn started(agents: &Value) -> (Folder, Host) {
    let folder = Folder::new(puppets(agents));
    std::fs::write(folder.path().join("script.toml"), SCRIPT).expect("a rule file");
    folder.warm(&["puppet"]).await;
    let host = folder.serve().await;
    (folder, host)
}

/// Opens a chat with the user's own agent of a definition.
#[track_caller]
fn open(line: &Line, definition: &str) -> Reply {
    let path = format!("/api/agents/{definition}/sessions");
    line.post(&path, &json!({ "session_type": "chat" }))
}

/// Has an agent do something in a session, and returns its reply.
async fn reply_to(line: &Line, session: &Value, steps: &Value) -> Value {
    let path = format!(
        "/api/agents/{}/sessions/{}/messages?wait_s=30",
        session["agent_id"].as_str().unwrap(),
        session["session_id"].as_str().unwrap()
    );
    let content = json!({ "steps": steps }).to_string();
    let said = line
        .post(&path, &json!({ "content": content }))
        .gives(200)
        .await;
    said.body["reply"]["text"].clone()
}

/// The definitions that somebody sees, by id.
async fn definitions(line: &Line) -> Vec<Value> {
    let listed = line.get("/api/definitions").gives(200).await;
    listed.body["definitions"].as_array().unwrap().clone()
}

fn find<'a>(definitions: &'a [Value], id: &str) -> Option<&'a Value> {
    definitions.iter().find(|it| it["definition"] == id)
}

fn template() -> Value {
    puppet(
        "helper",
        json!({
            "description": "Helps.", "icon": "🧭", "color": "#3366cc", "uiVisible": false,
            "toolAllowlist": ["read_*", "agents_message"], "toolDenylist": ["read_secret"],
            "fixedSettings": ["exam"], "settings": { "exam": 1 },
            "templateFor": ["ada", "eve"],
        }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_shows_its_look_and_what_one_has_of_it() {
    let (_folder, host) = started(&json!([
        template(),
        puppet("plain", json!({})),
        puppet(
            "narrow",
            json!({
                "extends": "helper", "toolAllowlist": ["read_file"], "uiVisible": true,
                "skillAllowlist": ["notes"], "skillDenylist": ["mail"],
            }),
        ),
    ]))
    .await;
    let ada = host.user("ada", &["read", "write"]).await;
    open(&ada, "plain").gives(201).await;
    open(&ada, "plain").gives(201).await;
    let seen = definitions(&ada).await;
    let narrow = find(&seen, "narrow").unwrap();
    let expected = json!({
        "display_name": "narrow", "description": "Helps.", "icon": "🧭", "color": "#3366cc",
        "extends": "helper", "exposure": "tools",
    });
    shows(narrow, &expected);
    assert_eq!(narrow["lists"]["tool_allowlist"], json!(["read_file"]));
    assert_eq!(narrow["lists"]["tool_denylist"], json!(["read_secret"]));
    assert_eq!(narrow["lists"]["skill_allowlist"], json!(["notes"]));
    assert_eq!(narrow["lists"]["skill_denylist"], json!(["mail"]));
    assert_eq!(narrow["is_template"], false, "that is not inherited");
    assert_eq!(find(&seen, "helper").unwrap()["is_template"], true);
    let counts = |definition: &str| find(&seen, definition).unwrap()["counts"].clone();
    assert_eq!(counts("plain"), json!({ "agents": 1, "sessions": 2 }));
    assert_eq!(counts("narrow"), json!({ "agents": 0, "sessions": 0 }));
    // Somebody else has nothing of it, and is nobody's template's user.
    let bob = host.user("bob", &["read", "write"]).await;
    let seen = definitions(&bob).await;
    assert_eq!(
        find(&seen, "plain").unwrap()["counts"],
        json!({ "agents": 0, "sessions": 0 })
    );
    assert_eq!(find(&seen, "helper").unwrap()["is_template"], false);
    // Page by page, by id.
    let first = bob.get("/api/definitions?limit=2").await.body;
    let ids = |page: &Value| -> Vec<Value> {
        let definitions = page["definitions"].as_array().unwrap().iter();
        definitions.map(|it| it["definition"].clone()).collect()
    };
    assert_eq!(ids(&first), ["helper", "narrow"]);
    assert_eq!(first["next_after"], "narrow");
    let last = bob.get("/api/definitions?limit=2&after=narrow").await.body;
    assert_eq!(ids(&last), ["plain"]);
    assert_eq!(last["next_after"], json!(null));
    bob.get("/api/definitions?limit=501").gives(400).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_all_agents_are_grouped_by_agent_pinned_first() {
    let (_folder, host) = started(&json!([
        puppet("first", json!({ "icon": "📚", "color": "#102030" })),
        puppet("second", json!({})),
    ]))
    .await;
    let ada = host.user("ada", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write"]).await;
    let mut sessions = Vec::new();
    for definition in ["first", "first", "second"] {
        let opened = open(&ada, definition).gives(201).await;
        sessions.push(opened.body);
    }
    open(&bob, "first").gives(201).await;
    let grouped = async || ada.get("/api/sessions").await.body;
    let ids = |group: &Value| -> Vec<Value> {
        let sessions = group["sessions"].as_array().unwrap().iter();
        sessions
            .map(|session| session["session_id"].clone())
            .collect()
    };
    reply_to(&ada, &sessions[2], &json!([{ "reply": "hello" }])).await;
    let seen = grouped().await;
    let agents = seen["agents"].as_array().unwrap();
    let order: Vec<&Value> = agents.iter().map(|group| &group["definition"]).collect();
    assert_eq!(order, ["second", "first"], "the last updated one first");
    assert_eq!(agents[1]["icon"], "📚");
    assert_eq!(agents[1]["color"], "#102030");
    let all: BTreeSet<String> = agents
        .iter()
        .flat_map(ids)
        .map(|id| id.to_string())
        .collect();
    let own: BTreeSet<String> = sessions
        .iter()
        .map(|it| it["session_id"].to_string())
        .collect();
    assert_eq!(all, own, "one's own, and no others'");
    // A pinned session brings its agent to the front, and is first there.
    let pinned = &sessions[0];
    let path = format!(
        "/api/agents/{}/sessions/{}",
        pinned["agent_id"].as_str().unwrap(),
        pinned["session_id"].as_str().unwrap()
    );
    ada.patch(&path, &json!({ "pinned": true }))
        .gives(200)
        .await;
    reply_to(&ada, &sessions[1], &json!([{ "reply": "hello" }])).await;
    let seen = grouped().await;
    assert_eq!(seen["agents"][0]["definition"], "first");
    assert_eq!(
        ids(&seen["agents"][0]),
        [
            pinned["session_id"].clone(),
            sessions[1]["session_id"].clone()
        ]
    );
    let one = ada.get("/api/sessions?limit=1").await.body;
    assert_eq!(one["more"], true);
    assert_eq!(ids(&one["agents"][0]), [pinned["session_id"].clone()]);
    // Page by page, each once and in the same order.
    let mut after = String::new();
    let mut paged = Vec::new();
    loop {
        let page = ada.get(&format!("/api/sessions?limit=1{after}")).await.body;
        paged.extend(page["agents"].as_array().unwrap().iter().flat_map(ids));
        let Some(next) = page["next_after"].as_str() else {
            break;
        };
        after = format!("&after={next}");
        assert!(paged.len() <= 3, "{paged:?}");
    }
    let in_order = [0, 1, 2].map(|index: usize| sessions[index]["session_id"].clone());
    assert_eq!(paged, in_order);
    ada.get("/api/sessions?after=x")
        .refused(400, "INVALID_QUERY")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_a_rule_hides_take_no_place_among_those_that_are_listed() {
    let mut config = puppets(&json!([
        puppet("shown", json!({})),
        puppet("hidden", json!({})),
    ]));
    let (folder, host) = Folder::serving(config.clone(), &["puppet"]).await;
    let ada = host.user("ada", &["read", "write"]).await;
    let shown = open(&ada, "shown").await;
    for _ in 0..3 {
        open(&ada, "hidden").gives(201).await;
    }
    host.stop().await;
    config["pathRules"] = json!([
        { "subtree": "/ada/agent/hidden/**", "access": "none", "users": ["ada"] },
    ]);
    folder.configure(config);
    let host = folder.serve().await;
    let ada = host.user("ada", &["read", "write"]).await;
    for limit in [1, 2, 200] {
        let seen = ada.get(&format!("/api/sessions?limit={limit}")).await.body;
        let agents = seen["agents"].as_array().unwrap();
        let sessions: Vec<&Value> = agents
            .iter()
            .flat_map(|group| group["sessions"].as_array().unwrap())
            .map(|session| &session["session_id"])
            .collect();
        assert_eq!(sessions, [&shown.body["session_id"]], "{seen}");
        shows(&seen, &json!({ "more": false, "next_after": null }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_makes_an_agent_within_a_template_and_it_outlives_a_restart() {
    let (folder, host) = started(&json!([template(), puppet("plain", json!({}))])).await;
    let ada = host.user("ada", &["read", "write"]).await;
    let new = json!({
        "template": "helper", "display_name": "Trip planner", "icon": "🏝️",
        "system_prompt": "You plan trips.",
        "lists": { "tool_allowlist": ["read_file"], "tool_denylist": ["read_more"] },
    });
    let made = ada
        .ask_under("k", Method::POST, "/api/definitions", Some(&new))
        .gives(201)
        .await;
    let id = made.text("definition");
    assert!(id.starts_with("made-trip-planner-"), "{id}");
    assert_eq!(made.body["lists"]["tool_allowlist"], json!(["read_file"]));
    assert_eq!(
        made.body["lists"]["tool_denylist"],
        json!(["read_secret", "read_more"])
    );
    shows(
        &made.body,
        &json!({ "made_by": "ada", "extends": "helper", "color": "#3366cc" }),
    );
    let again = ada
        .ask_under("k", Method::POST, "/api/definitions", Some(&new))
        .await;
    assert_eq!(
        again.text("definition"),
        id,
        "the same request makes it once"
    );
    let session = open(&ada, &id).gives(201).await;
    assert_eq!(
        reply_to(&ada, &session.body, &json!([{ "reply": "before" }])).await,
        "before"
    );
    host.stop().await;
    let host = folder.serve().await;
    let ada = host.user("ada", &["read", "write"]).await;
    let seen = definitions(&ada).await;
    assert_eq!(find(&seen, &id).unwrap()["display_name"], "Trip planner");
    assert_eq!(
        reply_to(&ada, &session.body, &json!([{ "reply": "after" }])).await,
        "after"
    );
    host.stop().await;
    // What the operator takes away is taken from it too.
    let mut narrower = template();
    narrower["toolAllowlist"] = json!([]);
    folder.configure(puppets(&json!([narrower, puppet("plain", json!({}))])));
    let host = folder.serve().await;
    let ada = host.user("ada", &["read", "write"]).await;
    let seen = definitions(&ada).await;
    assert_eq!(
        find(&seen, &id).unwrap()["lists"]["tool_allowlist"],
        json!([])
    );
    let path = format!("/api/definitions/{id}");
    ada.delete(&path).gives(200).await;
    assert!(find(&definitions(&ada).await, &id).is_none());
    open(&ada, &id).gives(404).await;
    ada.delete(&path).refused(404, "DEFINITION_NOT_FOUND").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_its_user_removes_takes_its_open_turns_along() {
    let maker = puppet("maker", json!({ "templateFor": ["ada"] }));
    let (_folder, host) = started(&json!([maker])).await;
    let ada = host.user("ada", &["read", "write"]).await;
    let new = json!({ "template": "maker", "display_name": "Trips" });
    let made = ada.post("/api/definitions", &new).gives(201).await;
    let id = made.text("definition");
    let opened = open(&ada, &id).await;
    let agent = opened.text("agent_id");
    let session = format!("/api/agents/{agent}/sessions/{}", opened.text("session_id"));
    let messages = format!("{session}/messages");
    let steps = json!([{ "until": "all", "start": [{ "key": "q", "client": "question" }] }]);
    let asks = json!({ "content": json!({ "steps": steps }).to_string() });
    ada.post(&messages, &asks).gives(202).await;
    let widget = |seen: &Value| seen["ui_state"]["active_widget"].clone();
    let seen = ada.until(&session, |seen| !widget(seen).is_null()).await;
    let answer = json!({ "tool_call_id": widget(&seen)["tool_call_id"], "response": "yes" });

    let path = format!("/api/definitions/{id}");
    ada.delete(&path).gives(200).await;
    let seen = ada.until(&session, |seen| seen["run_id"].is_null()).await;
    assert!(widget(&seen).is_null(), "{seen}");
    let reported = seen["messages"].to_string();
    tells(&reported, &["is no longer configured"]);
    let respond = format!("/api/agents/{agent}/respond");
    for (path, body) in [(&respond, &answer), (&messages, &asks)] {
        ada.post(path, body).refused(409, "DEFINITION_GONE").await;
    }
    let seen = ada.get(&session).await.body;
    assert_eq!(seen["waiting"], 0, "{seen}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_fits_no_template_any_more_is_listed_and_can_be_removed() {
    let (folder, host) = started(&json!([template(), puppet("plain", json!({}))])).await;
    let ada = host.user("ada", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write"]).await;
    let new = json!({ "template": "helper", "display_name": "Trip planner" });
    let made = ada.post("/api/definitions", &new).gives(201).await;
    let id = made.text("definition");
    let mut of_eve = template();
    of_eve["templateFor"] = json!(["eve"]);
    folder.configure(puppets(&json!([of_eve, puppet("plain", json!({}))])));
    let reloaded = host.post("/api/config/reload", &json!({})).gives(200).await;
    assert_eq!(reloaded.body["definitions_left_out"], 1);
    let listed = ada.get("/api/definitions").await.body;
    assert!(find(listed["definitions"].as_array().unwrap(), &id).is_none());
    let left_out = json!([{
        "definition": id, "display_name": "Trip planner", "template": "helper",
        "made_by": "ada", "reason": "`helper` is no template for its user",
    }]);
    assert_eq!(listed["left_out"], left_out);
    let of_bob = bob.get("/api/definitions").await.body;
    assert_eq!(of_bob["left_out"], json!([]));
    let of_all = host.get("/api/definitions").await.body;
    assert_eq!(of_all["left_out"], left_out, "the operator sees it");
    // It is there again with its template.
    folder.configure(puppets(&json!([template(), puppet("plain", json!({}))])));
    let reloaded = host.post("/api/config/reload", &json!({})).gives(200).await;
    assert_eq!(reloaded.body["definitions_left_out"], 0);
    let listed = ada.get("/api/definitions").await.body;
    assert!(find(listed["definitions"].as_array().unwrap(), &id).is_some());
    assert_eq!(listed["left_out"], json!([]));
    folder.configure(puppets(&json!([puppet("plain", json!({}))])));
    let reloaded = host.post("/api/config/reload", &json!({})).gives(200).await;
    assert_eq!(reloaded.body["definitions_left_out"], 1);
    let path = format!("/api/definitions/{id}");
    ada.delete(&path).gives(200).await;
    let listed = ada.get("/api/definitions").await.body;
    assert_eq!(listed["left_out"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_makes_an_agent_beyond_the_template_or_their_own_authority() {
    let mut config = puppets(&json!([template(), puppet("plain", json!({}))]));
    config["pathRules"] = json!([
        { "subtree": "/eve/**", "access": "read", "users": ["eve"] },
    ]);
    let (_folder, host) = Folder::serving(config, &["puppet"]).await;
    let ada = host.user("ada", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write"]).await;
    let eve = host.user("eve", &["read", "write"]).await;
    let reader = host.user("ada", &["read"]).await;
    let made = |name: &str| json!({ "template": "helper", "display_name": name });
    let rows = [
        r#"POST /api/definitions {{new},"lists":{"tool_allowlist":["*"]}} => 422 INVALID /lists/tool_allowlist"#,
        r#"POST /api/definitions {{new},"lists":{"tool_allowlist":["write_x"]}} => 422 INVALID /lists/tool_allowlist"#,
        r#"POST /api/definitions {{new},"settings":{"exam":2}} => 422 INVALID /settings/exam"#,
        r#"POST /api/definitions {{new},"lists":{"widens":true}} => 422 UNKNOWN_FIELD"#,
        r#"POST /api/definitions {{new},"component":"x"} => 422 UNKNOWN_FIELD"#,
        r#"POST /api/definitions {{new},"color":"red"} => 422 INVALID /color"#,
        r#"POST /api/definitions {"template":"plain","display_name":"X"} => 403 TEMPLATE_FORBIDDEN /template"#,
        r#"POST /api/definitions {"template":"none","display_name":"X"} => 404 DEFINITION_NOT_FOUND /template"#,
    ];
    let names = [("{new}", r#""template":"helper","display_name":"X""#)];
    ada.answers(&names, &rows).await;
    for (line, refusal) in [
        (&bob, "403 TEMPLATE_FORBIDDEN /template"),
        (&eve, "403 PATH_FORBIDDEN"),
        (&reader, "403 SCOPE_MISSING"),
    ] {
        let row = format!("POST /api/definitions {{{{new}}}} => {refusal}");
        line.answers(&names, &[&row]).await;
    }
    for number in 0..50 {
        let new = made(&format!("X {number}"));
        ada.post("/api/definitions", &new).gives(201).await;
    }
    ada.post("/api/definitions", &made("X"))
        .refused(409, "TOO_MANY_DEFINITIONS")
        .await;
    ada.delete("/api/definitions/plain")
        .refused(409, "DEFINITION_CONFIGURED")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_made_is_nobody_elses_and_no_other_agent_hears_of_it() {
    let (_folder, host) = started(&json!([
        template(),
        puppet("plain", json!({})),
        puppet("other", json!({})),
    ]))
    .await;
    let ada = host.user("ada", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write"]).await;
    let new = json!({ "template": "helper", "display_name": "Secret diary" });
    let made = ada.post("/api/definitions", &new).gives(201).await;
    let id = made.text("definition");
    // The operator sees it.
    assert!(find(&definitions(&host.line()).await, &id).is_some());
    assert!(find(&definitions(&bob).await, &id).is_none());
    let path = format!("/api/definitions/{id}");
    for (method, path, body) in [
        (Method::GET, path.clone(), json!(null)),
        (Method::DELETE, path, json!(null)),
        (
            Method::POST,
            format!("/api/agents/{id}/sessions"),
            json!({ "session_type": "chat" }),
        ),
        (
            Method::POST,
            "/api/agents".to_owned(),
            json!({ "definition": id }),
        ),
    ] {
        let body = Some(&body).filter(|body| !body.is_null());
        let refused = bob
            .ask(method, &path, body)
            .refused(404, "DEFINITION_NOT_FOUND")
            .await;
        let known = refused.text("detail").replacen(&id, "", 1);
        assert!(!known.contains("made-"), "{refused:?}");
    }
    // An agent of the configuration may talk with all others of it, and does not reach this one.
    let session = open(&ada, "plain").await.body;
    for (target, reaches) in [(id.as_str(), false), ("other", true)] {
        let content = json!({ "steps": [{ "reply": "heard" }] }).to_string();
        let call = json!({
            "key": "m", "tool": "agents_message",
            "args": { "agentId": target, "content": content },
        });
        let said = reply_to(
            &ada,
            &session,
            &json!([{ "until": "all", "start": [call] }]),
        )
        .await;
        let said = said.as_str().unwrap();
        assert_eq!(said.contains("heard"), reaches, "{target}: {said}");
        assert_eq!(
            said.contains("agent-not-accessible"),
            !reaches,
            "{target}: {said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_starts_under_ids_of_the_callers_choosing() {
    let (_folder, host) = started(&json!([puppet("plain", json!({}))])).await;
    let ada = host.user("ada", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write"]).await;
    let session = "0b4b4f6e-8f5c-4d43-9d0e-6b7f3f3b2a10";
    let conversation = "6a0c2f3e-1f5c-4c43-8d0e-6b7f3f3b2a11";
    let path = "/api/agents/plain/sessions";
    let new = json!({
        "session_type": "chat", "session_id": session, "conversation_id": conversation,
    });
    let joins = json!({ "session_type": "chat", "conversation_id": conversation });
    let opened = ada.post(path, &new).gives(201).await;
    assert_eq!(opened.text("session_id"), session);
    assert_eq!(opened.text("conversation_id"), conversation);
    let found = ada.get(&format!("/api/sessions/{session}")).await;
    assert_eq!(found.text("conversation_id"), conversation);
    // Nobody else hears more of her session than that her conversation is taken.
    for (line, code, field) in [
        (&ada, "SESSION_EXISTS", "/session_id"),
        (&bob, "CONVERSATION_TAKEN", "/conversation_id"),
    ] {
        let taken = line.post(path, &new).await;
        taken.has(409, &json!({ "code": code, "field": field }));
    }
    // Another session of hers joins the conversation, and nobody else's does.
    let joined = ada.post(path, &joins).await;
    assert_eq!(joined.text("conversation_id"), conversation);
    assert_ne!(joined.text("session_id"), session);
    bob.post(path, &joins)
        .refused(409, "CONVERSATION_TAKEN")
        .await;
    bob.get(&format!("/api/sessions/{session}"))
        .gives(404)
        .await;
    for (field, value) in [("session_id", "x"), ("conversation_id", "7")] {
        let wrong = ada.post(path, &json!({ field: value })).await;
        assert_eq!(
            (wrong.status, wrong.text("field")),
            (422, format!("/{field}")),
            "{wrong:?}"
        );
    }
}

/// A session that was accepted is pending until its agent has a place to begin it. While it waits
/// for its client it names the item that is worked on.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_pending_until_its_first_step_and_names_its_item() {
    let lesson = json!({ "script": { "steps": [
        { "start": [{ "key": "q", "client": "confirmation" }] }, { "complete": {} },
    ] } });
    let agent = puppet(
        "busy",
        json!({ "maxConcurrentMessages": 1, "settings": lesson }),
    );
    let (_folder, host) = started(&json!([agent])).await;
    let line = host.line();
    let chat = open(&line, "busy").await.body;
    let of_chat = format!(
        "/api/agents/{}/sessions/{}",
        chat["agent_id"].as_str().unwrap(),
        chat["session_id"].as_str().unwrap()
    );
    let steps = json!({ "steps": [
        { "start": [{ "key": "m", "model": "slowly" }] }, { "reply": "done" },
    ] });
    let body = json!({ "content": steps.to_string() });
    let said = line.post(&format!("{of_chat}/messages"), &body).await;
    assert!(said.status < 300, "{said:?}");
    line.until(&of_chat, |seen| {
        seen["operations"]
            .as_array()
            .is_some_and(|open| !open.is_empty())
    })
    .await;
    let new = json!({ "session_type": "lesson" });
    let opened = line
        .post("/api/agents/busy/sessions", &new)
        .gives(201)
        .await;
    let lesson = Session::of(&opened);
    for _ in 0..3 {
        let seen = line.get(&lesson).await.body;
        assert_eq!(seen["status"], "pending", "{seen}");
        assert_eq!(seen["current_item_id"], json!(null));
        sleep(Duration::from_millis(20)).await;
    }
    line.post(&format!("{of_chat}/cancel"), &json!({}))
        .gives(200)
        .await;
    let seen = line.until(&lesson, is_asking).await;
    let call = &seen["ui_state"]["active_widget"]["tool_call_id"];
    assert_eq!(&seen["current_item_id"], call, "{seen}");
    let agent = line
        .get(&format!("/api/agents/{}", opened.text("agent_id")))
        .await;
    assert_eq!(&agent.body["active_session"]["current_item_id"], call);
    let answer = json!({ "tool_call_id": call, "response": { "confirmed": true } });
    let path = format!("/api/agents/{}/respond", opened.text("agent_id"));
    line.post(&path, &answer).gives(202).await;
    let ended = line.becomes(&lesson, "completed").await;
    assert_eq!(ended["current_item_id"], json!(null));
}

/// The built-in definitions, extended by name alone, lead chats with the built-in loop under
/// prompts of their own.
#[tokio::test(flavor = "multi_thread")]
async fn coach_planner_and_wellness_are_there_to_be_extended() {
    const PROMPTS: [(&str, &str); 3] = [
        ("coach", "You are a coach."),
        ("planner", "You are a planner."),
        ("wellness", "You accompany a person"),
    ];
    let agents = PROMPTS.map(|(name, _)| {
        json!({ "agentId": name, "displayName": format!("My {name}"), "extends": name })
    });
    let folder = Folder::new(puppets(&json!(agents)));
    let rules: String = PROMPTS
        .iter()
        .map(|(name, prompt)| {
            format!("[[rule]]\nwhen.agent = \"{prompt}\"\nreply.text = \"this is {name}\"\n")
        })
        .collect();
    std::fs::write(folder.path().join("script.toml"), rules).expect("a rule file");
    folder.warm(&["assistant", "puppet"]).await;
    let host = folder.serve().await;
    let line = host.line();
    let seen = definitions(&line).await;
    for (name, _) in PROMPTS {
        let definition = find(&seen, name).unwrap();
        assert_eq!(definition["display_name"], format!("My {name}"));
        assert_eq!(definition["extends"], name);
        assert_eq!(definition["component"], "assistant");
        assert!(definition["icon"].is_string() && definition["color"].is_string());
        let made = line
            .post("/api/agents", &json!({ "agent_type": name }))
            .gives(201)
            .await;
        assert_eq!(made.text("agent_type"), name);
        let path = format!("/api/agents/{}/sessions", made.text("id"));
        let session = line
            .post(&path, &json!({ "session_type": "chat" }))
            .gives(201)
            .await;
        let path = format!("{path}/{}/messages?wait_s=30", session.text("session_id"));
        let said = line.post(&path, &json!({ "content": "Hello" })).await;
        assert_eq!(
            said.body["reply"]["text"],
            format!("this is {name}"),
            "{said:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_of_no_pattern_is_refused_in_the_designs_words_over_http() {
    let (_folder, host) = started(&json!([puppet("plain", json!({}))])).await;
    let new = json!({ "definition": "plain", "path": "/local" });
    let refused = host.line().post("/api/agents", &new).await;
    refused.has(422, &json!({ "field": "/path" }));
    let reported = refused.text("detail");
    assert!(
        reported.starts_with("Unknown path pattern: /local; "),
        "{reported}"
    );
}
