//! Secrets: a hostile tool and an obliging server try to get one to where it can be read.

use agent_host_tests::guests::test_program;
use agent_host_tests::process::{Folder, Host, puppet};
use agent_host_tests::{Setup, World};
use domain::egress::{AddressRange, EgressGrant, HostPattern, Scheme};
use domain::event::BoundaryVerdict;
use domain::grant::{Grant, SecretGrant, SecretSlot, capability};
use domain::redact::Redactor;
use domain::secret::Secret;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

pub(super) const CANARY: &str = "SK-CANARY-4f/9+c\"b%2z";
pub(super) const PLACEHOLDER: &str = "{{secret.github}}";
/// The guest's message about every refusal.
const REFUSED: &str = "t parts ErrorCode::HttpRequestDenied";

/// A server on loopback that sends back what it was sent, in the way that the path says. It goes
/// with the test's process.
pub(super) struct Echo {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    /// One that redirects to `away`, a URL, when it is asked to.
    pub(super) fn leading(away: String) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            heard: Arc::default(),
        };
        let heard = server.heard.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = request(&mut stream);
                heard.lock().unwrap().push(request.clone());
                _ = stream.write_all(&answer(&request, &away));
            }
        });
        server
    }

    pub(super) fn new() -> Self {
        Self::leading(String::new())
    }

    /// Takes the requests that it was sent, one by one.
    pub(super) fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn grant(&self) -> EgressGrant {
        EgressGrant {
            schemes: vec![Scheme::Http],
            ports: Some(vec![self.port]),
            methods: vec![domain::egress::Method::Get, domain::egress::Method::Post],
            private_addresses: vec![
                AddressRange::parse("127.0.0.0/8").unwrap(),
                AddressRange::parse("::1").unwrap(),
            ],
            redirects: 3,
            ..EgressGrant::of(HostPattern::parse("127.0.0.1").unwrap())
        }
    }
}

fn request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        request.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&request).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    head + &String::from_utf8_lossy(&body)
}

