//! Definitions that users make from a template of the operator's.

use super::{Definition, DefinitionId, Extended, UnfitKey};
use crate::access::confirm::Confirm;
use crate::access::grant::PatternList;
use crate::access::user::UserId;
use crate::values::error_code::ErrorCode;
use crate::values::json::camel_case;
use crate::values::refusal::Refusal;
use crate::values::shown::controls_what_is_shown;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Bytes of a name for people.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of a description.
const DESCRIPTION_BYTES_MAX: usize = 8 << 10;
/// Bytes of a system prompt, and of the settings as JSON.
const PROMPT_BYTES_MAX: usize = 64 << 10;
/// Bytes of the lists as JSON.
const LISTS_BYTES_MAX: usize = 16 << 10;
/// Bytes of an icon.
const ICON_BYTES_MAX: usize = 64;
/// The first letters of the ids of definitions that users make.
const PREFIX: &str = "made";
/// Characters of a name that go into an id.
const SLUG_CHARS_MAX: usize = 32;

/// A definition as its user writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnDefinition {
    /// Its name for people, of 1 to 200 bytes.
    pub display_name: String,
    /// Purpose of the agent, 8 KiB at most; defaults to the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its icon ([`Definition::icon`]); the template's without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Its colour ([`Definition::color`]); the template's without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Its system prompt, 64 KiB at most; defaults to the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Settings that override those of the template, 64 KiB at most as JSON.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// Its lists, within those of the template.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub lists: OwnLists,
}

/// The lists of a definition that its user may narrow, together 16 KiB at most as JSON. A missing
/// list is that of the template.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OwnLists {
    /// Tools that it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_allowlist: Option<PatternList>,
    /// Tools that it may not use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_denylist: Option<PatternList>,
    /// Skills that it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_allowlist: Option<PatternList>,
    /// Skills that it may not use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_denylist: Option<PatternList>,
    /// Capabilities that its tools may use on its behalf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability_allowlist: Option<PatternList>,
    /// Capabilities that they may not use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability_denylist: Option<PatternList>,
    /// Agents that it may dispatch to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_allowlist: Option<PatternList>,
    /// Agents that it may not dispatch to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_denylist: Option<PatternList>,
    /// Models that its messages, sessions and triggers may name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_allowlist: Option<PatternList>,
    /// Tools that the agent calls only after a user has agreed to that very call.
    #[serde(skip_serializing_if = "Confirm::is_nothing")]
    pub confirm: Confirm,
}

impl OwnDefinition {
    /// Checks the sizes of its parts, its icon and its colour.
    ///
    /// # Errors
    /// A part that is empty, too large or malformed.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.display_name.trim().is_empty() {
            return Err(invalid("/display_name", "a name is needed".to_owned()));
        }
        let mut letters = self.display_name.chars();
        if let Some(char) = letters.find(|char| controls_what_is_shown(*char)) {
            let message = format!(
                "a name has no control characters, nor any that turn the direction of text; this \
                 one has `{}`",
                char.escape_default()
            );
            return Err(invalid("/display_name", message));
        }
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let settings = Value::from(self.settings.clone()).to_string().len();
        let lists = serde_json::to_string(&self.lists).map_or(0, |lists| lists.len());
        for (field, bytes, max) in [
            ("/display_name", self.display_name.len(), NAME_BYTES_MAX),
            (
                "/description",
                length(&self.description),
                DESCRIPTION_BYTES_MAX,
            ),
            (
                "/system_prompt",
                length(&self.system_prompt),
                PROMPT_BYTES_MAX,
            ),
            ("/settings", settings, PROMPT_BYTES_MAX),
            ("/lists", lists, LISTS_BYTES_MAX),
        ] {
            if bytes > max {
                let message = format!("it has {bytes} bytes; {max} is the most");
                return Err(invalid(field, message));
            }
        }
        check_appearance(self.icon.as_deref(), self.color.as_deref())
            .map_err(|(key, message)| invalid(&format!("/{key}"), message))
    }

    /// Returns its bytes as JSON, as it is stored.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        serde_json::to_string(self).map_or(0, |text| text.len() as u64)
    }

    /// Returns it as keys of a definition.
    fn keys(&self) -> Map<String, Value> {
        let lists = serde_json::to_value(&self.lists).unwrap_or_default();
        let lists = lists.as_object().into_iter().flatten();
        let mut keys: Map<String, Value> = lists
            .map(|(name, list)| (camel_case(name), list.clone()))
            .collect();
        let texts = [
            ("displayName", Some(&self.display_name)),
            ("description", self.description.as_ref()),
            ("icon", self.icon.as_ref()),
            ("color", self.color.as_ref()),
            ("systemPrompt", self.system_prompt.as_ref()),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                keys.insert(key.to_owned(), Value::from(text.clone()));
            }
        }
        if !self.settings.is_empty() {
            keys.insert("settings".to_owned(), Value::from(self.settings.clone()));
        }
        keys
    }
}

