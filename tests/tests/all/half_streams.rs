//! A reply whose stream a kill cut off: its watchers learn that what they saw is void, and the
//! repetition has another attempt.
use agent_host_tests::process::{Folder, puppet, scripted};
use serde_json::{Value, json};

/// A model that takes its time for each word.
const SCRIPT: &str = r#"
[[rule]]
reply = { text = "one two three four five six", delayMs = 150 }
"#;

fn config() -> Value {
    scripted(&json!([puppet()]), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_stream_that_a_kill_cut_off_is_void_for_who_comes_back() {
    let folder = Folder::new(config());
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    folder.warm(&["puppet"]).await;
    let host = folder.serve().await;
    let opened = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let agent = format!("/api/agents/{}", opened.text("agent_id"));
    let id = opened.text("session_id");
    let stream = format!("{agent}/stream?session={id}");
    let mut frames = host.follow(&stream, None).await;
    let steps = json!({ "steps": [{ "start": [{ "key": "m", "model": "be brief" }] }] });
    host.post(
        &format!("{agent}/sessions/{id}/messages"),
        &json!({ "content": steps.to_string() }),
    )
    .await;
    let before = frames.until("content_chunk").await;
    let last = before
        .iter()
        .rev()
        .find_map(|frame| frame.id)
        .expect("its run has begun");
    let cut_off = before.last().unwrap().data.clone();
    host.kill().await;

    let host = folder.serve().await;
    let reported = host
        .follow(&stream, Some(last))
        .await
        .until("stream_complete")
        .await;
    let of_call = |name: &str| {
        reported
            .iter()
            .filter(|frame| frame.event == name)
            .map(|frame| &frame.data)
            .collect::<Vec<_>>()
    };
    let discarded = of_call("content_discarded");
    let is_void = |data: &&Value| {
        data["operation_id"] == cut_off["operation_id"] && data["attempt"] == cut_off["attempt"]
    };
    assert!(
        discarded.iter().any(is_void),
        "nobody says that it is void: {reported:?}"
    );
    let again = of_call("content_chunk");
    assert!(
        !again.iter().any(is_void),
        "what comes again looks like what went before: {again:?}"
    );
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// A model that takes longer than a host needs to start.
const SLOW: &str = r#"
[[rule]]
reply = { text = "one two three four five six seven eight nine ten eleven twelve", delayMs = 400 }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_half_stream_is_void_after_each_of_three_kills_and_its_turn_is_answered() {
    let folder = Folder::new(config());
    std::fs::write(folder.path().join("script.toml"), SLOW).unwrap();
    folder.warm(&["puppet"]).await;
    let mut host = folder.serve().await;
    let opened = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let agent = format!("/api/agents/{}", opened.text("agent_id"));
    let id = opened.text("session_id");
    let stream = format!("{agent}/stream?session={id}");
    let mut frames = host.follow(&stream, None).await;
    let steps = json!({ "steps": [{ "start": [{ "key": "m", "model": "be brief" }] }] });
    host.post(
        &format!("{agent}/sessions/{id}/messages"),
        &json!({ "content": steps.to_string() }),
    )
    .await;
    let mut last = None;
    let mut cut_off = Vec::new();
    for _ in 0..3 {
        let before = frames.until("content_chunk").await;
        last = before.iter().rev().find_map(|frame| frame.id).or(last);
        cut_off.push(before.last().unwrap().data.clone());
        host.kill().await;
        host = folder.serve().await;
        frames = host.follow(&stream, last).await;
    }
    let reported = frames.until("stream_complete").await;
    assert_eq!(
        reported.last().unwrap().data["end"],
        "replied",
        "{reported:?}"
    );
    // Each is void with the attempt that followed it, also the last.
    let newest = cut_off.last().unwrap();
    let is_void = |data: &Value| {
        data["operation_id"] == newest["operation_id"] && data["attempt"] == newest["attempt"]
    };
    assert!(
        reported
            .iter()
            .any(|frame| frame.event == "content_discarded" && is_void(&frame.data)),
        "{newest}: {reported:?}"
    );
    assert!(host.stop().await.success(), "{}", folder.log());
}
