//! More messages to one session than can be handled: limits hold, nothing is lost, and others are
//! served meanwhile.

use super::{asking, heard, post};
use agent_host_tests::{Setup, World};
use broker::{Error, PostMessage};
use domain::event::Event;
use domain::limits::WAITING_INPUTS_MAX;
use domain::user::UserId;
use futures::StreamExt;
use std::collections::BTreeSet;
use store::EventFilter;

/// Messages to the one session.
const STORM: usize = 10_000;
/// Messages of these that are under way at a time.
const AT_ONCE: usize = 128;
/// The same request, so many times.
const DUPLICATES: usize = 1_000;

/// Ten thousand messages to one session leave a thousand waiting. The rest is refused, and another
/// session is served.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_messages_to_one_session_leave_a_thousand_waiting_and_others_served() {
    let world = World::new(Setup::default()).await;
    let (session, call) = asking(&world).await;
    let bob: UserId = "bob".parse().unwrap();
    let other = world.open_for(&bob, "assistant").await;
    let mut accepted = BTreeSet::new();
    for round in 0..10 {
        let storm = (0..STORM / 10).map(|number| {
            let text = format!("<{}>", round * STORM / 10 + number);
            let message = world.message("puppet", session, &text, None);
            async { (text, world.broker.messages().post(message).await) }
        });
        // While the storm goes on, another user's words get their turn.
        let served = async {
            let message = PostMessage {
                user: bob.clone(),
                ..world.message("assistant", other, "hello", None)
            };
            world.broker.messages().post(message).await.unwrap();
            world.idle(other).await;
        };
        let (outcome, ()) = tokio::join!(
            futures::stream::iter(storm)
                .buffer_unordered(AT_ONCE)
                .collect::<Vec<_>>(),
            served
        );
        for (text, outcome) in outcome {
            match outcome {
                Ok(_) => assert!(accepted.insert(text)),
                Err(Error::Refused(refusal)) => assert_eq!(refusal.code, "BUSY"),
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    assert_eq!(accepted.len(), WAITING_INPUTS_MAX);
    let turns = world
        .messages(other)
        .await
        .iter()
        .filter(|message| message.role == domain::message::Role::Assistant)
        .count();
    assert_eq!(turns, 10);
    world.confirm("puppet", call).await;
    world.idle(session).await;
    let said: Vec<String> = heard(&world, session).await;
    assert_eq!(said.len(), WAITING_INPUTS_MAX, "none is said twice");
    assert_eq!(said.into_iter().collect::<BTreeSet<String>>(), accepted);
}

/// A thousand duplicates at the same time are one event in every mode, and all are answered alike.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_duplicates_at_once_are_one_event_in_every_mode_and_answered_alike() {
    let world = World::new(Setup::default()).await;
    for mode in ["steer", "collect", "followup cap:1 drop:new"] {
        let (session, _) = asking(&world).await;
        let messages = world.broker.messages();
        let same = || {
            let message = PostMessage {
                queue: super::said(mode),
                ..world.message("puppet", session, "again", Some(mode))
            };
            messages.post(message)
        };
        let outcome = futures::future::join_all((0..DUPLICATES).map(|_| same())).await;
        let inputs: BTreeSet<_> = outcome
            .into_iter()
            .map(|outcome| outcome.unwrap().input)
            .collect();
        assert_eq!(inputs.len(), 1, "{mode}");
        let filter = EventFilter {
            session: Some(session),
            ..EventFilter::default()
        };
        let events = world.store().events(0, filter, 10_000).await.unwrap();
        let accepted = events
            .iter()
            .filter(|recorded| matches!(recorded.event, Some(Event::InputAccepted(_))))
            .count();
        assert_eq!(accepted, 2, "{mode}: the script and one more");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_queued_without_passing_the_cap_or_losing_one_unseen() {
    let world = World::new(Setup::default()).await;
    let (session, call) = asking(&world).await;
    let posts = (0..200).map(|number| {
        let text = format!("<{number}>");
        let world = &world;
        async move {
            post(
                world,
                "puppet",
                session,
                &text,
                "collect debounce:0 cap:20 drop:old",
            )
            .await
            .unwrap()
        }
    });
    let receipts = futures::future::join_all(posts).await;
    let dropped: BTreeSet<_> = receipts
        .iter()
        .flat_map(|receipt| receipt.dropped.iter().copied())
        .collect();
    let row = world.row(session).await;
    assert_eq!(
        (dropped.len(), row.waiting, row.overflow.dropped()),
        (180, 20, 180)
    );
    world.confirm("puppet", call).await;
    world.idle(session).await;
    let said = heard(&world, session).await;
    assert_eq!(said.len(), 1);
    assert!(
        said[0].contains("Dropped 180 messages due to cap.") && said[0].contains("Queued #20"),
        "{said:?}"
    );
}
