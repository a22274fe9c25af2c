//! Points in time, as arguments: nothing in this crate reads a clock.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Milliseconds since the Unix epoch, UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// This time plus a number of milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the milliseconds since an earlier point; 0 if that point is later.
    #[must_use]
    pub fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// ISO 8601 with milliseconds, as the APIs write it.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(ms) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{ms}ms"),
        }
    }
}

/// ISO 8601 with a time zone; without one it is UTC, as in systems that omit it.
impl FromStr for Timestamp {
    type Err = NotATime;
    fn from_str(text: &str) -> Result<Self, NotATime> {
        let no = || NotATime {
            text: text.chars().take(64).collect(),
        };
        let parsed = text
            .parse::<jiff::Timestamp>()
            .or_else(|_| format!("{text}Z").parse());
        let ms = parsed.map_err(|_| no())?.as_millisecond();
        u64::try_from(ms).map(Self).map_err(|_| no())
    }
}

/// A text that is no valid time since 1970.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no time like `2025-12-15T09:30:00Z`")]
pub struct NotATime {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_iso_8601() {
        assert_eq!(
            Timestamp(1_700_000_000_123).to_string(),
            "2023-11-14T22:13:20.123Z"
        );
    }

    #[test]
    fn a_time_is_read_with_and_without_its_zone() {
        for text in [
            "2023-11-14T22:13:20.123Z",
            "2023-11-14T23:13:20.123+01:00",
            "2023-11-14T22:13:20.123456",
        ] {
            assert_eq!(text.parse(), Ok(Timestamp(1_700_000_000_123)), "{text}");
        }
        for text in ["", "yesterday", "2023-11-14", "1960-01-01T00:00:00Z"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }
}
