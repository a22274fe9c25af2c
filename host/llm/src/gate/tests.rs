//! Tests of the way in to a provider.

use super::*;
use domain::delegate::Priority;
use domain::id::AgentId;
use futures::FutureExt;
use std::pin::Pin;
use uuid::Uuid;

/// The patience of a call, in milliseconds.
const PATIENCE_MS: u64 = 1_000;

fn peer() -> Peer<'static> {
    Peer {
        provider: "p",
        model: "m",
        key: None,
    }
}

fn party(user: &str) -> Party {
    Party {
        user: user.parse().unwrap(),
        agent: AgentId(Uuid::nil()),
        priority: Priority::Normal,
        section: None,
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(30)
}

#[tokio::test]
async fn waiting_for_a_place_takes_nothing_of_a_calls_time() {
    let gate = Gate::new(1, Breaker::new(1, 1));
    let mut deadline = soon();
    let leased = gate
        .enter(peer(), party("ann"), PATIENCE_MS, &mut deadline)
        .await;
    let mut later = soon();
    let begun = later;
    let waiting = gate.enter(peer(), party("ann"), PATIENCE_MS, &mut later);
    let leaving = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(leased);
    };
    let (entered, ()) = tokio::join!(waiting, leaving);
    assert!(entered.is_ok());
    assert!(
        later.saturating_duration_since(begun) >= Duration::from_millis(90),
        "as much as it had before is left"
    );
}

#[tokio::test]
async fn users_take_turns_at_a_provider() {
    let gate = Gate::new(1, Breaker::new(1, 1));
    let mut deadlines = [soon(); 5];
    let users = ["ann", "ann", "ann", "ann", "bob"];
    let mut calls: Vec<Pin<Box<_>>> = deadlines
        .iter_mut()
        .zip(users)
        .map(|(deadline, user)| Box::pin(gate.enter(peer(), party(user), PATIENCE_MS, deadline)))
        .collect();
    let mut called = Vec::new();
    let mut leased = None;
    while called.len() < users.len() {
        drop(leased.take());
        let mut entered = Vec::new();
        for (index, call) in calls
            .iter_mut()
            .enumerate()
            .filter(|(index, _)| !called.contains(index))
        {
            entered.extend(call.as_mut().now_or_never().map(|pass| (index, pass)));
        }
        let Some((index, pass)) = entered.pop() else {
            panic!("a permit that is free is taken: {called:?}")
        };
        assert!(pass.is_ok() && entered.is_empty(), "one at a time");
        called.push(index);
        leased = Some(pass);
    }
    assert_eq!(called, [0, 1, 4, 2, 3], "{users:?}");
}

/// The limits of the tests.
const YIELD_LIMITS: YieldLimits = YieldLimits {
    quiet: Duration::from_secs(1),
    longest: Duration::from_secs(20),
};

#[tokio::test]
async fn a_call_that_nobody_waits_for_goes_when_no_other_came_for_a_while() {
    let gate = Gate::new(16, Breaker::new(1, 1));
    let mut deadline = soon();
    assert!(gate.give_way(YIELD_LIMITS).now_or_never().is_some());
    // Another of its kind is in nobody's way.
    let least = Party {
        priority: Priority::Low,
        ..party("ann")
    };
    let leased = gate.enter(peer(), least, PATIENCE_MS, &mut deadline).await;
    assert!(gate.give_way(YIELD_LIMITS).now_or_never().is_some());
    drop(leased);
    // A turn with two calls and a moment between them, though places are free.
    let begun = Instant::now();
    let turn = async {
        for _ in 0..2 {
            let mut deadline = soon();
            let call = gate.enter(peer(), party("bob"), PATIENCE_MS, &mut deadline);
            let leased = call.await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(leased);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reading = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        gate.give_way(YIELD_LIMITS).await;
        begun.elapsed()
    };
    let ((), waited) = tokio::join!(turn, reading);
    assert!(waited >= Duration::from_millis(1_190), "{waited:?}");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_gives_way_for_a_limited_time() {
    let gate = Gate::new(1, Breaker::new(1, 1));
    let mut deadline = soon();
    let _leased = gate
        .enter(peer(), party("bob"), PATIENCE_MS, &mut deadline)
        .await;
    let begun = Instant::now();
    let limits = YieldLimits {
        longest: Duration::from_millis(200),
        ..YIELD_LIMITS
    };
    gate.give_way(limits).await;
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(190), "{waited:?}");
}

#[test]
fn failures_in_a_row_open_it_and_one_probe_closes_it() {
    let mut breaker = Breaker::new(3, 100);
    assert!(!breaker.failed(0) && !breaker.failed(0));
    breaker.succeeded();
    assert!(!breaker.failed(0) && !breaker.failed(0) && breaker.admits(0));
    assert!(breaker.failed(0));
    assert!(!breaker.admits(99));
    assert!(breaker.admits(100), "the probe");
    assert!(!breaker.admits(100), "only one");
    breaker.succeeded();
    assert!(breaker.admits(100) && breaker.admits(100));
}

#[test]
fn a_failed_probe_opens_it_again_and_an_abandoned_one_is_replaced() {
    let mut breaker = Breaker::new(1, 100);
    assert!(breaker.failed(0));
    assert!(breaker.admits(100));
    assert!(breaker.failed(100));
    assert!(!breaker.admits(150));
    assert!(breaker.admits(200));
    breaker.abandoned(200);
    assert!(breaker.admits(200));
}
