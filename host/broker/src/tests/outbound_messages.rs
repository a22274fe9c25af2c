//! Tests of the outbox to people outside: what is queued for whom, in which commit.

use super::host::{Host, model, replies, target, timer, works};
use crate::command::{Address, Arriving};
use crate::fresh;
use crate::journal::Context;
use crate::shared::outbound_messages::tell_of_dead;
use crate::{PostRouted, Routed, TurnOutcome};
use domain::connector::{CHAT_OUTBOUND_MESSAGES_MAX, ReplyRoute};
use domain::event::{
    Event, InputAccepted, OutboundMessageCause, OutboundMessageOutcome, OutboundMessageQueued,
    Source,
};
use domain::id::{ConnectorId, OperationId, OutboundMessageId, SessionId, Stream, TriggerEventId};
use domain::message::{Draft, Part, Role};
use domain::message_labels::MessageLabels;
use domain::operation::ReplyTo;
use domain::queue::QueueOverride;
use domain::step::{Decision, Effect, StepResult, Work};
use domain::time::Timestamp;
use domain::tool::ClientAction;
use domain::trigger::Quiet;
use domain::user::UserId;
use runtime::Outcome;
use serde_json::json;
use std::time::Duration;
use store::{Commit, Expected};
use uuid::Uuid;

/// A chat of the connector `telegram`.
fn route(chat: &str) -> ReplyRoute {
    ReplyRoute {
        connector: "telegram".parse().unwrap(),
        chat: chat.to_owned(),
    }
}

/// The source of words from a chat.
fn from(chat: &str) -> Source {
    Source::Connector {
        reply_to: route(chat),
        messages: vec!["1".to_owned()],
    }
}

/// The source of a heartbeat that tells a chat what it finds.
fn heartbeat(chat: &str) -> Source {
    Source::Trigger {
        trigger: "heartbeat".parse().unwrap(),
        trigger_event: TriggerEventId(Uuid::from_u128(1)),
        quiet: Some(Quiet { chars_max: 300 }),
        reply_to: Some(route(chat)),
    }
}

/// The source of a trigger of which nobody is to hear.
fn silent() -> Source {
    Source::Trigger {
        trigger: "report".parse().unwrap(),
        trigger_event: TriggerEventId(Uuid::from_u128(2)),
        quiet: None,
        reply_to: None,
    }
}

/// Posts words from outside into the host's session.
async fn arrive(host: &Host, source: Source, text: &str) {
    let command = PostRouted {
        to: Address::Session(host.session),
        content: vec![Part::text(text)],
        model: None,
        queue: QueueOverride::default(),
        priority: None,
        labels: MessageLabels::default(),
        user: UserId::local(),
        idempotency_key: None,
    };
    let unheard = matches!(source, Source::Trigger { reply_to: None, .. });
    let arriving = Arriving {
        source,
        origin: "connector:telegram".to_owned(),
        untrusted: false,
        speaker: None,
        unheard,
        isolated: None,
    };
    let routed = host
        .broker
        .messages()
        .post_inbound(command, arriving)
        .await
        .unwrap();
    assert!(matches!(routed, Routed::Accepted(_)));
}

/// Returns what is queued for people outside, in order.
async fn queued(host: &Host) -> Vec<OutboundMessageQueued> {
    let recorded = host.recorded("connector.outbound.queued").await;
    let queued = recorded.into_iter().map(|recorded| match recorded.event {
        Some(Event::OutboundMessageQueued(queued)) => queued,
        other => panic!("{other:?}"),
    });
    queued.collect()
}

/// Returns the texts that are queued, each with its chat.
async fn reported(host: &Host) -> Vec<(String, String)> {
    let queued = queued(host).await;
    queued.into_iter().map(|it| (it.chat, it.text)).collect()
}

fn to(chat: &str, text: &str) -> (String, String) {
    (chat.to_owned(), text.to_owned())
}

/// A step that decides this with some effects.
fn with(decision: Decision, effects: Vec<Effect>) -> Outcome<StepResult> {
    Outcome::Returned(StepResult {
        decision,
        effects,
        memo: None,
    })
}

fn reply(text: &str) -> Decision {
    Decision::Reply {
        parts: vec![Part::text(text)],
    }
}

/// A question with two choices, under the key `ask`.
fn question() -> (&'static str, Work) {
    let action = ClientAction {
        widget: "multiple_choice".to_owned(),
        props: json!({ "prompt": "Which?", "options": ["Red", "Blue"] }),
        response_schema: None,
        lock_input: false,
    };
    ("ask", Work::Client(action))
}

