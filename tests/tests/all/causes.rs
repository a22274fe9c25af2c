//! The causes that models and operators hear of a call that must not be repeated: the one that
//! there was, and none that there was not.

use super::exhaustion::config;
use agent_host_tests::process::{Folder, Host, PATIENCE};
use serde_json::{Value, json};
use std::fs::File;
use std::process::Stdio;

/// A turn with one call of the tool that must not run twice. Returns its outcome on record, and the
/// words that a model would read of it.
async fn called(host: &Host, arguments: Value) -> Value {
    let session = host.open("puppet").await;
    let call = json!({ "key": "s", "tool": "send", "args": arguments });
    host.play(&session, &json!([{ "start": [call] }, { "reply": "done" }]))
        .await;
    host.rest(&session).await;
    let events = host.events("").await;
    let mut settled = events
        .iter()
        .filter_map(|event| event["data"]["settled"].as_array()?.first());
    settled.next_back().expect("an outcome").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cut_a_call_off_is_told_and_no_stop_of_the_host_is_made_up() {
    let mut config = config();
    config["components"]["effects"]["limits"] = json!({ "wallMsMax": 300 });
    let (folder, host) = Folder::serving(config, &["puppet", "effects"]).await;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_computes_too_long_or_crashes_is_unknown_with_that_cause() {
    let mut config = config();
    config["components"]["effects"]["limits"] = json!({ "cpuMsMax": 200 });
    let (folder, host) = Folder::serving(config, &["puppet", "effects"]).await;
    for (arguments, cause) in [("spin", "out-of-cpu"), ("panic", "trapped")] {
        let ended = called(&host, json!({ arguments: true })).await;
        assert_eq!(ended["outcome"], "unknown", "{ended}");
        assert_eq!(ended["cause"]["code"], cause, "{ended}");
    }

    // The ledger of those calls, and a new key, are not lost without a word.
    for words in [
        &["audit", "--json"][..],
        &["status"],
        &["key", "create", "--scopes", "read"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = folder.program(words);
        let reported = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let reported = tokio::time::timeout(PATIENCE, reported.wait_with_output()).await;
        let reported = reported.expect("an end in time").unwrap();
        let why = String::from_utf8_lossy(&reported.stderr);
        assert_eq!(reported.status.code(), Some(1), "{words:?}: {why}");
        assert!(why.contains("No space left on device"), "{words:?}: {why}");
    }
    assert!(host.stop().await.success());
}
