//! The tools with which an agent sets itself triggers.

use super::host::{Host, replies, target, works};
use crate::journal::Context;
use crate::{Address, Arriving, PostRouted};
use domain::event::{Event, Source, TriggerDefined, TriggerOrigin};
use domain::id::{Stream, TriggerEventId};
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::queue::QueueOverride;
use domain::step::{Call, OperationOutcome, Work};
use domain::time::Timestamp;
use domain::trigger::{
    TRIGGER_LIST, TRIGGER_REMOVE, TRIGGER_SET, TRIGGERS_FULL, TRIGGERS_NARROWED,
    TRIGGERS_OF_USER_MAX, TriggerName, TriggerTarget,
};
use domain::user::UserId;
use serde_json::{Value, json};
use store::{Commit, Expected, TriggerFilter, TriggerRow};
use uuid::Uuid;

fn call(name: &str, arguments: &Value) -> Work {
    Work::Tool {
        call: Call::Own {
            name: name.to_owned(),
            arguments: arguments.to_string(),
        },
    }
}

fn water() -> Work {
    let water = json!({ "name": "water", "message": "Water the plants.", "every": "24h" });
    call(TRIGGER_SET, &water)
}

async fn triggers(host: &Host) -> Vec<TriggerRow> {
    let filter = TriggerFilter::default();
    let rows = host.broker.store().triggers(filter, None, 100);
    rows.await.unwrap()
}

/// Returns the text of a result that the step of this number heard of.
fn reported(host: &Host, step: usize, key: &str) -> String {
    match host.outcome(step, key) {
        Some(OperationOutcome::Parts { parts }) => domain::message::text_of(&parts),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_agent_sets_lists_and_removes_triggers_of_its_own() {
    let host = Host::new().await;
    host.guest.steps([
        works([("set", water())], &[]),
        works([("list", call(TRIGGER_LIST, &json!({})))], &[]),
        replies("done"),
    ]);
    host.say("remind me").await;
    host.ended().await;
    let rows = triggers(&host).await;
    assert_eq!(rows.len(), 1);
    let session = host.session;
    assert_eq!(rows[0].spec.target, TriggerTarget::Session { session });
    assert!(matches!(rows[0].origin, TriggerOrigin::Agent { .. }));
    assert!(rows[0].next_due.is_some());
    let listed = reported(&host, 2, "list");
    assert!(listed.contains("\"water\""), "{listed}");
    host.undriven().await;
    let remove = call(TRIGGER_REMOVE, &json!({ "name": "water" }));
    host.guest
        .steps([works([("remove", remove)], &[]), replies("gone")]);
    host.say("forget it").await;
    host.stored("run.ended", 2).await;
    assert_eq!(triggers(&host).await, []);
}

#[tokio::test]
async fn a_trigger_that_makes_no_sense_is_told_so_and_not_set() {
    let host = Host::new().await;
    let often = json!({ "name": "often", "message": "x", "every": "1s" });
    let past = json!({ "name": "past", "message": "x", "at": "2020-01-01T00:00:00Z" });
    host.guest.steps([
        works(
            [
                ("often", call(TRIGGER_SET, &often)),
                ("past", call(TRIGGER_SET, &past)),
            ],
            &[],
        ),
        replies("no"),
    ]);
    host.say("remind me").await;
    host.ended().await;
    for key in ["often", "past"] {
        let Some(OperationOutcome::Failed { failure }) = host.outcome(1, key) else {
            panic!("{:?}", host.guest.news());
        };
        assert_eq!(failure.code, "invalid-arguments", "{key}");
    }
    assert_eq!(triggers(&host).await, []);
}

#[tokio::test]
async fn an_agent_sets_no_more_triggers_than_its_user_may_have() {
    let host = Host::new().await;
    let spec = json!({ "schedule": { "every": "24h" }, "target": { "agent": "puppet" } });
    let time = Timestamp(1);
    let mut commit = Commit::new();
    for n in 1..TRIGGERS_OF_USER_MAX {
        let name: TriggerName = format!("other-{n}").parse().unwrap();
        let stream = Stream::Trigger(name.id());
        let defined = Event::TriggerDefined(TriggerDefined {
            name,
            spec: Box::new(serde_json::from_value(spec.clone()).unwrap()),
            origin: TriggerOrigin::Api {
                user: UserId::local(),
            },
            next_due: None,
            time,
        });
        let event = Context::by(&UserId::local(), time).event(defined);
        commit = commit.append(stream, Expected::Any, vec![event]);
    }
    host.broker.store().commit(commit).await.unwrap();
    let more = json!({ "name": "more", "message": "Feed the cat.", "every": "24h" });
    host.guest.steps([
        works([("last", water()), ("more", call(TRIGGER_SET, &more))], &[]),
        replies("no"),
    ]);
    host.say("remind me").await;
    host.ended().await;
    assert!(reported(&host, 1, "last").contains("water"));
    let Some(OperationOutcome::Failed { failure }) = host.outcome(1, "more") else {
        panic!("{:?}", host.guest.news());
    };
    assert_eq!(failure.code, TRIGGERS_FULL);
    assert_eq!(triggers(&host).await.len(), TRIGGERS_OF_USER_MAX);
}

#[tokio::test]
async fn the_words_of_a_trigger_set_no_other_trigger() {
    let host = Host::new().await;
    host.guest
        .steps([works([("set", water())], &[]), replies("no")]);
    let words = PostRouted {
        to: Address::Agent(target()),
        content: vec![Part::text("set yourself a trigger")],
        model: None,
        queue: QueueOverride::default(),
        priority: None,
        labels: MessageLabels::default(),
        user: UserId::local(),
        idempotency_key: Some("a".to_owned()),
    };
    let of_trigger = Arriving {
        source: Source::Trigger {
            trigger: "morning".parse().unwrap(),
            trigger_event: TriggerEventId(Uuid::from_u128(7)),
            quiet: None,
            reply_to: None,
        },
        origin: "trigger:morning".to_owned(),
        untrusted: false,
        speaker: None,
        unheard: false,
        isolated: None,
    };
    host.broker
        .messages()
        .post_inbound(words, of_trigger)
        .await
        .unwrap();
    host.undriven().await;
    let Some(OperationOutcome::Failed { failure }) = host.outcome(1, "set") else {
        panic!("{:?}", host.guest.news());
    };
    assert_eq!(failure.code, TRIGGERS_NARROWED);
    assert_eq!(triggers(&host).await, []);
}
