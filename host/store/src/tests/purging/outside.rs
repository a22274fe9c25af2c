//! Purges of what came from outside to a session, of what was sent there of it, and of the triggers
//! of an agent.

use super::super::outside::{
    at, called, chat, defined, delivered, due, failed, failed_with, fired, fired_keeping,
    from_chat, inbound_message, made_by, of_telegram, of_trigger, outbound_message, polled, posted,
    queued, received, sending, sent, source_of, taken, telegram, trigger, trigger_event,
};
use super::super::projections::everything;
use super::super::sample::{Sample, accepted, agent, begin, opened, session};
use super::{MARK, begun, deleted, erase_all, holders, is_sound, purged};
use crate::{CommitError, EventFilter, PurgeItem};
use domain::event::{Event, InboundMessageOutcome, OutboundMessageOutcome, TriggerRemoved};
use domain::id::Stream;
use domain::trigger::TriggerState;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Two sessions of one agent.
async fn two_sessions() -> Sample {
    let sample = Sample::new();
    begin(&sample).await;
    sample
        .append(Stream::Session(session(2)), vec![opened(2, 1, None)])
        .await;
    sample
}

async fn rows(sample: &Sample, table: &str) -> usize {
    everything(&sample.database())
        .iter()
        .filter(|row| row.starts_with(&format!("{table}: ")))
        .count()
}

#[tokio::test]
async fn trigger_events_that_led_to_a_session_go_and_their_trigger_goes_on() {
    let sample = two_sessions().await;
    sample
        .append(
            of_trigger(1),
            vec![
                defined(1, 100),
                called(1, 1, MARK),
                failed_with(MARK, 1, 1, Some(2)),
                fired(1, 1, &[MARK]),
                posted(1, 1, &[1]),
                called(1, 2, "of another"),
                fired(1, 2, &["of another"]),
                posted(1, 2, &[2]),
                due(1, 3, 100),
                fired_keeping(1, 3, MARK, b"kept"),
                posted(1, 3, &[1, 2]),
                called(1, 4, "waits"),
                failed(1, 4, Some(50)),
            ],
        )
        .await;
    sample
        .append(
            Stream::Session(session(1)),
            vec![accepted(1, 1, source_of(1, 1), MARK)],
        )
        .await;
    let before = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    purged(&sample, 1).await;
    assert_eq!(holders(sample.dir.path(), MARK), Vec::<PathBuf>::new());
    let after = sample.store.trigger(&trigger(1)).await.unwrap().unwrap();
    assert_eq!(
        (after.next_due, &after.state, after.failures),
        (before.next_due, &before.state, before.failures)
    );
    assert_eq!(
        after.state,
        Some(TriggerState {
            format: 1,
            bytes: b"kept".to_vec()
        })
    );
    assert_eq!(after.failures.in_a_row, 1);
    for (of, stays) in [(1, false), (2, true), (3, false), (4, true)] {
        let row = sample.store.trigger_event(trigger_event(of)).await.unwrap();
        assert_eq!(row.is_some(), stays, "{of}");
    }
    let history = sample.store.trigger_events_of(&trigger(1), None, 10).await;
    assert_eq!(history.unwrap().len(), 2);
    assert_eq!(rows(&sample, "trigger_event_sessions").await, 1);
    is_sound(&sample).await;
    // It goes on from there.
    sample
        .append(of_trigger(1), vec![fired(1, 4, &["x"]), posted(1, 4, &[2])])
        .await;
    is_sound(&sample).await;
}

