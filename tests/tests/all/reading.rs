//! Every route that reads, asked by others with the ids of one user's things. The routes are those
//! of the API's own description: one that is not listed here fails the test.

use agent_host_tests::patience::found;
use agent_host_tests::process::{Answer, Folder, Host, Line, puppet, puppets};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// A word that is in all that ada says, names and uploads.
const WORD: &str = "plugh77canary";
/// Milliseconds without a byte after which an event stream has told all that it has.
const SILENCE_MS: u64 = 400;

/// The routes, each with whether ada herself finds her word there, and with the forms in which it
/// is asked: what is added to its path, with ids in braces, and `.` for nothing.
const ASKED: &[&str] = &[
    "/api/agents hides ?limit=200",
    "/api/agents/{id} hides .",
    "/api/agents/{id}/history hides . ?user=ada",
    "/api/agents/{id}/memory hides . ?q={word}",
    "/api/agents/{id}/preferences hides .",
    "/api/agents/{id}/prompt hides . ?session={sid}",
    "/api/agents/{id}/reply-target hides .",
    "/api/agents/{id}/sessions finds . ?user=ada",
    "/api/agents/{id}/sessions/{sid} finds . ?after=0&messages=100",
    "/api/agents/{id}/sessions/{sid}/diff finds ?with={sid} ?with={other_sid} ?with={turn_id} ?with={other_turn}",
    "/api/agents/{id}/sessions/{sid}/export finds .",
    "/api/agents/{id}/sessions/{sid}/files finds .",
    "/api/agents/{id}/sessions/{sid}/files/{digest} finds .",
    "/api/agents/{id}/sessions/{sid}/inputs hides .",
    "/api/agents/{id}/sessions/{sid}/inputs/{input} hides .",
    "/api/agents/{id}/sessions/{sid}/items hides .",
    "/api/agents/{id}/sessions/{sid}/stats hides .",
    "/api/agents/{id}/sessions/{sid}/tree finds .",
    "/api/agents/{id}/stream finds ?after=0 ?after=0&session={sid} ?after=0&session={sid}&spawned=true",
    "/api/conversations/{conversation} finds .",
    "/api/definitions hides .",
    "/api/definitions/{definition} hides .",
    "/api/me hides .",
    "/api/models hides .",
    "/api/paths hides . ?under={path}",
    "/api/paths/fetch hides ?path={path}",
    "/api/personas hides .",
    "/api/search finds ?q={word} ?q={word}&agent={id} ?q={word}&agent={path}",
    "/api/session hides . ?user_id=ada",
    "/api/session/{sid} hides .",
    "/api/session/{sid}/state hides .",
    "/api/session/{sid}/stream hides . ?after=0",
    "/api/sessions finds ?limit=200",
    "/api/sessions/{sid} finds .",
    "/api/tasks hides . ?session={sid} ?agent={id}",
    "/api/tasks/stats hides . ?session={sid} ?agent={id}",
    "/api/tasks/{task_id} finds .",
    "/api/triggers hides .",
    "/api/triggers/{trigger} hides .",
    "/api/triggers/{trigger}/history hides .",
    "/api/turns/{turn_id} finds .",
    "/api/usage hides . ?by=session ?by=agent",
    "/api/users/{user}/connectors hides .",
];

/// The same: the route, whether she finds it, and the forms.
fn routes_asked() -> impl Iterator<Item = (&'static str, bool, impl Iterator<Item = &'static str>)>
{
    ASKED.iter().map(|line| {
        let mut words = line.split(' ');
        let route = words.next().unwrap();
        let finds = words.next().unwrap();
        let forms = words.map(|form| form.trim_start_matches('.'));
        (route, finds == "finds", forms)
    })
}

