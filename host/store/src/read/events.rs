//! Events by position or by stream, snapshots, blobs.

use super::ReadError;
use super::blobs::content;
use super::runs::session_of;
use crate::commit::Snapshot;
use crate::event_row::{EVENT_COLUMNS, EVENTS};
use crate::snapshot::unseal;
use crate::sql::{named, text, unreadable};
use crate::store::Store;
use crate::streams;
use domain::digest::Digest;
use domain::event::Recorded;
use domain::id::{AgentId, RunId, SessionId, Stream};

/// Filter for events. An event has to match every field that is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// About this agent.
    pub agent: Option<AgentId>,
    /// About this session.
    pub session: Option<SessionId>,
    /// About this run.
    pub run: Option<RunId>,
    /// The event's stream.
    pub stream: Option<Stream>,
    /// True to select only events with lines of the ledger: decisions of the boundary, steps that
    /// may have some, components that it admitted, and reads by the operator.
    pub ledger: bool,
}

/// Selects by one indexed condition; the other conditions only filter its results.
macro_rules! found {
    ($indexed:literal, $order:literal) => {
        concat!(
            " WHERE ",
            $indexed,
            " AND position > :after AND (:stream IS NULL OR stream = :stream) AND (:run IS NULL OR \
             run = :run) AND (:session IS NULL OR session = :session) AND (:agent IS NULL OR agent \
             = :agent) AND (NOT :ledger OR kind IN ('boundary.decided.v1', \
             'component.admitted.v1', 'operator.read.v1', 'run.started.v1', 'run.stepped.v1')) \
             ORDER BY ",
            $order,
            " LIMIT :limit"
        )
    };
}

macro_rules! select {
    ($indexed:literal, $order:literal) => {
        text!(
            "SELECT ",
            EVENT_COLUMNS,
            " FROM ",
            EVENTS,
            found!($indexed, $order)
        )
    };
}

const BY_STREAM: &str = select!("stream = :stream", "version");
/// A session's own stream, and the events of other streams about it. Each returns up to the wanted
/// number of positions.
const BY_SESSION: &str = text!(
    "SELECT ",
    EVENT_COLUMNS,
    " FROM ",
    EVENTS,
    " WHERE position IN (SELECT position FROM (SELECT position FROM events",
    found!("stream = :session", "version"),
    ") UNION ALL SELECT position FROM (SELECT position FROM events",
    found!("session = :session AND stream <> session", "position"),
    ")) ORDER BY position LIMIT :limit"
);
const BY_AGENT: &str = select!("agent = :agent", "position");
const BY_LEDGER: &str = select!(
    "kind IN ('boundary.decided.v1', 'component.admitted.v1', 'operator.read.v1', \
     'run.started.v1', 'run.stepped.v1')",
    "position"
);
const BY_POSITION: &str = select!("TRUE", "position");

impl Store {
    /// Events after a position, in order, at most `limit`.
    pub async fn events(
        &self,
        after: u64,
        filter: EventFilter,
        limit: usize,
    ) -> Result<Vec<Recorded>, ReadError> {
        self.read(move |sql| {
            let EventFilter {
                agent,
                mut session,
                run,
                stream,
                ledger,
            } = filter;
            if let (Some(run), None) = (run, session) {
                // A run's events are its session's; there is no index of their own.
                session = session_of(sql, run)?;
                if session.is_none() {
                    return Ok(Vec::new());
                }
            }
            let text = match (stream, session, agent) {
                (Some(_), _, _) => BY_STREAM,
                (None, Some(_), _) => BY_SESSION,
                (None, None, Some(_)) => BY_AGENT,
                (None, None, None) if ledger => BY_LEDGER,
                (None, None, None) => BY_POSITION,
            };
            let mut numbers = [None; 4];
            let wanted = [
                stream,
                run.map(Stream::Run),
                session.map(Stream::Session),
                agent.map(Stream::Agent),
            ];
            for (number, wanted) in numbers.iter_mut().zip(wanted) {
                let Some(wanted) = wanted else { continue };
                *number = streams::number(sql, wanted)?;
                if number.is_none() {
                    return Ok(Vec::new());
                }
            }
            let [stream, run, session, agent] = numbers;
            let params = named![after, stream, run, session, agent, limit, ledger];
            sql.all(text, params)
        })
        .await
    }

    /// A stream's events after a version, in order, at most `limit`.
    pub async fn stream(
        &self,
        stream: Stream,
        after_version: u64,
        limit: usize,
    ) -> Result<Vec<Recorded>, ReadError> {
        self.read(move |sql| {
            let text = text!(
                "SELECT ",
                EVENT_COLUMNS,
                " FROM ",
                EVENTS,
                " WHERE stream = :stream AND version > :after ORDER BY version LIMIT \
                 :limit"
            );
            let after = after_version;
            let stream = streams::number(sql, stream)?;
            sql.all(text, named![stream, after, limit])
        })
        .await
    }

    /// A stream's first event; none of a stream that has no events.
    pub async fn first_of(&self, stream: Stream) -> Result<Option<Recorded>, ReadError> {
        self.point_read(move |sql| {
            let text = text!(
                "SELECT ",
                EVENT_COLUMNS,
                " FROM ",
                EVENTS,
                " WHERE stream = ?1 AND version = 1"
            );
            sql.one::<Recorded>(text, [streams::number(sql, stream)?])
        })
        .await
    }

    /// Returns the newest snapshot of a stream; none if it was damaged, because the events contain
    /// the same data. The caller checks whether its format is still understood.
    pub async fn snapshot(&self, stream: Stream) -> Result<Option<Snapshot>, ReadError> {
        self.read(move |sql| {
            let found = sql.one::<(u64, _, Vec<u8>)>(
                "SELECT version, format, state FROM snapshots WHERE stream = ?1",
                [streams::number(sql, stream)?],
            )?;
            Ok(found.and_then(|(version, format, sealed)| {
                Some(Snapshot {
                    version,
                    format,
                    state: unseal(&sealed)?,
                })
            }))
        })
        .await
    }

    /// The content with this digest, which is checked: damaged content is an error, never an
    /// answer.
    pub async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, ReadError> {
        self.read(move |sql| match content(sql, digest)? {
            Some(bytes) if Digest::of(&bytes) != digest => Err(unreadable(
                0,
                format!("the blob {} is not what its digest says", digest.short()),
            )),
            bytes => Ok(bytes),
        })
        .await
    }
}
