//! Words of Telegram, as Markdown that says the same: where links lead, what is code, and what is
//! quoted.

use serde_json::Value;
use std::cmp::Reverse;

/// The beginning of each line that is quoted.
const QUOTE: &str = "> ";
/// The end of a line, in UTF-16.
const LINE_END: u16 = b'\n' as u16;

/// Something that a mark puts into the words.
struct Added {
    /// The place, in UTF-16 units.
    at: usize,
    /// The order of what is put at one place: ends before beginnings, inner ends before outer ones.
    order: (bool, Reverse<usize>, i64),
    text: String,
    /// True if it stands on a line of its own.
    on_own_line: bool,
}

/// The values of a list; none of what is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text with what its marks add to it. Marks that change no words, such as bold ones, and marks
/// that do not lie within the text add nothing.
pub(crate) fn marked(text: &str, marks: &Value) -> String {
    let units = text.encode_utf16().count();
    let mut added: Vec<Added> = (0_i64..)
        .zip(items(marks))
        .filter_map(|(number, mark)| of_mark(text, units, number, mark))
        .flatten()
        .collect();
    added.sort_by_key(|it| (it.at, it.order));
    let mut added = added.into_iter().peekable();
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for char in text.chars() {
        while let Some(next) = added.next_if(|next| next.at <= at) {
            put(&mut shown, &next, char);
        }
        shown.push(char);
        at += char.len_utf16();
    }
    for rest in added {
        put(&mut shown, &rest, '\n');
    }
    shown
}

/// The additions of a mark at its beginning, at its end and between; none for one without any.
fn of_mark(text: &str, units: usize, number: i64, mark: &Value) -> Option<Vec<Added>> {
    let unit = |key: &str| usize::try_from(mark[key].as_u64()?).ok();
    let start = unit("offset")?;
    let length = unit("length").filter(|length| *length > 0)?;
    let end = start.checked_add(length).filter(|end| *end <= units)?;
    let kind = mark["type"].as_str()?;
    let (open, close) = match kind {
        "text_link" => {
            let url = mark["url"].as_str()?;
            // A link that says where it leads says so once.
            if covered(text, start, end) == url {
                return None;
            }
            ("[".to_owned(), format!("]({})", target(url)))
        }
        "text_mention" => {
            let id = mark["user"]["id"].as_i64()?;
            ("[".to_owned(), format!("](tg://user?id={id})"))
        }
        "code" => ("`".to_owned(), "`".to_owned()),
        "pre" => {
            let language = mark["language"].as_str().unwrap_or_default();
            (format!("```{language}\n"), "\n```".to_owned())
        }
        "strikethrough" => ("~~".to_owned(), "~~".to_owned()),
        "blockquote" | "expandable_blockquote" => (QUOTE.to_owned(), String::new()),
        _ => return None,
    };
    let is_quote = open == QUOTE;
    let on_own_line = is_quote || kind == "pre";
    let begins = |at: usize, text: String| Added {
        at,
        order: (true, Reverse(end), number),
        text,
        on_own_line,
    };
    let inside = covered(text, start, end);
    let ends_of_lines = (start..).zip(inside.encode_utf16());
    let lines = ends_of_lines.filter(|(at, unit)| is_quote && *unit == LINE_END && at + 1 < end);
    let begin = std::iter::once(begins(start, open))
        .chain(lines.map(|(at, _)| begins(at + 1, QUOTE.to_owned())));
    let finish = Added {
        at: end,
        order: (false, Reverse(start), -number),
        text: close,
        on_own_line,
    };
    Some(begin.chain([finish]).collect())
}

/// Puts something into the words, before a character.
fn put(shown: &mut String, added: &Added, before: char) {
    let begins = added.order.0;
    if added.on_own_line && begins && !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown.push_str(&added.text);
    if added.on_own_line && !begins && before != '\n' {
        shown.push('\n');
    }
}

/// The part of a text between two UTF-16 units.
pub(crate) fn covered(text: &str, start: usize, end: usize) -> String {
    let units: Vec<u16> = text.encode_utf16().take(end).skip(start).collect();
    String::from_utf16_lossy(&units)
}

/// A URL as the target of a link, which ends at no sign of its own.
pub(crate) fn target(url: &str) -> String {
    if url.contains(['(', ')', ' ']) {
        format!("<{url}>")
    } else {
        url.to_owned()
    }
}
