//! Heartbeats: an agent checks regularly for work.

mod checklist;
mod hours;
mod quiet;

pub use checklist::is_effectively_empty;
pub use hours::{ActiveHours, ActiveTimes, NotATimeOfDay, TimeOfDay};
pub use quiet::{HEARTBEAT_OK, Quiet};

use super::{
    BytesMax, HEARTBEAT_MS_DEFAULT, Interval, QUIET_CHARS_MAX, ScheduleError, SkipReason,
    SpecFault, TARGET_NAME_BYTES_MAX, Zone, check_line,
};
use crate::values::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A heartbeat. It is skipped while its checklist is empty, and tried again after a minute while
/// its session is busy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HeartbeatSpec {
    /// Its interval: default `30m`, `0` for none, otherwise from `30s` to `366d`.
    pub every: Interval,
    /// The hours in which it runs; all hours without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_hours: Option<ActiveHours>,
    /// A file with the checks to make. Without one, the heartbeat always runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checklist: Option<ChecklistFile>,
    /// True if each heartbeat has a session of its own, without the history of others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub light: bool,
    /// Tokens that its turns may use in one day; no limit without. The day follows the active
    /// hours' time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens_per_day: Option<u64>,
    /// Heartbeats of one day; no limit without.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub runs_per_day: Option<u32>,
    /// True to send replies that say only that all is well (`HEARTBEAT_OK`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_ok: bool,
}

/// A file of a granted folder with the checks of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChecklistFile {
    /// The name of the folder in the component's grant, such as `/notes`.
    pub component_directory: String,
    /// The file's path below it, such as `HEARTBEAT.md`. At most 64 KiB are read.
    pub file: String,
}

impl Default for HeartbeatSpec {
    fn default() -> Self {
        Self {
            every: Interval::of_limit(HEARTBEAT_MS_DEFAULT),
            active_hours: None,
            checklist: None,
            light: false,
            tokens_per_day: None,
            runs_per_day: None,
            keep_ok: false,
        }
    }
}

/// The facts that decide whether a heartbeat runs.
#[derive(Debug, Clone, Copy)]
pub struct BeatFacts<'a> {
    /// The present time.
    pub now: Timestamp,
    /// The text of the checklist; none if the file is missing or none is configured.
    pub checklist: Option<&'a str>,
    /// True if its session has an open run or a waiting input.
    pub is_busy: bool,
    /// Tokens that its turns have used since [`HeartbeatSpec::day_start`].
    pub tokens: u64,
    /// Beats since then.
    pub runs: u32,
}

impl HeartbeatSpec {
    /// Returns the reason why the heartbeat is skipped now; none if it runs.
    ///
    /// # Errors
    /// Its active hours are invalid, or the time is beyond the calendar.
    pub fn skip(&self, facts: &BeatFacts<'_>) -> Result<Option<SkipReason>, ScheduleError> {
        let is_active = match &self.active_hours {
            Some(hours) => hours.parse()?.contains(facts.now)?,
            None => true,
        };
        let is_empty = self.checklist.is_some() && facts.checklist.is_none_or(is_effectively_empty);
        let is_spent = self.tokens_per_day.is_some_and(|max| facts.tokens >= max)
            || self.runs_per_day.is_some_and(|max| facts.runs >= max);
        Ok(if !is_active {
            Some(SkipReason::Inactive)
        } else if is_empty {
            Some(SkipReason::EmptyChecklist)
        } else if is_spent {
            Some(SkipReason::Budget)
        } else if facts.is_busy {
            Some(SkipReason::Busy)
        } else {
            None
        })
    }

    /// Returns the beginning of the day to which a time belongs, for its budget.
    ///
    /// # Errors
    /// Its time zone is invalid, or the time is beyond the calendar.
    pub fn day_start(&self, now: Timestamp) -> Result<Timestamp, ScheduleError> {
        let zone = self
            .active_hours
            .as_ref()
            .and_then(|hours| hours.time_zone.as_deref());
        let zone = Zone::parse("activeHours.timeZone", zone)?;
        let shown = zone.local(now)?;
        Ok(zone.resolve(shown.date().at(0, 0, 0, 0))?)
    }

    /// Returns the rule for its replies that are not sent; none if all are sent.
    #[must_use]
    pub fn quiet(&self) -> Option<Quiet> {
        (!self.keep_ok).then_some(Quiet {
            chars_max: QUIET_CHARS_MAX,
        })
    }

    /// Returns its faults besides those of its schedule.
    pub(super) fn faults(&self) -> Vec<SpecFault> {
        let mut faults = Vec::new();
        if let Some(ChecklistFile {
            component_directory,
            file,
        }) = &self.checklist
        {
            let max = BytesMax(TARGET_NAME_BYTES_MAX);
            let folder = check_line("checklist.componentDirectory", component_directory, max);
            faults.extend(folder.err());
            faults.extend(check_line("checklist.file", file, max).err());
            if file.split('/').any(|name| matches!(name, "" | "." | "..")) || file.contains('\\') {
                let message = "leads out of the folder or is no plain path";
                let fix = "write the file's path below the folder, such as `HEARTBEAT.md`";
                faults.push(SpecFault::new("checklist.file", message, fix));
            }
        }
        let zero = [
            ("tokensPerDay", self.tokens_per_day == Some(0)),
            ("runsPerDay", self.runs_per_day == Some(0)),
        ];
        for (field, _) in zero.into_iter().filter(|(_, is_zero)| *is_zero) {
            let fix = "write at least 1, or every = \"0\" for no heartbeat";
            faults.push(SpecFault::new(field, "is 0", fix));
        }
        faults
    }
}

#[cfg(test)]
mod tests;
