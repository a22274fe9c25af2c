//! The place of a session among those whose messages its agent works on at the same time.
//!
//! A run without a place waits in the fair queue: users take turns. The waiting work is in the
//! store, as inputs or as an open run, so nothing is lost with the queue. A place is for one turn.
//! It is returned when the turn ends, and while the turn only waits for people, timers or other
//! agents.

use super::state::Driver;
use domain::id::OperationId;
use domain::run::recover::{Next, ready};
use llm::fair_semaphore::{Party, Ticket};

/// A place, or its position in the queue for one.
pub(super) struct MessagePlace {
    party: Party,
    ticket: Ticket,
    /// True once a step was taken on it: then it ends with its turn.
    is_used: bool,
}

impl MessagePlace {
    fn is_there(&self) -> bool {
        matches!(self.ticket, Ticket::Called(_))
    }
}

/// Waits until the requested place is free; for ever if none was requested.
pub(super) async fn placed(place: &mut Option<MessagePlace>) {
    match place {
        Some(place) if !place.is_there() => place.ticket.called().await,
        Some(_) | None => std::future::pending().await,
    }
}

impl Driver {
    /// Returns whether the run has its place, and asks for one if it has none. A run that compacts
    /// its thread needs none: it answers no message.
    pub(super) fn takes_place(&mut self) -> bool {
        let Some(driving) = self.phase.driving() else {
            return true;
        };
        let started = &driving.run.started;
        let definition = self
            .context
            .served
            .catalogue
            .definition(&started.definition);
        let Some(permits) = definition
            .filter(|_| started.compacts.is_none())
            .map(|definition| definition.messages_at_once())
        else {
            return true;
        };
        let party = Party::from(started).in_section(started.agent.to_string(), permits);
        // Another party that had the position has given it up.
        drop(self.place.take_if(|place| place.party != party));
        let (ticket, is_used) = match self.place.take() {
            Some(place) => (place.ticket, place.is_used),
            None => (self.context.core.messages.ask(&party), false),
        };
        let ticket = match ticket.permit() {
            Ok(permit) => Ticket::Called(permit),
            Err(ticket) => ticket,
        };
        let place = MessagePlace {
            party,
            ticket,
            is_used,
        };
        let is_there = place.is_there();
        self.place = Some(place);
        if !is_there {
            // A run that may not take a step must not wait for one.
            self.ticket = None;
            // A start that is not stored yet begins again with the present state once it has a
            // place.
            self.stale |= self.phase.beginning().is_some();
        }
        is_there
    }

    /// Returns whether an operation can be performed without a step before it, as after a restart.
    pub(super) fn resumes_work(&self) -> bool {
        let now = self.context.core.now();
        self.phase.driving().is_some_and(|driving| {
            let busy = |id: OperationId| driving.is_seen_to(id);
            ready(&driving.run, &busy, now)
                .into_iter()
                .any(|(_, next)| matches!(next, Next::Perform { .. }))
        })
    }

    /// Notes that a step was taken on the place.
    pub(super) fn use_place(&mut self) {
        if let Some(place) = &mut self.place {
            place.is_used = true;
        }
    }

    /// Returns the place of a turn that has ended. A place that is still awaited is kept.
    pub(super) fn end_place(&mut self) {
        drop(self.place.take_if(|place| place.is_used));
    }

    /// Gives up a place that is not there yet, for a run that takes no step now.
    pub(super) fn give_up_waiting_place(&mut self) {
        drop(self.place.take_if(|place| !place.is_there()));
    }
}
