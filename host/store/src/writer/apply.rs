//! One commit inside the writer's transaction: key, guards, blobs, events with their projections,
//! snapshots.

use super::guards::{Refused, keys_since};
use super::index::is_found;
use super::{State, guards};
use crate::backup;
use crate::commit::{Clash, Committed, Conflict, Expected, Key, Snapshot};
use crate::commit::{Prepared, PreparedAppend, PreparedEvent};
use crate::event_row::Head;
use crate::fault;
use crate::projections::project;
use crate::purge;
use crate::snapshot::seal;
use crate::sql::{self, Sql, args, insert, named};
use crate::texts;
use crate::user_storage::{self, Brought};
use domain::chain::Link;
use domain::digest::Digest;
use domain::event::{Event, Subject};
use domain::id::{SessionId, Stream};
use domain::queue::WaitKind;
use domain::time::Timestamp;

/// A commit that does not land.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) refused: Refused,
    /// True if part of it was already written, which the caller has to undo.
    pub(super) wrote: bool,
}

/// Writes a commit. All possible refusals are checked first, so that a refused commit has mostly
/// written nothing.
pub(super) fn apply(
    sql: &Sql<'_>,
    state: &mut State,
    prepared: &mut Prepared,
) -> Result<Committed, Stopped> {
    let versions = inspect(sql, state, prepared).map_err(|refused| Stopped {
        refused,
        wrote: false,
    })?;
    write(sql, state, prepared, &versions).map_err(|refused| Stopped {
        refused,
        wrote: true,
    })
}

/// Looks at the key, the guards and the streams of a commit; the version of each stream that it
/// appends to, append by append.
fn inspect(sql: &Sql<'_>, state: &mut State, prepared: &Prepared) -> Result<Vec<u64>, Refused> {
    let time = prepared
        .appends
        .iter()
        .flat_map(|append| &append.events)
        .map(|event| event.recorded.time)
        .max();
    state.latest = time.unwrap_or(state.latest);
    if let Some(key) = &prepared.key {
        check_key(sql, key, keys_since(state.latest, &state.kept_longer_ms))?;
    }
    for guard in &prepared.guards {
        guards::check(sql, &mut state.cache, guard)?;
    }
    let mut versions = Vec::with_capacity(prepared.appends.len());
    for (index, append) in prepared.appends.iter().enumerate() {
        let earlier = prepared
            .appends
            .iter()
            .zip(&versions)
            .take(index)
            .rev()
            .find(|(earlier, _)| earlier.stream == append.stream);
        let found = match earlier {
            Some((earlier, version)) => version + earlier.events.len() as u64,
            None => state.cache.version(sql, append.stream)?,
        };
        let wanted = match append.expected {
            Expected::Any => found,
            Expected::New => 0,
            Expected::Version(version) => version,
        };
        if found != wanted {
            let detail = format!("expected version {wanted}, found {found}");
            return Err(Refused::Conflict(Conflict {
                clash: Clash::Stream(append.stream),
                detail,
            }));
        }
        versions.push(found);
    }
    Ok(versions)
}

fn write(
    sql: &Sql<'_>,
    state: &mut State,
    prepared: &mut Prepared,
    found: &[u64],
) -> Result<Committed, Refused> {
    let Prepared {
        appends,
        blobs,
        key,
        snapshots,
        api_key,
        guards: _,
        events: _,
        bytes: _,
    } = prepared;
    let mut brought = user_storage::brought(appends, key.as_ref());
    if let (Some(brought), Some(api_key)) = (&mut brought, api_key) {
        brought.with = Some(state.cache.numbered(sql, api_key)?);
    }
    if let Some(key) = key {
        let about = about(key, appends);
        remember(sql, key, &about, state.latest, brought.as_ref())?;
        state.keys.remembered();
    }
    let new_blobs = write_blobs(sql, blobs, brought.as_mut())?;
    let first_position = state.head.position + 1;
    let mut versions: Vec<(Stream, u64)> = Vec::with_capacity(appends.len());
    for (append, found) in appends.iter_mut().zip(found) {
        let stream = append.stream;
        let version = found + append.events.len() as u64;
        let number = state.cache.number(sql, stream)?;
        for (event, version) in append.events.iter_mut().zip(found + 1..) {
            let place = Place {
                stream: number,
                version,
            };
            insert(sql, state, place, event, brought.as_ref())?;
        }
        state.cache.set_version(stream, version);
        match versions.iter_mut().find(|(known, _)| *known == stream) {
            Some((_, known)) => *known = version,
            None => versions.push((stream, version)),
        }
    }
    purge::inspect_unnamed(sql, &new_blobs)?;
    for (stream, snapshot) in snapshots {
        keep(sql, state.cache.number(sql, *stream)?, snapshot)?;
    }
    let waits_unheard = waits_unheard(sql, state, appends)?;
    if let Some(brought) = brought {
        state.cache.bring(brought);
    }
    for (session, bytes) in user_storage::left(appends) {
        let user = user_storage::user_of(sql, session)?;
        if let Some(user) = user {
            let with = None;
            state.cache.bring(Brought { user, with, bytes });
        }
    }
    Ok(Committed {
        first_position,
        last_position: state.head.position,
        versions,
        waits_unheard,
    })
}

