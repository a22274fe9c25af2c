//! Between the WIT types and the host's own: one file for each direction and subject, and the
//! reading of what guests write.

pub(crate) mod connector;
pub(crate) mod describe;
pub(crate) mod step;
pub(crate) mod tool;
pub(crate) mod trigger;

use crate::bindings::agent::agent_host::plugin::types;
use crate::bindings::agent::exports::agent_host::plugin::agent;
use domain::digest::Digest;
use domain::json::{self, DEPTH_MAX, NotTaken};
use domain::limits::{STEP_BYTES_MAX, TIMER_MS_MAX};
use domain::message::{Answers, Message, Part, Role};
use domain::step::{News, OperationOutcome};
use domain::tool::{ClientAction, EffectClass, ToolDefinition};
use serde_json::Value;

/// Turns a variant into the one of the same name in another enum.
macro_rules! same {
    ($value:expr, $from:ty => $to:ty: $($variant:ident),+) => {
        match $value {
            $(<$from>::$variant => <$to>::$variant,)+
        }
    };
}
pub(crate) use same;

/// Something a guest returned that is not acceptable: which field, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unacceptable(pub(crate) String);

/// Reads what a guest returned, field by field, and counts its bytes.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    bytes: usize,
}

pub(crate) type Read<T> = Result<T, Unacceptable>;

pub(crate) fn unacceptable<T>(field: &str, why: impl std::fmt::Display) -> Read<T> {
    Err(Unacceptable(format!("`{field}` {why}")))
}

pub(crate) fn check_length(field: &str, bytes: usize, bytes_max: usize) -> Read<()> {
    if bytes > bytes_max {
        return unacceptable(
            field,
            format_args!("is {bytes} bytes long; {bytes_max} at most"),
        );
    }
    Ok(())
}

pub(crate) fn check_count(field: &str, count: usize, count_max: usize) -> Read<()> {
    if count > count_max {
        return unacceptable(field, format_args!("are {count}; {count_max} at most"));
    }
    Ok(())
}

/// A time from now on, of at most a year.
pub(crate) fn milliseconds(field: &str, ms: u64) -> Read<u64> {
    if ms > TIMER_MS_MAX {
        return unacceptable(
            field,
            format_args!("is {ms}; {TIMER_MS_MAX} (a year) at most"),
        );
    }
    Ok(ms)
}

impl Reader {
    /// Counts bytes towards the limit of everything that one call returns.
    pub(crate) fn count(&mut self, field: &str, bytes: usize) -> Read<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > STEP_BYTES_MAX {
            return unacceptable(
                field,
                format_args!("brings what was returned over {STEP_BYTES_MAX} bytes"),
            );
        }
        Ok(())
    }

    /// Reads each entry of a list under a name that has its index.
    pub(crate) fn each<T, U>(
        &mut self,
        field: &str,
        list: Vec<T>,
        read: impl Fn(&mut Self, &str, T) -> Read<U>,
    ) -> Read<Vec<U>> {
        list.into_iter()
            .enumerate()
            .map(|(index, entry)| read(self, &format!("{field}[{index}]"), entry))
            .collect()
    }

    /// Text of any length that fits the whole.
    pub(crate) fn text(&mut self, field: &str, text: String) -> Read<String> {
        self.count(field, text.len())?;
        Ok(text)
    }

    /// Bytes up to a limit of their own.
    pub(crate) fn bytes(&mut self, field: &str, bytes: Vec<u8>, bytes_max: usize) -> Read<Vec<u8>> {
        self.count(field, bytes.len())?;
        check_length(field, bytes.len(), bytes_max)?;
        Ok(bytes)
    }

    pub(crate) fn json(&mut self, field: &str, text: &str) -> Read<Value> {
        self.count(field, text.len())?;
        json::parse(text).or_else(|refused| match refused {
            NotTaken::Malformed(error) => unacceptable(field, format_args!("is not JSON: {error}")),
            NotTaken::TooDeep => unacceptable(
                field,
                format_args!("is nested deeper than {DEPTH_MAX} levels of lists and objects"),
            ),
            NotTaken::Duplicate { key } => unacceptable(
                field,
                format_args!("has an object with the key `{key}` twice"),
            ),
        })
    }

    pub(crate) fn object(&mut self, field: &str, text: &str) -> Read<Value> {
        match self.json(field, text)? {
            object @ Value::Object(_) => Ok(object),
            _ => unacceptable(field, "is not a JSON object"),
        }
    }

    /// A JSON Schema: an object or a boolean.
    pub(crate) fn schema(&mut self, field: &str, text: &str) -> Read<Value> {
        match self.json(field, text)? {
            schema @ (Value::Object(_) | Value::Bool(_)) => Ok(schema),
            _ => unacceptable(field, "is not a JSON Schema"),
        }
    }

    /// Content that a guest wrote: text and blobs.
    pub(crate) fn parts(&mut self, field: &str, parts: Vec<types::Part>) -> Read<Vec<Part>> {
        self.each(field, parts, Self::part)
    }

    fn part(&mut self, field: &str, part: types::Part) -> Read<Part> {
        match part {
            types::Part::Text(text) => Ok(Part::Text {
                text: self.text(field, text)?,
            }),
            types::Part::Blob(types::Blob {
                handle,
                media_type,
                size,
            }) => {
                self.count(field, media_type.len())?;
                let Some(digest) = Digest::from_reference(&handle) else {
                    return unacceptable(
                        field,
                        "names no blob: a handle is `sha256:` and 64 hexadecimal digits",
                    );
                };
                Ok(Part::Blob {
                    digest,
                    media_type,
                    size,
                })
            }
            types::Part::Call(_) => {
                unacceptable(field, "is a model's call, which a guest cannot write")
            }
            types::Part::Opaque(_) => unacceptable(field, "is opaque, which a guest cannot write"),
        }
    }

    pub(crate) fn client_action(
        &mut self,
        field: &str,
        action: types::ClientAction,
    ) -> Read<ClientAction> {
        let types::ClientAction {
            widget,
            props,
            response_schema,
            lock_input,
        } = action;
        Ok(ClientAction {
            widget: self.text(&format!("{field}.widget"), widget)?,
            props: self.object(&format!("{field}.props"), &props)?,
            response_schema: response_schema
                .map(|schema| self.schema(&format!("{field}.response-schema"), &schema))
                .transpose()?,
            lock_input,
        })
    }
}

