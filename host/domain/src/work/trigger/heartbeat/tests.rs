//! Tests of when a heartbeat beats.

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
