//! The public form of the events of connectors: arrivals, what is sent, and its outcome.
//!
//! Words that arrive are not shown here: they are in the session that took them, for whoever may
//! see that. Words that are sent are shown where they are about a session.

use super::public;
use crate::wire::delivery::ChoiceView;
use crate::wire::values::Time;
use domain::connector::ReplyRoute;
use domain::event::{self, Arrival, ArrivalOutcome, DeliveryCause, DeliveryOutcome};
use domain::id::{AgentId, DeliveryId, InputId, OccasionId, OperationId, RunId, SessionId};
use domain::path::ConnectorName;
use domain::trouble::ServiceTrouble;
use domain::user::UserId;
use serde::Serialize;

public! {
    ConnectorReceived(it: event::ConnectorReceived) {
        connector: ConnectorName,
        arrivals: Vec<ArrivalView> = it.arrivals.iter().map(Into::into).collect(),
        cursor_moved: bool = it.cursor.is_some(),
    }
    ArrivalsSettled(it: event::ArrivalsSettled) {
        connector: ConnectorName,
        arrival_ids: Vec<OccasionId> = it.arrivals.clone(),
        result: ArrivalOutcomeView = (&it.outcome).into(),
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
    DeliveryQueued(it: event::DeliveryQueued) {
        connector: ConnectorName,
        delivery_id: DeliveryId = it.delivery,
        chat: String,
        text: String,
        choices: Vec<ChoiceView> = it.choices.iter().map(Into::into).collect(),
        cause: CauseView = (&it.cause).into(),
    }
    DeliveryStarted(it: event::DeliveryStarted) {
        connector: ConnectorName,
        delivery_id: DeliveryId = it.delivery,
        attempt: u32,
        piece: u32,
    }
    DeliverySettled(it: event::DeliverySettled) {
        connector: ConnectorName,
        delivery_id: DeliveryId = it.delivery,
        result: DeliveryOutcomeView = (&it.outcome).into(),
    }
    DeliveryRequeued(it: event::DeliveryRequeued) {
        connector: ConnectorName,
        delivery_id: DeliveryId = it.delivery,
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
#[schema(as = Arrival)]
pub(crate) struct ArrivalView {
    arrival_id: OccasionId,
    /// The service's own id of it.
    service_id: String,
    sender: String,
    group: Option<String>,
    chat: String,
    /// Number of files that it brought.
    files: usize,
    sent_at: Time,
}

impl From<&Arrival> for ArrivalView {
    fn from(arrival: &Arrival) -> Self {
        let message = &arrival.message;
        Self {
            arrival_id: arrival.id,
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
#[schema(as = ArrivalOutcome)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum ArrivalOutcomeView {
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

impl From<&ArrivalOutcome> for ArrivalOutcomeView {
    fn from(outcome: &ArrivalOutcome) -> Self {
        match outcome {
            ArrivalOutcome::Accepted {
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
            ArrivalOutcome::Answered { user, operation } => Self::Answered {
                user_id: user.clone(),
                operation_id: *operation,
            },
            ArrivalOutcome::Configured { user, session } => Self::Configured {
                user_id: user.clone(),
                session_id: *session,
            },
            ArrivalOutcome::Ignored => Self::Ignored,
            ArrivalOutcome::Unknown => Self::Unknown,
            ArrivalOutcome::Paired => Self::Paired,
            ArrivalOutcome::Refused { reason } => Self::Refused {
                reason: reason.clone(),
            },
        }
    }
}

/// The cause of a message to people outside.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DeliveryCause)]
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
    Host { arrival_id: OccasionId },
    /// A test by a user.
    Test { user_id: UserId },
}

impl From<&DeliveryCause> for CauseView {
    fn from(cause: &DeliveryCause) -> Self {
        match cause {
            DeliveryCause::Turn { session, run } => Self::Turn {
                session_id: *session,
                run_id: *run,
            },
            DeliveryCause::Question {
                session,
                run,
                operation,
            } => Self::Question {
                session_id: *session,
                run_id: *run,
                operation_id: *operation,
            },
            DeliveryCause::Input { session, input } => Self::Input {
                session_id: *session,
                input_id: *input,
            },
            DeliveryCause::Host { arrival } => Self::Host {
                arrival_id: *arrival,
            },
            DeliveryCause::Test { user } => Self::Test {
                user_id: user.clone(),
            },
        }
    }
}

/// The outcome of an attempt to send a message to people outside.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DeliveryOutcome)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum DeliveryOutcomeView {
    /// The service took it, or the last piece of it.
    Delivered { service_ids: Vec<String> },
    /// The service took a piece of it.
    Piece { service_id: String },
    /// It is tried again.
    Failed { reason: String, retry_at: Time },
    /// It may have been sent, and is not sent again.
    Unknown { reason: String },
    /// A piece that the service took did not arrive after all.
    Undelivered { piece: u32, reason: String },
    /// It was given up.
    Dead { reason: String },
}

impl From<&DeliveryOutcome> for DeliveryOutcomeView {
    fn from(outcome: &DeliveryOutcome) -> Self {
        match outcome {
            DeliveryOutcome::Delivered { service_ids } => Self::Delivered {
                service_ids: service_ids.clone(),
            },
            DeliveryOutcome::Piece { service_id } => Self::Piece {
                service_id: service_id.clone(),
            },
            DeliveryOutcome::Failed { reason, retry_at } => Self::Failed {
                reason: reason.clone(),
                retry_at: Time(*retry_at),
            },
            DeliveryOutcome::Unknown { reason } => Self::Unknown {
                reason: reason.clone(),
            },
            DeliveryOutcome::Undelivered { piece, reason } => Self::Undelivered {
                piece: *piece,
                reason: reason.clone(),
            },
            DeliveryOutcome::Dead { reason } => Self::Dead {
                reason: reason.clone(),
            },
        }
    }
}