#[tokio::test]
async fn a_reply_is_queued_for_its_chat_in_the_commit_that_ends_the_turn() {
    let host = Host::new().await;
    host.guest.steps([replies("hello")]);
    arrive(&host, from("42"), "hi").await;
    let ended = host.ended().await;
    let kinds = host.kinds().await;
    let turn = kinds.iter().skip_while(|kind| *kind != "run.started");
    assert_eq!(
        turn.collect::<Vec<_>>(),
        [
            "run.started",
            "run.ended",
            "session.turn.committed",
            "connector.outbound.queued"
        ]
    );
    let queued = queued(&host).await;
    let cause = OutboundMessageCause::Turn {
        session: host.session,
        run: ended.run,
    };
    assert_eq!((&queued[0].cause, queued.len()), (&cause, 1));
    assert_eq!(reported(&host).await, [to("42", "hello")]);
    let due = host
        .broker
        .store()
        .outbound_message(queued[0].outbound_message)
        .await;
    assert!(due.unwrap().unwrap().state.is_open());
}

#[tokio::test]
async fn a_models_reply_is_queued_once() {
    let host = Host::new().await;
    let nothing = Decision::Reply { parts: Vec::new() };
    host.guest
        .steps([works([("ask", model())], &[]), with(nothing, Vec::new())]);
    arrive(&host, from("42"), "hi").await;
    host.ended().await;
    assert_eq!(reported(&host).await, [to("42", "hello")]);
}

#[tokio::test]
async fn what_is_asked_over_the_api_is_told_to_no_chat() {
    let host = Host::new().await;
    host.guest.steps([replies("hello"), replies("again")]);
    arrive(&host, from("42"), "hi").await;
    host.stored("run.ended", 1).await;
    host.say("hi").await;
    host.stored("run.ended", 2).await;
    assert_eq!(reported(&host).await, [to("42", "hello")]);
}

#[tokio::test]
async fn a_reply_that_comes_too_early_is_told_as_well_as_the_last_one() {
    let host = Host::new().await;
    let step = host.guest.blocked_step();
    host.guest.steps([replies("to both")]);
    arrive(&host, from("42"), "one").await;
    host.stepped(1).await;
    arrive(&host, from("42"), "two").await;
    step.send(replies("to one")).unwrap();
    host.ended().await;
    let expected = [to("42", "to one"), to("42", "to both")];
    assert_eq!(reported(&host).await, expected);
}

#[tokio::test]
async fn whoever_waits_behind_a_turn_that_asks_the_user_hears_of_the_question_at_once() {
    let host = Host::new().await;
    host.guest.steps([works([question()], &[])]);
    host.say("one").await;
    host.stored("run.started", 1).await;
    let behind = host.post("two").await;
    let hour = Duration::from_secs(3_600);
    let outcome = host
        .broker
        .messages()
        .await_reply(behind, hour)
        .await
        .unwrap();
    let Some(TurnOutcome::Asking { questions }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].action.widget, "multiple_choice");
}

#[tokio::test]
async fn words_of_which_nobody_is_to_hear_share_no_turn_that_is_delivered() {
    for is_silent_first in [false, true] {
        let host = Host::new().await;
        let step = host.guest.blocked_step();
        let [first, second] = match is_silent_first {
            false => [(from("42"), "hello"), (silent(), "report none")],
            true => [(silent(), "report none"), (from("42"), "hello")],
        };
        host.guest.steps([replies(second.1)]);
        arrive(&host, first.0, "one").await;
        host.stepped(1).await;
        arrive(&host, second.0, "two").await;
        step.send(replies(first.1)).unwrap();
        host.stored("run.ended", 2).await;
        assert_eq!(
            reported(&host).await,
            [to("42", "hello")],
            "{is_silent_first}"
        );
    }
}

#[tokio::test]
async fn what_an_agent_says_on_the_way_is_told_before_the_reply() {
    let host = Host::new().await;
    let say = |text: &str| Effect::Say {
        parts: vec![Part::text(text)],
    };
    host.guest
        .steps([with(reply("done"), vec![say("working"), say(" ")])]);
    arrive(&host, from("42"), "hi").await;
    host.ended().await;
    let expected = [to("42", "working"), to("42", "done")];
    assert_eq!(reported(&host).await, expected);
}

