//! Measures what the host promises about its speed, each promise beside a bare peer in the same
//! run; see `README.md`.

mod acceptance;
mod active;
mod again;
mod agents;
mod answer;
mod backlog;
mod boundary;
mod bytes;
mod connectors;
mod delegation;
mod depth;
mod disk;
mod first_token;
mod healthz;
mod hooks;
mod idle;
mod ingress;
mod instance;
mod ledger;
mod load;
mod long_reads;
mod long_threads;
mod measure;
mod parts;
mod process;
mod prompts;
mod purge;
mod ready;
mod replay;
mod report;
mod served;
mod shim;
mod size;
mod steps;
mod storm;
mod streams;
mod syncs;
mod thread;
mod transcript;
mod trigger_events;
mod turn;
mod view;

use anyhow::Context;
use report::{Form, OtherRun, Report, Row};
use size::Size;
use std::path::Path;

/// The benchmark that runs only when it is named: it takes half an hour.
const LONG_THREADS: &str = "long-threads";

/// Every benchmark, in the order in which they run.
const NAMES: [&str; 26] = [
    "instance",
    "transcript",
    "syncs",
    "turn",
    "bytes",
    "prompts",
    "delegation",
    "first-token",
    "healthz",
    "load",
    "replay",
    "boundary",
    "ingress",
    "depth",
    "purge",
    "long-reads",
    "storm",
    "trigger-events",
    "agents",
    "idle",
    "active",
    "connectors",
    "streams",
    "ready",
    "backlog",
    LONG_THREADS,
];

/// `bench [--json] [--small] [--beside FILE] [names…]`: runs all benchmarks, or those that are
/// named, and tells beside them the results of another run, which are in a file as lines of JSON.
/// Exits with success for any results.
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if in_another_role(&arguments).await? {
        return Ok(());
    }
    let beside = another_run(&mut arguments)?;
    let is_asked = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let form = if is_asked("--json") {
        Form::Json
    } else {
        Form::Table
    };
    let report = Report { form, beside };
    let size = if is_asked("--small") {
        Size::Small
    } else {
        Size::Whole
    };
    let wanted: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|argument| !["--json", "--small"].contains(argument))
        .collect();
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(name)) {
        anyhow::bail!(
            "there is no benchmark `{unknown}`; there are {}",
            NAMES.join(", ")
        );
    }
    report.open(&disk::circumstances()?);
    for name in NAMES.into_iter().filter(|name| match wanted.is_empty() {
        true => *name != LONG_THREADS,
        false => wanted.contains(name),
    }) {
        match measured(name, size).await {
            Ok(rows) => rows.iter().for_each(|row| report.row(row)),
            Err(error) => report.failed(name, &error),
        }
    }
    Ok(())
}

/// Takes the other run, whose results are told beside, out of the arguments.
fn another_run(arguments: &mut Vec<String>) -> anyhow::Result<Option<OtherRun>> {
    let Some(at) = arguments.iter().position(|argument| argument == "--beside") else {
        return Ok(None);
    };
    arguments.remove(at);
    anyhow::ensure!(at < arguments.len(), "`--beside` takes a file");
    let file = arguments.remove(at);
    let report = std::fs::read_to_string(&file).with_context(|| format!("cannot read `{file}`"))?;
    let beside = OtherRun::read(&report);
    beside
        .with_context(|| format!("`{file}` is no report in lines of JSON"))
        .map(Some)
}

/// Does the work of a process that this program has started as itself. Returns whether it is one.
async fn in_another_role(arguments: &[String]) -> anyhow::Result<bool> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [syncs::FLAG, counter] => {
            report::answer(&Box::pin(syncs::count(Path::new(counter))).await?)
        }
        [turn::FLAG, _] => report::answer(&Box::pin(turn::measure()).await?),
        [turn::PARTS_FLAG, _] => report::answer(&Box::pin(turn::measure_parts()).await?),
        [acceptance::FLAG, _] => report::answer(&Box::pin(acceptance::measure()).await?),
        [idle::FLAG, tasks] => idle::wait(tasks).await?,
        [streams::BARE_FLAG, name, data] => Box::pin(streams::serve_bare(name, data)).await?,
        [streams::CROWD_FLAG, address, path, token, clients] => {
            Box::pin(streams::gather(address, path, token, clients)).await?
        }
        [ready::WRITE_FLAG, data, events] => Box::pin(ready::write(data, events)).await?,
        [backlog::WRITE_FLAG, data, waiting] => Box::pin(backlog::write(data, waiting)).await?,
        [ready::OPEN_FLAG, database] => ready::open(database).await?,
        _ => return Ok(false),
    }
    Ok(true)
}

async fn measured(name: &str, size: Size) -> anyhow::Result<Vec<Row>> {
    match name {
        "instance" => Box::pin(instance::run()).await,
        "transcript" => Box::pin(transcript::run()).await,
        "syncs" => syncs::run(),
        "turn" => Box::pin(turn::run()).await,
        "bytes" => Box::pin(bytes::run(size)).await,
        "prompts" => Box::pin(prompts::run()).await,
        "delegation" => Box::pin(delegation::run(size)).await,
        "first-token" => Box::pin(first_token::run()).await,
        "healthz" => Box::pin(healthz::run()).await,
        "load" => Box::pin(load::run()).await,
        "replay" => Box::pin(replay::run()).await,
        "boundary" => Box::pin(boundary::run()).await,
        "agents" => Box::pin(agents::run(size)).await,
        "active" => Box::pin(active::run(size)).await,
        "idle" => Box::pin(idle::run(size)).await,
        "connectors" => Box::pin(connectors::run(size)).await,
        "streams" => Box::pin(streams::run(size)).await,
        "ready" => Box::pin(ready::run(size)).await,
        "ingress" => Box::pin(ingress::run()).await,
        "depth" => Box::pin(depth::run(size)).await,
        "purge" => Box::pin(purge::run(size)).await,
        "long-reads" => Box::pin(long_reads::run(size)).await,
        "storm" => Box::pin(storm::run()).await,
        LONG_THREADS => Box::pin(long_threads::run(size)).await,
        "trigger-events" => Box::pin(trigger_events::run(size)).await,
        _ => Box::pin(backlog::run(size)).await,
    }
}
