//! Erasure of what is stored of people whom nobody knows.

use super::super::outside::{
    at, chat, delivered, inbound_message, of_telegram, outbound_message, polled, queued,
    queued_because, received, sending, settled_as, taken, telegram, trigger_event,
};
use super::super::sample::{NOON, Sample, ada, begin, new};
use super::{MARK, holders, is_sound};
use crate::{Commit, Expected, Rewritten};
use domain::event::{
    Event, InboundMessageOutcome, OutboundMessageCause, PairingOffered, PairingSettled,
};
use domain::time::Timestamp;
use domain::user::UserId;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A person who is known to nobody, or was not before, by their chat.
const NOBODY: &str = "xylophonist-8";

/// Somebody got a pairing code, whose name and chat are the mark.
fn offered(chat: &str, code: &str) -> Event {
    Event::PairingOffered(PairingOffered {
        key: format!("telegram:{chat}").parse().unwrap(),
        name: Some(format!("The {MARK}")),
        chat: chat.to_owned(),
        code: code.to_owned(),
        expires: at(100),
        time: NOON,
    })
}

fn settled(chat: &str, user: Option<UserId>) -> Event {
    Event::PairingSettled(PairingSettled {
        key: format!("telegram:{chat}").parse().unwrap(),
        user,
        time: at(100),
    })
}

/// The host's words that answer an inbound message.
fn reported(n: u32, to: &str, of: u128) -> Event {
    let inbound_message = trigger_event(of);
    queued_because(
        n,
        to,
        OutboundMessageCause::Host { inbound_message },
        "This is your code.",
    )
}

/// Stores events of this time.
async fn append_at(sample: &Sample, events: Vec<Event>, time: Timestamp) {
    let events = events.into_iter().map(|event| {
        let mut event = new(event);
        event.time = time;
        event
    });
    let commit = Commit::new().append(of_telegram(), Expected::Any, events.collect());
    sample.store.commit(commit).await.unwrap();
}

/// Everything that is stored of an unknown sender who got a code, before it is settled.
fn of_unknown_sender(chat: &str, n: u32) -> Vec<Event> {
    vec![
        received(inbound_message(u128::from(n), chat, ""), 1),
        settled_as(&[u128::from(n)], InboundMessageOutcome::Paired),
        offered(chat, &format!("CODE{n}")),
        reported(n, chat, u128::from(n)),
        sending(n, 1, 0),
        delivered(n),
    ]
}

/// Returns the kinds of the events of the connector that have their content.
async fn left(sample: &Sample) -> Vec<String> {
    let recorded = sample.store.stream(of_telegram(), 0, 1_000).await.unwrap();
    let left = recorded.into_iter().filter(|it| it.event.is_some());
    left.map(|it| it.kind).collect()
}

#[tokio::test]
async fn a_settled_pairing_and_what_else_is_of_a_stranger_goes_after_a_time() {
    let sample = Sample::new();
    begin(&sample).await;
    append_at(&sample, of_unknown_sender(NOBODY, 1), NOON).await;
    append_at(&sample, vec![settled(NOBODY, None)], at(10)).await;
    let erased = sample.store.erase_unknown_senders(NOON).await.unwrap();
    assert_eq!(erased, 0, "nothing is as old");
    assert!(!holders(sample.dir.path(), MARK).is_empty());
    let erased = sample.store.erase_unknown_senders(at(10)).await.unwrap();
    assert_eq!(erased, 5, "the end of the pairing is not as old");
    assert_eq!(sample.store.erase_unknown_senders(at(11)).await.unwrap(), 1);
    assert_eq!(sample.store.erase_unknown_senders(at(11)).await.unwrap(), 0);
    let files = sample.store.rewrite_erased().await.unwrap();
    assert_eq!(files, Rewritten::Yes);
    assert_eq!(holders(sample.dir.path(), MARK), Vec::<PathBuf>::new());
    assert_eq!(left(&sample).await, ["connector.inbound.settled.v1"]);
    assert_eq!(
        sample
            .store
            .inbound_message(trigger_event(1))
            .await
            .unwrap(),
        None
    );
    let of_chat = sample
        .store
        .outbound_messages_of_chat(&chat(NOBODY), 0, 10)
        .await;
    assert_eq!(of_chat.unwrap(), []);
    is_sound(&sample).await;
}

#[tokio::test]
async fn what_is_of_users_and_codes_that_are_not_settled_stay() {
    let sample = Sample::new();
    begin(&sample).await;
    append_at(
        &sample,
        vec![
            polled("cursor", 1),
            received(inbound_message(11, "a", "hello"), 1),
            taken(&[11], 1),
            queued(11, "a", 1, "hello yourself"),
            sending(11, 1, 0),
            delivered(11),
            received(inbound_message(12, "a", "too much"), 1),
            taken(&[12], 2),
            reported(12, "a", 12),
        ],
        NOON,
    )
    .await;
    append_at(&sample, of_unknown_sender(NOBODY, 1), NOON).await;
    append_at(&sample, vec![settled(NOBODY, Some(ada()))], NOON).await;
    let before = left(&sample).await;
    append_at(&sample, of_unknown_sender("b", 2), NOON).await;
    assert_eq!(sample.store.erase_unknown_senders(at(1)).await.unwrap(), 6);
    let mut stay: Vec<String> = before[..9].to_vec();
    stay.push("connector.inbound.settled.v1".to_owned());
    stay.push("connector.pairing.settled.v1".to_owned());
    let open = [
        "connector.inbound.settled.v1",
        "connector.pairing.offered.v1",
        "connector.outbound.queued.v1",
        "connector.outbound.started.v1",
        "connector.outbound.settled.v1",
    ];
    stay.extend(open.map(str::to_owned));
    assert_eq!(left(&sample).await, stay);
    let row = sample.store.connector(&telegram()).await.unwrap().unwrap();
    assert_eq!(row.cursor.as_deref(), Some("cursor"));
    assert!(
        sample
            .store
            .pairing("CODE2", at(1))
            .await
            .unwrap()
            .is_some()
    );
    is_sound(&sample).await;
    // Once it is settled, the rest goes too.
    append_at(&sample, vec![settled("b", None)], NOON).await;
    assert_eq!(sample.store.erase_unknown_senders(at(1)).await.unwrap(), 5);
    assert_eq!(left(&sample).await[..10], stay[..10]);
    is_sound(&sample).await;
}

