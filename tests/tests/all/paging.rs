//! Lists in the order of time, page by page, while what is on them changes.

use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, acting, puppets};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

async fn started() -> (Folder, Host) {
    let says = json!([{ "reply": "hello" }]);
    let asks = json!([{ "start": [{ "key": "q", "client": "confirmation" }] }]);
    Folder::serving(
        puppets(&json!([acting("says", &says), acting("asks", &asks)])),
        &["puppet"],
    )
    .await
}

async fn open(host: &Host, definition: &str, session_type: &str) -> (String, String) {
    let opened = host
        .post(
            &format!("/api/agents/{definition}/sessions"),
            &json!({ "session_type": session_type }),
        )
        .gives(201)
        .await;
    // The next one is updated later than this one.
    sleep(Duration::from_millis(3)).await;
    (
        format!("/api/agents/{}", opened.text("agent_id")),
        opened.text("session_id"),
    )
}

/// The ids on a page, and where the next one begins.
async fn page(host: &Host, path: &str) -> (Vec<String>, Value) {
    let page = host.get(path).gives(200).await;
    let id = |row: &Value| row["session_id"].as_str().unwrap().to_owned();
    (
        page.body["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(id)
            .collect(),
        page.body["next_after"].clone(),
    )
}

/// Says something in a session, so that it stands elsewhere in the list.
async fn touch(host: &Host, session: &str) {
    let before = host.get(session).await.text("updated_at");
    host.say(session, "hello").await;
    until(async || {
        let seen = host.get(session).await;
        seen.text("updated_at") != before
            && seen.body["run_id"].is_null()
            && seen.body["waiting"] == 0
    })
    .await;
}

/// A page goes on where the last one ended, also when the session there was touched in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_goes_on_where_the_last_one_ended_also_when_its_session_was_touched() {
    let (_folder, host) = started().await;
    let mut opened = Vec::new();
    for _ in 0..5 {
        opened.push(open(&host, "says", "chat").await);
    }
    let agent = opened[0].0.clone();
    let latest_first: Vec<String> = opened.iter().rev().map(|(_, id)| id.clone()).collect();
    let (first, next) = page(&host, &format!("{agent}/sessions?limit=2")).await;
    assert_eq!(first, latest_first[..2]);
    touch(&host, &format!("{agent}/sessions/{}", first[1])).await;
    let (second, next) = page(
        &host,
        &format!("{agent}/sessions?limit=2&after={}", next.as_str().unwrap()),
    )
    .await;
    assert_eq!(
        second,
        latest_first[2..4],
        "neither what was there before nor what was touched, and nothing is left out"
    );
    // The same with one that was on an earlier page.
    touch(&host, &format!("{agent}/sessions/{}", first[0])).await;
    let (last, end) = page(
        &host,
        &format!("{agent}/sessions?limit=2&after={}", next.as_str().unwrap()),
    )
    .await;
    assert_eq!((last.as_slice(), end), (&latest_first[4..], Value::Null));
    assert_eq!(
        page(&host, &format!("{agent}/sessions?limit=2")).await.0,
        [first[0].clone(), first[1].clone()]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_in_a_list_is_no_id_and_no_place_in_another_list() {
    let (_folder, host) = started().await;
    let mut ended = Vec::new();
    for _ in 0..3 {
        let (agent, id) = open(&host, "asks", "lesson").await;
        host.delete(&format!("{agent}/sessions/current"))
            .gives(200)
            .await;
        ended.push((agent, id));
    }
    let agent = &ended[0].0;
    let (first, next) = page(&host, &format!("{agent}/history?limit=1")).await;
    let (rest, end) = page(
        &host,
        &format!("{agent}/history?limit=2&after={}", next.as_str().unwrap()),
    )
    .await;
    let all: Vec<String> = first.iter().chain(&rest).cloned().collect();
    assert_eq!(
        (all, end),
        (
            ended.iter().rev().map(|(_, id)| id.clone()).collect(),
            Value::Null
        )
    );
    let of_history = next.as_str().unwrap();
    for (list, wrong) in [
        ("sessions", of_history),
        ("sessions", first[0].as_str()),
        ("history", first[0].as_str()),
        ("history", "x"),
    ] {
        let refused = host.get(&format!("{agent}/{list}?after={wrong}")).await;
        let reported = (refused.status, refused.text("code"), refused.text("field"));
        assert_eq!(
            reported,
            (400, "INVALID_QUERY".to_owned(), "query:after".to_owned()),
            "{list} {wrong}"
        );
    }
}
