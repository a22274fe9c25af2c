//! Limits: what does not stop by itself is stopped, and what it held is free again.

use crate::fixture::{Fixture, assert_faulted, details, done, limits, replied, some_basis};
use agent_host_runtime::{NotAdmitted, Outcome};
use domain::grant::GuestLimits;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_guest_that_only_computes_is_stopped_at_its_budget() {
    let (fixture, spin) = Fixture::of("spin").await;
    let limits = limits(|it| it.cpu_ms_max = 100);
    let stepped = fixture.step_under(&spin, &some_basis(), limits).await;
    assert_eq!(stepped.outcome, Outcome::OutOfCpu);
    // Ticks of 5 ms: 20 make the budget, and two more are allowed for. The machine may be busy with
    // other tests, so wall time is not looked at.
    assert!(
        (20..=26).contains(&stepped.usage.cpu_ticks),
        "{:?}",
        stepped.usage
    );
    assert_eq!(fixture.runtime.stats().in_flight, 0);
}

#[tokio::test]
async fn others_get_their_turn_while_a_guest_computes() {
    let (fixture, spin) = Fixture::of("spin").await;
    let clock = fixture.load("clock").await;
    let basis = some_basis();
    let spinning = fixture.step_under(&spin, &basis, limits(|it| it.cpu_ms_max = 500));
    let honest = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..10 {
            let began = Instant::now();
            replied(&fixture.step(&clock, &basis).await);
            slowest = slowest.max(began.elapsed());
        }
        slowest
    };
    // One thread: without yields, the honest steps would wait for the whole budget.
    let (spun, slowest) = tokio::join!(spinning, honest);
    assert_eq!(spun.outcome, Outcome::OutOfCpu);
    assert!(slowest < Duration::from_millis(250), "{slowest:?}");
}

