//! A4: guests that send what they may not where they may not, against servers on loopback and
//! against canaries in a network of their own.

use super::siege::{Case, narrow};
use agent_host_tests::skip::{WITHOUT_NAMESPACES, needed};
use domain::egress::{AddressRange, EgressGrant, HostPattern, Method, PathPattern, Scheme};
use domain::event::BoundaryVerdict;
use domain::grant::{GuestLimits, capability};
use domain::ruling::Rule;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Says to the test inside a network of its own that it is.
const INSIDE: &str = "AGENT_HOST_TESTS_INSIDE_A_NETWORK";
/// Addresses that no request may ever reach.
const CANARIES: [&str; 3] = ["169.254.169.254", "10.0.0.1", "fd00:ec2::254"];

/// A server that counts who comes. It goes with the test's process.
struct Server {
    port: u16,
    received: Arc<AtomicUsize>,
    /// Bytes of the beginnings of what they sent.
    heard: Arc<AtomicUsize>,
}

impl Server {
    fn at(address: SocketAddr, answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            received: Arc::default(),
            heard: Arc::default(),
        };
        let received = server.received.clone();
        let heard = server.heard.clone();
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let heard = heard.clone();
                let answer = answer.clone();
                received.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    let mut head = [0; 4_096];
                    if let Ok(read @ 1..) = stream.read(&mut head) {
                        heard.fetch_add(read, Ordering::SeqCst);
                        answer(&mut stream);
                    }
                });
            }
        });
        server
    }

    fn answering(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), answer)
    }

    /// A server that no guest should reach.
    fn canary() -> Self {
        Self::answering(|stream| {
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\ncanary"))
        })
    }

    fn received(&self) -> usize {
        self.received.load(Ordering::SeqCst)
    }

    /// Lets `GET` through to what is below `/open`.
    fn grant(&self) -> EgressGrant {
        EgressGrant {
            schemes: vec![Scheme::Http],
            ports: Some(vec![self.port]),
            path: PathPattern::parse("/open/**").unwrap(),
            private_addresses: vec![AddressRange::parse("127.0.0.1").unwrap()],
            ..EgressGrant::of(HostPattern::parse("127.0.0.1").unwrap())
        }
    }
}

/// The widest grant that can be written: any host, any path, plain HTTP.
fn anywhere(port: u16) -> EgressGrant {
    EgressGrant {
        any_host: true,
        schemes: vec![Scheme::Http, Scheme::Https],
        ports: Some(vec![80, port]),
        ..EgressGrant::of(HostPattern::parse("*").unwrap())
    }
}

fn patient() -> GuestLimits {
    GuestLimits {
        wall_ms_max: 30_000,
        ..narrow()
    }
}

fn refused(case: Case, detail: &'static str) -> Case {
    case.under(patient()).line(
        capability::NET_HTTP,
        BoundaryVerdict::Refused,
        Rule::NotGranted,
        detail,
    )
}

