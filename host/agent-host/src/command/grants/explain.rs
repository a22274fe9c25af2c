//! `grants explain`: every list and grant that decides about a call, the result, and the changes
//! that would alter it.

use super::check_line;
use super::skills::{SkillsExplanation, ToolForm};
use crate::answer::Answer;
use crate::command::component::{Line, Missing, Place, granted};
use crate::config::{ComponentConfig, Loaded};
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::load_catalogue;
use anyhow::anyhow;
use broker::Catalogue;
use domain::authority::{Caller, Denied, Denies, ListCheck, Permissions, Says};
use domain::definition::{Definition, DefinitionId};
use domain::delegate::{self, Offers, Target};
use domain::digest::Digest;
use domain::direct_message::{self, Reachable};
use domain::grant::{Bound, Grant};
use domain::ruling::{Rule, Ruling};
use domain::tool::ToolDefinition;
use domain::{memory, panels, skill, trigger};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, agent: &str, tool: &str) -> Result<Answer, Failure> {
    let catalogue = load_catalogue(loaded).await?;
    let definition = find_definition(&catalogue, agent)?;
    let index = loaded
        .config
        .agents
        .iter()
        .position(|agent| agent.agent_id == definition.agent_id)
        .unwrap_or_default();
    if tool == skill::BASH {
        let explanation = SkillsExplanation::of(&catalogue, definition, index);
        return Ok(Answer::new(explanation.document(), explanation.lines()));
    }
    let offered = offered(&catalogue, tool)?;
    let Offered {
        tool: asked,
        by,
        grant,
    } = &offered;
    let caller = Caller {
        agent: definition,
        denies: &Denies::default(),
        permissions: &Permissions::default(),
    };
    let checks = caller.explain(asked, grant);
    let bound = caller
        .bound(asked, grant)
        .map(|bound| bound.for_effect(asked.effect));
    let config = guests::wanted(loaded)
        .remove(by.as_deref().unwrap_or_default())
        .unwrap_or_default();
    let code = by
        .as_ref()
        .and_then(|by| Some(catalogue.entry(by)?.component.digest()));
    let configured = ConfiguredAgent { definition, index };
    let explanation = Explanation {
        agent,
        offered: &offered,
        code,
        resolution: CallResolution::new(&bound, &checks, &configured, &config),
        targets: targets(&catalogue, &caller, asked),
        form: ToolForm::of(definition, by.as_deref(), asked),
        asked_by: asked_by(&configured, by.as_deref(), asked, grant),
        checks,
        bound,
    };
    let place = Place::in_config(loaded, by.as_deref().unwrap_or_default());
    let document = explanation.document(place.is_toml());
    Ok(Answer::new(document, explanation.lines(&place)))
}

/// Finds the definition of an agent.
fn find_definition<'a>(catalogue: &'a Catalogue, agent: &str) -> Result<&'a Definition, Failure> {
    let found = catalogue.definition(&DefinitionId(agent.to_owned()));
    found.map(|definition| &**definition).ok_or_else(|| {
        let names: Vec<String> = catalogue
            .definitions()
            .map(|definition| definition.agent_id.to_string())
            .collect();
        let known = names.join(", ");
        Failure::new(
            Exit::Usage,
            anyhow!("there is no agent `{agent}`; known are {known}"),
        )
    })
}

/// An agent's definition, and its index in the configuration.
struct ConfiguredAgent<'a> {
    definition: &'a Definition,
    index: usize,
}

/// Everything that decides about a call of a tool by an agent, and the result.
struct Explanation<'a> {
    agent: &'a str,
    offered: &'a Offered,
    /// The code of the component that offers the tool.
    code: Option<Digest>,
    resolution: CallResolution,
    targets: Vec<(&'static str, Option<Denied>)>,
    form: ToolForm,
    /// The keys of the configuration by which a user approves each call first.
    asked_by: Vec<String>,
    checks: Vec<ListCheck>,
    bound: Result<Bound, Denied>,
}

