//! Checks of agents and personas that are well-formed but may still be wrong, and the model that an
//! agent's `chat.provider` chooses.

use super::document::{Config, chosen_model};
use super::finding::{Finding, error, meant_of, said_of, warning};
use super::{external, known, patterns};
use domain::definition::{Definition, ToolExposure, check_appearance};
use domain::grant::PatternList;
use domain::id::AgentId;
use domain::path::{ModelRole, UserRules};
use domain::user::{RESERVED_WORDS, UserId};
use std::collections::BTreeSet;

/// The built-in component of agents that name none.
const ASSISTANT: &str = "assistant";
/// Characters of a definition's id.
const ID_CHARS_MAX: usize = 64;

/// Finds all faults and oddities of the agents, one by one and beside each other.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    if config.agents.is_empty() {
        findings.push(warning(
            "agents",
            "no agent is defined, so there is nobody to talk to; write `[[agents]]` with an `agentId` \
             and a `displayName`",
        ));
    }
    let mut seen = BTreeSet::new();
    for (index, definition) in config.agents.iter().enumerate() {
        let key = |name: &str| format!("agents[{index}].{name}");
        let id = definition.agent_id.0.as_str();
        findings.extend(wrong_with_id(id).map(|message| error(key("agentId"), message)));
        if !seen.insert(id) {
            findings.push(error(
                key("agentId"),
                format!("`{id}` is defined twice; give one of them another agentId"),
            ));
        }
        if let Err(unfit) = definition.generation.check() {
            let key = key(&format!("generation.{}", unfit.field));
            findings.push(error(key, unfit.message));
        }
        let undone = too_little_time(config, definition).into_iter();
        findings.extend(undone.map(|(name, message)| warning(key(name), message)));
        check_memory(config, definition, &key, findings);
        check_people(definition, &key, findings);
        check_lists(definition, &key, findings);
        external::check(config, definition, &key, findings);
        if definition.api_exposed {
            let message = "it has no effect: no agent's tools are offered over HTTP";
            findings.push(warning(key("apiExposed"), message));
        }
        if let Some(message) = without_tools(config, definition) {
            let said = said_of_tools(definition).into_iter();
            findings.extend(said.map(|name| warning(key(name), message)));
        }
        let missing = known::no_component(config, definition.driver());
        findings.extend(missing.map(|message| error(key("component"), message)));
        let model = definition.model.as_ref();
        if let Some(model) = model.filter(|model| config.model(model).is_none()) {
            findings.push(error(key("model"), no_model(config, model)));
        } else if let Err(message) = chosen_model(config, definition) {
            findings.push(error(key("chat.provider"), message));
        }
        check_models(config, definition, &key, findings);
    }
}

/// Finds entries of an agent's list of models that allow none, and a default model that the agent
/// may not have because it is a program.
fn check_models(
    config: &Config,
    definition: &Definition,
    key: &dyn Fn(&str) -> String,
    findings: &mut Vec<Finding>,
) {
    let list = definition.model_allowlist.as_ref();
    let field = key("modelAllowlist");
    findings.extend(patterns::models(&field, list, &config.models));
    for (index, entry) in list.into_iter().flat_map(|list| &list.0).enumerate() {
        let pattern = PatternList(vec![entry.clone()]);
        let programs = config
            .models
            .keys()
            .filter(|alias| config.is_program(alias));
        let meant = programs.filter(|alias| *alias != entry && pattern.matches(alias));
        let unnamed: Vec<&str> = meant
            .filter(|alias| !definition.lists_model(alias))
            .map(String::as_str)
            .collect();
        if entry.contains('*') && !entry.trim_matches('*').is_empty() && !unnamed.is_empty() {
            let reported = format!(
                "`{}` is a program, which a pattern does not allow; write its whole name if this \
                 agent may have it",
                unnamed.join("`, `")
            );
            findings.push(warning(format!("{field}[{index}]"), reported));
        }
    }
    let chosen = || chosen_model(config, definition).ok().flatten();
    let default = config.model_by_default().map(|(alias, _)| alias);
    let is_chosen = definition.model.is_some() || chosen().is_some();
    if let Some(alias) = default.filter(|alias| !is_chosen && config.is_program(alias))
        && !definition.lists_model(alias)
        && !external::is_of_host(definition)
    {
        let reported = format!(
            "the default model `{alias}` is a program, which answers only agents that name it, so \
             that turns of this agent fail; write `model = \"{alias}\"`, or name another model"
        );
        findings.push(warning(key("model"), reported));
    }
}

