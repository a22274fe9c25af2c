//! Servers that send back what they were sent.

use crate::fixture::{Server, World, say, secret};
use domain::egress::EgressGrant;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use hyper::body::Body as _;
use std::future::poll_fn;
use std::io::Write;
use std::pin::Pin;

const CANARY: &str = "SK-CANARY-1";
const MASK: &str = "***********";

/// Everything that comes back from a server that answers so to a request with the secret in it:
/// headers, data and trailers.
async fn returned(answer: impl Into<Vec<u8>>) -> (String, String, String) {
    let server = Server::saying(answer);
    let world = World::redacting(CANARY);
    let mut request = world.request(&server.url());
    request
        .bound
        .header(AUTHORIZATION, HeaderValue::from_static(CANARY));
    let response = world.send_to(&server, request).await.unwrap();
    let headers = format!("{:?}", response.headers);
    let mut body = response.body;
    let mut data = Vec::new();
    let mut trailers = String::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame.unwrap().into_data() {
            Ok(chunk) => data.extend_from_slice(&chunk),
            Err(frame) => trailers = format!("{:?}", frame.into_trailers().unwrap()),
        }
    }
    assert!(server.heads().first().unwrap().contains(CANARY));
    (headers, String::from_utf8(data).unwrap(), trailers)
}

#[tokio::test]
async fn a_secret_is_taken_out_of_headers_body_and_trailers() {
    let bytes: String = format!("you said {CANARY}!")
        .chars()
        .map(|c| format!("1\r\n{c}\r\n"))
        .collect();
    let head = format!(
        "HTTP/1.1 200 OK\r\nx-echo: Bearer {CANARY}\r\ntransfer-encoding: \
                 chunked\r\ntrailer: x-end\r\n\r\n"
    );
    let (headers, data, trailers) =
        returned(format!("{head}{bytes}0\r\nx-end: {CANARY}\r\n\r\n")).await;
    assert_eq!(data, format!("you said {MASK}!"));
    assert!(
        headers.contains(&format!("Bearer {MASK}")) && trailers.contains(MASK),
        "{headers} {trailers}"
    );
    assert!(!headers.contains("CANARY") && !trailers.contains("CANARY"));
}

#[tokio::test]
async fn a_secret_is_taken_out_of_what_was_packed_and_the_length_stays_true() {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(CANARY.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    )
    .into_bytes();
    answer.extend(packed);
    assert_eq!(returned(answer).await.1, MASK);
    let (headers, data, _) = returned(format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{CANARY}S"
    ))
    .await;
    assert!(
        headers.contains("\"12\"") && data == format!("{MASK}S"),
        "{headers} {data}"
    );
}

/// Sends a request, with a secret in it or without, and with this header. Returns the code of its
/// outcome and the number of requests that the server got.
async fn outcome(
    with_secret: bool,
    header: Option<(&'static str, &'static str)>,
    answer: &str,
) -> (&'static str, usize) {
    let server = Server::saying(answer);
    let world = World::redacting(CANARY);
    let mut request = world.request(&server.url());
    if with_secret {
        request
            .bound
            .header(AUTHORIZATION, HeaderValue::from_static(CANARY));
    }
    if let Some((name, value)) = header {
        request
            .headers
            .insert(name, HeaderValue::from_static(value));
    }
    let answered = world.send_to(&server, request).await;
    (
        answered.map_or_else(|error| error.code(), |_| "ok"),
        server.heads().len(),
    )
}

#[tokio::test]
async fn a_request_with_a_secret_asks_for_no_part_and_no_other_alphabet() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for name in ["range", "if-range", "accept-charset", "a-im"] {
        assert_eq!(
            outcome(true, Some((name, "bytes=0-4")), answer).await,
            ("header-refused", 0),
            "{name}"
        );
        assert_eq!(
            outcome(false, Some((name, "bytes=0-4")), answer).await,
            ("ok", 1),
            "{name}"
        );
    }
    for name in ["te", "transfer-encoding"] {
        assert_eq!(
            outcome(false, Some((name, "gzip")), answer).await,
            ("header-refused", 0),
            "{name}"
        );
    }
    // What the caller says of encodings is not sent: the host asks for what it undoes.
    assert_eq!(
        outcome(true, Some(("accept-encoding", "br")), answer).await,
        ("ok", 1)
    );
}

