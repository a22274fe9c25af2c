//! Triggers: pure trigger runs, stopped at their limits and taken within their bounds only.

use crate::fixture::{Fixture, assert_faulted, assert_refused, limits};
use agent_host_runtime::{Component, FireCall, Fired, Outcome, TriggerError, TriggerRun};
use domain::digest::Digest;
use domain::event::BoundaryVerdict;
use domain::grant::GuestLimits;
use domain::time::Timestamp;
use domain::trigger::{TriggerEvent, TriggerName, TriggerState};
use serde_json::{Value, json};

/// The time of every trigger run.
const NOW: Timestamp = Timestamp(1_700_000_000_123);

/// Input with which a trigger is fired.
struct Setting {
    trigger: TriggerName,
    configuration: Value,
    trigger_event: TriggerEvent,
}

impl Setting {
    fn new(trigger_event: TriggerEvent) -> Self {
        Self {
            trigger: "morning".parse().unwrap(),
            configuration: json!({ "room": "kitchen" }),
            trigger_event,
        }
    }

    fn call(&self) -> FireCall<'_> {
        FireCall {
            trigger: &self.trigger,
            now: NOW,
            configuration: &self.configuration,
            message: None,
            state: None,
            trigger_event: &self.trigger_event,
            seed: Digest::of(b"seed"),
        }
    }
}

fn due() -> TriggerEvent {
    TriggerEvent::Due {
        due: Timestamp(1_700_000_000_000),
        missed: 2,
    }
}

/// Fires a trigger event as `change` has it.
async fn fire(
    fixture: &Fixture,
    trigger: &Component,
    limits: GuestLimits,
    change: impl for<'a> FnOnce(&mut FireCall<'a>),
) -> Fired {
    let setting = Setting::new(due());
    let mut call = setting.call();
    change(&mut call);
    fixture.runtime.fire(trigger, &limits, call).await
}

/// Fires it with a message of the operator's.
async fn reported(fixture: &Fixture, trigger: &Component, message: &'static str) -> Fired {
    let limits = GuestLimits::default();
    fire(fixture, trigger, limits, |call| {
        call.message = Some(message)
    })
    .await
}

