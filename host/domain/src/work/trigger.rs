//! Triggers: the causes for which the host messages an agent by itself.
//!
//! The host owns schedule, state, missed trigger events, retries and outbound message; a component
//! turns a trigger event into messages.
//!
//! - what an operator says of a trigger: `spec.rs`, and of its target: `target.rs`
//! - when it is due: `schedule.rs`; what becomes of missed trigger events: `missed.rs`
//! - heartbeats: `heartbeat.rs`; webhooks: `webhook.rs`, `cloud_event.rs`; files: `files.rs`;
//!   events of the host: `host_event.rs`
//! - what happened: `trigger_event.rs`; the message with its variables: `template.rs`
//! - the tools with which agents set themselves triggers: `own.rs`
//! - failures in a row: `breaker.rs`
//! - intervals: `interval.rs`; time zones: `zone.rs`

mod breaker;
mod cloud_event;
mod files;
mod heartbeat;
mod host_event;
mod interval;
mod missed;
mod own;
mod schedule;
mod spec;
mod target;
mod template;
mod trigger_event;
mod webhook;
mod zone;

use crate::values::backoff::Backoff;
use crate::values::id::TriggerId;
use crate::values::shown::escaped;
use crate::values::text::{serde_as_text, wrapped_text};
pub use breaker::*;
pub use cloud_event::*;
pub use files::*;
pub use heartbeat::*;
pub use host_event::*;
pub use interval::*;
pub use missed::*;
pub use own::*;
pub use schedule::*;
pub use shapes::limits::trigger::*;
pub(super) use spec::configuration_fault;
pub use spec::*;
use std::str::FromStr;
use target::TargetFault;
pub use target::*;
use template::check_template;
pub use template::*;
pub use trigger_event::*;
use utoipa::ToSchema;
pub use webhook::*;
use webhook::{is_json, percent_decoded, read_body};
pub use zone::{BeyondCalendar, Zone};

// Limits of triggers, with their units.

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
/// Bytes of the data of an event of the host.
pub const EVENT_DATA_BYTES_MAX: usize = 64 << 10;

// Names of triggers and of their targets.

/// The form of a name.
const FORM: &str = "1 to 64 of `a-z`, `0-9`, `-` and `_`";
const _: () = assert!(TRIGGER_NAME_BYTES_MAX == 64);

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no name of {of}; write {FORM}")]
pub struct NotATriggerName {
    given: String,
    of: &'static str,
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $of:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
        pub struct $name(String);

        wrapped_text!($name);
        serde_as_text!($name::from_str);

        impl FromStr for $name {
            type Err = NotATriggerName;

            fn from_str(text: &str) -> Result<Self, NotATriggerName> {
                if shapes::is_name(text, b"-_") {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(NotATriggerName {
                        given: escaped(text),
                        of: $of,
                    })
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": concat!("The name of ", $of, "."),
                    "type": "string",
                    "pattern": "^[a-z0-9_-]+$",
                    "minLength": 1,
                    "maxLength": TRIGGER_NAME_BYTES_MAX,
                })
            }
        }
    )*};
}

names! {
    /// The name of a trigger: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    TriggerName: "a trigger";
    /// The name of a further target of a trigger: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    TriggerTargetName: "a trigger's target";
}

impl TriggerName {
    /// Returns the id of the trigger with this name.
    #[must_use]
    pub fn id(&self) -> TriggerId {
        TriggerId::of_name(&self.0)
    }
}

#[cfg(test)]
mod name_tests {
    use super::*;

    #[test]
    fn a_name_is_a_short_word() {
        for (text, is) in [
            ("morning", true),
            ("a-b_9", true),
            ("", false),
            ("A", false),
            ("a/b", false),
            ("a b", false),
            (&"x".repeat(64), true),
            (&"x".repeat(65), false),
        ] {
            assert_eq!(text.parse::<TriggerName>().is_ok(), is, "{text}");
        }
        let error = "A\n".parse::<TriggerName>().unwrap_err().to_string();
        assert!(error.contains(r"`A\n`") && error.contains(FORM), "{error}");
    }

    #[test]
    fn a_name_reads_as_it_is_written() {
        let name: TriggerName = "morning".parse().unwrap();
        let text = serde_json::to_string(&name).unwrap();
        assert_eq!(text, "\"morning\"");
        assert_eq!(serde_json::from_str::<TriggerName>(&text).unwrap(), name);
        assert!(serde_json::from_str::<TriggerTargetName>("\"No\"").is_err());
        assert_eq!(name.id(), TriggerId::of_name("morning"));
    }
}

// Faults in an operator's definition of a trigger: the field, the fault, and what to write.

/// A fault in the definition of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {message}; {fix}")]
pub struct SpecFault {
    /// The field, such as `schedule.every`.
    pub field: String,
    /// The fault in it.
    pub message: String,
    /// The correction.
    pub fix: String,
}

impl SpecFault {
    /// A fault in a field.
    pub(crate) fn new(
        field: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// The same, for a field within an outer one.
    pub(crate) fn within(self, outer: &str) -> Self {
        Self {
            field: format!("{outer}.{}", self.field),
            ..self
        }
    }
}

/// Notes a fault, if any.
fn note(faults: &mut Vec<SpecFault>, checked: Result<(), SpecFault>) {
    faults.extend(checked.err());
}

/// A length that is allowed.
#[derive(Debug, Clone, Copy)]
struct BytesMax(usize);

/// Checks that a text is not blank, has no control characters and is not too long.
fn check_line(field: &str, text: &str, max: BytesMax) -> Result<(), SpecFault> {
    let BytesMax(max) = max;
    if text.trim().is_empty() {
        let fix = "write it, or leave the field out";
        return Err(SpecFault::new(field, "is empty", fix));
    }
    if text.len() > max {
        let message = format!("has {} bytes", text.len());
        return Err(SpecFault::new(
            field,
            message,
            format!("write at most {max}"),
        ));
    }
    if text.chars().any(char::is_control) {
        let message = "has a control character in it";
        return Err(SpecFault::new(field, message, "leave it out"));
    }
    Ok(())
}
