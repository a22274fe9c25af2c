//! Threads: walking the tree of turns, and reading messages along it.

use super::sample::{Sample, agent, message, opened, run, session, take_turn};
use crate::EventFilter;
use domain::event::Event;
use domain::id::Stream;
use domain::message::Role;

const TURNS: u128 = 60;

#[tokio::test]
async fn messages_are_found_along_a_thread_and_not_beside_it() {
    let sample = Sample::begun().await;
    let mut turns = vec![take_turn(&sample.store, 1, None, 1, "user 1", "assistant 1").await];
    for n in 2..=TURNS {
        let turn = take_turn(
            &sample.store,
            1,
            turns.last(),
            n,
            &format!("user {n}"),
            &format!("assistant {n}"),
        )
        .await;
        turns.push(turn);
    }
    let head = turns.last().unwrap().id;
    let fork_at = &turns[19];
    sample.in_session(2, [opened(2, 1, Some(fork_at.id))]).await;
    let fork = take_turn(
        &sample.store,
        2,
        Some(fork_at),
        500,
        "user of the fork",
        "assistant of the fork",
    )
    .await;

    for turn in &turns {
        assert_eq!(
            sample
                .turn_at(head, turn.first_message)
                .await
                .unwrap()
                .as_ref(),
            Some(turn)
        );
        assert_eq!(
            sample
                .turn_at(head, turn.last_message)
                .await
                .unwrap()
                .as_ref(),
            Some(turn)
        );
        assert_eq!(turn.compute_id(), turn.id);
    }
    let last = u64::try_from(TURNS * 2).unwrap();
    assert_eq!(sample.turn_at(head, last + 1).await.unwrap(), None);
    assert_eq!(
        sample.turn_at(fork.id, 42).await.unwrap(),
        Some(fork.clone())
    );

    let all = sample.messages(Some(head), 1, u64::MAX).await.unwrap();
    assert_eq!(
        all.iter().map(|message| message.id).collect::<Vec<_>>(),
        (1..=last).collect::<Vec<_>>()
    );
    let some = sample.messages(Some(head), 40, 43).await.unwrap();
    assert_eq!(
        some.iter()
            .map(|message| message.text())
            .collect::<Vec<_>>(),
        ["assistant 20", "user 21", "assistant 21", "user 22"]
    );
    let forked = sample.messages(Some(fork.id), 40, 43).await.unwrap();
    assert_eq!(
        forked
            .iter()
            .map(|message| message.text())
            .collect::<Vec<_>>(),
        ["assistant 20", "user of the fork", "assistant of the fork"]
    );
    assert_eq!(
        sample.message(Some(head), 3).await.unwrap(),
        Some(message(3, Role::User, "user 2"))
    );
    assert_eq!(sample.message(None, 3).await.unwrap(), None);
    assert!(
        sample
            .messages(Some(head), 50, 40)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(sample.run_messages(run(500)).await.unwrap().len(), 2);
    assert!(matches!(
        sample
            .jump_for(domain::id::TurnId(domain::digest::Digest([7; 32])))
            .await,
        Err(crate::ReadError::Missing { .. })
    ));
}

#[tokio::test]
async fn events_are_filtered_by_whom_they_are_about() {
    let sample = Sample::begun().await;
    take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    let wanted = |filter| sample.events(0, filter, 100);
    let of_session = wanted(EventFilter {
        session: Some(session(1)),
        ..EventFilter::default()
    })
    .await
    .unwrap();
    assert!(
        of_session
            .iter()
            .any(|event| matches!(event.event, Some(Event::InputAccepted(_))))
    );
    assert!(
        of_session
            .iter()
            .all(|event| event.subject.session == Some(session(1)))
    );
    let of_run = wanted(EventFilter {
        run: Some(run(1)),
        ..EventFilter::default()
    })
    .await
    .unwrap();
    assert_eq!(
        of_run
            .iter()
            .map(|event| event.kind.as_str())
            .collect::<Vec<_>>(),
        ["run.started.v1"]
    );
    assert!(
        wanted(EventFilter {
            run: Some(run(2)),
            ..EventFilter::default()
        })
        .await
        .unwrap()
        .is_empty()
    );
    let of_agent = wanted(EventFilter {
        agent: Some(agent(1)),
        ..EventFilter::default()
    })
    .await
    .unwrap();
    assert_eq!(of_agent.len(), 3);
    let of_stream = wanted(EventFilter {
        stream: Some(Stream::Run(run(1))),
        ..EventFilter::default()
    })
    .await
    .unwrap();
    assert_eq!(of_stream.len(), 3);
    let none = wanted(EventFilter {
        stream: Some(Stream::Run(run(1))),
        session: Some(session(2)),
        ..EventFilter::default()
    })
    .await
    .unwrap();
    assert!(none.is_empty());
    assert_eq!(
        sample
            .events(2, EventFilter::default(), 2)
            .await
            .unwrap()
            .iter()
            .map(|event| event.position)
            .collect::<Vec<_>>(),
        [3, 4]
    );
}
