//! Requests at the same moment: one key has one effect for any kind of request, and a definition's
//! agent is made once for each user.

use super::routing::over;
use agent_host_tests::process::{Answer, CRASH_AT, Folder, Host, Line, PATIENCE, puppets};
use reqwest::Method;
use serde_json::{Value, json};

/// Pairs of requests for each case: a race is lost more often than once in so many.
const PAIRS: usize = 20;

fn config() -> Value {
    let question = json!([{ "start": [{ "key": "q", "client": "confirmation" }] }]);
    let mut config = puppets(&json!([
        { "agentId": "cook", "displayName": "Cook", "component": "puppet" },
        {
            "agentId": "asks", "displayName": "Asks", "component": "puppet",
            "settings": { "script": { "steps": question } },
        },
    ]));
    config["personas"] = json!([{ "id": "home", "displayName": "Home", "agent": "cook" }]);
    config
}

async fn started() -> (Folder, Host) {
    Folder::serving(config(), &["puppet"]).await
}

/// Sends the same request twice at the same moment.
async fn twice(line: &Line, key: &str, path: &str, body: &Value) -> [Answer; 2] {
    let send = || line.ask_under(key, Method::POST, path, Some(body));
    let (one, other) = tokio::join!(send(), send());
    [one, other]
}

/// Asserts that both were answered in the same way, but for who was first.
fn same(answers: &[Answer; 2], status: u16) -> &Answer {
    let [mut one, mut other] = answers.each_ref().map(|answer| answer.body.clone());
    for body in [&mut one, &mut other] {
        body.as_object_mut().unwrap().remove("replayed");
    }
    assert_eq!(
        (answers[0].status, answers[1].status),
        (status, status),
        "{answers:?}"
    );
    assert_eq!(one, other);
    &answers[0]
}

/// Counts the events of each of these kinds.
async fn counts<const N: usize>(host: &Host, kinds: [&str; N]) -> [usize; N] {
    let mut counts = [0; N];
    let mut after = 0;
    loop {
        let page = host
            .get(&format!("/api/events?after={after}&limit=1000"))
            .await
            .body;
        let events = page["events"].as_array().unwrap();
        for (count, kind) in counts.iter_mut().zip(kinds) {
            *count += events.iter().filter(|event| event["type"] == kind).count();
        }
        let Some(last) = events.last() else {
            return counts;
        };
        after = last["position"].as_u64().unwrap();
    }
}

/// Messages to an agent whose chat is deleted at the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_an_agent_finds_another_session_when_its_own_is_being_deleted() {
    let (_folder, host) = started().await;
    let line = host.user("ann", &["read", "write"]).await;
    let body = message_to(&json!({ "agent": "cook" }));
    for _ in 0..5 * PAIRS {
        let first = line.post("/api/messages", &body).gives(202).await;
        let agent = first.text("agent_id");
        let session = first.text("session_id");
        let path = format!("/api/agents/{agent}/sessions/{session}");
        let (deleted, routed) =
            tokio::join!(line.delete(&path), line.post("/api/messages", &body),);
        // A session whose run is open is not deleted, and keeps its words.
        assert!([200, 204, 409].contains(&deleted.status), "{deleted:?}");
        assert_eq!(routed.status, 202, "{routed:?}");
    }
}

const BEGUN: [&str; 3] = [
    "agent.created.v1",
    "session.opened.v1",
    "session.input.accepted.v1",
];

