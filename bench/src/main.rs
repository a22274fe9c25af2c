//! Measures what the host promises about its speed, each promise beside a bare peer in the same run; see `README.md`.

mod boundary;
mod disk;
mod healthz;
mod instance;
mod ledger;
mod load;
mod measure;
mod replay;
mod report;
mod shim;
mod syncs;
mod thread;
mod transcript;
mod turn;
mod view;

use report::{Report, Row};
use std::path::Path;

/// Every benchmark, in the order in which they run.
const NAMES: [&str; 8] = ["instance", "transcript", "syncs", "turn", "healthz", "load", "replay", "boundary"];

/// `bench [--json] [names…]`: runs all benchmarks, or those that are named. Ends well whatever is measured.
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, counter] = arguments.as_slice()
        && let Some(numbers) = under_shim(flag, Path::new(counter)).await?
    {
        report::answer(&numbers);
        return Ok(());
    }
    let report = if arguments.iter().any(|argument| argument == "--json") { Report::Json } else { Report::Table };
    let wanted: Vec<&str> = arguments.iter().map(String::as_str).filter(|argument| *argument != "--json").collect();
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(name)) {
        anyhow::bail!("there is no benchmark `{unknown}`; there are {}", NAMES.join(", "));
    }
    report.open(&disk::circumstances()?);
    for name in NAMES.into_iter().filter(|name| wanted.is_empty() || wanted.contains(name)) {
        match measured(name).await {
            Ok(rows) => rows.iter().for_each(|row| report.row(row)),
            Err(error) => report.failed(name, &error),
        }
    }
    Ok(())
}

/// What this program measures when it has started itself with a disk that takes its time.
async fn under_shim(flag: &str, counter: &Path) -> anyhow::Result<Option<Vec<f64>>> {
    Ok(match flag {
        syncs::FLAG => Some(Box::pin(syncs::count(counter)).await?),
        turn::FLAG => Some(Box::pin(turn::measure()).await?.to_vec()),
        _ => None,
    })
}

async fn measured(name: &str) -> anyhow::Result<Vec<Row>> {
    match name {
        "instance" => Box::pin(instance::run()).await,
        "transcript" => Box::pin(transcript::run()).await,
        "syncs" => syncs::run(),
        "turn" => Box::pin(turn::run()).await,
        "healthz" => Box::pin(healthz::run()).await,
        "load" => Box::pin(load::run()).await,
        "replay" => Box::pin(replay::run()).await,
        _ => Box::pin(boundary::run()).await,
    }
}
