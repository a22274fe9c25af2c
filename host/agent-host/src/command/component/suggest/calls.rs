//! The calls to run again: from a file, or from the records of a running host, together with what
//! was decided about them there.

use super::super::needs::Needs;
use crate::answer::{list, text};
use crate::client::{Client, Log};
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use anyhow::{Context, anyhow};
use broker::Entry;
use domain::egress::Traffic;
use domain::event::BoundaryDecision;
use domain::ruling::Rule;
use domain::tool::ToolDefinition;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;

/// The type of the events about a component that is served with other code or another grant.
const ADMITTED: &str = "component.admitted.v1";
/// Calls that are run.
const CALLS_MAX: usize = 1_000;

/// One call, as it was recorded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    pub(super) tool: String,
    /// Its arguments: an object.
    #[serde(default)]
    pub(super) arguments: Value,
}

/// The calls to run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Calls {
    pub(super) kept: Vec<Recorded>,
    /// Number of calls left out because their arguments were not kept.
    pub(super) without_arguments: usize,
}

/// Reads calls from a file: one JSON object a line.
pub(super) fn from_file(file: &Path, tools: &[ToolDefinition]) -> Result<Calls, Failure> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read `{}`", file.display()))?;
    let kept = read(&text, tools).map_err(|(line, error)| {
        Failure::new(
            Exit::Usage,
            error.context(format!(
                "{}:{line}: this is no call that can be run",
                file.display()
            )),
        )
    })?;
    Ok(Calls {
        kept,
        without_arguments: 0,
    })
}

/// Reads the calls of a text, or returns the number of the first line that is none.
fn read(text: &str, tools: &[ToolDefinition]) -> Result<Vec<Recorded>, (usize, anyhow::Error)> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let calls = lines.map(|(index, line)| {
        let call: Recorded = serde_json::from_str(line)
            .context("a line is a call, such as {\"tool\":\"read_file\",\"arguments\":{}}")
            .map_err(|error| (index + 1, error))?;
        if tools.iter().any(|tool| tool.name == call.tool) {
            return Ok(call);
        }
        let known = tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        Err((
            index + 1,
            anyhow!(
                "the component offers no tool `{}`; known are {known}",
                call.tool
            ),
        ))
    });
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    if calls.len() > CALLS_MAX {
        return Err((
            CALLS_MAX + 1,
            anyhow!("at most {CALLS_MAX} calls are run at once; take the others in another file"),
        ));
    }
    Ok(calls)
}

/// Returns the last calls of these tools that a running host has recorded, and adds what it decided
/// about calls of the present code, with its last grant, to the needs.
pub(super) async fn from_host(
    loaded: &Loaded,
    entry: &Entry,
    tools: &[ToolDefinition],
    needs: &mut Needs,
) -> Result<Calls, Failure> {
    let client = Client::new(loaded)?;
    let code = entry.component.digest().reference();
    let mut calls = Calls::default();
    let log = Log {
        path: "/api/events",
        filter: "",
        pointer: "/events",
        after: 0,
        follow: false,
    };
    let take = |event: &Value| {
        for started in ["/data/started", "/data/first_step/started"] {
            let started = list(event, started).iter();
            started.for_each(|operation| calls.take(operation, tools));
        }
        let kept = &mut calls.kept;
        kept.drain(..kept.len().saturating_sub(CALLS_MAX));
        take_recorded(event, &entry.name, &code, tools, needs);
    };
    client.read_log(log, take).await?;
    Ok(calls)
}

/// Adds what an event says about a component: a call of the present code, or that it has been
/// admitted with another code or another grant. What was decided before says nothing any more.
fn take_recorded(
    event: &Value,
    component: &str,
    code: &str,
    tools: &[ToolDefinition],
    needs: &mut Needs,
) {
    let of_steps = ["/data/ledger", "/data/first_step/ledger"];
    let of_steps = of_steps.iter().flat_map(|place| list(event, place));
    for entry in event.get("data").into_iter().chain(of_steps) {
        if text(entry, "/component") != component {
            continue;
        }
        let of_call = text(entry, "/code");
        if text(event, "/type") == ADMITTED {
            needs.forget();
        } else if of_call.is_empty() || of_call == code {
            take_decided(entry, tools, needs);
        }
    }
}

/// Adds what a host decided about a call of one of these tools to the needs.
fn take_decided(entry: &Value, tools: &[ToolDefinition], needs: &mut Needs) {
    let name = text(entry, "/tool");
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        return;
    };
    let decisions: Vec<BoundaryDecision> = read_part(entry, "/decisions");
    // What a list of an agent refused, no grant allows.
    let is_by_grant = |decision: &BoundaryDecision| {
        matches!(
            decision.rule,
            Rule::Granted | Rule::NotGranted | Rule::NotAsked
        )
    };
    let by_grant: Vec<BoundaryDecision> = decisions.into_iter().filter(is_by_grant).collect();
    let traffic: Traffic = read_part(entry, "/egress");
    needs.take_of(tool, &by_grant, &traffic);
}

/// Reads a part of an event; nothing if it is not there or is of a later version.
fn read_part<T: DeserializeOwned + Default>(event: &Value, pointer: &str) -> T {
    let part = event.pointer(pointer).cloned();
    part.and_then(|part| serde_json::from_value(part).ok())
        .unwrap_or_default()
}

