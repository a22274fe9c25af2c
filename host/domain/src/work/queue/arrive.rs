//! The effects of an input that arrives: how its mode applies, and which inputs it drops from a
//! full queue.

use super::OVERFLOW_LINES_MAX;
use super::mode::Mode;
use super::overflow::{Overflow, excerpt};
use super::plan::Condition;
use super::settings::{Debounce, DropPolicy, QueueSettings};
use super::waiting::{Grouping, Queue, Queued, WaitKind, are_of_one_route};

/// A message that arrives. Inputs with a turn of their own do not pass here: they are
/// [`WaitKind::OwnTurn`].
#[derive(Debug, Clone, Copy)]
pub struct Arriving<'a> {
    /// The settings of its queue ([`QueueSettings::resolve`]).
    pub settings: QueueSettings,
    /// The route of its answer, if one is given.
    pub route: Option<&'a str>,
    /// Its text.
    pub text: &'a str,
    /// The text of the line that is kept if it is dropped ([`super::line`]).
    pub line: &'a str,
}

/// The rows that an accepted message adds and drops, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission<Id> {
    /// Its kind, which is what it waits for.
    pub kind: WaitKind,
    /// The inputs that it drops; none if there was room.
    pub drops: Option<Drops<Id>>,
}

/// Inputs that were dropped, because the queue was full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drops<Id> {
    /// Their ids: those of the queued inputs that have waited longest, whatever their priority.
    pub ids: Vec<Id>,
    /// The record of these and of the inputs dropped before. It replaces the queue's present
    /// [`Queue::overflow`].
    pub overflow: Overflow,
}

/// The queue is full, and its settings do not allow dropping an input for a new one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the queue holds {waiting} messages and its cap is {cap}; wait for the run, or send it with \
     the mode `steer`, \
     a higher cap, or the drop policy `old` or `summarize`"
)]
pub struct QueueFull {
    waiting: usize,
    cap: usize,
}

impl<Id: Clone> Queue<Id> {
    /// Decides on a message that arrives while the session is in this condition.
    ///
    /// - Messages that would steer or interrupt a run which awaits its client are followups: only
    ///   the client's answer continues that run, and only an abort ends it.
    /// - A message for the queue that finds the agent free and the queue empty begins a turn at
    ///   once, by itself. If others of the queue wait still, it gets its turn after those, and none
    ///   waits for a debounce any longer.
    ///
    /// # Errors
    /// The message is for the queue, the queue has as many inputs as its cap, and its policy drops
    /// no waiting input.
    pub fn arrive(
        &self,
        arriving: &Arriving<'_>,
        condition: Condition,
    ) -> Result<Admission<Id>, QueueFull> {
        let collects = match (arriving.settings.mode, condition) {
            (Mode::Steer | Mode::Interrupt, Condition::AwaitingClient) | (Mode::Followup, _) => {
                false
            }
            (Mode::Collect, _) => condition != Condition::Free || self.queued().next().is_some(),
            (Mode::Steer, _) => {
                return Ok(Admission {
                    kind: WaitKind::Steer,
                    drops: None,
                });
            }
            (Mode::Interrupt, _) => {
                return Ok(Admission {
                    kind: WaitKind::Interrupt,
                    drops: None,
                });
            }
        };
        let dropped = self.surplus(arriving.settings)?;
        let grouping = if collects {
            self.collecting(arriving, dropped)
        } else {
            Grouping::Followup
        };
        let debounce_ms = if condition == Condition::Free {
            Debounce::NONE
        } else {
            arriving.settings.debounce_ms
        };
        let kind = WaitKind::Queued(Queued {
            grouping,
            debounce_ms,
            excerpt: excerpt(arriving.line),
        });
        Ok(Admission {
            kind,
            drops: (dropped > 0).then(|| self.drops(dropped, arriving.settings)),
        })
    }

    /// Returns how many inputs to drop so that one more fits.
    fn surplus(&self, settings: QueueSettings) -> Result<usize, QueueFull> {
        let waiting = self.queued().count();
        let cap = settings.cap.inputs();
        match (waiting + 1).saturating_sub(cap) {
            surplus if surplus > 0 && settings.drop == DropPolicy::New => {
                Err(QueueFull { waiting, cap })
            }
            surplus => Ok(surplus),
        }
    }

    fn collecting(&self, arriving: &Arriving<'_>, dropped: usize) -> Grouping {
        let route = arriving.route.map(str::to_owned);
        let grouping = Grouping::Collect {
            route: route.clone(),
            text_bytes: arriving.text.len() as u64,
        };
        let others = self
            .queued()
            .skip(dropped)
            .map(|(_, queued)| &queued.grouping);
        if are_of_one_route(others.chain([&grouping])) {
            grouping
        } else {
            Grouping::OneByOne { route }
        }
    }

    fn drops(&self, dropped: usize, settings: QueueSettings) -> Drops<Id> {
        let mut drops = Drops {
            ids: Vec::new(),
            overflow: self.overflow.clone(),
        };
        for (waiting, queued) in self.queued().take(dropped) {
            drops.ids.push(waiting.id.clone());
            match settings.drop {
                DropPolicy::Summarize => drops.overflow.summarize(
                    &queued.excerpt,
                    settings.cap.inputs().min(OVERFLOW_LINES_MAX),
                ),
                DropPolicy::Old => drops.overflow.count(),
                // With this policy, waiting inputs are not dropped.
                DropPolicy::New => {}
            }
        }
        drops
    }
}
