//! Agents' entries that extend another, and the built-in definitions that they may extend.

use super::document::Config;
use super::finding::{KeyError, meant_of};
use domain::definition::{Definition, DefinitionId, Extended};
use serde_json::{Map, Value};

/// The definitions that can be extended without an entry of their own: prompts over the default
/// loop. They are no agents by themselves.
const BUILT_IN: [(&str, &str); 3] = [
    ("coach", include_str!("extend/coach.toml")),
    ("planner", include_str!("extend/planner.toml")),
    ("wellness", include_str!("extend/wellness.toml")),
];

/// Gives each agent that extends another what it inherits. `plain` is the configuration as it was
/// written, which says which keys an entry has.
///
/// # Errors
/// An agent extends one that is not there, or itself by way of others; its keys make no definition;
/// its lists allow more.
pub(super) fn resolve(config: &mut Config, plain: impl FnOnce() -> Value) -> Result<(), KeyError> {
    if config.agents.iter().all(|agent| agent.extends.is_none()) {
        return Ok(());
    }
    let plain = plain();
    let written = plain.get("agents").and_then(Value::as_array);
    let written: Vec<Map<String, Value>> = written
        .into_iter()
        .flatten()
        .map(|entry| entry.as_object().cloned().unwrap_or_default())
        .collect();
    let mut open: Vec<usize> = (0..config.agents.len())
        .filter(|index| extends(config, *index).is_some())
        .collect();
    // Each pass resolves those whose base is resolved: at least one, or they go round in a circle.
    while !open.is_empty() {
        let mut left = Vec::new();
        let mut done = Vec::new();
        for &index in &open {
            let Some(base) = base(config, index)? else {
                continue;
            };
            match base {
                Inherited::Entry(at) if open.contains(&at) => left.push(index),
                Inherited::Entry(at) => done.push((index, config.agents.get(at).cloned())),
                Inherited::BuiltIn(definition) => done.push((index, Some(*definition))),
            }
        }
        if done.is_empty()
            && let Some(&index) = left.first()
        {
            return Err(fault(index, "extends", circle(config, index)));
        }
        for (index, base) in done {
            if let (Some(base), Some(own)) = (base, written.get(index)) {
                let extended = extended(index, &base, own)?;
                if let Some(agent) = config.agents.get_mut(index) {
                    *agent = extended;
                }
            }
        }
        open = left;
    }
    Ok(())
}

/// The definition that an entry extends.
#[derive(Debug)]
enum Inherited {
    /// Another entry, at this place.
    Entry(usize),
    BuiltIn(Box<Definition>),
}

fn extends(config: &Config, index: usize) -> Option<&DefinitionId> {
    config.agents.get(index)?.extends.as_ref()
}

/// Finds the base of an entry. An entry may have the name of the built-in one that it extends.
fn base(config: &Config, index: usize) -> Result<Option<Inherited>, KeyError> {
    let Some(id) = extends(config, index) else {
        return Ok(None);
    };
    let is_base = |(at, agent): &(usize, &Definition)| *at != index && agent.agent_id == *id;
    if let Some((at, _)) = config.agents.iter().enumerate().find(is_base) {
        return Ok(Some(Inherited::Entry(at)));
    }
    if let Some(definition) = built_in(&id.0) {
        return Ok(Some(Inherited::BuiltIn(Box::new(definition))));
    }
    let configured = config.agents.iter().map(|agent| agent.agent_id.0.as_str());
    let known: Vec<&str> = configured
        .chain(BUILT_IN.iter().map(|(name, _)| *name))
        .filter(|name| *name != id.0)
        .collect();
    let fix = meant_of(&id.0, &known, String::new);
    let message = format!("there is no agent `{id}` to extend; {fix}");
    Err(fault(index, "extends", message))
}

/// Returns a built-in definition.
fn built_in(name: &str) -> Option<Definition> {
    let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    toml::from_str(text).ok()
}

/// Returns an entry with what it inherits.
fn extended(
    index: usize,
    base: &Definition,
    own: &Map<String, Value>,
) -> Result<Definition, KeyError> {
    let Extended { definition, wider } = base
        .extended(own)
        .map_err(|unfit| fault(index, &unfit.key, unfit.message))?;
    match wider.first() {
        None => Ok(definition),
        Some(wider) => {
            let message = format!(
                "`{}` is not within the `{}` of `{}`, which it extends; leave it out, or write \
                 `widens = true` if it shall allow more",
                wider.pattern, wider.list, base.agent_id
            );
            Err(fault(index, wider.list, message))
        }
    }
}

fn circle(config: &Config, index: usize) -> String {
    let id = config
        .agents
        .get(index)
        .map(|agent| agent.agent_id.0.as_str());
    format!(
        "`{}` extends itself by way of others; let one of them extend nothing",
        id.unwrap_or_default()
    )
}

