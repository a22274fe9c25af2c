//! `component suggest`: runs calls again where they can do no harm, and prints the least grant that would have satisfied them.
//!
//! A call finds an empty folder that is removed afterwards, buckets in which nothing is and nothing stays, and no way out: a request is put
//! on record and refused, unless `--network` lets it out. What a call would have done after a refusal is therefore not seen.

use super::needs::Needs;
use crate::cli::Suggest;
use crate::client::Client;
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::{Reach, make_private, start_runtime};
use crate::terminal::{Terminal, clean};
use anyhow::{Context, anyhow};
use broker::Entry;
use domain::authority::{Rule, Ruling};
use domain::egress::{EgressGrant, HostPattern, Method, Scheme};
use domain::grant::{Access, Bound, BucketGrant, DirectoryGrant};
use domain::tool::ToolDefinition;
use runtime::{Called, Described, EmptyBuckets, Notes, Outcome, Runtime, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Calls that are run.
const CALLS_MAX: usize = 1_000;
/// How often one call is run, each time with the buckets that it asked for the time before.
const ROUNDS_MAX: usize = 8;
/// Events on a page of the host's.
const PAGE: u64 = 500;
/// Where the stand-in for a folder is seen when the component is granted none.
const FOLDER_AT: &str = "/workspace";

/// One call, as it was recorded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// The tool.
    tool: String,
    /// Its arguments: an object.
    #[serde(default)]
    arguments: Value,
}

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: &Suggest, terminal: Terminal) -> Result<(), Failure> {
    let data = loaded.data_dir();
    make_private(&data)?;
    let runtime = start_runtime(&loaded.config.limits, &data, Reach::without_secrets()?).await?;
    let entries = guests::load_all(loaded, &runtime).await?;
    let known = entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
    let entry = entries
        .iter()
        .find(|entry| entry.name == what.component)
        .ok_or_else(|| Failure::new(Exit::Usage, anyhow!("there is no component `{}`; known are {known}", what.component)))?;
    let Described::Tools(tools) = entry.component.describes() else {
        let advice = "an agent component needs `models` and `agents`; component check tells";
        return Err(Failure::new(Exit::Usage, anyhow!("`{}` is an agent and has no calls", entry.name)).advise(advice));
    };
    let calls = match &what.calls {
        Some(file) => from_file(file)?,
        None => from_host(loaded, tools).await?,
    };
    let calls: Vec<Recorded> = calls.into_iter().filter(|call| tools.iter().any(|tool| tool.name == call.tool)).take(CALLS_MAX).collect();
    let (mut needs, mut failed) = (Needs::default(), Vec::new());
    for call in &calls {
        let tool = tools.iter().find(|tool| tool.name == call.tool).context("a tool that was just found")?;
        let called = tried(&runtime, entry, tool, call, what.network, &mut needs).await?;
        failed.extend(reason(&called).map(|reason| format!("{}: {reason}", call.tool)));
    }
    let is_toml = loaded.file.extension().is_some_and(|extension| extension == "toml");
    let grant: serde_json::Map<String, Value> = needs.grant().into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let document = json!({ "component": entry.name, "calls": calls.len(), "failed": failed, "grant": grant });
    terminal.result(&document, || {
        let mut lines =
            vec![format!("{} calls of {} were run; the least grant for them, in components.{}:", calls.len(), entry.name, entry.name)];
        let granted = needs.lines(is_toml);
        lines.extend(if granted.is_empty() { vec!["nothing".to_owned()] } else { granted }.into_iter().map(|line| format!("  {line}")));
        lines.extend(failed.iter().map(|reason| format!("did not end well here, and may need more: {}", clean(reason))));
        lines
    });
    Ok(())
}

/// Calls out of a file: one JSON object a line.
fn from_file(file: &Path) -> Result<Vec<Recorded>, Failure> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let calls = lines.map(|(number, line)| {
        let place =
            || format!("{}:{}: a line is a call, such as {{\"tool\":\"read_file\",\"arguments\":{{}}}}", file.display(), number + 1);
        serde_json::from_str(line).with_context(place)
    });
    calls.collect::<Result<_, _>>().map_err(|error| Failure::new(Exit::Usage, error))
}

/// The calls of these tools that a running host has on record, the last ones.
async fn from_host(loaded: &Loaded, tools: &[ToolDefinition]) -> Result<Vec<Recorded>, Failure> {
    let client = Client::new(loaded)?;
    let (mut calls, mut position) = (Vec::new(), 0);
    loop {
        let page = client.get(&format!("/api/events?after={position}&limit={PAGE}")).await?;
        let number = |name: &str| page.get(name).and_then(Value::as_u64).unwrap_or(0);
        let events = page.get("events").and_then(Value::as_array).into_iter().flatten();
        let started = events.filter_map(|event| event.get("data")?.get("started")?.as_array()).flatten();
        calls.extend(started.filter_map(|operation| {
            let tool = operation.get("tool")?.as_str()?;
            let arguments = operation.get("arguments").cloned().unwrap_or_default();
            tools.iter().any(|known| known.name == tool).then(|| Recorded { tool: tool.to_owned(), arguments })
        }));
        calls.drain(..calls.len().saturating_sub(CALLS_MAX));
        position = number("next_after").max(position);
        if position >= number("last_position") {
            return Ok(calls);
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
        let called = runtime.call(&entry.component, &bound, tool_call(call), Arc::new(Unheard), Arc::new(EmptyBuckets)).await;
        round += 1;
        if !needs.take(&called.decided.decisions, &called.egress) || round == ROUNDS_MAX {
            return Ok(called);
        }
    }
}

/// Everything that a call may find here.
fn bound(entry: &Entry, tool: &ToolDefinition, folder: &Path, network: bool, needs: &Needs) -> Result<Bound, Failure> {
    let places: Vec<String> = entry.grant.directories.iter().map(|directory| directory.at.clone()).collect();
    let places = if places.is_empty() { vec![FOLDER_AT.to_owned()] } else { places };
    let directories = places.into_iter().map(|at| DirectoryGrant::whole(folder, at, Access::ReadWrite));
    let ruling = |capability: &String| Ruling { capability: capability.clone(), allowed: true, rule: Rule::Granted };
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
        key_value: needs.buckets().map(|bucket| BucketGrant::of(bucket, Access::ReadWrite)).collect(),
        secrets: Vec::new(),
        limits: entry.grant.limits,
        rulings: tool.capabilities.iter().map(ruling).collect(),
    })
}

fn tool_call(call: &Recorded) -> ToolCall {
    let arguments = if call.arguments.is_null() { "{}".to_owned() } else { call.arguments.to_string() };
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

/// Why a call did not end well; none when it did.
fn reason(called: &Called) -> Option<String> {
    match &called.outcome {
        Outcome::Returned(Ok(_)) => None,
        Outcome::Returned(Err(error)) => Some(format!("{error:?}")),
        other => Some(format!("{other:?}")),
    }
}

/// Nobody hears how a call is getting on.
struct Unheard;

impl Notes for Unheard {
    fn note(&self, _message: &str) {}
}
