//! `web_search`: one question to the search service that the operator chose, and its results as
//! plain text.

use crate::content::on_one_line;
use crate::fetch::error_text;
use crate::network::{Answer, BUSY_MS, Network, Request, Unanswered, read};
use crate::request::URL_CHARS_MAX;
use crate::{Settings, html};
use agent_host_sdk::http::{Method, placeholder};
use agent_host_sdk::{Json, ToolError};
use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use url::Url;

/// Results that are returned unless the caller says otherwise.
pub(crate) const RESULTS: u32 = 5;
/// Results that a caller may ask for. The schema of the arguments says it too.
pub(crate) const RESULTS_MAX: u32 = 20;
/// Characters of a query.
const QUERY_CHARS_MAX: usize = 400;
/// Bytes of an answer that are read. One that is longer is no answer to such a question.
pub(crate) const ANSWER_BYTES_MAX: usize = 2 << 20;

/// The arguments of `web_search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    #[schemars(length(min = 1, max = 400))]
    query: String,
    /// 5 by default.
    #[schemars(range(min = 1, max = 20))]
    max_results: Option<u32>,
}

/// One result of a search. Strangers wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Hit {
    /// The title of the page.
    pub(crate) title: String,
    /// The address of the page.
    pub(crate) url: String,
    /// Some words of the page, or on it.
    pub(crate) snippet: String,
}

pub(crate) fn search(
    network: &dyn Network,
    settings: &Settings,
    arguments: &Arguments,
) -> Result<Json<Vec<Hit>>, ToolError> {
    let query = checked_query(&arguments.query)?;
    let results_max = arguments.max_results.unwrap_or(RESULTS);
    if !(1..=RESULTS_MAX).contains(&results_max) {
        return Err(ToolError::invalid(
            "maxResults",
            format_args!("must be from 1 to {RESULTS_MAX}"),
        ));
    }
    let backend = Backend::from_settings(settings)?;
    let url = backend.address(&query, results_max);
    let headers = backend.headers();
    let request = Request {
        method: Method::Get,
        url: &url,
        headers: &headers,
        body: &[],
    };
    let lost = |error| backend.unanswered(error);
    let mut answer = network.send(&request).map_err(lost)?;
    if !(200..=299).contains(&answer.status) {
        return Err(backend.refused(&mut answer));
    }
    let (bytes, whole) = read(&mut answer.body, ANSWER_BYTES_MAX).map_err(lost)?;
    if !whole {
        return Err(backend.failed(format_args!(
            "answers with more than {ANSWER_BYTES_MAX} bytes, which is no list of results"
        )));
    }
    let found = backend
        .results(&bytes)
        .map_err(|reason| backend.unreadable(&answer, &reason))?;
    Ok(Json(hits(found, results_max as usize)))
}

fn checked_query(query: &str) -> Result<String, ToolError> {
    if query.chars().count() > QUERY_CHARS_MAX {
        return Err(ToolError::invalid(
            "query",
            format_args!("is longer than {QUERY_CHARS_MAX} characters: use fewer words"),
        ));
    }
    let query = on_one_line(query, QUERY_CHARS_MAX);
    if query.is_empty() {
        return Err(ToolError::invalid("query", "must have a word in it"));
    }
    Ok(query)
}

/// Results of an answer that are looked at. More are read over.
const INSPECTED_MAX: usize = 200;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 200;
/// Characters of a snippet.
const SNIPPET_CHARS_MAX: usize = 600;
/// Characters of a title or a snippet before its tags are removed.
const SOURCE_CHARS_MAX: usize = 8_000;

