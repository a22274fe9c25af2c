//! A disk that is slow, hangs or fails, and a database that another process holds. Waiting work is
//! bounded, refusals are reported, readers notice nothing, and nothing that was acknowledged is
//! lost.

use super::exhaustion::{accepted, config, ready, say};
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{Answer, Folder, Host, PATIENCE, Session, tells};
use agent_host_tests::slow_disk::{Syncs, count};
use futures::future::join_all;
use futures::stream::{self, Stream};
use reqwest::Method;
use rusqlite::Connection;
use rustix::process::Pid;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Time within which a reader has an answer, and a stream its next heartbeat. Every fault here
/// lasts longer.
const PROMPT: Duration = Duration::from_millis(2_500);
/// Duration of a slow sync.
const SLOW: Duration = Duration::from_secs(3);
/// Clients that speak at the same time.
const CROWD: usize = 60;
/// Bytes of all commits that may wait; see `store::Options`.
const QUEUED_BYTES_MAX: usize = 256 << 20;
/// Bytes of a message that is as large as messages may be, nearly.
const LARGE_BYTES: usize = (1 << 20) - 4_096;
/// Number of such messages that are sent at the same time, so that the headers of each arrive in
/// time.
const SENDING_MAX: usize = 8;
/// Bytes of memory that a host takes at most while so much waits. Each message is there as an event
/// and as its payload; there are the buffers of its connection, those that are refused just now,
/// and what the allocator keeps: 4.1 times the queue was measured.
const MEMORY_BYTES_MAX: u64 = 6 * QUEUED_BYTES_MAX as u64;
/// Bytes of the write-ahead log from which on it has to start over; see `store::Options`.
const LOG_BYTES_MAX: i32 = 256 << 20;
/// Bytes by which a test lengthens it at a time.
const FILLER_BYTES: i32 = 4 << 20;
/// Time within which a host notices that its disk does not answer.
const STALLED: Duration = Duration::from_secs(15);

/// A configuration whose streams are seen to be alive often.
fn watched() -> Value {
    let mut config = config();
    config["server"] = json!({
        "listen": "127.0.0.1:0", "dataDir": "data",
        "limits": { "heartbeatMs": 200, "connectionsPerAddressMax": 1_000 },
    });
    config
}

async fn started(folder: &Folder) -> Host {
    folder.warm(&["puppet", "effects"]).await;
    folder.serve().await
}

