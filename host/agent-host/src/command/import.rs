//! `import`: sessions of the system that this one replaces.
//!
//! Nothing else in this program uses it. Deleting it takes this file, `mod import;` and one line of
//! `command.rs`, and the variant `Import` of `cli::Command`.
//!
//! A file may be larger than what the host takes at a time, so it is sent in batches; before the
//! first of them is imported, all of the file is read here and every batch is looked at by the
//! host.

use crate::answer::{Answer, number, text};
use crate::client::{Client, Refused};
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use anyhow::{Context, anyhow};
use domain::import::{FORMAT, OldSessions, Voucher, read};
use domain::time::Timestamp;
use domain::user::Naming;
use serde_json::{Value, json};
use std::path::Path;

/// Bytes of sessions that are sent at a time, unless one alone is larger: below what the API takes.
const BATCH_BYTES: usize = 1 << 20;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, file: &Path) -> Result<Answer, Failure> {
    let text = std::fs::read(file).with_context(|| format!("`{}` cannot be read", file.display()));
    let document: Value =
        serde_json::from_slice(&text.map_err(|error| Failure::new(Exit::Usage, error))?)
            .with_context(|| format!("`{}` is not JSON", file.display()))
            .map_err(|error| Failure::new(Exit::Usage, error))?;
    let sessions = document
        .get("sessions")
        .and_then(Value::as_array)
        .ok_or_else(|| {
            let reported = anyhow!(
                "`{}` has no `sessions`; it must be {{\"format\": \"{FORMAT}\", \"sessions\": \
                 [...]}}",
                file.display()
            );
            Failure::new(Exit::Usage, reported)
        })?;
    let order = checked(&document, sessions, api::Clock::system().now())
        .map_err(|fault| Failure::new(Exit::Usage, anyhow!("`{}`: {fault}", file.display())))?;
    let client = Client::new(loaded)?;
    let batches = batches(sessions, &order);
    if batches.len() > 1 {
        for batch in &batches {
            ask(&client, &body(&document, sessions, batch, true), batch).await?;
        }
    }
    let mut totals = [("/ended", 0), ("/active", 0), ("/known", 0)];
    for batch in &batches {
        let report = ask(&client, &body(&document, sessions, batch, false), batch).await?;
        for (name, total) in &mut totals {
            *total += number(&report, name);
        }
    }
    let [(_, ended), (_, active), (_, known)] = totals;
    let report = json!({ "ended": ended, "active": active, "known": known });
    let line = format!(
        "{ended} sessions joined the history of their agents, {active} go on, {known} were here \
         before"
    );
    Ok(Answer::line(report, line))
}

/// Returns the places of a document's sessions, the latest first. Of several active sessions an
/// agent then continues the latest, whichever batch it is in.
fn checked(
    document: &Value,
    sessions: &[Value],
    now: Timestamp,
) -> Result<Vec<usize>, domain::import::ImportFault> {
    let format = text(document, "/format").to_owned();
    // What its users are called is the host's to say; that does not matter to whether the document
    // can be read.
    let voucher = |issuer: &str| Voucher {
        issuer: issuer.to_owned(),
        naming: Naming::ByIssuer,
    };
    let issuer = document.get("issuer").and_then(Value::as_str).map(voucher);
    let read = read(
        &OldSessions {
            format,
            issuer,
            sessions: sessions.to_vec(),
        },
        now,
    )?;
    Ok(read.iter().rev().map(|session| session.place).collect())
}

/// Returns the request body for a batch.
fn body(document: &Value, sessions: &[Value], batch: &[usize], check: bool) -> Value {
    let sent: Vec<&Value> = batch
        .iter()
        .filter_map(|place| sessions.get(*place))
        .collect();
    json!({ "format": document.get("format"), "issuer": document.get("issuer"), "check": check, "sessions": sent })
}

/// Sends a batch. A field that the host refuses is reported by its place in the file.
async fn ask(client: &Client, body: &Value, batch: &[usize]) -> Result<Value, Failure> {
    client
        .post("/api/import", body)
        .await
        .map_err(|mut failure| {
            if let Some(refused) = failure.error.downcast_mut::<Refused>() {
                refused.field = refused.field.take().map(|field| in_file(&field, batch));
            }
            failure
        })
}

/// A place in a batch as one in the file.
fn in_file(field: &str, batch: &[usize]) -> String {
    let moved = || {
        let (place, rest) = field
            .strip_prefix("/sessions/")
            .map(|tail| tail.split_once('/').unwrap_or((tail, "")))?;
        let place = batch.get(place.parse::<usize>().ok()?)?;
        Some(if rest.is_empty() {
            format!("/sessions/{place}")
        } else {
            format!("/sessions/{place}/{rest}")
        })
    };
    moved().unwrap_or_else(|| field.to_owned())
}

/// The sessions in batches that can be sent, by their places, in this order.
fn batches(sessions: &[Value], order: &[usize]) -> Vec<Vec<usize>> {
    let mut batches = Vec::new();
    let mut bytes = usize::MAX;
    for place in order {
        let size = sessions
            .get(*place)
            .map_or(0, |session| session.to_string().len());
        if bytes.saturating_add(size) > BATCH_BYTES {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(batch) = batches.last_mut() {
            batch.push(*place);
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::{BATCH_BYTES, batches, in_file};
    use serde_json::json;

    #[test]
    fn batches_are_small_and_nothing_is_left_out() {
        let sessions: Vec<_> = (0..5)
            .map(|n| json!({ "n": n, "x": "y".repeat(BATCH_BYTES / 2) }))
            .collect();
        let order = [3, 4, 1, 0, 2];
        let batches = batches(&sessions, &order);
        assert!(
            batches.iter().all(|batch| batch.len() == 1),
            "two of them are too large together"
        );
        assert_eq!(batches.concat(), order);
    }

    #[test]
    fn what_the_host_refuses_of_a_batch_is_told_by_its_place_in_the_file() {
        for (field, moved) in [
            ("/sessions/1/items/0/id", "/sessions/4/items/0/id"),
            ("/sessions/0", "/sessions/7"),
            ("/sessions/2", "/sessions/2"),
            ("/sessions", "/sessions"),
            ("/issuer", "/issuer"),
        ] {
            assert_eq!(in_file(field, &[7, 4]), moved);
        }
    }
}
