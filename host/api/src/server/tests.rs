//! The server's limits, over real sockets and with short times.

use super::{
    GOODBYES_MAX, HEADER_BYTES_MAX, KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, LINGER_BYTES_MAX,
    Limits, Server, Stopper, UNACKNOWLEDGED_S_MAX, settle_in,
};
use axum::Router;
use axum::routing::{get, post};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

const SHORT: Limits = Limits {
    header_ms_max: 200,
    body_ms_max: 200,
    idle_ms_max: 600,
    write_ms_max: 300,
    linger_ms_max: 300,
    connections_max: 4,
    connections_per_address_max: 4,
    send_buffer_bytes: 16 << 10,
    streams_max: 4,
    streams_per_user_max: 4,
    streams_per_key_max: 4,
    waits_per_user_max: 4,
    waits_per_key_max: 4,
    user_requests_per_second_max: 1_000,
    key_requests_per_second_max: 1_000,
    key_sessions_per_minute_max: 1_000,
    heartbeat_ms: 100,
    stream_waiting_bytes_max: 64 << 10,
    stream_stall_ms_max: 200,
    drain_ms: 500,
};

async fn start(limits: Limits) -> (SocketAddr, Stopper) {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
    let address = server.address().unwrap();
    let stopper = server.stopper();
    let router = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/large", get(|| async { vec![b'x'; 32 << 20] }))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                "slow"
            }),
        )
        .route(
            "/echo",
            post(|body: axum::body::Body| async {
                match axum::body::to_bytes(body, 1 << 20).await {
                    Ok(bytes) => format!("{}", bytes.len()),
                    Err(error) => format!("{:?}", super::BodyFault::from_error(&error)),
                }
            }),
        );
    TaskTracker::new().spawn(server.serve(router));
    (address, stopper)
}

/// Sends some bytes, and returns how long the server keeps the connection, and its response.
async fn kept_after(address: SocketAddr, bytes: &[u8]) -> (Duration, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let start = Instant::now();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer))
        .await
        .expect("the server never closed");
    (
        start.elapsed(),
        String::from_utf8_lossy(&answer).into_owned(),
    )
}

