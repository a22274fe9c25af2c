//! The lines of `pi --mode rpc`.

use super::cli::{ConversationItem, Gathered, Protocol, Step, Turn, at, number, text};
use domain::model::{Stop, Usage};
use serde_json::{Value, json};

/// One turn of pi.
#[derive(Debug)]
pub(super) struct Pi {
    prompt: String,
    /// The newest message's error, if it ended with one.
    error: Option<String>,
    gathered: Gathered,
}

impl Pi {
    pub(super) fn new(turn: &Turn<'_>) -> Self {
        Self {
            prompt: turn.prompt.to_owned(),
            error: None,
            gathered: Gathered::default(),
        }
    }

    /// Returns the arguments of a turn. It does not remember the system prompt of a session. What
    /// is given as one is the name of a file, if there is one of that name: so it always is.
    pub(super) fn arguments(turn: &Turn<'_>) -> Vec<String> {
        let tools = turn.tools.join(",");
        let mut arguments = vec![
            "--mode",
            "rpc",
            "--model",
            turn.model,
            "--system-prompt",
            turn.system_file,
        ];
        if turn.tools.is_empty() {
            arguments.push("--no-tools");
        } else {
            arguments.extend(["--tools", &tools]);
        }
        if let Some(session) = turn.resumed {
            arguments.extend(["--session", session]);
        }
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn updated(event: &Value) -> Vec<ConversationItem> {
        let delta = text(at(event, "delta")).to_owned();
        match text(at(event, "type")) {
            "text_delta" => vec![ConversationItem::Text(delta)],
            "thinking_delta" => vec![ConversationItem::Thinking(delta)],
            _ => Vec::new(),
        }
    }

    fn whole(&mut self, message: &Value) {
        if text(at(message, "role")) != "assistant" {
            return;
        }
        let reason = text(at(message, "stopReason"));
        // It asks again after an answer that broke off, and this one is no part of the reply.
        let is_broken = matches!(reason, "error" | "aborted");
        let blocks = at(message, "content").as_array().into_iter().flatten();
        for block in blocks.filter(|block| !is_broken && text(at(block, "type")) == "text") {
            self.gathered.text(text(at(block, "text")));
        }
        if let Some(more) = usage(at(message, "usage")) {
            self.gathered.usage = Some(self.gathered.usage.unwrap_or_default().plus(more));
        }
        let reported = text(at(message, "errorMessage"));
        self.error = None;
        match reason {
            "length" => self.gathered.stop = Some(Stop::Length),
            _ if is_broken => {
                let reported = if reported.is_empty() {
                    reason
                } else {
                    reported
                };
                self.error = Some(reported.to_owned());
            }
            _ => self.gathered.stop = None,
        }
    }

    /// Takes the answer to a command.
    fn answered(&mut self, line: &Value) -> Step {
        if at(line, "success").as_bool() == Some(false) {
            return Step::Failed(text(at(line, "error")).to_owned());
        }
        if text(at(line, "command")) != "get_state" {
            return Step::More(Vec::new());
        }
        let session = at(at(line, "data"), "sessionId").as_str();
        self.gathered.session = session.map(str::to_owned);
        let prompt = std::mem::take(&mut self.prompt);
        let prompt = json!({ "type": "prompt", "message": prompt });
        Step::More(vec![ConversationItem::Write(format!("{prompt}\n"))])
    }
}

/// Reads the usage of one message.
fn usage(usage: &Value) -> Option<Usage> {
    let cached_tokens = number(at(usage, "cacheRead"));
    usage.is_object().then(|| Usage {
        input_tokens: number(at(usage, "input"))
            .saturating_add(cached_tokens)
            .saturating_add(number(at(usage, "cacheWrite"))),
        output_tokens: number(at(usage, "output")),
        cached_tokens,
    })
}

impl Protocol for Pi {
    fn opening(&mut self) -> Vec<ConversationItem> {
        let state = json!({ "type": "get_state" });
        vec![ConversationItem::Write(format!("{state}\n"))]
    }

    fn take(&mut self, line: &Value) -> Step {
        match text(at(line, "type")) {
            "response" => self.answered(line),
            "message_update" => Step::More(Self::updated(at(line, "assistantMessageEvent"))),
            "message_end" => {
                self.whole(at(line, "message"));
                Step::More(Vec::new())
            }
            "tool_execution_start" => {
                Step::More(vec![self.gathered.call(text(at(line, "toolName")))])
            }
            // Its exit code is 0 for an error of the service too.
            "agent_settled" => match self.error.take() {
                Some(reported) => Step::Failed(reported),
                None => Step::Done,
            },
            _ => Step::More(Vec::new()),
        }
    }

    fn gathered(self: Box<Self>) -> Gathered {
        self.gathered
    }
}