fn message_to(to: &Value) -> Value {
    json!({ "to": to, "content": json!({ "steps": [{ "reply": "x" }] }).to_string() })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_begins_one_session_with_its_words_also_at_the_same_moment() {
    let (_folder, host) = started().await;
    for (to, content) in [
        (json!({ "agent": "cook" }), None),
        (json!({ "persona": "home" }), None),
        (json!({ "agent": "cook" }), Some("/queue collect")),
    ] {
        let before = counts(&host, BEGUN).await;
        for _ in 0..PAIRS {
            let line = host
                .user(
                    &format!("u{}", uuid::Uuid::new_v4().simple()),
                    &["read", "write"],
                )
                .await;
            let mut body = message_to(&to);
            if let Some(content) = content {
                body["content"] = json!(content);
            }
            let answers = twice(&line, "k", "/api/messages", &body).await;
            let first = same(&answers, 202);
            assert_eq!(first.body["is_new"], true, "{first:?}");
            // Later too, when something else would be chosen.
            let other = format!("/api/agents/{}/sessions", first.text("agent_id"));
            line.post(&other, &json!({ "session_type": "chat" }))
                .gives(201)
                .await;
            same(
                &[
                    first.clone(),
                    line.ask_under("k", Method::POST, "/api/messages", Some(&body))
                        .await,
                ],
                202,
            );
        }
        let after = counts(&host, BEGUN).await;
        let inputs = if content.is_none() { PAIRS } else { 0 };
        assert_eq!(
            [
                after[0] - before[0],
                after[1] - before[1],
                after[2] - before[2]
            ],
            [PAIRS, 2 * PAIRS, inputs],
            "{to}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_forks_one_thread_at_a_turn_also_at_the_same_moment() {
    let (_folder, host) = started().await;
    let line = host.line();
    let first = host
        .post("/api/messages", &message_to(&json!({ "agent": "cook" })))
        .await;
    let turn = over(&line, &first).await["turn_id"].clone();
    over(
        &line,
        &host
            .post("/api/messages", &message_to(&json!({ "agent": "cook" })))
            .await,
    )
    .await;
    let before = counts(&host, BEGUN).await;
    for number in 0..PAIRS {
        let answers = twice(
            &line,
            &format!("k{number}"),
            "/api/messages",
            &message_to(&json!({ "thread": turn })),
        )
        .await;
        let answer = same(&answers, 202);
        assert_eq!(answer.body["is_new"], true, "{answer:?}");
        over(&line, answer).await;
    }
    let after = counts(&host, BEGUN).await;
    assert_eq!(
        [
            after[0] - before[0],
            after[1] - before[1],
            after[2] - before[2]
        ],
        [0, PAIRS, PAIRS]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn words_without_a_key_at_the_same_moment_share_the_chat_that_one_of_them_begins() {
    let (_folder, host) = started().await;
    for to in [json!({ "agent": "cook" }), json!({ "persona": "home" })] {
        let before = counts(&host, BEGUN).await;
        for _ in 0..PAIRS {
            let line = host
                .user(
                    &format!("u{}", uuid::Uuid::new_v4().simple()),
                    &["read", "write"],
                )
                .await;
            let body = message_to(&to);
            let (one, other) = tokio::join!(
                line.post("/api/messages", &body),
                line.post("/api/messages", &body)
            );
            assert_eq!((one.status, other.status), (202, 202), "{one:?} {other:?}");
            assert_eq!(one.text("session_id"), other.text("session_id"));
            assert_ne!(one.text("input_id"), other.text("input_id"));
            assert_ne!(one.body["is_new"], other.body["is_new"]);
        }
        let after = counts(&host, BEGUN).await;
        assert_eq!(
            [
                after[0] - before[0],
                after[1] - before[1],
                after[2] - before[2]
            ],
            [PAIRS, PAIRS, 2 * PAIRS],
            "{to}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_openings_by_definition_at_the_same_moment_have_one_agent() {
    let (_folder, host) = started().await;
    for (definition, session_type, under_key) in [
        ("cook", "chat", true),
        ("asks", "lesson", true),
        ("cook", "chat", false),
    ] {
        let before = counts(&host, BEGUN).await;
        let path = format!("/api/agents/{definition}/sessions");
        let body = json!({ "session_type": session_type });
        for _ in 0..PAIRS {
            let line = host
                .user(
                    &format!("u{}", uuid::Uuid::new_v4().simple()),
                    &["read", "write"],
                )
                .await;
            let (one, other) = if under_key {
                let [one, other] = twice(&line, "k", &path, &body).await;
                assert_eq!(
                    one.text("session_id"),
                    other.text("session_id"),
                    "{one:?} {other:?}"
                );
                (one, other)
            } else {
                let send = || line.post(&path, &body);
                let (one, other) = tokio::join!(send(), send());
                (one, other)
            };
            assert_eq!((one.status, other.status), (201, 201), "{one:?} {other:?}");
            assert_eq!(one.text("agent_id"), other.text("agent_id"));
        }
        let after = counts(&host, BEGUN).await;
        let sessions = if under_key { PAIRS } else { 2 * PAIRS };
        assert_eq!(
            [after[0] - before[0], after[1] - before[1]],
            [PAIRS, sessions],
            "{definition}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_are_refused_begin_nothing() {
    let (_folder, host) = started().await;
    for (content, model) in [
        (" ", Value::Null),
        ("x", json!("no-such-model")),
        ("/queue nonsense", Value::Null),
    ] {
        let body = json!({ "to": { "agent": "cook" }, "content": content, "model": model });
        host.post("/api/messages", &body).gives(422).await;
    }
    assert_eq!(counts(&host, BEGUN).await, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn between_a_key_and_the_session_that_it_begins_no_death_fits() {
    for (path, body) in [
        ("/api/messages", message_to(&json!({ "agent": "cook" }))),
        ("/api/agents/cook/sessions", json!({})),
    ] {
        for point in [
            "store.commit.begin",
            "store.commit.inserted",
            "store.commit.committed",
            "api.answered",
        ] {
            let folder = Folder::new(config());
            folder.warm(&["puppet"]).await;
            // Once before, so that the first commit is the request's.
            assert!(folder.serve().await.stop().await.success());
            let mut host = folder.start(Some(&format!("{point}:1"))).await.unwrap();
            let answered = host
                .line()
                .ask_under("k", Method::POST, path, Some(&body))
                .attempt()
                .await;
            assert!(
                host.died(PATIENCE).await.is_some(),
                "{CRASH_AT} is {point}:1, and it answered {answered:?}"
            );
            let host = folder.serve().await;
            let answer = host
                .line()
                .ask_under("k", Method::POST, path, Some(&body))
                .await;
            assert!(matches!(answer.status, 201 | 202), "{answer:?}");
            let inputs = usize::from(answer.status == 202);
            assert_eq!(counts(&host, BEGUN).await, [1, 1, inputs], "{path} {point}");
        }
    }
}
