//! Purge of data about unknown senders in the streams of connectors: their messages, the pairing
//! codes that they got, and the host's answers to them. Messages that were refused before they
//! reached a session are included.
//!
//! No session took any of these data, so the purge of a session does not find them. They are erased
//! some time after they were stored, without a request. A sender who was paired stays: the event of
//! the pairing is the user's.

use super::outside::{
    Gone, OutboundMessage, erase_inbound_message, erase_outbound_message, outbound_message_of,
};
use super::rewrite;
use super::room::{Room, page_of};
use super::{EVENTS_PER_COMMIT_MAX, EVENTS_READ, Store, Tally, erase_event, transact};
use crate::commit::CommitError;
use crate::event_row::StoredEvent;
use crate::meta;
use crate::sql::{self, Sql, args, named, row, select};
use crate::streams;
use domain::event::{
    ConnectorReceived, Event, InboundMessageOutcome, OutboundMessageCause, OutboundMessageQueued,
    PairingOffered, Received,
};
use domain::id::{ConnectorId, OutboundMessageId, Stream};
use domain::time::Timestamp;
use uuid::Uuid;

/// Prefix of the names of notes, in the store's metadata, with the version up to which a
/// connector's stream has nothing left to erase. The name of the connector's stream follows.
/// Unsettled data come after that version: they may have to be erased later.
const PLACE: &str = "unknown_senders/";

/// An inspection of a part of a connector's stream.
#[derive(Debug, Clone)]
struct StreamScan {
    connector: ConnectorId,
    /// The version after which it begins.
    after: u64,
    /// The time from which on events stay.
    before: Timestamp,
}

row! {
    /// An event that was read.
    struct ScannedEvent from "events e" {
        version: u64 = "e.version",
        position: u64 = "e.position",
        bytes: u64 = "e.bytes",
        time: Timestamp = "e.time",
        event: StoredEvent as row,
    }
}

/// The records that one transaction erases.
#[derive(Debug)]
struct UnknownSenders {
    /// Positions of events that no other data depend on.
    events: Vec<u64>,
    /// Positions of events with inbound messages.
    inbound_messages: Vec<u64>,
    outbound_messages: Vec<Gone<OutboundMessage>>,
    room: Room,
    /// The version up to which nothing else has to be erased.
    seen: u64,
    /// True if no later event has to be erased yet.
    is_all: bool,
}

/// The outcome of one transaction.
#[derive(Debug, Clone, Copy)]
struct Done {
    /// Events that lost their content.
    events: u64,
    /// False if something changed after it was found: it stays until the next scan.
    is_whole: bool,
}

row! {
    /// An inbound message's outcome, as far as it matters here.
    struct Settled from "inbound_messages" {
        outcome: Option<InboundMessageOutcome> as json_opt,
        has_session: bool = "session IS NOT NULL",
    }
}

impl Store {
    /// Erases the data of unknown senders that connectors stored before a time. Returns the number
    /// of events that lost their content. Nothing is erased while another purge or a rebuild runs:
    /// the next call continues.
    ///
    /// # Errors
    /// The store cannot be read or written at this moment.
    pub async fn erase_unknown_senders(&self, before: Timestamp) -> Result<u64, CommitError> {
        let mut erased = 0;
        let mut connector = ConnectorId(Uuid::nil());
        while let Some(scan) = self.next_scan(connector, before).await? {
            connector = scan.connector;
            let Some(events) = self.erase_from(scan).await? else {
                break;
            };
            erased += events;
        }
        Ok(erased)
    }

    /// Erases the results of a scan and of the scans after it. Returns the number of events that
    /// lost their content; none if another purge runs.
    async fn erase_from(&self, mut scan: StreamScan) -> Result<Option<u64>, CommitError> {
        let noted = scan.after;
        let mut erased = 0;
        let mut purging = None;
        loop {
            let found = self.inspect(scan.clone()).await?;
            // During another purge, the results of the scan may be outdated.
            if !found.is_nothing() && purging.is_none() {
                let Some(begun) = self.begin_purging() else {
                    return Ok(None);
                };
                purging = Some(begun);
                continue;
            }
            scan.after = found.seen;
            let is_all = found.is_all;
            let mut is_whole = true;
            if !found.is_nothing() || (is_all && found.seen > noted) {
                let connector = scan.connector;
                let done = self
                    .in_writer(move |sql| transact(sql, |sql| found.erase(sql, connector)))
                    .await?;
                erased += done.events;
                is_whole = done.is_whole;
            }
            if is_all || !is_whole {
                return Ok(Some(erased));
            }
        }
    }

    /// Returns where to scan the stream of the next connector after this one.
    async fn next_scan(
        &self,
        after: ConnectorId,
        before: Timestamp,
    ) -> Result<Option<StreamScan>, CommitError> {
        let next = self.read(move |sql| {
            let found = sql.one::<ConnectorId>(
                "SELECT id FROM connectors WHERE id > ?1 ORDER BY id LIMIT 1",
                [after],
            )?;
            let Some(connector) = found else {
                return Ok(None);
            };
            let after = sql.number(
                "SELECT CAST(value AS INTEGER) FROM meta WHERE name = ?1",
                [place(connector)],
            )?;
            Ok(Some(StreamScan {
                connector,
                after,
                before,
            }))
        });
        Ok(next.await?)
    }

    async fn inspect(&self, scan: StreamScan) -> Result<UnknownSenders, CommitError> {
        Ok(self
            .read(move |sql| UnknownSenders::find(sql, &scan))
            .await?)
    }
}

