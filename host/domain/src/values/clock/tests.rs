//! Readings of clocks that jump, and the host's time after them.

use super::*;

const NOON: u64 = 1_700_000_000_000;
const HOUR: u64 = 60 * 60 * 1_000;
const DAY: u64 = 24 * HOUR;

fn reading(wall: u64, passed_ms: u64) -> Reading {
    Reading {
        wall: Timestamp(wall),
        passed_ms,
    }
}

fn stored(last: u64) -> Past {
    Past {
        last: Some(Timestamp(last)),
        ..Past::default()
    }
}

/// A host that began at noon.
fn begun() -> HostTime {
    HostTime::begin(reading(NOON, 500), stored(NOON))
}

/// The two clocks: the wall clock as milliseconds from noon, and what has passed since.
type Shown = (i64, u64);

/// Returns the host's time, in milliseconds from noon, after a series of readings. Readings count
/// from noon too.
fn after(host: &mut HostTime, readings: &[Shown]) -> i64 {
    for (wall, passed_ms) in readings {
        host.go_on(reading(NOON.saturating_add_signed(*wall), 500 + passed_ms));
    }
    host.now().0.cast_signed() - NOON.cast_signed()
}

#[test]
fn host_time_follows_the_wall_clock_as_far_as_it_can_be_believed() {
    let hour = HOUR.cast_signed();
    let day = DAY.cast_signed();
    let cases: [(&str, &[Shown], i64); 9] = [
        (
            "clocks that agree",
            &[(10, 10), (5_000, 5_000), (hour, HOUR)],
            hour,
        ),
        ("a small step ahead", &[(60_010, 10)], 60_010),
        ("a jump ahead", &[(60_011, 10), (65_001, 5_000)], 5_000),
        (
            "a jump ahead of eight days",
            &[(8 * day, 10), (8 * day + 990, 1_000)],
            1_000,
        ),
        (
            "one that was kept for an hour",
            &[
                (8 * day, 10),
                (8 * day + hour - 11, HOUR - 1),
                (8 * day + hour, HOUR + 10),
            ],
            8 * day + hour,
        ),
        (
            "one that was taken back",
            &[(8 * day, 10), (1_000, 1_000), (8 * day + hour, HOUR + 10)],
            hour + 10,
        ),
        (
            "one that grew, whose hour begins anew",
            &[(day, 10), (2 * day, HOUR - 10), (2 * day + 20, HOUR + 10)],
            hour + 10,
        ),
        (
            "a jump back",
            &[(-hour, 10), (-hour + 50, 60), (-hour + 80, 90)],
            90,
        ),
        ("a machine that slept", &[(day, DAY)], day),
    ];
    for (what, readings, expected) in cases {
        assert_eq!(after(&mut begun(), readings), expected, "{what}");
    }
}

/// Milliseconds of a jump ahead that is followed when it is the only one.
const SMALL_JUMP: u64 = LEAD_MS_MAX / 10 * 9;

#[test]
fn small_jumps_one_after_another_are_doubted_like_a_large_one() {
    let mut host = begun();
    let mut passed_ms = 0;
    for jumps in 1..=10 {
        passed_ms += 6_000;
        host.go_on(reading(
            NOON + passed_ms + jumps * SMALL_JUMP,
            500 + passed_ms,
        ));
        assert_eq!(host.now(), Timestamp(NOON + passed_ms + SMALL_JUMP));
        assert_eq!(host.jump().is_some(), jumps > 1, "{jumps}");
    }
    passed_ms += DOUBT_MS;
    let kept = reading(NOON + passed_ms + 10 * SMALL_JUMP, 500 + passed_ms);
    host.go_on(kept);
    assert_eq!((host.now(), host.jump()), (kept.wall, None));
}

#[test]
fn a_second_small_jump_is_doubted_wherever_an_hour_begins_and_followed_later() {
    for minute in 0..120 {
        let mut host = begun();
        let mut passed_ms = minute * 60_000;
        let mut ahead_ms = 0;
        for (pause_ms, is_followed) in [(0, true), (60_000, false)] {
            passed_ms += pause_ms;
            ahead_ms += SMALL_JUMP;
            host.go_on(reading(NOON + passed_ms + ahead_ms, 500 + passed_ms));
            assert_eq!(host.jump().is_none(), is_followed, "from {minute} on");
        }
        // It is taken back, and comes again when the first one is long past.
        passed_ms += 60_000;
        host.go_on(reading(NOON + passed_ms + SMALL_JUMP, 500 + passed_ms));
        passed_ms += 2 * DOUBT_MS;
        host.go_on(reading(NOON + passed_ms + ahead_ms, 500 + passed_ms));
        assert_eq!((host.now(), host.jump()), (host.wall(), None));
    }
}