impl Calls {
    /// Takes an operation, if it is a call of one of these tools.
    fn take(&mut self, operation: &Value, tools: &[ToolDefinition]) {
        let tool = operation
            .get("tool")
            .and_then(Value::as_str)
            .filter(|tool| tools.iter().any(|known| known.name == *tool));
        match (tool, operation.get("arguments")) {
            (None, _) => {}
            (Some(tool), Some(arguments)) => self.kept.push(Recorded {
                tool: tool.to_owned(),
                arguments: arguments.clone(),
            }),
            (Some(_), None) => self.without_arguments += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Calls, Needs, Recorded, read, take_decided, take_recorded};
    use crate::config::ComponentConfig;
    use domain::tool::{EffectClass, ToolDefinition};
    use serde_json::{Value, json};

    fn tools() -> [ToolDefinition; 1] {
        [ToolDefinition {
            name: "read_file".to_owned(),
            description: String::new(),
            arguments: json!({}),
            results: None,
            capabilities: Vec::new(),
            effect: EffectClass::ReadOnly,
            destructive: false,
            time_limit_ms: None,
        }]
    }

    #[test]
    fn a_call_whose_arguments_nobody_kept_is_left_out_and_counted() {
        let mut calls = Calls::default();
        for operation in [
            json!({ "kind": "refused", "tool": "read_file" }),
            json!({ "kind": "tool", "tool": "read_file", "arguments": { "path": "a" } }),
            json!({ "kind": "refused", "tool": "of_another" }),
        ] {
            calls.take(&operation, &tools());
        }
        let kept = vec![Recorded {
            tool: "read_file".to_owned(),
            arguments: json!({ "path": "a" }),
        }];
        assert_eq!(
            calls,
            Calls {
                kept,
                without_arguments: 1
            }
        );
    }

    /// A line that is no call of the component is reported with its number and the known tools.
    #[test]
    fn a_line_that_is_no_call_is_reported_with_its_number_and_the_tools() {
        let call = r#"{"tool":"read_file","arguments":{}}"#;
        assert_eq!(
            read(&format!("{call}\n\n{call}\n"), &tools())
                .unwrap()
                .len(),
            2
        );
        for (text, line, reason) in [
            (
                format!("{call}\n\n{{\"tool\":\"raed_file\"}}"),
                3,
                "no tool `raed_file`; known are read_file",
            ),
            ("nonsense".to_owned(), 1, "a line is a call, such as"),
        ] {
            let (at, error) = read(&text, &tools()).unwrap_err();
            assert!(
                at == line && error.to_string().contains(reason),
                "{at}: {error}"
            );
        }
    }

    #[test]
    fn what_the_host_decided_is_merged_and_told_apart_from_what_it_only_refused() {
        let mut tool = tools();
        tool[0].capabilities = vec!["net.http".to_owned(), "lists.read".to_owned()];
        let hop = |host: &str, verdict: &str| {
            json!({
                "method": "GET", "scheme": "https", "host": host, "port": 443, "path": "/a",
                "verdict": verdict, "bytes_in": 0, "bytes_out": 0, "ms": 1,
            })
        };
        let decision = |capability: &str, verdict: &str, rule: &str| json!({ "capability": capability, "verdict": verdict, "rule": rule, "times": 1 });
        let entry = json!({
            "tool": "read_file", "component": "c",
            "decisions": [
                decision("net.http", "granted", "grant"),
                decision("lists.read", "refused", "notGranted"),
                decision("lists.write", "refused", "capabilityDenylist"),
                decision("env.read", "refused", "notAsked"),
                decision("files.write", "refused", "notAsked"),
            ],
            "egress": { "hops": [hop("a.example", "done"), hop("b.example", "not-granted")] },
        });
        let mut needs = Needs::default();
        take_decided(&entry, &tool, &mut needs);
        let lines = needs.lines(&ComponentConfig::default());
        let reported: Vec<String> = lines.iter().map(|line| line.text(true)).collect();
        assert_eq!(
            reported,
            [
                r#"network = [{ host = "a.example", path = "/a" }]"#,
                r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-only" }]"#,
            ]
        );
        assert_eq!(
            needs.only_refused(&ComponentConfig::default()),
            ["the bucket lists", "GET https://b.example:443/a"]
        );
        let notes = needs.notes();
        assert!(
            notes.len() == 1
                && notes[0].starts_with("read_file uses files.write and does not declare it"),
            "{notes:?}"
        );
        take_decided(&entry, &[], &mut Needs::default());
    }

    /// The tool declares it now, or another grant allows it.
    #[test]
    fn what_was_decided_about_other_code_or_under_another_grant_is_forgotten() {
        let decided = |code: &str, bucket: &str| {
            json!({
                "tool": "read_file", "component": "c", "code": code, "decisions": [{
                    "capability": format!("{bucket}.read"), "verdict": "refused",
                    "rule": "notAsked", "times": 1,
                }],
            })
        };
        let of_step =
            |entry: Value| json!({ "type": "run.stepped.v1", "data": { "ledger": [entry] } });
        let of_start = |entry: Value| json!({ "type": "run.started.v1", "data": { "first_step": { "ledger": [entry] } } });
        let alone = |entry: Value| json!({ "type": "boundary.decided.v1", "data": entry });
        let admitted = json!({ "type": "component.admitted.v1", "data": { "component": "c" } });
        let mut needs = Needs::default();
        for event in [
            of_step(decided("sha256:02", "before")),
            admitted,
            of_step(decided("sha256:01", "elsewhere")),
            alone(decided("sha256:02", "alone")),
            of_start(decided("sha256:02", "first")),
            of_step(decided("sha256:02", "now")),
        ] {
            take_recorded(&event, "c", "sha256:02", &tools(), &mut needs);
        }
        let notes = needs.notes();
        let expected = ["alone", "first", "now"]
            .map(|bucket| format!("read_file uses {bucket}.read and does not"));
        assert!(
            notes.len() == expected.len()
                && expected
                    .iter()
                    .all(|expected| notes.iter().any(|note| note.starts_with(expected))),
            "{notes:?}"
        );
    }
}
