//! One commit inside the writer's transaction: key, guards, blobs, events with their projections, snapshots.

use super::{State, guards};
use crate::backup;
use crate::commit::{Clash, Committed, Conflict, Expected, Key, Snapshot};
use crate::fault;
use crate::prepared::{Prepared, PreparedAppend, PreparedEvent};
use crate::projections::{is_deaf, project};
use crate::purge;
use crate::snapshot::seal;
use crate::sql::{Columns, Sql, int};
use crate::user_storage;
use domain::chain::Link;
use domain::digest::Digest;
use domain::event::{Event, Recorded};
use domain::id::{SessionId, Stream};
use domain::limits::IDEMPOTENCY_MS;
use domain::queue::Kind;
use domain::time::Timestamp;
use rusqlite::params;

/// Idempotency keys that are forgotten with one commit that brings another.
const KEYS_PRUNED_MAX: i64 = 16;

/// The end of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last event's position; 0 before the first.
    pub(crate) position: u64,
    /// The last event's hash.
    pub(crate) hash: Digest,
}

/// Why a commit does not land.
#[derive(Debug)]
pub(super) enum Refused {
    Conflict(Conflict),
    Replayed(Vec<u8>),
    KeyReused,
    /// The database takes no such values, whatever it holds.
    Unstorable(rusqlite::Error),
    Storage(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error)
    }
}

/// Writes a commit. When it is refused, the caller undoes what it has written so far.
pub(super) fn apply(sql: &Sql<'_>, state: &mut State, prepared: Prepared) -> Result<Committed, Refused> {
    let Prepared { appends, guards, blobs, key, snapshots, events: _, bytes: _ } = prepared;
    let time = appends.iter().flat_map(|append| &append.events).map(|event| event.new.time).max();
    state.latest = time.unwrap_or(state.latest);
    if let Some(key) = &key {
        remember(sql, key, &about(key, &appends), state.latest)?;
    }
    for guard in guards {
        guards::check(sql, guard)?;
    }
    let mut brought = user_storage::brought(&appends);
    let mut new_blobs = Vec::new();
    for (digest, bytes) in blobs {
        let by = brought.as_ref().map(|brought| &brought.user);
        let text = "INSERT INTO blobs (digest, bytes, brought_by) VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO NOTHING";
        if sql.execute(text, params![digest.0, bytes, by])? > 0 {
            new_blobs.push(digest);
            if let Some(brought) = &mut brought {
                brought.bytes += bytes.len() as u64;
            }
        }
    }
    if let Some(brought) = &brought {
        user_storage::add(sql, brought)?;
    }
    let first_position = state.head.position + 1;
    let mut versions: Vec<(Stream, u64)> = Vec::with_capacity(appends.len());
    let accepted = accepted_for(&appends);
    for append in appends {
        let stream = append.stream;
        let version = self::append(sql, &mut state.head, append)?;
        match versions.iter_mut().find(|(known, _)| *known == stream) {
            Some((_, known)) => *known = version,
            None => versions.push((stream, version)),
        }
    }
    purge::look_at_unnamed(sql, &new_blobs)?;
    for (stream, snapshot) in &snapshots {
        keep(sql, *stream, snapshot)?;
    }
    let mut waits_unheard = !accepted.is_empty();
    for session in accepted {
        waits_unheard = waits_unheard && is_deaf(sql, session)?;
    }
    Ok(Committed { first_position, last_position: state.head.position, versions, waits_unheard })
}

/// The sessions of the inputs that are accepted: none when one of them ends the run that is open.
fn accepted_for(appends: &[PreparedAppend]) -> Vec<SessionId> {
    let events = appends.iter().flat_map(|append| &append.events).map(|event| &event.new.event);
    let accepted = events.filter_map(|event| match event {
        Event::InputAccepted(accepted) => Some(accepted),
        _ => None,
    });
    let accepted: Option<Vec<SessionId>> = accepted.map(|it| (it.waits_for() != Kind::Interrupt).then_some(it.session)).collect();
    accepted.unwrap_or_default()
}

/// What a request is about: as it says, or the session of its events, or their agent; nothing, when it is about none.
fn about(key: &Key, appends: &[PreparedAppend]) -> String {
    let subjects = || appends.iter().flat_map(|append| &append.events).map(|event| event.new.subject);
    let session = key.about.or_else(|| subjects().find_map(|subject| subject.session)).map(|session| session.to_string());
    session.or_else(|| subjects().find_map(|subject| subject.agent).map(|agent| agent.to_string())).unwrap_or_default()
}

