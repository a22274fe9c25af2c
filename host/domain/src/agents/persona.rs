//! Personas: an identity and its permissions, applied to threads. A persona does not choose the
//! model.

use crate::access::grant::PatternList;
use crate::access::user::UserId;
use crate::agents::authority::{Denies, Permissions};
use crate::agents::definition::DefinitionId;
use crate::values::text::{serde_as_text, wrapped_text};
use serde::{Deserialize, Serialize};
use shapes::NAME_BYTES_MAX;
use std::str::FromStr;

/// A persona's id: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema, utoipa::ToSchema,
)]
#[schemars(with = "String")]
#[schema(pattern = "^[a-z0-9_-]{1,64}$")]
pub struct PersonaId(String);

/// A text that is no persona's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no id of a persona: 1 to {NAME_BYTES_MAX} of `a-z`, `0-9`, `-` and `_`")]
pub struct NotAPersona {
    given: String,
}

impl PersonaId {}

impl FromStr for PersonaId {
    type Err = NotAPersona;
    fn from_str(text: &str) -> Result<Self, NotAPersona> {
        if shapes::is_name(text, b"-_") {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAPersona {
                given: text.chars().take(NAME_BYTES_MAX).collect(),
            })
        }
    }
}

wrapped_text!(PersonaId);
serde_as_text!(PersonaId::from_str);

/// One entry of the config's `personas` array.
///
/// It narrows what agents may do that work under it, and never widens it. Deny lists win, and an
/// allow list is one more list that has to allow. It chooses no model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Persona {
    /// 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    pub id: PersonaId,
    /// Its name for people.
    pub display_name: String,
    /// Identity of the persona, as text for the system prompt of its turns.
    #[serde(default)]
    pub identity: String,
    /// The definition of the agents in its main sessions.
    pub agent: DefinitionId,
    /// Users who may write to it; by default all users.
    #[serde(default)]
    pub users: Option<Vec<String>>,
    /// Tools that may be used in its turns, and by agents that work for them.
    #[serde(default)]
    pub tool_allowlist: Option<PatternList>,
    /// Tools that may not be used in its turns, nor by agents that work for them.
    #[serde(default)]
    pub tool_denylist: Option<PatternList>,
    /// Capabilities that tools may use in its turns, and in those of agents that work for them.
    #[serde(default)]
    pub capability_allowlist: Option<PatternList>,
    /// Capabilities that tools may not use in its turns, nor in those of agents that work for them.
    #[serde(default)]
    pub capability_denylist: Option<PatternList>,
    /// Agents that its turns, and agents that work for them, may not hand work to.
    #[serde(default)]
    pub agent_denylist: Option<PatternList>,
    /// Models that may answer in its turns, and in those of agents that work for them, by their
    /// aliases. Without it, no model is excluded.
    #[serde(default)]
    pub model_allowlist: Option<PatternList>,
}

/// The bounds of a turn besides its agent's own lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The denials of the agents above its own, and of its persona.
    pub denies: Denies,
    /// The permissions that limit it.
    pub permissions: Permissions,
}

impl Bounds {
    /// Returns these bounds of an open turn, reduced to what its persona permits now. A deleted
    /// persona permits nothing.
    #[must_use]
    pub fn within(self, persona: Option<&Persona>) -> Self {
        match persona {
            Some(persona) => Self {
                denies: persona.denies(&self.denies),
                permissions: self.permissions.both(&persona.permissions()),
            },
            None => Self {
                denies: Denies {
                    agents: PatternList::everything(),
                    ..self.denies
                },
                permissions: self.permissions.both(&Permissions {
                    tools: Some(PatternList::default()),
                    capabilities: Some(PatternList::default()),
                    models: Some(PatternList::default()),
                    and: Vec::new(),
                }),
            },
        }
    }
}

impl Persona {
    /// Returns whether a user may write to it.
    #[must_use]
    pub fn admits(&self, user: &UserId) -> bool {
        self.users
            .as_ref()
            .is_none_or(|users| users.iter().any(|named| named == user.as_str()))
    }

