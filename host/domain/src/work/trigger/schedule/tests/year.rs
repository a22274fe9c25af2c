//! A year of schedules in zones that change their clocks, against a clock that is read minute by
//! minute.

use super::{cron, name};
use crate::values::time::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::collections::BTreeSet;

const ZONES: [&str; 5] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
];
const MINUTE_MS: u64 = 60_000;

/// A pattern, with the same as a condition on what a clock shows.
type Pattern = (&'static str, fn(DateTime) -> bool);

fn beginning(year: i16) -> Timestamp {
    format!("{year}-01-01T00:00:00Z").parse().unwrap()
}

/// The times that the clock of a zone shows, for each minute of a year.
fn minutes(zone: &str, year: i16) -> Vec<(Timestamp, DateTime)> {
    let zone = TimeZone::get(zone).unwrap();
    let mut now = beginning(year);
    let mut shown = Vec::new();
    while now < beginning(year + 1) {
        let instant = jiff::Timestamp::from_millisecond(now.0.cast_signed()).unwrap();
        shown.push((now, zone.to_datetime(instant)));
        now = now.plus_ms(MINUTE_MS);
    }
    shown
}

/// The times at which a pattern that names hours has to be due: each time of the clock once, one
/// that is left out right after the change.
fn expected(minutes: &[(Timestamp, DateTime)], fits: fn(DateTime) -> bool) -> BTreeSet<Timestamp> {
    let mut due = BTreeSet::new();
    // The last minute that was shown or left out.
    let mut reached = minutes[0]
        .1
        .checked_sub(jiff::Span::new().minutes(1))
        .unwrap();
    for (now, shown) in minutes {
        while reached < *shown {
            reached = reached.checked_add(jiff::Span::new().minutes(1)).unwrap();
            if fits(reached) {
                due.insert(*now);
            }
        }
    }
    due
}

/// The times at which a pattern is due, as the schedule has it.
fn found(pattern: &str, zone: &str, year: i16) -> BTreeSet<Timestamp> {
    let schedule = cron(pattern, zone);
    let mut due = BTreeSet::new();
    let mut last = Timestamp(beginning(year).0 - 1);
    while let Some(next) = schedule.next(&name("t"), Timestamp(0), last).unwrap()
        && next < beginning(year + 1)
    {
        assert!(due.insert(next), "{pattern} in {zone}: {next} twice");
        last = next;
    }
    due
}

#[test]
fn each_time_of_the_clock_is_a_trigger_event_once_in_a_year() {
    let patterns: [Pattern; 7] = [
        ("30 2 * * *", |at| at.hour() == 2 && at.minute() == 30),
        ("15 2 * * *", |at| at.hour() == 2 && at.minute() == 15),
        ("45 1 * * *", |at| at.hour() == 1 && at.minute() == 45),
        ("*/10 1-3 * * *", |at| {
            (1..=3).contains(&at.hour()) && at.minute() % 10 == 0
        }),
        ("0 9 * * 1-5", |at| {
            let day = at.weekday().to_monday_one_offset();
            at.hour() == 9 && at.minute() == 0 && day <= 5
        }),
        ("30 2 1,15 * SUN", |at| {
            let is_day = [1, 15].contains(&at.day()) || at.weekday().to_sunday_zero_offset() == 0;
            at.hour() == 2 && at.minute() == 30 && is_day
        }),
        ("0 0 1 */3 *", |at| {
            at.hour() == 0 && at.minute() == 0 && at.day() == 1 && (at.month() - 1) % 3 == 0
        }),
    ];
    for zone in ZONES {
        let minutes = minutes(zone, 2026);
        for (pattern, fits) in patterns {
            let expected = expected(&minutes, fits);
            assert_eq!(found(pattern, zone, 2026), expected, "{pattern} in {zone}");
        }
    }
}

#[test]
fn what_comes_every_hour_goes_on_through_changes_of_the_clock() {
    let patterns: [Pattern; 3] = [
        ("0 * * * *", |at| at.minute() == 0),
        ("*/15 * * * *", |at| at.minute() % 15 == 0),
        ("5 * 29 3 *", |at| {
            at.minute() == 5 && at.month() == 3 && at.day() == 29
        }),
    ];
    for zone in ZONES {
        let minutes = minutes(zone, 2026);
        for (pattern, fits) in patterns {
            let shown = minutes.iter().filter(|(_, shown)| fits(*shown));
            let expected: BTreeSet<Timestamp> = shown.map(|(now, _)| *now).collect();
            assert_eq!(found(pattern, zone, 2026), expected, "{pattern} in {zone}");
        }
    }
}

#[test]
fn a_daily_schedule_has_a_trigger_event_for_each_day_of_the_year() {
    for name in ZONES {
        let zone = TimeZone::get(name).unwrap();
        for hour in 0..24 {
            let pattern = format!("30 {hour} * * *");
            // The year there does not begin and end with that of UTC.
            let around = (2025..2028).flat_map(|year| found(&pattern, name, year));
            let due: Vec<Timestamp> = around
                .filter(|due| year_there(&zone, *due) == 2026)
                .collect();
            assert_eq!(due.len(), 365, "{pattern} in {name}");
            let are_apart = due
                .windows(2)
                .all(|pair| pair[1].since_ms(pair[0]) >= 22 * 60 * MINUTE_MS);
            assert!(are_apart, "{pattern} in {name}");
        }
    }
}

fn year_there(zone: &TimeZone, time: Timestamp) -> i16 {
    let instant = jiff::Timestamp::from_millisecond(time.0.cast_signed()).unwrap();
    zone.to_datetime(instant).year()
}
