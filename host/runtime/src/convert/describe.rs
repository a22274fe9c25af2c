//! From a component to the host: what it says of itself, checked before anything relies on it.

use crate::bindings::agent::agent_host::plugin::types;
use crate::bindings::agent::exports::agent_host::plugin::agent;
use crate::bindings::connector::exports::agent_host::plugin::connector;
use crate::bindings::trigger::exports::agent_host::plugin::trigger;
use crate::component::{AgentDescription, ConnectorDescription, TriggerDescription};
use crate::convert::{Read, Reader, check_count, check_length, same, unacceptable};
use domain::connector::{Abilities, Intake, TEXT_LIMIT_MIN};
use domain::schema;
use domain::tool::wording::DESCRIPTIONS_BYTES_MAX;
use domain::tool::{EffectClass, ToolDefinition};
use serde_json::Value;
use shapes::is_name;
use shapes::limits::tool::TOOLS_MAX;
use std::collections::HashSet;

/// Characters that are shown of a name that is none.
const SHOWN_CHARS_MAX: usize = 80;
/// Names in any of a description's lists.
const NAMES_MAX: usize = 128;
/// The kinds of trigger events that a trigger may say it can deal with.
const TRIGGER_EVENTS: [&str; 5] = ["clock", "heartbeat", "webhook", "files", "events"];

/// Reads what an agent says of itself.
pub(crate) fn agent_description(description: agent::Description) -> Read<AgentDescription> {
    let agent::Description {
        id,
        display_name,
        summary,
        session_types,
        wants,
        memo_formats,
    } = description;
    let mut reader = Reader::default();
    check_id(&id)?;
    check_count("session-types", session_types.len(), NAMES_MAX)?;
    check_count("wants", wants.len(), NAMES_MAX)?;
    if let Some(name) = session_types.iter().find(|name| !is_name(name, b"-_")) {
        return unacceptable(
            "session-types",
            not_a_name(name, "`a-z`, `0-9`, `-` and `_`"),
        );
    }
    check_count("memo-formats", memo_formats.len(), NAMES_MAX)?;
    Ok(AgentDescription {
        id,
        display_name: reader.text("display-name", display_name)?,
        summary: reader.text("summary", summary)?,
        session_types,
        wants,
        memo_formats,
    })
}

/// Reads which tools a component offers.
pub(crate) fn tool_definitions(tools: Vec<types::ToolDefinition>) -> Read<Vec<ToolDefinition>> {
    if tools.is_empty() || tools.len() > TOOLS_MAX {
        return unacceptable(
            "tools",
            format_args!("are {}; 1 to {TOOLS_MAX}", tools.len()),
        );
    }
    let mut reader = Reader::default();
    let mut names = HashSet::new();
    let mut definitions = Vec::with_capacity(tools.len());
    for tool in tools {
        let definition = reader.tool_definition(tool)?;
        if !names.insert(definition.name.clone()) {
            return unacceptable(
                "tools",
                format_args!("has two of the name `{}`", definition.name),
            );
        }
        definitions.push(definition);
    }
    Ok(definitions)
}

/// Reads what a trigger says of itself.
pub(crate) fn trigger_description(description: trigger::Description) -> Read<TriggerDescription> {
    let trigger::Description {
        id,
        summary,
        configuration,
        trigger_events,
        state_formats,
    } = description;
    let mut reader = Reader::default();
    check_id(&id)?;
    check_count("trigger_events", trigger_events.len(), TRIGGER_EVENTS.len())?;
    let known = TRIGGER_EVENTS.join("`, `");
    if trigger_events.is_empty() {
        return unacceptable(
            "trigger_events",
            format_args!("are none; name some of `{known}`"),
        );
    }
    if let Some(name) = trigger_events
        .iter()
        .find(|name| !TRIGGER_EVENTS.contains(&name.as_str()))
    {
        let shown: String = name.chars().take(SHOWN_CHARS_MAX).collect();
        let shown = crate::log::escaped(&shown);
        return unacceptable(
            "trigger_events",
            format_args!("has `{shown}`, which is none of `{known}`"),
        );
    }
    check_count("state-formats", state_formats.len(), NAMES_MAX)?;
    Ok(TriggerDescription {
        id,
        summary: reader.text("summary", summary)?,
        configuration: reader.configuration(&configuration)?,
        trigger_events,
        state_formats,
    })
}