#[tokio::test]
async fn a_deadline_of_wall_time_stops_a_guest_that_computes_within_its_budget() {
    let (fixture, spin) = Fixture::of("spin").await;
    let limits = limits(|it| {
        it.cpu_ms_max = 60_000;
        it.wall_ms_max = 100;
    });
    let stepped = fixture.step_under(&spin, &some_basis(), limits).await;
    assert_eq!(stepped.outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn a_deadline_of_wall_time_stops_a_guest_that_sleeps_in_a_host_call() {
    let (fixture, sleepy) = Fixture::of("sleepy").await;
    let began = Instant::now();
    for _ in 0..20 {
        let called = fixture
            .call_under(&sleepy, limits(|it| it.wall_ms_max = 20), "{}")
            .await;
        assert_eq!(called.outcome, Outcome::TimedOut);
        assert!(called.usage.cpu_ticks <= 2, "{:?}", called.usage);
    }
    assert!(began.elapsed() < Duration::from_secs(10));
    let stats = fixture.runtime.stats();
    assert_eq!((stats.in_flight, stats.memory_bytes), (0, 0));
}

#[tokio::test]
async fn sleeping_is_not_computing() {
    let (fixture, sleepy) = Fixture::of("sleepy").await;
    let limits = limits(|it| it.cpu_ms_max = 50);
    let called = fixture.call_under(&sleepy, limits, r#"{"ms":200}"#).await;
    assert!(done(&called).parse::<u64>().unwrap() >= 199, "{called:?}");
}

#[tokio::test]
async fn a_guest_that_grows_without_end_runs_out_of_memory() {
    let (fixture, grow) = Fixture::of("grow").await;
    let limits = limits(|it| {
        it.memory_bytes_max = 32 << 20;
        it.cpu_ms_max = 30_000;
    });
    let called = fixture.call_under(&grow, limits, "all").await;
    assert_eq!(called.outcome, Outcome::OutOfMemory);
    assert!(
        (16 << 20..=32 << 20).contains(&called.usage.memory_bytes_peak),
        "{:?}",
        called.usage
    );
    assert_eq!(fixture.runtime.stats().memory_bytes, 0);
}

#[tokio::test]
async fn a_guest_that_copes_with_less_memory_goes_on() {
    let (fixture, grow) = Fixture::of("grow").await;
    assert_eq!(
        done(
            &fixture
                .call_under(&grow, GuestLimits::default(), "cope")
                .await
        ),
        "refused true"
    );
}

/// A guest that meets the limit of the process is faulted, whatever it would have done.
#[tokio::test]
async fn a_guest_that_meets_the_limit_of_the_process_is_faulted() {
    let fixture = Fixture::with(|config| config.process_memory_bytes_max = 24 << 20);
    let grow = fixture.load("grow").await;
    for arguments in ["all", "cope"] {
        let called = fixture
            .call_under(
                &grow,
                limits(|it| {
                    it.memory_bytes_max = 1 << 30;
                    it.cpu_ms_max = 30_000;
                }),
                arguments,
            )
            .await;
        assert_faulted(&called.outcome);
    }
    assert_eq!(fixture.runtime.stats().memory_bytes, 0);
}

#[tokio::test]
async fn more_calls_than_slots_wait_and_more_than_may_wait_are_busy() {
    let fixture = Fixture::with(|config| {
        config.instances_max = 2;
        config.wait_max = 1;
    });
    let sleepy = fixture.load("sleepy").await;
    let call = || fixture.call_under(&sleepy, GuestLimits::default(), r#"{"ms":100}"#);
    let (a, b, c, d) = tokio::join!(call(), call(), call(), call());
    let busy = [&a, &b, &c, &d]
        .iter()
        .filter(|called| called.outcome == Outcome::Busy)
        .count();
    assert_eq!(busy, 1, "{a:?} {b:?} {c:?} {d:?}");
    assert_eq!(fixture.runtime.stats().permits_free, 2);
}

/// A call that finds no free permit is on record and does not count as one of its minute.
#[tokio::test]
async fn a_call_that_finds_no_free_slot_is_on_record_and_not_counted() {
    let fixture = Fixture::with(|config| config.wait_ms_max = 20);
    let sleepy = fixture.load("sleepy").await;
    let narrow = limits(|it| {
        it.concurrency_max = 1;
        it.calls_per_minute_max = 2;
    });
    let call = |ms: u64| fixture.call_under(&sleepy, narrow, format!(r#"{{"ms":{ms}}}"#).leak());
    let later = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        (call(0).await, call(0).await)
    };
    let (long, (busy, busy_too)) = tokio::join!(call(500), later);
    done(&long);
    for called in [busy, busy_too] {
        assert_eq!(called.outcome, Outcome::Busy);
        assert_eq!(details(&called.decided), ["concurrencyMax"]);
    }
    done(&call(0).await);
    let third = call(0).await;
    assert!(
        matches!(
            third.outcome,
            Outcome::TooOften {
                wait_ms: 1..=60_000
            }
        ),
        "{third:?}"
    );
    assert_eq!(details(&third.decided), ["callsPerMinuteMax"]);
}

/// The same code under another name is counted apart, and in the place of another with it.
#[tokio::test]
async fn the_same_code_under_another_name_is_counted_apart() {
    let (fixture, sleepy) = Fixture::of("sleepy").await;
    let one = sleepy.named("one");
    let other = sleepy.named("other");
    let once = limits(|it| it.calls_per_minute_max = 1);
    for component in [&one, &other] {
        done(&fixture.call_under(component, once, r#"{"ms":0}"#).await);
    }
    for component in [&one, &sleepy.in_place_of(&other)] {
        let called = fixture.call_under(component, once, r#"{"ms":0}"#).await;
        assert!(
            matches!(called.outcome, Outcome::TooOften { .. }),
            "{called:?}"
        );
    }
}

#[tokio::test]
async fn a_component_runs_no_more_calls_at_a_time_than_its_limit() {
    let (fixture, sleepy) = Fixture::of("sleepy").await;
    let call = || fixture.call_under(&sleepy, limits(|it| it.concurrency_max = 1), r#"{"ms":60}"#);
    let began = Instant::now();
    let (a, b, c) = tokio::join!(call(), call(), call());
    for called in [a, b, c] {
        done(&called);
    }
    assert!(began.elapsed() >= Duration::from_millis(180));
}

#[tokio::test]
async fn a_step_that_was_let_in_has_its_slot_until_it_is_over_or_given_up() {
    let fixture = Fixture::with(|config| config.wait_ms_max = 20);
    let clock = fixture.load("clock").await;
    let narrow = limits(|it| it.concurrency_max = 1);
    for runs in [true, false] {
        let admission = fixture.runtime.admit(&clock, &narrow).await.unwrap();
        let refused = fixture.runtime.admit(&clock, &narrow).await.unwrap_err();
        assert_eq!(refused.why, NotAdmitted::Busy);
        assert_eq!(details(&refused.decided), ["concurrencyMax"]);
        assert_eq!(fixture.runtime.stats().in_flight, 1);
        if runs {
            replied(&fixture.step_admitted(admission, &clock).await);
        } else {
            drop(admission);
        }
        assert_eq!(fixture.runtime.stats().in_flight, 0);
    }
}

#[tokio::test]
async fn who_was_let_in_as_one_component_does_not_step_another() {
    let (fixture, clock) = Fixture::of("clock").await;
    let other = clock.named("other");
    let admission = fixture
        .runtime
        .admit(&other, &GuestLimits::default())
        .await
        .unwrap();
    let stepped = fixture.step_admitted(admission, &clock).await;
    assert_faulted(&stepped.outcome);
    let admission = fixture
        .runtime
        .admit(&other, &limits(|it| it.calls_per_minute_max = 1))
        .await;
    assert!(matches!(
        admission.unwrap_err().why,
        NotAdmitted::TooOften {
            wait_ms: 1..=60_000
        }
    ));
}
