//! Session files that pi itself wrote.
//!
//! | entry | what becomes of it |
//! |---|---|
//! | `message` of `user`, `assistant`, `toolResult` | a message |
//! | `message` of `bashExecution` | a user's message in the words that pi tells a model; left out when pi keeps it from the model |
//! | `custom_message`, `message` of `custom` | a notice |
//! | `compaction` | a turn of its own: a notice with the summary, from which on models see the thread. What was summarised stays before it |
//! | `branch_summary` | a notice with the summary |
//! | `label` | a bookmark on the turn that ends with its target, or that first has it; the last word on a target counts |
//! | `session_info` | the session's name; the last one counts |
//! | `model_change`, `thinking_level_change`, `custom`, any other | left out, and named in [`Reading::left_out`] |
//!
//! Data of a message or a notice besides its text is kept in an opaque part that goes to no
//! provider; `api`, costs and a message's own time are not kept. The head is where pi would
//! continue: the last entry of the file. An invalid line is skipped and named in
//! [`Reading::passed_over`]; its successors follow its predecessor.

use super::super::{Blocks, PROVIDER, parts};
use super::{VERSION, read_usage};
use crate::thread::compaction::ORIGIN_IMPORTED;
use crate::thread::message::{Part, Role};
use crate::thread::model::Usage;
use crate::thread::transcript::adopt::{
    self, Adoption, Answered, Compacts, Dropped, ForeignMessage,
};
use crate::thread::transcript::line::{self, Fields, Line, Records};
use crate::thread::transcript::{
    EMPTY_STATE, Header, Label, LeftOut, Reading, TranscriptFault, exact,
};
use crate::thread::turn::TurnEnd;
use crate::values::digest::Digest;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Reads a file as one of another program, even if this host wrote it. Its visible content is used,
/// its records are ignored, and its turns get new ids. This is for a session that was exported and
/// then continued in pi.
///
/// # Errors
/// The first invalid element.
pub fn read_foreign(file: &[u8], adoption: &Adoption) -> Result<Reading, TranscriptFault> {
    read(file, adoption, Records::LeftOut)
}

pub(super) fn read(
    file: &[u8],
    adoption: &Adoption,
    records: Records,
) -> Result<Reading, TranscriptFault> {
    let mut lines = line::lines(file, records)?.into_iter();
    let Some(first) = lines.next() else {
        return Err(TranscriptFault::line(0, "it has no lines"));
    };
    let first = first?;
    let start = first.fields();
    version(&start)?;
    let mut tree = Entries {
        records,
        ..Entries::default()
    };
    let header = Header {
        session: adopt::session_id(start.word_needed("id")?),
        name: None,
        agent_path: adoption.agent_path.clone(),
        definition: adoption.definition.clone(),
        created: start.time_needed("timestamp")?,
        head: None,
        parent: start.text("parentSession")?.and_then(adopt::parent_session),
        labels: Vec::new(),
    };
    for line in lines {
        match line {
            Ok(line) => {
                tree.check(&line)?;
                if let Err(fault) = tree.take(&line) {
                    tree.pass_over(Some(&line), fault)?;
                }
            }
            Err(fault) => tree.pass_over(None, fault)?,
        }
    }
    tree.finish(header, adoption)
}

fn version(start: &Fields<'_>) -> Result<(), TranscriptFault> {
    if start.text_needed("type")? != "session" {
        return Err(start.fault(
            "type",
            "the first line must be of the type `session`: put the session's line first",
        ));
    }
    match start.count("version")? {
        2 | VERSION => Ok(()),
        0 | 1 => Err(start.fault(
            "version",
            "sessions of pi's version 1 have no tree: open it with pi once, which writes it anew",
        )),
        newer => Err(start.fault(
            "version",
            format!("it is {newer}, and {VERSION} is the newest that is known"),
        )),
    }
}

/// The entries so far.
struct Entries {
    records: Records,
    /// The last message on the path to each entry, by the entry's id.
    known: HashMap<String, Option<usize>>,
    said: Vec<ForeignMessage>,
    labels: Vec<(usize, String, Option<String>)>,
    name: Option<String>,
    leaf: Option<usize>,
    blobs: Blocks,
    /// True after a skipped line whose id may be unknown.
    is_torn: bool,
    dropped: Dropped,
}

