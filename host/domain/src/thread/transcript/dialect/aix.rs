//! aix's dialect: one thread, line by line, in the form that its reader of pi-agent sessions
//! accepts.
//!
//! ```text
//! {"type":"session","version":"1.0","id":…,"timestamp":…,"cwd":<the agent's path>,"agentHost":{"agent-host.session":…}}
//! {"type":"agent-host.blob","agentHost":{"agent-host.blob":…}}
//! {"type":"user"|"assistant","uuid":…,"sessionId":…,"timestamp":…,"message":{"role",…,"content":[…],"model"?},"agentHost":{…}}
//! {"type":"agent-host.turn","agentHost":{"agent-host.turn":…}}
//! {"type":"agent-host.end","agentHost":{"agent-host.end":…}}
//! ```
//!
//! aix's reader decodes each line into fixed fields and ignores unknown fields and types, so
//! `agentHost` and the lines of records do not disturb it. Three of its properties determine what
//! is written. First, the version must be a text: the reader drops a line whose field has another
//! type. Second, a line may have 10 MiB with its line break: the reader stops silently at a longer
//! one. So a message that would make one is an error here, and long content belongs into a blob,
//! which is written in chunks. Third, the reader takes the `text` blocks of a message and ignores a
//! message without any. So results of tools and notices are `user` lines with blocks of other
//! types, and do not divide a turn; other `user` lines do. The last line of an assistant has the
//! turn's id as its `uuid`, which aix then uses as the id of its own turn.
//!
//! A flat file has one thread, and so has a written file:
//! [`crate::thread::transcript::Transcript::thread`] takes one out of a tree.
//!
//! This module can be removed: delete this file and `aix/` (440 lines), and its arms in
//! `dialect.rs`.

mod foreign;

pub use foreign::read_foreign;

use super::blocks::made_by;
use crate::thread::message::{Message, Part, Role};
use crate::thread::transcript::exact::{self, Collected};
use crate::thread::transcript::fault::{TranscriptFault, Unwritable};
use crate::thread::transcript::line::{self, OWN_DEPTH_MAX, Records, Written};
use crate::thread::transcript::{Adoption, Reading, Transcript, TranscriptTurn};
use serde_json::{Map, Value, json};

/// The field for this host's own data. aix compares names without regard to case and has no such
/// field.
pub const FIELD: &str = "agentHost";
/// The version of a session's line.
pub const VERSION: &str = "1.0";

/// Writes a transcript with a single thread.
///
/// # Errors
/// It is a tree, it is inconsistent, or it could not be read back: see [`Unwritable`].
pub fn write(transcript: &Transcript) -> Result<Vec<u8>, Unwritable> {
    transcript.check()?;
    let mut before = None;
    for turn in &transcript.turns {
        if turn.node.parent != before {
            return Err(Unwritable::Forked { turn: turn.node.id });
        }
        before = Some(turn.node.id);
    }
    let header = &transcript.header;
    let mut written = Written::default();
    let first = json!({
        "type": "session", "version": VERSION, "id": header.session, "timestamp": header.created.to_string(), "cwd": header.agent_path,
        FIELD: { exact::SESSION: exact::session(header) },
    });
    written.push(&first, || "the session".to_owned())?;
    for blob in exact::blobs(&transcript.blobs) {
        written.push(&record(exact::BLOB, &blob), || "a blob".to_owned())?;
    }
    for turn in &transcript.turns {
        write_turn(&mut written, turn, transcript)?;
    }
    written.push(&record(exact::END, &exact::end(transcript)), || {
        "the end".to_owned()
    })?;
    Ok(written.finish())
}

/// A line with a record and nothing else.
fn record(name: &str, record: &Value) -> Value {
    json!({ "type": name, FIELD: { name: record } })
}

