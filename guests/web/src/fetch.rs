//! `web_fetch`: one request that reads, and what to say of its answer.

use crate::content::{Kind, Media, sniffed, without_controls};
use crate::network::{Answer, Network, Request, read};
use crate::request::{self, error_of};
use crate::{charset, html};
use agent_host_sdk::http::Method;
use agent_host_sdk::{Json, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use url::Url;

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
/// Headers of an answer that are shown when only its head was asked for.
const SHOWN_HEADERS_MAX: usize = 64;
/// Characters of the value of one.
const SHOWN_VALUE_CHARS_MAX: usize = 500;

/// The accepted media types, the readable first.
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, \
                      text/plain;q=0.8, application/json;q=0.8, */*;q=0.1";

/// The arguments of `web_fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Such as `https://example.com/page`.
    #[schemars(length(max = 2048))]
    url: String,
    /// `GET` (default), or `HEAD` for the headers alone.
    method: Option<String>,
    /// Such as `{"accept-language": "de"}`; no credentials.
    headers: Option<BTreeMap<String, String>>,
    /// Characters of text at most; 20,000 by default.
    #[schemars(range(min = 1, max = 200_000))]
    max_chars: Option<u32>,
    /// True for the HTML as it came.
    raw: Option<bool>,
}

/// The result of a fetch.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fetched {
    /// The address that was asked.
    pub(crate) url: String,
    /// The status code of the answer.
    pub(crate) status: u16,
    /// The media type of the answer; empty when the server did not say.
    pub(crate) content_type: String,
    /// The title of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// The address where the page is instead. It was not fetched: call again with this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redirect: Option<String>,
    /// The headers of the answer, when only its head was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) headers: Option<BTreeMap<String, String>>,
    /// The text of the page. A stranger wrote it.
    pub(crate) text: String,
    /// A note on what is missing from the text, when something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cut: Option<String>,
}

impl Fetched {
    /// A result that has no text yet.
    pub(crate) fn without_text(url: &Url, status: u16, content_type: String) -> Self {
        Self {
            url: url.to_string(),
            status,
            content_type,
            title: None,
            redirect: None,
            headers: None,
            text: String::new(),
            cut: None,
        }
    }
}

pub(crate) fn fetch(
    network: &dyn Network,
    arguments: &Arguments,
) -> Result<Json<Fetched>, ToolError> {
    let url = request::address(&arguments.url)?;
    let method = request::reading_method(arguments.method.as_deref())?;
    let mut headers = request::headers(arguments.headers.as_ref())?;
    let chars_max = checked_chars(arguments.max_chars.unwrap_or(TEXT_CHARS))?;
    let raw = arguments.raw == Some(true);
    request::set_default(&mut headers, "accept", ACCEPT);
    let sent = Request {
        method,
        url: &url,
        headers: &headers,
        body: &[],
    };
    let answer = network.send(&sent).map_err(|error| error_of(&url, error))?;
    match answer.status {
        200..=299 if method == Method::Head => Ok(head(&url, &answer)),
        200..=299 => page(&url, answer, chars_max, raw),
        304 => Ok(not_modified(&url, &answer)),
        300..=399 => elsewhere(&url, &answer),
        _ => Err(refused(&url, answer)),
    }
    .map(Json)
}

/// Checks the number of characters that a caller asks for.
pub(crate) fn checked_chars(chars_max: u32) -> Result<usize, ToolError> {
    if (1..=TEXT_CHARS_MAX).contains(&chars_max) {
        Ok(chars_max as usize)
    } else {
        Err(ToolError::invalid(
            "maxChars",
            format_args!("must be from 1 to {TEXT_CHARS_MAX}"),
        ))
    }
}

/// The head of an answer.
fn head(url: &Url, answer: &Answer) -> Fetched {
    let content_type = Media::parse(answer.header("content-type")).essence;
    let shown = answer.headers.iter().take(SHOWN_HEADERS_MAX);
    let shown = shown.map(|(name, value)| {
        let value = without_controls(value.chars().take(SHOWN_VALUE_CHARS_MAX).collect());
        (name.clone(), value)
    });
    Fetched {
        headers: Some(shown.collect()),
        ..Fetched::without_text(url, answer.status, content_type)
    }
}

pub(crate) fn page(
    url: &Url,
    mut answer: Answer,
    chars_max: usize,
    raw: bool,
) -> Result<Fetched, ToolError> {
    let media = Media::parse(answer.header("content-type"));
    if media.kind() == Some(Kind::Binary) {
        return Err(not_text(url, &media.essence));
    }
    let (bytes, whole) =
        read(&mut answer.body, BODY_BYTES_MAX).map_err(|error| error_of(url, error))?;
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
            next: None,
        }
    };
    let header = answer.header("refresh");
    let next = header.and_then(|content| html::refreshed(content, url));
    let (text, cut) = cut(without_controls(page.text), chars_max, whole && page.whole);
    Ok(Fetched {
        title: page.title.map(without_controls),
        redirect: next.or(page.next).map(|next| request::plain(next).into()),
        text,
        cut,
        ..Fetched::without_text(url, answer.status, media.essence)
    })
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

/// The answer to a header such as `if-none-match`: the caller has the page already.
fn not_modified(url: &Url, answer: &Answer) -> Fetched {
    let text = "The page was not modified: what was fetched of it before is still right.";
    Fetched {
        text: text.to_owned(),
        ..head(url, answer)
    }
}

pub(crate) fn elsewhere(url: &Url, answer: &Answer) -> Result<Fetched, ToolError> {
    let status = answer.status;
    let location = answer.header("location");
    let target = location.and_then(|location| url.join(location).ok());
    let Some(target) = target.map(request::plain) else {
        return Err(ToolError::Failed(format!(
            "`{url}` answers with status {status} and does not say where the page is"
        )));
    };
    let content_type = Media::parse(answer.header("content-type")).essence;
    Ok(Fetched {
        text: format!(
            "The page is not here but at {target} . To read it, call web_fetch with that address."
        ),
        redirect: Some(target.into()),
        ..Fetched::without_text(url, status, content_type)
    })
}

/// The error of a status that is one, with the beginning of what the server says.
pub(crate) fn refused(url: &Url, mut answer: Answer) -> ToolError {
    let status = answer.status;
    let said = error_text(url, &mut answer);
    match status {
        404 | 410 => ToolError::NotFound(format!(
            "there is nothing at `{url}` (status {status}){said}"
        )),
        _ => ToolError::Failed(format!("`{url}` answers with status {status}{said}")),
    }
}

/// The beginning of what a server says in an answer that is an error, behind a colon; empty when it
/// says nothing that is text.
pub(crate) fn error_text(url: &Url, answer: &mut Answer) -> String {
    let media = Media::parse(answer.header("content-type"));
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
    said
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