    /// Returns the permissions of its turns, and of agents that work for them.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        Permissions {
            tools: self.tool_allowlist.clone(),
            capabilities: self.capability_allowlist.clone(),
            models: self.model_allowlist.clone(),
            and: Vec::new(),
        }
    }

    /// Returns the denials of its turns, added to `others`. Work that the turns hand over inherits
    /// them.
    #[must_use]
    pub fn denies(&self, others: &Denies) -> Denies {
        Denies {
            tools: others.tools.and(self.tool_denylist.as_ref()),
            capabilities: others.capabilities.and(self.capability_denylist.as_ref()),
            agents: others.agents.and(self.agent_denylist.as_ref()),
            confirm: others.confirm.clone(),
        }
    }

    /// The system prompt of its turns: the persona's text, followed by the agent's.
    #[must_use]
    pub fn prompt(&self, of_agent: &str) -> String {
        if self.identity.trim().is_empty() {
            of_agent.to_owned()
        } else {
            format!("{}\n\n{of_agent}", self.identity)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn persona(keys: &serde_json::Value) -> Persona {
        let mut whole = json!({ "id": "home", "displayName": "Home", "agent": "assistant" });
        whole
            .as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_turn_under_way_loses_what_its_persona_does_not_permit_by_now_and_gains_nothing() {
        let bounds = |keys: &serde_json::Value| {
            let persona = persona(keys);
            Bounds {
                denies: persona.denies(&Denies::default()),
                permissions: persona.permissions(),
            }
        };
        let may = |bounds: &Bounds, tool: &str| {
            !bounds.denies.tools.matches(tool) && bounds.permissions.permit_tool(tool)
        };
        for (then, now, expected) in [
            (json!({}), json!({}), [true, true]),
            (json!({}), json!({ "toolDenylist": ["put"] }), [true, false]),
            (
                json!({}),
                json!({ "toolAllowlist": ["put"] }),
                [false, true],
            ),
            (json!({ "toolDenylist": ["put"] }), json!({}), [true, false]),
            (
                json!({ "toolAllowlist": ["put"] }),
                json!({}),
                [false, true],
            ),
        ] {
            let under_way = bounds(&then).within(Some(&persona(&now)));
            assert_eq!(
                ["look", "put"].map(|tool| may(&under_way, tool)),
                expected,
                "{then} {now}"
            );
        }
        let same = json!({ "toolDenylist": ["put"], "capabilityAllowlist": ["files.*"] });
        assert_eq!(bounds(&same).within(Some(&persona(&same))), bounds(&same));
        let gone = bounds(&json!({})).within(None);
        assert!(!may(&gone, "look"), "{gone:?}");
        assert!(
            !gone.permissions.permit_capability("files.read"),
            "{gone:?}"
        );
        assert!(gone.denies.agents.matches("other"), "{gone:?}");
    }

    #[test]
    fn a_persona_has_no_model() {
        let whole =
            json!({ "id": "home", "displayName": "Home", "agent": "assistant", "model": "fast" });
        assert!(
            serde_json::from_value::<Persona>(whole)
                .unwrap_err()
                .to_string()
                .contains("unknown field `model`")
        );
    }

    #[test]
    fn a_persona_admits_whom_it_names_or_everybody() {
        let (ada, bob): (UserId, UserId) = ("ada".parse().unwrap(), "bob".parse().unwrap());
        assert!(persona(&json!({})).admits(&ada));
        let named = persona(&json!({ "users": ["ada"] }));
        assert!(named.admits(&ada) && !named.admits(&bob));
        assert!(!persona(&json!({ "users": [] })).admits(&ada));
    }

    #[test]
    fn what_a_persona_denies_is_added_and_takes_nothing_away() {
        let others = persona(&json!({ "toolDenylist": ["a_*"] })).denies(&Denies::default());
        let both =
            persona(&json!({ "toolDenylist": ["b"], "agentDenylist": ["coder"] })).denies(&others);
        assert!(
            both.tools.matches("a_1")
                && both.tools.matches("b")
                && !both.tools.matches("c")
                && both.agents.matches("coder")
        );
    }

    #[test]
    fn who_a_persona_is_stands_before_what_its_agent_is() {
        assert_eq!(
            persona(&json!({ "identity": "You are Ada." })).prompt("You help."),
            "You are Ada.\n\nYou help."
        );
        assert_eq!(
            persona(&json!({ "identity": " " })).prompt("You help."),
            "You help."
        );
    }

    #[test]
    fn an_id_of_a_persona_is_a_short_word() {
        for (text, is) in [
            ("home", true),
            ("a-b_9", true),
            ("", false),
            ("A", false),
            ("a/b", false),
            (&"x".repeat(65), false),
        ] {
            assert_eq!(text.parse::<PersonaId>().is_ok(), is, "{text}");
        }
    }
}
