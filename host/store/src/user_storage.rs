//! The bytes that users have brought, of each user and of each API key, counted in the transaction
//! that stores or erases them.
//!
//! A user is charged for the payloads of the events that they caused, for the new content in them,
//! and for the replies remembered under their idempotency keys. Data that tools leave between the
//! segments of their calls in the user's sessions counts too. Other work of agents does not count
//! here: limits of turns bound it. An API key is charged for the part of its user's bytes that was
//! stored under it; each row has the number of its key.

use crate::commit::Key;
use crate::commit::PreparedAppend;
use crate::query::{Query, Value};
use crate::sql::{self, Sql, args, insert};
use domain::event::Event;
use domain::id::SessionId;
use domain::key::KeyId;
use domain::user::UserId;
use std::collections::BTreeMap;

/// The beginning of an actor that is a user.
const USER: &str = "user:";

/// The user who made a commit, with the bytes of its payloads.
pub(crate) struct Brought {
    pub(crate) user: String,
    /// The API key under which it was stored.
    pub(crate) with: Option<NumberedKey>,
    pub(crate) bytes: u64,
}

/// An API key, with the number that represents it in stored rows.
pub(crate) struct NumberedKey {
    pub(crate) id: KeyId,
    pub(crate) number: i64,
}

impl Brought {
    /// Returns the number of the key under which data of this source was stored; none for data that
    /// is not the user's.
    pub(crate) fn number_for(&self, source: &str) -> Option<i64> {
        let with = self.with.as_ref()?;
        (source.strip_prefix(USER)? == self.user).then_some(with.number)
    }
}

/// Returns the user whose events or key a commit has; none for work of the host or of agents. The
/// bytes are those of the payloads of their events and of the reply that is remembered under the
/// key.
pub(crate) fn brought(appends: &[PreparedAppend], key: Option<&Key>) -> Option<Brought> {
    let events = || appends.iter().flat_map(|append| &append.events);
    let actors = events()
        .map(|event| &event.recorded.actor)
        .chain(key.map(|key| &key.source));
    let actor = actors.into_iter().find(|actor| actor.starts_with(USER))?;
    let payloads = events()
        .filter(|event| event.recorded.actor == *actor)
        .map(|event| event.bytes as u64);
    let reply = key
        .filter(|key| key.source == *actor)
        .map(|key| key.reply.len() as u64);
    Some(Brought {
        user: actor.strip_prefix(USER)?.to_owned(),
        with: None,
        bytes: payloads.chain(reply).sum(),
    })
}

/// Returns the data that the tools of sessions left between the segments of their calls, with its
/// bytes, unless a user caused the event.
pub(crate) fn left(appends: &[PreparedAppend]) -> Vec<(SessionId, u64)> {
    let events = appends.iter().flat_map(|append| &append.events);
    let left = events.filter(|event| {
        matches!(event.recorded.event, Some(Event::OperationContinued(_)))
            && !event.recorded.actor.starts_with(USER)
    });
    left.filter_map(|event| Some((event.recorded.subject.session?, event.bytes as u64)))
        .collect()
}

/// Returns the user of a session; none if there is no such session. Its row outlives a purge.
pub(crate) fn user_of(sql: &Sql<'_>, session: SessionId) -> sql::Result<Option<String>> {
    let text = "SELECT user_id FROM sessions WHERE id = ?1";
    sql.one(text, [session])
}

/// Returns the number of a key, which is assigned when data is first stored under it.
pub(crate) fn number_of(sql: &Sql<'_>, key: &KeyId) -> sql::Result<i64> {
    if let Some(number) = read_number(sql, key)? {
        return Ok(number);
    }
    let text = "INSERT INTO key_storage (key_id, bytes) VALUES (?1, 0) RETURNING number";
    let number = sql.one(text, [key.as_str()])?;
    number.ok_or_else(|| sql::Error::misused("there is no row"))
}

/// Returns the number of a key; none while no data was stored under it.
pub(crate) fn read_number(sql: &Sql<'_>, key: &KeyId) -> sql::Result<Option<i64>> {
    let text = "SELECT number FROM key_storage WHERE key_id = ?1";
    sql.one(text, [key.as_str()])
}

/// Adds to the stored bytes of a user.
pub(crate) fn add(sql: &Sql<'_>, user: &str, bytes: u64) -> sql::Result<()> {
    insert!(
        sql,
        user_storage {
            user_id: user,
            bytes
        },
        "ON CONFLICT (user_id) DO UPDATE SET bytes = user_storage.bytes + excluded.bytes"
    )
}

