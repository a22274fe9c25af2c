//! Places in a sequence that requests name: positions of events, and messages of a thread.

use serde::{Deserialize, Deserializer, de};
use std::borrow::Cow;
use std::fmt;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};

/// The last place that can be named: the largest whole number that every client can count to, as
/// JSON's numbers are doubles in many languages.
pub(crate) const POSITION_MAX: u64 = (1 << 53) - 1;

/// A place in a sequence, from 0 to [`POSITION_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(pub(crate) u64);

/// A number that is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfRange(u64);

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = self;
        write!(
            f,
            "{number} is out of its range: it must be from 0 to {POSITION_MAX}"
        )
    }
}

impl TryFrom<u64> for Position {
    type Error = OutOfRange;

    fn try_from(number: u64) -> Result<Self, OutOfRange> {
        if number <= POSITION_MAX {
            Ok(Self(number))
        } else {
            Err(OutOfRange(number))
        }
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(u64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl utoipa::PartialSchema for Position {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0))
            .maximum(Some(POSITION_MAX))
            .into()
    }
}

impl utoipa::ToSchema for Position {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Position")
    }
}
