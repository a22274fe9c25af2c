//! The length of the write-ahead log while several times its bound is committed beside long reads,
//! which follow one another without a pause, and beside none.
//!
//! Most long reads go in chunks and leave the log in time. One does not: it takes longer than the
//! writer waits for reads when the log is full, so that the bound holds only if it is ended.

use crate::measure::Pair;
use crate::report::{Bar, Row};
use crate::size::Size;
use crate::thread::{Conversation, new};
use anyhow::{Context, ensure};
use domain::event::{Event, PluginEmitted, Subject};
use domain::id::{RunId, Stream, TurnId};
use domain::transcript::TranscriptTurn;
use serde_json::json;
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Commit, Expected, Meeting, Options, ReadError, Store};
use uuid::Uuid;

/// Turns of the thread that is stored before.
const TURNS: usize = 4_000;
/// Messages of a turn.
const MESSAGES: u64 = 2;
/// The log's bound in bytes: several times what is committed between two checkpoints, and a small
/// one, so that a log which never begins anew passes it.
const LOG_BYTES_MAX: usize = 64 << 20;
/// Bytes that are committed.
const COMMITTED_BYTES: usize = 4 * LOG_BYTES_MAX;
/// Pause after each commit.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes of a commit.
const COMMIT_BYTES: usize = 256 << 10;
/// Bytes by which the log may pass its bound: the commit that reaches it, with what goes with it.
const BEYOND_BYTES: usize = 2 * COMMIT_BYTES;
/// The least that a read takes which is to be ended: four times what the writer waits for reads
/// when the log is full.
const OUTLASTING: Duration = Duration::from_secs(2);
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
    /// A check of turns that are to be imported and are here, in one read that outlasts the
    /// writer's patience.
    Outlasting,
}

/// The thread that is stored before, as far as reads need it.
struct Stored {
    head: Option<TurnId>,
    messages: u64,
    /// Its turns, so often that checking them outlasts the writer's patience; none where they are
    /// not checked.
    turns: Arc<Vec<TranscriptTurn>>,
}

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let alone = longest_log(size, None).await?;
    let mut rows = Vec::new();
    for (name, read) in [
        ("backups", LongRead::Backup),
        ("verifications", LongRead::Verification),
        ("reads of a thread", LongRead::Thread),
        ("a check that outlasts commits", LongRead::Outlasting),
    ] {
        let pair = Pair {
            ours: longest_log(size, Some(read)).await?,
            peer: alone,
        };
        let bar = Bar::AtMost((LOG_BYTES_MAX + BEYOND_BYTES) as f64 / MIB);
        let name = format!("log beside {name} / alone");
        rows.push(Row::new(name, "MiB", pair, bar));
    }
    Ok(rows)
}

/// The most MiB that the log of a store takes while commits go on, and these reads.
async fn longest_log(size: Size, read: Option<LongRead>) -> anyhow::Result<f64> {
    let is_to_be_ended = matches!(read, Some(LongRead::Outlasting));
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let store = Store::open(&data, Options::default())?;
    let said = Conversation::begin(&store).await?;
    let turns = size.scaled(TURNS);
    let head = said.exchange(&store, turns, MESSAGES).await?;
    // The log is gone with this, and what was read is not in it.
    store.close().await;
    drop(store);
    let options = Options {
        log_bytes_max: LOG_BYTES_MAX as u64,
        ..Options::default()
    };
    let store = Store::open(&data, options)?;
    let stored = Stored {
        head,
        messages: turns as u64 * MESSAGES,
        turns: if is_to_be_ended {
            outlasting(&store, head).await?
        } else {
            Arc::default()
        },
    };
    let is_over = Cell::new(false);
    let commits = async {
        let most = commit_much(&store).await;
        is_over.set(true);
        most
    };
    let reads = async {
        while let Some(read) = read.filter(|_| !is_over.get()) {
            match read.whole(&store, folder.path(), &stored).await {
                // It begins again. How long the log became meanwhile is what is measured.
                Err(error) if is_in_the_way(&error) => {}
                whole => whole?,
            }
        }
        anyhow::Ok(())
    };
    let (most, read) = tokio::join!(commits, reads);
    read?;
    let most = most?;
    let ended = store.log_state().reads_ended;
    store.close().await;
    ensure!(
        ended > 0 || !is_to_be_ended,
        "the long read was never in the way"
    );
    Ok(most as f64 / MIB)
}

/// Returns the turns of a thread, repeated until checking them takes long.
async fn outlasting(
    store: &Store,
    head: Option<TurnId>,
) -> anyhow::Result<Arc<Vec<TranscriptTurn>>> {
    let head = head.context("nothing was said")?;
    let turn_bundle = store.turn_bundle(head, None, usize::MAX).await?;
    let mut turns = Arc::new(turn_bundle.context("the thread is too large")?.turns);
    loop {
        let began = Instant::now();
        check(store, &turns).await?;
        if began.elapsed() >= OUTLASTING {
            return Ok(turns);
        }
        turns = Arc::new([turns.as_slice(), turns.as_slice()].concat());
    }
}

/// Checks turns that are here, in one read.
async fn check(store: &Store, turns: &Arc<Vec<TranscriptTurn>>) -> anyhow::Result<()> {
    let met = store.meet(Arc::clone(turns)).await?;
    let is_known =
        matches!(&met, Meeting::Known(known) if !known.is_empty() && known.iter().all(|it| *it));
    ensure!(is_known, "the turns are not those that are here");
    Ok(())
}

/// Returns whether a read was ended because it kept a full log from beginning anew.
fn is_in_the_way(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReadError::InTheWay))
}

/// Commits one after the other; the most bytes that the log takes.
async fn commit_much(store: &Store) -> anyhow::Result<u64> {
    let stream = Stream::Run(RunId(Uuid::now_v7()));
    let mut most = 0;
    for _ in 0..COMMITTED_BYTES / COMMIT_BYTES {
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
    ensure!(most > 0, "the log was never seen");
    Ok(most)
}

impl LongRead {
    /// Reads once from the beginning to the end.
    async fn whole(self, store: &Store, folder: &Path, stored: &Stored) -> anyhow::Result<()> {
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
                let Stored { head, messages, .. } = stored;
                let read = store.messages(*head, 1, *messages).await?.len();
                ensure!(read as u64 == *messages, "{read} of {messages} messages");
            }
            Self::Outlasting => check(store, &stored.turns).await?,
        }
        Ok(())
    }
}
