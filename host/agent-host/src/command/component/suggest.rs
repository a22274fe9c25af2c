//! `component suggest`: runs calls again without doing harm, and prints the least grant that
//! satisfies them.
//!
//! A call gets an empty folder that is removed afterwards, empty buckets that keep nothing, and no
//! network. A request is recorded and refused, unless `--network` lets it out. Effects that a call
//! would have had after a refusal are therefore not seen.

use super::configured;
use super::needs::Needs;
use crate::cli::Suggest;
use crate::client::{Client, Log};
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::fields::list;
use crate::guests;
use crate::serve::{Reach, command_runtime};
use crate::terminal::Terminal;
use anyhow::{Context, anyhow};
use broker::Entry;
use domain::egress::{CREDENTIALS, EgressGrant, HostPattern, Method, Scheme};
use domain::grant::{
    Access, Bound, BucketGrant, DirectoryGrant, SecretGrant, SecretSlot, capability,
};
use domain::ruling::{Rule, Ruling};
use domain::tool::ToolDefinition;
use runtime::{Called, Described, EmptyBuckets, Notes, Outcome, Runtime, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Calls that are run.
const CALLS_MAX: usize = 1_000;
/// Maximum number of runs of one call, each with the buckets that the run before asked for.
const ROUNDS_MAX: usize = 8;
/// The path of the stand-in for a folder when the component is granted none.
const FOLDER_AT: &str = "/workspace";

/// A host that there is not, by RFC 2606.
const NOWHERE: &str = "nowhere.invalid";

/// One call, as it was recorded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    tool: String,
    /// Its arguments: an object.
    #[serde(default)]
    arguments: Value,
}

/// Runs the command.
pub(super) async fn run(
    loaded: &Loaded,
    what: &Suggest,
    terminal: Terminal,
) -> Result<(), Failure> {
    let config = configured(loaded, &what.component)?;
    let runtime = command_runtime(loaded, Reach::without_secrets()?).await?;
    let entry = guests::load_one(loaded, &runtime, what.component.clone(), &config).await?;
    let Described::Tools(tools) = entry.component.describes() else {
        let advice = "an agent component needs `models` and `agents`; see `component check`";
        return Err(Failure::new(
            Exit::Usage,
            anyhow!("`{}` is an agent and has no calls", entry.name),
        )
        .advise(advice));
    };
    let calls = match &what.calls {
        Some(file) => from_file(file, tools)?,
        None => from_host(loaded, tools).await?,
    };
    let mut needs = Needs::default();
    let mut failed = Vec::new();
    for call in &calls.kept {
        let tool = tools
            .iter()
            .find(|tool| tool.name == call.tool)
            .context("a tool that was just found")?;
        let called = tried(&runtime, &entry, tool, call, what.network, &mut needs).await?;
        failed.extend(reason(&called).map(|reason| format!("{}: {reason}", call.tool)));
    }
    let lines = needs.lines(&config);
    let is_toml = loaded.is_toml();
    let grant: serde_json::Map<String, Value> = lines
        .iter()
        .map(|line| (line.key.to_owned(), line.value.clone()))
        .collect();
    let documents: Vec<Value> = lines.iter().map(|line| line.document(is_toml)).collect();
    let document = json!({
        "component": entry.name, "calls": calls.kept.len(),
        "without_arguments": calls.without_arguments, "failed": failed,
        "grant": grant, "lines": documents,
    });
    terminal.result(&document, || {
        let count = calls.kept.len();
        let name = &entry.name;
        let least = lines.iter().flat_map(|line| line.describe(name, is_toml));
        let nothing = lines.is_empty().then(|| "nothing".to_owned());
        let failures = failed
            .iter()
            .map(|reason| format!("failed here, and may need more: {reason}"));
        std::iter::once(format!(
            "{count} calls of {name} were run; the least grant for them:"
        ))
        .chain(least.chain(nothing).map(|line| format!("  {line}")))
        .chain(failures)
        .collect()
    });
    if calls.without_arguments > 0 {
        terminal.notice(&format!(
            "{} calls were left out: they were refused before they began, and their arguments are \
             not kept; put such calls into a file for --calls",
            calls.without_arguments
        ));
    }
    Ok(())
}

/// The calls to run.
#[derive(Debug, Default, PartialEq)]
struct Calls {
    kept: Vec<Recorded>,
    /// Number of calls left out because their arguments were not kept.
    without_arguments: usize,
}

