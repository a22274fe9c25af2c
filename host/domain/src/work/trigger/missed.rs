//! Missed trigger events: which of those that are due are processed, by the policy of the schedule.

use super::{
    LATE_MS_MAX, MISSED_COUNTED_MAX, MissedPolicy, Owner, Schedule, ScheduleError, ScheduleSpec,
    Span,
};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The reason why trigger events of a schedule were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// They were missed, and its policy skips missed ones.
    Missed,
    /// Its session is busy; it is tried again.
    Busy,
    /// Its checklist is empty.
    EmptyChecklist,
    /// It is outside of its active hours.
    Inactive,
    /// Its daily budget is spent.
    Budget,
    /// Too long a chain of events led to it: triggers cause each other's events.
    Chain,
}

/// The treatment of due trigger events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Catching {
    /// The policy for missed ones.
    pub policy: MissedPolicy,
    /// The number that is processed at once.
    pub max: u32,
}

impl Catching {
    /// The treatment of heartbeats: a missed one is not made up for.
    pub const HEARTBEAT: Self = Self {
        policy: MissedPolicy::Skip,
        max: 1,
    };
}

impl From<&ScheduleSpec> for Catching {
    fn from(spec: &ScheduleSpec) -> Self {
        Self {
            policy: spec.missed,
            max: spec.missed_max(),
        }
    }
}

/// The trigger events that are due, by their treatment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComeDue {
    /// Skipped trigger events: the due time of the first, and their number, which is counted up to
    /// [`MISSED_COUNTED_MAX`].
    pub skipped: Option<(Timestamp, u32)>,
    /// Trigger events to process, in order: the due time of each, and how many missed ones before
    /// it are included in it.
    pub trigger_events: Vec<(Timestamp, u32)>,
    /// The next trigger event; none if the schedule is over.
    pub next_due: Option<Timestamp>,
}

impl Catching {
    /// Returns the due trigger events of a schedule whose next one was due at `next_due`.
    ///
    /// The next one follows from the last due one. A clock that was set back thus finds none twice,
    /// and a clock that was set forward finds all in between.
    ///
    /// # Errors
    /// As of [`Schedule::next`].
    pub fn come_due(
        self,
        scheduled: &Scheduled<'_>,
        next_due: Timestamp,
        now: Timestamp,
    ) -> Result<ComeDue, ScheduleError> {
        if next_due > now {
            return Ok(ComeDue {
                next_due: Some(next_due),
                ..ComeDue::default()
            });
        }
        let is_late = |due: Timestamp| now.since_ms(due) > LATE_MS_MAX;
        if scheduled.schedule.is_once() && !(self.policy == MissedPolicy::Skip && is_late(next_due))
        {
            return Ok(ComeDue {
                trigger_events: vec![(next_due, 0)],
                ..ComeDue::default()
            });
        }
        // Trigger events have whole milliseconds: this span begins with the first of them.
        let span = Span {
            after: Timestamp(next_due.0.saturating_sub(1)),
            until: now,
        };
        let count = scheduled.count(span, MISSED_COUNTED_MAX)?.max(1);
        let kept = scheduled.last(span, self.max.max(1).min(count))?;
        let last = kept.last().copied().unwrap_or(next_due);
        let kept: Vec<Timestamp> = match self.policy {
            MissedPolicy::Skip => kept.into_iter().filter(|due| !is_late(*due)).collect(),
            MissedPolicy::Once | MissedPolicy::All => kept,
        };
        let left = count.saturating_sub(u32::try_from(kept.len()).unwrap_or(u32::MAX));
        let (missed, skipped) = match self.policy {
            MissedPolicy::Once => (left, 0),
            MissedPolicy::Skip | MissedPolicy::All => (0, left),
        };
        Ok(ComeDue {
            skipped: (skipped > 0).then_some((next_due, skipped)),
            trigger_events: kept.into_iter().map(|due| (due, missed)).collect(),
            next_due: scheduled.next(last)?,
        })
    }
}

/// A schedule with its owner.
#[derive(Debug, Clone, Copy)]
pub struct Scheduled<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// The trigger of the schedule.
    pub owner: Owner<'a>,
}

impl Scheduled<'_> {
    /// Returns the first trigger event after a time, if any.
    ///
    /// # Errors
    /// As of [`Schedule::next`].
    pub fn next(&self, after: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
        let Owner { name, defined } = self.owner;
        self.schedule.next(name, defined, after)
    }

    fn count(&self, span: Span, limit: u32) -> Result<u32, ScheduleError> {
        self.schedule.between(&self.owner, span, limit)
    }

    /// The last trigger events of a span, in order, up to a number; all of them if there are fewer.
    fn last(&self, span: Span, number: u32) -> Result<Vec<Timestamp>, ScheduleError> {
        // The latest time after which enough trigger events follow: the search halves the span,
        // because a span of a year may have a million of them.
        let mut enough = span.after;
        let mut few = span.until;
        if self.count(span, number)? >= number {
            while few.since_ms(enough) > 1 {
                let middle = Timestamp(enough.0.midpoint(few.0));
                let rest = Span {
                    after: middle,
                    until: span.until,
                };
                if self.count(rest, number)? >= number {
                    enough = middle;
                } else {
                    few = middle;
                }
            }
        }
        let mut found = Vec::new();
        let mut after = enough;
        while found.len() < usize::try_from(number).unwrap_or(usize::MAX)
            && let Some(next) = self.next(after)?
            && next <= span.until
        {
            found.push(next);
            after = next;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
