//! Providers and their models as they are looked at, their outages, and what the environment sets
//! of them and of the host.

use super::{Peer, folder};
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, PATIENCE, shows, tells};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_with_what_their_providers_list_and_how_they_were_seen() {
    let peer = Peer::start();
    let folder = folder(&peer, json!({})).await;
    let host = folder.serve().await;
    let session = host.open("plain").await;
    assert_eq!(peer.lists(), 0, "no turn and no start asks for a list");
    host.turn(&session, "hello").gives(200).await;
    assert_eq!(peer.lists(), 0);
    let shown = host.get("/api/models").gives(200).await;
    let find = |list: &str, key: &str, name: &str| -> Value {
        let mut all = shown.body[list].as_array().unwrap().iter();
        all.find(|one| one[key] == name).unwrap().clone()
    };
    let main = find("models", "alias", "main");
    shows(
        &main,
        &json!({ "model": "m-1", "listed": true, "is_default": true }),
    );
    assert_eq!(main["price"]["output_per_million"], 2.0);
    assert_eq!(main["health"]["state"], "up");
    assert_eq!(main["health"]["seen_by"], "call");
    assert_eq!(find("models", "alias", "gone")["listed"], false);
    let local = find("providers", "name", "local");
    assert_eq!(local["models"], json!(["m-1", "m-2"]));
    let script = find("providers", "name", "script");
    assert_eq!(script["models"], json!(["s"]), "it answers from itself");
    let down = find("providers", "name", "down");
    assert_eq!(down["health"]["state"], "down");
    assert_eq!(down["error"]["code"], "model-unavailable");
    let asked = peer.lists();
    host.get("/api/models").await;
    assert_eq!(peer.lists(), asked, "a list is kept");

    let listed = folder.run(&["model", "list"]).await;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    for begin in [
        "main local/m-1 window 128000 price 1 in, 2 out listed up (call at ",
        "gone local/m-9 window 128000 no price not listed provider up (",
    ] {
        assert!(
            listed.lines().any(|line| words(line).starts_with(begin)),
            "{begin}: {listed}"
        );
    }
    let checked = folder.run(&["model", "check"]).await;
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let reported = String::from_utf8_lossy(&checked.stdout).into_owned();
    for line in [
        "ok    local  lists 2 models",
        "ok    script  lists 1 model",
        "note  gone  m-9 is not in the list of local, which has m-1, m-2; a server of this kind \
         may take any name",
    ] {
        assert!(
            reported.lines().any(|reported| reported == line),
            "{line}: {reported}"
        );
    }
    tells(&reported, &["fail  down  "]);
}

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

/// A line of a host that stops, at the level `info`.
const STOPPING: &str = "stopping: turns in progress";

/// The default among the models that a host lists.
fn default_of(shown: &Value) -> &str {
    let models = shown["models"].as_array().unwrap();
    let default = models.iter().find(|model| model["is_default"] == true);
    default.unwrap()["alias"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn address_default_model_and_log_level_come_from_file_or_environment() {
    let peer = Peer::start();
    let folder = folder(&peer, json!({})).await;
    let mut logged = 0;
    for (variable, address, model, is_reported) in [
        (None, "http://127.0.0.1:", "main", true),
        (
            Some(("AGENT_HOST__SERVER__LISTEN", "127.0.0.2:0")),
            "http://127.0.0.2:",
            "main",
            true,
        ),
        (
            Some(("AGENT_HOST__DEFAULT_MODEL", "s")),
            "http://127.0.0.1:",
            "s",
            true,
        ),
        (
            Some(("AGENT_HOST__SERVER__LOG", "error")),
            "http://127.0.0.1:",
            "main",
            false,
        ),
        (
            Some(("RUST_LOG", "error")),
            "http://127.0.0.1:",
            "main",
            false,
        ),
    ] {
        let host = folder.start_in(&[], variable).await.unwrap();
        assert!(
            host.base.starts_with(address),
            "{variable:?}: {}",
            host.base
        );
        let shown = host.get("/api/models").gives(200).await;
        assert_eq!(default_of(&shown.body), model, "{variable:?}");
        let asked = peer.bodies().len();
        let session = host.open("plain").await;
        assert_eq!(
            host.turn(&session, "hello").gives(200).await.body["outcome"],
            "replied"
        );
        // The other model answers from a script.
        let is_peers = model == "main";
        assert_eq!(peer.bodies().len() > asked, is_peers, "{variable:?}");
        assert!(host.stop().await.success(), "{}", folder.log());
        let log = folder.log();
        assert_eq!(
            log.get(logged..).unwrap().contains(STOPPING),
            is_reported,
            "{variable:?}: {log}"
        );
        logged = log.len();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_log_goes_before_the_file_and_one_that_is_no_filter_is_warned_of() {
    let peer = Peer::start();
    let server = json!({ "listen": "127.0.0.1:0", "dataDir": "data", "log": "warn" });
    let folder = folder(&peer, json!({ "server": server })).await;
    let mut logged = 0;
    for (rust_log, is_reported, is_warned) in [
        (None, false, false),
        (Some(("RUST_LOG", "info")), true, false),
        (Some(("RUST_LOG", "broker=loud")), false, true),
    ] {
        let host = folder.start_in(&[], rust_log).await.unwrap();
        assert!(host.stop().await.success(), "{}", folder.log());
        let log = folder.log();
        let since = log.get(logged..).unwrap();
        assert_eq!(
            since.contains(STOPPING),
            is_reported,
            "{rust_log:?}: {since}"
        );
        let warning = "RUST_LOG is no filter of the log";
        assert_eq!(since.contains(warning), is_warned, "{rust_log:?}: {since}");
        logged = log.len();
    }
}