#[test]
fn what_a_doubted_lead_has_grown_by_counts_when_it_is_believed() {
    let mut host = begun();
    host.go_on(reading(NOON + DAY, 500));
    let mut passed_ms = DOUBT_MS;
    let grown = reading(NOON + passed_ms + DAY + SMALL_JUMP, 500 + passed_ms);
    host.go_on(grown);
    assert_eq!((host.now(), host.jump()), (grown.wall, None));
    passed_ms += 1_000;
    host.go_on(reading(
        NOON + passed_ms + DAY + 2 * SMALL_JUMP,
        500 + passed_ms,
    ));
    assert_eq!(host.jump().map(|jump| jump.ms), Some(SMALL_JUMP));
}

#[test]
fn a_clock_that_runs_fast_by_a_thousandth_is_followed_all_day() {
    let mut host = begun();
    for second in 1..=DAY / 1_000 {
        host.go_on(reading(NOON + second * 1_001, 500 + second * 1_000));
        assert_eq!((host.now(), host.jump()), (host.wall(), None), "{second}");
    }
}

#[test]
fn corrections_back_and_forth_do_not_add_up() {
    let mut host = begun();
    // Little is left of what is followed within an hour.
    let ahead_ms = LEAD_MS_MAX - 10_000;
    for correction in 1..=1_440 {
        let passed_ms = correction * 10_000;
        let back_ms = if correction % 2 == 0 { 500 } else { 0 };
        host.go_on(reading(
            NOON + passed_ms + ahead_ms - back_ms,
            500 + passed_ms,
        ));
        assert_eq!(host.jump(), None, "{correction}");
    }
}

#[test]
fn host_time_waits_for_a_wall_clock_that_is_behind_without_stopping() {
    let mut host = begun();
    assert_eq!(after(&mut host, &[(-10_000, 0), (-9_000, 1_000)]), 990);
    // A hundredth of what passes is lost: ten seconds in some seventeen minutes.
    let mut passed = 1_000;
    while host.now() > host.wall() {
        passed += 7;
        let before = host.now();
        host.go_on(reading(NOON - 10_000 + passed, 500 + passed));
        assert!(host.now() >= before);
        assert!(passed <= 1_100_000, "it never gets there");
    }
    assert!(passed >= 990_000, "{passed}");
    assert_eq!(host.now(), host.wall());
}

#[test]
fn host_time_never_goes_back_whatever_the_clocks_show() {
    let mut host = begun();
    let mut seed = 7_u64;
    for _ in 0..10_000 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let wall = (seed >> 20) % (4 * NOON);
        let passed_ms = (seed >> 3) % (10 * DAY);
        let before = host.now();
        host.go_on(reading(wall, passed_ms));
        assert!(
            host.now() >= before
                && host.for_credentials() >= host.now()
                && host.for_credentials() >= host.wall()
        );
    }
}

#[test]
fn an_operator_ends_the_doubt() {
    let mut host = begun();
    after(&mut host, &[(8 * DAY.cast_signed(), 10)]);
    assert_eq!(
        host.jump(),
        Some(Lead {
            ms: 8 * DAY - 10,
            left_ms: DOUBT_MS
        })
    );
    host.confirm(reading(NOON + 8 * DAY, 520));
    assert_eq!((host.now(), host.jump()), (Timestamp(NOON + 8 * DAY), None));
    host.confirm(reading(NOON, 530));
    assert_eq!(
        host.now(),
        Timestamp(NOON + 8 * DAY + 10),
        "also an operator does not make it go back"
    );
}

#[test]
fn credentials_end_by_whichever_time_is_later() {
    let mut host = begun();
    after(&mut host, &[(DAY.cast_signed(), 10)]);
    assert_eq!(host.for_credentials(), Timestamp(NOON + DAY));
    after(&mut host, &[(-HOUR.cast_signed(), 20)]);
    assert_eq!(host.for_credentials(), Timestamp(NOON + 20));
}

/// Milliseconds by which a clock was ahead at a boot until it was put right.
const AHEAD: u64 = 8 * HOUR;

/// A host that began with a clock far ahead, which was put right at noon and confirmed.
fn put_right() -> HostTime {
    let mut host = HostTime::begin(reading(NOON + AHEAD, 500), stored(NOON - DAY));
    assert_eq!(host.for_credentials(), Timestamp(NOON + AHEAD));
    host.go_on(reading(NOON, 500));
    assert_eq!(
        host.for_credentials(),
        Timestamp(NOON + AHEAD),
        "nobody has said which is right"
    );
    host.confirm(reading(NOON, 500));
    host
}

#[test]
fn an_operator_has_credentials_end_by_a_wall_clock_that_is_behind() {
    let mut host = put_right();
    assert_eq!(
        (host.now(), host.for_credentials()),
        (Timestamp(NOON + AHEAD), Timestamp(NOON))
    );
    assert!(
        host.gap().is_some(),
        "the host's time had not passed before its start"
    );
    let cases: [(&str, Shown, u64); 4] = [
        ("clocks that agree", (1_000, 1_000), 1_000),
        ("a jump ahead", (DAY.cast_signed(), 2_000), DAY),
        ("one that was taken back", (3_000, 3_000), 3_000),
        ("a jump back", (-HOUR.cast_signed(), 3_050), 3_050),
    ];
    for (what, (wall, passed_ms), expected) in cases {
        let before = host.now();
        after(&mut host, &[(wall, passed_ms)]);
        assert_eq!(host.for_credentials(), Timestamp(NOON + expected), "{what}");
        assert!(host.now() >= before, "{what}");
    }
}

