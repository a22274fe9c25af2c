//! The answers of search services: their results, as many as are wanted, in words that are safe to
//! show.

use super::Hit;
use crate::content::on_one_line;
use crate::html;
use crate::request::URL_CHARS_MAX;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use url::Url;

/// Results of an answer that are looked at. More are read over.
const LOOKED_AT_MAX: usize = 200;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 200;
/// Characters of a snippet.
const SNIPPET_CHARS_MAX: usize = 600;
/// Characters of a title or a snippet before its tags are removed.
const SOURCE_CHARS_MAX: usize = 8_000;

/// One result as a service writes it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Found {
    title: Option<String>,
    url: Option<String>,
    /// The name at SearXNG.
    content: Option<String>,
    /// The name at Brave.
    description: Option<String>,
}

/// The first results of a list. What comes behind them takes no memory.
#[derive(Debug, Default)]
struct First(Vec<Found>);

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Results)
    }
}

struct Results;

impl<'de> Visitor<'de> for Results {
    type Value = First;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of results")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<First, A::Error> {
        let mut first = Vec::new();
        while first.len() < LOOKED_AT_MAX {
            match all.next_element()? {
                Some(found) => first.push(found),
                None => return Ok(First(first)),
            }
        }
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
    }
}

#[derive(Debug, Deserialize)]
struct OfSearxng {
    results: First,
}

/// An answer of Brave. It has no `web` when nothing was found.
#[derive(Debug, Deserialize)]
struct OfBrave {
    web: Option<OfWeb>,
}

#[derive(Debug, Default, Deserialize)]
struct OfWeb {
    #[serde(default)]
    results: First,
}

/// Reads an answer of SearXNG.
pub(super) fn parse_searxng(bytes: &[u8]) -> Result<Vec<Found>, serde_json::Error> {
    serde_json::from_slice(bytes).map(|OfSearxng { results }| results.0)
}

/// Reads an answer of Brave.
pub(super) fn parse_brave(bytes: &[u8]) -> Result<Vec<Found>, serde_json::Error> {
    serde_json::from_slice(bytes).map(|OfBrave { web }| web.unwrap_or_default().results.0)
}

/// The first results that can be fetched, each address once.
pub(super) fn hits(found: Vec<Found>, results_max: usize) -> Vec<Hit> {
    let mut seen = BTreeSet::new();
    found
        .into_iter()
        .filter_map(|found| {
            let url = address(found.url.as_deref()?)?;
            seen.insert(url.clone()).then(|| {
                let title = shown(found.title.as_deref(), TITLE_CHARS_MAX);
                let snippet = found.content.as_deref().or(found.description.as_deref());
                Hit {
                    title: if title.is_empty() { url.clone() } else { title },
                    snippet: shown(snippet, SNIPPET_CHARS_MAX),
                    url,
                }
            })
        })
        .take(results_max)
        .collect()
}

/// The address of a result, in the one spelling by which two of them are the same; none for one
/// that `web_fetch` would not take.
fn address(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    if !matches!(url.scheme(), "http" | "https") || !is_plain {
        return None;
    }
    url.set_fragment(None);
    let url = String::from(url);
    (url.len() <= URL_CHARS_MAX).then_some(url)
}

fn shown(source: Option<&str>, chars_max: usize) -> String {
    let source = source.unwrap_or_default();
    // Hidden characters first: without them a tag may be one.
    let source = on_one_line(source, SOURCE_CHARS_MAX);
    on_one_line(&html::plain_text(source), chars_max)
}