fn limited(case: Case, detail: &'static str) -> Case {
    case.under(patient()).line(
        capability::NET_HTTP,
        BoundaryVerdict::Limited,
        Rule::Limits,
        detail,
    )
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn every_address_that_nobody_may_dial_is_refused_before_anything_is_dialled() {
    let canary = Server::canary();
    let case = case!(
        every_address_that_nobody_may_dial_is_refused_before_anything_is_dialled,
        "parts all refused"
    );
    refused(case, "127.0.0.1")
        .with(json!({ "port": canary.port }))
        .online(vec![anywhere(canary.port)])
        .prove()
        .await;
    assert_eq!(canary.received(), 0);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn every_odd_spelling_of_an_address_is_refused() {
    let canary = Server::canary();
    let case = case!(
        every_odd_spelling_of_an_address_is_refused,
        "parts all refused"
    );
    refused(case, "")
        .with(json!({ "port": canary.port }))
        .online(vec![anywhere(canary.port)])
        .prove()
        .await;
    assert_eq!(canary.received(), 0);
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn whatever_differs_from_the_grant_is_refused() {
    let server = Server::canary();
    let other = Server::canary();
    let case = case!(
        whatever_differs_from_the_grant_is_refused,
        "parts all refused"
    );
    let arguments = json!({ "port": server.port, "other": other.port });
    refused(case, "127.0.0.1")
        .with(arguments)
        .online(vec![server.grant()])
        .prove()
        .await;
    assert_eq!((server.received(), other.received()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn headers_that_the_host_sets_are_refused_in_headers_and_trailers() {
    let server = Server::canary();
    let case = case!(
        headers_that_the_host_sets_are_refused_in_headers_and_trailers,
        "parts all refused"
    );
    let grant = EgressGrant {
        methods: vec![Method::parse("GET").unwrap()],
        ..server.grant()
    };
    refused(case, "wasi:http/types.fields `host`")
        .with(json!({ "port": server.port }))
        .online(vec![grant])
        .prove()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn other_protocols_and_upgrades_are_refused() {
    let server = Server::canary();
    let case = case!(
        other_protocols_and_upgrades_are_refused,
        "parts all refused"
    );
    refused(case, "wasi:http/outgoing-handler.handle")
        .with(json!({ "port": server.port }))
        .online(vec![server.grant()])
        .prove()
        .await;
    assert_eq!(server.received(), 0);
}

cases! {
    #[test]
    fn names_are_looked_up_for_nobody("parts 0")
        .refused("wasi:sockets", "resolve-addresses `localhost`");
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn a_server_without_end_is_cut_at_its_grant() {
    let without_end = Server::answering(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 64 << 10]).is_ok() {}
    });
    let grant = EgressGrant {
        response_bytes_max: 256 << 10,
        ..without_end.grant()
    };
    let case = case!(a_server_without_end_is_cut_at_its_grant, "parts false");
    limited(case, "response-too-large")
        .with(json!({ "port": without_end.port }))
        .online(vec![grant])
        .prove()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drips_is_left_when_the_time_of_its_grant_is_over() {
    let dripping = Server::answering(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let grant = EgressGrant {
        total_ms_max: 100,
        ..dripping.grant()
    };
    let case = Case::of("a_server_without_end_is_cut_at_its_grant", "parts false");
    limited(case, "timed-out")
        .with(json!({ "port": dripping.port }))
        .online(vec![grant])
        .prove()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_redirects_for_ever_is_followed_no_further_than_granted() {
    let circle = Server::answering(|stream| {
        let _ = stream
            .write_all(b"HTTP/1.1 302 Found\r\nlocation: /open/again\r\ncontent-length: 0\r\n\r\n");
    });
    let grant = EgressGrant {
        redirects: 5,
        ..circle.grant()
    };
    let case = Case::of("a_server_without_end_is_cut_at_its_grant", "parts false");
    let attacks = refused(case, "the server redirects more than 5 times")
        .with(json!({ "port": circle.port }))
        .online(vec![grant])
        .prove()
        .await;
    assert_eq!(circle.received(), 6 * attacks, "six requests of each call");
}

#[tokio::test(flavor = "multi_thread")]
pub(super) async fn more_than_the_budget_does_not_leave() {
    const BUDGET: usize = 40 << 10;
    let rest = Arc::new(AtomicUsize::new(0));
    let heard = rest.clone();
    let server = Server::answering(move |stream| {
        let mut body = vec![0; 64 << 10];
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        while let Ok(read @ 1..) = stream.read(&mut body) {
            heard.fetch_add(read, Ordering::SeqCst);
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    let grant = EgressGrant {
        methods: vec![Method::parse("POST").unwrap()],
        ..server.grant()
    };
    // Each of them sends 8 KiB and a head of its own, so four are within the budget and a part of
    // the fifth.
    let case = limited(
        case!(more_than_the_budget_does_not_leave, "parts 4"),
        "budget-spent",
    )
    .under(GuestLimits {
        egress_bytes_max: BUDGET as u64,
        ..patient()
    });
    let attacks = case
        .with(json!({ "port": server.port }))
        .online(vec![grant])
        .prove()
        .await;
    // What frames a body and the host's own headers come on top.
    let received = server.heard.load(Ordering::SeqCst) + rest.load(Ordering::SeqCst);
    let most = attacks * (BUDGET + 5 * 512);
    assert!(
        received <= most && received >= attacks * 4 * (8 << 10),
        "{received} bytes of {most} came"
    );
}

/// This test's program in a network of its own, which has nothing but the canaries' addresses.
fn within_a_network() -> Result<Command, String> {
    let as_root = rustix::process::geteuid().is_root();
    let user: &[&str] = if as_root {
        &[]
    } else {
        &["--user", "--map-root-user"]
    };
    let addresses = CANARIES.map(|address| {
        // Duplicate address detection is not needed here.
        let length = if address.contains(':') {
            "128 nodad"
        } else {
            "32"
        };
        format!("ip addr add dev lo {address}/{length}")
    });
    let script = format!(
        "ip link set lo up && {} && exec \"$@\"",
        addresses.join(" && ")
    );
    let mut command = Command::new("unshare");
    command
        .args(user)
        .args(["--net", "sh", "-c", &script, "sh"])
        .stdin(Stdio::null());
    let mut trial = Command::new("unshare");
    let tried = trial
        .args(user)
        .args(["--net", "sh", "-c", &script, "sh", "true"])
        .output()
        .map_err(|error| format!("unshare: {error}"))?;
    let why = || {
        format!(
            "there can be no network of its own: {}",
            String::from_utf8_lossy(&tried.stderr).trim()
        )
    };
    tried.status.success().then_some(command).ok_or_else(why)
}

#[test]
fn no_canary_in_a_network_of_its_own_is_ever_reached() {
    let Some(mut command) = needed(within_a_network(), WITHOUT_NAMESPACES) else {
        return;
    };
    let inside = "all::attacks::network::within_a_network_of_its_own_every_request_is_refused";
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", inside, "--ignored", "--nocapture"])
        .env(INSIDE, "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it runs inside a network of its own, started by the test above"]
async fn within_a_network_of_its_own_every_request_is_refused() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let canaries: Vec<Server> = CANARIES
        .iter()
        .flat_map(|address| {
            let address: IpAddr = address.parse().unwrap();
            [80, 8_080].map(|port| Server::at(SocketAddr::new(address, port), |_| ()))
        })
        .collect();
    // They can be reached by those that are allowed to.
    drop(TcpStream::connect(("169.254.169.254", 80)).unwrap());
    while canaries[0].received() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    for attack in [
        "every_address_that_nobody_may_dial_is_refused_before_anything_is_dialled",
        "every_odd_spelling_of_an_address_is_refused",
    ] {
        let case = refused(Case::of(attack, "parts all refused"), "");
        case.with(json!({ "port": 8_080 }))
            .online(vec![anywhere(8_080)])
            .prove()
            .await;
    }
    let received: Vec<usize> = canaries.iter().map(Server::received).collect();
    assert_eq!(received, [1, 0, 0, 0, 0, 0], "a canary was reached");
}
