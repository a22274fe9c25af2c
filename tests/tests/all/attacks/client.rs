//! A7: clients that send too slowly, too much, too often or in another language, beside one that is
//! honest.

use super::super::exhaustion::config;
use super::siege::repeats_of_slow;
use agent_host_tests::process::{Folder, Host, PATIENCE, Session, tells};
use agent_host_tests::repeats::is_whole;
use reqwest::Method;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

/// Says to the flooding client where the host is.
const FLOODED: &str = "AGENT_HOST_TESTS_FLOODED";
/// Connections of the flood, and in the whole set.
const FLOOD: (usize, usize) = (2_000, 10_000);

async fn started(limits: Value) -> (Folder, Host, Session) {
    let mut config = config();
    config["server"] = json!({ "listen": "127.0.0.1:0", "dataDir": "data", "limits": limits });
    let (folder, host) = Folder::serving(config, &["puppet", "effects"]).await;
    let session = host.open("puppet").await;
    (folder, host, session)
}

/// An honest client is served.
async fn serves(host: &Host, session: &str) {
    host.say(session, r#"{"steps":[]}"#).await;
    host.rest(session).await;
}

fn address(host: &Host) -> SocketAddr {
    host.base.trim_start_matches("http://").parse().unwrap()
}

fn descriptors(host: &Host) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", host.process().as_raw_nonzero()))
        .unwrap()
        .count()
}

/// Waits until the host has no more descriptors than before.
async fn rests(host: &Host, before: usize) {
    let patience = Instant::now() + PATIENCE;
    while descriptors(host) > before {
        assert!(
            Instant::now() < patience,
            "{} descriptors, {before} before",
            descriptors(host)
        );
        sleep(Duration::from_millis(50)).await;
    }
}

async fn ends(folder: &Folder, host: Host) {
    assert!(host.stop().await.success(), "{}", folder.log());
    assert!(!folder.log().contains("panicked at"), "{}", folder.log());
    folder.verified().await;
}