impl Default for Entries {
    fn default() -> Self {
        let blobs = Blocks::from([(Digest::of(EMPTY_STATE), EMPTY_STATE.to_vec())]);
        Self {
            records: Records::Refused,
            known: HashMap::new(),
            said: Vec::new(),
            labels: Vec::new(),
            name: None,
            leaf: None,
            blobs,
            is_torn: false,
            dropped: Dropped::default(),
        }
    }
}

/// The content of an entry.
struct Words {
    role: Role,
    parts: Vec<Part>,
    origin: String,
    answers: Option<Answered>,
    end: TurnEnd,
    usage: Usage,
    model: Option<String>,
    compacts: Option<Compacts>,
}

impl Words {
    fn new(role: Role, origin: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            role,
            parts,
            origin: origin.into(),
            answers: None,
            end: TurnEnd::Replied,
            usage: Usage::default(),
            model: None,
            compacts: None,
        }
    }
}

impl Entries {
    /// Checks that an entry belongs to the file.
    ///
    /// # Errors
    /// It is of this host, or of another session: the file cannot be imported.
    fn check(&self, line: &Line) -> Result<(), TranscriptFault> {
        let fields = line.fields();
        let name = match fields.text("type") {
            Ok(Some("session")) => {
                return Err(fields.fault(
                    "type",
                    "a file holds one session, and this is a second: divide the file",
                ));
            }
            Ok(Some("custom")) => fields.text("customType").unwrap_or_default(),
            _ => None,
        };
        match name {
            Some(name) if name.starts_with("agent-host.") && self.records == Records::Refused => {
                let message = format!(
                    "`{name}` is a record of this host, and the record `{}` is not on line 2: \
                     export the session again, or take the records out",
                    exact::SESSION
                );
                Err(fields.fault("customType", message))
            }
            _ => Ok(()),
        }
    }

    /// Skips a line. If its id is known, its children follow the entry before it.
    fn pass_over(
        &mut self,
        line: Option<&Line>,
        fault: TranscriptFault,
    ) -> Result<(), TranscriptFault> {
        self.is_torn = true;
        let fields = line.map(Line::fields);
        let text = |name: &str| fields.as_ref()?.text(name).ok().flatten();
        if let Some(id) = text("id")
            && !self.known.contains_key(id)
        {
            let parent = text("parentId").and_then(|parent| self.known.get(parent));
            let place = parent.copied().unwrap_or(self.leaf);
            self.known.insert(id.to_owned(), place);
        }
        self.dropped.passed_over.add(fault)
    }

    fn take(&mut self, line: &Line) -> Result<(), TranscriptFault> {
        let fields = line.fields();
        let kind = fields.text_needed("type")?;
        let id = fields.word_needed("id")?;
        if self.known.contains_key(id) {
            return Err(fields.fault(
                "id",
                format!("an entry before it has the id `{id}` too: each has its own"),
            ));
        }
        let parent = match fields.short_text("parentId")? {
            None => None,
            Some(parent) => match self.known.get(parent) {
                Some(place) => *place,
                None if self.is_torn => self.leaf,
                None => {
                    let message = format!(
                        "no entry before it has the id `{parent}`: an entry stands behind its \
                         parent"
                    );
                    return Err(fields.fault("parentId", message));
                }
            },
        };
        let time = fields.time_needed("timestamp")?;
        self.leaf = match self.read_content(kind, &fields, line.number)? {
            None => parent,
            Some(words) => {
                let Words {
                    role,
                    parts,
                    origin,
                    answers,
                    end,
                    usage,
                    model,
                    compacts,
                } = words;
                self.said.push(ForeignMessage {
                    line: line.number,
                    bytes: line.bytes,
                    key: id.to_owned(),
                    parent,
                    time,
                    role,
                    parts,
                    origin,
                    answers,
                    end,
                    usage,
                    model,
                    compacts,
                });
                Some(self.said.len() - 1)
            }
        };
        self.known.insert(id.to_owned(), self.leaf);
        Ok(())
    }

