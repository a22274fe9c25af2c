//! The settlement of inbound messages: their outcomes, and the events stored with them.

use domain::event::{InboundMessageOutcome, NewEvent};

/// The settlement of inbound messages.
pub(super) struct Settlement {
    /// Their number, from the first.
    pub(super) count: usize,
    pub(super) outcome: InboundMessageOutcome,
    /// Events that are stored with it.
    pub(super) also: Vec<NewEvent>,
}

impl Settlement {
    pub(super) fn new(count: usize, outcome: InboundMessageOutcome) -> Self {
        Self {
            count,
            outcome,
            also: Vec::new(),
        }
    }
}
