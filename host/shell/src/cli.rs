//! The commands of skills: a command line becomes the arguments of one call of a tool.

use crate::Wanted;
use crate::meter::Stop;
use crate::state::{Ended, Line};
use domain::skill::{Skill, flags_of};
use domain::tool::ToolDefinition;
use serde_json::{Map, Value};

/// The exit code of a command that is used wrongly.
const WRONG: u8 = 2;

/// Carries the command of a skill out.
pub(crate) fn run(
    line: &mut Line<'_>,
    skill: &Skill,
    arguments: &[String],
    input: &str,
) -> Result<Ended, Stop> {
    let Some((name, arguments)) = arguments.split_first() else {
        return Ok(Ended::printed(help(skill)));
    };
    if is_help(name) {
        return Ok(Ended::printed(help(skill)));
    }
    let Some(tool) = skill.tool(name) else {
        let names: Vec<&str> = skill.tools.iter().map(|tool| tool.name.as_str()).collect();
        let name = domain::shown::visible(name, 80);
        return Ok(Ended::failed(
            WRONG,
            format!(
                "{}: there is no tool {name}; there are: {}",
                skill.command(),
                names.join(", ")
            ),
        ));
    };
    if arguments.iter().any(|argument| is_help(argument)) {
        return Ok(Ended::printed(help_of(skill, tool)));
    }
    let arguments = match arguments_of(tool, arguments, input) {
        Ok(arguments) => Value::Object(arguments).to_string(),
        Err(why) => {
            let told = format!(
                "{} {}: {why}\n{}",
                skill.command(),
                tool.name,
                help_of(skill, tool)
            );
            return Ok(Ended::failed(WRONG, told));
        }
    };
    line.meter.text(arguments.len())?;
    let answered = line.call(Wanted {
        tool: tool.name.clone(),
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

fn is_help(argument: &str) -> bool {
    matches!(argument, "--help" | "-h")
}

fn help(skill: &Skill) -> String {
    let command = skill.command();
    let mut help = format!(
        "{}\n\nUsage:\n  {command} <tool> --flag value\n  {command} <tool> --json '{{…}}' (or - \
         for the input)\n  {command} <tool> --help\n\nTools:\n",
        skill.description
    );
    for tool in &skill.tools {
        let first = tool.description.lines().next().unwrap_or_default();
        help.push_str(&format!("  {}: {first}\n", tool.name));
    }
    help
}

fn help_of(skill: &Skill, tool: &ToolDefinition) -> String {
    format!(
        "{} {}: {}\n\n{}",
        skill.command(),
        tool.name,
        tool.description.trim(),
        flags_of(tool)
    )
}

/// Returns the arguments of a call. The error is the fault, for people.
fn arguments_of(
    tool: &ToolDefinition,
    arguments: &[String],
    input: &str,
) -> Result<Map<String, Value>, String> {
    let mut given = Map::new();
    let mut all = arguments.iter().peekable();
    while let Some(argument) = all.next() {
        let Some(flag) = argument.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
            let argument = domain::shown::visible(argument, 80);
            return Err(format!(
                "{argument} is no flag; write --flag value, and quote values"
            ));
        };
        let (flag, attached) = match flag.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (flag, None),
        };
        let is_switch = kind_of(tool, flag) == Some("boolean")
            && all.peek().is_none_or(|next| next.starts_with("--"));
        let value = match attached {
            Some(value) => value,
            None if is_switch => "true",
            None => all
                .next()
                .map(String::as_str)
                .ok_or_else(|| format!("--{flag} has no value"))?,
        };
        if flag == "json" && kind_of(tool, flag).is_none() {
            given.extend(object_of(if value == "-" { input } else { value })?);
            continue;
        }
        if is_unknown(tool, flag) {
            let flag = domain::shown::visible(flag, 80);
            return Err(format!("there is no flag --{flag}"));
        }
        let value = value_of(kind_of(tool, flag), value)
            .map_err(|why| format!("--{flag} takes JSON: {why}"))?;
        if given.insert(flag.to_owned(), value).is_some() {
            return Err(format!("--{flag} is given twice"));
        }
    }
    Ok(given)
}

fn object_of(text: &str) -> Result<Map<String, Value>, String> {
    match domain::json::parse(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("--json takes an object".to_owned()),
        Err(refused) => Err(format!("--json takes an object: {refused}")),
    }
}

/// Returns the schema of an argument.
fn schema_of<'t>(tool: &'t ToolDefinition, flag: &str) -> Option<&'t Value> {
    tool.arguments.get("properties")?.get(flag)
}

/// Returns whether a tool is known to have no such argument.
fn is_unknown(tool: &ToolDefinition, flag: &str) -> bool {
    let properties = tool.arguments.get("properties").and_then(Value::as_object);
    let is_open = match tool.arguments.get("additionalProperties") {
        Some(Value::Bool(is_open)) => *is_open,
        Some(_) => true,
        // A slip of the pen is more likely than an argument that no schema names.
        None => properties.is_none_or(Map::is_empty),
    };
    !is_open && schema_of(tool, flag).is_none()
}

/// Returns the type of an argument, if its schema names one.
fn kind_of<'t>(tool: &'t ToolDefinition, flag: &str) -> Option<&'t str> {
    let schema = schema_of(tool, flag)?;
    Some(schema.get("type").and_then(Value::as_str).unwrap_or("any"))
}

/// Returns the value of a flag: the text itself where a text is wanted, else JSON.
fn value_of(kind: Option<&str>, text: &str) -> Result<Value, String> {
    match kind {
        Some("string") => Ok(text.into()),
        Some("integer" | "number" | "boolean" | "array" | "object" | "null") => {
            domain::json::parse(text).map_err(|refused| refused.to_string())
        }
        // Several types, or none: JSON if it is some, else the text.
        Some(_) | None => Ok(domain::json::parse(text).unwrap_or_else(|_| text.into())),
    }
}
