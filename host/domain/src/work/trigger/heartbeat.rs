//! Heartbeats: an agent checks regularly for work.

mod hours;

use super::{
    BytesMax, HEARTBEAT_MS_DEFAULT, Interval, QUIET_CHARS_MAX, ScheduleError, SkipReason,
    SpecFault, TARGET_NAME_BYTES_MAX, Zone, check_line,
};
use crate::thread::cut_off::NO_ANSWER;
use crate::values::time::Timestamp;
pub use hours::{ActiveHours, ActiveTimes, NotATimeOfDay, TimeOfDay};
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

// Empty checklists: a heartbeat with one is not worth a model's time.

/// Returns whether a checklist has no content: only blank lines, headings, empty list items, empty
/// checkboxes, rules and HTML comments.
#[must_use]
pub fn is_effectively_empty(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    without_comments(text).lines().all(says_nothing)
}

fn says_nothing(line: &str) -> bool {
    let line = line.trim();
    if is_heading(line) {
        return true;
    }
    let is_rule = line.len() >= 3
        && ['-', '*', '_', '=']
            .iter()
            .any(|sign| line.chars().all(|found| found == *sign));
    is_rule || item(line).is_empty()
}

/// A heading, with or without words: `#` to `######`, and a space or nothing.
fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// The content of a line without the leading marks of lists, quotes and checkboxes.
fn item(line: &str) -> &str {
    let mut rest = line;
    loop {
        let before = rest;
        for mark in ["-", "*", "+", ">", "[ ]", "[x]", "[X]", "[]"] {
            rest = without_mark(rest, mark);
        }
        rest = without_number(rest);
        if rest == before {
            return rest;
        }
    }
}

/// The rest of a line after a mark, which is followed by a space or the line's end.
fn without_mark<'a>(line: &'a str, mark: &str) -> &'a str {
    match line.strip_prefix(mark) {
        Some(rest) if rest.is_empty() || rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => line,
    }
}

/// The rest of a line after a number with `.` or `)`.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
    if rest.len() == line.len() {
        return line;
    }
    for mark in [".", ")"] {
        let behind = without_mark(rest, mark);
        if behind != rest {
            return behind;
        }
    }
    line
}

/// The text without its HTML comments. An unclosed comment extends to the end.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod checklist_tests {
    use super::*;

    #[test]
    fn a_checklist_with_nothing_to_look_for_is_effectively_empty() {
        for text in [
            "",
            " \n\t\r\n",
            "\u{feff}# Heartbeat\n",
            "#\n## Two\n###### Six",
            "- \n-\n* \n+\n1.\n2) \n",
            "- [ ]\n- [ ] \n* [x]\n1. [ ]",
            "<!-- look at mail -->",
            "# Heartbeat\n<!--\n- mail\n-->\n- [ ]\n---\n***\n",
            "<!-- not closed\n- mail",
            "> -",
        ] {
            assert!(is_effectively_empty(text), "{text:?}");
        }
    }

    #[test]
    fn a_checklist_with_one_thing_to_look_for_is_not_empty() {
        for text in [
            "mail",
            "# Heartbeat\n\n- mail",
            "- [ ] mail",
            "1. mail",
            "#hashtag",
            "####### seven",
            "42",
            "<!-- a --> mail <!-- b -->",
            "-mail",
            "[mail]",
            "--",
        ] {
            assert!(!is_effectively_empty(text), "{text:?}");
        }
    }
}

// Quiet replies: a heartbeat without findings disturbs nobody.

/// The text of a reply which says that there is nothing to do.
pub const HEARTBEAT_OK: &str = "HEARTBEAT_OK";

/// The rule by which replies to heartbeats are sent or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// Characters besides [`HEARTBEAT_OK`] that a dropped reply may have.
    pub chars_max: u32,
}

impl Quiet {
    /// Returns the part of a reply that is sent, if any. `HEARTBEAT_OK` is removed from its
    /// beginning or its end, also in bold or as code; in its middle it has no meaning.
    #[must_use]
    pub fn of(self, reply: &str) -> Option<String> {
        let mut rest = reply.trim();
        let mut is_marked = false;
        while let Some(shorter) = without_start(rest).or_else(|| without_end(rest)) {
            rest = shorter;
            is_marked = true;
        }
        if rest.is_empty() || rest == NO_ANSWER {
            return None;
        }
        let chars = u32::try_from(rest.chars().count()).unwrap_or(u32::MAX);
        let is_quiet = is_marked && chars <= self.chars_max;
        (!is_quiet).then(|| rest.to_owned())
    }
}

fn is_decoration(sign: char) -> bool {
    matches!(sign, '*' | '`' | '~' | '"' | '\'')
}

fn is_of_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// The reply without the text at its beginning; none if it does not begin with it.
fn without_start(reply: &str) -> Option<&str> {
    let rest = reply
        .trim_start_matches(is_decoration)
        .strip_prefix(HEARTBEAT_OK)?;
    let ends = !rest.starts_with(is_of_word);
    ends.then(|| {
        let rest = rest.trim_start_matches(is_decoration);
        rest.trim_start_matches(['.', '!', ',', ':', ';'])
            .trim_start()
    })
}

/// The reply without the text at its end; none if it does not end with it.
fn without_end(reply: &str) -> Option<&str> {
    let end = reply.trim_end_matches(|sign| is_decoration(sign) || matches!(sign, '.' | '!'));
    let rest = end.strip_suffix(HEARTBEAT_OK)?;
    let begins = !rest.ends_with(is_of_word);
    begins.then(|| rest.trim_end_matches(is_decoration).trim_end())
}

