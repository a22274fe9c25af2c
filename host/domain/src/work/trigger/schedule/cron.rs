//! Schedules of five fields, by the clocks of a zone.
//!
//! The crate `croner` finds the matching dates and times. It searches a calendar without clock
//! changes. This module maps them to points in time.

use super::super::{BeyondCalendar, CRON_BYTES_MAX, SpecFault, Zone};
use super::ScheduleError;
use crate::values::time::Timestamp;
use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil;
use jiff::tz::TimeZone;

/// The most repeated clock times and offset changes that one search passes.
const STEPS_MAX: u32 = 2_000;
/// The year from which a schedule is checked for having any trigger event.
const CHECKED_FROM: i16 = 2_000;

/// A field: its name, its least and greatest number, and its names for numbers.
struct Field {
    name: &'static str,
    least: u16,
    greatest: u16,
    names: &'static [&'static str],
    /// The number of the first name.
    first_name: u16,
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 5] = [
    Field {
        name: "minute",
        least: 0,
        greatest: 59,
        names: &[],
        first_name: 0,
    },
    Field {
        name: "hour",
        least: 0,
        greatest: 23,
        names: &[],
        first_name: 0,
    },
    Field {
        name: "day of the month",
        least: 1,
        greatest: 31,
        names: &[],
        first_name: 0,
    },
    Field {
        name: "month",
        least: 1,
        greatest: 12,
        names: &MONTHS,
        first_name: 1,
    },
    Field {
        name: "day of the week",
        least: 0,
        greatest: 7,
        names: &DAYS,
        first_name: 0,
    },
];

/// A schedule in five fields, in its zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CronRule {
    cron: Cron,
    zone: Zone,
    is_hourly: bool,
}

impl CronRule {
    /// Reads the five fields.
    pub(super) fn parse(text: &str, zone: Zone) -> Result<Self, SpecFault> {
        check(text)?;
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let fault = |message: String| {
            SpecFault::new("cron", message, "write five fields such as `0 9 * * 1-5`")
        };
        let cron = parser
            .parse(text)
            .map_err(|error| fault(format!("is no schedule: {error}")))?;
        let rule = Self {
            is_hourly: cron.pattern.hours.values().len() == 24,
            cron,
            zone,
        };
        let start = civil::date(CHECKED_FROM, 1, 1).at(0, 0, 0, 0);
        match rule.shown_after(start, true) {
            Ok(Some(_)) => Ok(rule),
            Ok(None) | Err(_) => Err(SpecFault::new(
                "cron",
                format!("never comes: no year has such a day (`{text}`)"),
                "write a day that the month has",
            )),
        }
    }

    /// Returns whether all its trigger events are at whole hours.
    pub(super) fn is_at_whole_hours(&self) -> bool {
        self.cron.pattern.minutes.values() == [0]
    }

    /// Returns the first trigger event after a time.
    pub(super) fn next(&self, after: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
        if self.is_hourly {
            self.next_by_offsets(after)
        } else {
            self.next_by_clock(after)
        }
    }

    /// The next time that a clock shows, with one trigger event for each match.
    fn next_by_clock(&self, after: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
        let mut shown = self.zone.local(after)?;
        for _ in 0..STEPS_MAX {
            let Some(next) = self.shown_after(shown, false)? else {
                return Ok(None);
            };
            let due = self.zone.resolve(next)?;
            if due > after {
                return Ok(Some(due));
            }
            // The clock has shown it before, or skips it: then it was due at the change.
            shown = next;
        }
        Err(ScheduleError::Search(STEPS_MAX))
    }

    /// The next time that a clock shows, if it shows one hour after the other.
    fn next_by_offsets(&self, after: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
        let mut from = after;
        let mut inclusive = false;
        for _ in 0..STEPS_MAX {
            let offset = self.zone.offset(from)?;
            let next = self.shown_after(offset.local(from)?, inclusive)?;
            let due = match next {
                Some(next) => Some(offset.resolve(next)?),
                None => None,
            };
            match (offset.changes, due) {
                (Some(change), Some(due)) if change <= due => from = change,
                (_, due) => return Ok(due),
            }
            inclusive = true;
        }
        Err(ScheduleError::Search(STEPS_MAX))
    }

    /// The first matching date and time, in a calendar without clock changes.
    fn shown_after(
        &self,
        from: civil::DateTime,
        inclusive: bool,
    ) -> Result<Option<civil::DateTime>, BeyondCalendar> {
        let from = from.to_zoned(TimeZone::UTC).map_err(|_| BeyondCalendar)?;
        match self.cron.find_next_occurrence(&from, inclusive) {
            Ok(found) => Ok(Some(found.datetime())),
            Err(CronError::TimeSearchLimitExceeded) => Ok(None),
            Err(_) => Err(BeyondCalendar),
        }
    }
}

/// Checks the fields: the library accepts more than the five of POSIX, and its errors do not name
/// the field.
fn check(text: &str) -> Result<(), SpecFault> {
    let fault = |message: String, fix: &str| Err(SpecFault::new("cron", message, fix));
    if text.len() > CRON_BYTES_MAX {
        let message = format!("has {} bytes", text.len());
        return fault(message, &format!("write at most {CRON_BYTES_MAX}"));
    }
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    if parts.first().is_some_and(|part| part.starts_with('@')) {
        let fix = "write the five fields, such as `0 0 * * *` for every day";
        return fault("is a word and not five fields".to_owned(), fix);
    }
    if parts.len() != FIELDS.len() {
        let fix = "write minute, hour, day of the month, month and day of the week, such as \
                   `0 9 * * 1-5`";
        return fault(format!("has {} fields", parts.len()), fix);
    }
    for (field, part) in FIELDS.iter().zip(parts) {
        for item in part.split(',') {
            if let Err(why) = field.check_item(item) {
                let shown: String = item.chars().take(32).collect();
                let message = format!("has `{}` as {}: {why}", shown.escape_debug(), field.name);
                return fault(message, &field.form());
            }
        }
    }
    Ok(())
}

impl Field {
    /// Describes its allowed values.
    fn form(&self) -> String {
        let least = self.least;
        let greatest = self.greatest;
        let named = match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!(" or {first} to {last}"),
            _ => String::new(),
        };
        format!(
            "write `*`, numbers from {least} to {greatest}{named}, ranges such as `{least}-{}`, \
             or steps such as `*/2`, with commas between them",
            least + 2
        )
    }

    fn check_item(&self, item: &str) -> Result<(), &'static str> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let ends = match range.split_once('-') {
            _ if range == "*" => None,
            Some((start, end)) => Some((self.number(start)?, self.number(end)?)),
            None if step.is_some() => return Err("a step needs `*` or a range before it"),
            None => Some((self.number(range)?, self.number(range)?)),
        };
        match ends {
            Some((start, end)) if start > end && !(self.greatest == 7 && end == 0) => {
                return Err("the range ends before it begins");
            }
            _ => {}
        }
        match step.map(digits) {
            None => Ok(()),
            Some(Some(step)) if step > 0 && step <= self.greatest => Ok(()),
            Some(_) => Err("the step is no number that fits"),
        }
    }

    fn number(&self, text: &str) -> Result<u16, &'static str> {
        let names = (self.first_name..).zip(self.names);
        let named = names
            .into_iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(text))
            .map(|(number, _)| number);
        let number = named.or_else(|| digits(text)).ok_or("it is no number")?;
        if (self.least..=self.greatest).contains(&number) {
            Ok(number)
        } else {
            Err("the number is out of range")
        }
    }
}

fn digits(text: &str) -> Option<u16> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
