//! Tests of prompts that outgrow their model's window while a turn goes on.

use super::host::{Host, SMALL_WINDOW, events, gives, model, replies, works};
use domain::compaction::is_due;
use domain::event::Event;
use domain::operation::Performer;
use domain::prompt_cut::PromptCut;
use domain::step::{Call, OperationOutcome, Work};
use domain::turn::TurnEnd;
use serde_json::json;
use std::future::ready;

/// Bytes of one result.
const RESULT_BYTES: usize = 2_000;

/// A call of a model over the whole thread.
fn asks(name: &str) -> Work {
    match model() {
        Work::Model(mut request) => {
            request.model = Some(name.to_owned());
            Work::Model(request)
        }
        other => other,
    }
}

/// Has the guest ask a model, and make the call that it asks for, so many times; then ask once more
/// under the key `last`, and reply.
fn inspections(host: &Host, model: &str, rounds: u64) {
    for round in 0..rounds {
        let asked = format!("ask-{round}");
        host.guest
            .steps([works([(asked.as_str(), asks(model))], &[])]);
        let call = Call::OfModel {
            message: 2 + round * 2,
            index: 0,
        };
        let called = format!("call-{round}");
        host.guest
            .steps([works([(called.as_str(), Work::Tool { call })], &[])]);
        host.guest.call(ready(gives(&"x".repeat(RESULT_BYTES))));
    }
    host.guest
        .steps([works([("last", asks(model))], &[]), replies("done")]);
}

async fn cuts(host: &Host) -> Vec<PromptCut> {
    let events = events(host.broker.store(), host.session).await;
    let events = events.into_iter().filter_map(|recorded| recorded.event);
    events
        .filter_map(|event| match event {
            Event::RunCut(made) => Some(made.cut),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_turn_whose_results_outgrow_the_window_goes_on_with_recorded_cuts() {
    let host = Host::new().await;
    inspections(&host, "small", 8);
    host.say("gather").await;
    assert_eq!(host.ended().await.end, TurnEnd::Replied);
    let cuts = cuts(&host).await;
    assert!(cuts.len() >= 2, "{cuts:?}");
    for cut in &cuts {
        assert!(is_due(cut.tokens_before, SMALL_WINDOW), "{cut:?}");
        assert!(cut.tokens_after < SMALL_WINDOW, "{cut:?}");
        assert!(cut.tokens_after < cut.tokens_before, "{cut:?}");
    }
    for pair in cuts.windows(2) {
        assert!(pair[1].goes_beyond(&pair[0]), "{pair:?}");
        assert!(pair[1].stubs.is_superset(&pair[0].stubs), "{pair:?}");
    }
    // Nothing of the thread is lost.
    let row = host
        .broker
        .store()
        .session(host.session)
        .await
        .unwrap()
        .unwrap();
    let messages = host
        .broker
        .store()
        .messages(row.head, 1, row.head_message)
        .await
        .unwrap();
    let whole = messages
        .iter()
        .filter(|message| message.answers.is_some() && message.text().len() == RESULT_BYTES);
    assert_eq!(whole.count(), 8);
}

/// Messages that are shown no more are not counted, so a reply may have all the room that they
/// leave.
#[tokio::test]
async fn a_call_after_a_cut_reserves_for_the_prompt_that_it_sends() {
    let host = Host::new().await;
    inspections(&host, "small", 8);
    host.say("gather").await;
    assert_eq!(host.ended().await.end, TurnEnd::Replied);
    let events = events(host.broker.store(), host.session).await;
    let events = events.into_iter().filter_map(|recorded| recorded.event);
    let mut after_cut = events.skip_while(|event| !matches!(event, Event::RunCut(_)));
    let reply = after_cut.find_map(|event| match event {
        Event::RunStepped(stepped) => {
            let mut performers = stepped.started.into_iter().map(|started| started.performer);
            performers.find_map(|performer| match performer {
                Performer::Model { request, .. } => request.max_tokens,
                _ => None,
            })
        }
        _ => None,
    });
    assert!(
        reply.map(u64::from) > Some(SMALL_WINDOW / 10),
        "more than it has in any case: {reply:?}"
    );
}

#[tokio::test]
async fn a_turn_with_room_for_all_its_results_is_not_cut() {
    let host = Host::new().await;
    inspections(&host, "small", 2);
    host.say("gather").await;
    assert_eq!(host.ended().await.end, TurnEnd::Replied);
    assert!(cuts(&host).await.is_empty());
}

#[tokio::test]
async fn a_prompt_that_its_model_refuses_as_too_long_is_cut_once_and_sent_again() {
    let host = Host::new().await;
    inspections(&host, "scripted", 3);
    host.say("refused").await;
    host.ended().await;
    let outcome = host.outcome(7, "last");
    assert!(
        matches!(outcome, Some(OperationOutcome::Message { .. })),
        "{outcome:?}"
    );
    let cuts = cuts(&host).await;
    let [cut] = cuts.as_slice() else {
        panic!("{cuts:?}")
    };
    assert_eq!(
        (cut.left_out_through, cut.summary.as_deref()),
        (2, Some("hello")),
        "{cut:?}"
    );
    // The summary, and the call itself again: each is on record before it is made.
    assert!(host.count("operation.attempted").await >= 2);
}

/// A call reserves the window of 2,000 tokens, and a summary needs more than 1,000 beside it.
#[tokio::test]
async fn a_summary_that_a_limit_leaves_too_little_for_is_not_made() {
    let host = Host::with_limits(json!({ "tokensMax": 3_000 })).await;
    inspections(&host, "small", 6);
    host.say("gather").await;
    host.ended().await;
    let outcome = host.outcome(13, "last");
    assert!(
        matches!(outcome, Some(OperationOutcome::Message { .. })),
        "{outcome:?}"
    );
    let cuts = cuts(&host).await;
    assert!(
        cuts.iter().any(|cut| cut.left_out_through > 0)
            && cuts.iter().all(|cut| cut.summary.is_none()),
        "{cuts:?}"
    );
    assert_eq!(host.count("operation.attempted").await, 0);
}

/// A chat goes on for ever, whatever its user pastes into it.
#[tokio::test]
async fn one_message_that_is_longer_than_the_window_is_cut_and_answered() {
    let host = Host::new().await;
    inspections(&host, "small", 1);
    host.say(&format!("gather {}", "y".repeat(90_000))).await;
    assert_eq!(host.ended().await.end, TurnEnd::Replied);
    let cuts = cuts(&host).await;
    assert!(cuts.iter().any(|cut| cut.stubs.contains(&1)), "{cuts:?}");
    assert!(
        cuts.iter().all(|cut| cut.tokens_after <= SMALL_WINDOW),
        "{cuts:?}"
    );
}
