//! The search: pages by the words of a query, without any index.

use crate::Page;
use std::collections::BTreeSet;

/// Characters of a snippet.
const SNIPPET_CHARS: usize = 160;
/// Letters of a word that counts.
const WORD_CHARS_MIN: usize = 3;
/// Words that say nothing of a subject.
const COMMON: [&str; 12] = [
    "about", "and", "are", "does", "for", "from", "how", "that", "the", "what", "which", "why",
];

/// A page that was found.
pub(crate) struct Found<'a> {
    pub(crate) page: &'a Page,
    /// The beginning of its text.
    pub(crate) snippet: String,
}

/// Returns the pages with a word of the query, those with most of its words first.
pub(crate) fn ranked<'a>(pages: &'a [Page], query: &str) -> Vec<Found<'a>> {
    let wanted = distinct_words(query);
    let mut found: Vec<(usize, Found<'_>)> = pages
        .iter()
        .filter_map(|page| {
            let text = text(&page.html);
            let common = distinct_words(&text).intersection(&wanted).count();
            let snippet = text.chars().take(SNIPPET_CHARS).collect();
            (common > 0).then_some((common, Found { page, snippet }))
        })
        .collect();
    // Stable: equally good pages stay in the order of their names.
    found.sort_by_key(|(common, _)| std::cmp::Reverse(*common));
    found.into_iter().map(|(_, found)| found).collect()
}

fn distinct_words(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| word.chars().count() >= WORD_CHARS_MIN)
        .map(str::to_lowercase)
        .filter(|word| !COMMON.contains(&word.as_str()))
        .collect()
}

/// The text of a page without its tags, on one line.
fn text(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what stands in the `<title>` of a page; none without one.
pub(crate) fn title(html: &str) -> Option<String> {
    let (_, after) = html.split_once("<title>")?;
    let (title, _) = after.split_once("</title>")?;
    Some(title.trim().to_owned())
}

/// Returns a parameter of a query string, decoded; none if it is not there.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| decoded(value))
}

/// Undoes the encoding of forms. What is no code of a byte stays as it is.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let code = after
                    .get(..2)
                    .and_then(|digits| std::str::from_utf8(digits).ok())
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                match code {
                    Some(code) => {
                        bytes.push(code);
                        rest = after.get(2..).unwrap_or_default();
                    }
                    None => bytes.push(b'%'),
                }
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
