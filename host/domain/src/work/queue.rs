//! The broker's queue: the fate of messages that arrive while an agent is busy, and the order in
//! which waiting ones are claimed.
//!
//! There are two moments of decision. When an input arrives, [`Queue::arrive`] decides how its mode
//! applies, and which inputs it drops from a full queue. When a session's driver is free or at the
//! boundary of a step, [`Queue::plan`] decides which waiting inputs to claim and in which form, or
//! until when to wait. Both depend on the stored rows only: repeated after a crash, they give the
//! same result. No input is lost: it is claimed, dropped with a notice, refused, or it waits.
//!
//! | mode | while a run is open | else |
//! |---|---|---|
//! | `steer` | joins it at its next boundary; waits where it cannot, and begins the next turn | begins a turn |
//! | `followup` | a turn of its own after the run | begins a turn |
//! | `collect` | one turn, after the run, of all that were collected | begins a turn |
//! | `interrupt` | ends the run and begins the next turn | begins a turn |
//!
//! Only `followup` and `collect` have a debounce, a cap and a drop policy. Only their inputs can
//! wait for longer than a step takes.

#[cfg(test)]
#[path = "../../tests/models/queue.rs"]
pub mod model;
mod plan;
mod settings;
#[cfg(test)]
mod tests;
mod waiting;

pub use plan::{Claims, Condition, Plan, PlannedTurn, collected};
pub use settings::{
    Cap, Debounce, Directive, DirectiveError, DropPolicy, Mode, QueueOverride, QueueSettings,
    SettingError, UnknownMode,
};
pub use waiting::{
    Admission, Arriving, Drops, Grouping, Overflow, OverflowNotice, Queue, QueueFull, Queued,
    WaitKind, WaitingInput, excerpt, line,
};

use crate::values::limits::WAITING_INPUTS_MAX;

/// The result of a call that had not begun when a message steered its run. The call is not made,
/// but every call needs a result.
pub const SKIPPED: &str = "Skipped due to queued user message.";
/// The beginning of a message that contains several.
pub const COLLECTED_TITLE: &str = "[Queued messages while agent was busy]";
/// The longest debounce: one day, in milliseconds.
pub const DEBOUNCE_MS_MAX: u64 = 24 * 3_600_000;
/// The largest cap: the most waiting inputs of a session.
pub const CAP_MAX: usize = WAITING_INPUTS_MAX;
/// Inputs that join a run at one boundary; more join it at the next.
pub const JOINED_INPUTS_MAX: usize = 32;
/// Bytes of text that are collected into one turn: 2 MiB. The rest goes into the next turn; a
/// single input always fits.
pub const COLLECTED_BYTES_MAX: u64 = 2 << 20;
/// Letters of the line that is kept of a dropped input.
pub const EXCERPT_CHARS_MAX: usize = 160;
/// Lines kept for dropped inputs, at most as many as the cap. The oldest are lost and still count.
pub const OVERFLOW_LINES_MAX: usize = 100;
/// Letters of a wrong word that an error repeats.
const SHOWN_CHARS_MAX: usize = 64;

/// Returns the beginning of a wrong word, as an error repeats it.
fn shown(word: &str) -> String {
    word.chars().take(SHOWN_CHARS_MAX).collect()
}
