//! The result of a delegation, as the JSON that the model gets as the call's result.

use super::{ARGUMENTS, Code, DelegateAddress, Delegation, NAME, Target};
use crate::thread::message::{Message, Part, text_of};
use crate::thread::spill::{blob_of, shortened};
use crate::values::digest::Digest;
use crate::values::error_code::{
    ErrorCategory, INVALID_ARGUMENTS, LIMIT_REACHED, category_of_tool, is_retryable,
};
use crate::values::id::{AgentId, OperationId};
use crate::values::limits::{INLINE_TEXT_BYTES_MAX, SPILL_EDGE_BYTES};
use crate::values::text::words;
use crate::values::time::Timestamp;
use crate::work::step::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;

/// The task that a delegation became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The operation that waits for it.
    pub operation: OperationId,
    /// The agent that did it.
    pub agent: AgentId,
    /// Time at which it was handed over.
    pub created: Timestamp,
    /// Time at which it ended.
    pub completed: Timestamp,
}

/// The outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskState {
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
    /// It was stopped before it had a result or a failure.
    Cancelled,
    /// Its deadline passed and it was stopped.
    Timeout,
}

words!(TaskState {
    Completed = "COMPLETED",
    Failed = "FAILED",
    Cancelled = "CANCELLED",
    Timeout = "TIMEOUT",
});

/// The reason why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DelegateError {
    /// A stable code: a word of [`Code`], or that of the rule that refused the call.
    pub code: String,
    /// The message for people and models.
    pub message: String,
    /// True if repeating the same call may succeed. It follows the table of codes, with two
    /// exceptions that may succeed: a task of which nothing was done, and a limit that will have
    /// room again.
    pub retryable: bool,
    /// The stage of the failure.
    pub category: ErrorCategory,
    /// Further facts by name, for programs: `timeoutMs` of a task that timed out, `limit` of an
    /// exhausted limit, `allowed` or `parameter` of an invalid call, `agent` if the target has
    /// none.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// The whole of a reply that is too long for a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegateBlob {
    /// The digest for reading it: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its media type: `application/json` for an object or array, otherwise `text/plain`.
    pub media_type: &'static str,
}

/// The known facts about a delegation. If it was refused before there was a task, these are the
/// target and the operation, as far as it names existing ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegateMetadata {
    /// The requested kind of agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The requested operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The agent that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Time at which it was handed over, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Time at which it ended, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// Its duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}

/// The result of a delegation. Its `Display` is the JSON text for the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegateResult {
    /// True if there is a result.
    pub success: bool,
    /// The task, for finding it in the host's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The result, if it is a JSON object or array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The result, if it is text; its head and tail, if it is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The whole of a result that is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<DelegateBlob>,
    /// The reason why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<DelegateError>,
    /// The outcome of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_state: Option<TaskState>,
    /// The known facts about it.
    pub metadata: DelegateMetadata,
}

impl fmt::Display for DelegateResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl DelegateResult {
    /// The target replied. A JSON object or array becomes `data`, any other reply `output`.
    #[must_use]
    pub fn succeeded(delegation: &Delegation, task: &Task, reply: &str) -> Self {
        let data = serde_json::from_str(reply)
            .ok()
            .filter(|value: &Value| value.is_object() || value.is_array());
        let output = if data.is_some() {
            None
        } else {
            Some(reply.to_owned())
        };
        Self {
            success: true,
            data,
            output,
            ..Self::ended(delegation, task, TaskState::Completed)
        }
    }

    /// Returns the result of a reply as the parts for its caller, and the bytes to be stored with
    /// them. The result is JSON of at most [`INLINE_TEXT_BYTES_MAX`] bytes. Of a longer reply head
    /// and tail are kept, and the whole becomes a blob. The blobs that the reply shows stay with
    /// it.
    #[must_use]
    pub fn parts(
        delegation: &Delegation,
        task: &Task,
        mut reply: Vec<Part>,
    ) -> (Vec<Part>, Option<Vec<u8>>) {
        let text = text_of(&reply);
        reply.retain(|part| matches!(part, Part::Blob { .. }));
        let mut result = Self::succeeded(delegation, task, &text);
        let blob = result.shorten(&text);
        let bytes = blob.is_some().then(|| text.into_bytes());
        let mut parts = vec![Part::text(result.to_string())];
        parts.extend(blob);
        parts.append(&mut reply);
        (parts, bytes)
    }

