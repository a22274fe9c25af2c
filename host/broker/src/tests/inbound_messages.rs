//! Words that a trigger or a connector brings: their source, origin and mark, and their keys.

use super::host::{Host, events, replies, target};
use crate::{
    Address, Arriving, By, Isolated, KeyBefore, PostOutcome, PostRouted, Routed, RoutedReceipt,
};
use domain::connector::ReplyRoute;
use domain::event::{Event, InputAccepted, Source};
use domain::id::{SessionId, TriggerEventId};
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::path::ConnectorKey;
use domain::queue::QueueOverride;
use domain::user::UserId;
use uuid::Uuid;

fn of_trigger(untrusted: bool, isolated: bool) -> Arriving {
    Arriving {
        source: Source::Trigger {
            trigger: "morning".parse().unwrap(),
            trigger_event: TriggerEventId(Uuid::from_u128(7)),
            quiet: None,
            reply_to: None,
        },
        origin: "trigger:morning".to_owned(),
        untrusted,
        speaker: None,
        unheard: false,
        isolated: isolated.then(|| Isolated {
            name: Some("morning".to_owned()),
        }),
    }
}

fn of_connector() -> Arriving {
    Arriving {
        source: Source::Connector {
            reply_to: ReplyRoute {
                connector: "telegram".parse().unwrap(),
                chat: "42".to_owned(),
            },
            messages: vec!["1".to_owned()],
        },
        origin: "connector:telegram".to_owned(),
        untrusted: false,
        speaker: None,
        unheard: false,
        isolated: None,
    }
}

fn words(text: &str, key: &str) -> PostRouted {
    PostRouted {
        to: Address::Agent(target()),
        content: vec![Part::text(text)],
        model: None,
        queue: QueueOverride::default(),
        priority: None,
        labels: MessageLabels::default(),
        user: UserId::local(),
        idempotency_key: Some(key.to_owned()),
    }
}

async fn post(host: &Host, command: PostRouted, arriving: Arriving) -> RoutedReceipt {
    match host
        .broker
        .messages()
        .post_inbound(command, arriving)
        .await
        .unwrap()
    {
        Routed::Accepted(receipt) => receipt,
        Routed::Unclear(several) => panic!("{several:?}"),
    }
}

/// Returns the inputs that a session accepted.
async fn inputs(host: &Host, session: SessionId) -> Vec<InputAccepted> {
    let events = events(host.broker.store(), session).await.into_iter();
    let inputs = events.filter_map(|recorded| match recorded.event {
        Some(Event::InputAccepted(accepted)) => Some(accepted),
        _ => None,
    });
    inputs.collect()
}

#[tokio::test]
async fn words_of_a_trigger_keep_their_source_origin_and_mark() {
    let host = Host::new().await;
    host.guest.steps([replies("done")]);
    let receipt = post(&host, words("rain", "a"), of_trigger(true, false)).await;
    let inputs = inputs(&host, receipt.session).await;
    let input = &inputs[0];
    assert_eq!(input.source, of_trigger(true, false).source);
    let message = input.message.as_ref().unwrap();
    assert_eq!(message.origin, "trigger:morning");
    assert!(message.untrusted);
    host.undriven().await;
    let events = events(host.broker.store(), receipt.session).await;
    let turn = events.iter().find_map(|recorded| match &recorded.event {
        Some(Event::TurnCommitted(committed)) => Some(committed),
        _ => None,
    });
    assert!(turn.unwrap().untrusted);
}

#[tokio::test]
async fn words_under_one_key_are_taken_once_whatever_they_say() {
    let host = Host::new().await;
    host.guest.steps([replies("done"), replies("done")]);
    let first = post(&host, words("one", "a"), of_trigger(false, false)).await;
    let again = post(&host, words("two", "a"), of_trigger(false, false)).await;
    let (PostOutcome::Accepted(one), PostOutcome::Accepted(two)) = (&first.said, &again.said)
    else {
        panic!("{first:?} {again:?}");
    };
    assert_eq!(one.input, two.input);
    assert!(!one.replayed && two.replayed);
    let long = "k".repeat(1_000);
    let other = post(&host, words("one", &long), of_trigger(false, false)).await;
    let same = post(&host, words("one", &long), of_trigger(false, false)).await;
    assert_eq!(other.session, same.session);
    assert_eq!(inputs(&host, first.session).await.len(), 2);
    host.undriven().await;
}