/// The names that stand for something of ada's, and what they stand for.
type Things = Vec<(&'static str, String)>;

async fn key(host: &Host, user: &str, scopes: &[&str]) -> String {
    let asked = json!({ "user": user, "name": "reading", "scopes": scopes });
    let made = host.post("/api/keys", &asked).gives(201).await;
    made.text("key")
}

/// Returns status and text of an answer. An event stream is read until it is silent.
async fn read(host: &Host, key: &str, path: &str) -> (u16, String) {
    let request = host.bare(Method::GET, path).bearer_auth(key);
    let mut response = request.send().await.unwrap();
    let mut body = Vec::new();
    let silence = Duration::from_millis(SILENCE_MS);
    while let Ok(Ok(Some(part))) = timeout(silence, response.chunk()).await {
        body.extend_from_slice(&part);
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    (response.status().as_u16(), text)
}

async fn ask(line: &Line, method: Method, path: &str, body: Value) -> Answer {
    let answer = line.ask(method, path, Some(&body)).await;
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer
}

/// Has ada talk in a session of her agent, which hands work over. Returns what there is of it.
async fn exchange(ada: &Line, id: &str, number: u8) -> Things {
    let agent = format!("/api/agents/{id}");
    let chat = json!({ "session_type": "chat", "name": format!("{WORD} {number}") });
    let opened = ask(ada, Method::POST, &format!("{agent}/sessions"), chat).await;
    let at = format!("{agent}/sessions/{}", opened.text("session_id"));
    let delegate = json!({
        "key": "a", "tool": "delegate",
        "args": {
            "target": "worker", "operation": "list_files", "parameters": { "path": WORD },
        },
    });
    let steps = json!([{ "start": [delegate] }, { "reply": format!("It was {WORD}.") }]);
    let words = json!({ "content": json!({ "steps": steps }).to_string() });
    let said = ask(
        ada,
        Method::POST,
        &format!("{at}/messages?wait_s=30"),
        words,
    )
    .await;
    assert_eq!(said.text("outcome"), "replied", "{said:?}");
    let file = format!("all about {WORD}");
    let uploaded = ada
        .upload(&format!("{at}/files?name={WORD}.txt"), file.into_bytes())
        .await;
    assert!(uploaded.status < 300, "{uploaded:?}");
    let shown = ada.get(&at).await.body;
    let head = shown["turn_id"].as_str().unwrap_or_default().to_owned();
    assert!(!head.is_empty(), "{shown}");
    let tasks = format!("/api/tasks?session={}", opened.text("session_id"));
    let task = task_of(ada, &tasks).await;
    vec![
        ("word", WORD.to_owned()),
        ("id", id.to_owned()),
        ("path", "%2Fada%2Fagent%2Fdiary".to_owned()),
        ("sid", opened.text("session_id")),
        ("conversation", opened.text("conversation_id")),
        ("turn_id", head),
        ("digest", uploaded.text("digest")),
        ("input", said.text("input_id")),
        ("task_id", task["task_id"].as_str().unwrap().to_owned()),
        (
            "worker_agent",
            task["performer"]["agent_id"].as_str().unwrap().to_owned(),
        ),
        (
            "worker_sid",
            task["performer"]["session_id"].as_str().unwrap().to_owned(),
        ),
        ("user", "ada".to_owned()),
        ("definition", "puppet".to_owned()),
        ("trigger", "none".to_owned()),
    ]
}

/// Has ada's agent say, name and hand over her word. Returns her things.
async fn reported(host: &Host) -> Vec<Things> {
    let ada = host.user("ada", &["read", "write"]).await;
    let new = json!({ "definition": "puppet", "path": "/ada/agent/diary" });
    let id = ask(&ada, Method::POST, "/api/agents", new).await.text("id");
    let agent = format!("/api/agents/{id}");
    for (user, role) in [
        ("mentee", "mentee"),
        ("observer", "observer"),
        ("ruled", "shared"),
        ("reader", "shared"),
    ] {
        let assigned = json!({ "user_id": user, "role": role });
        ask(&ada, Method::POST, &format!("{agent}/assign"), assigned).await;
    }
    let mut sessions = vec![exchange(&ada, &id, 0).await, exchange(&ada, &id, 1).await];
    let thing = |things: &Things, name: &str| {
        let found = things.iter().find(|thing| thing.0 == name);
        found.map(|thing| thing.1.clone()).unwrap_or_default()
    };
    let [sid, turn] = ["sid", "turn_id"].map(|name| thing(&sessions[1], name));
    sessions[0].extend([("other_sid", sid), ("other_turn", turn)]);
    // The worker's session, by the same names.
    let mut below = sessions[0].clone();
    for named in &mut below {
        match named.0 {
            "id" => named.1 = thing(&sessions[0], "worker_agent"),
            "sid" => named.1 = thing(&sessions[0], "worker_sid"),
            _ => {}
        }
    }
    vec![sessions.remove(0), below]
}

async fn task_of(line: &Line, path: &str) -> Value {
    found(async || {
        let listed = line.get(path).await;
        listed.body["tasks"].get(0).cloned()
    })
    .await
}

/// Returns the routes that read with the scope `read`, as the description has them.
async fn routes(host: &Host) -> Vec<String> {
    let described = host.get("/openapi.json").await.body;
    let reads = |item: &Value| {
        let security = item["get"]["security"].as_array();
        security.is_some_and(|any| {
            any.iter().any(|one| {
                let scopes = one["token"].as_array();
                scopes.is_some_and(|scopes| scopes.is_empty() || scopes.contains(&json!("read")))
            })
        })
    };
    let paths = described["paths"].as_object().unwrap();
    let reading = paths.iter().filter(|(_, item)| reads(item));
    reading.map(|(path, _)| path.clone()).collect()
}

fn filled(text: &str, things: &Things) -> String {
    things.iter().fold(text.to_owned(), |text, (name, thing)| {
        text.replace(&format!("{{{name}}}"), thing)
    })
}

/// Says by which of the forms of each route a key finds the word.
async fn finds(host: &Host, key: &str, things: &[Things]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (route, _, forms) in routes_asked() {
        for form in forms {
            for things in things {
                let path = filled(&format!("{route}{form}"), things);
                assert!(!path.contains('{'), "{path}");
                let (_, text) = read(host, key, &path).await;
                if text.contains(WORD) {
                    found.push((route, path));
                }
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_that_reads_shows_a_users_words_to_whom_they_are_hidden_from() {
    let done = json!([{ "reply": format!("{WORD} is done") }]);
    let mut config = puppets(&json!([
        puppet(),
        {
            "agentId": "worker", "displayName": "Worker", "component": "puppet",
            "settings": { "script": { "steps": done } },
        },
    ]));
    config["pathRules"] = json!([
        { "subtree": "/ada/agent/diary/**", "access": "none", "users": ["ruled"] },
        { "subtree": "/ada/**", "access": "read", "users": ["ruled", "reader"] },
    ]);
    let (_folder, host) = Folder::serving(config, &["puppet"]).await;
    let mut unlisted = routes(&host).await;
    unlisted.retain(|route| !routes_asked().any(|(known, ..)| known == route));
    assert!(unlisted.is_empty(), "say how these are asked: {unlisted:?}");
    let things = reported(&host).await;

    // Whoever may see it does, so that what others do not find is there to be found.
    for user in ["ada", "reader", "observer"] {
        let key = key(&host, user, &["read"]).await;
        let found = finds(&host, &key, &things).await;
        for (route, shows, _) in routes_asked() {
            let is_by_role = ["/api/search", "/api/turns/{turn_id}"].contains(&route);
            if shows && (user == "ada" || is_by_role) {
                let is_found = found.iter().any(|(by, _)| *by == route);
                assert!(is_found, "{user} finds it by {route}: {found:?}");
            }
        }
    }
    for (user, scopes) in [
        ("stranger", &["read", "write"][..]),
        ("mentee", &["read", "write"]),
        ("ruled", &["read", "write"]),
        ("stranger", &["keys"]),
        ("ada", &["write"]),
        ("ada", &["keys"]),
    ] {
        let key = key(&host, user, scopes).await;
        let found = finds(&host, &key, &things).await;
        assert!(found.is_empty(), "{user} {scopes:?} finds it by {found:?}");
    }
}
