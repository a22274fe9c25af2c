//! Notes on sessions that may have ended the process. A start is about to read them for the first
//! time, or they are suspected because they were working.

use crate::commit::CommitError;
use crate::meta;
use crate::read::ReadError;
use crate::sql::to_json;
use crate::store::Store;
use domain::id::SessionId;
use domain::isolation::Suspicions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Name of the note of sessions that are read.
const POLLS: &str = "inspections";
/// Name of the note of suspected sessions.
const SUSPICIONS: &str = "suspicions";

impl Store {
    /// Returns the noted sessions, each with the number of starts that have noted it.
    pub async fn noted_inspections(&self) -> Result<BTreeMap<SessionId, u32>, ReadError> {
        self.noted(POLLS).await
    }

    /// Stores the noted sessions, and replaces those noted before. Once this returns, a process
    /// that opens the store after a crash can read them.
    pub async fn note_inspections(
        &self,
        inspections: BTreeMap<SessionId, u32>,
    ) -> Result<(), CommitError> {
        self.note_in_place(POLLS, inspections).await
    }

    /// Returns the suspicions that were noted last.
    pub async fn noted_suspicions(&self) -> Result<Suspicions, ReadError> {
        self.noted(SUSPICIONS).await
    }

    /// Stores suspicions and replaces those noted before, as durably as inspections.
    pub async fn note_suspicions(&self, suspicions: Suspicions) -> Result<(), CommitError> {
        self.note_in_place(SUSPICIONS, suspicions).await
    }

    async fn noted<T>(&self, name: &'static str) -> Result<BTreeMap<SessionId, T>, ReadError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.read(move |sql| {
            let noted = sql.json("SELECT value FROM meta WHERE name = ?1", [name])?;
            Ok(noted.unwrap_or_default())
        })
        .await
    }

    async fn note_in_place<T>(
        &self,
        name: &'static str,
        sessions: BTreeMap<SessionId, T>,
    ) -> Result<(), CommitError>
    where
        T: Serialize + Send + 'static,
    {
        self.in_writer(move |sql| match sessions.is_empty() {
            true => meta::remove(sql, name),
            false => meta::note(sql, name, &to_json(&sessions)?),
        })
        .await
    }
}
