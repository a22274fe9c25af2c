//! Streams that have lost events: the rows derived from the remaining events are recomputed.
//!
//! A stream may be long, however little of it was erased. So a reader goes through it page by page,
//! and the writer reads only the events stored since.

use super::blobs::not_named_by;
use super::room::page_of;
use super::{EVENTS_READ, ROWS_PER_COMMIT_MAX, Store};
use crate::commit::CommitError;
use crate::event_row::StoredEvent;
use crate::meta;
use crate::projections::agents::without_users;
use crate::projections::blobs_named;
use crate::read::ReadError;
use crate::sql::{self, Sql, args, insert, named, to_json};
use crate::streams;
use domain::agent::Agent;
use domain::digest::Digest;
use domain::event::Event;
use domain::id::Stream;
use std::collections::BTreeMap;

/// Prefix of the names of marks, in the store's metadata, of streams that have lost events. They
/// outlive a crash between two transactions. The value of a mark names the purges that erased the
/// events: a stream that cannot be read keeps only those open.
const DUE: &str = "fold/";
/// References to blobs that are read at a time.
const REFERENCES_READ: usize = 4_096;

/// Notes that a stream has lost an event in a purge, from which more follows than rows of its own.
pub(super) fn note_loss(sql: &Sql<'_>, purge: Stream, stream: Stream) -> sql::Result<()> {
    insert!(
        sql,
        meta {
            name: mark(stream),
            value: purge.to_string()
        },
        "ON CONFLICT (name) DO UPDATE SET value = meta.value || ' ' || excluded.value WHERE \
         meta.value NOT LIKE '%' || excluded.value || '%'"
    )
}

fn mark(stream: Stream) -> String {
    format!("{DUE}{stream}")
}

/// Returns the next stream that has lost events in a purge.
fn next_due(sql: &Sql<'_>, purge: Stream) -> sql::Result<Option<Stream>> {
    let text = "SELECT name FROM meta WHERE name >= 'fold/' AND name < 'fold0' AND value LIKE \
                '%' || ?1 || '%' ORDER BY name LIMIT 1";
    let name = sql.one::<String>(text, [purge.to_string()])?;
    let stream = name.as_deref().and_then(|name| name.strip_prefix(DUE));
    Ok(stream.and_then(|stream| stream.parse().ok()))
}

/// The remaining events of a stream, folded up to some version.
pub(crate) struct Rest {
    stream: Stream,
    version: u64,
    /// The agent whose stream it is, without its users: their data are not erased with a session.
    agent: Option<Agent>,
    /// The stream's references to blobs for which no remaining event was found.
    unfounded: BTreeMap<Digest, Reference>,
}

/// A reference of a stream to a blob.
struct Reference {
    /// True if the reference records that a message of a thread shows the blob.
    shown: bool,
    /// True if an event names the blob, and none shows it.
    kept: bool,
}

impl Store {
    /// Recomputes the rows of one of the streams that have lost events in a purge. Returns whether
    /// no such stream was left.
    pub(super) async fn fold_next_rest(&self, purge: Stream) -> Result<bool, CommitError> {
        let Some(stream) = self.read(move |sql| next_due(sql, purge)).await? else {
            return Ok(true);
        };
        let mut rest = self.rest_of(stream).await?;
        loop {
            rest = self.read_on(rest).await?;
            let (written, is_done) = self.write_rest(purge, rest).await?;
            if is_done {
                return Ok(false);
            }
            rest = written;
        }
    }

    /// Returns the state of a stream before its first event, with all its references.
    pub(crate) async fn rest_of(&self, stream: Stream) -> Result<Rest, ReadError> {
        let rest = Rest {
            stream,
            version: 0,
            agent: None,
            unfounded: BTreeMap::new(),
        };
        self.read_pages(rest, Rest::read_references).await
    }

    /// Goes on to the last event of the stream.
    pub(crate) async fn read_on(&self, rest: Rest) -> Result<Rest, ReadError> {
        self.read_pages(rest, Rest::read_events).await
    }

