//! The input for a model's summary: a conversation as plain text, shortened to fit the model's
//! window.
//!
//! It is text and not the conversation itself. So the model does not continue it, and needs none of
//! the conversation's tools.

use super::TOKEN_BYTES;
use crate::thread::message::{Message, Part, Role};
use crate::thread::speaker::do_several_speak;

/// Bytes of one part of a conversation. A longer one loses its middle.
const CHUNK_BYTES_MAX: [usize; 3] = [4_000, 1_000, 200];
/// The largest fraction of the room for a former summary: a half.
const FORMER_PART: usize = 2;
/// The least room in bytes, for any window.
const ROOM_BYTES_MIN: usize = 1_024;
/// Tokens left for the text around the conversation.
const AROUND_TOKENS: u64 = 512;

/// Returns the bytes of material that fit into a model's window together with a summary of this
/// many tokens. A quarter is left free, because bytes are only an estimate of tokens.
#[must_use]
pub fn bytes_for(window: u64, summary_tokens_max: u32) -> usize {
    let tokens = window
        .saturating_sub(u64::from(summary_tokens_max))
        .saturating_sub(AROUND_TOKENS);
    usize::try_from(tokens.saturating_mul(TOKEN_BYTES) / 4 * 3)
        .unwrap_or(usize::MAX)
        .max(ROOM_BYTES_MIN)
}

/// Returns a former summary and the conversation since, as text of at most `bytes_max` bytes. If it
/// is longer, long parts lose their middle first. If that is not enough, the oldest part is left
/// out, and the text says so.
#[must_use]
pub fn material(former: Option<&str>, messages: &[Message], bytes_max: usize) -> String {
    let mut text = String::new();
    if let Some(former) = former {
        let room = (bytes_max / FORMER_PART).saturating_sub(FORMER.0.len() + FORMER.1.len());
        let former = clipped(&without_ends(former), room);
        text = format!("{}{former}{}", FORMER.0, FORMER.1);
    }
    let room = bytes_max.saturating_sub(text.len() + SAID.0.len() + SAID.1.len() + LEFT_OUT_BYTES);
    let names_users = do_several_speak(messages);
    let mut said = Vec::new();
    for chunk_bytes_max in CHUNK_BYTES_MAX {
        said = messages
            .iter()
            .flat_map(|message| lines(message, names_users, chunk_bytes_max))
            .collect();
        if bytes(&said) <= room {
            break;
        }
    }
    let mut left_out = 0;
    let mut too_many = bytes(&said).saturating_sub(room);
    for line in &said {
        if too_many == 0 {
            break;
        }
        too_many = too_many.saturating_sub(line.len() + 1);
        left_out += 1;
    }
    text.push_str(SAID.0);
    if left_out > 0 {
        text.push_str(&format!("[{left_out} pieces before this are left out]\n"));
    }
    for line in said.iter().skip(left_out) {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(SAID.1);
    text
}

/// Returns how many of some messages, from the first on, fit into at most `bytes_max` bytes of
/// material. None of them is omitted or shortened more than usual. At least one, if there are any.
#[must_use]
pub fn fitting_messages(messages: &[Message], bytes_max: usize) -> usize {
    let [chunk_bytes_max, ..] = CHUNK_BYTES_MAX;
    let room = bytes_max.saturating_sub(SAID.0.len() + SAID.1.len() + LEFT_OUT_BYTES);
    let names_users = do_several_speak(messages);
    let mut used = 0;
    let fitting = messages.iter().take_while(|message| {
        let said: Vec<String> = lines(message, names_users, chunk_bytes_max).collect();
        used += bytes(&said);
        used <= room
    });
    fitting.count().max(1).min(messages.len())
}

/// Around a former summary.
const FORMER: (&str, &str) = ("<former-summary>\n", "\n</former-summary>\n\n");
/// Markers around the conversation.
const SAID: (&str, &str) = ("<conversation>\n", "</conversation>");
/// Bytes of the line about omitted text.
const LEFT_OUT_BYTES: usize = 64;

fn bytes(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// A message, with one line for each of its parts. Further lines of a part are indented, so that
/// they do not look like another speaker's.
fn lines(
    message: &Message,
    names_users: bool,
    chunk_bytes_max: usize,
) -> impl Iterator<Item = String> {
    let who = match (message.role, &message.answers) {
        (Role::User, _) => match message.said_by() {
            Some(speaker) if names_users || !speaker.is_user() => speaker.label(),
            None | Some(_) => "User".to_owned(),
        },
        (Role::Assistant, _) => "Assistant".to_owned(),
        (Role::Notice, _) => "Notice".to_owned(),
        (Role::Tool, Some(answers)) if answers.failed => format!("Failure of {}", answers.name),
        (Role::Tool, Some(answers)) => format!("Result of {}", answers.name),
        (Role::Tool, None) => "Result".to_owned(),
    };
    let who = match (message.role, message.untrusted) {
        (Role::User | Role::Tool | Role::Notice, true) => format!("{who} (untrusted)"),
        _ => who,
    };
    let cut_turn = move |text: &str| {
        let indented = without_ends(text.trim_end()).replace('\n', "\n  ");
        clipped(&indented, chunk_bytes_max)
    };
    message.parts.iter().filter_map(move |part| match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(format!("{who}: {}", cut_turn(text))),
        Part::Call {
            name, arguments, ..
        } => Some(format!(
            "{who} calls {}: {}",
            cut_turn(name),
            cut_turn(arguments)
        )),
        Part::Blob {
            media_type, size, ..
        } => Some(format!("{who}: [{media_type}, {size} bytes]")),
        Part::Opaque { .. } => None,
    })
}

/// A text that cannot close the tag of the conversation or of the former summary.
fn without_ends(text: &str) -> String {
    text.replace("</conversation", "< /conversation")
        .replace("</former-summary", "< /former-summary")
}

/// A text of at most so many bytes: head and tail of a longer one.
pub(crate) fn clipped(text: &str, bytes_max: usize) -> String {
    const BETWEEN: &str = " […] ";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let side = bytes_max.saturating_sub(BETWEEN.len()) / 2;
    let head = (0..=side)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default();
    let tail = (text.len() - side..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let kept = format!(
        "{}{BETWEEN}{}",
        text.get(..head).unwrap_or_default(),
        text.get(tail..).unwrap_or_default()
    );
    if kept.len() <= bytes_max {
        kept
    } else {
        String::new()
    }
}
