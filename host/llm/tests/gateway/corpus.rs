//! Exchanges with model servers as they are, one file a quirk in `tests/corpus/<kind>/`.
//!
//! A file names its source, what the server answers, byte by byte, and the right outcome. Some say
//! what the gateway is asked and what it has to send. Every answer is replayed whole and a byte at
//! a time. A new quirk is a new file, and nothing else.

use crate::server::{Act, Server};
use crate::setting::{WatchedCall, Watcher, config, gateway, message, prompt};
use agent_host_llm::Delta;
use domain::message::{Answers, Message, Part, Role};
use domain::model::Stop;
use domain::tool::{EffectClass, ToolDefinition};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// Quirks that there are at least.
const QUIRKS_MIN: usize = 60;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quirk {
    /// The service's documentation, or a public report by repository and number.
    source: String,
    /// A sentence on the server's behaviour.
    quirk: String,
    /// The reason for which the quirk is kept, if the gateway was always right.
    assumed: Option<String>,
    #[serde(default)]
    asked: CorpusRequest,
    /// Values that the request has to have at these places; a `null` for nothing at all.
    #[serde(default)]
    sent: BTreeMap<String, String>,
    /// The body with which a first request is refused with status 400. The one behind it is
    /// answered, and has to have what is `sent`.
    refused: Option<String>,
    #[serde(default = "success")]
    status: u16,
    content_type: Option<String>,
    /// The answer as an event stream.
    stream: Option<String>,
    /// The answer in one piece.
    whole: Option<String>,
    right: Right,
}

/// The request to the gateway, beside its first message.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusRequest {
    /// Schemas of tools, as JSON.
    #[serde(default)]
    tools: Vec<String>,
    /// Bytes of the first message.
    bytes: Option<usize>,
    /// Tokens of the model's window.
    window: Option<u64>,
    /// The schema of the reply, as JSON.
    reply: Option<String>,
    /// Messages after the first.
    #[serde(default)]
    said: Vec<CorpusMessage>,
}

/// A message of a conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusMessage {
    by: Role,
    #[serde(default)]
    text: String,
    /// A value that the provider wants back, as JSON.
    kept: Option<String>,
    /// Calls of the model: id, name and arguments.
    #[serde(default)]
    calls: Vec<[String; 3]>,
    /// The message and the index of the call of which this is the result.
    of: Option<[u32; 2]>,
}

/// The outcome.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Right {
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    /// Names and arguments.
    #[serde(default)]
    calls: Vec<[String; 2]>,
    stop: Option<String>,
    /// Tokens of the prompt, of the reply, and of the cached part of the prompt.
    usage: Option<[u64; 3]>,
    /// The code of the failure.
    code: Option<String>,
    /// Requests that are made.
    #[serde(default = "one")]
    requests: usize,
}

fn success() -> u16 {
    200
}

fn one() -> usize {
    1
}

impl CorpusRequest {
    fn prompt(&self) -> domain::model::Prompt {
        let mut prompt = prompt();
        if let Some(bytes) = self.bytes {
            prompt.messages = vec![message(1, Role::User, vec![Part::text("x".repeat(bytes))])];
        }
        let tools = self
            .tools
            .iter()
            .enumerate()
            .map(|(index, schema)| ToolDefinition {
                name: format!("tool_{index}"),
                description: "A tool.".to_owned(),
                arguments: serde_json::from_str(schema).unwrap(),
                results: None,
                capabilities: Vec::new(),
                effect: EffectClass::ReadOnly,
                destructive: false,
                time_limit_ms: None,
            });
        prompt.tools = tools.collect();
        let schema = self.reply.as_deref();
        prompt.reply_schema = schema.map(|schema| serde_json::from_str(schema).unwrap());
        prompt
            .messages
            .extend((2..).zip(&self.said).map(|(id, said)| said.message(id)));
        prompt
    }
}

impl CorpusMessage {
    fn message(&self, id: u64) -> Message {
        let calls = self
            .calls
            .iter()
            .map(|[call_id, name, arguments]| Part::Call {
                call_id: call_id.clone(),
                name: name.clone(),
                arguments: arguments.clone(),
            });
        let text = (!self.text.is_empty()).then(|| Part::text(&self.text));
        let kept = self.kept.as_deref().map(|kept| Part::Opaque {
            provider: "p".to_owned(),
            model: "m-1".to_owned(),
            value: serde_json::from_str(kept).unwrap(),
        });
        let parts = kept.into_iter().chain(text).chain(calls);
        let mut message = message(id, self.by, parts.collect());
        message.answers = self.of.map(|[of, index]| Answers {
            message: of.into(),
            index,
            call_id: String::new(),
            name: "tool_0".to_owned(),
            failed: false,
        });
        message
    }
}

/// Returns what a watcher saw of the model's thoughts.
fn thinking(watcher: &Watcher) -> String {
    let reported = watcher.reported();
    reported
        .iter()
        .filter_map(|reported| match reported {
            WatchedCall::Delta(_, _, Delta::Thinking(text)) => Some(text.as_str()),
            WatchedCall::Delta(..) | WatchedCall::Discarded(_) => None,
        })
        .collect()
}