fn place(connector: ConnectorId) -> String {
    format!("{PLACE}{}", Stream::Connector(connector))
}

impl UnknownSenders {
    fn find(sql: &Sql<'_>, scan: &StreamScan) -> sql::Result<Self> {
        let (page, is_last) = page_of(
            sql,
            select!(
                ScannedEvent,
                "WHERE e.stream = :stream AND e.version > :after ORDER BY e.version LIMIT :limit"
            ),
            named![
                stream = streams::number(sql, Stream::Connector(scan.connector))?,
                after = scan.after,
                limit = EVENTS_READ
            ],
            EVENTS_READ,
            |seen: &ScannedEvent| seen.bytes,
        )?;
        let mut found = Self {
            events: Vec::new(),
            inbound_messages: Vec::new(),
            outbound_messages: Vec::new(),
            room: Room::of_commit(EVENTS_PER_COMMIT_MAX),
            seen: scan.after,
            is_all: is_last,
        };
        for seen in page {
            if found.room.is_full() {
                found.is_all = false;
                break;
            }
            if seen.time >= scan.before || !found.take(sql, &seen)? {
                found.is_all = true;
                break;
            }
            found.seen = seen.version;
        }
        Ok(found)
    }

    /// Adds an event if it concerns unknown senders only. Returns whether the scan continues: it
    /// ends before the first unsettled event.
    fn take(&mut self, sql: &Sql<'_>, seen: &ScannedEvent) -> sql::Result<bool> {
        match &seen.event.0 {
            Some(Event::PairingOffered(it)) if is_open(sql, it)? => return Ok(false),
            Some(Event::PairingOffered(_)) => self.take_event(seen.position),
            Some(Event::PairingSettled(it)) if it.user.is_none() => self.take_event(seen.position),
            Some(Event::ConnectorReceived(ConnectorReceived {
                what: Received::InboundMessage(it),
                ..
            })) => {
                let settled: Option<Settled> =
                    sql.one(select!(Settled, "WHERE id = ?1"), [it.id])?;
                match settled {
                    Some(settled) if settled.outcome.is_none() => return Ok(false),
                    Some(settled) if is_unheard(&settled) => {
                        self.room.take(0);
                        self.inbound_messages.push(seen.position);
                    }
                    Some(_) | None => {}
                }
            }
            Some(Event::OutboundMessageQueued(it)) if is_to_unknown_sender(sql, it)? => {
                if is_under_way(sql, it.outbound_message)? {
                    return Ok(false);
                }
                let outbound_message =
                    outbound_message_of(sql, it.outbound_message, &mut self.room)?;
                self.outbound_messages.extend(outbound_message);
            }
            // Its content is not theirs, or is erased already.
            Some(_) | None => {}
        }
        Ok(true)
    }

    fn take_event(&mut self, position: u64) {
        self.room.take(0);
        self.events.push(position);
    }

    fn is_nothing(&self) -> bool {
        self.events.is_empty()
            && self.inbound_messages.is_empty()
            && self.outbound_messages.is_empty()
    }

    /// Erases the found data, and records the progress of the scan in a connector's stream.
    fn erase(self, sql: &Sql<'_>, connector: ConnectorId) -> sql::Result<Done> {
        let mut tally = Tally::default();
        for position in &self.events {
            erase_event(sql, *position, &mut tally)?;
        }
        for position in &self.inbound_messages {
            erase_inbound_message(sql, *position, &mut tally)?;
        }
        let mut is_whole = true;
        for outbound_message in &self.outbound_messages {
            is_whole &= erase_outbound_message(sql, outbound_message, &mut tally)?;
        }
        if is_whole {
            meta::note(sql, &place(connector), &self.seen.to_string())?;
        }
        let events = tally.erased.events;
        if events > 0 {
            rewrite::due(sql)?;
        }
        Ok(Done { events, is_whole })
    }
}

/// Returns whether a pairing code is the latest one of its sender and is not settled.
fn is_open(sql: &Sql<'_>, it: &PairingOffered) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM pairings WHERE key = ?1 AND code = ?2",
        args![it.key, it.code],
    )
}

/// Returns whether a message is the host's answer to an unknown sender, whose own message may
/// already be erased.
fn is_to_unknown_sender(sql: &Sql<'_>, it: &OutboundMessageQueued) -> sql::Result<bool> {
    let OutboundMessageCause::Host { inbound_message } = &it.cause else {
        return Ok(false);
    };
    let settled: Option<Settled> = sql.one(select!(Settled, "WHERE id = ?1"), [inbound_message])?;
    Ok(settled.as_ref().is_none_or(is_unheard))
}

/// Returns whether a message is being sent.
fn is_under_way(sql: &Sql<'_>, outbound_message: OutboundMessageId) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM outbound_messages WHERE id = ?1 AND state = 'started'",
        [outbound_message],
    )
}

/// Returns whether a message is from an unknown sender, or was refused before it reached a session.
fn is_unheard(settled: &Settled) -> bool {
    settled
        .outcome
        .as_ref()
        .is_some_and(|outcome| match outcome {
            InboundMessageOutcome::Ignored
            | InboundMessageOutcome::Unknown
            | InboundMessageOutcome::Paired => true,
            InboundMessageOutcome::Refused { .. } => !settled.has_session,
            InboundMessageOutcome::Accepted { .. }
            | InboundMessageOutcome::Configured { .. }
            | InboundMessageOutcome::Answered { .. } => false,
        })
}
