//! Commands on connectors: a test, a message that is sent again, and what visitors of a page say.

use super::before::key_of;
use super::intake::{Brought, TakenIn};
use super::queueing::within_bounds;
use super::served::{Served, Way};
use super::{Connectors, Shared};
use crate::journal::Context;
use crate::once::{Once, once};
use broker::{By, Error};
use domain::connector::{ConnectorSpec, Incoming, SERVICE_ID_BYTES_MAX};
use domain::error_code::ErrorCode;
use domain::event::{DeliveryCause, DeliveryQueued, DeliveryRequeued, Event};
use domain::id::{ConnectorId, DeliveryId, OccasionId, Stream};
use domain::path::{AgentPath, ConnectorKey, ConnectorName, ReplyTarget};
use domain::refusal::Refusal;
use domain::user::UserId;
use serde_json::json;
use std::sync::Arc;
use store::{Commit, CommitError, ConnectorGuard, DeliveryRow, DeliveryState, Expected, Key};
use uuid::Uuid;

/// The words of a test unless it has others.
const TEST: &str = "This is a test. If you read it, messages of this host arrive here.";
/// Connector keys of a user that are read.
const KEYS_MAX: usize = 100;

/// The recipient of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestTarget {
    /// A chat, in the service's terms.
    Chat(String),
    /// A user, in the chat with them alone.
    User(UserId),
}

/// The words of a visitor of a page, which are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedArrival {
    /// Its id here.
    pub arrival: OccasionId,
    /// True if it was taken before: nothing has happened again.
    pub replayed: bool,
}

impl Connectors {
    /// Returns what is configured of a connector, enabled or not; none if there is none.
    #[must_use]
    pub fn spec(&self, name: &ConnectorName) -> Option<Arc<ConnectorSpec>> {
        let served = self.shared.served.get(name)?;
        Some(served.spec.clone())
    }

    /// Has a text sent through a connector, to see whether it arrives.
    ///
    /// # Errors
    /// There is no such connector, or it is disabled; the chat is none; the user has not exactly
    /// one key of the connector's.
    pub async fn test(
        &self,
        by: By<'_>,
        name: &ConnectorName,
        to: TestTarget,
        text: Option<String>,
    ) -> Result<DeliveryId, Error> {
        let shared = &*self.shared;
        let served = shared.enabled(name)?;
        let chat = shared.chat_of(&served, to).await?;
        let id = Uuid::new_v4();
        let delivery = DeliveryId::mint(served.id(), &chat, &format!("test:{id}"), 0);
        let asked = json!({ "test_connector": name, "chat": chat, "text": text });
        let key = match once(&shared.core, by, &asked, &delivery.to_string()).await? {
            Once::New(key) => key,
            Once::Before(reply) => {
                let before = String::from_utf8_lossy(&reply).parse();
                return before.map_err(|_| delivery_not_found().into());
            }
        };
        let given = text.as_deref().unwrap_or(TEST);
        let text = within_bounds(given);
        if text.len() < given.trim().len() {
            let told = format!("the text has {} bytes, which are too many", given.len());
            return Err(invalid(&told, "/text").into());
        }
        if text.is_empty() {
            let told = "the text says nothing; leave it out for a sentence of the host's own";
            return Err(invalid(told, "/text").into());
        }
        let now = shared.core.now();
        let queued = Event::DeliveryQueued(DeliveryQueued {
            connector: name.clone(),
            delivery,
            chat,
            text,
            choices: Vec::new(),
            without_buttons: None,
            cause: DeliveryCause::Test {
                user: by.user.clone(),
            },
            time: now,
        });
        let event = Context::by(by.user, now).event(queued);
        let mut commit = Commit::new().append(served.stream(), Expected::Any, vec![event]);
        commit.key = key;
        shared.core.store().commit(commit).await?;
        shared.outbox.notify_one();
        Ok(delivery)
    }

    /// Has a message sent again that was given up, or of which it cannot be told whether it was
    /// sent. It takes its old place in the order of its chat.
    ///
    /// # Errors
    /// There is no such message, or it is in another state.
    pub async fn requeue(
        &self,
        by: By<'_>,
        name: &ConnectorName,
        delivery: DeliveryId,
    ) -> Result<DeliveryRow, Error> {
        let shared = &*self.shared;
        let asked = json!({ "requeue": delivery, "connector": name });
        let key = match once(&shared.core, by, &asked, "").await? {
            Once::New(key) => key,
            Once::Before(_) => return shared.delivery_of(name, delivery).await,
        };
        let row = shared.delivery_of(name, delivery).await?;
        if !matches!(row.state, DeliveryState::Dead | DeliveryState::Unknown) {
            return Err(not_dead(row.state).into());
        }
        let edits = shared.core.store().edited_by(delivery).await?;
        let now = shared.core.now();
        let requeued = Event::DeliveryRequeued(DeliveryRequeued {
            connector: name.clone(),
            delivery,
            by: by.user.clone(),
            edits,
            time: now,
        });
        let event = Context::by(by.user, now).event(requeued);
        let stream = Stream::Connector(ConnectorId::of_name(name.as_str()));
        let mut commit = Commit::new()
            .guard(ConnectorGuard::DeliveryIs {
                delivery,
                state: row.state,
            })
            .append(stream, Expected::Any, vec![event]);
        commit.key = key;
        store::point("edge.requeue.before");
        let stored = shared.core.store().commit(commit).await;
        store::point("edge.requeue.after");
        match stored {
            // The same request, at the same moment.
            Ok(_) | Err(CommitError::Replayed { .. }) => {}
            Err(CommitError::Conflict(_)) => {
                let row = shared.delivery_of(name, delivery).await?;
                return Err(not_dead(row.state).into());
            }
            Err(error) => return Err(error.into()),
        }
        shared.outbox.notify_one();
        shared.delivery_of(name, delivery).await
    }

