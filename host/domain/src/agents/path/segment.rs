//! Segments of paths that are names, with a separate type for each, and the reserved words.

use super::{CONNECTOR_NAME_BYTES_MAX, NAME_BYTES_MAX};
use crate::access::user::RESERVED_WORDS;
use crate::values::shown::escaped;
use crate::values::text::{serde_as_text, wrapped_text};
use std::fmt;
use std::str::FromStr;

/// The fault in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentFault {
    /// It is empty.
    Empty,
    /// It is long.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// It is one of [`RESERVED_WORDS`], at a position where that word does not mark a kind.
    Reserved,
    /// A character that is not allowed.
    Sign(char),
    /// `.` or `..`, which change the meaning of a URL that contains the path.
    Dots,
    /// A user's id that does not begin with a letter or a digit.
    Beginning,
    /// A number with leading zeros, which would be a second spelling of an address.
    LeadingZero,
    /// A number above [`super::INDEX_MAX`].
    TooLarge,
    /// The word is not allowed here.
    Unknown,
}

impl fmt::Display for SegmentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong { bytes } => write!(f, "has {bytes} bytes"),
            Self::Reserved => f.write_str(
                "is a word that says what kind of agent lives at a path, and names nobody",
            ),
            Self::Sign(sign) => write!(f, "has {sign:?} in it"),
            Self::Dots => f.write_str("leads elsewhere"),
            Self::Beginning => f.write_str("does not begin with a letter or a digit"),
            Self::LeadingZero => f.write_str("has a zero before its number"),
            Self::TooLarge => f.write_str("is too large"),
            Self::Unknown => f.write_str("is none of the words that can follow"),
        }
    }
}

/// A text that is no valid name of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` {fault}; {allowed}")]
pub struct NotASegment {
    /// The beginning of the text, with its control characters made visible.
    pub given: String,
    /// The fault in it.
    pub fault: SegmentFault,
    /// The required form.
    pub allowed: &'static str,
}

macro_rules! segments {
    ($($(#[$doc:meta])* $name:ident: $form:literal, $bytes_max:expr, $pattern:expr, $fits:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, utoipa::ToSchema)]
        pub struct $name(String);

        impl $name {
            /// The form of such a segment.
            pub(super) const FORM: &'static str = $form;

            pub(super) fn check(text: &str) -> Result<Self, SegmentFault> {
                check(text, $bytes_max, $fits).map(|()| Self(text.to_owned()))
            }
        }

        wrapped_text!($name);
        serde_as_text!($name::from_str);

        impl FromStr for $name {
            type Err = NotASegment;

            fn from_str(text: &str) -> Result<Self, NotASegment> {
                Self::check(text).map_err(|fault| NotASegment { given: escaped(text), fault, allowed: concat!("it has to be ", $form) })
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": $form,
                    "type": "string",
                    "pattern": $pattern,
                    "minLength": 1,
                    "maxLength": $bytes_max,
                })
            }
        }
    )*};
}

segments! {
    /// The name of a connector, such as `telegram`: 1 to 64 of `a-z`, `0-9`, `-` and `_`, and no
    /// reserved word.
    ConnectorName: "1 to 64 of a-z, 0-9, `-` and `_`, and no reserved word", CONNECTOR_NAME_BYTES_MAX, "^[a-z0-9_-]+$", is_plain;
    /// The name of a system agent, such as `heartbeat`. It has the form of a connector's name.
    Tag: "1 to 64 of a-z, 0-9, `-` and `_`, and no reserved word", CONNECTOR_NAME_BYTES_MAX, "^[a-z0-9_-]+$", is_plain;
    /// The segment after `agent`, `cron`, `task` or `subuser`. It has 1 to 512 letters of ASCII,
    /// digits, `-`, `_`, `.` and `@`. It is neither `.` nor `..`, and no reserved word. Every id of
    /// a definition is one, and every UUID.
    Name: "1 to 512 letters, digits, `-`, `_`, `.` and `@`, neither `.` nor `..`, and no reserved \
           word", NAME_BYTES_MAX,
        "^[A-Za-z0-9_.@-]+$", is_of_name;
}

/// The numbers in the forms above.
const _: () = assert!(CONNECTOR_NAME_BYTES_MAX == 64 && NAME_BYTES_MAX == 512);

fn is_plain(sign: char) -> bool {
    sign.is_ascii_lowercase() || sign.is_ascii_digit() || "-_".contains(sign)
}

fn is_of_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "-_.@".contains(sign)
}

fn check(text: &str, bytes_max: usize, fits: fn(char) -> bool) -> Result<(), SegmentFault> {
    if text.is_empty() {
        return Err(SegmentFault::Empty);
    }
    if text.len() > bytes_max {
        return Err(SegmentFault::TooLong { bytes: text.len() });
    }
    if let Some(sign) = text.chars().find(|sign| !fits(*sign)) {
        return Err(SegmentFault::Sign(sign));
    }
    if RESERVED_WORDS.contains(&text) {
        return Err(SegmentFault::Reserved);
    }
    if matches!(text, "." | "..") {
        Err(SegmentFault::Dots)
    } else {
        Ok(())
    }
}

/// Returns the fault in a text that is no user's id.
pub(super) fn fault_of_user(text: &str) -> SegmentFault {
    check(text, crate::access::user::USER_BYTES_MAX, is_of_name)
        .err()
        .unwrap_or(SegmentFault::Beginning)
}