    /// Reads the content of an entry, if any.
    fn read_content(
        &mut self,
        kind: &str,
        fields: &Fields<'_>,
        line: usize,
    ) -> Result<Option<Words>, TranscriptFault> {
        Ok(match kind {
            "message" => self.message(&fields.object_needed("message")?, line)?,
            "custom_message" => Some(self.noticed(fields, "content")?),
            "compaction" => Some(self.compaction(fields)?),
            "branch_summary" => {
                fields.word_needed("fromId")?;
                Some(Words::new(
                    Role::Notice,
                    "pi:branch_summary",
                    summary(fields)?,
                ))
            }
            "label" => {
                self.labels.push((
                    line,
                    fields.word_needed("targetId")?.to_owned(),
                    adopt::label_text(fields, "label")?,
                ));
                None
            }
            "session_info" => {
                self.name = adopt::label_text(fields, "name")?.or(self.name.take());
                None
            }
            "custom" => {
                let name = fields.word_needed("customType")?;
                self.dropped.left_out.push(LeftOut {
                    line,
                    what: format!("custom {name}"),
                });
                None
            }
            other => {
                self.dropped.left_out.push(LeftOut {
                    line,
                    what: other.to_owned(),
                });
                None
            }
        })
    }

    /// Reads the summary of a compaction.
    fn compaction(&self, fields: &Fields<'_>) -> Result<Words, TranscriptFault> {
        let first_kept = self
            .known
            .get(fields.word_needed("firstKeptEntryId")?)
            .copied()
            .flatten();
        let compacts = Some(Compacts {
            first_kept,
            tokens_before: fields.count("tokensBefore")?,
        });
        Ok(Words {
            compacts,
            ..Words::new(Role::Notice, ORIGIN_IMPORTED, summary(fields)?)
        })
    }

    /// Reads the content of a message.
    fn message(
        &mut self,
        message: &Fields<'_>,
        line: usize,
    ) -> Result<Option<Words>, TranscriptFault> {
        Ok(Some(match message.text_needed("role")? {
            "user" => Words::new(
                Role::User,
                "pi",
                parts(message, "content", "", &mut self.blobs)?,
            ),
            "assistant" => self.assistant(message)?,
            "toolResult" => self.tool_result(message)?,
            "bashExecution" if message.flag("excludeFromContext")?.unwrap_or_default() => {
                self.dropped.left_out.push(LeftOut {
                    line,
                    what: "bashExecution that pi keeps from the model".to_owned(),
                });
                return Ok(None);
            }
            "bashExecution" => Words::new(
                Role::User,
                "pi:bash",
                vec![Part::text(bash(message)?), whole(message)],
            ),
            "custom" | "hookMessage" => self.noticed(message, "content")?,
            "branchSummary" => Words::new(Role::Notice, "pi:branch_summary", summary(message)?),
            "compactionSummary" => Words::new(Role::Notice, ORIGIN_IMPORTED, summary(message)?),
            other => {
                let known = "`user`, `assistant`, `toolResult`, `bashExecution`, `custom`, \
                     `branchSummary`, `compactionSummary`";
                return Err(message.fault(
                    "role",
                    format!(
                        "`{other}` is none of {known}: write one of these, or take the line out"
                    ),
                ));
            }
        }))
    }

