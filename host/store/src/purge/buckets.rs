//! Data that tools keep for an agent or a session that is purged.

use super::room::{Room, page_of};
use super::{EVENTS_PER_COMMIT_MAX, EVENTS_SEEN, ROWS_PER_COMMIT_MAX, Store, Tally, erase_event};
use crate::commit::CommitError;
use crate::projections::scope_name;
use crate::read::ReadError;
use crate::sql::{self, Sql, args, named};
use crate::streams;
use domain::grant::BucketScope;
use domain::id::{AgentId, SessionId, Stream};

/// The events of an agent, whether each is a write to a bucket of its own, and how long a write is.
const OF_AGENT: &str = "SELECT position, CASE WHEN kind = 'keyvalue.written.v1' THEN about IS NOT \
                        DISTINCT FROM :place ELSE FALSE END, CASE WHEN kind = \
                        'keyvalue.written.v1' THEN bytes ELSE 0 END FROM \
                        events WHERE agent = :number AND position > :after ORDER BY position \
                        LIMIT :limit";
/// The same for a session. Events of its own stream are not writes.
const OF_SESSION: &str = "SELECT position, CASE WHEN kind = 'keyvalue.written.v1' THEN about IS \
                          NOT DISTINCT FROM :place ELSE FALSE END, CASE WHEN kind = \
                          'keyvalue.written.v1' THEN bytes ELSE 0 END FROM \
                          events WHERE session = :number AND stream <> session AND position > \
                          :after ORDER BY position LIMIT :limit";

/// The owner of buckets that are erased.
#[derive(Clone, Copy)]
pub(super) enum BucketsOf {
    Agent(AgentId),
    Session(SessionId),
}

/// Writes of tools to the buckets of one owner, as many as one transaction erases.
struct Writes {
    scope: BucketScope,
    of: String,
    stream: Stream,
    events: &'static str,
    positions: Vec<u64>,
    /// The remaining capacity of the transaction.
    room: Room,
    /// The position up to which the owner's events were read.
    seen: u64,
    /// True if there were no further events.
    is_all: bool,
}

impl Store {
    /// Erases the data that tools store for one owner, as much as fits into one transaction: writes
    /// after this position and, after the last of them, the content of the buckets. Returns the
    /// position of the last event that was read; none when all is erased.
    pub(super) async fn erase_buckets(
        &self,
        purge: Stream,
        owner: BucketsOf,
        after: u64,
    ) -> Result<Option<u64>, CommitError> {
        let writes = self.bucket_writes(owner, after).await?;
        self.transact_for(purge, move |sql, tally| writes.erase(sql, tally))
            .await
    }

    /// Finds the writes. All events of the owner have to be read, so a reader thread does it, page
    /// by page.
    async fn bucket_writes(&self, owner: BucketsOf, after: u64) -> Result<Writes, ReadError> {
        let mut writes = Writes::after(owner, after);
        while !writes.is_all && !writes.room.is_full() {
            let page = self.read(move |sql| {
                writes.read_page(sql, EVENTS_SEEN)?;
                Ok(writes)
            });
            writes = page.await?;
        }
        Ok(writes)
    }
}

impl Writes {
    fn after(owner: BucketsOf, after: u64) -> Self {
        let (scope, of, stream, events) = match owner {
            BucketsOf::Agent(id) => {
                let stream = Stream::Agent(id);
                (BucketScope::Agent, id.to_string(), stream, OF_AGENT)
            }
            BucketsOf::Session(id) => {
                let stream = Stream::Session(id);
                (BucketScope::Session, id.to_string(), stream, OF_SESSION)
            }
        };
        Self {
            scope,
            of,
            stream,
            events,
            positions: Vec::new(),
            room: Room::of_commit(EVENTS_PER_COMMIT_MAX),
            seen: after,
            is_all: false,
        }
    }

    /// Goes on through at most so many events.
    fn read_page(&mut self, sql: &Sql<'_>, events_max: usize) -> sql::Result<()> {
        let (page, is_last) = page_of(
            sql,
            self.events,
            named![
                number = streams::number(sql, self.stream)?,
                place = format!("{}/{}", scope_name(self.scope), self.of),
                after = self.seen,
                limit = events_max
            ],
            events_max,
            |(_, _, bytes): &(u64, bool, u64)| *bytes,
        )?;
        self.is_all = is_last;
        for (position, is_write, bytes) in page {
            self.seen = position;
            if is_write {
                self.room.take(bytes);
                self.positions.push(position);
            }
            if self.room.is_full() {
                self.is_all = false;
                break;
            }
        }
        Ok(())
    }

    /// See [`Store::erase_buckets`].
    fn erase(mut self, sql: &Sql<'_>, tally: &mut Tally) -> sql::Result<Option<u64>> {
        if self.is_all {
            // Reads the events that were stored since the reader's scan.
            self.read_page(sql, EVENTS_PER_COMMIT_MAX)?;
        }
        for position in &self.positions {
            erase_event(sql, *position, tally)?;
        }
        let is_done = self.is_all && erase_entries(sql, self.scope, &self.of, tally)?;
        Ok((!is_done).then_some(self.seen))
    }
}

/// Erases the content of the buckets of one owner, as much as fits into one transaction. Returns
/// whether all is erased. An empty bucket is removed, so that no later scan reads it again.
fn erase_entries(
    sql: &Sql<'_>,
    scope: BucketScope,
    of: &str,
    tally: &mut Tally,
) -> sql::Result<bool> {
    let text = "SELECT id FROM buckets WHERE scope = :scope AND of = :owner LIMIT :limit";
    let buckets = sql.all::<i64>(
        text,
        named![
            scope = scope_name(scope),
            owner = of,
            limit = ROWS_PER_COMMIT_MAX
        ],
    )?;
    let mut room = Room::of_commit(ROWS_PER_COMMIT_MAX);
    for bucket in &buckets {
        if !empty(sql, *bucket, &mut room, tally)? {
            return Ok(false);
        }
        sql.execute("DELETE FROM buckets WHERE id = ?1", [bucket])?;
    }
    Ok(buckets.len() < ROWS_PER_COMMIT_MAX)
}

/// Deletes entries of a bucket while there is room. Returns whether none is left.
fn empty(sql: &Sql<'_>, bucket: i64, room: &mut Room, tally: &mut Tally) -> sql::Result<bool> {
    let entries = sql.all::<(String, u64)>(
        "SELECT key, length(value) FROM bucket_entries WHERE bucket = ?1 LIMIT ?2",
        args![bucket, room.rows + 1],
    )?;
    for (entry, bytes) in entries {
        if room.is_full() {
            return Ok(false);
        }
        sql.execute(
            "DELETE FROM bucket_entries WHERE bucket = ?1 AND key = ?2",
            args![bucket, entry],
        )?;
        tally.erased.bucket_keys += 1;
        room.take(bytes);
    }
    Ok(true)
}
