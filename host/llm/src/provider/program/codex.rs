//! The lines of `codex app-server`: JSON-RPC without its version, one message a line.

use super::protocol::{Gathered, Protocol, Said, Step, Turn, at, number, text};
use domain::model::Usage;
use serde_json::{Value, json};

/// The id of the request with which the conversation is agreed upon.
const INITIALIZE: u64 = 0;
/// The id of the request that opens the thread.
const THREAD: u64 = 1;
/// The id of the request that begins the turn.
const TURN: u64 = 2;

/// One turn of codex.
#[derive(Debug)]
pub(super) struct Codex {
    /// The request that opens the thread.
    opens: Value,
    prompt: String,
    /// The turn's id, once it has begun.
    turn: Option<String>,
    gathered: Gathered,
}

impl Codex {
    pub(super) fn new(turn: &Turn<'_>) -> Self {
        let sandbox = if turn.tools.is_empty() || turn.read_only {
            "read-only"
        } else {
            "workspace-write"
        };
        let mut params = json!({
            "model": turn.model,
            "cwd": turn.folder.display().to_string(),
            "sandbox": sandbox,
            "approvalPolicy": "never",
            "baseInstructions": turn.system,
        });
        let method = match (turn.resumed, params.as_object_mut()) {
            (Some(session), Some(params)) => {
                params.insert("threadId".to_owned(), json!(session));
                "thread/resume"
            }
            (Some(_) | None, _) => "thread/start",
        };
        Self {
            opens: json!({ "id": THREAD, "method": method, "params": params }),
            prompt: turn.prompt.to_owned(),
            turn: None,
            gathered: Gathered::default(),
        }
    }

    /// Returns the arguments of a turn. Its analytics would take most of the time of a turn.
    pub(super) fn arguments(turn: &Turn<'_>) -> Vec<String> {
        let mut arguments = vec!["app-server", "-c", "analytics.enabled=false"];
        if turn.tools.is_empty() {
            arguments.extend(["-c", "features.shell_tool=false"]);
        }
        arguments.into_iter().map(str::to_owned).collect()
    }

    /// Takes the answer to a request of the host's.
    fn answered(&mut self, id: u64, line: &Value) -> Step {
        if !at(line, "error").is_null() {
            return Step::Failed(text(at(at(line, "error"), "message")).to_owned());
        }
        let result = at(line, "result");
        match id {
            INITIALIZE => Step::More(vec![
                write(&json!({ "method": "initialized" })),
                write(&self.opens),
            ]),
            THREAD => {
                let thread = text(at(at(result, "thread"), "id")).to_owned();
                let params = json!({
                    "threadId": thread,
                    "input": [{ "type": "text", "text": self.prompt }],
                });
                self.gathered.session = Some(thread);
                let begin = json!({ "id": TURN, "method": "turn/start", "params": params });
                Step::More(vec![write(&begin)])
            }
            TURN => {
                self.turn = at(at(result, "turn"), "id").as_str().map(str::to_owned);
                Step::More(Vec::new())
            }
            _ => Step::More(Vec::new()),
        }
    }

    fn notified(&mut self, method: &str, params: &Value) -> Step {
        match method {
            "item/agentMessage/delta" => {
                Step::More(vec![Said::Text(text(at(params, "delta")).to_owned())])
            }
            "item/reasoning/textDelta" | "item/reasoning/summaryTextDelta" => {
                Step::More(vec![Said::Thinking(text(at(params, "delta")).to_owned())])
            }
            "item/started" => {
                let call = call(at(params, "item")).map(|name| self.gathered.call(&name));
                Step::More(call.into_iter().collect())
            }
            "item/completed" => {
                if text(at(at(params, "item"), "type")) == "agentMessage" {
                    self.gathered.text(text(at(at(params, "item"), "text")));
                }
                Step::More(Vec::new())
            }
            "turn/started" => {
                self.turn = at(at(params, "turn"), "id").as_str().map(str::to_owned);
                Step::More(Vec::new())
            }
            "thread/tokenUsage/updated" => {
                self.used(params);
                Step::More(Vec::new())
            }
            "turn/completed" => ended(at(params, "turn")),
            _ => Step::More(Vec::new()),
        }
    }

    /// Adds the usage of one answer of the model. That of former turns is told again when a thread
    /// is resumed.
    fn used(&mut self, params: &Value) {
        let last = at(at(params, "tokenUsage"), "last");
        let of = at(params, "turnId").as_str();
        if self.turn.is_none() || of != self.turn.as_deref() || !last.is_object() {
            return;
        }
        let more = Usage {
            input_tokens: number(at(last, "inputTokens")),
            output_tokens: number(at(last, "outputTokens")),
            cached_tokens: number(at(last, "cachedInputTokens")),
        };
        self.gathered.usage = Some(self.gathered.usage.unwrap_or_default().plus(more));
    }
}

/// Returns the end of a turn.
fn ended(turn: &Value) -> Step {
    match text(at(turn, "status")) {
        "completed" => Step::Done,
        status => {
            let told = text(at(at(turn, "error"), "message"));
            let words = if told.is_empty() { status } else { told };
            Step::Failed(words.to_owned())
        }
    }
}

/// Returns the name of the tool that an item is a call of; none if it is no call.
fn call(item: &Value) -> Option<String> {
    match text(at(item, "type")) {
        "commandExecution" => Some("shell".to_owned()),
        "fileChange" => Some("apply_patch".to_owned()),
        "webSearch" => Some("web_search".to_owned()),
        "mcpToolCall" => Some(format!(
            "{}.{}",
            text(at(item, "server")),
            text(at(item, "tool"))
        )),
        _ => None,
    }
}

fn write(message: &Value) -> Said {
    Said::Write(format!("{message}\n"))
}

impl Protocol for Codex {
    fn opening(&mut self) -> Vec<Said> {
        let client = json!({ "name": "agent-host", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "clientInfo": client });
        let initialize = json!({ "id": INITIALIZE, "method": "initialize", "params": params });
        vec![write(&initialize)]
    }

    fn take(&mut self, line: &Value) -> Step {
        match (at(line, "method").as_str(), line.get("id")) {
            // It asks for something, such as an approval. Nobody is there to give it.
            (Some(_), Some(id)) => {
                let error = json!({ "code": -32601, "message": "not served" });
                Step::More(vec![write(&json!({ "id": id, "error": error }))])
            }
            (Some(method), None) => self.notified(method, at(line, "params")),
            (None, Some(id)) => match id.as_u64() {
                Some(id) => self.answered(id, line),
                None => Step::More(Vec::new()),
            },
            (None, None) => Step::More(Vec::new()),
        }
    }

    fn gathered(self: Box<Self>) -> Gathered {
        self.gathered
    }
}
