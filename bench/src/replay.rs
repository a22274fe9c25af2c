//! Reading a stream of 1,000 events, decoded and ready to be folded, beside reading the same rows
//! with SQLite alone.

use crate::measure::{in_turns, mean_us};
use crate::report::{Bar, Row};
use crate::thread::Conversation;
use anyhow::ensure;
use domain::id::{SessionId, Stream};
use rusqlite::{Connection, OpenFlags, Statement};
use store::{Options, Store};

/// Events that are read: the first ones of a session's stream, which are inputs and committed
/// turns.
const EVENTS: usize = 1_000;
/// Reads of one measurement.
const READS: u32 = 20;

/// The columns that the store reads.
const ROWS: &str = "SELECT position, own.stream_kind, own.stream_id, version, id, kind, \
                    of_agent.stream_id, of_session.stream_id, of_run.stream_id, actor, causation, \
                    correlation, time, hash, payload FROM events LEFT JOIN streams own ON \
                    own.number = stream LEFT JOIN streams of_agent ON of_agent.number = agent LEFT \
                    JOIN streams of_session ON of_session.number = session LEFT JOIN streams \
                    of_run ON of_run.number = run WHERE stream = (SELECT number FROM streams WHERE \
                    stream_kind = 'session' AND stream_id = ?1) AND version > 0 ORDER BY version \
                    LIMIT 1000";

/// A row as the database has it.
type Raw = (
    i64,
    (String, Vec<u8>),
    i64,
    Vec<u8>,
    String,
    [Option<Vec<u8>>; 3],
    String,
    [Option<Vec<u8>>; 2],
    i64,
    Vec<u8>,
    Vec<u8>,
);

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let store = Store::open(&data, Options::default())?;
    let conversation = Conversation::begin(&store).await?;
    conversation.exchange(&store, EVENTS / 2, 2).await?;
    let stream = Stream::Session(conversation.session);
    // As the store's own readers are opened.
    let raw = Connection::open_with_flags(
        data.join("store.db"),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let mut statement = raw.prepare(ROWS)?;
    let pair = in_turns(
        async || {
            mean_us(READS, async || {
                let events = store.stream(stream, 0, EVENTS).await?;
                ensure!(
                    events.len() == EVENTS && events.iter().all(|event| event.event.is_some()),
                    "the stream is not what it should be"
                );
                Ok(())
            })
            .await
        },
        async || {
            mean_us(READS, async || {
                ensure!(
                    rows(&mut statement, conversation.session)?.len() == EVENTS,
                    "the rows are not what they should be"
                );
                Ok(())
            })
            .await
        },
    )
    .await?;
    store.close().await;
    Ok(vec![Row::new(
        "replay of 1,000 events / bare SQLite",
        "µs",
        pair,
        Bar::Within(2.0),
    )])
}

fn rows(statement: &mut Statement<'_>, session: SessionId) -> anyhow::Result<Vec<Raw>> {
    let rows = statement.query_map([session.0.as_bytes()], |row| {
        let subject = [row.get(6)?, row.get(7)?, row.get(8)?];
        let origin = [row.get(10)?, row.get(11)?];
        Ok((
            row.get(0)?,
            (row.get(1)?, row.get(2)?),
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
            subject,
            row.get(9)?,
            origin,
            row.get(12)?,
            row.get(13)?,
            row.get(14)?,
        ))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