/// A message as a guest sees it: without providers' ids and without what only a provider reads.
pub(crate) fn guest_message(message: Message) -> types::Message {
    let Message {
        id,
        role,
        parts,
        origin,
        untrusted,
        speaker: _,
        answers,
        marked_elsewhere: _,
        salt: _,
    } = message;
    types::Message {
        id,
        role: same!(role, Role => types::Role: User, Assistant, Tool, Notice),
        parts: guest_parts(parts),
        origin,
        untrusted,
        answers: answers.map(|Answers { message, index, .. }| (message, index)),
    }
}

fn guest_parts(parts: Vec<Part>) -> Vec<types::Part> {
    let mut calls = 0_u32..;
    let mut part = |part| match part {
        Part::Text { text } => types::Part::Text(text),
        Part::Blob {
            digest,
            media_type,
            size,
        } => types::Part::Blob(types::Blob {
            handle: digest.reference(),
            media_type,
            size,
        }),
        Part::Call {
            call_id: _,
            name,
            arguments,
        } => types::Part::Call(types::ModelCall {
            index: calls.next().unwrap_or(u32::MAX),
            name,
            arguments,
        }),
        Part::Opaque { value, .. } => {
            types::Part::Opaque(Digest::of(value.to_string().as_bytes()).reference())
        }
    };
    parts.into_iter().map(&mut part).collect()
}

/// A tool as a guest sees it.
pub(crate) fn guest_tool(tool: &ToolDefinition) -> types::ToolDefinition {
    types::ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        arguments: tool.arguments.to_string(),
        results: tool.results.as_ref().map(ToString::to_string),
        capabilities: tool.capabilities.clone(),
        effect: same!(
            tool.effect,
            EffectClass => types::EffectClass: ReadOnly, Idempotent, NonIdempotent
        ),
        destructive: tool.destructive,
        time_limit_ms: tool.time_limit_ms,
    }
}

/// News as a guest hears it.
pub(crate) fn guest_news(news: &[News]) -> Vec<agent::News> {
    let one = |news: &News| match news {
        News::Opened => agent::News::Opened,
        News::Said { messages } => agent::News::Said(messages.clone()),
        News::Settled { key, outcome } => agent::News::Settled(agent::Settlement {
            key: key.clone(),
            outcome: guest_outcome(outcome),
        }),
    };
    news.iter().map(one).collect()
}

fn guest_outcome(outcome: &OperationOutcome) -> agent::Outcome {
    match outcome {
        OperationOutcome::Message { id } => agent::Outcome::Message(*id),
        OperationOutcome::Parts { parts } => agent::Outcome::Parts(guest_parts(parts.clone())),
        OperationOutcome::Value { value } => agent::Outcome::Value(value.to_string()),
        OperationOutcome::Elapsed => agent::Outcome::Elapsed,
        OperationOutcome::Failed { failure } => agent::Outcome::Failed(agent::Failure {
            code: failure.code.clone(),
            message: failure.message.clone(),
            retryable: failure.retryable,
        }),
        OperationOutcome::Denied => agent::Outcome::Denied,
        OperationOutcome::TimedOut => agent::Outcome::TimedOut,
        OperationOutcome::Cancelled => agent::Outcome::Cancelled,
        OperationOutcome::Unknown { .. } => agent::Outcome::Unknown,
    }
}
