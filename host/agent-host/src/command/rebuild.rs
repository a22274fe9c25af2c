//! `rebuild`: folds all events again, through the running host, or on the data folder itself when
//! none is running.

use super::store::open;
use crate::answer::{Answer, Row};
use crate::client::Client;
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{is_true, list, number, text};
use crate::terminal::Terminal;
use anyhow::anyhow;
use serde_json::{Value, json};
use std::time::Duration;

/// Interval at which a running host is asked for its progress.
const ASK: Duration = Duration::from_millis(200);
/// Interval at which the progress is reported.
const TELL: Duration = Duration::from_secs(5);

/// Folds all events again, and reports the data that did not match them.
pub(super) async fn rebuild(loaded: &Loaded, terminal: Terminal) -> Result<Answer, Failure> {
    let document = rebuilt(loaded, terminal).await?;
    let lines = lines(&document);
    Ok(Answer::new(document, lines))
}

/// Folds all events again, and returns the result in the form of the API.
pub(super) async fn rebuilt(loaded: &Loaded, terminal: Terminal) -> Result<Value, Failure> {
    let Some(store) = open(loaded).await? else {
        return by_the_host(loaded, terminal).await;
    };
    let rebuilt = store.rebuild().await;
    store.close().await;
    let rebuilt = rebuilt?;
    let replaced: Vec<Value> = rebuilt
        .replaced
        .iter()
        .map(|it| json!({ "table": it.table, "changed": it.changed, "missing": it.missing, "superfluous": it.superfluous }))
        .collect();
    Ok(json!({
        "state": "done", "events": rebuilt.events, "replaced": replaced, "index_replaced": rebuilt.index_replaced,
        "paused_us": u64::try_from(rebuilt.paused.as_micros())?,
    }))
}

async fn by_the_host(loaded: &Loaded, terminal: Terminal) -> Result<Value, Failure> {
    let client = Client::new(loaded)?;
    client.post("/api/rebuilds", &json!({})).await?;
    let mut reported = Duration::ZERO;
    loop {
        let rebuild = client.get("/api/rebuilds").await?;
        match text(&rebuild, "/state") {
            "running" => {}
            "done" => return Ok(rebuild),
            "failed" => {
                let error = anyhow!("nothing was rebuilt: {}", text(&rebuild, "/reason"));
                return Err(error.into());
            }
            _ => {
                let error = anyhow!("the host was restarted meanwhile, and nothing was rebuilt");
                return Err(error.into());
            }
        }
        tokio::time::sleep(ASK).await;
        reported += ASK;
        if reported >= TELL {
            reported = Duration::ZERO;
            terminal.notice(&format!(
                "{}: {} of {} events",
                text(&rebuild, "/stage"),
                number(&rebuild, "/events"),
                number(&rebuild, "/of")
            ));
        }
    }
}

fn lines(document: &Value) -> Vec<String> {
    let events = number(document, "/events");
    let mut lines = vec![format!("{events} events are folded again")];
    let replaced = list(document, "/replaced");
    let index = is_true(document, "/index_replaced");
    if replaced.is_empty() && !index {
        lines.push("  everything was as they say".to_owned());
        return lines;
    }
    let row = |it: &Value| {
        let what = "{/table}: {/changed} rows had changed, {/missing} were missing, \
                    {/superfluous} were too many";
        Row::of(it, &["  replaced", what], &[]).line()
    };
    lines.extend(replaced.iter().map(row));
    lines.extend(index.then(|| "  replaced  the full-text index".to_owned()));
    let paused_us = number(document, "/paused_us");
    lines.push(format!(
        "  commits waited {}.{:03} ms for it",
        paused_us / 1_000,
        paused_us % 1_000
    ));
    lines
}
