//! Purge of a session's data outside of its runs: inputs, items, files, names, and requests about
//! it.

use super::room::{Room, page_of};
use super::runs::remove_input;
use super::searchable_rows::{forget, has_any};
use super::streams::note_loss;
use super::{
    BEHIND_ALL, EVENTS_PER_COMMIT_MAX, EVENTS_SEEN, ROWS_PER_COMMIT_MAX, Store, Tally, erase_event,
};
use crate::read::ReadError;
use crate::sql::{self, Sql, args, named, row, select};
use crate::streams;
use crate::user_storage;
use domain::id::{InputId, SessionId, Stream};

/// Remembered requests that one transaction forgets.
pub(super) const REQUESTS_PER_COMMIT_MAX: u64 = 256;

/// Events of a session that one transaction erases, with the turns that stay: their words are found
/// through those that they stay for.
pub(super) struct SessionEvents {
    id: SessionId,
    found: Vec<Found>,
    /// The remaining capacity of the transaction.
    room: Room,
    /// The version up to which the session's events were read.
    seen: u64,
    /// True if there were no further events.
    is_all: bool,
}

/// An event of a session's stream.
struct Found {
    version: u64,
    position: u64,
    /// The length of its payload.
    bytes: u64,
    goes: Goes,
}

/// The part of an event that goes.
enum Goes {
    /// Nothing, or nothing any more.
    Nothing,
    /// Its payload, with the input that it accepted.
    Payload(Option<InputId>),
    /// The searchable words of a turn, which keeps its place in the tree: a commitment to its
    /// messages reveals nothing without them.
    Words,
}

impl Store {
    /// Finds events of a session after this version that have data to erase. All of its stream has
    /// to be read, so a reader thread does it, page by page.
    pub(super) async fn session_events(
        &self,
        session: SessionId,
        after: u64,
    ) -> Result<SessionEvents, ReadError> {
        let mut events = SessionEvents {
            id: session,
            found: Vec::new(),
            room: Room::of_commit(EVENTS_PER_COMMIT_MAX),
            seen: after,
            is_all: false,
        };
        while !events.is_all && !events.room.is_full() {
            let page = self.read(move |sql| {
                events.read_page(sql, EVENTS_SEEN)?;
                Ok(events)
            });
            events = page.await?;
        }
        Ok(events)
    }
}

impl SessionEvents {
    /// Goes on through at most so many events.
    fn read_page(&mut self, sql: &Sql<'_>, events_max: usize) -> sql::Result<()> {
        let (page, is_last) = page_of(
            sql,
            select!(
                StoredFound,
                "WHERE stream = :stream AND version > :after ORDER BY version LIMIT :limit"
            ),
            named![
                stream = streams::number(sql, Stream::Session(self.id))?,
                after = self.seen,
                limit = events_max
            ],
            events_max,
            |found: &StoredFound| found.bytes,
        )?;
        self.is_all = is_last;
        for event in page.into_iter().map(Found::from) {
            self.seen = event.version;
            let bytes = match &event.goes {
                Goes::Nothing => None,
                Goes::Payload(_) => Some(event.bytes),
                Goes::Words => has_any(sql, event.position)?.then_some(0),
            };
            if let Some(bytes) = bytes {
                self.room.take(bytes);
                self.found.push(event);
            }
            if self.room.is_full() {
                self.is_all = false;
                break;
            }
        }
        Ok(())
    }

    /// Erases the found data and, after the last of them, the session's other rows, as much as fits
    /// into one transaction. Returns the version up to which all is erased; none when everything
    /// is.
    pub(super) fn erase(
        mut self,
        sql: &Sql<'_>,
        purge: Stream,
        tally: &mut Tally,
    ) -> sql::Result<Option<u64>> {
        if self.is_all {
            // Reads the events that were stored since the reader's scan.
            self.read_page(sql, EVENTS_PER_COMMIT_MAX)?;
        }
        let mut room = Room::of_commit(ROWS_PER_COMMIT_MAX);
        for event in &self.found {
            match &event.goes {
                Goes::Nothing => {}
                Goes::Payload(input) => {
                    if let Some(input) = input {
                        remove_input(sql, *input)?;
                    }
                    erase_event(sql, event.position, tally)?;
                }
                Goes::Words => {
                    if !forget(sql, event.position, &mut room)? {
                        return Ok(Some(event.version - 1));
                    }
                }
            }
        }
        if !self.is_all {
            return Ok(Some(self.seen));
        }
        let is_done = erase_beside(sql, self.id, tally)?;
        if is_done {
            note_loss(sql, purge, Stream::Session(self.id))?;
        }
        Ok((!is_done).then_some(BEHIND_ALL))
    }
}

row! {
    struct StoredFound from "events" {
        version: u64,
        position: u64,
        has_words: bool = "kind = 'session.turn.committed.v1'",
        goes: bool =
            "payload IS NOT NULL AND kind NOT IN ('session.turns.imported.v1', \
             'session.cleared.v1', 'session.deleted.v1', 'purge.begun.v1', 'purge.done.v1')",
        input: Option<InputId> = "(SELECT i.id FROM inputs i WHERE i.position = events.position)",
        bytes: u64,
    }
}

impl From<StoredFound> for Found {
    fn from(it: StoredFound) -> Self {
        Self {
            version: it.version,
            position: it.position,
            bytes: it.bytes,
            goes: match (it.has_words, it.goes) {
                (true, _) => Goes::Words,
                (false, true) => Goes::Payload(it.input),
                (false, false) => Goes::Nothing,
            },
        }
    }
}

/// Removes the other rows of a session, as many as fit into one transaction. Returns whether all
/// are removed.
fn erase_beside(sql: &Sql<'_>, session: SessionId, tally: &mut Tally) -> sql::Result<bool> {
    let requests = forget_requests(sql, &session.to_string())?;
    tally.erased.requests += requests;
    if requests >= REQUESTS_PER_COMMIT_MAX {
        return Ok(false);
    }
    for text in [
        "DELETE FROM items WHERE session = ?1 AND sequence IN (SELECT sequence FROM items WHERE \
         session = ?1 LIMIT ?2)",
        "DELETE FROM files WHERE session = ?1 AND sequence IN (SELECT sequence FROM files WHERE \
         session = ?1 LIMIT ?2)",
        "DELETE FROM reading_chunks WHERE input IN (SELECT input FROM reading_chunks WHERE session \
         = ?1 LIMIT ?2)",
    ] {
        let rows = sql.execute(text, args![session, ROWS_PER_COMMIT_MAX])?;
        if rows == ROWS_PER_COMMIT_MAX {
            return Ok(false);
        }
    }
    for text in [
        "DELETE FROM wakes WHERE subject = ?1",
        "DELETE FROM readings WHERE session = ?1",
        "DELETE FROM spawned WHERE session = ?1",
        "DELETE FROM snapshots WHERE stream = (SELECT number FROM streams WHERE stream_kind = 'session' AND \
         stream_id = ?1)",
    ] {
        sql.execute(text, [session])?;
    }
    Ok(true)
}

/// Deletes remembered requests with their replies, and returns their number. More are left if the
/// number is the maximum of one transaction.
pub(super) fn forget_requests(sql: &Sql<'_>, about: &str) -> sql::Result<u64> {
    let text = "DELETE FROM idempotency WHERE (source, key) IN (SELECT source, key FROM \
                idempotency WHERE about = ?1 LIMIT ?2) RETURNING source, length(reply), \
                brought_with";
    user_storage::erases_replies(sql, text, args![about, REQUESTS_PER_COMMIT_MAX])
}
