//! Pairing codes that nobody enters: they end, and are erased.

use super::host::Host;
use crate::journal::Context;
use domain::connector::{ONCE_DAYS, PAIRING_MS};
use domain::event::{ConnectorReceived, Event, PairingOffered, PairingSettled, Received};
use domain::id::{ConnectorId, Stream};
use domain::path::ConnectorKey;
use serde_json::json;
use store::{Commit, Expected};

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

fn stream() -> Stream {
    Stream::Connector(ConnectorId::of_name("telegram"))
}

/// Returns the pairings that were settled, in order.
async fn settled(host: &Host) -> Vec<PairingSettled> {
    let recorded = host.store().stream(stream(), 0, 100).await.unwrap();
    let settled = recorded.into_iter().filter_map(|it| match it.event? {
        Event::PairingSettled(settled) => Some(settled),
        _ => None,
    });
    settled.collect()
}

/// Returns a host where a pairing code was offered to this sender.
async fn offering_to(key: &ConnectorKey) -> Host {
    let host = Host::with(json!({})).await;
    let now = host.now();
    let offered = Event::PairingOffered(PairingOffered {
        key: key.clone(),
        name: Some("Eve".to_owned()),
        chat: "8".to_owned(),
        code: "ABCDEFGH".to_owned(),
        expires: now.plus_ms(PAIRING_MS),
        time: now,
    });
    // A code is offered to somebody who wrote.
    let received = Event::ConnectorReceived(ConnectorReceived {
        connector: key.connector().clone(),
        what: Received::Cursor("1".to_owned()),
        time: now,
    });
    let context = Context::new("connector:telegram", now);
    let events = vec![context.event(received), context.event(offered)];
    let commit = Commit::new().append(stream(), Expected::Any, events);
    host.store().commit(commit).await.unwrap();
    host
}

#[tokio::test]
async fn a_code_that_nobody_entered_in_time_is_settled_and_in_no_list() {
    let key: ConnectorKey = "telegram:8".parse().unwrap();
    let host = offering_to(&key).await;
    let host = host.restarted_after_ms(PAIRING_MS - 1).await;
    assert!(host.store().pairing_of(&key).await.unwrap().is_some());
    assert_eq!(settled(&host).await, []);
    let host = host.restarted_after_ms(1).await;
    host.until("the code is settled", async || {
        !settled(&host).await.is_empty()
    })
    .await;
    let [over]: [PairingSettled; 1] = settled(&host).await.try_into().unwrap();
    assert_eq!((over.key, over.user), (key.clone(), None));
    assert_eq!(host.store().pairing_of(&key).await.unwrap(), None);
}

#[tokio::test]
async fn a_pairing_is_erased_when_messages_of_its_time_are_known_no_longer() {
    let key: ConnectorKey = "telegram:8".parse().unwrap();
    let host = offering_to(&key).await;
    let host = host.restarted_after_ms(PAIRING_MS).await;
    host.until("the code is settled", async || {
        !settled(&host).await.is_empty()
    })
    .await;
    let erased = async |host: &Host| {
        let recorded = host.store().stream(stream(), 0, 100).await.unwrap();
        recorded.iter().filter(|it| it.event.is_none()).count()
    };
    assert_eq!(erased(&host).await, 0);
    // Now the offer is as old, and the end of the pairing is not.
    let host = host.restarted_after_ms(ONCE_DAYS * DAY_MS).await;
    host.until("the offer is erased", async || erased(&host).await == 1)
        .await;
    assert_eq!(settled(&host).await.len(), 1);
    let host = host.restarted_after_ms(1).await;
    host.until("its end is erased", async || erased(&host).await == 2)
        .await;
    assert_eq!(settled(&host).await, []);
}
