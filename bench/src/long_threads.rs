//! The memory of long threads: how much anonymous memory of the host rises while chats go on that
//! have thousands of messages, once what it keeps has had time to fill.

use crate::idle::alone;
use crate::process::anonymous_bytes;
use crate::report::{Bar, Row};
use crate::served;
use crate::size::Size;
use crate::thread::Conversation;
use agent_host_tests::process::Host;
use anyhow::ensure;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use store::{Options, Store};
use tokio::time::{Instant, sleep};

/// Chats, all of which go on.
const CHATS: usize = 64;
/// Messages of each before that.
const MESSAGES: usize = 2_000;
/// Messages of a turn.
const MESSAGES_OF_TURN: u64 = 2;
/// Chats that talk at the same time.
const AT_ONCE: usize = 8;
/// Seconds after which the memory is read first, and for which the chats go on.
const FROM_S: usize = 600;
const UNTIL_S: usize = 1_800;
/// Looks at the memory from which one figure is made, and the pause between two.
const POLLS: u64 = 10;
const POLL: Duration = Duration::from_millis(500);
/// MiB by which it may rise in a minute.
const RISE_MIB_MAX: f64 = 0.2;
/// One MiB.
const MIB: f64 = (1 << 20) as f64;

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let chats = size.scaled(CHATS);
    let messages = size.scaled(MESSAGES);
    let seconds = |whole| Duration::from_secs(size.scaled(whole) as u64);
    let folder = served::folder().await?;
    served::start(&folder).await?.stop().await;
    let sessions = fill(&folder.data(), chats, messages).await?;
    let host = served::start(&folder).await?;
    let began = Instant::now();
    let until = began + seconds(UNTIL_S);
    let talking = exchange_until(&host, &sessions, until);
    let looking = async {
        sleep(seconds(FROM_S)).await;
        let first = resident_at_work(&host).await?;
        tokio::time::sleep_until(until - POLL * u32::try_from(POLLS)?).await;
        anyhow::Ok((first, resident_at_work(&host).await?))
    };
    let (turns, inspected) = tokio::join!(talking, looking);
    let turns = turns?;
    let (first, last) = inspected?;
    host.kill().await;
    let minutes = (seconds(UNTIL_S) - seconds(FROM_S)).as_secs_f64() / 60.0;
    Ok(vec![
        Row::new(
            format!("a minute of {chats} chats of {messages} messages, in {turns} turns"),
            "MiB",
            alone((last - first) / MIB / minutes),
            Bar::AtMost(RISE_MIB_MAX),
        ),
        Row::new(
            "the host before these minutes",
            "MiB",
            alone(first / MIB),
            Bar::Reported,
        ),
        Row::new(
            "the host after them",
            "MiB",
            alone(last / MIB),
            Bar::Reported,
        ),
    ])
}

/// Makes the chats, without a host. Returns their paths.
async fn fill(data: &Path, chats: usize, messages: usize) -> anyhow::Result<Vec<String>> {
    let store = Store::open(data, Options::default())?;
    let mut sessions = Vec::with_capacity(chats);
    for _ in 0..chats {
        let chat = Conversation::begin(&store).await?;
        let turns = messages / usize::try_from(MESSAGES_OF_TURN)?;
        chat.exchange(&store, turns, MESSAGES_OF_TURN).await?;
        let Conversation { agent, session } = chat;
        sessions.push(format!("/api/agents/{agent}/sessions/{session}"));
    }
    store.close().await;
    Ok(sessions)
}

/// Has turns in all chats until then. Returns their number.
async fn exchange_until(host: &Host, sessions: &[String], until: Instant) -> anyhow::Result<usize> {
    let turns = stream::iter(sessions.iter().cycle())
        .take_while(|_| std::future::ready(Instant::now() < until))
        .map(|session| turn(host, session))
        .buffer_unordered(AT_ONCE);
    turns
        .try_fold(0, |turns, ()| async move { Ok(turns + 1) })
        .await
}

async fn turn(host: &Host, session: &str) -> anyhow::Result<()> {
    let path = format!("{session}/messages?wait_s=60");
    let said = host.post(&path, &json!({ "content": "hello" })).await;
    ensure!(said.status == 200, "a turn did not end: {}", said.body);
    Ok(())
}

/// Anonymous memory of a host at work, in bytes: the least of some looks, as a turn takes and gives
/// back some.
async fn resident_at_work(host: &Host) -> anyhow::Result<f64> {
    let mut least = u64::MAX;
    for _ in 0..POLLS {
        least = least.min(anonymous_bytes(served::process(host))?);
        sleep(POLL).await;
    }
    Ok(least as f64)
}
