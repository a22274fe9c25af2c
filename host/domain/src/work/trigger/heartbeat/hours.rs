//! Active hours: the part of the day in which heartbeats run.

use super::super::{BeyondCalendar, SpecFault, Zone};
use crate::values::shown::escaped;
use crate::values::text::serde_as_text;
use crate::values::time::Timestamp;
use jiff::{ToSpan, civil};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Minutes of a day.
const DAY_MINUTES: u16 = 24 * 60;
/// Days that are searched for the next beginning of the active hours. Two are enough unless a zone
/// skips a whole day.
const DAYS_MAX: i64 = 4;

/// A time of day in minutes, from `00:00` to `24:00`. It serializes as its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u16);

/// A text that is no time of day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no time of day; write one from `00:00` to `24:00`")]
pub struct NotATimeOfDay {
    given: String,
}

impl FromStr for TimeOfDay {
    type Err = NotATimeOfDay;

    fn from_str(text: &str) -> Result<Self, NotATimeOfDay> {
        let number = |digits: &str| {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<u16>().ok()).flatten()
        };
        let read = text.split_once(':').and_then(|(hours, minutes)| {
            let minutes = number(minutes).filter(|minutes| *minutes < 60)?;
            Some(number(hours)? * 60 + minutes)
        });
        match read {
            Some(minutes) if minutes <= DAY_MINUTES => Ok(Self(minutes)),
            _ => Err(NotATimeOfDay {
                given: escaped(text),
            }),
        }
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

serde_as_text!(TimeOfDay::from_str);

impl JsonSchema for TimeOfDay {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeOfDay".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A time of day from `00:00` to `24:00`.",
            "type": "string",
            "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$",
        })
    }
}

/// A part of the day: from `start` until before `end`. It may span midnight. If both are the same,
/// it is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActiveHours {
    /// Its beginning, such as `08:00`.
    pub start: TimeOfDay,
    /// Its end, such as `22:00`; `24:00` is the end of the day.
    pub end: TimeOfDay,
    /// The time zone, such as `Europe/Berlin`; default `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// Active hours in their zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTimes {
    start: TimeOfDay,
    end: TimeOfDay,
    zone: Zone,
}

impl ActiveHours {
    /// Reads the zone.
    ///
    /// # Errors
    /// The zone does not exist, or `start` is the end of the day.
    pub fn parse(&self) -> Result<ActiveTimes, SpecFault> {
        if self.start.0 == DAY_MINUTES {
            let fix = "write `00:00` for the beginning of the day";
            return Err(SpecFault::new("start", "is the end of the day", fix));
        }
        Ok(ActiveTimes {
            start: self.start,
            end: self.end,
            zone: Zone::parse("timeZone", self.time_zone.as_deref())?,
        })
    }
}

impl ActiveTimes {
    /// Returns whether a time is within them.
    ///
    /// # Errors
    /// The time lies beyond the calendar.
    pub fn contains(&self, time: Timestamp) -> Result<bool, BeyondCalendar> {
        let shown = self.zone.local(time)?;
        let minute =
            u16::from(shown.hour().unsigned_abs()) * 60 + u16::from(shown.minute().unsigned_abs());
        let start = self.start.0;
        let end = self.end.0;
        Ok(if start <= end {
            (start..end).contains(&minute)
        } else {
            minute >= start || minute < end
        })
    }

    /// Returns the first time within them, from a time on; none if they are empty.
    pub(crate) fn first_from(&self, time: Timestamp) -> Result<Option<Timestamp>, BeyondCalendar> {
        if self.start == self.end {
            return Ok(None);
        }
        if self.contains(time)? {
            return Ok(Some(time));
        }
        let today = self.zone.local(time)?.date();
        for days in 0..DAYS_MAX {
            let day = today.checked_add(days.days()).map_err(|_| BeyondCalendar)?;
            let begins = self.zone.resolve(self.start.on(day))?;
            // A clock that is put forward may skip all of them.
            if begins >= time && self.contains(begins)? {
                return Ok(Some(begins));
            }
        }
        Ok(None)
    }
}

