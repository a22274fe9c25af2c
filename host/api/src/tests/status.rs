//! The start, the version and the state of a host, as it reports them.

use super::host::{Host, TOKEN};
use super::scopes::key;
use crate::server::Limits;
use domain::user::Scope;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_has_started_from_its_first_request_on_and_while_it_stops() {
    let host = Host::starting(Limits::default()).await;
    let starting = host
        .send_as_it_is("GET", "/startupz", &["host: localhost"], "")
        .await;
    assert_eq!(
        (starting.status, starting.json()["code"].as_str()),
        (503, Some("STARTING"))
    );
    assert!(starting.has("retry-after: "), "{}", starting.head);
    host.api.open(host.broker.clone(), host.edge.clone());
    assert_eq!(host.get("/startupz").await.body, "started");
    host.api.drain();
    assert_eq!(host.get("/startupz").await.status, 200);
    assert_eq!(host.get("/readyz").await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_is_told_to_everybody_and_while_the_host_starts() {
    let host = Host::starting(Limits::default()).await;
    let reported = host
        .send_as_it_is("GET", "/version", &["host: localhost"], "")
        .await;
    assert_eq!(reported.status, 200, "{}", reported.body);
    assert_eq!(
        reported.json(),
        serde_json::json!({ "version": env!("CARGO_PKG_VERSION") })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_counts_what_is_open_and_is_the_operators() {
    let host = Host::start().await;
    let (agent, session) = host.agent_with_session().await;
    host.agent_with_session_of("alice".parse().unwrap()).await;
    let state = host.get_with(TOKEN, "/api/status").await;
    assert_eq!(state.status, 200, "{}", state.body);
    let state = state.json();
    assert_eq!(state["readiness"], "ready");
    assert_eq!(state["sessions"]["open"], 2, "{state}");
    assert_eq!(state["sessions"]["running"], 0, "{state}");
    assert_eq!(state["inputs"]["waiting"], 0, "{state}");
    assert!(state["store"]["events"].as_u64().unwrap() >= 4, "{state}");
    assert!(state["store"]["bytes"].as_u64().unwrap() > 0, "{state}");
    for pointer in [
        "/triggers/defined",
        "/triggers/given_up",
        "/connectors/in_trouble",
    ] {
        assert_eq!(state.pointer(pointer).unwrap(), 0, "{pointer}: {state}");
    }
    let path = format!("/api/agents/{agent}/sessions/{session}");
    let deleted = host.send("DELETE", &path, &[], "").await;
    assert!(deleted.status < 300, "{}", deleted.body);
    let state = host.get("/api/status").await.json();
    assert_eq!(state["sessions"]["open"], 1, "{state}");
    let alice = key(&host, "alice", &[Scope::Read, Scope::Write]).await;
    let refused = host.get_with(&alice, "/api/status").await;
    assert_eq!(refused.status, 403, "{}", refused.body);
}
