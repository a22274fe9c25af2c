//! The operations that are offered: those that the configured agents support, as one tool or as a
//! tool each.

use super::operations::{EXECUTE_CODE, LANGUAGE};
use super::{Delegation, Invalid, NAME, OPERATIONS, OperationRule, Target};
use crate::access::tool::{EffectClass, ToolDefinition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Prefix of tools that run programs of a language, which follows it.
const TOOL_OF_LANGUAGE: &str = "execute_";

/// The form in which a model sees the operations that it may delegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Presentation {
    /// As one tool, `delegate`.
    #[default]
    One,
    /// As a tool each, with the schema of its parameters. Weak models use these better.
    ByOperation,
}

/// A target, with the operations that its agent supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The target.
    pub target: Target,
    /// Its operations.
    pub operations: Vec<&'static OperationRule>,
    /// The languages of the programs that it can run, if known.
    pub languages: Vec<String>,
}

impl Offer {
    /// All operations of a target.
    #[must_use]
    pub fn whole(target: Target) -> Self {
        Self {
            target,
            operations: target.operations().collect(),
            languages: Vec::new(),
        }
    }

    /// The operations that the host's own agent of a target supports with these tools.
    #[must_use]
    pub fn with_tools(target: Target, tools: &[ToolDefinition]) -> Self {
        let has = |name: &str| tools.iter().any(|tool| tool.name == name);
        let runs = |name: &str| name.starts_with(TOOL_OF_LANGUAGE);
        let can = |rule: &&OperationRule| match (target, rule.name) {
            (Target::Worker, name) => has(name),
            (Target::Coder, "analyze_code") => has("list_files") && has("read_file"),
            (Target::Coder, EXECUTE_CODE) => tools.iter().any(|tool| runs(&tool.name)),
            (Target::Coder | Target::Researcher, _) => true,
        };
        Self {
            target,
            operations: target.operations().filter(can).collect(),
            languages: languages(tools),
        }
    }
}

/// Returns the languages of the tools that run programs.
fn languages(tools: &[ToolDefinition]) -> Vec<String> {
    let common = tools.iter().find(|tool| tool.name == EXECUTE_CODE);
    let reported = common.and_then(|tool| {
        let language = tool.arguments.pointer("/properties")?.get(LANGUAGE)?;
        language
            .get("enum")
            .or(language.get("examples"))?
            .as_array()
    });
    let reported = reported.into_iter().flatten().filter_map(Value::as_str);
    let own = tools
        .iter()
        .filter(|tool| tool.name != EXECUTE_CODE)
        .filter_map(|tool| tool.name.strip_prefix(TOOL_OF_LANGUAGE));
    reported.chain(own).map(str::to_owned).collect()
}

/// All that can be delegated on a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers(pub Vec<Offer>);

impl From<&[Target]> for Offers {
    fn from(targets: &[Target]) -> Self {
        Self(targets.iter().copied().map(Offer::whole).collect())
    }
}

impl Offers {
    /// Returns the targets.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        self.0.iter().map(|offer| offer.target)
    }

    /// Returns the operations of a target.
    pub(super) fn operations(
        &self,
        target: Target,
    ) -> impl Iterator<Item = &'static OperationRule> {
        let of_target = self.0.iter().filter(move |offer| offer.target == target);
        of_target.flat_map(|offer| offer.operations.iter().copied())
    }

    /// The tool as an agent with delegation sees it.
    ///
    /// Idempotent: handing work over is part of the commit that decides it, so the same call under
    /// the same key hands it over once.
    #[must_use]
    pub fn definition(&self) -> ToolDefinition {
        let targets: Vec<Target> = self.targets().collect();
        let names: Vec<&str> = targets.iter().map(|target| target.as_str()).collect();
        let all = self.0.iter().flat_map(|offer| &offer.operations);
        let operations: Vec<&str> = all.map(|operation| operation.name).collect();
        let longest_ms = targets.iter().map(|target| target.timeout_ms_max()).max();
        tool(
            NAME,
            self.description(),
            json!({
                "type": "object",
                "properties": {
                    "target": { "type": "string", "enum": names },
                    "operation": { "type": "string", "enum": operations },
                    "parameters": { "type": "object" },
                    "timeout": {
                        "type": "integer", "minimum": 1, "maximum": longest_ms.unwrap_or(1),
                        "description": "Milliseconds.",
                    },
                    "priority": {
                        "type": "integer", "minimum": 1, "maximum": 4,
                        "description": "1 low, 2 normal, 3 high, 4 critical.",
                    },
                },
                "required": ["target", "operation", "parameters"],
                "additionalProperties": false,
            }),
        )
    }

    fn description(&self) -> String {
        let mut text = "Hands an operation to a specialised agent and returns its result. The \
                        operations of each target, with their parameters:"
            .to_owned();
        for offer in &self.0 {
            let operations = offer.operations.iter();
            let operations: Vec<String> = operations.map(ToString::to_string).collect();
            text.push_str(&format!("\n- {}: {}", offer.target, operations.join(", ")));
            let runs = operations.iter().any(|it| it.starts_with(EXECUTE_CODE));
            if runs && !offer.languages.is_empty() {
                text.push_str(&format!(
                    ". Languages of {EXECUTE_CODE}: {}",
                    offer.languages.join(", ")
                ));
            }
        }
        text
    }

    /// Returns a tool for each operation. A call of it is equivalent to a call of `delegate`.
    #[must_use]
    pub fn by_operation(&self) -> Vec<ToolDefinition> {
        let each = self.0.iter().flat_map(|offer| {
            let operations = offer.operations.iter();
            operations.map(|rule| {
                tool(
                    rule.name,
                    rule.description.to_owned(),
                    rule.schema(&offer.languages),
                )
            })
        });
        let mut tools: Vec<ToolDefinition> = each.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    }

    /// Checks a call's arguments, as the model wrote them.
    ///
    /// # Errors
    /// The first fault. The call had no effect.
    pub fn parse(&self, arguments: &str) -> Result<Delegation, Invalid> {
        super::check(arguments, self).map_err(|invalid| {
            let call = call_that_would_do(arguments, self);
            invalid.showing(NAME, call)
        })
    }

    /// Checks the arguments of a call by an operation's name.
    ///
    /// # Errors
    /// The first fault. The call had no effect.
    pub fn parse_named(
        &self,
        rule: &OperationRule,
        arguments: &str,
    ) -> Result<Delegation, Invalid> {
        let given = parameters(arguments);
        let checked = given.as_ref().map_err(Clone::clone);
        checked
            .and_then(|given| super::check(&call_of(rule, given).to_string(), self))
            .map_err(|invalid| {
                let mended = rule.mended(given.as_ref().ok());
                invalid.showing(rule.name, Some(Value::Object(mended)))
            })
    }
}