#[tokio::test]
async fn a_purge_waits_for_a_trigger_event_that_is_not_dealt_with() {
    let sample = two_sessions().await;
    let opening = vec![
        defined(1, 100),
        called(1, 1, MARK),
        fired(1, 1, &[MARK, "x"]),
    ];
    sample.append(of_trigger(1), opening).await;
    let stream = Stream::Session(session(1));
    let events = vec![accepted(1, 1, source_of(1, 1), MARK), deleted(1)];
    sample.append(stream, events).await;
    begun(&sample.store, 1).await;
    let item = PurgeItem::Outside(session(1));
    let resting = sample.store.erase(stream, item.clone(), 0).await;
    assert!(matches!(resting, Err(CommitError::Busy)), "{resting:?}");
    sample
        .append(of_trigger(1), vec![posted(1, 1, &[1, 2])])
        .await;
    erase_all(&sample.store, stream, item).await;
    assert_eq!(
        sample.store.trigger_event(trigger_event(1)).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn messages_for_a_session_go_and_those_that_came_with_them_stay() {
    let sample = two_sessions().await;
    sample
        .append(
            of_telegram(),
            vec![
                received(inbound_message(1, "a", MARK), 1),
                received(inbound_message(2, "b", "of another"), 1),
                received(inbound_message(3, "b", "not settled"), 1),
                received(inbound_message(4, "c", "of nobody"), 1),
                polled("cursor", 1),
                received(inbound_message(5, "a", MARK), 2),
                taken(&[1, 5], 1),
                taken(&[2], 2),
            ],
        )
        .await;
    let ignored = super::super::outside::settled_as(&[4], InboundMessageOutcome::Ignored);
    sample.append(of_telegram(), vec![ignored]).await;
    sample
        .append(
            Stream::Session(session(1)),
            vec![accepted(1, 1, from_chat("a"), MARK)],
        )
        .await;
    purged(&sample, 1).await;
    assert_eq!(holders(sample.dir.path(), MARK), Vec::<PathBuf>::new());
    let intake = sample.store.connector(&telegram()).await.unwrap().unwrap();
    assert_eq!(intake.cursor.as_deref(), Some("cursor"));
    for (n, text) in [(2, "of another"), (3, "not settled"), (4, "of nobody")] {
        let row = sample
            .store
            .inbound_message(trigger_event(n))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(row.message.said_words().as_deref(), Some(text));
        assert_eq!((row.outcome.is_none(), row.received), (n == 3, at(1)));
    }
    for n in [1, 5] {
        assert_eq!(
            sample
                .store
                .inbound_message(trigger_event(n))
                .await
                .unwrap(),
            None
        );
    }
    let open = sample
        .store
        .open_inbound_messages(&telegram(), 10)
        .await
        .unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(sample.store.reply_route(session(1)).await.unwrap(), None);
    is_sound(&sample).await;
    // The other session is purged as well.
    purged(&sample, 2).await;
    assert_eq!(
        holders(sample.dir.path(), "of another"),
        Vec::<PathBuf>::new()
    );
    let open = sample
        .store
        .open_inbound_messages(&telegram(), 10)
        .await
        .unwrap();
    assert_eq!(open.len(), 1);
    is_sound(&sample).await;
}

#[tokio::test]
async fn what_a_session_sent_goes_and_its_chat_goes_on() {
    let sample = two_sessions().await;
    let reason = || format!("no room for a {MARK}");
    sample
        .append(
            of_telegram(),
            vec![
                queued(1, "a", 1, MARK),
                sending(1, 1, 0),
                sent(1, OutboundMessageOutcome::Dead { reason: reason() }),
                queued(2, "a", 1, MARK),
                queued(3, "a", 2, "of another"),
                sending(2, 1, 0),
                sent(
                    2,
                    OutboundMessageOutcome::Failed {
                        reason: reason(),
                        retry_at: at(900),
                    },
                ),
            ],
        )
        .await;
    assert_eq!(
        sample
            .store
            .due_outbound_messages(at(20), 10, &BTreeSet::new())
            .await
            .unwrap(),
        []
    );
    purged(&sample, 1).await;
    assert_eq!(holders(sample.dir.path(), MARK), Vec::<PathBuf>::new());
    let due = sample
        .store
        .due_outbound_messages(at(20), 10, &BTreeSet::new())
        .await
        .unwrap();
    assert_eq!(due.len(), 1);
    assert_eq!(
        (due[0].outbound_message, due[0].text.as_str()),
        (outbound_message(3), "of another")
    );
    let of_chat = sample
        .store
        .outbound_messages_of_chat(&chat("a"), 0, 10)
        .await;
    assert_eq!(of_chat.unwrap().len(), 1);
    is_sound(&sample).await;
    sample
        .append(of_telegram(), vec![sending(3, 1, 0), delivered(3)])
        .await;
    is_sound(&sample).await;
}

#[tokio::test]
async fn a_purge_of_much_from_outside_comes_to_its_end() {
    let sample = two_sessions().await;
    let of_one = |n: u32| {
        vec![
            called(1, u128::from(n), MARK),
            fired(1, u128::from(n), &[MARK]),
            posted(1, u128::from(n), &[1]),
        ]
    };
    let all: Vec<Event> = (1..=150).flat_map(of_one).collect();
    sample.append(of_trigger(1), vec![defined(1, 100)]).await;
    sample.append(of_trigger(1), all).await;
    let sends = (1..=150).map(|n| queued(n, "a", 1, MARK));
    sample.append(of_telegram(), sends).await;
    let ended = (201..=350).map(|n| received(inbound_message(n, "a", MARK), 1));
    sample.append(of_telegram(), ended).await;
    let numbers: Vec<u128> = (201..=350).collect();
    sample.append(of_telegram(), vec![taken(&numbers, 1)]).await;
    purged(&sample, 1).await;
    assert_eq!(holders(sample.dir.path(), MARK), Vec::<PathBuf>::new());
    for table in ["trigger_events", "inbound_messages", "outbound_messages"] {
        assert_eq!(rows(&sample, table).await, 0, "{table}");
    }
    is_sound(&sample).await;
}

#[tokio::test]
async fn the_triggers_of_an_agent_go_with_it_also_those_that_are_gone() {
    let sample = two_sessions().await;
    let removed = Event::TriggerRemoved(TriggerRemoved {
        name: trigger(2),
        by: None,
        time: at(5),
    });
    let waiting: Vec<Event> = (1..=300).map(|of| called(1, of, MARK)).collect();
    let first = [vec![made_by(1, 1)], waiting].concat();
    sample.append(of_trigger(1), first).await;
    sample
        .append(of_trigger(2), vec![made_by(2, 1), removed])
        .await;
    sample.append(of_trigger(3), vec![defined(3, 100)]).await;
    let made = sample.store.triggers_made_by(agent(1), 10).await.unwrap();
    assert_eq!(made.len(), 1);
    let purge = Stream::Agent(agent(1));
    erase_all(&sample.store, purge, PurgeItem::Agent(agent(1))).await;
    for n in [1, 2] {
        assert_eq!(sample.store.trigger(&trigger(n)).await.unwrap(), None);
    }
    assert!(sample.store.trigger(&trigger(3)).await.unwrap().is_some());
    assert_eq!(rows(&sample, "trigger_events").await, 0);
    assert_eq!(rows(&sample, "trigger_makers").await, 0);
    for (n, stays) in [(1, false), (2, false), (3, true)] {
        let filter = EventFilter {
            stream: Some(of_trigger(n)),
            ..EventFilter::default()
        };
        let events = sample.store.events(0, filter, 1_000).await.unwrap();
        assert!(!events.is_empty());
        assert!(events.iter().all(|it| it.event.is_some() == stays), "{n}");
    }
}