    /// Reads the content of a model's message.
    fn assistant(&mut self, message: &Fields<'_>) -> Result<Words, TranscriptFault> {
        let model = message.short_text("model")?.map(str::to_owned);
        let by = [message.short_text("provider")?, model.as_deref()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("/");
        let mut said = parts(message, "content", &by, &mut self.blobs)?;
        said.extend(beyond(message, &["errorMessage"]));
        let origin = model
            .as_ref()
            .map_or_else(|| "pi".to_owned(), |model| format!("model:{model}"));
        let end = adopt::end(message)?;
        let usage = read_usage(message)?;
        Ok(Words {
            end,
            usage,
            model,
            ..Words::new(Role::Assistant, origin, said)
        })
    }

    /// Reads the result of a call.
    fn tool_result(&mut self, message: &Fields<'_>) -> Result<Words, TranscriptFault> {
        let call_id = message.word_needed("toolCallId")?.to_owned();
        let name = message.word_needed("toolName")?.to_owned();
        let mut said = parts(message, "content", "", &mut self.blobs)?;
        said.extend(beyond(message, &["details"]));
        let origin = format!("tool:{name}");
        let answers = Some(Answered {
            call_id,
            name,
            failed: message.flag("isError")?.unwrap_or_default(),
        });
        Ok(Words {
            answers,
            ..Words::new(Role::Tool, origin, said)
        })
    }

    /// Reads a message from an extension of pi to the model.
    fn noticed(&mut self, fields: &Fields<'_>, name: &str) -> Result<Words, TranscriptFault> {
        let origin = format!("pi:{}", fields.word_needed("customType")?);
        let mut said = parts(fields, name, "", &mut self.blobs)?;
        said.extend(beyond(fields, &["details"]));
        Ok(Words::new(Role::Notice, origin, said))
    }

    fn finish(self, mut header: Header, adoption: &Adoption) -> Result<Reading, TranscriptFault> {
        let mut dropped = self.dropped;
        let passed_over = &mut dropped.passed_over;
        let (turns, homes) =
            adopt::turns(&self.said, self.leaf, header.session, adoption, passed_over)?;
        let home = |place: Option<usize>| place.and_then(|place| homes.get(place).copied());
        header.head = home(self.leaf);
        header.name = self.name;
        let mut labels: Vec<(String, Label)> = Vec::new();
        for (line, target, label) in self.labels {
            let Some(place) = self.known.get(&target).copied() else {
                dropped.passed_over.add(TranscriptFault {
                    line,
                    field: "/targetId".to_owned(),
                    message: format!(
                        "no entry has the id `{target}`: name one that is there, or take the line \
                         out"
                    ),
                })?;
                continue;
            };
            labels.retain(|(labelled, _)| *labelled != target);
            match (label, home(place)) {
                (Some(label), Some(turn)) => labels.push((target, Label { turn, label })),
                (Some(label), None) => dropped.left_out.push(LeftOut {
                    line,
                    what: format!("label `{label}` before the first message"),
                }),
                (None, _) => {}
            }
        }
        header.labels = labels.into_iter().map(|(_, label)| label).collect();
        adopt::reading(header, turns, self.blobs, dropped)
    }
}

/// The fields of an object with these names, as one opaque part; none if it has none of them.
fn beyond(fields: &Fields<'_>, names: &[&str]) -> Option<Part> {
    let kept: Map<String, Value> = names
        .iter()
        .filter_map(|name| {
            fields
                .value(name)
                .map(|value| ((*name).to_owned(), value.clone()))
        })
        .collect();
    (!kept.is_empty()).then(|| opaque(Value::Object(kept)))
}

fn whole(fields: &Fields<'_>) -> Part {
    opaque(Value::Object(fields.map().clone()))
}

fn opaque(value: Value) -> Part {
    Part::Opaque {
        provider: PROVIDER.to_owned(),
        model: String::new(),
        value,
    }
}

/// A summary, followed by pi's other data about it.
fn summary(fields: &Fields<'_>) -> Result<Vec<Part>, TranscriptFault> {
    Ok(vec![
        Part::text(fields.text_needed("summary")?),
        whole(fields),
    ])
}

/// A command that the user ran, in the text that pi sends to a model.
fn bash(message: &Fields<'_>) -> Result<String, TranscriptFault> {
    let output = message.text("output")?.unwrap_or_default();
    let output = if output.is_empty() {
        "(no output)".to_owned()
    } else {
        format!("```\n{output}\n```")
    };
    let mut text = format!("Ran `{}`\n{output}", message.text_needed("command")?);
    match message.value("exitCode").and_then(Value::as_i64) {
        _ if message.flag("cancelled")?.unwrap_or_default() => {
            text.push_str("\n\n(command cancelled)")
        }
        Some(code) if code != 0 => text.push_str(&format!("\n\nCommand exited with code {code}")),
        _ => {}
    }
    if let Some(path) = message
        .text("fullOutputPath")?
        .filter(|_| matches!(message.flag("truncated"), Ok(Some(true))))
    {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    Ok(text)
}
