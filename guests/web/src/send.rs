//! `web_send`: one request that may change something, sent once.

use crate::content::Media;
use crate::fetch::{Fetched, TEXT_CHARS, checked_chars, elsewhere, error_text, page, refused};
use crate::network::{Answer, Network, Request, Unanswered};
use crate::request::{self, SENT_BYTES_MAX, error_of};
use agent_host_sdk::{Json, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use url::Url;

/// The accepted media types, the readable first.
const ACCEPT: &str = "application/json, text/plain;q=0.9, text/html;q=0.8, */*;q=0.1";

/// The arguments of `web_send`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The address, such as `https://example.com/items`.
    #[schemars(length(max = 2048))]
    url: String,
    /// `POST`, `PUT`, `PATCH` or `DELETE`.
    method: String,
    /// Such as `{"content-type": "application/json"}`; no credentials.
    headers: Option<BTreeMap<String, String>>,
    /// Sent as JSON if it is an object or an array, otherwise as plain text, unless a header says.
    #[schemars(length(max = 1_048_576))]
    body: Option<String>,
    /// Characters of the answer's text at most; 20,000 by default.
    #[schemars(range(min = 1, max = 200_000))]
    max_chars: Option<u32>,
}

pub(crate) fn send(
    network: &dyn Network,
    arguments: &Arguments,
) -> Result<Json<Fetched>, ToolError> {
    let url = request::address(&arguments.url)?;
    let method = request::changing_method(&arguments.method)?;
    let mut headers = request::headers(arguments.headers.as_ref())?;
    let chars_max = checked_chars(arguments.max_chars.unwrap_or(TEXT_CHARS))?;
    let body = arguments.body.as_deref().unwrap_or_default();
    if body.len() > SENT_BYTES_MAX {
        return Err(ToolError::invalid(
            "body",
            format_args!("has {} bytes; {SENT_BYTES_MAX} is the most", body.len()),
        ));
    }
    request::set_default(&mut headers, "accept", ACCEPT);
    if !body.is_empty() {
        request::set_default(&mut headers, "content-type", type_of(body));
    }
    let sent = Request {
        method,
        url: &url,
        headers: &headers,
        body: body.as_bytes(),
    };
    let answer = network.send(&sent).map_err(|error| lost(&url, error))?;
    match answer.status {
        200..=299 => Ok(taken(&url, answer, chars_max)),
        300..=399 => referred(&url, &answer),
        408 | 500..=599 => Err(uncertain(&url, answer)),
        _ => Err(refused(&url, answer)),
    }
    .map(Json)
}

fn type_of(body: &str) -> &'static str {
    let is_json = body.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok();
    if is_json {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    }
}

/// The answer of a server that took the request. It counts as taken even when the answer cannot be
/// read: whoever is told that it failed would send it again.
fn taken(url: &Url, answer: Answer, chars_max: usize) -> Fetched {
    let status = answer.status;
    let content_type = Media::parse(answer.header("content-type")).essence;
    match page(url, answer, chars_max, false) {
        Ok(page) => Fetched {
            cut: page.cut.is_some().then(|| {
                "the end of the answer is missing; do not send the request again for it".to_owned()
            }),
            ..page
        },
        Err(error) => Fetched {
            cut: Some(format!(
                "the server took the request, and its answer cannot be shown: {error}"
            )),
            ..Fetched::without_text(url, status, content_type)
        },
    }
}

fn referred(url: &Url, answer: &Answer) -> Result<Fetched, ToolError> {
    let status = answer.status;
    let mut referred = elsewhere(url, answer)?;
    let target = referred.redirect.as_deref().unwrap_or_default();
    referred.text = if matches!(status, 307 | 308) {
        format!(
            "The request was not carried out: its place is {target} . To send it there, make it \
             again with that address."
        )
    } else {
        format!(
            "The server refers to {target} . To read what is there, call web_fetch with that \
             address."
        )
    };
    Ok(referred)
}

/// The warning about a request that may have been carried out although nobody says so.
const UNCERTAIN: &str =
    "the server may have carried the request out, so look before you send it again";

/// The error of an answer that leaves open what became of the request: a server gave up in the
/// middle of it, or one on the way did.
fn uncertain(url: &Url, mut answer: Answer) -> ToolError {
    let status = answer.status;
    let said = error_text(url, &mut answer);
    ToolError::Failed(format!(
        "`{url}` answers with status {status}; {UNCERTAIN}{said}"
    ))
}

/// The error of a request without an answer: the server may have carried it out all the same.
fn lost(url: &Url, error: Unanswered) -> ToolError {
    match error {
        Unanswered::TimedOut | Unanswered::TooLarge | Unanswered::Broken => {
            ToolError::Failed(format!("`{url}` {error}; {UNCERTAIN}"))
        }
        _ => error_of(url, error),
    }
}