#[tokio::test]
async fn an_answer_that_hides_an_echo_is_refused_after_a_secret() {
    for (lines, without) in [
        ("206 Partial Content\r\ncontent-range: bytes 0-1/9", "ok"),
        ("200 OK\r\ncontent-range: bytes 0-1/9", "ok"),
        ("226 IM Used", "ok"),
        ("200 OK\r\ncontent-type: text/plain; charset=utf-16", "ok"),
        ("200 OK\r\ncontent-encoding: br", "broken"),
        ("200 OK\r\ncontent-encoding: gzip, gzip", "broken"),
    ] {
        let answer = format!("HTTP/1.1 {lines}\r\ncontent-length: 2\r\n\r\nok");
        assert_eq!(outcome(true, None, &answer).await, ("broken", 1), "{lines}");
        assert_eq!(outcome(false, None, &answer).await, (without, 1), "{lines}");
    }
    let packed = "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(outcome(false, None, packed).await, ("broken", 1));
    let plain = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ntransfer-encoding: \
         chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(outcome(true, None, plain).await, ("ok", 1));
}

#[tokio::test]
async fn an_answer_that_hides_an_echo_is_refused_after_a_redirect_too() {
    let hidden: Vec<u8> = CANARY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let recoded = "200 OK\r\ncontent-type: text/plain; charset=utf-16le";
    let cut = "206 Partial Content\r\ncontent-range: bytes 0-21/44";
    for (lines, expected) in [(recoded, "broken"), (cut, "broken"), ("200 OK", "ok")] {
        let mut answer = format!(
            "HTTP/1.1 {lines}\r\ncontent-length: {}\r\n\r\n",
            hidden.len()
        )
        .into_bytes();
        answer.extend(&hidden);
        let elsewhere = Server::saying(answer.clone());
        let to_elsewhere = format!("http://a.test:{}/again", elsewhere.port);
        for location in ["/again", to_elsewhere.as_str()] {
            let redirect =
                format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
            let answer = answer.clone();
            let server = Server::script(move |stream, head| {
                let is_first = head.starts_with("GET /?");
                say(
                    stream,
                    if is_first {
                        redirect.as_bytes()
                    } else {
                        answer.as_slice()
                    },
                );
            });
            let world = World::redacting(CANARY);
            let mut request = world.request(&server.url());
            // A parameter of the query does not go along, not even to the same origin: the second
            // leg carries nothing.
            request.bound.parameter("key".to_owned(), secret(CANARY));
            let following = EgressGrant {
                redirects: 1,
                ..server.grant()
            };
            let answered = world
                .egress
                .send(request, &[following, elsewhere.grant()])
                .await;
            assert_eq!(
                answered.map_or_else(|error| error.code(), |_| "ok"),
                expected,
                "{lines} {location}"
            );
            let heads = [server.heads(), elsewhere.heads()].concat();
            assert!(
                heads[0].contains(CANARY) && !heads[1..].iter().any(|head| head.contains(CANARY)),
                "{heads:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_record_has_no_secret_that_a_server_put_into_a_redirect() {
    let server = Server::script(|stream, head| {
        let target = if head.starts_with("GET / ") {
            format!("/{CANARY}/x")
        } else {
            String::new()
        };
        say(
            stream,
            format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n"),
        );
    });
    let world = World::redacting(CANARY);
    let grants = [EgressGrant {
        redirects: 1,
        ..server.grant()
    }];
    _ = world
        .egress
        .send(world.request(&server.url()), &grants)
        .await;
    let records = serde_json::to_string(&world.records()).unwrap();
    assert!(
        records.contains(&format!("/{MASK}/x")) && !records.contains("CANARY"),
        "{records}"
    );
}