/// Does some work, and checks meanwhile that the host answers, that reads go on and that streams
/// have their heartbeats.
async fn undisturbed<T>(host: &Host, session: &str, work: impl Future<Output = T>) -> T {
    let looking = async {
        loop {
            for path in ["/healthz", session, "/api/events?limit=10"] {
                let answer = timeout(PROMPT, host.get(path))
                    .await
                    .unwrap_or_else(|_| panic!("{path} has to wait"));
                assert_eq!(answer.status, 200, "{path}: {answer:?}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let listening = async {
        let (agent, id) = session.split_once("/sessions/").unwrap();
        let mut stream = host
            .request(
                Method::GET,
                &format!("{agent}/stream?view=log&session={id}"),
            )
            .send()
            .await
            .unwrap();
        loop {
            let heard = timeout(PROMPT, stream.chunk())
                .await
                .expect("a heartbeat in time")
                .unwrap();
            assert!(heard.is_some(), "the stream has ended");
        }
    };
    tokio::select! {
        done = work => done,
        _ = async { let _: Infallible = looking.await; } => unreachable!("it looks for ever"),
        _ = async { let _: Infallible = listening.await; } => unreachable!("it listens for ever"),
    }
}

#[track_caller]
fn is_not_recorded(answer: &Answer) {
    answer.is_refusal(503, "STORE_UNAVAILABLE");
    assert_eq!(
        answer.content_type, "application/problem+json",
        "{answer:?}"
    );
    assert!(answer.retry_after_s.is_some(), "{answer:?}");
}

/// Sends a few messages that are answered, and has a tool begin a long call. Its result is thus
/// recorded during the fault. Returns the inputs, the session to look at and the one that works.
async fn under_way(folder: &Folder, host: &Host) -> (Vec<String>, Session, Session) {
    let session = host.open("puppet").await;
    let busy = host.open("puppet").await;
    let mut acknowledged = Vec::new();
    for number in 0..3 {
        acknowledged.push(
            say(host, &session, &format!("word {number}"))
                .await
                .text("input_id"),
        );
    }
    host.rest(&session).await;
    let call = json!({
        "steps": [{ "start": [{ "key": "t", "tool": "send", "args": { "sleep": 1_500 } }] }],
    });
    acknowledged.push(say(host, &busy, &call.to_string()).await.text("input_id"));
    until(async || !folder.effects().is_empty()).await;
    (acknowledged, session, busy)
}

/// Says it to many at the same time.
async fn crowd(host: &Host, session: &str) -> Vec<Answer> {
    let words: Vec<String> = (0..CROWD).map(|number| format!("voice {number}")).collect();
    join_all(words.iter().map(|words| say(host, session, words))).await
}

/// Checks that everything that was begun ends, and that what is stored is what was acknowledged and
/// nothing else.
async fn all_is_well(
    folder: &Folder,
    host: Host,
    mut acknowledged: Vec<String>,
    session: &str,
    busy: &str,
) {
    acknowledged.push(say(&host, session, "all is well").await.text("input_id"));
    host.rest(session).await;
    let seen = host.rest(busy).await;
    assert!(
        seen["messages"].to_string().contains("t parts send done"),
        "what was done during the fault: {seen}"
    );
    assert_eq!(folder.effects().len(), 2, "once begun and once done");
    folder.over(host).await;
    let mut accepted = accepted(folder).await;
    accepted.sort();
    acknowledged.sort();
    assert_eq!(accepted, acknowledged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_somebody_else_holds_is_told_and_taken_up_again() {
    let folder = Folder::new(watched());
    let host = started(&folder).await;
    let (acknowledged, session, busy) = under_way(&folder, &host).await;
    let outsider = Connection::open(folder.data().join("store.db")).unwrap();
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    undisturbed(&host, &session, async {
        for answer in crowd(&host, &session).await {
            is_not_recorded(&answer);
        }
        let until = Instant::now() + Duration::from_millis(2_500);
        while Instant::now() < until {
            is_not_recorded(&host.get("/readyz").await);
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    outsider.execute_batch("ROLLBACK").unwrap();
    ready(&host, 200).await;
    all_is_well(&folder, host, acknowledged, &session, &busy).await;
}

/// Lengthens the log beyond its bound, in place of a host that would need a long time for it.
fn fill_log(folder: &Folder) {
    let writer = Connection::open(folder.data().join("store.db")).unwrap();
    writer.busy_timeout(PATIENCE).unwrap();
    writer
        .execute_batch(
            "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF; CREATE TABLE filler (x); \
             INSERT INTO filler VALUES (NULL)",
        )
        .unwrap();
    for _ in 0..=LOG_BYTES_MAX / FILLER_BYTES {
        let filled = writer.execute("UPDATE filler SET x = randomblob(?1)", [FILLER_BYTES]);
        assert_eq!(filled.unwrap(), 1);
    }
}

/// Waits until `/readyz` answers with 200 and a text like this.
async fn reported_ready(host: &Host, is_meant: impl Fn(&str) -> bool) {
    until(async || {
        let answer = host.bare(Method::GET, "/readyz").send().await.unwrap();
        assert_eq!(answer.status(), 200);
        is_meant(&answer.text().await.unwrap())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_another_program_holds_is_told_by_readyz_and_status() {
    let folder = Folder::new(watched());
    let host = started(&folder).await;
    let session = host.open("puppet").await;
    reported_ready(&host, |text| text == "ready").await;
    let outsider = Connection::open(folder.data().join("store.db")).unwrap();
    outsider
        .execute_batch("BEGIN; SELECT position FROM head")
        .unwrap();
    fill_log(&folder);
    host.say(&session, "hello").await;
    reported_ready(&host, |text| {
        text.starts_with("ready; the write-ahead log could not be moved")
    })
    .await;
    let status = host.get("/api/status").await.body;
    let reason = status["store"]["write_ahead_log_failing"].as_str();
    assert!(reason.is_some_and(|reason| reason.contains("locked")));
    let reported = folder.run(&["status"]).await;
    let reported = String::from_utf8(reported.stdout).unwrap();
    tells(&reported, &["\nnot moved  "]);
    outsider.execute_batch("ROLLBACK").unwrap();
    reported_ready(&host, |text| text == "ready").await;
    let status = host.get("/api/status").await.body;
    assert!(status["store"].get("write_ahead_log_failing").is_none());
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_is_told_until_it_works_again_and_nothing_acknowledged_is_lost() {
    let folder = Folder::on_slow_disk(watched());
    let host = started(&folder).await;
    let (acknowledged, session, busy) = under_way(&folder, &host).await;
    folder.slow_disk().set(Syncs::Fail).unwrap();
    undisturbed(&host, &session, async {
        is_not_recorded(&say(&host, &session, "lost").await);
        let until = Instant::now() + Duration::from_millis(2_500);
        while Instant::now() < until {
            is_not_recorded(&host.get("/readyz").await);
            sleep(Duration::from_millis(20)).await;
        }
        is_not_recorded(&say(&host, &session, "lost too").await);
    })
    .await;
    folder.slow_disk().set(Syncs::Take(Duration::ZERO)).unwrap();
    ready(&host, 200).await;
    all_is_well(&folder, host, acknowledged, &session, &busy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_a_failed_sync_refused_are_not_there_after_kill_nine() {
    let folder = Folder::on_slow_disk(watched());
    let host = started(&folder).await;
    let session = host.open("puppet").await;
    let acknowledged = say(&host, &session, "hello").await.text("input_id");
    host.rest(&session).await;
    // All of it reaches the log, and stays there when the process is killed: only the sync fails.
    folder.slow_disk().set(Syncs::Fail).unwrap();
    is_not_recorded(&say(&host, &session, "refused").await);
    host.kill().await;
    assert_eq!(accepted(&folder).await, [acknowledged]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_disk_is_shared_by_those_who_wait_for_it_and_noticed_by_nobody_else() {
    let folder = Folder::on_slow_disk(watched());
    let host = started(&folder).await;
    let (mut acknowledged, session, busy) = under_way(&folder, &host).await;
    let disk = folder.slow_disk();
    disk.set(Syncs::Take(SLOW)).unwrap();
    let began = Instant::now();
    let before = count(disk.counter()).unwrap();
    undisturbed(&host, &session, async {
        for answer in crowd(&host, &session).await {
            assert_eq!(answer.status, 202, "{answer:?}");
            acknowledged.push(answer.text("input_id"));
        }
        assert_eq!(host.get("/readyz").await.status, 200, "slow is not broken");
    })
    .await;
    let took = began.elapsed();
    let syncs = count(disk.counter()).unwrap() - before;
    assert!(
        took < 5 * SLOW && syncs < 6,
        "they do not share: {syncs} syncs in {took:?}"
    );
    disk.set(Syncs::Take(Duration::ZERO)).unwrap();
    all_is_well(&folder, host, acknowledged, &session, &busy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_hangs_keeps_waiting_whom_it_has_and_refuses_the_others() {
    let folder = Folder::on_slow_disk(watched());
    let host = Arc::new(started(&folder).await);
    let (mut acknowledged, session, busy) = under_way(&folder, &host).await;
    let disk = folder.slow_disk();
    disk.set(Syncs::Hang).unwrap();
    let mut waiting = JoinSet::new();
    for number in 0..CROWD {
        let host = host.clone();
        let session = session.clone();
        waiting.spawn(async move { say(&host, &session, &format!("patient {number}")).await });
    }
    undisturbed(&host, &session, async {
        let reported = found(async || {
            let answer = host.get("/readyz").await;
            (answer.status != 200).then_some(answer)
        });
        is_not_recorded(
            &timeout(STALLED, reported)
                .await
                .expect("a host that notices"),
        );
        for number in 0..CROWD {
            let answer = timeout(PROMPT, say(&host, &session, &format!("late {number}")))
                .await
                .expect("nobody else has to wait");
            answer.is_refusal(429, "BUSY");
            assert!(answer.retry_after_s.is_some(), "{answer:?}");
        }
        is_not_recorded(&host.get("/readyz").await);
        assert!(
            waiting.try_join_next().is_none(),
            "what is not durable is not acknowledged"
        );
    })
    .await;
    disk.set(Syncs::Take(Duration::ZERO)).unwrap();
    while let Some(answer) = timeout(PATIENCE, waiting.join_next())
        .await
        .expect("an answer in time")
    {
        let answer = answer.unwrap();
        assert_eq!(answer.status, 202, "{answer:?}");
        acknowledged.push(answer.text("input_id"));
    }
    ready(&host, 200).await;
    let host = Arc::into_inner(host).unwrap();
    all_is_well(&folder, host, acknowledged, &session, &busy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_disk_hangs_ends_all_the_same() {
    let mut config = watched();
    config["server"]["limits"]["drainMs"] = json!(200);
    let folder = Folder::on_slow_disk(config);
    let host = started(&folder).await;
    let session = host.open("puppet").await;
    folder.slow_disk().set(Syncs::Hang).unwrap();
    let asked = host
        .request(Method::POST, &format!("{session}/messages"))
        .json(&json!({ "content": "hello" }));
    assert!(
        timeout(Duration::from_secs(1), asked.send()).await.is_err(),
        "nothing is acknowledged that is not durable"
    );
    let status = timeout(PATIENCE, host.stop())
        .await
        .expect("it does not wait for the disk");
    assert!(status.success(), "{status}: {}", folder.log());
}

/// Bytes of memory that a process has had at most.
fn memory_peak(process: Pid) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// A body in one piece, with a permit that is given back once all of it is sent.
fn whole(
    body: String,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<String, Infallible>> {
    stream::unfold((Some(body), permit), async |(body, permit)| {
        body.map(|body| (Ok(body), (None, permit)))
    })
}

/// Work that waits for a disk that hangs is bounded and survives kill -9 once acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn work_for_a_disk_that_hangs_is_bounded_and_survives_kill_nine_once_acknowledged() {
    let folder = Folder::on_slow_disk(watched());
    let host = Arc::new(started(&folder).await);
    let session = host.open("puppet").await;
    let disk = folder.slow_disk();
    disk.set(Syncs::Hang).unwrap();
    // So much that not all of it may wait.
    let body = json!({ "content": "x".repeat(LARGE_BYTES) }).to_string();
    let sending = Arc::new(Semaphore::new(SENDING_MAX));
    let mut waiting = JoinSet::new();
    for _ in 0..QUEUED_BYTES_MAX / LARGE_BYTES + CROWD {
        let permit = sending.clone().acquire_owned().await.unwrap();
        let request = host
            .request(Method::POST, &format!("{session}/messages"))
            .header("content-type", "application/json");
        let request = request.body(reqwest::Body::wrap_stream(whole(body.clone(), permit)));
        let request = request.timeout(PATIENCE * 4);
        let host = host.clone();
        waiting.spawn(async move { host.send(request).await });
    }
    let mut refused = 0;
    // One is being written, and the last that was let in went over the limit.
    while refused < CROWD - 4 {
        let answer = timeout(PATIENCE, waiting.join_next())
            .await
            .expect("the queue is full")
            .unwrap()
            .unwrap();
        answer.is_refusal(429, "BUSY");
        assert!(answer.retry_after_s.is_some(), "{answer:?}");
        refused += 1;
    }
    let peak = memory_peak(host.process());
    assert!(peak < MEMORY_BYTES_MAX, "{peak} bytes of memory");
    disk.set(Syncs::Take(Duration::ZERO)).unwrap();
    let mut acknowledged = Vec::new();
    while let Some(answer) = timeout(PATIENCE, waiting.join_next())
        .await
        .expect("an answer in time")
    {
        let answer = answer.unwrap();
        match answer.status {
            202 => acknowledged.push(answer.text("input_id")),
            429 => {}
            _ => panic!("{answer:?}"),
        }
    }
    Arc::into_inner(host).unwrap().kill().await;
    let accepted = accepted(&folder).await;
    assert!(
        acknowledged.iter().all(|input| accepted.contains(input)),
        "{} of {}",
        accepted.len(),
        acknowledged.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn while_reads_fail_the_host_says_that_it_is_not_ready() {
    let folder = Folder::on_slow_disk(watched());
    let host = started(&folder).await;
    let session = host.open("puppet").await;
    host.get("/readyz").gives(200).await;
    say(&host, &session, "hello").await;
    host.rest(&session).await;
    let disk = folder.slow_disk();
    disk.set_reads(false).unwrap();
    let failing = async {
        // What is in memory is read all the same.
        for path in [
            &*session,
            "/api/events?limit=1000",
            "/api/dead-letters",
            "/api/agents",
        ]
        .iter()
        .cycle()
        {
            let answer = host.get(path).await;
            if answer.status == 503 {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, failing).await.expect("reads that fail");
    is_not_recorded(&host.get("/readyz").await);
    host.get("/healthz").gives(200).await;
    disk.set_reads(true).unwrap();
    ready(&host, 200).await;
}

/// Sessions whose turns are at work while reads fail for seconds, with what was in memory forgotten
/// by a new process.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_at_work_while_reads_fail_for_seconds_go_on_by_themselves() {
    let folder = Folder::on_slow_disk(watched());
    let host = started(&folder).await;
    let call = json!({ "key": "t", "tool": "look", "args": { "sleep": 300 } });
    let steps: Vec<Value> = (0..20)
        .map(|step| {
            let mut call = call.clone();
            call["key"] = json!(format!("t{step}"));
            json!({ "start": [call] })
        })
        .collect();
    let mut sessions = Vec::new();
    for _ in 0..8 {
        let session = host.open("puppet").await;
        host.say(&session, &json!({ "steps": steps }).to_string())
            .await;
        sessions.push(session);
    }
    let disk = folder.slow_disk();
    for fails_ms in [2_000, 4_000] {
        disk.set_reads(false).unwrap();
        let until = Instant::now() + Duration::from_millis(fails_ms);
        while Instant::now() < until {
            for session in &sessions {
                let _ = host.get(session).attempt().await;
            }
            sleep(Duration::from_millis(20)).await;
        }
        disk.set_reads(true).unwrap();
        sleep(Duration::from_millis(500)).await;
    }
    let list = host.get("/api/quarantine").await.body["quarantined"].clone();
    assert_eq!(list, json!([]), "{}", folder.log());
    for session in &sessions {
        host.heard(session, "t19").await;
    }
    assert!(host.stop().await.success(), "{}", folder.log());
}
