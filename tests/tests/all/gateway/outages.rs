//! Outages of a provider: told in the status, by the deep probe and to triggers, once each.

use super::{Peer, folder};
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, PATIENCE, tells};
use reqwest::Method;
use serde_json::{Value, json};

async fn heard(host: &Host) -> Vec<String> {
    let reported = host.data_of("provider.troubled.v1").await.into_iter();
    reported
        .map(|data| data["trouble"]["kind"].as_str().unwrap().to_owned())
        .collect()
}

async fn deep(host: &Host) -> (u16, Value) {
    let answer = host.get("/readyz?deep").await;
    (answer.status, answer.body)
}

/// The provider answers 500 to everything, then recovers; the host is killed in between.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_a_provider_is_told_once_and_once_that_it_is_over() {
    let peer = Peer::start();
    let triggers = json!({ "alarm": {
        "events": { "on": ["provider.down", "provider.up"] },
        "target": { "agent": "listener" },
        "user": "local",
    } });
    let listener = json!({ "agentId": "listener", "displayName": "L", "model": "s" });
    let folder = folder(&peer, json!({ "triggers": triggers, "agents": [listener] })).await;
    let host = folder.serve().await;
    assert_eq!(deep(&host).await.0, 200);
    let session = host.open("plain").await;
    peer.fails(true);
    for _ in 0..2 {
        assert_eq!(
            host.turn(&session, "hello").gives(200).await.body["outcome"],
            "failed"
        );
    }
    let status = host.get("/api/status").await.body;
    assert_eq!(status["outages"][0]["kind"], "provider", "{status}");
    assert_eq!(status["outages"][0]["name"], "local");
    let (code, problem) = deep(&host).await;
    assert_eq!((code, &problem["code"]), (503, &json!("DEPENDENCY_DOWN")));
    for bare in ["/readyz", "/readyz?deep"] {
        let shallow = host.send(host.bare(Method::GET, bare)).await;
        assert_eq!(shallow.status, 200, "who has no credential is told no more");
    }
    let reported = folder.run(&["status"]).await;
    let reported = String::from_utf8_lossy(&reported.stdout).into_owned();
    tells(&reported, &["down        provider local since "]);
    let reported = Folder::run_within(PATIENCE * 4, folder.program(&["doctor"])).await;
    let reported = String::from_utf8_lossy(&reported.stdout).into_owned();
    let down = "warn  models         down: provider local since ";
    assert!(
        reported.contains(down) && !reported.contains("ok    models"),
        "{reported}"
    );
    assert_eq!(heard(&host).await, ["failing"]);

    host.kill().await;
    let host = folder.serve().await;
    assert_eq!(
        host.turn(&session, "still?").gives(200).await.body["outcome"],
        "failed"
    );
    assert_eq!(heard(&host).await, ["failing"], "it is no news");
    peer.fails(false);
    assert_eq!(
        host.turn(&session, "again").gives(200).await.body["outcome"],
        "replied"
    );
    assert_eq!(heard(&host).await, ["failing", "recovered"]);
    assert_eq!(deep(&host).await.0, 200);
    let accepted = async || host.data_of("trigger.event.accepted.v1").await.len();
    until(async || accepted().await >= 2).await;

    let usage = host.get("/api/usage?by=model").await.body;
    let rows = usage["usage"].as_array().unwrap();
    let asked = rows.iter().find(|row| row["key"] == "m-1").unwrap();
    assert_eq!(asked["input_tokens"], 40, "what was delivered: {asked}");
    assert!(asked["reserved_tokens"].as_u64().unwrap() > 0, "{asked}");
}
