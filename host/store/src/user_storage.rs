//! The bytes that users have brought, counted in the transaction that stores or erases them.
//!
//! A user's are the payloads of the events that they caused, the content that came with them and
//! was not there before, and the replies that are remembered under their keys. Work of agents is
//! not counted here: limits of turns bound it.

use crate::commit::Key;
use crate::prepared::PreparedAppend;
use crate::query::{Query, Value};
use crate::sql::{Columns, Sql, int};
use domain::user::UserId;
use rusqlite::params;
use std::collections::BTreeMap;

/// The beginning of an actor that is a user.
const USER: &str = "user:";

/// The user who made a commit, with the bytes of its payloads.
pub(crate) struct Brought {
    pub(crate) user: String,
    pub(crate) bytes: u64,
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
        .map(|event| event.payload.len() as u64);
    let reply = key
        .filter(|key| key.source == *actor)
        .map(|key| key.reply.len() as u64);
    Some(Brought {
        user: actor.strip_prefix(USER)?.to_owned(),
        bytes: payloads.chain(reply).sum(),
    })
}

/// Counts what was stored.
pub(crate) fn add(sql: &Sql<'_>, brought: &Brought) -> rusqlite::Result<()> {
    let text = "INSERT INTO user_storage (user_id, bytes) VALUES (?1, ?2) \
                ON CONFLICT (user_id) DO UPDATE SET bytes = user_storage.bytes + excluded.bytes";
    sql.write(text, params![brought.user, int(brought.bytes)])
}

/// Counts the payload of an event that is about to be erased.
pub(crate) fn erases_event(sql: &Sql<'_>, position: u64) -> rusqlite::Result<()> {
    let text =
        "SELECT actor, length(payload) FROM events WHERE position = ?1 AND payload IS NOT NULL";
    let found = sql.row(text, [int(position)], |row| {
        Ok((row.get::<_, String>(0)?, row.uint(1)?))
    })?;
    match found
        .as_ref()
        .and_then(|(actor, bytes)| Some((actor.strip_prefix(USER)?, *bytes)))
    {
        Some((user, bytes)) => take(sql, user, bytes),
        None => Ok(()),
    }
}

/// Counts content that is about to be deleted.
pub(crate) fn erases_blob(sql: &Sql<'_>, digest: &[u8; 32]) -> rusqlite::Result<()> {
    let text =
        "SELECT brought_by, length(bytes) FROM blobs WHERE digest = ?1 AND brought_by IS NOT NULL";
    match sql.row(text, [digest], |row| {
        Ok((row.get::<_, String>(0)?, row.uint(1)?))
    })? {
        Some((user, bytes)) => take(sql, &user, bytes),
        None => Ok(()),
    }
}

/// Runs a statement that deletes requests, counts their replies' bytes as gone, and returns the
/// number of requests. The statement has to return the source and the length of the reply of each.
pub(crate) fn erases_replies(
    sql: &Sql<'_>,
    text: &'static str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<u64> {
    let gone = sql.rows(text, params, |row| {
        Ok((row.get::<_, String>(0)?, row.uint(1)?))
    })?;
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for (source, reply) in &gone {
        if let Some(user) = source.strip_prefix(USER) {
            *bytes.entry(user).or_default() += reply;
        }
    }
    bytes
        .into_iter()
        .try_for_each(|(user, bytes)| take(sql, user, bytes))?;
    Ok(gone.len() as u64)
}

fn take(sql: &Sql<'_>, user: &str, bytes: u64) -> rusqlite::Result<()> {
    let text = "UPDATE user_storage SET bytes = CASE WHEN bytes > ?2 THEN bytes - ?2 ELSE 0 END \
                WHERE user_id = ?1";
    sql.write(text, params![user, int(bytes)])
}

/// The query for the bytes that a user has brought and that are still there.
pub(crate) fn stored_bytes_query(user: &UserId) -> Query<'_> {
    Query::new(
        "SELECT bytes FROM user_storage WHERE user_id = ?1",
        [Value::text(user.as_str())],
    )
}

impl crate::Store {
    /// The bytes that a user has brought and that are still there: payloads of their events, and
    /// content that came with them first.
    pub async fn stored_bytes(&self, user: &UserId) -> Result<u64, crate::ReadError> {
        let user = user.clone();
        self.point_read(move |sql| sql.ask(&stored_bytes_query(&user))?.number())
            .await
    }
}
