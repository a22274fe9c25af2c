//! `chat.provider` of an agent, and the configured model that it chooses.

use super::document::Config;
use domain::definition::Definition;
use serde_json::json;

/// Returns the alias of the model that an agent's `chat.provider` chooses. It is the default model
/// if that is at the provider, or else the provider's only one. A provider is named by its name in
/// `providers` or, if none has that name, by its kind.
///
/// None when the agent names no provider or also a model, or when no model is configured at all,
/// which is a finding of its own.
///
/// # Errors
/// No model is at that provider, more than one is, or the agent's model is elsewhere.
pub(super) fn model<'a>(
    config: &'a Config,
    definition: &Definition,
) -> Result<Option<&'a str>, String> {
    let Some(meant) = definition
        .chat
        .provider
        .as_deref()
        .filter(|_| !config.models.is_empty())
    else {
        return Ok(None);
    };
    let is_kind = |name: &str| {
        config
            .providers
            .get(name)
            .is_some_and(|provider| json!(provider.kind) == *meant)
    };
    let by_name = config.providers.contains_key(meant);
    let is_there = |model: &llm::ModelConfig| {
        if by_name {
            model.provider == meant
        } else {
            is_kind(&model.provider)
        }
    };
    if let Some((alias, model)) = definition
        .model
        .as_deref()
        .and_then(|name| config.model(name))
    {
        if is_there(model) {
            return Ok(None);
        }
        return Err(format!(
            "the agent's model `{alias}` is at `{}` and not at `{meant}`; leave one of the two out",
            model.provider
        ));
    }
    if let Some((alias, _)) = config
        .model_by_default()
        .filter(|(_, model)| is_there(model))
    {
        return Ok(Some(alias));
    }
    let there: Vec<&str> = config
        .models
        .iter()
        .filter(|(_, model)| is_there(model))
        .map(|(alias, _)| alias.as_str())
        .collect();
    only_one(config, meant, &there).map(Some)
}

/// Returns the only one of the models at a provider.
fn only_one<'a>(config: &Config, meant: &str, there: &[&'a str]) -> Result<&'a str, String> {
    let quoted = |names: &[&str]| {
        names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match there {
        [alias] => Ok(*alias),
        [] => {
            let known: Vec<&str> = config.providers.keys().map(String::as_str).collect();
            Err(format!(
                "no model of `models` is at a provider of the name or kind `{meant}`; providers \
                 are {}",
                quoted(&known)
            ))
        }
        several => Err(format!(
            "{} are at `{meant}`: say which one with `model`",
            quoted(several)
        )),
    }
}
