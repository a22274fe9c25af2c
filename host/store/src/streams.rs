//! Streams by number: events, snapshots and references to blobs name a stream by its number. A
//! stream gets its number with the first event in it or about it, and keeps it.

use crate::sql::{self, Cells, FromRow, Sql, Value, args};
use domain::id::Stream;
use uuid::Uuid;

/// The kind of the one stream that has no id.
const HOST: &str = "host";

/// A stream as its row has it: the kind and the id, which the host's own has not.
fn parts(stream: &Stream) -> (&'static str, &[u8]) {
    match stream {
        Stream::Agent(id) => ("agent", id.0.as_bytes()),
        Stream::Session(id) => ("session", id.0.as_bytes()),
        Stream::Run(id) => ("run", id.0.as_bytes()),
        Stream::Trigger(id) => ("trigger", id.0.as_bytes()),
        Stream::Connector(id) => ("connector", id.0.as_bytes()),
        Stream::Host => (HOST, &[]),
    }
}

/// Returns the number of a stream; none while the stream has no event.
pub(crate) fn number(sql: &Sql<'_>, stream: Stream) -> sql::Result<Option<i64>> {
    let (kind, id) = parts(&stream);
    let text = "SELECT number FROM streams WHERE stream_kind = ?1 AND stream_id = ?2";
    sql.one(text, args![kind, id])
}

/// Gives a stream its number.
pub(super) fn add(sql: &Sql<'_>, stream: Stream) -> sql::Result<i64> {
    let (kind, id) = parts(&stream);
    let text = "INSERT INTO streams (stream_kind, stream_id) VALUES (?1, ?2) RETURNING number";
    let number = sql.one(text, args![kind, id])?;
    number.ok_or_else(|| sql::Error::misused("there is no row"))
}

/// The name of a stream, read from the columns `stream_kind` and `stream_id`; none if they are no
/// stream's.
pub(crate) struct Named(pub(crate) Option<String>);

impl FromRow for Named {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let kind = cells.next_value("stream_kind")?;
        let id = cells.next_value("stream_id")?;
        Ok(Self(match (&kind, &id) {
            (Value::Text(kind), Value::Blob(id)) => name(kind, id),
            _ => None,
        }))
    }
}

/// Returns the stream as text. This runs for every event that is read.
fn name(kind: &str, id: &[u8]) -> Option<String> {
    if id.is_empty() {
        return (kind == HOST).then(|| HOST.to_owned());
    }
    let id = Uuid::from_slice(id).ok()?;
    let mut buffer = Uuid::encode_buffer();
    let id = id.hyphenated().encode_lower(&mut buffer);
    Some([kind, "/", id].concat())
}

#[cfg(test)]
mod tests {
    use super::{name, parts};
    use domain::id::{AgentId, ConnectorId, RunId, SessionId, Stream, TriggerId};
    use uuid::Uuid;

    #[test]
    fn a_stream_is_named_as_everywhere_and_nothing_else_has_its_name() {
        let id = Uuid::now_v7();
        for stream in [
            Stream::Agent(AgentId(id)),
            Stream::Session(SessionId(id)),
            Stream::Run(RunId(id)),
            Stream::Trigger(TriggerId(id)),
            Stream::Connector(ConnectorId(id)),
            Stream::Host,
        ] {
            let (kind, id) = parts(&stream);
            assert_eq!(name(kind, id), Some(stream.to_string()));
            assert_eq!(
                name(&stream.to_string(), &[]).is_some(),
                stream == Stream::Host
            );
        }
        assert_eq!(name("session", &[0]), None);
    }
}