#[track_caller]
fn returned(fired: Fired) -> TriggerRun {
    match fired.outcome {
        Outcome::Returned(Ok(trigger_run)) => trigger_run,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_trigger_hears_the_trigger_event_and_what_the_operator_wrote() {
    let (fixture, trigger) = Fixture::of("rogue-trigger").await;
    let trigger_run = returned(fire(&fixture, &trigger, GuestLimits::default(), |_| ()).await);
    let text = &trigger_run.messages[0].text;
    for heard in [
        r#"trigger: "morning""#,
        "1700000000123",
        r#"{\"room\":\"kitchen\"}"#,
        "message: None",
        "1700000000000",
        "missed: 2",
    ] {
        assert!(text.contains(heard), "{text} does not contain {heard}");
    }
    assert_eq!((trigger_run.state, trigger_run.done), (None, false));
    assert_eq!(trigger.wit_version(), "0.2.0");
}

#[tokio::test]
async fn a_trigger_run_over_a_bound_is_not_taken_and_the_bound_is_named() {
    let (fixture, trigger) = Fixture::of("rogue-trigger").await;
    for (attack, expected) in [
        ("many", "`messages` are 101; 100 at most"),
        ("long", "`messages[0].content` is 65537 bytes long"),
        ("heavy", "`messages` is 1114112 bytes long"),
        ("silent", "`messages[0].content` says nothing"),
        ("elsewhere", "`messages[0].target` names no target"),
        ("forge", "`messages[0].idempotency-key` has a control"),
        ("hoard", "`state.bytes` is 65537 bytes long"),
        ("foreign", "`state.format` is 2"),
    ] {
        let fired = reported(&fixture, &trigger, attack).await;
        assert_refused(&fired.outcome, expected);
    }
    let storm = returned(reported(&fixture, &trigger, "storm").await);
    assert_eq!(storm.messages.len(), 100);
}

#[tokio::test]
async fn a_trigger_that_does_not_stop_is_stopped_and_it_is_on_record() {
    let (fixture, trigger) = Fixture::of("rogue-trigger").await;
    let limits = limits(|it| it.cpu_ms_max = 50);
    let fired = fire(&fixture, &trigger, limits, |call| {
        call.message = Some("spin")
    })
    .await;
    assert_eq!(fired.outcome, Outcome::OutOfCpu);
    let [decision] = &fired.decided.decisions[..] else {
        panic!("{:?}", fired.decided);
    };
    assert_eq!(
        (
            decision.capability.as_str(),
            decision.verdict,
            decision.detail.as_str()
        ),
        ("triggers.fire", BoundaryVerdict::Limited, "cpuMsMax")
    );
    let trapped = reported(&fixture, &trigger, "trap").await.outcome;
    assert!(
        matches!(&trapped, Outcome::Trapped { message, .. } if message.contains("gives up")),
        "{trapped:?}"
    );
    assert_eq!(fixture.runtime.stats().in_flight, 0);
}

/// Its clock stands still, its randomness follows from the seed, and there is nothing else.
#[tokio::test]
async fn the_same_trigger_run_has_the_same_result_and_reaches_nothing() {
    let (fixture, trigger) = Fixture::of("rogue-trigger").await;
    let first = returned(reported(&fixture, &trigger, "sense").await);
    assert_eq!(first, returned(reported(&fixture, &trigger, "sense").await));
    let text = &first.messages[0].text;
    assert!(
        text.starts_with("1700000000.123s ") && text.ends_with(" false 0"),
        "{text}"
    );
    let otherwise = fire(&fixture, &trigger, GuestLimits::default(), |call| {
        call.message = Some("sense");
        call.seed = Digest::of(b"another seed");
    });
    assert_ne!(first, returned(otherwise.await));
}

#[tokio::test]
async fn what_a_trigger_keeps_comes_back_unless_it_cannot_read_it() {
    let (fixture, trigger) = Fixture::of("rogue-trigger").await;
    let first = returned(reported(&fixture, &trigger, "count").await);
    let kept = first.state.unwrap();
    assert_eq!(kept.bytes, b"x");
    let setting = Setting::new(due());
    let mut call = setting.call();
    call.message = Some("count");
    call.state = Some(&kept);
    let limits = GuestLimits::default();
    let second = returned(fixture.runtime.fire(&trigger, &limits, call).await);
    assert_eq!(second.state.unwrap().bytes, b"xx");
    let foreign = TriggerState {
        format: 9,
        bytes: Vec::new(),
    };
    call.state = Some(&foreign);
    let fired = fixture.runtime.fire(&trigger, &limits, call).await;
    assert_refused(&fired.outcome, "do not have 9");
}

#[tokio::test]
async fn a_triggers_own_errors_are_results() {
    let (fixture, trigger) = Fixture::of("rogue-trigger").await;
    for (message, expected) in [
        ("reject", TriggerError::Rejected("no".to_owned())),
        ("later", TriggerError::RetryLater(5_000)),
    ] {
        let fired = reported(&fixture, &trigger, message).await;
        assert_eq!(fired.outcome, Outcome::Returned(Err(expected)));
    }
    let tools = fixture.load("echo").await;
    let fired = reported(&fixture, &tools, "reject").await;
    assert_faulted(&fired.outcome);
}

/// A trigger of the first version of the interface hears what that version can express.
#[tokio::test]
async fn a_trigger_of_0_1_0_is_served() {
    let (fixture, trigger) = Fixture::of("older-trigger").await;
    assert_eq!(trigger.wit_version(), "0.1.0");
    let trigger_run = returned(fire(&fixture, &trigger, GuestLimits::default(), |_| ()).await);
    let message = &trigger_run.messages[0];
    assert_eq!(
        (message.text.as_str(), message.key.as_deref()),
        ("due at 1700000000000, told at 1700000000123", Some("once"))
    );
    assert_eq!(trigger_run.state.unwrap().bytes, b"kept");
    let heartbeat = Setting::new(TriggerEvent::Heartbeat {
        due: NOW,
        checklist: None,
    });
    let limits = GuestLimits::default();
    let fired = fixture.runtime.fire(&trigger, &limits, heartbeat.call());
    assert_refused(&fired.await.outcome, "`heartbeat`");
}
