//! Intervals, as operators write them: `30m`.

use super::INTERVAL_MS_MAX;
use crate::values::shown::escaped;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The units, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A span of time: 0, or a whole number with `ms`, `s`, `m`, `h` or `d`; 366 days at most. It
/// serializes as its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Interval(u64);

/// A text that is no interval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnInterval {
    /// It is no number with a unit.
    #[error(
        "`{0}` is no interval; write a whole number with ms, s, m, h or d, such as `30m`, or `0`"
    )]
    Malformed(String),
    /// It is longer than [`INTERVAL_MS_MAX`].
    #[error("`{0}` is too long for an interval; write at most `366d`")]
    TooLong(String),
}

impl Interval {
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// An interval of so many milliseconds; none above [`INTERVAL_MS_MAX`].
    #[must_use]
    pub const fn from_ms(ms: u64) -> Option<Self> {
        if ms <= INTERVAL_MS_MAX {
            Some(Self(ms))
        } else {
            None
        }
    }

    /// Returns it in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }

    /// An interval within the limit, known at compile time.
    pub(super) const fn of_limit(ms: u64) -> Self {
        assert!(ms <= INTERVAL_MS_MAX);
        Self(ms)
    }
}

impl FromStr for Interval {
    type Err = NotAnInterval;

    fn from_str(text: &str) -> Result<Self, NotAnInterval> {
        let malformed = || NotAnInterval::Malformed(escaped(text));
        let end = text
            .find(|sign: char| !sign.is_ascii_digit())
            .unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        if digits.is_empty() {
            return Err(malformed());
        }
        let count: u64 = digits
            .parse()
            .map_err(|_| NotAnInterval::TooLong(escaped(text)))?;
        let unit_ms = match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, ms)) => *ms,
            None if unit.is_empty() && count == 0 => 1,
            None => return Err(malformed()),
        };
        count
            .checked_mul(unit_ms)
            .and_then(Self::from_ms)
            .ok_or_else(|| NotAnInterval::TooLong(escaped(text)))
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fitting = UNITS.iter().find(|(_, ms)| self.0.is_multiple_of(*ms));
        match fitting {
            Some((unit, ms)) if self.0 > 0 => write!(f, "{}{unit}", self.0 / ms),
            _ => f.write_str("0"),
        }
    }
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Interval;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an interval as text, such as \"30m\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Interval, E> {
        text.parse().map_err(E::custom)
    }
}

impl schemars::JsonSchema for Interval {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Interval".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A span of time: a whole number with `ms`, `s`, `m`, `h` or `d`, such \
                            as `30m`, or `0`. 366 days at most.",
            "type": "string",
            "pattern": "^(0|[0-9]+(ms|s|m|h|d))$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_is_a_number_with_a_unit() {
        for (text, ms) in [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("30m", Some(1_800_000)),
            ("250ms", Some(250)),
            ("366d", Some(INTERVAL_MS_MAX)),
            ("367d", None),
            ("99999999999999999999d", None),
            ("30", None),
            ("m", None),
            ("", None),
            ("1.5h", None),
            ("-1m", None),
            ("30 m", None),
            ("1w", None),
        ] {
            let read = text.parse::<Interval>().ok();
            assert_eq!(read.map(Interval::ms), ms, "{text}");
        }
    }

    #[test]
    fn a_wrong_interval_says_what_to_write() {
        for json in ["30", "\"30\"", "\"1 hour\"", "null"] {
            let error = serde_json::from_str::<Interval>(json).unwrap_err();
            assert!(error.to_string().contains("30m"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn an_interval_reads_as_it_is_written(ms in 0..=INTERVAL_MS_MAX) {
            let interval = Interval::from_ms(ms).unwrap();
            prop_assert_eq!(interval.to_string().parse(), Ok(interval));
        }
    }
}
