//! Messages of people outside: the rows that follow from their events, and reads of them.

use super::outside::{
    at, chat, delivered, from_chat, guarded, inbound_message, of_telegram, offered, polled, queued,
    queued_because, received, sending, settled_as, taken, telegram, trigger_event,
};
use super::projections::everything;
use super::sample::{
    Sample, accepted, ada, agent, begin, input, noise, run, run_started, session, take_turn,
};
use crate::{CommitError, ConnectorGuard, InboundMessageRow, OpenChat, SaidBefore};
use domain::event::{
    ConnectorTroubled, Event, InboundMessageOutcome, OutboundMessageCause, PairingSettled,
};
use domain::id::Stream;
use domain::path::ConnectorKey;
use domain::trouble::ServiceTrouble;
use std::collections::BTreeSet;

async fn is_rebuilt(sample: &Sample) {
    let before = everything(&sample.database());
    let rebuilt = sample.store.rebuild().await.unwrap();
    assert_eq!(rebuilt.replaced, Vec::new());
    assert_eq!(everything(&sample.database()), before);
    assert_eq!(sample.store.verify().await.unwrap().fault, None);
}

/// The service's ids of messages.
fn ids(rows: &[InboundMessageRow]) -> Vec<&str> {
    rows.iter().map(|row| row.message.id.as_str()).collect()
}

async fn open_chats(sample: &Sample, received_before_ms: u64) -> Vec<OpenChat> {
    let before = at(received_before_ms);
    let chats = sample.store.open_chats(before, 10, &BTreeSet::new()).await;
    chats.unwrap()
}

