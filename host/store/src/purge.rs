//! Purge of deleted data: the payloads of its events with their salts, the rows derived from them,
//! and blobs that are no longer named.
//!
//! The events themselves stay with their places, their kinds and their digests, so that the chain
//! holds. The projections are left as folding the events again makes them. A purge runs in
//! transactions of a bounded size, and each chunk of it can be repeated. A crash in between leaves
//! an open purge, which its initiator or the next start of the host finishes. This module only
//! carries purges out; the permission is decided by its callers.

mod agents;
mod blobs;
mod buckets;
mod outside;
mod plan;
mod re_emitted;
mod rewrite;
mod room;
mod run_events;
mod runs;
mod searchable_rows;
mod sessions;
mod streams;
mod triggers;
mod unknown_senders;
mod usage;

pub(crate) use blobs::inspect_unnamed;
pub use plan::PurgePlan;
pub use rewrite::Rewritten;

use crate::commit::CommitError;
use crate::event_row::{self, event};
use crate::fault;
use crate::meta;
use crate::read::ReadError;
use crate::read::agents::root;
use crate::sql::{self, Sql, args, named, to_json};
use crate::store::Store;
use crate::streams::number;
use crate::user_storage;
use buckets::BucketsOf;
use domain::event::{DefinitionRemoved, Erased, Event, KeptByPurge, NoteForgotten, Purged};
use domain::id::{AgentId, RunId, SessionId, Stream};
use domain::usage::{UsageShare, UsageShares};
use room::Room;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

/// Events whose payloads are erased in one transaction, with those of inputs that go with a run.
pub(crate) const EVENTS_PER_COMMIT_MAX: usize = 256;
/// Maximum number of rows of one sort, apart from events, that one transaction removes. An import
/// is an exception: it is removed as a whole.
const ROWS_PER_COMMIT_MAX: usize = 256;
/// Bytes of one sort after which a transaction erases no more: of payloads, messages, indexed
/// words, values in buckets, or blobs. Erased bytes are overwritten.
const BYTES_PER_COMMIT_MAX: u64 = 16 << 20;
/// Number of events whose kinds a reader checks in one go.
const EVENTS_SEEN: usize = 4_096;
/// Events that are read at a time.
const EVENTS_READ: usize = 256;
/// Bytes of payloads after which a page that is read ends: a read that is long is in the way of
/// shortening the log.
const BYTES_READ: u64 = 4 << 20;
/// The place in a stream behind all of its events.
const BEHIND_ALL: u64 = u64::MAX;
/// Prefix of the names of open purges in the store's metadata.
const OPEN: &str = "purge/";

/// A part of a purge. It is done when nothing of it is left, however often it was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeItem {
    /// Trigger events and inbound messages that a session took, and the outbound messages that
    /// resulted from them.
    Outside(SessionId),
    /// A run, with its messages and its inputs.
    Run {
        /// The run.
        run: RunId,
        /// The position of the event that committed its turn.
        committed: Option<u64>,
    },
    /// Turns that were imported, when an event without their words has taken the place of the one
    /// at this position.
    Import {
        /// Its position.
        position: u64,
    },
    /// The events in an agent's own stream about a session.
    OfAgent {
        /// The agent.
        agent: AgentId,
        /// The session.
        session: SessionId,
    },
    /// Data that tools keep for a session, also in turns that stay.
    SessionBuckets(SessionId),
    /// All other data of a session.
    Session(SessionId),
    /// Snippets of other deleted sessions whose threads share turns with a session.
    Snippets(SessionId),
    /// Data that tools keep for an agent.
    AgentBuckets(AgentId),
    /// All other data of an agent, with the triggers that it made.
    Agent(AgentId),
    /// Rows derived from the remaining events of streams that lost events in the purge. The earlier
    /// parts note these streams.
    Streams,
    /// Blobs that erased events named, and that no event names any more.
    Blobs,
}

/// Totals of a purge so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Totals of the deleted data.
    pub erased: Erased,
    /// Totals of the data that stays.
    pub kept: KeptByPurge,
    /// Usage of erased turns, by day and model. It stays, without the users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<UsageShare>,
}

impl Tally {
    /// The two together.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let mut usage = UsageShares::default();
        usage.add_all(&self.usage);
        usage.add_all(&more.usage);
        Self {
            erased: self.erased.and(more.erased),
            kept: self.kept.and(more.kept),
            usage: usage.iter().collect(),
        }
    }
}

/// Guard of a purge. While it exists no rebuild and no other purge runs: a rebuild could restore
/// the data that is being erased.
#[derive(Debug)]
pub struct Purging {
    _alone: OwnedMutexGuard<()>,
}