#[tokio::test]
async fn words_of_their_own_session_begin_one_and_no_other_words_join_it() {
    let host = Host::new().await;
    host.guest
        .steps([replies("done"), replies("done"), replies("done")]);
    let apart = post(&host, words("beat", "a"), of_trigger(false, true)).await;
    assert!(apart.is_new);
    assert_ne!(apart.session, host.session);
    let again = post(&host, words("beat", "a"), of_trigger(false, true)).await;
    assert_eq!(again.session, apart.session);
    let row = host.broker.store().session(apart.session).await.unwrap();
    let row = row.unwrap();
    assert_eq!(row.started_by, "trigger:morning");
    assert_eq!(row.name.as_deref(), Some("morning"));
    let later = post(&host, words("next", "b"), of_trigger(false, true)).await;
    assert_ne!(later.session, apart.session);
    let usual = post(&host, words("hello", "c"), of_connector()).await;
    assert_eq!(usual.session, host.session);
    host.undriven().await;
}

#[tokio::test]
async fn only_a_users_own_words_direct_the_queue() {
    let host = Host::new().await;
    host.guest.steps([replies("done")]);
    let text = "/queue collect";
    let said = post(&host, words(text, "a"), of_trigger(true, false))
        .await
        .said;
    assert!(matches!(said, PostOutcome::Accepted(_)), "{said:?}");
    let said = post(&host, words(text, "b"), of_connector()).await.said;
    assert!(matches!(said, PostOutcome::Configured(_)), "{said:?}");
    host.undriven().await;
}

#[tokio::test]
async fn the_key_of_another_id_stands_for_the_same_user() {
    let host = Host::new().await;
    let ada: UserId = "ada".parse().unwrap();
    let key = |text: &str| -> ConnectorKey { text.parse().unwrap() };
    let bind = async |text: &str| {
        let key = key(text);
        let bound = host
            .broker
            .connectors()
            .bind(By::from(&ada), &ada, &key)
            .await;
        bound.unwrap();
    };
    let user_of = async |text: &str| {
        let row = host.broker.store().connector_key(&key(text)).await;
        row.unwrap().map(|row| row.user)
    };
    let follow = async |before: &str, now: &str, key_before: KeyBefore| {
        let [before, now] = [key(before), key(now)];
        let followed = host
            .broker
            .connectors()
            .follow_key(&before, &now, key_before)
            .await;
        followed.unwrap()
    };
    bind("telegram:group:-5").await;
    for _ in 0..2 {
        follow("telegram:group:-5", "telegram:group:-100", KeyBefore::Stays).await;
        assert_eq!(user_of("telegram:group:-100").await, Some(ada.clone()));
        assert_eq!(user_of("telegram:group:-5").await, Some(ada.clone()));
    }
    // The number before may be another person's soon, also where an operator bound the new one.
    bind("whatsapp:4912").await;
    assert_eq!(
        follow("whatsapp:4912", "whatsapp:4913", KeyBefore::Ends).await,
        Some(ada.clone())
    );
    assert_eq!(user_of("whatsapp:4912").await, None);
    assert_eq!(user_of("whatsapp:4913").await, Some(ada.clone()));
    bind("whatsapp:4914").await;
    follow("whatsapp:4913", "whatsapp:4914", KeyBefore::Ends).await;
    assert_eq!(user_of("whatsapp:4913").await, None);
    // Nobody becomes somebody.
    assert_eq!(
        follow("whatsapp:1", "whatsapp:2", KeyBefore::Ends).await,
        None
    );
    assert_eq!(user_of("whatsapp:2").await, None);
}

#[tokio::test]
async fn who_has_as_many_keys_as_there_may_be_is_not_lost_with_another_id() {
    let host = Host::new().await;
    let ada: UserId = "ada".parse().unwrap();
    let key = |n: usize| -> ConnectorKey { format!("whatsapp:{n}").parse().unwrap() };
    for n in 0..100 {
        let key = key(n);
        let bound = host
            .broker
            .connectors()
            .bind(By::from(&ada), &ada, &key)
            .await;
        bound.unwrap();
    }
    for (n, key_before) in [(0, KeyBefore::Ends), (1, KeyBefore::Stays)] {
        let [before, now] = [key(n), key(n + 1_000)];
        let followed = host
            .broker
            .connectors()
            .follow_key(&before, &now, key_before)
            .await;
        assert_eq!(followed.unwrap(), Some(ada.clone()));
        let store = host.broker.store();
        assert!(store.connector_key(&before).await.unwrap().is_none());
        let row = store.connector_key(&now).await.unwrap();
        assert_eq!(row.map(|row| row.user), Some(ada.clone()));
        assert_eq!(store.keys_of_user(&ada, 200).await.unwrap().len(), 100);
    }
}
