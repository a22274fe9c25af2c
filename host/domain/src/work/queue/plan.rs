//! The plan of a driver that is free or at a boundary: which inputs it claims now, and in which
//! form they enter the thread.

use super::waiting::{Grouping, OverflowNotice, Queue, WaitKind, WaitingInput, are_of_one_route};
use super::{COLLECTED_BYTES_MAX, COLLECTED_TITLE, JOINED_INPUTS_MAX};
use crate::access::user::UserId;
use crate::values::time::Timestamp;
use std::cmp::Reverse;

/// The state of a session's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// No run is open.
    Free,
    /// It is at work.
    Running {
        /// True if it accepts messages at its present boundary or at its next one.
        steerable: bool,
    },
    /// It belongs to a structured session, and continues after its client's answer.
    AwaitingClient,
    /// Its thread is being compacted: no input may be added.
    Compacting,
}

/// The next action. Inputs are claimed in the commit of the action, and so only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan<Id> {
    /// Nothing, until an input arrives or the run reaches its next boundary or its end.
    Nothing,
    /// Nothing before this time, which is in the future, unless an input arrives.
    WaitUntil(Timestamp),
    /// These join the open run as separate messages.
    Join(Claims<Id>),
    /// A turn begins.
    Start(PlannedTurn<Id>),
    /// The open run has to end. Nothing is claimed yet: once it has ended, the plan is a turn whose
    /// last message is the newest.
    Abort {
        /// The newest interrupting input, which is recorded as the reason for the run's end.
        newest: Id,
    },
}

/// The beginning of a turn. A notice reports the queue's [`super::Overflow`], which the claiming
/// commit empties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedTurn<Id> {
    /// With an input that gets a turn of its own. The notice of dropped inputs waits for a turn of
    /// messages: an agent that handed over work has no use for it.
    Own(Id),
    /// With these inputs as separate messages, preceded by the notice as a message of the host's.
    Words {
        /// The notice of inputs dropped before.
        notice: Option<OverflowNotice>,
        /// The inputs, in this order.
        claims: Claims<Id>,
    },
    /// With one message for all of these, whose text is that of [`collected`].
    Collected {
        /// The notice of inputs dropped before; part of the text.
        notice: Option<OverflowNotice>,
        /// The inputs, in this order. Other settings of the turn, such as its model, are those of
        /// the last input.
        claims: Claims<Id>,
    },
}

/// Inputs that are claimed together: at least one, in the order in which they enter the thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims<Id> {
    first: Id,
    rest: Vec<Id>,
}