impl TimeOfDay {
    fn on(self, day: civil::Date) -> civil::DateTime {
        let hours = i8::try_from(self.0 / 60).unwrap_or(0);
        let minutes = i8::try_from(self.0 % 60).unwrap_or(0);
        day.at(hours, minutes, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(start: &str, end: &str, zone: &str) -> ActiveTimes {
        let hours = ActiveHours {
            start: start.parse().unwrap(),
            end: end.parse().unwrap(),
            time_zone: Some(zone.to_owned()),
        };
        hours.parse().unwrap()
    }

    #[test]
    fn a_time_of_day_has_hours_and_minutes() {
        for (text, is) in [
            ("00:00", true),
            ("23:59", true),
            ("24:00", true),
            ("24:01", false),
            ("25:00", false),
            ("8:00", false),
            ("08:60", false),
            ("08", false),
            ("+8:00", false),
        ] {
            let read = text.parse::<TimeOfDay>();
            assert_eq!(read.is_ok(), is, "{text}");
            if let Ok(time) = read {
                assert_eq!(time.to_string(), text);
            }
        }
    }

    #[test]
    fn the_start_is_in_the_active_hours_and_the_end_is_not() {
        for (start, end, shown, expected) in [
            ("08:00", "22:00", "08:00:00", true),
            ("08:00", "22:00", "07:59:59", false),
            ("08:00", "22:00", "21:59:59", true),
            ("08:00", "22:00", "22:00:00", false),
            ("08:00", "24:00", "23:59:59", true),
            ("00:00", "24:00", "00:00:00", true),
            ("22:00", "06:00", "23:00:00", true),
            ("22:00", "06:00", "05:59:59", true),
            ("22:00", "06:00", "06:00:00", false),
            ("22:00", "00:00", "23:59:59", true),
            ("22:00", "00:00", "00:00:00", false),
            ("08:00", "08:00", "08:00:00", false),
            ("08:00", "08:00", "12:00:00", false),
        ] {
            let time = format!("2026-06-01T{shown}Z").parse().unwrap();
            let is_in = times(start, end, "UTC").contains(time);
            assert_eq!(is_in, Ok(expected), "{start} to {end} at {shown}");
        }
    }

    #[test]
    fn the_next_active_time_is_found_over_days_and_changes_of_the_clock() {
        for (start, end, from, expected) in [
            (
                "08:00",
                "22:00",
                "2026-06-01T05:00:00Z",
                "2026-06-01T06:00:00Z",
            ),
            (
                "08:00",
                "22:00",
                "2026-06-01T06:30:00Z",
                "2026-06-01T06:30:00Z",
            ),
            (
                "08:00",
                "22:00",
                "2026-06-01T20:00:00Z",
                "2026-06-02T06:00:00Z",
            ),
            (
                "02:30",
                "04:00",
                "2026-03-29T00:00:00Z",
                "2026-03-29T01:00:00Z",
            ),
            (
                "02:15",
                "02:45",
                "2026-03-29T00:00:00Z",
                "2026-03-30T00:15:00Z",
            ),
            (
                "02:30",
                "02:45",
                "2026-10-24T22:00:00Z",
                "2026-10-25T00:30:00Z",
            ),
        ] {
            let found = times(start, end, "Europe/Berlin").first_from(from.parse().unwrap());
            assert_eq!(
                found,
                Ok(Some(expected.parse().unwrap())),
                "{start} from {from}"
            );
        }
        let never = times("08:00", "08:00", "UTC").first_from(Timestamp(0));
        assert_eq!(never, Ok(None));
    }

    #[test]
    fn active_hours_do_not_begin_at_the_end_of_the_day() {
        let hours: ActiveHours =
            serde_json::from_str(r#"{"start":"24:00","end":"08:00"}"#).unwrap();
        let fault = hours.parse().unwrap_err();
        assert_eq!(fault.field, "start");
        assert!(fault.to_string().contains("`00:00`"), "{fault}");
    }
}