    /// Keeps head and tail of a reply that is too long, and names its blob. Returns the part that
    /// shows the blob; none for a reply that fits.
    fn shorten(&mut self, reply: &str) -> Option<Part> {
        if self.to_string().len() <= INLINE_TEXT_BYTES_MAX {
            return None;
        }
        let media_type = if self.data.is_some() {
            "application/json"
        } else {
            "text/plain"
        };
        self.data = None;
        self.blob = Some(DelegateBlob {
            digest: Digest::of(reply.as_bytes()).reference(),
            bytes: reply.len() as u64,
            media_type,
        });
        // JSON escapes make some text several times as long.
        let mut edge_bytes = SPILL_EDGE_BYTES;
        loop {
            self.output = Some(shortened(reply, edge_bytes));
            if edge_bytes == 0 || self.to_string().len() <= INLINE_TEXT_BYTES_MAX {
                return Some(blob_of(reply, media_type));
            }
            edge_bytes /= 2;
        }
    }

    /// The target failed. The call may be repeated if nothing of the task was done: `begun` is
    /// false.
    #[must_use]
    pub fn failed(delegation: &Delegation, task: &Task, reason: &str, begun: bool) -> Self {
        Self::ended(delegation, task, TaskState::Failed).because(
            Code::TaskFailed.as_str(),
            reason,
            !begun,
        )
    }

    /// The target gave up because of an outcome with its own code.
    #[must_use]
    pub fn given_up(delegation: &Delegation, task: &Task, code: Code, reason: &str) -> Self {
        Self::ended(delegation, task, TaskState::Failed).because_of(code, reason)
    }

    /// The task's deadline passed. It is not repeated.
    #[must_use]
    pub fn timed_out(delegation: &Delegation, task: &Task) -> Self {
        let Delegation {
            target,
            operation,
            timeout_ms,
            ..
        } = delegation;
        let reason = format!(
            "Operation {operation} of {target} agent took longer than {timeout_ms} \
                     milliseconds and was stopped."
        );
        let mut result = Self::ended(delegation, task, TaskState::Timeout)
            .because_of(Code::TaskTimeout, &reason);
        if let Some(error) = &mut result.error {
            let details = &mut error.details;
            details.insert("timeoutMs".to_owned(), json!(timeout_ms));
        }
        result
    }

    /// The task was stopped.
    #[must_use]
    pub fn cancelled(delegation: &Delegation, task: &Task) -> Self {
        Self::ended(delegation, task, TaskState::Cancelled)
            .because_of(Code::TaskFailed, "The task was cancelled.")
    }

    /// The host lost the running task.
    #[must_use]
    pub fn unknown(delegation: &Delegation, task: &Task, cause: &Failure) -> Self {
        let message = format!("The task was cut off: {}", cause.in_doubt());
        Self::ended(delegation, task, TaskState::Failed).because_of(Code::TaskUnknown, &message)
    }

    /// The call was refused before there was a task.
    #[must_use]
    pub fn refused(failure: &Failure) -> Self {
        let code = match failure.code.as_str() {
            LIMIT_REACHED => Code::LimitReached.as_str(),
            INVALID_ARGUMENTS => Code::InvalidParameters.as_str(),
            code => code,
        };
        let mut result =
            Self::without_task(None).because(code, &failure.message, failure.retryable);
        if let Some(error) = &mut result.error {
            error.details.extend(failure.details.clone());
            // They were no JSON object, so that no parameter is at fault.
            if failure.code == INVALID_ARGUMENTS && error.details.is_empty() {
                let details = &mut error.details;
                details.insert("allowed".to_owned(), json!(ARGUMENTS));
            }
        }
        result
    }

    /// A rule of the operator's forbids the call.
    #[must_use]
    pub fn denied() -> Self {
        Self::without_task(None).because_of(Code::NotAllowed, "This is not allowed here.")
    }

    /// The call was skipped and had no effect.
    #[must_use]
    pub fn not_started(why: &str) -> Self {
        Self::without_task(Some(TaskState::Cancelled)).because_of(Code::TaskNotStarted, why)
    }