#[tokio::test]
async fn a_question_is_queued_under_the_id_that_answers_it() {
    let host = Host::new().await;
    host.guest.steps([works([question()], &[])]);
    arrive(&host, from("42"), "hi").await;
    host.stored("connector.outbound.queued", 1).await;
    let queued = queued(&host).await.swap_remove(0);
    let labels: Vec<&str> = queued
        .choices
        .iter()
        .map(|choice| choice.label.as_str())
        .collect();
    assert_eq!(
        (queued.text.as_str(), labels),
        ("Which?", vec!["Red", "Blue"])
    );
    let view = host
        .broker
        .sessions()
        .get(&UserId::local(), &target(), host.session, None)
        .await
        .unwrap();
    let OutboundMessageCause::Question { operation, .. } = queued.cause else {
        panic!("{:?}", queued.cause)
    };
    assert_eq!(view.asking[0].tool_call_id, operation);
}

#[tokio::test]
async fn a_turn_that_fails_tells_its_chat_a_sentence() {
    let host = Host::new().await;
    // Nothing is scripted: every step traps.
    arrive(&host, from("42"), "hi").await;
    host.ended().await;
    let reported = reported(&host).await;
    assert_eq!(reported.len(), 1);
    assert!(reported[0].1.starts_with("Sorry"), "{reported:?}");
}

#[tokio::test]
async fn an_agent_that_gives_up_says_why_in_the_chat() {
    let host = Host::new().await;
    let fails = Decision::Fail {
        reason: "the shop is closed".to_owned(),
    };
    host.guest.steps([with(fails, Vec::new())]);
    arrive(&host, from("42"), "hi").await;
    host.ended().await;
    let expected = to("42", "Sorry, that did not work: the shop is closed");
    assert_eq!(reported(&host).await, [expected]);
}

#[tokio::test]
async fn a_turn_that_is_cancelled_tells_nothing() {
    let host = Host::new().await;
    host.guest.steps([works([timer(60_000)], &[])]);
    arrive(&host, from("42"), "hi").await;
    host.stored("run.started", 1).await;
    assert!(host.cancel().await);
    host.ended().await;
    assert_eq!(reported(&host).await, []);
}

#[tokio::test]
async fn a_reminder_goes_on_in_the_chat_that_wrote_last() {
    let host = Host::new().await;
    let remind = Effect::Schedule {
        after_ms: 1_000,
        content: "look again".to_owned(),
    };
    host.guest
        .steps([with(reply("later"), vec![remind]), replies("now")]);
    arrive(&host, from("42"), "hi").await;
    host.stored("run.ended", 1).await;
    host.pass_ms(1_000);
    host.stored("run.ended", 2).await;
    assert_eq!(reported(&host).await, [to("42", "later"), to("42", "now")]);
}

#[tokio::test]
async fn a_heartbeat_that_finds_nothing_is_told_to_nobody() {
    let host = Host::new().await;
    host.guest
        .steps([replies("HEARTBEAT_OK"), replies("The disk is full.")]);
    arrive(&host, heartbeat("42"), "anything?").await;
    host.stored("run.ended", 1).await;
    assert_eq!(reported(&host).await, []);
    arrive(&host, heartbeat("42"), "anything?").await;
    host.stored("run.ended", 2).await;
    assert_eq!(reported(&host).await, [to("42", "The disk is full.")]);
}

#[tokio::test]
async fn a_run_knows_its_chat_after_a_crash() {
    let host = Host::new().await;
    host.guest
        .steps([works([timer(1_000)], &[]), replies("hello")]);
    arrive(&host, from("42"), "hi").await;
    host.stored("run.started", 1).await;
    let host = host.crash().await;
    host.pass_ms(1_000);
    host.ended().await;
    assert_eq!(reported(&host).await, [to("42", "hello")]);
}

/// Stores work that another session's run handed to a session, and waits for.
async fn hand_over(host: &Host, session: SessionId, reply_to: ReplyTo) {
    let time = host.broker.core.now();
    let source = json!({
        "kind": "dispatch", "reply_to": reply_to, "from": "puppet", "deadline": null, "depth": 1,
        "hops": 0, "priority": "normal",
    });
    let accepted = InputAccepted {
        user_id: UserId::local(),
        message: Some(Draft::text(Role::User, "agent:puppet", "do it")),
        ..InputAccepted::of(
            session,
            fresh::input(),
            serde_json::from_value(source).unwrap(),
            time,
        )
    };
    let event = Context::new("host", time).event(Event::InputAccepted(accepted));
    let commit = Commit::new().append(Stream::Session(session), Expected::Any, vec![event]);
    host.broker.core.store.commit(commit).await.unwrap();
    host.broker.core.wake(session);
}

