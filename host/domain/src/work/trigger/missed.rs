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
mod tests {
    use super::*;
    use crate::work::trigger::TriggerName;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const DEFINED: Timestamp = Timestamp(1_767_225_600_000);
    const MINUTE_MS: u64 = 60_000;

    fn schedule(spec: &Value) -> Schedule {
        Schedule::parse(&serde_json::from_value(spec.clone()).unwrap()).unwrap()
    }

    /// Minutes after the definition.
    fn minute(number: u64) -> Timestamp {
        DEFINED.plus_ms(number * MINUTE_MS)
    }

    fn come_due(spec: &Value, next_due: Timestamp, now: Timestamp) -> ComeDue {
        let read: ScheduleSpec = serde_json::from_value(spec.clone()).unwrap();
        let name: TriggerName = "t".parse().unwrap();
        let schedule = schedule(spec);
        let scheduled = Scheduled {
            schedule: &schedule,
            owner: Owner {
                name: &name,
                defined: DEFINED,
            },
        };
        Catching::from(&read)
            .come_due(&scheduled, next_due, now)
            .unwrap()
    }

    fn every(missed: &str) -> Value {
        json!({ "every": "10m", "missed": missed })
    }

    #[test]
    fn nothing_has_come_due_before_its_time() {
        let due = come_due(&every("once"), minute(10), minute(9));
        assert_eq!(due.next_due, Some(minute(10)));
        assert_eq!((due.trigger_events, due.skipped), (vec![], None));
    }

    #[test]
    fn a_trigger_event_that_is_on_time_is_dealt_with_under_every_policy() {
        for policy in ["skip", "once", "all"] {
            let now = minute(10).plus_ms(20);
            let due = come_due(&every(policy), minute(10), now);
            assert_eq!(due.trigger_events, [(minute(10), 0)], "{policy}");
            assert_eq!(due.skipped, None, "{policy}");
            assert_eq!(due.next_due, Some(minute(20)), "{policy}");
        }
    }

    /// The host was away from minute 10 to minute 67; six trigger events came due.
    #[test]
    fn missed_trigger_events_are_dealt_with_as_the_policy_says() {
        let now = minute(67);
        let skip = come_due(&every("skip"), minute(10), now);
        assert_eq!(
            (skip.trigger_events, skip.skipped),
            (vec![], Some((minute(10), 6)))
        );
        let skip = come_due(&every("skip"), minute(10), minute(62));
        assert_eq!(skip.trigger_events, [(minute(60), 0)]);
        assert_eq!(skip.skipped, Some((minute(10), 5)));
        let once = come_due(&every("once"), minute(10), now);
        assert_eq!(
            (once.trigger_events, once.skipped),
            (vec![(minute(60), 5)], None)
        );
        let all = come_due(&every("all"), minute(10), now);
        let each: Vec<(Timestamp, u32)> = (1..=6).map(|number| (minute(number * 10), 0)).collect();
        assert_eq!((all.trigger_events, all.skipped), (each, None));
        let some = json!({ "every": "10m", "missed": "all", "missedMax": 2 });
        let some = come_due(&some, minute(10), now);
        assert_eq!(some.trigger_events, [(minute(50), 0), (minute(60), 0)]);
        assert_eq!(some.skipped, Some((minute(10), 4)));
        assert_eq!(some.next_due, Some(minute(70)));
    }

    #[test]
    fn years_of_missed_trigger_events_are_counted_without_looking_at_each() {
        let year = 366 * 24 * 60;
        let intervals = json!({ "every": "30s", "missed": "once" });
        let due = come_due(&intervals, DEFINED.plus_ms(30_000), minute(year));
        assert_eq!(due.trigger_events, [(minute(year), MISSED_COUNTED_MAX - 1)]);
        assert_eq!(due.next_due, Some(minute(year).plus_ms(30_000)));
        let minutes = json!({ "cron": "* * * * *", "missed": "all", "missedMax": 3 });
        let due = come_due(&minutes, minute(1), minute(year));
        let last: Vec<(Timestamp, u32)> = (0..3).map(|ago| (minute(year - 2 + ago), 0)).collect();
        assert_eq!(due.trigger_events, last);
        assert_eq!(due.skipped, Some((minute(1), MISSED_COUNTED_MAX - 3)));
        assert_eq!(due.next_due, Some(minute(year + 1)));
        let january = json!({ "cron": "* * * 1 *", "missed": "once" });
        let due = come_due(&january, minute(1), "2026-11-01T12:00:00Z".parse().unwrap());
        assert_eq!(
            due.trigger_events[0].0,
            "2026-01-31T23:59:00Z".parse().unwrap()
        );
        assert_eq!(due.next_due, "2027-01-01T00:00:00Z".parse().ok());
    }

