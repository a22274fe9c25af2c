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
//! This module can be removed: delete this file (440 lines), and its arms in
//! `dialect.rs`.

use super::{Blocks, made_by, parts};
use crate::thread::message::{Message, Part, Role};
use crate::thread::model::Usage;
use crate::thread::transcript::adopt::{self, Answered, Dropped, ForeignMessage};
use crate::thread::transcript::exact::{self, Collected};
use crate::thread::transcript::line::{self, Fields, Line, OWN_DEPTH_MAX, Records, Written};
use crate::thread::transcript::{
    Adoption, EMPTY_STATE, Header, LeftOut, Reading, Transcript, TranscriptFault, TranscriptTurn,
    Unwritable,
};
use crate::values::digest::Digest;
use crate::values::time::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

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
        return read_lines(file, adoption, Records::Refused);
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

// Session files that other programs wrote for aix.
//
// A line of the type `session` has the session's id; without one, it is in the first line with a
// `sessionId`. A line of the type `user` or `assistant` is a message, and its content follows that
// of the message before it. A `user` line whose only block has the type `toolResult` or `notice`
// is a result or a notice. Lines of other types are left out and named in [`Reading::left_out`],
// as are sessions' lines after the first. An invalid line is skipped and named in
// [`Reading::passed_over`].

/// Reads a file as one of another program, even if this host wrote it. Its visible content is used,
/// its records are ignored, and its turns get new ids.
///
/// # Errors
/// The first invalid element.
pub fn read_foreign(file: &[u8], adoption: &Adoption) -> Result<Reading, TranscriptFault> {
    read_lines(file, adoption, Records::LeftOut)
}

/// A thread in the making.
struct Thread {
    session: Option<String>,
    created: Option<Timestamp>,
    time: Timestamp,
    said: Vec<ForeignMessage>,
    uuids: HashMap<String, usize>,
    blobs: Blocks,
    dropped: Dropped,
}

