//! pi's dialect: the whole tree, in the entries of a session file of pi's, version 3.
//!
//! ```text
//! {"type":"session","version":3,"id":…,"timestamp":…,"cwd":<the agent's path>,"parentSession":"<id>.jsonl"?}
//! custom agent-host.session          the root of the tree
//! session_info                       the session's name, if it has one
//! custom agent-host.blob …           chunks of blobs
//! message | custom_message           what pi shows of a message: user, assistant, toolResult; a notice as custom_message
//! compaction                         the message of a compaction: its summary, and the first entry of the turns that were kept
//! custom agent-host.message          the message itself, behind what pi shows of it
//! custom agent-host.turn             the turn, behind its messages; the first entry of a turn after it is its child
//! label …                            bookmarks
//! custom agent-host.end              the last entry, a child of the head: pi goes on from there
//! ```
//!
//! Entries have ids of 8 hexadecimal digits that are derived from the session and their order. pi
//! sends `custom` entries to no model. pi requires more of an assistant's message than a transcript
//! has: `api` is guessed from the provider, costs are 0, a turn's usage is at its last assistant
//! message, arguments of a call other than a JSON object are under `arguments`.
//!
//! This module can be removed: delete this file and `pi/` (1,020 lines), and its arms in
//! `dialect.rs`.

mod foreign;

use super::{made_by, namespace};
use crate::thread::compaction::Mark;
use crate::thread::cut_off::CutOff;
use crate::thread::message::{Message, MessageId, Part, Role};
use crate::thread::model::Usage;
use crate::thread::transcript::exact::{self, Collected};
use crate::thread::transcript::line::{self, Fields, OWN_DEPTH_MAX, Records, Written};
use crate::thread::transcript::{
    Adoption, Header, Reading, Transcript, TranscriptFault, TranscriptTurn, Unwritable,
};
use crate::thread::turn::TurnEnd;
use crate::values::digest::Digest;
use crate::values::id::TurnId;
use crate::values::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
pub use foreign::read_foreign;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The version of pi's format.
pub const VERSION: u64 = 3;

/// Writes a transcript.
///
/// # Errors
/// It is inconsistent, or it could not be read back: see [`Unwritable`].
pub fn write(transcript: &Transcript) -> Result<Vec<u8>, Unwritable> {
    transcript.check()?;
    let header = &transcript.header;
    let seed = header.session.0.as_bytes().to_vec();
    let mut entries = Entries {
        written: Written::default(),
        seed,
        count: 0,
        ids: HashSet::new(),
        firsts: HashMap::new(),
    };
    entries
        .written
        .push(&first_line(header), || "the session".to_owned())?;
    let created = header.created;
    let mut root = entries.custom(
        None,
        created,
        exact::SESSION,
        &exact::session(header),
        || "the session".to_owned(),
    )?;
    if let Some(name) = &header.name {
        root = entries.entry(
            "session_info",
            Some(&root),
            created,
            json!({ "name": name }),
            || "the session's name".to_owned(),
        )?;
    }
    for blob in exact::blobs(&transcript.blobs) {
        entries.custom(Some(&root), created, exact::BLOB, &blob, || {
            "a blob".to_owned()
        })?;
    }
    let mut tails: HashMap<TurnId, String> = HashMap::new();
    for turn in &transcript.turns {
        let from = turn
            .node
            .parent
            .and_then(|parent| tails.get(&parent))
            .unwrap_or(&root)
            .clone();
        let tail = entries.turn(turn, from, transcript)?;
        tails.insert(turn.node.id, tail);
    }
    let tail = |turn: &TurnId| tails.get(turn).unwrap_or(&root);
    let at = transcript
        .turns
        .last()
        .map_or(created, |turn| turn.committed);
    for label in &header.labels {
        let target = tail(&label.turn);
        entries.entry(
            "label",
            Some(target),
            at,
            json!({ "targetId": target, "label": label.label }),
            || "a label".to_owned(),
        )?;
    }
    let head = header.head.as_ref().map_or(&root, tail);
    entries.custom(Some(head), at, exact::END, &exact::end(transcript), || {
        "the end".to_owned()
    })?;
    Ok(entries.written.finish())
}