fn write_turn(
    written: &mut Written,
    turn: &TranscriptTurn,
    transcript: &Transcript,
) -> Result<(), Unwritable> {
    let said = turn
        .messages
        .iter()
        .flatten()
        .rev()
        .find(|message| message.role == Role::Assistant);
    let last = said.map(|message| message.id);
    for (id, message) in (turn.node.first_message..).zip(&turn.messages) {
        let what = || format!("message {id} of turn {}", turn.node.id);
        let own = exact::message(id, message.as_ref());
        let Some(message) = message else {
            written.push(&record(exact::MESSAGE, &own), what)?;
            continue;
        };
        let uuid = if last == Some(id) {
            turn.node.id.to_string()
        } else {
            format!("{}.{id}", turn.node.id.0.short())
        };
        let (kind, shown) = shown(message, turn);
        let line = json!({
            "type": kind, "uuid": uuid, "sessionId": transcript.header.session, "timestamp": turn.committed.to_string(), "message": shown,
            FIELD: { exact::MESSAGE: own },
        });
        written.push(&line, what)?;
    }
    written.push(&record(exact::TURN, &exact::turn(turn)), || {
        format!("turn {}", turn.node.id)
    })
}

/// The type of a message's line, and its visible content for aix.
fn shown(message: &Message, turn: &TranscriptTurn) -> (&'static str, Value) {
    let blocks: Vec<Value> = message.parts.iter().filter_map(block).collect();
    match (message.role, &message.answers) {
        (Role::Assistant, _) => {
            let (_, model) = made_by(message, &turn.node.models);
            (
                "assistant",
                json!({ "role": "assistant", "content": blocks, "model": model }),
            )
        }
        (Role::User, _) | (Role::Tool, None) => {
            ("user", json!({ "role": "user", "content": blocks }))
        }
        (Role::Tool, Some(answers)) => {
            let id = &answers.call_id;
            let name = &answers.name;
            let failed = answers.failed;
            let result = json!({ "type": "toolResult", "toolCallId": id, "toolName": name, "isError": failed, "content": blocks });
            ("user", json!({ "role": "user", "content": [result] }))
        }
        (Role::Notice, _) => (
            "user",
            json!({ "role": "user", "content": [{ "type": "notice", "content": blocks }] }),
        ),
    }
}

/// Returns the block that shows a part. A provider's opaque data is not shown.
fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text { text } => json!({ "type": "text", "text": text }),
        Part::Blob {
            digest,
            media_type,
            size,
        } => {
            json!({ "type": "blob", "digest": digest.reference(), "mediaType": media_type, "size": size })
        }
        Part::Call {
            call_id,
            name,
            arguments,
        } => json!({ "type": "toolCall", "id": call_id, "name": name, "arguments": arguments }),
        Part::Opaque { .. } => return None,
    })
}

/// Reads a file, whether written by this host or by another program; for the latter see
/// [`read_foreign`].
///
/// # Errors
/// The first fault for which the whole file is refused.
pub fn read(file: &[u8], adoption: &Adoption) -> Result<Reading, TranscriptFault> {
    let first = line::split(file)?.into_iter().next();
    let first = first.and_then(|(number, text)| {
        let text = text.ok()?;
        line::parse(number, text, OWN_DEPTH_MAX).ok()
    });
    if first.is_none_or(|line| own(&line.map).is_none()) {
        return foreign::read(file, adoption, Records::Refused);
    }
    let mut collected = Collected::default();
    for (number, text) in line::texts(file)? {
        let line = line::parse(number, text, OWN_DEPTH_MAX)?;
        let records = own(&line.map).ok_or_else(|| {
            let message = format!(
                "it has no `{FIELD}`, as all lines of this host have: take it out, or read \
                         the file as another program's"
            );
            TranscriptFault::line(number, message)
        })?;
        for (name, record) in records {
            collected.take(number, &format!("/{FIELD}/{name}"), name, record)?;
        }
    }
    collected.reading(file, write)
}

/// Returns this host's own fields of a line.
fn own(map: &Map<String, Value>) -> Option<&Map<String, Value>> {
    map.get(FIELD).and_then(Value::as_object)
}
