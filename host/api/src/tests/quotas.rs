//! Tests of the limits of one user and of one key: only the holder who has used up a share is
//! refused.

use super::host::Host;
use crate::Limits;
use crate::server::CHECKS_MAX;
use domain::user::UserId;
use serde_json::json;
use std::time::Duration;
use tokio::net::TcpStream;

async fn key(host: &Host, user: &str) -> String {
    let issued = host
        .post(
            "/api/keys",
            &json!({ "user": user, "name": "test", "scopes": ["read"] }).to_string(),
        )
        .await;
    assert_eq!(issued.status, 201, "{}", issued.body);
    issued.json()["key"].as_str().unwrap().to_owned()
}

async fn refused(host: &Host, key: &str, path: &str, code: &str) {
    let answer = host.get_with(key, path).await;
    assert_eq!(
        (answer.status, answer.json()["code"].as_str()),
        (429, Some(code)),
        "{}",
        answer.body
    );
    assert!(answer.has("retry-after: "), "{}", answer.head);
}

async fn alive(host: &Host) {
    for path in ["/healthz", "/readyz", "/startupz"] {
        let answer = host
            .send_as_it_is("GET", path, &["host: localhost"], "")
            .await;
        assert_eq!(
            answer.status, 200,
            "{path}: {} {}",
            answer.head, answer.body
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_takes_its_streams_and_everybody_else_goes_on() {
    let host = Host::start_with(Limits {
        streams_per_key_max: 2,
        streams_per_user_max: 3,
        ..Limits::default()
    })
    .await;
    let user = |name: &str| name.parse::<UserId>().unwrap();
    let (alices, _) = host.agent_with_session_of(user("alice")).await;
    let (bobs, _) = host.agent_with_session_of(user("bob")).await;
    let (own, _) = host.agent_with_session().await;
    let first = key(&host, "alice").await;
    let second = key(&host, "alice").await;
    let bob = key(&host, "bob").await;
    let path = format!("/api/agents/{alices}/stream");
    let one = host.follow_with(&first, &path, &[]).await;
    let _two = host.follow_with(&first, &path, &[]).await;
    refused(&host, &first, &path, "KEY_STREAM_LIMIT").await;
    let _three = host.follow_with(&second, &path, &[]).await;
    refused(&host, &second, &path, "USER_STREAM_LIMIT").await;
    alive(&host).await;
    let _bobs = host
        .follow_with(&bob, &format!("/api/agents/{bobs}/stream"), &[])
        .await;
    let mut operators = Vec::new();
    for _ in 0..5 {
        operators.push(host.follow(&format!("/api/agents/{own}/stream"), &[]).await);
    }
    // Who ends one may begin another.
    drop(one);
    let again = async {
        while host.get_with(&first, "/api/agents").await.status != 200
            || !begins(&host, &first, &path).await
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again)
        .await
        .expect("a place that is free again");
}

/// Tries to start a stream, and ends it at once.
async fn begins(host: &Host, key: &str, path: &str) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = TcpStream::connect(host.address).await.unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    status == *b"HTTP/1.1 200"
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_too_often_is_told_and_nobody_else_is() {
    for (limits, code) in [
        (
            Limits {
                user_requests_per_second_max: 1,
                ..Limits::default()
            },
            "USER_REQUEST_LIMIT",
        ),
        (
            Limits {
                key_requests_per_second_max: 1,
                ..Limits::default()
            },
            "KEY_REQUEST_LIMIT",
        ),
    ] {
        let host = Host::start_with(limits).await;
        let alice = key(&host, "alice").await;
        let bob = key(&host, "bob").await;
        let mut reported = None;
        for _ in 0..20 {
            let answer = host.get_with(&alice, "/api/agents").await;
            if answer.status == 429 {
                reported = Some(answer);
            }
        }
        let reported = reported.expect("a limit");
        assert_eq!(reported.json()["code"], code);
        assert!(reported.has("retry-after: "), "{}", reported.head);
        assert_eq!(host.get_with(&bob, "/api/agents").await.status, 200);
        for _ in 0..20 {
            assert_eq!(host.get("/api/agents").await.status, 200, "the operator");
        }
        alive(&host).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_checks_have_places_when_all_connections_are_taken() {
    for limits in [
        Limits {
            connections_per_address_max: 4,
            ..Limits::default()
        },
        Limits {
            connections_max: 4,
            ..Limits::default()
        },
    ] {
        let host = Host::start_with(limits).await;
        let mut idle = Vec::new();
        for _ in 0..4 {
            idle.push(TcpStream::connect(host.address).await.unwrap());
        }
        for _ in 0..50 {
            alive(&host).await;
        }
        // Those that say nothing give up their places, however many there are.
        for _ in 0..3 * CHECKS_MAX {
            idle.push(TcpStream::connect(host.address).await.unwrap());
            alive(&host).await;
        }
        let other = host.get("/api/agents").await;
        assert_eq!(
            (other.status, other.json()["code"].as_str()),
            (503, Some("TOO_MANY_CONNECTIONS")),
            "{}",
            other.body
        );
        drop(idle);
    }
}
