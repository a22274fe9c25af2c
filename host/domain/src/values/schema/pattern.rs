//! The cost of regular expressions, in states.
//!
//! A pattern of twenty letters such as `[ab]*a[ab]{8000}c` has thousands of states, and each letter
//! of a text may lead through all of them. So the memory of a compiled pattern and the time of a
//! match are bounded by its states, and not by its length.

use jsonschema_regex::to_rust_regex;
use regex_syntax::hir::{Class, Hir, HirKind};

/// States of a range of letters outside ASCII, on average: ranges share the states of their
/// encodings' first bytes.
const WIDE_RANGE_STATES: u64 = 2;

/// Estimates the states of a pattern in JSON Schema's syntax. An invalid pattern has none:
/// compiling it fails.
pub(super) fn states(pattern: &str) -> u64 {
    let Ok(pattern) = to_rust_regex(pattern) else {
        return 0;
    };
    regex_syntax::parse(&pattern).map_or(0, |parsed| expanded(&parsed))
}

/// Counts the states with every repetition written out. The parser limits the depth.
fn expanded(part: &Hir) -> u64 {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .map(|range| {
                if range.end().is_ascii() {
                    1
                } else {
                    WIDE_RANGE_STATES
                }
            })
            .sum(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(repeated) => {
            let times = repeated
                .max
                .unwrap_or_else(|| repeated.min.saturating_add(1))
                .max(1);
            expanded(&repeated.sub)
                .saturating_add(1)
                .saturating_mul(u64::from(times))
        }
        HirKind::Capture(group) => expanded(&group.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(expanded).fold(1, u64::saturating_add)
        }
    }
}