/// Differences between an outcome and the right one.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, what: &str, got: &impl Debug, right: &impl Debug) {
        let [got, right] = [format!("{got:?}"), format!("{right:?}")];
        if got != right {
            self.0.push(format!("{what} is {got}, not {right}"));
        }
    }

    fn compare_reply(&mut self, parts: &[Part], stop: &Stop, right: &Right) {
        let call = |part: &Part| match part {
            Part::Call {
                name, arguments, ..
            } => Some([name.clone(), arguments.clone()]),
            Part::Text { .. } | Part::Blob { .. } | Part::Opaque { .. } => None,
        };
        let calls: Vec<[String; 2]> = parts.iter().filter_map(call).collect();
        self.compare("text", &domain::message::text_of(parts), &right.text);
        self.compare("calls", &calls, &right.calls);
        if let Some(right) = &right.stop {
            self.compare("stop", &stop_word(stop), right);
        }
    }
}

/// Replays an answer, so many bytes at a time.
///
/// # Errors
/// The differences between the outcome and the right one.
async fn replayed(
    quirk: &Quirk,
    kind: &str,
    answer: Answer<'_>,
    portion: usize,
) -> Result<(), String> {
    let content_type = quirk.content_type.as_deref().unwrap_or(answer.content_type);
    let content_type = (!content_type.is_empty()).then(|| content_type.to_owned());
    let body = answer.body.as_bytes().to_vec();
    let portion = portion.min(body.len()).max(1);
    let refused = quirk.refused.as_ref().map(|body| {
        let json = Some("application/json".to_owned());
        Act::Bytes(400, json, body.clone().into_bytes(), portion)
    });
    let answered = Act::Bytes(quirk.status, content_type, body, portion);
    let server = Server::start(refused.into_iter().chain([answered]).collect()).await;
    let mut config = config(kind, &[&server.url]);
    if let Some(window) = quirk.asked.window {
        config["models"]["m"]["contextWindow"] = window.into();
    }
    let watcher = Watcher::default();
    let completion = gateway(config)
        .complete(&quirk.asked.prompt(), &watcher)
        .await;
    let right = &quirk.right;
    let mut differences = Differences::default();
    let failure = completion.result.as_ref().err();
    let code = failure.map(|failure| failure.code().to_owned());
    differences.compare("code", &code, &right.code);
    if let Ok(reply) = &completion.result {
        differences.compare_reply(&reply.parts, &reply.stop, right);
        differences.compare("shown text", &watcher.text(), &right.text);
        differences.compare("thinking", &thinking(&watcher), &right.thinking);
    }
    if let Some(right) = right.usage {
        let usage = completion.attempts.last().and_then(|attempt| attempt.usage);
        let counts = usage.map(|usage| {
            let input = usage.input_tokens;
            [input, usage.output_tokens, usage.cached_tokens]
        });
        differences.compare("usage", &counts, &Some(right));
    }
    let requests = server.requests();
    differences.compare("number of requests", &requests.len(), &right.requests);
    for (pointer, right) in &quirk.sent {
        let answered = usize::from(quirk.refused.is_some());
        let sent = requests[answered].body.pointer(pointer);
        let sent = sent.cloned().unwrap_or_default();
        let right: Value = serde_json::from_str(right).unwrap();
        if sent != right {
            differences
                .0
                .push(format!("{pointer} is {sent}, not {right}"));
        }
    }
    match differences.0.as_slice() {
        [] => Ok(()),
        reported => Err(format!("{}: {failure:?}", reported.join("; "))),
    }
}

/// An answer of a server.
#[derive(Clone, Copy)]
struct Answer<'a> {
    content_type: &'a str,
    body: &'a str,
}

impl Quirk {
    /// Returns its answers, as a stream and in one piece.
    fn answers(&self) -> impl Iterator<Item = Answer<'_>> {
        let stream = self.stream.as_deref().map(|body| Answer {
            content_type: "text/event-stream",
            body,
        });
        let whole = self.whole.as_deref().map(|body| Answer {
            content_type: "application/json",
            body,
        });
        stream.into_iter().chain(whole)
    }
}

fn stop_word(stop: &Stop) -> String {
    match stop {
        Stop::End => "end".to_owned(),
        Stop::ToolCalls => "tool_calls".to_owned(),
        Stop::Length => "length".to_owned(),
        Stop::Filtered => "filtered".to_owned(),
        Stop::Refused => "refused".to_owned(),
        Stop::Other(word) => word.clone(),
    }
}

fn files() -> Vec<(String, PathBuf)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = Vec::new();
    for kind in ["openai-compatible", "anthropic"] {
        for entry in std::fs::read_dir(corpus.join(kind)).unwrap() {
            files.push((kind.to_owned(), entry.unwrap().path()));
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn every_quirk_of_the_corpus_ends_as_it_should() {
    let files = files();
    assert!(files.len() >= QUIRKS_MIN, "{} quirks", files.len());
    let mut wrong = Vec::new();
    for (kind, path) in &files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let quirk: Quirk = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_reported = |text: &str| !text.trim().is_empty();
        assert!(
            is_reported(&quirk.source) && is_reported(&quirk.quirk),
            "{name}"
        );
        assert!(quirk.assumed.as_deref().is_none_or(is_reported), "{name}");
        assert!(quirk.answers().next().is_some(), "{name} has no answer");
        for answer in quirk.answers() {
            for portion in [usize::MAX, 1] {
                if let Err(reported) = replayed(&quirk, kind, answer, portion).await {
                    let form = answer.content_type;
                    wrong.push(format!("{kind}/{name}, {form} by {portion}: {reported}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
