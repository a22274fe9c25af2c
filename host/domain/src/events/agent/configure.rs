//! Set-up of an agent, and its memory: name, system prompt, settings, preferences.

use super::Agent;
use crate::access::user::UserId;
use crate::agents::path::{AGENT_NAME_BYTES_MAX, PROMPT_BYTES_MAX};
use crate::events::event::{
    AgentRenamed, Event, PreferencesUpdated, PromptOverridden, SettingsUpdated,
};
use crate::values::error_code::ErrorCode;
use crate::values::refusal::Refusal;
use crate::values::shown::controls_what_is_shown;
use crate::values::time::Timestamp;
use serde_json::{Map, Value};

/// Bytes of an agent's settings, of its preferences, and of its preferences for one user, each as
/// JSON.
pub const SETTINGS_BYTES_MAX: usize = 64 << 10;

impl Agent {
    /// Renames it; no event if the name is unchanged.
    ///
    /// # Errors
    /// It is archived; the name is empty or too long.
    pub fn rename(&self, name: String, now: Timestamp) -> Result<Option<Event>, Refusal> {
        self.is_active()?;
        check_name(&name)?;
        Ok((self.name != name).then(|| {
            Event::AgentRenamed(AgentRenamed {
                agent: self.id,
                name,
                renamed_at: now,
            })
        }))
    }

    /// Sets its own system prompt, or removes it: then its definition's applies again.
    ///
    /// # Errors
    /// It is archived; the prompt is too long.
    pub fn override_prompt(
        &self,
        prompt: Option<String>,
        now: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        self.is_active()?;
        if prompt
            .as_ref()
            .is_some_and(|prompt| prompt.len() > PROMPT_BYTES_MAX)
        {
            return Err(invalid(
                format!("a system prompt has at most {PROMPT_BYTES_MAX} bytes"),
                "/system_prompt_override",
            ));
        }
        let event = |prompt| {
            Event::PromptOverridden(PromptOverridden {
                agent: self.id,
                system_prompt: prompt,
                overridden_at: now,
            })
        };
        Ok((self.system_prompt_override != prompt).then(|| event(prompt)))
    }

    /// Changes its settings, which override those of its definition: keys are merged, and `null`
    /// removes a key.
    ///
    /// # Errors
    /// It is archived; the settings would be too large.
    pub fn update_settings(
        &self,
        settings: Map<String, Value>,
        now: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        self.is_active()?;
        let after = merged(&self.settings, &settings);
        check_size(&after, "/settings")?;
        Ok((after != self.settings).then(|| {
            Event::SettingsUpdated(SettingsUpdated {
                agent: self.id,
                settings,
                updated_at: now,
            })
        }))
    }

    /// Merges keys into its preferences, for one user or for all of them. Keys are never removed.
    ///
    /// # Errors
    /// It is archived; the preferences would be too large.
    pub fn update_preferences(
        &self,
        preferences: Map<String, Value>,
        user_id: Option<UserId>,
        now: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        self.is_active()?;
        let before = self.remembered(user_id.as_ref());
        let after = self.remembering(&preferences, user_id.as_ref())?;
        if preferences.is_empty() || before == Some(&after) {
            return Ok(None);
        }
        let preferences = Value::Object(preferences);
        Ok(Some(Event::PreferencesUpdated(PreferencesUpdated {
            agent: self.id,
            preferences,
            user_id,
            untrusted: false,
            updated_at: now,
        })))
    }

    fn remembered(&self, user_id: Option<&UserId>) -> Option<&Map<String, Value>> {
        match user_id {
            None => Some(&self.preferences),
            Some(user) => self.user_preferences.get(user),
        }
    }

    /// Returns its preferences, for one user or for all of them, with further keys.
    ///
    /// # Errors
    /// It would be too large.
    pub fn remembering(
        &self,
        preferences: &Map<String, Value>,
        user_id: Option<&UserId>,
    ) -> Result<Map<String, Value>, Refusal> {
        let mut after = self.remembered(user_id).cloned().unwrap_or_default();
        after.extend(preferences.clone());
        check_size(&after, "/preferences")?;
        Ok(after)
    }

    /// Returns its preferences in a turn for a user. The user's own preferences take precedence
    /// over those for all users.
    #[must_use]
    pub fn preferences_for(&self, user: &UserId) -> Map<String, Value> {
        let mut all = self.preferences.clone();
        all.extend(self.user_preferences.get(user).cloned().unwrap_or_default());
        all
    }
}

/// Some keys with others merged into them; `null` removes a key.
#[must_use]
pub fn merged(keys: &Map<String, Value>, others: &Map<String, Value>) -> Map<String, Value> {
    let mut all = keys.clone();
    all.extend(others.clone());
    all.retain(|_, value| !value.is_null());
    all
}

/// Checks a name.
///
/// # Errors
/// It is empty, too long, or has control characters.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    if name.trim().is_empty() || name.len() > AGENT_NAME_BYTES_MAX {
        return Err(invalid(
            format!("a name has 1 to {AGENT_NAME_BYTES_MAX} bytes, not all of them blank"),
            "/name",
        ));
    }
    match name.chars().find(|char| controls_what_is_shown(*char)) {
        None => Ok(()),
        Some(char) => {
            let reported = "a name has no character that controls what is shown";
            Err(invalid(
                format!("{reported}; this one has `{}`", char.escape_default()),
                "/name",
            ))
        }
    }
}