impl Store {
    /// Begins to purge; none while another purge or a rebuild is going on.
    #[must_use]
    pub fn begin_purging(&self) -> Option<Purging> {
        let alone = Arc::clone(self.upkeep()).try_lock_owned().ok()?;
        Some(Purging { _alone: alone })
    }

    /// Erases one transaction's share of a chunk of a purge, and returns where the next one begins;
    /// none when the chunk is done. The share is counted for the purge of this stream.
    ///
    /// `after` is the result of the previous transaction, so that none scans the data that the
    /// earlier ones erased. The first one begins at 0, also after a crash: it skips erased data. So
    /// may a later one of a run, which counts the data that stay. For the streams that have lost
    /// events, this handles one stream's share, in as many transactions as necessary.
    pub async fn erase(
        &self,
        purge: Stream,
        item: PurgeItem,
        after: u64,
    ) -> Result<Option<u64>, CommitError> {
        // These find the remaining rows without scanning the deleted ones.
        let next = move |is_done: bool| (!is_done).then_some(after);
        match item {
            PurgeItem::Outside(session) => self.erase_outside(purge, session).await.map(next),
            PurgeItem::Run { run, committed } => {
                let events = self.run_events(purge, run, after).await?;
                self.transact_for(purge, move |sql, tally| {
                    runs::erase(sql, events, committed, tally)
                })
                .await
            }
            PurgeItem::Import { position } => {
                self.transact_for(purge, move |sql, tally| {
                    runs::erase_import(sql, purge, position, tally)
                })
                .await?;
                Ok(None)
            }
            PurgeItem::OfAgent { agent, session } => {
                self.transact_for(purge, move |sql, tally| {
                    agents::erase_of_session(sql, agent, session, tally).map(next)
                })
                .await
            }
            PurgeItem::SessionBuckets(session) => {
                let owner = BucketsOf::Session(session);
                self.erase_buckets(purge, owner, after).await
            }
            PurgeItem::Session(session) => {
                let events = self.session_events(session, after).await?;
                self.transact_for(purge, move |sql, tally| events.erase(sql, purge, tally))
                    .await
            }
            PurgeItem::Snippets(session) => self.erase_snippets(purge, session, after).await,
            PurgeItem::AgentBuckets(agent) => {
                let owner = BucketsOf::Agent(agent);
                self.erase_buckets(purge, owner, after).await
            }
            PurgeItem::Agent(agent) => {
                if after == 0 {
                    self.erase_triggers_of(purge, agent).await?;
                }
                self.transact_for(purge, move |sql, tally| {
                    agents::erase(sql, agent, after, tally)
                })
                .await
            }
            PurgeItem::Streams => self.fold_next_rest(purge).await.map(next),
            PurgeItem::Blobs => {
                self.transact_for(purge, move |sql, tally| {
                    blobs::erase_unnamed(sql, tally).map(next)
                })
                .await
            }
        }
    }

    /// Runs some work of a purge in one transaction of the writer, and counts the erased data.
    async fn transact_for<T: Send + 'static>(
        &self,
        purge: Stream,
        work: impl FnOnce(&Sql<'_>, &mut Tally) -> sql::Result<T> + Send + 'static,
    ) -> Result<T, CommitError> {
        self.in_writer(move |sql| {
            fault::point("store.purge.begin");
            let (done, tally) = transact(sql, |sql| {
                let mut tally = Tally::default();
                let done = work(sql, &mut tally)?;
                add(sql, purge, &tally)?;
                Ok((done, tally))
            })?;
            fault::point("store.purge.erased");
            tracing::debug!(%purge, ?tally, "erased");
            Ok(done)
        })
        .await
    }

    /// Returns the purges that were begun and have not finished, those of agents first.
    pub async fn open_purges(&self) -> Result<Vec<Stream>, ReadError> {
        self.read(|sql| {
            let names = sql.all::<String>(
                "SELECT name FROM meta WHERE name >= 'purge/' AND name < 'purge0' ORDER BY name",
                [],
            );
            Ok(names?
                .iter()
                .filter_map(|name| name.strip_prefix(OPEN)?.parse().ok())
                .collect())
        })
        .await
    }

    /// Returns the totals of an open purge so far.
    pub async fn purge_tally(&self, purge: Stream) -> Result<Tally, ReadError> {
        self.read(move |sql| Ok(tally(sql, purge)?.unwrap_or_default()))
            .await
    }

    /// Returns the result of a purge that has finished.
    pub async fn purged(&self, purge: Stream) -> Result<Option<Purged>, ReadError> {
        self.read(move |sql| {
            let text = "SELECT kind, payload FROM events WHERE stream = ?1 AND kind = \
                        'purge.done.v1' ORDER BY version DESC LIMIT 1";
            let found = event(sql, text, [number(sql, purge)?])?;
            Ok(found.and_then(|event| match event {
                Event::Purged(purged) => Some(purged),
                _ => None,
            }))
        })
        .await
    }
}

