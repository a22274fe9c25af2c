//! Sessions of the old system, imported over HTTP and by the command: once, whole or not at all,
//! and with what was still open in them.

use agent_host_tests::process::{Folder, Host, is_asking, puppets, shows};
use domain::time::Timestamp;
use serde_json::{Value, json};
use std::time::SystemTime;

const FORMAT: &str = "agent-host.sessions/1";
const HOUR_MS: u64 = 3_600_000;

/// A host with one agent, which leads lessons of these limits by these steps.
async fn leading(steps: Value, limits: Value) -> (Folder, Host) {
    let agent = json!({
        "agentId": "leads", "displayName": "Leads", "component": "puppet",
        "settings": { "script": { "steps": steps } },
        "sessions": { "lesson": limits },
    });
    Folder::serving(puppets(&json!([agent])), &["puppet"]).await
}

fn asks() -> Value {
    json!([{ "start": [{ "key": "q", "client": "confirmation" }] }, { "complete": {} }])
}

#[expect(
    clippy::disallowed_methods,
    reason = "a session that goes on began a while ago, as the host's clock shows it"
)]
fn ago(ms: u64) -> Timestamp {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    Timestamp(u64::try_from(since.as_millis()).unwrap() - ms)
}

fn id(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

fn old(n: u32, user: &str, status: &str) -> Value {
    json!({
        "user_id": user, "session_id": id(n),
        "conversation_id": format!("00000000-0000-4000-9000-{n:012}"), "session_type": "lesson",
        "status": status,
        "items": [{
            "agent_prompt": "1 + 1?", "user_response": { "n": n },
            "evaluation": { "correct": true },
        }],
        "started_at": format!("2025-12-{n:02}T10:00:00+00:00"),
        "completed_at": (status == "completed").then(|| format!("2025-12-{n:02}T11:00:00")),
    })
}

fn document(sessions: &[Value]) -> Value {
    json!({ "format": FORMAT, "sessions": sessions })
}

/// Checks that no user has an agent, and nothing was recorded but the users' keys.
async fn nothing_was_imported(host: &Host) {
    let events = host.events("").await;
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert!(
        !kinds
            .iter()
            .any(|kind| kind.starts_with("agent.") || kind.starts_with("session.")),
        "{kinds:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn old_sessions_are_imported_once_and_become_the_history_of_their_users_agents() {
    // What another system asked does not count towards the items that are asked here.
    let (folder, host) = leading(asks(), json!({ "timeLimitS": 3600, "itemsMax": 1 })).await;
    let mut goes_on = old(3, "alice", "awaiting_client_action");
    goes_on["config"] = json!({ "lesson": { "title": "Sums" } });
    let sessions = [
        old(1, "alice", "completed"),
        old(2, "alice", "active"),
        goes_on,
        old(4, "bob", "completed"),
    ];
    let file = folder.path().join("old.json");
    std::fs::write(&file, document(&sessions).to_string()).unwrap();
    for (ended, active, known) in [(3, 1, 0), (0, 0, 4)] {
        let run = folder
            .run(&["import", file.to_str().unwrap(), "--json"])
            .await;
        let said: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
        assert_eq!(
            said,
            json!({ "ended": ended, "active": active, "known": known })
        );
    }
    let alice = host.user("alice", &["read", "write"]).await;
    let agents = alice.get("/api/agents").await.body;
    let agent = agents["agents"][0].clone();
    assert_eq!(
        agents["agents"].as_array().unwrap().len(),
        1,
        "one agent for each user and type"
    );
    assert_eq!(
        agent["current_session_id"],
        id(3),
        "the one that began last goes on"
    );
    let history: Vec<&Value> = agent["session_history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|past| &past["session_id"])
        .collect();
    assert_eq!(history, [&json!(id(2)), &json!(id(1))]);
    shows(
        &agent,
        &json!({ "total_sessions": 3, "successful_completions": 1 }),
    );
    let sessions = format!("/api/agents/{}/sessions", agent["id"].as_str().unwrap());
    let path = format!("{sessions}/{}", id(1));
    let seen = alice.get(&path).await.body;
    shows(
        &seen,
        &json!({ "status": "completed", "completed_at": "2025-12-01T11:00:00.000Z" }),
    );
    let items = alice.get(&format!("{path}/items")).await.body;
    shows(
        &items,
        &json!({ "items/0/user_response": { "n": 1 }, "items/0/imported": true }),
    );
    let current = alice
        .until(&format!("{sessions}/{}", id(3)), is_asking)
        .await;
    assert_eq!(current["config"]["lesson"]["title"], "Sums");
    assert!(
        current["expires_at"].is_string(),
        "the host's limit counts from now: {current}"
    );
}

/// A session that goes on keeps its time, and its agent is handed the questions that were not
/// answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_goes_on_keeps_its_time_and_its_unanswered_questions() {
    let (_folder, host) = leading(json!([{ "show": true }]), json!({ "timeLimitS": 7200 })).await;
    let action = json!({
        "tool_call_id": "call_1", "tool_name": "ask", "widget_type": "multiple_choice",
        "lock_input": true,
        "props": { "prompt": "2 + 2?", "options": ["4", "5"] },
    });
    let mut goes_on = old(1, "local", "awaiting_client_action");
    goes_on["started_at"] = json!(ago(HOUR_MS).to_string());
    goes_on["items"][0]["id"] = json!("one");
    goes_on["items"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "two", "agent_prompt": "2 + 2?" }));
    goes_on["current_item_id"] = json!("two");
    goes_on["pending_action"] = action.clone();
    goes_on["ui_state"] = json!({
        "chat_input_locked": true, "active_widget": action, "widget_partial_state": { "index": 1 },
    });
    goes_on["config"] = json!({ "lesson": { "title": "Sums" }, "time_limit_seconds": 4200 });
    // Its time was up before it was imported.
    let mut overdue = old(2, "local", "active");
    overdue["started_at"] = json!(ago(HOUR_MS).to_string());
    overdue["config"] = json!({ "time_limit_seconds": 60 });
    let imported = host
        .post("/api/import", &document(&[overdue, goes_on]))
        .await;
    assert_eq!(
        imported.body,
        json!({ "ended": 1, "active": 1, "known": 0, "agents": 1 })
    );

    let agent = host.get("/api/agents").await.body["agents"][0].clone();
    assert_eq!(agent["current_session_id"], id(1));
    let past = &agent["session_history"][0];
    shows(
        past,
        &json!({ "session_id": id(2), "terminated_reason": "expired" }),
    );
    let path = format!(
        "/api/agents/{}/sessions/{}",
        agent["id"].as_str().unwrap(),
        id(1)
    );
    let seen = host
        .line()
        .until(&path, |seen| {
            seen["messages"].to_string().contains("pending_action")
        })
        .await;
    let expires: Timestamp = seen["expires_at"].as_str().unwrap().parse().unwrap();
    let left_s = expires.since_ms(ago(0)) / 1_000;
    assert!(
        (500..=600).contains(&left_s),
        "ten minutes are left of its seventy: {left_s} s"
    );

    // What the agent was handed, as the agent itself tells it.
    let reported = seen["messages"][0]["text"].as_str().unwrap();
    let handed = serde_json::from_str::<Value>(reported).unwrap()["config"].clone();
    assert_eq!(
        (&handed, &handed["lesson"]["title"]),
        (&seen["config"], &json!("Sums"))
    );
    let imported = &handed["imported"];
    let expected = json!({
        "pending_action/tool_call_id": action["tool_call_id"],
        "pending_action/props": action["props"],
    });
    shows(imported, &expected);
    shows(
        imported,
        &json!({ "ui_state/widget_partial_state": { "index": 1 }, "answered": 1 }),
    );
    let unanswered: Vec<&Value> = imported["unanswered"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["id"])
        .collect();
    assert_eq!(unanswered, ["two"]);

    // And on record, in both formats.
    let items = host.get(&format!("{path}/items")).await.body["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 2, "{items}");
    let open = &items[1];
    shows(
        open,
        &json!({ "id": "two", "imported": true, "client_action/props": action["props"] }),
    );
    assert!(
        open["user_response"].is_null()
            && open["completed_at"].is_null()
            && open["response_time_ms"].is_null(),
        "{open}"
    );
    let in_old_format = host.get(&format!("/api/session/{}", id(1))).await.body["items"].clone();
    assert_eq!(
        in_old_format[0]["user_response"]["response"],
        json!({ "n": 1 })
    );
    assert!(
        in_old_format[1]["user_response"].is_null() && in_old_format[1]["completed_at"].is_null(),
        "{in_old_format}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_a_fault_anywhere_in_it_imports_nothing_and_says_where_it_is() {
    let (folder, host) = leading(asks(), json!({})).await;
    let with = |at: &str, value: Value| {
        let mut sessions = document(&[
            old(1, "alice", "completed"),
            old(2, "bob", "active"),
            old(3, "carol", "active"),
        ]);
        let (parent, name) = at.rsplit_once('/').unwrap();
        sessions.pointer_mut(parent).unwrap()[name] = value;
        sessions
    };
    let choice =
        json!({ "widget_type": "multiple_choice", "props": { "prompt": "?", "options": ["one"] } });
    for (at, value, field) in [
        (
            "/sessions/2/items/0/client_action",
            choice,
            "/sessions/2/items/0/client_action/props/options",
        ),
        (
            "/sessions/2/session_id",
            json!(id(1)),
            "/sessions/2/session_id",
        ),
        (
            "/sessions/2/started_at",
            json!("2999-01-01T00:00:00Z"),
            "/sessions/2/started_at",
        ),
        (
            "/sessions/2/session_type",
            json!("dancing"),
            "/sessions/2/session_type",
        ),
        (
            "/sessions/2/session_type",
            json!("chat"),
            "/sessions/2/session_type",
        ),
        (
            "/sessions/2/config",
            json!({ "x": "y".repeat(300 << 10) }),
            "/sessions/2/config",
        ),
        (
            "/sessions/2/ui_state",
            json!({ "x": "y".repeat(300 << 10) }),
            "/sessions/2",
        ),
        ("/issuer", json!("https://nobody.example"), "/issuer"),
    ] {
        let refused = host.post("/api/import", &with(at, value)).await;
        refused.has(422, &json!({ "field": field }));
        assert!(
            ["INVALID", "INVALID_FIELD"].contains(&refused.text("code").as_str()),
            "{refused:?}"
        );
    }
    nothing_was_imported(&host).await;

    // The command reads all of a file before it sends any of it, and has every batch looked at
    // before the first is imported.
    let mut large: Vec<Value> = (1..=4).map(|n| old(n, "alice", "completed")).collect();
    for session in &mut large {
        session["items"][0]["user_response"] = json!("x".repeat(600 << 10));
    }
    let file = folder.path().join("old.json");
    for (name, value, exit, field) in [
        (
            "completed_at",
            json!("2025-11-01T00:00:00Z"),
            2,
            "/sessions/0/completed_at: it is 2025-11-01",
        ),
        (
            "session_type",
            json!("dancing"),
            3,
            "(at `/sessions/0/session_type`)",
        ),
    ] {
        let mut broken = large.clone();
        broken[0][name] = value;
        std::fs::write(&file, document(&broken).to_string()).unwrap();
        let run = folder.run(&["import", file.to_str().unwrap()]).await;
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(
            (run.status.code(), said.contains(field)),
            (Some(exit), true),
            "{said}"
        );
    }
    nothing_was_imported(&host).await;
    std::fs::write(&file, document(&large).to_string()).unwrap();
    let run = folder
        .run(&["import", file.to_str().unwrap(), "--json"])
        .await;
    assert_eq!(
        serde_json::from_slice::<Value>(&run.stdout).unwrap(),
        json!({ "ended": 4, "active": 0, "known": 0 }),
        "{run:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_another_users_session_has_is_refused_and_imports_nothing() {
    let (_folder, host) = leading(asks(), json!({})).await;
    let first = host
        .post("/api/import", &document(&[old(1, "alice", "completed")]))
        .await;
    assert_eq!(first.body["ended"], 1, "{first:?}");
    let before = host.position().await;
    for check in [true, false] {
        let mut both = document(&[old(2, "bob", "completed"), old(1, "bob", "completed")]);
        both["check"] = json!(check);
        let refused = host.post("/api/import", &both).await;
        refused.has(422, &json!({ "field": "/sessions" }));
    }
    assert_eq!(host.position().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_api_shows_a_session_of_many_items_whole() {
    let (_folder, host) = leading(asks(), json!({})).await;
    let mut long = old(1, "local", "completed");
    long["items"] = (0..450)
        .map(|n| json!({ "agent_prompt": "?", "user_response": { "n": n } }))
        .collect();
    let imported = host.post("/api/import", &document(&[long])).await;
    assert_eq!(imported.body["ended"], 1, "{imported:?}");
    let seen = host.get(&format!("/api/session/{}", id(1))).await.body;
    assert_eq!(seen["items"].as_array().unwrap().len(), 450);
}
