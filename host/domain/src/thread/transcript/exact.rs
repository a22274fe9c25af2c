//! Records that make a file exact. They contain everything that a transcript has. Both dialects
//! have them in fields that the other programs ignore.
//!
//! A record is an object under one of the names below. Their order is: one `session`; the `blob`s,
//! in chunks; then for each turn its `message`s and after them the `turn`; one `end`. On reading,
//! the rest of the file is rebuilt from the records, and has to be identical to the byte. A file is
//! refused if its visible content was changed without its records.

use super::{
    Header, LINES_MAX, Reading, Transcript, TranscriptFault, TranscriptTurn, Unsound, Unwritable,
};
use crate::thread::message::{Message, MessageId};
use crate::thread::turn::TurnNode;
use crate::values::digest::Digest;
use crate::values::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The format of the records.
pub(super) const FORMAT: &str = "agent-host.transcript/1";
/// The record of the session, the first.
pub(super) const SESSION: &str = "agent-host.session";
/// The record of a chunk of a blob.
pub(super) const BLOB: &str = "agent-host.blob";
/// The record of a message, or of the place of an erased one.
pub(super) const MESSAGE: &str = "agent-host.message";
/// The record of a turn, after its messages.
pub(super) const TURN: &str = "agent-host.turn";
/// The record of the end, the last.
pub(super) const END: &str = "agent-host.end";
/// Bytes of a blob in one record. In base64 and with its envelope, it is shorter than the longest
/// line.
const CHUNK_BYTES: usize = 4 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionRecord {
    format: String,
    header: Header,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlobRecord {
    digest: Digest,
    #[serde(rename = "piece")]
    chunk: usize,
    #[serde(rename = "pieces")]
    chunks: usize,
    base64: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MessageRecord {
    Message(Message),
    Erased(MessageId),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnRecord {
    committed: Timestamp,
    turn: TurnNode,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndRecord {
    turns: usize,
}

/// The session's record.
pub(super) fn session(header: &Header) -> Value {
    json!(SessionRecord {
        format: FORMAT.to_owned(),
        header: header.clone()
    })
}

/// The records of all blobs.
pub(super) fn blobs(blobs: &BTreeMap<Digest, Vec<u8>>) -> impl Iterator<Item = Value> {
    blobs.iter().flat_map(|(&digest, bytes)| {
        // A blob without bytes is one empty chunk.
        let chunks = bytes.len().div_ceil(CHUNK_BYTES).max(1);
        let of = |chunk: usize| bytes.chunks(CHUNK_BYTES).nth(chunk).unwrap_or_default();
        (0..chunks).map(move |chunk| {
            json!(BlobRecord {
                digest,
                chunk,
                chunks,
                base64: STANDARD.encode(of(chunk))
            })
        })
    })
}

/// The record for a message's place.
pub(super) fn message(id: MessageId, message: Option<&Message>) -> Value {
    json!(
        message.map_or(MessageRecord::Erased(id), |message| MessageRecord::Message(
            message.clone().as_written()
        ))
    )
}

/// A turn's record.
pub(super) fn turn(turn: &TranscriptTurn) -> Value {
    json!(TurnRecord {
        committed: turn.committed,
        turn: turn.node.clone()
    })
}

/// The last record.
pub(super) fn end(transcript: &Transcript) -> Value {
    json!(EndRecord {
        turns: transcript.turns.len()
    })
}

/// A transcript under construction, record by record.
#[derive(Debug, Default)]
pub(super) struct Collected {
    header: Option<(usize, Header)>,
    blobs: BTreeMap<Digest, Vec<u8>>,
    unfinished: Option<(Digest, usize, usize, Vec<u8>)>,
    messages: Vec<Option<Message>>,
    turns: Vec<TranscriptTurn>,
    lines: Vec<usize>,
    ended: bool,
}

impl Collected {
    /// Takes the next record. `field` is its place in the line.
    pub(super) fn take(
        &mut self,
        line: usize,
        field: &str,
        name: &str,
        record: &Value,
    ) -> Result<(), TranscriptFault> {
        let no = |message: String| TranscriptFault {
            line,
            field: field.to_owned(),
            message,
        };
        if self.ended {
            return Err(no(format!(
                "it comes after the record `{END}`, which is the last: take it out"
            )));
        }
        if name != SESSION && self.header.is_none() {
            return Err(no(format!(
                "it comes before the record `{SESSION}`, which is the first: export the session \
                 again"
            )));
        }
        if name != BLOB && self.unfinished.is_some() {
            return Err(no(
                "the last piece of the blob before it is missing: export the session again"
                    .to_owned(),
            ));
        }
        match name {
            SESSION if self.header.is_some() => {
                return Err(no(
                    "there are two of it, and a file holds one session".to_owned()
                ));
            }
            SESSION => self.begin(line, meant(record).map_err(no)?).map_err(no)?,
            BLOB => self.chunk(meant(record).map_err(no)?).map_err(no)?,
            MESSAGE => match meant(record).map_err(no)? {
                MessageRecord::Message(message) => self.messages.push(Some(message)),
                MessageRecord::Erased(_) => self.messages.push(None),
            },
            TURN => {
                let TurnRecord { committed, turn } = meant(record).map_err(no)?;
                self.turns.push(TranscriptTurn {
                    node: turn,
                    committed,
                    messages: std::mem::take(&mut self.messages),
                });
                self.lines.push(line);
            }
            END => self.end(&meant(record).map_err(no)?).map_err(no)?,
            _ => {
                return Err(no(format!(
                    "`{name}` is no record of `{FORMAT}`: take it out, or read it with the version \
                     that wrote it"
                )));
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        line: usize,
        SessionRecord { format, header }: SessionRecord,
    ) -> Result<(), String> {
        if format != FORMAT {
            return Err(format!(
                "its format is `{format}` and must be `{FORMAT}`: read it with the version that \
                 wrote it"
            ));
        }
        self.header = Some((line, header));
        Ok(())
    }

    fn chunk(
        &mut self,
        BlobRecord {
            digest,
            chunk,
            chunks,
            base64,
        }: BlobRecord,
    ) -> Result<(), String> {
        let bytes = STANDARD.decode(base64).map_err(|error| {
            format!("its bytes are not base64 ({error}): export the session again")
        })?;
        let (of, next, all, mut whole) =
            self.unfinished
                .take()
                .unwrap_or((digest, 0, chunks, Vec::new()));
        if (digest, chunk, chunks) != (of, next, all) || chunk >= chunks || chunks > LINES_MAX {
            return Err(format!(
                "piece {next} of {all} of blob {of} belongs here: put the pieces in order"
            ));
        }
        whole.extend_from_slice(&bytes);
        if chunk + 1 < chunks {
            self.unfinished = Some((digest, chunk + 1, chunks, whole));
        } else if self.blobs.insert(digest, whole).is_some() {
            return Err(format!("blob {digest} is there twice: take one out"));
        }
        Ok(())
    }

    fn end(&mut self, end: &EndRecord) -> Result<(), String> {
        if !self.messages.is_empty() {
            return Err(format!(
                "{} messages before it belong to no turn: export the session again",
                self.messages.len()
            ));
        }
        if end.turns != self.turns.len() {
            return Err(format!(
                "it says {} turns, and {} were there: export the session again",
                end.turns,
                self.turns.len()
            ));
        }
        self.ended = true;
        Ok(())
    }

    /// The reading of a file of this host, which has to equal the output of `write` for its
    /// records.
    pub(super) fn reading(
        self,
        file: &[u8],
        write: impl Fn(&Transcript) -> Result<Vec<u8>, Unwritable>,
    ) -> Result<Reading, TranscriptFault> {
        let transcript = self.finish()?;
        let written = write(&transcript).map_err(|error| {
            TranscriptFault::line(0, format!("{error}: export the session again"))
        })?;
        same(file, &written)?;
        Ok(Reading {
            transcript,
            exact: true,
            left_out: Vec::new(),
            passed_over: Vec::new(),
        })
    }

    /// The transcript, verified.
    fn finish(self) -> Result<Transcript, TranscriptFault> {
        let Some((line, header)) = self.header.filter(|_| self.ended) else {
            return Err(TranscriptFault::line(
                0,
                format!(
                    "it ends before the record `{END}`: it was cut off, so export the session again"
                ),
            ));
        };
        let transcript = Transcript {
            header,
            turns: self.turns,
            blobs: self.blobs,
        };
        transcript.check().map_err(|unsound| match &unsound {
            Unsound::Turn { place, message } => TranscriptFault::line(
                self.lines.get(*place).copied().unwrap_or(line),
                message.clone(),
            ),
            Unsound::Header { .. } | Unsound::Blob { .. } | Unsound::Unnamed { .. } => {
                TranscriptFault::line(line, unsound.to_string())
            }
        })?;
        Ok(transcript)
    }
}

fn meant<T: DeserializeOwned>(record: &Value) -> Result<T, String> {
    T::deserialize(record).map_err(|error| format!("{error}: export the session again"))
}

/// Checks that a file is identical to the output for its records.
fn same(file: &[u8], written: &[u8]) -> Result<(), TranscriptFault> {
    if file == written {
        return Ok(());
    }
    let pairs = file
        .split(|byte| *byte == b'\n')
        .zip(written.split(|byte| *byte == b'\n'));
    let line = (1_usize..)
        .zip(pairs)
        .find(|(_, (is, should))| is != should)
        .map_or(0, |(line, _)| line);
    let message = "it is not what this host wrote there: somebody changed the file. Export the \
                   session again, or read it as another \
                   program's file, which takes what it shows and gives the turns new ids";
    Err(TranscriptFault::line(line, message))
}