/// Stores new content; returns its digests.
fn write_blobs(
    sql: &Sql<'_>,
    blobs: &[(Digest, Vec<u8>)],
    mut brought: Option<&mut Brought>,
) -> sql::Result<Vec<Digest>> {
    let mut new = Vec::new();
    for (digest, bytes) in blobs {
        let by = brought.as_ref().map(|brought| &brought.user);
        let with = brought
            .as_ref()
            .and_then(|brought| brought.with.as_ref())
            .map(|key| key.number);
        let text = "INSERT INTO blobs (digest, bytes, brought_by, brought_with) VALUES (:digest, \
                    :bytes, :by, :with) ON CONFLICT (digest) DO NOTHING";
        let params = named![digest, bytes, by, with];
        if sql.execute(text, params)? > 0 {
            new.push(*digest);
            if let Some(brought) = &mut brought {
                brought.bytes += bytes.len() as u64;
            }
        }
    }
    Ok(new)
}

/// Returns the sessions of the accepted inputs; none when one of the inputs ends the open run.
fn accepted_for(appends: &[PreparedAppend]) -> Vec<SessionId> {
    let events = appends
        .iter()
        .flat_map(|append| &append.events)
        .filter_map(|event| event.recorded.event.as_ref());
    let accepted = events.filter_map(|event| match event {
        Event::InputAccepted(accepted) => Some(accepted),
        _ => None,
    });
    let accepted: Option<Vec<SessionId>> = accepted
        .map(|it| (it.waits_for() != WaitKind::Interrupt).then_some(it.session))
        .collect();
    accepted.unwrap_or_default()
}

/// Returns the subject of a request: the one that the key names, or the session of its events, or
/// their agent. Empty if there is no subject.
fn about(key: &Key, appends: &[PreparedAppend]) -> String {
    let subjects = || {
        appends
            .iter()
            .flat_map(|append| &append.events)
            .map(|event| event.recorded.subject)
    };
    let session = key
        .about
        .or_else(|| subjects().find_map(|subject| subject.session))
        .map(|session| session.to_string());
    session
        .or_else(|| {
            subjects()
                .find_map(|subject| subject.agent)
                .map(|agent| agent.to_string())
        })
        .unwrap_or_default()
}

/// Reports the result of an earlier request with the same key, if there was one since a time.
fn check_key(sql: &Sql<'_>, key: &Key, since: Timestamp) -> Result<(), Refused> {
    let oldest = since;
    let known = sql.one::<(Digest, Vec<u8>)>(
        "SELECT request, reply FROM idempotency WHERE source = :source AND key = :key AND time >= \
         :time",
        named![source = key.source, key = key.key, time = oldest],
    )?;
    match known {
        Some((request, reply)) if request == key.request => Err(Refused::Replayed(reply)),
        Some(_) => Err(Refused::KeyReused),
        None => Ok(()),
    }
}

/// Stores the key. An expired one is removed first, so that its reply's bytes are released.
fn remember(
    sql: &Sql<'_>,
    key: &Key,
    about: &str,
    now: Timestamp,
    brought: Option<&Brought>,
) -> sql::Result<()> {
    let expired = "DELETE FROM idempotency WHERE source = ?1 AND key = ?2 RETURNING source, \
                   length(reply), brought_with";
    user_storage::erases_replies(sql, expired, args![key.source, key.key])?;
    insert!(
        sql,
        idempotency {
            source: key.source,
            key: key.key,
            request: key.request,
            reply: key.reply,
            time: now,
            about,
            brought_with: brought.and_then(|brought| brought.number_for(&key.source))
        }
    )
}

