//! Limits of turns that are below what one call of a model reserves: no turn of such an agent would
//! ever get an answer by that model.
//!
//! Each model that an agent may be answered by counts: its own, those of its roles, those that a
//! message may name, and with each of them its fallbacks. The prompt of such a call is the least
//! one: instructions and a short message, and with the code of components also the tools.

use super::document::Config;
use super::finding::{Finding, error, warning};
use broker::Catalogue;
use domain::compaction::{MESSAGE_TOKENS, text_tokens};
use domain::definition::{Definition, DefinitionId};
use domain::delegate::{Presentation, Target};
use domain::path::ModelRole;
use domain::price::Price;
use llm::ModelConfig;
use std::collections::{BTreeMap, BTreeSet};

/// The component of agents that remember for others.
const MEMORY: &str = "memory";

/// Finds agents whose limits leave nothing for the first call of a model that they may be answered
/// by, whatever their tools are.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    for_each(config, |at, usable| {
        findings.extend(short(config, at, usable, instructions(at.definition)));
    });
}

/// Finds agents whose limits leave nothing for such a call only because a model is shown their
/// tools. What [`check`] finds is not found again.
pub(crate) fn with_tools(config: &Config, catalogue: &Catalogue) -> Vec<Finding> {
    let least = |form| catalogue.least_prompts(form);
    let one = least(Presentation::One);
    let by_operation = least(Presentation::ByOperation);
    beyond_instructions(config, |form| match form {
        Presentation::One => &one,
        Presentation::ByOperation => &by_operation,
    })
}

fn beyond_instructions<'a>(
    config: &Config,
    least: impl Fn(Presentation) -> &'a BTreeMap<DefinitionId, u64>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for_each(config, |at, usable| {
        // A program in a model's place is shown no tools.
        if config.is_program(usable.alias) {
            return;
        }
        let form = usable.model.operations.unwrap_or_default();
        let Some(prompt) = least(form).get(&at.definition.agent_id) else {
            return;
        };
        let before = short(config, at, usable, instructions(at.definition));
        let more = short(config, at, usable, *prompt).into_iter();
        findings.extend(more.filter(|it| before.iter().all(|reported| reported.key != it.key)));
    });
    findings
}

/// A definition with its place among the agents.
#[derive(Clone, Copy)]
struct Placed<'a> {
    index: usize,
    definition: &'a Definition,
}

/// Looks at each definition with each of the models that its agents may be answered by.
fn for_each(config: &Config, mut inspect: impl FnMut(Placed<'_>, &Usable<'_>)) {
    for (index, definition) in config.definitions().iter().enumerate() {
        if definition.program().is_some() {
            continue;
        }
        for usable in usable(config, definition) {
            inspect(Placed { index, definition }, &usable);
        }
    }
}

/// Returns the estimated tokens of a prompt without tools: a short message after the instructions.
fn instructions(definition: &Definition) -> u64 {
    text_tokens(definition.prompt().len()).saturating_add(MESSAGE_TOKENS)
}

/// A model that an agent may be answered by.
struct Usable<'a> {
    alias: &'a str,
    model: &'a ModelConfig,
    /// The turns that it answers.
    turns: String,
    /// True if it answers the turns of the agent where nobody names another.
    is_usual: bool,
}

/// Returns the models that an agent may be answered by, each once: its own first.
fn usable<'a>(config: &'a Config, definition: &Definition) -> Vec<Usable<'a>> {
    let own = match &definition.model {
        Some(name) => config.model(name),
        None => config.model_by_default(),
    };
    let of_role = |role: ModelRole| {
        let name = config.roles.get(&role)?.model.as_ref()?;
        config.model(name).filter(|_| has_role(definition, role))
    };
    // Where people talk with agents by another model, its own may answer none of its turns.
    let is_usual = of_role(ModelRole::User).is_none_or(|of_role| Some(of_role) == own);
    let own = own.map(|found| (found, "turn".to_owned(), is_usual));
    let of_roles = ModelRole::ALL.into_iter().filter_map(|role| {
        let turns = format!("turn in the role `{role}`");
        Some((of_role(role)?, turns, false))
    });
    let by_default = config.model_by_default().map(|(alias, _)| alias);
    let may_name = |alias: &str| match &definition.model_allowlist {
        Some(_) if config.is_program(alias) => definition.lists_model(alias),
        Some(list) => list.matches(alias),
        None => by_default == Some(alias),
    };
    let named = config.models.iter().filter(|(alias, _)| may_name(alias));
    let named = named.map(|(alias, model)| {
        let turns = format!("turn that names `{alias}`");
        ((alias.as_str(), model), turns, false)
    });
    let mut seen = BTreeSet::new();
    own.into_iter()
        .chain(of_roles)
        .chain(named)
        .filter(|((alias, _), ..)| seen.insert(*alias))
        .map(|((alias, model), turns, is_usual)| Usable {
            alias,
            model,
            turns,
            is_usual,
        })
        .collect()
}

