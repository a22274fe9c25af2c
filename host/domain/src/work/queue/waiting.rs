//! The rows of the queue: waiting inputs, with the facts that the rules need.

use super::plan::Condition;
use super::settings::{Debounce, DropPolicy, Mode, QueueSettings};
use super::{EXCERPT_CHARS_MAX, OVERFLOW_LINES_MAX};
use crate::access::user::UserId;
use crate::thread::speaker::Speaker;
use crate::values::text::wrapped_text;
use crate::values::time::Timestamp;
use crate::work::delegate::Priority;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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

// The effects of an input that arrives: how its mode applies, and which inputs it drops from a
// full queue.

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

// The record of dropped inputs: their number, a line of each, and the notice for the agent and its
// user.

/// The beginning of a notice, up to the number.
const BEGINS: &str = "[Queue overflow] Dropped ";
/// The prefix of each of its lines.
const LINE: &str = "\n- ";

/// The dropped inputs of a session that no turn has reported yet. It is a row of the session, and
/// empty once a turn has reported them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overflow {
    dropped: u64,
    lines: Vec<String>,
}

/// The text about dropped messages, with which a turn begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OverflowNotice(String);

impl Overflow {
    /// Returns how many inputs were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// One line for each of the last messages that were dropped with a line, oldest first.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Counts one more message, dropped without a line.
    pub(super) fn count(&mut self) {
        self.dropped = self.dropped.saturating_add(1);
    }

    /// Counts one more message, dropped with a line. Beyond this many lines the oldest lines are
    /// lost; they still count.
    pub(super) fn summarize(&mut self, line: &str, lines_max: usize) {
        self.count();
        self.lines.push(line.to_owned());
        self.lines
            .drain(..self.lines.len().saturating_sub(lines_max));
    }

    /// These, followed by later ones. The first lines are lost beyond [`OVERFLOW_LINES_MAX`].
    #[must_use]
    pub fn and(mut self, later: Self) -> Self {
        self.dropped = self.dropped.saturating_add(later.dropped);
        self.lines.extend(later.lines);
        self.lines
            .drain(..self.lines.len().saturating_sub(OVERFLOW_LINES_MAX));
        self
    }

    /// Returns the notice with which a turn begins; none if nothing was dropped.
    #[must_use]
    pub fn notice(&self) -> Option<OverflowNotice> {
        if self.dropped == 0 {
            return None;
        }
        let plural = if self.dropped == 1 { "" } else { "s" };
        let mut text = format!("{BEGINS}{} message{plural} due to cap.", self.dropped);
        if !self.lines.is_empty() {
            text.push_str("\nSummary:");
        }
        for line in &self.lines {
            text.push_str(LINE);
            text.push_str(line);
        }
        Some(OverflowNotice(text))
    }
}

wrapped_text!(OverflowNotice);

impl OverflowNotice {
    /// Returns the overflow that it reports, for another report. The turn that began with it was
    /// never committed.
    #[must_use]
    pub fn untold(&self) -> Overflow {
        let number: String = self
            .0
            .strip_prefix(BEGINS)
            .unwrap_or_default()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        // A line contains no line break.
        let lines = self.0.split(LINE).skip(1).map(str::to_owned).collect();
        Overflow {
            dropped: number.parse().unwrap_or(1),
            lines,
        }
    }
}

/// Returns the line for dropped words: a user's words as they are, anybody else's with their
/// source.
///
/// The host shows the line as its own text or before a user's. So it contains no words that rest on
/// content from outside.
#[must_use]
pub fn line<'a>(speaker: Option<&Speaker>, untrusted: bool, text: &'a str) -> Cow<'a, str> {
    if untrusted {
        let label = speaker.map_or_else(|| "elsewhere".to_owned(), Speaker::label);
        return Cow::Owned(format!("[from {label}, untrusted: left out]"));
    }
    match speaker.filter(|speaker| !speaker.is_user()) {
        Some(speaker) => Cow::Owned(format!("[from {}] {text}", speaker.label())),
        None => Cow::Borrowed(text),
    }
}

/// A text on one line: blanks and line ends in a row become one blank. A text of more than
/// [`EXCERPT_CHARS_MAX`] letters is cut and ends in `…`.
#[must_use]
pub fn excerpt(text: &str) -> String {
    let words = text.split_whitespace().enumerate();
    let letters =
        words.flat_map(|(index, word)| (index > 0).then_some(' ').into_iter().chain(word.chars()));
    // Reads at most one letter too many: a text may have a million of them.
    let line: String = letters.take(EXCERPT_CHARS_MAX + 1).collect();
    match line.char_indices().nth(EXCERPT_CHARS_MAX - 1) {
        Some((last, letter)) if last + letter.len_utf8() < line.len() => {
            format!("{}…", line.get(..last).unwrap_or_default().trim_end())
        }
        Some(_) | None => line,
    }
}