/// Returns whether inputs are accepted, and all of them for sessions that hear of none now.
fn waits_unheard(
    sql: &Sql<'_>,
    state: &mut State,
    appends: &[PreparedAppend],
) -> sql::Result<bool> {
    let accepted = accepted_for(appends);
    for session in &accepted {
        let status = state.cache.session_status(sql, *session)?;
        if !status.is_some_and(|status| status.is_deaf) {
            return Ok(false);
        }
    }
    Ok(!accepted.is_empty())
}

/// The place of an event: the number of its stream, and its version there.
#[derive(Clone, Copy)]
struct Place {
    stream: i64,
    version: u64,
}

impl PreparedEvent {
    /// Returns the hash of the event behind another, at a position.
    fn hash_behind(&self, previous: Digest, position: u64, version: u64) -> Digest {
        let Self { recorded, ids, .. } = self;
        let link = Link {
            previous,
            position,
            stream: &recorded.stream,
            version,
            id: &ids.event,
            kind: &recorded.kind,
            actor: &recorded.actor,
            time: recorded.time.0,
            causation: ids.causation.as_deref().unwrap_or_default(),
            correlation: ids.correlation.as_deref().unwrap_or_default(),
            subject: [&ids.agent, &ids.session, &ids.run]
                .map(|id| id.as_deref().unwrap_or_default()),
            payload: self.payload_digest,
        };
        link.hash()
    }
}

/// Appends an event to its stream, with all that follows from it.
fn insert(
    sql: &Sql<'_>,
    state: &mut State,
    Place { stream, version }: Place,
    event: &mut PreparedEvent,
    brought: Option<&Brought>,
) -> Result<(), Refused> {
    let position = state.head.position + 1;
    let hash = event.hash_behind(state.head.hash, position, version);
    let PreparedEvent {
        recorded,
        ids: _,
        salt,
        payload,
        payload_digest: _,
        bytes,
        about,
    } = event;
    let Subject {
        agent,
        session,
        run,
    } = recorded.subject;
    let mut number = |of: Option<Stream>| of.map(|of| state.cache.number(sql, of)).transpose();
    insert!(
        sql,
        events {
            position,
            stream,
            version,
            id: recorded.id,
            kind: recorded.kind,
            agent: number(agent.map(Stream::Agent))?,
            session: number(session.map(Stream::Session))?,
            run: number(run.map(Stream::Run))?,
            actor: recorded.actor,
            causation: recorded.causation,
            correlation: recorded.correlation,
            time: recorded.time,
            salt: salt.0,
            payload: payload.packed,
            hash,
            brought_with: brought.and_then(|brought| brought.number_for(&recorded.actor)),
            about,
            bytes: *bytes
        }
    )?;
    texts::keep(sql, &payload.apart)?;
    state.head = Head { position, hash };
    recorded.position = position;
    recorded.version = version;
    recorded.hash = hash;
    if let Some(event) = &recorded.event {
        note(sql, event)?;
    }
    fault::project(recorded.event.as_ref());
    fault::refuse(recorded.event.as_ref())?;
    project(sql, recorded, stream)?;
    state.cache.follow(sql, recorded)?;
    state.unindexed += u64::from(is_found(recorded));
    Ok(())
}

/// Updates the store's metadata from an event about the store itself.
fn note(sql: &Sql<'_>, event: &Event) -> sql::Result<()> {
    if matches!(event, Event::HostRestored(_)) {
        // The restore is settled: from here on this is a store like any other.
        backup::unmark(sql)?;
    }
    purge::note(sql, event)
}

/// Keeps a snapshot, unless a newer one is there.
fn keep(sql: &Sql<'_>, stream: i64, snapshot: &Snapshot) -> Result<(), Refused> {
    insert!(
        sql,
        snapshots {
            stream,
            version: snapshot.version,
            format: snapshot.format,
            state: seal(&snapshot.state)
        },
        "ON CONFLICT (stream) DO UPDATE SET version = excluded.version, format = excluded.format, \
         state = excluded.state WHERE excluded.version >= version"
    )?;
    fault::point("store.snapshot");
    Ok(())
}