    /// Returns the JSON text of a cached result that is reused after this many milliseconds. None
    /// if the text is no result.
    #[must_use]
    pub fn kept(result: &str, age_ms: u64) -> Option<String> {
        let mut result: Value = serde_json::from_str(result).ok()?;
        let metadata = result.get_mut("metadata")?.as_object_mut()?;
        metadata.insert("cached".to_owned(), Value::Bool(true));
        metadata.insert("ageMs".to_owned(), Value::from(age_ms));
        Some(result.to_string())
    }

    /// Adds the target and the operation of a call that was refused before there was a task.
    #[must_use]
    pub fn addressed(mut self, address: Option<&DelegateAddress>) -> Self {
        if let Some(address) = address {
            self.metadata.target = address.target;
            self.metadata.operation.clone_from(&address.operation);
        }
        self
    }

    fn without_task(task_state: Option<TaskState>) -> Self {
        Self {
            success: false,
            task_id: None,
            data: None,
            output: None,
            blob: None,
            error: None,
            task_state,
            metadata: DelegateMetadata::default(),
        }
    }

    fn ended(delegation: &Delegation, task: &Task, state: TaskState) -> Self {
        Self {
            success: false,
            task_id: Some(task.operation.to_string()),
            data: None,
            output: None,
            blob: None,
            error: None,
            task_state: Some(state),
            metadata: DelegateMetadata {
                target: Some(delegation.target),
                operation: Some(delegation.operation.clone()),
                agent_id: Some(task.agent),
                created_at: Some(task.created.to_string()),
                completed_at: Some(task.completed.to_string()),
                duration: Some(task.completed.since_ms(task.created)),
            },
        }
    }

    fn because_of(self, code: Code, message: &str) -> Self {
        let code = code.as_str();
        self.because(code, message, is_retryable(code))
    }

    fn because(mut self, code: &str, message: &str, retryable: bool) -> Self {
        self.error = Some(DelegateError {
            code: code.to_owned(),
            message: message.to_owned(),
            retryable,
            category: category_of_tool(code),
            details: Map::new(),
        });
        self
    }
}

// The blobs that a delegation names: passed on to its target if its caller may read them.

/// The most blobs that one delegation passes on: the first ones in its parameters.
pub const BLOBS_MAX: usize = 32;
/// The beginning of a blob's reference in a text.
const SCHEME: &str = "sha256:";
/// Bytes of a blob's reference.
const REFERENCE_BYTES: usize = SCHEME.len() + 64;

impl Delegation {
    /// Returns the digests of the blobs that its parameters name, each once, at most [`BLOBS_MAX`].
    #[must_use]
    pub fn digests(&self) -> Vec<Digest> {
        let mut found = Vec::new();
        for value in self.parameters.values() {
            collect(value, &mut found);
        }
        found
    }
}

fn collect(value: &Value, found: &mut Vec<Digest>) {
    match value {
        Value::String(text) => {
            for digest in named(text) {
                if found.len() < BLOBS_MAX && !found.contains(&digest) {
                    found.push(digest);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, found)),
        _ => {}
    }
}

/// The digests that a text names. A digest followed by more digits is none.
fn named(text: &str) -> impl Iterator<Item = Digest> {
    text.match_indices(SCHEME).filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        let after = rest.get(REFERENCE_BYTES..)?;
        let digest = Digest::from_reference(rest.get(..REFERENCE_BYTES)?)?;
        (!after.starts_with(|next: char| next.is_ascii_hexdigit())).then_some(digest)
    })
}

#[cfg(test)]
mod blobs_tests {
    use super::super::{Target, parse};
    use super::*;
    use serde_json::json;

    fn digests(sources: &[String]) -> Vec<Digest> {
        let call = json!({
            "target": "researcher", "operation": "synthesize_sources",
            "parameters": { "sources": sources, "format": "markdown" },
        });
        parse(&call.to_string(), &Target::ALL).unwrap().digests()
    }

    #[test]
    fn blobs_are_found_in_the_texts_of_the_parameters() {
        let one = Digest::of(b"one");
        let two = Digest::of(b"two");
        let first = one.reference();
        let second = two.reference();
        for (sources, expected) in [
            (vec![first.clone()], vec![one]),
            (vec![second.clone(), first.clone()], vec![two, one]),
            (vec![format!("ä{second}, then {first}.")], vec![two, one]),
            (vec![first.clone(), first.clone()], vec![one]),
            (vec!["no digest".to_owned()], Vec::new()),
            (vec![one.hex()], Vec::new()),
            (vec![format!("{first}0")], Vec::new()),
            (vec![first[..first.len() - 1].to_owned()], Vec::new()),
            (vec![format!("sha256:{}", "ä".repeat(32))], Vec::new()),
        ] {
            assert_eq!(digests(&sources), expected, "{sources:?}");
        }
    }

