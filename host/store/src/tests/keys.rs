//! API keys: what is kept of them, and that a rebuild finds the same.

use super::sample::{NOON, Sample};
use domain::digest::Digest;
use domain::event::{Event, KeyIssued, KeyRevoked};
use domain::key::{Ended, KeyId};
use domain::user::Scope;

fn id(n: u8) -> KeyId {
    KeyId::of([n; 12])
}

pub(super) fn issued(n: u8, user: &str) -> Event {
    Event::KeyIssued(Box::new(KeyIssued {
        key_id: id(n),
        user_id: user.parse().unwrap(),
        name: format!("key {n}"),
        scopes: [Scope::Read, Scope::Keys].into(),
        hash: Digest::of(&[n]),
        issued_by: "ada".parse().unwrap(),
        issued_with: (n > 1).then(|| id(1)),
        issued_at: NOON,
        expires_at: NOON.plus_ms(1_000 * u64::from(n)),
    }))
}

pub(super) fn revoked(n: u8, reason: &str) -> Event {
    let revoked_by = "ada".parse().unwrap();
    let revoked_at = NOON.plus_ms(10);
    Event::KeyRevoked(KeyRevoked {
        key_id: id(n),
        revoked_by,
        revoked_at,
        reason: Some(reason.to_owned()),
    })
}

#[tokio::test]
async fn a_key_is_found_with_what_became_of_it_and_a_users_keys_page_by_page() {
    let sample = Sample::new();
    let all = [
        issued(1, "ada"),
        issued(2, "bob"),
        issued(3, "bob"),
        issued(4, "bob"),
    ];
    sample.in_host(all.to_vec()).await;
    sample
        .in_host([
            revoked(3, "lost"),
            revoked(3, "again"),
            revoked(9, "never issued"),
        ])
        .await;
    let store = &sample.store;

    let third = store.key(&id(3)).await.unwrap().unwrap();
    assert_eq!(
        (third.user.as_str(), third.name.as_str(), third.hash),
        ("bob", "key 3", Digest::of(&[3]))
    );
    assert_eq!(
        (third.issued_with.as_ref(), third.reason.as_deref()),
        (Some(&id(1)), Some("lost"))
    );
    assert_eq!(
        (third.ended(NOON), third.scopes),
        (Some(Ended::Revoked), [Scope::Read, Scope::Keys].into())
    );
    let first = store.key(&id(1)).await.unwrap().unwrap();
    assert_eq!(
        (first.ended(NOON), first.ended(NOON.plus_ms(1_000))),
        (None, Some(Ended::Expired))
    );
    assert_eq!(store.key(&id(9)).await.unwrap(), None);

    let bob = "bob".parse().unwrap();
    let ids = |rows: Vec<crate::KeyRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(
        ids(store.keys(Some(&bob), None, 2).await.unwrap()),
        [id(2), id(3)]
    );
    assert_eq!(
        ids(store.keys(Some(&bob), Some(&id(3)), 2).await.unwrap()),
        [id(4)]
    );
    assert_eq!(
        ids(store.keys(None, Some(&id(1)), 9).await.unwrap()),
        [id(2), id(3), id(4)]
    );
    assert_eq!(store.keys_that_count(&bob, NOON).await.unwrap(), 2);
    assert_eq!(
        store
            .keys_that_count(&bob, NOON.plus_ms(2_000))
            .await
            .unwrap(),
        1
    );

    let before = store.keys(None, None, 9).await.unwrap();
    store.rebuild().await.unwrap();
    assert_eq!(store.keys(None, None, 9).await.unwrap(), before);
    assert_eq!(store.verify().await.unwrap().fault, None);
}
