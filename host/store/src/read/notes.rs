//! Notes of an agent's memory, one by one, and how far its sessions were read.

use super::ReadError;
use crate::projections::{NoteDetails, note_position};
use crate::sql::{Columns, Sql, limit as rows};
use crate::store::Store;
use domain::event::Provenance;
use domain::id::{AgentId, InputId, NoteId, SessionId, TurnId};
use domain::message::MessageId;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Row, params};

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRow {
    /// Its id.
    pub id: NoteId,
    /// The position of the event that kept it.
    pub position: u64,
    /// The text.
    pub text: String,
    /// The subject, if it names one.
    pub about: Option<String>,
    /// The session in which it was made.
    pub session: SessionId,
    /// The user of that session, to whom the note belongs with the agent.
    pub user_id: UserId,
    /// True if it rests on content from outside the user's and the operator's control.
    pub untrusted: bool,
    /// The place that it comes from, if that is recorded.
    pub provenance: Option<Provenance>,
    /// Time at which it was kept.
    pub time: Timestamp,
}

/// The place up to which the memory agent of its agent has read a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingRow {
    /// The session that is read.
    pub session: SessionId,
    /// The session in which the memory agent reads it.
    pub reader: SessionId,
    /// The memory agent.
    pub agent: AgentId,
    /// The last turn of which something was read.
    pub through: TurnId,
    /// The last message that was read: one of that turn.
    pub through_message: MessageId,
}

/// A piece of a session that was handed to a memory agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceRow {
    /// The session that is read.
    pub session: SessionId,
    /// The turn that the last message of the piece is of.
    pub through: TurnId,
}

macro_rules! note {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.note_id, r.note, r.details, r.session, s.user_id, r.untrusted, r.time \
             FROM recall r JOIN sessions s ON s.id = r.session ",
            $rest
        )
    };
}

macro_rules! reading {
    ($rest:literal) => {
        concat!(
            "SELECT session, reader, agent, through, through_message FROM readings ",
            $rest
        )
    };
}

impl Store {
    /// Returns a note of an agent.
    pub async fn note(&self, agent: AgentId, note: NoteId) -> Result<Option<NoteRow>, ReadError> {
        self.point_read(move |sql| one(sql, agent, note)).await
    }

    /// Returns those of some notes of an agent that were not forgotten, in the order in which they
    /// are named.
    pub async fn notes_named(
        &self,
        agent: AgentId,
        notes: Vec<NoteId>,
    ) -> Result<Vec<NoteRow>, ReadError> {
        self.read(move |sql| {
            let mut found = Vec::with_capacity(notes.len());
            for note in &notes {
                found.extend(one(sql, agent, *note)?);
            }
            Ok(found)
        })
        .await
    }

    /// Returns notes of an agent, the latest first, at most `limit`: those of one user's sessions
    /// if `of` names one, and those before an event's position if `before` does.
    pub async fn notes(
        &self,
        agent: AgentId,
        of: Option<&UserId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<NoteRow>, ReadError> {
        let of = of.map(|user| user.as_str().to_owned());
        let first = before.map(|position| crate::projections::recall_rows_of(position).0);
        self.read(move |sql| {
            sql.rows(
                note!(
                    "WHERE r.agent = ?1 AND r.note_id IS NOT NULL AND (?2 IS NULL OR s.user_id = \
                     ?2) AND (?3 IS NULL OR r.id < ?3) ORDER BY r.id DESC LIMIT ?4"
                ),
                params![agent.to_string(), of, first, rows(limit)],
                read,
            )
        })
        .await
    }

    /// Returns the number of an agent's notes in the sessions of a user.
    pub async fn note_count(&self, agent: AgentId, of: &UserId) -> Result<u64, ReadError> {
        let of = of.as_str().to_owned();
        self.read(move |sql| {
            let count = sql.row(
                "SELECT count(*) FROM recall WHERE agent = ?1 AND user_id = ?2 AND note_id IS NOT \
                 NULL",
                params![agent.to_string(), of],
                |row| row.uint(0),
            )?;
            Ok(count.unwrap_or(0))
        })
        .await
    }

    /// Returns how far a session was read; none if it never was.
    pub async fn reading_of(&self, session: SessionId) -> Result<Option<ReadingRow>, ReadError> {
        self.point_read(move |sql| {
            sql.row(
                reading!("WHERE session = ?1"),
                [session.to_string()],
                read_reading,
            )
        })
        .await
    }

    /// Returns what is read in a session of a memory agent.
    pub async fn reading_by(&self, reader: SessionId) -> Result<Option<ReadingRow>, ReadError> {
        self.point_read(move |sql| {
            sql.row(
                reading!("WHERE reader = ?1"),
                [reader.to_string()],
                read_reading,
            )
        })
        .await
    }
}

impl Store {
    /// Returns the piece of a session that an input carries; none for another input, and for a
    /// session that was purged.
    pub async fn piece_read(&self, input: InputId) -> Result<Option<PieceRow>, ReadError> {
        self.point_read(move |sql| {
            sql.row(
                "SELECT session, through FROM reading_pieces WHERE input = ?1",
                [input.to_string()],
                |row| {
                    Ok(PieceRow {
                        session: row.id(0)?,
                        through: TurnId(row.digest(1)?),
                    })
                },
            )
        })
        .await
    }
}

fn one(sql: &Sql<'_>, agent: AgentId, note: NoteId) -> rusqlite::Result<Option<NoteRow>> {
    sql.row(
        note!("WHERE r.note_id = ?1 AND r.agent = ?2"),
        params![note.to_string(), agent.to_string()],
        read,
    )
}

fn read(row: &Row<'_>) -> rusqlite::Result<NoteRow> {
    let details: NoteDetails = row.json_opt(3)?.unwrap_or_default();
    Ok(NoteRow {
        id: row.id(1)?,
        position: note_position(row.uint(0)?),
        text: row.get(2)?,
        about: details.about,
        session: row.id(4)?,
        user_id: row.id(5)?,
        untrusted: row.get(6)?,
        provenance: details.provenance,
        time: Timestamp(row.uint(7)?),
    })
}

fn read_reading(row: &Row<'_>) -> rusqlite::Result<ReadingRow> {
    Ok(ReadingRow {
        session: row.id(0)?,
        reader: row.id(1)?,
        agent: row.id(2)?,
        through: TurnId(row.digest(3)?),
        through_message: row.uint(4)?,
    })
}