/// Returns the operation of a name among those of these targets, configured or not.
#[must_use]
pub fn operation_named(name: &str) -> Option<&'static OperationRule> {
    OPERATIONS.iter().find(|rule| rule.name == name)
}

/// Returns the arguments of the `delegate` call that is equivalent to a call by an operation's
/// name. Invalid JSON, or JSON other than an object, stays unchanged, and `delegate` refuses it.
#[must_use]
pub fn arguments_of_named(rule: &OperationRule, arguments: &str) -> String {
    match parameters(arguments) {
        Ok(parameters) => call_of(rule, &parameters).to_string(),
        Err(_) => arguments.to_owned(),
    }
}

fn parameters(arguments: &str) -> Result<Map<String, Value>, Invalid> {
    let arguments = match arguments.trim() {
        "" => "{}",
        arguments => arguments,
    };
    match crate::values::json::parse(arguments) {
        Ok(Value::Object(parameters)) => Ok(parameters),
        Ok(_) => Err(Invalid::parameters("The arguments must be a JSON object.")),
        Err(refused) => Err(Invalid::parameters(format!(
            "The arguments cannot be taken: {refused}."
        ))),
    }
}

fn call_of(rule: &OperationRule, parameters: &Map<String, Value>) -> Value {
    json!({ "target": rule.target, "operation": rule.name, "parameters": parameters })
}

/// Returns the arguments of a valid `delegate` call: those of the named operation, as far as they
/// fit. None if it names no offered operation.
fn call_that_would_do(arguments: &str, offers: &Offers) -> Option<Value> {
    let given = crate::values::json::parse(arguments).ok()?;
    let rule = operation_named(given.get("operation")?.as_str()?)?;
    offers.operations(rule.target).find(|it| *it == rule)?;
    let parameters = given.get("parameters").and_then(Value::as_object);
    Some(call_of(rule, &rule.mended(parameters)))
}