impl Definition {
    /// Returns whether a user may make definitions from this one. An external agent cannot be a
    /// template, because its secret is its own.
    #[must_use]
    pub fn is_template_for(&self, user: &UserId) -> bool {
        let named = self.template_for.as_ref();
        self.made_by.is_none()
            && self.program().is_none()
            && named.is_some_and(|users| users.matches(user.as_str()))
    }

    /// Returns whether a user may see it and make agents from it. A user's definition is open to
    /// that user alone.
    #[must_use]
    pub fn is_open_to(&self, user: &UserId) -> bool {
        self.made_by.as_ref().is_none_or(|maker| maker == user)
    }

    /// Returns whether the agents of another definition may know its agents. Agents of a user's
    /// definition are known to other definitions of that user alone.
    #[must_use]
    pub fn is_known_to(&self, other: &Self) -> bool {
        self.made_by.is_none() || self.made_by == other.made_by
    }

    /// Returns the definition that a user makes from this one. It is visible and not a template.
    ///
    /// # Errors
    /// A part of it sets a value that is fixed here.
    pub fn made(
        &self,
        id: DefinitionId,
        by: &UserId,
        own: &OwnDefinition,
    ) -> Result<Extended, UnfitKey> {
        let Extended { definition, wider } = self.extended(&own.keys())?;
        let definition = Self {
            agent_id: id,
            extends: Some(self.agent_id.clone()),
            made_by: Some(by.clone()),
            ui_visible: true,
            ..definition
        };
        Ok(Extended { definition, wider })
    }
}

