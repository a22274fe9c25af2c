//! Outbound messages, pairings and connectors in public form.

use super::Time;
use super::event::CauseView;
use domain::connector::{Choice, UnknownSender};
use domain::definition::DefinitionId;
use domain::id::OutboundMessageId;
use domain::path::ConnectorName;
use edge::{ConnectorCondition, ConnectorState};
use serde::Serialize;
use store::{OutboundMessageRow, OutboundMessageState, PairingRow};

/// A choice of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = OutboundMessageChoice)]
pub(crate) struct ChoiceView {
    /// The text that people see.
    pub(crate) label: String,
    /// The value that comes back when it is chosen.
    pub(crate) value: String,
}

impl From<&Choice> for ChoiceView {
    fn from(choice: &Choice) -> Self {
        Self {
            label: choice.label.clone(),
            value: choice.value.clone(),
        }
    }
}

/// A message to people outside.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = OutboundMessage)]
pub(crate) struct OutboundMessageView {
    /// Its id, the same for every attempt.
    pub(crate) outbound_message_id: OutboundMessageId,
    /// Its outcome so far.
    #[serde(flatten)]
    pub(crate) state: TurnOutboundMessageView,
    /// Its cause.
    pub(crate) cause: CauseView,
    /// Its length in bytes.
    pub(crate) bytes: u64,
    /// Number of choices, of a question.
    pub(crate) choices: u64,
    /// The time at which it was queued, ISO 8601.
    pub(crate) queued_at: Time,
}

/// The state of a message to people outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = OutboundMessageStatus)]
pub(crate) struct TurnOutboundMessageView {
    /// The connector.
    pub(crate) connector: ConnectorName,
    /// The chat, in the service's terms.
    pub(crate) chat: String,
    /// `queued`, `started`, `failed` until the next attempt, `delivered`, `unknown` if it may have
    /// been sent and is not sent again, or `dead` once it was given up.
    pub(crate) state: OutboundMessageState,
    /// Number of attempts at the present chunk of it.
    pub(crate) attempts: u32,
    /// Chunks of it that the service has taken: long texts are sent in several.
    pub(crate) chunks_sent: u32,
    /// The reason of the latest failure.
    pub(crate) reason: Option<String>,
    /// The time of the next attempt, ISO 8601.
    pub(crate) retry_at: Option<Time>,
    /// The service's ids of what it has taken.
    pub(crate) service_ids: Vec<String>,
    /// The time of its latest change, ISO 8601.
    pub(crate) updated_at: Time,
}

/// A sender who is offered to be paired with a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Pairing)]
pub(crate) struct PairingView {
    /// The code that the sender was told.
    pub(crate) code: String,
    /// The connector.
    pub(crate) connector: ConnectorName,
    /// The service's own id of the sender.
    pub(crate) target_id: String,
    /// The sender's name for people, as the service gives it.
    pub(crate) name: Option<String>,
    /// The chat in which the code was told.
    pub(crate) chat: String,
    /// The time at which it was told, ISO 8601.
    pub(crate) offered_at: Time,
    /// The time until which it counts, ISO 8601.
    pub(crate) expires_at: Time,
}

/// A connector as it is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ConnectorState)]
pub(crate) struct ConnectorStateView {
    /// Its name.
    pub(crate) name: ConnectorName,
    /// The component that translates for its service; `direct` for a chat of the host's own.
    pub(crate) component: String,
    /// The definition of the agents that talk through it.
    pub(crate) definition: DefinitionId,
    /// `polling`, `webhook` or `direct` while all is well; `disabled`, `without_component`,
    /// `unauthorised` or `failing`.
    pub(crate) state: ConnectorCondition,
    /// The reason why it is `unauthorised` or `failing`.
    pub(crate) reason: Option<String>,
    /// The time since which it is, ISO 8601.
    pub(crate) since: Option<Time>,
    /// The treatment of senders whom nobody knows.
    pub(crate) unknown_senders: UnknownSender,
    /// The time at which a message arrived last, ISO 8601.
    pub(crate) last_received_at: Option<Time>,
    /// Number of messages that arrived and are with no session yet.
    pub(crate) inbound_messages_waiting: u64,
    /// Number of outbound messages that are still to be sent.
    pub(crate) outbound_messages_waiting: u64,
    /// Number of outbound messages of which nobody knows whether they were sent.
    pub(crate) outbound_messages_unknown: u64,
    /// Number of outbound messages that were given up.
    pub(crate) outbound_messages_dead: u64,
}

/// A connector as the operator sees it.
pub(crate) fn connector_state(state: &ConnectorState) -> ConnectorStateView {
    ConnectorStateView {
        name: state.name.clone(),
        component: state.spec.component.clone(),
        definition: state.spec.agent.clone(),
        state: state.condition,
        reason: state.reason.clone(),
        since: state.since.map(Time),
        unknown_senders: state.spec.unknown,
        last_received_at: state.last_received.map(Time),
        inbound_messages_waiting: state.inbound_messages,
        outbound_messages_waiting: state.waiting,
        outbound_messages_unknown: state.unknown,
        outbound_messages_dead: state.dead,
    }
}

/// An outbound message as the operator sees it, without its words: those are in the session of its
/// cause.
pub(crate) fn outbound_message(row: &OutboundMessageRow) -> OutboundMessageView {
    OutboundMessageView {
        outbound_message_id: row.outbound_message,
        state: turn_outbound_message(row),
        cause: (&row.cause).into(),
        bytes: row.text.len() as u64,
        choices: row.choices.len() as u64,
        queued_at: Time(row.queued),
    }
}

/// An outbound message as it is shown with the turn that it comes of.
pub(crate) fn turn_outbound_message(row: &OutboundMessageRow) -> TurnOutboundMessageView {
    TurnOutboundMessageView {
        connector: row.connector.clone(),
        chat: row.chat.clone(),
        state: row.state,
        attempts: row.attempts,
        chunks_sent: row.chunk,
        reason: row.reason.clone(),
        retry_at: (row.state == OutboundMessageState::Failed).then_some(Time(row.next_try)),
        service_ids: row.service_ids.clone(),
        updated_at: Time(row.updated),
    }
}

/// A pairing as clients see it.
pub(crate) fn pairing(row: &PairingRow) -> PairingView {
    PairingView {
        code: row.code.clone(),
        connector: row.key.connector().clone(),
        target_id: row.key.external_id().to_owned(),
        name: row.name.clone(),
        chat: row.chat.clone(),
        offered_at: Time(row.offered),
        expires_at: Time(row.expires),
    }
}
