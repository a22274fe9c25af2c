//! Servers that are too slow, too long, too large, or speak something else.

use crate::fixture::{Server, World, ok, say, say_for_ever, wait_for_end};
use agent_host_egress::{EgressError, GuestError, Limits, Phase};
use domain::egress::EgressGrant;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Body as _;
use std::future::poll_fn;
use std::io::Write;
use std::pin::Pin;
use std::time::{Duration, Instant};

const NO_PAUSE: Duration = Duration::ZERO;

async fn code(server: &Server) -> &'static str {
    let grants = [server.grant()];
    World::new().code(&server.url(), &grants).await
}

/// Status and body of an answer that is fine.
async fn read(server: &Server) -> (u16, String) {
    let grants = [server.grant()];
    World::new().read(&server.url(), &grants).await.unwrap()
}

fn impatient() -> World {
    let limits = Limits {
        first_byte_ms_max: 200,
        idle_ms_max: 200,
        ..Limits::default()
    };
    World::with(crate::fixture::Answers::of(&[&["127.0.0.1"]]), limits)
}

async fn phase(world: &World, server: &Server, grant: EgressGrant) -> Phase {
    match world.read(&server.url(), &[grant]).await.unwrap_err() {
        EgressError::TimedOut { phase, .. } => phase,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let server = Server::script(|stream, _| wait_for_end(stream));
    assert_eq!(
        phase(&impatient(), &server, server.grant()).await,
        Phase::FirstByte
    );
    server.wait_for_open(0);
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let server = Server::script(|stream, _| {
        say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        wait_for_end(stream);
    });
    assert_eq!(
        phase(&impatient(), &server, server.grant()).await,
        Phase::Idle
    );
    server.wait_for_open(0);
}

#[tokio::test]
async fn a_server_that_drips_is_given_up_when_the_request_is_over() {
    let head = Server::script(|stream, _| {
        say(stream, "HTTP/1.1 200 OK\r\nx: ");
        say_for_ever(stream, b"v", Duration::from_millis(20));
    });
    let body = Server::script(|stream, _| {
        say(stream, "HTTP/1.1 200 OK\r\n\r\n");
        say_for_ever(stream, b"x", Duration::from_millis(20));
    });
    for server in [&body, &head] {
        let begun = Instant::now();
        let limits = EgressGrant {
            total_ms_max: 500,
            ..server.grant()
        };
        assert_eq!(phase(&World::new(), server, limits).await, Phase::Total);
        assert!(begun.elapsed() < Duration::from_secs(5));
        server.wait_for_open(0);
    }
}

#[tokio::test]
async fn a_caller_that_is_slow_is_not_taken_for_a_server_that_is() {
    let server = Server::saying(ok(&"x".repeat(1 << 20)));
    let world = impatient();
    let mut body = world.get_from(&server).await.body;
    let mut read = 0;
    for pause_ms in [300, 300, 0].into_iter().chain(std::iter::repeat(0)) {
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(frame) => read += frame.unwrap().into_data().unwrap().len(),
            None => break,
        }
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
    assert_eq!(read, 1 << 20);
}

#[tokio::test]
async fn a_body_without_end_stops_at_the_grants_limit() {
    let plain = Server::script(|stream, _| {
        say(stream, "HTTP/1.1 200 OK\r\n\r\n");
        say_for_ever(stream, &[b'x'; 64 << 10], NO_PAUSE);
    });
    let chunked = Server::script(|stream, _| {
        say(
            stream,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        say_for_ever(
            stream,
            &[b"1000\r\n", &[b'x'; 0x1000][..], b"\r\n"].concat(),
            NO_PAUSE,
        );
    });
    for server in [plain, chunked] {
        assert_eq!(code(&server).await, "response-too-large");
        server.wait_for_open(0);
    }
}

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_not_begun() {
    let server = Server::script(|stream, _| {
        say(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n",
        );
        say_for_ever(stream, &[b'x'; 64 << 10], NO_PAUSE);
    });
    let world = World::new();
    let error = world
        .get(&server.url(), &[server.grant()])
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.seen()),
        ("response-too-large", GuestError::TooLarge)
    );
    assert!(world.records()[0].bytes_in <= 128 << 10);
}

