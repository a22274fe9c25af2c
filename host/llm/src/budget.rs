//! The payer of a call. It decides whether a model may be asked again, takes turns at providers,
//! and measures how long models work.

use crate::fair_semaphore::Party;
use domain::delegate::Priority;
use domain::id::AgentId;
use domain::operation::Attempt;
use domain::user::UserId;
use std::fmt;
use std::pin::Pin;
use uuid::Uuid;

/// The answer to whether another attempt may be made: its number, or why not, for people.
pub type Afforded<'a> = Pin<Box<dyn Future<Output = Result<u32, String>> + Send + 'a>>;

/// A measurement of active time. It goes on until it is dropped.
pub type Measuring<'a> = Box<dyn Send + 'a>;

/// Decides on every attempt but the first, before it is made, and pays for all of them.
pub trait AttemptBudget: fmt::Debug + Send + Sync {
    /// The number of the first attempt, which needs no decision. What is shown of an attempt is
    /// shown under its number.
    fn first(&self) -> u32;

    /// Decides whether another attempt may be made; `ended` are all before it, in order. An attempt
    /// that used nothing may give its number to the next.
    fn afford<'a>(&'a self, ended: &'a [Attempt]) -> Afforded<'a>;

    /// Returns whether a model may be asked when another gave no reply, by its alias.
    fn permits(&self, _fallback: &str) -> bool {
        true
    }

    /// Returns the party whose turn it takes to get a place at a provider.
    fn party(&self) -> Party;

    /// Begins to measure the active time of an attempt. Called once for each, with its place at the
    /// provider held: neither waiting for that, nor what a provider wants to be left alone, nor the
    /// pause before another attempt is work.
    ///
    /// `quiet_ms` is the time limit of an attempt that shows nothing until its model is done; none
    /// for one whose reply is streamed.
    fn measure(&self, quiet_ms: Option<u64>) -> Measuring<'_>;
}

/// A call that may be tried as often as its limits say. Its attempts are counted from 0, its time
/// by nobody, and its turns are those of the host's own user.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unbudgeted;

impl AttemptBudget for Unbudgeted {
    fn first(&self) -> u32 {
        0
    }

    fn afford<'a>(&'a self, ended: &'a [Attempt]) -> Afforded<'a> {
        let number = u32::try_from(ended.len()).unwrap_or(u32::MAX);
        Box::pin(std::future::ready(Ok(number)))
    }

    fn party(&self) -> Party {
        Party {
            user: UserId::local(),
            agent: AgentId(Uuid::nil()),
            priority: Priority::default(),
            section: None,
        }
    }

    fn measure(&self, _quiet_ms: Option<u64>) -> Measuring<'_> {
        Box::new(())
    }
}
