//! `session purge`: erases deleted sessions and archived agents permanently.

use crate::client::Client;
use crate::failure::{Exit, Failure};
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
        let error = anyhow!(
            "what is purged is gone for good: nobody can have it back, and nothing was purged"
        );
        return Err(Failure::new(Exit::Usage, error).advise("say that it is meant: add --yes"));
    }
    let done = client
        .post(
            "/api/purges",
            &json!({ "agent_id": agent, "session_id": session }),
        )
        .await?;
    terminal.result(&done, || purge_lines(&done));
    if done.get("files_rewritten").and_then(Value::as_bool) == Some(false) {
        let reason = done
            .get("reason")
            .and_then(Value::as_str)
            .unwrap_or_default();
        terminal.notice(&format!(
            "pieces of it may stand in the store's files still: {reason}"
        ));
    }
    Ok(())
}

fn purge_lines(done: &Value) -> Vec<String> {
    let number = |pointer: &str| done.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
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
            "stays, because others point to it: {} turns, {} writes of tools to what is not the \
             session's alone",
            number("/kept/turns"),
            number("/kept/bucket_writes")
        ),
    ]
}
