//! `web_fetch`: one request, and what to say of its answer.

use crate::content::{Kind, Media, sniffed, without_controls};
use crate::network::{Answer, Network, Unanswered};
use crate::{charset, html};
use agent_host_sdk::{Json, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read};
use url::Url;

/// Characters of a URL.
const URL_CHARS_MAX: usize = 2_048;
/// Characters of text that are returned unless the caller says otherwise.
pub(crate) const TEXT_CHARS: u32 = 20_000;
/// Characters of text that a caller may ask for. The schema of the arguments says it too.
pub(crate) const TEXT_CHARS_MAX: u32 = 200_000;
/// Bytes of a body that are read; what comes after them is not looked at. Chosen so that the
/// slowest page stays within the memory and the processor time that a component has by default.
pub(crate) const BODY_BYTES_MAX: usize = 2 << 20;
/// Bytes of the body of an answer that is an error, for the message.
const ERROR_BODY_BYTES_MAX: usize = 4 << 10;
/// Characters of it that are shown.
const ERROR_CHARS_MAX: usize = 500;
/// Milliseconds after which to try again when the host has too much under way.
const BUSY_MS: u32 = 1_000;

/// The accepted media types, the readable first.
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, \
                      text/plain;q=0.8, application/json;q=0.8, */*;q=0.1";

/// The arguments of `web_fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The address, such as `https://example.com/page`.
    #[schemars(length(max = 2048))]
    url: String,
    /// Number of characters of text to return at most; 20,000 if omitted, 200,000 at most.
    #[schemars(range(min = 1, max = 200_000))]
    max_chars: Option<u32>,
    /// True to return the HTML as it came instead of turning it into markdown.
    raw: Option<bool>,
}

/// The result of a fetch.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fetched {
    /// The address that was asked.
    url: String,
    /// The status code of the answer.
    status: u16,
    /// The media type of the answer; empty when the server did not say.
    content_type: String,
    /// The title of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The address where the page is instead. It was not fetched: call again with this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<String>,
    /// The text of the page. A stranger wrote it.
    text: String,
    /// A note on what is missing from the text, when something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
}

pub(crate) fn fetch(
    network: &dyn Network,
    arguments: &Arguments,
) -> Result<Json<Fetched>, ToolError> {
    let url = parsed(&arguments.url)?;
    let chars_max = arguments.max_chars.unwrap_or(TEXT_CHARS);
    let raw = arguments.raw == Some(true);
    if !(1..=TEXT_CHARS_MAX).contains(&chars_max) {
        return Err(ToolError::invalid(
            "maxChars",
            format_args!("must be from 1 to {TEXT_CHARS_MAX}"),
        ));
    }
    let answer = network
        .get(&url, ACCEPT)
        .map_err(|error| error_of(&url, error))?;
    match answer.status {
        200..=299 => page(&url, answer, chars_max as usize, raw),
        300..=399 => elsewhere(&url, &answer),
        _ => Err(refused(&url, answer)),
    }
    .map(Json)
}

fn parsed(text: &str) -> Result<Url, ToolError> {
    if text.chars().count() > URL_CHARS_MAX {
        return Err(ToolError::invalid(
            "url",
            format_args!("is longer than {URL_CHARS_MAX} characters"),
        ));
    }
    let mut url = Url::parse(text.trim()).map_err(|error| {
        ToolError::invalid(
            "url",
            format_args!("is not a whole address such as `https://example.com/page`: {error}"),
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ToolError::invalid(
            "url",
            format_args!(
                "must begin with `https://` or `http://`, not `{}:`",
                url.scheme()
            ),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolError::invalid(
            "url",
            "must not carry a user name or a password",
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

fn page(url: &Url, mut answer: Answer, chars_max: usize, raw: bool) -> Result<Fetched, ToolError> {
    let media = Media::of(answer.content_type.as_deref());
    if media.kind() == Some(Kind::Binary) {
        return Err(not_text(url, &media.essence));
    }
    let (bytes, whole) =
        read(&mut answer.body, BODY_BYTES_MAX).map_err(|error| broken_off(url, &error))?;
    let kind = media.kind().unwrap_or_else(|| sniffed(&bytes));
    let text = match kind {
        Kind::Binary => return Err(not_text(url, &media.essence)),
        Kind::Html | Kind::Text => {
            charset::decode(&bytes, media.charset.as_deref(), kind == Kind::Html, whole)
        }
    };
    drop(bytes);
    // Whatever its type says: no text has a zero in it.
    if kind == Kind::Text && text.contains('\0') {
        return Err(not_text(url, ""));
    }
    let page = if kind == Kind::Html && !raw {
        html::page(text, url)
    } else {
        html::Page {
            title: None,
            text,
            whole: true,
        }
    };
    let (text, cut) = cut(without_controls(page.text), chars_max, whole && page.whole);
    Ok(Fetched {
        url: url.to_string(),
        status: answer.status,
        content_type: media.essence,
        title: page.title.map(without_controls),
        redirect: None,
        text,
        cut,
    })
}

/// Reads at most so many bytes, and says whether that is all.
fn read(body: &mut dyn Read, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    body.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    let whole = bytes.len() <= bytes_max;
    bytes.truncate(bytes_max);
    Ok((bytes, whole))
}

/// The beginning of a text, and what is missing.
fn cut(mut text: String, chars_max: usize, whole: bool) -> (String, Option<String>) {
    let end = text.char_indices().nth(chars_max).map(|(at, _)| at);
    let Some(end) = end else {
        let missing = "the page is longer than this tool reads; its end is missing";
        return (text, (!whole).then(|| missing.to_owned()));
    };
    let more = if whole { "" } else { " at least" };
    let all = text.chars().count();
    text.truncate(end);
    let advice = if chars_max < TEXT_CHARS_MAX as usize {
        format!("ask with a larger maxChars, up to {TEXT_CHARS_MAX}")
    } else {
        "the rest cannot be had with this tool".to_owned()
    };
    let missing = format!("these are the first {chars_max} characters of{more} {all}; {advice}");
    (text, Some(missing))
}

fn elsewhere(url: &Url, answer: &Answer) -> Result<Fetched, ToolError> {
    let status = answer.status;
    let location = answer.location.as_deref();
    let Some(target) = location.and_then(|location| url.join(location).ok()) else {
        return Err(ToolError::Failed(format!(
            "`{url}` answers with status {status} and does not say where the page is"
        )));
    };
    Ok(Fetched {
        url: url.to_string(),
        status,
        content_type: Media::of(answer.content_type.as_deref()).essence,
        title: None,
        text: format!(
            "The page is not here but at {target} . To read it, call web_fetch with that address."
        ),
        redirect: Some(target.into()),
        cut: None,
    })
}

/// The error of a status that is one, with the beginning of what the server says.
fn refused(url: &Url, mut answer: Answer) -> ToolError {
    let status = answer.status;
    let media = Media::of(answer.content_type.as_deref());
    let charset = media.charset.as_deref();
    let said = match (media.kind(), read(&mut answer.body, ERROR_BODY_BYTES_MAX)) {
        (Some(Kind::Binary), _) | (_, Err(_)) => String::new(),
        (kind, Ok((bytes, whole))) => match kind.unwrap_or_else(|| sniffed(&bytes)) {
            Kind::Binary => String::new(),
            Kind::Text => charset::decode(&bytes, charset, false, whole),
            Kind::Html => html::page(charset::decode(&bytes, charset, true, whole), url).text,
        },
    };
    let said = without_controls(said);
    let mut said: String = said.trim().chars().take(ERROR_CHARS_MAX).collect();
    if !said.is_empty() {
        said.insert_str(0, ": ");
    }
    match status {
        404 | 410 => ToolError::NotFound(format!(
            "there is nothing at `{url}` (status {status}){said}"
        )),
        _ => ToolError::Failed(format!("`{url}` answers with status {status}{said}")),
    }
}

fn not_text(url: &Url, essence: &str) -> ToolError {
    let essence = if essence.is_empty() || essence == "application/octet-stream" {
        "binary data"
    } else {
        essence
    };
    ToolError::Failed(format!(
        "`{url}` is {essence}, which this tool cannot read: it reads HTML, plain text, markdown, \
         JSON and XML"
    ))
}

fn broken_off(url: &Url, error: &io::Error) -> ToolError {
    let unanswered = error
        .get_ref()
        .and_then(|source| source.downcast_ref::<Unanswered>());
    error_of(url, unanswered.copied().unwrap_or(Unanswered::Broken))
}

fn error_of(url: &Url, error: Unanswered) -> ToolError {
    match error {
        Unanswered::Denied => ToolError::Denied,
        Unanswered::Busy => ToolError::RetryLater(BUSY_MS),
        Unanswered::Unreachable
        | Unanswered::TimedOut
        | Unanswered::TooLarge
        | Unanswered::Broken => ToolError::Failed(format!("`{url}` {error}")),
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "is not allowed",
            Self::Busy => "has to wait: the host has too much under way",
            Self::Unreachable => {
                "cannot be reached: there is no such server, or it does not answer"
            }
            Self::TimedOut => "took too long to answer",
            Self::TooLarge => "is larger than the operator allows",
            Self::Broken => "broke off, or did not answer in HTTP",
        })
    }
}

impl std::error::Error for Unanswered {}

impl From<Unanswered> for io::Error {
    fn from(error: Unanswered) -> Self {
        Self::other(error)
    }
}
