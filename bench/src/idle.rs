//! The memory of idle sessions: anonymous memory of the host with 100,000 of them, and of those
//! that had a turn just now.
//!
//! The peer is the least that a host could keep for a session that is at hand: a task that waits
//! for a message.

use crate::again::Again;
use crate::measure::Pair;
use crate::process::anonymous_bytes;
use crate::report::{self, Bar, Row};
use crate::served;
use crate::size::{Grouped, Size};
use crate::thread::Conversation;
use agent_host_tests::process::Host;
use anyhow::ensure;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;
use store::{Options, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Asks for [`wait`].
pub(crate) const FLAG: &str = "--wait-for-messages";
/// Sessions in the store.
const SESSIONS: usize = 100_000;
/// Sessions that are begun over HTTP and have a turn.
const TALKED: usize = 2_000;
/// Sessions of the same kind before, that make what all of them share.
const WARM: usize = 100;
/// Sessions that talk at the same time.
const AT_ONCE: usize = 16;
/// Time for which the host is left alone before its memory is read.
const REST: Duration = Duration::from_secs(3);
/// Time limit of a turn, in looks at it.
const POLLS_MAX: usize = 2_000;
const POLL: Duration = Duration::from_millis(10);
/// The bars: KiB of a session, and MiB of a host without any.
const SESSION_KIB_MAX: f64 = 2.0;
const BASE_MIB_MAX: f64 = 64.0;
/// Messages that may wait for a task.
const MAILBOX_MAX: usize = 256;

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let sessions = size.scaled(SESSIONS);
    let talked = size.scaled(TALKED);
    let folder = served::folder().await?;
    let host = served::start(&folder).await?;
    let base = resident(&host).await?;
    exchange(&host, WARM).await?;
    let warm = resident(&host).await?;
    exchange(&host, talked).await?;
    let after = resident(&host).await?;
    ensure!(host.stop().await.success(), "the host did not stop well");

    let database = folder.data().join("store.db");
    let empty = fs::metadata(&database)?.len();
    fill(&folder.data(), sessions).await?;
    let disk = (fs::metadata(&database)?.len() - empty) as f64 / 1024.0 / sessions as f64;
    served::start(&folder).await?.stop().await;
    let host = served::start(&folder).await?;
    let full = resident(&host).await?;
    host.kill().await;

    let mut waiting = Again::start(&[FLAG.to_owned(), sessions.to_string()])?;
    let task: f64 = waiting.line().await?.parse()?;
    let of_store = Pair {
        ours: kib(full, base, sessions),
        peer: task,
    };
    let of_exchange = Pair {
        ours: kib(after, warm, talked),
        peer: task,
    };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let sessions = Grouped(sessions);
    let talked = Grouped(talked);
    Ok(vec![
        Row::new(
            "host with six components and no session",
            "MiB",
            alone(mib(base)),
            Bar::AtMost(BASE_MIB_MAX),
        ),
        Row::new(
            format!("each of {sessions} idle sessions / a task"),
            "KiB",
            of_store,
            Bar::AtMost(SESSION_KIB_MAX),
        ),
        Row::new(
            format!("each of {talked} after a turn / a task"),
            "KiB",
            of_exchange,
            Bar::AtMost(SESSION_KIB_MAX),
        ),
        Row::new(
            "the host with all of them",
            "MiB",
            Pair {
                ours: mib(full),
                peer: mib(base),
            },
            Bar::Reported,
        ),
        Row::new(
            "a session without words on the disk",
            "KiB",
            alone(disk),
            Bar::Reported,
        ),
    ])
}

/// Returns a measurement that has nothing to compare with.
pub(crate) fn alone(ours: f64) -> Pair {
    Pair { ours, peer: 1.0 }
}

/// Returns the KiB of one session, from the bytes with and without all of them.
fn kib(more: u64, less: u64, sessions: usize) -> f64 {
    more.saturating_sub(less) as f64 / 1024.0 / sessions as f64
}

/// Anonymous memory of a host that gets no requests, in bytes, after some seconds of rest.
///
/// # Errors
/// It has ended, or this is not Linux.
pub(crate) async fn resident(host: &Host) -> anyhow::Result<u64> {
    tokio::time::sleep(REST).await;
    anonymous_bytes(served::process(host))
}

/// Opens sessions in a store, without a host.
async fn fill(data: &Path, sessions: usize) -> anyhow::Result<()> {
    let store = Store::open(data, Options::default())?;
    Conversation::begin(&store)
        .await?
        .open_more(&store, sessions - 1)
        .await?;
    store.close().await;
    Ok(())
}

/// Begins sessions, and has a turn in each.
async fn exchange(host: &Host, sessions: usize) -> anyhow::Result<()> {
    stream::iter(0..sessions)
        .map(|_| exchange_once(host))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

async fn exchange_once(host: &Host) -> anyhow::Result<()> {
    let opened = host
        .post("/api/agents/assistant/sessions", &json!({}))
        .await;
    let session = format!(
        "/api/agents/{}/sessions/{}",
        opened.text("agent_id"),
        opened.text("session_id")
    );
    let said = host
        .post(
            &format!("{session}/messages"),
            &json!({ "content": "hello" }),
        )
        .await;
    ensure!(said.status == 202, "a message was not taken: {}", said.body);
    for _ in 0..POLLS_MAX {
        let inspected = host.get(&session).await;
        if inspected.text("last_snippet").is_empty() {
            tokio::time::sleep(POLL).await;
        } else {
            return Ok(());
        }
    }
    anyhow::bail!("a turn did not end")
}

/// Has so many tasks wait for a message that does not come. Prints how many KiB each of them takes.
///
/// # Errors
/// The memory of this process cannot be read.
pub(crate) async fn wait(tasks: &str) -> anyhow::Result<()> {
    let tasks: usize = tasks.parse()?;
    let before = anonymous_bytes(std::process::id())?;
    let mut mailboxes = Vec::with_capacity(tasks);
    let mut waiting = JoinSet::new();
    for _ in 0..tasks {
        let (mailbox, mut messages) = mpsc::channel::<u64>(MAILBOX_MAX);
        waiting.spawn(async move { messages.recv().await });
        mailboxes.push(mailbox);
    }
    tokio::time::sleep(REST).await;
    let resident = anonymous_bytes(std::process::id())?.saturating_sub(before);
    report::say(&(resident as f64 / 1024.0 / tasks as f64).to_string());
    drop(mailboxes);
    Ok(())
}