/// Returns the limits of an agent's turns that end them before a model has had the time which
/// `timeouts` gives it.
fn too_little_time(config: &Config, definition: &Definition) -> Vec<(&'static str, String)> {
    let timeouts = &config.timeouts;
    let silences = [
        ("timeouts.firstTokenMs", timeouts.first_token_ms),
        ("timeouts.idleMs", timeouts.idle_ms),
    ];
    let of_turn = definition.limits.active_ms_max;
    let whole = [("timeouts.wholeMs", timeouts.whole_ms)];
    let mut found = Vec::new();
    if let Some(seconds) = definition.message_timeout {
        let longer = silences
            .iter()
            .find(|(_, ms)| *ms > u64::from(seconds) * 1_000);
        found.extend(longer.map(|(name, ms)| {
            let message = format!(
                "a turn ends after {seconds} s without progress, before `{name}` ({ms} ms) is over; \
                 raise it, or leave it out for more than that"
            );
            ("messageTimeout", message)
        }));
    }
    let mut all = silences.iter().chain(&whole);
    found.extend(all.find(|(_, ms)| *ms > of_turn).map(|(name, ms)| {
        let message = format!(
            "models and tools of a turn work for {of_turn} ms at most, and `{name}` gives one reply \
             {ms} ms; raise `limits.activeMsMax`"
        );
        ("limits.activeMsMax", message)
    }));
    found
}

/// Finds agents of an agent's memory that are not there.
fn check_memory(
    config: &Config,
    definition: &Definition,
    key: &dyn Fn(&str) -> String,
    findings: &mut Vec<Finding>,
) {
    let Some(memory) = &definition.memory else {
        return;
    };
    let named = std::iter::once(("memory.agent", &memory.agent))
        .chain(memory.search.iter().map(|search| ("memory.search", search)));
    for (name, agent) in named {
        if config.agents.iter().all(|other| other.agent_id != *agent) {
            let message = format!(
                "there is no agent `{agent}` in `agents`; add one, such as one whose `component` is \
                 `memory`, or name another"
            );
            findings.push(error(key(name), message));
        }
    }
}

/// Finds faults in what an agent looks like to people, and in whose template it is.
fn check_people(
    definition: &Definition,
    key: &dyn Fn(&str) -> String,
    findings: &mut Vec<Finding>,
) {
    let appearance = check_appearance(definition.icon.as_deref(), definition.color.as_deref());
    findings.extend(
        appearance
            .err()
            .map(|(name, message)| error(key(name), message)),
    );
    for (name, is_there) in [
        ("madeBy", definition.made_by.is_some()),
        (
            "modelNames",
            definition.model_names.is_some() && definition.extends.is_none(),
        ),
    ] {
        if is_there {
            let reported = "the host writes it of definitions that users make; leave it out";
            findings.push(error(key(name), reported));
        }
    }
    if definition.widens && definition.extends.is_none() {
        findings.push(warning(
            key("widens"),
            "it has no effect: this agent extends no other",
        ));
    }
}

/// Finds entries of an agent's lists that are no capabilities.
fn check_lists(definition: &Definition, key: &dyn Fn(&str) -> String, findings: &mut Vec<Finding>) {
    for (list, entries) in [
        ("capabilityAllowlist", &definition.capability_allowlist),
        ("capabilityDenylist", &definition.capability_denylist),
    ] {
        findings.extend(patterns::capabilities(&key(list), entries.as_ref()));
    }
}

/// Returns the message about a model that is not configured.
pub(super) fn no_model(config: &Config, model: &str) -> String {
    let known: Vec<&str> = config.models.keys().map(String::as_str).collect();
    let fix = meant_of(model, &known, || {
        format!("add it: `[models.{model}]` with its `provider` and `model`")
    });
    format!("there is no model `{model}` in `models`; {fix}")
}

/// Returns why a text cannot be an agent's id.
fn wrong_with_id(id: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if id.is_empty() || id.len() > ID_CHARS_MAX || !id.chars().all(fits) {
        return Some(format!(
            "`{id}` must be 1 to {ID_CHARS_MAX} of a-z, 0-9, `-` and `_`"
        ));
    }
    if RESERVED_WORDS.contains(&id) {
        let reserved = RESERVED_WORDS
            .map(|segment| format!("`{segment}`"))
            .join(", ");
        return Some(format!(
            "`{id}` is reserved: in the path of an agent, {reserved} say what kind of agent it is; \
             take another agentId"
        ));
    }
    // Wherever an agent is named, a UUID is read as one agent's id and never as a definition's.
    id.parse::<AgentId>().is_ok().then(|| {
        format!(
            "`{id}` reads as a UUID, which names one agent and not a definition; take another \
                 agentId"
        )
    })
}

/// Returns why an agent is given none of the host's tools; none if it may be.
fn without_tools(config: &Config, definition: &Definition) -> Option<&'static str> {
    if external::is_of_host(definition) {
        return Some(
            "it has no effect: the program behind this agent is given no tools of the host",
        );
    }
    // Another component may call tools without a model.
    if definition.driver() != ASSISTANT {
        return None;
    }
    let by_provider = || chosen_model(config, definition).ok().flatten();
    let model = match definition.model.as_deref().or_else(by_provider) {
        Some(name) => config.model(name),
        None => config.model_by_default(),
    };
    let (_, model) = model?;
    let provider = config.providers.get(&model.provider)?;
    let is_program = provider.program.is_some();
    is_program.then_some(
        "it has no effect with the model of this agent: a program is in its place, which is given \
         no tools of the host",
    )
}

