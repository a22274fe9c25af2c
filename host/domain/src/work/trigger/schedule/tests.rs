//! Tests of schedules.

mod year;

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn name(text: &str) -> TriggerName {
    text.parse().unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn schedule(spec: Value) -> Schedule {
    Schedule::parse(&serde_json::from_value(spec).unwrap()).unwrap()
}

/// A `cron` schedule that is not spread.
fn cron(pattern: &str, zone: &str) -> Schedule {
    schedule(json!({ "cron": pattern, "timeZone": zone, "spread": false }))
}

/// The first trigger events after a time, of a trigger that was defined then.
fn trigger_events(schedule: &Schedule, after: Timestamp, number: usize) -> Vec<Timestamp> {
    let mut found = Vec::new();
    let mut last = after;
    while found.len() < number
        && let Some(next) = schedule.next(&name("t"), after, last).unwrap()
    {
        found.push(next);
        last = next;
    }
    found
}

#[test]
fn trigger_events_come_as_they_were_written() {
    let start = "2026-01-01T00:00:10.500Z";
    for (spec, expected) in [
        (
            json!({ "at": "2026-01-02T09:00:00+01:00" }),
            vec!["2026-01-02T08:00:00Z"],
        ),
        (json!({ "at": "2026-01-01T00:00:00Z" }), vec![]),
        (
            json!({ "every": "30s" }),
            vec!["2026-01-01T00:00:40.500Z", "2026-01-01T00:01:10.500Z"],
        ),
        (
            json!({ "every": "1h", "anchor": "2025-01-01T00:30:00Z" }),
            vec!["2026-01-01T00:30:00Z", "2026-01-01T01:30:00Z"],
        ),
        (
            json!({ "every": "1d", "anchor": "2026-03-01T00:30:00Z" }),
            vec!["2026-03-01T00:30:00Z", "2026-03-02T00:30:00Z"],
        ),
        (
            json!({ "cron": "*/20 0 * * *" }),
            vec![
                "2026-01-01T00:20:00Z",
                "2026-01-01T00:40:00Z",
                "2026-01-02T00:00:00Z",
            ],
        ),
        (
            json!({ "cron": "5 9 * * MON-FRI", "timeZone": "America/New_York" }),
            vec![
                "2026-01-01T14:05:00Z",
                "2026-01-02T14:05:00Z",
                "2026-01-05T14:05:00Z",
            ],
        ),
        (
            json!({ "cron": "5 0 13 * fri" }),
            vec![
                "2026-01-02T00:05:00Z",
                "2026-01-09T00:05:00Z",
                "2026-01-13T00:05:00Z",
            ],
        ),
        (
            json!({ "cron": "5 0 29 2 *" }),
            vec!["2028-02-29T00:05:00Z", "2032-02-29T00:05:00Z"],
        ),
        (
            json!({ "cron": "5 0 1 jan,JUL sun" }),
            vec!["2026-01-01T00:05:00Z", "2026-01-04T00:05:00Z"],
        ),
        (
            json!({ "cron": "5 0 * * 7" }),
            vec!["2026-01-04T00:05:00Z", "2026-01-11T00:05:00Z"],
        ),
    ] {
        let found = trigger_events(&schedule(spec.clone()), time(start), expected.len().max(1));
        let expected: Vec<Timestamp> = expected.into_iter().map(time).collect();
        assert_eq!(found, expected, "{spec}");
    }
}

#[test]
fn a_trigger_event_at_a_whole_hour_is_spread_only_where_that_is_asked_for() {
    let start = time("2026-01-01T00:30:00Z");
    let whole = time("2026-01-01T01:00:00Z");
    let first = |spec: &Value, trigger: &str| {
        let schedule = schedule(spec.clone());
        schedule
            .next(&name(trigger), start, start)
            .unwrap()
            .unwrap()
    };
    for spec in [
        json!({ "cron": "0 * * * *", "spread": true }),
        json!({ "every": "1h", "anchor": "2026-01-01T00:00:00Z", "spread": true }),
    ] {
        let dues: std::collections::BTreeSet<Timestamp> = (0..50)
            .map(|number| first(&spec, &format!("t{number}")))
            .collect();
        assert!(dues.len() > 45, "{spec}");
        assert!(
            dues.iter()
                .all(|due| *due >= whole && due.since_ms(whole) <= SPREAD_MS_MAX),
            "{spec}: {dues:?}"
        );
        assert_eq!(first(&spec, "a"), first(&spec, "a"));
    }
    for exact in [
        json!({ "cron": "0 * * * *" }),
        json!({ "cron": "0 * * * *", "spread": false }),
        json!({ "every": "1h", "anchor": "2026-01-01T00:00:00Z" }),
        json!({ "at": "2026-01-01T01:00:00Z" }),
    ] {
        assert_eq!(first(&exact, "a"), whole, "{exact}");
    }
    let quarter = json!({ "cron": "15 * * * *" });
    assert_eq!(first(&quarter, "a"), time("2026-01-01T01:15:00Z"));
}

#[test]
fn a_wrong_schedule_names_the_field_and_the_fix() {
    let of_cron = [
        ("", "0 fields"),
        ("@daily", "`0 0 * * *`"),
        ("0 5 * * * *", "6 fields"),
        ("60 * * * *", "`60` as minute"),
        ("* 24 * * *", "as hour"),
        ("* * 0 * *", "as day of the month"),
        ("* * * 13 *", "JAN to DEC"),
        ("* * * * 8", "SUN to SAT"),
        ("* MON * * *", "as hour"),
        ("5-1 * * * *", "ends before it begins"),
        ("*/0 * * * *", "step"),
        ("5/10 * * * *", "range before it"),
        ("1,,2 * * * *", "as minute"),
        ("* * L * *", "as day of the month"),
        ("* * * * 5#2", "as day of the week"),
        ("* * ? * *", "as day of the month"),
        ("5 0 31 2 *", "never comes"),
        ("5 0 31 4,6,9,11 *", "never comes"),
    ];
    let of_cron = of_cron.map(|(cron, part)| (json!({ "cron": cron }), "cron", part));
    let anchored = json!({ "cron": "5 * * * *", "anchor": "2026-01-01T00:00:00Z" });
    let spread = json!({ "at": "2026-01-01T00:00:00Z", "spread": true });
    let nowhere = json!({ "cron": "5 * * * *", "timeZone": "Europe/Berlni" });
    let none = json!({ "every": "1h", "missed": "all", "missedMax": 0 });
    let both = json!({ "every": "1h", "cron": "0 * * * *" });
    let others = [
        (json!({}), "cron", "exactly one"),
        (both, "cron", "exactly one"),
        (json!({ "every": "29s" }), "every", "at least `30s`"),
        (json!({ "every": "0" }), "every", "at least `30s`"),
        (anchored, "anchor", "every"),
        (
            json!({ "every": "1h", "timeZone": "UTC" }),
            "timeZone",
            "cron",
        ),
        (spread, "spread", "leave it out"),
        (json!({ "every": "1h", "missedMax": 3 }), "missedMax", "all"),
        (none, "missedMax", "1 to 100"),
        (nowhere, "timeZone", "Europe/Berlin"),
    ];
    for (spec, field, part) in of_cron.into_iter().chain(others) {
        let read: ScheduleSpec = serde_json::from_value(spec.clone()).unwrap();
        let error = Schedule::parse(&read).unwrap_err();
        let ScheduleError::Spec(fault) = &error else {
            panic!("{spec}: {error}");
        };
        assert_eq!(fault.field, field, "{spec}: {error}");
        assert!(error.to_string().contains(part), "{spec}: {error}");
    }
}

#[test]
fn a_time_without_its_offset_is_refused() {
    for at in [
        "2026-01-01T09:00:00",
        "tomorrow",
        "1969-01-01T00:00:00Z",
        "",
    ] {
        let error = serde_json::from_value::<ScheduleSpec>(json!({ "at": at })).unwrap_err();
        assert!(error.to_string().contains("+01:00"), "{error}");
    }
    let spec: ScheduleSpec =
        serde_json::from_value(json!({ "at": "2026-01-01T09:00:00+01:00" })).unwrap();
    assert_eq!(json!(spec), json!({ "at": "2026-01-01T08:00:00.000Z" }));
}

#[test]
fn a_heartbeat_beats_in_its_active_hours_only() {
    let heartbeat = |spec: Value| {
        let spec: HeartbeatSpec = serde_json::from_value(spec).unwrap();
        Schedule::of_heartbeat(&spec)
    };
    assert_eq!(heartbeat(json!({ "every": "0" })).unwrap(), None);
    assert!(heartbeat(json!({ "every": "10s" })).is_err());
    let start = time("2026-01-01T00:00:00Z");
    let always = heartbeat(json!({})).unwrap().unwrap();
    let beats = trigger_events(&always, start, 4);
    assert!(
        beats[0] > start && beats[0].since_ms(start) <= 1_800_000,
        "{beats:?}"
    );
    assert!(
        beats
            .windows(2)
            .all(|pair| pair[1].since_ms(pair[0]) == 1_800_000)
    );
    let hours = json!({ "start": "08:00", "end": "09:00", "timeZone": "Europe/Berlin" });
    let mornings = heartbeat(json!({ "activeHours": hours })).unwrap().unwrap();
    let beats = trigger_events(&mornings, start, 6);
    assert_eq!(beats[0], time("2026-01-01T07:00:00Z"));
    let zone = Zone::parse("", Some("Europe/Berlin")).unwrap();
    assert!(
        beats
            .iter()
            .all(|beat| zone.local(*beat).unwrap().hour() == 8),
        "{beats:?}"
    );
    let never = heartbeat(json!({ "activeHours": { "start": "08:00", "end": "08:00" } }));
    assert_eq!(trigger_events(&never.unwrap().unwrap(), start, 1), []);
}

#[test]
fn a_schedule_ends_with_the_calendar() {
    let far = Timestamp(253_402_207_200_000);
    let daily = cron("30 12 * * *", "Europe/Berlin");
    assert!(daily.next(&name("t"), far, far).is_err());
    let hourly = cron("30 * * * *", "Europe/Berlin");
    assert!(
        hourly
            .next(&name("t"), far, far.plus_ms(86_400_000))
            .is_err()
    );
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let zone = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
    ]);
    let pattern = prop::sample::select(vec![
        "* * * * *",
        "*/7 * * * *",
        "0 * * * *",
        "30 2 * * *",
        "*/10 1-3 * * *",
        "0 0 1 * *",
        "15 3 * * SUN",
        "0 12 29 2 *",
    ]);
    let spread = any::<bool>();
    let crons = (pattern, zone, spread).prop_map(|(pattern, zone, spread)| {
        schedule(json!({ "cron": pattern, "timeZone": zone, "spread": spread }))
    });
    let seconds = 30..100_000_u64;
    let intervals = (seconds, any::<bool>()).prop_map(|(seconds, anchored)| {
        let mut spec = json!({ "every": format!("{seconds}s") });
        if anchored {
            spec["anchor"] = json!("2026-02-01T00:00:00Z");
        }
        schedule(spec)
    });
    prop_oneof![crons, intervals]
}