fn fault(index: usize, key: &str, message: String) -> KeyError {
    let separator = if key.is_empty() { "" } else { "." };
    KeyError {
        key: format!("agents[{index}]{separator}{key}"),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;
    use domain::grant::PatternList;

    fn resolved(text: &str) -> Result<Vec<Definition>, KeyError> {
        let mut config: Config = toml::from_str(text).unwrap();
        resolve(&mut config, || toml::from_str(text).unwrap())?;
        Ok(config.agents)
    }

    #[test]
    fn agents_extend_each_other_whatever_their_order() {
        let agents = resolved(
            "[[agents]]\nagentId = \"c\"\ndisplayName = \"C\"\nextends = \"b\"\n\
             toolAllowlist = [\"web_get\"]\n\
             [[agents]]\nagentId = \"b\"\ndisplayName = \"B\"\nextends = \"a\"\n\
             toolDenylist = [\"web_put\"]\n\
             [[agents]]\nagentId = \"a\"\ndisplayName = \"A\"\ndescription = \"d\"\n\
             toolAllowlist = [\"web_*\"]\n",
        )
        .unwrap();
        let c = &agents[0];
        assert_eq!(
            (c.display_name.as_str(), c.description.as_str()),
            ("C", "d")
        );
        assert_eq!(c.tool_allowlist, Some(PatternList(vec!["web_get".into()])));
        assert_eq!(c.tool_denylist, Some(PatternList(vec!["web_put".into()])));
        assert_eq!(
            agents[1].tool_allowlist,
            Some(PatternList(vec!["web_*".into()]))
        );
    }

    #[test]
    fn what_cannot_be_extended_is_told_with_its_key() {
        let entry = |id: &str, more: &str| {
            format!("[[agents]]\nagentId = \"{id}\"\ndisplayName = \"X\"\n{more}\n")
        };
        for (text, key, words) in [
            (
                entry("a", "extends = \"coch\""),
                "agents[0].extends",
                "did you mean `coach`?",
            ),
            (
                entry("a", "extends = \"a\""),
                "agents[0].extends",
                "there is no agent `a`",
            ),
            (
                entry("a", "extends = \"b\"") + &entry("b", "extends = \"a\""),
                "agents[0].extends",
                "itself by way of others",
            ),
            (
                entry("a", "toolAllowlist = [\"x\"]")
                    + &entry("b", "extends = \"a\"\ntoolAllowlist = [\"*\"]"),
                "agents[1].toolAllowlist",
                "widens = true",
            ),
            (
                entry("a", "fixedSettings = [\"exam\"]")
                    + &entry("b", "extends = \"a\"\nsettings = { exam = 1 }"),
                "agents[1].settings.exam",
                "fixed by `a`",
            ),
        ] {
            let fault = resolved(&text).unwrap_err();
            assert_eq!(fault.key, key, "{fault:?}");
            assert!(fault.message.contains(words), "{fault:?}");
        }
        let widened = resolved(
            &(entry("a", "toolAllowlist = [\"x\"]")
                + &entry(
                    "b",
                    "extends = \"a\"\nwidens = true\ntoolAllowlist = [\"*\"]",
                )),
        );
        assert_eq!(
            widened.unwrap()[1].tool_allowlist,
            Some(PatternList::everything())
        );
    }

    #[test]
    fn what_people_see_of_an_agent_is_checked_with_its_key() {
        let text = "[[agents]]\nagentId = \"a\"\ndisplayName = \"A\"\nicon = \"\"\n\
            color = \"red\"\nmadeBy = \"ada\"\nwidens = true\ntemplateFor = [\"ada\", \"\"]\n";
        let found: Vec<String> = findings(text).into_iter().map(|(_, key, _)| key).collect();
        for key in ["icon", "madeBy", "widens", "templateFor[1]"] {
            let key = format!("agents[0].{key}");
            assert!(found.contains(&key), "{key}: {found:?}");
        }
        let colored = text.replace("icon = \"\"", "icon = \"x\"");
        let found = findings(&colored);
        assert!(found.iter().any(|(_, key, _)| key == "agents[0].color"));
    }

    #[test]
    fn coach_planner_and_wellness_are_prompts_over_the_default_loop() {
        for (name, _) in BUILT_IN {
            let agents = resolved(&format!(
                "[[agents]]\nagentId = \"{name}\"\ndisplayName = \"Mine\"\nextends = \"{name}\"\n"
            ))
            .unwrap();
            let agent = &agents[0];
            assert_eq!(agent.type_tag.as_deref(), Some(name));
            assert_eq!(agent.display_name, "Mine");
            assert_eq!(agent.component, "assistant");
            assert!(agent.prompt().len() > 200, "{}", agent.prompt());
            assert!(agent.icon.is_some() && agent.color.is_some());
            assert_eq!(agent.extends.as_ref().map(|id| id.0.as_str()), Some(name));
        }
    }
}
