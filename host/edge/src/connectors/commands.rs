//! Commands on connectors: a test, a retry of a message, and messages of visitors of a page.

use super::before::key_of;
use super::intake::{Brought, TakenIn};
use super::queueing::within_bounds;
use super::served::{ConnectorLink, Served};
use super::{Connectors, Shared};
use crate::journal::Context;
use crate::once::{Once, once};
use broker::{By, Error};
use domain::connector::{ConnectorSpec, Incoming, SERVICE_ID_BYTES_MAX};
use domain::error_code::ErrorCode;
use domain::event::{Event, OutboundMessageCause, OutboundMessageQueued, OutboundMessageRequeued};
use domain::id::{ConnectorId, OutboundMessageId, Stream, TriggerEventId};
use domain::path::{AgentPath, ConnectorKey, ConnectorName, ReplyTarget};
use domain::refusal::Refusal;
use domain::user::UserId;
use serde_json::json;
use std::sync::Arc;
use store::{
    Commit, CommitError, ConnectorGuard, Expected, Key, OutboundMessageRow, OutboundMessageState,
};
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
pub struct AcceptedInboundMessage {
    /// Its id here.
    pub inbound_message: TriggerEventId,
    /// True if it was taken before: nothing has happened again.
    pub replayed: bool,
}

impl Connectors {
    /// Returns the configuration of a connector, enabled or not; none if it does not exist.
    #[must_use]
    pub fn spec(&self, name: &ConnectorName) -> Option<Arc<ConnectorSpec>> {
        let served = self.shared.served.get(name)?;
        Some(served.spec.clone())
    }

    /// Has a text sent through a connector, to see whether it arrives.
    ///
    /// # Errors
    /// The connector does not exist or is disabled; the chat is invalid; the user has not exactly
    /// one key of the connector's.
    pub async fn test(
        &self,
        by: By<'_>,
        name: &ConnectorName,
        to: TestTarget,
        text: Option<String>,
    ) -> Result<OutboundMessageId, Error> {
        let shared = &*self.shared;
        let served = shared.enabled(name)?;
        let chat = shared.chat_of(&served, to).await?;
        let id = Uuid::new_v4();
        let outbound_message =
            OutboundMessageId::mint(served.id(), &chat, &format!("test:{id}"), 0);
        let asked = json!({ "test_connector": name, "chat": chat, "text": text });
        let key = match once(&shared.core, by, &asked, &outbound_message.to_string()).await? {
            Once::New(key) => key,
            Once::Before(reply) => {
                let before = String::from_utf8_lossy(&reply).parse();
                return before.map_err(|_| outbound_message_not_found().into());
            }
        };
        let given = text.as_deref().unwrap_or(TEST);
        let text = within_bounds(given);
        if text.len() < given.trim().len() {
            let reported = format!("the text has {} bytes, which are too many", given.len());
            return Err(invalid(&reported, "/text").into());
        }
        if text.is_empty() {
            let reported = "the text says nothing; leave it out for a sentence of the host's own";
            return Err(invalid(reported, "/text").into());
        }
        let now = shared.core.now();
        let queued = Event::OutboundMessageQueued(OutboundMessageQueued {
            connector: name.clone(),
            outbound_message,
            chat,
            text,
            choices: Vec::new(),
            without_buttons: None,
            cause: OutboundMessageCause::Test {
                user: by.user.clone(),
            },
            time: now,
        });
        let event = Context::by(by.user, now).event(queued);
        let mut commit = Commit::new().append(served.stream(), Expected::Any, vec![event]);
        commit.key = key;
        shared.core.store().commit(commit).await?;
        shared.outbox.notify_one();
        Ok(outbound_message)
    }

    /// Retries a message that was given up, or for which it is unknown whether it was sent. It
    /// takes its old place in the order of its chat.
    ///
    /// # Errors
    /// The message does not exist, or it is in another state.
    pub async fn requeue(
        &self,
        by: By<'_>,
        name: &ConnectorName,
        outbound_message: OutboundMessageId,
    ) -> Result<OutboundMessageRow, Error> {
        let shared = &*self.shared;
        let asked = json!({ "requeue": outbound_message, "connector": name });
        let key = match once(&shared.core, by, &asked, "").await? {
            Once::New(key) => key,
            Once::Before(_) => return shared.outbound_message_of(name, outbound_message).await,
        };
        let row = shared.outbound_message_of(name, outbound_message).await?;
        if !matches!(
            row.state,
            OutboundMessageState::Dead | OutboundMessageState::Unknown
        ) {
            return Err(not_dead(row.state).into());
        }
        let edits = shared.core.store().edited_by(outbound_message).await?;
        let now = shared.core.now();
        let requeued = Event::OutboundMessageRequeued(OutboundMessageRequeued {
            connector: name.clone(),
            outbound_message,
            by: by.user.clone(),
            edits,
            time: now,
        });
        let event = Context::by(by.user, now).event(requeued);
        let stream = Stream::Connector(ConnectorId::of_name(name.as_str()));
        let mut commit = Commit::new()
            .guard(ConnectorGuard::OutboundMessageIs {
                outbound_message,
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
                let row = shared.outbound_message_of(name, outbound_message).await?;
                return Err(not_dead(row.state).into());
            }
            Err(error) => return Err(error.into()),
        }
        shared.outbox.notify_one();
        shared.outbound_message_of(name, outbound_message).await
    }

