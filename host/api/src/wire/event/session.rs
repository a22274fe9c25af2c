//! The public form of the events of sessions: their inputs, turns, items, files and labels.

use super::ReplyRouteView;
use super::public;
use crate::wire::message::{MessageView, draft};
use crate::wire::operation::ReplyToView;
use crate::wire::queue::{WaitsFor, waits_for};
use crate::wire::values::{ContentDigest, Time};
use domain::account::Accounts;
use domain::budget::Budget;
use domain::delegate::Priority;
use domain::event::{self, Source};
use domain::id::{
    AgentId, ConversationId, InputId, OperationId, RunId, SessionId, TriggerEventId, TurnId,
};
use domain::model::Usage;
use domain::queue::{Overflow, QueueOverride};
use domain::trigger::TriggerName;
use domain::turn::TurnEnd;
use domain::user::UserId;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

public! {
    SessionOpened(it: event::SessionOpened) {
        session_id: SessionId = it.session,
        session_type: String,
        name: Option<String>,
        turn_id: Option<TurnId> = it.head,
        model: Option<String>,
        started_by: String,
        user_id: UserId,
        conversation_id: ConversationId = it.conversation,
    }
    SessionRenamed(it: event::SessionRenamed) {
        name: Option<String>,
    }
    SessionPinned(it: event::SessionPinned) {
        pinned: bool,
    }
    SessionAttributed(it: event::SessionAttributed) {
        #[schema(value_type = Object)]
        attributes: Map<String, Value>,
    }
    SessionCleared(it: event::SessionCleared) {
        revision: u64,
    }
    SessionDeleted(it: event::SessionDeleted) {
        deleted_by: UserId,
    }
    QueueConfigured(it: event::QueueConfigured) {
        #[schema(value_type = Object)]
        queue: QueueOverride,
    }
    InputAccepted(it: event::InputAccepted) {
        input_id: InputId = it.input,
        source: SourceView = (&it.source).into(),
        message: Option<MessageView> = it.message.as_ref().map(draft),
        model: Option<String>,
        user_id: UserId,
        waits_for: WaitsFor = waits_for(&it.waits_for()),
        priority: Priority = it.priority(),
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        labels: BTreeMap<String, String> = it.labels.0.clone(),
    }
    InputCancelled(it: event::InputCancelled) {
        input_id: InputId = it.input,
        cancelled_by: UserId,
        reason: Option<String>,
    }
    InputsDropped(it: event::InputsDropped) {
        input_ids: Vec<InputId> = it.inputs.clone(),
        #[schema(value_type = Object)]
        overflow: Overflow,
    }
    InputDead(it: event::InputDead) {
        input_id: InputId = it.input,
        reason: String,
    }
    InputRequeued(it: event::InputRequeued) {
        input_id: InputId = it.input,
        requeued_by: UserId,
        repeat: Option<RunId>,
    }
    TurnCommitted(it: event::TurnCommitted) {
        turn_id: TurnId = it.turn.id,
        parent_turn_id: Option<TurnId> = it.turn.parent,
        depth: u64 = it.turn.depth,
        first_message: u64 = it.turn.first_message,
        last_message: u64 = it.turn.last_message,
        revision: u64,
        end: TurnEnd = it.turn.end,
        usage: Usage = it.turn.usage,
        models: Vec<String> = it.turn.models.clone(),
    }
    TurnsImported(it: event::TurnsImported) {
        session_id: SessionId = it.session,
        turn_ids: Vec<TurnId> = it.turns.iter().map(|imported| imported.turn.id).collect(),
        messages: usize = imported_messages(it),
    }
    MemoryDue(it: event::MemoryDue) {
        session_id: SessionId = it.session,
        due: Option<Time> = it.due.map(Time),
    }
    MemoryRead(it: event::MemoryRead) {
        session_id: SessionId = it.session,
        agent_id: AgentId = it.agent,
        reader_session_id: SessionId = it.reader,
        through_turn_id: TurnId = it.through,
        input_id: InputId = it.input,
        #[schema(value_type = String)]
        because: domain::memory::TriggerEvent,
    }
    ItemRecorded(it: event::ItemRecorded) {
        item_id: String = it.item.clone(),
        sequence: Option<u32>,
        prompt: Value,
        response: Value,
        evaluation: Option<Value>,
        client_action: Option<ShownWidget> = it.client_action.as_ref().map(|action| ShownWidget {
            widget: action.widget.clone(),
            props: action.props.clone(),
        }),
        imported: bool,
        asked_at: Option<Time> = it.asked_at.map(Time),
        answered_at: Option<Time> = it.answered_at.map(Time),
    }
    UiSaved(it: event::UiSaved) {
        session_id: SessionId = it.session,
        tool_call_id: OperationId,
        widget_partial_state: Value = it.partial_state.clone(),
    }
    FileUploaded(it: event::FileUploaded) {
        session_id: SessionId = it.session,
        digest: ContentDigest = ContentDigest(it.digest),
        name: String,
        media_type: String,
        bytes: u64,
        user_id: UserId,
    }
}

