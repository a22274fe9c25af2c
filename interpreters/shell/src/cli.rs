//! The commands of skills: a command line becomes the arguments of one call of a tool.

use crate::state::{Ended, Line, Stop};
use agent_host_shapes::json;
use agent_host_shapes::shown::visible;
use agent_host_shell::flags::{flags_of, kinds_of, schemas_of};
use agent_host_shell::{Command, Tool, Wanted};
use serde_json::{Map, Value};

/// The exit code of a command that is used wrongly.
const WRONG: u8 = 2;

/// Carries the command of a skill out.
pub(crate) fn run(
    line: &mut Line<'_>,
    command: &Command<'_>,
    arguments: &[String],
    input: &str,
) -> Result<Ended, Stop> {
    let Some((name, arguments)) = arguments.split_first() else {
        return Ok(Ended::printed(help(command)));
    };
    if is_help(name) {
        return Ok(Ended::printed(help(command)));
    }
    let Some(tool) = tool_of(command, name) else {
        let names: Vec<&str> = command.tools.iter().map(|tool| &*tool.name).collect();
        let name = visible(name, 80);
        return Ok(Ended::failed(
            WRONG,
            format!(
                "{}: there is no tool {name}; there are: {}",
                command.name,
                names.join(", ")
            ),
        ));
    };
    let arguments = match arguments_of(tool, arguments, input) {
        Ok(Some(arguments)) => Value::Object(arguments).to_string(),
        Ok(None) => return Ok(Ended::printed(help_of(command, tool))),
        Err(why) => {
            let help = help_of(command, tool);
            let reported = format!("{} {}: {why}\n{help}", command.name, tool.name);
            return Ok(Ended::failed(WRONG, reported));
        }
    };
    let answered = line.call(Wanted {
        tool: tool.name.to_string(),
        arguments,
    })?;
    if answered.failed {
        return Ok(Ended::failed(1, answered.text.as_str()));
    }
    let mut out = answered.text.clone();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(Ended::printed(out))
}

/// Returns a tool of a command, by its full name or by the part after the id of the skill.
fn tool_of<'c>(command: &'c Command<'_>, name: &str) -> Option<&'c Tool<'c>> {
    let long = format!("{}_{name}", command.skill.replace('-', "_"));
    let named = |name: &str| command.tools.iter().find(|tool| tool.name == name);
    named(name).or_else(|| named(&long))
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "--help" | "-h")
}

fn help(command: &Command<'_>) -> String {
    let name = &command.name;
    let mut help = format!(
        "{}\n\nUsage:\n  {name} <tool> --flag value\n  {name} <tool> --json '{{…}}' (or - for the \
         input)\n  {name} <tool> --help\n\nTools:\n",
        command.description
    );
    for tool in &command.tools {
        let first = tool.description.lines().next().unwrap_or_default();
        help.push_str(&format!("  {}: {first}\n", tool.name));
    }
    help
}

fn help_of(command: &Command<'_>, tool: &Tool<'_>) -> String {
    format!(
        "{} {}: {}\n\n{}{}",
        command.name,
        tool.name,
        tool.description.trim(),
        flags_of(&tool.arguments),
        schemas_of(&tool.arguments)
    )
}

/// Returns the arguments of a call, none where its help is wanted. The error is the fault, for
/// people.
fn arguments_of(
    tool: &Tool<'_>,
    arguments: &[String],
    input: &str,
) -> Result<Option<Map<String, Value>>, String> {
    let mut given = Map::new();
    let mut all = arguments.iter().peekable();
    while let Some(argument) = all.next() {
        // Only where a flag may stand: after a flag it is that one's value.
        if is_help(argument) {
            return Ok(None);
        }
        let Some(flag) = argument.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
            let argument = visible(argument, 80);
            return Err(format!(
                "{argument} is no flag; write --flag value, and quote values"
            ));
        };
        let (flag, attached) = match flag.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (flag, None),
        };
        let schema = schema_of(tool, flag);
        let is_switch =
            schema.is_some_and(is_boolean) && all.peek().is_none_or(|next| next.starts_with("--"));
        let value = match attached {
            Some(value) => value,
            None if is_switch => "true",
            None => all
                .next()
                .map(String::as_str)
                .ok_or_else(|| format!("--{flag} has no value"))?,
        };
        let more = if flag == "json" && schema.is_none() {
            object_of(if value == "-" { input } else { value })?
        } else if is_unknown(tool, flag) {
            let flag = visible(flag, 80);
            return Err(format!("there is no flag --{flag}"));
        } else {
            let value =
                value_of(schema, value).map_err(|why| format!("--{flag} takes JSON: {why}"))?;
            Map::from_iter([(flag.to_owned(), value)])
        };
        if let Some(name) = more.keys().find(|name| given.contains_key(*name)) {
            let name = visible(name, 80);
            return Err(format!("--{name} is given twice"));
        }
        given.extend(more);
    }
    Ok(Some(given))
}

fn object_of(text: &str) -> Result<Map<String, Value>, String> {
    match json::parse(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("--json takes an object".to_owned()),
        Err(refused) => Err(format!("--json takes an object: {refused}")),
    }
}

/// Returns the schema of an argument.
fn schema_of<'t>(tool: &'t Tool<'t>, flag: &str) -> Option<&'t Value> {
    tool.arguments.get("properties")?.get(flag)
}

/// Returns whether a tool is known to have no such argument.
fn is_unknown(tool: &Tool<'_>, flag: &str) -> bool {
    let properties = tool.arguments.get("properties").and_then(Value::as_object);
    let is_open = match tool.arguments.get("additionalProperties") {
        Some(Value::Bool(is_open)) => *is_open,
        Some(_) => true,
        // A slip of the pen is more likely than an argument that no schema names.
        None => properties.is_none_or(Map::is_empty),
    };
    !is_open && schema_of(tool, flag).is_none()
}

/// Returns whether an argument is true or false, or null, and nothing else.
fn is_boolean(schema: &Value) -> bool {
    let kinds = kinds_of(schema);
    kinds.contains(&"boolean") && kinds.iter().all(|kind| matches!(*kind, "boolean" | "null"))
}

/// Returns the value of a flag: the text itself where a text is wanted, else JSON. Where a text or
/// something else is wanted it is that if it reads like it, and null only where no text is.
fn value_of(schema: Option<&Value>, text: &str) -> Result<Value, String> {
    let kinds = schema.map(kinds_of).unwrap_or_default();
    let is_text = kinds.contains(&"string");
    match json::parse(text) {
        Ok(value) if kinds.is_empty() => Ok(value),
        Ok(value) if is_text => {
            let is_wanted = match &value {
                Value::Null | Value::String(_) => false,
                Value::Bool(_) => kinds.contains(&"boolean"),
                Value::Number(number) => {
                    kinds.contains(&"number") || (kinds.contains(&"integer") && !number.is_f64())
                }
                Value::Array(_) => kinds.contains(&"array"),
                Value::Object(_) => kinds.contains(&"object"),
            };
            Ok(if is_wanted { value } else { text.into() })
        }
        Ok(value) => Ok(value),
        Err(_) if is_text || kinds.is_empty() => Ok(text.into()),
        Err(refused) => Err(refused.to_string()),
    }
}