/// One result as a service writes it.
#[derive(Debug, Default, Deserialize)]
struct Found {
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
        while first.len() < INSPECTED_MAX {
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
fn parse_searxng(bytes: &[u8]) -> Result<Vec<Found>, serde_json::Error> {
    serde_json::from_slice(bytes).map(|OfSearxng { results }| results.0)
}

/// Reads an answer of Brave.
fn parse_brave(bytes: &[u8]) -> Result<Vec<Found>, serde_json::Error> {
    serde_json::from_slice(bytes).map(|OfBrave { web }| web.unwrap_or_default().results.0)
}

/// The first results that can be fetched, each address once.
fn hits(found: Vec<Found>, results_max: usize) -> Vec<Hit> {
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

/// The setting that chooses the service.
const BACKEND: &str = "WEB_SEARCH_BACKEND";
/// The setting of the service's base address.
const BASE: &str = "WEB_SEARCH_URL";
/// The setting of the name of the secret that is the service's key.
const SECRET: &str = "WEB_SEARCH_SECRET";
/// The address of Brave's service.
const BRAVE_BASE: &str = "https://api.search.brave.com";
/// The name of the key's secret unless the operator says otherwise.
const BRAVE_SECRET: &str = "brave";
/// Characters of a date that are shown.
const DATE_CHARS_MAX: usize = 64;

/// The service that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Backend {
    /// The address of its search, without a query.
    base: Url,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// An instance of SearXNG, or what answers as one does.
    Searxng,
    /// The Brave Search API, with the name of the secret that is its key.
    Brave { secret: String },
}

impl Backend {
    /// The service that the operator configured.
    ///
    /// # Errors
    /// There is none, or its settings make no sense.
    fn from_settings(settings: &Settings) -> Result<Self, ToolError> {
        let base = settings.get(BASE);
        match settings.get(BACKEND).as_deref() {
            Some("searxng") => {
                let base = base.ok_or_else(|| {
                    misconfigured(format_args!(
                        "`{BASE}` is missing: the base address of the SearXNG instance, such as \
                         `https://searx.example`"
                    ))
                })?;
                Ok(Self {
                    base: search_at(&base, "/search")?,
                    kind: Kind::Searxng,
                })
            }
            Some("brave") => Ok(Self {
                base: search_at(base.as_deref().unwrap_or(BRAVE_BASE), "/res/v1/web/search")?,
                kind: Kind::Brave {
                    secret: settings
                        .get(SECRET)
                        .unwrap_or_else(|| BRAVE_SECRET.to_owned()),
                },
            }),
            Some(other) => Err(misconfigured(format_args!(
                "`{BACKEND}` is `{}`; it can be `searxng` or `brave`",
                on_one_line(other, DATE_CHARS_MAX)
            ))),
            None => Err(misconfigured(format_args!(
                "no search service is chosen: `{BACKEND}` is `searxng`, with `{BASE}`, or `brave`"
            ))),
        }
    }

    /// The address of one search.
    fn address(&self, query: &str, results_max: u32) -> Url {
        let mut url = self.base.clone();
        let results_max = results_max.to_string();
        let parameters = match self.kind {
            Kind::Searxng => vec![("q", query), ("format", "json"), ("pageno", "1")],
            Kind::Brave { .. } => vec![("q", query), ("count", results_max.as_str())],
        };
        url.query_pairs_mut().extend_pairs(parameters);
        url
    }

    /// The headers of one search. The host puts the key in the place of its placeholder.
    fn headers(&self) -> Vec<(String, String)> {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        if let Kind::Brave { secret } = &self.kind {
            headers.push(("x-subscription-token".to_owned(), placeholder(secret)));
        }
        headers
    }

    /// The results in the body of an answer.
    ///
    /// # Errors
    /// It is no answer of such a service.
    fn results(&self, bytes: &[u8]) -> Result<Vec<Found>, serde_json::Error> {
        match self.kind {
            Kind::Searxng => parse_searxng(bytes),
            Kind::Brave { .. } => parse_brave(bytes),
        }
    }

    /// The error of a search without an answer.
    fn unanswered(&self, error: Unanswered) -> ToolError {
        match error {
            Unanswered::Busy => ToolError::RetryLater(BUSY_MS),
            Unanswered::Denied | Unanswered::HeaderRefused => self.failed(format_args!(
                "is not asked, because the host refuses the request: the operator grants it with \
                 `network` of the component{}",
                match &self.kind {
                    Kind::Searxng => "",
                    Kind::Brave { .. } => ", and its key with `secrets`",
                }
            )),
            _ => self.failed(format_args!("{error}")),
        }
    }

    /// The error of an answer whose status is one.
    fn refused(&self, answer: &mut Answer) -> ToolError {
        let status = answer.status;
        match (status, &self.kind) {
            (429, _) => self.failed(format_args!(
                "takes no more searches at present (status 429): {}",
                retry_time(answer)
            )),
            (403, Kind::Searxng) => self.failed(format_args!(
                "answers with status 403: its JSON format is switched off, or it refuses this \
                 host; whoever runs it adds `json` to `search.formats` of its settings"
            )),
            (401 | 403, Kind::Brave { secret }) => self.failed(format_args!(
                "answers with status {status}: it does not accept the key; the operator checks \
                 the secret `{secret}`"
            )),
            (300..=399, _) => self.failed(format_args!(
                "answers with status {status}, because it is elsewhere: the operator sets `{BASE}` \
                 to its present address"
            )),
            _ => {
                let said = error_text(&self.base, answer);
                self.failed(format_args!("answers with status {status}{said}"))
            }
        }
    }

    /// The error of an answer that is not what the service answers with.
    fn unreadable(&self, answer: &Answer, reason: &serde_json::Error) -> ToolError {
        let content_type = answer.header("content-type").unwrap_or("no type");
        let content_type = on_one_line(content_type, DATE_CHARS_MAX);
        let is_json = !reason.is_syntax() && !reason.is_eof();
        let with = if is_json {
            "in JSON that is no list of results"
        } else {
            "with something that is not JSON"
        };
        self.failed(format_args!(
            "answers {with} ({content_type}): the operator checks that `{BASE}` is the base \
             address of a service of the kind that `{BACKEND}` names"
        ))
    }

    /// An error of the service, which it names by its host.
    fn failed(&self, what: fmt::Arguments<'_>) -> ToolError {
        ToolError::Failed(format!(
            "the search service `{}` {what}",
            self.base.authority()
        ))
    }
}

/// The time at which the service wants to be asked again, as it says itself.
fn retry_time(answer: &Answer) -> String {
    let said = answer.header("retry-after").map(str::trim);
    match said.filter(|said| !said.is_empty()) {
        Some(seconds) if seconds.parse::<u64>().is_ok() => {
            format!("try again in {seconds} seconds")
        }
        Some(date) => format!("try again after {}", on_one_line(date, DATE_CHARS_MAX)),
        None => "try again in a few minutes".to_owned(),
    }
}

/// The address of the search below a base address.
fn search_at(base: &str, path: &str) -> Result<Url, ToolError> {
    let wrong = |why: &str| {
        misconfigured(format_args!(
            "`{BASE}` {why}; it is a base address such as `https://searx.example`"
        ))
    };
    let mut url = Url::parse(base).map_err(|_| wrong("is no address"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("does not begin with `https://` or `http://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("has a user name or a password in it"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has a `?` or a `#` in it"));
    }
    let above = url.path().trim_end_matches('/');
    let above = above.strip_suffix(path).unwrap_or(above);
    let whole = format!("{above}{path}");
    url.set_path(&whole);
    Ok(url)
}

fn misconfigured(what: fmt::Arguments<'_>) -> ToolError {
    ToolError::Failed(format!(
        "web search is not set up: {what}; the operator sets it in `environment` of the component \
         that offers this tool"
    ))
}