#[tokio::test]
async fn many_strangers_go_and_a_message_that_waits_is_not_sent() {
    let sample = Sample::new();
    begin(&sample).await;
    for n in 1..=100 {
        let chat = format!("{MARK}-{n}");
        let mut all = of_unknown_sender(&chat, n);
        // It was never sent.
        all.truncate(4);
        all.push(settled(&chat, None));
        append_at(&sample, all, NOON).await;
    }
    let purging = sample.store.begin_purging().unwrap();
    assert_eq!(sample.store.erase_unknown_senders(at(1)).await.unwrap(), 0);
    drop(purging);
    assert_eq!(
        sample.store.erase_unknown_senders(at(1)).await.unwrap(),
        400
    );
    let waiting = sample
        .store
        .due_outbound_messages(at(900), 10, &BTreeSet::new())
        .await;
    assert_eq!(waiting.unwrap(), []);
    assert_eq!(
        sample
            .store
            .outbound_message(outbound_message(1))
            .await
            .unwrap(),
        None
    );
    assert_eq!(left(&sample).await, ["connector.inbound.settled.v1"; 100]);
    is_sound(&sample).await;
}

#[tokio::test]
async fn a_strangers_message_goes_and_the_next_poll_goes_on_from_where_it_was() {
    let sample = Sample::new();
    begin(&sample).await;
    for (n, cursor) in [(1, "first"), (2, "second")] {
        let mut all = of_unknown_sender(NOBODY, n);
        all.insert(1, polled(cursor, 1));
        all.push(settled(NOBODY, None));
        append_at(&sample, all, NOON).await;
    }
    let received = async || {
        let all = left(&sample).await;
        all.iter()
            .filter(|kind| *kind == "connector.received.v1")
            .count()
    };
    assert_eq!(received().await, 4);
    sample.store.erase_unknown_senders(at(1)).await.unwrap();
    assert_eq!(received().await, 2, "the cursors stay");
    let row = sample.store.connector(&telegram()).await.unwrap().unwrap();
    assert_eq!(row.cursor.as_deref(), Some("second"));
    is_sound(&sample).await;
}

#[tokio::test]
async fn what_is_not_settled_when_it_is_looked_at_goes_once_it_is() {
    let sample = Sample::new();
    begin(&sample).await;
    let all = of_unknown_sender(NOBODY, 1);
    let [arrived, heard, offer, answer, start, end] = <[Event; 6]>::try_from(all).unwrap();
    append_at(&sample, vec![arrived], NOON).await;
    assert_eq!(sample.store.erase_unknown_senders(at(1)).await.unwrap(), 0);
    let over = settled(NOBODY, None);
    append_at(&sample, vec![heard, offer, over, answer, start], NOON).await;
    let erased = sample.store.erase_unknown_senders(at(1)).await.unwrap();
    assert_eq!(erased, 3, "all but the answer that is being sent");
    append_at(&sample, vec![end], NOON).await;
    assert_eq!(sample.store.erase_unknown_senders(at(1)).await.unwrap(), 3);
    assert_eq!(left(&sample).await, ["connector.inbound.settled.v1"]);
    is_sound(&sample).await;
}

#[tokio::test]
async fn a_message_that_was_refused_before_it_reached_a_session_goes_too() {
    let sample = Sample::new();
    begin(&sample).await;
    let reason = "it is no key".to_owned();
    let refused = vec![
        received(inbound_message(1, NOBODY, ""), 1),
        settled_as(&[1], InboundMessageOutcome::Refused { reason }),
        reported(1, NOBODY, 1),
        sending(1, 1, 0),
        delivered(1),
    ];
    append_at(&sample, refused, NOON).await;
    assert_eq!(sample.store.erase_unknown_senders(at(1)).await.unwrap(), 4);
    assert_eq!(left(&sample).await, ["connector.inbound.settled.v1"]);
    is_sound(&sample).await;
}

/// A place in a store that stays full for ever is closed to all who come.
#[tokio::test]
async fn what_people_said_counts_until_a_time_or_until_it_is_erased() {
    let sample = Sample::new();
    begin(&sample).await;
    append_at(&sample, of_unknown_sender(NOBODY, 1), NOON).await;
    let bytes = async |since| {
        let received = sample.store.bytes_received(&telegram(), since).await;
        received.unwrap()
    };
    let first = bytes(NOON).await;
    let said = inbound_message(2, "somebody", &"a".repeat(1_000));
    append_at(&sample, vec![received(said, 1)], at(10)).await;
    let second = bytes(at(10)).await;
    assert!(first > 0 && second > 1_000, "{first} {second}");
    assert_eq!(bytes(NOON).await, first + second, "what is sent counts not");
    assert_eq!(bytes(at(11)).await, 0);
    append_at(&sample, vec![settled(NOBODY, None)], at(10)).await;
    sample.store.erase_unknown_senders(at(10)).await.unwrap();
    assert_eq!(bytes(NOON).await, second);
    let other = "other".parse().unwrap();
    assert_eq!(sample.store.bytes_received(&other, NOON).await.unwrap(), 0);
}