/// The first line of a file, which identifies its session.
fn first_line(header: &Header) -> Value {
    let mut first = json!({
        "type": "session", "version": VERSION, "id": header.session, "timestamp": header.created.to_string(), "cwd": header.agent_path,
    });
    if let (Value::Object(fields), Some(parent)) = (&mut first, header.parent) {
        fields.insert("parentSession".to_owned(), format!("{parent}.jsonl").into());
    }
    first
}

/// Reads a file, whether written by this host or by another program; for the latter see
/// [`read_foreign`].
///
/// # Errors
/// The first fault for which the whole file is refused.
pub fn read(file: &[u8], adoption: &Adoption) -> Result<Reading, TranscriptFault> {
    let second = line::split(file)?.into_iter().nth(1);
    let second = second.and_then(|(number, text)| {
        let text = text.ok()?;
        line::parse(number, text, OWN_DEPTH_MAX).ok()
    });
    let own = second.is_some_and(|line| {
        line.map.get("customType").and_then(Value::as_str) == Some(exact::SESSION)
    });
    if !own {
        return foreign::read(file, adoption, Records::Refused);
    }
    let mut collected = Collected::default();
    for (number, text) in line::texts(file)? {
        let line = line::parse(number, text, OWN_DEPTH_MAX)?;
        if let Some(name) = line
            .map
            .get("customType")
            .and_then(Value::as_str)
            .filter(|name| name.starts_with("agent-host."))
        {
            // pi's form of a notice has one of our names too.
            if line.map.get("type").and_then(Value::as_str) == Some("custom") {
                collected.take(
                    number,
                    "/data",
                    name,
                    line.map.get("data").unwrap_or(&Value::Null),
                )?;
            }
        }
    }
    collected.reading(file, write)
}

/// Entries in the making.
struct Entries {
    written: Written,
    seed: Vec<u8>,
    count: u64,
    ids: HashSet<String>,
    /// The first entry of each turn so far.
    firsts: HashMap<TurnId, String>,
}

impl Entries {
    /// An unused entry id.
    fn id(&mut self) -> String {
        loop {
            self.count += 1;
            let Digest(digest) =
                Digest::of_parts(&[b"pi entry", &self.seed, &self.count.to_be_bytes()]);
            let id = hex::encode(digest.first_chunk::<4>().unwrap_or(&[0; 4]));
            if self.ids.insert(id.clone()) {
                return id;
            }
        }
    }

    /// Adds an entry and returns its id.
    fn entry(
        &mut self,
        kind: &str,
        parent: Option<&str>,
        time: Timestamp,
        fields: Value,
        what: impl Fn() -> String,
    ) -> Result<String, Unwritable> {
        let id = self.id();
        let mut line = Map::new();
        line.insert("type".to_owned(), kind.into());
        line.insert("id".to_owned(), id.as_str().into());
        line.insert("parentId".to_owned(), parent.into());
        line.insert("timestamp".to_owned(), time.to_string().into());
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        self.written.push(&Value::Object(line), what)?;
        Ok(id)
    }

    /// Adds a record.
    fn custom(
        &mut self,
        parent: Option<&str>,
        time: Timestamp,
        name: &str,
        record: &Value,
        what: impl Fn() -> String,
    ) -> Result<String, Unwritable> {
        self.entry(
            "custom",
            parent,
            time,
            json!({ "customType": name, "data": record }),
            what,
        )
    }

