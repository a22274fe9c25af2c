//! The search services: how each is configured and asked, and what its refusals mean.

use super::answer::{self, Found};
use crate::content::on_one_line;
use crate::fetch::error_text;
use crate::network::{Answer, BUSY_MS, Unanswered};
use crate::settings::Settings;
use agent_host_sdk::ToolError;
use agent_host_sdk::http::placeholder;
use std::fmt;
use url::Url;

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
pub(super) struct Backend {
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
    pub(super) fn from_settings(settings: &Settings) -> Result<Self, ToolError> {
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
    pub(super) fn address(&self, query: &str, results_max: u32) -> Url {
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
    pub(super) fn headers(&self) -> Vec<(String, String)> {
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
    pub(super) fn results(&self, bytes: &[u8]) -> Result<Vec<Found>, serde_json::Error> {
        match self.kind {
            Kind::Searxng => answer::parse_searxng(bytes),
            Kind::Brave { .. } => answer::parse_brave(bytes),
        }
    }

    /// The error of a search without an answer.
    pub(super) fn unanswered(&self, error: Unanswered) -> ToolError {
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
            Unanswered::RequestTooLarge
            | Unanswered::Unreachable
            | Unanswered::TimedOut
            | Unanswered::TooLarge
            | Unanswered::Broken => self.failed(format_args!("{error}")),
        }
    }

    /// The error of an answer whose status is one.
    pub(super) fn refused(&self, answer: &mut Answer) -> ToolError {
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
    pub(super) fn unreadable(&self, answer: &Answer, reason: &serde_json::Error) -> ToolError {
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
    pub(super) fn failed(&self, what: fmt::Arguments<'_>) -> ToolError {
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