/// A time in 2026 or 2027.
fn any_time() -> impl Strategy<Value = Timestamp> {
    (1_767_225_600_000..1_830_297_600_000_u64).prop_map(Timestamp)
}

proptest! {
    /// The next trigger event is the same for every time before it and after the one before.
    #[test]
    fn the_next_trigger_event_follows_from_the_one_before(
        schedule in any_schedule(),
        after in any_time(),
        part in 0.0..1.0_f64,
    ) {
        let defined = time("2026-01-01T00:00:00Z");
        let next = |after| schedule.next(&name("t"), defined, after).unwrap().unwrap();
        let first = next(after);
        prop_assert!(first > after);
        let second = next(first);
        prop_assert!(second.since_ms(first) >= MIN_INTERVAL_MS);
        let between = first.plus_ms((second.since_ms(first) as f64 * part) as u64);
        prop_assume!(between < second);
        prop_assert_eq!(next(between), second);
    }

    #[test]
    fn trigger_events_are_counted_as_they_come(
        schedule in any_schedule(),
        after in any_time(),
        hours in 0..50_u64,
    ) {
        let defined = time("2026-01-01T00:00:00Z");
        let span = Span { after, until: after.plus_ms(hours * HOUR_MS) };
        let own = name("t");
        let owner = Owner { name: &own, defined };
        let mut count = 0;
        let mut last = after;
        while let Some(next) = schedule.next(&own, defined, last).unwrap()
            && next <= span.until
        {
            count += 1;
            last = next;
        }
        prop_assert_eq!(schedule.between(&owner, span, u32::MAX).unwrap(), count);
        prop_assert_eq!(schedule.between(&owner, span, 3).unwrap(), count.min(3));
    }
}
