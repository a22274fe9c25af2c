//! Session files that other programs wrote for aix.
//!
//! A line of the type `session` has the session's id; without one, it is in the first line with a
//! `sessionId`. A line of the type `user` or `assistant` is a message, and its content follows that
//! of the message before it. A `user` line whose only block has the type `toolResult` or `notice`
//! is a result or a notice. Lines of other types are left out and named in [`Reading::left_out`],
//! as are sessions' lines after the first. An invalid line is skipped and named in
//! [`Reading::passed_over`].

use super::super::blocks::{Blocks, parts};
use super::FIELD;
use crate::thread::message::Role;
use crate::thread::model::Usage;
use crate::thread::transcript::adopt::{
    self, Adopted, Adoption, Answered, Dropped, ForeignMessage,
};
use crate::thread::transcript::fault::TranscriptFault;
use crate::thread::transcript::line::{self, Fields, Line, Records};
use crate::thread::transcript::{EMPTY_STATE, Header, LeftOut, Reading};
use crate::values::digest::Digest;
use crate::values::time::Timestamp;
use serde_json::Value;
use std::collections::HashMap;

/// Reads a file as one of another program, even if this host wrote it. Its visible content is used,
/// its records are ignored, and its turns get new ids.
///
/// # Errors
/// The first invalid element.
pub fn read_foreign(file: &[u8], adoption: &Adoption) -> Result<Reading, TranscriptFault> {
    read(file, adoption, Records::LeftOut)
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

pub(super) fn read(
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
        let Adopted {
            turns,
            homes,
            faults,
        } = adopt::turns(
            &self.said,
            self.said.len().checked_sub(1),
            session,
            adoption,
        )?;
        for fault in faults {
            self.dropped.passed_over.add(fault)?;
        }
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
                failed: block.flag("isError")?,
            };
            Ok((Role::Tool, Some(answers), Some(block.clone())))
        }
        Some("notice") if role == Role::User => Ok((Role::Notice, None, Some(block.clone()))),
        _ => Ok((role, None, None)),
    }
}