fn about(expected_ms: u64, kept: Duration) {
    let kept_ms = u64::try_from(kept.as_millis()).unwrap();
    assert!(
        kept_ms + 20 >= expected_ms && kept_ms < expected_ms + 400,
        "kept for {kept_ms} ms instead of {expected_ms}"
    );
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed() {
    let (address, _) = start(SHORT).await;
    let (kept, answer) = kept_after(address, b"").await;
    about(SHORT.header_ms_max, kept);
    assert_eq!(answer, "");
}

#[tokio::test]
async fn a_connection_that_sends_half_a_header_is_closed() {
    let (address, _) = start(SHORT).await;
    about(
        SHORT.header_ms_max,
        kept_after(address, b"GET / HTTP/1.1\r\nhost: a\r\nx-")
            .await
            .0,
    );
}

#[tokio::test]
async fn an_idle_connection_is_kept_longer_than_a_header_and_then_closed() {
    let (address, _) = start(SHORT).await;
    let (kept, answer) = kept_after(address, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    about(SHORT.idle_ms_max, kept);
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn half_a_header_after_a_request_gets_the_time_of_a_header() {
    let (address, _) = start(SHORT).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 1_024];
    assert!(stream.read(&mut answer).await.unwrap() > 0);
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream.write_all(b"GET /").await.unwrap();
    let start = Instant::now();
    assert_eq!(
        timeout(Duration::from_secs(5), stream.read(&mut answer))
            .await
            .unwrap()
            .unwrap_or(0),
        0
    );
    about(SHORT.header_ms_max, start.elapsed());
}

#[tokio::test]
async fn a_body_that_trickles_in_is_given_up() {
    let (address, _) = start(SHORT).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n")
        .await
        .unwrap();
    let start = Instant::now();
    let (mut read, mut write) = stream.into_split();
    let trickle = TaskTracker::new().spawn(async move {
        while write.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = vec![0; 1_024];
    let length = timeout(Duration::from_secs(5), read.read(&mut answer))
        .await
        .unwrap()
        .unwrap();
    about(SHORT.body_ms_max, start.elapsed());
    assert!(String::from_utf8_lossy(&answer[..length]).ends_with("Late"));
    trickle.abort();
}

#[tokio::test]
async fn a_client_that_does_not_read_its_response_is_hung_up_on() {
    let (address, _) = start(SHORT).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer))
        .await
        .expect("the server never closed");
    assert!(
        answer.len() < 32 << 20,
        "the response was kept for a client that did not read"
    );
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let (address, _) = start(SHORT).await;
    let request = format!(
        "GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n",
        "y".repeat(HEADER_BYTES_MAX)
    );
    assert!(
        kept_after(address, request.as_bytes())
            .await
            .1
            .starts_with("HTTP/1.1 431 ")
    );
    let request = format!(
        "GET / HTTP/1.1\r\nhost: a\r\n{}\r\n",
        "x: y\r\n".repeat(super::HEADERS_MAX)
    );
    assert!(
        kept_after(address, request.as_bytes())
            .await
            .1
            .starts_with("HTTP/1.1 431 ")
    );
}

#[tokio::test]
async fn connections_over_the_limit_are_turned_away_and_places_come_free_again() {
    let (address, _) = start(Limits {
        connections_per_address_max: 2,
        ..SHORT
    })
    .await;
    let mut leased = Vec::new();
    for _ in 0..2 {
        leased.push(TcpStream::connect(address).await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (_, answer) = kept_after(address, b"").await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("TOO_MANY_CONNECTIONS"),
        "{answer}"
    );
    drop(leased);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(
        kept_after(
            address,
            b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
        )
        .await
        .1
        .ends_with("hello")
    );
}

#[tokio::test]
async fn stopping_finishes_what_is_in_progress_and_closes_what_is_idle() {
    let (address, stopper) = start(Limits {
        header_ms_max: 5_000,
        idle_ms_max: 5_000,
        ..SHORT
    })
    .await;
    let idle = TcpStream::connect(address).await.unwrap();
    let slow = TaskTracker::new().spawn(async move {
        kept_after(address, b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .1
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    stopper.stop(Duration::from_millis(2_000)).await;
    assert!(
        start.elapsed() < Duration::from_millis(1_000),
        "an idle connection held the server up"
    );
    assert!(slow.await.unwrap().ends_with("slow"));
    drop(idle);
    assert!(TcpStream::connect(address).await.is_err());
}

/// Sends a whole request before it reads the answer, as simple clients do.
async fn answer_to(address: SocketAddr, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    for chunk in body.chunks(64 << 10) {
        stream
            .write_all(chunk)
            .await
            .expect("the server closed before it was sent everything");
    }
    let mut answer = Vec::new();
    timeout(Duration::from_secs(5), stream.read_to_end(&mut answer))
        .await
        .expect("no answer")
        .unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_client_that_sends_everything_before_it_reads_sees_why_it_was_refused() {
    let (address, _) = start(Limits {
        linger_ms_max: 5_000,
        ..SHORT
    })
    .await;
    let body = vec![b'x'; 10 << 20];
    let head = format!(
        "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    for _ in 0..5 {
        let answer = answer_to(address, &head, &body).await;
        assert!(answer.ends_with("TooLarge"), "{answer}");
    }
    let nowhere = answer_to(address, &head.replace("/echo", "/nowhere"), &body).await;
    assert!(nowhere.starts_with("HTTP/1.1 404 "), "{nowhere}");
    let headers = answer_to(
        address,
        &format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)),
        b"",
    )
    .await;
    assert!(headers.starts_with("HTTP/1.1 431 "), "{headers}");
}

#[tokio::test]
async fn a_client_that_is_turned_away_while_it_sends_sees_why() {
    let (address, _) = start(Limits {
        connections_per_address_max: 1,
        linger_ms_max: 5_000,
        // The connection that is held says nothing, and stays for as long as the others need.
        header_ms_max: 60_000,
        idle_ms_max: 60_000,
        ..SHORT
    })
    .await;
    let leased = TcpStream::connect(address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let body = vec![b'x'; 10 << 20];
    let head = format!(
        "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    for _ in 0..5 {
        let answer = answer_to(address, &head, &body).await;
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.contains("TOO_MANY_CONNECTIONS"),
            "{answer}"
        );
    }
    drop(leased);
}

/// Returns whether the server still accepts bytes from a client that has read its response.
async fn is_listened_to(stream: &mut TcpStream) -> bool {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(
        answer.starts_with(b"HTTP/1.1 503 "),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    for _ in 0..5 {
        if stream.write_all(b"x").await.is_err() {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}

/// The server listens to only so many of the clients that it turns away, and to none once it stops.
#[tokio::test]
async fn a_limited_number_of_turned_away_clients_is_listened_to_and_none_after_a_stop() {
    let limits = Limits {
        connections_per_address_max: 1,
        linger_ms_max: 60_000,
        header_ms_max: 60_000,
        ..SHORT
    };
    let (address, stopper) = start(limits).await;
    let mut clients = Vec::new();
    for _ in 0..GOODBYES_MAX + 2 {
        clients.push(TcpStream::connect(address).await.unwrap());
    }
    // The first one has the only place.
    assert!(is_listened_to(&mut clients[1]).await);
    assert!(is_listened_to(&mut clients[GOODBYES_MAX]).await);
    assert!(!is_listened_to(&mut clients[GOODBYES_MAX + 1]).await);
    let start = Instant::now();
    stopper.stop(Duration::from_millis(2_000)).await;
    assert!(
        start.elapsed() < Duration::from_millis(1_000),
        "those that were turned away held the server up"
    );
}

/// Sends a body without end, a chunk every `pause`; for how long and how many bytes the server took
/// it.
async fn taken_without_end(address: SocketAddr, pause: Duration) -> (Duration, usize) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"POST /nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000000\r\n\r\n")
        .await
        .unwrap();
    let start = Instant::now();
    let chunk = vec![b'x'; 64 << 10];
    let mut taken = 0;
    while let Ok(Ok(bytes)) = timeout(Duration::from_secs(5), stream.write(&chunk)).await {
        taken += bytes;
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "it was never cut off"
        );
        tokio::time::sleep(pause).await;
    }
    (start.elapsed(), taken)
}

#[tokio::test]
async fn a_client_that_never_stops_sending_is_cut_off() {
    let (address, _) = start(SHORT).await;
    about(
        SHORT.linger_ms_max,
        taken_without_end(address, Duration::from_millis(20))
            .await
            .0,
    );
    let (address, _) = start(Limits {
        linger_ms_max: 60_000,
        ..SHORT
    })
    .await;
    let (_, taken) = taken_without_end(address, Duration::ZERO).await;
    // The kernel's buffers hold some more.
    assert!(
        (LINGER_BYTES_MAX..LINGER_BYTES_MAX + (16 << 20)).contains(&taken),
        "{taken}"
    );
}

/// A peer that vanished is noticed within 45 seconds, whether something was under way or not.
#[tokio::test]
async fn a_peer_that_vanished_is_noticed_within_45_seconds() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _peer = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    settle_in(&stream);
    let socket = socket2::SockRef::from(&stream);
    assert!(socket.keepalive().unwrap());
    const { assert!(KEEPALIVE_IDLE_S + 3 * KEEPALIVE_INTERVAL_S <= 45 && UNACKNOWLEDGED_S_MAX <= 45) };
    #[cfg(target_os = "linux")]
    {
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
        assert_eq!(
            socket.tcp_keepalive_time().unwrap(),
            Duration::from_secs(KEEPALIVE_IDLE_S)
        );
        assert_eq!(
            socket.tcp_user_timeout().unwrap(),
            Some(Duration::from_secs(UNACKNOWLEDGED_S_MAX))
        );
    }
}
