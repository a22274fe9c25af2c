//! The trail of a call at the boundary: its requests, the keys that go with them, and the turns of
//! programs, for the ledger.

use egress::{Record, Records};
use std::fmt;
use std::sync::Arc;

/// Takes what a call does at the boundary.
pub trait Trail: fmt::Debug + Send + Sync {
    /// Returns the sink for egress's records of its requests.
    fn records(&self) -> Arc<dyn Records>;

    /// A provider's key is about to go out. `used` says where the key is kept and which host gets
    /// it; never the key itself.
    fn key_used(&self, used: &str);

    /// A program is about to be started, or has ended.
    fn program(&self, _note: &ProgramNote) {}
}

/// A note about a program that was started in a model's place, for the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramNote {
    /// The program, its folder, and what became of it.
    pub reported: String,
    /// True if a limit ended it.
    pub is_limit: bool,
}

/// A trail of debug logs alone.
#[derive(Debug)]
pub(crate) struct Traced;

impl Trail for Traced {
    fn records(&self) -> Arc<dyn Records> {
        Arc::new(Self)
    }

    fn key_used(&self, _used: &str) {}
}

impl Records for Traced {
    fn put(&self, record: Record) {
        let Record {
            component,
            outcome,
            dialled,
            bytes_out,
            bytes_in,
            ms,
            ..
        } = record;
        tracing::debug!(
            llm.provider = component,
            ?dialled,
            bytes_out,
            bytes_in,
            ms,
            "a request to a provider ended: {outcome}"
        );
    }
}

/// A turn whose start is on record. Its end is too, also if the call is dropped before that.
pub(crate) struct Entry<'a> {
    trail: &'a dyn Trail,
    /// The program and its folder, as the ledger names them.
    turn: String,
    has_ended: bool,
}

impl<'a> Entry<'a> {
    /// Puts the start of a turn on record.
    pub(crate) fn begin(trail: &'a dyn Trail, turn: String) -> Self {
        let entry = Self {
            trail,
            turn,
            has_ended: false,
        };
        entry.note("started", false);
        entry
    }

    /// Puts the end of the turn on record, in words.
    pub(crate) fn end(mut self, reported: &str, is_limit: bool) {
        self.note(reported, is_limit);
        self.has_ended = true;
    }

    fn note(&self, reported: &str, is_limit: bool) {
        let reported = format!("{}: {reported}", self.turn);
        self.trail.program(&ProgramNote { reported, is_limit });
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.note("ended with its call", false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Entry;
    use crate::trail::{ProgramNote, Traced, Trail};
    use egress::Records;
    use std::sync::{Arc, Mutex};

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<ProgramNote>>);

    impl Trail for Kept {
        fn records(&self) -> Arc<dyn Records> {
            Arc::new(Traced)
        }

        fn key_used(&self, _used: &str) {}

        fn program(&self, note: &ProgramNote) {
            self.0.lock().unwrap().push(note.clone());
        }
    }

    impl Kept {
        fn reported(&self) -> Vec<String> {
            let notes = self.0.lock().unwrap();
            notes.iter().map(|note| note.reported.clone()).collect()
        }
    }

    #[test]
    fn a_turn_has_one_start_and_one_end_on_record_whatever_becomes_of_it() {
        let kept = Kept::default();
        Entry::begin(&kept, "p".to_owned()).end("stopped", true);
        assert_eq!(kept.reported(), ["p: started", "p: stopped"]);
        let limits: Vec<bool> = kept.0.lock().unwrap().iter().map(|n| n.is_limit).collect();
        assert_eq!(limits, [false, true]);
        let kept = Kept::default();
        drop(Entry::begin(&kept, "p".to_owned()));
        assert_eq!(kept.reported(), ["p: started", "p: ended with its call"]);
    }
}
