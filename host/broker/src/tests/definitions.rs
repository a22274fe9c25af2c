//! The room for definitions that users make.

use super::host::Host;
use crate::command::By;
use crate::journal::Context;
use crate::{Broker, Catalogue, Error, MakeDefinition};
use domain::definition::{Definition, DefinitionId, OwnDefinition};
use domain::event::{DefinitionMade, Event};
use domain::id::Stream;
use domain::time::Timestamp;
use domain::user::UserId;
use std::ops::Range;
use std::sync::Arc;
use store::{Commit, EventFilter, Expected};

/// Bytes of all that users say of their definitions.
const BYTES_MAX: usize = 32 << 20;

fn ada() -> UserId {
    "ada".parse().unwrap()
}

/// Stores definitions of other users, whatever their size and their template.
async fn stored(broker: &Broker, numbers: Range<usize>, template: &str, prompt_bytes: usize) {
    let events = numbers.map(|number| {
        let user: UserId = format!("user-{number}").parse().unwrap();
        let made = DefinitionMade {
            definition: id(number),
            template: DefinitionId(template.to_owned()),
            user_id: user.clone(),
            own: OwnDefinition {
                display_name: "X".to_owned(),
                system_prompt: Some("x".repeat(prompt_bytes)),
                ..OwnDefinition::default()
            },
            time: Timestamp(1),
        };
        Context::by(&user, made.time).event(Event::DefinitionMade(Box::new(made)))
    });
    let commit = Commit::new().append(Stream::Host, Expected::Any, events.collect());
    broker.store().commit(commit).await.unwrap();
}

fn id(number: usize) -> DefinitionId {
    DefinitionId(format!("made-{number}"))
}

/// Makes a small definition. The error is the refusal's code and message.
async fn make(broker: &Broker) -> Result<Arc<Definition>, (&'static str, String)> {
    let command = MakeDefinition {
        template: DefinitionId("puppet".to_owned()),
        own: OwnDefinition {
            display_name: "Small".to_owned(),
            ..OwnDefinition::default()
        },
        user: ada(),
        idempotency_key: None,
    };
    match broker.definitions().make(command).await {
        Ok(made) => Ok(made),
        Err(Error::Refused(refusal)) => Err((refusal.code.as_str(), refusal.message)),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_users_say_of_their_definitions_is_bounded_in_bytes_together() {
    let host = Host::new().await;
    assert!(make(&host.broker).await.is_ok());
    for number in 0..8 {
        stored(&host.broker, number..number + 1, "puppet", BYTES_MAX / 8).await;
    }
    let (code, message) = make(&host.broker).await.unwrap_err();
    assert_eq!(code, "TOO_MANY_DEFINITIONS");
    assert!(message.contains("bytes"), "{message}");
    let operator = UserId::local();
    let third = id(3);
    host.broker
        .definitions()
        .remove(By::from(&operator), &third, true)
        .await
        .unwrap();
    assert!(make(&host.broker).await.is_ok());
}

#[tokio::test]
async fn definitions_that_fit_no_template_take_their_room_too() {
    let host = Host::new().await;
    for number in (0..2_000).step_by(100) {
        stored(&host.broker, number..number + 100, "gone", 1).await;
    }
    let (code, message) = make(&host.broker).await.unwrap_err();
    assert_eq!(code, "TOO_MANY_DEFINITIONS");
    assert!(message.contains("2000"), "{message}");
}

#[tokio::test]
async fn another_configuration_shares_what_users_made_where_it_stays_as_it_is() {
    let host = Host::new().await;
    let broker = &host.broker;
    let made = make(broker).await.unwrap();
    let catalogue = Catalogue::clone(&broker.catalogue());
    broker
        .configuration()
        .replace_catalogue(catalogue)
        .await
        .unwrap();
    let after = broker.catalogue();
    let after = after.definition(&made.agent_id).unwrap();
    assert!(Arc::ptr_eq(&made, after));
}

#[tokio::test]
async fn what_a_user_said_of_a_definition_is_erased_when_it_is_removed() {
    let host = Host::new().await;
    let broker = &host.broker;
    let user = ada();
    let mut ids = Vec::new();
    for secret in ["a diary", "another"] {
        let command = MakeDefinition {
            template: DefinitionId("puppet".to_owned()),
            own: OwnDefinition {
                display_name: "Secret".to_owned(),
                system_prompt: Some(format!("You keep {secret}.")),
                ..OwnDefinition::default()
            },
            user: user.clone(),
            idempotency_key: None,
        };
        let made = broker.definitions().make(command).await.unwrap();
        ids.push(made.agent_id.clone());
    }
    let removed = broker
        .definitions()
        .remove(By::from(&user), &ids[0], false)
        .await;
    removed.unwrap();
    let filter = EventFilter::default();
    let events = broker.store().events(0, filter, 1_000).await.unwrap();
    let made: Vec<Option<&Event>> = events
        .iter()
        .filter(|recorded| recorded.kind == "user.definition.made.v1")
        .map(|recorded| recorded.event.as_ref())
        .collect();
    assert!(
        matches!(
            made[..],
            [None, Some(Event::DefinitionMade(other))] if other.definition == ids[1]
        ),
        "{made:?}"
    );
    let verified = broker.store().verify().await.unwrap();
    assert_eq!((verified.fault, verified.erased), (None, 1));
}
