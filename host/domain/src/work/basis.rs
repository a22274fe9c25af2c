//! The basis of a step's decision: enough to run the same step again and get the same decision.

use crate::access::user::UserId;
use crate::thread::message::MessageId;
use crate::values::digest::Digest;
use crate::values::id::{RunId, TurnId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The remaining part of a turn's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsLeft {
    /// Further steps.
    pub steps: u32,
    /// Further tool calls.
    pub tool_calls: u32,
    /// Further tokens.
    pub tokens: u64,
}

/// The frozen view of one step. Large parts are stored once per change as blobs and named here by
/// their digests, so a basis stays below 1 KB however long the thread is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The turn that precedes the run; none in an empty thread.
    pub base: Option<TurnId>,
    /// The last message of the thread as this step sees it; 0 if there is none.
    pub head: MessageId,
    /// The code and the documents, which are the same in most steps of a session.
    pub documents: Documents,
    /// The session's state, a blob of JSON.
    pub session_state: Digest,
    /// Number of the session's files that the step may read, counted from the first that was
    /// uploaded.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub files: u64,
    /// Time at which the step first began.
    pub now: Timestamp,
    /// The remaining part of the turn's limits.
    pub left: LimitsLeft,
    /// The seed of the guest's randomness, derived from run and step.
    pub seed: Digest,
}

/// The code of a step and the documents that it reads, each by the digest of its blob of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Documents {
    /// The agent's component.
    pub component: Digest,
    /// The scene of the step: agent id, path, session type ([`Scene`]).
    pub scene: Digest,
    /// The definition's prompt and settings.
    pub settings: Digest,
    /// The tools that the agent may use: an array of tool definitions, in order.
    pub tools: Digest,
    /// The agents that it may dispatch to: an array of [`Peer`].
    pub peers: Digest,
    /// The agent's preferences, overridden by those of the run's user.
    pub preferences: Digest,
    /// The preferences for all its users. None if they equal `preferences`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_preferences: Option<Digest>,
    /// The configuration with which the session was opened, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_config: Option<Digest>,
    /// The agent's ended structured sessions that the user may see; none if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Digest>,
}

impl Documents {
    /// Returns the documents of a step of this code that sees an empty world: each blob is the
    /// same.
    #[must_use]
    pub fn all_of(component: Digest, blob: Digest) -> Self {
        Self {
            component,
            scene: blob,
            settings: blob,
            tools: blob,
            peers: blob,
            preferences: blob,
            shared_preferences: None,
            session_config: None,
            history: None,
        }
    }

    /// Returns the preferences for all users of the agent.
    #[must_use]
    pub fn shared_preferences(&self) -> Digest {
        self.shared_preferences.unwrap_or(self.preferences)
    }

    /// Returns the digests of all documents, without the code.
    pub fn all(self) -> impl Iterator<Item = Digest> {
        let always = [
            self.scene,
            self.settings,
            self.tools,
            self.peers,
            self.preferences,
        ];
        let some = [self.shared_preferences, self.session_config, self.history];
        always.into_iter().chain(some.into_iter().flatten())
    }
}

/// An agent's view of the host while a run is open: its settings, tools, peers and skills. Each is
/// a blob as in [`Basis`]. It is frozen when the run begins. All model calls of a turn thus have
/// the same tools in the same order, whatever is configured meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedConfigDigests {
    /// The definition's prompt and settings.
    pub settings: Digest,
    /// The tools.
    pub tools: Digest,
    /// The peers.
    pub peers: Digest,
    /// Its highest authority: a [`Ceiling`](crate::agents::authority::Ceiling).
    pub ceiling: Digest,
    /// The skills with all their files: a frozen [`SkillSet`](crate::agents::skill::SkillSet). None
    /// without skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Digest>,
}

impl ResolvedConfigDigests {
    /// Returns the view of an agent that sees an empty world: each blob is the same.
    #[must_use]
    pub fn all_of(blob: Digest) -> Self {
        Self {
            settings: blob,
            tools: blob,
            peers: blob,
            ceiling: blob,
            skills: None,
        }
    }

    /// Returns the digests of all its blobs, in the order of its fields.
    pub fn all(self) -> impl Iterator<Item = Digest> {
        [self.settings, self.tools, self.peers, self.ceiling]
            .into_iter()
            .chain(self.skills)
    }
}

impl Basis {
    /// The seed of a step.
    #[must_use]
    pub fn seed(run: RunId, step: u32) -> Digest {
        Digest::of_parts(&[b"seed", run.0.as_bytes(), &step.to_be_bytes()])
    }
}

/// The part of a step's view that rarely changes within a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scene {
    /// The agent's id.
    pub agent_id: String,
    /// Its path.
    pub path: String,
    /// The session's type.
    pub session_type: String,
    /// The user whom the run is for.
    pub user: UserId,
}

/// The agent's own parts of its prompt and settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overrides {
    /// Its system prompt, in place of its definition's.
    pub system_prompt: Option<String>,
    /// Its settings, over its definition's.
    pub settings: Map<String, Value>,
}

/// An agent that may be dispatched to, as a guest sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The id to put into a dispatch's target.
    pub id: String,
    /// Its display name.
    pub name: String,
    /// Purpose of the agent.
    pub description: String,
}
