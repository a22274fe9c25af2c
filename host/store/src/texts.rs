//! Long texts, each stored once for as long as any payload or message has it.

use crate::payload::{self, Apart, Payload};
use crate::sql::{self, Cells, FromRow, Sql, args, to_json, unreadable};
use domain::digest::Digest;
use domain::id::RunId;
use domain::message::MessageId;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// JSON in its stored form.
pub(crate) struct Packed<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRow for Packed<T> {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let packed: Vec<u8> = cells.unnamed()?;
        unpacked(cells.sql, &packed).map(Self)
    }
}

impl<T: DeserializeOwned> FromRow for Option<Packed<T>> {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let packed: Option<Vec<u8>> = cells.unnamed()?;
        let read = packed.map(|packed| unpacked(cells.sql, &packed).map(Packed));
        read.transpose()
    }
}

/// Reads a value from its stored form.
pub(crate) fn unpacked<T: DeserializeOwned>(sql: &Sql<'_>, packed: &[u8]) -> sql::Result<T> {
    let json = whole(sql, packed)?;
    serde_json::from_slice(&json).map_err(|error| unreadable("packed", error))
}

/// Returns a value in its stored form, and the bytes of its JSON.
pub(crate) fn packed(value: &impl Serialize) -> sql::Result<(Payload, usize)> {
    let json = to_json(value)?;
    Ok((Payload::of(json.as_bytes()), json.len()))
}

/// Stores the long texts of an event's payload.
pub(crate) fn keep(sql: &Sql<'_>, apart: &[Apart]) -> sql::Result<()> {
    apart.iter().try_for_each(|apart| add(sql, apart, 1))
}

/// Stores the long texts of a message. Where events are folded into a side database, the texts are
/// not there yet.
pub(crate) fn keep_of_message(
    sql: &Sql<'_>,
    (run, message): (RunId, MessageId),
    apart: &[Apart],
) -> sql::Result<()> {
    for text in apart {
        add(sql, text, 0)?;
        let named = "INSERT INTO message_texts (run, message, digest) VALUES (?1, ?2, ?3) ON \
                     CONFLICT DO NOTHING";
        sql.write(named, args![run, message, text.digest])?;
    }
    Ok(())
}

fn add(sql: &Sql<'_>, Apart { digest, text }: &Apart, uses: u64) -> sql::Result<()> {
    let again = "UPDATE text_uses SET uses = uses + ?2 WHERE digest = ?1";
    if sql.execute(again, args![digest, uses])? > 0 {
        return Ok(());
    }
    let number: Option<i64> = sql.one(
        "INSERT INTO texts (text) VALUES (?1) RETURNING number",
        [text],
    )?;
    let first = "INSERT INTO text_uses (digest, number, uses) VALUES (?1, ?2, ?3)";
    sql.write(first, args![digest, number, uses])
}

/// Lets go of the texts of an event whose payload is about to be erased.
pub(crate) fn release(sql: &Sql<'_>, position: u64) -> sql::Result<()> {
    let packed = "SELECT payload FROM events WHERE position = ?1 AND payload IS NOT NULL";
    let packed: Option<Vec<u8>> = sql.one(packed, [position])?;
    for digest in packed.iter().flat_map(|packed| payload::holes(packed)) {
        let less = "UPDATE text_uses SET uses = uses - 1 WHERE digest = ?1 AND uses > 0";
        sql.write(less, [digest])?;
        remove_unused(sql, digest)?;
    }
    Ok(())
}

/// Lets go of the texts of a message that is about to be removed.
pub(crate) fn release_of_message(sql: &Sql<'_>, run: RunId, message: MessageId) -> sql::Result<()> {
    let named = "DELETE FROM message_texts WHERE run = ?1 AND message = ?2 RETURNING digest";
    for digest in sql.all::<Digest>(named, args![run, message])? {
        remove_unused(sql, digest)?;
    }
    Ok(())
}

fn remove_unused(sql: &Sql<'_>, digest: Digest) -> sql::Result<()> {
    let unused = "DELETE FROM text_uses WHERE digest = ?1 AND uses = 0 AND NOT EXISTS (SELECT 1 \
                  FROM message_texts m WHERE m.digest = text_uses.digest) RETURNING number";
    match sql.one::<i64>(unused, [digest])? {
        Some(number) => sql.write("DELETE FROM texts WHERE number = ?1", [number]),
        None => Ok(()),
    }
}

/// Reassembles the stored parts as JSON.
pub(crate) fn whole(sql: &Sql<'_>, packed: &[u8]) -> sql::Result<Vec<u8>> {
    let mut failed = None;
    let whole = payload::whole(packed, |digest| {
        text(sql, digest).unwrap_or_else(|error| {
            failed = Some(error);
            None
        })
    });
    match failed {
        Some(error) => Err(error),
        None => whole.map_err(|error| unreadable("payload", error)),
    }
}

fn text(sql: &Sql<'_>, digest: Digest) -> sql::Result<Option<Vec<u8>>> {
    let text = "SELECT t.text FROM text_uses u JOIN texts t ON t.number = u.number WHERE u.digest \
                = ?1";
    sql.one(text, [digest])
}

/// Returns the first text that does not match its digest, if any.
pub(crate) fn changed(sql: &Sql<'_>) -> sql::Result<Option<String>> {
    let all = "SELECT u.digest, t.text FROM text_uses u LEFT JOIN texts t ON t.number = u.number";
    sql.query(all, [], |rows| {
        while let Some(row) = rows.next()? {
            let (digest, text) = <(Digest, Option<Vec<u8>>)>::from_row(sql, &row)?;
            if text.is_none_or(|text| Digest::of(&text) != digest) {
                return Ok(Some(format!(
                    "the text {} is not what its digest says",
                    digest.short()
                )));
            }
        }
        Ok(None)
    })
}
