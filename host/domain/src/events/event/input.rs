//! Payloads about an input after its acceptance, and the sources of inputs.

use crate::access::user::UserId;
use crate::agents::authority::{Denies, Permissions};
use crate::thread::message::Draft;
use crate::thread::message_labels::MessageLabels;
use crate::values::id::{InputId, RunId, SessionId, TriggerEventId};
use crate::values::time::Timestamp;
use crate::work::account::Accounts;
use crate::work::budget::Budget;
use crate::work::connector::ReplyRoute;
use crate::work::delegate::Priority;
use crate::work::dispatch::Depth;
use crate::work::operation::ReplyTo;
use crate::work::queue::{self, Overflow};
use crate::work::trigger::{Quiet, TriggerName};
use serde::{Deserialize, Serialize};

/// Source of an input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// The API.
    Api,
    /// A trigger that was fired.
    Trigger {
        /// The trigger.
        trigger: TriggerName,
        /// The trigger event.
        trigger_event: TriggerEventId,
        /// The rule by which replies without content ("nothing to do") are not sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quiet: Option<Quiet>,
        /// The chat that receives replies; none if nobody receives them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<ReplyRoute>,
    },
    /// A person outside, through a connector.
    Connector {
        /// The chat that receives replies: the origin of the message.
        reply_to: ReplyRoute,
        /// The service's ids of its messages.
        messages: Vec<String>,
    },
    /// The beginning of a structured session, without a message.
    Opening,
    /// Another agent handed over work.
    Dispatch {
        /// The caller that waits for the reply; none when detached.
        reply_to: Option<ReplyTo>,
        /// The calling agent's path.
        from: String,
        /// Time by which the work has to be done.
        deadline: Option<Timestamp>,
        /// Depth in calls.
        depth: u32,
        /// Number of hops of the calling run ([`crate::work::dispatch::DispatchLimits::hops_max`]).
        hops: u32,
        /// Priority of the work.
        priority: Priority,
        /// Depth in spawns.
        #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
        spawn_depth: u32,
        /// Budget of the work.
        #[serde(default, skip_serializing_if = "Budget::is_none")]
        budget: Budget,
        /// Denials of the agents that hand it over.
        #[serde(default, skip_serializing_if = "Denies::is_empty")]
        denies: Denies,
        /// Permissions of all turns that hand it over, by personas, roles and paths.
        #[serde(default, skip_serializing_if = "Permissions::are_all")]
        permissions: Permissions,
        /// Accounts shared by all work that follows from the same message.
        #[serde(default, skip_serializing_if = "Accounts::is_empty")]
        accounts: Accounts,
    },
    /// A reply without a waiting operation.
    LateReply {
        /// The replying agent's path.
        from: String,
        /// Call depth of the run that handed over the work.
        depth: u32,
        /// The hops of the work that it replies to, plus one.
        hops: u32,
        /// Depth in spawns of that run.
        #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
        spawn_depth: u32,
        /// Denials of that run and of those that handed it its work.
        #[serde(default, skip_serializing_if = "Denies::is_empty")]
        denies: Denies,
        /// Permissions of all turns that handed that run its work, by personas, roles and paths.
        #[serde(default, skip_serializing_if = "Permissions::are_all")]
        permissions: Permissions,
        /// Accounts shared by all work that follows from the same message.
        #[serde(default, skip_serializing_if = "Accounts::is_empty")]
        accounts: Accounts,
        /// The deadline of the work from which this reply follows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// A reminder that the agent set itself. It waits until it is due.
    Reminder {
        /// Time at which the reminder is due.
        due: Timestamp,
        /// Call depth of the run that set it.
        depth: u32,
        /// Depth in spawns of that run.
        #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
        spawn_depth: u32,
        /// Number of hops of that run.
        #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
        hops: u32,
        /// Denials of that run and of those that handed it its work.
        #[serde(default, skip_serializing_if = "Denies::is_empty")]
        denies: Denies,
        /// Permissions of all turns that handed that run its work, by personas, roles and paths.
        #[serde(default, skip_serializing_if = "Permissions::are_all")]
        permissions: Permissions,
        /// Accounts shared by all work that follows from the same message.
        #[serde(default, skip_serializing_if = "Accounts::is_empty")]
        accounts: Accounts,
        /// The deadline of the work from which this reminder follows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
}

impl Source {
    /// Returns whether the input is a message. Work with a waiting caller and an opening are not.
    #[must_use]
    pub fn is_words(&self) -> bool {
        matches!(
            self,
            Self::Api
                | Self::Trigger { .. }
                | Self::Connector { .. }
                | Self::LateReply { .. }
                | Self::Reminder { .. }
        )
    }

    /// Returns whether the input may join an open run. There it stays a separate message, with its
    /// speaker and its mark. Only messages may join, except late replies, and reminders of a turn
    /// with any limit on its authority. A run that began without that limit would act on the
    /// reminder without it.
    #[must_use]
    pub fn may_join(&self) -> bool {
        match self {
            Self::Api | Self::Trigger { .. } | Self::Connector { .. } => true,
            Self::LateReply {
                denies,
                permissions,
                ..
            }
            | Self::Reminder {
                denies,
                permissions,
                ..
            } => denies.is_empty() && permissions.are_all(),
            Self::Dispatch { .. } | Self::Opening => false,
        }
    }

    /// Returns what the input waits for by default: a message joins the open run.
    #[must_use]
    pub fn waits_for(&self) -> queue::WaitKind {
        if self.may_join() {
            queue::WaitKind::Steer
        } else {
            queue::WaitKind::OwnTurn
        }
    }

    /// Returns the depth of a run that begins with the input.
    #[must_use]
    pub fn depth(&self) -> Depth {
        match self {
            Self::Dispatch {
                depth, spawn_depth, ..
            }
            | Self::LateReply {
                depth, spawn_depth, ..
            }
            | Self::Reminder {
                depth, spawn_depth, ..
            } => Depth {
                call: *depth,
                spawn: *spawn_depth,
            },
            Self::Api | Self::Trigger { .. } | Self::Connector { .. } | Self::Opening => {
                Depth::default()
            }
        }
    }

    /// Returns the budget of a run that begins with the input, besides its agent's own limits.
    #[must_use]
    pub fn budget(&self) -> Budget {
        match self {
            Self::Dispatch { budget, .. } => *budget,
            Self::Api
            | Self::Trigger { .. }
            | Self::Connector { .. }
            | Self::Opening
            | Self::LateReply { .. }
            | Self::Reminder { .. } => Budget::default(),
        }
    }

    /// Returns the denials of a run that begins with the input, in addition to those of its agent.
    /// Work that is handed over or postponed stays bound by the denials of its original run.
    #[must_use]
    pub fn denies(&self) -> Option<&Denies> {
        match self {
            Self::Dispatch { denies, .. }
            | Self::LateReply { denies, .. }
            | Self::Reminder { denies, .. } => Some(denies),
            Self::Api | Self::Trigger { .. } | Self::Connector { .. } | Self::Opening => None,
        }
    }

    /// Returns the permissions of a run that begins with the input, besides those of its own
    /// session.
    #[must_use]
    pub fn permissions(&self) -> Option<&Permissions> {
        match self {
            Self::Dispatch { permissions, .. }
            | Self::LateReply { permissions, .. }
            | Self::Reminder { permissions, .. } => Some(permissions),
            Self::Api | Self::Trigger { .. } | Self::Connector { .. } | Self::Opening => None,
        }
    }

    /// Returns the accounts of a run that begins with the input. None if a message begins the run.
    #[must_use]
    pub fn accounts(&self) -> Option<&Accounts> {
        match self {
            Self::Dispatch { accounts, .. }
            | Self::LateReply { accounts, .. }
            | Self::Reminder { accounts, .. } => Some(accounts),
            Self::Api | Self::Trigger { .. } | Self::Connector { .. } | Self::Opening => None,
        }
    }

    /// Returns the deadline of a run that begins with the input.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Dispatch { deadline, .. }
            | Self::LateReply { deadline, .. }
            | Self::Reminder { deadline, .. } => *deadline,
            Self::Api | Self::Trigger { .. } | Self::Connector { .. } | Self::Opening => None,
        }
    }

    /// Returns the number of hops of a run that claims the input
    /// ([`crate::work::dispatch::DispatchLimits::hops_max`]).
    #[must_use]
    pub fn hops(&self) -> u32 {
        match self {
            Self::Dispatch { hops, .. }
            | Self::LateReply { hops, .. }
            | Self::Reminder { hops, .. } => *hops,
            Self::Api | Self::Trigger { .. } | Self::Connector { .. } | Self::Opening => 0,
        }
    }

    /// Returns the priority of a run that begins with the input.
    #[must_use]
    pub fn priority(&self) -> Priority {
        match self {
            Self::Dispatch { priority, .. } => *priority,
            Self::Api
            | Self::Trigger { .. }
            | Self::Connector { .. }
            | Self::Opening
            | Self::LateReply { .. }
            | Self::Reminder { .. } => Priority::default(),
        }
    }
}