    #[test]
    fn a_schedule_that_is_over_with_its_first_trigger_event_has_no_next() {
        for spec in [
            json!({ "at": "2026-01-01T00:10:00Z" }),
            json!({ "every": "10m", "once": true }),
            json!({ "cron": "*/10 * * * *", "once": true, "missed": "all" }),
        ] {
            let due = come_due(&spec, minute(10), minute(100));
            assert_eq!(due.trigger_events, [(minute(10), 0)], "{spec}");
            assert_eq!(due.next_due, None, "{spec}");
        }
        let skipped = json!({ "at": "2026-01-01T00:10:00Z", "missed": "skip" });
        let due = come_due(&skipped, minute(10), minute(100));
        assert_eq!((due.trigger_events, due.next_due), (vec![], None));
        assert_eq!(due.skipped, Some((minute(10), 1)));
        let later = json!({ "every": "1h", "once": true, "missed": "skip" });
        let due = come_due(&later, minute(60), minute(130));
        assert_eq!(due.skipped, Some((minute(60), 2)));
        assert_eq!(due.next_due, Some(minute(180)));
    }

    fn patterns() -> impl Strategy<Value = Value> {
        let zones = prop::sample::select(vec!["UTC", "Europe/Berlin", "Australia/Lord_Howe"]);
        let crons = prop::sample::select(vec!["* * * * *", "*/5 1-3 * * *", "0 * * * *"]);
        prop_oneof![
            (crons, zones).prop_map(|(cron, zone)| json!({ "cron": cron, "timeZone": zone })),
            (30..5_000_u64).prop_map(|seconds| json!({ "every": format!("{seconds}s") })),
        ]
    }

    proptest! {
        /// A clock that is put forward and back as it likes finds each trigger event once.
        #[test]
        fn jumps_of_the_clock_fire_each_trigger_event_once(
            spec in patterns(),
            month in 0..12_u64,
            jumps in prop::collection::vec(-200..400_i64, 1..40),
        ) {
            let start = DEFINED.plus_ms(month * 30 * 24 * 60 * MINUTE_MS);
            let schedule = schedule(&spec);
            let name: TriggerName = "t".parse().unwrap();
            let owner = Owner { name: &name, defined: DEFINED };
            let scheduled = Scheduled { schedule: &schedule, owner };
            let catching = Catching { policy: MissedPolicy::All, max: u32::MAX };
            let mut next_due = scheduled.next(start).unwrap().unwrap();
            let mut now = start;
            let mut latest = start;
            let mut fired = Vec::new();
            for jump in jumps {
                now = Timestamp(now.0.saturating_add_signed(jump * 60_000));
                latest = latest.max(now);
                let due = catching.come_due(&scheduled, next_due, now).unwrap();
                prop_assert_eq!(due.skipped, None);
                fired.extend(due.trigger_events.into_iter().map(|(due, _)| due));
                next_due = due.next_due.unwrap();
            }
            let mut expected = Vec::new();
            let mut last = start;
            while let Some(next) = scheduled.next(last).unwrap() && next <= latest {
                expected.push(next);
                last = next;
            }
            prop_assert_eq!(fired, expected);
            prop_assert_eq!(Some(next_due), scheduled.next(latest).unwrap());
        }

        /// The trigger events that are dealt with, told of and passed over are all that came due.
        #[test]
        fn nothing_that_came_due_is_left_out(
            spec in patterns(),
            policy in prop::sample::select(vec![
                MissedPolicy::Skip, MissedPolicy::Once, MissedPolicy::All,
            ]),
            max in 1..20_u32,
            minutes in 0..3_000_u64,
        ) {
            let schedule = schedule(&spec);
            let name: TriggerName = "t".parse().unwrap();
            let owner = Owner { name: &name, defined: DEFINED };
            let scheduled = Scheduled { schedule: &schedule, owner };
            let first = scheduled.next(DEFINED).unwrap().unwrap();
            let now = first.plus_ms(minutes * MINUTE_MS);
            let max = if policy == MissedPolicy::All { max } else { 1 };
            let due = Catching { policy, max }.come_due(&scheduled, first, now).unwrap();
            let span = Span { after: Timestamp(first.0 - 1), until: now };
            let all = schedule.between(&owner, span, u32::MAX).unwrap();
            let dealt = u32::try_from(due.trigger_events.len()).unwrap();
            let missed: u32 = due.trigger_events.iter().map(|(_, missed)| missed).sum();
            let skipped = due.skipped.map_or(0, |(_, count)| count);
            prop_assert_eq!(dealt + missed + skipped, all);
            prop_assert!(dealt <= max);
            prop_assert!(due.next_due.unwrap() > now);
        }
    }
}
