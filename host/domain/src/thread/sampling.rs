//! The settings with which a model writes a reply: those of a definition and a session, and those
//! of one request.

use crate::values::text::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The highest temperature that any provider accepts.
pub const TEMPERATURE_MAX: f64 = 2.0;
/// The most stop sequences of one request; a provider may accept fewer.
pub const STOP_SEQUENCES_MAX: usize = 16;
/// Bytes of one stop sequence.
pub const STOP_BYTES_MAX: usize = 256;

/// The model's effort of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// As little as possible. Anthropic does not accept this effort.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

words!(ReasoningEffort { Minimal = "minimal", Low = "low", Medium = "medium", High = "high" });

/// Settings of model replies, of a definition (`generation`) or of a session
/// ([`SessionGeneration`]). A missing setting is left to the model's configuration and its
/// provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GenerationSettings {
    /// Temperature, from 0 to 2; Anthropic accepts up to 1. A session's replaces its definition's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// The most tokens of a reply. The least of definition, session, model and the agent's own
    /// request applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Sequences at which a reply ends, at most 16 of 256 bytes each; OpenAI accepts 4. A session's
    /// list replaces its definition's, even an empty list. They are not used for a call with a JSON
    /// Schema, because they would cut off its reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub stop: Option<Vec<String>>,
    /// The model's effort of thinking. A session's replaces its definition's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// The settings at the opening of a session, under the API's names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionGeneration {
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    stop: Option<Vec<String>>,
    reasoning_effort: Option<ReasoningEffort>,
}

impl From<SessionGeneration> for GenerationSettings {
    fn from(given: SessionGeneration) -> Self {
        Self {
            temperature: given.temperature,
            max_tokens: given.max_tokens,
            stop: given.stop,
            reasoning_effort: given.reasoning_effort,
        }
    }
}

/// A setting that no provider accepts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnfitSetting {
    /// The setting's key, such as `temperature`.
    pub field: &'static str,
    /// The fault, and the allowed values.
    pub message: String,
}

impl GenerationSettings {
    /// Returns these settings over those of a definition. If a setting is a limit, the lesser one
    /// applies.
    #[must_use]
    pub fn over(&self, definition: &Self) -> Self {
        Self {
            temperature: self.temperature.or(definition.temperature),
            max_tokens: self.limited(definition.max_tokens),
            stop: self.stop.clone().or_else(|| definition.stop.clone()),
            reasoning_effort: self.reasoning_effort.or(definition.reasoning_effort),
        }
    }

    /// Returns the lesser of a limit of a reply and the limit here.
    #[must_use]
    pub fn limited(&self, limit: Option<u32>) -> Option<u32> {
        limit.into_iter().chain(self.max_tokens).min()
    }

    /// Returns the settings of a request. A request with a schema has no stop sequences.
    #[must_use]
    pub fn sampling(&self, has_schema: bool) -> Sampling {
        Sampling {
            temperature: self.temperature,
            stop: match &self.stop {
                Some(stop) if !has_schema => stop.clone(),
                _ => Vec::new(),
            },
            reasoning_effort: self.reasoning_effort,
        }
    }

    /// Checks the rules that apply to every provider.
    ///
    /// # Errors
    /// The first setting that no provider accepts.
    pub fn check(&self) -> Result<(), UnfitSetting> {
        let unfit = |field, message: String| Err(UnfitSetting { field, message });
        if let Some(temperature) = self.temperature
            && !(0.0..=TEMPERATURE_MAX).contains(&temperature)
        {
            let message =
                format!("`temperature` is {temperature}; it must be from 0 to {TEMPERATURE_MAX}");
            return unfit("temperature", message);
        }
        if self.max_tokens == Some(0) {
            return unfit("maxTokens", "`maxTokens` must be at least 1".to_owned());
        }
        let stop = self.stop.as_deref().unwrap_or_default();
        if stop.len() > STOP_SEQUENCES_MAX {
            let message = format!(
                "`stop` has {} sequences; at most {STOP_SEQUENCES_MAX} are taken",
                stop.len()
            );
            return unfit("stop", message);
        }
        let fits = |sequence: &String| (1..=STOP_BYTES_MAX).contains(&sequence.len());
        if !stop.iter().all(fits) {
            let message =
                format!("each sequence of `stop` must have from 1 to {STOP_BYTES_MAX} bytes");
            return unfit("stop", message);
        }
        Ok(())
    }
}

/// The settings of one request to a model, besides the limit of its reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampling {
    /// Temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Sequences at which the reply ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The model's effort of thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(value: Value) -> GenerationSettings {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_session_replaces_settings_of_its_definition_and_only_narrows_its_limits() {
        let definition = settings(json!({
            "temperature": 0.5, "maxTokens": 100, "stop": ["END"], "reasoningEffort": "high",
        }));
        for (session, expected) in [
            (json!({}), definition.clone()),
            (
                json!({ "temperature": 0.0, "maxTokens": 10, "stop": [], "reasoningEffort": "low" }),
                settings(json!({
                    "temperature": 0.0, "maxTokens": 10, "stop": [], "reasoningEffort": "low",
                })),
            ),
            (json!({ "maxTokens": 1_000 }), definition.clone()),
        ] {
            assert_eq!(settings(session).over(&definition), expected);
        }
        assert_eq!(definition.sampling(true).stop, Vec::<String>::new());
        assert_eq!(definition.sampling(false).stop, ["END"]);
    }

    #[test]
    fn a_setting_that_no_provider_takes_is_named() {
        let long = "x".repeat(STOP_BYTES_MAX + 1);
        let many = vec!["x"; STOP_SEQUENCES_MAX + 1];
        for (value, field) in [
            (
                json!({ "temperature": 2.0, "maxTokens": 1, "stop": ["x"] }),
                None,
            ),
            (json!({ "temperature": 2.1 }), Some("temperature")),
            (json!({ "temperature": -0.1 }), Some("temperature")),
            (json!({ "maxTokens": 0 }), Some("maxTokens")),
            (json!({ "stop": [""] }), Some("stop")),
            (json!({ "stop": [long] }), Some("stop")),
            (json!({ "stop": many }), Some("stop")),
        ] {
            let unfit = settings(value.clone()).check().err();
            assert_eq!(unfit.map(|unfit| unfit.field), field, "{value}");
        }
    }
}