    /// Adds a turn after an entry and returns the id of its last entry.
    fn turn(
        &mut self,
        turn: &TranscriptTurn,
        mut tail: String,
        transcript: &Transcript,
    ) -> Result<String, Unwritable> {
        let shown = Shown::new(turn, &transcript.blobs);
        for (id, message) in (turn.node.first_message..).zip(&turn.messages) {
            let what = || format!("message {id} of turn {}", turn.node.id);
            if let Some(message) = message {
                let (kind, fields) = match Mark::of(message) {
                    // If nothing is kept, pi keeps the entries after the one before.
                    Some(mark) => {
                        let kept = mark
                            .first_kept
                            .and_then(|turn| self.firsts.get(&turn))
                            .unwrap_or(&tail);
                        ("compaction", compaction(message, &mark, kept))
                    }
                    None => shown.entry(message),
                };
                tail = self.entry(kind, Some(&tail), turn.committed, fields, what)?;
                self.firsts
                    .entry(turn.node.id)
                    .or_insert_with(|| tail.clone());
            }
            tail = self.custom(
                Some(&tail),
                turn.committed,
                exact::MESSAGE,
                &exact::message(id, message.as_ref()),
                what,
            )?;
            self.firsts
                .entry(turn.node.id)
                .or_insert_with(|| tail.clone());
        }
        let what = || format!("turn {}", turn.node.id);
        self.custom(
            Some(&tail),
            turn.committed,
            exact::TURN,
            &exact::turn(turn),
            what,
        )
    }
}

// Tokens as pi counts them: those read from a cache, and those written to it, apart from the rest
// of the prompt.

/// Returns a usage in pi's fields. Costs are not known here and are 0.
fn shown_usage(usage: Usage) -> Value {
    json!({
        "input": usage.input_tokens.saturating_sub(usage.cached_tokens), "output": usage.output_tokens, "cacheRead": usage.cached_tokens,
        "cacheWrite": 0, "totalTokens": usage.total(), "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
    })
}

/// Reads the usage of an assistant's message. Missing fields are zero.
fn read_usage(message: &Fields<'_>) -> Result<Usage, TranscriptFault> {
    let Some(used) = message.object("usage")? else {
        return Ok(Usage::default());
    };
    let cached_tokens = used.count("cacheRead")?;
    let prompt = used
        .count("input")?
        .saturating_add(cached_tokens)
        .saturating_add(used.count("cacheWrite")?);
    Ok(Usage {
        input_tokens: prompt,
        output_tokens: used.count("output")?,
        cached_tokens,
    })
}

// The form of a turn's messages for pi.

/// Bytes of the images shown in one message; further images are named. In base64 they leave room in
/// the line for the rest.
const IMAGE_BYTES_MAX: usize = 4 << 20;

/// A turn in pi's form.
struct Shown<'a> {
    turn: &'a TranscriptTurn,
    blobs: &'a BTreeMap<Digest, Vec<u8>>,
    /// Its last assistant message, which has the turn's usage and its end.
    last: Option<MessageId>,
}

impl<'a> Shown<'a> {
    fn new(turn: &'a TranscriptTurn, blobs: &'a BTreeMap<Digest, Vec<u8>>) -> Self {
        let said = turn
            .messages
            .iter()
            .flatten()
            .rev()
            .find(|message| message.role == Role::Assistant);
        Self {
            turn,
            blobs,
            last: said.map(|message| message.id),
        }
    }

    /// The type and the specific fields of a message's entry.
    fn entry(&self, message: &Message) -> (&'static str, Value) {
        let timestamp = self.turn.committed.0;
        match (message.role, &message.answers) {
            (Role::Notice, _) => {
                let content = self.content(message);
                // Models see notices, so it is an entry that pi sends to a model.
                (
                    "custom_message",
                    json!({ "customType": format!("{}.notice", namespace()), "content": content, "display": true }),
                )
            }
            (Role::Assistant, _) => ("message", json!({ "message": self.assistant(message) })),
            (Role::Tool, Some(answers)) => {
                let said = json!({
                    "role": "toolResult", "toolCallId": answers.call_id, "toolName": answers.name, "content": self.content(message),
                    "isError": answers.failed, "timestamp": timestamp,
                });
                ("message", json!({ "message": said }))
            }
            // A result that answers no call is an ordinary message.
            (Role::User | Role::Tool, _) => (
                "message",
                json!({ "message": { "role": "user", "content": self.content(message), "timestamp": timestamp } }),
            ),
        }
    }