/// Keys that a definition has and that matter only to an agent with tools. Those of skills are
/// told of elsewhere while tools are shown as tools.
fn said_of_tools(definition: &Definition) -> Vec<&'static str> {
    let has_skills = definition.tool_exposure != ToolExposure::Tools;
    let said = [
        ("toolAllowlist", definition.tool_allowlist.is_some()),
        ("toolDenylist", definition.tool_denylist.is_some()),
        ("toolExposure", has_skills),
        (
            "skillAllowlist",
            has_skills && definition.skill_allowlist.is_some(),
        ),
        (
            "skillDenylist",
            has_skills && definition.skill_denylist.is_some(),
        ),
        (
            "capabilityAllowlist",
            definition.capability_allowlist.is_some(),
        ),
        (
            "capabilityDenylist",
            definition.capability_denylist.is_some(),
        ),
        ("agentAllowlist", definition.agent_allowlist.is_some()),
        ("agentDenylist", definition.agent_denylist.is_some()),
        ("confirm", !definition.confirm.is_nothing()),
        (
            "promptSectionsOff",
            !definition.prompt_sections_off.is_empty(),
        ),
    ];
    said_of(said)
}

/// Finds all faults of the personas, one by one and beside each other.
pub(super) fn check_personas(config: &Config, findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for (index, persona) in config.personas.iter().enumerate() {
        let key = |name: &str| format!("personas[{index}].{name}");
        if !seen.insert(&persona.id) {
            findings.push(error(
                key("id"),
                format!(
                    "`{}` is defined twice; give one of them another id",
                    persona.id
                ),
            ));
        }
        if !config
            .agents
            .iter()
            .any(|agent| agent.agent_id == persona.agent)
        {
            findings.push(error(
                key("agent"),
                format!("there is no agent `{}` in `agents`", persona.agent),
            ));
        }
        for (place, user) in persona.users.iter().flatten().enumerate() {
            if let Err(wrong) = user.parse::<UserId>() {
                findings.push(error(key(&format!("users[{place}]")), wrong.to_string()));
            }
        }
        let models = persona.model_allowlist.as_ref();
        findings.extend(patterns::models(
            &key("modelAllowlist"),
            models,
            &config.models,
        ));
    }
}

/// Finds all faults of the rules on paths.
pub(super) fn check_rules(config: &Config, findings: &mut Vec<Finding>) {
    findings.extend(
        UserRules::new(&config.path_rules)
            .err()
            .map(|many| error("pathRules", many.to_string())),
    );
    for (index, rule) in config.path_rules.iter().enumerate() {
        if rule.users.as_ref().is_some_and(Vec::is_empty) {
            let message = "nobody is named, so the rule is for nobody; name users, or leave `users` out for \
                 all of them";
            findings.push(error(format!("pathRules[{index}].users"), message));
        }
        let key = format!("pathRules[{index}].modelAllowlist");
        let models = rule.model_allowlist.as_ref();
        findings.extend(patterns::models(&key, models, &config.models));
    }
}

/// Finds all faults of the models of roles.
pub(super) fn check_roles(config: &Config, findings: &mut Vec<Finding>) {
    for (role, models) in &config.roles {
        let key = format!("roles.{role}");
        let list = models.model_allowlist.as_ref();
        let found = models.model.as_deref().map(|model| config.model(model));
        match (found, &models.model) {
            (Some(None), Some(model)) => {
                findings.push(error(key.clone(), no_model(config, model)));
            }
            (Some(Some((alias, _))), _) if list.is_some_and(|list| !list.matches(alias)) => {
                let message = format!(
                    "it does not match `{alias}`, the model of the role, which then answers \
                     nobody; add it"
                );
                findings.push(error(format!("{key}.modelAllowlist"), message));
            }
            _ => {}
        }
        let key = format!("{key}.modelAllowlist");
        if *role == ModelRole::Heartbeat && list.is_some() {
            let message = "a heartbeat wakes agents of other roles; write it at those roles";
            findings.push(error(key.clone(), message));
        }
        findings.extend(patterns::models(&key, list, &config.models));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;

    #[test]
    fn what_is_wrong_with_a_persona_is_told_with_its_key() {
        let text = "[[agents]]\nagentId = \"a\"\ndisplayName = \"A\"\n\
            [[personas]]\nid = \"home\"\ndisplayName = \"Home\"\nagent = \"b\"\nusers = [\"ada\", \
            \"a b\"]\ntoolDenylist = [\"\"]\n\
            [[personas]]\nid = \"home\"\ndisplayName = \"Again\"\nagent = \"a\"\n";
        let reported: Vec<String> = findings(text)
            .into_iter()
            .map(|(_, key, _)| key)
            .filter(|key| key.starts_with("personas"))
            .collect();
        assert_eq!(
            reported,
            [
                "personas[0].agent",
                "personas[0].users[1]",
                "personas[1].id",
                "personas[0].toolDenylist[0]"
            ]
        );
    }
}