    #[test]
    fn no_more_blobs_are_found_than_may_be_handed_on() {
        let all: Vec<Digest> = (0..=BLOBS_MAX as u64)
            .map(|at| Digest::of(&at.to_be_bytes()))
            .collect();
        let sources: Vec<String> = all.iter().map(Digest::reference).collect();
        assert_eq!(digests(&sources), all[..BLOBS_MAX].to_vec());
    }
}

// Results of delegations as models see them: the content or the error, without facts about the
// task. Every later model call would pay for these.

/// Reduces a message with a result of `delegate` to its content. Other messages stay unchanged.
pub fn show_content(message: &mut Message) {
    let answers = message.answers.as_ref();
    let is_result = answers.is_some_and(|answers| answers.name == NAME)
        || message.origin.strip_prefix("tool:") == Some(NAME);
    if !is_result {
        return;
    }
    for part in &mut message.parts {
        if let Part::Text { text } = part
            && let Some(content) = content_of(text)
        {
            *text = content;
        }
    }
}

/// Returns the content of a result, or the error that it reports. None for any other text.
fn content_of(text: &str) -> Option<String> {
    let result: Value = serde_json::from_str(text).ok()?;
    result.get("metadata")?.as_object()?;
    if result.get("success")?.as_bool()? {
        return match result.get("output") {
            Some(output) => output.as_str().map(str::to_owned),
            None => result.get("data").map(Value::to_string),
        };
    }
    let error = result.get("error")?;
    let text_at = |name: &str| error.get(name)?.as_str();
    let again = match error.get("retryable")?.as_bool()? {
        true => " (The same call may succeed later.)",
        false => "",
    };
    Some(format!(
        "Error ({}): {}{again}",
        text_at("code")?,
        text_at("message")?
    ))
}

#[cfg(test)]
mod shown_tests {
    use super::show_content;
    use crate::thread::message::{Answers, Draft, Role};
    use crate::values::digest::Salt;
    use crate::values::id::{AgentId, OperationId};
    use crate::values::time::Timestamp;
    use crate::work::delegate::{DelegateResult, NAME, Target, Task, parse};
    use crate::work::step::Failure;

    fn shown(name: &str, text: &str) -> String {
        let answers = Answers {
            message: 1,
            index: 0,
            call_id: "c".to_owned(),
            name: name.to_owned(),
            failed: false,
        };
        let draft = Draft {
            answers: Some(answers),
            ..Draft::text(Role::Tool, format!("tool:{name}"), text)
        };
        let mut message = draft.at(2, Salt::default());
        show_content(&mut message);
        message.text()
    }

    #[test]
    fn a_model_is_shown_the_content_of_a_delegation_and_none_of_its_facts() {
        let arguments = r#"{"target":"worker","operation":"read_file","parameters":{"path":"a"}}"#;
        let delegation = parse(arguments, &Target::ALL).unwrap();
        let task = Task {
            operation: OperationId(crate::values::digest::Digest::of(b"task")),
            agent: AgentId(uuid::Uuid::nil()),
            created: Timestamp(1),
            completed: Timestamp(2),
        };
        let limit = Failure::passing("limit-reached", "too many at once");
        for (result, expected) in [
            (
                DelegateResult::succeeded(&delegation, &task, "three lines"),
                "three lines",
            ),
            (
                DelegateResult::succeeded(&delegation, &task, r#"{"lines": 3}"#),
                r#"{"lines":3}"#,
            ),
            (
                DelegateResult::failed(&delegation, &task, "no such file", true),
                "Error (TASK_FAILED): no such file",
            ),
            (
                DelegateResult::refused(&limit),
                "Error (LIMIT_REACHED): too many at once (The same call may succeed later.)",
            ),
        ] {
            let result = result.to_string();
            assert_eq!(shown(NAME, &result), expected);
            assert_eq!(
                shown("look", &result),
                result,
                "another tool's stays as it is"
            );
        }
        assert_eq!(shown(NAME, "no JSON"), "no JSON");
        assert_eq!(shown(NAME, r#"{"success":true}"#), r#"{"success":true}"#);
    }
}
