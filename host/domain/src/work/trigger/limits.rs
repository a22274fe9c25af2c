//! Limits of triggers, with their units.

use crate::values::backoff::Backoff;

pub use shapes::limits::trigger::*;

/// Shortest time between two trigger events of a schedule: 30 seconds, in milliseconds.
pub const MIN_INTERVAL_MS: u64 = 30_000;
/// Longest time between two trigger events of an interval: 366 days, in milliseconds.
pub const INTERVAL_MS_MAX: u64 = 366 * 24 * 3_600_000;
/// Milliseconds over which trigger events at whole hours are spread: 5 minutes.
pub const SPREAD_MS_MAX: u64 = 300_000;
/// Milliseconds after its time at which a trigger event counts as missed: 5 minutes.
pub const LATE_MS_MAX: u64 = 300_000;
/// Missed trigger events that are counted exactly; more are reported as this number.
pub const MISSED_COUNTED_MAX: u32 = 10_000;
/// The default number of missed trigger events that a schedule makes up for.
pub const MISSED_DEFAULT: u32 = 10;
/// Missed trigger events that a schedule may make up for.
pub const MISSED_MAX: u32 = 100;
/// Bytes of a schedule's `cron`.
pub const CRON_BYTES_MAX: usize = 256;
/// Bytes of the name of a time zone.
pub const ZONE_BYTES_MAX: usize = 64;

/// Bytes of the name of a trigger, and of one of its targets.
pub const TRIGGER_NAME_BYTES_MAX: usize = shapes::NAME_BYTES_MAX;
/// Events of the host that may precede a received one in a chain of triggers: triggers that cause
/// each other thus stop.
pub const CHAIN_MAX: u32 = 3;
/// Triggers of one host.
pub const TRIGGERS_MAX: usize = 200_000;
/// Triggers that one user may make.
pub const TRIGGERS_OF_USER_MAX: usize = 100;
/// Further targets of one trigger.
pub const TARGETS_MAX: usize = 32;
/// Bytes of an agent's name in a target, and of a component's name.
pub const TARGET_NAME_BYTES_MAX: usize = 1_024;
/// Bytes of the topic of a target by topic.
pub const ABOUT_BYTES_MAX: usize = 4_096;
/// Bytes of a trigger's configuration for its component.
pub const CONFIGURATION_BYTES_MAX: usize = 64 << 10;

/// Bytes of a message's template.
pub const TEMPLATE_BYTES_MAX: usize = 16 << 10;
/// Variables of one template.
pub const TEMPLATE_VARIABLES_MAX: usize = 256;
/// Bytes of a failure's reason that are stored.
pub const REASON_BYTES_MAX: usize = 1_024;

/// Bytes of the body of a webhook call.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// The default limit of a webhook call's body in bytes: 256 KiB.
pub const PAYLOAD_BYTES_DEFAULT: usize = 256 << 10;
/// Headers of a webhook call that are stored, and parts of its query.
pub const CALL_FIELDS_MAX: usize = 64;
/// Bytes of a header's value, or of a part of the query, that are stored.
pub const CALL_FIELD_BYTES_MAX: usize = 4_096;
/// Form fields of a webhook call.
pub const FORM_FIELDS_MAX: usize = 1_024;
/// Bytes of a call id; a longer one is replaced by its digest.
pub const CALL_ID_BYTES_MAX: usize = 256;
/// Bytes of a webhook call's path after its trigger's name.
pub const CALL_PATH_BYTES_MAX: usize = 1_024;
/// Bytes of a header's name.
pub const HEADER_NAME_BYTES_MAX: usize = 64;
/// The default number of seconds by which the time of a signature may be off.
pub const TOLERANCE_S_DEFAULT: u32 = 300;
/// The most seconds by which the time of a signature may be off: one hour.
pub const TOLERANCE_S_MAX: u32 = 3_600;

/// Files in one scan of a watched folder; of more, the first by path.
pub const FILES_WATCHED_MAX: usize = 20_000;
/// Changes of files that one trigger event lists.
pub const CHANGES_MAX: usize = 100;
/// Patterns of a watched folder.
pub const PATTERNS_MAX: usize = 32;
/// The default quiet time after which file changes become a trigger event: 1 second, in
/// milliseconds.
pub const FILES_DEBOUNCE_MS_DEFAULT: u64 = 1_000;
/// Shortest quiet time before file changes become a trigger event, in milliseconds.
pub const FILES_DEBOUNCE_MS_MIN: u64 = 100;
/// Longest quiet time before file changes become a trigger event: 1 hour, in milliseconds.
pub const FILES_DEBOUNCE_MS_MAX: u64 = 3_600_000;

/// The default interval of heartbeats: 30 minutes, in milliseconds.
pub const HEARTBEAT_MS_DEFAULT: u64 = 1_800_000;
/// Characters besides the all-clear mark up to which a reply to a heartbeat is not sent.
pub const QUIET_CHARS_MAX: u32 = 300;
/// Bytes of a checklist.
pub const CHECKLIST_BYTES_MAX: usize = 64 << 10;
/// Milliseconds after which a heartbeat with a busy session is tried again: 1 minute.
pub const BUSY_RETRY_MS: u64 = 60_000;

/// Attempts at one trigger event.
pub const RETRIES_MAX: u32 = 10;
/// Pauses between attempts at a trigger event: up to 5 minutes.
pub const RETRIES: Backoff = Backoff {
    first_ms: 1_000,
    most_ms: 300_000,
};
/// The most milliseconds by which a component may delay a trigger event at once: 1 day.
pub const RETRY_LATER_MS_MAX: u64 = 24 * 3_600_000;
/// Failures in a row at which an operator is notified.
pub const ALERT_FAILURES: u32 = 2;
/// Failures in a row after which attempts are suspended for [`BREAKER_MS`].
pub const BREAKER_FAILURES: u32 = 5;
/// Milliseconds for which a breaker is open: 5 minutes.
pub const BREAKER_MS: u64 = 300_000;
/// Failures in a row after which a trigger is paused.
pub const DISABLE_FAILURES: u32 = 10;
/// Failures in a row to compute the next trigger event, after which a trigger is paused.
pub const DISABLE_SCHEDULE_ERRORS: u32 = 3;
/// Milliseconds after which a trigger's turn is reported as stuck: 60 minutes.
pub const WATCHDOG_MS: u64 = 3_600_000;

/// Waiting trigger events of one trigger; further ones are refused as busy.
pub const PENDING_MAX: u32 = 1_000;
/// Entries of one page of a trigger's history.
pub const HISTORY_PAGE: u32 = 100;
/// Bytes of the data of an event of the host.
pub const EVENT_DATA_BYTES_MAX: usize = 64 << 10;