#[test]
fn a_host_that_was_ahead_is_caught_up_with_after_a_hundred_times_as_long() {
    let mut host = put_right();
    let mut hours = 0;
    while host.confirmed().is_some() {
        hours += 1;
        assert!(hours <= 100 * AHEAD / HOUR, "33 days and a third");
        let before = host.now();
        host.go_on(reading(NOON + hours * HOUR, 500 + hours * HOUR));
        assert!(host.now() > before);
    }
    assert_eq!(hours, 100 * AHEAD / HOUR);
    assert_eq!(
        (host.now(), host.for_credentials()),
        (host.wall(), host.wall())
    );
}

#[test]
fn what_an_operator_confirmed_holds_after_a_restart_and_a_boot() {
    let mut host = put_right();
    after(&mut host, &[(60_000, 60_000)]);
    let Confirmed { now, base_ms } = host.confirmed().unwrap();
    assert_eq!((now, base_ms), (Timestamp(NOON + 60_000), NOON - 500));
    let restarted = Past {
        transferred: Some(host.now()),
        credentials: Some(now),
        ..stored(host.now().0)
    };
    let restarted = HostTime::begin(reading(NOON + 60_000, 60_500), restarted);
    assert_eq!(
        (restarted.now(), restarted.for_credentials()),
        (host.now(), now)
    );
    // An hour later, with a clock that is ahead again until it is put right.
    let booted = Past {
        credentials: Some(now),
        ..stored(host.now().0)
    };
    let mut booted = HostTime::begin(reading(NOON + HOUR + AHEAD, 0), booted);
    assert_eq!(booted.for_credentials(), Timestamp(NOON + HOUR + AHEAD));
    booted.go_on(reading(NOON + HOUR + 10, 10));
    assert_eq!(booted.for_credentials(), Timestamp(NOON + HOUR + 10));
    assert!(
        booted.now() >= Timestamp(NOON + HOUR + AHEAD),
        "the host's time does not go back"
    );
    // With one that was lost, it goes on from where it was.
    let mut booted = HostTime::begin(
        reading(0, 0),
        Past {
            credentials: Some(now),
            ..stored(host.now().0)
        },
    );
    booted.go_on(reading(50, 50));
    assert_eq!(booted.for_credentials(), Timestamp(now.0 + 50));
}

#[test]
fn a_start_long_after_what_is_stored_may_have_been_downtime() {
    let mut host = HostTime::begin(reading(NOON, 500), stored(NOON - 8 * DAY));
    assert_eq!(
        (host.now(), host.jump()),
        (Timestamp(NOON), None),
        "what is due after downtime is due"
    );
    assert_eq!(
        host.gap(),
        Some(Lead {
            ms: 8 * DAY,
            left_ms: DOUBT_MS
        })
    );
    host.go_on(reading(NOON + HOUR - 1, 500 + HOUR - 1));
    assert_eq!(
        host.gap(),
        Some(Lead {
            ms: 8 * DAY,
            left_ms: 1
        })
    );
    host.go_on(reading(NOON + HOUR, 500 + HOUR));
    assert_eq!(host.gap(), None);
    for past in [Past::default(), stored(NOON), stored(NOON - LEAD_MS_MAX)] {
        assert_eq!(
            HostTime::begin(reading(NOON, 0), past).gap(),
            None,
            "{past:?}"
        );
    }
}

#[test]
fn a_start_before_what_is_stored_begins_with_the_last_of_it() {
    let mut host = HostTime::begin(reading(NOON - HOUR, 0), stored(NOON));
    assert_eq!((host.now(), host.gap()), (Timestamp(NOON), None));
    host.go_on(reading(NOON - HOUR + 50, 50));
    assert_eq!(host.now(), Timestamp(NOON + 50));
}

#[test]
fn a_start_on_a_machine_that_was_not_booted_tells_downtime_from_a_jump() {
    let transferred = |wall: u64| {
        let past = Past {
            transferred: Some(Timestamp(NOON)),
            ..stored(NOON - DAY)
        };
        HostTime::begin(reading(wall, 500), past)
    };
    let down_for_a_day = transferred(NOON + 10);
    assert_eq!(
        (
            down_for_a_day.now(),
            down_for_a_day.gap(),
            down_for_a_day.jump()
        ),
        (Timestamp(NOON + 10), None, None)
    );
    let jumped = transferred(NOON + 8 * DAY);
    assert_eq!((jumped.now(), jumped.gap()), (Timestamp(NOON), None));
    assert_eq!(
        jumped.jump(),
        Some(Lead {
            ms: 8 * DAY,
            left_ms: DOUBT_MS
        })
    );
    assert_eq!(
        jumped.base_ms(),
        NOON - 500,
        "the next process has the same doubt"
    );
}
