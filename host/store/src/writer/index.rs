//! Progress of the full-text index, between commits and while none arrive.

use super::Writer;
use crate::full_text;
use crate::sql::{self, Failure};
use crate::sqlite::Durability;
use domain::event::{Event, Recorded};
use std::sync::mpsc::TryRecvError;

/// Number of unindexed events from which the writer indexes some also while commits go on.
const WAITING_MAX: u64 = full_text::ROWS_MAX;

/// Returns whether an event adds rows to the index.
pub(super) fn is_found(recorded: &Recorded) -> bool {
    matches!(
        recorded.event,
        Some(Event::TurnCommitted(_) | Event::TurnsImported(_) | Event::NoteRemembered(_))
    )
}

impl Writer<'_> {
    /// Indexes some of the waiting rows, if there are many.
    pub(super) fn index_if_much(&mut self) {
        if self.state.unindexed >= WAITING_MAX {
            self.try_to_index();
        }
    }

    /// Indexes waiting rows until another request arrives.
    pub(super) fn index_at_leisure(&mut self) {
        while self.state.unindexed > 0 {
            self.try_to_index();
            match self.requests.try_recv() {
                Ok(request) => {
                    self.state.transferred = Some(request);
                    return;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    fn try_to_index(&mut self) {
        if let Err(error) = self.index_chunk() {
            // The next search checks again, and so does the next event with text.
            self.state.unindexed = 0;
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "words are not indexed now"
            );
        }
    }

    /// Indexes a chunk of the waiting rows.
    pub(super) fn index_chunk(&mut self) -> sql::Result<()> {
        if self.state.full.is_some() {
            let reason = "database or disk is full";
            return Err(sql::Error::failed(Failure::Full, reason));
        }
        // Rows lost in a power failure are indexed again: the next commit's sync covers them, and a
        // recovered database has cursor and index together.
        self.sql.connection().sync(Durability::Normal)?;
        let indexed = self.index_unsynced();
        if indexed.is_err() {
            self.roll_back();
        }
        if let Err(error) = self.sql.connection().sync(Durability::Full) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "commits would not be synced any more: the process ends"
            );
            std::process::abort();
        }
        self.state.unindexed = if indexed? {
            0
        } else {
            self.state
                .unindexed
                .saturating_sub(full_text::ROWS_MAX)
                .max(1)
        };
        self.checkpoint_if_due();
        Ok(())
    }

    /// Indexes rows without a sync, and returns whether that was all.
    fn index_unsynced(&self) -> sql::Result<bool> {
        self.sql.execute("BEGIN IMMEDIATE", [])?;
        let all = full_text::index_some(&self.sql, i64::MAX)?;
        self.sql.execute("COMMIT", [])?;
        Ok(all)
    }
}
