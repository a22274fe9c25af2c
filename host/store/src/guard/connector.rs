//! Guards on connectors: their progress, and the state of inbound and outbound messages.

use super::question::{Answers, Questions, ask};
use super::{Condition, Footprint, Resource, unless};
use crate::query::Value;
use crate::read::OutboundMessageState;
use crate::sql::{self, Columns};
use domain::id::{OutboundMessageId, TriggerEventId};
use domain::path::{ConnectorKey, ConnectorName};
use domain::time::Timestamp;

/// Condition on a connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectorGuard {
    /// This is the cursor of the connector's next poll; none before the first poll.
    CursorIs {
        /// The connector.
        connector: ConnectorName,
        /// The cursor.
        cursor: Option<String>,
    },
    /// No message with this id of the service's has arrived since a time.
    NotArrived {
        /// The connector.
        connector: ConnectorName,
        /// The service's id of the message.
        message: String,
        /// Start of the period.
        since: Timestamp,
    },
    /// The inbound message exists, and its outcome is not known.
    InboundMessageOpen {
        /// The connector.
        connector: ConnectorName,
        /// The message.
        inbound_message: TriggerEventId,
    },
    /// The outbound message is in this state.
    OutboundMessageIs {
        /// The outbound message.
        outbound_message: OutboundMessageId,
        /// The state.
        state: OutboundMessageState,
    },
    /// This is the pairing code that the sender got last, and it is not settled.
    PairingIs {
        /// The sender.
        key: ConnectorKey,
        /// The code; none for a sender without one.
        code: Option<String>,
    },
}

impl Condition for ConnectorGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::CursorIs { connector, .. } => ask(
                "SELECT cursor FROM connectors WHERE id = ?1",
                [Value::id(&domain::id::ConnectorId::of_name(
                    connector.as_str(),
                ))],
            ),
            Self::NotArrived {
                connector,
                message,
                since,
            } => ask(
                "SELECT 1 FROM inbound_messages WHERE connector = ?1 AND message = ?2 AND received >= ?3 \
                 LIMIT 1",
                [
                    Value::text(connector.as_str()),
                    Value::text(message),
                    Value::number(since.0),
                ],
            ),
            Self::InboundMessageOpen {
                connector,
                inbound_message,
            } => ask(
                "SELECT 1 FROM inbound_messages WHERE id = ?1 AND connector = ?2 AND outcome IS NULL",
                [Value::id(inbound_message), Value::text(connector.as_str())],
            ),
            Self::OutboundMessageIs {
                outbound_message, ..
            } => ask(
                "SELECT state FROM outbound_messages WHERE id = ?1",
                [Value::digest(&outbound_message.0)],
            ),
            Self::PairingIs { key, .. } => {
                ask("SELECT code FROM pairings WHERE key = ?1", [Value::id(key)])
            }
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        let found = match self {
            Self::NotArrived { .. } => {
                return Ok(unless(rows.is_empty(), || "it has arrived".to_owned()));
            }
            Self::InboundMessageOpen { .. } => {
                return Ok(unless(!rows.is_empty(), || "it is not open".to_owned()));
            }
            Self::CursorIs { .. } | Self::OutboundMessageIs { .. } | Self::PairingIs { .. } => rows
                .first()
                .map(|row| row.text_opt(0))
                .transpose()?
                .flatten(),
        };
        let wanted = match self {
            Self::CursorIs { cursor, .. } => cursor.as_deref(),
            Self::OutboundMessageIs { state, .. } => Some(state.as_str()),
            Self::PairingIs { code, .. } => code.as_deref(),
            Self::NotArrived { .. } | Self::InboundMessageOpen { .. } => None,
        };
        // A cursor may be a secret of the service, and a code is one of the sender.
        Ok(unless(found == wanted, || match self {
            Self::OutboundMessageIs { .. } => format!("it is {}", found.unwrap_or("not there")),
            _ => "it is another one".to_owned(),
        }))
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::CursorIs { connector, .. }
            | Self::NotArrived { connector, .. }
            | Self::InboundMessageOpen { connector, .. } => {
                vec![Resource::Connector(connector.clone())]
            }
            Self::OutboundMessageIs {
                outbound_message, ..
            } => vec![Resource::OutboundMessage(*outbound_message)],
            Self::PairingIs { key, .. } => vec![Resource::ConnectorKey(key.clone())],
        }
    }
}
