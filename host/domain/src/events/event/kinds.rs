//! The list of event kinds, derived from the code that reads them. There is no second list to
//! maintain.

use super::Event;
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use std::fmt;

/// The current kinds, in the order of the variants of [`Event`].
#[must_use]
pub fn kinds() -> &'static [&'static str] {
    // No such kind exists: the deserializer reports the kinds that do.
    let nothing = MapDeserializer::<_, Expected>::new(std::iter::once(("type", "")));
    Event::deserialize(nothing)
        .err()
        .map_or(&[], |Expected(kinds)| kinds)
}

/// The expected kinds.
#[derive(Debug)]
struct Expected(&'static [&'static str]);

impl serde::de::Error for Expected {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(expected)
    }
}

impl std::error::Error for Expected {}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_is_listed_once_and_has_a_version() {
        let kinds = kinds();
        assert!(kinds.len() > 20, "{kinds:?}");
        assert_eq!(
            kinds.iter().collect::<BTreeSet<_>>().len(),
            kinds.len(),
            "{kinds:?}"
        );
        for kind in kinds {
            let (name, version) = kind.rsplit_once(".v").unwrap();
            assert!(
                name.contains('.') && version.parse::<u32>().is_ok(),
                "{kind}"
            );
        }
    }
}