/// Runs some work in a transaction: all of it or nothing. Deleted content is overwritten, as always
/// on this connection.
fn transact<T>(sql: &Sql<'_>, work: impl FnOnce(&Sql<'_>) -> sql::Result<T>) -> sql::Result<T> {
    let connection = sql.connection();
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let worked = work(sql).and_then(|done| {
        fault::point("store.purge.unsaved");
        sql.execute("COMMIT", []).map(|_| done)
    });
    if worked.is_err() && connection.in_transaction() {
        sql.execute("ROLLBACK", [])?;
    }
    worked
}

/// Records that a purge was begun or has finished: the writer's note in addition to the events,
/// within their transaction.
pub(crate) fn note(sql: &Sql<'_>, event: &Event) -> sql::Result<()> {
    match event {
        Event::PurgeBegun(it) => {
            let stream = it
                .remains
                .session()
                .map_or(Stream::Agent(it.agent), Stream::Session);
            let text = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            sql.write(text, args![name(stream), to_json(&Tally::default())?])
        }
        Event::Purged(it) => {
            let stream = it.session.map_or(Stream::Agent(it.agent), Stream::Session);
            meta::remove(sql, &name(stream))?;
            rewrite::due(sql)?;
            // An agent is purged with its sessions and with those below it.
            let above = Stream::Agent(root(sql, it.agent)?);
            if above == stream {
                return Ok(());
            }
            add(
                sql,
                above,
                &Tally {
                    erased: it.erased,
                    kept: it.kept,
                    // The usage is already recorded.
                    usage: Vec::new(),
                },
            )
        }
        Event::NoteForgotten(it) => forget_note(sql, it),
        Event::DefinitionRemoved(it) => erase_definition(sql, it),
        _ => Ok(()),
    }
}

/// Erases the content of one note, in the transaction that records its deletion.
fn forget_note(sql: &Sql<'_>, forgotten: &NoteForgotten) -> sql::Result<()> {
    let kept = "SELECT 1 FROM events WHERE position = ?1 AND stream = ?2 AND kind = \
                'agent.note.remembered.v1' AND payload IS NOT NULL";
    let stream = number(sql, Stream::Agent(forgotten.agent))?;
    if !sql.exists(kept, args![forgotten.position, stream])? {
        return Ok(());
    }
    searchable_rows::forget(sql, forgotten.position, &mut Room::endless())?;
    erase_event(sql, forgotten.position, &mut Tally::default())?;
    rewrite::due(sql)
}

/// Erases the content of a user's definition, in the transaction that records its removal.
fn erase_definition(sql: &Sql<'_>, removed: &DefinitionRemoved) -> sql::Result<()> {
    let position = removed.position;
    let made = "SELECT 1 FROM events WHERE position = :position AND stream = :stream AND kind = \
                'user.definition.made.v1' AND about = :definition";
    let stream = number(sql, Stream::Host)?;
    let definition = &removed.definition.0;
    if !sql.exists(made, named![position, stream, definition])? {
        return Ok(());
    }
    erase_event(sql, position, &mut Tally::default())?;
    rewrite::due(sql)
}

/// Returns whether any purge was begun and has not finished. Until it has, the projections differ
/// from the result of folding the events.
pub(crate) fn is_any_open(sql: &Sql<'_>) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM meta WHERE name >= 'purge/' AND name < 'purge0'",
        [],
    )
}

fn name(purge: Stream) -> String {
    format!("{OPEN}{purge}")
}

fn tally(sql: &Sql<'_>, purge: Stream) -> sql::Result<Option<Tally>> {
    sql.json("SELECT value FROM meta WHERE name = ?1", [name(purge)])
}

fn add(sql: &Sql<'_>, purge: Stream, more: &Tally) -> sql::Result<()> {
    if *more == Tally::default() {
        return Ok(());
    }
    if let Some(so_far) = tally(sql, purge)? {
        sql.execute(
            "UPDATE meta SET value = ?2 WHERE name = ?1",
            args![name(purge), to_json(&so_far.and(more))?],
        )?;
    }
    Ok(())
}

/// Erases the payload and the salt of an event, and returns whether there were any.
fn erase_event(sql: &Sql<'_>, position: u64, tally: &mut Tally) -> sql::Result<bool> {
    user_storage::erases_event(sql, position)?;
    let erased = event_row::erase(sql, position)?;
    tally.erased.events += u64::from(erased);
    Ok(erased)
}
