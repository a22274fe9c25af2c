//! Tests of the work that steps start: when it is done, what is on record before, how it ends, and
//! what becomes of it after a crash.

use super::host::{Host, gives, kinds, model, replies, target, timer, tool, works};
use crate::{By, Error, PostMessage, TurnOutcome};
use domain::delegate::Priority;
use domain::event::{Event, RunEnded};
use domain::limits::{ALONE_ENDS_MAX, MEMO_BYTES_MAX, SEGMENTS_BYTES_MAX, SUSPECTED_ENDS_MIN};
use domain::message::Part;
use domain::operation::Progress;
use domain::queue::QueueOverride;
use domain::step::OperationOutcome;
use domain::turn::TurnEnd;
use domain::user::UserId;
use runtime::Outcome;
use serde_json::json;
use std::future::{pending, ready};
use std::time::Duration;
use store::InputState;
use tokio::sync::oneshot;

/// Number of ends of the host in a row, over a turn that nothing else is suspected beside, with
/// which that turn is given up.
const ENDS: usize = (SUSPECTED_ENDS_MIN + ALONE_ENDS_MAX) as usize;

#[tokio::test]
async fn a_stop_while_a_model_is_asked_ends_the_turn_and_its_work() {
    let host = Host::new().await;
    host.guest.steps([works([("ask", model())], &[])]);
    host.say("never").await;
    host.stored("run.started", 1).await;
    assert!(host.cancel().await);
    let ended = host.ended().await;
    assert_eq!(ended.end, TurnEnd::Aborted);
    assert_eq!(ended.stopped[0].outcome, OperationOutcome::Cancelled);
    host.undriven().await;
    assert_eq!(host.guest.news().len(), 1, "the agent is not asked again");
}

/// Only the reading of a chat into notes gives way to turns that somebody waits for.
#[tokio::test]
async fn a_message_of_the_lowest_priority_waits_for_no_turn_of_another_session() {
    let host = Host::new().await;
    host.guest.steps([works([("ask", model())], &[])]);
    host.say("never").await;
    host.stored("run.started", 1).await;
    let session = host.open().await;
    let asks = works([("ask", model())], &[]);
    host.guest.steps([asks, replies("done")]);
    let message = PostMessage {
        target: target(),
        session,
        content: vec![Part::text("hello")],
        model: None,
        queue: QueueOverride::default(),
        priority: Some(Priority::Low),
        user: UserId::local(),
        idempotency_key: None,
    };
    host.broker.messages().post(message).await.unwrap();
    let store = host.broker.store();
    let is = async || {
        kinds(store, session)
            .await
            .contains(&"run.ended".to_owned())
    };
    host.until("the end of the other turn", is).await;
    assert!(host.cancel().await, "the first turn still waits");
}

#[tokio::test]
async fn a_model_is_not_asked_with_fewer_tokens_left_than_it_may_use() {
    let host = Host::with_limits(json!({ "tokensMax": 1_000 })).await;
    host.guest
        .steps([works([("ask", model())], &[]), replies("no")]);
    host.say("never").await;
    host.ended().await;
    let Some(OperationOutcome::Failed { failure }) = host.outcome(1, "ask") else {
        panic!("{:?}", host.guest.news());
    };
    assert_eq!(failure.code, "limit-reached");
}

/// An attempt reserves 4,096 tokens for its reply, and breaks off with an unknown cost.
#[tokio::test]
async fn a_further_attempt_at_a_model_is_on_record_or_not_made() {
    for (tokens_max, afforded) in [(8_000, 0), (12_000, 1), (100_000, 2)] {
        let host = Host::with_limits(json!({ "tokensMax": tokens_max })).await;
        host.guest
            .steps([works([("ask", model())], &[]), replies("no")]);
        host.say("breaks").await;
        host.ended().await;
        assert_eq!(host.count("operation.attempted").await, afforded);
    }
}

/// A reply that is a call alone is one.
#[tokio::test]
async fn a_model_that_says_nothing_is_asked_once_more() {
    for (words, further) in [("wordless", 1), ("gather", 0), ("hi", 0)] {
        let host = Host::new().await;
        host.guest
            .steps([works([("ask", model())], &[]), replies("done")]);
        host.say(words).await;
        assert_eq!(host.ended().await.end, TurnEnd::Replied);
        assert_eq!(host.count("operation.attempted").await, further, "{words}");
    }
}

