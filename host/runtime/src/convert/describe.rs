//! From a component to the host: what it says of itself, checked before anything relies on it.

use crate::bindings::agent::agent_host::plugin::types;
use crate::bindings::agent::exports::agent_host::plugin::agent;
use crate::component::AgentDescription;
use crate::convert::{Reader, Unacceptable, is_name, unacceptable};
use domain::schema;
use domain::tool::{EffectClass, ToolDefinition};
use serde_json::Value;
use std::collections::HashSet;

/// Tools of one component.
pub(crate) const TOOLS_MAX: usize = 128;
/// Characters that are shown of a name that is none.
const SHOWN_CHARS_MAX: usize = 80;
/// Names in any of a description's lists.
const NAMES_MAX: usize = 128;

type Read<T> = Result<T, Unacceptable>;

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
    if !is_name(&id, &['-', '_']) {
        return unacceptable("id", "is not 1 to 64 of `a-z`, `0-9`, `-` and `_`");
    }
    for (field, names) in [("session-types", &session_types), ("wants", &wants)] {
        if names.len() > NAMES_MAX {
            return unacceptable(
                field,
                format_args!("are {}; {NAMES_MAX} at most", names.len()),
            );
        }
    }
    if let Some(name) = session_types
        .iter()
        .find(|name| !is_name(name, &['-', '_']))
    {
        return unacceptable(
            "session-types",
            not_a_name(name, "`a-z`, `0-9`, `-` and `_`"),
        );
    }
    if memo_formats.len() > NAMES_MAX {
        return unacceptable(
            "memo-formats",
            format_args!("are {}; {NAMES_MAX} at most", memo_formats.len()),
        );
    }
    let display_name = reader.text("display-name", display_name)?;
    let summary = reader.text("summary", summary)?;
    Ok(AgentDescription {
        id,
        display_name,
        summary,
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
        if !is_name(&name, &['_']) {
            return unacceptable("name", not_a_name(&name, "`a-z`, `0-9` and `_`"));
        }
        let arguments = self.arguments_schema(&format!("{name}.arguments"), &arguments)?;
        if capabilities.len() > NAMES_MAX {
            return unacceptable(
                &format!("{name}.capabilities"),
                format_args!("are {}; {NAMES_MAX} at most", capabilities.len()),
            );
        }
        if let Some(capability) = capabilities
            .iter()
            .find(|name| !is_name(name, &['.', '_', '-']))
        {
            let field = format!("{name}.capabilities");
            return unacceptable(
                &field,
                not_a_name(capability, "`a-z`, `0-9`, `.`, `_` and `-`"),
            );
        }
        Ok(ToolDefinition {
            description: self.text(&format!("{name}.description"), description)?,
            arguments,
            results: match results {
                Some(schema) => {
                    let field = format!("{name}.results");
                    let schema = self.schema(&field, &schema)?;
                    Some(bounded(&field, schema)?)
                }
                None => None,
            },
            capabilities,
            effect: match effect {
                types::EffectClass::ReadOnly => EffectClass::ReadOnly,
                types::EffectClass::Idempotent => EffectClass::Idempotent,
                types::EffectClass::NonIdempotent => EffectClass::NonIdempotent,
            },
            destructive,
            time_limit_ms,
            name,
        })
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
mod tests {
    use super::*;

    fn tool(name: &str, arguments: &str) -> types::ToolDefinition {
        types::ToolDefinition {
            name: name.into(),
            description: String::new(),
            arguments: arguments.into(),
            results: None,
            capabilities: Vec::new(),
            effect: types::EffectClass::ReadOnly,
            destructive: false,
            time_limit_ms: None,
        }
    }

    fn check(tools: Vec<types::ToolDefinition>, expected: &str) {
        let Unacceptable(detail) = tool_definitions(tools).unwrap_err();
        assert!(
            detail.contains(expected),
            "{detail} does not contain {expected}"
        );
    }

    #[test]
    fn tools_need_unique_names_and_schemas_of_objects() {
        check(Vec::new(), "`tools` are 0; 1 to 128");
        check(
            vec![tool("Echo", "{}")],
            "`name` has `Echo`, which is not 1 to 64",
        );
        check(
            vec![tool("echo", "{}"), tool("echo", "{}")],
            "two of the name `echo`",
        );
        check(
            vec![tool("echo", "nonsense")],
            "`echo.arguments` is not JSON",
        );
        check(
            vec![tool("echo", r#"{"type":"string"}"#)],
            "`echo.arguments` does not describe an object",
        );
        let doubling = r##"{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"items":{"$ref":"#/$defs/x"},"not":{"$ref":"#/$defs/x"}}}}"##;
        check(
            vec![tool("echo", doubling)],
            "`echo.arguments` is a JSON Schema that cannot be used: at /",
        );
        let results = types::ToolDefinition {
            results: Some(r#"{"$ref":"https://example.com"}"#.into()),
            ..tool("echo", "{}")
        };
        check(
            vec![results],
            "`echo.results` is a JSON Schema that cannot be used: only references within the \
             schema",
        );
        check(
            (0..129).map(|n| tool(&format!("t{n}"), "{}")).collect(),
            "`tools` are 129",
        );
        assert_eq!(
            tool_definitions(vec![tool("echo", r#"{"type":"object"}"#)])
                .unwrap()
                .len(),
            1
        );
    }

    /// A capability has a plain name. A wrong one is reported with its tool and steers no terminal.
    #[test]
    fn a_wrong_capability_name_is_reported_with_its_tool_and_escaped() {
        let asking = |capability: &str| types::ToolDefinition {
            capabilities: vec![capability.into()],
            ..tool("echo", "{}")
        };
        for wrong in [
            "",
            "Net.http",
            "net http",
            "net.http\nforged",
            "\u{1b}[2Jnet",
            "n\u{e4}t",
            "\u{202e}net",
            &"x".repeat(65),
        ] {
            let Unacceptable(detail) = tool_definitions(vec![asking(wrong)]).unwrap_err();
            assert!(
                detail.starts_with("`echo.capabilities` has `")
                    && !detail.chars().any(char::is_control),
                "{detail}"
            );
        }
        for right in ["net.http", "my-bucket_2.write", &"x".repeat(64)] {
            assert!(tool_definitions(vec![asking(right)]).is_ok(), "{right}");
        }
    }

    #[test]
    fn an_agent_needs_plain_names() {
        let description = agent::Description {
            id: "Not Plain".into(),
            display_name: String::new(),
            summary: String::new(),
            session_types: Vec::new(),
            wants: Vec::new(),
            memo_formats: Vec::new(),
        };
        assert!(agent_description(description).is_err());
        let forging = agent::Description {
            id: "plain".into(),
            display_name: String::new(),
            summary: String::new(),
            session_types: vec!["a\n  granted  everything".into()],
            wants: Vec::new(),
            memo_formats: Vec::new(),
        };
        let Unacceptable(detail) = agent_description(forging).unwrap_err();
        assert!(!detail.contains('\n'), "{detail}");
    }
}
