//! A lifetime in the form that people write: `90d`, `12h`, `30m`, `45s`.

use std::str::FromStr;

/// A lifetime, such as 90 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// Its length in seconds.
    pub(crate) seconds: u64,
}

impl FromStr for Lifetime {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a time is a number with s, m, h or d behind it, such as 90d";
        let unit = text.chars().last().ok_or(wrong)?;
        let factor = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(wrong),
        };
        let digits = text
            .strip_suffix(unit)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or(wrong)?;
        let seconds = digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor));
        seconds.map(|seconds| Self { seconds }).ok_or(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::Lifetime;

    #[test]
    fn a_time_is_a_number_with_its_unit() {
        for (text, expected) in [
            ("90d", Ok(7_776_000)),
            ("12h", Ok(43_200)),
            ("5m", Ok(300)),
            ("45s", Ok(45)),
            ("0s", Ok(0)),
        ] {
            assert_eq!(
                text.parse::<Lifetime>().map(|lifetime| lifetime.seconds),
                expected
            );
        }
        for wrong in [
            "",
            "d",
            "90",
            "+9d",
            "-1d",
            "1.5h",
            "1 d",
            "9w",
            "99999999999999999999d",
            "1ä",
        ] {
            assert!(wrong.parse::<Lifetime>().is_err(), "{wrong}");
        }
    }
}
