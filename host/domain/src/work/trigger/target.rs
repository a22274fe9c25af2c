//! Targets: the destinations of a trigger's messages.

use super::{ABOUT_BYTES_MAX, TARGET_NAME_BYTES_MAX};
use crate::access::user::UserId;
use crate::agents::path::AgentPath;
use crate::agents::persona::PersonaId;
use crate::values::id::{AgentId, SessionId, TurnId};
use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The recipient of a trigger's messages. In JSON an object with one key, such as `{"agent":
/// "assistant"}`. A missing recipient is refused when the trigger is made over the API, and again
/// when it is fired; it is never replaced by another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TargetInput", untagged)]
pub enum TriggerTarget {
    /// An agent: the user's latest chat with it, or a new one.
    Agent {
        /// The id of a definition, an agent's id or its path.
        agent: String,
    },
    /// A session.
    Session {
        /// The session.
        session: SessionId,
    },
    /// A turn: the message begins its child.
    Turn {
        /// The turn.
        turn: TurnId,
    },
    /// The agent at a path, which may be made there: the user's latest chat with it, or a new one.
    Path {
        /// The path.
        path: AgentPath,
    },
    /// A persona: the user's main session with it, or a new one.
    Persona {
        /// The persona.
        persona: PersonaId,
    },
    /// The user's thread on the same topic.
    Smart {
        /// The threads to search.
        smart: SmartTarget,
    },
}

/// The threads that are searched for the same topic.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SmartTarget {
    /// The topic of the thread, 4 KiB at most; by default, the message itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Only threads with this agent: the id of a definition, an agent's id or its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only threads under this persona.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona: Option<PersonaId>,
}

/// The recipient of the replies to a trigger's messages, in addition to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Deliver {
    /// To nobody.
    None,
    /// The chat in which the user last wrote to the agent through a connector; nobody if there is
    /// none.
    #[default]
    Last,
}

words!(Deliver { None = "none", Last = "last" });

/// The reason why an object is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a target has {found} of the keys agent, session, turn, path, persona and smart; write exactly \
     one, such as agent = \"assistant\""
)]
pub struct NotATarget {
    found: usize,
}

/// A target in its written form: exactly one of these.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "TriggerTarget")]
struct TargetInput {
    /// An agent: the id of a definition, an agent's id or its path. The user's latest chat with it,
    /// or a new one.
    agent: Option<String>,
    /// A session's id.
    #[schemars(with = "Option<String>")]
    session: Option<SessionId>,
    /// A turn's id: the message begins its child.
    #[schemars(with = "Option<String>")]
    turn: Option<TurnId>,
    /// The path of an agent.
    path: Option<AgentPath>,
    /// A persona's id: the user's main session with it, or a new one.
    persona: Option<PersonaId>,
    /// The user's thread on the same topic.
    smart: Option<SmartTarget>,
}

impl TryFrom<TargetInput> for TriggerTarget {
    type Error = NotATarget;

    fn try_from(given: TargetInput) -> Result<Self, NotATarget> {
        let found = [
            given.agent.map(|agent| Self::Agent { agent }),
            given.session.map(|session| Self::Session { session }),
            given.turn.map(|turn| Self::Turn { turn }),
            given.path.map(|path| Self::Path { path }),
            given.persona.map(|persona| Self::Persona { persona }),
            given.smart.map(|smart| Self::Smart { smart }),
        ];
        let mut found: Vec<Self> = found.into_iter().flatten().collect();
        match (found.pop(), found.len()) {
            (Some(target), 0) => Ok(target),
            (None, _) => Err(NotATarget { found: 0 }),
            (Some(_), others) => Err(NotATarget { found: others + 1 }),
        }
    }
}

impl JsonSchema for TriggerTarget {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        TargetInput::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = TargetInput::json_schema(generator);
        schema.insert("minProperties".to_owned(), 1.into());
        schema.insert("maxProperties".to_owned(), 1.into());
        schema
    }
}

/// Something wrong with a target.
pub(super) struct TargetFault {
    /// The key of the target.
    pub(super) key: &'static str,
    /// The fault in it.
    pub(super) message: String,
    /// The correction.
    pub(super) fix: String,
}