/// Returns whether an agent of a definition may have a role.
fn has_role(definition: &Definition, role: ModelRole) -> bool {
    match role {
        ModelRole::User | ModelRole::Subagent | ModelRole::Task | ModelRole::Heartbeat => true,
        ModelRole::Research | ModelRole::Code => {
            let target = Target::from_word(&definition.agent_id.0).and_then(Target::model_role);
            definition.model.is_none() && target == Some(role)
        }
        ModelRole::Memory | ModelRole::MemorySearch => definition.driver() == MEMORY,
    }
}

/// Finds the limits of an agent that leave nothing for a call of a model with a prompt of so many
/// tokens.
fn short(config: &Config, at: Placed<'_>, usable: &Usable<'_>, prompt: u64) -> Vec<Finding> {
    let Placed { index, definition } = at;
    let Usable {
        alias,
        model,
        turns,
        is_usual,
    } = usable;
    let mut findings = Vec::new();
    let call = LeastCall::new(config, definition, model, prompt);
    let key = |limit: &str| format!("agents[{index}].limits.{limit}");
    // Other components may ask for shorter replies than are reserved.
    let is_sure = *is_usual && matches!(definition.driver(), "assistant" | "worker" | "coder");
    let short_of = |key: String, message: String| match is_sure {
        true => error(key, message),
        false => warning(key, message),
    };
    let limits = &definition.limits;
    if limits.tokens_max < call.tokens() {
        let message = format!(
            "no {turns} gets an answer: one call of `{alias}` takes {} tokens at least, {} of them \
             for the prompt and {} reserved for the reply; raise it, or lower `maxTokens` of the model or \
             `limits.reservedTokens`",
            call.tokens(),
            call.prompt,
            call.reply
        );
        findings.push(short_of(key("tokensMax"), message));
    }
    let Some(max) = limits.cost_micros_max else {
        return findings;
    };
    match highest_price(config, alias, model) {
        Err(unpriced) => {
            let message = format!(
                "no {turns} gets an answer: `{unpriced}`{} has no price, and costs that are \
                 limited have to be known; write `models.{unpriced}.price`",
                match unpriced == *alias {
                    true => String::new(),
                    false => format!(", a fallback of `{alias}`,"),
                }
            );
            findings.push(warning(key("costMicrosMax"), message));
        }
        Ok(price) if max < price.at_most(call.prompt, call.reply) => {
            let message = format!(
                "no {turns} gets an answer: one call of `{alias}`{} may cost {} millionths, with \
                 {} tokens of the prompt and {} reserved for the reply; raise it, or lower `maxTokens` of the model or \
                 `limits.reservedTokens`",
                match model.fallbacks.is_empty() {
                    true => "",
                    false => ", or of a fallback,",
                },
                price.at_most(call.prompt, call.reply),
                call.prompt,
                call.reply
            );
            findings.push(short_of(key("costMicrosMax"), message));
        }
        Ok(_) => {}
    }
    findings
}

/// Returns the highest price of a model and its fallbacks, whichever of them answers, or the alias
/// of the one that has none.
fn highest_price<'a>(
    config: &'a Config,
    alias: &'a str,
    model: &'a ModelConfig,
) -> Result<Price, &'a str> {
    let known = |alias: &'a String| Some((alias.as_str(), config.models.get(alias)?));
    let mut fallbacks = model.fallbacks.iter().filter_map(known);
    let own = price(model).ok_or(alias)?;
    fallbacks.try_fold(own, |highest, (alias, model)| {
        Ok(highest.or_dearer(price(model).ok_or(alias)?))
    })
}

/// The least that a call of a model reserves, in tokens.
struct LeastCall {
    prompt: u64,
    reply: u64,
}

