//! The time until the host is ready after `kill -9` when a million messages wait, beside the same
//! without any.

use crate::again::Again;
use crate::measure::{in_turns, ms};
use crate::report::{self, Bar, Row};
use crate::served;
use crate::size::{Grouped, Size};
use crate::thread::Conversation;
use agent_host_tests::process::Folder;
use anyhow::ensure;
use std::path::Path;
use std::time::Instant;
use store::{Options, Store};

/// Asks for [`write`].
pub(crate) const WRITE_FLAG: &str = "--write-backlog";
/// Messages that wait.
const WAITING: usize = 1_000_000;
/// Messages that wait in one session.
const OF_SESSION: usize = 1_000;
/// The most that it may take, in milliseconds.
const READY_MS_MAX: f64 = 5_000.0;

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let waiting = size.scaled(WAITING);
    let empty = served::folder().await?;
    let folder = served::folder().await?;
    for folder in [&empty, &folder] {
        // Puts the components on record, so that no start that is measured writes anything else.
        served::start(folder).await?.stop().await;
    }
    let mut writing = Again::start(&[
        WRITE_FLAG.to_owned(),
        folder.data().display().to_string(),
        waiting.to_string(),
    ])?;
    let written = writing.line().await?;
    ensure!(written == "written", "the store was not written: {written}");
    writing.kill().await?;
    let ready = in_turns(async || start(&folder).await, async || start(&empty).await).await?;
    let waiting = Grouped(waiting);
    Ok(vec![
        Row::new(
            format!("ready with {waiting} messages that wait / none"),
            "ms",
            ready,
            Bar::Reported,
        ),
        Row::new("the same", "ms", ready, Bar::AtMost(READY_MS_MAX)),
    ])
}

/// Milliseconds from the start of the program until it says that it is ready. It is killed then.
async fn start(folder: &Folder) -> anyhow::Result<f64> {
    let began = Instant::now();
    let host = served::start(folder).await?;
    ensure!(host.get("/readyz").await.status == 200, "it is not ready");
    let taken = ms(began.elapsed());
    host.kill().await;
    Ok(taken)
}

/// Writes messages that wait, a thousand in each session, and waits to be killed.
///
/// # Errors
/// The store's.
pub(crate) async fn write(data: &str, waiting: &str) -> anyhow::Result<()> {
    let store = Store::open(Path::new(data), Options::default())?;
    for _ in 0..waiting.parse::<usize>()?.div_ceil(OF_SESSION) {
        Conversation::begin(&store)
            .await?
            .hear(&store, OF_SESSION)
            .await?;
    }
    report::say("written");
    std::future::pending().await
}
