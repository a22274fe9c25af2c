//! The entry of a turn in the ledger: a line for its start, and one for its end.

use crate::trail::{ProgramNote, Trail};

/// A turn whose start is on record. Its end is too, also if the call is dropped before that.
pub(super) struct Entry<'a> {
    trail: &'a dyn Trail,
    /// The program and its folder, as the ledger names them.
    turn: String,
    has_ended: bool,
}

impl<'a> Entry<'a> {
    /// Puts the start of a turn on record.
    pub(super) fn begin(trail: &'a dyn Trail, turn: String) -> Self {
        let entry = Self {
            trail,
            turn,
            has_ended: false,
        };
        entry.note("started", false);
        entry
    }

    /// Puts the end of the turn on record, in words.
    pub(super) fn end(mut self, reported: &str, is_limit: bool) {
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
