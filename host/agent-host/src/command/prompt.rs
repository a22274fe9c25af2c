//! The command on prompts: `prompt show`.

use crate::cli::Prompt;
use crate::client::{Client, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, number, text};
use crate::terminal::Terminal;
use serde_json::Value;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Prompt, terminal: Terminal) -> Result<(), Failure> {
    let Prompt::Show { agent, session } = what;
    let client = Client::new(loaded)?;
    let mut path = format!("/api/agents/{}/prompt", segment(&agent));
    if let Some(session) = session {
        path = format!("{path}?session={}", segment(&session));
    }
    let answer = client.get(&path).await?;
    terminal.result(&answer, || lines(&answer));
    Ok(())
}

/// Returns the lines of a prompt: each part and each tool under its name and its tokens.
fn lines(answer: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for part in list(answer, "/parts") {
        let tokens = number(part, "/tokens");
        lines.push(format!("--- {} ({tokens} tokens)", text(part, "/name")));
        lines.extend(text(part, "/text").lines().map(str::to_owned));
        lines.push(String::new());
    }
    for tool in list(answer, "/tools") {
        let tokens = number(tool, "/tokens");
        lines.push(format!(
            "--- tool {} ({tokens} tokens)",
            text(tool, "/name")
        ));
        lines.extend(text(tool, "/description").lines().map(str::to_owned));
        lines.extend(tool.pointer("/arguments").map(Value::to_string));
        lines.push(String::new());
    }
    let of_tools: u64 = list(answer, "/tools")
        .iter()
        .map(|tool| number(tool, "/tokens"))
        .sum();
    if of_tools > 0 {
        lines.push(format!("--- tools ({of_tools} tokens)"));
    }
    lines.push(format!("--- all ({} tokens)", number(answer, "/tokens")));
    lines
}