/// The widget in which an item was asked.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct ShownWidget {
    widget: String,
    props: Value,
}

/// The origin of an input.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = InputOrigin)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum SourceView {
    /// A client of the API.
    Api,
    /// A trigger.
    Trigger {
        trigger: TriggerName,
        trigger_event_id: TriggerEventId,
        /// The chat into which the reply goes.
        reply_route: Option<ReplyRouteView>,
    },
    /// People at a messaging service.
    Connector {
        /// The chat into which the reply goes.
        reply_route: ReplyRouteView,
        /// The service's ids of its messages.
        service_ids: Vec<String>,
    },
    /// The beginning of a structured session, which has no words.
    Opening,
    /// Work that another agent handed over.
    Dispatch {
        /// The sending agent's path, or definition.
        from: String,
        depth: u32,
        spawn_depth: u32,
        hops: u32,
        priority: Priority,
        deadline: Option<Time>,
        #[schema(value_type = Object)]
        budget: Budget,
        #[schema(value_type = Vec<Object>)]
        accounts: Accounts,
        /// The operation that waits for the reply.
        reply_to: Option<ReplyToView>,
    },
    /// An answer of another agent that nobody waited for any more.
    LateReply {
        /// The answering agent's path, or definition.
        from: String,
        depth: u32,
        spawn_depth: u32,
        hops: u32,
        deadline: Option<Time>,
        #[schema(value_type = Vec<Object>)]
        accounts: Accounts,
    },
    /// A reminder that the agent asked for.
    Reminder {
        due: Time,
        deadline: Option<Time>,
        #[schema(value_type = Vec<Object>)]
        accounts: Accounts,
    },
}

impl From<&Source> for SourceView {
    fn from(source: &Source) -> Self {
        match source {
            Source::Api => Self::Api,
            Source::Trigger {
                trigger,
                trigger_event,
                quiet: _,
                reply_to,
            } => Self::Trigger {
                trigger: trigger.clone(),
                trigger_event_id: *trigger_event,
                reply_route: reply_to.as_ref().map(Into::into),
            },
            Source::Connector { reply_to, messages } => Self::Connector {
                reply_route: reply_to.into(),
                service_ids: messages.clone(),
            },
            Source::Opening => Self::Opening,
            Source::Dispatch {
                reply_to,
                from,
                deadline,
                depth,
                hops,
                priority,
                spawn_depth,
                budget,
                denies: _,
                permissions: _,
                accounts,
            } => Self::Dispatch {
                from: from.clone(),
                depth: *depth,
                spawn_depth: *spawn_depth,
                hops: *hops,
                priority: *priority,
                deadline: deadline.map(Time),
                budget: *budget,
                accounts: accounts.clone(),
                reply_to: reply_to.as_ref().map(Into::into),
            },
            Source::LateReply {
                from,
                depth,
                hops,
                spawn_depth,
                denies: _,
                permissions: _,
                accounts,
                deadline,
            } => Self::LateReply {
                from: from.clone(),
                depth: *depth,
                spawn_depth: *spawn_depth,
                hops: *hops,
                deadline: deadline.map(Time),
                accounts: accounts.clone(),
            },
            Source::Reminder {
                due,
                accounts,
                deadline,
                ..
            } => Self::Reminder {
                due: Time(*due),
                deadline: deadline.map(Time),
                accounts: accounts.clone(),
            },
        }
    }
}

/// Returns the number of messages that were imported, and are not erased.
fn imported_messages(it: &event::TurnsImported) -> usize {
    let messages = it.turns.iter().flat_map(|turn| &turn.messages);
    messages
        .filter(|message| it.erased.is_none() || message.is_some())
        .count()
}