/// The call itself looks at the store while it is made.
#[tokio::test]
async fn a_call_that_must_not_run_twice_is_on_record_before_it_is_made() {
    for (name, is_recorded) in [("send", true), ("read", false)] {
        let host = Host::new().await;
        let store = host.broker.store().clone();
        let session = host.session;
        let (see, seen) = oneshot::channel();
        host.guest
            .steps([works([("call", tool(name))], &[]), replies("done")]);
        host.guest.call(async move {
            see.send(kinds(&store, session).await).unwrap();
            gives("it")
        });
        host.say("hi").await;
        let kinds = seen.await.unwrap();
        assert_eq!(kinds.contains(&"operation.started".to_owned()), is_recorded);
        host.ended().await;
    }
}

/// A tool without any grant would otherwise have the store keep as much as it likes.
#[tokio::test]
async fn a_turn_keeps_a_bounded_number_of_bytes_between_the_segments_of_its_calls() {
    let host = Host::new().await;
    host.guest
        .steps([works([("call", tool("read"))], &[]), replies("done")]);
    for _ in 0..SEGMENTS_BYTES_MAX / MEMO_BYTES_MAX as u64 + 1 {
        host.guest.call(ready(Outcome::Returned(Ok(Progress::Later {
            after_ms: 0,
            state: vec![0; MEMO_BYTES_MAX],
        }))));
    }
    host.say("hi").await;
    host.ended().await;
    let Some(OperationOutcome::Failed { failure }) = host.outcome(1, "call") else {
        panic!("{:?}", host.guest.news());
    };
    assert_eq!(failure.code, "limit-reached");
    let kept = host.count("operation.continued").await;
    assert_eq!(kept as u64, SEGMENTS_BYTES_MAX / MEMO_BYTES_MAX as u64);
}

#[tokio::test]
async fn the_late_result_of_work_that_the_agent_has_stopped_is_ignored() {
    let host = Host::new().await;
    let (call, result) = oneshot::channel();
    let work = [("call", tool("read")), timer(1_000)];
    host.guest
        .steps([works(work, &[]), works([], &["call"]), replies("done")]);
    host.guest.call(async { result.await.unwrap() });
    host.say("hi").await;
    host.until("a call", async || host.guest.called().len() == 1)
        .await;
    host.pass_ms(1_000);
    assert_eq!(host.ended().await.end, TurnEnd::Replied);
    assert!(
        call.send(gives("it")).is_err(),
        "somebody waits for it still"
    );
    assert_eq!(host.outcome(2, "call"), Some(OperationOutcome::Cancelled));
}

#[tokio::test]
async fn a_run_that_only_waits_for_a_time_is_not_driven_until_then() {
    let host = Host::new().await;
    host.guest
        .steps([works([timer(60_000)], &[]), replies("done")]);
    host.say("hi").await;
    host.stored("run.started", 1).await;
    host.undriven().await;
    let host = host.crash().await;
    host.until("recovery", async || host.broker.stats().to_recover == 0)
        .await;
    host.pass_ms(59_999);
    host.undriven().await;
    assert_eq!(host.broker.stats().inspections, 0);
    host.pass_ms(1);
    host.ended().await;
    assert_eq!(host.outcome(1, "timer"), Some(OperationOutcome::Elapsed));
}

/// Asserts that a command was refused with a code.
#[track_caller]
fn refused(answer: &Result<(), Error>, code: &str) {
    assert!(
        matches!(answer, Err(Error::Refused(refusal)) if refusal.code == code),
        "{answer:?}"
    );
}

/// Ends the host over the session's open turn until that is given up. After each end but the last
/// the turn is recovered.
async fn end_until_given_up(mut host: Host) -> Host {
    let ended = host.count("run.ended").await;
    let recovered = host.count("run.recovered").await;
    for count in 1..ENDS {
        host = host.crash_at_work().await;
        host.stored("run.recovered", recovered + count).await;
        assert_eq!(host.count("run.ended").await, ended);
    }
    host = host.crash_at_work().await;
    host.stored("run.ended", ended + 1).await;
    assert_eq!(host.count("run.recovered").await, recovered + ENDS - 1);
    // What the session is told from here on is no part of its recovery.
    host.undriven().await;
    host
}

/// A host that ended again and again over a turn that had taken a step, and the end of that turn.
async fn given_up() -> (Host, RunEnded) {
    let host = Host::new().await;
    host.guest.steps([works([("ask", model())], &[])]);
    host.say("never").await;
    host.stored("run.started", 1).await;
    let host = end_until_given_up(host).await;
    let ended = host.ended().await;
    (host, ended)
}

#[tokio::test]
async fn a_turn_that_was_computed_at_five_ends_in_a_row_fails() {
    assert_eq!(ENDS, 5);
    let (_, ended) = given_up().await;
    assert_eq!(ended.end, TurnEnd::Failed);
    assert_eq!(ended.code.as_deref(), Some("host-failed"));
}