impl Explanation<'_> {
    /// Returns the document for programs.
    fn document(&self, is_toml: bool) -> Value {
        let lines: Vec<_> = self
            .resolution
            .granting()
            .iter()
            .map(|line| line.document(is_toml))
            .collect();
        let change = match &self.resolution {
            CallResolution::Stopped { change, .. } => Some(change),
            CallResolution::Without { .. } | CallResolution::Allowed => None,
        };
        let refused =
            self.bound.as_ref().err().map(
                |denied| json!({ "rule": denied.rule, "what": denied.what, "change": change }),
            );
        let targets: BTreeMap<_, _> = self
            .targets
            .iter()
            .map(|(name, denied)| (*name, denied.as_ref().map(|denied| denied.rule)))
            .collect();
        json!({
            "agent": self.agent,
            "tool": self.offered.tool.name,
            "component": self.offered.by,
            "code": self.code.map(|code| code.reference()),
            "checks": self.checks,
            "offered_as": self.form.as_str(),
            "refused": refused,
            "rulings": self.bound.as_ref().ok().map(|bound| &bound.rulings),
            "lines": lines,
            "asked_by": self.asked_by,
            "targets": targets,
        })
    }

    /// Returns the lines for people.
    fn lines(&self, place: &Place) -> Vec<String> {
        let by = self.offered.by.as_deref();
        let whose = match (by, self.code) {
            (Some(by), Some(code)) => format!("{by}@{}", code.short()),
            _ => "the host itself".to_owned(),
        };
        let tool = &self.offered.tool.name;
        let mut lines = vec![format!("{} calls {tool} of {whose}", self.agent)];
        lines.extend(self.checks.iter().map(check_line));
        lines.extend(self.form.line());
        if self.bound.is_ok() && !self.asked_by.is_empty() {
            let keys = self.asked_by.join(", ");
            lines.push(format!(
                "a user approves each call before it is made, by {keys}"
            ));
        }
        lines.extend(self.resolution.lines(place));
        lines.extend(self.bound.iter().flat_map(bound_lines));
        if self.bound.is_ok() {
            lines.extend(self.targets.iter().map(|(name, denied)| match denied {
                None => format!("  work of {name}"),
                Some(denied) => format!("  not the work of {name}, by {}", denied.rule),
            }));
        }
        lines
    }
}

/// Returns the keys of the configuration by which a user approves each call of a tool first.
fn asked_by(
    agent: &ConfiguredAgent<'_>,
    component: Option<&str>,
    tool: &ToolDefinition,
    grant: &Grant,
) -> Vec<String> {
    let component = component.unwrap_or_default();
    let keys = [
        (
            format!("agents[{}].confirm", agent.index),
            &agent.definition.confirm,
        ),
        (format!("components.{component}.confirm"), &grant.confirm),
    ];
    let asking = keys.into_iter().filter(|(_, it)| it.asks(tool));
    asking.map(|(key, _)| key).collect()
}

/// A tool with the component that offers it, if it is not the host's own, and the component's
/// grants.
struct Offered {
    tool: ToolDefinition,
    by: Option<String>,
    grant: Grant,
}

fn offered(catalogue: &Catalogue, tool: &str) -> Result<Offered, Failure> {
    if let Some((entry, tool)) = catalogue.tool(tool) {
        return Ok(Offered {
            tool: ToolDefinition::clone(tool),
            by: Some(entry.name.clone()),
            grant: entry.grant.clone(),
        });
    }
    let mut own = own_tools(|id| catalogue.definition(&DefinitionId(id.to_owned())).is_some());
    let others: Vec<Reachable<'_>> = catalogue
        .definitions()
        .map(|definition| Reachable {
            id: &definition.agent_id.0,
            description: None,
        })
        .collect();
    if others.len() > 1 {
        own.extend(direct_message::definitions(&others, true));
    }
    own.retain(|tool| !catalogue.is_disabled(&tool.name));
    let lists = |tool: &ToolDefinition| {
        catalogue
            .definitions()
            .any(|agent| memory::is_listed(agent.tool_allowlist.as_ref(), &tool.name))
    };
    own.extend(memory::definitions(true).into_iter().filter(lists));
    own.extend(panels::definitions());
    own.extend(trigger::trigger_tools());
    own.push(skill::bash());
    let names: Vec<&str> = catalogue
        .tools()
        .map(|(_, tool)| &**tool)
        .chain(&own)
        .map(|tool| tool.name.as_str())
        .collect();
    let known = names.join(", ");
    let found = own.into_iter().find(|own| own.name == tool);
    let found = found.map(|tool| Offered {
        tool,
        by: None,
        grant: Grant::default(),
    });
    found.ok_or_else(|| {
        let why = match tool == delegate::NAME {
            true => {
                "there is nobody to delegate to: no agent is called worker, researcher or coder"
                    .to_owned()
            }
            false => format!(
                "neither a component nor the host offers the tool `{tool}`; known are {known}"
            ),
        };
        Failure::new(Exit::Usage, anyhow!("{why}"))
    })
}

/// Returns the tools of the host's own that there are beside these agents.
fn own_tools(is_agent: impl Fn(&str) -> bool) -> Vec<ToolDefinition> {
    let targets: Vec<Target> = Target::ALL
        .into_iter()
        .filter(|target| is_agent(target.as_str()))
        .collect();
    if targets.is_empty() {
        Vec::new()
    } else {
        vec![Offers::from(&*targets).definition()]
    }
}