/// Returns the answer to these bytes, as far as the host says anything before it hangs up.
async fn answered(host: &Host, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address(host)).await.unwrap();
    let mut answer = Vec::new();
    let exchange = async {
        // The host need not read what it has refused already.
        let _ = stream.write_all(bytes).await;
        let mut chunk = [0; 4_096];
        while let Ok(read @ 1..) = stream.read(&mut chunk).await {
            answer.extend_from_slice(&chunk[..read]);
        }
    };
    let _ = timeout(Duration::from_secs(5), exchange).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_slow_clients_are_closed_and_an_honest_one_is_served_meanwhile() {
    let (folder, host, session) =
        started(json!({ "headerMsMax": 700, "bodyMsMax": 700, "idleMsMax": 700 })).await;
    let before = descriptors(&host);
    let partial = format!(
        "POST {session}/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
         {}\r\ncontent-type: application/json\r\n",
        host.token
    );
    let body = format!("{partial}content-length: 1000\r\n\r\n{{");
    let kept = format!(
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        host.token
    );
    for _ in 0..repeats_of_slow() {
        let mut slow = Vec::new();
        for number in 0..200 {
            let mut stream = TcpStream::connect(address(&host)).await.unwrap();
            let bytes: &[u8] = [
                b"".as_slice(),
                partial.as_bytes(),
                body.as_bytes(),
                kept.as_bytes(),
            ][number % 4];
            stream.write_all(bytes).await.unwrap();
            slow.push(stream);
        }
        serves(&host, &session).await;
        for mut stream in slow {
            let mut rest = Vec::new();
            timeout(Duration::from_secs(10), stream.read_to_end(&mut rest))
                .await
                .expect("it is closed")
                .ok();
        }
        serves(&host, &session).await;
        rests(&host, before + 2).await;
    }
    ends(&folder, host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_too_much_are_refused_before_they_are_read() {
    let (folder, host, session) = started(json!({})).await;
    let before = descriptors(&host);
    let head = format!(
        "POST {session}/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
         {}\r\nconnection: close\r\n",
        host.token
    );
    let json = "content-type: application/json\r\n";
    let headers: String = (0..100_000).map(|n| format!("x-{n}: v\r\n")).collect();
    let chunked = [
        format!("{head}{json}transfer-encoding: chunked\r\n\r\n").as_bytes(),
        &[b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"]
            .concat()
            .repeat(64),
    ]
    .concat();
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "ten gigabytes",
            format!("{head}{json}content-length: 10737418240\r\n\r\nx").into_bytes(),
            " 413 ",
        ),
        ("chunks without end", chunked, " 413 "),
        (
            "a hundred thousand headers",
            format!("{head}{headers}\r\n").into_bytes(),
            " 431 ",
        ),
        (
            "a header of a megabyte",
            format!("{head}x: {}\r\n\r\n", "v".repeat(1 << 20)).into_bytes(),
            " 431 ",
        ),
        (
            "a million levels",
            format!("{head}{json}content-length: {}\r\n\r\n{deep}", deep.len()).into_bytes(),
            " 422 ",
        ),
        (
            "parts in parts",
            format!(
                "{head}content-type: multipart/form-data; boundary=x\r\ncontent-length: 2\r\n\r\n--"
            )
            .into_bytes(),
            " 415 ",
        ),
        (
            "two lengths",
            format!("{head}{json}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}").into_bytes(),
            " 400 ",
        ),
        (
            "a length and chunks",
            format!("{head}{json}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
                .into_bytes(),
            " 4",
        ),
        (
            "a path of a megabyte",
            format!(
                "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
                "a".repeat(1 << 20)
            )
            .into_bytes(),
            " 4",
        ),
        (
            "no HTTP at all",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            "",
        ),
    ];
    for (what, bytes, expected) in (0..repeats_of_slow()).flat_map(|_| &cases) {
        let answer = answered(&host, bytes).await;
        let first = answer.lines().next().unwrap_or_default();
        assert!(first.contains(expected), "{what}: {first}");
        assert!(!first.contains(" 2"), "{what}: {first}");
        serves(&host, &session).await;
    }
    rests(&host, before + 2).await;
    ends(&folder, host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_speaks_http_2_with_this_host() {
    let (folder, host, session) = started(json!({ "headerMsMax": 1_000 })).await;
    let before = descriptors(&host);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0_u8, 0, 0, 4, 0, 0, 0, 0, 0];
    // HEADERS without end of headers, then CONTINUATION again and again; HEADERS and RST_STREAM
    // again and again; SETTINGS again and again.
    let headers = [0_u8, 0, 1, 1, 0, 0, 0, 0, 1, 0x82];
    let continuation = [0_u8, 0, 1, 9, 0, 0, 0, 0, 1, 0x40];
    let reset = [0_u8, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8];
    let floods = [
        continuation.repeat(50_000),
        [headers.as_slice(), &reset].concat().repeat(20_000),
        settings.repeat(50_000),
    ];
    for flood in (0..repeats_of_slow()).flat_map(|_| &floods) {
        let bytes = [preface.as_slice(), &settings, &headers, flood].concat();
        let answer = answered(&host, &bytes).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{answer}"
        );
        serves(&host, &session).await;
    }
    let upgrade = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\
                   connection: upgrade, http2-settings, close\r\nupgrade: h2c\r\n\
                   http2-settings: AAMAAABkAAQAAP__\r\n\r\n";
    let answer = answered(&host, upgrade.as_bytes()).await;
    assert!(!answer.contains(" 101 "), "{answer}");
    rests(&host, before + 2).await;
    ends(&folder, host).await;
}

/// Bytes that the host may have grown by for streams that are not read: the queue of each of them,
/// and what a busy host holds anyway.
const UNREAD_BYTES_MAX: u64 = 64 << 20;

/// Bytes of memory that the host has resident.
fn resident_bytes(host: &Host) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", host.process().as_raw_nonzero()))
        .unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

/// The streams of all agents are opened and not read, while much is said in them.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_nobody_reads_are_bounded_and_their_places_come_free_again() {
    let (folder, host, session) = started(json!({
        "streamsMax": 20, "sendBufferBytes": 16_384, "streamWaitingBytesMax": 65_536,
        "streamStallMsMax": 500,
    }))
    .await;
    let before = descriptors(&host);
    let agent = session.split("/sessions").next().unwrap().to_owned();
    let request = format!(
        "GET {agent}/stream?view=log HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
         {}\r\n\r\n",
        host.token
    );
    for round in 0..repeats_of_slow() {
        let mut open = Vec::new();
        let mut refused = 0;
        for _ in 0..60 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4_096).unwrap();
            let mut stream = socket.connect(address(&host)).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut head = [0; 12];
            timeout(PATIENCE, stream.read_exact(&mut head))
                .await
                .unwrap()
                .unwrap();
            match &head[9..] {
                b"200" => open.push(stream),
                b"503" | b"429" => refused += 1,
                other => panic!("{}", String::from_utf8_lossy(other)),
            }
        }
        assert_eq!((open.len(), refused), (20, 40), "round {round}");
        let resident = resident_bytes(&host);
        let words = json!({ "steps": [{ "reply": "x".repeat(100_000) }] }).to_string();
        for _ in 0..20 {
            host.say(&session, &words).await;
            host.rest(&session).await;
        }
        serves(&host, &session).await;
        let grown = resident_bytes(&host).saturating_sub(resident);
        assert!(
            grown < UNREAD_BYTES_MAX,
            "{grown} bytes for {} streams",
            open.len()
        );
        // Nobody has closed them but the host.
        rests(&host, before + 2).await;
        drop(open);
    }
    for id in [
        "garbage",
        "-1",
        "18446744073709551616",
        "1;drop table events",
        "%00",
    ] {
        let answer = host
            .send(
                host.request(Method::GET, &format!("{agent}/stream?view=log"))
                    .header("last-event-id", id),
            )
            .await;
        assert_eq!(answer.status, 400, "{id}: {answer:?}");
    }
    ends(&folder, host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_requests_are_names_and_not_paths_queries_or_lines_of_the_log() {
    let (folder, host, session) = started(json!({})).await;
    let nasty = [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "..%5c..%5c",
        "%00",
        "%0d%0aX-Evil:%201",
        "'%20OR%201=1--",
        "%22;DROP%20TABLE%20events;--",
        "%1b%5b2J",
        "%e2%80%ae",
        "(a+)+$",
        "*",
        "%ff",
    ];
    for name in (0..repeats_of_slow()).flat_map(|_| nasty) {
        let paths = [
            format!("/api/agents/{name}"),
            format!("/api/agents/{name}/sessions/{name}"),
            format!("/api/components/{name}"),
            format!("/api/blobs/{name}"),
            format!("/{name}"),
            format!("/api/events?session={name}&agent={name}&limit={name}"),
            format!("/api/events?after={name}&type={name}"),
            format!("/api/agents?after={name}&limit={name}"),
        ];
        for path in paths {
            let token = &host.token;
            let answer = answered(
                &host,
                format!(
                    "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
                     {token}\r\nuser-agent: {name}\r\nidempotency-key: {name}\r\nconnection: \
                     close\r\n\r\n"
                )
                .as_bytes(),
            )
            .await;
            let status: u16 = answer
                .get(9..12)
                .and_then(|digits| digits.parse().ok())
                .unwrap_or_default();
            assert!((400..500).contains(&status), "{path}: {answer}");
            assert!(
                !answer.contains("root:")
                    && !answer.to_ascii_lowercase().contains("\r\nx-evil:")
                    && !answer.contains('\u{1b}'),
                "{path}: {answer}"
            );
        }
    }
    let key = host
        .request(Method::POST, &format!("{session}/messages"))
        .header("idempotency-key", "'; DROP TABLE inputs; --");
    host.send(key.json(&json!({ "content": "\u{1b}[2J\r\nERROR forged \u{202e}" })))
        .gives(202)
        .await;
    host.rest(&session).await;
    serves(&host, &session).await;
    let log = folder.log();
    assert!(
        !log.contains('\u{202e}') && !log.lines().any(|line| line.starts_with("ERROR forged")),
        "{log}"
    );
    ends(&folder, host).await;
}

/// The flooding client: opens connections, keeps them, and ends when its stdin does.
#[test]
#[ignore = "it is the client of the test below, in a process of its own"]
fn a_client_that_floods() {
    let Some(flooded) = std::env::var_os(FLOODED).and_then(|flooded| flooded.into_string().ok())
    else {
        return;
    };
    let address: SocketAddr = flooded.parse().unwrap();
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: most,
            maximum: most,
        },
    )
    .unwrap();
    let count = if is_whole() { FLOOD.1 } else { FLOOD.0 };
    let mut leased = Vec::new();
    for number in 0..count {
        // A backlog that is full is part of the attack.
        if let Ok(mut stream) =
            std::net::TcpStream::connect_timeout(&address, Duration::from_millis(500))
        {
            let _ = stream.write_all(if number % 2 == 0 { b"GET /" } else { b"" });
            leased.push(stream);
        }
    }
    println!("\nflooded with {}", leased.len());
    let _ = std::io::stdin().read(&mut [0]);
}