#[tokio::test]
async fn a_turn_that_only_waits_for_its_model_goes_on_after_any_number_of_ends() {
    let mut host = Host::new().await;
    host.guest.steps([works([("ask", model())], &[])]);
    host.say("never").await;
    host.stored("run.started", 1).await;
    for count in 1..=ENDS + 1 {
        host = host.crash().await;
        host.stored("operation.attempted", count).await;
    }
    assert_eq!(host.count("run.recovered").await, ENDS + 1);
    assert_eq!(host.count("run.ended").await, 0);
}

#[tokio::test]
async fn a_turn_given_up_after_a_step_is_a_dead_letter_and_repeated_only_on_demand() {
    let (host, ended) = given_up().await;
    let letters = host.broker.dead_letters().list(10).await.unwrap();
    let [letter] = &letters[..] else {
        panic!("{letters:?}")
    };
    assert_eq!(Some(&letter.dead.reason), ended.reason.as_ref());
    assert_eq!((letter.run, letter.begun), (Some(ended.run), true));
    assert_eq!(letter.dead.session, host.session);
    let input = letter.accepted.input;
    assert_eq!(
        host.broker.dead_letters().get(input).await.unwrap(),
        *letter
    );
    // Whoever waits for the turn is told its end as that of any other that failed.
    let became = host
        .broker
        .messages()
        .await_reply(input, Duration::from_secs(10))
        .await;
    assert!(
        matches!(
            became,
            Ok(Some(TurnOutcome::Answered {
                end: TurnEnd::Failed,
                ..
            }))
        ),
        "{became:?}"
    );
    let ada: UserId = "ada".parse().unwrap();
    refused(
        &host
            .broker
            .dead_letters()
            .requeue(By::from(&ada), input, None)
            .await,
        "MAY_REPEAT_WORK",
    );
    assert_eq!(host.broker.dead_letters().list(10).await.unwrap(), letters);
    host.guest.steps([replies("again")]);
    let again = host
        .broker
        .dead_letters()
        .requeue(By::from(&ada), input, Some(ended.run))
        .await;
    again.unwrap();
    host.stored("session.turn.committed", 2).await;
    assert!(
        host.broker
            .dead_letters()
            .list(10)
            .await
            .unwrap()
            .is_empty()
    );
    let recorded = host.recorded("session.input.requeued").await;
    assert_eq!(recorded.len(), 1);
    assert_eq!(recorded[0].actor, "user:ada");
    let Some(Event::InputRequeued(requeued)) = &recorded[0].event else {
        panic!("{recorded:?}")
    };
    assert_eq!(requeued.requeued_by, ada);
    assert_eq!(requeued.repeat, Some(ended.run));
}

#[tokio::test]
async fn a_permission_to_repeat_a_turn_is_for_one_repetition_of_it() {
    let (host, ended) = given_up().await;
    let user = UserId::local();
    let input = ended.inputs[0];
    host.guest.steps([works([("ask", model())], &[])]);
    let again = host
        .broker
        .dead_letters()
        .requeue(By::from(&user), input, Some(ended.run))
        .await;
    again.unwrap();
    host.stored("run.started", 2).await;
    let host = end_until_given_up(host).await;
    let letter = host.broker.dead_letters().get(input).await.unwrap();
    assert!(letter.begun && letter.run != Some(ended.run), "{letter:?}");
    // The same permission once more, as of a client that has not heard the answer.
    let again = host
        .broker
        .dead_letters()
        .requeue(By::from(&user), input, Some(ended.run))
        .await;
    refused(&again, "MAY_REPEAT_WORK");
    host.guest.steps([replies("at last")]);
    let again = host
        .broker
        .dead_letters()
        .requeue(By::from(&user), input, letter.run)
        .await;
    again.unwrap();
    host.stored("session.turn.committed", 3).await;
}

#[tokio::test]
async fn a_dead_letter_is_requeued_and_dropped_once_under_a_key() {
    let (host, ended) = given_up().await;
    let user = UserId::local();
    let input = ended.inputs[0];
    let under = |key| By {
        user: &user,
        key: Some(key),
    };
    // Nothing is scripted: the repetition dies before its first step.
    for _ in 0..2 {
        let again = host
            .broker
            .dead_letters()
            .requeue(under("a"), input, Some(ended.run))
            .await;
        again.unwrap();
        host.stored("session.input.dead", 2).await;
    }
    assert_eq!(host.count("session.input.requeued").await, 1);
    let other = host
        .broker
        .dead_letters()
        .requeue(under("a"), input, None)
        .await;
    refused(&other, "IDEMPOTENCY_KEY_REUSED");
    for _ in 0..2 {
        let dropped = host
            .broker
            .dead_letters()
            .drop(under("b"), input, None)
            .await;
        dropped.unwrap();
    }
    assert_eq!(host.count("session.input.cancelled").await, 1);
    let reason = Some("done by hand".to_owned());
    let other = host
        .broker
        .dead_letters()
        .drop(under("b"), input, reason)
        .await;
    refused(&other, "IDEMPOTENCY_KEY_REUSED");
}

