//! The fields of entries: their limits, and how entries are searched and shown page by page.

use crate::shelf::{Entry, Numbered};
use agent_host_sdk::ToolError;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of a title.
const TITLE_CHARS_MAX: usize = 300;
/// Characters of a URL.
const URL_CHARS_MAX: usize = 2_000;
/// Characters of notes. A value of the bucket has 64 KiB at most, and a character six bytes at most
/// in JSON.
const NOTES_CHARS_MAX: usize = 4_000;
/// Tags of an entry.
const TAGS_MAX: usize = 20;
/// Characters of a tag.
const TAG_CHARS_MAX: usize = 50;
/// Characters of what is searched for.
const QUERY_CHARS_MAX: usize = 200;
/// Entries that are shown unless the caller says otherwise.
const SHOWN: u32 = 20;
/// Entries that are shown at most.
const SHOWN_MAX: u32 = 100;
/// Characters of notes that a list shows; one entry alone is shown with all of them.
const EXCERPT_CHARS_MAX: usize = 200;

/// The urgency of an entry.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

/// A part of what was found.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listing<E> {
    /// The entries. Long notes are cut, with `…` at their end.
    pub(crate) entries: Vec<Numbered<E>>,
    /// Number of entries altogether.
    pub(crate) total: usize,
    /// The `offset` with which to ask for the next ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_offset: Option<usize>,
}

/// The entries from `offset` on, `limit` of them, with the beginnings of their notes.
pub(crate) fn listing<E: Entry>(
    entries: Vec<Numbered<E>>,
    offset: Option<u32>,
    limit: Option<u32>,
) -> Result<Listing<E>, ToolError> {
    let limit = limit.unwrap_or(SHOWN);
    if !(1..=SHOWN_MAX).contains(&limit) {
        return Err(ToolError::invalid(
            "limit",
            format_args!("must be from 1 to {SHOWN_MAX}"),
        ));
    }
    let total = entries.len();
    let offset = offset.unwrap_or_default() as usize;
    let end = offset.saturating_add(limit as usize);
    let shown = entries.into_iter().skip(offset).take(limit as usize);
    let mut entries: Vec<Numbered<E>> = shown.collect();
    for Numbered { entry, .. } in &mut entries {
        excerpt(entry.notes());
    }
    Ok(Listing {
        entries,
        total,
        next_offset: (end < total).then_some(end),
    })
}

fn excerpt(notes: &mut String) {
    if let Some((end, _)) = notes.char_indices().nth(EXCERPT_CHARS_MAX) {
        notes.truncate(end);
        notes.push('…');
    }
}

pub(crate) fn title(text: &str) -> Result<String, ToolError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ToolError::invalid("title", "must not be empty"));
    }
    if text.chars().any(char::is_control) {
        return Err(ToolError::invalid(
            "title",
            "must be one line without control characters",
        ));
    }
    bounded("title", text, TITLE_CHARS_MAX)
}

pub(crate) fn notes(text: &str) -> Result<String, ToolError> {
    bounded("notes", text.trim(), NOTES_CHARS_MAX)
}

/// Tags in lower case, each once.
pub(crate) fn tags(given: &[String]) -> Result<Vec<String>, ToolError> {
    let mut tags: Vec<String> = Vec::new();
    for text in given {
        let tag = tag(text)?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    if tags.len() > TAGS_MAX {
        return Err(ToolError::invalid(
            "tags",
            format_args!("are {}; {TAGS_MAX} is the most", tags.len()),
        ));
    }
    Ok(tags)
}

pub(crate) fn tag(text: &str) -> Result<String, ToolError> {
    let text = text.trim().to_lowercase();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(ToolError::invalid(
            "tags",
            "must be words, and none of them empty",
        ));
    }
    bounded("tags", &text, TAG_CHARS_MAX)
}

/// An address of the web as it was given.
pub(crate) fn url(text: &str) -> Result<String, ToolError> {
    let text = text.trim();
    let host =
        without_scheme(text).map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    if host.is_none_or(str::is_empty) || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(ToolError::invalid(
            "url",
            "must be a whole address such as `https://example.com/page`",
        ));
    }
    bounded("url", text, URL_CHARS_MAX)
}

/// Returns true if two addresses lead to the same page. Scheme, case of the host, a slash at the
/// end and a place in the page make no difference.
pub(crate) fn is_same_page(a: &str, b: &str) -> bool {
    page_of(a) == page_of(b)
}

fn page_of(url: &str) -> (String, &str) {
    let rest = without_scheme(url).unwrap_or(url);
    let rest = rest.split('#').next().unwrap_or(rest);
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    (host.to_ascii_lowercase(), path.trim_end_matches('/'))
}

fn without_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    (scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")).then_some(rest)
}

/// A day such as `2028-02-29`; an empty text is none.
pub(crate) fn due_date(text: &str) -> Result<Option<String>, ToolError> {
    match text.trim() {
        "" => Ok(None),
        text => day("dueDate", text).map(Some),
    }
}

/// A day as text, of which the order is that of days.
pub(crate) fn day(field: &str, text: &str) -> Result<String, ToolError> {
    let is_plain = text.len() == "2028-02-29".len();
    let parsed: Option<Date> = text.trim().parse().ok().filter(|_| is_plain);
    parsed.map(|day| day.to_string()).ok_or_else(|| {
        ToolError::invalid(field, "must be a day that there is, such as `2028-02-29`")
    })
}

/// The error of an update that changes nothing.
pub(crate) fn no_change() -> ToolError {
    ToolError::InvalidArguments(
        "nothing is to be changed: give at least one field besides `id`".to_owned(),
    )
}

/// The words of a query.
pub(crate) fn search_words(query: &str) -> Result<Vec<String>, ToolError> {
    let query = bounded("query", query.trim(), QUERY_CHARS_MAX)?;
    if query.is_empty() {
        return Err(ToolError::invalid("query", "must not be empty"));
    }
    let query = query.to_lowercase();
    Ok(query.split_whitespace().map(str::to_owned).collect())
}

/// Returns true if each word is in one of the texts.
pub(crate) fn has_all(words: &[String], texts: &[&str]) -> bool {
    let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    words
        .iter()
        .all(|word| texts.iter().any(|text| text.contains(word)))
}

fn bounded(field: &str, text: &str, chars_max: usize) -> Result<String, ToolError> {
    match text.chars().count() {
        count if count > chars_max => Err(ToolError::invalid(
            field,
            format_args!("has {count} characters; {chars_max} is the most"),
        )),
        _ => Ok(text.to_owned()),
    }
}
