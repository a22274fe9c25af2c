//! The address of a message that is routed.

use super::Target;
use domain::id::{SessionId, TurnId};
use domain::path::FetchStrategy;
use domain::persona::PersonaId;
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
    /// Nobody: the agent that a strategy finds, and the user's latest chat with it.
    Found(FetchStrategy),
}

impl Address {
    /// Returns the name of its level.
    #[must_use]
    pub fn level(&self) -> &'static str {
        match self {
            Self::Thread(_) => "thread",
            Self::Session(_) => "session",
            Self::Agent(_) => "agent",
            Self::Persona(_) => "persona",
            Self::Smart { .. } => "smart",
            Self::Found(_) => "strategy",
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