impl LeastCall {
    /// The call with a prompt of so many tokens, at most what the reply leaves of the window.
    fn new(config: &Config, definition: &Definition, model: &ModelConfig, prompt: u64) -> Self {
        let reserved = config.limits.reserved_tokens.max(1);
        let usual = definition.generation.limited(model.max_tokens);
        let reply = usual.map_or(reserved, |tokens| u64::from(tokens).min(reserved));
        let window = model.context_window.unwrap_or(u64::MAX);
        Self {
            prompt: prompt.min(window.saturating_sub(reply)),
            reply,
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
    use super::{beyond_instructions, check};
    use crate::config::{Config, Finding, Severity};
    use domain::definition::DefinitionId;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn found(limits: &Value, model: &Value) -> Vec<(Severity, String)> {
        let config = json!({
            "agents": [{ "agentId": "a", "displayName": "A", "limits": limits }],
            "models": { "m": model },
        });
        let reported = reported(config).into_iter();
        reported.map(|it| (it.severity, it.key)).collect()
    }

    /// Checks a configuration, all of whose models have a provider.
    fn reported(mut config: Value) -> Vec<Finding> {
        for (_, model) in config["models"].as_object_mut().unwrap() {
            model["provider"] = json!("p");
            model["model"] = json!("m");
        }
        let config: Config = serde_json::from_value(config).unwrap();
        let mut findings = Vec::new();
        check(&config, &mut findings);
        findings
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

    /// A limit that a dearer model takes at the first call is met when nobody looks.
    #[test]
    fn a_limit_below_the_reserve_of_any_model_that_may_answer_is_named() {
        let price = |output: f64| {
            let price = json!({ "inputPerMillion": 0.0, "outputPerMillion": output });
            json!({ "price": price })
        };
        let with = |model: Value, key: &str, value: Value| {
            let mut model = model;
            model[key] = value;
            model
        };
        let models = json!({
            "cheap": price(1.0),
            "dear": price(100.0),
            "falls": with(price(1.0), "fallbacks", json!(["cheap", "dear"])),
            "free": with(price(1.0), "fallbacks", json!(["unpriced"])),
            "unpriced": {},
        });
        for (agent, roles, expected) in [
            (json!({ "model": "cheap" }), json!({}), None),
            (
                json!({ "model": "falls" }),
                json!({}),
                Some((Severity::Error, "one call of `falls`, or of a fallback,")),
            ),
            (
                json!({ "model": "free" }),
                json!({}),
                Some((
                    Severity::Warning,
                    "`unpriced`, a fallback of `free`, has no price",
                )),
            ),
            (
                json!({ "model": "cheap" }),
                json!({ "user": "dear" }),
                Some((
                    Severity::Warning,
                    "no turn in the role `user` gets an answer: one call of `dear`",
                )),
            ),
            (
                json!({ "model": "cheap" }),
                json!({ "heartbeat": { "model": "falls" } }),
                Some((Severity::Warning, "no turn in the role `heartbeat`")),
            ),
            (json!({ "model": "cheap" }), json!({ "code": "dear" }), None),
            (
                json!({ "model": "cheap" }),
                json!({ "memory": "dear" }),
                None,
            ),
            (
                json!({ "model": "dear" }),
                json!({ "user": "cheap" }),
                Some((
                    Severity::Warning,
                    "no turn gets an answer: one call of `dear`",
                )),
            ),
            (
                json!({ "model": "cheap", "modelAllowlist": ["de*"] }),
                json!({}),
                Some((
                    Severity::Warning,
                    "no turn that names `dear` gets an answer",
                )),
            ),
            (
                json!({ "model": "cheap", "modelAllowlist": ["cheap"] }),
                json!({}),
                None,
            ),
        ] {
            let mut whole = json!({
                "agentId": "a", "displayName": "A", "limits": { "costMicrosMax": 100_000 },
            });
            let keys = agent.as_object().unwrap().clone();
            whole.as_object_mut().unwrap().extend(keys);
            let config = json!({
                "agents": [whole], "models": models, "roles": roles, "defaultModel": "cheap",
            });
            let found = reported(config);
            assert_eq!(
                found.len(),
                usize::from(expected.is_some()),
                "{agent} {roles}: {found:?}"
            );
            if let (Some((severity, message)), [finding]) = (expected, found.as_slice()) {
                assert_eq!(finding.severity, severity, "{finding:?}");
                assert!(finding.message.contains(message), "{finding:?}");
                assert_eq!(finding.key, "agents[0].limits.costMicrosMax");
            }
        }
    }

    /// The default model may be named by whoever writes a message.
    #[test]
    fn a_limit_below_the_reserve_of_the_default_model_is_named_beside_the_agents_own() {
        let config = json!({
            "agents": [{
                "agentId": "a", "displayName": "A", "model": "short",
                "limits": { "tokensMax": 2_000 },
            }],
            "models": { "short": { "maxTokens": 100 }, "long": {} },
            "defaultModel": "long",
        });
        let [found] = reported(config).try_into().unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.message.contains("that names `long`"), "{found:?}");
    }

    /// The reply alone costs 61,440 at most, and each token of the prompt 3 more.
    #[test]
    fn a_limit_that_pays_the_reply_but_not_the_least_prompt_is_refused_by_its_name() {
        let agent = DefinitionId("a".to_owned());
        for (max, tools, before, beyond) in [
            (61_440, 0, 1, 0),
            (61_500, 0, 0, 0),
            (61_500, 500, 0, 1),
            (61_440, 500, 1, 0),
            (62_940, 500, 0, 0),
        ] {
            let config: Config = serde_json::from_value(json!({
                "agents": [{
                    "agentId": "a", "displayName": "A", "limits": { "costMicrosMax": max },
                }],
                "models": { "m": {
                    "provider": "p", "model": "m",
                    "price": { "inputPerMillion": 3.0, "outputPerMillion": 15.0 },
                } },
            }))
            .unwrap();
            let mut found = Vec::new();
            check(&config, &mut found);
            assert_eq!(found.len(), before, "{max}: {found:?}");
            let least = BTreeMap::from([(agent.clone(), tools)]);
            let found = beyond_instructions(&config, |_| &least);
            assert_eq!(found.len(), beyond, "{max} {tools}: {found:?}");
            for finding in found {
                assert_eq!(finding.severity, Severity::Error);
                assert_eq!(finding.key, "agents[0].limits.costMicrosMax");
                assert!(
                    finding.message.contains("500 tokens of the prompt"),
                    "{finding:?}"
                );
            }
        }
    }
}