fn tool(name: &str, description: String, arguments: Value) -> ToolDefinition {
    ToolDefinition {
        effect: EffectClass::Idempotent,
        ..ToolDefinition::reading(name, description, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::{Offer, Offers, arguments_of_named, operation_named};
    use crate::access::tool::ToolDefinition;
    use crate::work::delegate::{NAME, Target, parse};
    use serde_json::{Value, json};

    fn tool(name: &str, arguments: Value) -> ToolDefinition {
        ToolDefinition::reading(name, String::new(), arguments)
    }

    fn tools(names: &[&str]) -> Vec<ToolDefinition> {
        names.iter().map(|name| tool(name, json!({}))).collect()
    }

    fn offered(target: Target, tools: &[ToolDefinition]) -> Vec<&'static str> {
        let offer = Offer::with_tools(target, tools);
        offer.operations.iter().map(|rule| rule.name).collect()
    }

    #[test]
    fn only_what_an_agent_has_the_tools_for_is_offered() {
        for (target, has, expected) in [
            (
                Target::Worker,
                &["read_file", "list_files"][..],
                &["read_file", "list_files"][..],
            ),
            (Target::Worker, &[], &[]),
            (Target::Coder, &[], &["generate_code", "review_code"]),
            (
                Target::Coder,
                &["execute_python"],
                &["generate_code", "review_code", "execute_code"],
            ),
            (
                Target::Coder,
                &["read_file", "list_files"],
                &["analyze_code", "generate_code", "review_code"],
            ),
            (
                Target::Researcher,
                &[],
                &["deep_research", "synthesize_sources"],
            ),
        ] {
            assert_eq!(offered(target, &tools(has)), expected, "{target} {has:?}");
        }
    }

    #[test]
    fn the_languages_that_can_be_run_are_named() {
        let language = json!({ "type": ["string", "null"], "examples": ["javascript"] });
        let common = tool(
            "execute_code",
            json!({ "properties": { "language": language } }),
        );
        let has = [common, tool("execute_python", json!({}))];
        let offers = Offers(vec![Offer::with_tools(Target::Coder, &has)]);
        let description = offers.definition().description;
        assert!(
            description.ends_with("Languages of execute_code: javascript, python"),
            "{description}"
        );
        let typed = offers.by_operation();
        let of = |name: &str| {
            &typed
                .iter()
                .find(|tool| tool.name == name)
                .unwrap()
                .arguments
        };
        let languages = json!(["javascript", "python"]);
        assert_eq!(
            of("execute_code")["properties"]["language"]["enum"],
            languages
        );
        // It writes code in any.
        assert!(of("generate_code")["properties"]["language"]["enum"].is_null());
    }

    #[test]
    fn each_operation_is_a_tool_with_the_schema_of_its_parameters() {
        let offers = Offers::from(&[Target::Worker][..]);
        let tools = offers.by_operation();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut expected: Vec<&str> = Target::Worker.operations().map(|rule| rule.name).collect();
        expected.sort_unstable();
        assert_eq!(names, expected);
        let write = tools.iter().find(|tool| tool.name == "write_file").unwrap();
        assert_eq!(
            write.arguments,
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" }, "content": { "type": "string" },
                    "createParents": { "type": "boolean" },
                },
                "required": ["path", "content"],
                "additionalProperties": false,
            })
        );
        // Weak models take such a mark for a part of the name.
        for tool in tools.iter().chain([&offers.definition()]) {
            let shown = format!("{} {}", tool.description, tool.arguments);
            assert!(!shown.contains('?'), "{shown}");
        }
    }

    #[test]
    fn a_call_by_an_operations_name_is_the_call_of_delegate() {
        let rule = operation_named("read_file").unwrap();
        let offers = Offers::from(&Target::ALL[..]);
        let parameters = r#"{"path":"notes.txt"}"#;
        let named = offers.parse_named(rule, parameters).unwrap();
        let whole = json!({
            "target": "worker", "operation": "read_file", "parameters": { "path": "notes.txt" },
        });
        assert_eq!(named, offers.parse(&whole.to_string()).unwrap());
        let kept = arguments_of_named(rule, parameters);
        assert_eq!(parse(&kept, &Target::ALL).unwrap(), named);
        for other in ["read", "delegate", "system_read", "", "READ_FILE"] {
            assert!(operation_named(other).is_none(), "{other}");
        }
    }

    #[test]
    fn an_error_shows_the_call_that_would_do() {
        let offers = Offers::from(&[Target::Worker][..]);
        let write = operation_named("write_file").unwrap();
        let marked = r#"{"path":"a.txt","content":"hello","createParents?":false}"#;
        let message = offers
            .parse_named(write, marked)
            .unwrap_err()
            .failure()
            .message;
        let call =
            r#"This would do: write_file {"path":"a.txt","content":"hello","createParents":false}"#;
        assert!(message.ends_with(call), "{message}");
        assert!(
            !message.contains("?)") && !message.contains("?,"),
            "{message}"
        );

        let missing = offers
            .parse_named(write, "{\"path\":")
            .unwrap_err()
            .failure()
            .message;
        let call = r#"This would do: write_file {"path":"<path>","content":"<content>"}"#;
        assert!(missing.ends_with(call), "{missing}");

        let whole = json!({ "target": "worker", "operation": "read_file", "path": "a.txt" });
        let message = offers
            .parse(&whole.to_string())
            .unwrap_err()
            .failure()
            .message;
        let call = json!({
            "target": "worker", "operation": "read_file", "parameters": { "path": "<path>" },
        });
        let shown = message.split_once("This would do: delegate ").unwrap().1;
        assert_eq!(serde_json::from_str::<Value>(shown).unwrap(), call);

        // Each call that is shown would do.
        for rule in Target::Worker.operations() {
            let failure = offers
                .parse_named(rule, r#"{"nothing":1}"#)
                .unwrap_err()
                .failure();
            let start = format!("This would do: {} ", rule.name);
            let shown = failure.message.split_once(&start).unwrap().1;
            assert!(offers.parse_named(rule, shown).is_ok(), "{shown}");
        }
        assert_eq!(offers.definition().name, NAME);
    }
}