/// Stores the key, or says what became of the request that brought it before.
fn remember(sql: &Sql<'_>, key: &Key, about: &str, now: Timestamp) -> Result<(), Refused> {
    let oldest = int(now.0.saturating_sub(IDEMPOTENCY_MS));
    let known = sql.row(
        "SELECT request, reply FROM idempotency WHERE source = ?1 AND key = ?2 AND time >= ?3",
        params![key.source, key.key, oldest],
        |row| Ok((row.digest(0)?, row.get::<_, Vec<u8>>(1)?)),
    )?;
    match known {
        Some((request, reply)) if request == key.request => return Err(Refused::Replayed(reply)),
        Some(_) => return Err(Refused::KeyReused),
        None => {}
    }
    sql.execute(
        "DELETE FROM idempotency WHERE (source, key) IN (SELECT source, key FROM idempotency WHERE time < ?1 ORDER BY time LIMIT ?2)",
        params![oldest, KEYS_PRUNED_MAX],
    )?;
    sql.execute(
        "INSERT OR REPLACE INTO idempotency (source, key, request, reply, time, about) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![key.source, key.key, key.request.0, key.reply, int(now.0), about],
    )?;
    Ok(())
}

/// Appends events to a stream; the version it then has.
fn append(sql: &Sql<'_>, head: &mut Head, append: PreparedAppend) -> Result<u64, Refused> {
    let PreparedAppend { stream, name, expected, events } = append;
    let found =
        sql.row("SELECT version FROM events WHERE stream = ?1 ORDER BY version DESC LIMIT 1", [&name], |row| row.uint(0))?.unwrap_or(0);
    let wanted = match expected {
        Expected::Any => found,
        Expected::New => 0,
        Expected::Version(version) => version,
    };
    if found != wanted {
        let detail = format!("expected version {wanted}, found {found}");
        return Err(Refused::Conflict(Conflict { clash: Clash::Stream(stream), detail }));
    }
    let mut version = found;
    for event in events {
        version += 1;
        insert(sql, head, &name, version, event)?;
    }
    Ok(version)
}

fn insert(sql: &Sql<'_>, head: &mut Head, stream: &str, version: u64, event: PreparedEvent) -> Result<(), Refused> {
    let PreparedEvent { new, kind, payload, payload_digest } = event;
    let position = head.position + 1;
    let id = new.id.to_string();
    let [agent, session, run] = [
        new.subject.agent.map(|id| id.to_string()),
        new.subject.session.map(|id| id.to_string()),
        new.subject.run.map(|id| id.to_string()),
    ];
    let [causation, correlation] = [new.causation.map(|id| id.to_string()), new.correlation.map(|id| id.to_string())];
    let link = Link {
        previous: head.hash,
        position,
        stream,
        version,
        id: &id,
        kind: &kind,
        actor: &new.actor,
        time: new.time.0,
        causation: causation.as_deref().unwrap_or_default(),
        correlation: correlation.as_deref().unwrap_or_default(),
        subject: [agent.as_deref().unwrap_or_default(), session.as_deref().unwrap_or_default(), run.as_deref().unwrap_or_default()],
        payload: payload_digest,
    };
    let hash = link.hash();
    sql.execute(
        "INSERT INTO events (position, stream, version, id, kind, agent, session, run, actor, causation, correlation, time, salt, payload, \
         payload_digest, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        params![
            int(position),
            stream,
            int(version),
            id,
            kind,
            agent,
            session,
            run,
            new.actor,
            causation,
            correlation,
            int(new.time.0),
            new.salt.0,
            payload,
            payload_digest.0,
            hash.0,
        ],
    )?;
    if let Event::HostRestored(_) = &new.event {
        // It has been seen to: from here on this is a store like any other.
        backup::unmark(sql)?;
    }
    purge::told(sql, &new.event)?;
    *head = Head { position, hash };
    let recorded = Recorded {
        position,
        stream: stream.to_owned(),
        version,
        id: new.id,
        kind,
        event: Some(new.event),
        subject: new.subject,
        actor: new.actor,
        causation: new.causation,
        correlation: new.correlation,
        time: new.time,
        hash,
    };
    project(sql, &recorded)?;
    Ok(())
}

/// Keeps a snapshot, unless a newer one is there.
fn keep(sql: &Sql<'_>, stream: Stream, snapshot: &Snapshot) -> Result<(), Refused> {
    sql.execute(
        "INSERT INTO snapshots (stream, version, format, state) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (stream) DO UPDATE \
         SET version = excluded.version, format = excluded.format, state = excluded.state WHERE excluded.version >= version",
        params![stream.to_string(), int(snapshot.version), snapshot.format, seal(&snapshot.state)],
    )?;
    fault::point("store.snapshot");
    Ok(())
}
