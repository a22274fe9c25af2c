//! The public form of the events of connectors: inbound messages, what is sent, and its outcome.
//!
//! Words that arrive are not shown here: they are in the session that took them, for whoever may
//! see that. Words that are sent are shown where they are about a session.

use super::public;
use crate::wire::outbound_message::ChoiceView;
use crate::wire::values::Time;
use domain::connector::ReplyRoute;
use domain::event::{
    self, InboundMessage, InboundMessageOutcome, OutboundMessageCause, OutboundMessageOutcome,
    Received,
};
use domain::id::{
    AgentId, InputId, OperationId, OutboundMessageId, RunId, SessionId, TriggerEventId,
};
use domain::path::ConnectorName;
use domain::trouble::ServiceTrouble;
use domain::user::UserId;
use serde::Serialize;

public! {
    ConnectorReceived(it: event::ConnectorReceived) {
        connector: ConnectorName,
        inbound_messages: Vec<InboundMessageView> = match &it.what {
            Received::InboundMessage(message) => vec![message.as_ref().into()],
            Received::Cursor(_) => Vec::new(),
        },
        cursor_moved: bool = matches!(it.what, Received::Cursor(_)),
    }
    InboundMessagesSettled(it: event::InboundMessagesSettled) {
        connector: ConnectorName,
        inbound_message_ids: Vec<TriggerEventId> = it.inbound_messages.clone(),
        result: InboundMessageOutcomeView = (&it.outcome).into(),
    }
    // Without its code: whoever knows it may confirm it.
    PairingOffered(it: event::PairingOffered) {
        key: String = it.key.to_string(),
        name: Option<String>,
        chat: String,
        expires_at: Time = Time(it.expires),
    }
    PairingSettled(it: event::PairingSettled) {
        key: String = it.key.to_string(),
        user_id: Option<UserId> = it.user.clone(),
    }
    OutboundMessageQueued(it: event::OutboundMessageQueued) {
        connector: ConnectorName,
        outbound_message_id: OutboundMessageId = it.outbound_message,
        chat: String,
        text: String,
        choices: Vec<ChoiceView> = it.choices.iter().map(Into::into).collect(),
        cause: CauseView = (&it.cause).into(),
    }
    OutboundMessageStarted(it: event::OutboundMessageStarted) {
        connector: ConnectorName,
        outbound_message_id: OutboundMessageId = it.outbound_message,
        attempt: u32,
        chunk: u32,
    }
    OutboundMessageSettled(it: event::OutboundMessageSettled) {
        connector: ConnectorName,
        outbound_message_id: OutboundMessageId = it.outbound_message,
        result: OutboundMessageOutcomeView = (&it.outcome).into(),
    }
    OutboundMessageRequeued(it: event::OutboundMessageRequeued) {
        connector: ConnectorName,
        outbound_message_id: OutboundMessageId = it.outbound_message,
        requeued_by: UserId = it.by.clone(),
    }
    ConnectorTroubled(it: event::ConnectorTroubled) {
        connector: ConnectorName,
        #[schema(value_type = Object)]
        trouble: ServiceTrouble,
    }
}

/// The chat into which replies go.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ReplyRoute)]
pub(crate) struct ReplyRouteView {
    connector: ConnectorName,
    chat: String,
}

impl From<&ReplyRoute> for ReplyRouteView {
    fn from(route: &ReplyRoute) -> Self {
        Self {
            connector: route.connector.clone(),
            chat: route.chat.clone(),
        }
    }
}

/// A message that arrived, without its words.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = InboundMessage)]
pub(crate) struct InboundMessageView {
    inbound_message_id: TriggerEventId,
    /// The service's own id of it.
    service_id: String,
    sender: String,
    group: Option<String>,
    chat: String,
    /// Number of files that it brought.
    files: usize,
    sent_at: Time,
}

impl From<&InboundMessage> for InboundMessageView {
    fn from(inbound_message: &InboundMessage) -> Self {
        let message = &inbound_message.message;
        Self {
            inbound_message_id: inbound_message.id,
            service_id: message.id.clone(),
            sender: message.sender.clone(),
            group: message.group.clone(),
            chat: message.chat.clone(),
            files: message.attachments.len(),
            sent_at: Time(message.sent_at),
        }
    }
}

