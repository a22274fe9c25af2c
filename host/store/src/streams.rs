//! Streams by number: events, snapshots and references to blobs name a stream by the number that it
//! got when an event was in it or about it first. A number stays for good.

use crate::sql::{self, Cells, FromRow, Sql, args};
use domain::id::{AgentId, ConnectorId, RunId, SessionId, Stream, TriggerId};
use uuid::Uuid;

/// A stream as its row has it: the kind and the id, which the host's own has not.
fn parts(stream: &Stream) -> (&'static str, &[u8]) {
    match stream {
        Stream::Agent(id) => ("agent", id.0.as_bytes()),
        Stream::Session(id) => ("session", id.0.as_bytes()),
        Stream::Run(id) => ("run", id.0.as_bytes()),
        Stream::Trigger(id) => ("trigger", id.0.as_bytes()),
        Stream::Connector(id) => ("connector", id.0.as_bytes()),
        Stream::Host => ("host", &[]),
    }
}

/// Returns the number of a stream; none while nothing was said of it.
pub(crate) fn number(sql: &Sql<'_>, stream: Stream) -> sql::Result<Option<i64>> {
    let (kind, id) = parts(&stream);
    let text = "SELECT number FROM streams WHERE kind = ?1 AND id = ?2";
    sql.one(text, args![kind, id])
}

/// Gives a stream its number.
pub(super) fn add(sql: &Sql<'_>, stream: Stream) -> sql::Result<i64> {
    let (kind, id) = parts(&stream);
    let text = "INSERT INTO streams (kind, id) VALUES (?1, ?2) RETURNING number";
    let number = sql.one(text, args![kind, id])?;
    number.ok_or_else(|| sql::Error::misused("there is no row"))
}

/// A stream, read from the columns `stream_kind` and `stream_id`; none if they are no stream's.
pub(crate) struct Named(pub(crate) Option<Stream>);

impl FromRow for Named {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let kind = cells
            .next::<Option<String>>("stream_kind")?
            .unwrap_or_default();
        let id = cells.next_bytes("stream_id")?.unwrap_or_default();
        let is_none = id.is_empty();
        Ok(Self(match (kind.as_str(), Uuid::from_slice(&id).ok()) {
            ("agent", Some(id)) => Some(Stream::Agent(AgentId(id))),
            ("session", Some(id)) => Some(Stream::Session(SessionId(id))),
            ("run", Some(id)) => Some(Stream::Run(RunId(id))),
            ("trigger", Some(id)) => Some(Stream::Trigger(TriggerId(id))),
            ("connector", Some(id)) => Some(Stream::Connector(ConnectorId(id))),
            ("host", None) if is_none => Some(Stream::Host),
            _ => None,
        }))
    }
}
