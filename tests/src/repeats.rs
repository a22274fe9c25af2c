//! The number of repeats of what could be tried for hours: a sample in an ordinary run, and all of
//! it where a variable asks for that, as `./x nightly` does.

/// The variable that asks for the full number of repeats.
pub const ATTACKS: &str = "AGENT_HOST_ATTACKS";

/// Returns true if the full number of repeats is asked for.
#[must_use]
pub fn is_whole() -> bool {
    std::env::var_os(ATTACKS).is_some_and(|value| value == "whole")
}
