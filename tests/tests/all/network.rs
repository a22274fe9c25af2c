//! Tools on the network: what is granted is sent and on record, and nothing else leaves the host.

use agent_host_tests::patience::until;
use agent_host_tests::process::puppet;
use agent_host_tests::{Setup, World};
use domain::egress::{
    AddressRange, EgressGrant, HOP_KINDS_MAX, HOPS_RECORDED_MAX, Hop, HostPattern, PathPattern,
    Scheme,
};
use domain::event::BoundaryVerdict;
use domain::grant::GuestLimits;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The guest's message about every refusal.
const REFUSED: &str = "t parts ErrorCode::HttpRequestDenied";
/// Time that a server waits for the other side to hang up.
const PATIENCE: Duration = Duration::from_secs(15);

/// A server on loopback that notes what it is asked and when the other side hangs up. It goes with
/// the test's process.
pub(crate) struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    hung_up: Arc<Mutex<Vec<Instant>>>,
}

impl Server {
    /// One that gives this answer. Without one it says nothing and waits.
    pub(crate) fn saying(answer: Option<String>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
            hung_up: Arc::default(),
        };
        let asked = server.asked.clone();
        let hung_up = server.hung_up.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let head = head(&mut stream);
                asked
                    .lock()
                    .unwrap()
                    .push(head.lines().next().unwrap_or_default().to_owned());
                match &answer {
                    Some(answer) => stream.write_all(answer.as_bytes()).unwrap(),
                    None => {
                        stream.set_read_timeout(Some(PATIENCE)).unwrap();
                        if matches!(stream.read(&mut [0]), Ok(0) | Err(_)) {
                            hung_up.lock().unwrap().push(Instant::now());
                        }
                    }
                }
            }
        });
        server
    }

    fn ok(body: &str) -> Self {
        Self::saying(Some(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )))
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Lets `GET` through to the paths below `/open` of this server.
    pub(crate) fn grant(&self) -> EgressGrant {
        EgressGrant {
            schemes: vec![Scheme::Http],
            ports: Some(vec![self.port]),
            path: PathPattern::parse("/open/**").unwrap(),
            private_addresses: vec![AddressRange::parse("127.0.0.1").unwrap()],
            ..EgressGrant::of(HostPattern::parse("127.0.0.1").unwrap())
        }
    }
}

fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn setup(network: Vec<EgressGrant>) -> Setup {
    let definitions = vec![puppet()];
    Setup {
        components: vec!["puppet", "reach"],
        definitions,
        network,
        ..Setup::default()
    }
}

/// Has a tool fetch a URL and returns the result, one line.
async fn fetch(world: &World, method: &str, url: &str) -> String {
    world
        .play(json!([{
            "start": [{ "key": "t", "tool": "fetch", "args": { "method": method, "url": url } }],
        }]))
        .await
        .join("\n")
}

