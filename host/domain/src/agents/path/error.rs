//! Errors of paths: the segment at fault, its position, the fault, and the segments that are
//! allowed there.

use super::segment::{ConnectorName, Name, SegmentFault, Tag};
use super::{INDEX_MAX, PATH_BYTES_MAX, PATH_SEGMENTS_MAX};
use crate::access::user::USER_BYTES_MAX;
use std::fmt;

/// The reason why a text is no path, or why no path can be made below another one. Segments are
/// counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin with `/`.
    #[error(
        "`{given}` does not begin with `/`; a path looks like `/<user>/agent/<name>`, \
             `/<user>/<connector>` or `/system/<tag>`"
    )]
    NotAbsolute {
        /// Its beginning.
        given: String,
    },
    /// It is long.
    #[error("the path has {bytes} bytes; {PATH_BYTES_MAX} is the most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It has many segments.
    #[error("the path has {segments} segments; {PATH_SEGMENTS_MAX} is the most")]
    TooDeep {
        /// Number of its segments.
        segments: usize,
    },
    /// A segment is not allowed at its position.
    #[error(
        "{}segment {place} of `{path}`, `{segment}`, {fault}; there can stand {allowed}",
        unknown_pattern(.path, .fault)
    )]
    Segment {
        /// The path, with its control characters made visible.
        path: String,
        /// The place of the segment, from 1.
        place: usize,
        /// Its beginning, with its control characters made visible.
        segment: String,
        /// The fault in it.
        fault: SegmentFault,
        /// The segments that are allowed there.
        allowed: Allowed,
    },
    /// A further segment is missing at the end.
    #[error(
        "Unknown path pattern: {path}; `{path}` ends before segment {place}; there has to stand \
             {allowed}"
    )]
    Ends {
        /// The path, with its control characters made visible.
        path: String,
        /// The place of the missing segment, from 1.
        place: usize,
        /// The segments that could follow.
        allowed: Allowed,
    },
}

/// The segments that are allowed at a position of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// The first segment: a user's id or `system`.
    User,
    /// After `system`: a tag.
    Tag,
    /// After a user's id: a connector's name or a word that is followed by a name.
    Second,
    /// After such a word: a name.
    Name,
    /// After `sub` and `search`: a number.
    Index,
    /// After an agent's path: the suffix of a sub-agent.
    Suffix,
}

/// Returns the design's message for a path that matches no pattern. Empty if the pattern is clear
/// and one segment is at fault.
fn unknown_pattern(path: &str, fault: &SegmentFault) -> String {
    if *fault == SegmentFault::Unknown {
        format!("Unknown path pattern: {path}; ")
    } else {
        String::new()
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => write!(
                f,
                "`system` or a user's id (1 to {USER_BYTES_MAX} letters, digits, `-`, `_`, `.` and \
                 `@`, beginning with a letter or a \
                 digit, and no reserved word)"
            ),
            Self::Tag => write!(f, "a tag ({})", Tag::FORM),
            Self::Second => write!(
                f,
                "`agent`, `cron`, `task`, `subuser`, `app` or a connector's name ({})",
                ConnectorName::FORM
            ),
            Self::Name => write!(f, "a name ({})", Name::FORM),
            Self::Index => write!(f, "a number from 0 to {INDEX_MAX}, without zeros before it"),
            Self::Suffix => f.write_str("`sub/<n>`, `memory`, `search/<n>` or nothing"),
        }
    }
}
