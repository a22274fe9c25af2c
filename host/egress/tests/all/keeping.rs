//! Connections that are kept for the next request, for those who ask for it.

use crate::fixture::{Answers, Server, World, grant};
use agent_host_egress::Limits;
use domain::egress::EgressGrant;
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

/// Answers every request on a connection with the number of it, after the first.
fn counting() -> Server {
    Server::script(|stream, _| {
        for number in 0.. {
            crate::fixture::say(
                stream,
                format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}"),
            );
            if !next(stream) {
                return;
            }
        }
    })
}

/// Returns whether another request comes.
fn next(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

fn keeping(connections: usize, ms: u64) -> World {
    World::with(
        Answers::of(&[&["127.0.0.1"]]),
        Limits {
            idle_connections_max: connections,
            idle_connection_ms_max: ms,
            ..Limits::default()
        },
    )
}

async fn said(world: &World, component: &str, url: &str, grants: &[EgressGrant]) -> String {
    let mut request = world.request(url);
    request.caller = world.caller(component);
    let response = world.egress.send(request, grants).await.unwrap();
    String::from_utf8(response.body.read_all().await.unwrap().to_vec()).unwrap()
}

/// A connection is used again by the same component for the same target, and by nobody else.
#[tokio::test]
async fn a_connection_is_used_again_by_the_same_component_for_the_same_target() {
    let server = counting();
    let world = keeping(4, 60_000);
    let url = |host: &str| format!("http://{host}:{}/", server.port);
    let grants = [server.grant(), grant("b.test", server.port)];
    for (component, host, expected) in [
        ("one", "a.test", "0"),
        ("one", "a.test", "1"),
        ("two", "a.test", "0"),
        ("one", "b.test", "0"),
        ("one", "a.test", "2"),
        ("two", "a.test", "1"),
    ] {
        assert_eq!(
            said(&world, component, &url(host), &grants).await,
            expected,
            "{component} {host}"
        );
    }
    assert!(
        server
            .heads()
            .iter()
            .all(|head| !head.contains("connection:"))
    );
    server.wait_for_open(3);
    // What was dialled under one grant is not used under another that does not open the address.
    let closed = [EgressGrant {
        private_addresses: Vec::new(),
        ..server.grant()
    }];
    let mut request = world.request(&url("a.test"));
    request.caller = world.caller("one");
    assert_eq!(
        world
            .egress
            .send(request, &closed)
            .await
            .unwrap_err()
            .code(),
        "address-barred"
    );
}

#[tokio::test]
async fn connections_that_wait_are_few_and_not_old() {
    let server = counting();
    let world = keeping(1, 60_000);
    let grants = [server.grant()];
    let url = server.url();
    for component in ["one", "two", "three"] {
        assert_eq!(said(&world, component, &url, &grants).await, "0");
    }
    server.wait_for_open(1);
    let brief = keeping(4, 20);
    assert_eq!(said(&brief, "one", &url, &grants).await, "0");
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(said(&brief, "one", &url, &grants).await, "0");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n0");
    let world = keeping(4, 60_000);
    let grants = [server.grant()];
    for _ in 0..20 {
        assert_eq!(said(&world, "one", &server.url(), &grants).await, "0");
        server.wait_for_open(0);
    }
    assert_eq!(server.heads().len(), 20);
}

#[tokio::test]
async fn an_answer_that_is_left_in_the_middle_takes_its_connection_along() {
    let server = Server::script(|stream, _| {
        crate::fixture::say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
        crate::fixture::wait_for_end(stream);
    });
    let world = keeping(4, 60_000);
    let grants = [server.grant()];
    let mut response = world.get(&server.url(), &grants).await.unwrap();
    assert_eq!(response.body.chunk().await.unwrap().unwrap(), "half");
    drop(response);
    server.wait_for_open(0);
}