/// Reads calls from a file: one JSON object a line.
fn from_file(file: &Path, tools: &[ToolDefinition]) -> Result<Calls, Failure> {
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

/// Returns the last calls of these tools that a running host has recorded.
async fn from_host(loaded: &Loaded, tools: &[ToolDefinition]) -> Result<Calls, Failure> {
    let client = Client::new(loaded)?;
    let mut calls = Calls::default();
    let log = Log {
        path: "/api/events",
        filter: "",
        pointer: "/events",
        after: 0,
        follow: false,
    };
    let take = |event: &Value| {
        let started = list(event, "/data/started").iter();
        started.for_each(|operation| calls.take(operation, tools));
        let kept = &mut calls.kept;
        kept.drain(..kept.len().saturating_sub(CALLS_MAX));
    };
    client.read_log(log, take).await?;
    Ok(calls)
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

/// Runs one call, again with every bucket that it turns out to ask for.
async fn tried(
    runtime: &Runtime,
    entry: &Entry,
    tool: &ToolDefinition,
    call: &Recorded,
    network: bool,
    needs: &mut Needs,
) -> Result<Called, Failure> {
    let mut round = 0;
    loop {
        let folder = tempfile::tempdir()?;
        let bound = bound(entry, tool, folder.path(), network, needs)?;
        runtime.open_folders(&bound.directories, &[])?;
        let called = runtime
            .call(
                &entry.component,
                &bound,
                tool_call(call),
                Arc::new(Unheard),
                Arc::new(EmptyBuckets),
            )
            .await;
        round += 1;
        if !needs.take(&called.decided.decisions, &called.egress) || round == ROUNDS_MAX {
            return Ok(called);
        }
    }
}

/// Returns everything that a call may use here.
fn bound(
    entry: &Entry,
    tool: &ToolDefinition,
    folder: &Path,
    network: bool,
    needs: &Needs,
) -> Result<Bound, Failure> {
    let mounts: Vec<String> = entry
        .grant
        .directories
        .iter()
        .map(|directory| directory.at.clone())
        .collect();
    let mounts = if mounts.is_empty() {
        vec![FOLDER_AT.to_owned()]
    } else {
        mounts
    };
    let directories = mounts
        .into_iter()
        .map(|at| DirectoryGrant::whole(folder, at, Access::ReadWrite));
    let ruling = |capability: &String| Ruling {
        capability: capability.clone(),
        allowed: true,
        rule: Rule::Granted,
    };
    let anywhere = EgressGrant {
        any_host: true,
        schemes: vec![Scheme::Http, Scheme::Https],
        methods: vec![Method::Get, Method::Head],
        ..EgressGrant::of(HostPattern::parse("*").context("the pattern for every host")?)
    };
    Ok(Bound {
        directories: directories.collect(),
        network: if network { vec![anywhere] } else { Vec::new() },
        environment: entry.grant.environment.clone(),
        key_value: needs
            .buckets()
            .map(|bucket| BucketGrant::new(bucket, Access::ReadWrite))
            .collect(),
        secrets: slots(entry, tool),
        limits: entry.grant.limits,
        rulings: tool.capabilities.iter().map(ruling).collect(),
    })
}

/// Returns slots for the headers reserved for secrets, at a host that does not exist. A header that
/// a call writes is then refused when it is sent, and recorded with its place.
fn slots(entry: &Entry, tool: &ToolDefinition) -> Vec<SecretGrant> {
    if !tool
        .capabilities
        .iter()
        .any(|capability| capability == capability::SECRETS_USE)
    {
        return Vec::new();
    }
    let own = entry
        .grant
        .secrets
        .iter()
        .filter_map(|grant| match &grant.slot {
            SecretSlot::Header(name) => Some(name.as_str()),
            SecretSlot::Query(_) => None,
        });
    let slot = |name: &str| SecretGrant {
        secret: "none".to_owned(),
        host: NOWHERE.to_owned(),
        port: None,
        slot: SecretSlot::Header(name.to_owned()),
        prefix: String::new(),
    };
    CREDENTIALS.iter().copied().chain(own).map(slot).collect()
}

fn tool_call(call: &Recorded) -> ToolCall {
    let arguments = if call.arguments.is_null() {
        "{}".to_owned()
    } else {
        call.arguments.to_string()
    };
    ToolCall {
        agent_id: "suggest".to_owned(),
        session_id: "suggest".to_owned(),
        user_id: "suggest".to_owned(),
        call_id: "suggest".to_owned(),
        idempotency_key: "suggest".to_owned(),
        segment: 0,
        resumed: None,
        answer: None,
        tool: call.tool.clone(),
        arguments,
        deadline_ms: u32::MAX,
    }
}

/// Returns the reason why a call did not succeed; none when it did.
fn reason(called: &Called) -> Option<String> {
    match &called.outcome {
        Outcome::Returned(Ok(_)) => None,
        Outcome::Returned(Err(error)) => Some(format!("{error:?}")),
        other => Some(format!("{other:?}")),
    }
}

/// A sink for the progress notes of a call, which nobody reads.
struct Unheard;

impl Notes for Unheard {
    fn note(&self, _message: &str) {}
}

#[cfg(test)]
mod tests {
    use super::{Calls, Recorded, read};
    use domain::tool::{EffectClass, ToolDefinition};
    use serde_json::json;

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
}
