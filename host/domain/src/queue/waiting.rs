//! The rows of the queue: inputs that wait, with all that the rules need to know of them.

use super::overflow::Overflow;
use super::settings::Debounce;
use crate::delegate::Priority;
use crate::time::Timestamp;
use crate::user::UserId;
use serde::{Deserialize, Serialize};

/// A session's inputs that wait, and what was dropped of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue<Id> {
    /// Those that wait, in the order of their acceptance.
    pub waiting: Vec<Waiting<Id>>,
    /// Those that were dropped since a turn last told of it.
    pub overflow: Overflow,
}

/// An input that waits. What it says is not among it: the rules do not look at it, and it may be long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting<Id> {
    /// The input.
    pub id: Id,
    /// When it was accepted.
    pub arrived: Timestamp,
    /// How urgent it is: between turns the most urgent goes first.
    pub priority: Priority,
    /// From whom it is, whose rights its turn has: what several users say never shares a turn.
    pub user: UserId,
    /// What it waits for, as its acceptance decided it.
    pub kind: Kind,
}

/// What an input waits for. Decided when it is accepted, by [`Queue::arrive`], and never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// A turn of its own, whatever the queue's mode: work that somebody handed over, an opening. It is never joined to others or dropped.
    OwnTurn,
    /// The next boundary of the open run, or the next turn.
    Steer,
    /// The end of the open run, which it brings about.
    Interrupt,
    /// Its turn after the run. These, and only these, are what a cap counts and what may be dropped.
    Queued(Queued),
}

/// An input that waits for the run to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// With whom it gets its turn.
    pub manner: Manner,
    /// How long nothing further must arrive after it; none when it found the agent free.
    pub debounce_ms: Debounce,
    /// The line that stays of it when it is dropped ([`super::excerpt`]).
    pub excerpt: String,
}

/// With whom a queued input gets its turn.
///
/// A route says where the answer goes: a channel, a chat, a thread of it. Words of different routes are not put into one message, because
/// its answer has one route. Words without a route are of a route of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "manner", rename_all = "snake_case")]
pub enum Manner {
    /// With nobody.
    Followup,
    /// With those that were collected next to it.
    Collect {
        /// Where its answer goes.
        route: Option<String>,
        /// How long its text is.
        text_bytes: u64,
    },
    /// With nobody, because others of another route were being collected when it arrived: until none of them waits, nothing is collected.
    OneByOne {
        /// Where its answer goes.
        route: Option<String>,
    },
}

impl<Id> Default for Queue<Id> {
    fn default() -> Self {
        Self { waiting: Vec::new(), overflow: Overflow::default() }
    }
}

impl<Id> Queue<Id> {
    /// Those that a cap counts, in the order of their acceptance.
    pub(super) fn queued(&self) -> impl DoubleEndedIterator<Item = (&Waiting<Id>, &Queued)> {
        self.waiting.iter().filter_map(|waiting| waiting.kind.queued().map(|queued| (waiting, queued)))
    }
}

impl Kind {
    pub(super) fn queued(&self) -> Option<&Queued> {
        match self {
            Self::Queued(queued) => Some(queued),
            Self::OwnTurn | Self::Steer | Self::Interrupt => None,
        }
    }
}

/// Whether inputs, if they are to be collected at all, can go into one message: all of one route, and none marked as one by one.
pub(super) fn are_of_one_route<'a>(inputs: impl IntoIterator<Item = &'a Manner>) -> bool {
    let mut first: Option<&Option<String>> = None;
    inputs.into_iter().all(|manner| match manner {
        Manner::Followup => true,
        Manner::Collect { route, .. } => *first.get_or_insert(route) == route,
        Manner::OneByOne { .. } => false,
    })
}
