//! The queue of a session: the fate of messages that arrive while its agent is busy. None of them
//! is lost, doubled or out of order.

mod api;
mod chance;
mod deaths;
mod interleavings;
mod refinement;
mod storm;

use agent_host_tests::patience::until;
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::By;
use broker::{Error, InputReceipt, PostOutcome};
use domain::event::Event;
use domain::id::SessionId;
use domain::message::Role;
use domain::queue::{Directive, QueueOverride, WaitKind};
use domain::turn::TurnEnd;
use domain::user::UserId;
use serde_json::json;
use store::InputState;

/// Returns the settings in a directive.
fn said(words: &str) -> QueueOverride {
    let Ok(Directive::Set(said)) = format!("/queue {words}").parse() else {
        panic!("{words}")
    };
    said
}

async fn post(
    world: &World,
    definition: &str,
    session: SessionId,
    text: &str,
    words: &str,
) -> Result<InputReceipt, Error> {
    let message = broker::PostMessage {
        queue: said(words),
        ..world.message(definition, session, text, None)
    };
    world.broker.messages().post(message).await
}

/// A session whose agent waits for an answer and hears nothing meanwhile, with the question.
async fn asking(world: &World) -> (SessionId, domain::id::OperationId) {
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "q", "client": "confirmation" }] }]),
        )
        .await;
    let (call, _) = world.question("puppet", session).await;
    (session, call)
}

/// Returns the messages of users and of the host in a session's thread, in order; scripts left out.
async fn heard(world: &World, session: SessionId) -> Vec<String> {
    let messages = world.messages(session).await;
    let heard = messages
        .iter()
        .filter(|message| matches!(message.role, Role::User | Role::Notice));
    heard
        .map(domain::message::Message::text)
        .filter(|text| !text.starts_with("{\"steps\""))
        .collect()
}

