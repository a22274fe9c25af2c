//! The lines of `codex app-server`: JSON-RPC without its version, one message a line.

use super::cli::{ConversationItem, Gathered, Protocol, Step, Turn, at, number, text};
use crate::key::ApiKey;
use domain::model::Usage;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The id of the request with which the conversation is agreed upon.
const INITIALIZE: u64 = 0;
/// The id of the request that opens the thread.
const THREAD: u64 = 1;
/// The id of the request that begins the turn.
const TURN: u64 = 2;
/// The id of the request that gives it the key of its service.
const LOGIN: u64 = 3;
/// The setting with which it keeps that key in its memory alone.
const FORGETS_KEY: &str = "cli_auth_credentials_store=\"ephemeral\"";
/// The method that opens a new thread.
const START: &str = "thread/start";
/// Settings that take its own tools away, as far as it has settings for them.
const WITHOUT_TOOLS: [&str; 7] = [
    "features.shell_tool=false",
    "features.multi_agent=false",
    "features.goals=false",
    "features.view_image=false",
    "features.image_generation=false",
    "features.sleep_tool=false",
    "web_search=\"disabled\"",
];

/// One turn of codex.
#[derive(Debug)]
pub(super) struct Codex {
    /// The request that opens the thread.
    opens: Value,
    prompt: String,
    /// The key of its service, until it was told.
    key: Option<ApiKey>,
    /// True if its commands are bounded by the host's confinement alone.
    is_bounded_by_host: bool,
    /// The turn's id, once it has begun.
    turn: Option<String>,
    /// The usage that each thread told of last, since it began. Helpers have threads of their own;
    /// the limit of the program's output bounds them.
    totals: BTreeMap<String, Usage>,
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
            (Some(_) | None, _) => START,
        };
        Self {
            opens: json!({ "id": THREAD, "method": method, "params": params }),
            prompt: turn.prompt.to_owned(),
            key: turn.key.cloned(),
            is_bounded_by_host: turn.is_confined && !turn.tools.is_empty(),
            turn: None,
            totals: BTreeMap::new(),
            gathered: Gathered::default(),
        }
    }

    /// Returns the arguments of a turn. Its analytics would take most of the time of a turn.
    pub(super) fn arguments(turn: &Turn<'_>) -> Vec<String> {
        let mut arguments = vec!["app-server", "-c", "analytics.enabled=false"];
        if turn.key.is_some() {
            arguments.extend(["-c", FORGETS_KEY]);
        }
        if turn.tools.is_empty() {
            arguments.extend(WITHOUT_TOOLS.iter().flat_map(|setting| ["-c", *setting]));
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
            INITIALIZE => {
                let next = match self.key.take() {
                    Some(key) => {
                        let params = json!({ "type": "apiKey", "apiKey": key.exposed() });
                        json!({ "id": LOGIN, "method": "account/login/start", "params": params })
                    }
                    None => self.opens.clone(),
                };
                let initialized = json!({ "method": "initialized" });
                Step::More(vec![write(&initialized), write(&next)])
            }
            LOGIN => Step::More(vec![write(&self.opens)]),
            THREAD => {
                let thread = text(at(at(result, "thread"), "id")).to_owned();
                let mut params = json!({
                    "threadId": thread,
                    "input": [{ "type": "text", "text": self.prompt }],
                });
                // Its own sandbox mounts folders, which nothing below Landlock may.
                if self.is_bounded_by_host
                    && let Some(params) = params.as_object_mut()
                {
                    let policy = json!({ "type": "externalSandbox", "networkAccess": "enabled" });
                    params.insert("sandboxPolicy".to_owned(), policy);
                }
                if text(at(&self.opens, "method")) == START {
                    self.totals.insert(thread.clone(), Usage::default());
                }
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
            "thread/tokenUsage/updated" => {
                self.used(params);
                Step::More(Vec::new())
            }
            // What a helper of its own says is not the reply, and its end is not the turn's.
            _ if !self.is_own(params) => Step::More(Vec::new()),
            "item/agentMessage/delta" => Step::More(vec![ConversationItem::Text(
                text(at(params, "delta")).to_owned(),
            )]),
            "item/reasoning/textDelta" | "item/reasoning/summaryTextDelta" => {
                Step::More(vec![ConversationItem::Thinking(
                    text(at(params, "delta")).to_owned(),
                )])
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
            "turn/completed" => ended(at(params, "turn")),
            _ => Step::More(Vec::new()),
        }
    }

    /// Returns whether a notification is of the turn's own thread, or of none.
    fn is_own(&self, params: &Value) -> bool {
        let thread = at(params, "threadId").as_str();
        thread.is_none() || thread == self.gathered.session.as_deref()
    }

    /// Adds the usage of one answer of the model, of a helper's too. That of former turns is told
    /// again when a thread is resumed.
    fn used(&mut self, params: &Value) {
        let reported = at(params, "tokenUsage");
        let thread = text(at(params, "threadId")).to_owned();
        let total = usage(at(reported, "total"));
        let before = self.totals.insert(thread, total);
        let of = at(params, "turnId").as_str();
        let is_former = self.is_own(params) && of != self.turn.as_deref();
        if self.turn.is_none() || is_former {
            return;
        }
        // The total counts an answer that was cut off as well, and `last` does not.
        let more = match before {
            Some(before) => growth(before, total),
            None => usage(at(reported, "last")),
        };
        self.gathered.usage = Some(self.gathered.usage.unwrap_or_default().plus(more));
    }
}

/// Reads a count of tokens.
fn usage(reported: &Value) -> Usage {
    Usage {
        input_tokens: number(at(reported, "inputTokens")),
        output_tokens: number(at(reported, "outputTokens")),
        cached_tokens: number(at(reported, "cachedInputTokens")),
    }
}

/// Returns what was used between two counts.
fn growth(before: Usage, now: Usage) -> Usage {
    Usage {
        input_tokens: now.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: now.output_tokens.saturating_sub(before.output_tokens),
        cached_tokens: now.cached_tokens.saturating_sub(before.cached_tokens),
    }
}

/// Returns the end of a turn.
fn ended(turn: &Value) -> Step {
    match text(at(turn, "status")) {
        "completed" => Step::Done,
        status => {
            let reported = text(at(at(turn, "error"), "message"));
            let words = if reported.is_empty() {
                status
            } else {
                reported
            };
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
        "imageView" => Some("view_image".to_owned()),
        "imageGeneration" => Some("image_generation".to_owned()),
        "sleep" => Some("sleep".to_owned()),
        "dynamicToolCall" | "collabAgentToolCall" => Some(text(at(item, "tool")).to_owned()),
        "mcpToolCall" => Some(format!(
            "{}.{}",
            text(at(item, "server")),
            text(at(item, "tool"))
        )),
        _ => None,
    }
}

fn write(message: &Value) -> ConversationItem {
    ConversationItem::Write(format!("{message}\n"))
}

impl Protocol for Codex {
    fn opening(&mut self) -> Vec<ConversationItem> {
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
