//! The address of a message that is routed.

use super::Target;
use domain::id::{SessionId, TurnId};
use domain::path::FetchStrategy;
use domain::persona::PersonaId;
use serde::Serialize;
use serde_json::{Value, json};

/// The address of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A turn: the words begin its child.
    Thread(TurnId),
    /// A session.
    Session(SessionId),
    /// An agent: the user's latest chat with it, or a new one.
    Agent(Target),
    /// A persona: the user's main session with it, or a new one.
    Persona(PersonaId),
    /// The user's thread that speaks of the same thing.
    Smart {
        /// The words to search for. Without: the message itself.
        about: Option<String>,
        /// The agent whose threads are searched; none for all agents.
        agent: Option<Target>,
        /// The persona whose threads are searched; none for all threads.
        persona: Option<PersonaId>,
    },
    /// No address: the agent that a strategy selects, and the user's latest chat with it.
    Found(FetchStrategy),
}

/// The level at which a message was addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AddressLevel {
    /// A turn.
    Thread,
    /// A session.
    Session,
    /// An agent.
    Agent,
    /// A persona.
    Persona,
    /// The thread on the same topic.
    Smart,
    /// The agent that a strategy finds.
    Strategy,
}

impl Address {
    /// Returns its level.
    #[must_use]
    pub fn level(&self) -> AddressLevel {
        match self {
            Self::Thread(_) => AddressLevel::Thread,
            Self::Session(_) => AddressLevel::Session,
            Self::Agent(_) => AddressLevel::Agent,
            Self::Persona(_) => AddressLevel::Persona,
            Self::Smart { .. } => AddressLevel::Smart,
            Self::Found(_) => AddressLevel::Strategy,
        }
    }

    /// Returns the description of the address for the request under its key.
    pub(super) fn named(&self) -> Value {
        match self {
            Self::Thread(turn) => json!({ "thread": turn }),
            Self::Session(session) => json!({ "session": session }),
            Self::Agent(target) => json!({ "agent": target.named() }),
            Self::Persona(persona) => json!({ "persona": persona }),
            Self::Smart {
                about,
                agent,
                persona,
            } => {
                let agent = agent.as_ref().map(Target::named);
                json!({ "smart": { "about": about, "agent": agent, "persona": persona } })
            }
            Self::Found(strategy) => json!({ "strategy": strategy }),
        }
    }
}
