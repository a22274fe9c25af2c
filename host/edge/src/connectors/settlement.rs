//! The settlement of arrivals: what became of them, and what is stored with it.

use domain::event::{ArrivalOutcome, NewEvent};

/// The settlement of arrivals.
pub(super) struct Settlement {
    /// Their number, from the first.
    pub(super) count: usize,
    pub(super) outcome: ArrivalOutcome,
    /// Events that are stored with it.
    pub(super) also: Vec<NewEvent>,
}

impl Settlement {
    pub(super) fn new(count: usize, outcome: ArrivalOutcome) -> Self {
        Self {
            count,
            outcome,
            also: Vec::new(),
        }
    }
}
