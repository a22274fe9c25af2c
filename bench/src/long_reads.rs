//! The length of the write-ahead log while commits go on for seconds beside long reads, which
//! follow one another without a pause, and beside none.

use crate::measure::Pair;
use crate::report::{Bar, Row};
use crate::size::Size;
use crate::thread::{Conversation, new};
use anyhow::ensure;
use domain::event::{Event, PluginEmitted, Subject};
use domain::id::{RunId, Stream, TurnId};
use serde_json::json;
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use store::{Commit, Expected, Options, Store};
use uuid::Uuid;

/// Turns of the thread that is stored before.
const TURNS: usize = 4_000;
/// Messages of a turn.
const MESSAGES: u64 = 2;
/// Time for which commits go on, in milliseconds.
const COMMITS_MS: usize = 4_000;
/// Pause after each commit.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes of a commit.
const COMMIT_BYTES: usize = 128 << 10;
/// One MiB.
const MIB: f64 = (1 << 20) as f64;

/// A read that is begun again and again while commits go on.
#[derive(Debug, Clone, Copy)]
enum LongRead {
    /// A backup.
    Backup,
    /// A verification of everything.
    Verification,
    /// All messages of a thread, as an export reads them.
    Thread,
}

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let alone = longest_log(size, None).await?;
    let mut rows = Vec::new();
    for (name, read) in [
        ("backups", LongRead::Backup),
        ("verifications", LongRead::Verification),
        ("reads of a thread", LongRead::Thread),
    ] {
        let pair = Pair {
            ours: longest_log(size, Some(read)).await?,
            peer: alone,
        };
        // The log's bound.
        let bar = Bar::AtMost(Options::default().log_bytes_max as f64 / MIB);
        let name = format!("log beside {name} / alone");
        rows.push(Row::new(name, "MiB", pair, bar));
    }
    Ok(rows)
}

/// The most MiB that the log of a new store takes while commits go on, and these reads.
async fn longest_log(size: Size, read: Option<LongRead>) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("data"), Options::default())?;
    let said = Conversation::begin(&store).await?;
    let turns = size.scaled(TURNS);
    let head = said.talk(&store, turns, MESSAGES).await?;
    let lasting = Duration::from_millis(size.scaled(COMMITS_MS) as u64);
    let is_over = Cell::new(false);
    let commits = async {
        let most = commit_for(&store, lasting).await;
        is_over.set(true);
        most
    };
    let reads = async {
        while let Some(read) = read.filter(|_| !is_over.get()) {
            read.whole(&store, folder.path(), head, turns as u64 * MESSAGES)
                .await?;
        }
        anyhow::Ok(())
    };
    let (most, read) = tokio::join!(commits, reads);
    read?;
    store.close().await;
    Ok(most? as f64 / MIB)
}

/// Commits one after the other; the most bytes that the log takes.
async fn commit_for(store: &Store, lasting: Duration) -> anyhow::Result<u64> {
    let stream = Stream::Run(RunId(Uuid::now_v7()));
    let began = Instant::now();
    let mut most = 0;
    while began.elapsed() < lasting {
        let emitted = Event::PluginEmitted(PluginEmitted {
            name: "plugin.bench.event".to_owned(),
            data: json!({ "text": "x".repeat(COMMIT_BYTES) }),
        });
        let event = new(emitted, Subject::default());
        store
            .commit(Commit::new().append(stream, Expected::Any, vec![event]))
            .await?;
        most = most.max(store.log_state().bytes);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(most)
}

impl LongRead {
    /// Reads once from the beginning to the end.
    async fn whole(
        self,
        store: &Store,
        folder: &Path,
        head: Option<TurnId>,
        messages: u64,
    ) -> anyhow::Result<()> {
        match self {
            Self::Backup => {
                let copy = folder.join("copy");
                store.backup(&copy).await?;
                fs::remove_file(&copy)?;
            }
            Self::Verification => {
                let found = store.verify().await?;
                ensure!(found.fault.is_none(), "the store is damaged");
            }
            Self::Thread => {
                let read = store.messages(head, 1, messages).await?.len();
                ensure!(read as u64 == messages, "{read} of {messages} messages");
            }
        }
        Ok(())
    }
}