async fn holds(sample: &Sample, guard: ConnectorGuard) -> bool {
    match sample
        .store
        .commit(guarded(guard, Stream::Host, noise(1)))
        .await
    {
        Ok(_) => true,
        Err(CommitError::Conflict(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn messages_are_open_by_chat_until_they_are_settled() {
    let sample = Sample::new();
    let some = vec![
        received(inbound_message(1, "a", "one"), 1),
        received(inbound_message(2, "b", "two"), 1),
        received(inbound_message(3, "a", "three"), 1),
        polled("c1", 1),
        received(inbound_message(4, "a", "four"), 4),
    ];
    sample.append(of_telegram(), some).await;
    let intake = sample.store.connector(&telegram()).await.unwrap().unwrap();
    assert_eq!(
        (intake.cursor.as_deref(), intake.last_received),
        (Some("c1"), Some(at(4)))
    );
    assert_eq!((intake.version, intake.trouble), (5, None));
    let open = sample
        .store
        .open_inbound_messages(&telegram(), 10)
        .await
        .unwrap();
    assert_eq!(
        ids(&open),
        ["message-1", "message-2", "message-3", "message-4"]
    );
    let chats = open_chats(&sample, 1).await;
    let mut counts: Vec<_> = chats
        .iter()
        .map(|it| (it.chat.as_str(), it.count))
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [("a", 3), ("b", 1)]);
    assert_eq!(open_chats(&sample, 0).await, []);
    let without = BTreeSet::from([telegram()]);
    let others = sample.store.open_chats(at(9), 10, &without).await;
    assert_eq!(others.unwrap(), []);

    sample.append(of_telegram(), vec![taken(&[1, 3], 1)]).await;
    let ignored = settled_as(&[2], InboundMessageOutcome::Ignored);
    sample.append(of_telegram(), vec![ignored]).await;
    let chats = open_chats(&sample, 9).await;
    assert_eq!(
        chats
            .iter()
            .map(|it| (it.chat.as_str(), it.first))
            .collect::<Vec<_>>(),
        [("a", at(4))]
    );
    assert_eq!(
        sample.store.next_open_chat_after(at(1)).await.unwrap(),
        Some(at(4))
    );
    let open = sample
        .store
        .open_inbound_messages_in(&chat("a"), 10)
        .await
        .unwrap();
    assert_eq!(ids(&open), ["message-4"]);
    assert_eq!(
        sample
            .store
            .open_inbound_messages_count(&telegram())
            .await
            .unwrap(),
        1
    );
    let settled = sample
        .store
        .inbound_message(trigger_event(1))
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(
        settled.outcome,
        Some(InboundMessageOutcome::Accepted { .. })
    ));
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn what_a_clock_set_back_brings_comes_before_what_is_open() {
    let sample = Sample::new();
    for (n, ms) in [(1, 100), (2, 50), (3, 60)] {
        let some = vec![
            received(inbound_message(n, "a", "x"), ms),
            received(inbound_message(n + 10, "a", "y"), ms),
        ];
        sample.append(of_telegram(), some).await;
    }
    let open = sample
        .store
        .open_inbound_messages_in(&chat("a"), 10)
        .await
        .unwrap();
    assert_eq!(
        ids(&open),
        [
            "message-2",
            "message-12",
            "message-3",
            "message-13",
            "message-1",
            "message-11"
        ]
    );
    let chats = open_chats(&sample, 1_000).await;
    assert_eq!(chats.len(), 1);
    assert_eq!(chats[0].first, at(50));
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn an_agent_takes_part_in_a_chat_that_it_heard_lately_or_spoke_in() {
    let sample = Sample::new();
    let all = vec![
        received(inbound_message(1, "a", "one"), 100),
        received(inbound_message(2, "b", "two"), 100),
        received(inbound_message(3, "d", "three"), 100),
        taken(&[1], 1),
        settled_as(&[2], InboundMessageOutcome::Ignored),
        queued(1, "c", 1, "hi"),
    ];
    sample.append(of_telegram(), all).await;
    let takes_part = async |name: &str, since| {
        let chat = chat(name);
        sample.store.takes_part(&chat, at(since)).await.unwrap()
    };
    assert!(takes_part("a", 100).await);
    assert!(!takes_part("a", 101).await);
    // What was said for a session counts for ever, and what is not settled yet is heard.
    assert!(takes_part("c", 1_000).await);
    assert!(takes_part("d", 100).await);
    assert!(!takes_part("b", 0).await);
    assert!(!takes_part("e", 0).await);
}

#[tokio::test]
async fn what_a_message_of_a_chat_said_is_found_by_the_services_id() {
    let sample = Sample::new();
    let arrived = received(inbound_message(1, "a", "one"), 1);
    let said = queued(1, "a", 1, "hello");
    let all = vec![arrived, said, sending(1, 1, 0), delivered(1)];
    sample.append(of_telegram(), all).await;
    let found = async |name: &str, id: &str| {
        let found = sample.store.said_before(&chat(name), id).await.unwrap();
        found.map(|found| match found {
            SaidBefore::Sent(sent) => sent.text,
            SaidBefore::Arrived(message) => message.said_words().unwrap(),
        })
    };
    assert_eq!(found("a", "s1").await.as_deref(), Some("hello"));
    assert_eq!(found("a", "message-1").await.as_deref(), Some("one"));
    // No chat tells what was said in another one.
    assert_eq!(found("b", "s1").await, None);
    assert_eq!(found("b", "message-1").await, None);
    assert_eq!(found("a", "s").await, None);
}

#[tokio::test]
async fn what_was_sent_is_trusted_as_the_turn_that_said_it() {
    let sample = Sample::new();
    begin(&sample).await;
    take_turn(&sample.store, 1, None, 1, "hello", "hi").await;
    let of_host = OutboundMessageCause::Host {
        inbound_message: trigger_event(1),
    };
    let all = vec![
        queued(1, "a", 1, "of a turn without a mark"),
        queued(2, "a", 2, "of a turn that nobody knows any more"),
        queued_because(3, "a", of_host, "of the host"),
        delivered(1),
        delivered(2),
        delivered(3),
    ];
    sample.append(of_telegram(), all).await;
    let marked = async |id: &str| match sample.store.said_before(&chat("a"), id).await.unwrap() {
        Some(SaidBefore::Sent(sent)) => sent.untrusted,
        other => panic!("{other:?}"),
    };
    assert!(!marked("s1").await);
    assert!(marked("s2").await);
    assert!(!marked("s3").await);
}

#[tokio::test]
async fn a_message_is_found_below_the_chat_whose_name_its_own_begins_with() {
    let sample = Sample::new();
    let all = vec![
        queued(1, "C1/7.0", 1, "in a thread"),
        queued(2, "C10", 1, "elsewhere"),
        queued(3, "C1", 1, "in the channel"),
        delivered(1),
        delivered(2),
        delivered(3),
    ];
    sample.append(of_telegram(), all).await;
    let below = async |name: &str, id: &str| {
        let found = sample.store.sent_below(&chat(name), id).await;
        found.unwrap()
    };
    assert_eq!(below("C1", "s1").await.as_deref(), Some("C1/7.0"));
    assert_eq!(below("C1", "s3").await.as_deref(), Some("C1"));
    assert_eq!(below("C1", "s2").await, None);
    assert_eq!(below("C", "s3").await, None);
    assert_eq!(below("C1", "s").await, None);
}

#[tokio::test]
async fn a_message_has_arrived_before_for_as_long_as_is_asked() {
    let sample = Sample::new();
    let some = vec![received(inbound_message(1, "a", "one"), 100)];
    sample.append(of_telegram(), some).await;
    let asked = ["message-1".to_owned(), "message-2".to_owned()];
    let name = telegram();
    let before = |since| sample.store.arrived_before(&name, &asked, at(since));
    assert_eq!(before(100).await.unwrap(), ["message-1"]);
    assert_eq!(before(101).await.unwrap(), [] as [&str; 0]);
    let other = "slack".parse().unwrap();
    let of_other = sample.store.arrived_before(&other, &asked, at(0)).await;
    assert_eq!(of_other.unwrap(), [] as [&str; 0]);
    let not_arrived = |message: &str, since| ConnectorGuard::NotArrived {
        connector: telegram(),
        message: message.to_owned(),
        since: at(since),
    };
    let cursor = |cursor: Option<&str>| ConnectorGuard::CursorIs {
        connector: telegram(),
        cursor: cursor.map(str::to_owned),
    };
    let open = ConnectorGuard::InboundMessageOpen {
        connector: telegram(),
        inbound_message: trigger_event(1),
    };
    assert!(!holds(&sample, not_arrived("message-1", 100)).await);
    assert!(holds(&sample, not_arrived("message-1", 101)).await);
    assert!(holds(&sample, not_arrived("message-2", 0)).await);
    assert!(holds(&sample, cursor(None)).await);
    assert!(holds(&sample, open.clone()).await);
    sample.append(of_telegram(), vec![polled("c", 200)]).await;
    sample.append(of_telegram(), vec![taken(&[1], 1)]).await;
    assert!(!holds(&sample, cursor(None)).await);
    assert!(holds(&sample, cursor(Some("c"))).await);
    assert!(!holds(&sample, open).await);
}

#[tokio::test]
async fn replies_go_to_the_chat_of_the_latest_message_from_outside() {
    let sample = Sample::new();
    begin(&sample).await;
    let stream = Stream::Session(session(1));
    let route = || sample.store.reply_route(session(1));
    assert_eq!(route().await.unwrap(), None);
    for (n, source) in [(1, from_chat("a")), (2, from_chat("b"))] {
        sample
            .append(stream, vec![accepted(n, 1, source, "x")])
            .await;
    }
    let api = accepted(3, 1, domain::event::Source::Api, "x");
    sample.append(stream, vec![api]).await;
    assert_eq!(route().await.unwrap(), Some(chat("b")));
    let row = sample.store.session(session(1)).await.unwrap().unwrap();
    let last = sample.store.last_reply_route(&row.user_id, agent(1)).await;
    assert_eq!(last.unwrap(), Some(chat("b")));
    let nobody = sample.store.last_reply_route(&ada(), agent(2)).await;
    assert_eq!(nobody.unwrap(), None);
    sample
        .append(
            Stream::Run(run(1)),
            vec![run_started(run(1), 1, None, vec![input(1)])],
        )
        .await;
    let of_run = sample.store.reply_route_of_run(run(1)).await.unwrap();
    assert_eq!(of_run, Some(chat("a")));
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn pairing_codes_count_until_they_expire_or_are_settled() {
    let sample = Sample::new();
    let all = vec![
        offered("telegram:1", "AA", 0),
        offered("telegram:2", "BB", 50),
    ];
    sample.append(of_telegram(), all).await;
    let by_code = |code, now| sample.store.pairing(code, at(now));
    assert_eq!(by_code("AA", 99).await.unwrap().unwrap().chat, "a");
    assert_eq!(by_code("AA", 100).await.unwrap(), None);
    let of_all = sample.store.pairings(None, at(99), 10).await.unwrap();
    assert_eq!(of_all.len(), 2);
    let expired = sample.store.expired_pairings(at(100), 10).await.unwrap();
    assert_eq!(expired.len(), 1);
    let one: ConnectorKey = "telegram:1".parse().unwrap();
    let is = |code: Option<&str>| ConnectorGuard::PairingIs {
        key: one.clone(),
        code: code.map(str::to_owned),
    };
    assert!(holds(&sample, is(Some("AA"))).await);
    assert!(!holds(&sample, is(None)).await);
    // A later offer takes those along that have expired.
    sample
        .append(of_telegram(), vec![offered("telegram:3", "CC", 100)])
        .await;
    assert_eq!(sample.store.pairing_of(&one).await.unwrap(), None);
    assert!(holds(&sample, is(None)).await);
    let settled = Event::PairingSettled(PairingSettled {
        key: "telegram:2".parse().unwrap(),
        user: Some(ada()),
        time: at(110),
    });
    sample.append(of_telegram(), vec![settled]).await;
    let count = sample.store.pairing_count(&telegram(), at(110)).await;
    assert_eq!(count.unwrap(), 1);
    let of_telegram = sample.store.pairings(Some(&telegram()), at(110), 10).await;
    assert_eq!(of_telegram.unwrap()[0].code, "CC");
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn the_trouble_of_a_connector_is_what_was_told_last() {
    let sample = Sample::new();
    let reported = |trouble, ms| {
        Event::ConnectorTroubled(ConnectorTroubled {
            connector: telegram(),
            trouble,
            time: at(ms),
        })
    };
    let reason = || "down".to_owned();
    let failing = ServiceTrouble::Failing { reason: reason() };
    let revoked = ServiceTrouble::Unauthorised { reason: reason() };
    sample
        .append(
            of_telegram(),
            vec![reported(failing, 1), reported(revoked.clone(), 2)],
        )
        .await;
    let intake = sample.store.connector(&telegram()).await.unwrap().unwrap();
    assert_eq!(intake.trouble, Some((revoked, at(2))));
    assert_eq!((intake.cursor, intake.last_received), (None, None));
    let never = "slack".parse().unwrap();
    assert_eq!(sample.store.connector(&never).await.unwrap(), None);
    is_rebuilt(&sample).await;
}

#[tokio::test]
async fn a_note_of_the_edge_stays_over_a_rebuild() {
    let sample = Sample::new();
    assert_eq!(sample.store.edge_note("seen").await.unwrap(), None);
    for value in ["1", "2"] {
        let noted = sample.store.set_edge_note("seen", value.to_owned()).await;
        noted.unwrap();
    }
    sample.store.rebuild().await.unwrap();
    let noted = sample.store.edge_note("seen").await.unwrap();
    assert_eq!(noted.as_deref(), Some("2"));
}
