//! Calls of webhooks and services: what those learn who cannot prove theirs.

use super::host::Host;
use domain::connector::CALL_BYTES_MAX;
use domain::trigger::PAYLOAD_BYTES_MAX;

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_no_webhook_is_answered_as_a_wrong_signature_is() {
    let host = Host::start().await;
    let mut answers = Vec::new();
    for path in [
        "/hooks/nobody",
        "/hooks/wake",
        "/hooks/agent",
        "/hooks/nobody/some/where",
        "/hooks/%20",
        "/connectors/nobody/webhook",
        "/connectors/%20/webhook",
    ] {
        let headers = ["host: localhost", "authorization: Bearer wrong"];
        let answer = host.send_as_it_is("POST", path, &headers, "{}").await;
        assert_eq!(answer.status, 401, "{path}: {}", answer.body);
        assert_eq!(answer.json()["code"], "CALL_UNVERIFIED", "{path}");
        answers.push(answer.body);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_says_it_is_too_large_is_refused_before_it_is_read() {
    let host = Host::start().await;
    for (path, bytes_max) in [
        ("/hooks/nobody", PAYLOAD_BYTES_MAX),
        ("/connectors/nobody/webhook", CALL_BYTES_MAX),
    ] {
        let length = format!("content-length: {}", bytes_max + 1);
        let headers = ["host: localhost", length.as_str()];
        let answer = host.send_as_it_is("POST", path, &headers, "").await;
        assert_eq!(answer.status, 413, "{path}: {}", answer.body);
        assert_eq!(answer.json()["code"], "BODY_TOO_LARGE", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_for_no_connector_is_told_nothing() {
    let host = Host::start().await;
    let path = "/connectors/whatsapp/webhook?hub.mode=subscribe&hub.verify_token=x\
                &hub.challenge=42";
    let answer = host
        .send_as_it_is("GET", path, &["host: localhost"], "")
        .await;
    assert_eq!(answer.status, 401, "{}", answer.body);
    assert!(!answer.body.contains("42"), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_stops_takes_no_calls() {
    let host = Host::start().await;
    host.api.drain();
    for path in ["/hooks/nobody", "/connectors/nobody/webhook"] {
        let answer = host
            .send_as_it_is("POST", path, &["host: localhost"], "{}")
            .await;
        assert_eq!(answer.json()["code"], "SHUTTING_DOWN", "{path}");
        assert!(answer.has("retry-after: "), "{}", answer.head);
    }
}
