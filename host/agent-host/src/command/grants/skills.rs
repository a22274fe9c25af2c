//! Skills in `grants explain`: those that an agent reaches by command lines of the host's tool
//! `bash`, what keeps others from it, and the form in which it is offered a tool.

use super::check_line;
use broker::Catalogue;
use domain::authority::{Caller, Denies, ListCheck, Permissions, Says, only_delegates};
use domain::definition::{Definition, ToolExposure};
use domain::skill::{self, BASH, Offer, Skill, SkillSet};
use domain::tool::ToolDefinition;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The form in which an agent is offered a tool.
pub(super) enum ToolForm {
    /// As a tool, with its schema.
    Tool,
    /// By a command line.
    Command(String),
    /// Not at all: the skill lists leave the component out.
    Nothing(String),
}

impl ToolForm {
    /// Returns the form in which an agent is offered a tool of a component, or of the host's own.
    pub(super) fn of(
        definition: &Definition,
        component: Option<&str>,
        tool: &ToolDefinition,
    ) -> Self {
        let Some(component) = component else {
            return Self::Tool;
        };
        match skill::offer(definition, component) {
            Offer::Tools => Self::Tool,
            Offer::Skill => Self::Command(format!("{component}-cli {}", tool.name)),
            Offer::Nothing => Self::Nothing(component.to_owned()),
        }
    }

    /// Returns the form as programs are told it.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Command(_) => "skill",
            Self::Nothing(_) => "nothing",
        }
    }

    /// Returns the line for people; none for what is a tool, as most are.
    pub(super) fn line(&self) -> Option<String> {
        match self {
            Self::Tool => None,
            Self::Command(command) => Some(format!(
                "offered as a skill: it is called by `{command}` in `{BASH}`"
            )),
            Self::Nothing(component) => Some(format!(
                "not offered: toolExposure is `skills`, and the skill lists leave `{component}` out"
            )),
        }
    }
}

/// The rule that keeps something from an agent, and the change that would let it have it.
#[derive(Debug, PartialEq)]
struct Obstacle {
    rule: &'static str,
    change: String,
}

/// Everything that decides about an agent's command lines, and the skills that they reach.
pub(super) struct SkillsExplanation {
    agent: String,
    checks: Vec<ListCheck>,
    refused: Option<Obstacle>,
    skills: SkillSet,
    /// Components and folders that are no skills of the agent, by id.
    left_out: Vec<(String, Obstacle)>,
}

impl SkillsExplanation {
    /// Explains the command lines of the agent with this index in the configuration.
    pub(super) fn of(catalogue: &Catalogue, definition: &Definition, index: usize) -> Self {
        let caller = Caller {
            agent: definition,
            denies: &Denies::default(),
            permissions: &Permissions::default(),
        };
        let checks = caller.explain_skills();
        let skills = catalogue.skills_of(&caller).unwrap_or_default();
        let components = catalogue.tools().map(|(entry, _)| entry.name.as_str());
        let folders = catalogue
            .skill_folders()
            .iter()
            .map(|folder| folder.id.as_str());
        let ids: BTreeSet<&str> = components.chain(folders).collect();
        let is_there = |id: &str| skills.skills().iter().any(|skill| skill.id == id);
        let left_out = ids
            .into_iter()
            .filter(|id| !is_there(id))
            .map(|id| (id.to_owned(), left_out(definition, index, id)))
            .collect();
        Self {
            agent: definition.agent_id.to_string(),
            refused: refused(definition, index, &checks, &skills),
            checks,
            skills,
            left_out,
        }
    }

    /// Returns the document for programs.
    pub(super) fn document(&self) -> Value {
        let skills: Vec<Value> = self.skills.skills().iter().map(document_of).collect();
        let left_out: Vec<Value> = self
            .left_out
            .iter()
            .map(|(id, why)| json!({ "id": id, "rule": why.rule, "change": why.change }))
            .collect();
        let refused = self
            .refused
            .as_ref()
            .map(|why| json!({ "rule": why.rule, "what": BASH, "change": why.change }));
        json!({
            "agent": self.agent, "tool": BASH, "component": null, "code": null,
            "checks": self.checks, "offered_as": "tool", "refused": refused,
            "skills": skills, "left_out": left_out,
        })
    }

    /// Returns the lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} calls {BASH} of the host itself", self.agent)];
        lines.extend(self.checks.iter().map(check_line));
        match &self.refused {
            Some(Obstacle { rule, change }) => {
                lines.push(format!("refused: `{BASH}`, by {rule}; {change}"));
                return lines;
            }
            None => lines.push("allowed; command lines reach".to_owned()),
        }
        lines.extend(self.skills.skills().iter().map(skill_line));
        lines.extend(self.left_out.iter().map(|(id, Obstacle { rule, change })| {
            format!("  not the skill {id}, by {rule}; {change}")
        }));
        lines
    }
}