async fn ends(world: &World) -> Vec<(TurnEnd, Option<String>)> {
    let events = world.events().await;
    let ended = events.into_iter().filter_map(|event| match event {
        Event::RunEnded(ended) => Some((ended.end, ended.reason)),
        _ => None,
    });
    ended.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debounce_is_waited_for_by_a_timer_of_the_store_which_outlasts_the_host() {
    let world = World::new(Setup::default()).await;
    let (session, call) = asking(&world).await;
    let accepted = post(&world, "puppet", session, "later", "followup debounce:3s")
        .await
        .unwrap();
    world.confirm("puppet", call).await;
    world.until(session, |row| row.open_run.is_none()).await;
    let due = world.store().next_wake().await.unwrap().expect("a timer");
    let (input, state) = world.store().input(accepted.input).await.unwrap().unwrap();
    assert_eq!(
        (due, state),
        (input.time.plus_ms(3_000), InputState::Waiting)
    );
    let world = world.restart(|_| {}).await;
    world.idle(session).await;
    let runs = world.runs().await;
    let began = world
        .store()
        .run(runs[1])
        .await
        .unwrap()
        .unwrap()
        .started_at;
    assert!(
        began >= due,
        "it began before nothing had come for three seconds"
    );
    assert_eq!(world.store().next_wake().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_interrupts_ends_the_run_which_names_it_and_begins_the_next() {
    let world = World::new(Setup::default()).await;
    let (session, _) = asking(&world).await;
    let first = post(&world, "puppet", session, "stop", "interrupt")
        .await
        .unwrap();
    assert_eq!(first.waits_for, WaitKind::Interrupt);
    world.idle(session).await;
    let ends = ends(&world).await;
    assert_eq!(
        ends[0],
        (
            TurnEnd::Aborted,
            Some(format!("interrupted by input {}", first.input))
        )
    );
    assert_eq!(ends[1].0, TurnEnd::Replied);
    assert_eq!(world.last_reply(session).await, "said stop");
}

/// Words to a structured session that awaits its client are followups, and only an answer answers.
#[tokio::test(flavor = "multi_thread")]
async fn words_to_a_session_that_awaits_its_client_are_followups_and_no_answers() {
    let world = World::new(Setup::default()).await;
    let script = json!({ "steps": [
        { "start": [{ "key": "q", "client": "confirmation" }] }, { "reply": "thanks" },
    ] });
    let world = world
        .restart(|setup| {
            setup.definitions.push(json!({
                "agentId": "lesson", "displayName": "Lesson", "component": "puppet",
                "settings": { "script": script },
            }));
        })
        .await;
    let session = world.open_as("lesson", Some("lesson")).await;
    let (call, _) = world.question("lesson", session).await;
    for mode in ["steer", "interrupt"] {
        let receipt = post(&world, "lesson", session, "yes", mode).await.unwrap();
        assert!(
            matches!(receipt.waits_for, WaitKind::Queued(_)),
            "{mode}: {receipt:?}"
        );
    }
    assert_eq!(world.row(session).await.waiting, 2);
    assert_eq!(
        world.question("lesson", session).await.0,
        call,
        "nothing was answered"
    );
    world.confirm("lesson", call).await;
    world.until(session, |row| row.waiting == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_have_not_begun_when_words_steer_a_run_are_skipped_and_say_why() {
    let (world, session) = World::with_puppet().await;
    // The model makes two calls; the agent makes none of them before it hears words, and goes on
    // with the model.
    let steps = json!({ "steps": [
        { "start": [{ "key": "m", "model": "x" }] },
        { "start": [{ "key": "t", "timer": 60_000 }], "hear": true, "until": "any" },
        { "start": [{ "key": "n", "model": "x" }], "cancel": ["t"] },
    ], "do": "call:look,put" });
    world.say("puppet", session, &steps.to_string()).await;
    let waits = |row: &store::SessionRow| row.open_run.is_some();
    world.until(session, waits).await;
    until(async || world.store().next_wake().await.unwrap().is_some()).await;
    world.turn("puppet", session, "never mind").await;
    let messages = world.messages(session).await;
    let results: Vec<String> = messages
        .iter()
        .filter(|message| message.role == Role::Tool)
        .map(domain::message::Message::text)
        .collect();
    assert_eq!(results, [domain::queue::SKIPPED, domain::queue::SKIPPED]);
}

/// A message that is a directive sets the queue of its session and is said to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_directive_sets_the_queue_of_its_session_and_is_said_to_nobody() {
    let world = World::new(Setup::default()).await;
    let (session, _) = asking(&world).await;
    let direct = async |text: &str| {
        world
            .broker
            .messages()
            .say(world.message("puppet", session, text, None))
            .await
    };
    let Ok(PostOutcome::Configured(set)) = direct("/queue coalesce debounce:1.5s cap:7").await
    else {
        panic!("no directive")
    };
    assert_eq!(
        json!(set.holds),
        json!({ "mode": "collect", "debounce_ms": 1_500, "cap": 7, "drop": "summarize" })
    );
    let Ok(PostOutcome::Accepted(receipt)) = direct("hello").await else {
        panic!("a directive")
    };
    assert!(
        matches!(receipt.waits_for, WaitKind::Queued(_)),
        "{receipt:?}"
    );
    let refused = direct("/queue whatever").await;
    let Err(Error::Refused(refusal)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(refusal.field.as_deref(), Some("/content"));
    let Ok(PostOutcome::Configured(reset)) = direct("/QUEUE default").await else {
        panic!("no directive")
    };
    assert_eq!(reset.said, QueueOverride::default());
    let waiting = world
        .broker
        .queue()
        .inputs(&UserId::local(), &target("puppet"), session)
        .await
        .unwrap();
    assert_eq!(waiting.inputs.len(), 1, "nobody was told of the directives");
}

/// Waiting messages are taken back one by one, or all of them before the run is cancelled, and then
/// nothing begins.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_messages_are_taken_back_singly_or_before_a_cancel_and_begin_nothing() {
    let world = World::new(Setup::default()).await;
    let (session, _) = asking(&world).await;
    let me = UserId::local();
    let puppet = target("puppet");
    let first = post(&world, "puppet", session, "one", "followup")
        .await
        .unwrap()
        .input;
    let cancelled = world
        .broker
        .queue()
        .cancel(By::from(&me), &puppet, session, first, None)
        .await
        .unwrap();
    let untaken = InputState::Cancelled {
        run: None,
        begun: false,
    };
    assert_eq!(cancelled.state, untaken);
    let Err(Error::Refused(again)) = world
        .broker
        .queue()
        .cancel(By::from(&me), &puppet, session, first, None)
        .await
    else {
        panic!("twice")
    };
    assert_eq!(again.code, "INPUT_NOT_WAITING");
    let runs = world.runs().await;
    let events = world.events().await;
    let claimed = events.iter().find_map(|event| match event {
        Event::RunStarted(started) => started.claimed.first().copied(),
        _ => None,
    });
    let Err(Error::Refused(taken)) = world
        .broker
        .queue()
        .cancel(By::from(&me), &puppet, session, claimed.unwrap(), None)
        .await
    else {
        panic!()
    };
    assert!(taken.message.contains("/cancel"), "{taken}");
    post(&world, "puppet", session, "two", "collect")
        .await
        .unwrap();
    world.say("puppet", session, "three").await;
    let cancelled = world
        .broker
        .runs()
        .cancel_with_waiting(By::from(&me), &puppet, session, None)
        .await
        .unwrap();
    assert_eq!((cancelled.run, cancelled.inputs.len()), (true, 2));
    world.idle(session).await;
    assert_eq!(world.runs().await, runs, "a run has begun");
}
