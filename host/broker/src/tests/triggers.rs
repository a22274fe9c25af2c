//! The tools with which an agent sets itself triggers.

use super::host::{Host, replies, target, works};
use crate::{Address, Arriving, PostRouted};
use domain::event::{Source, TriggerOrigin};
use domain::id::OccasionId;
use domain::message::Part;
use domain::message_labels::MessageLabels;
use domain::queue::QueueOverride;
use domain::step::{Call, OperationOutcome, Work};
use domain::trigger::{
    TRIGGER_LIST, TRIGGER_REMOVE, TRIGGER_SET, TRIGGERS_NARROWED, TriggerTarget,
};
use domain::user::UserId;
use serde_json::{Value, json};
use store::{TriggerFilter, TriggerRow};
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
fn told(host: &Host, step: usize, key: &str) -> String {
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
    let listed = told(&host, 2, "list");
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
            occasion: OccasionId(Uuid::from_u128(7)),
            quiet: None,
            reply_to: None,
        },
        origin: "trigger:morning".to_owned(),
        untrusted: false,
        isolated: None,
    };
    host.broker.post_arrival(words, of_trigger).await.unwrap();
    host.undriven().await;
    let Some(OperationOutcome::Failed { failure }) = host.outcome(1, "set") else {
        panic!("{:?}", host.guest.news());
    };
    assert_eq!(failure.code, TRIGGERS_NARROWED);
    assert_eq!(triggers(&host).await, []);
}
