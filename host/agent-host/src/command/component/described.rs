//! The self-descriptions of components, for people.

use super::seen;
use crate::answer::serialized;
use domain::connector::Abilities;
use domain::tool::ToolDefinition;
use runtime::{AgentDescription, ConnectorDescription, Described, TriggerDescription};
use serde_json::Value;

/// Returns its kind and what it is for, on one line.
pub(super) fn brief(described: &Described) -> String {
    match described {
        Described::Agent(agent) => format!("agent  {}", seen(&agent.summary)),
        Described::Tools(tools) => {
            let named = |tool: &ToolDefinition| match tool.destructive {
                true => format!("{} (destructive)", tool.name),
                false => tool.name.clone(),
            };
            let names: Vec<String> = tools.iter().map(named).collect();
            format!("tools  {}", names.join(", "))
        }
        Described::Trigger(trigger) => format!("trigger  {}", seen(&trigger.summary)),
        Described::Connector(connector) => format!("connector  {}", seen(&connector.summary)),
    }
}

/// Returns all of it.
pub(super) fn lines(described: &Described) -> Vec<String> {
    match described {
        Described::Agent(agent) => of_agent(agent),
        Described::Tools(tools) => tools.iter().map(of_tool).collect(),
        Described::Trigger(trigger) => of_trigger(trigger),
        Described::Connector(connector) => of_connector(connector),
    }
}

fn of_agent(agent: &AgentDescription) -> Vec<String> {
    let types = if agent.session_types.is_empty() {
        "chat".to_owned()
    } else {
        agent.session_types.join(", ")
    };
    let name = seen(&agent.display_name);
    let mut lines = vec![
        format!("  agent    {name}: {}", seen(&agent.summary)),
        format!("  leads    {types}"),
    ];
    lines.extend(
        (!agent.wants.is_empty()).then(|| format!("  wants    {}", agent.wants.join(", "))),
    );
    lines
}

fn of_tool(tool: &ToolDefinition) -> String {
    let needs = if tool.capabilities.is_empty() {
        String::new()
    } else {
        format!(", needs {}", tool.capabilities.join(", "))
    };
    let destroys = if tool.destructive {
        ", destructive"
    } else {
        ""
    };
    format!(
        "  tool     {}: {} ({}{destroys}{needs})",
        tool.name,
        seen(&tool.description),
        serialized(&tool.effect)
    )
}

/// Returns the lines on the tools that declare themselves destructive: those about whose calls a
/// user `is_asked`, and the others; none where none does.
pub(super) fn destructive(
    described: &Described,
    is_asked: impl Fn(&ToolDefinition) -> bool,
) -> Vec<String> {
    let Described::Tools(tools) = described else {
        return Vec::new();
    };
    let tools = tools.iter().filter(|tool| tool.destructive);
    let (asked, others): (Vec<_>, Vec<_>) = tools.partition(|tool| is_asked(tool));
    [
        (asked, "a user is asked before each call, by `confirm`"),
        (
            others,
            "with `confirm = \"destructive\"` a user is asked before each call",
        ),
    ]
    .into_iter()
    .filter(|(tools, _)| !tools.is_empty())
    .map(|(tools, says)| {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        format!("  destroys {}: {says}", names.join(", "))
    })
    .collect()
}

fn of_trigger(trigger: &TriggerDescription) -> Vec<String> {
    let mut lines = vec![
        format!("  trigger  {}: {}", trigger.id, seen(&trigger.summary)),
        format!("  fires on {}", trigger.trigger_events.join(", ")),
    ];
    lines.extend(settings(&trigger.configuration));
    lines
}

fn of_connector(connector: &ConnectorDescription) -> Vec<String> {
    let Abilities {
        intake,
        text_limit,
        buttons_max,
        edits,
        typing,
        idempotent,
    } = &connector.abilities;
    let outlets: Vec<&str> = intake.iter().map(|outlet| outlet.as_str()).collect();
    let mut sends = vec![format!("texts of {text_limit} UTF-16 code units")];
    sends.extend((*buttons_max > 0).then(|| format!("questions with {buttons_max} buttons")));
    for (can, what) in [
        (*edits, "edits"),
        (*typing, "typing"),
        (*idempotent, "each message once (idempotency keys)"),
    ] {
        sends.extend(can.then(|| what.to_owned()));
    }
    let mut lines = vec![
        format!("  connector {}: {}", connector.id, seen(&connector.summary)),
        format!("  hears by {}", outlets.join(", ")),
        format!("  sends    {}", sends.join(", ")),
    ];
    lines.extend(settings(&connector.configuration));
    lines
}

/// Returns the line with the keys that its configuration has; none when it has no keys of its own.
fn settings(schema: &Value) -> Option<String> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let keys = schema.get("properties")?.as_object()?.keys().map(|key| {
        let name = seen(key);
        if required.contains(&key.as_str()) {
            format!("{name} (required)")
        } else {
            name
        }
    });
    let keys: Vec<String> = keys.collect();
    (!keys.is_empty()).then(|| format!("  settings {}", keys.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::{brief, destructive, lines};
    use domain::connector::{Abilities, Intake};
    use domain::tool::ToolDefinition;
    use runtime::{ConnectorDescription, Described, TriggerDescription};
    use serde_json::json;

    #[test]
    fn a_tool_that_is_destructive_says_so_in_each_list() {
        let tool = |name: &str, destructive: bool| -> ToolDefinition {
            serde_json::from_value(json!({
                "name": name, "description": "Does.", "arguments": {}, "effect": "idempotent",
                "capabilities": ["plans.write"], "destructive": destructive,
            }))
            .unwrap()
        };
        let tools = Described::Tools(vec![tool("put", false), tool("delete", true)]);
        assert_eq!(
            lines(&tools),
            [
                "  tool     put: Does. (idempotent, needs plans.write)",
                "  tool     delete: Does. (idempotent, destructive, needs plans.write)",
            ]
        );
        assert_eq!(brief(&tools), "tools  put, delete (destructive)");
        let reported = |is_asked: bool| destructive(&tools, |_| is_asked);
        let advised = "  destroys delete: with `confirm = \"destructive\"` a user is asked before \
                       each call";
        assert_eq!(reported(false), [advised]);
        let asked = "  destroys delete: a user is asked before each call, by `confirm`";
        assert_eq!(reported(true), [asked]);
        let harmless = Described::Tools(vec![tool("put", false)]);
        assert!(destructive(&harmless, |_| false).is_empty());
    }

    #[test]
    fn a_trigger_and_a_connector_say_what_they_can_do() {
        let trigger = Described::Trigger(TriggerDescription {
            id: "watch".into(),
            summary: "Watches.".into(),
            configuration: json!({
                "type": "object", "required": ["a"],
                "properties": { "a": {}, "b": {} },
            }),
            trigger_events: vec!["files".into(), "clock".into()],
            state_formats: vec![1],
        });
        assert_eq!(
            lines(&trigger),
            [
                "  trigger  watch: Watches.",
                "  fires on files, clock",
                "  settings a (required), b",
            ]
        );
        let connector = Described::Connector(ConnectorDescription {
            id: "chat".into(),
            summary: "Talks.".into(),
            configuration: json!({}),
            abilities: Abilities {
                intake: vec![Intake::Polling],
                text_limit: 4_096,
                buttons_max: 8,
                edits: true,
                typing: false,
                idempotent: false,
            },
        });
        assert_eq!(
            lines(&connector),
            [
                "  connector chat: Talks.",
                "  hears by polling",
                "  sends    texts of 4096 UTF-16 code units, questions with 8 buttons, edits",
            ]
        );
    }
}