/// Reads what a connector says of itself.
pub(crate) fn connector_description(
    description: connector::Description,
) -> Read<ConnectorDescription> {
    let connector::Description {
        id,
        summary,
        configuration,
        intake,
        text_limit,
        buttons_max,
        edits,
        typing,
        idempotent,
    } = description;
    let mut reader = Reader::default();
    check_id(&id)?;
    if intake.is_empty() {
        return unacceptable("intake", "is empty; name `webhook`, `polling` or both");
    }
    check_count("intake", intake.len(), Intake::ALL.len())?;
    if text_limit < TEXT_LIMIT_MIN {
        return unacceptable(
            "text-limit",
            format_args!("is {text_limit}; {TEXT_LIMIT_MIN} at least"),
        );
    }
    let way = |way| same!(way, connector::Intake => Intake: Webhook, Polling);
    Ok(ConnectorDescription {
        id,
        summary: reader.text("summary", summary)?,
        configuration: reader.configuration(&configuration)?,
        abilities: Abilities {
            intake: intake.into_iter().map(way).collect(),
            text_limit,
            buttons_max,
            edits,
            typing,
            idempotent,
        },
    })
}

fn check_id(id: &str) -> Read<()> {
    if is_name(id, b"-_") {
        Ok(())
    } else {
        unacceptable("id", "is not 1 to 64 of `a-z`, `0-9`, `-` and `_`")
    }
}

/// Returns the message about a name that is not acceptable. It shows the name's beginning, and
/// nothing of it breaks a line or steers a terminal.
fn not_a_name(name: &str, letters: &str) -> String {
    let beginning: String = name.chars().take(SHOWN_CHARS_MAX).collect();
    format!(
        "has `{}`, which is not 1 to 64 of {letters}",
        crate::log::escaped(&beginning)
    )
}

impl Reader {
    fn tool_definition(&mut self, tool: types::ToolDefinition) -> Read<ToolDefinition> {
        let types::ToolDefinition {
            name,
            description,
            arguments,
            results,
            capabilities,
            effect,
            destructive,
            time_limit_ms,
        } = tool;
        if !is_name(&name, b"_") {
            return unacceptable("name", not_a_name(&name, "`a-z`, `0-9` and `_`"));
        }
        let arguments = self.arguments_schema(&format!("{name}.arguments"), &arguments)?;
        let field = format!("{name}.capabilities");
        check_count(&field, capabilities.len(), NAMES_MAX)?;
        if let Some(capability) = capabilities.iter().find(|name| !is_name(name, b"._-")) {
            let letters = "`a-z`, `0-9`, `.`, `_` and `-`";
            return unacceptable(&field, not_a_name(capability, letters));
        }
        Ok(ToolDefinition {
            description: self.text(&format!("{name}.description"), description)?,
            arguments,
            results: results
                .map(|schema| {
                    let field = format!("{name}.results");
                    bounded(&field, self.schema(&field, &schema)?)
                })
                .transpose()?,
            capabilities,
            effect: same!(
                effect,
                types::EffectClass => EffectClass: ReadOnly, Idempotent, NonIdempotent
            ),
            destructive,
            time_limit_ms,
            name,
        })
    }

    /// The schema of an operator's configuration.
    fn configuration(&mut self, text: &str) -> Read<Value> {
        check_length("configuration", text.len(), DESCRIPTIONS_BYTES_MAX)?;
        self.arguments_schema("configuration", text)
    }

    fn arguments_schema(&mut self, field: &str, text: &str) -> Read<Value> {
        let schema = self.object(field, text)?;
        match schema.get("type") {
            None => bounded(field, schema),
            Some(Value::String(name)) if name == "object" => bounded(field, schema),
            Some(_) => unacceptable(
                field,
                "does not describe an object: `type` has to be `object`",
            ),
        }
    }
}

/// A schema that asks for no more work than it may.
fn bounded(field: &str, schema: Value) -> Read<Value> {
    match schema::check(&schema) {
        Ok(()) => Ok(schema),
        Err(unfit) => unacceptable(
            field,
            format_args!("is a JSON Schema that cannot be used: {unfit}"),
        ),
    }
}

#[cfg(test)]
mod tests;