    /// Text and images, and the rest as text.
    fn content(&self, message: &Message) -> Vec<Value> {
        let mut room = IMAGE_BYTES_MAX;
        message
            .parts
            .iter()
            .filter_map(|part| self.block(part, &mut room))
            .collect()
    }

    /// Returns the block that shows a part. Images are shown while there is room for their bytes.
    fn block(&self, part: &Part, room: &mut usize) -> Option<Value> {
        match part {
            Part::Text { text } => Some(json!({ "type": "text", "text": text })),
            Part::Blob {
                digest,
                media_type,
                size,
            } => Some(match self.blobs.get(digest) {
                Some(bytes) if media_type.starts_with("image/") && bytes.len() <= *room => {
                    *room -= bytes.len();
                    json!({ "type": "image", "data": STANDARD.encode(bytes), "mimeType": media_type })
                }
                _ => {
                    json!({ "type": "text", "text": format!("[{media_type}, {size} bytes, {}]", digest.reference()) })
                }
            }),
            _ => None,
        }
    }

    fn assistant(&self, message: &Message) -> Value {
        let (provider, model) = made_by(message, &self.turn.node.models);
        let content: Vec<Value> = message.parts.iter().filter_map(said).collect();
        let is_last = self.last == Some(message.id);
        let used = if is_last {
            shown_usage(self.turn.node.usage)
        } else {
            shown_usage(Usage::default())
        };
        let stop = match self.turn.node.end {
            TurnEnd::Aborted if is_last => "aborted",
            TurnEnd::Failed if is_last => "error",
            _ if message.calls().next().is_some() => "toolUse",
            _ if CutOff::of_parts(&message.parts) == Some(CutOff::Length) => "length",
            TurnEnd::Replied | TurnEnd::Completed | TurnEnd::Failed | TurnEnd::Aborted => "stop",
        };
        json!({
            "role": "assistant", "content": content, "api": api(provider), "provider": provider, "model": model, "usage": used,
            "stopReason": stop, "timestamp": self.turn.committed.0,
        })
    }
}

/// Returns the fields of pi's entry for a compaction with this first kept entry.
fn compaction(message: &Message, mark: &Mark, kept: &str) -> Value {
    let details = json!({ "summarizedThrough": mark.summarized_through, "firstKept": mark.first_kept, "tokensAfter": mark.tokens_after });
    json!({ "summary": message.text(), "firstKeptEntryId": kept, "tokensBefore": mark.tokens_before, "details": details })
}

/// A block of an assistant's message. pi does not allow images there.
fn said(part: &Part) -> Option<Value> {
    match part {
        Part::Call {
            call_id,
            name,
            arguments,
        } => {
            let object = serde_json::from_str::<Value>(arguments)
                .ok()
                .filter(Value::is_object);
            let arguments = object.unwrap_or_else(|| json!({ "arguments": arguments }));
            Some(json!({ "type": "toolCall", "id": call_id, "name": name, "arguments": arguments }))
        }
        Part::Opaque { value, .. } => thinking(value),
        Part::Blob {
            digest,
            media_type,
            size,
        } => Some(
            json!({ "type": "text", "text": format!("[{media_type}, {size} bytes, {}]", digest.reference()) }),
        ),
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
    }
}

/// A thinking block, for those opaque parts that contain thinking. A provider's other opaque data
/// is not shown.
fn thinking(value: &Value) -> Option<Value> {
    let text = value
        .get("thinking")
        .and_then(Value::as_str)
        .filter(|_| value.get("type").and_then(Value::as_str) == Some("thinking"))?;
    let signature = value
        .get("signature")
        .or_else(|| value.get("thinkingSignature"))
        .and_then(Value::as_str);
    Some(match signature {
        Some(signature) => {
            json!({ "type": "thinking", "thinking": text, "thinkingSignature": signature })
        }
        None => json!({ "type": "thinking", "thinking": text }),
    })
}

/// The API that pi would use with a provider.
fn api(provider: &str) -> &'static str {
    match provider {
        "anthropic" => "anthropic-messages",
        "openai" => "openai-completions",
        "google" => "google-generative-ai",
        _ => namespace(),
    }
}
