//! The lines of `claude -p --output-format stream-json`.

use super::cli::{ConversationItem, Gathered, Protocol, Step, Turn, at, number, text};
use super::handing::command;
use domain::model::Usage;
use serde_json::{Value, json};

/// One turn of claude.
#[derive(Debug)]
pub(super) struct Claude {
    prompt: String,
    gathered: Gathered,
}

impl Claude {
    pub(super) fn new(turn: &Turn<'_>) -> Self {
        Self {
            prompt: turn.prompt.to_owned(),
            gathered: Gathered::default(),
        }
    }

    /// Returns the arguments of a turn. The prompt is none of them: after `--tools` it would be
    /// read as a tool.
    pub(super) fn arguments(turn: &Turn<'_>) -> Vec<String> {
        let tools = turn.tools.join(",");
        let helper = turn.key_pipe.map(|pipe| {
            let settings = json!({ "apiKeyHelper": command(pipe) });
            settings.to_string()
        });
        let mut arguments = vec!["-p"];
        if turn.login {
            // Settings, hooks and servers of the folder, which the program may write, are not the
            // operator's.
            arguments.extend(["--setting-sources", "user", "--strict-mcp-config"]);
        } else {
            arguments.push("--bare");
        }
        arguments.extend([
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--model",
            turn.model,
            "--tools",
            &tools,
            "--system-prompt-file",
            turn.system_file,
        ]);
        if let Some(settings) = &helper {
            arguments.extend(["--settings", settings]);
        }
        if !turn.tools.is_empty() {
            // The tools that there are still ask for permission, and nobody is there to give it.
            arguments.extend(["--allowedTools", &tools]);
        }
        match turn.resumed {
            Some(session) => arguments.extend(["--resume", session]),
            None => arguments.extend(["--session-id", turn.fresh]),
        }
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn streamed(&mut self, event: &Value) -> Vec<ConversationItem> {
        let delta = at(event, "delta");
        match (text(at(event, "type")), text(at(delta, "type"))) {
            ("content_block_delta", "text_delta") => {
                vec![ConversationItem::Text(text(at(delta, "text")).to_owned())]
            }
            ("content_block_delta", "thinking_delta") => {
                vec![ConversationItem::Thinking(
                    text(at(delta, "thinking")).to_owned(),
                )]
            }
            ("content_block_start", _) => {
                let block = at(event, "content_block");
                let is_call = text(at(block, "type")) == "tool_use";
                let name = text(at(block, "name"));
                let call = is_call.then(|| self.gathered.call(name));
                call.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Takes a message that is whole. Its calls were told of when they began.
    fn whole(&mut self, message: &Value) {
        let blocks = at(message, "content").as_array().into_iter().flatten();
        for block in blocks.filter(|block| text(at(block, "type")) == "text") {
            self.gathered.text(text(at(block, "text")));
        }
    }

    fn ended(&mut self, result: &Value) -> Step {
        let reported = text(at(result, "result"));
        self.gathered.usage = used(result);
        // `subtype` says success also for errors of the service.
        if at(result, "is_error").as_bool() != Some(false) {
            return Step::Failed(reason(result));
        }
        if self.gathered.texts.is_empty() {
            self.gathered.text(reported);
        }
        Step::Done
    }
}

/// Returns why a turn failed. Where no answer of the service says it, `errors` does.
fn reason(result: &Value) -> String {
    let reported = text(at(result, "result"));
    if !reported.is_empty() {
        return reported.to_owned();
    }
    let errors = at(result, "errors").as_array().into_iter().flatten();
    let errors: Vec<&str> = errors
        .map(text)
        .filter(|reported| !reported.is_empty())
        .collect();
    if errors.is_empty() {
        text(at(result, "subtype")).to_owned()
    } else {
        errors.join("; ")
    }
}

/// Reads the usage of a whole turn. Its helpers and what it asked again are only in the one by
/// model, which older versions do not tell of.
fn used(result: &Value) -> Option<Usage> {
    let models = at(result, "model_usage_since_last_result").as_object();
    models
        .into_iter()
        .flat_map(|models| models.values())
        .map(usage_of_model)
        .reduce(Usage::plus)
        .or_else(|| usage(at(result, "usage")))
}

/// Reads the usage of one model.
fn usage_of_model(reported: &Value) -> Usage {
    let cached_tokens = number(at(reported, "cacheReadInputTokens"));
    Usage {
        input_tokens: number(at(reported, "inputTokens"))
            .saturating_add(cached_tokens)
            .saturating_add(number(at(reported, "cacheCreationInputTokens"))),
        output_tokens: number(at(reported, "outputTokens")),
        cached_tokens,
    }
}

/// Reads the usage of the answers to it alone.
fn usage(usage: &Value) -> Option<Usage> {
    let cached_tokens = number(at(usage, "cache_read_input_tokens"));
    let written = number(at(usage, "cache_creation_input_tokens"));
    usage.is_object().then(|| Usage {
        input_tokens: number(at(usage, "input_tokens"))
            .saturating_add(cached_tokens)
            .saturating_add(written),
        output_tokens: number(at(usage, "output_tokens")),
        cached_tokens,
    })
}

impl Protocol for Claude {
    fn opening(&mut self) -> Vec<ConversationItem> {
        vec![
            ConversationItem::Write(std::mem::take(&mut self.prompt)),
            ConversationItem::Close,
        ]
    }

    fn take(&mut self, line: &Value) -> Step {
        if let Some(session) = at(line, "session_id").as_str() {
            self.gathered.session = Some(session.to_owned());
        }
        // What a helper of its own says is not the reply.
        let is_own = at(line, "parent_tool_use_id").is_null();
        match text(at(line, "type")) {
            "stream_event" if is_own => Step::More(self.streamed(at(line, "event"))),
            "assistant" if is_own => {
                self.whole(at(line, "message"));
                Step::More(Vec::new())
            }
            "result" => self.ended(line),
            _ => Step::More(Vec::new()),
        }
    }

    fn gathered(self: Box<Self>) -> Gathered {
        self.gathered
    }
}
