//! The ticket of a session's next step: first a permit among the steps of all sessions, then one of
//! the runtime.
//!
//! A step begins only with both permits, and only then is its view read. The steps wait in a fair
//! queue for a place, in which the steps of one component form a section as large as its maximum of
//! calls at a time. So a step with a place finds the component's gate open. In the runtime it waits
//! only for other work: calls of tools, and repeated calls.

use crate::catalogue::Entry;
use crate::core::Core;
use crate::engine::{Admission, Runtime};
use domain::event::RunStarted;
use futures::FutureExt;
use llm::fair_semaphore::{FairSemaphore, Party, Permit, Section, Ticket};
use runtime::TurnedAway;
use std::sync::Arc;
use tokio_util::sync::ReusableBoxFuture;

/// The runtime's answer to whether a step is let in.
type Answer = Result<Admission, TurnedAway>;

/// A ticket. It keeps its turn as long as it exists, whether or not a task waits for it at the
/// moment.
pub(super) struct StepTicket {
    party: Party,
    // Before the place, so that the next holder of the place finds the slot free.
    admitting: Admitting,
    permit: Ticket,
}

/// The runtime's part, which follows the place.
enum Admitting {
    /// It will be requested at the next check.
    Unasked,
    /// It was requested, without an answer yet.
    Asked(ReusableBoxFuture<'static, Answer>),
    /// It has answered.
    Answered(Answer),
}

/// The turn of a step, which has its place and may be let in.
pub(super) struct StepTurn {
    pub(super) seat: Seat,
    pub(super) answer: Answer,
}

/// The place of a step, and its party.
pub(super) struct Seat {
    party: Party,
    permit: Permit,
}

impl StepTicket {
    fn ask(permits: &Arc<FairSemaphore>, party: Party) -> Self {
        Self {
            permit: permits.ask(&party),
            party,
            admitting: Admitting::Unasked,
        }
    }

    /// Creates the ticket of a step that has its turn already, and was not let in.
    pub(super) fn keeping(Seat { party, permit }: Seat) -> Self {
        Self {
            party,
            permit: Ticket::Called(permit),
            admitting: Admitting::Unasked,
        }
    }

    /// Waits until a check of it is worth while: the place is free, or the runtime has answered.
    pub(super) async fn called(&mut self) {
        match &mut self.admitting {
            Admitting::Unasked => self.permit.called().await,
            Admitting::Asked(asked) => {
                let answer = asked.await;
                self.admitting = Admitting::Answered(answer);
            }
            Admitting::Answered(_) => {}
        }
    }

    /// Returns the turn of the next step, if it is available; otherwise keeps its ticket. Without
    /// competing steps it is available at once.
    pub(super) fn turn(
        kept: &mut Option<Self>,
        core: &Core,
        party: Party,
        entry: &Arc<Entry>,
    ) -> Option<StepTurn> {
        // Another party that had the ticket has given it up.
        drop(kept.take_if(|ticket| ticket.party != party));
        let ticket = kept.take().unwrap_or_else(|| Self::ask(&core.steps, party));
        let Self {
            party,
            permit,
            admitting,
        } = ticket;
        let permit = match permit.permit() {
            Ok(permit) => permit,
            Err(permit) => {
                *kept = Some(Self {
                    party,
                    permit,
                    admitting,
                });
                return None;
            }
        };
        let admitting = match admitting {
            Admitting::Unasked => match core
                .runtime
                .admit(&entry.component, &entry.grant.limits)
                .now_or_never()
            {
                Some(answer) => Admitting::Answered(answer),
                None => Admitting::Asked(admission(&core.runtime, entry)),
            },
            Admitting::Asked(mut asked) => match (&mut asked).now_or_never() {
                Some(answer) => Admitting::Answered(answer),
                None => Admitting::Asked(asked),
            },
            Admitting::Answered(answer) => Admitting::Answered(answer),
        };
        match admitting {
            Admitting::Answered(answer) => Some(StepTurn {
                seat: Seat { party, permit },
                answer,
            }),
            admitting @ (Admitting::Unasked | Admitting::Asked(_)) => {
                *kept = Some(Self {
                    party,
                    permit: Ticket::Called(permit),
                    admitting,
                });
                None
            }
        }
    }
}

/// Returns a step of a run's agent as a party that requests a place, in the section of its
/// component.
pub(super) fn step_of(started: &RunStarted, entry: &Entry) -> Party {
    let permits = usize::try_from(entry.grant.limits.concurrency_max).unwrap_or(usize::MAX);
    let section = Section {
        name: entry.name.as_str().into(),
        permits,
    };
    Party {
        section: Some(section),
        ..Party::from(started)
    }
}

/// Requests a slot of the runtime; the answer is awaited from time to time.
fn admission(runtime: &Runtime, entry: &Arc<Entry>) -> ReusableBoxFuture<'static, Answer> {
    let runtime = runtime.clone();
    let entry = entry.clone();
    ReusableBoxFuture::new(
        async move { runtime.admit(&entry.component, &entry.grant.limits).await },
    )
}
