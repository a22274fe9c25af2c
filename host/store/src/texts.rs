//! Long texts, each stored once for as long as any payload or message has it.

use crate::payload::{self, Apart, Payload};
use crate::sql::{self, Cells, FromRow, Sql, args, insert, to_json, unreadable};
use domain::digest::Digest;
use domain::id::RunId;
use domain::message::MessageId;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of a part of a text. Small parts fill pages that they share; a text of the length below is
/// one part, and fills pages of its own.
const PART_BYTES: usize = 250;
const ONE_PART_BYTES_MIN: usize = 16 << 10;

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
        insert!(
            sql,
            message_texts {
                digest: text.digest,
                run,
                message
            },
            "ON CONFLICT DO NOTHING"
        )?;
    }
    Ok(())
}

fn add(sql: &Sql<'_>, Apart { digest, text }: &Apart, uses: u64) -> sql::Result<()> {
    let again = "UPDATE text_uses SET uses = uses + ?2 WHERE digest = ?1";
    if sql.execute(again, args![digest, uses])? > 0 {
        return Ok(());
    }
    let last = "SELECT coalesce(max(number), 0) FROM texts";
    let before = sql.number(last, [])?;
    let mut last = before;
    let is_one = text.len() >= ONE_PART_BYTES_MIN;
    for part in text.chunks(if is_one { text.len() } else { PART_BYTES }) {
        last += 1;
        insert!(
            sql,
            texts {
                number: last,
                text: part
            }
        )?;
    }
    insert!(
        sql,
        text_uses {
            digest,
            first: before + 1,
            last,
            uses
        }
    )
}

/// Lets go of the texts of a payload that is about to be erased.
pub(crate) fn release(sql: &Sql<'_>, packed: &[u8]) -> sql::Result<()> {
    for digest in payload::holes(packed) {
        let less = "UPDATE text_uses SET uses = uses - 1 WHERE digest = ?1 AND uses > 0";
        sql.write(less, [digest])?;
        remove_unused(sql, digest)?;
    }
    Ok(())
}

/// Removes a message, and the texts that only it has.
pub(crate) fn remove_message(sql: &Sql<'_>, run: RunId, message: MessageId) -> sql::Result<()> {
    let gone = "DELETE FROM messages WHERE run = ?1 AND id = ?2 RETURNING message";
    let packed: Option<Vec<u8>> = sql.one(gone, args![run, message])?;
    for digest in packed.iter().flat_map(|packed| payload::holes(packed)) {
        let named = "DELETE FROM message_texts WHERE digest = ?1 AND run = ?2 AND message = ?3";
        sql.write(named, args![digest, run, message])?;
        remove_unused(sql, digest)?;
    }
    Ok(())
}

fn remove_unused(sql: &Sql<'_>, digest: Digest) -> sql::Result<()> {
    let unused = "DELETE FROM text_uses WHERE digest = ?1 AND uses = 0 AND NOT EXISTS (SELECT 1 \
                  FROM message_texts m WHERE m.digest = text_uses.digest) RETURNING first, last";
    match sql.one::<(i64, i64)>(unused, [digest])? {
        Some((first, last)) => {
            let parts = "DELETE FROM texts WHERE number BETWEEN ?1 AND ?2";
            sql.write(parts, args![first, last])
        }
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
    let parts = "SELECT t.text FROM text_uses u JOIN texts t ON t.number BETWEEN u.first AND \
                 u.last WHERE u.digest = ?1 ORDER BY t.number";
    let parts: Vec<Vec<u8>> = sql.all(parts, [digest])?;
    Ok(Some(parts.concat()).filter(|text| !text.is_empty()))
}

/// Returns the first text that does not match its digest, if any.
pub(crate) fn changed(sql: &Sql<'_>) -> sql::Result<Option<String>> {
    sql.query("SELECT digest FROM text_uses", [], |rows| {
        while let Some(row) = rows.next()? {
            let digest = Digest::from_row(sql, &row)?;
            if text(sql, digest)?.is_none_or(|text| Digest::of(&text) != digest) {
                return Ok(Some(format!(
                    "the text {} is not what its digest says",
                    digest.short()
                )));
            }
        }
        Ok(None)
    })
}