#[tokio::test]
async fn a_flood_of_interim_answers_is_cut() {
    let server = Server::script(|stream, _| {
        say_for_ever(
            stream,
            &b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100),
            NO_PAUSE,
        )
    });
    assert_eq!(code(&server).await, "response-too-large");
    // One is what servers may do.
    let server = Server::script(|stream, _| {
        say(
            stream,
            format!("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n{}", ok("fine")),
        )
    });
    assert_eq!(read(&server).await.1, "fine");
}

#[tokio::test]
async fn heads_that_are_too_large_are_cut() {
    let many = |count: usize| {
        (0..count)
            .map(|number| format!("x-{number}: v\r\n"))
            .collect::<String>()
    };
    for headers in [
        many(100_000),
        many(101),
        format!("x: {}\r\n", "v".repeat(1 << 20)),
        format!("x: {}\r\n", "v".repeat(33 << 10)),
        "x".repeat(1 << 20),
    ] {
        let server = Server::saying(format!("HTTP/1.1 200 OK\r\n{headers}\r\n"));
        assert_eq!(code(&server).await, "response-too-large");
    }
    let server = Server::saying(format!(
        "HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n",
        many(99)
    ));
    assert_eq!(read(&server).await.0, 200);
}

#[tokio::test]
async fn trailers_bring_nothing_that_headers_may_not() {
    let trailers = "host: evil.test\r\nauthorization: x\r\nset-cookie: a=b\r\ncontent-length: \
         9\r\ntransfer-encoding: chunked\r\nx-sum: 7\r\n";
    let answer = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: \
                 x-sum\r\n\r\n4\r\nbody\r\n0\r\n{trailers}\r\n"
    );
    let server = Server::saying(answer);
    let world = World::new();
    let response = world.get_from(&server).await;
    assert!(response.headers.is_empty(), "{:?}", response.headers);
    let mut body = response.body;
    let mut data = Vec::new();
    let mut names = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame.unwrap().into_data() {
            Ok(bytes) => data.extend_from_slice(&bytes),
            Err(frame) => names.extend(
                frame
                    .into_trailers()
                    .unwrap()
                    .keys()
                    .map(ToString::to_string),
            ),
        }
    }
    assert_eq!(
        (data.as_slice(), names),
        (&b"body"[..], vec!["x-sum".to_owned()])
    );
}

#[tokio::test]
async fn a_flood_of_trailers_is_cut() {
    let trailers: String = (0..100_000)
        .map(|number| format!("x-{number}: v\r\n"))
        .collect();
    let server = Server::saying(format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n{trailers}\r\n"
    ));
    assert!(["broken", "response-too-large"].contains(&code(&server).await));
}

fn packed(bytes: &[u8], more: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    let packed = encoder.finish().unwrap();
    [
        format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n{more}content-length: {}\r\n\r\n",
            packed.len()
        )
        .as_bytes(),
        &packed,
    ]
    .concat()
}

#[tokio::test]
async fn a_compressed_body_comes_out_plain() {
    let server = Server::saying(packed("words ".repeat(1_000).as_bytes(), ""));
    let world = World::new();
    let response = world.get_from(&server).await;
    assert!(response.headers.is_empty(), "{:?}", response.headers);
    assert_eq!(
        response.body.read_all().await.unwrap(),
        "words ".repeat(1_000)
    );
    assert!(world.records()[0].bytes_in < 500, "counted as it came");
}

#[tokio::test]
async fn a_bomb_is_stopped_at_the_grants_limit() {
    let server = Server::saying(packed(&vec![0; 200 << 20], ""));
    let begun = Instant::now();
    assert_eq!(code(&server).await, "response-too-large");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_answer_that_is_no_plain_http_is_broken() {
    let one = ok("x");
    for answer in [
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip, gzip\r\ncontent-length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-encoding: gzip\r\ncontent-length: \
         1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 30\r\n\r\nthese are no \
         thirty gzip bytes!",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxy",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n",
        "HTTP/1.1 200 OK\r\nhost : x\r\n\r\n",
        "HTTP/0.9 hello",
        "SSH-2.0-OpenSSH_9\r\n",
        "",
    ] {
        let server = Server::saying(answer);
        assert_eq!(code(&server).await, "broken", "{answer:?}");
    }
    // What comes behind an answer is not taken for the next one's: there is no next one.
    let server = Server::saying(format!("{one}{one}"));
    assert_eq!(read(&server).await.1, "x");
}