fn check_size(keys: &Map<String, Value>, field: &str) -> Result<(), Refusal> {
    let bytes = serde_json::to_vec(keys).map_or(usize::MAX, |text| text.len());
    if bytes > SETTINGS_BYTES_MAX {
        return Err(invalid(
            format!("they would have {bytes} bytes as JSON and may have {SETTINGS_BYTES_MAX}"),
            field,
        ));
    }
    Ok(())
}

fn invalid(message: String, field: &str) -> Refusal {
    Refusal::new(ErrorCode::Invalid, message).at(field)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{T, agent, code_of, field_of, user};
    use super::*;
    use crate::agents::role::AgentRole;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "a test gives what it writes")]
    fn keys(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_name_changes_once() {
        let before = agent();
        let after = before.then(before.rename("Ada".into(), T));
        assert_eq!(after.name, "Ada");
        assert_eq!(after.rename("Ada".into(), T).unwrap(), None);
        for bad in ["", "  ", "a\nb", &"x".repeat(AGENT_NAME_BYTES_MAX + 1)] {
            assert_eq!(field_of(after.rename(bad.to_owned(), T)), "/name", "{bad}");
        }
    }

    #[test]
    fn a_prompt_of_its_own_comes_and_goes() {
        let agent = agent();
        let own = agent.then(agent.override_prompt(Some("Be brief.".into()), T));
        assert_eq!(own.system_prompt_override.as_deref(), Some("Be brief."));
        let back = own.then(own.override_prompt(None, T));
        assert_eq!(
            (
                back.system_prompt_override.as_ref(),
                back.override_prompt(None, T).unwrap()
            ),
            (None, None)
        );
    }

    #[test]
    fn settings_merge_and_null_takes_a_key_away() {
        let agent = agent();
        let some = agent.then(agent.update_settings(keys(json!({ "a": 1, "b": 2 })), T));
        let less = some.then(some.update_settings(keys(json!({ "a": null, "c": 3 })), T));
        assert_eq!(json!(less.settings), json!({ "b": 2, "c": 3 }));
        assert_eq!(
            less.update_settings(keys(json!({ "a": null })), T).unwrap(),
            None
        );
    }

    #[test]
    fn preferences_merge_key_by_key_and_none_is_lost() {
        let agent = agent();
        let some = agent.then(agent.update_preferences(
            keys(json!({ "tone": "warm", "depth": 1 })),
            None,
            T,
        ));
        let more = some.then(some.update_preferences(
            keys(json!({ "depth": 2, "x": null })),
            None,
            Timestamp(4_000),
        ));
        assert_eq!(
            json!(more.preferences),
            json!({ "tone": "warm", "depth": 2, "x": null })
        );
        assert_eq!(more.updated_at, Timestamp(4_000));
    }

    #[test]
    fn what_it_remembers_of_one_user_is_not_told_to_another() {
        let agent = agent();
        let all = agent.then(agent.update_preferences(
            keys(json!({ "tone": "warm", "level": 1 })),
            None,
            T,
        ));
        let bobs =
            all.then(all.update_preferences(keys(json!({ "level": 5 })), Some(user("bob")), T));
        assert_eq!(
            json!(bobs.preferences_for(&user("bob"))),
            json!({ "tone": "warm", "level": 5 })
        );
        assert_eq!(
            json!(bobs.preferences_for(&user("alice"))),
            json!({ "tone": "warm", "level": 1 })
        );
    }

    #[test]
    fn what_it_remembers_of_a_user_goes_with_them() {
        let agent = agent();
        let with_bob =
            agent.then(agent.assign_user(user("bob"), AgentRole::Shared, user("alice"), T));
        let knows = with_bob.then(with_bob.update_preferences(
            keys(json!({ "level": 5 })),
            Some(user("bob")),
            T,
        ));
        let without = knows.then(knows.unassign_user(user("bob"), user("alice"), T));
        assert!(without.user_preferences.is_empty());
    }

    #[test]
    fn what_is_too_large_is_refused_with_its_field() {
        let large = keys(json!({ "x": "y".repeat(SETTINGS_BYTES_MAX) }));
        assert_eq!(
            field_of(agent().update_settings(large.clone(), T)),
            "/settings"
        );
        assert_eq!(
            field_of(agent().update_preferences(large, None, T)),
            "/preferences"
        );
        let prompt = Some("x".repeat(PROMPT_BYTES_MAX + 1));
        assert_eq!(
            field_of(agent().override_prompt(prompt, T)),
            "/system_prompt_override"
        );
    }

    #[test]
    fn an_archived_agent_is_set_up_no_more() {
        let agent = agent();
        let archived = agent.then(agent.archive("x".into(), T));
        assert_eq!(code_of(archived.rename("Ada".into(), T)), "AGENT_ARCHIVED");
        assert_eq!(
            code_of(archived.override_prompt(Some("x".into()), T)),
            "AGENT_ARCHIVED"
        );
        assert_eq!(
            code_of(archived.update_settings(keys(json!({ "a": 1 })), T)),
            "AGENT_ARCHIVED"
        );
        assert_eq!(
            code_of(archived.update_preferences(keys(json!({ "a": 1 })), None, T)),
            "AGENT_ARCHIVED"
        );
    }
}
