//! Notes of an agent's memory, one by one, and how far its sessions were read.

use super::ReadError;
use crate::projections::{NoteDetails, note_position};
use crate::sql::{self, Sql, args, named, row, select};
use crate::store::Store;
use domain::event::Provenance;
use domain::id::{AgentId, InputId, NoteId, SessionId, TurnId};
use domain::message::MessageId;
use domain::time::Timestamp;
use domain::user::UserId;

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
    /// The user of that session, to whom the note belongs together with the agent.
    pub user_id: UserId,
    /// True if it depends on content outside the user's and the operator's control.
    pub untrusted: bool,
    /// Its source, if that is recorded.
    pub provenance: Option<Provenance>,
    /// Time at which it was kept.
    pub time: Timestamp,
}

row! {
    /// The place up to which the memory agent of its agent has read a session.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ReadingRow from "readings" {
        /// The session that is read.
        pub session: SessionId,
        /// The session in which the memory agent reads it.
        pub reader: SessionId,
        /// The memory agent.
        pub agent: AgentId,
        /// The last turn that was read, at least in part.
        pub through: TurnId,
        /// The last message that was read, which belongs to that turn.
        pub through_message: MessageId,
    }
}

row! {
    /// A part of a session that was handed to a memory agent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ReadingChunkRow from "reading_chunks" {
        /// The session that is read.
        pub session: SessionId,
        /// The turn that the last message of the chunk is of.
        pub through: TurnId,
    }
}

row! {
    /// A note as it is stored.
    struct StoredNote from "recall r JOIN sessions s ON s.id = r.session" {
        row: u64 = "r.id",
        note_id: NoteId = "r.note_id",
        note: String = "r.note",
        details: NoteDetails as json_or_default = "r.details",
        session: SessionId = "r.session",
        user_id: UserId = "s.user_id",
        untrusted: bool = "r.untrusted",
        time: Timestamp = "r.time",
    }
}

impl From<StoredNote> for NoteRow {
    fn from(stored: StoredNote) -> Self {
        Self {
            id: stored.note_id,
            position: note_position(stored.row),
            text: stored.note,
            about: stored.details.about,
            session: stored.session,
            user_id: stored.user_id,
            untrusted: stored.untrusted,
            provenance: stored.details.provenance,
            time: stored.time,
        }
    }
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

    /// Returns notes of an agent, the latest first, at most `limit`. `of` restricts them to one
    /// user's sessions, and `before` to those before an event's position.
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
            let text = select!(
                StoredNote,
                "WHERE r.agent = :agent AND r.note_id IS NOT NULL AND (:of IS NULL OR s.user_id = \
                 :of) AND (:first IS NULL OR r.id < :first) ORDER BY r.id DESC LIMIT :limit"
            );
            let params = named![agent, of, first, limit];
            let notes: Vec<StoredNote> = sql.all(text, params)?;
            Ok(notes.into_iter().map(NoteRow::from).collect())
        })
        .await
    }

    /// Returns the number of an agent's notes in the sessions of a user.
    pub async fn note_count(&self, agent: AgentId, of: &UserId) -> Result<u64, ReadError> {
        let of = of.as_str().to_owned();
        self.read(move |sql| {
            let count = sql.one::<u64>(
                "SELECT count(*) FROM recall WHERE agent = ?1 AND user_id = ?2 AND note_id IS NOT \
                 NULL",
                args![agent, of],
            )?;
            Ok(count.unwrap_or(0))
        })
        .await
    }

    /// Returns how far a session was read; none if it never was.
    pub async fn reading_of(&self, session: SessionId) -> Result<Option<ReadingRow>, ReadError> {
        self.point_read(move |sql| sql.one(select!(ReadingRow, "WHERE session = ?1"), [session]))
            .await
    }

    /// Returns the reading that takes place in a session of a memory agent.
    pub async fn reading_by(&self, reader: SessionId) -> Result<Option<ReadingRow>, ReadError> {
        self.point_read(move |sql| sql.one(select!(ReadingRow, "WHERE reader = ?1"), [reader]))
            .await
    }
}

impl Store {
    /// Returns the part of a session that an input carries; none for another input, and for a
    /// session that was purged.
    pub async fn chunk_read(&self, input: InputId) -> Result<Option<ReadingChunkRow>, ReadError> {
        self.point_read(move |sql| sql.one(select!(ReadingChunkRow, "WHERE input = ?1"), [input]))
            .await
    }
}

fn one(sql: &Sql<'_>, agent: AgentId, note: NoteId) -> sql::Result<Option<NoteRow>> {
    let text = select!(StoredNote, "WHERE r.note_id = ?1 AND r.agent = ?2");
    let note: Option<StoredNote> = sql.one(text, args![note, agent])?;
    Ok(note.map(NoteRow::from))
}