/// Returns the agents that the host's own `delegate` leads to, and the denial of each that is
/// denied.
fn targets(
    catalogue: &Catalogue,
    caller: &Caller<'_>,
    asked: &ToolDefinition,
) -> Vec<(&'static str, Option<Denied>)> {
    if asked.name != delegate::NAME {
        return Vec::new();
    }
    let grant = catalogue
        .entry(&caller.agent.component)
        .map(|entry| entry.grant.clone())
        .unwrap_or_default();
    let known = Target::ALL.iter().filter_map(|target| {
        let other = catalogue.definition(&DefinitionId(target.as_str().to_owned()))?;
        Some((target.as_str(), caller.may_hand_over(other, &grant).err()))
    });
    known.collect()
}

/// The result of the rules for a call, and the change that would lead to another.
#[derive(Debug, PartialEq)]
enum CallResolution {
    /// A list stops the call.
    Stopped {
        /// The capability or tool that was denied, and the rule.
        denied: Denied,
        /// The change of the list that lets it pass.
        change: String,
    },
    /// The call is made, without some of what it asks for.
    Without {
        /// The refused capabilities, each with the rule.
        refused: Vec<Ruling>,
        /// The lines that grant what is not granted.
        lines: Vec<Line>,
    },
    /// The call is made with all that it asks for.
    Allowed,
}

impl CallResolution {
    fn new(
        bound: &Result<Bound, Denied>,
        checks: &[ListCheck],
        agent: &ConfiguredAgent<'_>,
        config: &ComponentConfig,
    ) -> Self {
        let bound = match bound {
            Ok(bound) => bound,
            Err(denied) => {
                return Self::Stopped {
                    denied: denied.clone(),
                    change: change(denied, checks, agent),
                };
            }
        };
        let refused: Vec<Ruling> = bound
            .rulings
            .iter()
            .filter(|ruling| !ruling.allowed && ruling.rule != Rule::NotAsked)
            .cloned()
            .collect();
        if refused.is_empty() {
            return Self::Allowed;
        }
        let missing = refused
            .iter()
            .filter(|ruling| ruling.rule == Rule::NotGranted)
            .map(|ruling| ruling.capability.as_str());
        Self::Without {
            lines: Missing::of(missing).lines(config),
            refused,
        }
    }

    /// Returns the lines that grant what is not granted.
    fn granting(&self) -> &[Line] {
        match self {
            Self::Without { lines, .. } => lines,
            Self::Stopped { .. } | Self::Allowed => &[],
        }
    }

    /// Returns the lines for people.
    fn lines(&self, place: &Place) -> Vec<String> {
        match self {
            Self::Stopped { denied, change } => vec![format!(
                "refused: `{}`, by {}; {change}",
                denied.what, denied.rule
            )],
            Self::Without { refused, lines } => {
                let refused = refused.iter().map(|ruling| {
                    let why = if ruling.rule == Rule::NotGranted {
                        "is not granted".to_owned()
                    } else {
                        format!("is ruled out by {}", ruling.rule)
                    };
                    format!("refused inside the call: `{}` {why}", ruling.capability)
                });
                let lines = place.describe(lines).into_iter();
                let lines = lines.map(|line| format!("  {line}"));
                refused
                    .chain(lines)
                    .chain(["otherwise the call is made, bound to".to_owned()])
                    .collect()
            }
            Self::Allowed => vec!["allowed; the call is bound to".to_owned()],
        }
    }
}

/// Returns the change of an agent's list that lets a call pass.
fn change(denied: &Denied, checks: &[ListCheck], agent: &ConfiguredAgent<'_>) -> String {
    let ConfiguredAgent { definition, index } = agent;
    let Denied { rule, what } = denied;
    let list = format!("agents[{index}].{rule}");
    let stopping = checks
        .iter()
        .find(|check| check.rule == *rule && check.name == *what);
    match stopping.map(|check| &check.says) {
        Some(Says::Stops {
            pattern: Some(pattern),
        }) => {
            let entries = match rule {
                Rule::ToolDenylist => definition.tool_denylist.as_ref(),
                _ => definition.capability_denylist.as_ref(),
            };
            let position = entries
                .and_then(|list| list.0.iter().position(|entry| entry == pattern))
                .unwrap_or_default();
            format!("take `{pattern}` out of {list}[{position}]")
        }
        Some(_) | None => format!("add `{what}` to {list}"),
    }
}