/// See [`super::Event::InputAccepted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputAccepted {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// Source of the input.
    pub source: Source,
    /// The user who sent it, or for whom the sending agent works.
    pub user_id: UserId,
    /// The message, without a place in the thread yet; none for an opening.
    pub message: Option<Draft>,
    /// The model that its turn is to use.
    pub model: Option<String>,
    /// The kind of wait that the queue's rules chose on receipt; none for that of the source
    /// ([`Source::waits_for`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<queue::WaitKind>,
    /// Priority that the sender requested; none to use that of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Labels that the sender put on the message. Agents do not see them.
    #[serde(default, skip_serializing_if = "MessageLabels::is_empty")]
    pub labels: MessageLabels,
    /// Time of acceptance.
    pub time: Timestamp,
}

impl InputAccepted {
    /// Returns an input without a message, of the user `local`.
    #[must_use]
    pub fn of(session: SessionId, input: InputId, source: Source, time: Timestamp) -> Self {
        Self {
            input,
            session,
            source,
            user_id: UserId::local(),
            message: None,
            model: None,
            waits_for: None,
            priority: None,
            labels: MessageLabels::default(),
            time,
        }
    }

    /// Returns what the input waits for.
    #[must_use]
    pub fn waits_for(&self) -> queue::WaitKind {
        self.waits_for
            .clone()
            .unwrap_or_else(|| self.source.waits_for())
    }

