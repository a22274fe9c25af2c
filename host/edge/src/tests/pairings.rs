//! Pairing codes that nobody enters.

use super::host::Host;
use crate::journal::Context;
use domain::connector::PAIRING_MS;
use domain::event::{Event, PairingOffered, PairingSettled};
use domain::id::{ConnectorId, Stream};
use domain::path::ConnectorKey;
use serde_json::json;
use store::{Commit, Expected};

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

#[tokio::test]
async fn a_code_that_nobody_entered_in_time_is_settled_and_in_no_list() {
    let host = Host::with(json!({})).await;
    let key: ConnectorKey = "telegram:8".parse().unwrap();
    let now = host.now();
    let offered = Event::PairingOffered(PairingOffered {
        key: key.clone(),
        name: Some("Eve".to_owned()),
        chat: "8".to_owned(),
        code: "ABCDEFGH".to_owned(),
        expires: now.plus_ms(PAIRING_MS),
        time: now,
    });
    let offered = Context::new("connector:telegram", now).event(offered);
    let commit = Commit::new().append(stream(), Expected::Any, vec![offered]);
    host.store().commit(commit).await.unwrap();
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
