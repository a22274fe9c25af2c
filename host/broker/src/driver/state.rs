//! The state of one session's driver: its phase, and the data that outlast a phase.

use super::context::SessionContext;
use super::driving::Owed;
use super::hinting::Hinted;
use super::phase::Phase;
use super::place::MessagePlace;
use super::sectioning::Sectioned;
use super::ticket::StepTicket;
use super::trouble::TroubleStreak;
use crate::core::{Core, Mailbox, Seat};
use crate::shared::DriverError;
use crate::signal::Signal;
use domain::id::{OperationId, TurnId};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Failures of a driver in a row, with nothing recorded in between.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Failures {
    /// Number of panics.
    pub(super) panics: u32,
    /// Number of checks whose commit the store refused because of its content.
    pub(super) refused: u32,
}

/// A further attempt at an operation that the store refuses to record because of its content.
pub(super) struct RefusedAttempt {
    pub(super) operation: OperationId,
    pub(super) failure: DriverError,
}

/// The driver of one session.
pub(crate) struct Driver {
    pub(super) context: SessionContext,
    pub(super) mailbox: Mailbox,
    pub(super) inbox: mpsc::Receiver<Signal>,
    /// The permit to start, until the first inspection is over.
    pub(super) starting: Option<OwnedSemaphorePermit>,
    /// The pauses after trouble.
    pub(super) trouble: TroubleStreak,
    /// The ticket of the next step, while it waits for its turn.
    pub(super) ticket: Option<StepTicket>,
    /// The place among the messages that the agent works on, or the position in the queue for one.
    pub(super) place: Option<MessagePlace>,
    pub(super) phase: Phase,
    /// The newest turn after which the thread needs no compaction, or no further attempt at one.
    pub(super) roomy: Option<TurnId>,
    /// The hints of the latest opening, which its start reuses if it begins again.
    pub(super) hinted: Option<Hinted>,
    /// The sections of the latest opening, for the same.
    pub(super) sectioned: Option<Sectioned>,
    /// True if others may have written to the run's stream since it was folded.
    pub(super) stale: bool,
    /// Failures in a row, with nothing recorded in between.
    pub(super) failures: Failures,
    /// The newest attempt that the store refused since the last inspection: trouble of the next
    /// inspection.
    pub(super) refused_attempt: Option<RefusedAttempt>,
    /// Number of checks in a row that found something unreadable.
    pub(super) unreadable: u32,
    /// The ledger's entries of a run that a panic made the driver forget.
    pub(super) owed: Option<Owed>,
    /// The ledger's entries of runs that have ended: decisions of the boundary until their work
    /// stopped.
    pub(super) afterwards: Vec<store::Append>,
}

impl Driver {
    /// Creates a driver that has not checked yet. It returns the permit to start after its first
    /// check, or when it steps.
    pub(crate) fn new(core: Arc<Core>, seat: Seat) -> Self {
        Self {
            context: SessionContext {
                served: core.served(),
                core,
                session: seat.session,
            },
            mailbox: seat.mailbox,
            inbox: seat.inbox,
            starting: seat.starting,
            trouble: TroubleStreak::default(),
            ticket: None,
            place: None,
            phase: Phase::Unknown,
            roomy: None,
            hinted: None,
            sectioned: None,
            stale: true,
            failures: Failures::default(),
            refused_attempt: None,
            unreadable: 0,
            owed: None,
            afterwards: Vec::new(),
        }
    }
}
