//! The rows of the queue: waiting inputs, with the facts that the rules need.

use super::overflow::Overflow;
use super::settings::Debounce;
use crate::access::user::UserId;
use crate::values::time::Timestamp;
use crate::work::delegate::Priority;
use serde::{Deserialize, Serialize};

/// A session's waiting inputs, and the record of dropped ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue<Id> {
    /// Inputs that wait, in the order of their acceptance.
    pub waiting: Vec<WaitingInput<Id>>,
    /// Inputs that were dropped since the last report of a turn.
    pub overflow: Overflow,
}

/// A waiting input without its text, which may be long and which the rules do not use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingInput<Id> {
    /// The input.
    pub id: Id,
    /// Time at which it was accepted.
    pub arrived: Timestamp,
    /// Its urgency: between turns the most urgent input goes first.
    pub priority: Priority,
    /// Its user, whose rights its turn has. Inputs of several users never share a turn.
    pub user: UserId,
    /// Its kind, as its acceptance decided.
    pub kind: WaitKind,
}

/// The kind of an input: what it waits for. It is decided at acceptance, by [`Queue::arrive`], and
/// never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WaitKind {
    /// A turn of its own, whatever the queue's mode: handed-over work, an opening. It is never
    /// joined to others or dropped.
    OwnTurn,
    /// The next boundary of the open run, or the next turn.
    Steer,
    /// The end of the open run, which it causes.
    Interrupt,
    /// Its turn after the run. Only these count towards a cap and may be dropped.
    Queued(Queued),
}

/// An input that waits for the run to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// The inputs with which it shares its turn.
    pub grouping: Grouping,
    /// Time without a further input after it before its turn; none if it found the agent free.
    pub debounce_ms: Debounce,
    /// The line that is kept if it is dropped ([`super::excerpt`]).
    pub excerpt: String,
}

/// The inputs with which a queued input shares its turn.
///
/// A route is the destination of the answer: a channel, a chat, a thread of it. Inputs of different
/// routes are not put into one message, because its answer has one route. Inputs without a route
/// form one group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "grouping", rename_all = "snake_case")]
pub enum Grouping {
    /// It shares its turn with no other input.
    Followup,
    /// It shares its turn with adjacent collected inputs.
    Collect {
        /// The route of its answer.
        route: Option<String>,
        /// Length of its text in bytes.
        text_bytes: u64,
    },
    /// It shares its turn with no other input, because inputs of another route were being collected
    /// when it arrived. While any of them waits, nothing is collected.
    OneByOne {
        /// The route of its answer.
        route: Option<String>,
    },
}

impl<Id> Default for Queue<Id> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            overflow: Overflow::default(),
        }
    }
}

impl<Id> Queue<Id> {
    /// Returns the inputs that a cap counts, in the order of their acceptance.
    pub(super) fn queued(&self) -> impl DoubleEndedIterator<Item = (&WaitingInput<Id>, &Queued)> {
        self.waiting
            .iter()
            .filter_map(|waiting| waiting.kind.queued().map(|queued| (waiting, queued)))
    }
}

impl WaitKind {
    pub(super) fn queued(&self) -> Option<&Queued> {
        match self {
            Self::Queued(queued) => Some(queued),
            Self::OwnTurn | Self::Steer | Self::Interrupt => None,
        }
    }
}

/// Returns whether inputs, if they are collected at all, can go into one message. They can if all
/// have one route and none is marked as one by one.
pub(super) fn are_of_one_route<'a>(inputs: impl IntoIterator<Item = &'a Grouping>) -> bool {
    let mut first: Option<&Option<String>> = None;
    inputs.into_iter().all(|grouping| match grouping {
        Grouping::Followup => true,
        Grouping::Collect { route, .. } => *first.get_or_insert(route) == route,
        Grouping::OneByOne { .. } => false,
    })
}
