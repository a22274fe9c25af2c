//! The causes that models and operators hear of a call that must not be repeated: the one that
//! there was, and none that there was not.

use super::exhaustion::{config, idle, open, say};
use agent_host_tests::process::{Folder, Host};
use serde_json::{Value, json};

/// A turn with one call of the tool that must not run twice. Returns its outcome on record, and the
/// words that a model would read of it.
async fn called(host: &Host, arguments: Value) -> Value {
    let session = open(host).await;
    let steps = json!({ "steps": [
        { "start": [{ "key": "s", "tool": "send", "args": arguments }] }, { "reply": "done" },
    ] });
    let said = say(host, &session, &steps.to_string()).await;
    assert_eq!(said.status, 202, "{said:?}");
    idle(host, &session).await;
    let events = host.get("/api/events?limit=1000").await.unwrap().body;
    let events = events["events"].as_array().unwrap().iter();
    let mut settled = events.filter_map(|event| event["data"]["settled"].as_array()?.first());
    settled.next_back().expect("an outcome").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cut_a_call_off_is_told_and_no_stop_of_the_host_is_made_up() {
    let mut config = config();
    config["components"]["effects"]["limits"] = json!({ "wallMsMax": 300 });
    let folder = Folder::new(config);
    folder.warm(&["puppet", "effects"]).await;
    let host = folder.start(None).await.unwrap();

    let slow = called(&host, json!({ "sleep": 5_000 })).await;
    assert_eq!(slow["outcome"], "unknown", "{slow}");
    assert_eq!(slow["cause"]["code"], "timed-out", "{slow}");
    assert!(!slow.to_string().contains("the host"), "{slow}");

    let files = folder.path().join("files");
    std::fs::remove_dir_all(&files).unwrap();
    let gone = called(&host, json!({})).await;
    assert_eq!(gone["outcome"], "failed", "nothing of it ran: {gone}");
    assert_eq!(gone["failure"]["code"], "tool-failed", "{gone}");
}
