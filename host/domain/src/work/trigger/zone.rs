//! Time zones, from the database in this program: the machine's database is not used.

use super::{SpecFault, ZONE_BYTES_MAX};
use crate::values::time::Timestamp;
use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use std::sync::LazyLock;

/// Similarity from which another zone's name is proposed.
const LIKENESS_MIN: f64 = 0.8;

/// The database, with the zones read so far.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time beyond the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the calendar of schedules ends with the year 9999")]
pub struct BeyondCalendar;

/// A time zone, such as `Europe/Berlin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone without any change of its clock.
    #[must_use]
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Reads the name of a zone. Without a name it is UTC.
    pub(super) fn parse(field: &str, name: Option<&str>) -> Result<Self, SpecFault> {
        let Some(name) = name else {
            return Ok(Self::utc());
        };
        if name.len() <= ZONE_BYTES_MAX
            && let Ok(zone) = ZONES.get(name)
        {
            return Ok(Self(zone));
        }
        let shown: String = name.chars().take(ZONE_BYTES_MAX).collect();
        let message = format!("names no time zone: `{}`", shown.escape_debug());
        let fix = match nearest(&shown) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write a name such as `Europe/Berlin` or `UTC`".to_owned(),
        };
        Err(SpecFault::new(field, message, fix))
    }

    /// Returns the time that a clock there shows.
    pub(super) fn local(&self, time: Timestamp) -> Result<civil::DateTime, BeyondCalendar> {
        Ok(self.0.to_datetime(instant(time)?))
    }

    /// Returns when a clock there shows a time. For a skipped time that is the moment of the
    /// change. For a time shown twice it is the first moment.
    pub(super) fn resolve(&self, shown: civil::DateTime) -> Result<Timestamp, BeyondCalendar> {
        let ambiguous = self.0.to_ambiguous_timestamp(shown);
        let found = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
                ambiguous.earlier()
            }
            AmbiguousOffset::Gap { .. } => {
                // With the offset from after the gap it is before the gap, by up to its length.
                let before = ambiguous.earlier().map_err(|_| BeyondCalendar)?;
                let mut changes = self.0.following(before);
                return timestamp(changes.next().ok_or(BeyondCalendar)?.timestamp());
            }
        };
        timestamp(found.map_err(|_| BeyondCalendar)?)
    }

    /// Returns the offset of clocks there, and the time of its next change, if any.
    pub(super) fn offset(&self, time: Timestamp) -> Result<LocalOffset, BeyondCalendar> {
        let at = instant(time)?;
        let changes = match self.0.following(at).next() {
            Some(change) => Some(timestamp(change.timestamp())?),
            None => None,
        };
        Ok(LocalOffset {
            zone: TimeZone::fixed(self.0.to_offset(at)),
            changes,
        })
    }
}

/// An offset of clocks, and its duration.
pub(super) struct LocalOffset {
    zone: TimeZone,
    /// Time at which it changes.
    pub(super) changes: Option<Timestamp>,
}

impl LocalOffset {
    /// Returns the time that a clock with this offset shows.
    pub(super) fn local(&self, time: Timestamp) -> Result<civil::DateTime, BeyondCalendar> {
        Ok(self.zone.to_datetime(instant(time)?))
    }

    /// Returns when a clock with this offset shows a time.
    pub(super) fn resolve(&self, shown: civil::DateTime) -> Result<Timestamp, BeyondCalendar> {
        let found = self.zone.to_timestamp(shown);
        timestamp(found.map_err(|_| BeyondCalendar)?)
    }
}

fn instant(time: Timestamp) -> Result<jiff::Timestamp, BeyondCalendar> {
    let ms = i64::try_from(time.0).map_err(|_| BeyondCalendar)?;
    jiff::Timestamp::from_millisecond(ms).map_err(|_| BeyondCalendar)
}

fn timestamp(instant: jiff::Timestamp) -> Result<Timestamp, BeyondCalendar> {
    let ms = u64::try_from(instant.as_millisecond()).map_err(|_| BeyondCalendar)?;
    Ok(Timestamp(ms))
}

fn nearest(name: &str) -> Option<String> {
    let all = ZONES.available();
    let named = all.map(|known| {
        let known = known.as_str().to_owned();
        let likeness = strsim::jaro_winkler(
            &known.to_ascii_lowercase(),
            &name.to_ascii_lowercase().replace(' ', "_"),
        );
        (likeness, known)
    });
    named
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        Zone::parse("zone", Some(name)).unwrap()
    }

    #[test]
    fn a_zone_is_found_by_its_name() {
        assert_eq!(Zone::parse("zone", None), Ok(Zone::utc()));
        assert_eq!(zone("europe/berlin"), zone("Europe/Berlin"));
        let fault = Zone::parse("timeZone", Some("Europe/Berln")).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "`timeZone` names no time zone: `Europe/Berln`; did you mean `Europe/Berlin`?"
        );
        let long = "x".repeat(1_000);
        for wrong in ["", "Nowhere", long.as_str()] {
            let fault = Zone::parse("timeZone", Some(wrong)).unwrap_err();
            assert!(fault.to_string().len() < 300, "{fault}");
        }
    }

    #[test]
    fn a_time_that_is_not_shown_or_shown_twice_is_one_moment() {
        for (name, shown, expected) in [
            (
                "Europe/Berlin",
                "2026-03-29T01:59:59",
                "2026-03-29T00:59:59Z",
            ),
            (
                "Europe/Berlin",
                "2026-03-29T02:00:00",
                "2026-03-29T01:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-03-29T02:30:00",
                "2026-03-29T01:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-03-29T03:00:00",
                "2026-03-29T01:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-10-25T02:30:00",
                "2026-10-25T00:30:00Z",
            ),
            (
                "America/New_York",
                "2026-03-08T02:30:00",
                "2026-03-08T07:00:00Z",
            ),
            (
                "America/New_York",
                "2026-11-01T01:30:00",
                "2026-11-01T05:30:00Z",
            ),
            (
                "Australia/Lord_Howe",
                "2026-10-04T02:15:00",
                "2026-10-03T15:30:00Z",
            ),
            (
                "Australia/Lord_Howe",
                "2026-04-05T01:45:00",
                "2026-04-04T14:45:00Z",
            ),
            (
                "Pacific/Apia",
                "2011-12-30T09:00:00",
                "2011-12-30T10:00:00Z",
            ),
        ] {
            let resolved = zone(name).resolve(shown.parse().unwrap());
            assert_eq!(resolved, Ok(expected.parse().unwrap()), "{name} {shown}");
        }
    }

    #[test]
    fn a_time_beyond_the_calendar_is_an_error() {
        assert_eq!(zone("UTC").local(Timestamp(u64::MAX)), Err(BeyondCalendar));
        let far = Timestamp(400_000_000_000_000);
        assert_eq!(zone("Europe/Berlin").local(far), Err(BeyondCalendar));
    }
}
