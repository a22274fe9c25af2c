//! The check that a transcript is consistent, before writing and after reading.

use super::{Header, TIME_MS_MAX, Transcript, Verification, WORD_BYTES_MAX, verify};
use crate::values::digest::Digest;
use crate::values::time::Timestamp;
use std::collections::HashSet;

/// The first inconsistency of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// Something in the header.
    #[error("the header's `{field}`: {message}")]
    Header {
        /// The field.
        field: &'static str,
        /// The fault, and how to correct it.
        message: String,
    },
    /// A turn.
    #[error("turn {place}: {message}")]
    Turn {
        /// Its place among the turns, counted from 0.
        place: usize,
        /// The fault, and how to correct it.
        message: String,
    },
    /// A blob's bytes do not match its digest.
    #[error(
        "the bytes of blob {digest} have the digest {computed}: take the blob out, or put its \
             own bytes there"
    )]
    Blob {
        /// Its digest.
        digest: Digest,
        /// The digest of its bytes.
        computed: Digest,
    },
    /// A blob that is not referenced.
    #[error("no turn names the blob {digest}: take it out")]
    Unnamed {
        /// Its digest.
        digest: Digest,
    },
}

pub(super) fn check(transcript: &Transcript) -> Result<(), Unsound> {
    let turns = &transcript.turns;
    for (place, (_, verdict)) in verify(
        turns
            .iter()
            .map(|turn| (&turn.node, turn.messages.as_slice())),
    )
    .into_iter()
    .enumerate()
    {
        if let Verification::Broken(broken) = verdict {
            return Err(Unsound::Turn {
                place,
                message: format!("{broken}; export it again from where it is sound"),
            });
        }
    }
    for (place, turn) in turns.iter().enumerate() {
        time(turn.committed).map_err(|message| Unsound::Turn { place, message })?;
    }
    header(
        &transcript.header,
        &turns.iter().map(|turn| turn.node.id).collect(),
    )?;
    let named: HashSet<Digest> = turns
        .iter()
        .flat_map(super::TranscriptTurn::blobs)
        .collect();
    for (&digest, bytes) in &transcript.blobs {
        let computed = Digest::of(bytes);
        if computed != digest {
            return Err(Unsound::Blob { digest, computed });
        }
        if !named.contains(&digest) {
            return Err(Unsound::Unnamed { digest });
        }
    }
    Ok(())
}

fn header(header: &Header, turns: &HashSet<crate::values::id::TurnId>) -> Result<(), Unsound> {
    let no = |field: &'static str| move |message: String| Unsound::Header { field, message };
    time(header.created).map_err(no("created"))?;
    check_short_text(&header.agent_path).map_err(no("agent_path"))?;
    check_short_text(&header.definition).map_err(no("definition"))?;
    header
        .name
        .as_deref()
        .map_or(Ok(()), check_short_text)
        .map_err(no("name"))?;
    if let Some(head) = header.head.filter(|head| !turns.contains(head)) {
        return Err(no("head")(format!(
            "turn {head} is not among the turns: name one that is, or none"
        )));
    }
    for label in &header.labels {
        check_short_text(&label.label).map_err(no("labels"))?;
        if !turns.contains(&label.turn) {
            return Err(no("labels")(format!(
                "turn {} is not among the turns: take its label out",
                label.turn
            )));
        }
    }
    Ok(())
}

fn time(time: Timestamp) -> Result<(), String> {
    if time.0 <= TIME_MS_MAX {
        Ok(())
    } else {
        Err(format!(
            "{} is later than the last time that a file can name, {TIME_MS_MAX}",
            time.0
        ))
    }
}

fn check_short_text(text: &str) -> Result<(), String> {
    if (1..=WORD_BYTES_MAX).contains(&text.len()) {
        Ok(())
    } else {
        Err(format!(
            "it has {} bytes, and 1 to {WORD_BYTES_MAX} are taken",
            text.len()
        ))
    }
}