/// The outcome of messages that had arrived.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = InboundMessageOutcome)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum InboundMessageOutcomeView {
    /// A session took them.
    Accepted {
        user_id: UserId,
        input_id: InputId,
        session_id: SessionId,
        agent_id: AgentId,
    },
    /// They answered a question.
    Answered {
        user_id: UserId,
        operation_id: OperationId,
    },
    /// They changed the settings of a session's queue.
    Configured {
        user_id: UserId,
        session_id: SessionId,
    },
    /// They were not for an agent.
    Ignored,
    /// Nobody knows their sender.
    Unknown,
    /// Their sender is being paired with a user.
    Paired,
    /// They were refused.
    Refused { reason: String },
}

impl From<&InboundMessageOutcome> for InboundMessageOutcomeView {
    fn from(outcome: &InboundMessageOutcome) -> Self {
        match outcome {
            InboundMessageOutcome::Accepted {
                user,
                input,
                session,
                agent,
            } => Self::Accepted {
                user_id: user.clone(),
                input_id: *input,
                session_id: *session,
                agent_id: *agent,
            },
            InboundMessageOutcome::Answered { user, operation } => Self::Answered {
                user_id: user.clone(),
                operation_id: *operation,
            },
            InboundMessageOutcome::Configured { user, session } => Self::Configured {
                user_id: user.clone(),
                session_id: *session,
            },
            InboundMessageOutcome::Ignored => Self::Ignored,
            InboundMessageOutcome::Unknown => Self::Unknown,
            InboundMessageOutcome::Paired => Self::Paired,
            InboundMessageOutcome::Refused { reason } => Self::Refused {
                reason: reason.clone(),
            },
        }
    }
}

/// The cause of a message to people outside.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = OutboundMessageCause)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CauseView {
    /// The reply of a turn.
    Turn {
        session_id: SessionId,
        run_id: RunId,
    },
    /// A question.
    Question {
        session_id: SessionId,
        run_id: RunId,
        operation_id: OperationId,
    },
    /// An input that no turn was begun with.
    Input {
        session_id: SessionId,
        input_id: InputId,
    },
    /// Words of the host's own.
    Host { inbound_message_id: TriggerEventId },
    /// A test by a user.
    Test { user_id: UserId },
}

impl From<&OutboundMessageCause> for CauseView {
    fn from(cause: &OutboundMessageCause) -> Self {
        match cause {
            OutboundMessageCause::Turn { session, run } => Self::Turn {
                session_id: *session,
                run_id: *run,
            },
            OutboundMessageCause::Question {
                session,
                run,
                operation,
            } => Self::Question {
                session_id: *session,
                run_id: *run,
                operation_id: *operation,
            },
            OutboundMessageCause::Input { session, input } => Self::Input {
                session_id: *session,
                input_id: *input,
            },
            OutboundMessageCause::Host { inbound_message } => Self::Host {
                inbound_message_id: *inbound_message,
            },
            OutboundMessageCause::Test { user } => Self::Test {
                user_id: user.clone(),
            },
        }
    }
}

/// The outcome of an attempt to send a message to people outside.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = OutboundMessageOutcome)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum OutboundMessageOutcomeView {
    /// The service took it, or the last chunk of it.
    Delivered { service_ids: Vec<String> },
    /// The service took a chunk of it.
    Chunk { service_id: String },
    /// It is tried again.
    Failed { reason: String, retry_at: Time },
    /// It may have been sent, and is not sent again.
    Unknown { reason: String },
    /// A chunk that the service took did not arrive after all.
    Undelivered { chunk: u32, reason: String },
    /// It was given up.
    Dead { reason: String },
}

impl From<&OutboundMessageOutcome> for OutboundMessageOutcomeView {
    fn from(outcome: &OutboundMessageOutcome) -> Self {
        match outcome {
            OutboundMessageOutcome::Delivered { service_ids } => Self::Delivered {
                service_ids: service_ids.clone(),
            },
            OutboundMessageOutcome::Chunk { service_id } => Self::Chunk {
                service_id: service_id.clone(),
            },
            OutboundMessageOutcome::Failed { reason, retry_at } => Self::Failed {
                reason: reason.clone(),
                retry_at: Time(*retry_at),
            },
            OutboundMessageOutcome::Unknown { reason } => Self::Unknown {
                reason: reason.clone(),
            },
            OutboundMessageOutcome::Undelivered { chunk, reason } => Self::Undelivered {
                chunk: *chunk,
                reason: reason.clone(),
            },
            OutboundMessageOutcome::Dead { reason } => Self::Dead {
                reason: reason.clone(),
            },
        }
    }
}
