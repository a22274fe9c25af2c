//! `progress`: how a tool call is getting on, passed on as it comes and kept nowhere.

use crate::bindings::tool::agent_host::plugin::progress;
use crate::call::{CallState, Purpose};
use crate::view::Notes;
use domain::redact::Redactor;
use std::sync::Arc;
use std::time::Instant;

impl progress::Host for CallState {
    fn note(&mut self, message: String) -> wasmtime::Result<()> {
        match &mut self.purpose {
            Purpose::Tool(work) => {
                if !work.notes.relay(&message) {
                    self.met("notesPerSecond");
                }
            }
            Purpose::Describe | Purpose::Step(_) | Purpose::Fire | Purpose::Connect(_) => {
                self.recorder.refused("agent-host:plugin/progress", || {
                    "agent-host:plugin/progress.note".to_owned()
                })
            }
        }
        Ok(())
    }
}

/// Bytes of one note; more is cut.
const NOTE_BYTES_MAX: usize = 1_024;
/// Notes of one call in a second; more are dropped.
const NOTES_PER_SECOND_MAX: u32 = 10;

/// Passes on a call's notes, and counts those within this second.
pub(crate) struct NoteRelay {
    notes: Arc<dyn Notes>,
    redactor: Redactor,
    began: Instant,
    second: u64,
    noted: u32,
}

impl NoteRelay {
    pub(crate) fn new(notes: Arc<dyn Notes>, redactor: Redactor) -> Self {
        Self {
            notes,
            redactor,
            began: Instant::now(),
            second: 0,
            noted: 0,
        }
    }

    /// Passes a note on; false when there were too many.
    pub(super) fn relay(&mut self, message: &str) -> bool {
        let second = self.began.elapsed().as_secs();
        if second != self.second {
            self.second = second;
            self.noted = 0;
        }
        if self.noted >= NOTES_PER_SECOND_MAX {
            return false;
        }
        self.noted += 1;
        let message = self.redactor.text(message);
        let (message, _) = message.split_at(message.floor_char_boundary(NOTE_BYTES_MAX));
        self.notes.note(&crate::log::escaped(message));
        true
    }
}