    /// Takes what a visitor of a page said, through a connector that is the host's own. When this
    /// returns, it is durable and will be dealt with. The same id within seven days is the same
    /// message.
    ///
    /// # Errors
    /// There is no such connector, or it is disabled; the message is malformed; too much waits.
    pub async fn accept(
        &self,
        name: &ConnectorName,
        message: Incoming,
    ) -> Result<AcceptedArrival, Error> {
        let shared = &*self.shared;
        let served = shared.enabled(name)?;
        if !matches!(served.way, Way::Direct) {
            return Err(connector_not_found(name).into());
        }
        let message = message
            .bounded()
            .map_err(|bad| invalid(bad.to_string(), "/"))?;
        let key = visitors_key(&served, &message.id);
        let brought = Brought {
            messages: vec![message],
            key: Some(key.clone()),
            ..Brought::default()
        };
        match shared.take_in(&served, brought).await? {
            TakenIn::New(taken) => match taken.first() {
                Some(arrival) => Ok(AcceptedArrival {
                    arrival: *arrival,
                    replayed: false,
                }),
                None => shared.accepted_before(&key).await,
            },
            TakenIn::Crowded | TakenIn::Overtaken => {
                let told = "too many messages wait to be dealt with; try again shortly";
                Err(Refusal::new(ErrorCode::Busy, told).into())
            }
        }
    }
}

impl Shared {
    /// Returns a connector that does its work.
    fn enabled(&self, name: &ConnectorName) -> Result<Arc<Served>, Refusal> {
        let served = self
            .served
            .get(name)
            .ok_or_else(|| connector_not_found(name))?;
        if served.spec.enabled {
            return Ok(served);
        }
        let told = format!("the connector `{name}` is disabled; enable it in the configuration");
        Err(Refusal::new(ErrorCode::ConnectorDisabled, told))
    }

    /// Returns the chat of a test.
    async fn chat_of(&self, served: &Served, to: TestTarget) -> Result<String, Error> {
        match to {
            TestTarget::Chat(chat) if is_chat(&chat) => Ok(chat),
            TestTarget::Chat(_) => {
                let told = format!(
                    "a chat has 1 to {SERVICE_ID_BYTES_MAX} bytes, and no control character in it"
                );
                Err(invalid(told, "/chat").into())
            }
            TestTarget::User(user) => {
                let rows = self.core.store().keys_of_user(&user, KEYS_MAX).await?;
                let keys: Vec<ConnectorKey> = rows.into_iter().map(|row| row.key).collect();
                let path = AgentPath::connector(user, served.name.clone());
                let target = ReplyTarget::resolve(&path, &keys).map_err(|none| {
                    let told = none.to_string();
                    Refusal::new(ErrorCode::ConnectorKeyNotFound, told).at("/user")
                })?;
                Ok(target.target_id)
            }
        }
    }

    /// Returns a delivery of a connector.
    pub(super) async fn delivery_of(
        &self,
        name: &ConnectorName,
        delivery: DeliveryId,
    ) -> Result<DeliveryRow, Error> {
        let row = self.core.store().delivery(delivery).await?;
        row.filter(|row| row.connector == *name)
            .ok_or_else(|| delivery_not_found().into())
    }

    /// Returns what a visitor said before under a key.
    async fn accepted_before(&self, key: &Key) -> Result<AcceptedArrival, Error> {
        let landed = self
            .core
            .store()
            .remembered_request(&key.source, &key.key, self.core.now())
            .await?;
        let arrival = landed.and_then(|landed| String::from_utf8(landed.reply).ok()?.parse().ok());
        let arrival = arrival.ok_or_else(|| {
            let told = "a message with this id came at this moment; try again shortly";
            Refusal::new(ErrorCode::Busy, told)
        })?;
        Ok(AcceptedArrival {
            arrival,
            replayed: true,
        })
    }
}

/// Returns the key under which a visitor's message is found again. Its reply is the arrival.
fn visitors_key(served: &Served, id: &str) -> Key {
    let key = key_of(&served.name, id);
    Key {
        source: format!("{} arrivals", served.origin()),
        request: domain::digest::Digest::of(key.as_bytes()),
        key,
        reply: Vec::new(),
        about: None,
    }
}

pub(super) fn connector_not_found(name: &ConnectorName) -> Refusal {
    let told = format!("there is no connector `{name}`; GET /api/connectors lists them");
    Refusal::new(ErrorCode::ConnectorNotFound, told).at("path:connector")
}

fn delivery_not_found() -> Refusal {
    let told = "this connector has no such delivery";
    Refusal::new(ErrorCode::DeliveryNotFound, told)
}

fn not_dead(state: DeliveryState) -> Refusal {
    let told = format!(
        "only a delivery that is dead or unknown is sent again; this one is {}",
        state.as_str()
    );
    Refusal::new(ErrorCode::DeliveryNotDead, told)
}

fn invalid(told: impl Into<String>, field: &str) -> Refusal {
    Refusal::new(ErrorCode::Invalid, told).at(field)
}

fn is_chat(text: &str) -> bool {
    (1..=SERVICE_ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}
