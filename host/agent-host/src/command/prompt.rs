//! The command on prompts: `prompt show`.

use crate::answer::Answer;
use crate::cli::Prompt;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::fields::{list, number, text};
use serde_json::Value;

/// Runs the command.
pub(super) async fn run(client: &Client, what: Prompt) -> Result<Answer, Failure> {
    let Prompt::Show { agent, session } = what;
    let mut path = format!("/api/agents/{}/prompt", segment(&agent));
    if let Some(session) = session {
        path = format!("{path}?session={}", segment(&session));
    }
    let answer = client.get(&path).await?;
    let lines = lines(&answer);
    Ok(Answer::new(answer, lines))
}

/// Returns the lines of a prompt: each part and each tool under its name and its tokens.
fn lines(answer: &Value) -> Vec<String> {
    let title = |what: &str, tokens: u64| format!("--- {what} ({tokens} tokens)");
    let mut lines = Vec::new();
    for part in list(answer, "/parts") {
        lines.push(title(text(part, "/name"), number(part, "/tokens")));
        lines.extend(text(part, "/text").lines().map(str::to_owned));
        lines.push(String::new());
    }
    let mut of_tools = 0;
    for tool in list(answer, "/tools") {
        let tokens = number(tool, "/tokens");
        of_tools += tokens;
        lines.push(title(&format!("tool {}", text(tool, "/name")), tokens));
        lines.extend(text(tool, "/description").lines().map(str::to_owned));
        lines.extend(tool.pointer("/arguments").map(Value::to_string));
        lines.push(String::new());
    }
    if of_tools > 0 {
        lines.push(title("tools", of_tools));
    }
    lines.push(title("all", number(answer, "/tokens")));
    lines
}