    /// Returns the priority of the input.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority.unwrap_or_else(|| self.source.priority())
    }
}

/// See [`super::Event::InputCancelled`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputCancelled {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// The user who cancelled it.
    pub cancelled_by: UserId,
    /// The reason, as the user put it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time of the cancellation.
    pub time: Timestamp,
}

/// See [`super::Event::InputsDropped`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputsDropped {
    /// The session.
    pub session: SessionId,
    /// The dropped inputs, oldest first. None when the turn that was to report earlier ones was
    /// never made.
    pub inputs: Vec<InputId>,
    /// The overflow to report: these inputs, and those dropped before that no turn has reported
    /// yet.
    pub overflow: Overflow,
    /// Time at which they were dropped.
    pub time: Timestamp,
}

/// See [`super::Event::InputDead`].
///
/// The input, whose run the host gave up. It may have been claimed by a run with a stored turn, and
/// the turn may have acted on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputDead {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// The reason why it was set aside.
    pub reason: String,
    /// Time at which it was set aside.
    pub time: Timestamp,
}

/// See [`super::Event::InputRequeued`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequeued {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// The user who requeued it.
    pub requeued_by: UserId,
    /// The run whose turn had begun with it, and which that user permits to repeat; none when no
    /// turn had begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<RunId>,
    /// Time at which it was requeued.
    pub time: Timestamp,
}
