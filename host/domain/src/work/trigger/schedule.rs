//! Schedules: when a trigger is due.
//!
//! A schedule depends only on the operator's text, the trigger's name, the time of its definition
//! and the previous trigger event. Each trigger event is therefore found once, whatever the
//! machine's clock does: the next one follows from the last one, and not from the present time.
//!
//! A `cron` schedule uses the clocks of its zone. With hours named, a time that is skipped when a
//! clock is put forward is due right after the change. A time that a clock shows twice is due the
//! first time. If every hour is meant, the schedule continues hour by hour through both changes.

mod cron;
#[cfg(test)]
mod tests;

use self::cron::CronRule;
use super::{
    ActiveTimes, BeyondCalendar, HeartbeatSpec, INTERVAL_MS_MAX, Interval, MIN_INTERVAL_MS,
    MISSED_DEFAULT, MISSED_MAX, SPREAD_MS_MAX, SpecFault, TriggerName, Zone,
};
use crate::values::digest::Digest;
use crate::values::text::words;
use crate::values::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One hour in milliseconds.
const HOUR_MS: u64 = 3_600_000;
const _: () = assert!(INTERVAL_MS_MAX / HOUR_MS == 366 * 24);

/// The policy for trigger events that were due while the host could not process them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissedPolicy {
    /// They are passed over.
    Skip,
    /// The last of them is processed, with the number of earlier ones.
    #[default]
    Once,
    /// Each of them is processed, up to `missedMax`; older ones are skipped.
    All,
}

words!(MissedPolicy { Skip = "skip", Once = "once", All = "all" });

/// A schedule: exactly one of `at`, `every` and `cron`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ScheduleSpec {
    /// One time, with its offset, such as `2026-12-15T09:30:00+01:00`.
    #[serde(
        serialize_with = "write_time",
        deserialize_with = "read_time",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    /// An interval from `30s` to `366d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Interval>,
    /// The time from which intervals are counted, with its offset; no trigger event precedes it.
    /// Without it, they are counted from the definition of the trigger, and the first trigger event
    /// is one interval later.
    #[serde(
        serialize_with = "write_time",
        deserialize_with = "read_time",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub anchor: Option<Timestamp>,
    /// Five fields: minute, hour, day of the month, month and day of the week, such as `0 9 * *
    /// 1-5`. Months and days of the week may be named by three letters. If both days are given, one
    /// match is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone of `cron`, such as `Europe/Berlin`; default `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The policy for missed trigger events; default `once`.
    #[serde(skip_serializing_if = "crate::values::json::is_default")]
    pub missed: MissedPolicy,
    /// Number of missed trigger events that `all` makes up for, from 1 to 100; default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub missed_max: Option<u32>,
    /// True if trigger events at whole hours are delayed by up to 5 minutes. The delay is constant
    /// and derived from the trigger's name, so that not all triggers of a host are due at once.
    /// Without it there is no delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<bool>,
    /// True if it ends with its first trigger event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

/// The reason why the next due time of a trigger is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The definition is no schedule.
    #[error(transparent)]
    Spec(#[from] SpecFault),
    /// The next trigger event is beyond the calendar.
    #[error(transparent)]
    Calendar(#[from] BeyondCalendar),
    /// The next trigger event was not found within the search's limit.
    #[error("the next trigger event was not found within {0} steps of the search")]
    Search(u32),
}

/// A schedule that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    rule: Rule,
    is_spread: bool,
    once: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    At(Timestamp),
    Every {
        interval_ms: u64,
        anchor: Option<Timestamp>,
    },
    Cron(Box<CronRule>),
    Beat {
        interval_ms: u64,
        active: Option<ActiveTimes>,
    },
}

impl ScheduleSpec {
    /// Returns how many missed trigger events are made up for.
    #[must_use]
    pub fn missed_max(&self) -> u32 {
        match self.missed {
            MissedPolicy::Skip | MissedPolicy::Once => 1,
            MissedPolicy::All => self.missed_max.unwrap_or(MISSED_DEFAULT),
        }
    }

