//! The queue over HTTP: settings, receipts, what waits, taking back, and a queue that is full.

use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, Session, acting, puppets, shows};
use reqwest::Method;
use serde_json::{Value, json};

fn config() -> Value {
    let steps = json!([{ "start": [{ "key": "q", "client": "confirmation" }] }]);
    let mut config = puppets(&json!([acting("asks", &steps)]));
    config["queue"] = json!({ "mode": "followup", "debounce": "1h", "cap": 5, "drop": "new" });
    config
}

/// A host with a chat that waits for an answer, and that chat's path.
async fn stage() -> (Folder, Host, Session) {
    let (folder, host) = Folder::serving(config(), &["puppet"]).await;
    let session = host.open_as("asks", "chat").await;
    host.post(
        &format!("{session}/messages"),
        &json!({ "content": "begin" }),
    )
    .await;
    until(async || host.get(&session).await.body["pending_action"].is_object()).await;
    (folder, host, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_set_looked_at_filled_and_emptied_over_http_and_from_the_command_line() {
    let (folder, host, session) = stage().await;
    let say = |body: Value| host.post(&format!("{session}/messages"), &body);
    let inputs = async || host.get(&format!("{session}/inputs")).await.body;

    // As the host is configured, then as the session says, then as the message says.
    assert_eq!(
        inputs().await["queue"]["settings"],
        json!({ "mode": "followup", "debounce_ms": 3_600_000, "cap": 5, "drop": "new" })
    );
    let put = host
        .request(Method::PUT, &format!("{session}/queue"))
        .json(&json!({ "mode": "coalesce", "cap": 2 }));
    let set = host.send(put).await;
    assert_eq!(
        set.body["settings"],
        json!({ "mode": "collect", "debounce_ms": 3_600_000, "cap": 2, "drop": "new" })
    );
    let first = say(json!({ "content": "first thing", "priority": "high" })).await;
    first.has(202, &json!({ "waits_for": "collect" }));
    let second =
        say(json!({ "content": "second", "queue": { "mode": "follow-up", "debounce_ms": "2h" } }))
            .await;
    second.has(202, &json!({ "waits_for": "followup" }));

    // Full: refused with a code and a time, or something is dropped for it.
    let full = host
        .request(Method::POST, &format!("{session}/messages"))
        .json(&json!({ "content": "third" }))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (
            full.status().as_u16(),
            full.headers().get("retry-after").is_some()
        ),
        (429, true)
    );
    let problem: Value = full.json().await.unwrap();
    shows(
        &problem,
        &json!({ "code": "QUEUE_FULL", "field": "/queue" }),
    );
    let third = say(json!({ "content": "third", "queue": { "drop": "oldest" } })).await;
    third.has(202, &json!({ "dropped": [first.text("input_id")] }));

    let waiting = inputs().await;
    let shown: Vec<(&Value, &Value)> = waiting["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| (&input["excerpt"], &input["waits_for"]))
        .collect();
    assert_eq!(
        shown,
        [
            (&json!("second"), &json!("followup")),
            (&json!("third"), &json!("collect"))
        ]
    );
    assert_eq!(
        (&waiting["dropped"], waiting["run_id"].is_string()),
        (&json!(1), true)
    );
    let dropped = host
        .get(&format!("{session}/inputs/{}", first.text("input_id")))
        .await
        .body;
    shows(&dropped, &json!({ "state": "dropped", "priority": "high" }));

    let directive = say(json!({ "content": "/queue steer" })).await;
    assert_eq!(
        (
            directive.status,
            &directive.body["queue"]["settings"]["mode"]
        ),
        (202, &json!("steer"))
    );
    assert!(directive.body.get("input_id").is_none(), "{directive:?}");
    let reset = host.delete(&format!("{session}/queue")).await;
    shows(
        &reset.body,
        &json!({ "settings/mode": "followup", "session": {} }),
    );

    let id = session.rsplit('/').next().unwrap().to_owned();
    let listed = folder.run(&["session", "inputs", &id]).await;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    folder
        .succeeds(&[
            "session",
            "cancel",
            &id,
            "--input",
            &second.text("input_id"),
        ])
        .await;
    host.delete(&format!("{session}/inputs/{}", second.text("input_id")))
        .refused(409, "INPUT_NOT_WAITING")
        .await;
    let cancelled = host
        .post(&format!("{session}/cancel"), &json!({ "waiting": true }))
        .await;
    assert_eq!(
        cancelled.body,
        json!({ "cancelled": true, "input_ids": [third.text("input_id")] })
    );
    let empty = inputs().await;
    shows(&empty, &json!({ "inputs": [], "run_id": null }));
}
