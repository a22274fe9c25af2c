//! Tests that the newest events are kept, and that streams miss none.

use super::{BYTES_MAX, EVENTS_MAX, Kept, Next, Tail};
use domain::digest::{Digest, Salt};
use domain::event::{Event, NewEvent, PluginEmitted, Recorded, Subject};
use domain::id::{EventId, SessionId, Stream};
use domain::time::Timestamp;
use store::{Commit, EventFilter, Expected, Options, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

fn emitted(payload: &str) -> Event {
    Event::PluginEmitted(PluginEmitted {
        name: "plugin.test.event".to_owned(),
        data: payload.into(),
    })
}

fn recorded(position: u64, payload: &str) -> Recorded {
    Recorded {
        position,
        stream: "host".to_owned(),
        version: position,
        id: EventId(Uuid::nil()),
        kind: "plugin.test.event".to_owned(),
        event: Some(emitted(payload)),
        subject: Subject::default(),
        actor: "host".to_owned(),
        causation: None,
        correlation: None,
        time: Timestamp(1),
        hash: Digest([0; 32]),
    }
}

/// The position of what is next; 0 for nothing, none for what only the store has.
fn place(next: &Next) -> Option<u64> {
    match next {
        Next::Event(happened) => Some(happened.recorded.position),
        Next::Nothing => Some(0),
        Next::Stored => None,
    }
}

#[test]
fn only_so_many_events_are_kept_and_the_store_has_the_others() {
    let mut kept = Kept {
        begins_after: 10,
        ..Kept::default()
    };
    assert_eq!(
        [9, 10, 11].map(|position| place(&kept.next(position))),
        [None, Some(0), Some(0)]
    );
    for position in 11..=20 {
        kept.push(recorded(position, "x"));
    }
    assert_eq!(
        [9, 10, 19, 20].map(|position| place(&kept.next(position))),
        [None, Some(11), Some(20), Some(0)]
    );
    for position in 21..=(20 + EVENTS_MAX as u64) {
        kept.push(recorded(position, "x"));
    }
    assert_eq!(
        [19, 20].map(|position| place(&kept.next(position))),
        [None, Some(21)]
    );
    kept.skip_to(5_000);
    assert_eq!(
        (
            place(&kept.next(4_999)),
            place(&kept.next(5_000)),
            kept.bytes
        ),
        (None, Some(0), 0)
    );
}

#[test]
fn only_so_many_bytes_are_kept_but_the_newest_event_always() {
    let mut kept = Kept::default();
    kept.push(recorded(1, &"x".repeat(BYTES_MAX / 2)));
    kept.push(recorded(2, &"x".repeat(BYTES_MAX / 4)));
    assert_eq!(place(&kept.next(0)), Some(1));
    kept.push(recorded(3, &"x".repeat(BYTES_MAX / 2)));
    assert_eq!(
        [0, 1].map(|position| place(&kept.next(position))),
        [None, Some(2)]
    );
    kept.push(recorded(4, &"x".repeat(2 * BYTES_MAX)));
    assert_eq!(
        [2, 3, 4].map(|position| place(&kept.next(position))),
        [None, Some(4), Some(0)]
    );
}

#[tokio::test]
async fn every_event_is_told_and_kept_while_somebody_follows() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let tasks = TaskTracker::new();
    let stopping = CancellationToken::new();
    let reader = store.clone();
    let events = move |after, limit| {
        let store = reader.clone();
        async move { Ok(store.events(after, EventFilter::default(), limit).await?) }
    };
    let (tail, reading) = Tail::begin(store.durable(), events, stopping.clone());
    tasks.spawn(reading);
    let happen = async |events: usize| {
        let new = || NewEvent {
            id: EventId(Uuid::now_v7()),
            event: emitted("x"),
            subject: Subject::default(),
            actor: "host".to_owned(),
            causation: None,
            correlation: None,
            time: Timestamp(1),
            salt: Salt([1; 16]),
        };
        let stream = Stream::Session(SessionId(Uuid::new_v4()));
        let commit =
            Commit::new().append(stream, Expected::New, (0..events).map(|_| new()).collect());
        store.commit(commit).await.unwrap().last_position
    };
    let mut follower = tail.clone();
    let mut reported = 0;
    for events in [1, 100, 3] {
        let last = happen(events).await;
        while reported < last {
            reported = follower.more().await.unwrap();
        }
        assert_eq!(reported, last, "the end of a commit");
        assert_eq!(place(&tail.next(last - 1)), Some(last));
    }
    drop(follower);
    // Nobody follows: the store has it. Whoever comes later is told of what comes later.
    let unseen = happen(1).await;
    let mut later = tail.clone();
    while later.more().await.unwrap() < unseen {}
    let last = happen(1).await;
    while later.more().await.unwrap() < last {}
    assert_eq!(place(&tail.next(last - 1)), Some(last));
    stopping.cancel();
    assert_eq!(later.more().await, None);
    tasks.close();
    tasks.wait().await;
}