fn answer(request: &str, away: &str) -> Vec<u8> {
    let authorization = request
        .lines()
        .find_map(|line| line.strip_prefix("authorization: "))
        .unwrap_or_default();
    let path = request
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .split('?')
        .next()
        .unwrap_or_default();
    let status = if path == "/unauthorized" {
        "401 Unauthorized"
    } else {
        "200 OK"
    };
    let body = match path {
        "/json" => serde_json::to_string(&json!({ "said": request })).unwrap(),
        "/hex" => hex(request.as_bytes()),
        "/percent" => request.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        "/base64/0" => base64(request.as_bytes()),
        "/base64/1" => base64(format!("x{request}").as_bytes()),
        "/base64/2" => base64(format!("xx{request}").as_bytes()),
        "/away" => {
            return format!("HTTP/1.1 302 Found\r\nlocation: {away}\r\ncontent-length: 0\r\n\r\n")
                .into_bytes();
        }
        "/carry" => {
            let key: String = authorization
                .bytes()
                .map(|byte| format!("%{byte:02x}"))
                .collect();
            return format!(
                "HTTP/1.1 302 Found\r\nlocation: {away}?key={key}\r\ncontent-length: 0\r\n\r\n"
            )
            .into_bytes();
        }
        "/drip" => {
            let chunks: String = request
                .bytes()
                .map(|byte| format!("1\r\n{}\r\n", char::from(byte)))
                .collect();
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-echo\r\n\r\n";
            return format!("{head}{chunks}0\r\nx-echo: {authorization}\r\n\r\n").into_bytes();
        }
        _ => request.to_owned(),
    };
    format!(
        "HTTP/1.1 {status}\r\nx-echo: {authorization}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |word: usize, at: usize| char::from(DIGITS[word >> (18 - 6 * at) & 63]);
    let word = |chunk: &[u8]| {
        chunk
            .iter()
            .chain([&0, &0])
            .take(3)
            .fold(0, |word, byte| word << 8 | usize::from(*byte))
    };
    bytes
        .chunks(3)
        .flat_map(|chunk| (0..=chunk.len()).map(move |at| digit(word(chunk), at)))
        .collect()
}

/// The secret in a slot of requests to the server.
pub(super) fn github(port: u16, slot: SecretSlot, prefix: &str) -> SecretGrant {
    SecretGrant {
        secret: "github".into(),
        host: "127.0.0.1".into(),
        port: Some(port),
        slot,
        prefix: prefix.into(),
    }
}

/// The first port that requests may go to.
pub(super) fn port_of(network: &[EgressGrant]) -> u16 {
    network[0].ports.as_ref().unwrap()[0]
}

/// The two slots of the secret for a server.
pub(super) fn slots(port: u16) -> Vec<SecretGrant> {
    vec![
        github(port, SecretSlot::Header("authorization".into()), "Bearer "),
        github(port, SecretSlot::Query("key".into()), ""),
    ]
}

/// Grants the tool's component its secrets.
fn bound(name: &str, grant: &mut Grant) {
    if name == "reach" {
        grant.secrets = slots(port_of(&grant.network));
    }
}

fn setup(network: Vec<EgressGrant>) -> Setup {
    let definitions = vec![puppet()];
    let secrets = vec![("github", CANARY), ("unbound", "SK-CANARY-OTHER")];
    Setup {
        components: vec!["puppet", "reach"],
        definitions,
        network,
        secrets,
        change_grant: bound,
        ..Setup::default()
    }
}

/// Has a tool send a request and returns the result.
async fn send(world: &World, arguments: Value) -> String {
    world
        .play(json!([{ "start": [{ "key": "t", "tool": "send_request", "args": arguments }] }]))
        .await
        .join("\n")
}

/// Returns the decisions about secrets: their verdicts and details.
async fn uses(world: &World) -> Vec<(BoundaryVerdict, String)> {
    let decided = world.ledger().await.into_iter();
    let uses = decided
        .flat_map(|entry| entry.decisions)
        .filter(|decision| decision.capability == capability::SECRETS_USE);
    uses.map(|decision| (decision.verdict, decision.detail))
        .collect()
}

/// Returns true if the secret stands in the bytes, in any form.
pub(super) fn leaks(bytes: &[u8]) -> bool {
    Redactor::of(&Secret::parse(CANARY).unwrap())
        .bytes(bytes)
        .is_some()
        || bytes.windows(9).any(|window| window == b"SK-CANARY")
}

/// The files below a folder in which the secret stands.
pub(super) fn leaky_files(folder: &Path) -> Vec<String> {
    let mut leaky = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            leaky.extend(leaky_files(&path));
        } else if std::fs::read(&path).is_ok_and(|bytes| leaks(&bytes)) {
            leaky.push(path.display().to_string());
        }
    }
    leaky
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_to_its_slot_and_no_echo_of_it_comes_back() {
    let server = Echo::new();
    let world = World::new(setup(vec![server.grant()])).await;
    let headers = json!([["Authorization", PLACEHOLDER]]);
    for path in [
        "/raw",
        "/drip",
        "/json",
        "/hex",
        "/percent",
        "/base64/0",
        "/base64/1",
        "/base64/2",
        "/unauthorized",
    ] {
        for end in ["well", "fail", "trap"] {
            let reported = send(
                &world,
                json!({ "url": server.url(path), "headers": headers, "end": end }),
            )
            .await;
            let heard = server.heard().remove(0);
            assert!(
                heard.contains(&format!("\r\nauthorization: Bearer {CANARY}\r\n")),
                "{path} {heard}"
            );
            assert!(
                reported.contains("****") && !leaks(reported.as_bytes()),
                "{path} {end}: {reported}"
            );
        }
    }
    let reported = send(
        &world,
        json!({
            "url": server.url("/raw?a=b&key=%7B%7Bsecret.github%7D%7D"),
            "body": "says {{secret.github}}",
        }),
    )
    .await;
    let heard = server.heard().remove(0);
    assert!(
        heard.starts_with("POST /raw?a=b&key=SK-CANARY-4f%2F9%2Bc%22b%252z HTTP/1.1\r\n"),
        "{heard}"
    );
    // A body is only text.
    assert!(
        heard.ends_with("says {{secret.github}}") && reported.ends_with("says {{secret.github}}"),
        "{heard} {reported}"
    );
    assert!(
        reported.contains("key=*********************") && !leaks(reported.as_bytes()),
        "{reported}"
    );

    let uses = uses(&world).await;
    assert_eq!(uses.len(), 28);
    for (number, slot) in [(0, "header authorization"), (27, "query key")] {
        let detail = format!("github -> 127.0.0.1:{} {slot}", server.port);
        assert_eq!(uses[number], (BoundaryVerdict::Granted, detail));
    }
    assert_eq!(leaky_files(world.dir.path()), Vec::<String>::new());
}