#[tokio::test]
async fn a_question_of_an_agent_that_works_for_another_reaches_the_chat_of_that_one() {
    let host = Host::new().await;
    host.guest.steps([works([timer(60_000)], &[])]);
    arrive(&host, from("42"), "hi").await;
    host.stored("run.started", 1).await;
    let caller = host.broker.store().session(host.session).await.unwrap();
    let run = caller.unwrap().open_run.unwrap();
    let other = host.open().await;
    host.guest
        .steps([works([question()], &[]), replies("not for the chat")]);
    let reply_to = ReplyTo {
        run,
        operation: OperationId::mint(run, 0, "timer"),
        attached: true,
    };
    hand_over(&host, other, reply_to).await;
    let of_chat = route("42");
    let asked = async || {
        let chat = host
            .broker
            .store()
            .outbound_messages_of_chat(&of_chat, 0, 10);
        chat.await.unwrap().len() == 1
    };
    host.until("a question in the chat", asked).await;
    let chat = host
        .broker
        .store()
        .outbound_messages_of_chat(&of_chat, 0, 10);
    let question = chat.await.unwrap().swap_remove(0);
    let OutboundMessageCause::Question { session, .. } = question.cause else {
        panic!("{:?}", question.cause)
    };
    assert_eq!((session, question.text.as_str()), (other, "Which?"));
}

/// Queues so many messages into a chat that nobody sends.
async fn fill(host: &Host, chat: &str, count: usize) {
    let time = host.broker.core.now();
    let route = route(chat);
    let connector = ConnectorId::of_name(route.connector.as_str());
    let queued = (0..count).map(|number| {
        let cause = format!("test {number}");
        Event::OutboundMessageQueued(OutboundMessageQueued {
            connector: route.connector.clone(),
            outbound_message: OutboundMessageId::mint(connector, chat, &cause, 0),
            chat: chat.to_owned(),
            text: cause,
            choices: Vec::new(),
            without_buttons: None,
            cause: OutboundMessageCause::Test {
                user: UserId::local(),
            },
            time,
        })
    });
    let events = Context::new("host", time).events(queued);
    let commit = Commit::new().append(Stream::Connector(connector), Expected::Any, events);
    host.broker.core.store.commit(commit).await.unwrap();
}

#[tokio::test]
async fn a_reply_into_a_chat_that_is_full_is_given_up_where_an_operator_sees_it() {
    let host = Host::new().await;
    fill(&host, "42", CHAT_OUTBOUND_MESSAGES_MAX - 1).await;
    host.guest.steps([replies("fits"), replies("does not")]);
    arrive(&host, from("42"), "one").await;
    host.stored("run.ended", 1).await;
    arrive(&host, from("42"), "two").await;
    host.stored("run.ended", 2).await;
    assert_eq!(
        reported(&host).await,
        [to("42", "fits"), to("42", "does not")]
    );
    let settled = host.recorded("connector.outbound.settled").await;
    let [settled] = settled.as_slice() else {
        panic!("{settled:?}")
    };
    let Some(Event::OutboundMessageSettled(settled)) = &settled.event else {
        panic!("{settled:?}")
    };
    assert_eq!(
        settled.outbound_message,
        queued(&host).await[1].outbound_message
    );
    assert!(matches!(
        settled.outcome,
        OutboundMessageOutcome::Dead { .. }
    ));
}

#[test]
fn of_messages_that_are_put_aside_each_chat_hears_once() {
    let time = Timestamp(1);
    let input = |chat: &str| InputAccepted {
        user_id: UserId::local(),
        message: Some(Draft::text(Role::User, "connector:telegram", "hi")),
        ..InputAccepted::of(SessionId(Uuid::nil()), fresh::input(), from(chat), time)
    };
    let mut commit = Commit::new();
    let dead = [input("1"), input("2"), input("1")];
    tell_of_dead(&mut commit, &dead, &Context::new("host", time));
    let [append] = commit.appends.as_slice() else {
        panic!("one stream: {commit:?}")
    };
    assert_eq!(append.events.len(), 2, "{append:?}");
}
