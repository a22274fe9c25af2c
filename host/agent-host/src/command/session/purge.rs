//! `session purge`: erases deleted sessions and archived agents permanently.

use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::fields::{number, text};
use crate::terminal::Terminal;
use anyhow::anyhow;
use serde_json::{Value, json};

/// Purges a session that was deleted, or an agent that was archived.
pub(super) async fn purge(
    client: &Client,
    session: Option<&str>,
    agent: &str,
    yes: bool,
    terminal: Terminal,
) -> Result<(), Failure> {
    if !yes {
        let error = anyhow!("nothing was purged: a purge is permanent, and has to be confirmed");
        return Err(Failure::new(Exit::Usage, error).advise("add --yes"));
    }
    let body = json!({ "agent_id": agent, "session_id": session });
    let done = client.post("/api/purges", &body).await?;
    terminal.result(&done, || purge_lines(&done));
    if done.get("files_rewritten").and_then(Value::as_bool) == Some(false) {
        let reason = text(&done, "/reason");
        terminal.notice(&format!(
            "the store's files may still hold pieces of it: {reason}"
        ));
    }
    Ok(())
}

fn purge_lines(done: &Value) -> Vec<String> {
    let number = |pointer: &str| number(done, pointer);
    vec![
        format!(
            "erased: {} sessions, {} turns with {} messages, {} payloads of events, {} blobs of {} \
             bytes, {} keys of buckets, {} requests",
            number("/erased/sessions"),
            number("/erased/turns"),
            number("/erased/messages"),
            number("/erased/events"),
            number("/erased/blobs"),
            number("/erased/blob_bytes"),
            number("/erased/bucket_keys"),
            number("/erased/requests")
        ),
        format!(
            "kept, because other data refers to it: {} turns, {} writes of tools to what is not the \
             session's alone",
            number("/kept/turns"),
            number("/kept/bucket_writes")
        ),
    ]
}