/// A secret that a call was never granted is taken out of what it gets and of its record.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_a_call_was_never_granted_is_taken_out_of_its_answer_and_record() {
    let server = Echo::new();
    let world = World::new(setup(vec![server.grant()])).await;
    // A tool without secrets, a secret that nobody is granted, and a server that knows it from
    // elsewhere.
    let url = server.url("/raw/SK-CANARY-OTHER?twice=SK-CANARY%252DOTHER");
    let reported = world
        .play(json!([{ "start": [{ "key": "t", "tool": "fetch", "args": { "url": url } }] }]))
        .await
        .join("\n");
    assert!(server.heard()[0].starts_with("GET /raw/SK-CANARY-OTHER?twice=SK-CANARY%252DOTHER "));
    assert!(
        reported.contains("/raw/***************?twice=*******************")
            && !leaks(reported.as_bytes()),
        "{reported}"
    );
    let ledger = serde_json::to_string(&world.ledger().await).unwrap();
    assert!(
        ledger.contains("/raw/***************") && !leaks(ledger.as_bytes()),
        "{ledger}"
    );
}

/// A placeholder anywhere but in its slot refuses the request, and the ledger says where.
#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_outside_its_slot_refuses_the_request_and_the_ledger_says_where() {
    let server = Echo::new();
    let elsewhere = EgressGrant {
        host: HostPattern::parse("localhost").unwrap(),
        ..server.grant()
    };
    let neighbour = Echo::new();
    let world = World::new(setup(vec![server.grant(), elsewhere, neighbour.grant()])).await;
    let localhost = server.url("/").replace("127.0.0.1", "localhost");
    for (url, headers, place) in [
        (
            localhost.clone(),
            json!([["authorization", PLACEHOLDER]]),
            "the header `authorization`",
        ),
        (
            format!("{localhost}?key={PLACEHOLDER}"),
            json!([]),
            "the parameter `key`",
        ),
        (
            neighbour.url("/"),
            json!([["authorization", PLACEHOLDER]]),
            "no such secret is bound for `127.0.0.1:",
        ),
        (
            server.url("/"),
            json!([["x-mine", PLACEHOLDER]]),
            "the header `x-mine`",
        ),
        (
            server.url("/"),
            json!([["authorization", "Basic my-own"]]),
            "the slot `authorization`",
        ),
        (
            server.url("/"),
            json!([["authorization", "{{secret.unbound}}"]]),
            "the slot `authorization`",
        ),
        (
            server.url("/"),
            json!([
                ["authorization", PLACEHOLDER],
                ["authorization", PLACEHOLDER]
            ]),
            "the slot `authorization`",
        ),
        (
            server.url("/%7B%7Bsecret.github%7D%7D"),
            json!([]),
            "the path",
        ),
        (
            server.url("/?q=%7B%7Bsecret.github%7D%7D"),
            json!([]),
            "the parameter `q`",
        ),
        (
            server.url("/?key=x%7B%7Bsecret.github%7D%7D"),
            json!([]),
            "the slot `key`",
        ),
    ] {
        assert_eq!(
            send(&world, json!({ "url": url, "headers": headers })).await,
            REFUSED,
            "{url} {headers}"
        );
        let (verdict, detail) = uses(&world).await.pop().unwrap();
        assert_eq!(verdict, BoundaryVerdict::Refused);
        assert!(detail.contains(place), "{url} {headers}: {detail}");
    }
    // A credential of the guest's own is no placeholder, and egress refuses it as ever.
    let own = json!({ "url": localhost, "headers": [["authorization", "Bearer my-own"]] });
    assert_eq!(send(&world, own).await, REFUSED);
    let part = json!({
        "url": server.url("/"), "headers": [["authorization", PLACEHOLDER], ["range", "bytes=0-4"]],
    });
    assert!(
        send(&world, part).await.contains("ErrorCode::"),
        "a part of an answer is not asked for with a secret"
    );
    assert_eq!(
        (server.heard(), neighbour.heard()),
        (Vec::<String>::new(), Vec::<String>::new())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_does_not_go_along_to_another_origin_by_whatever_redirect() {
    let thief = Echo::new();
    let server = Echo::leading(thief.url("/raw"));
    let world = World::new(setup(vec![server.grant(), thief.grant()])).await;
    let reported = send(
        &world,
        json!({ "url": server.url("/away"), "headers": [["authorization", PLACEHOLDER]] }),
    )
    .await;
    assert!(reported.starts_with("t parts 200 "), "{reported}");
    let heard = thief.heard();
    assert!(
        heard.len() == 1 && !heard[0].contains("authorization") && !leaks(heard[0].as_bytes()),
        "{heard:?}"
    );
    let reported = send(
        &world,
        json!({ "url": server.url("/carry"), "headers": [["authorization", PLACEHOLDER]] }),
    )
    .await;
    assert_eq!((reported.as_str(), thief.heard().len()), (REFUSED, 0));
    assert_eq!(server.heard().len(), 2);
    assert_eq!(leaky_files(world.dir.path()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_may_not_use_secrets_has_no_tool_that_does() {
    let server = Echo::new();
    let mut setup = setup(vec![server.grant()]);
    setup.definitions[0]["capabilityDenylist"] = json!(["secrets.*"]);
    let world = World::new(setup).await;
    let reported = send(
        &world,
        json!({ "url": server.url("/raw"), "headers": [["authorization", PLACEHOLDER]] }),
    )
    .await;
    assert_eq!((reported.as_str(), server.heard().len()), ("t denied", 0));
}

fn config(server: &Echo) -> Value {
    let network = json!([{
        "host": "127.0.0.1", "schemes": ["http"], "ports": [server.port],
        "privateAddresses": ["127.0.0.1"],
    }]);
    let grant = |secret: &str, slot: Value| {
        json!({
            "secret": secret, "host": "127.0.0.1", "port": server.port, "slot": slot,
            "prefix": "Bearer ",
        })
    };
    json!({
        "agents": [puppet()],
        "secrets": {
            "github": { "file": "github.key" },
            "said": { "command": ["printf", "%s\\n", "SK-CANARY-SAID"] },
        },
        "components": {
            "puppet": { "path": test_program("puppet") },
            "reach": {
                "path": test_program("reach"),
                "network": network,
                "secrets": [
                    grant("github", json!({ "header": "authorization" })),
                    grant("said", json!({ "header": "x-said" })),
                ],
            },
        },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    })
}

/// Plays a script in a session of its own, and gives everything that was seen of it on the wire.
async fn played(host: &Host, script: &Value) -> String {
    let opened = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let agent = opened.text("agent_id");
    let id = opened.text("session_id");
    let session = format!("/api/agents/{agent}/sessions/{id}");
    let mut frames = host
        .line()
        .follow(
            &format!("/api/agents/{agent}/stream?view=log&session={id}"),
            None,
        )
        .await
        .unwrap();
    host.post(
        &format!("{session}/messages"),
        &json!({ "content": script.to_string() }),
    )
    .await;
    let mut seen = String::new();
    while !seen.contains("turn.committed") {
        seen.push_str(&format!("{:?}\n", frames.receive().await.unwrap()));
    }
    for path in [session, "/api/events".to_owned(), "/api/audit".to_owned()] {
        seen.push_str(&host.get(&path).await.body.to_string());
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_log_or_database_ever_has_a_secret() {
    let server = Echo::new();
    let folder = Folder::new(config(&server));
    let key = folder.path().join("github.key");
    std::fs::write(&key, format!("{CANARY}\n")).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    folder.warm(&["puppet", "reach"]).await;
    let refused = folder.start(None).await.unwrap_err();
    assert!(
        refused
            .said
            .contains("secrets.github: others can read the file")
            && refused.said.contains("chmod 600 "),
        "{}",
        refused.said
    );
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();

    let checked = folder.succeeds(&["config", "check", "--json"]).await;
    assert!(!leaks(&checked.stdout) && !leaks(&checked.stderr));
    let host = folder.serve().await;
    let headers = json!([
        ["authorization", PLACEHOLDER],
        ["x-said", "{{secret.said}}"]
    ]);
    for (path, end) in [("/raw", "well"), ("/drip", "fail"), ("/json", "trap")] {
        let args = json!({ "url": server.url(path), "headers": headers, "end": end });
        let seen = played(
            &host,
            &json!({
                "steps": [{ "start": [{ "key": "t", "tool": "send_request", "args": args }] }],
            }),
        )
        .await;
        assert!(
            seen.contains("****") && !leaks(seen.as_bytes()),
            "{path}: {seen}"
        );
        let heard = server.heard().remove(0);
        assert!(
            heard.contains(CANARY) && heard.contains("x-said: Bearer SK-CANARY-SAID\r\n"),
            "{heard}"
        );
    }
    let log = folder.log();
    assert!(log.contains("****") && !leaks(log.as_bytes()), "{log}");
    drop(host);
    assert_eq!(leaky_files(&folder.data()), Vec::<String>::new());
}