/// Returns what a call has of its component's grant.
fn bound_lines(bound: &Bound) -> Vec<String> {
    let all = Grant {
        directories: bound.directories.clone(),
        network: bound.network.clone(),
        environment: bound.environment.clone(),
        key_value: bound.key_value.clone(),
        secrets: bound.secrets.clone(),
        ..Grant::default()
    };
    let lines = granted(&all);
    if lines.is_empty() {
        return vec!["  nothing but its arguments".to_owned()];
    }
    lines.iter().map(|line| format!("  {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{CallResolution, ConfiguredAgent, Place, asked_by, own_tools};
    use crate::config::ComponentConfig;
    use domain::authority::{Caller, Denies, Permissions, ToolRequirements};
    use domain::definition::Definition;
    use domain::grant::Grant;
    use domain::tool::ToolDefinition;
    use serde_json::{Value, json};

    #[test]
    fn a_call_that_a_user_approves_first_names_the_keys_that_say_so() {
        let tool: ToolDefinition = serde_json::from_value(json!({
            "name": "delete_file", "description": "", "arguments": {}, "effect": "idempotent",
            "capabilities": [], "destructive": true,
        }))
        .unwrap();
        let of = |agent: Value, grant: Value| {
            let mut definition = json!({ "agentId": "a", "displayName": "A" });
            let keys = agent.as_object().unwrap().clone();
            definition.as_object_mut().unwrap().extend(keys);
            let definition: Definition = serde_json::from_value(definition).unwrap();
            let grant: Grant = serde_json::from_value(grant).unwrap();
            let agent = ConfiguredAgent {
                definition: &definition,
                index: 2,
            };
            asked_by(&agent, Some("files"), &tool, &grant)
        };
        let confirm = || json!({ "confirm": "destructive" });
        let none = || json!({});
        let other = || json!({ "confirm": ["write_*"] });
        assert!(of(none(), other()).is_empty());
        assert_eq!(of(none(), confirm()), ["components.files.confirm"]);
        assert_eq!(of(confirm(), none()), ["agents[2].confirm"]);
        let both = of(confirm(), json!({ "confirm": ["delete_*"] }));
        assert_eq!(both, ["agents[2].confirm", "components.files.confirm"]);
    }

    /// Returns the lines for a call of `fetch`, which asks for `net.http`, by the third agent of a
    /// configuration.
    fn lines(agent: &Value, grant: &Value) -> Vec<String> {
        let mut definition = json!({ "agentId": "a", "displayName": "A" });
        definition
            .as_object_mut()
            .unwrap()
            .extend(agent.as_object().unwrap().clone());
        let agent: Definition = serde_json::from_value(definition).unwrap();
        let grant: Grant = serde_json::from_value(grant.clone()).unwrap();
        let caller = Caller {
            agent: &agent,
            denies: &Denies::default(),
            permissions: &Permissions::default(),
        };
        let capabilities = ["net.http".to_owned()];
        let asked = ToolRequirements {
            tool: "fetch",
            capabilities: &capabilities,
        };
        CallResolution::new(
            &caller.bound(asked, &grant),
            &caller.explain(asked, &grant),
            &ConfiguredAgent {
                definition: &agent,
                index: 2,
            },
            &ComponentConfig::default(),
        )
        .lines(&Place::in_toml("web"))
    }

    #[test]
    fn what_a_call_has_to_go_without_is_told_with_the_line_that_grants_it() {
        assert_eq!(
            lines(&json!({}), &json!({})),
            [
                "refused inside the call: `net.http` is not granted",
                "  add to components.web:",
                "    network = [{ host = \"example.com\" }]  # choose the hosts",
                "otherwise the call is made, bound to",
            ]
        );
        assert_eq!(
            lines(&json!({}), &json!({ "network": [{ "host": "a.example" }] })),
            ["allowed; the call is bound to"]
        );
    }

    #[test]
    fn a_list_that_stops_a_call_is_named_with_the_entry_to_change() {
        let granted = json!({ "network": [{ "host": "a.example" }] });
        for (agent, expected) in [
            (
                json!({ "toolAllowlist": ["read_*"] }),
                "refused: `fetch`, by toolAllowlist; add `fetch` to agents[2].toolAllowlist",
            ),
            (
                json!({ "toolDenylist": ["x", "f*"] }),
                "refused: `fetch`, by toolDenylist; take `f*` out of agents[2].toolDenylist[1]",
            ),
            (
                json!({ "capabilityDenylist": ["net.*"] }),
                "refused: `net.http`, by capabilityDenylist; take `net.*` out of \
                 agents[2].capabilityDenylist[0]",
            ),
            (
                json!({ "capabilityAllowlist": [] }),
                "refused: `net.http`, by capabilityAllowlist; add `net.http` to \
                 agents[2].capabilityAllowlist",
            ),
        ] {
            assert_eq!(lines(&agent, &granted), [expected]);
        }
    }

    #[test]
    fn the_hosts_own_tools_are_known() {
        let names = |known: &str| {
            own_tools(|id| id == known)
                .into_iter()
                .map(|tool| tool.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names("worker"), ["delegate"]);
        assert!(names("somebody").is_empty());
    }
}