    /// Accepts a message of a page's visitor, through a connector that is the host's own. When this
    /// returns, it is durable and will be processed. The same id within seven days is the same
    /// message.
    ///
    /// # Errors
    /// The connector does not exist or is disabled; the message is malformed; too many messages
    /// wait.
    pub async fn accept(
        &self,
        name: &ConnectorName,
        message: Incoming,
    ) -> Result<AcceptedInboundMessage, Error> {
        let shared = &*self.shared;
        let served = shared.enabled(name)?;
        if !matches!(served.link, ConnectorLink::Direct) {
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
                Some(inbound_message) => Ok(AcceptedInboundMessage {
                    inbound_message: *inbound_message,
                    replayed: false,
                }),
                None => shared.accepted_before(&key).await,
            },
            TakenIn::Crowded | TakenIn::Overtaken => {
                let reported = "too many messages wait to be dealt with; try again shortly";
                Err(Refusal::new(ErrorCode::Busy, reported).into())
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
        let reported =
            format!("the connector `{name}` is disabled; enable it in the configuration");
        Err(Refusal::new(ErrorCode::ConnectorDisabled, reported))
    }

    /// Returns the chat of a test.
    async fn chat_of(&self, served: &Served, to: TestTarget) -> Result<String, Error> {
        match to {
            TestTarget::Chat(chat) if is_chat(&chat) => Ok(chat),
            TestTarget::Chat(_) => {
                let reported = format!(
                    "a chat has 1 to {SERVICE_ID_BYTES_MAX} bytes, and no control character in it"
                );
                Err(invalid(reported, "/chat").into())
            }
            TestTarget::User(user) => {
                let rows = self.core.store().keys_of_user(&user, KEYS_MAX).await?;
                let keys: Vec<ConnectorKey> = rows.into_iter().map(|row| row.key).collect();
                let path = AgentPath::connector(user, served.name.clone());
                let target = ReplyTarget::resolve(&path, &keys).map_err(|none| {
                    let reported = none.to_string();
                    Refusal::new(ErrorCode::ConnectorKeyNotFound, reported).at("/user")
                })?;
                Ok(target.target_id)
            }
        }
    }

    /// Returns an outbound message of a connector.
    pub(super) async fn outbound_message_of(
        &self,
        name: &ConnectorName,
        outbound_message: OutboundMessageId,
    ) -> Result<OutboundMessageRow, Error> {
        let row = self.core.store().outbound_message(outbound_message).await?;
        row.filter(|row| row.connector == *name)
            .ok_or_else(|| outbound_message_not_found().into())
    }

    /// Returns the visitor's earlier message under a key.
    async fn accepted_before(&self, key: &Key) -> Result<AcceptedInboundMessage, Error> {
        let landed = self
            .core
            .store()
            .remembered_request(&key.source, &key.key, self.core.now())
            .await?;
        let inbound_message =
            landed.and_then(|landed| String::from_utf8(landed.reply).ok()?.parse().ok());
        let inbound_message = inbound_message.ok_or_else(|| {
            let reported = "a message with this id came at this moment; try again shortly";
            Refusal::new(ErrorCode::Busy, reported)
        })?;
        Ok(AcceptedInboundMessage {
            inbound_message,
            replayed: true,
        })
    }
}

/// Returns the key under which a visitor's message is found again. Its reply is the inbound
/// message.
fn visitors_key(served: &Served, id: &str) -> Key {
    let key = key_of(&served.name, id);
    Key {
        source: format!("{} inbound messages", served.origin()),
        request: domain::digest::Digest::of(key.as_bytes()),
        key,
        reply: Vec::new(),
        about: None,
    }
}

pub(super) fn connector_not_found(name: &ConnectorName) -> Refusal {
    let reported = format!("there is no connector `{name}`; GET /api/connectors lists them");
    Refusal::new(ErrorCode::ConnectorNotFound, reported).at("path:connector")
}

fn outbound_message_not_found() -> Refusal {
    let reported = "this connector has no such outbound message";
    Refusal::new(ErrorCode::OutboundMessageNotFound, reported)
}

fn not_dead(state: OutboundMessageState) -> Refusal {
    let reported = format!(
        "only an outbound message that is dead or unknown is sent again; this one is {}",
        state.as_str()
    );
    Refusal::new(ErrorCode::OutboundMessageNotDead, reported)
}

fn invalid(reported: impl Into<String>, field: &str) -> Refusal {
    Refusal::new(ErrorCode::Invalid, reported).at(field)
}

fn is_chat(text: &str) -> bool {
    (1..=SERVICE_ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}