impl<Id> Claims<Id> {
    fn from_ids(mut ids: impl Iterator<Item = Id>) -> Option<Self> {
        ids.next().map(|first| Self {
            first,
            rest: ids.collect(),
        })
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Id> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

impl<Id: Clone> Queue<Id> {
    /// Decides what to do now, in this condition; `of` is the user of the open run.
    ///
    /// All inputs that share a turn are from one user. A turn acts for the user with whom it began.
    /// Another user's message would be processed with rights that are not theirs.
    ///
    /// With a run open:
    /// - an input that interrupts ends it, also a run that awaits its client by now: it was
    ///   accepted before that;
    /// - steering inputs join it if it can be steered and is of the same user, in the order of
    ///   their acceptance, [`JOINED_INPUTS_MAX`] at one boundary; those of other users wait for the
    ///   next turn.
    ///
    /// Without one, the next turn begins with
    /// - those of one user that interrupt, the newest last, so that an older one neither ends the
    ///   run of a newer one nor is lost, [`JOINED_INPUTS_MAX`] in one turn: when there are more, or
    ///   others', the next ones end that turn and begin another;
    /// - else the most urgent, and of equally urgent ones the first to be accepted. Words that
    ///   steer take along those that steer and are as urgent; words that are collected take along
    ///   those that stand next to them in the queue and are as urgent.
    ///
    /// Queued inputs take part once the debounce of the last of them is over. An input with a time
    /// in the future, written before the clock was set back, delays none.
    #[must_use]
    pub fn plan(&self, condition: Condition, of: Option<&UserId>, now: Timestamp) -> Plan<Id> {
        let newest = self.of_kind(&WaitKind::Interrupt).last();
        match (condition, newest) {
            (Condition::Free, _) => self.next_turn(now),
            (_, Some(newest)) => Plan::Abort {
                newest: newest.id.clone(),
            },
            (Condition::Running { steerable: true }, None) => {
                let joining = self
                    .of_kind(&WaitKind::Steer)
                    .filter(|waiting| of == Some(&waiting.user))
                    .take(JOINED_INPUTS_MAX);
                claims(joining).map_or(Plan::Nothing, Plan::Join)
            }
            (
                Condition::Running { steerable: false }
                | Condition::AwaitingClient
                | Condition::Compacting,
                None,
            ) => Plan::Nothing,
        }
    }

    fn next_turn(&self, now: Timestamp) -> Plan<Id> {
        if let Some(first) = self.of_kind(&WaitKind::Interrupt).next() {
            return self.start(self.with(first));
        }
        let deferred_until = self.deferred_until(now);
        let free = self
            .waiting
            .iter()
            .filter(|waiting| deferred_until.is_none() || waiting.kind.queued().is_none());
        let Some(head) = free.min_by_key(|waiting| Reverse(waiting.priority)) else {
            return deferred_until.map_or(Plan::Nothing, Plan::WaitUntil);
        };
        let alone = || Claims {
            first: head.id.clone(),
            rest: Vec::new(),
        };
        match &head.kind {
            WaitKind::OwnTurn => Plan::Start(PlannedTurn::Own(head.id.clone())),
            WaitKind::Steer | WaitKind::Interrupt => self.start(self.with(head)),
            WaitKind::Queued(queued) => match queued.grouping {
                Grouping::Collect { .. }
                    if are_of_one_route(self.queued().map(|(_, queued)| &queued.grouping)) =>
                {
                    let claims = claims(self.next_to(head)).unwrap_or_else(alone);
                    Plan::Start(PlannedTurn::Collected {
                        notice: self.overflow.notice(),
                        claims,
                    })
                }
                Grouping::Followup | Grouping::OneByOne { .. } | Grouping::Collect { .. } => {
                    self.start(alone())
                }
            },
        }
    }

    /// An input that steers or interrupts, with the inputs of the same kind and user that share its
    /// turn. These interrupt before another user does, or are as urgent.
    fn with(&self, head: &WaitingInput<Id>) -> Claims<Id> {
        let is_theirs = |waiting: &&WaitingInput<Id>| waiting.user == head.user;
        let with = match head.kind {
            // An input after another user's ends that user's turn, and must not be ended by it.
            WaitKind::Interrupt => claims(
                self.of_kind(&head.kind)
                    .take_while(is_theirs)
                    .take(JOINED_INPUTS_MAX),
            ),
            _ => claims(
                self.of_kind(&head.kind)
                    .filter(|it| is_theirs(it) && it.priority == head.priority)
                    .take(JOINED_INPUTS_MAX),
            ),
        };
        with.unwrap_or_else(|| Claims {
            first: head.id.clone(),
            rest: Vec::new(),
        })
    }

    fn start(&self, claims: Claims<Id>) -> Plan<Id> {
        Plan::Start(PlannedTurn::Words {
            notice: self.overflow.notice(),
            claims,
        })
    }

    fn of_kind(&self, kind: &WaitKind) -> impl Iterator<Item = &WaitingInput<Id>> {
        self.waiting
            .iter()
            .filter(move |waiting| waiting.kind == *kind)
    }

    /// Returns the time until which the debounce of the queue's last input delays all of them. None
    /// if it delays none.
    fn deferred_until(&self, now: Timestamp) -> Option<Timestamp> {
        let (last, queued) = self.queued().next_back()?;
        let until = last.arrived.plus_ms(queued.debounce_ms.ms());
        (last.arrived <= now && now < until).then_some(until)
    }

    /// The most urgent collected input and those that share its message. They are adjacent in the
    /// queue, have the same user and the same urgency, and fit into one message.
    fn next_to<'a>(
        &'a self,
        head: &WaitingInput<Id>,
    ) -> impl Iterator<Item = &'a WaitingInput<Id>> {
        let priority = head.priority;
        let mut text_bytes = 0_u64;
        let turns = self
            .waiting
            .iter()
            .filter(move |waiting| waiting.priority == priority && waiting.kind != WaitKind::Steer);
        turns
            .enumerate()
            .map_while(move |(index, waiting)| match &waiting.kind {
                WaitKind::Queued(_) if waiting.user != head.user => None,
                WaitKind::Queued(queued) => match queued.grouping {
                    Grouping::Collect {
                        text_bytes: bytes, ..
                    } => {
                        text_bytes = text_bytes.saturating_add(bytes);
                        (index == 0 || text_bytes <= COLLECTED_BYTES_MAX).then_some(waiting)
                    }
                    _ => None,
                },
                _ => None,
            })
    }
}

fn claims<'a, Id: Clone + 'a>(
    inputs: impl Iterator<Item = &'a WaitingInput<Id>>,
) -> Option<Claims<Id>> {
    Claims::from_ids(inputs.map(|waiting| waiting.id.clone()))
}

/// The text of the one message for all collected inputs: a title, a note of dropped ones, and each
/// text under its number.
pub fn collected<'a>(
    notice: Option<&OverflowNotice>,
    texts: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut blocks = vec![COLLECTED_TITLE.to_owned()];
    blocks.extend(notice.map(ToString::to_string));
    blocks.extend(
        texts
            .into_iter()
            .zip(1..)
            .map(|(text, number)| format!("---\nQueued #{number}\n{text}")),
    );
    blocks.join("\n\n")
}