/// The hops on record, of all calls.
async fn hops(world: &World) -> Vec<Hop> {
    let ledger = world.ledger().await.into_iter();
    ledger.flat_map(|decided| decided.egress.hops).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_request_is_answered_and_its_record_is_in_the_event_of_the_call() {
    let server = Server::ok("hello from outside");
    let world = World::new(setup(vec![server.grant()])).await;
    assert_eq!(
        fetch(&world, "GET", &server.url("/open/a?secret=1")).await,
        "t parts 200 hello from outside"
    );
    assert_eq!(server.asked(), ["GET /open/a?secret=1 HTTP/1.1"]);
    let hops = hops(&world).await;
    let [hop] = hops.as_slice() else {
        panic!("{hops:?}")
    };
    assert_eq!(
        (hop.verdict.as_str(), hop.status, hop.port),
        ("done", Some(200), Some(server.port))
    );
    assert_eq!(
        (hop.scheme, hop.host.as_deref(), hop.path.as_deref()),
        (Some(Scheme::Http), Some("127.0.0.1"), Some("/open/a"))
    );
    assert!(hop.bytes_in > 18 && hop.bytes_out > 18, "{hop:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_behind_many_decoys_is_on_record_and_behind_too_many_it_is_not_sent() {
    let server = Server::ok("hello from outside");
    let world = World::new(setup(vec![server.grant()])).await;
    let fetch = |decoys| {
        let arguments = json!({ "url": server.url("/open/a"), "decoys": decoys });
        world.play(json!([{ "start": [{ "key": "t", "tool": "fetch", "args": arguments }] }]))
    };
    assert_eq!(
        fetch(HOPS_RECORDED_MAX + 8).await,
        ["t parts 200 hello from outside"]
    );
    let hops = hops(&world).await;
    assert_eq!(hops.len(), HOPS_RECORDED_MAX + 9);
    assert_eq!(
        hops.last().map(|hop| (hop.verdict.as_str(), hop.port)),
        Some(("done", Some(server.port)))
    );

    assert_eq!(
        fetch(HOP_KINDS_MAX).await,
        ["t parts ErrorCode::ConnectionLimitReached"]
    );
    assert_eq!(server.asked().len(), 1);
    let decided = world.ledger().await.pop().unwrap();
    assert_eq!(decided.egress.hops.len(), HOP_KINDS_MAX);
    let limited: Vec<&str> = decided
        .decisions
        .iter()
        .filter(|it| it.verdict == BoundaryVerdict::Limited)
        .map(|it| it.detail.as_str())
        .collect();
    assert_eq!(limited, ["more than 256 different requests"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_differs_from_its_grant_in_anything_is_refused_and_reaches_nobody() {
    let server = Server::ok("no");
    let other = Server::ok("no");
    let world = World::new(setup(vec![server.grant()])).await;
    for (method, url) in [
        ("POST", server.url("/open/a")),
        ("GET", server.url("/closed")),
        ("GET", other.url("/open/a")),
        ("GET", format!("https://127.0.0.1:{}/open/a", server.port)),
        ("GET", format!("http://localhost:{}/open/a", server.port)),
        ("GET", "http://169.254.169.254/open/a".to_owned()),
    ] {
        assert_eq!(fetch(&world, method, &url).await, REFUSED, "{method} {url}");
    }
    assert_eq!((server.asked().len(), other.asked().len()), (0, 0));
    let verdicts: Vec<String> = hops(&world)
        .await
        .into_iter()
        .map(|hop| hop.verdict)
        .collect();
    assert_eq!(verdicts, ["not-granted"; 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_without_a_grant_sends_nothing_and_the_attempt_is_on_record() {
    let server = Server::ok("no");
    let world = World::new(setup(Vec::new())).await;
    assert_eq!(fetch(&world, "GET", &server.url("/open/a")).await, REFUSED);
    assert_eq!(server.asked().len(), 0);
    let hops = hops(&world).await;
    assert_eq!(
        hops.iter()
            .map(|hop| (hop.verdict.as_str(), hop.port))
            .collect::<Vec<_>>(),
        [("not-granted", Some(server.port))]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_request_is_not_sent_for_an_agent_that_is_denied_the_capability() {
    let server = Server::ok("no");
    let mut setup = setup(vec![server.grant()]);
    setup.definitions[0]["capabilityDenylist"] = json!(["net.*"]);
    let world = World::new(setup).await;
    assert_eq!(
        fetch(&world, "GET", &server.url("/open/a")).await,
        "t denied"
    );
    // A tool that does not say that it sends requests is not bound to any.
    let reported = world
        .play(json!([{ "start": [{ "key": "t", "tool": "reach", "args": {} }] }]))
        .await
        .join("\n");
    assert!(
        reported.ends_with("ErrorCode::HttpRequestDenied"),
        "{reported}"
    );
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_where_nothing_is_granted_is_refused_there() {
    let inner = Server::ok("no");
    let server = Server::saying(Some(format!(
        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        inner.url("/open/a")
    )));
    let world = World::new(setup(vec![EgressGrant {
        redirects: 3,
        ..server.grant()
    }]))
    .await;
    assert_eq!(fetch(&world, "GET", &server.url("/open/a")).await, REFUSED);
    assert_eq!((server.asked().len(), inner.asked().len()), (1, 0));
    let hops = hops(&world).await;
    let verdicts: Vec<_> = hops
        .iter()
        .map(|hop| (hop.verdict.as_str(), hop.port))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("redirected", Some(server.port)),
            ("not-granted", Some(inner.port))
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_is_left_when_the_calls_time_is_over_and_the_connection_closes() {
    let server = Server::saying(None);
    let limits = GuestLimits {
        wall_ms_max: 500,
        ..GuestLimits::default()
    };
    let world = World::new(Setup {
        guest_limits: limits,
        ..setup(vec![server.grant()])
    })
    .await;
    assert_eq!(
        fetch(&world, "GET", &server.url("/open/a")).await,
        "t timed-out"
    );
    until(async || !server.hung_up.lock().unwrap().is_empty()).await;
    let hops = hops(&world).await;
    assert_eq!(
        hops.iter()
            .map(|hop| hop.verdict.as_str())
            .collect::<Vec<_>>(),
        ["dropped"]
    );
}