    /// Checks that no field is without effect, and that numbers are in their ranges.
    fn check(&self) -> Result<(), SpecFault> {
        let given = [self.at.is_some(), self.every.is_some(), self.cron.is_some()];
        let count = given.iter().filter(|is_given| **is_given).count();
        if count != 1 {
            let message = format!("has {count} of the fields at, every and cron");
            return Err(SpecFault::new("cron", message, "write exactly one of them"));
        }
        let unused = [
            (
                "anchor",
                self.anchor.is_some() && self.every.is_none(),
                "every",
            ),
            (
                "timeZone",
                self.time_zone.is_some() && self.cron.is_none(),
                "cron",
            ),
            (
                "spread",
                self.spread.is_some() && self.at.is_some(),
                "every or cron",
            ),
        ];
        if let Some((field, _, with)) = unused.into_iter().find(|(_, is_unused, _)| *is_unused) {
            let message = format!("has a meaning with {with} only");
            return Err(SpecFault::new(field, message, "leave it out"));
        }
        if let Some(max) = self.missed_max {
            if self.missed != MissedPolicy::All {
                let message = format!("has no meaning with missed = \"{}\"", self.missed);
                let fix = "leave it out, or write missed = \"all\"";
                return Err(SpecFault::new("missedMax", message, fix));
            }
            if !(1..=MISSED_MAX).contains(&max) {
                let fix = format!("write a number from 1 to {MISSED_MAX}");
                return Err(SpecFault::new("missedMax", format!("is {max}"), fix));
            }
        }
        match self.every {
            Some(every) => check_interval("every", every),
            None => Ok(()),
        }
    }
}

/// Checks that an interval is not shorter than the minimum of a schedule.
pub(super) fn check_interval(field: &str, interval: Interval) -> Result<(), SpecFault> {
    if interval.ms() >= MIN_INTERVAL_MS {
        return Ok(());
    }
    let seconds = MIN_INTERVAL_MS / 1_000;
    let message = format!("is `{interval}`, shorter than {seconds} seconds");
    Err(SpecFault::new(
        field,
        message,
        format!("write at least `{seconds}s`"),
    ))
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// It is invalid; the error names the field and the fix.
    pub fn parse(spec: &ScheduleSpec) -> Result<Self, ScheduleError> {
        spec.check()?;
        let wants_spread = spec.spread.unwrap_or(false);
        let (rule, is_whole_hours) = match (spec.at, spec.every, &spec.cron) {
            (Some(at), _, _) => (Rule::At(at), false),
            (None, Some(every), _) => {
                let rule = Rule::Every {
                    interval_ms: every.ms(),
                    anchor: spec.anchor,
                };
                let hours = |ms: u64| ms.is_multiple_of(HOUR_MS);
                let is_whole = spec.anchor.is_some_and(|anchor| hours(anchor.0));
                (rule, is_whole && hours(every.ms()))
            }
            (None, None, cron) => {
                let zone = Zone::parse("timeZone", spec.time_zone.as_deref())?;
                let cron = CronRule::parse(cron.as_deref().unwrap_or_default(), zone)?;
                let is_whole = cron.is_at_whole_hours();
                (Rule::Cron(Box::new(cron)), is_whole)
            }
        };
        Ok(Self {
            once: spec.once || matches!(rule, Rule::At(_)),
            is_spread: wants_spread && is_whole_hours,
            rule,
        })
    }

    /// Returns the schedule of heartbeats; none if they are off.
    ///
    /// # Errors
    /// The interval or the active hours are invalid.
    pub fn of_heartbeat(spec: &HeartbeatSpec) -> Result<Option<Self>, ScheduleError> {
        if spec.every == Interval::ZERO {
            return Ok(None);
        }
        check_interval("every", spec.every)?;
        let active = match &spec.active_hours {
            Some(hours) => Some(hours.parse().map_err(|fault| fault.within("activeHours"))?),
            None => None,
        };
        Ok(Some(Self {
            rule: Rule::Beat {
                interval_ms: spec.every.ms(),
                active,
            },
            is_spread: false,
            once: false,
        }))
    }

    /// Returns whether it ends with its first trigger event.
    #[must_use]
    pub fn is_once(&self) -> bool {
        self.once
    }

    /// Returns the first trigger event after a time, if any. The same name, definition and time
    /// always give the same result.
    ///
    /// # Errors
    /// It is beyond the calendar, or the search for it is too long.
    pub fn next(
        &self,
        name: &TriggerName,
        defined: Timestamp,
        after: Timestamp,
    ) -> Result<Option<Timestamp>, ScheduleError> {
        let spread_ms = self.spread_ms(name);
        let shifted = Timestamp(after.0.saturating_sub(spread_ms));
        let next = match &self.rule {
            Rule::At(at) => (*at > after).then_some(*at),
            Rule::Every {
                anchor: Some(anchor),
                ..
            } if shifted < *anchor => Some(*anchor),
            Rule::Every {
                interval_ms,
                anchor,
            } => next_multiple(anchor.unwrap_or(defined), *interval_ms, shifted),
            Rule::Cron(cron) => cron.next(shifted)?,
            Rule::Beat {
                interval_ms,
                active,
            } => {
                let anchor = Timestamp(phase(b"heartbeat", name, *interval_ms));
                let next = next_multiple(anchor, *interval_ms, shifted.max(defined));
                match (next, active) {
                    (Some(next), Some(active)) => active.first_from(next)?,
                    (next, _) => next,
                }
            }
        };
        Ok(next.map(|next| next.plus_ms(spread_ms)))
    }

    /// Returns the number of trigger events after one time and up to another, `limit` at most.
    ///
    /// # Errors
    /// As of [`Self::next`].
    pub fn between(&self, of: &Owner<'_>, span: Span, limit: u32) -> Result<u32, ScheduleError> {
        if let Some(count) = self.count_intervals(of, span) {
            return Ok(count.min(limit));
        }
        let mut count = 0;
        let mut after = span.after;
        while count < limit
            && let Some(next) = self.next(of.name, of.defined, after)?
            && next <= span.until
        {
            count += 1;
            after = next;
        }
        Ok(count)
    }

    /// The number of plain intervals, which is computed instead of counted.
    fn count_intervals(&self, of: &Owner<'_>, span: Span) -> Option<u32> {
        let Rule::Every {
            interval_ms,
            anchor,
        } = &self.rule
        else {
            return None;
        };
        let spread_ms = self.spread_ms(of.name);
        let first = anchor.unwrap_or(Timestamp(of.defined.0.saturating_add(*interval_ms)));
        // The number of trigger events up to a time.
        let up_to = |time: Timestamp| {
            let passed = time.0.checked_sub(spread_ms)?.checked_sub(first.0)?;
            Some(passed.checked_div(*interval_ms)?.saturating_add(1))
        };
        let until = up_to(span.until).unwrap_or(0);
        let after = up_to(span.after).unwrap_or(0);
        Some(u32::try_from(until.saturating_sub(after)).unwrap_or(u32::MAX))
    }

    /// Returns the delay of its trigger events.
    fn spread_ms(&self, name: &TriggerName) -> u64 {
        if self.is_spread {
            phase(b"spread", name, SPREAD_MS_MAX + 1)
        } else {
            0
        }
    }
}