/// Adds to the stored bytes of a key that has a number.
pub(crate) fn add_with(sql: &Sql<'_>, key: &KeyId, bytes: u64) -> sql::Result<()> {
    let text = "UPDATE key_storage SET bytes = bytes + ?2 WHERE key_id = ?1";
    sql.write(text, args![key.as_str(), bytes])
}

/// Data that is deleted: its source, its bytes, and the number of the key under which it was
/// stored.
type Erased = (String, u64, Option<i64>);

/// Counts the payload of an event that is about to be erased.
pub(crate) fn erases_event(sql: &Sql<'_>, position: u64) -> sql::Result<()> {
    let text = "SELECT CASE WHEN kind = 'operation.continued.v1' AND actor NOT LIKE 'user:%' THEN \
                coalesce((SELECT 'user:' || user_id FROM streams CROSS JOIN sessions ON sessions.id = \
                streams.stream_id WHERE streams.number = events.session), actor) ELSE actor END, bytes, brought_with FROM events \
                WHERE position = ?1 AND payload IS NOT NULL";
    let gone: Option<Erased> = sql.one(text, [position])?;
    take_all(sql, gone.as_slice())
}

/// Counts content that is about to be deleted.
pub(crate) fn erases_blob(sql: &Sql<'_>, digest: &[u8; 32]) -> sql::Result<()> {
    let text = "SELECT 'user:' || brought_by, length(bytes), brought_with FROM blobs WHERE digest \
                = ?1 AND brought_by IS NOT NULL";
    let gone: Option<Erased> = sql.one(text, [digest])?;
    take_all(sql, gone.as_slice())
}

/// Runs a statement that deletes requests, subtracts the bytes of their replies, and returns the
/// number of requests. For each request the statement has to return the source, the length of the
/// reply, and the number of its key.
pub(crate) fn erases_replies(
    sql: &Sql<'_>,
    text: &'static str,
    params: impl sql::Args,
) -> sql::Result<u64> {
    let gone: Vec<Erased> = sql.all(text, params)?;
    take_all(sql, &gone)?;
    Ok(gone.len() as u64)
}

/// Subtracts deleted data from its users and its keys, once for each of them.
fn take_all(sql: &Sql<'_>, gone: &[Erased]) -> sql::Result<()> {
    let mut of_users: BTreeMap<&str, u64> = BTreeMap::new();
    let mut of_keys: BTreeMap<i64, u64> = BTreeMap::new();
    for (source, bytes, with) in gone {
        if let Some(user) = source.strip_prefix(USER) {
            *of_users.entry(user).or_default() += bytes;
        }
        if let Some(number) = with {
            *of_keys.entry(*number).or_default() += bytes;
        }
    }
    let text = "UPDATE user_storage SET bytes = CASE WHEN bytes > ?2 THEN bytes - ?2 ELSE 0 END \
                WHERE user_id = ?1";
    for (user, bytes) in of_users {
        sql.write(text, args![user, bytes])?;
    }
    let text = "UPDATE key_storage SET bytes = CASE WHEN bytes > ?2 THEN bytes - ?2 ELSE 0 END \
                WHERE number = ?1";
    of_keys
        .into_iter()
        .try_for_each(|(number, bytes)| sql.write(text, args![number, bytes]))
}

/// The query for the bytes that a user has brought and that are still there.
pub(crate) fn stored_bytes_query(user: &UserId) -> Query<'_> {
    Query::new(
        "SELECT bytes FROM user_storage WHERE user_id = ?1",
        [Value::text(user.as_str())],
    )
}

/// The query for the bytes that were stored under a key and still exist.
pub(crate) fn stored_bytes_with_query(key: &KeyId) -> Query<'_> {
    Query::new(
        "SELECT bytes FROM key_storage WHERE key_id = ?1",
        [Value::text(key.as_str())],
    )
}

impl crate::Store {
    /// The bytes that a user has stored and that still exist: payloads of their events, new content
    /// in them, and data that tools left in their sessions.
    pub async fn stored_bytes(&self, user: &UserId) -> Result<u64, crate::ReadError> {
        let user = user.clone();
        self.point_read(move |sql| sql.ask(&stored_bytes_query(&user))?.number())
            .await
    }

    /// The part of [`Self::stored_bytes`] that was stored under a key ([`crate::under_api_key`]).
    pub async fn stored_bytes_with(&self, key: &KeyId) -> Result<u64, crate::ReadError> {
        let key = key.clone();
        self.point_read(move |sql| sql.ask(&stored_bytes_with_query(&key))?.number())
            .await
    }
}
