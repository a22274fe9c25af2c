//! Tests of turns and their steps: when one is taken, and what becomes of one that fails.

use super::host::{Host, replies, timer, works};
use crate::shared::runs::load_run;
use crate::{Cancelled, TurnFailure, TurnOutcome};
use domain::id::Stream;
use domain::step::News;
use domain::turn::TurnEnd;
use serde_json::json;
use std::time::{Duration, Instant};
use store::{Commit, Snapshot};
use tokio::time::sleep;

/// A pause in which a command has looked at what waits and waits for the driver.
const INSPECTED: Duration = Duration::from_millis(50);

/// Nothing of a run is stored before its first step has decided.
#[tokio::test]
async fn a_turn_without_work_is_one_commit_and_leaves_no_driver() {
    let host = Host::new().await;
    let step = host.guest.blocked_step();
    host.say("hi").await;
    host.stepped(1).await;
    assert_eq!(host.count("run.started").await, 0);
    step.send(replies("hello")).unwrap();
    host.ended().await;
    let kinds = host.kinds().await;
    let turn = kinds.iter().skip_while(|kind| *kind != "run.started");
    assert_eq!(
        turn.collect::<Vec<_>>(),
        ["run.started", "run.ended", "session.turn.committed"]
    );
    host.undriven().await;
}

#[tokio::test]
async fn words_that_arrive_during_a_step_are_heard_by_the_next_one() {
    let host = Host::new().await;
    let step = host.guest.blocked_step();
    host.guest.steps([replies("to both")]);
    host.say("one").await;
    host.stepped(1).await;
    host.say("two").await;
    step.send(replies("to one")).unwrap();
    host.ended().await;
    // The reply that came too early has become an ordinary message: the second.
    let said = |id| vec![News::Said { messages: vec![id] }];
    assert_eq!(host.guest.news(), [said(1), said(3)]);
    assert_eq!(host.count("session.turn.committed").await, 1);
}

/// A run of that layout does not say which of its inputs are answered.
#[tokio::test]
async fn a_snapshot_of_a_run_in_an_earlier_layout_is_passed_over() {
    let host = Host::new().await;
    let step = host.guest.blocked_step();
    host.guest.steps([works([timer(60_000)], &[])]);
    host.say("one").await;
    host.stepped(1).await;
    host.say("two").await;
    step.send(replies("to one")).unwrap();
    host.stored("run.stepped", 1).await;
    let store = host.broker.store();
    let row = store.session(host.session).await.unwrap().unwrap();
    let run = row.open_run.unwrap();
    let (folded, version) = load_run(store, run).await.unwrap();
    assert_eq!((folded.answered, folded.claimed.len()), (1, 2));
    let mut state = json!(folded);
    state.as_object_mut().unwrap().remove("answered").unwrap();
    let earlier = Snapshot {
        version,
        format: 5,
        state: state.to_string().into_bytes(),
    };
    let kept = Commit::new().snapshot(Stream::Run(run), earlier);
    store.commit(kept).await.unwrap();
    assert_eq!(load_run(store, run).await.unwrap(), (folded, version));
}

#[tokio::test]
async fn a_first_step_that_fails_three_times_leaves_a_dead_letter_and_no_turn() {
    let host = Host::new().await;
    // Nothing is scripted: every step traps.
    host.say("hi").await;
    assert_eq!(host.ended().await.turn, None);
    assert_eq!(host.count("run.step_failed").await, 3);
    let letters = host.broker.dead_letters().list(10).await.unwrap();
    let [letter] = &letters[..] else {
        panic!("{letters:?}")
    };
    // Whoever waits for the message is told why it has no turn.
    let wait = Duration::from_secs(10);
    let became = host
        .broker
        .messages()
        .await_reply(letter.accepted.input, wait)
        .await;
    let failure = TurnFailure {
        code: "step-failed".to_owned(),
        reason: letter.dead.reason.clone(),
    };
    let expected = TurnOutcome::Undone {
        word: "dead",
        failure: Some(failure),
    };
    assert_eq!(became.unwrap(), Some(expected));
    host.undriven().await;
}

#[tokio::test]
async fn a_wake_does_not_cut_the_pause_after_a_full_runtime_short() {
    let host = Host::new().await;
    host.guest.fill();
    let begin = Instant::now();
    host.say("hi").await;
    host.until("a step that asks again", async || {
        host.broker.core.wake(host.session);
        host.guest.asked() == 2
    })
    .await;
    assert!(begin.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn a_stop_during_a_step_ends_the_turn_after_it() {
    let host = Host::new().await;
    let step = host.guest.blocked_step();
    host.say("hi").await;
    host.stepped(1).await;
    let goes_on = async { step.send(works([timer(1_000)], &[])).unwrap() };
    let (stopped, ()) = tokio::join!(host.cancel(), goes_on);
    assert!(stopped);
    assert_eq!(host.ended().await.end, TurnEnd::Aborted);
    assert!(!host.cancel().await, "nothing is open any more");
}

/// The words that wait when the command looks have begun the turn when the driver hears of it.
#[tokio::test]
async fn a_stop_with_what_waits_looks_again_after_a_step_that_claimed_it() {
    let host = Host::new().await;
    let step = host.guest.blocked_step();
    host.say("hi").await;
    host.stepped(1).await;
    let goes_on = async {
        sleep(INSPECTED).await;
        step.send(works([timer(1_000)], &[])).unwrap();
    };
    let (cancelled, ()) = tokio::join!(host.cancel_with_waiting(), goes_on);
    let only_the_turn = Cancelled {
        run: true,
        inputs: Vec::new(),
    };
    assert_eq!(cancelled, only_the_turn);
    assert_eq!(host.ended().await.end, TurnEnd::Aborted);
}
