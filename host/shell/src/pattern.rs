//! Patterns of `grep` and `jq`: compiled within a bound, and looked for in a time that is bounded
//! before.
//!
//! A search cannot be ended while it goes on. In the worst case its time is the length of the text
//! times the size of the compiled pattern, so one whose product is too great is not begun.

use crate::meter::{Meter, Stop};
use regex::{Match, Regex, RegexBuilder};

/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 4 << 10;
/// Bytes of memory of a compiled pattern that are tried, from small to large.
const COMPILED_BYTES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Bytes that one state of a compiled pattern takes, at least.
const STATE_BYTES: usize = 32;
/// Steps of one search: each byte of the text in each state.
const STEPS_MAX: usize = 128 << 20;
/// Work that a byte is counted as in which a pattern is looked for: it takes longer than copying.
const MATCH_FACTOR: usize = 4;
/// Bytes of the rest of a text that each further search in it is counted as one byte for. Most end
/// long before.
const REST_PART: usize = 128;

/// A compiled pattern.
pub(crate) struct Searched {
    regex: Regex,
    /// Bytes of a text in which it is looked for.
    text_bytes_max: usize,
}

impl Searched {
    /// Compiles a pattern. The inner error is its fault, for people.
    pub(crate) fn compiled(
        meter: &mut Meter,
        pattern: &str,
        is_case_insensitive: bool,
    ) -> Result<Result<Self, String>, Stop> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Ok(Err(format!(
                "the pattern is longer than {PATTERN_BYTES_MAX} bytes"
            )));
        }
        let mut fault = String::new();
        for bytes in COMPILED_BYTES {
            meter.inspect()?;
            meter.work(bytes)?;
            let compiled = RegexBuilder::new(pattern)
                .case_insensitive(is_case_insensitive)
                .size_limit(bytes)
                .dfa_size_limit(256 << 10)
                .build();
            match compiled {
                Ok(regex) => {
                    let states = bytes.div_ceil(STATE_BYTES);
                    return Ok(Ok(Self {
                        regex,
                        text_bytes_max: STEPS_MAX / states,
                    }));
                }
                Err(error) => {
                    let is_too_large = matches!(error, regex::Error::CompiledTooBig(_));
                    fault = error.to_string();
                    if !is_too_large {
                        break;
                    }
                }
            }
        }
        Ok(Err(fault))
    }

    /// Returns whether it is in a text.
    pub(crate) fn is_in(&self, meter: &mut Meter, text: &str) -> Result<bool, Stop> {
        self.begin(meter, text)?;
        Ok(self.regex.is_match(text))
    }

    /// Returns the first place at or after another at which it is in a text.
    pub(crate) fn next_in<'t>(
        &self,
        meter: &mut Meter,
        text: &'t str,
        from: usize,
    ) -> Result<Option<Match<'t>>, Stop> {
        if from == 0 {
            self.begin(meter, text)?;
        } else {
            // Each search may go on to the end of the text.
            meter.inspect()?;
            meter.work(64 + text.len().saturating_sub(from) / REST_PART)?;
        }
        if from > text.len() {
            return Ok(None);
        }
        Ok(self.regex.find_at(text, from))
    }

    /// Counts a search in a text, and refuses one that would take too long.
    fn begin(&self, meter: &mut Meter, text: &str) -> Result<(), Stop> {
        if text.len() > self.text_bytes_max {
            return Err(Stop::Over(format!(
                "this pattern is too large for a line of {} bytes; narrow it",
                text.len()
            )));
        }
        meter.inspect()?;
        meter.work(64 + text.len().saturating_mul(MATCH_FACTOR))
    }
}