impl DefinitionId {
    /// Returns the id of a user's definition: its name and some digits that make it unique.
    #[must_use]
    pub fn of_user(display_name: &str, digits: &str) -> Self {
        let mut slug = String::new();
        for letter in display_name.chars() {
            if slug.len() >= SLUG_CHARS_MAX {
                break;
            }
            if letter.is_ascii_alphanumeric() {
                slug.push(letter.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        let parts = [PREFIX, slug.trim_end_matches('-'), digits];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Self(parts.join("-"))
    }
}

/// Checks the appearance of a definition: its icon and its colour.
///
/// # Errors
/// The key at fault, with a message.
pub fn check_appearance(
    icon: Option<&str>,
    color: Option<&str>,
) -> Result<(), (&'static str, String)> {
    if let Some(icon) = icon {
        let fits = (1..=ICON_BYTES_MAX).contains(&icon.len()) && !icon.contains(char::is_control);
        if !fits {
            let message = format!(
                "an icon has 1 to {ICON_BYTES_MAX} bytes and no control characters: one sign, such \
                 as an emoji, or the name that your client has for one"
            );
            return Err(("icon", message));
        }
    }
    if let Some(color) = color {
        let digits = color.strip_prefix('#');
        let is_color = digits
            .is_some_and(|it| it.len() == 6 && it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if !is_color {
            let message = "a colour is written `#` and six hexadecimal digits, such as `#3366cc`";
            return Err(("color", message.to_owned()));
        }
    }
    Ok(())
}

fn invalid(field: &str, message: String) -> Refusal {
    Refusal::new(ErrorCode::Invalid, message).at(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template() -> Definition {
        serde_json::from_value(json!({
            "agentId": "helper", "displayName": "Helper", "uiVisible": false,
            "toolAllowlist": ["web_*"], "templateFor": ["ada", "b*"],
        }))
        .unwrap()
    }

    fn user(id: &str) -> UserId {
        id.parse().unwrap()
    }

    fn made(by: &str, own: &Value) -> Extended {
        let own: OwnDefinition = serde_json::from_value(own.clone()).unwrap();
        let id = DefinitionId::of_user(&own.display_name, "0123");
        template().made(id, &user(by), &own).unwrap()
    }

    #[test]
    fn a_made_definition_is_within_its_template_and_its_users_alone() {
        let Extended { definition, wider } = made(
            "ada",
            &json!({ "display_name": "Trips", "lists": { "tool_allowlist": ["web_get", "*"] } }),
        );
        assert_eq!(definition.agent_id.0, "made-trips-0123");
        assert_eq!(
            definition.tool_allowlist,
            Some(PatternList(vec!["web_get".into()]))
        );
        assert_eq!(wider.len(), 1);
        assert!(definition.ui_visible && definition.template_for.is_none());
        assert!(definition.is_open_to(&user("ada")) && !definition.is_open_to(&user("bob")));
        assert!(!definition.is_template_for(&user("ada")));
        // Others do not hear of it; the user's other definitions do.
        let sibling = made("ada", &json!({ "display_name": "Other" })).definition;
        let foreign = made("bob", &json!({ "display_name": "Other" })).definition;
        assert!(definition.is_known_to(&sibling) && template().is_known_to(&definition));
        assert!(!definition.is_known_to(&foreign) && !definition.is_known_to(&template()));
    }

    #[test]
    fn a_template_is_for_whom_the_operator_names() {
        for (id, may) in [("ada", true), ("bob", true), ("carol", false)] {
            assert_eq!(template().is_template_for(&user(id)), may, "{id}");
        }
        let nobody = Definition {
            template_for: None,
            ..template()
        };
        assert!(!nobody.is_template_for(&user("ada")));
    }

    #[test]
    fn an_id_says_the_name_and_fits() {
        for (name, id) in [
            ("Trips", "made-trips-0f"),
            ("  My  Trip! ", "made-my-trip-0f"),
            ("Ωmega", "made-mega-0f"),
            ("Ω", "made-0f"),
        ] {
            assert_eq!(DefinitionId::of_user(name, "0f").0, id);
        }
        assert!(
            DefinitionId::of_user(&"x".repeat(500), "0123456789ab")
                .0
                .len()
                <= 64
        );
    }

    #[test]
    fn what_is_too_large_or_malformed_is_refused_with_its_field() {
        let own = |more: Value| {
            let mut all = json!({ "display_name": "x" });
            all.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            serde_json::from_value::<OwnDefinition>(all).unwrap()
        };
        let long = "x".repeat(70_000);
        for (more, field) in [
            (json!({ "display_name": " " }), "/display_name"),
            (json!({ "display_name": "x".repeat(201) }), "/display_name"),
            (json!({ "display_name": "a\u{7}" }), "/display_name"),
            (json!({ "display_name": "a\u{202e}b" }), "/display_name"),
            (json!({ "display_name": "a\u{2066}b" }), "/display_name"),
            (json!({ "description": long }), "/description"),
            (json!({ "system_prompt": long }), "/system_prompt"),
            (json!({ "settings": { "a": long } }), "/settings"),
            (json!({ "lists": { "tool_denylist": [long] } }), "/lists"),
            (json!({ "icon": "" }), "/icon"),
            (json!({ "icon": "a\u{7}" }), "/icon"),
            (json!({ "color": "red" }), "/color"),
            (json!({ "color": "#12345" }), "/color"),
        ] {
            let refused = own(more).check().unwrap_err();
            assert_eq!(refused.field.as_deref(), Some(field));
        }
        assert!(
            own(json!({ "icon": "🧭", "color": "#3366CC" }))
                .check()
                .is_ok()
        );
    }
}
