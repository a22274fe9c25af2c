//! What happens to an input, from its acceptance, and where it came from.

use crate::account::Accounts;
use crate::authority::{Denies, Permissions};
use crate::budget::Budget;
use crate::delegate::Priority;
use crate::dispatch::Depth;
use crate::id::{InputId, SessionId};
use crate::message::Draft;
use crate::operation::ReplyTo;
use crate::queue::{self, Overflow};
use crate::time::Timestamp;
use crate::user::UserId;
use serde::{Deserialize, Serialize};

/// Where an input came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// The API.
    Api,
    /// A structured session began: there are no words.
    Opening,
    /// Another agent handed over work.
    Dispatch {
        /// Who waits for the reply; none when detached.
        reply_to: Option<ReplyTo>,
        /// The calling agent's path.
        from: String,
        /// When the work is to be done by.
        deadline: Option<Timestamp>,
        /// How many calls deep.
        depth: u32,
        /// How many hops the calling run had ([`crate::dispatch::Limits::hops_max`]).
        #[serde(default)]
        hops: u32,
        /// How urgent it is.
        #[serde(default)]
        priority: Priority,
        /// How many spawns deep.
        #[serde(default, skip_serializing_if = "is_zero")]
        spawn_depth: u32,
        /// What it may use.
        #[serde(default, skip_serializing_if = "Budget::is_none")]
        budget: Budget,
        /// What the agents that hand it over may not do.
        #[serde(default, skip_serializing_if = "Denies::is_empty")]
        denies: Denies,
        /// What personas, roles and paths permit of all turns that hand it over.
        #[serde(default, skip_serializing_if = "Permissions::are_all")]
        permissions: Permissions,
        /// What all may use together that came of the same message; none in events from before there were any.
        #[serde(default, skip_serializing_if = "Accounts::is_empty")]
        accounts: Accounts,
    },
    /// A reply that nobody waits for any more.
    LateReply {
        /// The replying agent's path.
        from: String,
        /// How many calls deep the run was that handed the work over.
        #[serde(default)]
        depth: u32,
        /// One hop more than the work had that it replies to.
        #[serde(default)]
        hops: u32,
        /// How many spawns deep that run was.
        #[serde(default, skip_serializing_if = "is_zero")]
        spawn_depth: u32,
        /// What that run, and those that handed it its work, may not do.
        #[serde(default, skip_serializing_if = "Denies::is_empty")]
        denies: Denies,
        /// What personas, roles and paths permit of all turns that handed that run its work.
        #[serde(default, skip_serializing_if = "Permissions::are_all")]
        permissions: Permissions,
        /// What all may use together that came of the same message; none in events from before there were any.
        #[serde(default, skip_serializing_if = "Accounts::is_empty")]
        accounts: Accounts,
        /// When the work is to be done by that it comes of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// A reminder that the agent set itself; not to be dealt with before it is due.
    Reminder {
        /// When.
        due: Timestamp,
        /// How many calls deep the run was that set it.
        #[serde(default)]
        depth: u32,
        /// How many spawns deep.
        #[serde(default, skip_serializing_if = "is_zero")]
        spawn_depth: u32,
        /// How many hops that run had.
        #[serde(default, skip_serializing_if = "is_zero")]
        hops: u32,
        /// What that run, and those that handed it its work, may not do.
        #[serde(default, skip_serializing_if = "Denies::is_empty")]
        denies: Denies,
        /// What personas, roles and paths permit of all turns that handed that run its work.
        #[serde(default, skip_serializing_if = "Permissions::are_all")]
        permissions: Permissions,
        /// What all may use together that came of the same message; none in events from before there were any.
        #[serde(default, skip_serializing_if = "Accounts::is_empty")]
        accounts: Accounts,
        /// When the work is to be done by that it comes of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
}

/// Whether nothing is to be written of a depth.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

impl Source {
    /// Whether these are words that may join a run that is open. Work that somebody waits for, and an opening, get a run of their own.
    #[must_use]
    pub fn is_words(&self) -> bool {
        matches!(self, Self::Api | Self::LateReply { .. } | Self::Reminder { .. })
    }

    /// What it waits for when nobody said: words join what is under way.
    #[must_use]
    pub fn waits_for(&self) -> queue::Kind {
        if self.is_words() { queue::Kind::Steer } else { queue::Kind::OwnTurn }
    }

    /// How deep a run is that begins with it.
    #[must_use]
    pub fn depth(&self) -> Depth {
        match self {
            Self::Dispatch { depth, spawn_depth, .. }
            | Self::LateReply { depth, spawn_depth, .. }
            | Self::Reminder { depth, spawn_depth, .. } => Depth { call: *depth, spawn: *spawn_depth },
            Self::Api | Self::Opening => Depth::default(),
        }
    }

    /// What a run may use that begins with it, besides what its agent's own limits say.
    #[must_use]
    pub fn budget(&self) -> Budget {
        match self {
            Self::Dispatch { budget, .. } => *budget,
            Self::Api | Self::Opening | Self::LateReply { .. } | Self::Reminder { .. } => Budget::default(),
        }
    }

    /// What a run may not do that begins with it, besides what is denied to its agent: whoever has somebody else do it, or does it later, may
    /// not do it either.
    #[must_use]
    pub fn denies(&self) -> Option<&Denies> {
        match self {
            Self::Dispatch { denies, .. } | Self::LateReply { denies, .. } | Self::Reminder { denies, .. } => Some(denies),
            Self::Api | Self::Opening => None,
        }
    }

    /// What is permitted to a run that begins with it, besides what its own session permits.
    #[must_use]
    pub fn permissions(&self) -> Option<&Permissions> {
        match self {
            Self::Dispatch { permissions, .. } | Self::LateReply { permissions, .. } | Self::Reminder { permissions, .. } => {
                Some(permissions)
            }
            Self::Api | Self::Opening => None,
        }
    }

    /// What a run draws on that begins with it; none for what a message begins.
    #[must_use]
    pub fn accounts(&self) -> Option<&Accounts> {
        match self {
            Self::Dispatch { accounts, .. } | Self::LateReply { accounts, .. } | Self::Reminder { accounts, .. } => Some(accounts),
            Self::Api | Self::Opening => None,
        }
    }

    /// When a run is to be done by that begins with it.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Dispatch { deadline, .. } | Self::LateReply { deadline, .. } | Self::Reminder { deadline, .. } => *deadline,
            Self::Api | Self::Opening => None,
        }
    }

    /// How many hops a run has that takes it in ([`crate::dispatch::Limits::hops_max`]).
    #[must_use]
    pub fn hops(&self) -> u32 {
        match self {
            Self::Dispatch { hops, .. } | Self::LateReply { hops, .. } | Self::Reminder { hops, .. } => *hops,
            Self::Api | Self::Opening => 0,
        }
    }

    /// How urgent a run is that begins with it.
    #[must_use]
    pub fn priority(&self) -> Priority {
        match self {
            Self::Dispatch { priority, .. } => *priority,
            Self::Api | Self::Opening | Self::LateReply { .. } | Self::Reminder { .. } => Priority::default(),
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
    /// Where it came from.
    pub source: Source,
    /// The user whom it is from, or for whom the agent works that it is from; the agent's owner in events from before it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// What it says, without a place in the thread yet; none for an opening.
    pub message: Option<Draft>,
    /// The model that its turn is to use.
    pub model: Option<String>,
    /// What it waits for, as the rules of the queue decided it when it came; in events from before there were any, what
    /// [`Source::waits_for`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<queue::Kind>,
    /// How urgent its sender says it is; none for what its source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// When.
    pub time: Timestamp,
}

impl InputAccepted {
    /// What it waits for.
    #[must_use]
    pub fn waits_for(&self) -> queue::Kind {
        self.waits_for.clone().unwrap_or_else(|| self.source.waits_for())
    }

    /// How urgent it is.
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
    /// By whom.
    pub cancelled_by: UserId,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::InputsDropped`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputsDropped {
    /// The session.
    pub session: SessionId,
    /// The inputs, those that had waited longest; none when a turn that was to tell of those before never came to be.
    pub inputs: Vec<InputId>,
    /// What is to be told of them, and of those that were dropped before and that no turn has told of.
    pub overflow: Overflow,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::InputDead`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputDead {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// Why.
    pub reason: String,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::InputRequeued`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequeued {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// When.
    pub time: Timestamp,
}
