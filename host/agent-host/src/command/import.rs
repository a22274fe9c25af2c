//! `import`: sessions of the system that this one replaces.

use crate::client::Client;
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::terminal::Terminal;
use anyhow::{Context, anyhow};
use domain::import::FORMAT;
use serde_json::{Value, json};
use std::path::Path;

/// Bytes of sessions that are sent at a time, unless one alone is larger: below what the API takes.
const BATCH_BYTES: usize = 1 << 20;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, file: &Path, terminal: Terminal) -> Result<(), Failure> {
    let text = std::fs::read(file).with_context(|| format!("`{}` cannot be read", file.display()));
    let document: Value = serde_json::from_slice(&text.map_err(|error| Failure::new(Exit::Usage, error))?)
        .with_context(|| format!("`{}` is not JSON", file.display()))
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let sessions = document.get("sessions").and_then(Value::as_array).ok_or_else(|| {
        let told = anyhow!("`{}` has no `sessions`; it must be {{\"format\": \"{FORMAT}\", \"sessions\": [...]}}", file.display());
        Failure::new(Exit::Usage, told)
    })?;
    let mut sessions = sessions.clone();
    // Those that began last first: of several that go on, the latest is the one that an agent goes on with, in whichever batch it is.
    sessions
        .sort_by_key(|session| std::cmp::Reverse(session.get("started_at").or_else(|| session.get("created_at")).map(Value::to_string)));
    let client = Client::new(loaded)?;
    let mut totals = [("ended", 0), ("active", 0), ("known", 0)];
    for batch in batches(&sessions) {
        let report = client
            .post("/api/import", &json!({ "format": document.get("format"), "issuer": document.get("issuer"), "sessions": batch }))
            .await?;
        for (name, total) in &mut totals {
            *total += report.get(*name).and_then(Value::as_u64).unwrap_or(0);
        }
    }
    let [(_, ended), (_, active), (_, known)] = totals;
    let report = json!({ "ended": ended, "active": active, "known": known });
    terminal
        .result(&report, || vec![format!("{ended} sessions joined the history of their agents, {active} go on, {known} were here before")]);
    Ok(())
}

/// The sessions in batches that can be sent.
fn batches(sessions: &[Value]) -> Vec<Vec<&Value>> {
    let (mut batches, mut bytes) = (Vec::new(), usize::MAX);
    for session in sessions {
        let size = session.to_string().len();
        if bytes.saturating_add(size) > BATCH_BYTES {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(batch) = batches.last_mut() {
            batch.push(session);
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::{BATCH_BYTES, batches};
    use serde_json::json;

    #[test]
    fn batches_are_small_and_nothing_is_left_out() {
        let sessions: Vec<_> = (0..5).map(|n| json!({ "n": n, "x": "y".repeat(BATCH_BYTES / 2) })).collect();
        let batches = batches(&sessions);
        assert!(batches.iter().all(|batch| batch.len() == 1), "two of them are too large together");
        assert_eq!(batches.concat(), sessions.iter().collect::<Vec<_>>());
    }
}
