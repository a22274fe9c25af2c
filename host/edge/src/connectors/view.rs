//! Connectors and outbound messages as operators see them.

use super::Connectors;
use super::commands::connector_not_found;
use super::served::{ConnectorLink, Served};
use broker::Error;
use domain::connector::{ConnectorSpec, Intake};
use domain::id::OutboundMessageId;
use domain::path::ConnectorName;
use domain::time::Timestamp;
use domain::trouble::ServiceTrouble;
use serde::Serialize;
use std::sync::Arc;
use store::{OutboundMessageFilter, OutboundMessageRow, OutboundMessageState};

/// The condition of a connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectorCondition {
    /// Its service is asked for news.
    Polling,
    /// Its service calls the host.
    Webhook,
    /// It is the host's own: web pages call the host.
    Direct,
    /// The operator disabled it.
    Disabled,
    /// It is stopped: its component does not exist, or cannot do what is configured.
    WithoutComponent,
    /// Its credentials do not count.
    Unauthorised,
    /// Its service cannot be used.
    Failing,
}

impl ConnectorCondition {
    /// Returns whether an operator has to act on it.
    #[must_use]
    pub fn is_trouble(self) -> bool {
        match self {
            Self::Polling | Self::Webhook | Self::Direct | Self::Disabled => false,
            Self::WithoutComponent | Self::Unauthorised | Self::Failing => true,
        }
    }
}

/// A connector as it is served.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectorState {
    /// Its name.
    pub name: ConnectorName,
    /// Its configuration.
    pub spec: Arc<ConnectorSpec>,
    /// Its condition.
    pub condition: ConnectorCondition,
    /// The reason of a trouble.
    pub reason: Option<String>,
    /// Time at which that trouble began.
    pub since: Option<Timestamp>,
    /// Time at which a message arrived last.
    pub last_received: Option<Timestamp>,
    /// Number of messages that arrived and are not with a session yet.
    pub inbound_messages: u64,
    /// Number of messages that wait to be sent.
    pub waiting: u64,
    /// Number of messages for which it is unknown whether they were sent.
    pub unknown: u64,
    /// Number of messages that were given up.
    pub dead: u64,
}

/// A page of outbound messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboundMessageQuery {
    /// The state that they are in; any without.
    pub state: Option<OutboundMessageState>,
    /// The position that they are before; any without.
    pub before: Option<u64>,
    /// Maximum number of outbound messages.
    pub limit: usize,
}

impl Connectors {
    /// Returns all connectors that are configured, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<ConnectorState>, Error> {
        let mut states = Vec::new();
        for served in self.shared.served.all() {
            let store = self.shared.core.store();
            let row = store.connector(&served.name).await?;
            let counts = store.outbound_message_counts(&served.name).await?;
            let inbound_messages = store.open_inbound_messages_count(&served.name).await?;
            let last_received = row.as_ref().and_then(|row| row.last_received);
            let trouble = row.and_then(|row| row.trouble);
            states.push(ConnectorState {
                name: served.name.clone(),
                spec: served.spec.clone(),
                condition: condition(&served, trouble.as_ref().map(|(trouble, _)| trouble)),
                reason: trouble
                    .as_ref()
                    .and_then(|(trouble, _)| trouble.reason())
                    .map(ToOwned::to_owned),
                since: trouble
                    .filter(|(trouble, _)| trouble.reason().is_some())
                    .map(|(_, since)| since),
                last_received,
                inbound_messages,
                waiting: counts.open,
                unknown: counts.unknown,
                dead: counts.dead,
            });
        }
        Ok(states)
    }

    /// Returns outbound messages of a connector, the newest first. Those of one that is no longer
    /// configured are included.
    ///
    /// # Errors
    /// There is no such connector, and never was; the store cannot be read.
    pub async fn outbound_messages(
        &self,
        name: &ConnectorName,
        query: OutboundMessageQuery,
    ) -> Result<Vec<OutboundMessageRow>, Error> {
        let OutboundMessageQuery {
            state,
            before,
            limit,
        } = query;
        let store = self.shared.core.store();
        let filter = OutboundMessageFilter {
            connector: name.clone(),
            state,
        };
        let rows = store.outbound_messages(filter, before, limit).await?;
        let is_known = !rows.is_empty()
            || self.shared.served.get(name).is_some()
            || store.connector(name).await?.is_some();
        if is_known {
            Ok(rows)
        } else {
            Err(connector_not_found(name).into())
        }
    }

    /// Returns an outbound message of a connector.
    ///
    /// # Errors
    /// There is none.
    pub async fn outbound_message(
        &self,
        name: &ConnectorName,
        outbound_message: OutboundMessageId,
    ) -> Result<OutboundMessageRow, Error> {
        self.shared
            .outbound_message_of(name, outbound_message)
            .await
    }
}

fn condition(served: &Served, trouble: Option<&ServiceTrouble>) -> ConnectorCondition {
    if !served.spec.enabled {
        return ConnectorCondition::Disabled;
    }
    match (&served.link, trouble) {
        (ConnectorLink::None, _) => ConnectorCondition::WithoutComponent,
        (ConnectorLink::Direct, _) => ConnectorCondition::Direct,
        (ConnectorLink::Component(_), Some(ServiceTrouble::Unauthorised { .. })) => {
            ConnectorCondition::Unauthorised
        }
        (ConnectorLink::Component(_), Some(ServiceTrouble::Failing { .. })) => {
            ConnectorCondition::Failing
        }
        (ConnectorLink::Component(_), Some(ServiceTrouble::Recovered) | None) => {
            match served.spec.intake() {
                Intake::Polling => ConnectorCondition::Polling,
                Intake::Webhook => ConnectorCondition::Webhook,
            }
        }
    }
}
