//! Keys of the configuration that the environment sets: where the host listens, the model by
//! default and the filter of the log.

use super::{Peer, folder};
use serde_json::{Value, json};

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