#[tokio::test]
async fn a_repetition_that_dies_before_its_first_step_is_repeated_only_on_demand_too() {
    let (host, ended) = given_up().await;
    let begun = ended.run;
    let input = host.broker.dead_letters().list(10).await.unwrap()[0]
        .accepted
        .input;
    let user = UserId::local();
    let letters = host.broker.dead_letters();
    let requeue = |repeat| letters.requeue(By::from(&user), input, repeat);
    // Nothing is scripted: every step traps.
    requeue(Some(begun)).await.unwrap();
    host.stored("session.input.dead", 2).await;
    let letter = host.broker.dead_letters().get(input).await.unwrap();
    assert_eq!((letter.run, letter.begun), (Some(begun), true));
    refused(&requeue(None).await, "MAY_REPEAT_WORK");
    host.guest.steps([replies("again")]);
    requeue(Some(begun)).await.unwrap();
    host.stored("session.turn.committed", 2).await;
}

#[tokio::test]
async fn a_dead_letter_that_is_dropped_is_listed_no_more_and_cannot_be_requeued() {
    let (host, ended) = given_up().await;
    let user = UserId::local();
    let input = ended.inputs[0];
    let by = By::from(&user);
    let too_long = Some("x".repeat(100_000));
    let unbounded = host.broker.dead_letters().drop(by, input, too_long).await;
    refused(&unbounded, "INVALID");
    let letters = host.broker.dead_letters();
    let twice = [(); 2].map(|()| {
        let reason = Some("done by hand".to_owned());
        letters.drop(by, input, reason)
    });
    let twice = futures::future::join_all(twice).await;
    assert_eq!(twice.iter().filter(|it| it.is_ok()).count(), 1, "{twice:?}");
    assert_eq!(host.count("session.input.cancelled").await, 1);
    assert!(
        host.broker
            .dead_letters()
            .list(10)
            .await
            .unwrap()
            .is_empty()
    );
    for again in [
        host.broker
            .dead_letters()
            .requeue(by, input, Some(ended.run))
            .await,
        host.broker.dead_letters().drop(by, input, None).await,
    ] {
        refused(&again, "DEAD_LETTER_NOT_FOUND");
    }
    host.undriven().await;
    assert_eq!(host.count("run.started").await, 1);
    assert_eq!(host.count("session.turn.committed").await, 1, "it stays");
}

#[tokio::test]
async fn the_input_of_a_dropped_dead_letter_stays_with_the_turn_that_had_begun() {
    let (host, ended) = given_up().await;
    let input = ended.inputs[0];
    let user = UserId::local();
    let puppet = target();
    let inspect = async || {
        let view = host
            .broker
            .queue()
            .input(&user, &puppet, host.session, input)
            .await;
        let view = view.unwrap();
        let became = host
            .broker
            .messages()
            .await_reply(input, Duration::from_secs(10))
            .await;
        (view.state, view.turn, became.unwrap())
    };
    let (_, turn, became) = inspect().await;
    assert!(turn.is_some());
    assert!(
        matches!(
            became,
            Some(TurnOutcome::Answered {
                end: TurnEnd::Failed,
                ..
            })
        ),
        "{became:?}"
    );
    let dropped = host
        .broker
        .dead_letters()
        .drop(By::from(&user), input, None)
        .await;
    dropped.unwrap();
    let cancelled = InputState::Cancelled {
        run: Some(ended.run),
        begun: true,
    };
    assert_eq!(inspect().await, (cancelled, turn, became));
}

/// A call that only reads is made again, under the same key.
#[tokio::test]
async fn a_call_that_must_not_run_twice_is_unknown_after_a_crash() {
    for (name, calls) in [("send", 1), ("read", 2)] {
        let host = Host::new().await;
        host.guest
            .steps([works([("call", tool(name))], &[]), replies("done")]);
        host.guest.call(pending());
        host.guest.call(ready(gives("it")));
        host.say("hi").await;
        host.until("a call", async || host.guest.called().len() == 1)
            .await;
        let host = host.crash().await;
        host.ended().await;
        let is_unknown = matches!(
            host.outcome(1, "call"),
            Some(OperationOutcome::Unknown { .. })
        );
        assert_eq!(is_unknown, name == "send");
        let called = host.guest.called();
        assert_eq!(called.len(), calls);
        assert!(
            called
                .iter()
                .all(|call| call.idempotency_key == called[0].idempotency_key)
        );
    }
}