/// The trigger whose schedule it is.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The trigger's name.
    pub name: &'a TriggerName,
    /// The time of its definition.
    pub defined: Timestamp,
}

/// A span of time, without its beginning and with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The time before it.
    pub after: Timestamp,
    /// Its last moment.
    pub until: Timestamp,
}

/// The first time after another that is a multiple of the interval after an anchor.
fn next_multiple(anchor: Timestamp, interval_ms: u64, after: Timestamp) -> Option<Timestamp> {
    let passed = after.since_ms(anchor).checked_div(interval_ms)?;
    let next = passed.checked_add(1)?.checked_mul(interval_ms)?;
    anchor.0.checked_add(next).map(Timestamp)
}

/// A number below a limit, derived from a trigger's name.
fn phase(purpose: &[u8], name: &TriggerName, below: u64) -> u64 {
    let Digest(bytes) = Digest::of_parts(&[purpose, name.as_str().as_bytes()]);
    let eight = bytes.first_chunk::<8>().copied().unwrap_or_default();
    u64::from_be_bytes(eight).checked_rem(below).unwrap_or(0)
}

#[expect(
    clippy::ref_option,
    reason = "serde hands over a reference to the field"
)]
fn write_time<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(time),
        None => serializer.serialize_none(),
    }
}

fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    // Without an offset its zone would be ambiguous.
    let read = text.parse::<jiff::Timestamp>().ok();
    let ms = read.and_then(|time| u64::try_from(time.as_millisecond()).ok());
    match ms {
        Some(ms) => Ok(Some(Timestamp(ms))),
        None => Err(serde::de::Error::custom(format!(
            "`{}` is no time with its offset; write one such as `2026-12-15T09:30:00+01:00`",
            text.chars().take(64).collect::<String>().escape_debug()
        ))),
    }
}
