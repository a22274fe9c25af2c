//! The events of a run, as a reader finds them for the transaction that erases some of them.
//!
//! A run may be long. So a reader goes through it page by page, and the writer looks only at what
//! came since.

use super::usage::Meter;
use super::{EVENTS_PER_COMMIT_MAX, EVENTS_READ, Store};
use crate::event_row::decode_at;
use crate::read::ReadError;
use crate::sql::{Columns, Sql, int, limit};
use domain::event::Event;
use domain::grant::BucketScope;
use domain::id::{InputId, RunId};
use domain::time::Timestamp;
use rusqlite::params;

/// The events of a run that one transaction erases, and what it has to know of the others.
pub(super) struct RunEvents {
    pub(super) run: RunId,
    pub(super) stream: String,
    /// The version after which the transaction begins.
    pub(super) after: u64,
    pub(super) to_erase: Vec<ToErase>,
    /// Usage of the whole run, if its first event is among those to erase.
    pub(super) usage: Option<Meter>,
    /// Number of writes that stay, among the events that were looked at.
    kept: u64,
    /// The version up to which the events were looked at.
    seen: u64,
    /// True if the last page was the end of the stream.
    is_read: bool,
    /// The version of the last event to erase, if others are left for a later transaction.
    ends_at: Option<u64>,
}

/// An event that is erased.
pub(super) struct ToErase {
    version: u64,
    pub(super) position: u64,
    /// Inputs that the run took in with it.
    pub(super) inputs: Vec<InputId>,
}

impl Store {
    /// Finds the events of a run that a transaction erases that begins after this version.
    pub(super) async fn run_events(&self, run: RunId, after: u64) -> Result<RunEvents, ReadError> {
        let mut events = RunEvents {
            run,
            stream: format!("run/{run}"),
            after,
            to_erase: Vec::new(),
            usage: None,
            kept: 0,
            seen: after,
            is_read: false,
            ends_at: None,
        };
        while !events.is_enough() {
            let page = self.read(move |sql| {
                events.read_page(sql)?;
                Ok(events)
            });
            events = page.await?;
        }
        Ok(events)
    }
}

impl RunEvents {
    /// Returns whether no further event has to be looked at.
    fn is_enough(&self) -> bool {
        self.is_read || (self.ends_at.is_some() && self.usage.is_none())
    }

    /// Looks at what came since a reader did. If that is more than a page, nothing may be erased: a
    /// reader goes first once more.
    pub(super) fn catch_up(&mut self, sql: &Sql<'_>) -> rusqlite::Result<bool> {
        if self.is_read {
            self.read_page(sql)?;
        }
        Ok(self.is_enough())
    }

    /// Returns the version after which the next transaction begins; none when this one erases the
    /// last events.
    pub(super) fn goes_on_after(&self) -> Option<u64> {
        self.ends_at
    }

    /// Returns the number of writes in the run that stay; none if only a part of the run was looked
    /// at.
    pub(super) fn kept_of_all(&self) -> Option<u64> {
        (self.after == 0 && self.is_read).then_some(self.kept)
    }

    /// Reads a page of events, with those that are gone: nobody passes over them a second time.
    fn read_page(&mut self, sql: &Sql<'_>) -> rusqlite::Result<()> {
        let page = sql.rows(
            "SELECT version, position, time, kind, payload FROM events WHERE stream = ?1 AND \
             version > ?2 ORDER BY version LIMIT ?3",
            params![self.stream, int(self.seen), limit(EVENTS_READ)],
            |row| {
                let found = ToErase {
                    version: row.uint(0)?,
                    position: row.uint(1)?,
                    inputs: Vec::new(),
                };
                Ok((found, Timestamp(row.uint(2)?), decode_at(row, 3)?))
            },
        )?;
        self.is_read = page.len() < EVENTS_READ;
        for (found, time, event) in page {
            self.seen = found.version;
            if let Some(event) = event {
                self.look_at(found, time, &event);
            }
        }
        Ok(())
    }

    fn look_at(&mut self, found: ToErase, time: Timestamp, event: &Event) {
        // What a tool keeps for others than this session is theirs.
        let is_kept = matches!(
            event,
            Event::KeyValueWritten(written) if written.place.scope != BucketScope::Session
        );
        if found.version == 1 && !is_kept {
            self.usage = Some(Meter::default());
        }
        if let Some(usage) = &mut self.usage {
            usage.apply(event, time);
        }
        if is_kept {
            self.kept += 1;
        } else if self.to_erase.len() < EVENTS_PER_COMMIT_MAX {
            let inputs = taken_in(event);
            self.to_erase.push(ToErase { inputs, ..found });
        } else {
            self.ends_at = self.to_erase.last().map(|last| last.version);
        }
    }
}

/// Returns the inputs that a run took in with an event.
fn taken_in(event: &Event) -> Vec<InputId> {
    match event {
        Event::RunStarted(started) => started.claimed.clone(),
        Event::RunStepped(stepped) => stepped.claimed.clone(),
        _ => Vec::new(),
    }
}