impl TriggerTarget {
    /// Returns its key in the definition.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Agent { .. } => "agent",
            Self::Session { .. } => "session",
            Self::Turn { .. } => "turn",
            Self::Path { .. } => "path",
            Self::Persona { .. } => "persona",
            Self::Smart { .. } => "smart",
        }
    }

    /// Returns the recipient of a trigger's messages for a user, in words.
    #[must_use]
    pub fn subscriber(&self, user: &UserId) -> String {
        match self {
            Self::Agent { agent } if agent.starts_with('/') || agent.parse::<AgentId>().is_ok() => {
                format!("the agent {agent}")
            }
            Self::Agent { agent } => format!("the agent /{user}/agent/{agent}"),
            Self::Path { path } => match path.connector_name() {
                Some(connector) => {
                    format!("the agent {path}, which is there once they wrote through {connector}")
                }
                None => format!("the agent {path}"),
            },
            Self::Session { session } => format!("the session {session}"),
            Self::Turn { turn } => format!("a session at the turn {turn}"),
            Self::Persona { persona } => format!("{user}'s main session with {persona}"),
            Self::Smart { .. } => format!("{user}'s thread on the topic"),
        }
    }

    /// Returns whether each trigger run can have a session of its own there. The target then has to
    /// be an agent or a persona, and not an existing session.
    #[must_use]
    pub fn may_be_isolated(&self) -> bool {
        matches!(
            self,
            Self::Agent { .. } | Self::Path { .. } | Self::Persona { .. }
        )
    }

    /// Returns the fault that needs no lookup, if any.
    pub(super) fn fault(&self) -> Option<TargetFault> {
        match self {
            Self::Agent { agent } => name_fault("agent", agent),
            Self::Smart { smart } => {
                let about = smart.about.as_deref().unwrap_or_default();
                if about.len() > ABOUT_BYTES_MAX {
                    return Some(TargetFault {
                        key: "smart.about",
                        message: format!("has {} bytes", about.len()),
                        fix: format!("write at most {ABOUT_BYTES_MAX}"),
                    });
                }
                let agent = smart.agent.as_deref()?;
                name_fault("smart.agent", agent)
            }
            Self::Session { .. } | Self::Turn { .. } | Self::Path { .. } | Self::Persona { .. } => {
                None
            }
        }
    }
}

fn name_fault(key: &'static str, name: &str) -> Option<TargetFault> {
    let is_named = !name.trim().is_empty()
        && name.len() <= TARGET_NAME_BYTES_MAX
        && !name.chars().any(char::is_control);
    (!is_named).then(|| TargetFault {
        key,
        message: "names no agent".to_owned(),
        fix: "write the id of a definition, an agent's id or its path".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_target_has_exactly_one_key() {
        for (given, is) in [
            (json!({ "agent": "assistant" }), true),
            (
                json!({ "session": "00000000-0000-4000-8000-0000000000b1" }),
                true,
            ),
            (json!({ "turn": "e2".repeat(32) }), true),
            (json!({ "path": "/ada/telegram" }), true),
            (json!({ "persona": "home" }), true),
            (json!({ "smart": {} }), true),
            (
                json!({ "smart": { "about": "books", "agent": "assistant" } }),
                true,
            ),
            (json!({}), false),
            (json!({ "agent": "a", "persona": "b" }), false),
            (json!({ "agent": "a", "user": "b" }), false),
            (json!({ "path": "ada" }), false),
            (json!("assistant"), false),
        ] {
            let read = serde_json::from_value::<TriggerTarget>(given.clone());
            assert_eq!(read.is_ok(), is, "{given}: {read:?}");
            if let Ok(target) = read {
                assert_eq!(json!(target), given);
                assert!(given.get(target.key()).is_some());
            }
        }
    }

    #[test]
    fn a_target_says_who_hears_it() {
        let user = "ada".parse().unwrap();
        for (target, expected) in [
            (json!({ "agent": "books" }), "the agent /ada/agent/books"),
            (
                json!({ "agent": "/ada/telegram" }),
                "the agent /ada/telegram",
            ),
            (
                json!({ "path": "/ada/cron/daily" }),
                "the agent /ada/cron/daily",
            ),
            (
                json!({ "path": "/ada/telegram" }),
                "the agent /ada/telegram, which is there once they wrote through telegram",
            ),
            (
                json!({ "path": "/ada/telegram/sub/0" }),
                "the agent /ada/telegram/sub/0",
            ),
            (json!({ "persona": "home" }), "ada's main session with home"),
            (json!({ "smart": {} }), "ada's thread on the topic"),
        ] {
            let target: TriggerTarget = serde_json::from_value(target).unwrap();
            assert_eq!(target.subscriber(&user), expected);
        }
    }

    #[test]
    fn a_wrong_target_says_what_to_write() {
        let both = serde_json::from_value::<TriggerTarget>(json!({ "agent": "a", "persona": "b" }));
        let error = both.unwrap_err().to_string();
        assert!(
            error.contains("2 of the keys") && error.contains("exactly one"),
            "{error}"
        );
        for agent in ["", " ", "a\nb"] {
            let target = TriggerTarget::Agent {
                agent: agent.to_owned(),
            };
            assert_eq!(target.fault().map(|fault| fault.key), Some("agent"));
        }
    }
}
