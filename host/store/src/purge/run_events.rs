//! The events of a run, as a reader finds them for the transaction that erases some of them.
//!
//! A run may be long. So a reader goes through it page by page, and the writer reads only the
//! events stored since.

use super::room::{Room, page_of};
use super::runs::input_bytes;
use super::usage::Meter;
use super::{EVENTS_PER_COMMIT_MAX, EVENTS_READ, Store};
use crate::event_row::StoredEvent;
use crate::read::ReadError;
use crate::sql::{self, Sql, named, row, text};
use crate::streams;
use domain::event::Event;
use domain::grant::{BucketPlace, BucketScope};
use domain::id::{InputId, RunId, Stream};
use domain::time::Timestamp;

/// The events of a run that one transaction erases, and the needed facts about the others.
pub(super) struct RunEvents {
    pub(super) run: RunId,
    /// The version after which the transaction begins.
    pub(super) after: u64,
    /// Each input before the event with which the run took it in.
    pub(super) to_erase: Vec<ToErase>,
    /// Usage of the whole run, if its first event is among those to erase.
    pub(super) usage: Option<Meter>,
    /// The purge that erases them: of a session, as runs have no other.
    pub(super) purge: Stream,
    /// The remaining capacity of the transaction.
    room: Room,
    /// Number of writes that stay, among the events that were read.
    kept: u64,
    /// The version up to which the events were read.
    seen: u64,
    /// True if the last page was the end of the stream.
    is_read: bool,
    /// The version up to which the transaction leaves nothing to erase, if it leaves anything.
    ends_at: Option<u64>,
}

/// A part of the data that one transaction erases.
pub(super) enum ToErase {
    /// An input that the run took in, with its own event.
    Input(InputId),
    /// The event at this position.
    Event(u64),
}

row! {
    /// An event of a run.
    struct Found {
        version: u64,
        position: u64,
        bytes: u64,
    }
}

impl Store {
    /// Finds the events of a run that a transaction erases that begins after this version.
    pub(super) async fn run_events(
        &self,
        purge: Stream,
        run: RunId,
        after: u64,
    ) -> Result<RunEvents, ReadError> {
        let mut events = RunEvents {
            run,
            after,
            to_erase: Vec::new(),
            usage: None,
            purge,
            room: Room::of_commit(EVENTS_PER_COMMIT_MAX),
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
    /// Returns whether no further event has to be read.
    fn is_enough(&self) -> bool {
        self.is_read || (self.ends_at.is_some() && self.usage.is_none())
    }

    /// Reads the events stored since the reader's scan. If there is more than a page of them,
    /// nothing may be erased, and a reader scans once more.
    pub(super) fn catch_up(&mut self, sql: &Sql<'_>) -> sql::Result<bool> {
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

    /// Returns the number of writes in the run that stay; none if only a part of the run was read.
    pub(super) fn kept_of_all(&self) -> Option<u64> {
        (self.after == 0 && self.is_read).then_some(self.kept)
    }

    /// Reads a page of events, including erased ones, so that no later scan has to skip them again.
    fn read_page(&mut self, sql: &Sql<'_>) -> sql::Result<()> {
        let (page, is_last) = page_of(
            sql,
            text!(
                "SELECT ",
                Found::COLUMNS,
                ", time, kind, payload FROM events WHERE stream = :stream AND version > :version \
                 ORDER BY version LIMIT :limit"
            ),
            named![
                stream = streams::number(sql, Stream::Run(self.run))?,
                version = self.seen,
                limit = EVENTS_READ
            ],
            EVENTS_READ,
            |(found, ..): &(Found, Timestamp, StoredEvent)| found.bytes,
        )?;
        self.is_read = is_last;
        for (found, time, StoredEvent(event)) in page {
            self.seen = found.version;
            if let Some(event) = event {
                self.inspect(sql, &found, time, &event)?;
            }
        }
        Ok(())
    }

    fn inspect(
        &mut self,
        sql: &Sql<'_>,
        found: &Found,
        time: Timestamp,
        event: &Event,
    ) -> sql::Result<()> {
        let is_kept = matches!(
            event,
            Event::KeyValueWritten(written) if !self.is_own(&written.place)
        );
        if is_kept {
            self.kept += 1;
        } else if self.ends_at.is_none() {
            self.add(sql, found, event)?;
            // The usage moves with the first event, which may have to wait for its inputs.
            if found.version == 1 && self.ends_at.is_none() {
                self.usage = Some(Meter::default());
            }
        }
        if let Some(usage) = &mut self.usage {
            usage.apply(event, time);
        }
        Ok(())
    }

    /// Returns whether a place belongs to the session that is purged. Data that a tool stores for
    /// another owner are erased with that owner, also if it is another session that made this run.
    fn is_own(&self, place: &BucketPlace) -> bool {
        matches!(self.purge, Stream::Session(session) if place.scope == BucketScope::Session
            && place.of == session.to_string())
    }

    /// Adds the remaining inputs of an event to the data to be erased and, after the last of them,
    /// the event itself. The part that does not fit is left for the next transaction.
    fn add(&mut self, sql: &Sql<'_>, found: &Found, event: &Event) -> sql::Result<()> {
        for input in event.claimed() {
            if let Some(bytes) = input_bytes(sql, input)?
                && !self.fits(found, ToErase::Input(input), bytes)
            {
                return Ok(());
            }
        }
        self.fits(found, ToErase::Event(found.position), found.bytes);
        Ok(())
    }

    /// Adds a part of an event, and returns whether it fits. Otherwise the next transaction begins
    /// with this event.
    fn fits(&mut self, found: &Found, part: ToErase, bytes: u64) -> bool {
        if self.room.is_full() {
            self.ends_at = Some(found.version - 1);
            return false;
        }
        self.room.take(bytes);
        self.to_erase.push(part);
        true
    }
}
