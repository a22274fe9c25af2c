//! The time until the host is ready after `kill -9`, beside SQLite alone opening the same files.
//! There are a million events and a long log that has not been moved to the database.

use crate::again::Again;
use crate::measure::{Pair, in_turns, ms};
use crate::report::{self, Bar, Row};
use crate::served;
use crate::size::{Grouped, Size};
use crate::thread::Conversation;
use agent_host_tests::process::Folder;
use anyhow::ensure;
use futures::{StreamExt, TryStreamExt, stream};
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::{Options, Store};

/// Asks for [`write`].
pub(crate) const WRITE_FLAG: &str = "--write-until-killed";
/// Asks for [`open`].
pub(crate) const OPEN_FLAG: &str = "--open-bare";
/// Events in the store.
const EVENTS: usize = 1_000_000;
/// Bytes of the log when the process is killed.
const LOG_BYTES: u64 = 64 << 20;
/// Turns of a conversation, and events of a turn.
const TURNS: usize = 200;
const TURN_EVENTS: usize = 5;
/// Conversations that are written at the same time.
const AT_ONCE: usize = 4;
/// The most that it may take, in milliseconds.
const READY_MS_MAX: f64 = 2_000.0;
/// The pragmas that the store sets on its connection that writes.
const PRAGMAS: &str = "PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; PRAGMA trusted_schema = \
                       OFF; PRAGMA temp_store = MEMORY; \
     PRAGMA cell_size_check = ON; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let folder = served::folder().await?;
    // Puts the components on record, so that no start that is measured writes anything.
    served::start(&folder).await?.stop().await;
    let events = size.scaled(EVENTS);
    let data = folder.data();
    let mut writing = Again::start(&[
        WRITE_FLAG.to_owned(),
        data.display().to_string(),
        events.to_string(),
    ])?;
    let written = writing.line().await?;
    ensure!(written == "written", "the store was not written: {written}");
    writing.kill().await?;
    let bytes =
        |path: PathBuf| fs::metadata(path).map(|file| file.len() as f64 / f64::from(1 << 20));
    let database = bytes(database(&data))?;
    let log = bytes(log(&data))?;
    let crashed = tempfile::tempdir()?;
    copy(&data, crashed.path())?;
    let ready = in_turns(
        async || {
            copy(crashed.path(), &data)?;
            host(&folder).await
        },
        async || {
            copy(crashed.path(), &data)?;
            bare(&data).await
        },
    )
    .await?;
    let events = Grouped(events);
    Ok(vec![
        Row::new(
            format!("ready after a crash, {events} events / SQLite"),
            "ms",
            ready,
            Bar::Within(3.0),
        ),
        Row::new("the same", "ms", ready, Bar::AtMost(READY_MS_MAX)),
        Row::new(
            "its database / its log",
            "MiB",
            Pair {
                ours: database,
                peer: log,
            },
            Bar::Reported,
        ),
    ])
}

fn database(data: &Path) -> PathBuf {
    data.join("store.db")
}

fn log(data: &Path) -> PathBuf {
    data.join("store.db-wal")
}

/// Copies what a crash has left. A start goes on with it, as by indexing words, so that each one
/// that is measured begins with a copy.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    for of in [database, log] {
        fs::copy(of(from), of(to))?;
    }
    // The log's index belongs to the files that were replaced; opening them makes it anew.
    match fs::remove_file(to.join("store.db-shm")) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Milliseconds from the start of the program until it says that it is ready. It is killed then.
async fn host(folder: &Folder) -> anyhow::Result<f64> {
    let began = Instant::now();
    let host = served::start(folder).await?;
    ensure!(host.get("/readyz").await.status == 200, "it is not ready");
    let taken = ms(began.elapsed());
    host.kill().await;
    Ok(taken)
}

/// The same until SQLite has read the schema.
async fn bare(data: &Path) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut opening = Again::start(&[OPEN_FLAG.to_owned(), database(data).display().to_string()])?;
    let tables: usize = opening.line().await?.parse()?;
    let taken = ms(began.elapsed());
    ensure!(tables > 0, "there is nothing in the database");
    opening.kill().await?;
    Ok(taken)
}

/// Opens a database as the store does, says how many tables and indices it has, and waits for its
/// end: closing it would move the log.
///
/// # Errors
/// The database's.
pub(crate) async fn open(path: &str) -> anyhow::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch(PRAGMAS)?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    report::say(&tables.to_string());
    std::future::pending().await
}

/// Writes events, and then more until the log is long, and goes on writing until it is killed.
///
/// # Errors
/// The store's.
pub(crate) async fn write(data: &str, events: &str) -> anyhow::Result<()> {
    let data = Path::new(data);
    let store = Store::open(data, Options::default())?;
    let conversations = events.parse::<usize>()? / (TURNS * TURN_EVENTS);
    stream::iter(0..conversations)
        .map(|_| converse(&store))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    // A reader of the old state keeps the log from beginning anew.
    let reading = Connection::open_with_flags(database(data), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    reading.execute_batch("BEGIN; SELECT count(*) FROM head;")?;
    let mut is_said = false;
    loop {
        converse(&store).await?;
        if !is_said && fs::metadata(log(data))?.len() >= LOG_BYTES {
            report::say("written");
            is_said = true;
        }
        if is_said {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn converse(store: &Store) -> anyhow::Result<()> {
    Conversation::begin(store)
        .await?
        .exchange(store, TURNS, 2)
        .await?;
    Ok(())
}
