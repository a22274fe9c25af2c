//! Tasks: the operations with their parameters, and the work that they begin.

use crate::analyze::{self, Analysis};
use crate::execute;
use crate::generate::{self, Generation};
use crate::review::{self, Review};
use agent_host_sdk::{Blob, ModelRequest, Outcome, Part, Settlement, Step, Toolset, Turn, text_of};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The operations with their parameters, for errors.
const OPERATIONS: &str = "analyze_code(path, patterns?), generate_code(spec, language?, \
                          framework?), review_code(diff, guidelines?), execute_code(code, \
                          language?, timeout?)";
/// Tokens that a turn must have left for a model to be asked.
pub(crate) const MODEL_TOKENS_MIN: u64 = 2_000;

/// Bytes of a reply, so that whoever delegated sees all of it: the host keeps text over 32 KiB as a
/// blob. Generated files may take more.
pub(crate) const REPLY_BYTES_MAX: usize = 28 << 10;

/// Bytes of a result that are read from a blob.
const RESULT_BYTES_MAX: u64 = 4 << 20;
/// Bytes that are read from a blob at once.
const BLOB_PIECE_BYTES: u32 = 1 << 20;

/// A task.
#[derive(Debug, Deserialize)]
#[serde(tag = "operation", content = "parameters")]
pub(crate) enum Task {
    #[serde(rename = "analyze_code")]
    Analyze(AnalyzeCode),
    #[serde(rename = "generate_code")]
    Generate(GenerateCode),
    #[serde(rename = "review_code")]
    Review(ReviewCode),
    #[serde(rename = "execute_code")]
    Execute(ExecuteCode),
}

/// The parameters of `analyze_code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnalyzeCode {
    pub(crate) path: String,
    pub(crate) patterns: Option<Vec<String>>,
}

/// The parameters of `generate_code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GenerateCode {
    pub(crate) spec: String,
    pub(crate) language: Option<String>,
    pub(crate) framework: Option<String>,
}

/// The parameters of `review_code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewCode {
    pub(crate) diff: String,
    pub(crate) guidelines: Option<String>,
}

/// The parameters of `execute_code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteCode {
    pub(crate) code: String,
    pub(crate) language: Option<String>,
    pub(crate) timeout: Option<u64>,
}

/// The work under way, as the session's state keeps it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    #[default]
    None,
    Analyze(Box<Analysis>),
    Generate(Generation),
    Review(Box<Review>),
    Execute,
}

impl Work {
    /// The step that goes on with it.
    pub(crate) fn kept_by(&self, step: Step) -> Step {
        step.keep(json!(self))
    }
}

/// Reads a task, and the milliseconds after which whoever delegated gives it up, if it says so.
///
/// # Errors
/// What is wrong with it, with what a task is.
pub(crate) fn read_task(text: &str) -> Result<(Task, Option<u64>), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!("this is not a task, which is {{\"operation\": …, \"parameters\": {{…}}}}: {error}")
    })?;
    let timeout_ms = value.get("timeoutMs").and_then(Value::as_u64);
    let task = serde_json::from_value(value).map_err(|error| {
        format!("the task cannot be carried out: {error}. Supported: {OPERATIONS}")
    })?;
    Ok((task, timeout_ms))
}

/// Begins a task.
///
/// # Errors
/// The parameter that makes no sense, or the tool that is missing.
pub(crate) fn begin(turn: Turn<'_>, task: Task, timeout_ms: Option<u64>) -> Result<Step, String> {
    match task {
        Task::Analyze(asked) => analyze::begin(turn, asked),
        Task::Generate(asked) => generate::begin(turn, &asked),
        Task::Review(asked) => review::begin(turn, &asked),
        Task::Execute(asked) => execute::begin(turn, asked, timeout_ms),
    }
}

/// Returns an error if the agent may not use one of these tools.
pub(crate) fn need_tools(turn: Turn<'_>, names: &[&str]) -> Result<(), String> {
    let has = turn.tool_names();
    match names
        .iter()
        .find(|name| !has.iter().any(|one| one == *name))
    {
        None => Ok(()),
        Some(missing) => Err(format!(
            "this coder has no tool `{missing}`; the operator adds it to its `toolAllowlist`"
        )),
    }
}

/// Returns the text of an operation's result, whole also where the host keeps it as a blob.
///
/// # Errors
/// Why there is none.
pub(crate) fn text_from(turn: Turn<'_>, settlement: &Settlement) -> Result<String, String> {
    let parts = match &settlement.outcome {
        Outcome::Parts(parts) => parts,
        outcome => return Err(outcome.to_string()),
    };
    let blob = parts.iter().find_map(|part| match part {
        Part::Blob(blob) => Some(blob),
        Part::Text(_) | Part::Call(_) | Part::Opaque(_) => None,
    });
    match blob {
        Some(blob) => text_of_blob(turn, blob),
        None => Ok(text_of(parts)),
    }
}

fn text_of_blob(turn: Turn<'_>, blob: &Blob) -> Result<String, String> {
    if blob.size > RESULT_BYTES_MAX {
        return Err(format!("a result has more than {RESULT_BYTES_MAX} bytes"));
    }
    let mut bytes = Vec::new();
    loop {
        let offset = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if offset >= blob.size {
            return String::from_utf8(bytes).map_err(|_| "a result is not text".to_owned());
        }
        match turn.read_blob(&blob.handle, offset, BLOB_PIECE_BYTES) {
            Some(piece) if !piece.is_empty() => bytes.extend(piece),
            Some(_) | None => return Err("a result is gone".to_owned()),
        }
    }
}

/// A hidden request that shows the model nothing but these words and this data.
pub(crate) fn hidden_request(turn: Turn<'_>, rules: &str, data: String) -> ModelRequest {
    let mut system = vec![rules.to_owned()];
    let prompt = turn.prompt();
    if !prompt.trim().is_empty() {
        system.insert(0, prompt);
    }
    ModelRequest::new(system)
        .with_tools(Toolset::None)
        .since(turn.head().unwrap_or_default() + 1)
        .with_also(data)
        .hidden()
}

/// The reply of a task: its result as JSON.
pub(crate) fn reply(result: &Value) -> Step {
    Work::None.kept_by(Step::reply(result.to_string()))
}
