//! A1: guests that do not stop, and who is served meanwhile.

use super::siege::{brief, narrow, repeats_of_slow};
use agent_host_tests::guests::wasm;
use agent_host_tests::world::runtime;
use domain::grant::{Bound, GuestLimits};
use futures::future::join_all;
use runtime::{Outcome, Runtime, ToolCall};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

const OUT_OF_CPU: &str = "failed out-of-cpu: the tool computed for longer than it may";

fn hasty() -> GuestLimits {
    GuestLimits {
        wall_ms_max: 50,
        ..narrow()
    }
}

cases! {
    #[test]
    fn a_loop_without_end_is_stopped_at_its_computing_time(OUT_OF_CPU)
        .under(brief()).met("cpuMsMax");
    #[test]
    fn a_recursion_without_end_ends_at_the_end_of_its_own_stack(
        "failed trapped: the tool crashed: wasm trap: call stack exhausted"
    )
        .met("stackBytes");
    #[test]
    fn a_sleep_without_end_is_left_when_the_time_of_the_call_is_over("timed-out")
        .under(hasty()).met("wallMsMax");
    #[test]
    fn a_wait_for_input_that_never_comes_ends_at_once("parts true");
    #[test]
    fn a_poll_of_what_is_never_ready_is_left_when_the_time_of_the_call_is_over("timed-out")
        .under(hasty()).met("wallMsMax");
    #[test]
    fn a_guest_that_wakes_itself_for_ever_is_charged_for_all_of_it(OUT_OF_CPU)
        .under(brief()).met("cpuMsMax");
    #[test]
    fn copies_of_all_its_memory_in_a_loop_are_stopped_like_any_loop(OUT_OF_CPU)
        .with(json!({ "bytes": 60 << 20 }))
        .under(GuestLimits { memory_bytes_max: 64 << 20, ..brief() })
        .met("cpuMsMax");
    #[test]
    fn a_poll_of_thousands_is_one_poll("parts [4999]");
    #[test]
    fn a_poll_of_nothing_is_the_guests_own_mistake(
        "failed trapped: the tool crashed: empty poll list"
    );
}

pub(super) async fn call(
    runtime: &Runtime,
    component: &runtime::Component,
    limits: GuestLimits,
    arguments: &str,
) -> runtime::Called {
    let call = ToolCall {
        agent_id: "agent".into(),
        session_id: "session".into(),
        user_id: "user".into(),
        call_id: "call".into(),
        idempotency_key: "call-0".into(),
        segment: 0,
        resumed: None,
        answer: None,
        tool: "attack".into(),
        arguments: arguments.into(),
        deadline_ms: 60_000,
    };
    runtime
        .call(
            component,
            &Bound {
                limits,
                ..Bound::default()
            },
            call,
            Arc::new(runtime::Unheard),
            Arc::new(runtime::EmptyBuckets),
        )
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_calls_are_served_while_more_guests_loop_than_there_are_processors() {
    let runtime = runtime();
    let hostile = runtime.load(wasm("hostile")).await.unwrap();
    let honest = runtime.load(wasm("echo")).await.unwrap();
    let looping = r#"{"attack":"a_loop_without_end_is_stopped_at_its_computing_time"}"#;
    let limits = GuestLimits {
        cpu_ms_max: 300,
        ..narrow()
    };
    let slowest_of = async || {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let began = Instant::now();
            let called = call(&runtime, &honest, narrow(), "{}").await;
            assert!(
                !matches!(
                    called.outcome,
                    Outcome::Busy | Outcome::TimedOut | Outcome::OutOfCpu
                ),
                "{called:?}"
            );
            slowest = slowest.max(began.elapsed());
        }
        slowest
    };
    for _ in 0..repeats_of_slow() {
        let alone = slowest_of().await;
        let attackers = join_all((0..4).map(|_| call(&runtime, &hostile, limits, looping)));
        let (attacked, beside) = tokio::join!(attackers, slowest_of());
        assert!(
            attacked
                .iter()
                .all(|called| called.outcome == Outcome::OutOfCpu),
            "{attacked:?}"
        );
        // A turn of each attacker at most, on a machine that may be busy with other tests; the
        // bench has the ratio.
        assert!(
            beside < alone * 5 + Duration::from_millis(250),
            "{beside:?} beside, {alone:?} alone"
        );
    }
    let stats = runtime.stats();
    assert_eq!(
        (stats.in_flight, stats.waiting, stats.memory_bytes),
        (0, 0, 0)
    );
}
