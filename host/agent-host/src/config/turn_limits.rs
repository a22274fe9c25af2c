//! Limits of turns that are below what one call of a model reserves: no turn of such an agent would
//! ever get an answer.

use super::document::Config;
use super::finding::{Finding, error, warning};
use domain::compaction::text_tokens;
use domain::definition::Definition;
use domain::price::Price;
use llm::ModelConfig;

/// Finds agents whose limits leave nothing for the first call of their model.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    for (index, definition) in config.definitions().iter().enumerate() {
        if definition.program().is_some() {
            continue;
        }
        let named = match &definition.model {
            Some(name) => config.model(name),
            None => config.model_by_default(),
        };
        let Some((alias, model)) = named else {
            continue;
        };
        let call = LeastCall::of(config, definition, model);
        let key = |limit: &str| format!("agents[{index}].limits.{limit}");
        // Other components may ask for shorter replies than are reserved.
        let is_sure = matches!(definition.driver(), "assistant" | "worker" | "coder");
        let short_of = |key: String, message: String| match is_sure {
            true => error(key, message),
            false => warning(key, message),
        };
        let limits = &definition.limits;
        if limits.tokens_max < call.tokens() {
            let message = format!(
                "no turn gets an answer: one call of `{alias}` takes {} tokens at least, {} of them \
                 reserved for the reply; raise it, or lower `maxTokens` of the model or \
                 `limits.reservedTokens`",
                call.tokens(),
                call.reply
            );
            findings.push(short_of(key("tokensMax"), message));
        }
        let Some(max) = limits.cost_micros_max else {
            continue;
        };
        match price(model) {
            None => {
                let message = format!(
                    "no turn gets an answer: `{alias}` has no price, and costs that are limited \
                     have to be known; write `models.{alias}.price`"
                );
                findings.push(warning(key("costMicrosMax"), message));
            }
            Some(price) if max < price.at_most(call.prompt, call.reply) => {
                let message = format!(
                    "no turn gets an answer: one call of `{alias}` may cost {} millionths, with {} \
                     tokens reserved for the reply; raise it, or lower `maxTokens` of the model or \
                     `limits.reservedTokens`",
                    price.at_most(call.prompt, call.reply),
                    call.reply
                );
                findings.push(short_of(key("costMicrosMax"), message));
            }
            Some(_) => {}
        }
    }
}

/// The least that a call of a model reserves, in tokens.
struct LeastCall {
    /// The prompt: that of the agent, without tools and messages.
    prompt: u64,
    reply: u64,
}

impl LeastCall {
    fn of(config: &Config, definition: &Definition, model: &ModelConfig) -> Self {
        let reserved = config.limits.reserved_tokens.max(1);
        let usual = definition.generation.limited(model.max_tokens);
        let prompt = definition.system_prompt.as_deref().unwrap_or_default();
        Self {
            prompt: text_tokens(prompt.len()),
            reply: usual.map_or(reserved, |tokens| u64::from(tokens).min(reserved)),
        }
    }

    fn tokens(&self) -> u64 {
        self.prompt.saturating_add(self.reply)
    }
}

/// Returns the price of a model; none where it has none, or one that is refused by itself.
fn price(model: &ModelConfig) -> Option<Price> {
    let price = model.price?;
    Price::per_million(
        price.input_per_million,
        price.cached_per_million,
        price.output_per_million,
    )
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::config::{Config, Severity};
    use serde_json::{Value, json};

    fn found(limits: &Value, model: &Value) -> Vec<(Severity, String)> {
        let mut priced = json!({ "provider": "p", "model": "m" });
        let fields = priced.as_object_mut().unwrap();
        fields.extend(model.as_object().unwrap().clone());
        let config: Config = serde_json::from_value(json!({
            "agents": [{ "agentId": "a", "displayName": "A", "limits": limits }],
            "models": { "m": priced },
        }))
        .unwrap();
        let mut findings = Vec::new();
        check(&config, &mut findings);
        let told = findings.into_iter().map(|it| (it.severity, it.key));
        told.collect()
    }

    #[test]
    fn a_limit_below_the_reserve_of_one_call_is_named() {
        let price = json!({ "inputPerMillion": 3.0, "outputPerMillion": 15.0 });
        let priced = json!({ "price": price });
        let cost = "agents[0].limits.costMicrosMax";
        let tokens = "agents[0].limits.tokensMax";
        let short = json!({ "price": price, "maxTokens": 100 });
        for (limits, model, expected) in [
            (
                json!({ "costMicrosMax": 50_000 }),
                &priced,
                Some((Severity::Error, cost)),
            ),
            (json!({ "costMicrosMax": 70_000 }), &priced, None),
            (json!({ "costMicrosMax": 50_000 }), &short, None),
            (
                json!({ "costMicrosMax": 1_000 }),
                &short,
                Some((Severity::Error, cost)),
            ),
            (
                json!({ "costMicrosMax": 0 }),
                &priced,
                Some((Severity::Error, cost)),
            ),
            (
                json!({ "costMicrosMax": 1 }),
                &json!({}),
                Some((Severity::Warning, cost)),
            ),
            (
                json!({ "tokensMax": 4_000 }),
                &priced,
                Some((Severity::Error, tokens)),
            ),
            (json!({ "tokensMax": 4_000 }), &short, None),
            (json!({}), &priced, None),
        ] {
            let expected = expected.map(|(severity, key)| (severity, key.to_owned()));
            let found = found(&limits, model);
            assert_eq!(found, Vec::from_iter(expected), "{limits} {model}");
        }
    }
}