    /// Reads page by page, each of them by itself: none is in the way of shortening the log.
    async fn read_pages(
        &self,
        mut rest: Rest,
        read_page: fn(&mut Rest, &Sql<'_>) -> sql::Result<bool>,
    ) -> Result<Rest, ReadError> {
        loop {
            let page = self.read(move |sql| {
                let is_all = read_page(&mut rest, sql)?;
                Ok((rest, is_all))
            });
            let (read, is_all) = page.await?;
            if is_all {
                return Ok(read);
            }
            rest = read;
        }
    }

    /// Writes the rows derived from the rest of a stream, as much as fits into one transaction.
    /// Returns whether all are written.
    pub(crate) async fn write_rest(
        &self,
        purge: Stream,
        mut rest: Rest,
    ) -> Result<(Rest, bool), CommitError> {
        self.transact_for(purge, move |sql, _| {
            let is_done = rest.write(sql)?;
            Ok((rest, is_done))
        })
        .await
    }
}

impl Rest {
    /// Reads a page of the stream's references to blobs. Returns whether it is the last one.
    fn read_references(&mut self, sql: &Sql<'_>) -> sql::Result<bool> {
        let after = self.unfounded.last_key_value();
        let after = after.map_or_else(Vec::new, |(digest, _)| digest.0.to_vec());
        let page: Vec<(Digest, bool)> = sql.all(
            "SELECT digest, shown FROM blob_references WHERE stream = :stream AND digest > :after \
             ORDER BY digest LIMIT :limit",
            named![
                stream = streams::number(sql, self.stream)?,
                after,
                limit = REFERENCES_READ
            ],
        )?;
        let is_last = page.len() < REFERENCES_READ;
        let references = page.into_iter().map(|(digest, shown)| {
            let kept = false;
            (digest, Reference { shown, kept })
        });
        self.unfounded.extend(references);
        Ok(is_last)
    }

    /// Reads a page of the stream's events, including erased ones, so that no later scan has to
    /// skip them again. Returns whether it is the last one.
    fn read_events(&mut self, sql: &Sql<'_>) -> sql::Result<bool> {
        let (page, is_last) = page_of(
            sql,
            "SELECT version, bytes, kind, payload FROM events WHERE stream \
             = :stream AND version > :version ORDER BY version LIMIT :limit",
            named![
                stream = streams::number(sql, self.stream)?,
                version = self.version,
                limit = EVENTS_READ
            ],
            EVENTS_READ,
            |(_, bytes, _): &(u64, u64, StoredEvent)| *bytes,
        )?;
        for (version, _, StoredEvent(event)) in &page {
            self.version = *version;
            if let Some(event) = event {
                self.apply(event);
            }
        }
        Ok(is_last)
    }

    fn apply(&mut self, event: &Event) {
        self.agent = Agent::apply(self.agent.take(), event).map(without_users);
        for (digest, shown) in blobs_named(event) {
            let Some(reference) = self.unfounded.get_mut(&digest) else {
                continue;
            };
            reference.kept = true;
            if shown || !reference.shown {
                self.unfounded.remove(&digest);
            }
        }
    }

    /// See [`Store::write_rest`].
    fn write(&mut self, sql: &Sql<'_>) -> sql::Result<bool> {
        // If many events were stored since the scan, a reader scans those as well.
        if !self.read_events(sql)? {
            return Ok(false);
        }
        for _ in 0..ROWS_PER_COMMIT_MAX {
            match self.unfounded.pop_first() {
                Some((digest, reference)) => self.write_reference(sql, digest, &reference)?,
                None => break,
            }
        }
        if !self.unfounded.is_empty() {
            return Ok(false);
        }
        self.write_agent(sql)?;
        // The mark goes, whichever purges it names: all remaining events were read.
        meta::remove(sql, &mark(self.stream))?;
        Ok(true)
    }

    fn write_reference(
        &self,
        sql: &Sql<'_>,
        digest: Digest,
        reference: &Reference,
    ) -> sql::Result<()> {
        let stream = streams::number(sql, self.stream)?;
        if reference.kept {
            return sql.write(
                "UPDATE blob_references SET shown = 0 WHERE stream = ?1 AND digest = ?2",
                args![stream, digest],
            );
        }
        not_named_by(sql, stream, digest)
    }

    fn write_agent(&self, sql: &Sql<'_>) -> sql::Result<()> {
        let Some(agent) = &self.agent else {
            return Ok(());
        };
        let slot = agent.active_session.as_ref().map(|it| it.session_id);
        // The remaining row of a purged agent is fixed.
        let text = "UPDATE agents SET agent = :agent, slot = :slot WHERE id = :id AND NOT purged";
        sql.write(text, named![id = agent.id, agent = to_json(agent)?, slot])
    }
}