fn read_lines(
    file: &[u8],
    adoption: &Adoption,
    records: Records,
) -> Result<Reading, TranscriptFault> {
    let blobs = Blocks::from([(Digest::of(EMPTY_STATE), EMPTY_STATE.to_vec())]);
    let mut thread = Thread {
        session: None,
        created: None,
        time: Timestamp(0),
        said: Vec::new(),
        uuids: HashMap::new(),
        blobs,
        dropped: Dropped::default(),
    };
    for line in line::lines(file, records)? {
        let taken = match line {
            Ok(line) => {
                thread.check(&line, records)?;
                thread.take(&line)
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = taken {
            thread.dropped.passed_over.add(fault)?;
        }
    }
    thread.finish(adoption)
}

impl Thread {
    /// Checks that a line belongs to the file.
    ///
    /// # Errors
    /// It is of this host, or of another session: the file cannot be imported.
    fn check(&mut self, line: &Line, records: Records) -> Result<(), TranscriptFault> {
        let fields = line.fields();
        if line.map.contains_key(FIELD) && records == Records::Refused {
            let message = "it is a line of this host, and the session's line is not: export the session \
                 again, or take the field out";
            return Err(fields.fault(FIELD, message));
        }
        if !matches!(fields.text("type"), Ok(Some("user" | "assistant"))) {
            return Ok(());
        }
        let Some(session) = fields.short_text("sessionId")? else {
            return Ok(());
        };
        let known = self.session.get_or_insert_with(|| session.to_owned());
        if known == session {
            return Ok(());
        }
        let message =
            format!("it is `{session}`, and the file's session is `{known}`: divide the file");
        Err(fields.fault("sessionId", message))
    }

    fn take(&mut self, line: &Line) -> Result<(), TranscriptFault> {
        let fields = line.fields();
        let kind = fields.text_needed("type")?;
        let time = fields.time("timestamp")?;
        match kind {
            "session" if self.session.is_none() => {
                let id = fields.short_text("id")?.or(fields.short_text("sessionId")?);
                let id = id.ok_or_else(|| {
                    fields.fault("id", "it is missing, and the session's line has it: add it")
                })?;
                self.session = Some(id.to_owned());
            }
            "user" => self.say(line, &fields, Role::User, time)?,
            "assistant" => self.say(line, &fields, Role::Assistant, time)?,
            other => self.dropped.left_out.push(LeftOut {
                line: line.number,
                what: other.to_owned(),
            }),
        }
        self.created = self.created.or(time);
        Ok(())
    }

    fn say(
        &mut self,
        line: &Line,
        fields: &Fields<'_>,
        role: Role,
        time: Option<Timestamp>,
    ) -> Result<(), TranscriptFault> {
        let key = fields.word_needed("uuid")?.to_owned();
        if let Some(before) = self.uuids.insert(key.clone(), line.number) {
            return Err(fields.fault(
                "uuid",
                format!("line {before} has the uuid `{key}` too: each line has its own"),
            ));
        }
        // A line without a time has the time of the line before it.
        self.time = time.unwrap_or(self.time);
        let message = fields.object_needed("message")?;
        let expected = fields.text_needed("type")?;
        let is = message.text_needed("role")?;
        if is != expected {
            return Err(message.fault(
                "role",
                format!("it is `{is}` in a line of the type `{expected}`: make them the same"),
            ));
        }
        let model = message
            .short_text("model")?
            .map(str::to_owned)
            .filter(|_| role == Role::Assistant);
        let (role, answers, of) = inner(&message, role)?;
        let said = parts(
            of.as_ref().unwrap_or(&message),
            "content",
            model.as_deref().unwrap_or_default(),
            &mut self.blobs,
        )?;
        let origin = match (&answers, &model) {
            (Some(answers), _) => format!("tool:{}", answers.name),
            (None, Some(model)) => format!("model:{model}"),
            (None, None) => "aix".to_owned(),
        };
        self.said.push(ForeignMessage {
            compacts: None,
            line: line.number,
            bytes: line.bytes,
            key,
            parent: self.said.len().checked_sub(1),
            time: self.time,
            role,
            parts: said,
            origin,
            answers,
            end: adopt::end(&message)?,
            usage: Usage::default(),
            model,
        });
        Ok(())
    }

    fn finish(mut self, adoption: &Adoption) -> Result<Reading, TranscriptFault> {
        let Some(id) = self.session else {
            return Err(TranscriptFault::line(
                0,
                "no line says the session's id: put a line `{\"type\":\"session\",\"id\":…}` first",
            ));
        };
        let session = adopt::session_id(&id);
        let head = self.said.len().checked_sub(1);
        let passed_over = &mut self.dropped.passed_over;
        let (turns, homes) = adopt::turns(&self.said, head, session, adoption, passed_over)?;
        let header = Header {
            session,
            name: None,
            agent_path: adoption.agent_path.clone(),
            definition: adoption.definition.clone(),
            created: self.created.unwrap_or_default(),
            head: homes.last().copied(),
            parent: None,
            labels: Vec::new(),
        };
        adopt::reading(header, turns, self.blobs, self.dropped)
    }
}

/// Returns the role of a user's line. The role is not the user's if its only block is a tool's
/// result or a notice.
fn inner<'a>(
    message: &Fields<'a>,
    role: Role,
) -> Result<(Role, Option<Answered>, Option<Fields<'a>>), TranscriptFault> {
    let blocks = if message.value("content").is_some_and(Value::is_array) {
        message.objects("content")?
    } else {
        Vec::new()
    };
    let [block] = blocks.as_slice() else {
        return Ok((role, None, None));
    };
    match block.text("type")? {
        Some("toolResult") if role == Role::User => {
            let call_id = block.word_needed("toolCallId")?.to_owned();
            let name = block.word_needed("toolName")?.to_owned();
            let answers = Answered {
                call_id,
                name,
                failed: block.flag("isError")?.unwrap_or_default(),
            };
            Ok((Role::Tool, Some(answers), Some(block.clone())))
        }
        Some("notice") if role == Role::User => Ok((Role::Notice, None, Some(block.clone()))),
        _ => Ok((role, None, None)),
    }
}