/// Returns the reason why an agent has no command lines at all.
fn refused(
    definition: &Definition,
    index: usize,
    checks: &[ListCheck],
    skills: &SkillSet,
) -> Option<Obstacle> {
    let obstacle = |rule, change| Some(Obstacle { rule, change });
    if definition.tool_exposure == ToolExposure::Tools {
        let change = format!("set agents[{index}].toolExposure to `skills` or `mixed`");
        return obstacle("toolExposure", change);
    }
    if only_delegates(definition) {
        let change =
            format!("with `delegate` alone in agents[{index}].toolAllowlist it has no other");
        return obstacle("toolAllowlist", change);
    }
    let stopping = checks.iter().find_map(|check| match &check.says {
        Says::Stops { pattern } => pattern.as_deref(),
        Says::Nothing | Says::Passes { .. } => None,
    });
    if let Some(pattern) = stopping {
        let place = position(
            definition.tool_denylist.as_ref().map(|list| &*list.0),
            pattern,
        );
        let change = format!("take `{pattern}` out of agents[{index}].toolDenylist[{place}]");
        return obstacle("toolDenylist", change);
    }
    if skills.is_empty() {
        let change = format!(
            "no component or folder is a skill of it; allow one in agents[{index}].skillAllowlist"
        );
        return obstacle("skillAllowlist", change);
    }
    None
}

/// Returns the reason why a component or folder is no skill of an agent.
fn left_out(definition: &Definition, index: usize, id: &str) -> Obstacle {
    let denied = definition.skill_denylist.as_ref();
    if let Some(pattern) = denied.and_then(|list| list.matching(id)) {
        let place = position(denied.map(|list| &*list.0), pattern);
        return Obstacle {
            rule: "skillDenylist",
            change: format!("take `{pattern}` out of agents[{index}].skillDenylist[{place}]"),
        };
    }
    if !skill::is_listed(definition, id) {
        return Obstacle {
            rule: "skillAllowlist",
            change: format!("add `{id}` to agents[{index}].skillAllowlist"),
        };
    }
    Obstacle {
        rule: "toolAllowlist",
        change: "the agent may call none of its tools: ask about one of them".to_owned(),
    }
}

/// Returns the place of a pattern in a list.
fn position(list: Option<&[String]>, pattern: &str) -> usize {
    list.and_then(|list| list.iter().position(|entry| entry == pattern))
        .unwrap_or_default()
}

fn names(skill: &Skill) -> Vec<&str> {
    skill.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn document_of(skill: &Skill) -> Value {
    let command = (!skill.tools.is_empty()).then(|| skill.command());
    json!({ "id": skill.id, "command": command, "tools": names(skill) })
}

fn skill_line(skill: &Skill) -> String {
    let Skill { id, tools, .. } = skill;
    if tools.is_empty() {
        format!("  the skill {id}: files alone")
    } else {
        format!(
            "  the skill {id}: `{}` calls {}",
            skill.command(),
            names(skill).join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::skill::SkillFolder;
    use std::collections::BTreeMap;

    fn agent(more: &Value) -> Definition {
        let mut definition = json!({ "agentId": "a", "displayName": "A" });
        definition
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(definition).unwrap()
    }

    /// Returns the last lines about an agent beside a folder of skills, behind those of its lists.
    fn lines(more: &Value) -> Vec<String> {
        let text = "---\nname: guide\ndescription: A guide.\n---\nLook first.\n";
        let files = BTreeMap::from([("SKILL.md".to_owned(), text.to_owned())]);
        let folder = SkillFolder::read("guide", files).unwrap();
        let catalogue = Catalogue::default().with_skills(vec![folder]);
        let explained = SkillsExplanation::of(&catalogue, &agent(more), 2);
        explained.lines().split_off(3)
    }

    #[test]
    fn the_skills_behind_bash_are_told_with_what_keeps_them_from_an_agent() {
        for (more, expected) in [
            (
                json!({}),
                "refused: `bash`, by toolExposure; set agents[2].toolExposure to `skills` or \
                 `mixed`",
            ),
            (
                json!({ "toolExposure": "mixed", "toolDenylist": ["x", "b*"] }),
                "refused: `bash`, by toolDenylist; take `b*` out of agents[2].toolDenylist[1]",
            ),
            (
                json!({ "toolExposure": "skills", "skillAllowlist": ["x"] }),
                "refused: `bash`, by skillAllowlist; no component or folder is a skill of it; \
                 allow one in agents[2].skillAllowlist",
            ),
            (
                json!({ "toolExposure": "skills", "toolAllowlist": ["delegate"] }),
                "refused: `bash`, by toolAllowlist; with `delegate` alone in \
                 agents[2].toolAllowlist it has no other",
            ),
        ] {
            assert_eq!(lines(&more), [expected]);
        }
        assert_eq!(
            lines(&json!({ "toolExposure": "skills" })),
            [
                "allowed; command lines reach",
                "  the skill guide: files alone"
            ]
        );
    }

    #[test]
    fn a_skill_that_a_list_leaves_out_is_named_with_the_entry_to_change() {
        for (more, rule, change) in [
            (
                json!({ "skillDenylist": ["x", "gui*"] }),
                "skillDenylist",
                "take `gui*` out of agents[2].skillDenylist[1]",
            ),
            (
                json!({ "skillAllowlist": ["x"] }),
                "skillAllowlist",
                "add `guide` to agents[2].skillAllowlist",
            ),
            (
                json!({}),
                "toolAllowlist",
                "the agent may call none of its tools: ask about one of them",
            ),
        ] {
            let expected = Obstacle {
                rule,
                change: change.to_owned(),
            };
            assert_eq!(left_out(&agent(&more), 2, "guide"), expected);
        }
    }
}
