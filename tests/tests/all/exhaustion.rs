//! The shortages that a host survives: a disk that is full, a disk without inodes, a process
//! without file descriptors.
//!
//! A limit on the size of files, as `ulimit -f` sets it: an error for the writer, and never the end
//! of the host.

use agent_host_tests::patience::until;
use agent_host_tests::process::{
    Answer, Folder, Host, PATIENCE, Reply, effects, puppet, rests, scripted,
};
use agent_host_tests::skip::{WITHOUT_NAMESPACES, needed};
use agent_host_tests::small_disk::Room;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{EventFilter, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Time within which a host notices that its disk is full, or is not any more.
const NOTICED: Duration = Duration::from_secs(5);

pub(super) fn config() -> Value {
    scripted(&json!([puppet()]), &[("effects", effects())])
}

/// A running host on a small disk; none where there can be no such disk and the variable says that
/// this is known.
async fn on_small_disk(inodes: u64) -> Option<(Folder, Host)> {
    let folder = needed(
        Folder::on_small_disk(
            config(),
            Room {
                bytes: 64 << 20,
                inodes,
            },
        ),
        WITHOUT_NAMESPACES,
    )?;
    folder.warm(&["puppet", "effects"]).await;
    let host = folder.serve().await;
    Some((folder, host))
}

#[track_caller]
pub(super) fn say(host: &Host, session: &str, content: &str) -> Reply {
    host.post(
        &format!("{session}/messages"),
        &json!({ "content": content }),
    )
}

pub(super) async fn idle_within(host: &Host, session: &str, patience: Duration) -> Value {
    let patience = Instant::now() + patience;
    loop {
        let seen = host.get(session).await.body;
        if rests(&seen) {
            return seen;
        }
        assert!(Instant::now() < patience, "it has not come to rest: {seen}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the host says whether it is ready in some way.
pub(super) async fn ready(host: &Host, status: u16) -> Answer {
    let patience = Instant::now() + NOTICED;
    loop {
        let answer = host.get("/readyz").await;
        if answer.status == status {
            return answer;
        }
        assert!(Instant::now() < patience, "it still says {answer:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[track_caller]
fn is_full(answer: &Answer) {
    answer.is_refusal(503, "DISK_FULL");
    assert_eq!(
        answer.content_type, "application/problem+json",
        "{answer:?}"
    );
}

/// Takes all space that is left.
fn fill(folder: &Path) -> PathBuf {
    let path = folder.join("filler");
    let mut file = File::create(&path).unwrap();
    for bytes in [1 << 20, 4 << 10, 1] {
        let chunk = vec![7; bytes];
        loop {
            match file.write(&chunk) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_disk_is_full_says_so_and_goes_on_by_itself_when_there_is_space() {
    let Some((folder, host)) = on_small_disk(1_000).await else {
        return;
    };
    let session = host.open("puppet").await;
    let busy = host.open("puppet").await;
    let mut acknowledged = Vec::new();
    for number in 0..3 {
        acknowledged.push(
            say(&host, &session, &format!("word {number}"))
                .await
                .text("input_id"),
        );
    }
    host.rest(&session).await;
    let call = json!({
        "steps": [{ "start": [{ "key": "t", "tool": "send", "args": { "sleep": 1_500 } }] }],
    });
    acknowledged.push(say(&host, &busy, &call.to_string()).await.text("input_id"));
    until(async || !folder.effects().is_empty()).await;

    let filler = fill(&folder.data());
    // It is reported before any request was refused.
    is_full(&ready(&host, 503).await);
    let refused = loop {
        // What still fits is accepted.
        let answer = say(&host, &session, &"x".repeat(64 << 10)).await;
        if answer.status != 202 {
            break answer;
        }
        acknowledged.push(answer.text("input_id"));
        assert!(acknowledged.len() < 1_000, "the disk does not get full");
    };
    is_full(&refused);
    let until = Instant::now() + Duration::from_millis(2_500);
    while Instant::now() < until {
        is_full(&host.get("/readyz").await);
        is_full(&say(&host, &session, "no room").await);
        host.get("/healthz").gives(200).await;
        assert_eq!(host.get(&session).await.status, 200, "reads go on");
        assert_eq!(
            host.get("/api/events?limit=10").await.status,
            200,
            "reads go on"
        );
        sleep(Duration::from_millis(100)).await;
    }

    std::fs::remove_file(filler).unwrap();
    ready(&host, 200).await;
    acknowledged.push(say(&host, &session, "room again").await.text("input_id"));
    host.rest(&session).await;
    let seen = host.rest(&busy).await;
    assert!(
        seen["messages"].to_string().contains("t parts send done"),
        "what was done while nothing could be recorded: {seen}"
    );
    folder.over(host).await;
    assert_eq!(accepted(&folder).await, acknowledged);
}

/// The inputs that the store of a host holds that was stopped or killed, in order. It is looked at
/// elsewhere: SQLite does not find its way through `/proc`.
pub(super) async fn accepted(folder: &Folder) -> Vec<String> {
    let elsewhere = tempfile::tempdir().unwrap();
    for name in ["store.db", "store.db-wal", "store-id"] {
        let file = folder.data().join(name);
        // A host that was stopped leaves no log.
        assert!(name.ends_with("-wal") || file.exists(), "{name} is missing");
        if file.exists() {
            std::fs::copy(file, elsewhere.path().join(name)).unwrap();
        }
    }
    let data = elsewhere.path().to_owned();
    let store =
        tokio::task::spawn_blocking(move || Store::open(&data, store::Options::default()).unwrap())
            .await
            .unwrap();
    let events = store
        .events(0, EventFilter::default(), 1_000_000)
        .await
        .unwrap();
    store.close().await;
    let accepted = events.into_iter().filter_map(|event| match event.event? {
        domain::event::Event::InputAccepted(it) => Some(it.input.to_string()),
        _ => None,
    });
    accepted.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_starts_on_a_full_disk_says_so_from_the_beginning() {
    let Some((folder, host)) = on_small_disk(1_000).await else {
        return;
    };
    let session = host.open("puppet").await;
    assert!(host.stop().await.success(), "{}", folder.log());
    let filler = fill(&folder.data());
    // The token, the address and the log still fit; the ballast is there.
    File::options()
        .write(true)
        .open(&filler)
        .unwrap()
        .set_len(filler.metadata().unwrap().len() - (1 << 20))
        .unwrap();
    let host = folder.serve().await;
    is_full(&host.get("/readyz").await);
    host.get(&session).gives(200).await;
    std::fs::remove_file(filler).unwrap();
    ready(&host, 200).await;
    host.say(&session, "hello").await;
    host.rest(&session).await;
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_configuration_is_refused_only_for_now_while_the_disk_is_full() {
    let Some((folder, host)) = on_small_disk(1_000).await else {
        return;
    };
    let filler = fill(&folder.data());
    is_full(&ready(&host, 503).await);
    let mut config = config();
    config["agents"][0]["displayName"] = json!("Another name");
    folder.configure(config.clone());
    let reload = || host.post("/api/config/reload", &json!({}));
    let refused = reload().await;
    is_full(&refused);
    assert_eq!(refused.body["retryable"], true, "{refused:?}");
    // What is wrong with a configuration is told all the same.
    config["agents"][0]["component"] = json!("nowhere");
    folder.configure(config.clone());
    let refused = reload().await;
    assert_eq!(refused.text("code"), "CONFIG_REFUSED", "{refused:?}");
    std::fs::remove_file(filler).unwrap();
    ready(&host, 200).await;
    config["agents"][0]["component"] = json!("puppet");
    folder.configure(config);
    let taken = reload().await;
    assert_eq!(taken.status, 200, "{taken:?}");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_inodes_keeps_no_commit_and_no_reply_from_being_made() {
    let Some((folder, host)) = on_small_disk(64).await else {
        return;
    };
    let session = host.open("puppet").await;
    let mut files = Vec::new();
    while let Ok(file) = File::create(folder.data().join(format!("file-{}", files.len()))) {
        drop(file);
        files.push(folder.data().join(format!("file-{}", files.len())));
    }
    for number in 0..20 {
        host.say(&session, &format!("word {number}")).await;
    }
    host.rest(&session).await;
    host.get("/readyz").gives(200).await;
    host.post("/api/backups", &json!({}))
        .refused(500, "BACKUP_FAILED")
        .await;
    for file in files {
        std::fs::remove_file(file).unwrap();
    }
    host.post("/api/backups", &json!({})).gives(201).await;
    folder.over(host).await;
}

/// A connection that is kept.
struct Kept {
    stream: TcpStream,
    head: String,
}

impl Kept {
    async fn new(host: &Host) -> Self {
        let address = host.base.trim_start_matches("http://");
        let head = format!(
            "host: {address}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n",
            host.token
        );
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            head,
        }
    }

    /// Asks on this connection: status and body.
    async fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{}content-length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        tokio::time::timeout(PATIENCE, self.exchange(&request))
            .await
            .expect("an answer in time")
    }

    async fn exchange(&mut self, request: &str) -> (u16, String) {
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        loop {
            let mut part = [0; 4_096];
            let read = self.stream.read(&mut part).await.unwrap();
            assert!(read > 0, "the connection was closed after `{answer}`");
            answer += std::str::from_utf8(&part[..read]).unwrap();
            let Some((head, body)) = answer.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse::<usize>()
                    .ok()
            });
            if body.len() >= length.expect("a length") {
                return (
                    head.split(' ').nth(1).unwrap().parse().unwrap(),
                    body.to_owned(),
                );
            }
        }
    }
}

/// Ticks of 10 ms that a process has computed for.
fn ticks(process: Pid) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_memory_may_end_and_loses_nothing_that_it_acknowledged() {
    let folder = Folder::new(config());
    folder.warm(&["puppet", "effects"]).await;
    for room_kb in [0, 64, 512, 4_096, 32_768] {
        let host = folder.serve().await;
        let session = host.open("puppet").await;
        let usual = getrlimit(Resource::As);
        let most = Rlimit {
            current: Some(address_space(host.process()) + (room_kb << 10)),
            maximum: usual.maximum,
        };
        prlimit(Some(host.process()), Resource::As, most).unwrap();
        let mut acknowledged = Vec::new();
        for number in 0..10 {
            let body = json!({ "content": format!("words {number}") });
            // Nobody answers once it has ended.
            let said = host.post(&format!("{session}/messages"), &body);
            let Ok(answer) = said.attempt().await else {
                continue;
            };
            match answer.status {
                202 => acknowledged.push(answer.text("input_id")),
                status => assert!(status >= 429, "{answer:?}"),
            }
        }
        host.kill().await;
        let host = folder.serve().await;
        host.rest(&session).await;
        assert!(host.stop().await.success(), "{}", folder.log());
        let accepted = accepted(&folder).await;
        assert!(
            acknowledged.iter().all(|input| accepted.contains(input)),
            "with {room_kb} KiB: {} of {}",
            accepted.len(),
            acknowledged.len()
        );
        folder.verified().await;
    }
}

/// Bytes of address space that a process has taken.
fn address_space(process: Pid) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    let size = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .unwrap();
    size.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_file_descriptors_serves_those_it_has_and_recovers() {
    let (folder, host) = Folder::serving(config(), &["puppet", "effects"]).await;
    let path = host.open("puppet").await;
    let mut kept = Kept::new(&host).await;
    assert_eq!(kept.ask("GET", "/healthz", "").await.0, 200);
    let process = host.process();
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero()))
        .unwrap()
        .flatten();
    let taken: BTreeSet<u64> = descriptors
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    // Four are left: the limit is a number that no new descriptor may reach.
    let low = Rlimit {
        current: (0..).filter(|number| !taken.contains(number)).nth(4),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    prlimit(Some(process), Resource::Nofile, low).unwrap();

    let address = host.base.trim_start_matches("http://").to_owned();
    let mut crowd = Vec::new();
    let refused = || {
        folder
            .log()
            .matches("accepting a connection failed")
            .count()
    };
    while refused() == 0 {
        crowd.push(TcpStream::connect(&address).await.unwrap());
        assert!(crowd.len() < 50, "it never runs out of descriptors");
        sleep(Duration::from_millis(10)).await;
    }
    let before = ticks(process);
    let tries = refused();
    let since = Instant::now();
    let body = json!({ "content": json!({ "steps": [{ "reply": "still here" }] }).to_string() })
        .to_string();
    assert_eq!(
        kept.ask("POST", &format!("{path}/messages"), &body).await.0,
        202
    );
    while since.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(
            kept.ask("GET", "/healthz", "").await,
            (200, "ok".to_owned())
        );
        sleep(Duration::from_millis(50)).await;
    }
    let spent = ticks(process) - before;
    let tried = refused() - tries;
    assert!(spent < 75, "it spins: {spent} ticks in 150");
    assert!(tried < 20, "it spins: {tried} tries");

    drop(crowd);
    let patience = Instant::now() + NOTICED;
    let mut fresh = Kept::new(&host).await;
    assert_eq!(fresh.ask("GET", "/healthz", "").await.0, 200);
    assert!(Instant::now() < patience, "it took too long to recover");
    // What could not be begun without descriptors was not given up.
    assert!(
        host.rest(&path).await["messages"]
            .to_string()
            .contains("still here"),
        "{}",
        folder.log()
    );
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_first_step_finds_no_place_is_on_record() {
    let mut config = config();
    config["limits"] = json!({ "instancesMax": 1, "instancesWaitingMax": 0 });
    let (folder, host) = Folder::serving(config, &["puppet", "effects"]).await;
    let busy = host.open("puppet").await;
    let session = host.open("puppet").await;
    let call = json!([{ "start": [{ "key": "t", "tool": "send", "args": { "sleep": 1_500 } }] }]);
    host.play(&busy, &call).await;
    until(async || !folder.effects().is_empty()).await;
    host.say(&session, r#"{"steps":[]}"#).await;
    host.rest(&session).await;
    host.rest(&busy).await;
    let id = session.rsplit('/').next().unwrap();
    let reported = host
        .get(&format!("/api/audit?verdict=limited&session={id}"))
        .await
        .body;
    let lines: Vec<_> = reported["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (&line["component"], &line["capability"]))
        .collect();
    assert_eq!(
        lines,
        [(&json!("puppet"), &json!("agents.step"))],
        "{reported}"
    );
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_turned_away_keeps_its_turn_before_who_comes_later() {
    let mut config = config();
    config["limits"] = json!({ "instancesMax": 1, "instancesWaitingMax": 0 });
    let (folder, host) = Folder::serving(config, &["puppet", "effects"]).await;
    let busy = host.open("puppet").await;
    let first = host.open("puppet").await;
    let last = host.open("puppet").await;
    let limited = async |session: &str| {
        let id = session.rsplit('/').next().unwrap_or_default();
        let reported = host
            .get(&format!("/api/audit?verdict=limited&session={id}"))
            .await
            .body;
        reported["lines"].as_array().map_or(0, Vec::len)
    };
    let call = json!([{ "start": [{ "key": "t", "tool": "send", "args": { "sleep": 3_000 } }] }]);
    host.play(&busy, &call).await;
    until(async || !folder.effects().is_empty()).await;
    host.say(&first, r#"{"steps":[]}"#).await;
    until(async || limited(&first).await != 0).await;
    host.say(&last, r#"{"steps":[]}"#).await;
    for session in [&busy, &first, &last] {
        host.rest(session).await;
    }
    // It was never tried while the host was full: the place was taken.
    assert_eq!((limited(&first).await, limited(&last).await), (1, 0));
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// Bytes that the largest file may still grow by.
const ROOM_BYTES: u64 = 1 << 20;
/// Time within which a host records again once it may.
const RECOVERED: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_not_grow_is_an_error_of_the_store_and_not_the_end_of_the_host() {
    let (folder, host) = Folder::serving(config(), &["puppet", "effects"]).await;
    let session = host.open("puppet").await;
    let files = std::fs::read_dir(folder.data())
        .unwrap()
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with("store.db"));
    let largest = files
        .map(|file| file.metadata().unwrap().len())
        .max()
        .unwrap();
    let limit = |current| Rlimit {
        current,
        maximum: getrlimit(Resource::Fsize).maximum,
    };
    prlimit(
        Some(host.process()),
        Resource::Fsize,
        limit(Some(largest + ROOM_BYTES)),
    )
    .unwrap();

    let mut accepted = 0;
    let refused = loop {
        let answer = say(&host, &session, &"x".repeat(64 << 10)).await;
        if answer.status != 202 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 1_000, "no file reaches the limit");
    };
    refused.is_refusal(503, "STORE_UNAVAILABLE");
    assert_eq!(host.get(&session).await.status, 200, "reads go on");
    // The log takes no further line either.
    prlimit(Some(host.process()), Resource::Fsize, limit(Some(1))).unwrap();
    for _ in 0..3 {
        assert_eq!(say(&host, &session, "no room").await.status, 503);
    }

    prlimit(
        Some(host.process()),
        Resource::Fsize,
        limit(getrlimit(Resource::Fsize).maximum),
    )
    .unwrap();
    let patience = Instant::now() + RECOVERED;
    while say(&host, &session, "room again").await.status != 202 {
        assert!(
            Instant::now() < patience,
            "it does not recover: {}",
            folder.log()
        );
        sleep(Duration::from_millis(100)).await;
    }
    host.rest(&session).await;
    folder.over(host).await;
}