/// Returns whether the host is healthy to a client from another address.
async fn is_healthy_from_elsewhere(host: &Host) -> bool {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0)))
        .unwrap();
    let asking = async {
        let mut stream = socket.connect(address(host)).await.ok()?;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await
            .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(())
    };
    timeout(Duration::from_secs(5), asking)
        .await
        .ok()
        .flatten()
        .is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_connections_takes_its_own_places_and_nobody_elses() {
    let (folder, host, session) = started(
        json!({ "connectionsMax": 200, "connectionsPerAddressMax": 64, "headerMsMax": 3_000 }),
    )
    .await;
    let before = descriptors(&host);
    let me = std::env::current_exe().unwrap();
    let client = [
        "--exact",
        "all::attacks::client::a_client_that_floods",
        "--ignored",
        "--nocapture",
    ];
    let mut client = Command::new(me)
        .args(client)
        .env(FLOODED, address(&host).to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut healthy = (0, 0);
    let flooded = loop {
        tokio::select! {
            line = lines.next_line() => {
                let line = line.unwrap().expect("a client that floods");
                if line.starts_with("flooded with") { break line }
            }
            is_healthy = is_healthy_from_elsewhere(&host) => {
                healthy.0 += 1;
                healthy.1 += usize::from(is_healthy);
                sleep(Duration::from_millis(20)).await;
            }
        }
        assert!(
            descriptors(&host) <= before + 200 + 64 + 64,
            "{}",
            descriptors(&host)
        );
    };
    // While the backlog is full a connection may take a second; hardly any may fail. The flood may
    // be over before the first was answered.
    assert!(
        healthy.1 * 10 >= healthy.0 * 9,
        "{healthy:?} during {flooded}"
    );
    assert!(is_healthy_from_elsewhere(&host).await);
    drop(client.stdin.take());
    client.wait().await.unwrap();
    rests(&host, before + 2).await;
    serves(&host, &session).await;
    ends(&folder, host).await;
}

/// A program that took the address of a host that does not run answers everything, and keeps what
/// it is sent.
fn impostor(address: SocketAddr) -> Arc<Mutex<String>> {
    let heard = Arc::new(Mutex::new(String::new()));
    let reported = Arc::clone(&heard);
    let listener = std::net::TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = [0; 16 << 10];
            let read = connection.read(&mut request).unwrap_or_default();
            reported
                .lock()
                .unwrap()
                .push_str(&String::from_utf8_lossy(&request[..read]));
            let body = json!({ "proof": "0".repeat(64), "version": "9.9.9" }).to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: \
                 {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_at_the_address_of_a_host_that_is_gone_is_sent_no_credential() {
    let (folder, host, _) = started(json!({})).await;
    folder.succeeds(&["status"]).await;
    let address = address(&host);
    // The file with its address stays behind.
    host.kill().await;
    let heard = impostor(address);
    for command in [
        &["status"][..],
        &["session", "list"],
        &["agents", "tree"],
        &["events", "tail"],
        &["doctor"],
    ] {
        for credential in ["", "ahk_of_somebody"] {
            let run = folder
                .run_with(command, &[("AGENT_HOST_TOKEN", credential)])
                .await;
            let heard = heard.lock().unwrap().to_lowercase();
            assert!(!heard.contains("authorization"), "{command:?}: {heard}");
            if command != ["doctor"] {
                let said = String::from_utf8_lossy(&run.stderr);
                assert_eq!(run.status.code(), Some(4), "{command:?}: {said}");
                assert!(said.contains("--trust-address"), "{command:?}: {said}");
            }
        }
    }
    assert!(heard.lock().unwrap().contains("/proof?challenge="));
    // Whoever says so trusts the address.
    folder.run(&["status", "--trust-address"]).await;
    let heard = heard.lock().unwrap().to_lowercase();
    tells(&heard, &["authorization: bearer "]);
}