#[cfg(test)]
mod quiet_tests {
    use super::*;
    use proptest::prelude::*;

    const QUIET: Quiet = Quiet { chars_max: 10 };

    #[test]
    fn the_mark_is_taken_off_at_either_end_and_short_replies_go_nowhere() {
        for (reply, delivered) in [
            ("HEARTBEAT_OK", None),
            ("  HEARTBEAT_OK.\n", None),
            ("**HEARTBEAT_OK**", None),
            ("`HEARTBEAT_OK`", None),
            ("", None),
            (" \n", None),
            (NO_ANSWER, None),
            ("HEARTBEAT_OK all quiet", None),
            ("all quiet HEARTBEAT_OK", None),
            ("HEARTBEAT_OK 1234567890", None),
            ("HEARTBEAT_OK 12345678901", Some("12345678901")),
            ("HEARTBEAT_OK x HEARTBEAT_OK", None),
            (
                "Two mails came in.\nHEARTBEAT_OK",
                Some("Two mails came in."),
            ),
            ("I say HEARTBEAT_OK now", Some("I say HEARTBEAT_OK now")),
            ("short", Some("short")),
            ("HEARTBEAT_OKAY", Some("HEARTBEAT_OKAY")),
            ("NO_HEARTBEAT_OK", Some("NO_HEARTBEAT_OK")),
            ("heartbeat_ok", Some("heartbeat_ok")),
        ] {
            assert_eq!(QUIET.of(reply).as_deref(), delivered, "{reply:?}");
        }
    }

    proptest! {
        #[test]
        fn a_reply_without_the_mark_stays_as_it_is(reply in "[a-z .]{1,40}") {
            let trimmed = reply.trim();
            let expected = (!trimmed.is_empty()).then(|| trimmed.to_owned());
            prop_assert_eq!(QUIET.of(&reply), expected);
        }

        #[test]
        fn what_is_delivered_is_a_part_of_the_reply(reply in "(HEARTBEAT_OK|[a-zé*. ]){0,40}") {
            if let Some(delivered) = QUIET.of(&reply) {
                prop_assert!(reply.contains(&delivered));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(value: Value) -> HeartbeatSpec {
        serde_json::from_value(value).unwrap()
    }

    fn facts(now: &str) -> BeatFacts<'static> {
        BeatFacts {
            now: now.parse().unwrap(),
            checklist: Some("- mail"),
            is_busy: false,
            tokens: 0,
            runs: 0,
        }
    }

    #[test]
    fn a_heartbeat_is_passed_over_for_one_reason_at_a_time() {
        let full = json!({
            "activeHours": { "start": "08:00", "end": "22:00" },
            "checklist": { "componentDirectory": "/notes", "file": "HEARTBEAT.md" },
            "tokensPerDay": 1_000,
            "runsPerDay": 10,
        });
        let noon = facts("2026-06-01T12:00:00Z");
        for (facts, expected) in [
            (noon, None),
            (facts("2026-06-01T22:00:00Z"), Some(SkipReason::Inactive)),
            (
                BeatFacts {
                    checklist: Some("# Heartbeat\n- [ ]\n"),
                    ..noon
                },
                Some(SkipReason::EmptyChecklist),
            ),
            (
                BeatFacts {
                    checklist: None,
                    ..noon
                },
                Some(SkipReason::EmptyChecklist),
            ),
            (
                BeatFacts {
                    tokens: 1_000,
                    ..noon
                },
                Some(SkipReason::Budget),
            ),
            (BeatFacts { runs: 10, ..noon }, Some(SkipReason::Budget)),
            (
                BeatFacts {
                    tokens: 999,
                    runs: 9,
                    ..noon
                },
                None,
            ),
            (
                BeatFacts {
                    is_busy: true,
                    ..noon
                },
                Some(SkipReason::Busy),
            ),
        ] {
            let reason = spec(full.clone()).skip(&facts);
            assert_eq!(reason, Ok(expected), "{facts:?}");
        }
        let bare = BeatFacts {
            checklist: None,
            ..noon
        };
        assert_eq!(spec(json!({})).skip(&bare), Ok(None));
    }

    #[test]
    fn the_day_of_a_budget_is_that_of_the_active_hours() {
        let now = "2026-06-01T22:30:00Z".parse().unwrap();
        let start = |value| spec(value).day_start(now);
        assert_eq!(
            start(json!({})),
            Ok("2026-06-01T00:00:00Z".parse().unwrap())
        );
        let berlin = json!({
            "activeHours": { "start": "08:00", "end": "24:00", "timeZone": "Europe/Berlin" }
        });
        assert_eq!(start(berlin), Ok("2026-06-01T22:00:00Z".parse().unwrap()));
    }

    #[test]
    fn a_heartbeat_has_defaults_and_is_written_without_them() {
        let default = spec(json!({}));
        assert_eq!(default, HeartbeatSpec::default());
        assert_eq!(json!(default), json!({ "every": "30m" }));
        assert_eq!(default.quiet(), Some(Quiet { chars_max: 300 }));
        assert_eq!(spec(json!({ "keepOk": true })).quiet(), None);
    }

    #[test]
    fn a_checklist_lies_in_its_folder() {
        for (file, is) in [
            ("HEARTBEAT.md", true),
            ("a/b.md", true),
            ("", false),
            ("/etc/passwd", false),
            ("../x", false),
            ("a/../b", false),
            ("a\\b", false),
        ] {
            let checklist = json!({ "componentDirectory": "/notes", "file": file });
            let faults = spec(json!({ "checklist": checklist })).faults();
            assert_eq!(faults.is_empty(), is, "{file}: {faults:?}");
        }
    }
}
